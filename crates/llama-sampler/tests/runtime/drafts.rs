//! Generations with drafts of any width, on a model, beside generations without.

use crate::common::{precise_model, trie};
use llama_sampler::{Context, ContextOptions, Draft, GenerateOptions, Generated, Model, ModelOptions};
use std::sync::Arc;
use trie_core::{DrawSettings, Mode, SamplerOptions, SpanRules};

/// Costs of a token at which a position has at most 1, 2 and 4 guesses, and one at which drafts are as large as they
/// may be.
const COSTS: [(&str, f32); 4] = [("1", 0.7), ("2", 0.4), ("4", 0.1), ("4, all", 0.01)];
const PROMPTS: [&str; 3] =
    ["apples, pears, plums, apples, plums, pears, apples,", "Once upon a time", "one two one three one"];

struct Case {
    prompt: &'static str,
    in_set: bool,
    sampling: SamplerOptions,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for prompt in PROMPTS {
        for (in_set, seed) in [(false, None), (true, None), (false, Some(1)), (true, Some(2)), (true, Some(3))] {
            let mode = if seed.is_some() { Mode::Sampled } else { Mode::Greedy };
            let draw = DrawSettings { temperature: 1.5, ..Default::default() };
            cases.push(Case { prompt, in_set, sampling: SamplerOptions { mode, draw, seed } });
        }
    }
    cases
}

fn generate(context: &mut Context, case: &Case) -> Generated {
    let vocab = Arc::clone(context.vocab());
    let prompt = vocab.tokenize(case.prompt, true, true).unwrap();
    let letters = ["apples, plums", "apples, pears", "pears", "plums, plums", "plums, apples and pears"];
    let values: Vec<Vec<u32>> = letters
        .iter()
        .map(|text| vocab.tokenize(text, false, false).unwrap().iter().map(|token| token.get()).collect())
        .collect();
    let leaves: Vec<(&str, &[u32])> = letters.into_iter().zip(values.iter().map(Vec::as_slice)).collect();
    let rules = case.in_set.then(|| Arc::new(SpanRules::for_constraint(trie(&leaves), vocab.len()).unwrap()));
    let options = GenerateOptions::default().with_max_tokens(60).with_sampling(case.sampling);
    context.generate(&prompt, rules.as_ref(), &options, &mut ()).unwrap()
}

#[test]
fn trees_of_drafts_change_no_token() {
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    let options = ContextOptions::default().with_n_ctx(256).with_n_threads(1).with_precise(true);
    let mut context = model.context(options).unwrap();
    let plain: Vec<Generated> = cases().iter().map(|case| generate(&mut context, case)).collect();
    println!("| source | width | passes | drafted | accepted |\n| --- | --- | ---: | ---: | ---: |");
    println!("| none | | {} | 0 | 0 |", plain.iter().map(|one| one.stats.forward_passes).sum::<u64>());
    for (name, source) in [("prompt", Draft::prompt as fn() -> Draft), ("ngram", Draft::ngram)] {
        for (width, cost) in COSTS {
            context.clear();
            context.set_draft(Some(source().with_token_cost(cost)));
            let (mut passes, mut drafted, mut accepted) = (0, 0, 0);
            for (case, plain) in cases().iter().zip(&plain) {
                let one = generate(&mut context, case);
                assert_eq!(&one.tokens, &plain.tokens, "{name} {width} after {:?}", case.prompt);
                assert_eq!((&one.text, one.finish), (&plain.text, plain.finish));
                passes += one.stats.forward_passes;
                drafted += one.stats.drafted_tokens;
                accepted += one.stats.accepted_tokens;
            }
            println!("| {name} | {width} | {passes} | {drafted} | {accepted} |");
            assert!(cost > 0.1 || accepted > 0, "{name} {width}: nothing was accepted");
        }
    }
}

//! Generation that skips forced tokens gives what generation without does, in fewer forward passes.

use crate::common::{ids, precise_model, trie};
use llama_cpp_2::sampling::LlamaSampler;
use llama_sampler::{Context, ContextOptions, Finish, GenerateOptions, Generated, Model, ModelOptions, RuntimeError};
use std::sync::Arc;
use trie_core::{After, DrawSettings, Mode, SamplerOptions, SpanRules, TokenId};
use trie_text::Vocab;

/// Prefixes of each other, long forced runs, single tokens.
const VALUES: [&str; 8] = [
    "cancel_meeting",
    "cancel_meeting_series",
    "create_reminder",
    "create_reminder_for_a_whole_group_of_people",
    "stop",
    "x",
    "translate document",
    "Übersetze das Dokument",
];

fn context() -> Context {
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    model.context(ContextOptions::default().with_n_threads(1).with_precise(true)).unwrap()
}

fn rules(vocab: &Vocab, values: &[&str], ends: bool, after: After) -> Arc<SpanRules> {
    let tokens: Vec<Vec<u32>> = values
        .iter()
        .map(|value| vocab.tokenize(value, false, false).unwrap().iter().map(|token| token.get()).collect())
        .collect();
    let leaves: Vec<(&str, &[u32])> = values.iter().copied().zip(tokens.iter().map(Vec::as_slice)).collect();
    let eog = vocab.end_of_generation().to_vec();
    let rules = SpanRules::for_constraint(trie(&leaves), vocab.len()).unwrap();
    let rules = if ends { rules.with_end_tokens(eog.clone()).unwrap() } else { rules };
    Arc::new(rules.with_end_of_generation(eog).unwrap().with_after(after).unwrap())
}

fn prompts(vocab: &Vocab) -> Vec<Vec<TokenId>> {
    ["The next action is ", "Please call off the conference. ", "a", "<tool_call>\n{\"name\": \""]
        .map(|text| vocab.tokenize(text, true, true).unwrap())
        .to_vec()
}

/// The same generation with and without skipping; what both must agree in.
fn both(
    context: &mut Context,
    prompt: &[TokenId],
    rules: &Arc<SpanRules>,
    options: &GenerateOptions,
) -> (Generated, Generated) {
    let slow = options.clone().with_skip_ahead(false);
    let ahead = context.generate(prompt, Some(rules), options, &mut ()).unwrap();
    context.clear();
    let each = context.generate(prompt, Some(rules), &slow, &mut ()).unwrap();
    assert_eq!((&ahead.tokens, ahead.finish, &ahead.leaf), (&each.tokens, each.finish, &each.leaf));
    assert_eq!(ahead.text, each.text);
    assert_eq!(
        (ahead.stats.forced_tokens, ahead.stats.sampled_tokens),
        (each.stats.forced_tokens, each.stats.sampled_tokens)
    );
    assert_eq!(each.stats.forward_passes_saved, 0);
    (ahead, each)
}

#[test]
fn greedy_and_sampled_tokens_are_the_same_and_passes_are_branch_points() {
    let mut context = context();
    let vocab = Arc::clone(context.vocab());
    for (ends, after) in [(false, After::Stop), (true, After::Stop), (false, After::Free), (true, After::Free)] {
        let rules = rules(&vocab, &VALUES, ends, after);
        for prompt in prompts(&vocab) {
            for seed in 0..12 {
                let plain =
                    DrawSettings { temperature: 1.5, top_k: 40, top_p: 0.98, min_p: 0.001, ..Default::default() };
                let plain = DrawSettings { typical_p: 0.99, ..plain };
                let penalised = DrawSettings { repeat_penalty: 1.4, presence_penalty: 0.5, ..plain };
                let penalised = DrawSettings { frequency_penalty: 0.3, penalty_last_n: seed as i32 - 2, ..penalised };
                let draw = if seed % 2 == 0 { plain } else { penalised };
                let mode = if seed < 2 { Mode::Greedy } else { Mode::Sampled };
                let sampling = SamplerOptions { mode, draw, seed: Some(seed) };
                context.clear();
                let options =
                    GenerateOptions::default().with_sampling(sampling).with_max_tokens(24).with_skip_ahead(true);
                let (ahead, each) = both(&mut context, &prompt, &rules, &options);
                assert_eq!(ahead.stats.forward_passes, ahead.stats.sampled_tokens as u64);
                assert_eq!(each.stats.forward_passes as usize, each.stats.forced_tokens + each.stats.sampled_tokens);
            }
        }
    }
}

#[test]
fn a_value_without_a_choice_costs_nothing() {
    let mut context = context();
    let vocab = Arc::clone(context.vocab());
    let rules = rules(&vocab, &["Übersetze das Dokument"], false, After::Stop);
    let prompt = &prompts(&vocab)[0];
    let (ahead, _) = both(&mut context, prompt, &rules, &GenerateOptions::default());
    assert_eq!((ahead.stats.forward_passes, ahead.stats.tokens_decoded), (0, 0));
    assert_eq!(ahead.text, "Übersetze das Dokument");
}

#[test]
fn limits_are_met_at_the_same_token() {
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    let options = ContextOptions::default().with_n_ctx(256).with_n_threads(1).with_precise(true);
    let mut context = model.context(options).unwrap();
    let vocab = Arc::clone(context.vocab());
    let rules = rules(&vocab, &VALUES[2..4], false, After::Free);
    let prompt = &prompts(&vocab)[0];
    for max_tokens in 1..30 {
        both(&mut context, prompt, &rules, &GenerateOptions::default().with_max_tokens(max_tokens));
    }
    for room in 0..12 {
        let long = ids((0..256 - room).map(|n| n % 200 + 40));
        let options = GenerateOptions::default().with_max_tokens(100);
        let (ahead, _) = both(&mut context, &long, &rules, &options);
        assert!(ahead.finish != Finish::ContextFull || ahead.tokens.len() == room as usize + 1);
    }
}

#[test]
fn what_is_held_is_not_computed_again() {
    let mut context = context();
    let vocab = Arc::clone(context.vocab());
    let rules = rules(&vocab, &VALUES, true, After::Stop);
    let prompt = vocab.tokenize("one two three four five six seven", false, false).unwrap();
    let options = GenerateOptions::default();
    let first = context.generate(&prompt, Some(&rules), &options, &mut ()).unwrap();
    let again = context.generate(&prompt, Some(&rules), &options, &mut ()).unwrap();
    assert_eq!(first.tokens, again.tokens);
    assert_eq!(first.stats.tokens_decoded - again.stats.tokens_decoded, prompt.len() - 1);
    let longer = vocab.tokenize("one two three four nine", false, false).unwrap();
    let common = prompt.iter().zip(&longer).take_while(|(a, b)| a == b).count();
    let other = context.generate(&longer, Some(&rules), &options, &mut ()).unwrap();
    context.clear();
    let fresh = context.generate(&longer, Some(&rules), &options, &mut ()).unwrap();
    assert_eq!(other.tokens, fresh.tokens);
    assert_eq!(fresh.stats.tokens_decoded - other.stats.tokens_decoded, common);
}

#[test]
fn samplers_of_llama_cpp_see_the_allowed_tokens_alone() {
    let mut context = context();
    let vocab = Arc::clone(context.vocab());
    let rules = rules(&vocab, &VALUES, true, After::Stop);
    let prompt = &prompts(&vocab)[1];
    let options = GenerateOptions::default();
    let greedy = context.generate(prompt, Some(&rules), &options, &mut ()).unwrap();
    let chain = LlamaSampler::chain_simple([LlamaSampler::greedy()]);
    let chained = context.generate_with_chain(prompt, &rules, chain, &options, &mut ()).unwrap();
    assert_eq!(chained.tokens, greedy.tokens);
    assert_eq!(chained.stats.sampled_tokens, greedy.stats.sampled_tokens);

    // What was chosen without penalties is penalised until it can no longer win.
    let mut penalties = LlamaSampler::penalties(vocab.len() as i32, 64, 1.0, 0.0, 1e6);
    for token in &greedy.tokens {
        penalties.accept(llama_cpp_2::token::LlamaToken(token.as_i32()));
    }
    let chain = LlamaSampler::chain_simple([penalties, LlamaSampler::greedy()]);
    let other = context.generate_with_chain(prompt, &rules, chain, &options, &mut ()).unwrap();
    assert!(VALUES.contains(&other.text.as_str()));
    assert_ne!(other.tokens[0], greedy.tokens[0]);

    let chain = LlamaSampler::chain_simple([LlamaSampler::temp(1.0)]);
    let error = context.generate_with_chain(prompt, &rules, chain, &options, &mut ()).unwrap_err();
    assert!(matches!(error, RuntimeError::NothingSelected), "{error}");
    assert_eq!(context.generate(prompt, Some(&rules), &options, &mut ()).unwrap().tokens, greedy.tokens);
}

//! Generations whose rows the device gathers, beside generations that get whole rows.

use crate::common::{precise_model, trie};
use llama_sampler::{Context, ContextOptions, Draft, GenerateOptions, Generated, Model, ModelOptions};
use std::sync::Arc;
use trie_core::{After, AnyConstraint, DrawSettings, Mode, SamplerOptions, SpanRules};
use trie_rules::{ByRule, Regex};
use trie_schema::{JsonSchema, SchemaOptions};
use trie_text::Vocab;

fn model() -> Model {
    Model::load(precise_model(), ModelOptions::default()).unwrap()
}

fn context(model: &Model, device_sampling: bool) -> Context {
    let options = ContextOptions::default().with_n_ctx(512).with_n_threads(1).with_precise(true);
    model.context(options.with_device_sampling(device_sampling)).unwrap()
}

fn rules(vocab: &Arc<Vocab>, constraint: impl Into<AnyConstraint>, after: After) -> Arc<SpanRules> {
    let end = vocab.end_of_generation();
    let rules = SpanRules::for_constraint(constraint, vocab.len()).unwrap();
    let rules = rules.with_end_tokens(end).unwrap().with_end_of_generation(end).unwrap();
    Arc::new(rules.with_after(after).unwrap())
}

/// Sets, languages and schemas, in which few tokens are allowed, many, and all.
fn constraints(vocab: &Arc<Vocab>) -> Vec<Option<Arc<SpanRules>>> {
    let texts = ["apples, plums", "apples, pears", "pears", "plums, plums", "plums, apples and pears"];
    let tokens: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| vocab.tokenize(text, false, false).unwrap().iter().map(|id| id.get()).collect())
        .collect();
    let leaves: Vec<(&str, &[u32])> = texts.into_iter().zip(tokens.iter().map(Vec::as_slice)).collect();
    let rule = |rule: Regex| AnyConstraint::new(ByRule::new(rule, vocab.spelling()).unwrap());
    let regex = |pattern: &str| rule(Regex::new(pattern).unwrap());
    let schema = serde_json::json!({"type": "object", "required": ["name", "age"], "additionalProperties": false,
        "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer", "maximum": 120}}});
    let schema = JsonSchema::of(schema, SchemaOptions::default()).unwrap();
    vec![
        None,
        Some(rules(vocab, trie(&leaves), After::Stop)),
        Some(rules(vocab, trie(&leaves), After::Free)),
        Some(rules(vocab, regex("[a-z ]{5,40}\\."), After::Stop)),
        Some(rules(vocab, regex("(yes|no|maybe)( and (yes|no)){0,3}"), After::Free)),
        Some(rules(vocab, AnyConstraint::new(ByRule::new(schema, vocab.spelling()).unwrap()), After::Stop)),
    ]
}

fn settings() -> Vec<GenerateOptions> {
    let options = GenerateOptions::default().with_max_tokens(40);
    let draw = DrawSettings { temperature: 1.5, top_p: 0.95, repeat_penalty: 1.1, ..Default::default() };
    let sampled = |seed| SamplerOptions { mode: Mode::Sampled, draw, seed: Some(seed) };
    vec![
        options.clone(),
        options.clone().with_skip_ahead(false),
        options.clone().with_sampling(sampled(1)),
        options.clone().with_sampling(sampled(2)).with_free(sampled(3)),
        options.clone().with_logprobs(2),
        options.with_sampling(sampled(4)),
    ]
}

fn is_same(one: &Generated, other: &Generated) {
    assert_eq!((&one.tokens, &one.text, one.finish), (&other.tokens, &other.text, other.finish));
    assert_eq!(one.logprobs, other.logprobs);
    assert_eq!(one.stats.starved, other.stats.starved);
}

#[test]
fn gathered_rows_change_no_token() {
    let model = model();
    let vocab = Arc::clone(model.vocab());
    let (mut gathered, mut wholes, mut read_wholly) = (0, 0, 0);
    for drafted in [false, true] {
        let draft = || drafted.then(|| Draft::ngram().with_token_cost(0.4));
        for (number, rules) in constraints(&vocab).iter().enumerate() {
            let (mut plain, mut gathering) = (context(&model, false), context(&model, true));
            plain.set_draft(draft());
            gathering.set_draft(draft());
            for (at, options) in settings().iter().enumerate() {
                let prompt = ["apples, pears, plums, apples, plums,", "Once upon a time"][at % 2];
                let prompt = vocab.tokenize(prompt, true, true).unwrap();
                let generate = |context: &mut Context| context.generate(&prompt, rules.as_ref(), options, &mut ());
                // A row that is computed in another batch has other last digits.
                plain.clear();
                gathering.clear();
                let (plain, one) = (generate(&mut plain).unwrap(), generate(&mut gathering).unwrap());
                is_same(&one, &plain);
                assert_eq!(plain.stats.gathered_rows, 0);
                assert!(one.stats.gathered_rows <= one.stats.forward_passes);
                assert!(rules.is_some() && options.logprobs.is_none() || one.stats.gathered_rows == 0, "{number} {at}");
                gathered += one.stats.gathered_rows;
                wholes += one.stats.forward_passes - one.stats.gathered_rows;
            }
            // A call that reads whole rows, after a row that was gathered for the same tokens. Both contexts compute it
            // in a batch of the last token alone.
            let tokens = vocab.tokenize("Once upon a time", true, true).unwrap();
            let one_token = GenerateOptions::default().with_max_tokens(1);
            let after_prompt = |plain: &mut Context, gathering: &mut Context| {
                plain.clear();
                gathering.clear();
                plain.generate(&tokens, rules.as_ref(), &one_token, &mut ()).unwrap();
                plain.keep(tokens.len() - 1);
                gathering.generate(&tokens, rules.as_ref(), &one_token, &mut ()).unwrap().stats.gathered_rows
            };
            // The graph takes the sampler back after some passes, if few tokens are allowed.
            let gathers =
                |plain: &mut Context, gathering: &mut Context| (0..64).any(|_| after_prompt(plain, gathering) > 0);
            if rules.is_none() || !gathers(&mut plain, &mut gathering) {
                continue;
            }
            for context in [&mut plain, &mut gathering] {
                context.prefill(&tokens, &mut || false).unwrap();
            }
            assert_eq!(plain.logits().unwrap(), gathering.logits().unwrap());
            assert!(gathers(&mut plain, &mut gathering));
            let options = one_token.clone().with_logprobs(3);
            let free = |context: &mut Context| context.generate(&tokens, None, &options, &mut ()).unwrap();
            is_same(&free(&mut gathering), &free(&mut plain));
            read_wholly += 1;
        }
    }
    assert!(gathered > 60 && wholes > 100 && read_wholly > 2, "{gathered} {wholes} {read_wholly}");
}

//! What came of generations and choices as JSON, under the names that Python has for it.

use super::receipt::Receipt;
use llama_sampler::{Generated, TokenLogprob};
use serde_json::{Map, Value, json};
use trie_core::{Choice, Leaf, LeafId, TokenId};
use trie_text::ValueSet;

/// `{"text": ..., "tokens": [...], "finish": "span", "leaf": {...}, "value": ..., "values": {...}, "stats": {...}}`;
/// `seconds` for all of it, `warnings` of its constraint, and its receipt, where one was asked for.
#[must_use]
pub fn generated_json(generated: &Generated, seconds: f64, warnings: &[String], receipt: Option<&Receipt>) -> String {
    let Generated {
        tokens,
        text,
        leaf,
        leaves,
        fields,
        value,
        partial_token,
        canonical,
        completed,
        logprobs,
        finish,
        stats,
        ..
    } = generated;
    let values: Map<String, Value> =
        fields.iter().map(|field| (field.name.clone(), field.value.as_str().into())).collect();
    let completed_fields: Vec<&str> = generated.completed_fields().collect();
    let scored = fields.iter().filter_map(|field| Some((field.name.clone(), numbers(field.probabilities.as_ref()?))));
    json!({
        "text": text,
        "tokens": ids(tokens),
        "finish": finish.name(),
        "leaf": leaf.as_ref().map(self::leaf),
        "leaves": leaves.iter().map(self::leaf).collect::<Vec<_>>(),
        "value": value,
        "values": values,
        "probabilities": scored.collect::<Map<_, _>>(),
        "partial_token": partial_token,
        "canonical": canonical,
        "completed": completed,
        "completed_fields": completed_fields,
        "logprobs": self::logprobs(logprobs),
        "receipt": receipt,
        "warnings": warnings,
        "stats": {
            "forward_passes": stats.forward_passes,
            "tokens_decoded": stats.tokens_decoded,
            "forced_tokens": stats.forced_tokens,
            "sampled_tokens": stats.sampled_tokens,
            "forward_passes_saved": stats.forward_passes_saved,
            "starved": stats.starved,
            "thinking_tokens": stats.thinking_tokens,
            "prompt_tokens": stats.prompt_tokens,
            "prompt_tokens_reused": stats.prompt_tokens_reused,
            "healed_bytes": stats.healed_bytes,
            "seconds": seconds,
            "prompt_seconds": stats.prompt_seconds,
            "decode_seconds": stats.decode_seconds,
            "sample_seconds": stats.sample_seconds,
            "n_threads": stats.n_threads,
            "seed": stats.seed,
        },
    })
    .to_string()
}

/// `{"name": ..., "index": 0, "names": [...], "probabilities": [...], "logprobs": [...], "ranking": [...], ...}`, by
/// value. A value that was not scored has `null`; so has the logarithm of a probability that is 0.
#[must_use]
pub fn choice_json(choice: &Choice, set: &ValueSet, warnings: &[String]) -> String {
    let best = choice.ranking.first().copied().unwrap_or(LeafId::new(0));
    let by_value = |known: &[f64]| numbers(&set.by_value(known));
    let mut names = vec![Value::Null; set.trie().len()];
    for leaf in (0..set.trie().len() as u32).map(LeafId::new) {
        names[set.index_of(leaf)] = set.trie().name(leaf).map_or(Value::Null, |name| name.into_owned().into());
    }
    let stats = &choice.stats;
    json!({
        "name": set.trie().name(best),
        "index": set.index_of(best),
        "names": names,
        "probabilities": by_value(&choice.probabilities()),
        "logprobs": by_value(&choice.logprobs),
        "logprobs_high": by_value(choice.logprobs_high.as_ref().unwrap_or(&choice.logprobs)),
        "ranking": choice.ranking.iter().map(|&leaf| set.index_of(leaf)).collect::<Vec<_>>(),
        "certain": choice.is_certain,
        "mass": choice.mass_low,
        "mass_bounds": [choice.mass_low, choice.mass_high],
        "warnings": warnings,
        "stats": {
            "forward_passes": stats.forward_passes,
            "tokens_decoded": stats.tokens_decoded,
            "rows": stats.rows,
            "healed_bytes": stats.healed_bytes,
            "seconds": stats.seconds,
            "n_threads": stats.n_threads,
        },
    })
    .to_string()
}

fn leaf(leaf: &Leaf) -> Value {
    json!({"index": leaf.index.index(), "name": leaf.name, "tokens": ids(&leaf.tokens)})
}

/// `[{"token": 5, "logprob": -0.1, "top": [[5, -0.1], [7, -2.4]]}, …]`; the logarithm of 0 is `null`.
pub(crate) fn logprobs(known: &[TokenLogprob]) -> Value {
    let number = |logprob: f32| Value::from(f64::from(logprob));
    let of = |one: &TokenLogprob| {
        let top: Vec<Value> = one.top.iter().map(|&(token, of)| json!([token.get(), number(of)])).collect();
        json!({"token": one.token.get(), "logprob": number(one.logprob), "top": top})
    };
    known.iter().map(of).collect()
}

fn ids(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.get()).collect()
}

/// What is no number in JSON becomes null.
fn numbers(numbers: &[f64]) -> Value {
    numbers.iter().map(|&number| Value::from(number)).collect()
}

//! Results of generations and choices as JSON, under the names of the Python API.

use super::choose::ChoiceResult;
use super::generate::GenerateResult;
use llama_sampler::{GenerateStats, Generated, TokenLogprob};
use serde::Serialize;
use serde_json::{Map, Value, json};
use trie_core::{Leaf, LeafId, TokenId};

/// The fields of a generation that are data everywhere; values, leaves and receipts stand beside them.
#[derive(Debug, Serialize)]
pub struct GenerationFields<'g> {
    text: &'g str,
    tokens: &'g [TokenId],
    canonical: bool,
    completed: bool,
    completed_fields: Vec<&'g str>,
    logprobs: &'g [TokenLogprob],
    finish: &'static str,
    stats: GenerateStats,
}

impl<'g> GenerationFields<'g> {
    /// Creates the fields of a generation.
    #[must_use]
    pub fn new(generated: &'g Generated) -> Self {
        Self {
            text: &generated.text,
            tokens: &generated.tokens,
            canonical: generated.canonical,
            completed: generated.completed,
            completed_fields: generated.completed_fields().collect(),
            logprobs: &generated.logprobs,
            finish: generated.finish.name(),
            stats: generated.stats,
        }
    }
}

impl GenerateResult {
    /// Returns `{"text": ..., "tokens": [...], "finish": "span", "leaf": {...}, "value": ..., "values": {...},
    /// "stats": {...}, "receipt": ...}`, with `warnings` of its constraint.
    #[must_use]
    pub fn to_json(&self, warnings: &[String]) -> String {
        let Generated { leaf, leaves, fields, value, partial_token, .. } = &self.generated;
        let values: Map<String, Value> =
            fields.iter().map(|field| (field.name.clone(), field.value.as_str().into())).collect();
        let scored =
            fields.iter().filter_map(|field| Some((field.name.clone(), numbers(field.probabilities.as_ref()?))));
        let mut all = json!(GenerationFields::new(&self.generated));
        let beside = json!({
            "leaf": leaf.as_ref().map(self::leaf),
            "leaves": leaves.iter().map(self::leaf).collect::<Vec<_>>(),
            "value": value,
            "values": values,
            "probabilities": scored.collect::<Map<_, _>>(),
            "partial_token": partial_token,
            "receipt": self.receipt,
            "warnings": warnings,
        });
        if let (Some(all), Value::Object(beside)) = (all.as_object_mut(), beside) {
            all.extend(beside);
        }
        all.to_string()
    }
}

impl ChoiceResult {
    /// Returns `{"name": ..., "index": 0, "names": [...], "probabilities": [...], "logprobs": [...], ...}`, by value,
    /// with `warnings` of its constraint. A value that was not scored has `null`; so has the logarithm of a probability
    /// that is 0.
    #[must_use]
    pub fn to_json(&self, warnings: &[String]) -> String {
        let Self { choice, set } = self;
        let best = choice.ranking.first().copied().unwrap_or(LeafId::new(0));
        let by_value = |known: &[f64]| numbers(&set.by_value(known));
        let mut names = vec![Value::Null; set.trie().len()];
        for leaf in (0..set.trie().len() as u32).map(LeafId::new) {
            names[set.index_of(leaf)] = set.trie().name(leaf).map_or(Value::Null, |name| name.into_owned().into());
        }
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
            "stats": choice.stats,
        })
        .to_string()
    }
}

fn leaf(leaf: &Leaf) -> Value {
    json!({"index": leaf.index.index(), "name": leaf.name, "tokens": leaf.tokens})
}

/// Returns an array of numbers, with null for those that JSON cannot write.
fn numbers(numbers: &[f64]) -> Value {
    numbers.iter().map(|&number| Value::from(number)).collect()
}

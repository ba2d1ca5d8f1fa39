//! Results of generations as JSON, under the names of the Python API.

use super::choice::by_name;
use super::generate::GenerateResult;
use llama_sampler::{GenerateStats, Generated, TokenLogprob};
use serde::Serialize;
use serde_json::{Map, Value, json};
use trie_core::{Correction, Leaf, TokenId};

/// Fields of a generation that are plain data in every host; values, leaves and receipts are added beside them.
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
    /// Only of draws that were corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    correction: Option<Correction>,
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
            correction: generated.correction,
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
            fields.iter().filter_map(|field| Some((field.name.clone(), by_name(field.probabilities.clone()?))));
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

fn leaf(leaf: &Leaf) -> Value {
    json!({"index": leaf.index.index(), "name": leaf.name, "tokens": leaf.tokens})
}

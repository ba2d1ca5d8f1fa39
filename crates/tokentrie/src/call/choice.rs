//! Result of a choice, and its JSON form under the names of the Python API.

use crate::constraint::{Host, Spec, SpecError};
use serde_json::{Value, json};
use trie_core::{Choice, LeafId};
use trie_text::ValueSet;

/// A choice, with the values that it was made among.
#[derive(Debug, Clone)]
pub struct ChoiceResult {
    /// Result of the scoring, by leaf of the set of values.
    pub choice: Choice,
    /// Values to choose among, in the order in which they were given.
    pub set: ValueSet,
}

impl ChoiceResult {
    /// Returns `{"name": "7", "value": 7, "index": 0, "names": [...], "probabilities": {"7": 0.9, ...}, ...}`, with
    /// `warnings` of its constraint; the value is as [`Spec::json_value`] reads it. Probabilities are by name, or by
    /// number where the values have no names; `names` and `logprobs` are in the order of the values. Values that were
    /// not scored have `null`; so does the logarithm of a probability of 0.
    ///
    /// # Errors
    /// As [`Spec::json_value`].
    pub fn json(&self, spec: Option<&Spec>, host: &dyn Host, warnings: &[String]) -> Result<Value, SpecError> {
        let Self { choice, set } = self;
        let best = choice.ranking.first().copied().unwrap_or(LeafId::new(0));
        let by_value = |known: &[f64]| numbers(&set.by_value(known));
        let name = set.trie().name(best);
        let value = match (spec, name.as_deref()) {
            (Some(spec), Some(name)) => spec.json_value(name, host)?,
            (None, Some(name)) => name.into(),
            (_, None) => set.index_of(best).into(),
        };
        Ok(json!({
            "name": name,
            "value": value,
            "index": set.index_of(best),
            "names": set.names(),
            "probabilities": by_name(set.by_name(&choice.probabilities())),
            "logprobs": by_value(&choice.logprobs),
            "logprobs_high": by_value(choice.logprobs_high.as_ref().unwrap_or(&choice.logprobs)),
            "ranking": choice.ranking.iter().map(|&leaf| set.index_of(leaf)).collect::<Vec<_>>(),
            "certain": choice.is_certain,
            "mass": choice.mass_low,
            "mass_bounds": [choice.mass_low, choice.mass_high],
            "warnings": warnings,
            "stats": choice.stats,
        }))
    }
}

/// Returns an object of numbers, with null for those that JSON cannot write.
pub(super) fn by_name(known: Vec<(String, f64)>) -> Value {
    Value::Object(known.into_iter().map(|(name, number)| (name, number.into())).collect())
}

/// Returns an array of numbers, with null for those that JSON cannot write.
fn numbers(numbers: &[f64]) -> Value {
    numbers.iter().map(|&number| Value::from(number)).collect()
}

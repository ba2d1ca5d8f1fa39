//! Repetition of a rule.

use crate::constraint::{Piece, Spec, SpecProblem, objects};
use crate::json::value_error;
use crate::json::with::{count, is_usual, maybe_count, no_text, text};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Repetition of a rule, with a separator between two items.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct RepeatSpec {
    /// Rule of each item.
    pub rule: Piece,
    /// Minimum number of items.
    #[serde(default, deserialize_with = "count::deserialize", skip_serializing_if = "is_usual")]
    pub min: usize,
    /// Maximum number of items.
    #[serde(default, deserialize_with = "maybe_count::deserialize", skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
    /// Separator between two items.
    #[serde(default = "no_text", with = "text", skip_serializing_if = "str::is_empty")]
    pub separator: Arc<str>,
}

impl<'de> Deserialize<'de> for RepeatSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = Self::deserialize(from)?;
        match read.max.filter(|max| read.min > *max && objects::are_checked()) {
            Some(max) => {
                let reason = format!("no count is in the range: min is {}, max is {max}", read.min);
                Err(value_error(SpecProblem::Value(reason)))
            }
            None => Ok(read),
        }
    }
}

impl Serialize for RepeatSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl From<RepeatSpec> for Spec {
    fn from(repeat: RepeatSpec) -> Self {
        Self::Repeat(repeat.into())
    }
}

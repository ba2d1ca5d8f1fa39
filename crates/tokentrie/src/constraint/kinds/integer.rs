//! Integers of a range.

use crate::constraint::{Spec, SpecProblem, objects};
use crate::json::with::EXACT;
use crate::json::{type_error, value_error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Integers of a range, both bounds included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct IntegerSpec {
    /// Smallest value, if any.
    #[serde(with = "exact", skip_serializing_if = "Option::is_none")]
    pub min: Option<i128>,
    /// Largest value, if any.
    #[serde(with = "exact", skip_serializing_if = "Option::is_none")]
    pub max: Option<i128>,
}

impl Serialize for IntegerSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for IntegerSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let range = Self::deserialize(from)?;
        match (range.min, range.max) {
            (Some(low), Some(high)) if low > high && objects::are_checked() => {
                let reason = format!("no integer is in the range: min is {low}, max is {high}");
                Err(value_error(SpecProblem::Value(reason)))
            }
            _ => Ok(range),
        }
    }
}

impl From<IntegerSpec> for Spec {
    fn from(range: IntegerSpec) -> Self {
        Self::Integer(range)
    }
}

/// Integers of 128 bits: those that a number of JSON does not hold exactly are strings.
mod exact {
    use super::{Deserialize, Deserializer, EXACT, Serialize, Serializer, Value, type_error};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(number: &Option<i128>, to: S) -> Result<S::Ok, S::Error> {
        let value = number.map(|number| match i64::try_from(number) {
            Ok(small) if number.abs() <= EXACT => Value::from(small),
            _ => number.to_string().into(),
        });
        value.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i128>, D::Error> {
        let value = Value::deserialize(from)?;
        let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        let number = number.or_else(|| value.as_str().and_then(|digits| digits.parse().ok()));
        let integers = "an integer, or the string of one where it has more than 64 bits and at most 128";
        number.map(Some).ok_or_else(|| type_error(integers, &value))
    }
}

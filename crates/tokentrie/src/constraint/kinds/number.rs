//! Numbers with fractions: with or without a range, and with limits on their digits.

use crate::constraint::{SpecProblem, objects};
use crate::json::with::EXACT;
use crate::json::{type_error, value_error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use trie_rules::{NumberBound, NumberOptions, Regular, RegularError};

/// Bounds of numbers, and their digits; `None` is unbounded, with the usual limit: see [`NumberOptions`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NumberSpec {
    /// Lower bound, if any.
    #[serde(with = "bound", skip_serializing_if = "Option::is_none")]
    pub min: Option<NumberBound>,
    /// Upper bound, if any.
    #[serde(with = "bound", skip_serializing_if = "Option::is_none")]
    pub max: Option<NumberBound>,
    /// The most digits before the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integer_digits: Option<u32>,
    /// The most digits after the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction_digits: Option<u32>,
    /// The most digits of the exponent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent_digits: Option<u32>,
}

impl NumberSpec {
    /// Returns the numbers between two bounds. A missing bound sets no limit.
    #[must_use]
    pub fn in_range(min: Option<NumberBound>, max: Option<NumberBound>) -> Self {
        Self { min, max, ..Self::default() }
    }

    /// Sets limits on the digits. Default limits compare equal to no limits.
    #[must_use]
    pub fn digits(mut self, integer: Option<u32>, fraction: Option<u32>, exponent: Option<u32>) -> Self {
        let usual = self.usual();
        let unusual = |digits: Option<u32>, usual| digits.filter(|&digits| digits != usual);
        self.integer_digits = unusual(integer, usual.integer_digits);
        self.fraction_digits = unusual(fraction, usual.fraction_digits);
        self.exponent_digits = unusual(exponent, usual.exponent_digits);
        self
    }

    fn has_range(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    fn usual(&self) -> NumberOptions {
        if self.has_range() {
            return NumberOptions::of_range(self.min.as_ref(), self.max.as_ref());
        }
        NumberOptions::default()
    }

    /// Returns the limits on digits.
    pub fn options(&self) -> NumberOptions {
        let usual = self.usual();
        usual
            .integer_digits(self.integer_digits.unwrap_or(usual.integer_digits))
            .fraction_digits(self.fraction_digits.unwrap_or(usual.fraction_digits))
            .exponent_digits(self.exponent_digits.unwrap_or(usual.exponent_digits))
    }

    /// Returns the rule of these numbers.
    ///
    /// # Errors
    /// No number is in the range, or none with so few digits; a range with exponents; no digits before the point.
    pub fn rule(&self) -> Result<Regular, RegularError> {
        let (min, max, options) = (self.min.as_ref(), self.max.as_ref(), self.options());
        if !self.has_range() {
            return Regular::number_with(options);
        }
        Regular::number_between(min, max, None, options).map_err(|error| match error {
            RegularError::Automaton(trie_rules::AutomatonError::Nothing) => {
                let shown = |bound: Option<&NumberBound>| bound.map(ToString::to_string);
                RegularError::NoNumbers { low: shown(min), high: shown(max), fraction_digits: options.fraction_digits }
            }
            other => other,
        })
    }
}

impl<'de> Deserialize<'de> for NumberSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Self { min, max, integer_digits, fraction_digits, exponent_digits } = Self::deserialize(from)?;
        let number = Self::in_range(min, max).digits(integer_digits, fraction_digits, exponent_digits);
        // Without a range the digits say at once what is wrong; a range must be looked through.
        if number.has_range() {
            objects::check(|| number.rule())?;
        }
        Ok(number)
    }
}

impl Serialize for NumberSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

mod bound {
    use super::{Deserialize, Deserializer, NumberBound, RegularError, Serialize, Serializer, SpecProblem};
    use super::{Value, shortest, type_error, value_error};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(bound: &Option<NumberBound>, to: S) -> Result<S::Ok, S::Error> {
        bound.as_ref().map(shortest).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NumberBound>, D::Error> {
        let given = match Value::deserialize(from)? {
            Value::Number(number) => number.to_string(),
            Value::String(digits) => digits,
            other => return Err(type_error("a number, or the string of one with more digits", &other)),
        };
        let wrong = |error: RegularError| value_error(SpecProblem::Value(error.to_string()));
        NumberBound::read(&given, false).map(Some).map_err(wrong)
    }
}

/// A number of JSON where every reader finds the same one in it, else a string.
fn shortest(bound: &NumberBound) -> Value {
    let text = bound.to_string();
    if let Ok(whole) = text.parse::<i64>() {
        return if i128::from(whole).abs() <= EXACT { whole.into() } else { text.into() };
    }
    let near: Option<Value> = text.parse::<f64>().ok().filter(|near| near.is_finite()).map(Into::into);
    let same = |near: &Value| NumberBound::read(&near.to_string(), false).is_ok_and(|near| near == *bound);
    near.filter(same).unwrap_or_else(|| text.into())
}

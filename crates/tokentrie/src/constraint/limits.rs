//! Limits on the work of compiling a rule, as data.

use super::error::{SpecError, SpecProblem};
use crate::json::place::Place;
use crate::json::type_error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::time::Duration;
use trie_core::work::{Limits, Work};

/// The largest number of bytes and of steps.
const MOST: u64 = 1 << 62;

/// Limits on the work of compiling a rule; `None` is the default limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSpec {
    /// Limit on the bytes of the compiled rule, and on the memory that compiling takes.
    #[serde(deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Maximum number of steps.
    #[serde(deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Longest processor time, in seconds.
    #[serde(with = "seconds", skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Duration>,
}

fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    let amount = value.as_u64().filter(|amount| *amount <= MOST);
    amount.map(Some).ok_or_else(|| type_error("an integer from 0 to 2^62", &value))
}

mod seconds {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, Value, duration, type_error};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs_f64()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let value = Value::deserialize(from)?;
        let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0);
        seconds
            .map(|seconds| Some(duration(seconds)))
            .ok_or_else(|| type_error("a number of seconds, from 0 up", &value))
    }
}

impl From<Limits> for LimitsSpec {
    /// The usual limits count as none given.
    fn from(limits: Limits) -> Self {
        let usual = Limits::default();
        Self {
            bytes: (limits.bytes != usual.bytes).then_some(limits.bytes as u64),
            steps: (limits.steps != usual.steps).then_some(limits.steps),
            seconds: (limits.seconds.to_bits() != usual.seconds.to_bits()).then(|| duration(limits.seconds)),
        }
    }
}

/// A time; one that no clock counts is the longest.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

impl LimitsSpec {
    /// Reads them; what says the usual is left out.
    pub(super) fn unusual<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::deserialize(from)?.limits().into())
    }

    /// Returns all three limits.
    pub fn limits(self) -> Limits {
        let usual = Limits::default();
        usual
            .bytes(self.bytes.map_or(usual.bytes, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
            .steps(self.steps.unwrap_or(usual.steps))
            .seconds(self.seconds.map_or(usual.seconds, |seconds| seconds.as_secs_f64()))
    }

    /// Makes a rule within them.
    pub(super) fn run_limited<T, E: Into<SpecProblem>>(
        self,
        place: &Place<'_>,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, SpecError> {
        Work::new(self.limits()).run(make).map_err(|error| SpecError::new(place, error))
    }
}

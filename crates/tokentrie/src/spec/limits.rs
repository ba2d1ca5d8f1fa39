//! What making a rule may cost, as data.

use super::error::{SpecError, SpecProblem};
use super::fields::{Fields, wrong_type};
use super::place::Place;
use serde_json::{Map, Value};
use std::time::Duration;
use trie_core::work::{Limits, Work};

/// The largest number of bytes and of steps.
const MOST: u64 = 1 << 62;

/// What making a rule may cost; `None` is the usual limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LimitsSpec {
    /// Bytes of what is made, and of the memory in which it is made.
    pub bytes: Option<u64>,
    /// Turns of loops.
    pub steps: Option<u64>,
    /// Wall-clock time.
    pub seconds: Option<Duration>,
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
    pub(super) fn read(place: &Place<'_>, value: &Value) -> Result<Self, SpecError> {
        let fields = Fields::of(place, value, &["bytes", "steps", "seconds"])?;
        let count = |name| {
            fields.read(name, |place, value| {
                let count = value.as_u64().filter(|count| *count <= MOST);
                count.ok_or_else(|| wrong_type(place, "an integer from 0 to 2^62", value))
            })
        };
        let seconds = |place: &Place<'_>, value: &Value| {
            let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0);
            seconds.map(duration).ok_or_else(|| wrong_type(place, "a number of seconds, from 0 up", value))
        };
        let given = Self { bytes: count("bytes")?, steps: count("steps")?, seconds: fields.read("seconds", seconds)? };
        // What says the usual is left out.
        Ok(given.limits().into())
    }

    /// `None` where all are the usual ones.
    pub(super) fn write(self) -> Option<Value> {
        let fields = [
            ("bytes", self.bytes.map(Value::from)),
            ("steps", self.steps.map(Value::from)),
            ("seconds", self.seconds.map(|seconds| seconds.as_secs_f64().into())),
        ];
        let fields: Map<String, Value> =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        (!fields.is_empty()).then_some(Value::Object(fields))
    }

    /// All three.
    pub fn limits(self) -> Limits {
        let usual = Limits::default();
        usual
            .bytes(self.bytes.map_or(usual.bytes, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
            .steps(self.steps.unwrap_or(usual.steps))
            .seconds(self.seconds.map_or(usual.seconds, |seconds| seconds.as_secs_f64()))
    }

    /// Makes a rule within them.
    pub(super) fn within<T, E: Into<SpecProblem>>(
        self,
        place: &Place<'_>,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, SpecError> {
        Work::new(self.limits()).run(make).map_err(|error| SpecError::new(place, error))
    }
}

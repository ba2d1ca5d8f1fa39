//! A rule several times.

use crate::spec::error::{SpecError, SpecProblem};
use crate::spec::fields::{Fields, written};
use crate::spec::place::Place;
use crate::spec::read::Reader;
use crate::spec::{Piece, Spec};
use serde_json::Value;
use std::sync::Arc;

/// A text of a rule several times, with a separator between two of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepeatSpec {
    /// What is repeated.
    pub rule: Piece,
    /// The fewest times.
    pub min: usize,
    /// The most times.
    pub max: Option<usize>,
    /// Stands between two of them.
    pub separator: Arc<str>,
}

impl RepeatSpec {
    pub(crate) fn read(of: &Fields<'_>, reader: Reader<'_>) -> Result<Self, SpecError> {
        let rule = of.need("rule", |place, value| Piece::read(place, value, reader))?;
        let count = |name| Ok(of.count(name)?.map(|count| usize::try_from(count).unwrap_or(usize::MAX)));
        let (min, max) = (count("min")?.unwrap_or_default(), count("max")?);
        if let Some(max) = max.filter(|max| min > *max && reader.checks()) {
            let reason = format!("no count is in the range: min is {min}, max is {max}");
            return Err(SpecError::new(of.place, SpecProblem::Value(reason)));
        }
        Ok(Self { rule, min, max, separator: of.text("separator")?.unwrap_or_default() })
    }

    pub(crate) fn write(&self, place: &Place<'_>, deeper: usize) -> Result<Value, SpecError> {
        Ok(written([
            ("rule", Some(self.rule.write(&place.field("rule"), deeper)?)),
            ("min", (self.min > 0).then(|| self.min.into())),
            ("max", self.max.map(Into::into)),
            ("separator", (!self.separator.is_empty()).then(|| Value::from(&*self.separator))),
        ]))
    }
}

impl From<RepeatSpec> for Spec {
    fn from(repeat: RepeatSpec) -> Self {
        Self::Repeat(repeat.into())
    }
}

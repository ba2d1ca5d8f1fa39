//! Days and times, from one to another.

use crate::spec::error::{SpecError, SpecProblem};
use crate::spec::fields::{Fields, text, written, wrong_type};
use crate::spec::read::Reader;
use serde_json::Value;
use std::sync::Arc;
use trie_rules::{Moment, MomentFormat, Regular, RegularError, Timespec};

/// Days, times or both, from one to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MomentSpec {
    kind: Moment,
    format: Option<MomentFormat>,
    min: Option<Arc<str>>,
    max: Option<Arc<str>>,
}

impl MomentSpec {
    /// All that there are.
    #[must_use]
    pub const fn all(kind: Moment) -> Self {
        Self { kind, format: None, min: None, max: None }
    }

    /// From one to another, both included. Equal bounds compare equal, however exactly they are said.
    ///
    /// # Errors
    /// A bound that is no such moment.
    pub fn between(kind: Moment, min: Option<&str>, max: Option<&str>) -> Result<Self, RegularError> {
        let bound = |given: Option<&str>| given.map(|given| kind.bound(given).map(Arc::from)).transpose();
        Ok(Self { kind, format: None, min: bound(min)?, max: bound(max)? })
    }

    /// Written in a format of `strftime`: see [`MomentFormat`]. It says how exactly, and whether a zone is written.
    ///
    /// # Errors
    /// A format of no such moment.
    pub fn with_format(self, format: &str) -> Result<Self, RegularError> {
        Ok(Self { format: Some(MomentFormat::new(self.kind, format)?), ..self })
    }

    /// How it is written, where that is not as in ISO 8601.
    pub fn format(&self) -> Option<&str> {
        self.format.as_ref().map(MomentFormat::text)
    }

    /// What is written.
    pub fn moment(&self) -> Moment {
        self.kind
    }

    /// The first, as it is written.
    pub fn min(&self) -> Option<&str> {
        self.min.as_deref()
    }

    /// The last, as it is written.
    pub fn max(&self) -> Option<&str> {
        self.max.as_deref()
    }

    /// The rule.
    ///
    /// # Errors
    /// None is between the bounds.
    pub fn rule(&self) -> Result<Regular, RegularError> {
        match (self.kind, &self.format, self.min(), self.max()) {
            (Moment::Date, None, None, None) => Ok(Regular::date()),
            (kind, None, min, max) => Regular::moment(kind, min, max),
            (kind, Some(format), min, max) => Regular::formatted(kind, format, min, max),
        }
    }

    /// The name of the kind in JSON.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Moment::Date => "date",
            Moment::Time { .. } => "time",
            Moment::DateTime { .. } => "date_time",
        }
    }

    /// Of an object with bounds and, but for days, how it is written.
    pub(crate) fn read(
        of: &Fields<'_>,
        reader: Reader<'_>,
        made: fn(Timespec, bool) -> Moment,
    ) -> Result<Self, SpecError> {
        let timespec = of.read("timespec", |place, value| {
            let expected = "\"minutes\", \"seconds\", \"milliseconds\" or \"microseconds\"";
            Timespec::named(text(place, value)?).ok_or_else(|| wrong_type(place, expected, value))
        })?;
        let kind = made(timespec.unwrap_or_default(), of.flag("utc", false)?);
        let read = Self::between(kind, of.text("min")?.as_deref(), of.text("max")?.as_deref());
        let mut read = read.map_err(|error| reader.refusal(of.place, error))?;
        if let Some(format) = of.text("format")? {
            let at = of.place.field("format");
            if timespec.is_some() {
                let reason =
                    "a format beside timespec: the format says how exactly a time is written, leave timespec out";
                return Err(SpecError::new(&at, SpecProblem::Value(reason.to_owned())));
            }
            read = read.with_format(&format).map_err(|error| reader.refusal(&at, error))?;
        }
        reader.check(of.place, || read.rule())?;
        Ok(read)
    }

    pub(crate) fn write(&self) -> Value {
        let unusual = self.kind.timespec().filter(|timespec| *timespec != Timespec::default());
        written([
            ("min", self.min().map(Value::from)),
            ("max", self.max().map(Value::from)),
            ("timespec", unusual.map(|timespec| timespec.name().into())),
            ("format", self.format().map(Value::from)),
            ("utc", self.kind.utc().then_some(Value::Bool(true))),
        ])
    }
}

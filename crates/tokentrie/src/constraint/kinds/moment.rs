//! Days and times of a range.

use crate::constraint::{Spec, SpecProblem, objects};
use crate::json::with::is_usual;
use crate::json::{refused_at, type_error, value_error};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;
use trie_rules::{Moment, MomentFormat, Regular, RegularError, Timespec};

/// Days, times or both, between two bounds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MomentSpec {
    kind: Moment,
    format: Option<MomentFormat>,
    min: Option<Arc<str>>,
    max: Option<Arc<str>>,
}

impl MomentSpec {
    /// Returns the range of all moments of a kind.
    #[must_use]
    pub const fn unbounded(kind: Moment) -> Self {
        Self { kind, format: None, min: None, max: None }
    }

    /// Returns the range between two bounds, both included. Bounds of equal value compare equal at any precision.
    ///
    /// # Errors
    /// A bound that is not such a moment.
    pub fn in_range(kind: Moment, min: Option<&str>, max: Option<&str>) -> Result<Self, RegularError> {
        let bound = |given: Option<&str>| given.map(|given| kind.canonical_bound(given).map(Arc::from)).transpose();
        Ok(Self { kind, format: None, min: bound(min)?, max: bound(max)? })
    }

    /// Sets a format of `strftime`: see [`MomentFormat`]. The format decides the precision, and whether a zone is
    /// written.
    ///
    /// # Errors
    /// A format that is not valid for this kind of moment.
    pub fn with_format(self, format: &str) -> Result<Self, RegularError> {
        Ok(Self { format: Some(MomentFormat::new(self.kind, format)?), ..self })
    }

    /// Returns the format, if it differs from ISO 8601.
    pub fn format(&self) -> Option<&str> {
        self.format.as_ref().map(MomentFormat::text)
    }

    /// Returns the parts that are written.
    pub fn moment(&self) -> Moment {
        self.kind
    }

    /// Returns the first moment, as text.
    pub fn min(&self) -> Option<&str> {
        self.min.as_deref()
    }

    /// Returns the last moment, as text.
    pub fn max(&self) -> Option<&str> {
        self.max.as_deref()
    }

    /// Returns the rule of these moments.
    ///
    /// # Errors
    /// No moment is between the bounds.
    pub fn rule(&self) -> Result<Regular, RegularError> {
        match (self.kind, &self.format, self.min(), self.max()) {
            (Moment::Date, None, None, None) => Ok(Regular::date()),
            (kind, None, min, max) => Regular::moment(kind, min, max),
            (kind, Some(format), min, max) => Regular::moment_in_format(kind, format, min, max),
        }
    }
}

/// The fields of a time, as they are written; a day has fewer.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenTime {
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<String>,
    #[serde(deserialize_with = "timespec", skip_serializing_if = "Option::is_none")]
    timespec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(skip_serializing_if = "is_usual")]
    utc: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDate {
    min: Option<String>,
    max: Option<String>,
    format: Option<String>,
}

fn timespec<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(from)?;
    let known = value.as_str().filter(|name| Timespec::from_name(name).is_some()).map(str::to_owned);
    let names = "\"minutes\", \"seconds\", \"milliseconds\" or \"microseconds\"";
    known.map(Some).ok_or_else(|| type_error(names, &value))
}

/// A day in JSON.
pub(in crate::constraint) mod date {
    pub(in crate::constraint) use super::write as serialize;
    use super::{Deserialize, Deserializer, Moment, MomentSpec, WrittenDate, WrittenTime};

    pub(in crate::constraint) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MomentSpec, D::Error> {
        let WrittenDate { min, max, format } = WrittenDate::deserialize(from)?;
        WrittenTime { min, max, format, ..WrittenTime::default() }.read(|_, _| Moment::Date)
    }
}

/// A time in JSON.
pub(in crate::constraint) mod time {
    pub(in crate::constraint) use super::write as serialize;
    use super::{Deserialize, Deserializer, Moment, MomentSpec, WrittenTime};

    pub(in crate::constraint) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MomentSpec, D::Error> {
        WrittenTime::deserialize(from)?.read(|timespec, utc| Moment::Time { timespec, utc })
    }
}

/// A day and a time in JSON.
pub(in crate::constraint) mod date_time {
    pub(in crate::constraint) use super::write as serialize;
    use super::{Deserialize, Deserializer, Moment, MomentSpec, WrittenTime};

    pub(in crate::constraint) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MomentSpec, D::Error> {
        WrittenTime::deserialize(from)?.read(|timespec, utc| Moment::DateTime { timespec, utc })
    }
}

pub(in crate::constraint) fn write<S: Serializer>(moment: &MomentSpec, to: S) -> Result<S::Ok, S::Error> {
    let unusual = moment.kind.timespec().filter(|timespec| *timespec != Timespec::default());
    let written = WrittenTime {
        min: moment.min().map(str::to_owned),
        max: moment.max().map(str::to_owned),
        timespec: unusual.map(|timespec| timespec.name().to_owned()),
        format: moment.format().map(str::to_owned),
        utc: moment.kind.utc(),
    };
    written.serialize(to)
}

impl WrittenTime {
    fn read<E: Error>(self, made: fn(Timespec, bool) -> Moment) -> Result<MomentSpec, E> {
        let timespec = self.timespec.as_deref().and_then(Timespec::from_name);
        let kind = made(timespec.unwrap_or_default(), self.utc);
        let between = MomentSpec::in_range(kind, self.min.as_deref(), self.max.as_deref());
        let mut read = between.map_err(|error| value_error(objects::refusal(error)))?;
        if let Some(format) = &self.format {
            if timespec.is_some() {
                let reason =
                    "a format beside timespec: the format says how exactly a time is written, leave timespec out";
                return Err(refused_at("format", SpecProblem::Value(reason.to_owned())));
            }
            read = read.with_format(format).map_err(|error| refused_at("format", objects::refusal(error)))?;
        }
        objects::check(|| read.rule())?;
        Ok(read)
    }
}

impl From<MomentSpec> for Spec {
    fn from(moment: MomentSpec) -> Self {
        match moment.kind {
            Moment::Date => Self::Date(moment),
            Moment::Time { .. } => Self::Time(moment),
            Moment::DateTime { .. } => Self::DateTime(moment),
        }
    }
}

//! Values that texts stand for.

use super::format::MomentFormat;
use super::moment::{MIDNIGHT, Moment};
use super::repeat::Repeat;
use super::{Regular, RegularError, date, string};
use std::sync::Arc;

/// Value of a text of a [`Regular`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Text of a regular expression or a concatenation.
    Text(String),
    /// Integer of up to 128 bits.
    Integer(i128),
    /// Digits of an integer without bounds that 128 bits do not hold.
    LongInteger(String),
    /// JSON number, rounded to the nearest `f64`. Infinite where more digits of the exponent were allowed than a `f64`
    /// has.
    Number(f64),
    /// Day of a calendar.
    Date {
        /// From 1 to 9999.
        year: u16,
        /// Month, counted from 1.
        month: u8,
        /// Day, counted from 1.
        day: u8,
    },
    /// Time of a day.
    Time(Clock),
    /// A day and a time, with or without a zone.
    DateTime {
        /// From 1 to 9999.
        year: u16,
        /// Month, counted from 1.
        month: u8,
        /// Day, counted from 1.
        day: u8,
        /// The time of the day.
        time: Clock,
    },
    /// Content of a JSON string, without quotes and escapes.
    String(String),
    /// Entry of a list.
    Entry {
        /// First index among the given texts.
        index: usize,
        /// The text. Anything that is not UTF-8 in it is replaced.
        text: String,
    },
    /// Values of the items of a repetition.
    List(Vec<Value>),
}

/// A time of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Clock {
    /// From 0 to 23.
    pub hour: u8,
    /// From 0 to 59.
    pub minute: u8,
    /// From 0 to 59.
    pub second: u8,
    /// From 0 to 999999.
    pub microsecond: u32,
    /// True for a time of UTC; otherwise the time has no zone.
    pub utc: bool,
}

/// Limit on the nesting of choices and repetitions: values are read recursively.
const MOST_DEPTH: usize = 256;

/// Reader for the values of a rule.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueReader {
    Text,
    Integer,
    Number,
    Moment(Moment),
    Formatted(Moment, MomentFormat),
    String {
        quotes: bool,
    },
    /// The list first, then whichever rule takes the text.
    OneOf {
        rules: Arc<[Regular]>,
        /// Nesting depth of choices, this one counted.
        depth: usize,
    },
    /// Reads item by item.
    Repeat {
        repeat: Arc<Repeat>,
        /// Nesting depth, as of choices.
        depth: usize,
    },
}

impl ValueReader {
    /// # Errors
    /// Too many choices in each other.
    pub(super) fn one_of(rules: Vec<Regular>) -> Result<Self, RegularError> {
        let depth = Self::depth_around(rules.iter())?;
        Ok(Self::OneOf { rules: rules.into(), depth })
    }

    /// # Errors
    /// Too many of them in each other.
    pub(super) fn repeat(repeat: Repeat) -> Result<Self, RegularError> {
        let depth = Self::depth_around([repeat.rule()].into_iter())?;
        Ok(Self::Repeat { repeat: Arc::new(repeat), depth })
    }

    fn depth_around<'r>(inner: impl Iterator<Item = &'r Regular>) -> Result<usize, RegularError> {
        let inner = inner.map(|rule| match rule.reads {
            Self::OneOf { depth, .. } | Self::Repeat { depth, .. } => depth,
            _ => 0,
        });
        let depth = 1 + inner.max().unwrap_or(0);
        if depth > MOST_DEPTH { Err(RegularError::TooDeep { most: MOST_DEPTH }) } else { Ok(depth) }
    }

    /// A text that the rule takes.
    pub(super) fn value(&self, text: &[u8]) -> Option<Value> {
        let lossy = || String::from_utf8_lossy(text).into_owned();
        Some(match self {
            Self::Text => Value::Text(lossy()),
            Self::Integer => {
                let digits = std::str::from_utf8(text).ok()?;
                digits.parse().map_or_else(|_| Value::LongInteger(digits.to_owned()), Value::Integer)
            }
            Self::Number => Value::Number(std::str::from_utf8(text).ok()?.parse().ok()?),
            Self::Moment(kind) => moment(*kind, std::str::from_utf8(text).ok()?)?,
            Self::Formatted(kind, format) => format.value(*kind, std::str::from_utf8(text).ok()?)?,
            Self::String { quotes } => {
                let inside = if *quotes { text.strip_prefix(b"\"")?.strip_suffix(b"\"")? } else { text };
                Value::String(string::decode_string(std::str::from_utf8(inside).ok()?)?)
            }
            Self::Repeat { repeat, .. } => {
                let items = repeat.items(text)?;
                Value::List(items.into_iter().map(|item| repeat.rule().value(&text[item])).collect::<Option<_>>()?)
            }
            Self::OneOf { rules, .. } => return rules.iter().find_map(|rule| rule.value(text)),
        })
    }
}

impl Moment {
    /// Returns the value of a bound at any precision; `None` if it is invalid.
    pub fn value(self, bound: &str) -> Option<Value> {
        moment(self.exactly(bound)?, bound)
    }
}

/// Parses a text as a moment.
fn moment(kind: Moment, text: &str) -> Option<Value> {
    fn number<T: std::str::FromStr>(text: &str, from: usize, to: usize) -> Option<T> {
        text.get(from..to)?.parse().ok()
    }
    let day = || -> Option<(u16, u8, u8)> {
        let (year, month, day) = (number(text, 0, 4)?, number(text, 5, 7)?, number(text, 8, 10)?);
        debug_assert!(u32::from(day) <= date::days(u32::from(year), u32::from(month)));
        Some((year, month, day))
    };
    let clock = |utc| {
        let time = text.get(kind.before_time()..)?.trim_end_matches('Z');
        let whole = format!("{time}{}", MIDNIGHT.get(time.len()..)?);
        let (hour, minute, second) = (number(&whole, 0, 2)?, number(&whole, 3, 5)?, number(&whole, 6, 8)?);
        Some(Clock { hour, minute, second, microsecond: number(&whole, 9, 15)?, utc })
    };
    match kind {
        Moment::Date => day().map(|(year, month, day)| Value::Date { year, month, day }),
        Moment::Time { utc, .. } => clock(utc).map(Value::Time),
        Moment::DateTime { utc, .. } => {
            let ((year, month, day), time) = (day()?, clock(utc)?);
            Some(Value::DateTime { year, month, day, time })
        }
    }
}

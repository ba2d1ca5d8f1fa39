//! Days, times of a day, or both: texts of equal length, whose order is that of calendar and clock.

use super::RegularError;
use super::date::{self, Day, Read};
use super::value::{Clock, Value};
use crate::automaton::table::{Classes, Table};
use crate::automaton::{Automaton, AutomatonError, AutomatonLimits};
use std::sync::OnceLock;

/// Precision of a time: the words are those of Python's `isoformat(timespec=...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Timespec {
    /// Minutes, as in `23:59`.
    Minutes,
    /// Seconds, as in `23:59:59`.
    #[default]
    Seconds,
    /// Milliseconds, as in `23:59:59.999`.
    Milliseconds,
    /// Microseconds, as in `23:59:59.999999`.
    Microseconds,
}

impl Timespec {
    /// All precisions, from the coarsest to the finest.
    pub const ALL: [Self; 4] = [Self::Minutes, Self::Seconds, Self::Milliseconds, Self::Microseconds];

    /// Returns its name: `minutes`, `seconds`, `milliseconds` or `microseconds`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minutes => "minutes",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Microseconds => "microseconds",
        }
    }

    /// Returns the precision with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Bytes of a time.
    const fn length(self) -> usize {
        match self {
            Self::Minutes => 5,
            Self::Seconds => 8,
            Self::Milliseconds => 12,
            Self::Microseconds => 15,
        }
    }
}

/// Parts of a moment that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// A date, as in `2024-02-29`.
    Date,
    /// `23:59:59`, and a `Z` where it is a time of UTC.
    Time {
        /// Precision of the time.
        timespec: Timespec,
        /// True for times of UTC.
        utc: bool,
    },
    /// `2024-02-29T23:59:59`, and a `Z` where it is one of UTC.
    DateTime {
        /// Precision of the time.
        timespec: Timespec,
        /// True for times of UTC.
        utc: bool,
    },
}

/// Moments from one to another, both included.
pub(super) struct Range {
    kind: Moment,
    low: Option<String>,
    high: Option<String>,
    /// Days and times, to the last microsecond; of a day the last of them, of a time some day.
    from: (Day, [u32; 4]),
    to: (Day, [u32; 4]),
}

/// The first and the last time of a day.
const DAY: [[u32; 4]; 2] = [[0; 4], [23, 59, 59, 999_999]];

impl Range {
    /// # Errors
    /// A bound that is none.
    pub(super) fn new(kind: Moment, low: Option<&str>, high: Option<&str>) -> Result<Self, RegularError> {
        let read = |given: Option<&str>, open: (Day, [u32; 4])| -> Result<_, RegularError> {
            let Some(given) = given else { return Ok(open) };
            let clock = |time: Clock| [time.hour.into(), time.minute.into(), time.second.into(), time.microsecond];
            Ok(match kind.value(given).ok_or_else(|| kind.none(given))? {
                Value::Date { year, month, day } => ((year, month, day), open.1),
                Value::DateTime { year, month, day, time } => ((year, month, day), clock(time)),
                Value::Time(time) => (open.0, clock(time)),
                _ => open,
            })
        };
        let [first, mut last] = date::ALL;
        if matches!(kind, Moment::Time { .. }) {
            last = first;
        }
        let (from, to) = (read(low, (first, DAY[0]))?, read(high, (last, DAY[1]))?);
        Ok(Self { kind, low: low.map(str::to_owned), high: high.map(str::to_owned), from, to })
    }

    pub(super) fn none(&self) -> RegularError {
        RegularError::NoMoments { what: self.kind.label(), low: self.low.clone(), high: self.high.clone() }
    }

    /// Years of the first and the last.
    pub(super) fn years(&self) -> (u16, u16) {
        (self.from.0.0, self.to.0.0)
    }

    /// Days from one to another, each with all times from one to another.
    pub(super) fn days_and_times(&self) -> Vec<(Day, Day, [u32; 4], [u32; 4])> {
        let ((first, from), (last, to)) = (self.from, self.to);
        if self.from > self.to {
            return Vec::new();
        }
        if first == last {
            return vec![(first, last, from, to)];
        }
        let mut found = Vec::new();
        // Days that are whole at their bounds belong to those between.
        let (mut begin, mut end) = (first, last);
        if from != DAY[0] {
            found.push((first, first, from, DAY[1]));
            begin = date::day_after(first);
        }
        if to != DAY[1] {
            found.push((last, last, DAY[0], to));
            end = date::day_before(last);
        }
        if begin <= end {
            found.push((begin, end, DAY[0], DAY[1]));
        }
        found
    }
}

/// Parsed bound of a range.
struct MomentBound {
    /// As it is written, without what is finer.
    text: String,
    /// True if a finer part that is not 0 was cut off.
    is_cut: bool,
}

/// A time to the last digit, and what shorter ones leave out.
pub(super) const MIDNIGHT: &str = "00:00:00.000000";

impl Moment {
    /// Returns the precision of the time; `None` for a day.
    pub const fn timespec(self) -> Option<Timespec> {
        match self {
            Self::Date => None,
            Self::Time { timespec, .. } | Self::DateTime { timespec, .. } => Some(timespec),
        }
    }

    /// Returns whether it is a time of UTC.
    pub const fn utc(self) -> bool {
        matches!(self, Self::Time { utc: true, .. } | Self::DateTime { utc: true, .. })
    }

    fn with(self, timespec: Timespec) -> Self {
        match self {
            Self::Date => self,
            Self::Time { utc, .. } => Self::Time { timespec, utc },
            Self::DateTime { utc, .. } => Self::DateTime { timespec, utc },
        }
    }

    /// Returns the offset of the time.
    pub(super) fn before_time(self) -> usize {
        match self {
            Self::Time { .. } => 0,
            Self::Date => date::LENGTH,
            Self::DateTime { .. } => date::LENGTH + 1,
        }
    }

    fn length(self) -> usize {
        self.before_time() + self.timespec().map_or(0, Timespec::length) + usize::from(self.utc())
    }

    fn label(self) -> &'static str {
        match self {
            Self::Date => "day",
            Self::Time { .. } => "time",
            Self::DateTime { .. } => "moment",
        }
    }

    fn example(self) -> String {
        let whole = "2024-02-29T23:59:59.999999";
        let text = &whole[if matches!(self, Self::Time { .. }) { date::LENGTH + 1 } else { 0 }..];
        let zone = if self.utc() { "Z" } else { "" };
        format!("{}{zone}", &text[..self.length() - zone.len()])
    }

    fn step(self, (at, known): Read, byte: u8) -> Option<Read> {
        let start = self.before_time();
        let end = self.length() - usize::from(self.utc());
        if at < start {
            return if at < date::LENGTH {
                date::step((at, known), byte)
            } else {
                (byte == b'T').then_some((at + 1, 0))
            };
        }
        if at >= end {
            return (byte == b'Z' && at < self.length()).then_some((at + 1, 0));
        }
        let digit = || byte.checked_sub(b'0').filter(|digit| *digit < 10).map(u32::from);
        let known = match at - start {
            2 | 5 => (byte == b':').then_some(0)?,
            8 => (byte == b'.').then_some(0)?,
            // The hours begin with 0, 1 or 2; after a 2 come 0 to 3.
            0 => digit().filter(|digit| *digit < 3)?,
            1 => digit().filter(|digit| known < 2 || *digit < 4).map(|_| 0)?,
            3 | 6 => digit().filter(|digit| *digit < 6).map(|_| 0)?,
            _ => digit().map(|_| 0)?,
        };
        Some((at + 1, known))
    }

    fn is_one(self, text: &str) -> bool {
        text.bytes().try_fold((0, 0), |read, byte| self.step(read, byte)).is_some_and(|(at, _)| at == self.length())
    }

    /// As exactly as a bound is written: it may say more than the rule writes, or less.
    pub(super) fn exactly(self, given: &str) -> Option<Self> {
        Timespec::ALL.into_iter().map(|timespec| self.with(timespec)).find(|kind| kind.is_one(given))
    }

    /// A bound to the last digit, without its zone: what is finer than a rule writes may still be said of its bounds.
    fn to_the_last_digit(self, given: &str) -> Result<String, RegularError> {
        let as_written = self.exactly(given).ok_or_else(|| self.none(given))?;
        let Some(timespec) = as_written.timespec() else { return Ok(given.to_owned()) };
        let text = given.strip_suffix('Z').unwrap_or(given);
        Ok(format!("{text}{}", &MIDNIGHT[timespec.length()..]))
    }

    fn none(self, given: &str) -> RegularError {
        RegularError::NoMoment { what: self.label(), given: given.to_owned(), example: self.example() }
    }

    /// Returns a bound in its canonical form: with the precision of the texts, or with its own if that is finer.
    ///
    /// # Errors
    /// The text is not such a moment.
    pub fn canonical_bound(self, given: &str) -> Result<String, RegularError> {
        let text = self.to_the_last_digit(given)?;
        let Some(own) = self.timespec() else { return Ok(text) };
        let start = self.before_time();
        let is_exact = |timespec: &Timespec| {
            timespec.length() >= own.length() && MIDNIGHT.ends_with(&text[start + timespec.length()..])
        };
        let timespec = Timespec::ALL.into_iter().find(is_exact).unwrap_or(Timespec::Microseconds);
        Ok(format!("{}{}", &text[..start + timespec.length()], if self.utc() { "Z" } else { "" }))
    }

    fn parse_bound(self, given: &str) -> Result<MomentBound, RegularError> {
        let text = self.to_the_last_digit(given)?;
        let (written, rest) = text.split_at(self.length() - usize::from(self.utc()));
        Ok(MomentBound { text: written.to_owned(), is_cut: !MIDNIGHT.ends_with(rest) })
    }
}

/// Every day from 0001-01-01 to 9999-12-31.
pub(super) fn date() -> Automaton {
    static MADE: OnceLock<Automaton> = OnceLock::new();
    // There are days, and few states.
    MADE.get_or_init(|| range_automaton(Moment::Date, None, None).unwrap_or_else(|_| unreachable!())).clone()
}

/// Builds the automaton of the moments from `low` to `high`, both included.
///
/// # Errors
/// A bound that is none, and none between them.
pub(super) fn range_automaton(kind: Moment, low: Option<&str>, high: Option<&str>) -> Result<Automaton, RegularError> {
    let none =
        || RegularError::NoMoments { what: kind.label(), low: low.map(str::to_owned), high: high.map(str::to_owned) };
    let cut = |given: Option<&str>| given.map(|given| kind.parse_bound(given)).transpose();
    let (from, to) = (cut(low)?, cut(high)?);
    let without_low = from.as_ref().is_some_and(|from| from.is_cut);
    // Beside what was read, whether it is still the beginning of each bound.
    let step = |&(read, from_low, to_high): &(Read, bool, bool), byte: u8| {
        let of = |bound: &Option<MomentBound>, still: bool| {
            let bound = bound.as_ref().filter(|_| still)?;
            bound.text.as_bytes().get(read.0).copied()
        };
        let (least, most) = (of(&from, from_low), of(&to, to_high));
        let inside = least.is_none_or(|least| byte >= least) && most.is_none_or(|most| byte <= most);
        let next = kind.step(read, byte).filter(|_| inside)?;
        // After the last byte of a bound, before the zone, it is known for good.
        let still = |bound: Option<u8>, before: bool, whole: &Option<MomentBound>| {
            bound
                .map_or(before && whole.as_ref().is_some_and(|whole| read.0 >= whole.text.len()), |bound| bound == byte)
        };
        Some((next, still(least, from_low, &from), still(most, to_high, &to)))
    };
    let end =
        |&((at, _), from_low, _): &(Read, bool, bool)| u32::from(at == kind.length() && !(from_low && without_low));
    let start = ((0, 0), from.is_some(), to.is_some());
    let classes =
        Classes::from_key(|byte| if matches!(byte, b'0'..=b'9' | b'-' | b':' | b'.' | b'T' | b'Z') { byte } else { 0 });
    let table = Table::explore(&classes, start, AutomatonLimits::default(), |_| 0, step, end)?;
    Automaton::of_table(table).map_err(|error| match error {
        AutomatonError::Nothing => none(),
        other => other.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Regular;

    const KINDS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

    fn kinds() -> impl Iterator<Item = Moment> {
        let times = KINDS.into_iter().flat_map(|(with_date, utc)| {
            Timespec::ALL.into_iter().map(move |timespec| {
                if with_date { Moment::DateTime { timespec, utc } } else { Moment::Time { timespec, utc } }
            })
        });
        times.chain([Moment::Date])
    }

    /// Around each bound, digit by digit: a bound is compared as a number of microseconds, and texts are not.
    #[test]
    fn a_range_has_the_times_between_its_bounds() {
        let seconds = [0, 1, 59, 60, 61, 3599, 3600, 43_200, 86_340, 86_398, 86_399];
        let written = |at: u64, timespec: Timespec| {
            let (second, micro) = (at / 1_000_000, at % 1_000_000);
            let text = format!("{:02}:{:02}:{:02}.{micro:06}", second / 3600, second / 60 % 60, second % 60);
            text[..timespec.length()].to_owned()
        };
        let moments: Vec<u64> =
            seconds.iter().flat_map(|second| [0, 1, 500_000].map(|micro| second * 1_000_000 + micro)).collect();
        for timespec in Timespec::ALL {
            let unit = [60_000_000, 1_000_000, 1000, 1][Timespec::ALL.iter().position(|one| *one == timespec).unwrap()];
            for &low in &moments {
                for &high in &moments {
                    let of = |at| written(at, Timespec::Microseconds);
                    let time = Moment::Time { timespec, utc: false };
                    let made = Regular::moment(time, Some(&of(low)), Some(&of(high)));
                    let mut some = false;
                    for &at in &moments {
                        for at in
                            [at / unit * unit, (at / unit + 1) * unit].into_iter().filter(|at| *at < 86_400_000_000)
                        {
                            let inside = low <= at && at <= high;
                            some |= inside;
                            if let Ok(made) = &made {
                                let text = written(at, timespec);
                                assert_eq!(made.is_match(text.as_bytes()), inside, "{text} of {low}..{high}");
                            }
                        }
                    }
                    assert!(made.is_ok() || !some, "{low}..{high}");
                }
            }
        }
    }

    #[test]
    fn examples_are_what_they_are_of() {
        for kind in kinds() {
            assert!(kind.is_one(&kind.example()), "{kind:?}");
            assert_eq!(kind.canonical_bound(&kind.example()).unwrap(), kind.example());
            assert!(range_automaton(kind, Some(&kind.example()), None).is_ok());
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let said = |low, high| range_automaton(Moment::Date, low, high).unwrap_err().to_string();
        assert_eq!(said(Some("2023-02-29"), None), "invalid day \"2023-02-29\": expected one as in 2024-02-29");
        assert_eq!(said(None, Some("")), "invalid day \"\": expected one as in 2024-02-29");
        assert!(said(Some("2024-01-02"), Some("2024-01-01")).starts_with("no day is at least 2024-01-02 and at most"));
        let (utc, timespec) = (true, Timespec::Minutes);
        let said = |kind: Moment, low, high| range_automaton(kind, Some(low), Some(high)).unwrap_err().to_string();
        let time = said(Moment::Time { timespec, utc }, "09:00", "10:00Z");
        assert_eq!(time, "invalid time \"09:00\": expected one as in 23:59Z");
        let moment = said(Moment::DateTime { timespec, utc: false }, "2024-01-01", "2024-01-02T00:00");
        assert_eq!(moment, "invalid moment \"2024-01-01\": expected one as in 2024-02-29T23:59");
        let none = said(Moment::Time { timespec, utc: false }, "09:00:01", "09:00:59.500");
        assert!(none.starts_with("no time is at least 09:00:01 and at most 09:00:59.500"), "{none}");
    }

    #[test]
    fn bounds_have_one_way_to_be_written() {
        let time = |timespec| Moment::Time { timespec, utc: false };
        assert_eq!(time(Timespec::Minutes).canonical_bound("09:00:00.000000").unwrap(), "09:00");
        assert_eq!(
            time(Timespec::Minutes).canonical_bound("09:00:00.5").unwrap_err(),
            RegularError::NoMoment { what: "time", given: "09:00:00.5".to_owned(), example: "23:59".to_owned() }
        );
        assert_eq!(time(Timespec::Minutes).canonical_bound("09:00:00.500").unwrap(), "09:00:00.500");
        assert_eq!(time(Timespec::Seconds).canonical_bound("09:00").unwrap(), "09:00:00");
        let moment = Moment::DateTime { timespec: Timespec::Seconds, utc: true };
        assert_eq!(moment.canonical_bound("2024-02-29T09:00Z").unwrap(), "2024-02-29T09:00:00Z");
    }
}

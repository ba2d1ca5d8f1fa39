//! Days of the calendar, as an automaton.

use super::RegularError;
use crate::automaton::table::{Classes, Table};
use crate::automaton::{Automaton, AutomatonLimits};
use std::sync::OnceLock;

/// Days of a month; 0 for what is no month.
pub(super) fn days(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => 0,
    }
}

/// `YYYY-MM-DD`, the days that there are from 0001-01-01 to 9999-12-31.
pub(super) fn date() -> Automaton {
    static MADE: OnceLock<Automaton> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let end = |&(at, _): &Read| u32::from(at == LENGTH);
        let table =
            Table::explore(&classes(), (0, 0), AutomatonLimits::default(), |_| 0, |&read, byte| step(read, byte), end);
        // There are days, and few states.
        table.and_then(Automaton::of_table).unwrap_or_else(|_| unreachable!())
    });
    made.clone()
}

/// Those of them from `low` to `high`, both included: as text they stand in the order of the calendar.
///
/// # Errors
/// A bound that is no day, and none between them.
pub(super) fn between(low: Option<&str>, high: Option<&str>) -> Result<Automaton, RegularError> {
    for given in [low, high].into_iter().flatten() {
        let read = given.bytes().try_fold((0, 0), step);
        if read.is_none_or(|(at, _)| at != LENGTH) {
            return Err(RegularError::NoDay { given: given.to_owned() });
        }
    }
    if let (Some(low), Some(high)) = (low, high)
        && low > high
    {
        return Err(RegularError::NoDays { low: low.to_owned(), high: high.to_owned() });
    }
    // Beside what was read, whether it is still the beginning of each bound.
    let bounded = |&(read, from, to): &(Read, bool, bool), byte: u8| {
        let at = read.0 as usize;
        let of =
            |bound: Option<&str>, still: bool| bound.filter(|_| still).and_then(|day| day.as_bytes().get(at).copied());
        let (least, most) = (of(low, from), of(high, to));
        let inside = least.is_none_or(|least| byte >= least) && most.is_none_or(|most| byte <= most);
        let read = step(read, byte).filter(|_| inside)?;
        Some((read, least == Some(byte), most == Some(byte)))
    };
    let start = ((0, 0), low.is_some(), high.is_some());
    let end = |&((at, _), ..): &(Read, bool, bool)| u32::from(at == LENGTH);
    let table = Table::explore(&classes(), start, AutomatonLimits::default(), |_| 0, bounded, end)?;
    Ok(Automaton::of_table(table)?)
}

/// Bytes read, and of what was read what still matters.
type Read = (u32, u32);

/// Bytes of a day.
const LENGTH: u32 = 10;

fn classes() -> Classes {
    Classes::by(|byte| if matches!(byte, b'-' | b'0'..=b'9') { byte } else { 0 })
}

fn step((at, known): Read, byte: u8) -> Option<Read> {
    if at == 4 || at == 7 {
        // Between year, month and day.
        return (byte == b'-').then_some((at + 1, known));
    }
    let digit = u32::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
    let next = known * 10 + digit;
    let known = match at {
        // A year that stands for all with leap days like its own; 0 is none.
        3 => [1, 4][usize::from(days(next, 2) == 29)] * u32::from(next > 0),
        // How many days the month has.
        6 => days(known / 10, known % 10 * 10 + digit),
        9 => u32::from(next % 100 > 0 && next % 100 <= next / 100),
        LENGTH => return None,
        _ => next,
    };
    (known > 0 || !matches!(at, 3 | 6 | 9)).then_some((at + 1, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Regular;

    /// Day by day, around each bound: the whole calendar has few kinds of years.
    #[test]
    fn a_range_has_the_days_between_its_bounds() {
        let all = Regular::date();
        let bounds = ["0001-01-01", "1999-12-31", "2000-02-29", "2023-02-28", "2024-02-29", "2024-03-10", "9999-12-31"];
        let mut every: Vec<String> = Vec::new();
        for year in [1, 2, 1899, 1900, 1999, 2000, 2001, 2023, 2024, 2025, 9998, 9999] {
            for month in 0..=13 {
                every.extend((0..=32).map(|day| format!("{year:04}-{month:02}-{day:02}")));
            }
        }
        for (at, low) in bounds.iter().enumerate() {
            for high in &bounds[at..] {
                for (low, high) in [(Some(*low), Some(*high)), (Some(*low), None), (None, Some(*high))] {
                    let some = Regular::date_between(low, high).unwrap();
                    for day in &every {
                        let inside = low.is_none_or(|low| &**day >= low) && high.is_none_or(|high| &**day <= high);
                        let there = all.is_match(day.as_bytes());
                        assert_eq!(some.is_match(day.as_bytes()), there && inside, "{day} of {low:?}, {high:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let said = |low, high| between(low, high).unwrap_err().to_string();
        assert_eq!(said(Some("2023-02-29"), None), "\"2023-02-29\" is no day: a day is written as in 2024-02-29");
        assert_eq!(said(None, Some("")), "\"\" is no day: a day is written as in 2024-02-29");
        assert!(said(Some("2024-01-02"), Some("2024-01-01")).starts_with("no day is at least 2024-01-02 and at most"));
    }
}

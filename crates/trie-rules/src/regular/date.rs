//! Days of the calendar, as an automaton.

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
        // Bytes read, and of what was read what still matters.
        let step = |&(at, known): &(u32, u32), byte: u8| {
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
                10 => return None,
                _ => next,
            };
            (known > 0 || !matches!(at, 3 | 6 | 9)).then_some((at + 1, known))
        };
        let classes = Classes::by(|byte| if matches!(byte, b'-' | b'0'..=b'9') { byte } else { 0 });
        let end = |&(at, _): &(u32, u32)| u32::from(at == 10);
        let table = Table::explore(&classes, (0, 0), AutomatonLimits::default(), |_| 0, step, end);
        // There are days, and few states.
        table.and_then(Automaton::of_table).unwrap_or_else(|_| unreachable!())
    });
    made.clone()
}

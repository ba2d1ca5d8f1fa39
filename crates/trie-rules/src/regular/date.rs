//! Days of the calendar, byte by byte.

/// Bytes read, and of what was read what still matters.
pub(super) type Read = (usize, u32);

/// Days of a month; 0 for anything that is not a month.
pub(super) fn days(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => 0,
    }
}

/// Year, month and day.
pub(super) type Day = (u16, u8, u8);

/// The first and the last day.
pub(super) const ALL: [Day; 2] = [(1, 1, 1), (9999, 12, 31)];

/// The day of the week of January 1, from Monday on: that of the year 1 is one.
pub(super) fn weekday_of_january(year: u32) -> u32 {
    let before = year - 1;
    (before * 365 + before / 4 - before / 100 + before / 400) % 7
}

/// Returns the day before a day.
pub(super) fn day_before((year, month, day): Day) -> Day {
    match (month, day) {
        (1, 1) => (year - 1, 12, 31),
        (_, 1) => (year, month - 1, days(year.into(), u32::from(month) - 1) as u8),
        _ => (year, month, day - 1),
    }
}

/// Returns the day after a day.
pub(super) fn day_after((year, month, day): Day) -> Day {
    if u32::from(day) < days(year.into(), month.into()) {
        (year, month, day + 1)
    } else if month < 12 {
        (year, month + 1, 1)
    } else {
        (year + 1, 1, 1)
    }
}

/// Bytes of a day.
pub(super) const LENGTH: usize = 10;

/// One byte more of a day that is not whole.
pub(super) fn step((at, known): Read, byte: u8) -> Option<Read> {
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
        _ => next,
    };
    (known > 0 || !matches!(at, 3 | 6 | 9)).then_some((at + 1, known))
}

#[cfg(test)]
mod tests {
    use crate::{Moment, Regular};

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
                    let some = Regular::moment(Moment::Date, low, high).unwrap();
                    for day in &every {
                        let inside = low.is_none_or(|low| &**day >= low) && high.is_none_or(|high| &**day <= high);
                        let there = all.is_match(day.as_bytes());
                        assert_eq!(some.is_match(day.as_bytes()), there && inside, "{day} of {low:?}, {high:?}");
                    }
                }
            }
        }
    }
}

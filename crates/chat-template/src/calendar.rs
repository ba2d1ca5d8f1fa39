//! Days and times of day, and how `strftime` writes them. Not jiff's, which brings time zones and many times the code:
//! that only says what time it is here.

use std::fmt::Write;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A day of the years that Python has, and a time of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    microsecond: i64,
}

/// The beginning of 1970.
pub(crate) const EPOCH: Moment = Moment { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0, microsecond: 0 };

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the first of the year 1, a Monday, to the first of a year.
fn days_before(year: i64) -> i64 {
    let before = year - 1;
    365 * before + before / 4 - before / 100 + before / 400
}

/// Weeks of a year as ISO counts them: each belongs to the year that has its Thursday.
fn weeks_of(year: i64) -> i64 {
    let first = days_before(year) % 7;
    if first == 3 || (first == 2 && is_leap(year)) { 53 } else { 52 }
}

impl Moment {
    /// Nothing if there is no such day or time.
    pub(crate) fn new([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3]) -> Option<Self> {
        let is_day = (1..=9999).contains(&year) && (1..=12).contains(&month);
        let is_day = is_day && (1..=days_of(year, month)).contains(&day);
        let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
        (is_day && is_time).then_some(Self { year, month, day, hour, minute, second, microsecond: 0 })
    }

    /// So many seconds after the beginning of 1970; nothing where there is no such day.
    pub(crate) fn at_seconds(seconds: i64) -> Option<Self> {
        const DAY: i64 = 24 * 60 * 60;
        let mut day = seconds.div_euclid(DAY).checked_add(days_before(1970))?;
        // The year is this one or the one before.
        let mut year = day.checked_mul(400)? / days_before(401) + 2;
        while days_before(year) > day {
            year -= 1;
        }
        day -= days_before(year);
        let mut month = 1;
        while month < 12 && day >= days_of(year, month) {
            day -= days_of(year, month);
            month += 1;
        }
        let time = seconds.rem_euclid(DAY);
        Self::new([year, month, day + 1], [time / 3600, time / 60 % 60, time % 60])
    }

    /// With a fraction of a second; as it was if that is none.
    pub(crate) fn with_microsecond(self, microsecond: i64) -> Self {
        if (0..1_000_000).contains(&microsecond) { Self { microsecond, ..self } } else { self }
    }

    /// From 1.
    fn day_of_year(&self) -> i64 {
        (1..self.month).map(|month| days_of(self.year, month)).sum::<i64>() + self.day
    }

    /// From Monday, which is 0.
    fn weekday(&self) -> i64 {
        (days_before(self.year) + self.day_of_year() - 1) % 7
    }

    /// The year and the week of ISO.
    fn week(&self) -> (i64, i64) {
        match (self.day_of_year() - self.weekday() + 9) / 7 {
            0 => (self.year - 1, weeks_of(self.year - 1)),
            week if week > weeks_of(self.year) => (self.year + 1, 1),
            week => (self.year, week),
        }
    }

    /// Python's `strftime`, and what a time without a zone leaves empty.
    pub(crate) fn strftime(&self, format: &str) -> String {
        let mut out = String::new();
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            let code = &rest[at..];
            let end = code[1..].find(|flag: char| !"-_0^#".contains(flag)).map_or(code.len(), |end| end + 1);
            let Some(letter) = code[end..].chars().next() else {
                out.push_str(code);
                return out;
            };
            let (flags, next) = (&code[1..end], end + letter.len_utf8());
            if !self.write(letter, flags, &mut out) {
                // As the C library does with what it does not know.
                out.push_str(&code[..next]);
            }
            rest = &code[next..];
        }
        out.push_str(rest);
        out
    }

    /// Whether there is such a letter.
    fn write(&self, letter: char, flags: &str, out: &mut String) -> bool {
        let hour12 = (self.hour + 11) % 12 + 1;
        let (value, width) = match letter {
            'Y' => (self.year, 4),
            'C' => (self.year / 100, 0),
            'y' => (self.year % 100, 2),
            'G' => (self.week().0, 4),
            'g' => (self.week().0 % 100, 2),
            'V' => (self.week().1, 2),
            'U' => ((self.day_of_year() + 6 - (self.weekday() + 1) % 7) / 7, 2),
            'W' => ((self.day_of_year() + 6 - self.weekday()) / 7, 2),
            'm' => (self.month, 2),
            'd' | 'e' => (self.day, 2),
            'j' => (self.day_of_year(), 3),
            'u' => (self.weekday() + 1, 0),
            'w' => ((self.weekday() + 1) % 7, 0),
            'H' | 'k' => (self.hour, 2),
            'I' | 'l' => (hour12, 2),
            'M' => (self.minute, 2),
            'S' => (self.second, 2),
            'f' => (self.microsecond, 6),
            _ => return self.write_text(letter, flags, out),
        };
        let blank = "ekl".contains(letter);
        let (mut zeros, mut width) = (!blank, width);
        for flag in flags.chars().filter(|_| letter != 'f') {
            match flag {
                '0' => zeros = true,
                '_' => zeros = false,
                '-' => width = 0,
                _ => {}
            }
        }
        // Writing to a string cannot fail.
        let _ = if zeros { write!(out, "{value:0width$}") } else { write!(out, "{value:width$}") };
        true
    }

    fn write_text(&self, letter: char, flags: &str, out: &mut String) -> bool {
        let (day, month) = (DAYS[self.weekday() as usize], MONTHS[self.month as usize - 1]);
        let format = match letter {
            'c' => "%a %b %e %H:%M:%S %Y",
            'x' | 'D' => "%m/%d/%y",
            'X' | 'T' => "%H:%M:%S",
            'r' => "%I:%M:%S %p",
            'F' => "%Y-%m-%d",
            'R' => "%H:%M",
            'Z' | 'z' => "",
            _ => {
                let text = match letter {
                    'A' => day,
                    'a' => &day[..3],
                    'B' => month,
                    'b' | 'h' => &month[..3],
                    'p' if flags.contains('#') => ["am", "pm"][usize::from(self.hour >= 12)],
                    'p' => ["AM", "PM"][usize::from(self.hour >= 12)],
                    'P' => ["am", "pm"][usize::from(self.hour >= 12)],
                    '%' => "%",
                    'n' => "\n",
                    't' => "\t",
                    _ => return false,
                };
                let text = if flags.contains('^') { text.to_uppercase() } else { text.to_owned() };
                out.push_str(&text);
                return true;
            }
        };
        out.push_str(&self.strftime(format));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;
    use jiff::civil::{DateTime, date};

    fn of(time: DateTime) -> Moment {
        let day = [time.year().into(), time.month().into(), time.day().into()];
        Moment::new(day, [time.hour().into(), time.minute().into(), time.second().into()]).unwrap()
    }

    #[test]
    fn as_jiff_writes_them() {
        let begin = date(1970, 1, 1).at(0, 0, 0, 0);
        let (mut time, last) = (date(1, 1, 1).at(0, 0, 0, 0), date(9998, 1, 1).at(0, 0, 0, 0));
        while time < last {
            let moment = of(time);
            let since = time.duration_since(begin).as_secs();
            assert_eq!(Moment::at_seconds(since), Some(moment), "{time}");
            for letter in "YmdHMSBbhAajypPIeklUWVGguwDFTRCnt".chars() {
                for flag in ["", "-", "_", "0", "^", "#"] {
                    let format = format!("%{flag}{letter}");
                    let expected = jiff::fmt::strtime::format(&format, time).unwrap();
                    assert_eq!(moment.strftime(&format), expected, "{format} of {time}");
                }
            }
            // Some of all years, and every day of some.
            let step = if (1999..2029).contains(&time.year()) { 1.day() } else { 211.days() };
            time = time.checked_add(step.hours(5).minutes(7).seconds(11)).unwrap();
        }
    }

    #[test]
    fn what_is_no_day_is_none() {
        for (day, time) in
            [([2023, 2, 29], [0; 3]), ([0, 1, 1], [0; 3]), ([2024, 13, 1], [0; 3]), ([2024, 1, 1], [24, 0, 0])]
        {
            assert_eq!(Moment::new(day, time), None);
        }
        assert!(Moment::new([2024, 2, 29], [23, 59, 59]).is_some());
        for seconds in [i64::MIN, i64::MAX, -62_135_596_801, 253_402_300_800] {
            assert_eq!(Moment::at_seconds(seconds), None, "{seconds}");
        }
        for seconds in [-62_135_596_800, 253_402_300_799] {
            assert!(Moment::at_seconds(seconds).is_some(), "{seconds}");
        }
    }
}

//! Days and times in formats against a twin that counts days one by one, and writes each of them.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use trie_rules::{Clock, Moment, MomentFormat, Regular, RegularError, Timespec, Value, check_rule};

const MONTHS: &str = "January February March April May June July August September October November December";
const WEEKDAYS: &str = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday";
const DATE_TIME: Moment = Moment::DateTime { timespec: Timespec::Seconds, utc: false };
const TIME: Moment = Moment::Time { timespec: Timespec::Seconds, utc: false };

/// A day, by how many came before it since 0001-01-01, a Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::struct_field_names, reason = "the day of a month is its day")]
struct Day {
    year: u32,
    month: u32,
    day: u32,
    number: u32,
    of_year: u32,
}

fn calendar() -> Vec<Day> {
    let (mut all, mut number) = (Vec::new(), 0);
    for year in 1..=9999u32 {
        let mut of_year = 0;
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let lengths = [31, 28 + u32::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, length) in (1..).zip(lengths) {
            for day in 1..=length {
                of_year += 1;
                all.push(Day { year, month, day, number, of_year });
                number += 1;
            }
        }
    }
    all
}

/// Replaced directive by directive.
fn written(format: &str, day: &Day, [hour, minute, second, micro]: [u32; 4]) -> String {
    let month = MONTHS.split(' ').nth(day.month as usize - 1).unwrap();
    let weekday = WEEKDAYS.split(' ').nth(day.number as usize % 7).unwrap();
    let half = if hour < 12 { "AM" } else { "PM" };
    let of_half = if hour % 12 == 0 { 12 } else { hour % 12 };
    let mut text = format.replace("%%", "\0");
    for (letter, number, width) in [
        ("y", day.year % 100, 2),
        ("m", day.month, 2),
        ("d", day.day, 2),
        ("j", day.of_year, 3),
        ("H", hour, 2),
        ("I", of_half, 2),
        ("M", minute, 2),
        ("S", second, 2),
        ("f", micro, 6),
        ("Y", day.year, 4),
    ] {
        text = text.replace(&format!("%{letter}"), &format!("{number:0width$}"));
        text = text.replace(&format!("%-{letter}"), &number.to_string());
    }
    for (letter, name) in [("B", month), ("b", &month[..3]), ("A", weekday), ("a", &weekday[..3]), ("p", half)] {
        text = text.replace(&format!("%{letter}"), name);
    }
    text.replace('\0', "%")
}

fn iso(day: &Day) -> String {
    format!("{:04}-{:02}-{:02}", day.year, day.month, day.day)
}

const DAYS: [&str; 15] = [
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%-d. %B %Y",
    "%B %-d, %Y",
    "%A, %d %b %Y",
    "%a %b %d %Y",
    "%Y/%j",
    "%j of %Y",
    "%d/%m/%y",
    "%-m/%-d/%y",
    "%A (%a) %j: %d %m %B %b %Y",
    "%y%m%d",
    "100%% on %-j.%Y%A",
    "%b%d%Y",
    "%m%Y%d",
];

/// Each day that a text says, among so many days around the range.
fn compare_days(format: &str, all: &[Day], low: Option<usize>, high: Option<usize>) {
    let bound = |at: Option<usize>| at.map(|at| iso(&all[at]));
    let made = MomentFormat::new(Moment::Date, format).unwrap();
    let century = format.contains("%y") || format.contains("%-y");
    let in_range = |at: usize| {
        let inside = low.is_none_or(|low| at >= low) && high.is_none_or(|high| at <= high);
        inside && (!century || (1969..=2068).contains(&all[at].year))
    };
    let rule = Regular::moment_in_format(Moment::Date, &made, bound(low).as_deref(), bound(high).as_deref());
    let near = |at: Option<usize>| at.map_or(0..0, |at| at.saturating_sub(800)..(at + 800).min(all.len()));
    let some = (0..all.len()).step_by(1013);
    let tries: BTreeSet<usize> = near(low).chain(near(high)).chain(some).collect();
    let Ok(rule) = rule else {
        assert!(!tries.into_iter().any(in_range), "{format}: {low:?} {high:?}");
        return;
    };
    // With two digits a day of another century may have the text of one that is in the range.
    let mut want: BTreeMap<String, Option<Day>> = BTreeMap::new();
    for at in tries {
        let text = written(format, &all[at], [0; 4]);
        let told = want.entry(text).or_default();
        if in_range(at) {
            *told = Some(all[at]);
        }
    }
    for (text, day) in want {
        let value = day.map(|day| Value::Date { year: day.year as u16, month: day.month as u8, day: day.day as u8 });
        if value.is_some() || !century {
            assert_eq!(rule.value(text.as_bytes()), value, "{text} of {format}: {:?} {:?}", bound(low), bound(high));
        }
    }
    assert!(check_rule(&rule, 300).is_ok());
}

#[test]
fn formats_have_the_days_of_the_calendar() {
    let all = calendar();
    assert_eq!(all.len(), 3_652_059);
    for format in DAYS {
        let begin = std::time::Instant::now();
        compare_days(format, &all, None, None);
        let at = |of: [u32; 3]| all.binary_search_by_key(&of, |day| [day.year, day.month, day.day]).ok();
        compare_days(format, &all, at([2024, 2, 29]), at([2024, 3, 1]));
        compare_days(format, &all, at([1999, 12, 31]), None);
        compare_days(format, &all, at([2023, 6, 5]), at([2024, 6, 4]));
        eprintln!("{format}: {:?}", begin.elapsed());
    }
}

/// All texts of a range, none more.
#[test]
fn a_format_has_no_other_texts() {
    let all = calendar();
    for format in DAYS {
        let made = MomentFormat::new(Moment::Date, format).unwrap();
        for (low, length) in [(738_000, 1), (738_000, 40), (738_940, 800), (730_000, 12_000)] {
            let days = &all[low..low + length];
            let (first, last) = (iso(&days[0]), iso(&days[length - 1]));
            let rule = Regular::moment_in_format(Moment::Date, &made, Some(&first), Some(&last)).unwrap();
            let found: BTreeSet<String> =
                rule.texts(20_000).unwrap().into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
            let want: BTreeSet<String> = days.iter().map(|day| written(format, day, [0; 4])).collect();
            assert_eq!(found, want, "{format}");
        }
    }
}

const CLOCKS: [&str; 7] = ["%H:%M:%S.%f", "%-I:%M %p", "%p %I", "%H", "%Hh%-M", "%-H.%M.%-S", "%S %M %H"];

fn clock(at: u64) -> [u32; 4] {
    let (seconds, micro) = (at / 1_000_000, at % 1_000_000);
    [seconds / 3600, seconds / 60 % 60, seconds % 60, micro].map(|part| part as u32)
}

/// What a format does not write is 0: a text is the moment that it says.
fn said(format: &str, at: u64) -> u64 {
    let unit = if format.contains("%f") {
        1
    } else if format.contains('S') {
        1_000_000
    } else if format.contains('M') {
        60_000_000
    } else {
        3_600_000_000
    };
    at / unit * unit
}

const MICROS_OF_DAY: u64 = 86_400_000_000;

fn moments() -> impl Strategy<Value = u64> {
    let near =
        prop::sample::select(vec![0, 1, 59_999_999, 3_600_000_000, 43_200_000_000, 86_340_000_000, 86_399_999_999]);
    prop_oneof![near, 0..MICROS_OF_DAY, (0..1440u64).prop_map(|minute| minute * 60_000_000)]
}

proptest! {
    #[test]
    fn times_of_a_range(format in prop::sample::select(CLOCKS.to_vec()), one in moments(), other in moments(),
                        tries in prop::collection::vec(moments(), 60)) {
        let (low, high) = (one.min(other), one.max(other));
        let bound = |at: u64| {
            let [hour, minute, second, micro] = clock(at);
            format!("{hour:02}:{minute:02}:{second:02}.{micro:06}")
        };
        let day = Day { year: 1, month: 1, day: 1, number: 0, of_year: 1 };
        let made = MomentFormat::new(TIME, format).unwrap();
        let rule = Regular::moment_in_format(TIME, &made, Some(&bound(low)), Some(&bound(high)));
        let near = [low, high].into_iter().flat_map(|at| [at.saturating_sub(1), at, at + 1, at + 3_600_000_000]);
        for at in tries.into_iter().chain(near).filter(|at| *at < MICROS_OF_DAY) {
            let text = written(format, &day, clock(at));
            let at = said(format, at);
            let inside = (low..=high).contains(&at);
            let [hour, minute, second, microsecond] = clock(at);
            let time = Clock { hour: hour as u8, minute: minute as u8, second: second as u8, microsecond, utc: false };
            let found = rule.as_ref().ok().and_then(|rule| rule.value(text.as_bytes()));
            prop_assert_eq!(found, inside.then_some(Value::Time(time)), "{} of {}", text, format);
        }
        if let Ok(rule) = rule {
            prop_assert!(check_rule(&rule, 500).is_ok());
        }
    }

    #[test]
    fn moments_of_a_range(days in prop::sample::select(DAYS.to_vec()), clocks in prop::sample::select(CLOCKS.to_vec()),
                          time_first in any::<bool>(), begin in 719_000..730_000usize, length in 0..3usize,
                          one in moments(), other in moments(),
                          tries in prop::collection::vec((0..6usize, moments()), 60)) {
        let all = calendar_from_1969();
        let format = if time_first { format!("{clocks}|{days}") } else { format!("{days} {clocks}") };
        let first = begin - 719_000;
        let (one, other) = if length == 0 { (one.min(other), one.max(other)) } else { (one, other) };
        let (low, high) = ((first + 2, one), (first + 2 + length, other));
        let bound = |(day, at): (usize, u64)| {
            let [hour, minute, second, micro] = clock(at);
            format!("{}T{hour:02}:{minute:02}:{second:02}.{micro:06}", iso(&all[day]))
        };
        let made = MomentFormat::new(DATE_TIME, &format).unwrap();
        let rule = Regular::moment_in_format(DATE_TIME, &made, Some(&bound(low)), Some(&bound(high)));
        for (day, at) in tries.into_iter().map(|(day, at)| (first + day, at)).chain([low, high]) {
            let text = written(&format, &all[day], clock(at));
            let at = said(clocks, at);
            let inside = (low..=high).contains(&(day, at));
            let [hour, minute, second, microsecond] = clock(at);
            let time = Clock { hour: hour as u8, minute: minute as u8, second: second as u8, microsecond, utc: false };
            let Day { year, month, day, .. } = all[day];
            let value = Value::DateTime { year: year as u16, month: month as u8, day: day as u8, time };
            let found = rule.as_ref().ok().and_then(|rule| rule.value(text.as_bytes()));
            prop_assert_eq!(found, inside.then_some(value), "{} of {}", text, format);
        }
    }
}

/// 719163 days came before 1970-01-01.
fn calendar_from_1969() -> &'static [Day] {
    static ALL: std::sync::OnceLock<Vec<Day>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| calendar().into_iter().skip(719_000).take(12_000).collect())
}

#[test]
fn formats_that_leave_something_open_are_refused() {
    let said = |kind: Moment, format: &str| MomentFormat::new(kind, format).unwrap_err().to_string();
    let day = |format: &str| said(Moment::Date, format);
    assert!(day("%Y-%Q").starts_with("invalid format \"%Y-%Q\": unknown directive \"%Q\": expected one of %Y, %y"));
    assert!(day("%Y-%m-%d%").contains("unknown directive \"%\""));
    assert!(day("%-").contains("unknown directive \"%-\""));
    assert!(day("%-Y-%m-%d").contains("no zeros that can be left out, write %Y"));
    assert!(day("%d.%m.").contains("leaves open the year"));
    assert!(day("").contains("leaves open the year"));
    assert!(day("%B %Y").contains("leaves open the day"));
    assert!(day("%Y %y %j").contains("both say the year"));
    assert!(day("%Y-%m-%d %d").contains("%d comes twice"));
    assert!(day("%Y-%m-%dT%H").contains("%H is of times"));
    assert!(day("%-d%m%Y").contains("a digit may follow %-d"));
    assert!(day("%-d1%m%Y").contains("a digit may follow %-d"));
    assert!(said(TIME, "%I:%M").contains("leaves open the hour"));
    assert!(said(TIME, "%H %S").contains("%S without %M"));
    assert!(said(TIME, "%H %Y").contains("%Y is of days"));
    assert!(said(DATE_TIME, "%Y-%m-%d").contains("leaves open the hour"));
    let two = MomentFormat::new(Moment::Date, "%d.%m.%y").unwrap();
    let none = Regular::moment_in_format(Moment::Date, &two, Some("2069-01-01"), None).unwrap_err();
    assert!(matches!(&none, RegularError::NoMoments { .. }), "{none}");
    let time = MomentFormat::new(TIME, "%H:%M").unwrap();
    let none = Regular::moment_in_format(TIME, &time, Some("09:00:01"), Some("09:00:59")).unwrap_err();
    assert!(none.to_string().starts_with("no time is at least 09:00:01 and at most 09:00:59"), "{none}");
    let wrong = Regular::moment_in_format(TIME, &time, Some("9:00"), None).unwrap_err();
    assert!(matches!(wrong, RegularError::NoMoment { .. }), "{wrong}");
    // Made for one kind, used for another.
    let other = Regular::moment_in_format(Moment::Date, &time, None, None).unwrap_err();
    assert!(matches!(other, RegularError::Format { .. }), "{other}");
}

#[test]
fn formats_of_iso_are_what_is_written_without_one() {
    let of = |kind: Moment, format: &str| {
        let made = MomentFormat::new(kind, format).unwrap();
        for (low, high) in [(None, None), (Some("2024-02-28T12:30:00"), Some("2031-01-01T00:00:01"))] {
            let start = if kind == TIME { 11 } else { 0 };
            let end = if kind == Moment::Date { 10 } else { 19 };
            let cut = |bound: Option<&'static str>| bound.map(|bound| &bound[start..end]);
            let (low, high) = if kind == TIME { (None, cut(low)) } else { (cut(low), cut(high)) };
            let (one, other) = (Regular::moment_in_format(kind, &made, low, high), Regular::moment(kind, low, high));
            assert_eq!(one.unwrap().machine(), other.unwrap().machine(), "{format}");
        }
    };
    of(Moment::Date, "%Y-%m-%d");
    of(TIME, "%H:%M:%S");
    of(DATE_TIME, "%Y-%m-%dT%H:%M:%S");
}

//! Days and times in a format of `strftime`: the texts of a range, and their values.
//!
//! Each directive distinguishes some of the days and hours that are still possible. So the automaton is built directive
//! by directive. A node is a set of moments that are still possible; sets that the rest of the format does not tell
//! apart share a node. After a weekday and Feb 29, for example, the year may be any in which Feb 29 is that weekday.

use super::date::days;
use super::moment::{Moment, Range};
use super::parts::{Factor, Parts};
use super::value::{Clock, Value};
use super::{RegularError, date};
use crate::automaton::table::{Classes, Table};
use crate::automaton::{Automaton, AutomatonError, AutomatonLimits};
use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use trie_core::work::spend;

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
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HALVES: [&str; 2] = ["AM", "PM"];
/// Characters of short names.
const SHORT: usize = 3;

/// Format of days and times: a format string with the directives of Python's and C's `strftime`, and English names.
///
/// | directive | is |
/// | --- | --- |
/// | `%Y`, `%y` | the year with four digits; with two, from 1969 to 2068 |
/// | `%m`, `%B`, `%b` | the month: `02`, `February`, `Feb` |
/// | `%d`, `%j` | the day of the month, `09`; of the year, `040` |
/// | `%A`, `%a` | the day of the week: `Friday`, `Fri` |
/// | `%H`; `%I` and `%p` | the hour: `21`; `09` and `PM` |
/// | `%M`, `%S`, `%f` | the minute; the second; microseconds with six digits |
/// | `%-d` and the like | the number without zeros in front |
/// | `%%` | `%` |
///
/// A format must determine the moment: each of its texts is exactly one day, time or both. Fields that it leaves out
/// are 0.
///
/// ```
/// use trie_rules::{Moment, MomentFormat, Regular, Value};
/// let format = MomentFormat::new(Moment::Date, "%A, %-d %B %Y")?;
/// let day = Regular::moment_in_format(Moment::Date, &format, Some("2024-01-01"), None)?;
/// assert!(day.is_match(b"Thursday, 29 February 2024") && !day.is_match(b"Friday, 29 February 2024"));
/// assert_eq!(day.value(b"Monday, 1 January 2024"), Some(Value::Date { year: 2024, month: 1, day: 1 }));
/// # Ok::<(), trie_rules::RegularError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MomentFormat {
    text: Arc<str>,
    pieces: Arc<[Piece]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Piece {
    Text(String),
    Field { field: Field, is_padded: bool },
}

/// Field that a directive writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Field {
    Year,
    YearOfCentury,
    Month,
    MonthName,
    MonthShort,
    Day,
    DayOfYear,
    Weekday,
    WeekdayShort,
    Hour,
    HourOfHalf,
    Half,
    Minute,
    Second,
    Microsecond,
}

use Field::{
    Day, DayOfYear, Half, Hour, HourOfHalf, Microsecond, Minute, Month, MonthName, MonthShort, Second, Weekday,
    WeekdayShort, Year, YearOfCentury,
};

const DIRECTIVES: [(char, Field); 15] = [
    ('Y', Year),
    ('y', YearOfCentury),
    ('m', Month),
    ('B', MonthName),
    ('b', MonthShort),
    ('d', Day),
    ('j', DayOfYear),
    ('A', Weekday),
    ('a', WeekdayShort),
    ('H', Hour),
    ('I', HourOfHalf),
    ('p', Half),
    ('M', Minute),
    ('S', Second),
    ('f', Microsecond),
];

/// Years that two digits stand for, as Python and POSIX read them.
const OF_CENTURY: RangeInclusive<u16> = 1969..=2068;

const LIMITS: AutomatonLimits = AutomatonLimits { bytes: 32 << 20 };

impl Field {
    fn letter(self) -> char {
        DIRECTIVES.into_iter().find(|(_, field)| *field == self).map_or('%', |(letter, _)| letter)
    }

    fn is_of_day(self) -> bool {
        matches!(self, Year | YearOfCentury | Month | MonthName | MonthShort | Day | DayOfYear | Weekday | WeekdayShort)
    }

    fn is_of_hour(self) -> bool {
        matches!(self, Hour | HourOfHalf | Half)
    }

    /// The most digits; 0 for names.
    fn digits(self) -> usize {
        match self {
            Year => 4,
            DayOfYear => 3,
            Microsecond => 6,
            MonthName | MonthShort | Weekday | WeekdayShort | Half => 0,
            _ => 2,
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            MonthName | MonthShort => &MONTHS,
            Weekday | WeekdayShort => &WEEKDAYS,
            Half => &HALVES,
            _ => &[],
        }
    }

    /// A number, or the name with that number.
    fn write_value(self, value: u32, is_padded: bool) -> String {
        match self {
            MonthShort | WeekdayShort => self.names()[value as usize][..SHORT].to_owned(),
            MonthName | Weekday | Half => self.names()[value as usize].to_owned(),
            _ if is_padded => format!("{value:0width$}", width = self.digits()),
            _ => value.to_string(),
        }
    }

    /// The number at the start of a text, or that of the name, and its bytes.
    fn read(self, text: &str, is_padded: bool) -> Option<(u32, usize)> {
        let names = self.names();
        if names.is_empty() {
            let most = text.bytes().take(self.digits()).take_while(u8::is_ascii_digit).count();
            let length = if is_padded { self.digits() } else { most };
            return Some((text.get(..length)?.parse().ok()?, length));
        }
        let is_short = matches!(self, MonthShort | WeekdayShort);
        let shown = |name: &'static str| if is_short { &name[..SHORT] } else { name };
        let found = names.iter().position(|name| text.starts_with(shown(name)))?;
        Some((found as u32, shown(names[found]).len()))
    }
}

impl fmt::Debug for MomentFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MomentFormat").field(&self.text).finish()
    }
}

impl MomentFormat {
    /// Parses a format of days, times or both.
    ///
    /// # Errors
    /// [`RegularError::Format`]: a directive that is unknown, does not belong to this kind of moment, or comes twice; a
    /// format that does not determine the moment.
    pub fn new(kind: Moment, text: &str) -> Result<Self, RegularError> {
        let pieces = pieces(text).and_then(|pieces| sound(kind, &pieces).map(|()| pieces));
        let pieces = pieces.map_err(|reason| RegularError::Format { format: text.to_owned(), reason })?;
        Ok(Self { text: text.into(), pieces: pieces.into() })
    }

    /// Returns the format as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn has(&self, fields: &[Field]) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Field { field, .. } if fields.contains(field)))
    }

    /// Returns the value of a text in this format.
    pub(super) fn value(&self, kind: Moment, text: &str) -> Option<Value> {
        let mut rest = text;
        let mut said: HashMap<Field, u32> = HashMap::new();
        for piece in &*self.pieces {
            match piece {
                Piece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Piece::Field { field, is_padded } => {
                    let (value, length) = field.read(rest, *is_padded)?;
                    rest = &rest[length..];
                    said.insert(*field, value);
                }
            }
        }
        let of = |field: Field| said.get(&field).copied();
        let day = || -> Option<(u16, u8, u8)> {
            let year = match of(YearOfCentury) {
                Some(year) => year + if year < u32::from(*OF_CENTURY.start()) % 100 { 2000 } else { 1900 },
                None => of(Year)?,
            };
            let named = of(MonthName).or(of(MonthShort)).map(|month| month + 1);
            let (month, day) = match of(Month).or(named).zip(of(Day)) {
                Some(both) => both,
                None => day_of_year(year, of(DayOfYear)?)?,
            };
            Some((year as u16, month as u8, day as u8))
        };
        let clock = || -> Option<Clock> {
            let of_halves = || Some(of(HourOfHalf)? % 12 + 12 * of(Half)?);
            let hour = of(Hour).or_else(of_halves)? as u8;
            let other = |field| of(field).unwrap_or_default();
            let (minute, second) = (other(Minute) as u8, other(Second) as u8);
            Some(Clock { hour, minute, second, microsecond: other(Microsecond), utc: kind.utc() })
        };
        match kind {
            Moment::Date => day().map(|(year, month, day)| Value::Date { year, month, day }),
            Moment::Time { .. } => clock().map(Value::Time),
            Moment::DateTime { .. } => {
                let ((year, month, day), time) = (day()?, clock()?);
                Some(Value::DateTime { year, month, day, time })
            }
        }
    }
}

/// Month and day of the day with a number.
fn day_of_year(year: u32, number: u32) -> Option<(u32, u32)> {
    let mut left = number;
    (1..=12).find_map(|month| {
        let length = days(year, month);
        if left <= length {
            return Some((month, left));
        }
        left -= length;
        None
    })
}

fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut chars = format.chars();
    let mut literal = String::new();
    while let Some(next) = chars.next() {
        if next != '%' {
            literal.push(next);
            continue;
        }
        let mut letter = chars.next();
        if letter == Some('%') {
            literal.push('%');
            continue;
        }
        let is_padded = letter != Some('-');
        if !is_padded {
            letter = chars.next();
        }
        let shown: String = ['%'].into_iter().chain((!is_padded).then_some('-')).chain(letter).collect();
        let found = DIRECTIVES.into_iter().find(|&(known, _)| Some(known) == letter);
        let Some((_, field)) = found else {
            let known: Vec<String> = DIRECTIVES.iter().map(|(letter, _)| format!("%{letter}")).collect();
            return Err(format!("unknown directive {shown:?}: expected one of {}, %%", known.join(", ")));
        };
        if !is_padded && matches!(field.digits(), 0 | 4 | 6) {
            let meant = field.letter();
            return Err(format!(
                "{shown} is not supported: {meant:?} has no zeros that can be left out, write %{meant}"
            ));
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Field { field, is_padded });
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Ok(pieces)
}

/// Checks that each text of a format is exactly one moment.
fn sound(kind: Moment, pieces: &[Piece]) -> Result<(), String> {
    let fields: Vec<Field> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Field { field, .. } => Some(*field),
            Piece::Text(_) => None,
        })
        .collect();
    for (at, field) in fields.iter().enumerate() {
        let letter = field.letter();
        if fields[..at].contains(field) {
            return Err(format!("%{letter} comes twice: say it once"));
        }
        match kind {
            Moment::Date if !field.is_of_day() => return Err(format!("%{letter} is of times, and a day has none")),
            Moment::Time { .. } if field.is_of_day() => {
                return Err(format!("%{letter} is of days, and a time has none"));
            }
            _ => {}
        }
    }
    let has = |field: Field| fields.contains(&field);
    if has(Year) && has(YearOfCentury) {
        return Err("%Y and %y both say the year: write one of them".to_owned());
    }
    if !matches!(kind, Moment::Time { .. }) {
        if !has(Year) && !has(YearOfCentury) {
            return Err("it leaves open the year: write %Y or %y".to_owned());
        }
        let has_month = has(Month) || has(MonthName) || has(MonthShort);
        if !(has(DayOfYear) || has_month && has(Day)) {
            return Err("it leaves open the day: write %m, %B or %b with %d, or %j".to_owned());
        }
    }
    if !matches!(kind, Moment::Date) {
        if !(has(Hour) || has(HourOfHalf) && has(Half)) {
            return Err("it leaves open the hour: write %H, or %I with %p".to_owned());
        }
        for (finer, coarser) in [(Second, Minute), (Microsecond, Second)] {
            if has(finer) && !has(coarser) {
                let (finer, coarser) = (finer.letter(), coarser.letter());
                return Err(format!("it has %{finer} without %{coarser}: write both"));
            }
        }
    }
    for both in pieces.windows(2) {
        let [Piece::Field { field, is_padded: false }, next] = both else { continue };
        let is_digit = match next {
            Piece::Text(text) => text.starts_with(|first: char| first.is_ascii_digit()),
            Piece::Field { field, .. } => field.digits() > 0,
        };
        if is_digit {
            let letter = field.letter();
            return Err(format!("a digit may follow %-{letter}, so that its texts are ambiguous: write %{letter}"));
        }
    }
    Ok(())
}

/// Years that have the same days, as far as a format and its bounds tell.
struct YearClass {
    year: u16,
    /// Weekday of January 1, counted from Monday.
    weekday: u32,
    years: Vec<u16>,
}

/// A day of all years of a class.
#[derive(Clone, Copy)]
struct DayOf {
    class: u32,
    month: u32,
    day: u32,
    /// In the year, from 1.
    number: u32,
}

/// Moments that are still possible before a piece.
#[derive(Clone)]
struct Candidates {
    days: Vec<DayOf>,
    hours: Vec<u32>,
    /// Minutes, seconds and microseconds.
    rest: [(u32, u32); 3],
}

/// Key of the remaining output for the moments that are left.
type Key = (usize, Vec<u32>, Vec<u32>, [(u32, u32); 3]);

struct Finder<'f> {
    format: &'f MomentFormat,
    classes: Vec<YearClass>,
    /// Nodes by their keys; the last is where a text ends.
    known: HashMap<Key, usize>,
    nodes: Vec<(usize, Candidates)>,
    /// Automata of the texts of an edge, because different edges often have the same texts.
    texts: HashMap<Vec<String>, Automaton>,
    /// Bytes of the automata of all edges.
    bytes: usize,
}

/// The texts of a format that stand for moments of a range.
///
/// # Errors
/// None is in the range; more than an automaton holds.
pub(super) fn automaton(format: &MomentFormat, range: &Range) -> Result<Automaton, RegularError> {
    let mut finder = Finder {
        format,
        classes: Vec::new(),
        known: HashMap::new(),
        nodes: Vec::new(),
        texts: HashMap::new(),
        bytes: 0,
    };
    let mut roots = Vec::new();
    for (days, hours, rest) in finder.pieces_of(range) {
        if let Some(left) = Candidates::new(days, hours, rest, format) {
            roots.push(finder.number(0, left));
        }
    }
    roots.sort_unstable();
    roots.dedup();
    // Of each node: texts, and the node that they lead to.
    let mut edges: Vec<Vec<(Automaton, usize)>> = Vec::new();
    while let Some((at, left)) = finder.nodes.get(edges.len()).cloned() {
        spend(left.days.len() + left.hours.len() + 1)?;
        // Little of it becomes one: what is too large now will be so later.
        if finder.bytes > LIMITS.bytes {
            return Err(AutomatonError::TooLarge { limit: LIMITS.bytes }.into());
        }
        edges.push(if at == format.pieces.len() { Vec::new() } else { finder.edges(at, &left)? });
    }
    let mut parts = Parts::empty();
    let mut of_node: Vec<Vec<u32>> = Vec::new();
    for (node, edges) in edges.iter().enumerate() {
        let mut own = Vec::new();
        for (texts, _) in edges {
            let texts = Factor::Automaton(texts.clone());
            own.extend(if roots.contains(&node) { parts.begin(&texts) } else { parts.add(&[], &texts) }.1);
        }
        of_node.push(own);
    }
    for (node, edges) in edges.iter().enumerate() {
        for (part, (_, to)) in of_node[node].iter().zip(edges) {
            if finder.nodes[*to].0 < format.pieces.len() {
                parts.goes_on(&[*part]);
                parts.follow(&[*part], &of_node[*to]);
            }
        }
    }
    if roots.is_empty() {
        return Err(range.none());
    }
    parts.determinise(LIMITS)
}

impl Candidates {
    /// `None` where there are none: what a format leaves out is 0.
    fn new(days: Vec<DayOf>, hours: RangeInclusive<u32>, rest: [(u32, u32); 3], format: &MomentFormat) -> Option<Self> {
        let mut written = rest;
        for (field, range) in [Minute, Second, Microsecond].into_iter().zip(&mut written) {
            if !format.has(&[field]) {
                if range.0 > 0 {
                    return None;
                }
                *range = (0, 0);
            }
        }
        (!days.is_empty()).then(|| Self { days, hours: hours.collect(), rest: written })
    }
}

impl Finder<'_> {
    /// Days, hours, and minutes, seconds and microseconds, whose every combination is in a range.
    #[allow(clippy::type_complexity)]
    fn pieces_of(&mut self, range: &Range) -> Vec<(Vec<DayOf>, RangeInclusive<u32>, [(u32, u32); 3])> {
        let mut pieces = Vec::new();
        for (first, last, from, to) in range.days_and_times() {
            let days = self.days(first, last, range);
            for [hours, rest @ ..] in boxes(from, to) {
                pieces.push((days.clone(), hours.0..=hours.1, rest));
            }
        }
        pieces
    }

    /// Days from one to another; of a time, any one.
    fn days(&mut self, first: date::Day, last: date::Day, range: &Range) -> Vec<DayOf> {
        let with_weekday = self.format.has(&[Weekday, WeekdayShort]);
        let of_century = self.format.has(&[YearOfCentury]);
        if self.classes.is_empty() {
            let mut known: HashMap<(bool, u32, bool, bool), usize> = HashMap::new();
            let (from, to) = range.years();
            for year in from..=to {
                if of_century && !OF_CENTURY.contains(&year) {
                    continue;
                }
                let weekday = if with_weekday { date::weekday_of_january(u32::from(year)) } else { 0 };
                let key = (date::days(u32::from(year), 2) == 29, weekday, year == from, year == to);
                let class = *known.entry(key).or_insert(self.classes.len());
                if class == self.classes.len() {
                    self.classes.push(YearClass { year, weekday, years: Vec::new() });
                }
                self.classes[class].years.push(year);
            }
        }
        let mut found = Vec::new();
        for (class, of) in self.classes.iter().enumerate() {
            let year = u32::from(of.year);
            let all = (1..=12).flat_map(|month| (1..=days(year, month)).map(move |day| (month, day)));
            for (number, (month, day)) in (1..).zip(all) {
                // Years of one class lie alike, but for the first and the last, which stand alone.
                if (first..=last).contains(&(of.year, month as u8, day as u8)) {
                    found.push(DayOf { class: class as u32, month, day, number });
                }
            }
        }
        found
    }

    /// By which a directive tells days apart.
    fn of_day(&self, field: Field, day: &DayOf) -> u32 {
        match field {
            Year | YearOfCentury => day.class,
            Month => day.month,
            MonthName | MonthShort => day.month - 1,
            Day => day.day,
            DayOfYear => day.number,
            _ => (self.classes[day.class as usize].weekday + day.number - 1) % 7,
        }
    }

    fn of_hour(field: Field, hour: u32) -> u32 {
        match field {
            HourOfHalf => (hour + 11) % 12 + 1,
            Half => hour / 12,
            _ => hour,
        }
    }

    /// Returns the node of the moments that are left: moments that the rest of the format does not tell apart count
    /// once.
    fn number(&mut self, at: usize, mut left: Candidates) -> usize {
        let later: Vec<Field> = self.format.pieces[at..]
            .iter()
            .filter_map(|piece| match piece {
                Piece::Field { field, .. } => Some(*field),
                Piece::Text(_) => None,
            })
            .collect();
        let of_days: Vec<Field> = later.iter().copied().filter(|field| field.is_of_day()).collect();
        let of_hours: Vec<Field> = later.iter().copied().filter(|field| field.is_of_hour()).collect();
        let mut told: HashMap<Vec<u32>, DayOf> = HashMap::new();
        for day in &left.days {
            told.entry(of_days.iter().map(|&field| self.of_day(field, day)).collect()).or_insert(*day);
        }
        let mut told: Vec<(Vec<u32>, DayOf)> = told.into_iter().collect();
        told.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        left.days = told.iter().map(|(_, day)| *day).collect();
        let mut hours: Vec<(Vec<u32>, u32)> = left
            .hours
            .iter()
            .map(|&hour| (of_hours.iter().map(|&field| Self::of_hour(field, hour)).collect(), hour))
            .collect();
        hours.sort_unstable();
        hours.dedup_by(|one, other| one.0 == other.0);
        left.hours = hours.iter().map(|(_, hour)| *hour).collect();
        for (field, range) in [Minute, Second, Microsecond].into_iter().zip(&mut left.rest) {
            if !later.contains(&field) {
                *range = (0, 0);
            }
        }
        let flat = |told: Vec<Vec<u32>>| told.concat();
        let days = flat(told.into_iter().map(|(told, _)| told).collect());
        let key = (at, days, flat(hours.into_iter().map(|(told, _)| told).collect()), left.rest);
        *self.known.entry(key).or_insert_with(|| {
            self.nodes.push((at, left));
            self.nodes.len() - 1
        })
    }

    fn of_texts(&mut self, mut texts: Vec<String>) -> Result<Automaton, RegularError> {
        texts.sort_unstable();
        texts.dedup();
        let made = if let Some(known) = self.texts.get(&texts) {
            known.clone()
        } else {
            let made = of_texts(&texts)?;
            self.texts.insert(texts, made.clone());
            made
        };
        self.bytes += made.nbytes();
        Ok(made)
    }

    /// Texts of a piece, and where they lead.
    fn edges(&mut self, at: usize, left: &Candidates) -> Result<Vec<(Automaton, usize)>, RegularError> {
        let (field, is_padded) = match &self.format.pieces[at] {
            Piece::Text(text) => {
                let texts = self.of_texts(vec![text.clone()])?;
                return Ok(vec![(texts, self.number(at + 1, left.clone()))]);
            }
            Piece::Field { field, is_padded } => (*field, *is_padded),
        };
        // What it says, and what is left where it says that.
        let mut said: Vec<(u32, Candidates)> = Vec::new();
        if field.is_of_day() {
            let mut by: HashMap<u32, Vec<DayOf>> = HashMap::new();
            for day in &left.days {
                by.entry(self.of_day(field, day)).or_default().push(*day);
            }
            said.extend(by.into_iter().map(|(value, days)| (value, Candidates { days, ..left.clone() })));
        } else if field.is_of_hour() {
            let mut by: HashMap<u32, Vec<u32>> = HashMap::new();
            for &hour in &left.hours {
                by.entry(Self::of_hour(field, hour)).or_default().push(hour);
            }
            said.extend(by.into_iter().map(|(value, hours)| (value, Candidates { hours, ..left.clone() })));
        } else {
            let range = left.rest[[Minute, Second, Microsecond].iter().position(|of| *of == field).unwrap_or_default()];
            let to = self.number(at + 1, left.clone());
            if field == Microsecond {
                return Ok(vec![(of_digits(range, field.digits())?, to)]);
            }
            let texts = (range.0..=range.1).map(|value| field.write_value(value, is_padded)).collect();
            return Ok(vec![(self.of_texts(texts)?, to)]);
        }
        said.sort_unstable_by_key(|(value, _)| *value);
        let mut leading: Vec<(usize, Vec<String>)> = Vec::new();
        for (value, left) in said {
            let to = self.number(at + 1, left);
            let texts: Vec<String> = match field {
                Year => self.classes[value as usize].years.iter().map(|year| format!("{year:04}")).collect(),
                YearOfCentury => {
                    let years = self.classes[value as usize].years.iter().map(|year| u32::from(*year) % 100);
                    years.map(|year| field.write_value(year, is_padded)).collect()
                }
                _ => vec![field.write_value(value, is_padded)],
            };
            match leading.iter_mut().find(|(known, _)| *known == to) {
                Some((_, known)) => known.extend(texts),
                None => leading.push((to, texts)),
            }
        }
        leading.into_iter().map(|(to, texts)| Ok((self.of_texts(texts)?, to))).collect()
    }
}

/// Times from one to another, both included, as boxes: of hours, minutes, seconds and microseconds.
fn boxes(from: [u32; 4], to: [u32; 4]) -> Vec<[(u32, u32); 4]> {
    const MOST: [u32; 4] = [23, 59, 59, 999_999];
    let mut found = Vec::new();
    // Parts that are known, and whether what comes is bounded by either.
    let mut open = vec![(Vec::<(u32, u32)>::new(), true, true)];
    while let Some((known, is_first, is_last)) = open.pop() {
        let at = known.len();
        let with = |range: (u32, u32)| known.iter().copied().chain([range]).collect::<Vec<_>>();
        if at == from.len() || !(is_first || is_last) {
            let full = MOST[at..].iter().map(|&most| (0, most));
            let whole: Vec<(u32, u32)> = known.iter().copied().chain(full).collect();
            found.extend(<[(u32, u32); 4]>::try_from(whole));
            continue;
        }
        let (low, high) = (if is_first { from[at] } else { 0 }, if is_last { to[at] } else { MOST[at] });
        if low == high && is_first && is_last {
            open.push((with((low, high)), true, true));
            continue;
        }
        if is_first {
            open.push((with((low, low)), true, false));
        }
        if is_last {
            open.push((with((high, high)), false, true));
        }
        let between = (low + u32::from(is_first), high.wrapping_sub(u32::from(is_last)));
        if high >= u32::from(is_last) && between.0 <= between.1 {
            open.push((with(between), false, false));
        }
    }
    found
}

/// These texts, which are sorted.
fn of_texts(texts: &[String]) -> Result<Automaton, RegularError> {
    let text = |at: u32| texts[at as usize].as_bytes();
    let mut own = [false; 256];
    for byte in texts.iter().flat_map(|text| text.bytes()) {
        own[usize::from(byte)] = true;
    }
    let classes = Classes::from_key(|byte| own[usize::from(byte)].then_some(byte));
    // Texts that begin with what was read, and how much that was.
    let step = |&(from, to, depth): &(u32, u32, u32), byte: u8| {
        let range = &texts[from as usize..to as usize];
        let at = |text: &String| text.as_bytes().get(depth as usize).copied();
        let low = from + range.partition_point(|text| at(text) < Some(byte)) as u32;
        let high = from + range.partition_point(|text| at(text) <= Some(byte)) as u32;
        (low < high).then_some((low, high, depth + 1))
    };
    let end = |&(from, _, depth): &(u32, u32, u32)| u32::from(text(from).len() == depth as usize);
    let start = (0, texts.len() as u32, 0);
    let table = Table::explore(&classes, start, LIMITS, |_| 0, step, end)?;
    Ok(Automaton::of_table(table)?)
}

/// Numbers of a range with so many digits.
fn of_digits((low, high): (u32, u32), width: usize) -> Result<Automaton, RegularError> {
    let written = |value: u32| format!("{value:0width$}").into_bytes();
    let (low, high) = (written(low), written(high));
    let step = |&(at, is_low, is_high): &(usize, bool, bool), byte: u8| {
        let (least, most) = (low.get(at)?, high.get(at)?);
        let inside = byte.is_ascii_digit() && !(is_low && byte < *least) && !(is_high && byte > *most);
        inside.then_some((at + 1, is_low && byte == *least, is_high && byte == *most))
    };
    let classes = Classes::from_key(|byte| byte.is_ascii_digit().then_some(byte));
    let end = |&(at, _, _): &(usize, bool, bool)| u32::from(at == width);
    let table = Table::explore(&classes, (0, true, true), LIMITS, |_| 0, step, end)?;
    Ok(Automaton::of_table(table)?)
}

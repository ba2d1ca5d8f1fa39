//! Numbers with fractions in a range, as an automaton that compares digits with both bounds while it reads.

use super::{NumberOptions, RegularError};
use crate::automaton::table::{Classes, Table};
use crate::automaton::{Automaton, AutomatonLimits};
use std::cmp::Ordering;
use std::fmt;

/// Bound of a range of numbers, exact to the last digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumberBound {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: Box<str>,
    /// Digits after it, without trailing zeros.
    fraction: Box<str>,
    /// True if the bound is exclusive.
    excluded: bool,
}

impl fmt::Display for NumberBound {
    /// In decimal, without an exponent; what is left out is not said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (minus, whole) =
            (if self.negative { "-" } else { "" }, if self.whole.is_empty() { "0" } else { &self.whole });
        let point = if self.fraction.is_empty() { "" } else { "." };
        write!(f, "{minus}{whole}{point}{}", self.fraction)
    }
}

/// Exponents that a bound may have: beyond that it has more digits than anybody writes.
const MOST_EXPONENT: i64 = 400;

impl NumberBound {
    /// Reads a bound as JSON writes it, or as programs print it: `5`, `-0.25`, `1e-7`, `1E+3`.
    ///
    /// # Errors
    /// The text is not such a number, or its exponent is beyond 400.
    pub fn read(number: &str, excluded: bool) -> Result<Self, RegularError> {
        let no_number = || RegularError::NoNumber { given: number.to_owned() };
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let size = number.strip_prefix('-').unwrap_or(number);
        let (digits, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let exponent_digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if ![whole, fraction, exponent_digits].into_iter().all(all_digits) {
            return Err(no_number());
        }
        let exponent: i64 = exponent.parse().map_err(|_| no_number())?;
        if exponent.abs() > MOST_EXPONENT { Err(no_number()) } else { Ok(Self::new(number, excluded)) }
    }

    /// Builds a bound from a JSON number; exponents beyond 400 count as 400.
    pub fn new(number: &str, excluded: bool) -> Self {
        let negative = number.starts_with('-');
        let number = number.trim_start_matches('-');
        let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let exponent: i64 = exponent.parse().unwrap_or(0).clamp(-MOST_EXPONENT, MOST_EXPONENT);
        let point = whole.len() as i64 + exponent;
        let digits = format!("{whole}{fraction}");
        let (whole, fraction) = if point <= 0 {
            (String::new(), "0".repeat(-point as usize) + &digits)
        } else if (point as usize) < digits.len() {
            (digits[..point as usize].to_owned(), digits[point as usize..].to_owned())
        } else {
            (digits.clone() + &"0".repeat(point as usize - digits.len()), String::new())
        };
        let (whole, fraction) = (whole.trim_start_matches('0').into(), fraction.trim_end_matches('0').into());
        let mut bound = Self { negative, whole, fraction, excluded };
        // There is no negative zero.
        bound.negative &= !bound.is_zero();
        bound
    }

    /// Digits before the point and after it, those that a number as near to zero as this one needs.
    fn digits(&self) -> (usize, usize) {
        (self.whole.len(), self.fraction.len())
    }

    fn zero(excluded: bool) -> Self {
        Self { negative: false, whole: "".into(), fraction: "".into(), excluded }
    }

    /// The same bound, whatever it leaves out, as a step of `digits` times a power of ten: the digits, and how many of
    /// them stand after the point. `None` for a step that is 0, or that is too long for an automaton.
    fn step(&self) -> Option<(u32, usize)> {
        const MOST: u32 = 10_000;
        let digits: u32 = format!("{}{}", self.whole, self.fraction).parse().ok()?;
        (1..=MOST).contains(&digits).then_some((digits, self.fraction.len()))
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// Compares the numbers of two bounds, ignoring exclusivity.
    pub fn compare(&self, other: &Self) -> Ordering {
        let size = |bound: &Self| (bound.whole.len(), bound.whole.clone(), bound.fraction.clone());
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => size(self).cmp(&size(other)),
            (true, true) => size(other).cmp(&size(self)),
        }
    }

    /// Returns whether some number lies between two bounds.
    pub fn leaves_room_to(&self, high: &Self) -> bool {
        match self.compare(high) {
            Ordering::Less => true,
            Ordering::Equal => !self.excluded && !high.excluded,
            Ordering::Greater => false,
        }
    }

    /// Returns the smallest integer in a range with this lower bound.
    pub fn first_integer(&self) -> i128 {
        let away = i128::from(!self.negative && !self.fraction.is_empty());
        self.towards_zero() + away + self.step_off()
    }

    /// Returns the greatest integer in a range with this upper bound.
    pub fn last_integer(&self) -> i128 {
        let away = i128::from(self.negative && !self.fraction.is_empty());
        self.towards_zero() - away - self.step_off()
    }

    fn towards_zero(&self) -> i128 {
        let most = i128::MAX / 4;
        let whole = if self.whole.is_empty() { 0 } else { self.whole.parse().unwrap_or(most).min(most) };
        if self.negative { -whole } else { whole }
    }

    fn step_off(&self) -> i128 {
        i128::from(self.fraction.is_empty() && self.excluded)
    }
}

impl NumberOptions {
    /// Returns digit limits for a range: the defaults, raised to the digits of its bounds; no exponents.
    #[must_use]
    pub fn of_range(low: Option<&NumberBound>, high: Option<&NumberBound>) -> Self {
        let usual = Self::default().exponent_digits(0);
        low.into_iter().chain(high).map(NumberBound::digits).fold(usual, |most, (whole, fraction)| {
            let (whole, fraction) = (whole as u32, fraction as u32);
            most.integer_digits(most.integer_digits.max(whole)).fraction_digits(most.fraction_digits.max(fraction))
        })
    }
}

/// Order of the read digits relative to a bound, without its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum BoundOrder {
    Start,
    Minus,
    /// Digits before the point, 0 of them for a zero, and how they compare with the same digits of each bound.
    Whole {
        negative: bool,
        digits: usize,
        low: Ordering,
        high: Ordering,
        rest: u32,
    },
    /// Digits after it, and how all of it compares.
    Fraction {
        negative: bool,
        digits: usize,
        low: Ordering,
        high: Ordering,
        rest: u32,
    },
}

/// Multiples of a number: what is left of the digits so far when they are divided by its digits.
#[derive(Debug, Clone, Copy)]
struct Step {
    digits: u32,
    /// Number of fraction digits.
    fraction: usize,
}

impl Step {
    fn read(self, rest: u32, byte: u8) -> u32 {
        (u64::from(rest) * 10 + u64::from(byte - b'0')).rem_euclid(u64::from(self.digits)) as u32
    }

    /// After so many digits behind the point; `None` for a number that is not a multiple.
    fn read_fraction(self, rest: u32, digits: usize, byte: u8) -> Option<u32> {
        if digits < self.fraction { Some(self.read(rest, byte)) } else { (byte == b'0').then_some(rest) }
    }

    fn is_end(self, rest: u32, digits: usize) -> bool {
        // Any number is a multiple of 1 with digits without end.
        self.digits == 1 || (digits..self.fraction).fold(rest, |rest, _| self.read(rest, b'0')) == 0
    }
}

/// Numbers without sign between two bounds.
struct Magnitudes<'b> {
    low: &'b NumberBound,
    high: Option<&'b NumberBound>,
}

impl Magnitudes<'_> {
    fn has(&self, low: Ordering, high: Option<Ordering>) -> bool {
        let above = low.is_gt() || (low.is_eq() && !self.low.excluded);
        let below = |order: Ordering, bound: &NumberBound| order.is_lt() || (order.is_eq() && !bound.excluded);
        above && self.high.zip(high).is_none_or(|(bound, order)| below(order, bound))
    }
}

/// Compares the digits before the point with a bound, if no more follow.
fn whole_order(digits: usize, known: Ordering, bound: &NumberBound) -> Ordering {
    digits.cmp(&bound.whole.len()).then(known)
}

/// Compares a number that ended with a bound: a remaining fraction makes the bound the greater.
fn compare_end(order: Ordering, digits: usize, bound: &NumberBound) -> Ordering {
    order.then(if digits < bound.fraction.len() { Ordering::Less } else { Ordering::Equal })
}

/// The numbers from `low` to `high`, written without exponents and without `-0`; of them the multiples of a number.
pub(super) fn range_automaton(
    low: Option<&NumberBound>,
    high: Option<&NumberBound>,
    multiple_of: Option<&NumberBound>,
    options: NumberOptions,
) -> Result<Automaton, RegularError> {
    if options.integer_digits == 0 {
        return Err(RegularError::NoDigits);
    }
    if options.exponent_digits > 0 {
        return Err(RegularError::Exponents);
    }
    let step_of = |number: &NumberBound| number.step().map(|(digits, fraction)| Step { digits, fraction });
    let every = multiple_of.map(|number| step_of(number).ok_or(RegularError::Step)).transpose()?;
    let every = every.unwrap_or(Step { digits: 1, fraction: usize::MAX });
    let (zero, above_zero) = (NumberBound::zero(false), NumberBound::zero(true));
    let is_negative = |bound: &&NumberBound| bound.negative;
    let positives = (!high.is_some_and(|high| high.negative))
        .then(|| Magnitudes { low: low.filter(|low| !low.negative).unwrap_or(&zero), high });
    let negatives = low
        .is_none_or(|low| low.negative)
        .then(|| Magnitudes { low: high.filter(is_negative).unwrap_or(&above_zero), high: low });
    let of = |negative: bool| if negative { negatives.as_ref() } else { positives.as_ref() };
    let (most_whole, most_fraction) = (options.integer_digits as usize, options.fraction_digits as usize);
    let with = |known: Ordering, digits: usize, part: &str, byte: u8| {
        known.then(byte.cmp(part.as_bytes().get(digits).unwrap_or(&b'0')))
    };
    let equal = Ordering::Equal;
    let whole = |all: &Magnitudes<'_>, negative, digits: usize, low, high, rest, byte: u8| {
        // Beyond a bound's digits the count decides.
        let read = |known: Ordering, bound: &NumberBound| match bound.whole.as_bytes().get(digits) {
            Some(own) => known.then(byte.cmp(own)),
            None => known,
        };
        let (low, high) = (read(low, all.low), all.high.map_or(equal, |bound| read(high, bound)));
        let most = all.high.map_or(most_whole, |bound| bound.whole.len().min(most_whole));
        let rest = every.read(rest, byte);
        (digits < most).then_some(BoundOrder::Whole { negative, digits: digits + 1, low, high, rest })
    };
    let step = |at: &BoundOrder, byte: u8| match (*at, byte) {
        (BoundOrder::Start, b'-') => negatives.as_ref().map(|_| BoundOrder::Minus),
        (BoundOrder::Start | BoundOrder::Minus, b'0') => {
            let negative = *at == BoundOrder::Minus;
            of(negative).map(|_| BoundOrder::Whole { negative, digits: 0, low: equal, high: equal, rest: 0 })
        }
        (BoundOrder::Start | BoundOrder::Minus, b'1'..=b'9') => {
            let negative = *at == BoundOrder::Minus;
            whole(of(negative)?, negative, 0, equal, equal, 0, byte)
        }
        (BoundOrder::Whole { negative, digits, low, high, rest }, b'0'..=b'9') if digits > 0 => {
            whole(of(negative)?, negative, digits, low, high, rest, byte)
        }
        (BoundOrder::Whole { negative, digits, low, high, rest }, b'.') if most_fraction > 0 => {
            let all = of(negative)?;
            let low = whole_order(digits, low, all.low);
            let high = all.high.map_or(equal, |bound| whole_order(digits, high, bound));
            Some(BoundOrder::Fraction { negative, digits: 0, low, high, rest })
        }
        (BoundOrder::Fraction { negative, digits, low, high, rest }, b'0'..=b'9') if digits < most_fraction => {
            let rest = every.read_fraction(rest, digits, byte)?;
            let all = of(negative)?;
            let low = with(low, digits, &all.low.fraction, byte);
            let high = all.high.map_or(equal, |bound| with(high, digits, &bound.fraction, byte));
            Some(BoundOrder::Fraction { negative, digits: digits + 1, low, high, rest })
        }
        _ => None,
    };
    let end = |at: &BoundOrder| {
        let (negative, low, high, read, rest, is_fraction) = match *at {
            BoundOrder::Start | BoundOrder::Minus | BoundOrder::Fraction { digits: 0, .. } => return 0,
            BoundOrder::Whole { negative, digits, low, high, rest } => (negative, low, high, digits, rest, false),
            BoundOrder::Fraction { negative, digits, low, high, rest } => (negative, low, high, digits, rest, true),
        };
        if !every.is_end(rest, if is_fraction { read } else { 0 }) {
            return 0;
        }
        let order = |known: Ordering, bound: &NumberBound| {
            let (known, read) = if is_fraction { (known, read) } else { (whole_order(read, known, bound), 0) };
            compare_end(known, read, bound)
        };
        let has = |all: &Magnitudes<'_>| all.has(order(low, all.low), all.high.map(|bound| order(high, bound)));
        u32::from(of(negative).is_some_and(has))
    };
    let classes = Classes::from_key(|byte| if b"-.0123456789".contains(&byte) { byte } else { 0 });
    let table = Table::explore(&classes, BoundOrder::Start, AutomatonLimits::default(), |_| 0, step, end)?;
    Ok(Automaton::of_table(table)?)
}

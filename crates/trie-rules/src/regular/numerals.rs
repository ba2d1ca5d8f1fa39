//! Integers of a range and JSON numbers, as automata.

use super::RegularError;
use crate::automaton::table::{Classes, Table};
use crate::automaton::{Automaton, AutomatonLimits};
use std::cmp::Ordering;

/// Order of the read digits relative to the beginning of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Read {
    negative: bool,
    /// Digits, at most one more than the longer bound has: then they compare alike.
    digits: usize,
    with_low: Ordering,
    with_high: Ordering,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Start,
    Minus,
    Zero,
    Digits(Read),
}

/// Numbers without sign, from one that is at least 1 to one that may be missing.
struct Magnitudes {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Magnitudes {
    /// `None` if there are none.
    fn new(low: u128, high: Option<u128>) -> Option<Self> {
        let low = low.max(1);
        let some = high.is_none_or(|high| low <= high);
        let digits = |number: u128| number.to_string().into_bytes();
        some.then(|| Self { low: digits(low), high: high.map(digits) })
    }

    fn longest(&self) -> usize {
        self.high.as_ref().map_or(self.low.len(), Vec::len)
    }

    fn read(&self, before: Option<Read>, negative: bool, byte: u8) -> Read {
        let equal = Ordering::Equal;
        let before = before.unwrap_or(Read { negative, digits: 0, with_low: equal, with_high: equal });
        let with = |known: Ordering, bound: &[u8]| match bound.get(before.digits) {
            Some(own) => known.then(byte.cmp(own)),
            None => known,
        };
        Read {
            negative,
            digits: (before.digits + 1).min(self.longest() + 1),
            with_low: with(before.with_low, &self.low),
            with_high: self.high.as_ref().map_or(equal, |high| with(before.with_high, high)),
        }
    }

    fn has(&self, read: Read) -> bool {
        let low = read.digits.cmp(&self.low.len()).then(read.with_low);
        let high = self.high.as_ref().map(|high| read.digits.cmp(&high.len()).then(read.with_high));
        low != Ordering::Less && high != Some(Ordering::Greater)
    }
}

/// Exactly the numbers from `low` to `high`, written without leading zeros and without `-0`.
pub(super) fn integer(low: Option<i128>, high: Option<i128>) -> Result<Automaton, RegularError> {
    if let (Some(low), Some(high)) = (low, high)
        && low > high
    {
        return Err(RegularError::EmptyRange { low, high });
    }
    let negative = |number: i128| number < 0;
    let magnitude = |number: Option<i128>| number.map(i128::unsigned_abs);
    let positives = if high.is_some_and(negative) {
        None
    } else {
        Magnitudes::new(magnitude(low.filter(|low| !negative(*low))).unwrap_or(1), magnitude(high))
    };
    let negatives = if low.is_some_and(|low| !negative(low)) {
        None
    } else {
        Magnitudes::new(magnitude(high.filter(|high| negative(*high))).unwrap_or(1), magnitude(low))
    };
    let zero = low.is_none_or(|low| low <= 0) && !high.is_some_and(negative);
    let of = |negative: bool| if negative { &negatives } else { &positives };
    let step = |state: &State, byte: u8| match (state, byte) {
        (State::Start, b'-') => negatives.as_ref().map(|_| State::Minus),
        (State::Start, b'0') => zero.then_some(State::Zero),
        (State::Start | State::Minus, b'1'..=b'9') => {
            let negative = *state == State::Minus;
            Some(State::Digits(of(negative).as_ref()?.read(None, negative, byte)))
        }
        (State::Digits(read), b'0'..=b'9') => {
            let after = of(read.negative).as_ref()?.read(Some(*read), read.negative, byte);
            // More digits than the longest: the range is open, or nothing fits.
            let fits = of(read.negative).as_ref()?.high.as_ref().is_none_or(|high| after.digits <= high.len());
            fits.then_some(State::Digits(after))
        }
        _ => None,
    };
    let end = |state: &State| match state {
        State::Start | State::Minus => 0,
        State::Zero => 1,
        State::Digits(read) => u32::from(of(read.negative).as_ref().is_some_and(|all| all.has(*read))),
    };
    let classes = Classes::from_key(|byte| if matches!(byte, b'-' | b'0'..=b'9') { byte } else { 0 });
    let table = Table::explore(&classes, State::Start, AutomatonLimits::default(), |_| 0, step, end)?;
    Ok(Automaton::of_table(table)?)
}

/// Limits on the digits of each part of a JSON number, so that a model cannot write digits for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NumberOptions {
    /// Maximum number of digits before the point; at least 1.
    pub integer_digits: u32,
    /// Maximum number of digits after the point; 0 for numbers without a point.
    pub fraction_digits: u32,
    /// Maximum number of digits of the exponent; 0 for numbers without an exponent.
    pub exponent_digits: u32,
}

impl Default for NumberOptions {
    /// 20 before the point, which is every integer of 64 bits; 17 after it, which is every `f64` between 0.1 and 1;
    /// 2 in the exponent: all these numbers are finite as `f64`.
    fn default() -> Self {
        Self { integer_digits: 20, fraction_digits: 17, exponent_digits: 2 }
    }
}

impl NumberOptions {
    /// Sets the maximum number of digits before the point.
    #[must_use]
    pub const fn integer_digits(self, integer_digits: u32) -> Self {
        Self { integer_digits, ..self }
    }

    /// Sets the maximum number of digits after the point.
    #[must_use]
    pub const fn fraction_digits(self, fraction_digits: u32) -> Self {
        Self { fraction_digits, ..self }
    }

    /// Sets the maximum number of digits in the exponent.
    #[must_use]
    pub const fn exponent_digits(self, exponent_digits: u32) -> Self {
        Self { exponent_digits, ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Start,
    Minus,
    Zero,
    Integer(u32),
    Point,
    Fraction(u32),
    E,
    Sign,
    Exponent(u32),
}

pub(super) fn number(options: NumberOptions) -> Result<Automaton, RegularError> {
    let NumberOptions { integer_digits, fraction_digits, exponent_digits } = options;
    if integer_digits == 0 {
        return Err(RegularError::NoDigits);
    }
    let step = |part: &Part, byte: u8| match (*part, byte) {
        (Part::Start, b'-') => Some(Part::Minus),
        (Part::Start | Part::Minus, b'0') => Some(Part::Zero),
        (Part::Start | Part::Minus, b'1'..=b'9') => Some(Part::Integer(1)),
        (Part::Integer(n), b'0'..=b'9') if n < integer_digits => Some(Part::Integer(n + 1)),
        (Part::Zero | Part::Integer(_), b'.') if fraction_digits > 0 => Some(Part::Point),
        (Part::Point, b'0'..=b'9') => Some(Part::Fraction(1)),
        (Part::Fraction(n), b'0'..=b'9') if n < fraction_digits => Some(Part::Fraction(n + 1)),
        (Part::Zero | Part::Integer(_) | Part::Fraction(_), b'e' | b'E') if exponent_digits > 0 => Some(Part::E),
        (Part::E, b'+' | b'-') => Some(Part::Sign),
        (Part::E | Part::Sign, b'0'..=b'9') => Some(Part::Exponent(1)),
        (Part::Exponent(n), b'0'..=b'9') if n < exponent_digits => Some(Part::Exponent(n + 1)),
        _ => None,
    };
    let end =
        |part: &Part| u32::from(matches!(part, Part::Zero | Part::Integer(_) | Part::Fraction(_) | Part::Exponent(_)));
    let classes = Classes::from_key(|byte| if b"+-.eE0123456789".contains(&byte) { byte } else { 0 });
    let table = Table::explore(&classes, Part::Start, AutomatonLimits::default(), |_| 0, step, end)?;
    Ok(Automaton::of_table(table)?)
}

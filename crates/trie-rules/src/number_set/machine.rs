//! Numbers of a set as JSON writes them, byte by byte.
//!
//! While digits are read, the number is compared with each bound, and its remainder is kept for each step whose
//! multiples are in the set. A state continues only if more digits can complete a number of the set. To decide that,
//! the ranges that the bounds leave are searched for each possible number of digits before the point; one range is
//! usually so long that it contains every remainder.

use super::decimal::{Decimal, Step};
use super::{NumberError, NumberSet};
use std::fmt;
use std::sync::Arc;

/// Allowed spellings of numbers. A number belongs to a set by its value: if fractions are allowed, `1.0` is a whole
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct NumberSpelling {
    /// Allows a point, with trailing zeros behind it. Otherwise only whole numbers are written.
    pub fraction: bool,
    /// Allows exponents of up to three digits, and `-0` if every number is in the set. In any other set, at most 17
    /// digits may stand before an exponent; they begin a number of the set, or are all digits of one with an exponent.
    pub exponent: bool,
}

impl NumberSpelling {
    /// Sets the field `fraction`: allows points or not.
    #[must_use]
    pub const fn fraction(self, fraction: bool) -> Self {
        Self { fraction, ..self }
    }

    /// Sets the field `exponent`: allows exponents or not.
    #[must_use]
    pub const fn exponent(self, exponent: bool) -> Self {
        Self { exponent, ..self }
    }
}

/// Numbers of a [`NumberSet`], walked byte by byte as JSON writes them: no `+`, no zeros in front. Every state can be
/// completed; without a bound, digits may continue for ever. A clone costs one reference count.
///
/// ```
/// use trie_rules::{Decimal, NumberMachine, NumberSet, NumberSpelling};
///
/// let number = |text| Decimal::read(text).unwrap();
/// let range = NumberSet::full().at_least(&number("12"), false).at_most(&number("17"), true);
/// let set = range.multiple_of(&number("2.5"))?;
/// let machine = NumberMachine::new(&set, NumberSpelling::default().fraction(true))?.unwrap();
/// let after = |text: &str| text.bytes().try_fold(machine.start(), |state, byte| machine.step(&state, byte));
/// assert!(after("12.5").is_some_and(|state| machine.is_end(&state)) && after("15.0").is_some());
/// assert!(after("12").is_some_and(|state| !machine.is_end(&state)) && after("2").is_none() && after("17").is_none());
/// # Ok::<(), trie_rules::NumberError>(())
/// ```
#[derive(Clone)]
pub struct NumberMachine(Arc<NumberTables>);

struct NumberTables {
    spelling: NumberSpelling,
    /// True if every number is in it, however it is written.
    all: bool,
    /// Numbers that begin with a digit, and those that begin with a minus.
    sides: [Side; 2],
    /// The set, where exponents may come, but not all numbers.
    set: Option<NumberSet>,
    /// The powers of ten between which digits times a power may be in the set or not.
    powers: (i64, i64),
    /// Digits before the point that tell something of the bounds; more are greater than all.
    most_whole: u32,
    /// Digits behind it that tell something.
    most_fraction: u32,
    multiples: Multiples,
}

/// Numbers without their sign: bounds in order, and what is between them.
struct Side {
    points: Vec<Point>,
    /// For each gap before a point and for the one behind the last, true if its numbers are in the set, subject to
    /// multiples.
    gaps: Vec<bool>,
    /// Smallest and largest number of digits before the point; negative if zeros stand behind it.
    least: i64,
    most: i64,
}

struct Point {
    whole: Vec<u8>,
    fraction: Vec<u8>,
    /// True if it is in the set, subject to multiples.
    is_in: bool,
}

/// Multiples in units of the last digit that they have behind the point.
struct Multiples {
    /// Digits behind the point of a unit.
    digits: u32,
    /// All remainders are told modulo this.
    modulus: u64,
    /// Numbers are multiples of this many units; `None` where they need not be of any.
    step: Option<u64>,
    /// And of none of these.
    not: Vec<u64>,
    /// 10 to the power of each number of digits, modulo.
    powers: Vec<u64>,
}

/// State of a number in a [`NumberMachine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberState {
    part: Part,
    negative: bool,
    /// Number of significant digits in this part: a zero before the point does not count.
    digits: u32,
    /// Order of the read digits relative to each point: two bits for each.
    order: u128,
    /// All digits, those behind the point as far as units go, modulo.
    rest: u64,
    /// Digits before a possible exponent, or [`LONG`]; and the number of fraction digits.
    mantissa: u64,
    shift: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Start,
    Minus,
    Whole,
    Point,
    Fraction,
    /// A digit behind the units is not 0: the number is a multiple of nothing.
    Beyond,
    E,
    Sign,
    Exponent,
}

const EQUAL: u128 = 0;
const LESS: u128 = 1;
const GREATER: u128 = 2;
/// Points that two bits each are kept of.
const MOST_POINTS: usize = 64;
/// Digits of a bound.
const MOST_DIGITS: usize = 10_000;
/// Digits of an exponent: more are no number that anybody could write without.
const MOST_EXPONENT_DIGITS: u32 = 3;
/// A number with so many digits that no exponent may follow.
const LONG: u64 = u64::MAX;
/// The greatest number before an exponent.
const MOST_MANTISSA: u64 = 100_000_000_000_000_000;

impl fmt::Debug for NumberMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.0.sides.iter().map(|side| side.points.len()).sum::<usize>();
        let (modulus, spelling) = (self.0.multiples.modulus, self.0.spelling);
        f.debug_struct("NumberMachine")
            .field("points", &points)
            .field("modulus", &modulus)
            .field("spelling", &spelling)
            .finish()
    }
}

impl NumberMachine {
    /// Returns the machine of a set's numbers in this spelling; `None` if there are none.
    ///
    /// # Errors
    /// Bounds that are too long or too many; multiples with too many remainders.
    pub fn new(set: &NumberSet, spelling: NumberSpelling) -> Result<Option<Self>, NumberError> {
        let mut set = set.clone();
        let all = set.is_all() && spelling.fraction && spelling.exponent;
        if !spelling.fraction {
            set.narrow(Step::ONE)?;
        }
        let Some(multiples) = Multiples::new(&set)? else { return Ok(None) };
        let sides = [Side::new(&set, false)?, Side::new(&set, true)?];
        let points = || sides.iter().flat_map(|side| &side.points);
        let most_whole = points().map(|point| point.whole.len()).max().unwrap_or_default() as u32;
        let most_fraction = points().map(|point| point.fraction.len()).max().unwrap_or_default() as u32;
        let most_fraction = most_fraction.max(multiples.digits);
        let set = (spelling.exponent && !all).then_some(set);
        let powers = set.as_ref().map_or((0, 0), powers);
        let mut bounded = NumberTables { spelling, all, sides, set, powers, most_whole, most_fraction, multiples };
        bounded.multiples.count_powers(most_whole + most_fraction + 2);
        let machine = Self(Arc::new(bounded));
        let start = machine.start();
        let begins = (0..=9).any(|digit| machine.step(&start, b'0' + digit).is_some());
        Ok((begins || machine.step(&start, b'-').is_some()).then_some(machine))
    }

    /// Returns the state before the first byte.
    pub fn start(&self) -> NumberState {
        NumberState { part: Part::Start, negative: false, digits: 0, order: 0, rest: 0, mantissa: 0, shift: 0 }
    }

    /// Returns the state after one more byte; `None` if no number continues with it.
    pub fn step(&self, state: &NumberState, byte: u8) -> Option<NumberState> {
        let next = self.0.read(state, byte)?;
        self.0.completes(&next).then_some(next)
    }

    /// Returns whether a number ends here.
    pub fn is_end(&self, state: &NumberState) -> bool {
        self.0.ends(state)
    }
}

impl NumberTables {
    fn side(&self, state: &NumberState) -> &Side {
        &self.sides[usize::from(state.negative)]
    }

    fn read(&self, state: &NumberState, byte: u8) -> Option<NumberState> {
        let to = |part: Part| Some(NumberState { part, ..*state });
        match (state.part, byte) {
            (Part::Start, b'-') => Some(NumberState { part: Part::Minus, negative: true, ..*state }),
            (Part::Start | Part::Minus, b'0') => to(Part::Whole),
            (Part::Start | Part::Minus, b'1'..=b'9') => Some(self.whole_digit(state, byte - b'0')),
            (Part::Whole, b'0'..=b'9') if state.digits > 0 => Some(self.whole_digit(state, byte - b'0')),
            (Part::Whole, b'.') if self.spelling.fraction => {
                // Numbers with more digits before the point are greater.
                let points = self.side(state).points.iter().enumerate();
                let order = points.fold(state.order, |order, (at, point)| {
                    if point.whole.len() > state.digits as usize { with(order, at, LESS) } else { order }
                });
                Some(NumberState { part: Part::Point, digits: 0, order, ..*state })
            }
            (Part::Point | Part::Fraction | Part::Beyond, b'0'..=b'9') => self.fraction_digit(state, byte - b'0'),
            (Part::Whole | Part::Fraction, b'e' | b'E') if self.all => {
                Some(NumberState { part: Part::E, digits: 0, ..*state })
            }
            (Part::Whole | Part::Fraction | Part::Beyond, b'e' | b'E') if self.has_exponent(state) => {
                // Bounds are told by the set from here on: of the exponent, `rest` is the size and `order` the sign.
                Some(NumberState { part: Part::E, digits: 0, order: 0, rest: 0, ..*state })
            }
            (Part::E, b'+') => to(Part::Sign),
            (Part::E, b'-') => Some(NumberState { part: Part::Sign, order: u128::from(!self.all), ..*state }),
            (Part::E | Part::Sign | Part::Exponent, b'0'..=b'9') if state.digits < MOST_EXPONENT_DIGITS => {
                let rest = if self.all { state.rest } else { state.rest * 10 + u64::from(byte - b'0') };
                Some(NumberState { part: Part::Exponent, digits: state.digits + 1, rest, ..*state })
            }
            _ => None,
        }
    }

    fn whole_digit(&self, state: &NumberState, digit: u8) -> NumberState {
        let at = state.digits as usize;
        let points = self.side(state).points.iter().enumerate();
        let order = points.fold(state.order, |order, (number, point)| {
            let next = match (order >> (2 * number) & 3, point.whole.get(at)) {
                (_, None) => GREATER,
                (EQUAL, Some(own)) if digit > *own => GREATER,
                (EQUAL, Some(own)) if digit < *own => LESS,
                (known, _) => known,
            };
            with(order, number, next)
        });
        let digits = (state.digits + 1).min(self.most_whole + 1);
        let (mantissa, shift) = self.longer(state, digit, 0);
        let rest = self.multiples.read(state.rest, digit);
        NumberState { part: Part::Whole, digits, order, rest, mantissa, shift, ..*state }
    }

    /// The digits before an exponent with one more, so many of which stand behind the point.
    fn longer(&self, state: &NumberState, digit: u8, behind: u8) -> (u64, u8) {
        if self.set.is_none() || state.mantissa >= MOST_MANTISSA || state.shift > 100 {
            return (if self.set.is_none() { 0 } else { LONG }, 0);
        }
        (state.mantissa * 10 + u64::from(digit), state.shift + behind)
    }

    /// Returns whether one of the exponents that may still follow, or the one that was read, makes a number of the set.
    fn has_exponent(&self, state: &NumberState) -> bool {
        // Behind a point one digit more must come.
        let is_long = state.mantissa == LONG || (state.part == Part::Point && state.mantissa >= MOST_MANTISSA);
        if is_long || (state.negative && state.mantissa == 0) {
            return false;
        }
        let Some(set) = &self.set else { return false };
        let most = 10i64.pow(MOST_EXPONENT_DIGITS) - 1;
        let shift = i64::from(state.shift);
        let side = self.side(state);
        let digits = state.mantissa.checked_ilog10().map_or(0, i64::from) + 1;
        let is_in = |power: i64| {
            (state.mantissa == 0 || (side.least..=side.most).contains(&(digits + power)))
                && set.contains(&Decimal::from_scaled(state.negative, state.mantissa, power))
        };
        // Far powers are like those at the ends of what tells powers apart.
        let near = |exponent: i64| (exponent - shift).clamp(self.powers.0, self.powers.1);
        let one_of = |low: i64, high: i64| {
            let (low, high) = if state.order == 0 { (low, high) } else { (-high, -low) };
            (near(low)..=near(high)).any(is_in)
        };
        match state.part {
            Part::Exponent => {
                let exponent = state.rest as i64;
                (0..=MOST_EXPONENT_DIGITS - state.digits).any(|more| {
                    let tens = 10i64.pow(more);
                    one_of(exponent * tens, (exponent + 1) * tens - 1)
                })
            }
            Part::Sign => one_of(0, most),
            _ => (near(-most)..=near(most)).any(is_in),
        }
    }

    fn fraction_digit(&self, state: &NumberState, digit: u8) -> Option<NumberState> {
        let at = state.digits as usize;
        let points = self.side(state).points.iter().enumerate();
        let order = points.fold(state.order, |order, (number, point)| {
            let own = point.fraction.get(at).copied().unwrap_or_default();
            let next = match order >> (2 * number) & 3 {
                EQUAL if digit > own => GREATER,
                EQUAL if digit < own => LESS,
                known => known,
            };
            with(order, number, next)
        });
        let digits = (state.digits + 1).min(self.most_fraction + 1);
        let (mantissa, shift) = self.longer(state, digit, 1);
        let mut next = NumberState { part: Part::Fraction, digits, order, mantissa, shift, ..*state };
        if state.digits < self.multiples.digits {
            next.rest = self.multiples.read(state.rest, digit);
        } else if self.multiples.step.is_some() && digit != 0 && self.set.is_none() {
            // All multiples have zeros there.
            return None;
        } else if state.part == Part::Beyond || (self.multiples.has_some() && digit != 0) {
            (next.part, next.rest) = (Part::Beyond, 0);
        }
        Some(next)
    }

    /// Returns whether further digits complete a number of the set.
    fn completes(&self, state: &NumberState) -> bool {
        self.completes_plainly(state) || (state.part != Part::Start && self.has_exponent(state))
    }

    /// Returns whether it is complete without an exponent, unless one was begun.
    fn completes_plainly(&self, state: &NumberState) -> bool {
        match state.part {
            Part::Start => true,
            Part::Minus => {
                (0..=9).any(|digit| self.read(state, b'0' + digit).is_some_and(|next| self.completes(&next)))
            }
            Part::E | Part::Sign | Part::Exponent => self.all,
            _ if self.all => true,
            Part::Beyond if self.multiples.step.is_some() => false,
            // A zero, with nothing before the point.
            Part::Whole if state.digits == 0 => self.reaches(state, 0, 0),
            Part::Whole => {
                let side = self.side(state);
                let mut lengths = state.digits..=self.most_whole;
                // Behind the longest bound any digits may come.
                lengths.any(|length| self.reaches(state, length, length - state.digits)) || side.gaps[side.points.len()]
            }
            Part::Point | Part::Fraction | Part::Beyond => self.reaches(state, u32::MAX, 0),
        }
    }

    /// Returns the number of bounds that are below every continuation, and the number of bounds that begin with the
    /// digits read so far. `length` is the final number of digits before the point; `u32::MAX` is the number read so
    /// far.
    fn bounds_around(&self, state: &NumberState, length: u32) -> (usize, usize) {
        let (mut below, mut open) = (0, 0);
        for (at, point) in self.side(state).points.iter().enumerate() {
            let order = state.order >> (2 * at) & 3;
            let is_shorter = length != u32::MAX && point.whole.len() < length as usize;
            let is_longer = length != u32::MAX && point.whole.len() > length as usize;
            if is_shorter || (order == GREATER && !is_longer) {
                below += 1;
            } else if order == EQUAL && !is_longer {
                open += 1;
            }
        }
        (below, open)
    }

    /// Returns whether a number of the set has this prefix and so many digits before the point, `more` of which follow.
    fn reaches(&self, state: &NumberState, length: u32, more: u32) -> bool {
        let (below, open) = self.bounds_around(state, length);
        let side = self.side(state);
        let points = &side.points[below..below + open];
        if points.iter().any(|point| point.is_in) {
            return true;
        }
        let read = if length == u32::MAX { state.digits as usize } else { 0 };
        let Some(step) = self.multiples.step else {
            // Between two numbers there are others, which are multiples of nothing.
            let rest_is_zero = |point: &Point| {
                let whole =
                    if length == u32::MAX { &[][..] } else { &point.whole[point.whole.len() - more as usize..] };
                whole.iter().chain(point.fraction.iter().skip(read)).all(|&digit| digit == 0)
            };
            let is_open = |at: usize| at > 0 || points.first().is_none_or(|first| !rest_is_zero(first));
            return (0..=open).any(|at| side.gaps[below + at] && is_open(at));
        };
        // Units from the first number that begins so.
        let unit_digits = (self.multiples.digits as usize).saturating_sub(read);
        let count = more as usize + unit_digits;
        let digits_of = |point: &Point| -> (Vec<u8>, bool) {
            let whole = if length == u32::MAX { &[][..] } else { &point.whole[point.whole.len() - more as usize..] };
            let fraction = point.fraction.iter().skip(read).copied();
            let digits = whole.iter().copied().chain(fraction.clone()).chain(std::iter::repeat(0)).take(count);
            (digits.collect(), fraction.skip(unit_digits).any(|digit| digit != 0))
        };
        let begin = self.multiples.shift(state.rest, count);
        (0..=open).filter(|&at| side.gaps[below + at]).any(|at| {
            let low = at.checked_sub(1).map(|before| digits_of(&points[before]));
            let high = points.get(at).map(&digits_of);
            self.multiples.has_between(step, begin, low, high.as_ref(), count)
        })
    }

    fn ends(&self, state: &NumberState) -> bool {
        let read = match state.part {
            Part::Exponent => {
                // The digits that were read, and no more.
                return self.all || self.has_exponent(&NumberState { digits: MOST_EXPONENT_DIGITS, ..*state });
            }
            Part::Beyond if self.multiples.step.is_some() => return false,
            Part::Start | Part::Minus | Part::Point | Part::E | Part::Sign => return false,
            Part::Whole => 0,
            Part::Fraction | Part::Beyond => state.digits as usize,
        };
        if self.all {
            return true;
        }
        let length = if state.part == Part::Whole { state.digits } else { u32::MAX };
        let (below, open) = self.bounds_around(state, length);
        let side = self.side(state);
        if let Some(point) = side.points[below..below + open].first()
            && point.fraction.iter().skip(read).all(|&digit| digit == 0)
        {
            return point.is_in;
        }
        side.gaps[below]
            && (state.part == Part::Beyond || {
                let left = (self.multiples.digits as usize).saturating_sub(read);
                self.multiples.has(self.multiples.shift(state.rest, left))
            })
    }
}

/// The powers of ten beyond which up to 17 digits times the power are in a set or not, whatever the power.
fn powers(set: &NumberSet) -> (i64, i64) {
    /// More than the factors of 2, or of 5, that a number of 17 digits can have (at most 56), and than its digits.
    const FACTORS: i64 = 60;
    let bounds = set.low.iter().chain(&set.high).map(|(bound, _)| bound).chain(&set.except).map(Decimal::point);
    let steps = set.step.iter().chain(&set.not).flat_map(|step| step.powers());
    let ends = bounds.chain(steps).fold((0, 0), |(low, high), power| (power.min(low), power.max(high)));
    (ends.0 - FACTORS, ends.1 + FACTORS)
}

fn with(order: u128, at: usize, value: u128) -> u128 {
    (order & !(3 << (2 * at))) | value << (2 * at)
}

impl Side {
    fn new(set: &NumberSet, negative: bool) -> Result<Self, NumberError> {
        let mut bounds: Vec<&Decimal> =
            set.low.iter().chain(&set.high).map(|(bound, _)| bound).chain(&set.except).collect();
        bounds.retain(|bound| bound.is_zero() || bound.is_negative() == negative);
        let zero = Decimal::read("0")?;
        if negative {
            // There is no -0.
            bounds.push(&zero);
        }
        bounds.sort_unstable();
        bounds.dedup();
        if negative {
            bounds.reverse();
        }
        if bounds.len() > MOST_POINTS {
            return Err(NumberError::ManyBounds { count: bounds.len(), limit: MOST_POINTS });
        }
        // Whether numbers next to a bound are within the range, towards zero and away from it.
        let within = |bound: &Decimal, away: bool| {
            let up = away != negative;
            let low = set.low.as_ref().is_none_or(|(low, _)| if up { bound >= low } else { bound > low });
            low && set.high.as_ref().is_none_or(|(high, _)| if up { bound < high } else { bound <= high })
        };
        let mut gaps: Vec<bool> = bounds.iter().map(|bound| within(bound, false)).collect();
        gaps.push(bounds.last().map_or_else(|| within(&zero, true), |last| within(last, true)));
        let point = |bound: &&Decimal| {
            let size = bound.size();
            let digits = size.length();
            if digits > MOST_DIGITS {
                return Err(NumberError::LongBound { given: bound.to_string(), digits, limit: MOST_DIGITS });
            }
            let (whole, fraction) = size.parts();
            let is_in = set.contains(bound) && !(negative && bound.is_zero());
            Ok(Point { whole, fraction, is_in })
        };
        let points: Vec<Point> = bounds.iter().map(point).collect::<Result<_, _>>()?;
        let first = bounds.first().filter(|first| !gaps[0] && !first.is_zero());
        let end = bounds.last().filter(|_| !gaps[points.len()]);
        let (least, most) = (first.map_or(i64::MIN, |one| one.point()), end.map_or(i64::MAX, |one| one.point()));
        Ok(Self { points, gaps, least, most })
    }
}

impl Multiples {
    /// `None` where no number is one.
    fn new(set: &NumberSet) -> Result<Option<Self>, NumberError> {
        let not: Vec<Step> = match set.step {
            // Only what is a multiple anyhow matters.
            Some(step) => set.not.iter().map(|&not| step.with(not)).collect::<Result<_, _>>()?,
            None => set.not.iter().copied().collect(),
        };
        if set.step.is_some_and(|step| not.iter().any(|not| not.divides(step))) {
            return Ok(None);
        }
        let digits = match set.step {
            Some(step) => step.fraction_digits(),
            None => not.iter().map(|step| step.fraction_digits()).max().unwrap_or_default(),
        };
        if digits > MOST_DIGITS {
            let given = format!("a multiple of numbers with {digits} digits behind the point");
            return Err(NumberError::LongBound { given, digits, limit: MOST_DIGITS });
        }
        let together = set.step.iter().chain(&not).try_fold(None, |together: Option<Step>, &step| {
            together.map_or(Ok(step), |together| together.with(step)).map(Some)
        })?;
        let modulus = together.map_or(Ok(1), |step| step.in_units(digits))?;
        let step = set.step.map(|step| step.in_units(digits)).transpose()?;
        let not = not.iter().map(|not| not.in_units(digits)).collect::<Result<_, _>>()?;
        Ok(Some(Self { digits: digits as u32, modulus, step, not, powers: Vec::new() }))
    }

    fn count_powers(&mut self, most: u32) {
        let mut power = 1 % self.modulus;
        for _ in 0..=most {
            self.powers.push(power);
            power = self.read(power, 0);
        }
    }

    fn read(&self, rest: u64, digit: u8) -> u64 {
        ((u128::from(rest) * 10 + u128::from(digit)) % u128::from(self.modulus)) as u64
    }

    /// With so many zeros behind.
    fn shift(&self, rest: u64, zeros: usize) -> u64 {
        ((u128::from(rest) * u128::from(self.powers[zeros])) % u128::from(self.modulus)) as u64
    }

    /// Returns whether the set excludes some numbers.
    fn has_some(&self) -> bool {
        self.step.is_some() || !self.not.is_empty()
    }

    fn has(&self, rest: u64) -> bool {
        self.step.is_none_or(|step| rest.is_multiple_of(step)) && self.not.iter().all(|not| !rest.is_multiple_of(*not))
    }

    /// Returns whether the set has a number of the given length with this prefix, in units; `more` tells if further
    /// digits follow that units do not cover. What is missing bounds nothing.
    fn has_between(
        &self,
        step: u64,
        begin: u64,
        low: Option<(Vec<u8>, bool)>,
        high: Option<&(Vec<u8>, bool)>,
        count: usize,
    ) -> bool {
        // The first unit, and the one behind the last, both as digits.
        let (low, is_behind) = low.map_or((vec![0; count], false), |(digits, _)| (digits, true));
        let first = u128::from(is_behind);
        let modulus = u128::from(self.modulus);
        let rest = low.iter().fold(0, |rest, &digit| self.read(rest, digit));
        let rest = (u128::from(begin) + u128::from(rest) + first) % modulus;
        let end = match high {
            None => difference(&[&[1], &vec![0; count][..]].concat(), &[&[0], &low[..]].concat()),
            Some((digits, more)) => difference(digits, &low).saturating_add(u128::from(*more)),
        };
        // Units from the first to behind the last.
        let Some(units) = end.checked_sub(first) else { return false };
        if units >= modulus {
            return true;
        }
        let step = u128::from(step);
        let mut behind = (step - rest % step) % step;
        // Few in a row are multiples of one of a few others.
        while behind < units {
            let at = ((rest + behind) % modulus) as u64;
            if self.not.iter().all(|not| !at.is_multiple_of(*not)) {
                return true;
            }
            behind += step;
        }
        false
    }
}

/// Computes the difference of two digit strings of one length, the second not greater; at most `u128::MAX / 2`.
fn difference(high: &[u8], low: &[u8]) -> u128 {
    const MOST: i128 = i128::MAX / 100;
    let mut sum = 0i128;
    for (&high, &low) in high.iter().zip(low) {
        sum = sum * 10 + i128::from(high) - i128::from(low);
        if sum > MOST {
            return MOST as u128;
        }
    }
    sum.max(0) as u128
}

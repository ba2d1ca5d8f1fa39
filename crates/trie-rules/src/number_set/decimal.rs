//! Decimal numbers of any length, and the steps of `multipleOf`.

use super::NumberError;
use std::cmp::Ordering;
use std::fmt;

/// A decimal number, to the last digit. Equal values are equal, however they are written.
///
/// ```
/// use trie_rules::Decimal;
///
/// let [one, other] = ["1e400", "-0.25"].map(|text| Decimal::read(text).unwrap());
/// assert!(other < one && Decimal::read("100e-2")? == Decimal::read("1")?);
/// assert_eq!(other.to_string(), "-0.25");
/// # Ok::<(), trie_rules::NumberError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// Neither the first nor the last is 0; there are none in zero.
    digits: Box<[u8]>,
    /// Number of digits before the point, negative if zeros stand between; 0 in zero.
    point: i64,
}

/// The largest exponent that is read, without its sign: numbers beyond are refused.
pub(super) const MOST_EXPONENT: i64 = 100_000;

impl Decimal {
    /// Reads a number as JSON writes it, or as programs print it: `5`, `-0.25`, `1e-7`, `1E+3`.
    ///
    /// # Errors
    /// The text is not such a number, or its exponent is beyond 100000.
    pub fn read(text: &str) -> Result<Self, NumberError> {
        let no_number = || NumberError::NoNumber { given: text.chars().take(100).collect() };
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let size = text.strip_prefix('-').unwrap_or(text);
        let (digits, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let exponent_digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if ![whole, fraction, exponent_digits].into_iter().all(all_digits) {
            return Err(no_number());
        }
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        let first = all.iter().position(|&digit| digit != 0);
        let Some(first) = first else { return Ok(Self { negative: false, digits: Box::default(), point: 0 }) };
        let last = all.iter().rposition(|&digit| digit != 0).unwrap_or(first);
        let exponent: i64 = exponent.parse().map_err(|_| no_number())?;
        let point = (whole.len() as i64 - first as i64).saturating_add(exponent);
        if exponent.abs() > MOST_EXPONENT || point.abs() > MOST_EXPONENT {
            return Err(no_number());
        }
        Ok(Self { negative: text.starts_with('-'), digits: all[first..=last].into(), point })
    }

    /// So many tens to a power.
    pub(super) fn from_scaled(negative: bool, mantissa: u64, exponent: i64) -> Self {
        let written = mantissa.to_string();
        let digits = written.trim_end_matches('0');
        let point = if digits.is_empty() { 0 } else { written.len() as i64 + exponent };
        let digits: Box<[u8]> = digits.bytes().map(|byte| byte - b'0').collect();
        Self { negative: negative && !digits.is_empty(), digits, point }
    }

    /// Returns whether the number is negative.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns whether the number is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Returns the number of digits before the point, negative if zeros stand behind it; 0 in zero.
    pub(super) fn point(&self) -> i64 {
        self.point
    }

    /// Returns the absolute value.
    pub(super) fn size(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    /// Returns the number of digits without an exponent.
    pub(super) fn length(&self) -> usize {
        let digits = self.digits.len() as i64;
        (digits.max(self.point) - self.point.min(0)) as usize
    }

    /// Digits before the point, of which the first is not 0, and behind it, of which the last is not.
    pub(super) fn parts(&self) -> (Vec<u8>, Vec<u8>) {
        let zeros = |count: i64| std::iter::repeat_n(0, count.max(0) as usize);
        let before = self.point.clamp(0, self.digits.len() as i64) as usize;
        let (whole, fraction) = self.digits.split_at(before);
        let whole = whole.iter().copied().chain(zeros(if before > 0 { self.point - before as i64 } else { 0 }));
        let fraction =
            zeros(-self.point).take(if fraction.is_empty() { 0 } else { usize::MAX }).chain(fraction.iter().copied());
        (whole.collect(), fraction.collect())
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.negative, number.is_zero()) {
            (_, true) => 0,
            (true, false) => -1,
            (false, false) => 1,
        };
        let size = || self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => size(),
            _ => size().reverse(),
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    /// Without an exponent where that takes up to 40 characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |digits: &[u8]| digits.iter().map(|digit| char::from(b'0' + digit)).collect::<String>();
        let minus = if self.negative { "-" } else { "" };
        if self.point.unsigned_abs() > 40 {
            let (first, rest) = self.digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(f, "{minus}{}{point}{}e{}", text(first), text(rest), self.point - 1);
        }
        let (whole, fraction) = self.parts();
        let whole = if whole.is_empty() { "0".to_owned() } else { text(&whole) };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{minus}{whole}{point}{}", text(&fraction))
    }
}

/// A number above zero whose multiples are asked for, as a product: what is left of it without 2 and 5, and these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Step {
    rest: u128,
    twos: i64,
    fives: i64,
}

/// The largest number that remainders are counted by.
const MOST_MODULUS: u64 = 1_000_000_000_000_000_000;

impl Step {
    pub(super) const ONE: Self = Self { rest: 1, twos: 0, fives: 0 };

    pub(super) fn from_decimal(number: &Decimal) -> Result<Self, NumberError> {
        if number.negative || number.is_zero() {
            return Err(NumberError::NoStep { given: number.to_string() });
        }
        // 38 digits.
        let digits = number.digits.iter().try_fold(0u128, |sum, &digit| sum.checked_mul(10)?.checked_add(digit.into()));
        let Some(mut rest) = digits else {
            return Err(NumberError::LongStep { given: number.to_string(), digits: number.digits.len() });
        };
        let exponent = number.point - number.digits.len() as i64;
        let (mut twos, mut fives) = (exponent, exponent);
        while rest % 2 == 0 {
            (rest, twos) = (rest / 2, twos + 1);
        }
        while rest % 5 == 0 {
            (rest, fives) = (rest / 5, fives + 1);
        }
        Ok(Self { rest, twos, fives })
    }

    /// The number whose multiples are those of both.
    pub(super) fn with(self, other: Self) -> Result<Self, NumberError> {
        let (twos, fives) = (self.twos.max(other.twos), self.fives.max(other.fives));
        let together = (self.rest / divisor(self.rest, other.rest)).checked_mul(other.rest);
        let rest = together.ok_or(NumberError::WideSteps { limit: MOST_MODULUS })?;
        Ok(Self { rest, twos, fives })
    }

    /// Returns whether another number is one of its multiples.
    pub(super) fn divides(self, other: Self) -> bool {
        other.rest.is_multiple_of(self.rest) && other.twos >= self.twos && other.fives >= self.fives
    }

    /// Returns the exponents of 2 and 5 in its factorisation.
    pub(super) fn powers(self) -> [i64; 2] {
        [self.twos, self.fives]
    }

    /// Returns the number of fraction digits of its multiples.
    pub(super) fn fraction_digits(self) -> usize {
        (-self.twos.min(self.fives)).max(0) as usize
    }

    /// It, as a whole number of units of which one has so many digits behind the point.
    pub(super) fn in_units(self, digits: usize) -> Result<u64, NumberError> {
        let too_wide = || NumberError::WideSteps { limit: MOST_MODULUS };
        let power = |base: u128, exponent: i64| {
            let exponent = u32::try_from(exponent + digits as i64).ok()?;
            base.checked_pow(exponent)
        };
        let found = power(2, self.twos).zip(power(5, self.fives)).and_then(|(twos, fives)| twos.checked_mul(fives));
        let found = found.and_then(|found| found.checked_mul(self.rest)).and_then(|found| u64::try_from(found).ok());
        found.filter(|&found| found <= MOST_MODULUS).ok_or_else(too_wide)
    }

    /// Returns whether a number is a multiple.
    pub(super) fn has(self, number: &Decimal) -> bool {
        if number.is_zero() {
            return true;
        }
        // 2 and 5 in the digits, counted by dividing; the rest by its remainder.
        let exponent = number.point - number.digits.len() as i64;
        let mut rest = 0u128;
        for &digit in &number.digits {
            rest = times_ten(rest, digit, self.rest);
        }
        let has = |base: u8, count: i64| {
            let mut digits = number.digits.to_vec();
            (exponent..count).all(|_| divide(&mut digits, base))
        };
        rest == 0 && has(2, self.twos) && has(5, self.fives)
    }
}

/// `(10 * rest + digit) % modulus`.
fn times_ten(rest: u128, digit: u8, modulus: u128) -> u128 {
    // By adding: ten times may be more than 128 bits.
    let add = |one: u128, other: u128| if one >= modulus - other { one - (modulus - other) } else { one + other };
    let two = add(rest, rest);
    let four = add(two, two);
    let eight = add(four, four);
    let ten = add(eight, two);
    add(ten, u128::from(digit) % modulus)
}

/// Divides digits, if nothing is left.
fn divide(digits: &mut [u8], by: u8) -> bool {
    let mut rest = 0;
    for digit in digits {
        let sum = rest * 10 + *digit;
        (*digit, rest) = (sum / by, sum % by);
    }
    rest == 0
}

pub(super) fn divisor(mut one: u128, mut other: u128) -> u128 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

//! Sets of decimal numbers: ranges, multiples and their complements, exact whatever their length.

mod decimal;
mod machine;

pub use decimal::Decimal;
pub use machine::{NumberMachine, NumberSpelling, NumberState};

use decimal::Step;
use std::collections::BTreeSet;

/// Error returned when a set of numbers is invalid or too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// The text is not a number.
    #[error("invalid number {given:?}: expected one as in -0.25 or 1e3, its exponent up to 100000")]
    NoNumber {
        /// Text that was given.
        given: String,
    },
    /// A step of zero.
    #[error("multiples of {given}: expected a number above 0")]
    NoStep {
        /// Text that was given.
        given: String,
    },
    /// A step has too many digits.
    #[error("multiples of {given}: it has {digits} digits, and 38 are the most")]
    LongStep {
        /// Text that was given.
        given: String,
        /// Number of its digits.
        digits: usize,
    },
    /// Remainders that are too many.
    #[error("multiples of these numbers together: they repeat after more than {limit} steps, which is the most")]
    WideSteps {
        /// Limit on the digits.
        limit: u64,
    },
    /// A bound that is too long.
    #[error("{given} has {digits} digits, and {limit} are the most that a bound of numbers can have")]
    LongBound {
        /// Text that was given.
        given: String,
        /// Number of its digits.
        digits: usize,
        /// Limit on the digits.
        limit: usize,
    },
    /// The set has too many bounds.
    #[error("{count} bounds and left out values of numbers, and {limit} are the most")]
    ManyBounds {
        /// Number of bounds given.
        count: usize,
        /// Limit on the bounds.
        limit: usize,
    },
}

trie_core::error_kind!(NumberError, Rule);

/// A set of decimal numbers: a range, the multiples of one number in it, without the multiples of others and without
/// single values. It may be empty.
///
/// ```
/// use trie_rules::{Decimal, NumberSet};
///
/// let number = |text| Decimal::read(text).unwrap();
/// let some = NumberSet::full().at_least(&number("0.1"), true).multiple_of(&number("0.05"))?;
/// assert!(some.contains(&number("0.15")) && !some.contains(&number("0.1")) && !some.contains(&number("0.12")));
/// assert!(some.clone().at_most(&number("0.14"), false).is_empty()?);
/// assert_eq!(some.complement().len(), 2);
/// # Ok::<(), trie_rules::NumberError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NumberSet {
    /// Lower bound, and whether it is exclusive.
    low: Option<(Decimal, bool)>,
    high: Option<(Decimal, bool)>,
    except: BTreeSet<Decimal>,
    /// All are multiples of this.
    step: Option<Step>,
    /// None is a multiple of one of these.
    not: BTreeSet<Step>,
}

impl NumberSet {
    /// Returns the set of all numbers.
    pub fn full() -> Self {
        Self::default()
    }

    /// Returns the set of one number.
    pub fn one(value: &Decimal) -> Self {
        Self::full().at_least(value, false).at_most(value, false)
    }

    /// Restricts the set to numbers at or above a bound; above it, if exclusive.
    #[must_use]
    pub fn at_least(mut self, bound: &Decimal, exclusive: bool) -> Self {
        let narrower = self.low.as_ref().is_none_or(|(low, excluded)| (bound, exclusive) > (low, *excluded));
        if narrower {
            self.low = Some((bound.clone(), exclusive));
        }
        self
    }

    /// Restricts the set to numbers at or below a bound; below it, if exclusive.
    #[must_use]
    pub fn at_most(mut self, bound: &Decimal, exclusive: bool) -> Self {
        let narrower = self.high.as_ref().is_none_or(|(high, excluded)| (bound, !exclusive) < (high, !*excluded));
        if narrower {
            self.high = Some((bound.clone(), exclusive));
        }
        self
    }

    /// Removes one number from the set.
    #[must_use]
    pub fn remove(mut self, value: &Decimal) -> Self {
        self.except.insert(value.clone());
        self
    }

    /// Restricts the set to multiples of a number.
    ///
    /// # Errors
    /// A number that is not above zero or too long; too many remainders.
    pub fn multiple_of(mut self, step: &Decimal) -> Result<Self, NumberError> {
        self.narrow(Step::from_decimal(step)?)?;
        Ok(self)
    }

    fn narrow(&mut self, step: Step) -> Result<(), NumberError> {
        self.step = Some(self.step.map_or(Ok(step), |known| known.with(step))?);
        Ok(())
    }

    /// Removes the multiples of a number from the set.
    ///
    /// # Errors
    /// As [`NumberSet::multiple_of`].
    pub fn no_multiple_of(mut self, step: &Decimal) -> Result<Self, NumberError> {
        self.not.insert(Step::from_decimal(step)?);
        Ok(self)
    }

    /// Intersects two sets.
    ///
    /// # Errors
    /// As [`NumberSet::multiple_of`].
    pub fn and(mut self, other: &Self) -> Result<Self, NumberError> {
        if let Some((low, excluded)) = &other.low {
            self = self.at_least(low, *excluded);
        }
        if let Some((high, excluded)) = &other.high {
            self = self.at_most(high, *excluded);
        }
        if let Some(step) = other.step {
            self.narrow(step)?;
        }
        self.except.extend(other.except.iter().cloned());
        self.not.extend(&other.not);
        Ok(self)
    }

    /// Returns the numbers that are not in the set, as sets that may overlap.
    pub fn complement(&self) -> Vec<Self> {
        let mut sets = Vec::new();
        if let Some((low, excluded)) = &self.low {
            sets.push(Self::full().at_most(low, !excluded));
        }
        if let Some((high, excluded)) = &self.high {
            sets.push(Self::full().at_least(high, !excluded));
        }
        sets.extend(self.except.iter().map(Self::one));
        if let Some(step) = self.step {
            sets.push(Self { not: BTreeSet::from([step]), ..Self::default() });
        }
        sets.extend(self.not.iter().map(|&step| Self { step: Some(step), ..Self::default() }));
        sets
    }

    /// Returns whether a number is in it.
    pub fn contains(&self, value: &Decimal) -> bool {
        self.low.as_ref().is_none_or(|(low, excluded)| low < value || (low == value && !excluded))
            && self.high.as_ref().is_none_or(|(high, excluded)| high > value || (high == value && !excluded))
            && !self.except.contains(value)
            && self.step.is_none_or(|step| step.has(value))
            && !self.not.iter().any(|step| step.has(value))
    }

    /// Returns whether it holds every number.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether it is empty.
    ///
    /// # Errors
    /// As [`NumberMachine::new`].
    pub fn is_empty(&self) -> Result<bool, NumberError> {
        NumberMachine::new(self, NumberSpelling::default().fraction(true)).map(|machine| machine.is_none())
    }
}

//! What a number may be.

use crate::values::shapes::listed::Listed;
use crate::values::types::Types;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use trie_rules::{Automaton, Machine, NumberOptions, Regex, Regular, Rule};

/// What a number may be: one of a list, or of a range.
#[derive(Debug, Clone)]
pub(crate) struct NumberShape {
    pub(crate) texts: Option<Arc<[Box<str>]>>,
    pub(crate) integer: bool,
    pub(crate) low: Option<Bound>,
    pub(crate) high: Option<Bound>,
    pub(crate) automaton: OnceLock<Automaton>,
}

/// Where a range ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) negative: bool,
    /// Digits before the point, without leading zeros; then those after it, without trailing zeros.
    pub(crate) whole: Box<str>,
    pub(crate) fraction: Box<str>,
    /// Whether the bound itself is left out.
    pub(crate) without: bool,
}

/// Where in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CountedAt {
    Listed(Listed),
    Automaton(u32),
}

impl PartialEq for NumberShape {
    fn eq(&self, other: &Self) -> bool {
        (&self.texts, self.integer, &self.low, &self.high) == (&other.texts, other.integer, &other.low, &other.high)
    }
}

impl Eq for NumberShape {}

impl Hash for NumberShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.texts, self.integer, &self.low, &self.high).hash(state);
    }
}

impl NumberShape {
    pub(crate) const fn free(integer: bool) -> Self {
        Self { texts: None, integer, low: None, high: None, automaton: OnceLock::new() }
    }

    /// One of these, in any order.
    pub(crate) fn of(mut texts: Vec<Box<str>>) -> Self {
        texts.sort_unstable();
        texts.dedup();
        Self { texts: Some(texts.into()), ..Self::free(false) }
    }

    pub(crate) fn types(&self) -> Types {
        match &self.texts {
            Some(texts) if texts.iter().all(|text| !text.contains(['.', 'e', 'E'])) => Types::INTEGER,
            None if self.integer => Types::INTEGER,
            _ => Types::NUMBER,
        }
    }

    /// Where after its first byte.
    pub(crate) fn begin(&self, byte: u8) -> Option<CountedAt> {
        let at = match &self.texts {
            Some(texts) => CountedAt::Listed(Listed::begin(texts.len())),
            None => CountedAt::Automaton(self.automaton().start()),
        };
        self.step(at, byte)
    }

    #[inline]
    pub(crate) fn step(&self, at: CountedAt, byte: u8) -> Option<CountedAt> {
        match at {
            CountedAt::Listed(listed) => {
                let texts = self.texts.as_deref().unwrap_or_default();
                listed.step(byte, |text| texts[text as usize].as_bytes()).map(CountedAt::Listed)
            }
            CountedAt::Automaton(state) => self.automaton().step(&state, byte).map(CountedAt::Automaton),
        }
    }

    pub(crate) fn is_end(&self, at: CountedAt) -> bool {
        match at {
            CountedAt::Listed(listed) => {
                let texts = self.texts.as_deref().unwrap_or_default();
                listed.whole(|text| texts[text as usize].as_bytes()).is_some()
            }
            CountedAt::Automaton(state) => self.automaton().is_end(&state),
        }
    }

    /// Whether a text is one of it.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let Some((&first, rest)) = text.as_bytes().split_first() else { return false };
        let end = rest.iter().try_fold(self.begin(first), |at, &byte| Some(self.step(at?, byte)));
        end.flatten().is_some_and(|end| self.is_end(end))
    }

    /// Whether some number is in the range.
    pub(crate) fn is_possible(&self) -> bool {
        match (&self.texts, &self.low, &self.high) {
            (Some(texts), ..) => !texts.is_empty(),
            (None, Some(low), Some(high)) if self.integer => low.integer(true) <= high.integer(false),
            (None, Some(low), Some(high)) => {
                let (a, b) = (low.value(), high.value());
                a < b || (low.same(high) && !low.without && !high.without)
            }
            _ => true,
        }
    }

    fn automaton(&self) -> &Automaton {
        static NUMBER: OnceLock<Automaton> = OnceLock::new();
        static INTEGER: OnceLock<Automaton> = OnceLock::new();
        self.automaton.get_or_init(|| match (self.integer, &self.low, &self.high) {
            (true, None, None) => INTEGER.get_or_init(|| self.made()).clone(),
            (false, None, None) => NUMBER.get_or_init(|| self.made()).clone(),
            _ => self.made(),
        })
    }

    fn made(&self) -> Automaton {
        let made = if self.integer {
            // All of 64 bits, lest digits come for ever.
            let least = self.high.as_ref().map_or(0, |high| high.integer(false)).min(0);
            let low = self.low.as_ref().map_or(least.saturating_add(i128::from(i64::MIN)), |low| low.integer(true));
            let high = self.high.as_ref().map_or(low.max(0).saturating_add(i128::from(u64::MAX)), |h| h.integer(false));
            Regular::integer(Some(low), Some(high))
        } else if self.low.is_none() && self.high.is_none() {
            Regular::number_with(NumberOptions::default().fraction_digits(25))
        } else {
            let pattern = crate::values::shapes::ranges::pattern(self.low.as_ref(), self.high.as_ref());
            Ok(Regex::new(&pattern).map_or_else(|_| Regular::number().expect("it is one"), Regular::from))
        };
        match made.map(|made| made.machine().clone()) {
            Ok(Machine::Automaton(automaton)) => automaton,
            _ => Regex::new("-?(0|[1-9][0-9]{0,19})").expect("it is one").automaton().clone(),
        }
    }
}

impl Bound {
    /// Of a JSON number.
    pub(crate) fn of(number: &serde_json::Number, without: bool) -> Self {
        let text = number.to_string();
        let negative = text.starts_with('-');
        let text = text.trim_start_matches('-');
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let exponent: i64 = exponent.parse().unwrap_or(0).clamp(-400, 400);
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
        let mut bound = Self { negative, whole, fraction, without };
        // There is no negative zero.
        bound.negative &= !(bound.whole.is_empty() && bound.fraction.is_empty());
        bound
    }

    fn same(&self, other: &Self) -> bool {
        (self.negative, &self.whole, &self.fraction) == (other.negative, &other.whole, &other.fraction)
    }

    /// Nearly what it is.
    pub(crate) fn value(&self) -> f64 {
        let text = format!("{}0{}.{}", if self.negative { "-" } else { "" }, self.whole, self.fraction);
        text.parse().unwrap_or(0.0)
    }

    /// The least integer of a range that begins here, or the greatest of one that ends here.
    pub(crate) fn integer(&self, low: bool) -> i128 {
        let most = i128::MAX / 4;
        let whole = if self.whole.is_empty() { 0 } else { self.whole.parse().unwrap_or(most).min(most) };
        let towards_zero = if self.negative { -whole } else { whole };
        let away = i128::from(!self.fraction.is_empty());
        let exact = i128::from(self.fraction.is_empty() && self.without);
        if low {
            towards_zero + if self.negative { 0 } else { away } + exact
        } else {
            towards_zero - if self.negative { away } else { 0 } - exact
        }
    }
}

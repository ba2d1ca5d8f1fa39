//! What a number may be.

use crate::values::shapes::listed::Listed;
use crate::values::types::Types;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use trie_rules::{Automaton, Machine, NumberBound, NumberOptions, Regex, Regular, RegularError, Rule};

/// What a number may be: one of a list, or of a range.
#[derive(Debug, Clone)]
pub(crate) struct NumberShape {
    pub(crate) texts: Option<Arc<[Box<str>]>>,
    pub(crate) integer: bool,
    pub(crate) low: Option<NumberBound>,
    pub(crate) high: Option<NumberBound>,
    pub(crate) multiple_of: Option<NumberBound>,
    pub(crate) automaton: OnceLock<Automaton>,
}

/// Where in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CountedAt {
    Listed(Listed),
    Automaton(u32),
}

impl PartialEq for NumberShape {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for NumberShape {}

impl Hash for NumberShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl NumberShape {
    /// What it is, without what is made of it.
    fn key(&self) -> impl Eq + Hash + '_ {
        (&self.texts, self.integer, &self.low, &self.high, &self.multiple_of)
    }

    pub(crate) const fn free(integer: bool) -> Self {
        Self { texts: None, integer, low: None, high: None, multiple_of: None, automaton: OnceLock::new() }
    }

    /// One of these, in any order.
    pub(crate) fn of(mut texts: Vec<Box<str>>) -> Self {
        trie_core::work::sorting::sort(&mut texts);
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
            (None, Some(low), Some(high)) if self.integer => low.first_integer() <= high.last_integer(),
            (None, Some(low), Some(high)) => low.leaves_room_to(high),
            _ => true,
        }
    }

    fn automaton(&self) -> &Automaton {
        static NUMBER: OnceLock<Automaton> = OnceLock::new();
        static INTEGER: OnceLock<Automaton> = OnceLock::new();
        let is_free = self.low.is_none() && self.high.is_none() && self.multiple_of.is_none();
        self.automaton.get_or_init(|| match (is_free, self.integer) {
            (true, true) => INTEGER.get_or_init(|| self.made()).clone(),
            (true, false) => NUMBER.get_or_init(|| self.made()).clone(),
            _ => self.made(),
        })
    }

    fn made(&self) -> Automaton {
        match self.regular().map(|made| made.machine().clone()) {
            Ok(Machine::Automaton(automaton)) => automaton,
            _ => Regex::new("-?(0|[1-9][0-9]{0,19})").expect("it is one").automaton().clone(),
        }
    }

    /// The numbers of its range.
    ///
    /// # Errors
    /// No multiple is in the range, or they cannot be counted.
    pub(crate) fn regular(&self) -> Result<Regular, RegularError> {
        let (low, high, every) = (self.low.as_ref(), self.high.as_ref(), self.multiple_of.as_ref());
        if self.integer {
            // All of 64 bits, lest digits come for ever.
            let least = high.map_or(0, NumberBound::last_integer).min(0);
            let low = low.map_or(least.saturating_add(i128::from(i64::MIN)), NumberBound::first_integer);
            let high = high.map_or(low.max(0).saturating_add(i128::from(u64::MAX)), NumberBound::last_integer);
            if every.is_none() {
                return Regular::integer(Some(low), Some(high));
            }
            let [low, high] = [low, high].map(|bound| NumberBound::new(&bound.to_string(), false));
            let digits = NumberOptions::of_range(Some(&low), Some(&high)).fraction_digits(0);
            return Regular::number_between(Some(&low), Some(&high), every, digits);
        }
        if low.is_none() && high.is_none() && every.is_none() {
            return Regular::number_with(NumberOptions::default().fraction_digits(25));
        }
        Regular::number_between(low, high, every, NumberOptions::of_range(low, high))
    }
}

//! Finite automata and lists of texts: one type for all of them, which can be combined freely.

mod choice;
mod date;
mod decimal;
mod documents;
mod error;
mod format;
mod list;
mod moment;
mod numerals;
mod parts;
mod parts_walk;
mod repeat;
mod string;
mod value;

pub use choice::{Choice, ChoiceState};
pub use decimal::NumberBound;
pub use documents::{Documents, DocumentsBuilder, DocumentsState};
pub use error::RegularError;
pub use format::MomentFormat;
pub use moment::{Moment, Timespec};
pub use numerals::NumberOptions;
pub use parts::{Parts, PartsState};
pub use string::StringOptions;
pub use value::{Clock, Value};

use crate::any_rule::AnyRule;
use crate::automaton::regex::{Regex, RegexError};
use crate::automaton::{Automaton, AutomatonLimits};
use crate::rule::Rule;
use crate::texts::{TextsError, texts};
use parts::Factor;
use std::fmt;
use std::sync::Arc;
use value::ValueReader;

/// A regular rule: a regular expression, integers of a range, JSON numbers, dates, JSON strings or a list, and any
/// choice or concatenation of these. A clone costs a few reference counts. Equal rules allow the same texts and give
/// them the same values; rules that were combined in different ways may be unequal nevertheless.
///
/// A rule without a long list is one automaton, whose step is one look-up.
///
/// ```
/// use trie_rules::{Regular, Rule, Value};
///
/// let month = Regular::one_of([], &["Jan", "Feb", "Mar"])?;
/// let day = month.followed_by(&Regular::regex(" ")?)?.followed_by(&Regular::integer(Some(1), Some(31))?)?;
/// assert!(day.is_match(b"Feb 28") && !day.is_match(b"Feb 32") && !day.is_match(b"May 1"));
/// assert_eq!(month.value(b"Feb"), Some(Value::Entry { index: 1, text: "Feb".into() }));
/// assert_eq!(Regular::date().value(b"2024-02-29"), Some(Value::Date { year: 2024, month: 2, day: 29 }));
/// assert_eq!(Regular::date().value(b"2023-02-29"), None);
/// # Ok::<(), trie_rules::RegularError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Regular {
    machine: Machine,
    reads: ValueReader,
}

/// Machine that walks a [`Regular`]. Each is a [`Rule`] of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Machine {
    /// One automaton: the state is a number.
    Automaton(Automaton),
    /// One of a list or, where there is one, of an automaton: the state is `Copy`.
    Choice(Choice),
    /// Lists in a row with others: the state is a set of places.
    Parts(Arc<Parts>),
}

/// State of a text in a [`Regular`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegularState {
    /// State of an automaton.
    Automaton(u32),
    /// State of a choice.
    Choice(ChoiceState),
    /// State of a concatenation.
    Parts(PartsState),
}

impl fmt::Debug for Regular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Regular").field(&self.machine).finish()
    }
}

impl From<Automaton> for Regular {
    fn from(automaton: Automaton) -> Self {
        Self { machine: Machine::Automaton(automaton), reads: ValueReader::Text }
    }
}

impl From<&Regex> for Regular {
    fn from(regex: &Regex) -> Self {
        regex.automaton().clone().into()
    }
}

impl Regular {
    /// Returns the texts of a regular expression: see [`Regex`].
    ///
    /// # Errors
    /// As [`Regex::new`].
    pub fn regex(pattern: &str) -> Result<Self, RegexError> {
        Ok(Self::from(&Regex::new(pattern)?))
    }

    /// Returns the integers from `low` to `high`, both included, in decimal: no leading zeros, no `-0`, no `+`. A
    /// missing bound sets no limit: digits may then continue for ever.
    ///
    /// ```
    /// use trie_rules::Regular;
    /// let some = Regular::integer(Some(-5), Some(120))?;
    /// assert!(some.is_match(b"-5") && some.is_match(b"120") && !some.is_match(b"121") && !some.is_match(b"007"));
    /// # Ok::<(), trie_rules::RegularError>(())
    /// ```
    ///
    /// # Errors
    /// A range without numbers.
    pub fn integer(low: Option<i128>, high: Option<i128>) -> Result<Self, RegularError> {
        Ok(Self { machine: Machine::Automaton(numerals::integer(low, high)?), reads: ValueReader::Integer })
    }

    /// Returns the rule of numbers as JSON writes them.
    ///
    /// # Errors
    /// No digits before the point; an automaton that is too large.
    pub fn number_with(options: NumberOptions) -> Result<Self, RegularError> {
        Ok(Self { machine: Machine::Automaton(numerals::number(options)?), reads: ValueReader::Number })
    }

    /// Returns the numbers of a range, written without exponents; with a step, only its multiples. The sign of the step
    /// does not matter. The options limit the digits; [`NumberOptions::of_range`] has room for the bounds.
    ///
    /// # Errors
    /// No number in the range; options without digits before the point, or with digits of an exponent; a step that is 0
    /// or has too many digits; an automaton that is too large.
    pub fn number_between(
        low: Option<&NumberBound>,
        high: Option<&NumberBound>,
        multiple_of: Option<&NumberBound>,
        options: NumberOptions,
    ) -> Result<Self, RegularError> {
        let automaton = decimal::range_automaton(low, high, multiple_of, options)?;
        Ok(Self { machine: Machine::Automaton(automaton), reads: ValueReader::Number })
    }

    /// Returns the days from 0001-01-01 to 9999-12-31 of the Gregorian calendar, as `YYYY-MM-DD`.
    pub fn date() -> Self {
        Self { machine: Machine::Automaton(moment::date()), reads: ValueReader::Moment(Moment::Date) }
    }

    /// Returns the days or times between two bounds, both included, without 24:00 and leap seconds. A bound may be more
    /// precise than the texts.
    ///
    /// ```
    /// let office = trie_rules::Moment::Time { timespec: trie_rules::Timespec::Minutes, utc: false };
    /// let office = trie_rules::Regular::moment(office, Some("09:30"), Some("17:00:00"))?;
    /// assert!(office.is_match(b"09:30") && office.is_match(b"17:00") && !office.is_match(b"17:01"));
    /// # Ok::<(), trie_rules::RegularError>(())
    /// ```
    ///
    /// # Errors
    /// A bound that is not a moment of this kind; no moment between the bounds.
    pub fn moment(kind: Moment, low: Option<&str>, high: Option<&str>) -> Result<Self, RegularError> {
        Ok(Self {
            machine: Machine::Automaton(moment::range_automaton(kind, low, high)?),
            reads: ValueReader::Moment(kind),
        })
    }

    /// Returns the moments of [`Regular::moment`] in another format. Bounds stay in ISO 8601; fields that the format
    /// leaves out are 0.
    ///
    /// # Errors
    /// As [`Regular::moment`]; a `format` of another kind of moments.
    pub fn moment_in_format(
        kind: Moment,
        format: &MomentFormat,
        low: Option<&str>,
        high: Option<&str>,
    ) -> Result<Self, RegularError> {
        let format = MomentFormat::new(kind, format.text())?;
        let automaton = format::automaton(&format, &moment::Range::new(kind, low, high)?)?;
        Ok(Self { machine: Machine::Automaton(automaton), reads: ValueReader::Formatted(kind, format) })
    }

    /// Returns the rule of JSON strings: valid UTF-8 with escapes, and no unpaired surrogates. By default without the
    /// quotes.
    ///
    /// ```
    /// use trie_rules::{Regular, StringOptions, Value};
    /// let short = Regular::string(StringOptions::default().max_chars(3))?;
    /// assert!(short.is_match("né".as_bytes()) && !short.is_match(b"four") && !short.is_match(b"\""));
    /// assert_eq!(short.value(br"\ud83d\ude00\n!"), Some(Value::String("\u{1f600}\n!".into())));
    /// # Ok::<(), trie_rules::RegularError>(())
    /// ```
    ///
    /// # Errors
    /// A minimum length above the maximum; more characters than the automaton has room for.
    pub fn string(options: StringOptions) -> Result<Self, RegularError> {
        let reads = ValueReader::String { quotes: options.quotes };
        Ok(Self { machine: Machine::Automaton(string::string(options)?), reads })
    }

    /// Returns the union of these rules and these texts. Automata become one automaton, and all lists one trie over
    /// bytes: a million texts are sorted once. Entries are numbered in the order of `texts`, then of the lists in
    /// `rules`. A text that comes twice keeps its first number; its second number is unused. `O(n log n)` for the
    /// texts.
    ///
    /// # Errors
    /// Nothing to choose from; automata that together exceed [`AutomatonLimits::default`]; lists too long for 32-bit
    /// indices; more than 256 nested choices.
    pub fn one_of<T: AsRef<[u8]>>(rules: impl IntoIterator<Item = Self>, texts: &[T]) -> Result<Self, RegularError> {
        Self::one_of_with(rules, texts, AutomatonLimits::default())
    }

    /// [`Regular::one_of`] with other limits.
    ///
    /// # Errors
    /// As [`Regular::one_of`].
    pub fn one_of_with<T: AsRef<[u8]>>(
        rules: impl IntoIterator<Item = Self>,
        texts: &[T],
        limits: AutomatonLimits,
    ) -> Result<Self, RegularError> {
        let rules: Vec<Self> = rules.into_iter().collect();
        if let ([only], []) = (&rules[..], texts) {
            return Ok(only.clone());
        }
        let (mut automata, mut lists, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for rule in &rules {
            match &rule.machine {
                Machine::Automaton(automaton) => automata.push(automaton.clone()),
                Machine::Choice(choice) => {
                    automata.extend(choice.automaton.clone());
                    lists.push(Arc::clone(&choice.list));
                }
                Machine::Parts(parts) => others.push(Factor::Parts(Arc::clone(parts))),
            }
        }
        let automaton = match &automata[..] {
            [] => None,
            [one] => Some(one.clone()),
            several => {
                let several: Vec<Factor> = several.iter().cloned().map(Factor::Automaton).collect();
                Some(Parts::one_of(&several).determinise(limits)?)
            }
        };
        let list = match (&lists[..], texts) {
            ([one], []) => Some(Choice { automaton: None, list: Arc::clone(one) }),
            (lists, texts) => Choice::list(texts, lists)?,
        };
        let whole = match (automaton, list) {
            (None, None) => None,
            (Some(automaton), None) => Some(Machine::Automaton(automaton)),
            (automaton, Some(list)) => Some(Machine::Choice(Choice { automaton, ..list })),
        };
        let machine = match (whole, &mut others) {
            (None, others) if others.is_empty() => return Err(RegularError::NoTexts),
            (Some(whole), others) if others.is_empty() => whole,
            (whole, others) => {
                others.extend(whole.map(Machine::factor));
                Machine::Parts(Arc::new(Parts::one_of(others)))
            }
        };
        Ok(Self { machine, reads: ValueReader::one_of(rules)? })
    }

    /// Returns the concatenation of two rules: every way to split a text between them counts. Automata and short lists
    /// become one automaton; a long list (more than 4 kB) stays a list, and the state is then a set of places.
    ///
    /// # Errors
    /// An automaton that grows beyond [`AutomatonLimits::default`].
    pub fn followed_by(&self, other: &Self) -> Result<Self, RegularError> {
        self.then_with(other, AutomatonLimits::default())
    }

    /// [`Regular::followed_by`] with other limits.
    ///
    /// # Errors
    /// As [`Regular::followed_by`].
    pub fn then_with(&self, other: &Self, limits: AutomatonLimits) -> Result<Self, RegularError> {
        let mut factors = self.machine.clone().factors()?;
        for next in other.machine.clone().factors()? {
            match (factors.last_mut(), next) {
                (Some(Factor::Automaton(last)), Factor::Automaton(next)) => {
                    let both = vec![Factor::Automaton(last.clone()), Factor::Automaton(next)];
                    *last = Parts::sequence(both).determinise(limits)?;
                }
                (_, next) => factors.push(next),
            }
        }
        let machine = match <[Factor; 1]>::try_from(factors) {
            Ok([Factor::Automaton(automaton)]) => Machine::Automaton(automaton),
            Ok([Factor::Choice(choice)]) => Machine::Choice(choice),
            Ok([Factor::Parts(parts)]) => Machine::Parts(parts),
            Err(factors) => Machine::Parts(Arc::new(Parts::sequence(factors))),
        };
        Ok(Self { machine, reads: ValueReader::Text })
    }

    /// Returns the concatenation of these rules, as [`Regular::followed_by`] does, in `O(n log n)` for `n` states;
    /// `None` for no rules.
    ///
    /// # Errors
    /// As [`Regular::followed_by`].
    pub fn sequence(parts: &[Self]) -> Result<Option<Self>, RegularError> {
        match parts {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            several => {
                let (before, after) = several.split_at(several.len() / 2);
                let (before, after) = (Self::sequence(before)?, Self::sequence(after)?);
                before.zip(after).map(|(before, after)| before.followed_by(&after)).transpose()
            }
        }
    }

    /// Returns the machine that walks the rule.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns whether a text matches.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let end = text.iter().try_fold(self.start(), |state, &byte| self.step(&state, byte));
        end.is_some_and(|end| self.is_end(&end))
    }

    /// Returns the value of a text; `None` if the rule does not match it.
    pub fn value(&self, text: &[u8]) -> Option<Value> {
        if !self.is_match(text) {
            return None;
        }
        if let Machine::Choice(choice) = &self.machine
            && let Some(index) = choice.entry_of(text)
        {
            return Some(Value::Entry { index, text: String::from_utf8_lossy(text).into_owned() });
        }
        self.reads.value(text)
    }

    /// Returns all texts of the rule: see [`texts`].
    ///
    /// # Errors
    /// As [`texts`].
    pub fn texts(&self, limit: usize) -> Result<Vec<Vec<u8>>, TextsError> {
        match &self.machine {
            Machine::Automaton(automaton) => texts(automaton, limit),
            Machine::Choice(choice) => choice.list_texts(limit),
            Machine::Parts(parts) => texts(&**parts, limit),
        }
    }

    /// Returns the rule as a type-erased rule, with its fastest type of state.
    pub fn any(&self) -> Arc<dyn AnyRule> {
        match &self.machine {
            Machine::Automaton(automaton) => Arc::new(automaton.clone()),
            Machine::Choice(choice) => Arc::new(choice.clone()),
            Machine::Parts(parts) => Arc::new(Parts::clone(parts)),
        }
    }
}

impl Machine {
    fn factor(self) -> Factor {
        match self {
            Self::Automaton(automaton) => Factor::Automaton(automaton),
            Self::Choice(choice) => Factor::Choice(choice),
            Self::Parts(parts) => Factor::Parts(parts),
        }
    }

    /// Returns the factors of the concatenation.
    fn factors(self) -> Result<Vec<Factor>, RegularError> {
        match self {
            Self::Parts(parts) if !parts.factors.is_empty() => Ok(parts.factors.clone()),
            other => Ok(vec![other.factor().small()?]),
        }
    }
}

impl Rule for Regular {
    type State = RegularState;

    fn start(&self) -> RegularState {
        match &self.machine {
            Machine::Automaton(automaton) => RegularState::Automaton(automaton.start()),
            Machine::Choice(choice) => RegularState::Choice(choice.start()),
            Machine::Parts(parts) => RegularState::Parts(parts.start()),
        }
    }

    fn step(&self, state: &RegularState, byte: u8) -> Option<RegularState> {
        match (&self.machine, state) {
            (Machine::Automaton(automaton), RegularState::Automaton(state)) => {
                automaton.step(state, byte).map(RegularState::Automaton)
            }
            (Machine::Choice(choice), RegularState::Choice(state)) => {
                choice.step(state, byte).map(RegularState::Choice)
            }
            (Machine::Parts(parts), RegularState::Parts(state)) => parts.step(state, byte).map(RegularState::Parts),
            // A state of another rule.
            _ => None,
        }
    }

    fn is_end(&self, state: &RegularState) -> bool {
        match (&self.machine, state) {
            (Machine::Automaton(automaton), RegularState::Automaton(state)) => automaton.is_end(state),
            (Machine::Choice(choice), RegularState::Choice(state)) => choice.is_end(state),
            (Machine::Parts(parts), RegularState::Parts(state)) => parts.is_end(state),
            _ => false,
        }
    }
}

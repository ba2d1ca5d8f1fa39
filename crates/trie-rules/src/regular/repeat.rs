//! Repetitions of a rule, with a separator: the items are counted exactly, and all ways to split a text are walked at
//! once.

use super::parts::{Factor, Parts};
use super::{Machine, Regular, RegularError, ValueReader};
use crate::automaton::regex::Regex;
use crate::automaton::{Automaton, AutomatonError, AutomatonLimits};
use crate::rule::Rule;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Repetition of a rule, with its separator.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Repeat {
    rule: Regular,
    min: usize,
    max: Option<usize>,
    separator: Arc<str>,
}

impl Regular {
    /// Returns the repetition of this rule, at least `min` and at most `max` times, with a separator between two items.
    /// Without `max` there is no upper limit. Automata and short lists become one automaton; a long list (more than 4
    /// kB) stays a list, and the state is then a set of places.
    ///
    /// ```
    /// use trie_rules::{Regular, Value};
    /// let codes = Regular::regex("[A-Z]{2}")?.repeat(1, Some(3), ", ")?;
    /// assert!(codes.is_match(b"HE") && codes.is_match(b"HE, LI, BE") && !codes.is_match(b"HE, LI, BE, B"));
    /// let Some(Value::List(items)) = codes.value(b"HE, LI") else { panic!() };
    /// assert_eq!(items, [Value::Text("HE".into()), Value::Text("LI".into())]);
    /// # Ok::<(), trie_rules::RegularError>(())
    /// ```
    ///
    /// # Errors
    /// A `min` above `max`; an automaton that exceeds [`AutomatonLimits::default`]; more than 256 nested repetitions.
    pub fn repeat(&self, min: usize, max: Option<usize>, separator: &str) -> Result<Self, RegularError> {
        self.repeat_with(min, max, separator, AutomatonLimits::default())
    }

    /// [`Regular::repeat`] with other limits.
    ///
    /// # Errors
    /// As [`Regular::repeat`].
    pub fn repeat_with(
        &self,
        min: usize,
        max: Option<usize>,
        separator: &str,
        limits: AutomatonLimits,
    ) -> Result<Self, RegularError> {
        if let Some(max) = max.filter(|max| min > *max) {
            return Err(RegularError::NoTimes { min, max });
        }
        let item = self.machine.clone().factor().small()?;
        // Each copy has its place: it is refused before there are so many.
        let copies = max.unwrap_or(min).max(1);
        let each = item.parts() + 1;
        if copies.checked_mul(each * Parts::SIZE).is_none_or(|bytes| bytes > limits.bytes) {
            return Err(AutomatonError::TooLarge { limit: limits.bytes }.into());
        }
        let literal = |text: &str| Regex::new(&regex_syntax::escape(text)).map(|regex| regex.automaton().clone());
        let between = (!separator.is_empty()).then(|| literal(separator)).transpose()?;
        let parts = Parts::repeat_factor(&item, between.as_ref(), &literal("")?, min, max);
        let machine = if parts.automata().all(|automaton| automaton.is_some()) {
            Machine::Automaton(parts.determinise(limits)?)
        } else {
            Machine::Parts(Arc::new(parts))
        };
        let repeat = Repeat { rule: self.clone(), min, max, separator: separator.into() };
        Ok(Self { machine, reads: ValueReader::repeat(repeat)? })
    }

    /// Returns the range of each item of a repetition in a text. Of several ways to split the text, the one whose first
    /// items are longest counts. `None` if this is not a repetition, or the text does not match.
    pub fn items(&self, text: &[u8]) -> Option<Vec<Range<usize>>> {
        match &self.reads {
            ValueReader::Repeat { repeat, .. } if self.is_match(text) => repeat.items(text),
            _ => None,
        }
    }
}

impl Parts {
    /// Copies of one part, with others between them. The last copy of a repetition without an end follows itself.
    fn repeat_factor(
        item: &Factor,
        between: Option<&Automaton>,
        empty: &Automaton,
        min: usize,
        max: Option<usize>,
    ) -> Self {
        let mut made = Self::empty();
        if min == 0 {
            made.begin(&Factor::Automaton(empty.clone()));
        }
        let separator = between.cloned().map(Factor::Automaton);
        // Ends of the copy before, and the starts of the last one.
        let (mut ends, mut last) = (Vec::new(), Vec::new());
        for copy in 1..=max.unwrap_or(min.max(1)) {
            if copy == 1 {
                (last, ends) = made.begin(item);
            } else {
                if let Some(separator) = &separator {
                    ends = made.add(&ends, separator).1;
                    made.goes_on(&ends);
                }
                (last, ends) = made.add(&ends, item);
            }
            if copy < min {
                made.goes_on(&ends);
            }
        }
        if max.is_none() {
            if let Some(separator) = &separator {
                ends = made.add(&ends, separator).1;
                made.goes_on(&ends);
            }
            made.follow(&ends, &last);
        }
        made
    }
}

impl Repeat {
    pub(super) fn rule(&self) -> &Regular {
        &self.rule
    }

    /// A way to split a text that is one: depth first, longest items first, no place tried twice.
    pub(super) fn items(&self, text: &[u8]) -> Option<Vec<Range<usize>>> {
        if text.is_empty() && self.min == 0 {
            return Some(Vec::new());
        }
        // Beyond the fewest it does not matter how many there were, where nothing bounds them.
        let known = |at: usize, count: usize| (at, if self.max.is_none() { count.min(self.min) } else { count });
        let mut tried = HashSet::from([known(0, 0)]);
        // Items that begin, each with the ends that were not tried, the longest last.
        let mut open: Vec<(usize, Vec<usize>)> = vec![(0, self.ends(text, 0))];
        let mut found: Vec<Range<usize>> = Vec::new();
        while let Some((begin, ends)) = open.last_mut() {
            let begin = *begin;
            let Some(end) = ends.pop() else {
                open.pop();
                found.pop();
                continue;
            };
            let count = open.len();
            if self.max.is_some_and(|max| count > max) {
                continue;
            }
            if end == text.len() && count >= self.min {
                found.push(begin..end);
                return Some(found);
            }
            let rest = &text[end..];
            let next = end + self.separator.len();
            if rest.starts_with(self.separator.as_bytes()) && tried.insert(known(next, count)) {
                found.push(begin..end);
                open.push((next, self.ends(text, next)));
            }
        }
        None
    }

    /// Returns the possible ends of an item that begins here, nearest first.
    fn ends(&self, text: &[u8], begin: usize) -> Vec<usize> {
        let mut state = self.rule.start();
        let mut ends = Vec::new();
        for at in begin..=text.len() {
            if self.rule.is_end(&state) {
                ends.push(at);
            }
            let Some(next) = text.get(at).and_then(|&byte| self.rule.step(&state, byte)) else { break };
            state = next;
        }
        ends
    }
}

impl Factor {
    /// Returns the number of its parts.
    fn parts(&self) -> usize {
        match self {
            Self::Automaton(_) => 1,
            Self::Choice(_) => 2,
            Self::Parts(parts) => parts.automata().count(),
        }
    }
}

//! Numbers and strings: all constraints on a scalar, as one automaton.

use super::normal::Said;
use super::{Engine, Refused, lock};
use crate::formula::{Literal, NumberSaid, TextSaid, Texts, Values};
use crate::json::Json;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use trie_core::work::look;
use trie_rules::{Decimal, NumberMachine, NumberSet, NumberSpelling, TextMachine, TextSet};

/// A string.
#[derive(Debug)]
pub(crate) struct TextShape {
    pub(crate) machine: TextMachine,
    /// True if any character may be written as an escape.
    pub(crate) escapes: bool,
    /// True if it has all texts, of some length.
    pub(crate) is_any: bool,
    /// True if it has all texts of all lengths.
    pub(crate) is_free: bool,
}

impl TextShape {
    pub(crate) fn new(machine: TextMachine, escapes: bool, is_any: bool) -> Arc<Self> {
        let is_free = is_any && machine.chars() == (0, None);
        Arc::new(Self { machine, escapes, is_any, is_free })
    }
}

/// Numbers of some set, and how they are written.
pub(super) type NumberKey = (NumberSet, NumberSpelling);
/// Patterns and formats that texts match, or do not.
type Patterns = Vec<(Arc<Texts>, bool)>;
/// Texts of some patterns with at least and at most so many characters.
pub(super) type TextKey = (Patterns, u32, Option<u32>);

/// Shapes of one kind that are shared at most; later ones are made anew.
pub(super) const MOST_SHARED: usize = 4096;

pub(super) fn keep<K: Eq + Hash, V: Clone>(known: &Mutex<HashMap<K, V>>, key: K, made: &V) {
    let mut known = lock(known);
    if known.len() < MOST_SHARED {
        known.insert(key, made.clone());
    }
}

/// Returns the error for an automaton that cannot be built.
fn too_large(keyword: &'static str, error: &dyn std::fmt::Display) -> Refused {
    match look(0, 0) {
        Err(over) => Refused::Over(over),
        Ok(()) => Refused::TooLarge { at: "".into(), keyword, why: error.to_string() },
    }
}

/// Digits of a number that is left out at most: one with more is written by nobody twice.
const LONGEST: usize = 1500;

fn excepted(set: NumberSet, values: &Values) -> NumberSet {
    let numbers =
        values.all.iter().filter_map(|value| if let Json::Number(number) = value { Some(number) } else { None });
    let numbers = numbers.filter_map(|number| Decimal::read(number).ok());
    numbers.filter(|number| number.to_string().len() <= LONGEST).fold(set, |set, number| set.remove(&number))
}

impl Engine {
    /// Returns the numbers that satisfy all of these constraints; `None` if there are none.
    pub(super) fn numbers(&self, all: &[Said]) -> Result<Option<Arc<NumberMachine>>, Refused> {
        let refused = |error: &dyn std::fmt::Display| too_large("the combination of multiples and bounds", error);
        let mut set = NumberSet::full();
        let mut is_whole = false;
        let mut others = 0;
        for said in all {
            others += 1;
            set = match said {
                Said::Number(NumberSaid::Least(bound, excluded), true) => set.at_least(bound, *excluded),
                Said::Number(NumberSaid::Most(bound, excluded), false) => set.at_least(bound, !excluded),
                Said::Number(NumberSaid::Most(bound, excluded), true) => set.at_most(bound, *excluded),
                Said::Number(NumberSaid::Least(bound, excluded), false) => set.at_most(bound, !excluded),
                Said::Number(NumberSaid::Multiple(step), true) => {
                    is_whole |= !step.to_string().contains('.');
                    set.multiple_of(step).map_err(|error| refused(&error))?
                }
                Said::Number(NumberSaid::Multiple(step), false) => {
                    set.no_multiple_of(step).map_err(|error| refused(&error))?
                }
                Said::NotIn(values) => excepted(set, values),
                _ => set,
            };
        }
        let any = self.written.any_spelling;
        let spelling = NumberSpelling::default().fraction(any || !is_whole).exponent(any || others == 0);
        // Many values are held to the same.
        let key = (set, spelling);
        if let Some(known) = lock(&self.common.numbers).get(&key) {
            return Ok(known.clone());
        }
        let made = NumberMachine::new(&key.0, spelling).map_err(|error| refused(&error))?.map(Arc::new);
        keep(&self.common.numbers, key, &made);
        Ok(made)
    }

    /// Returns the strings that satisfy all of these constraints; `None` if there are none.
    pub(super) fn text(&self, all: &[Said]) -> Result<Option<Arc<TextShape>>, Refused> {
        if all.is_empty() {
            return Ok(self.free_text().cloned());
        }
        let Some((least, most)) = lengths(all) else { return Ok(None) };
        let key = patterns(all).map(|patterns| (patterns, least, most));
        if let Some(known) = key.as_ref().and_then(|key| lock(&self.common.texts).get(key).cloned()) {
            return Ok(known);
        }
        let made = match text_set(all)? {
            Some(set) => self.text_of(set, least, most)?,
            None => None,
        };
        if let Some(key) = key {
            keep(&self.common.texts, key, &made);
        }
        Ok(made)
    }

    /// Returns the shape of strings without constraints.
    pub(crate) fn free_text(&self) -> Option<&Arc<TextShape>> {
        let made = || {
            let machine = TextMachine::new(&TextSet::full(), 0, None);
            machine.map(|machine| TextShape::new(machine, self.written.escapes, true))
        };
        self.common.text.get_or_init(made).as_ref()
    }

    fn text_of(&self, mut set: TextSet, least: u32, most: Option<u32>) -> Result<Option<Arc<TextShape>>, Refused> {
        if let Some(writable) = self.written.writable.as_ref().filter(|_| !set.is_all()) {
            set = both(&set, &writable.texts)?;
        }
        let is_any = set.is_all();
        let escapes = self.written.escapes && is_any;
        let machine = TextMachine::new(&set, least, most);
        Ok(machine.map(|machine| TextShape::new(machine, escapes, is_any)))
    }

    /// The names that a schema allows, or does not allow.
    pub(super) fn name_set(&self, literal: Literal) -> Result<TextSet, Refused> {
        let refused = |error: &dyn std::fmt::Display| too_large("the combination of names", error);
        let goal = self.goal([literal]);
        let mut whole = TextSet::none();
        for all in self.alternatives(&goal, crate::formula::Kind::Text)? {
            let values = all.iter().find_map(|said| if let Said::OneOf(values) = said { Some(values) } else { None });
            let set = if let Some(values) = values {
                let mut names = Vec::new();
                for value in &values.all {
                    if let (Json::String(name), true) = (value, self.allows(&goal, value)?) {
                        names.push(Arc::clone(name));
                    }
                }
                TextSet::one_of(names.iter().map(|name| &**name)).map_err(|error| refused(&error))?
            } else {
                let Some((least, most)) = lengths(&all) else { continue };
                let Some(set) = text_set(&all)? else { continue };
                if least == 0 && most.is_none() {
                    set
                } else {
                    let most = most.map_or_else(String::new, |most| most.to_string());
                    let long = TextSet::pattern(&format!("^[\\s\\S]{{{least},{most}}}$"));
                    set.and(&long.map_err(|error| refused(&error))?).map_err(|error| refused(&error))?
                }
            };
            whole = whole.or(&set).map_err(|error| refused(&error))?;
        }
        Ok(whole)
    }
}

/// Returns the bounds on the length of strings that satisfy all of these constraints; `None` if there are none.
fn lengths(all: &[Said]) -> Option<(u32, Option<u32>)> {
    let (mut least, mut most) = (0, None::<u32>);
    let mut at_most = |bound: u32| most = Some(most.map_or(bound, |most| most.min(bound)));
    for said in all {
        match said {
            Said::Text(TextSaid::Least(bound), true) => least = least.max(*bound),
            Said::Text(TextSaid::Most(bound), true) => at_most(*bound),
            Said::Text(TextSaid::Least(bound), false) => at_most(bound.checked_sub(1)?),
            Said::Text(TextSaid::Most(bound), false) => least = least.max(bound.checked_add(1)?),
            _ => {}
        }
    }
    most.is_none_or(|most| least <= most).then_some((least, most))
}

/// The patterns and formats of a string, where nothing else tells its texts apart but their lengths.
fn patterns(all: &[Said]) -> Option<Patterns> {
    let is_plain = !all.iter().any(|said| matches!(said, Said::NotIn(_)));
    let pattern = |said: &Said| match said {
        Said::Text(TextSaid::In(texts), sign) => Some((Arc::clone(texts), *sign)),
        _ => None,
    };
    is_plain.then(|| all.iter().filter_map(pattern).collect())
}

/// Returns the texts that satisfy all of these constraints, regardless of their lengths; `None` if there are none.
fn text_set(all: &[Said]) -> Result<Option<TextSet>, Refused> {
    let mut set = TextSet::full();
    for said in all {
        match said {
            Said::Text(TextSaid::In(texts), sign) => {
                let others = || texts.others.clone().unwrap_or_else(|| texts.set.complement());
                let other = if *sign { texts.set.clone() } else { others() };
                set = set.and(&other).map_err(|error| too_large("the combination of patterns", &error))?;
            }
            Said::NotIn(values) => {
                set = set
                    .and(&without(values)?)
                    .map_err(|error| too_large("the combination of listed values", &error))?;
            }
            _ => {}
        }
    }
    Ok((!set.is_empty()).then_some(set))
}

/// All strings but these.
fn without(values: &Values) -> Result<TextSet, Refused> {
    let texts = values.all.iter().filter_map(|value| value.as_str().map(|text| &**text));
    Ok(TextSet::one_of(texts).map_err(|error| too_large("the combination of listed values", &error))?.complement())
}

/// All names but these.
pub(super) fn outside<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<TextSet, Refused> {
    Ok(TextSet::one_of(names).map_err(|error| too_large("the combination of property names", &error))?.complement())
}

pub(super) fn both(one: &TextSet, other: &TextSet) -> Result<TextSet, Refused> {
    one.and(other).map_err(|error| too_large("the combination of patterns of names", &error))
}

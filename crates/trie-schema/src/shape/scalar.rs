//! Numbers and strings: all that is asked of one, as one automaton.

use super::normal::Said;
use super::{Engine, Refused};
use crate::formula::{Literal, NumberSaid, TextSaid, Values};
use crate::json::Json;
use std::sync::Arc;
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
    /// Numbers of which all of this is so; `None` where there are none.
    pub(super) fn numbers(&self, all: &[Said]) -> Result<Option<Arc<NumberMachine>>, Refused> {
        let refused = |error: &dyn std::fmt::Display| too_large("the combination of multiples and bounds", error);
        let mut set = NumberSet::full();
        let mut is_whole = false;
        let (mut others, mut integers) = (0, 0);
        for said in all {
            others += 1;
            set = match said {
                Said::Number(NumberSaid::Least(bound, excluded), true) => set.at_least(bound, *excluded),
                Said::Number(NumberSaid::Most(bound, excluded), false) => set.at_least(bound, !excluded),
                Said::Number(NumberSaid::Most(bound, excluded), true) => set.at_most(bound, *excluded),
                Said::Number(NumberSaid::Least(bound, excluded), false) => set.at_most(bound, !excluded),
                Said::Number(NumberSaid::Multiple(step), true) => {
                    let text = step.to_string();
                    is_whole |= !text.contains('.');
                    integers += usize::from(text == "1");
                    set.multiple_of(step).map_err(|error| refused(&error))?
                }
                Said::Number(NumberSaid::Multiple(step), false) => {
                    set.no_multiple_of(step).map_err(|error| refused(&error))?
                }
                Said::NotIn(values) => excepted(set, values),
                _ => set,
            };
        }
        let common = match (others, integers) {
            (0, _) => Some(&self.common.number),
            (others, integers) if others == integers => Some(&self.common.integer),
            _ => None,
        };
        if let Some(known) = common.and_then(|common| common.get()) {
            return Ok(Some(Arc::clone(known)));
        }
        if set.is_empty().map_err(|error| refused(&error))? {
            return Ok(None);
        }
        let any = self.written.any_spelling;
        let spelling = NumberSpelling::default().fraction(any || !is_whole).exponent(any || others == 0);
        let made = NumberMachine::new(&set, spelling).map_err(|error| refused(&error))?.map(Arc::new);
        if let (Some(common), Some(made)) = (common, &made) {
            let _ = common.set(Arc::clone(made));
        }
        Ok(made)
    }

    /// Strings of which all of this is so; `None` where there are none.
    pub(super) fn text(&self, all: &[Said]) -> Result<Option<Arc<TextShape>>, Refused> {
        if let (Some(known), true) = (self.common.text.get(), all.is_empty()) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some((mut set, least, most)) = text_set(all)? else { return Ok(None) };
        if let Some(writable) = self.written.writable.as_ref().filter(|_| !set.is_all()) {
            set = both(&set, &writable.texts)?;
        }
        let is_any = set.is_all();
        let escapes = self.written.escapes && is_any;
        let made = TextMachine::new(&set, least, most).map(|machine| Arc::new(TextShape { machine, escapes, is_any }));
        if let (true, Some(made)) = (all.is_empty(), &made) {
            let _ = self.common.text.set(Arc::clone(made));
        }
        Ok(made)
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
                let Some((set, least, most)) = text_set(&all)? else { continue };
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

/// A set of texts, and how long they are.
fn text_set(all: &[Said]) -> Result<Option<(TextSet, u32, Option<u32>)>, Refused> {
    let mut set = TextSet::full();
    let (mut least, mut most) = (0, None::<u32>);
    let mut at_most = |bound: u32| most = Some(most.map_or(bound, |most| most.min(bound)));
    for said in all {
        match said {
            Said::Text(TextSaid::Least(bound), true) => least = least.max(*bound),
            Said::Text(TextSaid::Most(bound), true) => at_most(*bound),
            Said::Text(TextSaid::Least(bound), false) => {
                let Some(bound) = bound.checked_sub(1) else { return Ok(None) };
                at_most(bound);
            }
            Said::Text(TextSaid::Most(bound), false) => {
                let Some(bound) = bound.checked_add(1) else { return Ok(None) };
                least = least.max(bound);
            }
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
    let is_some = !set.is_empty() && most.is_none_or(|most| least <= most);
    Ok(is_some.then_some((set, least, most)))
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

//! Validation of known values against goals.

use super::{Engine, Goal, Refused};
use crate::formula::{ArraySaid, Formula, Literal, Names, NodeId, NumberSaid, ObjectSaid, TextSaid, Types, Values};
use crate::json::{Json, plain};
use std::sync::Arc;
use trie_core::work::spend;
use trie_rules::{Decimal, NumberSet};

/// Schemas that apply to a value and to what is in it, inside each other, at most.
const DEEPEST: usize = 600;

struct Judging<'e> {
    engine: &'e Engine,
    /// A value, and a list that has it.
    own: Option<(&'e Values, &'e Json)>,
    deep: usize,
}

impl Engine {
    /// Returns whether a value is of a goal.
    pub(super) fn allows(&self, goal: &Goal, value: &Json) -> Result<bool, Refused> {
        goal.literals.iter().try_fold(true, |is, literal| Ok(is && self.fits(literal, value)?))
    }

    /// The same of a value of a list.
    pub(super) fn allows_of(&self, values: &Values, goal: &Goal, value: &Json) -> Result<bool, Refused> {
        let own = Some((values, value));
        goal.literals.iter().try_fold(true, |is, literal| Ok(is && self.judged(own, literal, value)?))
    }

    /// Returns whether a value is what a literal says.
    pub(super) fn fits(&self, literal: &Literal, value: &Json) -> Result<bool, Refused> {
        self.judged(None, literal, value)
    }

    fn judged(&self, own: Option<(&Values, &Json)>, literal: &Literal, value: &Json) -> Result<bool, Refused> {
        let mut judging = Judging { engine: self, own, deep: 0 };
        match literal {
            Literal::Is(node) => judging.schema(*node, value, true),
            Literal::IsNot(node) => judging.schema(*node, value, false),
            Literal::In(values) => Ok(judging.lists(values, value)),
            Literal::NotIn(values) => Ok(!judging.lists(values, value)),
        }
    }

    /// Returns whether a name is one of some.
    pub(super) fn has_name(&self, names: &Names, name: &Arc<str>) -> Result<bool, Refused> {
        Ok(match names {
            Names::Exact(own) => own == name,
            Names::Matching(texts) => texts.set.is_match(name),
            Names::Outside(outside) => {
                !outside.names.contains(name) && !outside.matching.iter().any(|texts| texts.set.is_match(name))
            }
            Names::Denied(node, is_sure) => {
                let name = Json::String(Arc::clone(name));
                if *is_sure {
                    self.fits(&Literal::IsNot(*node), &name)?
                } else {
                    !self.fits(&Literal::Is(*node), &name)?
                }
            }
        })
    }
}

fn is_type(types: Types, value: &Json) -> bool {
    let is_whole = |number: &str| plain(number).bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    types.meets(match value {
        Json::Null => Types::NULL,
        Json::Bool(_) => Types::BOOLEAN,
        Json::Number(number) if is_whole(number) => Types::NUMBER,
        Json::Number(_) => Types::NUMBER.without(Types::INTEGER),
        Json::String(_) => Types::STRING,
        Json::Array(_) => Types::ARRAY,
        Json::Object(_) => Types::OBJECT,
    })
}

impl Judging<'_> {
    /// Returns whether a list has a value, which is known of one that comes from it.
    fn lists(&self, values: &Values, value: &Json) -> bool {
        let is_own = |(own, one): (&Values, &Json)| std::ptr::eq(own, values) && std::ptr::eq(one, value);
        self.own.is_some_and(is_own) || values.has(value)
    }

    fn schema(&mut self, node: NodeId, value: &Json, sign: bool) -> Result<bool, Refused> {
        spend(2)?;
        let schema = &self.engine.nodes[node as usize];
        if self.deep >= DEEPEST {
            let why = format!("more than {DEEPEST} schemas apply to one value inside each other");
            return Err(Refused::TooLarge { at: Arc::clone(&schema.at), keyword: "$ref", why });
        }
        self.deep += 1;
        let is = self.holds(&schema.formula, value, sign);
        self.deep -= 1;
        is
    }

    /// Returns whether a formula holds, or does not; what is not held says neither.
    fn holds(&mut self, formula: &Formula, value: &Json, sign: bool) -> Result<bool, Refused> {
        let all = |judging: &mut Self, all: &[Formula]| {
            all.iter().try_fold(true, |is, one| Ok::<_, Refused>(is && judging.holds(one, value, sign)?))
        };
        let any = |judging: &mut Self, any: &[Formula]| {
            any.iter().try_fold(false, |is, one| Ok::<_, Refused>(is || judging.holds(one, value, sign)?))
        };
        Ok(match formula {
            Formula::Unheld => true,
            Formula::True => sign,
            Formula::False => !sign,
            Formula::Types(types) => is_type(*types, value) == sign,
            Formula::OneOf(values) => self.lists(values, value) == sign,
            Formula::Not(inner) => return self.holds(inner, value, !sign),
            Formula::AssertOnly(inner) => return Ok(sign && self.holds(inner, value, true)?),
            Formula::Schema(node) => return self.schema(*node, value, sign),
            Formula::All(parts) if sign => return all(self, parts),
            Formula::All(parts) => return any(self, parts),
            Formula::Any(parts) if sign => return any(self, parts),
            Formula::Any(parts) => return all(self, parts),
            Formula::One(branches) => {
                let (mut is, mut is_not) = (Vec::new(), Vec::new());
                for branch in branches {
                    is.push(self.holds(branch, value, true)?);
                    is_not.push(self.holds(branch, value, false)?);
                }
                let others = |own: usize| (0..is.len()).all(|other| other == own || is_not[other]);
                if sign {
                    (0..is.len()).any(|own| is[own] && others(own))
                } else {
                    is_not.iter().all(|is_not| *is_not) || is.iter().filter(|is| **is).count() >= 2
                }
            }
            Formula::Number(said) => {
                let Json::Number(number) = value else { return Ok(sign) };
                number_holds(said, number) == sign
            }
            Formula::Text(said) => {
                let Json::String(text) = value else { return Ok(sign) };
                let chars = || u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
                match said {
                    TextSaid::Least(least) => (chars() >= *least) == sign,
                    TextSaid::Most(most) => (chars() <= *most) == sign,
                    TextSaid::In(texts) => texts.holds(text, sign),
                }
            }
            Formula::Array(said) => {
                let Json::Array(items) = value else { return Ok(sign) };
                self.array(said, items, sign)?
            }
            Formula::Object(said) => {
                let Json::Object(members) = value else { return Ok(sign) };
                self.object(said, members, sign)?
            }
        })
    }

    fn array(&mut self, said: &ArraySaid, items: &[Json], sign: bool) -> Result<bool, Refused> {
        Ok(match *said {
            ArraySaid::Each { from, to, value } => {
                let some = items.iter().take(to).skip(from);
                let mut differing = false;
                for item in some {
                    differing |= if sign { !self.schema(value, item, true)? } else { self.schema(value, item, false)? };
                }
                differing != sign
            }
            ArraySaid::Contains { value, least, most } => {
                let mut count = 0;
                for item in items {
                    count += usize::from(self.schema(value, item, true)?);
                }
                (least..=most).contains(&count) == sign
            }
            ArraySaid::Least(least) => (items.len() >= least) == sign,
            ArraySaid::Most(most) => (items.len() <= most) == sign,
            ArraySaid::Unique => {
                let mut sorted: Vec<&Json> = items.iter().collect();
                sorted.sort_unstable();
                sorted.windows(2).all(|pair| pair[0] != pair[1]) == sign
            }
        })
    }

    fn object(&mut self, said: &ObjectSaid, members: &[(Arc<str>, Json)], sign: bool) -> Result<bool, Refused> {
        Ok(match said {
            ObjectSaid::Each { names, value, .. } => {
                // What is denied must surely be so.
                let sure = match names {
                    Names::Denied(node, _) if !sign => Some(Names::Denied(*node, true)),
                    _ => None,
                };
                let names = sure.as_ref().unwrap_or(names);
                let mut differing = false;
                for (name, member) in members {
                    if self.engine.has_name(names, name)? {
                        differing |= if sign {
                            !self.schema(*value, member, true)?
                        } else {
                            self.schema(*value, member, false)?
                        };
                    }
                }
                differing != sign
            }
            ObjectSaid::Has(name) => members.iter().any(|(own, _)| own == name) == sign,
            ObjectSaid::Least(least) => (members.len() >= *least) == sign,
            ObjectSaid::Most(most) => (members.len() <= *most) == sign,
        })
    }
}

fn number_holds(said: &NumberSaid, number: &str) -> bool {
    let Ok(value) = Decimal::read(number) else { return false };
    match said {
        NumberSaid::Least(bound, excluded) => value > *bound || !excluded && value == *bound,
        NumberSaid::Most(bound, excluded) => value < *bound || !excluded && value == *bound,
        NumberSaid::Multiple(step) => NumberSet::all().multiple_of(step).is_ok_and(|set| set.contains(&value)),
    }
}

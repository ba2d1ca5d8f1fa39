//! Normal form of the constraints on a value of one kind: alternatives, each a list of keywords.

use super::{COPIES, Engine, Goal, Refused};
use crate::formula::{
    ArraySaid, Formula, Kind, Literal, NONE, Names, NodeId, NumberSaid, ObjectSaid, Outside, TextSaid, Values,
};
use crate::json::Json;
use std::collections::HashMap;
use std::sync::Arc;
use trie_core::work::{hold, spend};
use trie_rules::Decimal;

/// Constraint of one keyword, or its negation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    Number(NumberSaid, bool),
    Text(TextSaid, bool),
    OneOf(Arc<Values>),
    NotIn(Arc<Values>),
    /// Every member with such a name.
    Each {
        names: Names,
        value: Literal,
        declares: bool,
    },
    /// One of these is so.
    Clause(Vec<Way>),
    /// Every item from one place to before another.
    Items {
        from: usize,
        to: usize,
        value: Literal,
    },
    Count {
        from: usize,
        to: usize,
        value: Literal,
        least: usize,
        most: usize,
    },
    Least(usize),
    Most(usize),
    Unique,
    /// Some two items are equal.
    Repeats,
}

/// A way in which one of several may be so.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Way {
    /// No member has this name.
    Absent(Arc<str>),
    /// Some member has such a name and such a value.
    Some(Names, Literal),
}

/// Alternatives of one goal at most.
const MOST: usize = 4096;
/// Schemas that apply to one value inside each other at most.
const DEEPEST: usize = 600;
/// Clauses that a choice becomes at most: else it stays a choice.
const MOST_CLAUSES: usize = 16;

#[derive(Debug, Clone, PartialEq)]
enum Normal {
    True,
    False,
    Said(Said),
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// A branch of `oneOf`, for one kind of value.
struct Branch {
    held: Normal,
    denied: Normal,
    tags: Vec<(Arc<str>, Arc<Values>)>,
}

struct Reading<'e> {
    engine: &'e Engine,
    kind: Kind,
    /// Schemas that are being read, with their signs.
    open: Vec<(NodeId, bool)>,
    /// Schemas that were read and are the same wherever they stand: many may refer to one.
    known: HashMap<(NodeId, bool), (Normal, usize)>,
    /// The outermost open schema that was met inside itself since the innermost one was begun.
    outermost: usize,
}

/// Adds a part, unless it equals one of the few before it: repeated parts must not double at each level.
fn add(kept: &mut Vec<Normal>, one: Normal) {
    const FEW: usize = 16;
    let last = kept.len().saturating_sub(FEW);
    if !kept[last..].contains(&one) {
        kept.push(one);
    }
}

fn all_of(all: impl IntoIterator<Item = Normal>) -> Normal {
    let mut kept = Vec::new();
    for one in all {
        match one {
            Normal::True => {}
            Normal::False => return Normal::False,
            Normal::All(more) => more.into_iter().for_each(|one| add(&mut kept, one)),
            other => add(&mut kept, other),
        }
    }
    match kept.len() {
        0 => Normal::True,
        1 => kept.remove(0),
        _ => Normal::All(kept),
    }
}

fn any_of(any: impl IntoIterator<Item = Normal>) -> Normal {
    let mut kept = Vec::new();
    for one in any {
        match one {
            Normal::False => {}
            Normal::True => return Normal::True,
            Normal::Any(more) => more.into_iter().for_each(|one| add(&mut kept, one)),
            other => add(&mut kept, other),
        }
    }
    match kept.len() {
        0 => Normal::False,
        1 => kept.remove(0),
        _ => Normal::Any(kept),
    }
}

/// Returns the number of parts of a formula.
fn count_parts(normal: &Normal) -> usize {
    match normal {
        Normal::All(parts) | Normal::Any(parts) => 1 + parts.iter().map(count_parts).sum::<usize>(),
        Normal::True | Normal::False | Normal::Said(_) => 1,
    }
}

fn some(names: Names, value: Literal) -> Normal {
    Normal::Said(Said::Clause(vec![Way::Some(names, value)]))
}

impl Reading<'_> {
    fn too_deep(&self, node: NodeId) -> Refused {
        let why = format!("more than {DEEPEST} schemas apply to one value inside each other");
        Refused::TooLarge { at: Arc::clone(&self.engine.nodes[node as usize].at), keyword: "$ref", why }
    }

    fn schema(&mut self, node: NodeId, sign: bool) -> Result<Normal, Refused> {
        if let Some((known, parts)) = self.known.get(&(node, sign)) {
            // Copies of copies may double at each level; alternatives keep several of each.
            spend(*parts)?;
            hold(COPIES * parts * size_of::<Normal>())?;
            return Ok(known.clone());
        }
        // What needs itself holds of no value.
        if let Some(at) = self.open.iter().position(|&open| open == (node, sign)) {
            self.outermost = self.outermost.min(at);
            return Ok(if sign { Normal::False } else { Normal::True });
        }
        let depth = self.open.len();
        if depth >= DEEPEST {
            return Err(self.too_deep(node));
        }
        self.open.push((node, sign));
        let before = std::mem::replace(&mut self.outermost, usize::MAX);
        let engine = self.engine;
        let read = self.read(&engine.nodes[node as usize].formula, sign);
        self.open.pop();
        let read = read?;
        if self.outermost >= depth {
            // Nothing around it was of weight.
            let parts = count_parts(&read);
            self.known.insert((node, sign), (read.clone(), parts));
            self.outermost = before;
        } else {
            self.outermost = self.outermost.min(before);
        }
        Ok(read)
    }

    fn literal(&mut self, literal: &Literal) -> Result<Normal, Refused> {
        match literal {
            Literal::Is(node) => self.schema(*node, true),
            Literal::IsNot(node) => self.schema(*node, false),
            Literal::In(values) => self.read(&Formula::OneOf(Arc::clone(values)), true),
            Literal::NotIn(values) => self.read(&Formula::OneOf(Arc::clone(values)), false),
        }
    }

    fn read(&mut self, formula: &Formula, sign: bool) -> Result<Normal, Refused> {
        spend(2)?;
        let truth = |truth: bool| if truth == sign { Normal::True } else { Normal::False };
        Ok(match formula {
            Formula::False => truth(false),
            Formula::Unheld => Normal::True,
            Formula::Types(types) if self.kind == Kind::Number && !types.has(Kind::Number) && types.has_integer() => {
                match Decimal::read("1") {
                    Ok(one) => Normal::Said(Said::Number(NumberSaid::Multiple(one), sign)),
                    Err(_) => truth(true),
                }
            }
            Formula::Types(types) => truth(types.has(self.kind)),
            Formula::OneOf(values) => self.values(values, sign),
            Formula::Number(said) if self.kind == Kind::Number => Normal::Said(Said::Number(said.clone(), sign)),
            Formula::Text(said) if self.kind == Kind::Text => Normal::Said(Said::Text(said.clone(), sign)),
            Formula::Object(said) if self.kind == Kind::Object => object(said, sign),
            Formula::Array(said) if self.kind == Kind::Array => array(said, sign),
            Formula::True | Formula::Number(_) | Formula::Text(_) | Formula::Object(_) | Formula::Array(_) => {
                truth(true)
            }
            Formula::Not(inner) => self.read(inner, !sign)?,
            Formula::AssertOnly(inner) if sign => self.read(inner, true)?,
            Formula::AssertOnly(_) => Normal::False,
            Formula::Schema(node) => self.schema(*node, sign)?,
            Formula::All(all) | Formula::Any(all) => {
                let read = all.iter().map(|one| self.read(one, sign)).collect::<Result<Vec<_>, _>>()?;
                if matches!(formula, Formula::All(_)) == sign { all_of(read) } else { any_of(read) }
            }
            Formula::One(branches) => self.one(branches, sign)?,
        })
    }

    /// Exactly one of some branches, or not exactly one.
    fn one(&mut self, branches: &[Formula], sign: bool) -> Result<Normal, Refused> {
        // A branch that no value of this kind holds may still not be denied: a constraint beyond the standard refuses
        // what the standard allows.
        let mut told = Vec::new();
        for branch in branches {
            let (held, denied) = (self.read(branch, true)?, self.read(branch, false)?);
            if !matches!((&held, &denied), (Normal::False, Normal::True)) {
                told.push(Branch { held, denied, tags: self.engine.tags(branch) });
            }
        }
        let are_apart = |one: usize, other: usize| {
            told[one].tags.iter().any(|(name, values)| {
                let others = told[other].tags.iter().find(|(own, _)| own == name);
                others.is_some_and(|(_, others)| !values.all.iter().any(|value| others.has(value)))
            })
        };
        if !sign {
            let none = all_of(told.iter().map(|branch| branch.denied.clone()));
            let mut any = vec![none];
            for one in 0..told.len() {
                for other in one + 1..told.len() {
                    spend(1)?;
                    if self.kind != Kind::Object || !are_apart(one, other) {
                        any.push(all_of([told[one].held.clone(), told[other].held.clone()]));
                    }
                }
            }
            return Ok(any_of(any));
        }
        let mut any = Vec::new();
        for (one, Branch { held, .. }) in told.iter().enumerate() {
            if matches!(held, Normal::False) {
                continue;
            }
            let mut all = vec![held.clone()];
            for (other, Branch { denied, .. }) in told.iter().enumerate() {
                spend(1)?;
                if other != one && (self.kind != Kind::Object || !are_apart(one, other)) {
                    all.push(denied.clone());
                }
            }
            any.push(all_of(all));
        }
        Ok(any_of(any))
    }

    /// Returns whether values of this kind may be spelled freely: a number has one spelling unless `any_spelling`.
    fn writes_freely(&self, values: &Arc<Values>) -> bool {
        self.engine.writes_freely(values) && (self.kind != Kind::Number || self.engine.written.any_spelling)
    }

    fn values(&self, values: &Arc<Values>, sign: bool) -> Normal {
        let is_of = |value: &Json| match value {
            Json::Null => Kind::Null,
            Json::Bool(_) => Kind::Bool,
            Json::Number(_) => Kind::Number,
            Json::String(_) => Kind::Text,
            Json::Array(_) => Kind::Array,
            Json::Object(_) => Kind::Object,
        } == self.kind;
        match (values.all.iter().any(is_of), sign) {
            (false, true) => Normal::False,
            (false, false) => Normal::True,
            (true, true) if self.writes_freely(values) => {
                any_of(values.all.iter().filter(|value| is_of(value)).map(|value| equals(value, values)))
            }
            (true, true) => Normal::Said(Said::OneOf(Arc::clone(values))),
            (true, false) if matches!(self.kind, Kind::Array | Kind::Object) => {
                all_of(values.all.iter().filter(|value| is_of(value)).map(differs))
            }
            (true, false) => Normal::Said(Said::NotIn(Arc::clone(values))),
        }
    }
}

fn array(said: &ArraySaid, sign: bool) -> Normal {
    let normal = |said| Normal::Said(said);
    match *said {
        ArraySaid::Each { from, to, value } if sign => normal(Said::Items { from, to, value: Literal::Is(value) }),
        ArraySaid::Each { from, to, value } => {
            normal(Said::Count { from, to, value: Literal::IsNot(value), least: 1, most: usize::MAX })
        }
        ArraySaid::Contains { value, least, most } => {
            let count = |least, most| {
                let value = Literal::Is(value);
                normal(Said::Count { from: 0, to: usize::MAX, value, least, most })
            };
            if sign {
                if least > most { Normal::False } else { count(least, most) }
            } else {
                let fewer = least.checked_sub(1).map_or(Normal::False, |most| count(0, most));
                let more = most.checked_add(1).map_or(Normal::False, |least| count(least, usize::MAX));
                any_of([fewer, more])
            }
        }
        ArraySaid::Least(least) if sign => normal(Said::Least(least)),
        ArraySaid::Most(most) if sign => normal(Said::Most(most)),
        ArraySaid::Least(least) => least.checked_sub(1).map_or(Normal::False, |most| normal(Said::Most(most))),
        ArraySaid::Most(most) => most.checked_add(1).map_or(Normal::False, |least| normal(Said::Least(least))),
        ArraySaid::Unique if sign => normal(Said::Unique),
        ArraySaid::Unique => normal(Said::Repeats),
    }
}

fn object(said: &ObjectSaid, sign: bool) -> Normal {
    let normal = |said| Normal::Said(said);
    match said {
        ObjectSaid::Each { names, value, declares } if sign => {
            normal(Said::Each { names: names.clone(), value: Literal::Is(*value), declares: *declares })
        }
        // Some name must surely be one that the schema does not allow.
        ObjectSaid::Each { names: Names::Denied(node, _), value, .. } => {
            some(Names::Denied(*node, true), Literal::IsNot(*value))
        }
        ObjectSaid::Each { names, value, .. } => some(names.clone(), Literal::IsNot(*value)),
        ObjectSaid::Has(name) if sign => some(Names::Exact(Arc::clone(name)), Literal::Is(crate::formula::ANY)),
        ObjectSaid::Has(name) => normal(Said::Clause(vec![Way::Absent(Arc::clone(name))])),
        ObjectSaid::Least(least) if sign => normal(Said::Least(*least)),
        ObjectSaid::Most(most) if sign => normal(Said::Most(*most)),
        ObjectSaid::Least(least) => least.checked_sub(1).map_or(Normal::False, |most| normal(Said::Most(most))),
        ObjectSaid::Most(most) => most.checked_add(1).map_or(Normal::False, |least| normal(Said::Least(least))),
    }
}

/// A value, in whatever way it is written.
fn equals(value: &Json, values: &Arc<Values>) -> Normal {
    let is = |value: &Json| Literal::In(Arc::new(Values::new(vec![value.clone()])));
    match value {
        Json::Number(number) => match Decimal::read(number) {
            Ok(number) => Normal::All(vec![
                Normal::Said(Said::Number(NumberSaid::Least(number.clone(), false), true)),
                Normal::Said(Said::Number(NumberSaid::Most(number, false), true)),
            ]),
            Err(_) => Normal::Said(Said::OneOf(Arc::clone(values))),
        },
        Json::Array(items) => {
            let each = items.iter().enumerate();
            let each = each.map(|(nth, item)| Normal::Said(Said::Items { from: nth, to: nth + 1, value: is(item) }));
            let bounds = [Said::Least(items.len()), Said::Most(items.len())].map(Normal::Said);
            all_of(each.chain(bounds))
        }
        Json::Object(members) => {
            let names = members.iter().map(|(name, _)| Arc::clone(name)).collect();
            let outside = Names::Outside(Arc::new(Outside { names, matching: Vec::new() }));
            let none = Normal::Said(Said::Each { names: outside, value: Literal::Is(NONE), declares: false });
            let each = members.iter().flat_map(|(name, value)| {
                let names = Names::Exact(Arc::clone(name));
                let each = Said::Each { names: names.clone(), value: is(value), declares: true };
                [Normal::Said(each), some(names, Literal::Is(crate::formula::ANY))]
            });
            all_of(each.chain([none]))
        }
        _ => Normal::Said(Said::OneOf(Arc::clone(values))),
    }
}

/// Returns the constraint that an array or an object differs from this one.
fn differs(value: &Json) -> Normal {
    let not = |value: &Json| Literal::NotIn(Arc::new(Values::new(vec![value.clone()])));
    match value {
        Json::Array(items) => {
            let count = items.len();
            let shorter = count.checked_sub(1).map_or(Normal::False, |most| Normal::Said(Said::Most(most)));
            let longer = Normal::Said(Said::Least(count + 1));
            let other = items.iter().enumerate().map(|(nth, item)| {
                Normal::Said(Said::Count { from: nth, to: nth + 1, value: not(item), least: 1, most: usize::MAX })
            });
            any_of([shorter, longer].into_iter().chain(other))
        }
        Json::Object(members) => {
            let names = members.iter().map(|(name, _)| Arc::clone(name)).collect();
            let outside = Names::Outside(Arc::new(Outside { names, matching: Vec::new() }));
            let other = members.iter().flat_map(|(name, value)| {
                let absent = Normal::Said(Said::Clause(vec![Way::Absent(Arc::clone(name))]));
                [absent, some(Names::Exact(Arc::clone(name)), not(value))]
            });
            any_of([some(outside, Literal::Is(crate::formula::ANY))].into_iter().chain(other))
        }
        _ => Normal::True,
    }
}

/// The ways in which a part of a choice may be so, where nothing else is asked.
fn ways(normal: &Normal) -> Option<Vec<Way>> {
    match normal {
        Normal::Said(Said::Clause(ways)) => Some(ways.clone()),
        Normal::Said(Said::Each { names: Names::Exact(name), value, .. }) => {
            let absent = Way::Absent(Arc::clone(name));
            if *value == Literal::Is(NONE) {
                return Some(vec![absent]);
            }
            Some(vec![absent, Way::Some(Names::Exact(Arc::clone(name)), value.clone())])
        }
        _ => None,
    }
}

fn merged(one: &[Way], other: &[Way]) -> Vec<Way> {
    let new = other.iter().filter(|way| !one.contains(way));
    one.iter().chain(new).cloned().collect()
}

impl Engine {
    /// Names that an object of a branch must have, with the values that they may have: they tell branches apart.
    fn tags(&self, branch: &Formula) -> Vec<(Arc<str>, Arc<Values>)> {
        fn gather(engine: &Engine, formula: &Formula, deep: usize, tags: &mut Tags) {
            match formula {
                Formula::All(all) => all.iter().for_each(|one| gather(engine, one, deep, tags)),
                Formula::Schema(node) if deep < 8 => {
                    gather(engine, &engine.nodes[*node as usize].formula, deep + 1, tags);
                }
                Formula::Object(ObjectSaid::Has(name)) => tags.needed.push(Arc::clone(name)),
                Formula::Object(ObjectSaid::Each { names: Names::Exact(name), value, .. }) => {
                    let goal = Goal::of(vec![Literal::Is(*value)]);
                    tags.values.extend(engine.listed(&goal).map(|values| (Arc::clone(name), values)));
                }
                _ => {}
            }
        }
        let mut tags = Tags::default();
        gather(self, branch, 0, &mut tags);
        tags.values.retain(|(name, _)| tags.needed.contains(name));
        tags.values
    }

    /// Returns the constraints on a value of one kind, as alternatives.
    pub(super) fn alternatives(&self, goal: &Goal, kind: Kind) -> Result<Vec<Vec<Said>>, Refused> {
        let mut reading =
            Reading { engine: self, kind, open: Vec::new(), known: HashMap::new(), outermost: usize::MAX };
        let read = goal.literals.iter().map(|literal| reading.literal(literal)).collect::<Result<Vec<_>, _>>()?;
        match all_of(read) {
            Normal::False => Ok(Vec::new()),
            Normal::True => Ok(vec![Vec::new()]),
            normal => self.flat(&normal, kind, goal),
        }
    }

    fn too_many(&self, goal: &Goal) -> Refused {
        let node = goal.literals.iter().rev().find_map(|literal| match literal {
            Literal::Is(node) | Literal::IsNot(node) => Some(*node),
            _ => None,
        });
        let (at, keyword) = self.multiplying(node.unwrap_or(NONE));
        let why = "what holds at once here is too much; describe fewer alternatives".to_owned();
        Refused::TooLarge { at, keyword, why }
    }

    /// The place of the keyword whose alternatives are most.
    fn multiplying(&self, node: NodeId) -> (Arc<str>, &'static str) {
        let mut best = (0, Arc::clone(&self.nodes[node as usize].at), "the schema");
        let mut open = vec![(node, &self.nodes[node as usize].formula)];
        let mut seen = vec![node];
        while let Some((node, formula)) = open.pop() {
            let (count, keyword) = match formula {
                Formula::Any(any) => (any.len(), "anyOf"),
                Formula::One(any) => (any.len(), "oneOf"),
                _ => (0, ""),
            };
            if count > best.0 {
                let node = &self.nodes[node as usize];
                best = (count, Arc::clone(&node.at), node.keyword.unwrap_or(keyword));
            }
            match formula {
                Formula::All(all) | Formula::Any(all) | Formula::One(all) => {
                    open.extend(all.iter().map(|one| (node, one)));
                }
                Formula::Not(inner) | Formula::AssertOnly(inner) => open.push((node, inner)),
                Formula::Schema(other) if !seen.contains(other) && seen.len() < 1000 => {
                    seen.push(*other);
                    open.push((*other, &self.nodes[*other as usize].formula));
                }
                _ => {}
            }
        }
        (best.1, best.2)
    }

    fn flat(&self, normal: &Normal, kind: Kind, goal: &Goal) -> Result<Vec<Vec<Said>>, Refused> {
        match normal {
            Normal::True => Ok(vec![Vec::new()]),
            Normal::False => Ok(Vec::new()),
            Normal::Said(said) => Ok(vec![vec![said.clone()]]),
            Normal::All(all) => {
                // What is sure comes first: it leaves out what does not fit to it.
                let mut product: Vec<Vec<Said>> = vec![Vec::new()];
                for is_choice in [false, true] {
                    for one in all.iter().filter(|one| matches!(one, Normal::Any(_)) == is_choice) {
                        let more = self.flat(one, kind, goal)?;
                        if let [only] = &more[..] {
                            for all in &mut product {
                                all.extend(only.iter().cloned());
                            }
                            continue;
                        }
                        let mut next = Vec::new();
                        for all in &product {
                            for more in &more {
                                spend(1 + more.len())?;
                                next.push(all.iter().chain(more).cloned().collect::<Vec<_>>());
                            }
                        }
                        if next.len() > 8 && kind == Kind::Object {
                            let mut kept = Vec::new();
                            for all in next {
                                if self.may_be(&all)? {
                                    kept.push(all);
                                }
                            }
                            next = kept;
                        }
                        if next.len() > MOST {
                            return Err(self.too_many(goal));
                        }
                        product = next;
                    }
                }
                Ok(product)
            }
            Normal::Any(any) => {
                let (mut simple, mut others): (Vec<Way>, Vec<&Normal>) = (Vec::new(), Vec::new());
                for one in any {
                    match ways(one).filter(|_| kind == Kind::Object) {
                        Some(ways) => simple = merged(&simple, &ways),
                        None => others.push(one),
                    }
                }
                // One that asks for several at once becomes a clause for each of these.
                if let ([Normal::All(all)], false) = (&others[..], simple.is_empty()) {
                    let each: Option<Vec<_>> = all.iter().map(ways).collect();
                    if let Some(each) = each.filter(|each| each.len() <= MOST_CLAUSES) {
                        return Ok(vec![each.iter().map(|more| Said::Clause(merged(&simple, more))).collect()]);
                    }
                }
                let mut all = Vec::new();
                if !simple.is_empty() {
                    all.push(vec![Said::Clause(simple)]);
                }
                for one in others {
                    all.extend(self.flat(one, kind, goal)?);
                    if all.len() > MOST {
                        return Err(self.too_many(goal));
                    }
                }
                Ok(all)
            }
        }
    }
}

#[derive(Default)]
struct Tags {
    needed: Vec<Arc<str>>,
    values: Vec<(Arc<str>, Arc<Values>)>,
}

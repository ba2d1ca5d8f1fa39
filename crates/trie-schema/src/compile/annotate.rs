//! `unevaluatedProperties` and `unevaluatedItems`: constraints on members and items that no other keyword has
//! evaluated.
//!
//! The branches that hold are not known before the value is written. So the keyword becomes alternatives. Each assumes
//! that some branches hold, and constrains the members and items that these leave unevaluated. An assumption that is
//! not made leaves only more of them unevaluated, so the alternatives together mean exactly the same as the keyword.

use super::index::escaped;
use super::keywords::Held;
use super::{Compiler, Draft, Source};
use crate::formula::{ArraySaid, Formula, Names, NodeId, ObjectSaid, Outside, Texts};
use crate::json::Json;
use crate::schema::SchemaError;
use std::sync::Arc;
use trie_core::work::spend;

/// Alternatives of one keyword at most.
const MOST: usize = 4096;
/// Schemas that apply to one value inside each other at most.
const DEEPEST: usize = 64;

/// Evaluated members and items of a value, which `unevaluated…` keywords leave out.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Looked {
    pub(super) all: bool,
    pub(super) names: Vec<Arc<str>>,
    pub(super) matching: Vec<Arc<Texts>>,
    items: usize,
    contains: Vec<NodeId>,
}

impl Looked {
    pub(super) fn with(&self, other: &Self) -> Self {
        fn union<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Vec<T> {
            let new = other.iter().filter(|more| !one.contains(more));
            one.iter().chain(new).cloned().collect()
        }
        Self {
            all: self.all || other.all,
            names: union(&self.names, &other.names),
            matching: union(&self.matching, &other.matching),
            items: self.items.max(other.items),
            contains: union(&self.contains, &other.contains),
        }
    }
}

/// Claims that are assumed to hold, with the members and items evaluated under them.
type Choice = (Vec<Formula>, Looked);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Members,
    Items,
}

impl Of {
    fn keyword(self) -> &'static str {
        match self {
            Self::Members => "unevaluatedProperties",
            Self::Items => "unevaluatedItems",
        }
    }
}

impl<'a> Compiler<'a> {
    pub(super) fn unevaluated(
        &mut self,
        _node: NodeId,
        source: &Source<'a>,
        all: &mut Vec<Formula>,
    ) -> Result<(), SchemaError> {
        if source.draft < Draft::Draft2019 {
            return Ok(());
        }
        for of in [Of::Members, Of::Items] {
            let Some(value) = source.json.get(of.keyword()) else { continue };
            if matches!(value, Json::Bool(true)) {
                continue;
            }
            let value = self.child(source, value, of.keyword());
            let mut alternatives = Vec::new();
            for (mut claims, looked) in self.choices(source, of, 0)? {
                claims.extend(self.rest(source, of, looked, value));
                alternatives.push(super::keywords::all_of(claims));
            }
            if alternatives.len() == 1 {
                all.push(alternatives.remove(0));
            } else {
                let choice = self.made(&source.at, Formula::Any(alternatives));
                self.choosing.push((choice, of.keyword()));
                all.push(Formula::Schema(choice));
            }
        }
        Ok(())
    }

    /// Returns the constraint on members or items that nothing has evaluated; `None` if all are evaluated.
    fn rest(&mut self, source: &Source<'a>, of: Of, looked: Looked, value: NodeId) -> Option<Formula> {
        if looked.all {
            return None;
        }
        Some(match of {
            Of::Members => {
                let outside = Outside { names: looked.names, matching: looked.matching };
                let names = Names::Outside(Arc::new(outside));
                Formula::Object(ObjectSaid::Each { names, value, declares: false })
            }
            Of::Items => {
                let value = if looked.contains.is_empty() {
                    value
                } else {
                    let any = looked.contains.into_iter().chain([value]).map(Formula::Schema).collect();
                    self.made(&source.at, Formula::Any(any))
                };
                Formula::Array(ArraySaid::Each { from: looked.items, to: usize::MAX, value })
            }
        })
    }

    fn choices(&mut self, source: &Source<'a>, of: Of, deep: usize) -> Result<Vec<Choice>, SchemaError> {
        let too_large = |what: &str| {
            let place = crate::schema::place(&source.at);
            let keyword = of.keyword();
            SchemaError::TooLarge { reason: format!("{place}{keyword} is not supported: {what}") }
        };
        if deep > DEEPEST {
            return Err(too_large("more than 64 schemas apply to one value inside each other"));
        }
        let json = source.json;
        let mut choices: Vec<Choice> = vec![(Vec::new(), self.looked(source, of, deep > 0)?)];
        let Some(members) = json.as_object() else { return Ok(choices) };
        let is_alone = source.draft <= Draft::Old && json.get("$ref").is_some();
        for (keyword, value) in members {
            if is_alone && **keyword != *"$ref" {
                continue;
            }
            // Each with all that was chosen before, or only where it is claimed.
            let mut every: Vec<Vec<Choice>> = Vec::new();
            match (&**keyword, value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Json::String(to)) => {
                    let node = self.referred(source, keyword, to)?;
                    every.push(self.of_node(node, of, deep)?);
                }
                ("allOf", Json::Array(all)) => {
                    for (nth, one) in all.iter().enumerate() {
                        let node = self.child(source, one, &format!("allOf/{nth}"));
                        every.push(self.of_node(node, of, deep)?);
                    }
                }
                ("anyOf" | "oneOf", Json::Array(all)) => {
                    for (nth, one) in all.iter().enumerate() {
                        let node = self.child(source, one, &format!("{keyword}/{nth}"));
                        every.push(self.claimed(node, &[Formula::Schema(node)], of, deep)?);
                    }
                    if **keyword == *"oneOf" {
                        // Only one of them holds.
                        let nothing = (Vec::new(), Looked::default());
                        let each = every.drain(..).flatten().filter(|(claims, _)| !claims.is_empty());
                        every = vec![std::iter::once(nothing).chain(each.collect::<Vec<_>>()).collect()];
                    }
                }
                ("if", _) => {
                    let condition = self.child(source, value, "if");
                    let mut some = vec![(Vec::new(), Looked::default())];
                    let holds = Formula::Schema(condition);
                    let mut both = self.claimed(condition, std::slice::from_ref(&holds), of, deep)?;
                    if let Some(then) = json.get("then") {
                        let then = self.child(source, then, "then");
                        let then = self.claimed(then, &[holds], of, deep)?;
                        both = self.product(&both, &then);
                    }
                    some.extend(both.into_iter().filter(|(claims, _)| !claims.is_empty()));
                    if let Some(other) = json.get("else") {
                        let other = self.child(source, other, "else");
                        let fails = Formula::Not(Box::new(Formula::Schema(condition)));
                        let other = self.claimed(other, &[fails], of, deep)?;
                        some.extend(other.into_iter().filter(|(claims, _)| !claims.is_empty()));
                    }
                    every.push(some);
                }
                ("dependentSchemas", Json::Object(all)) => {
                    for (name, one) in all {
                        let node = self.child(source, one, &format!("dependentSchemas/{}", escaped(name)));
                        let has = Formula::Object(ObjectSaid::Has(Arc::clone(name)));
                        every.push(self.claimed(node, &[has], of, deep)?);
                    }
                }
                _ => {}
            }
            for more in every {
                choices = self.product(&choices, &more);
                spend(choices.len()).map_err(super::too_much)?;
                if choices.len() > MOST {
                    return Err(too_large("more than 4096 choices of branches tell what is left over"));
                }
            }
        }
        Ok(choices)
    }

    #[allow(clippy::unused_self, reason = "beside the others")]
    fn product(&self, one: &[Choice], other: &[Choice]) -> Vec<Choice> {
        let mut all: Vec<Choice> = Vec::new();
        for (claims, looked) in one {
            for (more, also) in other {
                let both = looked.with(also);
                // Claims that show nothing new are not made.
                if *also != Looked::default() && both == *looked && !more.is_empty() {
                    continue;
                }
                all.push((claims.iter().chain(more).cloned().collect(), both));
            }
        }
        all
    }

    /// The choices of a schema that holds.
    fn of_node(&mut self, node: NodeId, of: Of, deep: usize) -> Result<Vec<Choice>, SchemaError> {
        let Some(source) = self.sources.get(node as usize).cloned().flatten() else {
            return Ok(vec![(Vec::new(), Looked::default())]);
        };
        self.choices(&source, of, deep + 1)
    }

    /// The choices of a schema that holds where it is claimed, and that of not claiming it.
    fn claimed(&mut self, node: NodeId, claim: &[Formula], of: Of, deep: usize) -> Result<Vec<Choice>, SchemaError> {
        let mut all = vec![(Vec::new(), Looked::default())];
        for (claims, looked) in self.of_node(node, of, deep)? {
            if looked != Looked::default() {
                all.push((claim.iter().cloned().chain(claims).collect(), looked));
            }
        }
        Ok(all)
    }

    /// Returns the members or items that the keywords of a schema itself evaluate.
    pub(super) fn looked(&mut self, source: &Source<'a>, of: Of, is_inner: bool) -> Result<Looked, SchemaError> {
        let json = source.json;
        let has = |keyword: &str| json.get(keyword);
        let mut looked = Looked::default();
        let is_alone = source.draft <= Draft::Old && has("$ref").is_some();
        if is_alone {
            return Ok(looked);
        }
        match of {
            Of::Members => {
                looked.all = has("additionalProperties").is_some() || is_inner && deep_keyword(json, source, of);
                if let Some(own) = has("properties").and_then(Json::as_object) {
                    looked.names = own.iter().map(|(name, _)| Arc::clone(name)).collect();
                }
                for (pattern, _) in has("patternProperties").and_then(Json::as_object).unwrap_or(&[]) {
                    match self.pattern(source, "patternProperties", pattern)? {
                        Held::By(texts) => looked.matching.push(texts),
                        Held::Not => looked.all = true,
                    }
                }
            }
            Of::Items => {
                let prefix = has("prefixItems").and_then(Json::as_array).map_or(0, <[Json]>::len);
                looked.items = prefix;
                match has("items") {
                    Some(Json::Array(items)) => {
                        looked.items = items.len();
                        looked.all = has("additionalItems").is_some();
                    }
                    Some(_) => looked.all = true,
                    None => {}
                }
                looked.all |= is_inner && deep_keyword(json, source, of);
                if let (Some(one), true) = (has("contains"), source.draft >= Draft::Draft2020) {
                    looked.contains.push(self.child(source, one, "contains"));
                }
            }
        }
        Ok(looked)
    }
}

/// Returns whether the keyword itself stands in a schema that another one looks into: then that has looked at all.
fn deep_keyword(json: &Json, source: &Source<'_>, of: Of) -> bool {
    source.draft >= Draft::Draft2019 && json.get(of.keyword()).is_some()
}

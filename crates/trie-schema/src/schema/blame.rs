//! Reason why a schema allows nothing: its smallest part that allows nothing, and the keywords there that exclude each
//! other.

use super::contradictions::contradictions;
use super::error::shown;
use super::{SchemaError, SchemaOptions};
use crate::compile::compiled_part;
use crate::formula::Literal;
use crate::json::Json;
use crate::shape::{Engine, Search};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use trie_core::work::spend;

/// Keywords that say nothing of values.
const SILENT: [&str; 14] = [
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

struct Blaming<'a> {
    root: &'a Json,
    options: SchemaOptions,
}

/// The error of a schema that allows nothing.
pub(super) fn blamed(root: &Json, options: &SchemaOptions, given: Option<&Value>) -> SchemaError {
    let blaming = Blaming { root, options: SchemaOptions { lenient: true, ..options.clone() } };
    let (mut at, mut part) = (String::new(), root);
    let mut seen = HashSet::new();
    let endless = "every document would have to hold itself, without end";
    loop {
        if !seen.insert(std::ptr::from_ref(part)) {
            return SchemaError::Nothing { at, reason: endless.to_owned() };
        }
        let Some((way, next)) = blaming.inner(part, &at).into_iter().find(|(at, part)| blaming.is_nothing(part, at))
        else {
            break;
        };
        (at, part) = (way, next);
    }
    if let Some(one) = given.and_then(|given| contradictions(given).into_iter().find(|one| one.at == at)) {
        return SchemaError::Nothing { at, reason: one.reason };
    }
    let reason = blaming.reason(part, &at);
    SchemaError::Nothing { at, reason }
}

impl<'a> Blaming<'a> {
    fn is_nothing(&self, part: &Json, at: &str) -> bool {
        let Ok(compiled) = compiled_part(self.root, part, at, &self.options) else { return false };
        let engine = Engine::new(compiled.nodes, super::written(&self.options).unwrap_or_default());
        let mut search = Search::new();
        let is_possible = engine.is_possible(&engine.goal([Literal::Is(compiled.root)]), &mut search);
        search.refused().is_ok() && !is_possible
    }

    /// Parts without a value of which there is none of the whole.
    fn inner(&self, part: &'a Json, at: &str) -> Vec<(String, &'a Json)> {
        let list = |keyword: &str| part.get(keyword).and_then(Json::as_array).unwrap_or(&[]);
        let each = |keyword: &'static str| {
            list(keyword).iter().enumerate().map(move |(nth, one)| (format!("{at}/{keyword}/{nth}"), one))
        };
        let mut found: Vec<(String, &Json)> = each("allOf").collect();
        if let Some(to) = part.get("$ref").and_then(Json::as_str)
            && let Some(pointer) = to.strip_prefix('#')
            && let Some(target) = self.root.pointer(pointer)
        {
            found.push((pointer.to_owned(), target));
        }
        for keyword in ["anyOf", "oneOf"] {
            let all: Vec<_> = each(keyword).collect();
            if !all.is_empty() && all.iter().all(|(at, one)| self.is_nothing(one, at)) {
                found.extend(all);
            }
        }
        let required: Vec<&str> = list("required").iter().filter_map(Json::as_str).map(|name| &**name).collect();
        let named = part.get("properties").and_then(Json::as_object).unwrap_or(&[]);
        for (name, one) in named.iter().filter(|(name, _)| required.contains(&&**name)) {
            let name = name.replace('~', "~0").replace('/', "~1");
            found.push((format!("{at}/properties/{name}"), one));
        }
        let least = match part.get("minItems") {
            Some(Json::Number(least)) => least.parse().unwrap_or(0),
            _ => 0,
        };
        found.extend(each("prefixItems").take(least));
        if let Some(items) = part.get("items").filter(|_| least > list("prefixItems").len()) {
            match items {
                Json::Array(_) => found.extend(each("items").take(least)),
                items => found.push((format!("{at}/items"), items)),
            }
        }
        found
    }

    /// The keywords that exclude each other.
    fn reason(&self, part: &Json, at: &str) -> String {
        let Some(members) = part.as_object() else { return "schema is false".to_owned() };
        let said: Vec<&(Arc<str>, Json)> = members.iter().filter(|(name, _)| !SILENT.contains(&&**name)).collect();
        let of = |some: &[usize]| Json::Object(some.iter().map(|&nth| said[nth].clone()).collect());
        let shown_one = |nth: usize| format!("{} is {}", said[nth].0, shown(&said[nth].1));
        let count = said.len();
        for nth in 0..count {
            if spend(1).is_err() {
                break;
            }
            if self.is_nothing(&of(&[nth]), at) {
                return format!("{}, which allows nothing", shown_one(nth));
            }
        }
        for one in 0..count {
            for other in one + 1..count {
                if spend(1).is_ok() && self.is_nothing(&of(&[one, other]), at) {
                    return format!(
                        "{} and {} exclude each other: {}, and {}",
                        said[one].0,
                        said[other].0,
                        shown_one(one),
                        shown_one(other)
                    );
                }
            }
        }
        for one in 0..count {
            for other in one + 1..count {
                for third in other + 1..count {
                    if spend(1).is_ok() && self.is_nothing(&of(&[one, other, third]), at) {
                        let names: Vec<&str> = [one, other, third].iter().map(|&nth| &*said[nth].0).collect();
                        let shown: Vec<String> = [one, other, third].iter().map(|&nth| shown_one(nth)).collect();
                        return format!("{} exclude each other: {}", names.join(", "), shown.join(", "));
                    }
                }
            }
        }
        let shown: Vec<String> = (0..count.min(6)).map(shown_one).collect();
        format!("its keywords exclude each other: {}", shown.join(", "))
    }
}

//! Constraints beyond the standard, where options ask for them: closed names, implied types, and limits on what
//! can be written.

use super::annotate::{Looked, Of};
use super::index::escaped;
use super::role::Role;
use super::{Compiler, Draft, Source};
use crate::formula::{Formula, NONE, Names, NodeId, ObjectSaid, Outside, Texts, Types};
use crate::json::Json;
use crate::schema::{Closing, SchemaError, SchemaWarning};
use std::sync::Arc;
use trie_core::work::spend;

/// Schemas that apply to one value inside each other, and are read for what they mention, at most.
const DEEPEST: usize = 64;

impl Source<'_> {
    /// The role of a schema that stands in this one, or that it refers to, and whether it is about the same value.
    pub(super) fn role_of(&self, way: &str) -> (Role, bool) {
        match way.split('/').next().unwrap_or_default() {
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "items"
            | "prefixItems"
            | "additionalItems"
            | "unevaluatedItems"
            | "contains" => (Role::Value, false),
            "propertyNames" => (Role::Part, false),
            "not" | "if" => (Role::Part, self.is_top),
            _ if self.role == Role::Part || !self.passes_on() => (Role::Part, self.is_top),
            _ if says_types(self.json) => (Role::Typed, self.is_top),
            _ => (self.role, self.is_top),
        }
    }

    /// Returns whether it says nothing of members itself, but for one keyword whose schemas do.
    fn passes_on(&self) -> bool {
        let Some(members) = self.json.as_object() else { return false };
        if self.draft <= Draft::Old && self.json.get("$ref").is_some() {
            return true;
        }
        let mut inner = 0;
        for (keyword, value) in members {
            match (&**keyword, value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef" | "anyOf" | "oneOf", _) => inner += 1,
                ("allOf", Json::Array(all)) => inner += all.len(),
                ("properties" | "required", Json::Array(all)) if all.is_empty() => {}
                ("properties", Json::Object(all)) if all.is_empty() => {}
                (
                    "properties"
                    | "patternProperties"
                    | "additionalProperties"
                    | "required"
                    | "dependentRequired"
                    | "dependentSchemas"
                    | "dependencies"
                    | "unevaluatedProperties"
                    | "if",
                    _,
                ) => return false,
                _ => {}
            }
        }
        inner == 1
    }
}

/// Relation of a subschema to the schema that applies it to the same value.
#[derive(Debug, Clone, Copy)]
enum Applicator {
    Holds,
    Branch,
    Perhaps,
}

/// Returns whether a schema says types by itself.
fn says_types(json: &Json) -> bool {
    ["type", "enum", "const"].iter().any(|keyword| json.get(keyword).is_some())
}

/// The type that a keyword is about.
fn implied(keyword: &str) -> Types {
    match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "minProperties"
        | "maxProperties"
        | "propertyNames"
        | "unevaluatedProperties"
        | "dependentRequired"
        | "dependentSchemas" => Types::OBJECT,
        "items" | "prefixItems" | "minItems" | "maxItems" | "unevaluatedItems" | "contains" | "uniqueItems" => {
            Types::ARRAY
        }
        "pattern" | "minLength" | "maxLength" | "format" => Types::STRING,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Types::NUMBER,
        _ => Types::NONE,
    }
}

impl<'a> Compiler<'a> {
    /// Adds what is asked beside the keywords.
    pub(super) fn ask_more(&mut self, source: &Source<'a>, all: &mut Vec<Formula>) -> Result<(), SchemaError> {
        if source.role == Role::Part || source.passes_on() {
            return Ok(());
        }
        let none = |names: Names| {
            let each = ObjectSaid::Each { names, value: NONE, declares: false };
            Formula::AssertOnly(Box::new(Formula::Object(each)))
        };
        if let Some(writable) = self.options.writable.as_ref().filter(|_| source.is_top) {
            let set = writable.top_names.complement();
            if !set.is_empty() && writable.top_names != writable.names {
                let texts = Texts { name: "\0names that cannot be written".to_owned(), set, others: None };
                all.push(none(Names::Matching(Arc::new(texts))));
            }
        }
        let json = source.json;
        if json.get("enum").is_some() || json.get("const").is_some() {
            return Ok(());
        }
        if self.options.names == Closing::Closed {
            let looked = self.mentioned(source, 0, &mut Vec::new())?;
            if !(looked.all || looked.names.is_empty() && looked.matching.is_empty()) {
                let outside = Outside { names: looked.names, matching: looked.matching };
                all.push(none(Names::Outside(Arc::new(outside))));
            }
        }
        if self.options.implied_types && source.role == Role::Value {
            let (mut types, mut is_said) = (Types::NONE, false);
            self.implied(source, &mut Vec::new(), &mut types, &mut is_said)?;
            if !is_said && types != Types::NONE {
                all.push(Formula::AssertOnly(Box::new(Formula::Types(types))));
            }
        }
        Ok(())
    }

    /// The schemas that say something of the same value.
    fn beside(&mut self, source: &Source<'a>) -> Result<Vec<(Applicator, NodeId)>, SchemaError> {
        let mut found = Vec::new();
        let is_alone = source.draft <= Draft::Old && source.json.get("$ref").is_some();
        for (keyword, value) in source.json.as_object().unwrap_or(&[]) {
            spend(1).map_err(super::too_much)?;
            match (&**keyword, value) {
                ("$ref", Json::String(to)) => found.push((Applicator::Holds, self.referred(source, keyword, to)?)),
                _ if is_alone => {}
                ("$dynamicRef" | "$recursiveRef", Json::String(to)) => {
                    found.push((Applicator::Holds, self.referred(source, keyword, to)?));
                }
                ("allOf" | "anyOf" | "oneOf", Json::Array(all)) => {
                    let beside = if **keyword == *"allOf" { Applicator::Holds } else { Applicator::Branch };
                    for (nth, one) in all.iter().enumerate() {
                        found.push((beside, self.child(source, one, &format!("{keyword}/{nth}"))));
                    }
                }
                ("if" | "then" | "else", one) => found.push((Applicator::Perhaps, self.child(source, one, keyword))),
                ("dependentSchemas" | "dependencies", Json::Object(all)) => {
                    for (name, one) in all.iter().filter(|(_, one)| matches!(one, Json::Object(_))) {
                        let way = format!("{keyword}/{}", escaped(name));
                        found.push((Applicator::Perhaps, self.child(source, one, &way)));
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The names of members that a schema mentions, and those that what it applies does.
    fn mentioned(&mut self, source: &Source<'a>, deep: usize, seen: &mut Vec<NodeId>) -> Result<Looked, SchemaError> {
        let mut looked = self.looked(source, Of::Members, true)?;
        let json = source.json;
        let properties = json.get("properties").and_then(Json::as_object).unwrap_or(&[]);
        if deep == 0 && !properties.is_empty() && properties.iter().all(|(_, one)| matches!(one, Json::Bool(false))) {
            looked.names.clear();
        }
        let mut listed = |names: &Json| {
            looked.names.extend(names.as_array().unwrap_or(&[]).iter().filter_map(Json::as_str).cloned());
        };
        json.get("required").iter().for_each(|names| listed(names));
        for keyword in ["dependentRequired", "dependencies"] {
            let dependent = json.get(keyword).and_then(Json::as_object).unwrap_or(&[]);
            for (_, names) in dependent {
                listed(names);
            }
        }
        if deep >= DEEPEST {
            looked.all = true;
            return Ok(looked);
        }
        for (_, node) in self.beside(source)? {
            if looked.all || seen.contains(&node) {
                continue;
            }
            seen.push(node);
            if let Some(inner) = self.sources.get(node as usize).cloned().flatten() {
                looked = looked.with(&self.mentioned(&inner, deep + 1, seen)?);
            }
        }
        Ok(looked)
    }

    /// Gathers the types that keywords are about, and whether some keyword says types.
    fn implied(
        &mut self,
        source: &Source<'a>,
        seen: &mut Vec<NodeId>,
        types: &mut Types,
        is_said: &mut bool,
    ) -> Result<(), SchemaError> {
        *is_said |= says_types(source.json);
        if *is_said || seen.len() >= DEEPEST {
            return Ok(());
        }
        let keywords = source.json.as_object().unwrap_or(&[]).iter();
        *types = keywords.map(|(keyword, _)| implied(keyword)).fold(*types, Types::or);
        let (mut are_said, mut branches) = (true, 0);
        for (beside, node) in self.beside(source)? {
            let Some(inner) = self.sources.get(node as usize).cloned().flatten() else { continue };
            if seen.contains(&node) {
                continue;
            }
            seen.push(node);
            match beside {
                Applicator::Holds => self.implied(&inner, seen, types, is_said)?,
                Applicator::Branch => {
                    let mut own = false;
                    self.implied(&inner, seen, types, &mut own)?;
                    are_said &= own;
                    branches += 1;
                }
                Applicator::Perhaps => {}
            }
        }
        *is_said |= branches > 0 && are_said;
        Ok(())
    }

    /// Tells of values that cannot be written.
    pub(super) fn note_unwritten_values(&mut self, source: &Source<'_>, keyword: &str, values: &[Json]) {
        let Some(writable) = self.options.writable.clone() else { return };
        let mut not = values.iter().filter(|value| !writable.writes(value));
        if let Some(first) = not.next() {
            let reason = format!("{} of its values do not come: the format cannot write {first}", 1 + not.count());
            self.unwritten.push(SchemaWarning::new(&source.at, keyword, reason));
        }
    }

    /// Tells of a name that cannot be written.
    pub(super) fn note_unwritten_name(&mut self, source: &Source<'_>, name: &str, is_required: bool) {
        let Some(writable) = self.options.writable.clone() else { return };
        let names = if source.is_top { &writable.top_names } else { &writable.names };
        if names.is_match(name) {
            return;
        }
        if is_required {
            let reason = format!("the format cannot write the key {name:?}: rename it");
            self.unwritten.push(SchemaWarning::new(&source.at, "required", reason));
        } else {
            let at = format!("{}/properties/{}", source.at, escaped(name));
            let reason = "it does not come: the format cannot write this key".to_owned();
            self.unwritten.push(SchemaWarning::new(&at, "properties", reason));
        }
    }
}

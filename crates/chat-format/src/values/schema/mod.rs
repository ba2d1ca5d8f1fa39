//! From JSON Schema to shapes.

mod enums;
mod merge;
mod objects;
mod pattern;
mod place;
mod scalars;

use super::shapes::{Alternative, ShapeError, ShapeId, ShapeWarning, Shapes};
use super::types::Types;
use merge::merged;
use place::Place;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// How deep schemas may stand in each other.
const MOST_DEPTH: usize = 128;
/// How many schemas one may hold, each place where one is used counted.
const MOST_SCHEMAS: usize = 100_000;

/// Keywords that say nothing of values.
const SILENT: [&str; 18] = [
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "contentMediaType",
    "contentEncoding",
    "discriminator",
];

/// Keywords that are not held.
const LEFT_OUT: [&str; 13] = [
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "unevaluatedProperties",
];

pub(super) type Compiled = Result<(ShapeId, Vec<ShapeWarning>, Option<ShapeError>), ShapeError>;

/// Compiles the schema of the arguments of a tool.
pub(super) fn compile(shapes: &mut Shapes, schema: &Value) -> Compiled {
    let mut compiler =
        Compiler { shapes, root: schema, references: HashMap::new(), warnings: Vec::new(), nothing: None, schemas: 0 };
    let mut id = compiler.shape(schema, &Place::root())?;
    // Arguments are an object, whatever the schema says besides.
    if id == Shapes::ANY {
        let any = compiler.shapes.objects.add(objects::open());
        id = compiler.shapes.of(vec![Alternative::Object(any)]);
    }
    Ok((id, compiler.warnings, compiler.nothing))
}

struct Compiler<'a> {
    shapes: &'a mut Shapes,
    root: &'a Value,
    references: HashMap<String, ShapeId>,
    warnings: Vec<ShapeWarning>,
    /// The first schema that nothing satisfies.
    nothing: Option<ShapeError>,
    schemas: usize,
}

impl Compiler<'_> {
    fn shape(&mut self, schema: &Value, place: &Place) -> Result<ShapeId, ShapeError> {
        match schema {
            Value::Bool(true) => Ok(Shapes::ANY),
            Value::Bool(false) => Ok(Shapes::NOTHING),
            Value::Object(map) => self.of_map(map, place),
            _ => Err(place.error("a schema is an object, true or false")),
        }
    }

    fn of_map(&mut self, map: &Map<String, Value>, place: &Place) -> Result<ShapeId, ShapeError> {
        self.schemas += 1;
        if self.schemas > MOST_SCHEMAS {
            return Err(place.error(&format!("more than {MOST_SCHEMAS} schemas: describe less, or share by $ref")));
        }
        if place.depth > MOST_DEPTH {
            return Err(place.error(&format!("schemas stand in each other deeper than {MOST_DEPTH}: flatten them")));
        }
        // As OpenAPI writes it.
        if map.get("nullable") == Some(&Value::Bool(true)) {
            let id = self.of_map(&without(map, "nullable"), place)?;
            let or_null = vec![Alternative::Same(id), Alternative::Null];
            return Ok(if id == Shapes::ANY { id } else { self.shapes.of(or_null) });
        }
        let says = |key: &&String| !SILENT.contains(&key.as_str());
        let said: Vec<&String> = map.keys().filter(says).collect();
        for &key in &said {
            if LEFT_OUT.contains(&key.as_str()) && !matches!(map[key], Value::Bool(false)) {
                self.warn(place, key, "not held: the value is held to its type alone");
            }
        }
        if let Some(reference) = map.get("$ref") {
            let Value::String(reference) = reference else { return Err(place.error("$ref is a string")) };
            if said.len() == 1 {
                return self.reference(reference, place);
            }
            let target = self.target(reference, place)?.clone();
            let rest = without(map, "$ref");
            return self.both(&target, &Value::Object(rest), &place.key("$ref"));
        }
        if let Some(all) = map.get("allOf") {
            let Value::Array(all) = all else { return Err(place.error("allOf is a list")) };
            let mut whole = Value::Object(without(map, "allOf"));
            for (at, one) in all.iter().enumerate() {
                let place = place.key("allOf");
                let place = place.index(at);
                let one = self.resolved(one, &place)?;
                whole = merged(&whole, &one, &mut |keyword| self.warn(&place, keyword, "the first of several holds"));
            }
            return self.shape(&whole, &place.deeper());
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = map.get(keyword) {
                return self.union(map, keyword, branches, place);
            }
        }
        if map.contains_key("const") || map.contains_key("enum") {
            return self.of_enum(map, place);
        }
        self.of_types(map, &said, place)
    }

    /// Held to two schemas at once.
    fn both(&mut self, one: &Value, other: &Value, place: &Place) -> Result<ShapeId, ShapeError> {
        let one = self.resolved(one, place)?;
        let whole = merged(&one, other, &mut |keyword| self.warn(place, keyword, "the first of several holds"));
        self.shape(&whole, &place.deeper())
    }

    /// A schema without a `$ref` at its top.
    fn resolved(&self, schema: &Value, place: &Place) -> Result<Value, ShapeError> {
        let mut schema = schema.clone();
        for _ in 0..MOST_DEPTH {
            let Some(Value::String(reference)) = schema.get("$ref") else { return Ok(schema) };
            let target = self.target(reference, place)?.clone();
            let Value::Object(map) = &schema else { return Ok(target) };
            schema = merged(&target, &Value::Object(without(map, "$ref")), &mut |_| ());
        }
        Err(place.error("a $ref that leads to itself"))
    }

    fn target(&self, reference: &str, place: &Place) -> Result<&Value, ShapeError> {
        let pointer = reference.strip_prefix('#').ok_or_else(|| {
            place.error(&format!("$ref {reference:?} is not of this schema: put what it names under $defs"))
        })?;
        let found = self.root.pointer(&pointer.replace("%25", "%").replace("%24", "$").replace("%20", " "));
        found.ok_or_else(|| place.error(&format!("$ref {reference:?} leads nowhere: name a part of this schema")))
    }

    fn reference(&mut self, reference: &str, place: &Place) -> Result<ShapeId, ShapeError> {
        if let Some(&known) = self.references.get(reference) {
            return Ok(known);
        }
        let target = self.target(reference, place)?.clone();
        let reserved = self.shapes.reserve();
        self.references.insert(reference.to_owned(), reserved);
        let id = self.shape(&target, &Place::named(reference.trim_start_matches('#'), place.depth + 1))?;
        self.shapes.set(reserved, id);
        if id != reserved {
            self.references.insert(reference.to_owned(), id);
        }
        Ok(id)
    }

    fn union(
        &mut self,
        map: &Map<String, Value>,
        keyword: &str,
        branches: &Value,
        place: &Place,
    ) -> Result<ShapeId, ShapeError> {
        let Value::Array(branches) = branches else { return Err(place.error(&format!("{keyword} is a list"))) };
        let rest = without(map, keyword);
        let has_rest = rest.keys().any(|key| !SILENT.contains(&key.as_str()));
        let rest = Value::Object(rest);
        let mut alternatives = Vec::new();
        let place = place.key(keyword);
        for (at, branch) in branches.iter().enumerate() {
            let place = place.index(at);
            let id = if has_rest { self.both(branch, &rest, &place)? } else { self.shape(branch, &place)? };
            if id == Shapes::ANY {
                return Ok(id);
            }
            alternatives.push(Alternative::Same(id));
        }
        if keyword == "oneOf" && !are_apart(branches) {
            self.warn(&place, keyword, "held as anyOf: a value may fit several of them");
        }
        Ok(self.shapes.of(alternatives))
    }

    fn of_types(&mut self, map: &Map<String, Value>, said: &[&String], place: &Place) -> Result<ShapeId, ShapeError> {
        let types = Self::types(map, place)?;
        if types.is_none() && said.iter().all(|key| LEFT_OUT.contains(&key.as_str()) || implied(key).is_none()) {
            return Ok(Shapes::ANY);
        }
        // What speaks of one type only is taken to ask for it.
        let types = types.unwrap_or_else(|| said.iter().filter_map(|key| implied(key)).fold(Types::NONE, Types::or));
        let mut alternatives = Vec::new();
        if types.meets(Types::NULL) {
            alternatives.push(Alternative::Null);
        }
        if types.meets(Types::BOOLEAN) {
            alternatives.push(Alternative::Boolean(3));
        }
        if types.meets(Types::NUMBER) {
            let integer = types.and(Types::NUMBER) == Types::INTEGER;
            alternatives.extend(self.number(map, integer, place)?);
        }
        if types.meets(Types::STRING) {
            alternatives.extend(self.string(map, place)?);
        }
        if types.meets(Types::ARRAY) {
            alternatives.extend(self.array(map, place)?);
        }
        if types.meets(Types::OBJECT) {
            alternatives.extend(self.object(map, place)?);
        }
        if alternatives.is_empty() {
            self.nothing_satisfies(place);
        }
        Ok(self.shapes.of(alternatives))
    }

    /// What `type` says.
    fn types(map: &Map<String, Value>, place: &Place) -> Result<Option<Types>, ShapeError> {
        let named = |name: &Value| {
            let types = name.as_str().and_then(Types::named);
            types.ok_or_else(|| place.error(&format!("{name} is no type: use JSON Schema's, such as \"string\"")))
        };
        match map.get("type") {
            None => Ok(None),
            Some(Value::Array(names)) => {
                names.iter().try_fold(Types::NONE, |all, name| Ok(all.or(named(name)?))).map(Some)
            }
            Some(name) => named(name).map(Some),
        }
    }

    fn warn(&mut self, place: &Place, keyword: &str, instead: &str) {
        let warning =
            ShapeWarning { pointer: place.pointer(), keyword: keyword.to_owned(), instead: instead.to_owned() };
        self.warnings.push(warning);
    }

    /// Nothing can be written that satisfies it.
    fn unwritable(&mut self, place: &Place, problem: &str) {
        if self.nothing.is_none() {
            self.nothing = Some(place.error(problem));
        }
    }

    fn nothing_satisfies(&mut self, place: &Place) {
        if self.nothing.is_none() {
            self.nothing = Some(place.error("no value satisfies it: relax what contradicts itself"));
        }
    }
}

/// The type that a keyword is about.
fn implied(keyword: &str) -> Option<Types> {
    Some(match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "minProperties"
        | "maxProperties" => Types::OBJECT,
        "items" | "prefixItems" | "minItems" | "maxItems" => Types::ARRAY,
        "pattern" | "minLength" | "maxLength" | "format" => Types::STRING,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Types::NUMBER,
        _ => return None,
    })
}

fn without(map: &Map<String, Value>, keyword: &str) -> Map<String, Value> {
    map.iter().filter(|(key, _)| *key != keyword).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Whether no value can fit two of these, as far as their types and constants say.
fn are_apart(branches: &[Value]) -> bool {
    let kind = |branch: &Value| match (branch.get("const"), branch.get("type")) {
        (Some(value), _) => Some(format!("={value}")),
        (None, Some(Value::String(name))) => Some(if name == "integer" { "number".to_owned() } else { name.clone() }),
        _ => None,
    };
    let mut kinds: Vec<_> = branches.iter().map(kind).collect();
    kinds.sort();
    kinds.iter().all(Option::is_some) && kinds.windows(2).all(|pair| pair[0] != pair[1])
}

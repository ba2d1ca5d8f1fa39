//! From JSON Schema to shapes.

mod enums;
mod merge;
mod objects;
mod pattern;
mod place;
mod scalars;
mod together;

use super::shapes::{Alternative, ShapeError, ShapeId, ShapeWarning, Shapes};
use super::types::Types;
use place::Place;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use trie_core::work::{Over, hold};
use trie_rules::schema::{
    Contradiction, Own, SpelledOut, Unheld, charge, contradictions, multiplying, place_in, says_nothing, spelled_out,
    weight,
};

/// How deep schemas may stand in each other.
const MOST_DEPTH: usize = 128;
/// How many schemas one may hold, each place where one is used counted.
const MOST_SCHEMAS: usize = 100_000;

/// Whether a keyword says nothing of values, or was followed already.
fn is_silent(keyword: &str) -> bool {
    let followed = matches!(keyword, "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary" | "nullable");
    followed || says_nothing(keyword)
}

/// Keywords that are not held, wherever they come to be looked at.
const LEFT_OUT: [&str; 12] = [
    "not",
    "if",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "extends",
    "disallow",
    "divisibleBy",
];

pub(super) type Compiled = Result<(ShapeId, Vec<ShapeWarning>, Option<ShapeError>), ShapeError>;

/// Compiles the schema of the arguments of a tool.
pub(super) fn compile(shapes: &mut Shapes, given: &Value) -> Compiled {
    // It holds by itself what a document must say otherwise.
    let own = Own { names: true, counts: true, formats: true };
    let SpelledOut { schema, unheld, .. } = spelled_out(given, own)
        .map_err(|large| Place::named(&large.at, 0).error(&format!("{} {}", large.keyword, large.reason())))?;
    let schema = &*schema;
    let told = unheld.into_iter().map(|Unheld { at, keyword }| ShapeWarning {
        pointer: at,
        keyword,
        instead: "the value is held to the rest".to_owned(),
    });
    let warnings = told.collect();
    let (references, nothing, over) = (HashMap::new(), None, None);
    let mut compiler = Compiler { shapes, root: schema, references, warnings, nothing, schemas: 0, over };
    let compiled = compiler.shape(schema, &Place::root());
    // Places are those of the schema that was given.
    let placed = |error: ShapeError| ShapeError { pointer: place_in(given, &error.pointer), ..error };
    let mut id = match (compiled, compiler.over) {
        (Ok(id), _) => id,
        (Err(error), None) => return Err(placed(error)),
        (Err(error), Some(over)) => return Err(too_much(given, &error.pointer, over)),
    };
    for Contradiction { at, keyword, reason, .. } in contradictions(given) {
        let instead = format!("no value fits, so that an optional argument is left out: {reason}");
        compiler.warn(&Place::named(&at, 0), keyword, &instead);
    }
    let mut seen = HashSet::new();
    compiler.warnings.retain_mut(|warning| {
        warning.pointer = place_in(given, &warning.pointer);
        seen.insert((warning.pointer.clone(), warning.keyword.clone(), warning.instead.clone()))
    });
    // Arguments are an object, whatever the schema says besides.
    if id == Shapes::ANY {
        let any = compiler.shapes.objects.add(objects::open());
        id = compiler.shapes.of(vec![Alternative::Object(any)]);
    }
    Ok((id, compiler.warnings, compiler.nothing.map(placed)))
}

/// The error of a schema that takes more than there is, at the innermost place around this one that multiplies.
fn too_much(given: &Value, at: &str, over: Over) -> ShapeError {
    let (at, keyword) = multiplying(given, at);
    let much = match over {
        Over::Stopped => return ShapeError { pointer: at, problem: over.to_string() },
        Over::Bytes(most) => format!("{most} bytes"),
        Over::Steps(most) => format!("{most} steps"),
        Over::Time(most) => format!("{most:?}"),
        _ => "there is".to_owned(),
    };
    let problem = format!(
        "{keyword} is not supported: what holds at once here takes more than {much}; describe fewer alternatives"
    );
    ShapeError { pointer: at, problem }
}

struct Compiler<'a> {
    shapes: &'a mut Shapes,
    root: &'a Value,
    references: HashMap<String, ShapeId>,
    warnings: Vec<ShapeWarning>,
    /// The first schema that nothing satisfies.
    nothing: Option<ShapeError>,
    schemas: usize,
    /// What ended the work.
    over: Option<Over>,
}

impl Compiler<'_> {
    /// Takes what is made from the [work](trie_core::work) of this thread.
    fn charge(&mut self, weight: usize, place: &Place) -> Result<(), ShapeError> {
        charge(weight).map_err(|over| {
            self.over = Some(over);
            place.error("too much")
        })
    }

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
        self.charge(1 + map.len(), place)?;
        if place.depth > MOST_DEPTH {
            return Err(place.error(&format!("schemas stand in each other deeper than {MOST_DEPTH}: flatten them")));
        }
        // As OpenAPI writes it.
        if map.get("nullable") == Some(&Value::Bool(true)) {
            self.charge(map.values().map(weight).sum(), place)?;
            let id = self.of_map(&without(map, "nullable"), place)?;
            let or_null = vec![Alternative::Same(id), Alternative::Null];
            return Ok(if id == Shapes::ANY { id } else { self.shapes.of(or_null) });
        }
        let says = |key: &&String| !is_silent(key);
        let said: Vec<&String> = map.keys().filter(says).collect();
        for &key in &said {
            if LEFT_OUT.contains(&key.as_str()) && !(key == "uniqueItems" && map[key] == Value::Bool(false)) {
                self.warn(place, key, "the value is held to its type alone");
            }
        }
        if let (Some(Value::String(reference)), 1) = (map.get("$ref"), said.len()) {
            return self.reference(reference, place);
        }
        if ["$ref", "$dynamicRef", "$recursiveRef", "allOf"].iter().any(|key| map.contains_key(*key)) {
            return self.together(map, place);
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

    fn union(
        &mut self,
        map: &Map<String, Value>,
        keyword: &str,
        branches: &Value,
        place: &Place,
    ) -> Result<ShapeId, ShapeError> {
        let Value::Array(branches) = branches else { return Err(place.error(&format!("{keyword} is a list"))) };
        self.charge(map.values().map(weight).sum(), place)?;
        let rest = without(map, keyword);
        let has_rest = rest.keys().any(|key| !is_silent(key));
        let rest = Value::Object(rest);
        let (mut alternatives, mut any) = (Vec::new(), false);
        let (place, nothing) = (place.key(keyword), self.nothing.clone());
        for (at, branch) in branches.iter().enumerate() {
            let place = place.index(at);
            let id = if has_rest { self.both(branch, &rest, &place)? } else { self.shape(branch, &place)? };
            any |= id == Shapes::ANY;
            alternatives.push(Alternative::Same(id));
        }
        if alternatives.iter().any(|one| *one != Alternative::Same(Shapes::NOTHING)) {
            self.nothing = nothing;
        }
        // Where no value fits two of them it was said otherwise.
        if keyword == "oneOf" && branches.len() > 1 {
            self.warn(&place, keyword, "held as anyOf: a value may fit several of them");
        }
        Ok(if any { Shapes::ANY } else { self.shapes.of(alternatives) })
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
        // Where that is too much, the next schema says so.
        let _ = hold(warning.pointer.len() + warning.keyword.len() + warning.instead.len());
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
        | "maxProperties"
        | "propertyNames"
        | "unevaluatedProperties" => Types::OBJECT,
        "items" | "prefixItems" | "minItems" | "maxItems" | "unevaluatedItems" => Types::ARRAY,
        "pattern" | "minLength" | "maxLength" | "format" => Types::STRING,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Types::NUMBER,
        _ => return None,
    })
}

fn without(map: &Map<String, Value>, keyword: &str) -> Map<String, Value> {
    map.iter().filter(|(key, _)| *key != keyword).map(|(key, value)| (key.clone(), value.clone())).collect()
}

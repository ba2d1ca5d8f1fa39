//! The schema of the content, in the form that the model reads in its prompt.

use crate::constraint::{SchemaSpec, Spec};
use serde_json::{Map, Value};

/// Longest text that is shown, in bytes: a longer one would fill most of a usual context.
pub const MOST_SHOWN: usize = 8192;

/// The sentences before a sketch, and before a schema that cannot be sketched.
const BEFORE_SKETCH: &str = "Answer with JSON in this format:\n";
const BEFORE_SCHEMA: &str = "Answer with a JSON document of this JSON Schema:\n";

/// Keywords that are written behind a type, with their values.
const BOUNDS: [&str; 14] = [
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];
/// Keywords that a sketch says in its own way, or that say nothing to a reader.
const SKETCHED: [&str; 20] = [
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "$ref",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "description",
    "title",
    "default",
    "examples",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$comment",
    "discriminator",
];

/// A schema as the system message of a chat shows it: docs/chats.md has the layout. It is a sketch of the document,
/// with types in place of values and descriptions as comments, or JSON Schema if a sketch cannot express the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSchema(Option<String>);

impl ShownSchema {
    /// Returns the schema of a constraint; `None` if the constraint is not a JSON Schema, or only asks for an object.
    pub fn from_spec(spec: &Spec) -> Option<Self> {
        let Spec::JsonSchema(SchemaSpec { schema, .. }) = spec else { return None };
        let says_something = |schema: &Map<String, Value>| schema.keys().any(|key| key != "type");
        let text: &str = schema;
        let schema: Value =
            serde_json::from_str(text).ok().filter(|schema: &Value| schema.as_object().is_some_and(says_something))?;
        let mut sketch = Sketch { root: &schema, text: BEFORE_SKETCH.to_owned(), refs: Vec::new() };
        if let Some(said) = description(&schema) {
            sketch.text.extend(["// ", &said, "\n"]);
        }
        let shown = match sketch.value(&schema, 0) {
            Ok(()) => Some(sketch.text),
            Err(SketchFailure::Long) => None,
            Err(SketchFailure::Unsaid) => Some(format!("{BEFORE_SCHEMA}{text}")),
        };
        Some(Self(shown.filter(|text| text.len() <= MOST_SHOWN)))
    }

    /// Returns the text for the system message.
    ///
    /// # Errors
    /// A text that is too long; the message says what to do.
    pub fn text(&self) -> Result<&str, String> {
        self.0.as_deref().ok_or_else(|| {
            format!(
                "the schema is not shown to the model: it takes more than {MOST_SHOWN} bytes. Describe it in the \
                 messages, and give show_schema=False"
            )
        })
    }
}

/// Why there is no sketch.
enum SketchFailure {
    /// It would be too long.
    Long,
    /// The schema says what a sketch cannot say, or holds itself.
    Unsaid,
}

type SketchResult = Result<(), SketchFailure>;

/// A sketch that is written.
struct Sketch<'a> {
    root: &'a Value,
    text: String,
    /// The references that it is inside of.
    refs: Vec<&'a str>,
}

impl<'a> Sketch<'a> {
    fn push(&mut self, text: &str) -> SketchResult {
        self.text.push_str(text);
        if self.text.len() > MOST_SHOWN { Err(SketchFailure::Long) } else { Ok(()) }
    }

    fn value(&mut self, schema: &'a Value, depth: usize) -> SketchResult {
        let Some(said) = schema.as_object() else {
            return if schema == &Value::Bool(true) { self.push("any value") } else { Err(SketchFailure::Unsaid) };
        };
        if said.keys().any(|key| !SKETCHED.contains(&key.as_str()) && !BOUNDS.contains(&key.as_str())) {
            return Err(SketchFailure::Unsaid);
        }
        let ways = ["$ref", "enum", "const", "anyOf", "oneOf"];
        let beside = ["properties", "items", "additionalProperties"];
        if let Some(way) = ways.iter().find(|&&way| said.contains_key(way)) {
            // Two at once would both have to hold.
            let others = ways.iter().chain(&beside).chain(&BOUNDS);
            if others.filter(|&other| other != way).any(|&other| said.contains_key(other)) {
                return Err(SketchFailure::Unsaid);
            }
            return match (*way, &said[*way]) {
                ("$ref", Value::String(target)) => self.write_reference(target, depth),
                ("enum", Value::Array(values)) => self.several(values, |sketch, value| sketch.push(&value.to_string())),
                ("const", value) => self.push(&value.to_string()),
                (_, Value::Array(parts)) => self.several(parts, |sketch, part| sketch.value(part, depth)),
                _ => Err(SketchFailure::Unsaid),
            };
        }
        match said.get("type") {
            Some(Value::String(kind)) => self.write_typed(kind, said, depth),
            Some(Value::Array(kinds)) => self.several(kinds, |sketch, kind| {
                sketch.write_typed(kind.as_str().ok_or(SketchFailure::Unsaid)?, said, depth)
            }),
            Some(_) => Err(SketchFailure::Unsaid),
            None if said.contains_key("properties") => self.write_typed("object", said, depth),
            None if said.contains_key("items") => self.write_typed("array", said, depth),
            None => {
                self.push("any value")?;
                self.bounds(said, &BOUNDS)
            }
        }
    }

    fn several(&mut self, parts: &'a [Value], one: impl Fn(&mut Self, &'a Value) -> SketchResult) -> SketchResult {
        for (number, part) in parts.iter().enumerate() {
            self.push(if number == 0 { "" } else { " or " })?;
            one(self, part)?;
        }
        Ok(())
    }

    fn write_reference(&mut self, target: &'a str, depth: usize) -> SketchResult {
        let place = target.strip_prefix('#').ok_or(SketchFailure::Unsaid)?;
        let found = self.root.pointer(place).ok_or(SketchFailure::Unsaid)?;
        if place.contains('%') || self.refs.contains(&target) {
            return Err(SketchFailure::Unsaid);
        }
        self.refs.push(target);
        self.value(found, depth)?;
        self.refs.pop();
        Ok(())
    }

    fn write_typed(&mut self, kind: &str, said: &'a Map<String, Value>, depth: usize) -> SketchResult {
        match (kind, said.get("properties"), said.get("items"), said.get("additionalProperties")) {
            ("object", Some(Value::Object(fields)), _, more) => {
                // Other fields than these are not asked for.
                if more.is_some_and(Value::is_object) {
                    return Err(SketchFailure::Unsaid);
                }
                self.fields(fields, said.get("required"), depth)
            }
            ("object", _, _, Some(of @ Value::Object(_))) => {
                self.push("object of ")?;
                self.value(of, depth)
            }
            ("array", _, Some(items), _) => {
                self.push("array of ")?;
                self.value(items, depth)?;
                self.bounds(said, &["minItems", "maxItems", "uniqueItems"])
            }
            ("null", ..) => self.push("null"),
            _ => {
                self.push(kind)?;
                self.bounds(said, &BOUNDS)
            }
        }
    }

    fn bounds(&mut self, said: &Map<String, Value>, known: &[&str]) -> SketchResult {
        for (key, value) in said.iter().filter(|(key, _)| known.contains(&key.as_str())) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.push(&format!(", {key} {value}"))?;
        }
        Ok(())
    }

    fn fields(&mut self, fields: &'a Map<String, Value>, required: Option<&Value>, depth: usize) -> SketchResult {
        let is_required = |name: &str| {
            required.and_then(Value::as_array).is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
        };
        self.push("{")?;
        for (number, (name, schema)) in fields.iter().enumerate() {
            let indent = "  ".repeat(depth + 1);
            self.push(&format!("\n{indent}{}: ", Value::from(name.as_str())))?;
            self.value(schema, depth + 1)?;
            let optional = (!is_required(name)).then(|| "optional".to_owned());
            let said: Vec<String> = optional.into_iter().chain(self.field_description(schema)).collect();
            if !said.is_empty() {
                self.push(&format!(" // {}", said.join(": ")))?;
            }
            // Behind the comment, as it was measured.
            self.push(if number + 1 < fields.len() { "," } else { "" })?;
        }
        self.push(&format!("\n{}}}", "  ".repeat(depth)))
    }

    /// The description of a field: beside its reference, else where that leads.
    fn field_description(&self, schema: &Value) -> Option<String> {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        description(schema).or_else(|| description(self.root.pointer(target?)?))
    }
}

/// The description of a schema, on one line.
fn description(schema: &Value) -> Option<String> {
    let said = schema.get("description")?.as_str()?;
    let words: Vec<&str> = said.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::IntegerSpec;
    use crate::json::place::Place;
    use crate::json::read;
    use serde_json::json;

    fn shown_schema(schema: &Value) -> Option<ShownSchema> {
        let spec = read(&Place::ROOT, &json!({ "json_schema": schema })).expect("a spec");
        ShownSchema::from_spec(&spec)
    }

    fn text(schema: &Value) -> String {
        shown_schema(schema).expect("shown").text().expect("short").to_owned()
    }

    #[test]
    fn documents_are_sketched_with_their_descriptions() {
        let schema = json!({
            "type": "object", "title": "Room", "description": "A room\n of a hotel.",
            "properties": {
                "title": {"type": "string", "title": "Title", "maxLength": 9, "description": "what it is called"},
                "beds": {"type": "integer", "minimum": 1, "description": "how many \"sleep\" there"},
                "kind": {"$ref": "#/$defs/Kind"},
                "rooms": {"type": "array", "items": {"type": "object", "properties": {"size": {"type": "number"}},
                    "required": ["size"]}, "minItems": 1},
                "note": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": null},
                "more": {"type": ["boolean", "null"]},
                "prices": {"type": "object", "additionalProperties": {"type": "number"}},
                "rest": {},
            },
            "required": ["title", "beds", "kind", "rooms", "prices", "rest"],
            "additionalProperties": false,
            "$defs": {"Kind": {"enum": ["single", 2, null], "description": "what is sold"}},
        });
        let expected = r#"Answer with JSON in this format:
// A room of a hotel.
{
  "title": string, maxLength 9 // what it is called,
  "beds": integer, minimum 1 // how many "sleep" there,
  "kind": "single" or 2 or null // what is sold,
  "rooms": array of {
    "size": number
  }, minItems 1,
  "note": string, format date or null // optional,
  "more": boolean or null // optional,
  "prices": object of number,
  "rest": any value
}"#;
        assert_eq!(text(&schema), expected);
        assert_eq!(
            text(&json!({"type": "array", "items": {"type": "integer"}})),
            format!("{BEFORE_SKETCH}array of integer")
        );
    }

    #[test]
    fn what_no_sketch_can_say_is_shown_as_a_schema() {
        for schema in [
            json!({"allOf": [{"type": "string"}, {"minLength": 2}]}),
            json!({"type": "array", "prefixItems": [{"type": "integer"}], "items": false}),
            json!({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object",
                "properties": {"next": {"$ref": "#/$defs/Node"}}}}}),
            json!({"anyOf": [{"type": "string"}], "enum": ["a"]}),
            json!({"type": "object", "properties": {"a": {"not": {}}}}),
            json!({"$ref": "#/$defs/Missing"}),
            json!({"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "null"}}),
        ] {
            assert_eq!(text(&schema), format!("{BEFORE_SCHEMA}{schema}"), "{schema}");
        }
    }

    #[test]
    fn what_says_nothing_is_not_shown() {
        for schema in [json!(true), json!({}), json!({"type": "object"})] {
            assert_eq!(shown_schema(&schema), None, "{schema}");
        }
        assert_eq!(ShownSchema::from_spec(&Spec::choice(["a"])), None);
        assert_eq!(ShownSchema::from_spec(&IntegerSpec::default().into()), None);
    }

    #[test]
    fn long_schemas_are_not_shown_and_references_do_not_multiply() {
        let names: Vec<String> = (0..2000).map(|number| format!("name {number}")).collect();
        let refused = shown_schema(&json!({"enum": names})).expect("a schema").text().expect_err("it is long").clone();
        assert!(refused.contains("show_schema=False") && refused.contains("8192"), "{refused}");
        let mut defs = Map::new();
        for level in 0..60 {
            let below = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({"type": "object", "properties": {"a": below, "b": below}}));
        }
        defs.insert("d60".to_owned(), json!({"type": "null"}));
        let bomb = shown_schema(&json!({"$ref": "#/$defs/d0", "$defs": defs})).expect("a schema");
        assert!(bomb.text().is_err());
    }
}

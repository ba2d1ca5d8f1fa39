//! Values that are listed beside a type that none of them has.

use serde_json::{Value, json};
use trie_schema::{JsonSchema, SchemaError, SchemaOptions};

#[test]
fn both_keywords_are_named() {
    let long: Vec<String> = (0..900).map(|n| format!("item {n}")).collect();
    for (schema, said) in [
        (json!({"type": "string", "enum": [1, 2]}), ["enum and type", "\"string\"", "enum lists 1, 2"]),
        (json!({"type": "array", "const": "a"}), ["const and type", "\"array\"", "const is \"a\""]),
        (json!({"type": ["null", "integer"], "enum": [0.5]}), ["enum and type", "[\"null\",\"integer\"]", "0.5"]),
        (json!({"type": "integer", "enum": long}), ["enum and type", "\"integer\"", "and 896 more"]),
        (json!({"type": "string", "enum": [1], "title": "n"}), ["enum and type", "\"string\"", "enum lists 1"]),
    ] {
        let inside = json!({"type": "object", "properties": {"a/b": schema}, "required": ["a/b"]});
        for (whole, place) in [(schema.clone(), ""), (inside, "/properties/a~1b")] {
            let error = JsonSchema::of(whole, SchemaOptions::default()).unwrap_err();
            let SchemaError::Nothing { at, reason } = &error else { panic!("{error:?}") };
            assert_eq!(at, place, "{error}");
            assert!(said.iter().all(|said| reason.contains(said)), "{error}");
        }
        let optional = json!({"type": "object", "properties": {"a": schema}, "additionalProperties": false});
        let warnings = JsonSchema::of(optional, SchemaOptions::default()).unwrap().warnings().to_vec();
        assert!(matches!(&warnings[..], [one] if one.starts_with("at /properties/a: no value comes here: ")));
    }
}

#[test]
fn each_place_is_named_once() {
    let tree = json!({"type": "object", "properties": {"odd": {"type": "string", "const": 1}, "next": {"$ref": "#"}}});
    let warnings = JsonSchema::of(tree, SchemaOptions::default()).unwrap().warnings().to_vec();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

/// A reference to what allows nothing is as if it stood there: the property, branch or item does not come.
#[test]
fn references_to_nothing_leave_the_rest() {
    let odd =
        json!({"odd": {"type": "string", "const": 1}, "next": {"$ref": "#"}, "same": {"$ref": "#/properties/odd"}});
    let made = JsonSchema::of(json!({"type": "object", "properties": odd}), SchemaOptions::default()).unwrap();
    assert_eq!(made.warnings().len(), 1, "{:?}", made.warnings());
    let to_it = json!({"$ref": "#/$defs/n"});
    for nothing in [
        json!(false),
        json!({"not": {}}),
        json!({"type": "integer", "minimum": 5, "maximum": 3}),
        json!({"type": "string", "const": 1}),
        json!({"enum": []}),
        json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"type": "object", "properties": {"x": false}, "required": ["x"], "additionalProperties": false}),
        json!({"type": "string", "minLength": 4, "maxLength": 2}),
        json!({"$ref": "#/$defs/m"}),
        json!({"type": "object", "properties": {"a": to_it}, "required": ["a"]}),
    ] {
        let with = |mut whole: Value| {
            whole["$defs"] = json!({"n": nothing, "m": false});
            JsonSchema::of(whole, SchemaOptions::default())
        };
        for whole in [
            json!({"type": "object", "properties": {"a": to_it, "b": {"type": "integer"}}}),
            json!({"anyOf": [to_it, {"type": "integer"}]}),
            json!({"type": "array", "items": to_it}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": to_it}, "b": to_it}}),
        ] {
            assert!(with(whole.clone()).is_ok(), "{nothing} in {whole}: {}", with(whole.clone()).unwrap_err());
        }
        for whole in [
            to_it.clone(),
            json!({"type": "object", "properties": {"a": to_it}, "required": ["a"]}),
            json!({"type": "array", "items": to_it, "minItems": 1}),
            json!({"anyOf": [to_it, to_it]}),
        ] {
            let error = with(whole.clone()).unwrap_err();
            assert!(matches!(error, SchemaError::Nothing { .. }), "{nothing} in {whole}: {error}");
        }
    }
    // What is wrong is told, and not what comes of leaving it out.
    let mut needed = json!({"type": "object", "properties": {"a": to_it}, "required": ["a"]});
    needed["$defs"] = json!({"n": {"type": "string", "const": 1}});
    let error = JsonSchema::of(needed, SchemaOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("at /$defs/n:") && error.contains("const and type exclude each other"), "{error}");
}

#[test]
fn what_fits_somewhere_is_no_contradiction() {
    let schemas: [Value; 4] = [
        json!({"type": "integer", "enum": [1, "b"]}),
        json!({"type": "integer", "const": 2.0}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "enum": [1]}),
        json!({"not": {"type": "string", "enum": [1]}}),
    ];
    for schema in schemas {
        let made = JsonSchema::of(schema.clone(), SchemaOptions::default()).unwrap();
        assert_eq!(made.warnings(), [""; 0], "{schema}");
    }
}

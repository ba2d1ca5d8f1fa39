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

use crate::values::Shapes;
use serde_json::json;

#[test]
fn what_is_not_held_is_told() {
    let mut shapes = Shapes::new();
    let schema = json!({"type": "object", "properties": {"a/b": {"type": "array", "uniqueItems": true, "items": {"type": "integer", "multipleOf": 3}}}});
    let (_, warnings) = shapes.add(&schema).unwrap();
    let told: Vec<_> = warnings.iter().map(|w| (w.pointer.as_str(), w.keyword.as_str())).collect();
    assert_eq!(told, [("/properties/a~1b", "uniqueItems"), ("/properties/a~1b/items", "multipleOf")]);
}

#[test]
fn what_nothing_satisfies_is_an_error() {
    for (schema, pointer) in [
        (json!({"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}), "/properties/a"),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}, "required": ["a"]}),
            "/properties/a",
        ),
        (json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/x"}}}), "/properties/a"),
        (json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}), "/properties/a"),
        (json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}), ""),
        (json!({"type": "string"}), ""),
        (json!({"type": "object", "properties": {"a": {"type": "strnig"}}}), "/properties/a"),
        (json!({"type": "object", "properties": {"a": 3}}), "/properties/a"),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}}, "required": ["a"]}),
            "/properties/a",
        ),
        (json!(false), ""),
    ] {
        let error = Shapes::new().add(&schema).expect_err(&schema.to_string());
        assert_eq!(error.pointer, pointer, "{schema}: {error}");
    }
}

#[test]
fn equal_schemas_are_one() {
    let mut shapes = Shapes::new();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "description": "x"}}});
    let other = json!({"type": "object", "description": "y", "properties": {"a": {"type": "string"}}});
    let (one, _) = shapes.add(&schema).unwrap();
    let size = shapes.len();
    assert_eq!(shapes.add(&other).unwrap().0, one);
    assert_eq!(shapes.len(), size);
}

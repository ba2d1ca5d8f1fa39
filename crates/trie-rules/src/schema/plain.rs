//! Schemas that need no other words: most of those that tools have. They are taken as they are, without a copy.

use super::front::{Own, SCHEMA};
use super::modern::COUNTS;
use serde_json::Value;
use trie_core::work::spend;

/// Whether saying it in fewer words would change nothing; `false` also where that is not seen at once.
pub(super) fn is_plain(schema: &Value, own: Own) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(map) => spend(SCHEMA).is_ok() && map.iter().all(|(key, value)| stays(key, value, own)),
        _ => false,
    }
}

fn stays(key: &str, value: &Value, own: Own) -> bool {
    let all = |schemas: &[Value]| schemas.iter().all(|schema| is_plain(schema, own));
    match key {
        "title" | "description" | "pattern" => value.is_string(),
        "type" | "required" => {
            value.is_string() || value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
        }
        "const" | "enum" | "default" | "examples" => true,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => value.is_number(),
        "minProperties" | "maxProperties" => own.counts && value.is_u64(),
        // Without `contains` they are taken out.
        "minContains" | "maxContains" => false,
        _ if COUNTS.contains(&key) => value.is_u64(),
        "format" => own.formats && value.is_string(),
        "propertyNames" => own.names && is_plain(value, own),
        "items" | "additionalProperties" => is_plain(value, own),
        "properties" | "patternProperties" | "$defs" | "definitions" => {
            value.as_object().is_some_and(|named| named.values().all(|schema| is_plain(schema, own)))
        }
        "anyOf" | "allOf" | "prefixItems" => value.as_array().is_some_and(|schemas| all(schemas)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{in_fewer_words, spelled_out};
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use test_budget::cases;

    /// A schema of the words that tools use, and now and then of others.
    fn schema() -> impl Strategy<Value = Value> {
        let leaf = prop::sample::select(vec![
            json!(true),
            json!({"type": "string", "description": "A text.", "minLength": 1}),
            json!({"type": ["integer", "null"], "minimum": 0, "exclusiveMaximum": 9.5}),
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
            json!({"enum": [{"$ref": "no reference"}, 1, "a"], "default": {"not": 1}}),
            json!({"type": "string", "format": "date", "title": "not"}),
            json!({"type": "string", "maxLength": 3.0}),
            json!({"type": "object", "minProperties": 1, "properties": {"a": true}}),
            json!({"type": "array", "uniqueItems": false}),
            json!({"$ref": "#"}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}),
            json!({"then": false, "minContains": 1}),
            json!({"title": 5}),
            json!(5),
        ]);
        leaf.prop_recursive(4, 40, 4, |inner| {
            let listed = prop::collection::vec(inner.clone(), 0..3);
            let named = prop::collection::vec(inner.clone(), 0..4);
            let maps = ["properties", "patternProperties", "$defs", "dependentSchemas"];
            let lists = ["anyOf", "allOf", "oneOf", "prefixItems", "items"];
            let ones = ["items", "additionalProperties", "propertyNames", "not", "contains", "unknown"];
            prop_oneof![
                (prop::sample::select(maps.to_vec()), named).prop_map(|(key, schemas)| {
                    let named = ["a", "not", "$ref", "~/"].into_iter().map(str::to_owned).zip(schemas);
                    json!({"type": "object", key: Value::Object(named.collect()), "required": ["a"]})
                }),
                (prop::sample::select(lists.to_vec()), listed).prop_map(|(key, schemas)| json!({key: schemas})),
                (prop::sample::select(ones.to_vec()), inner).prop_map(|(key, schema)| json!({key: schema})),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(5_000)))]
        #[test]
        fn what_is_plain_stays_as_it_is(schema in schema(), names: bool, counts: bool, formats: bool) {
            let own = Own { names, counts, formats };
            // References to itself may take more than there is to spend.
            let Ok(spelled) = in_fewer_words(&schema, own) else {
                prop_assert!(spelled_out(&schema, own).is_err() && !is_plain(&schema, own));
                return Ok(());
            };
            let is_same = *spelled.schema == schema && spelled.unheld.is_empty() && spelled.notes.is_empty();
            prop_assert!(is_same || !is_plain(&schema, own), "it becomes {spelled:?}");
            prop_assert_eq!(spelled_out(&schema, own), Ok(spelled));
        }
    }

    #[test]
    fn what_tools_say_is_plain() {
        let tool = json!({"type": "object", "properties": {
            "path": {"type": "string", "description": "Where."}, "lines": {"type": "integer", "minimum": 0},
            "mode": {"enum": ["fast", "safe"]}, "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": null}},
            "required": ["path"], "additionalProperties": false});
        assert!(is_plain(&tool, Own { names: true, counts: true, formats: true }));
        assert!(!is_plain(&tool, Own::default()), "formats are said by a pattern");
    }
}

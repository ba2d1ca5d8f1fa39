//! The schemas inside a schema, and what is said in them in words of others: patterns as ECMA-262 has them and
//! `"nullable": true` as `OpenAPI` writes it, in the words of JSON Schema.

use serde_json::{Map, Value, json};
use trie_rules::schema::ecma_classes;

/// Keywords whose values are data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
/// Keywords whose values are schemas by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Gives `each` every schema that is an object, from the whole to its parts.
pub(super) fn each_schema(schema: &mut Value, mut each: impl FnMut(&mut Map<String, Value>)) {
    // What is a schema, and what has schemas by name.
    let mut left = vec![(schema, true)];
    while let Some((value, is_schema)) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items.iter_mut().map(|item| (item, is_schema))),
            Value::Object(members) => {
                if is_schema {
                    each(members);
                }
                let inner = members.iter_mut().filter(|(name, _)| !is_schema || !DATA.contains(&name.as_str()));
                left.extend(inner.map(|(name, value)| (value, !is_schema || !NAMED.contains(&name.as_str()))));
            }
            _ => {}
        }
    }
}

/// Says the classes of patterns in full, everywhere in a schema.
pub(super) fn spell_out_patterns(schema: &mut Value) {
    each_schema(schema, |members| {
        if let Some(Value::String(pattern)) = members.get_mut("pattern") {
            *pattern = ecma_classes(pattern);
        }
        if let Some(Value::Object(named)) = members.get_mut("patternProperties")
            && named.keys().any(|pattern| ecma_classes(pattern) != *pattern)
        {
            // Where two would become one, all stay: none is lost.
            let said: Map<String, Value> =
                named.iter().map(|(pattern, schema)| (ecma_classes(pattern), schema.clone())).collect();
            if said.len() == named.len() {
                *named = said;
            }
        }
    });
}

const NULLABLE: &str = "nullable";
/// Keywords that others refer to by where they stand.
const STAY: [&str; 5] = ["$schema", "$id", "$anchor", "$defs", "definitions"];

/// Says `"nullable": true` as a choice of the value or null, everywhere in a schema.
pub(super) fn spell_out_nullable(schema: &mut Value) {
    each_schema(schema, |members| {
        if members.get(NULLABLE) == Some(&Value::Bool(true)) {
            or_null(members);
        }
    });
}

fn or_null(members: &mut Map<String, Value>) {
    let all = std::mem::take(members);
    let mut inner = Map::new();
    for (name, value) in all {
        if STAY.contains(&name.as_str()) {
            members.insert(name, value);
        } else if name != NULLABLE {
            inner.insert(name, value);
        }
    }
    members.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_patterns_of_schemas_are_said_otherwise() {
        let mut schema = json!({
            "properties": {"pattern": {"pattern": r"\d"}, r"\d": true},
            "patternProperties": {r"^\D$": {"const": {"pattern": r"\d"}}},
        });
        spell_out_patterns(&mut schema);
        assert_eq!(
            schema,
            json!({
                "properties": {"pattern": {"pattern": "[0-9]"}, r"\d": true},
                "patternProperties": {"^[^0-9]$": {"const": {"pattern": r"\d"}}},
            })
        );
    }

    #[test]
    fn only_schemas_are_nullable() {
        let spelled = |mut schema: Value| {
            spell_out_nullable(&mut schema);
            schema
        };
        let none = json!({"type": "null"});
        let word = json!({"type": "string", "nullable": true, "title": "a word"});
        let either = json!({"anyOf": [{"type": "string", "title": "a word"}, none]});
        assert_eq!(spelled(word.clone()), either);
        assert_eq!(spelled(json!({"items": word, "nullable": false})), json!({"items": either, "nullable": false}));
        let root = json!({"$defs": {"word": word}, "$ref": "#/$defs/word", "nullable": true});
        let whole = json!({"$defs": {"word": either}, "anyOf": [{"$ref": "#/$defs/word"}, none]});
        assert_eq!(spelled(root), whole);
        for other in [
            json!({"properties": {"nullable": true}}),
            json!({"enum": [{"nullable": true}]}),
            json!({"properties": {"default": {"type": "string"}}}),
        ] {
            assert_eq!(spelled(other.clone()), other);
        }
        let named = json!({"properties": {"default": word}});
        assert_eq!(spelled(named), json!({"properties": {"default": either}}));
    }
}

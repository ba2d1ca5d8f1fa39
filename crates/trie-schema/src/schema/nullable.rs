//! `"nullable": true` as `OpenAPI` writes it, in the words of JSON Schema: the value or null.

use super::each::each_schema;
use serde_json::{Map, Value, json};

const NULLABLE: &str = "nullable";
/// Keywords that others refer to by where they stand.
const STAY: [&str; 5] = ["$schema", "$id", "$anchor", "$defs", "definitions"];

/// Says it everywhere in a schema.
pub(super) fn spell_out(schema: &mut Value) {
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
    fn only_schemas_are_nullable() {
        let spelled = |mut schema: Value| {
            spell_out(&mut schema);
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

//! Patterns as ECMA-262 has them, everywhere in a schema.

use super::each::each_schema;
use serde_json::{Map, Value};
use trie_rules::schema::ecma_classes;

/// Says their classes in full.
pub(super) fn spell_out(schema: &mut Value) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_patterns_of_schemas_are_said_otherwise() {
        let mut schema = json!({
            "properties": {"pattern": {"pattern": r"\d"}, r"\d": true},
            "patternProperties": {r"^\D$": {"const": {"pattern": r"\d"}}},
        });
        spell_out(&mut schema);
        assert_eq!(
            schema,
            json!({
                "properties": {"pattern": {"pattern": "[0-9]"}, r"\d": true},
                "patternProperties": {"^[^0-9]$": {"const": {"pattern": r"\d"}}},
            })
        );
    }
}

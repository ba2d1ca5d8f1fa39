//! `\s` and `\S` in patterns as ECMA-262 has them, which JSON Schema takes its patterns from: the byte order mark is
//! white space there, and U+0085 is none.

use super::each::each_schema;
use serde_json::{Map, Value};

const SPACE: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// Says it everywhere in a schema.
pub(super) fn spell_out(schema: &mut Value) {
    each_schema(schema, |members| {
        if let Some(Value::String(pattern)) = members.get_mut("pattern") {
            *pattern = spelled(pattern);
        }
        if let Some(Value::Object(named)) = members.get_mut("patternProperties")
            && named.keys().any(|pattern| spelled(pattern) != *pattern)
        {
            // Where two would become one, all stay: none is lost.
            let said: Map<String, Value> =
                named.iter().map(|(pattern, schema)| (spelled(pattern), schema.clone())).collect();
            if said.len() == named.len() {
                *named = said;
            }
        }
    });
}

fn spelled(pattern: &str) -> String {
    if !pattern.contains(r"\s") && !pattern.contains(r"\S") {
        return pattern.to_owned();
    }
    let (mut said, mut chars, mut classes) = (String::new(), pattern.chars().peekable(), 0_usize);
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('s') if classes > 0 => said.push_str(SPACE),
                Some('s') => said.extend(["[", SPACE, "]"]),
                Some('S') => said.extend(["[^", SPACE, "]"]),
                other => said.extend([Some('\\'), other].into_iter().flatten()),
            },
            '[' => {
                classes += 1;
                said.push(char);
                said.extend(chars.next_if_eq(&'^'));
                // The first one is a character of the class.
                said.extend(chars.next_if_eq(&']'));
            }
            ']' => {
                classes = classes.saturating_sub(1);
                said.push(char);
            }
            other => said.push(other),
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_patterns_of_schemas_are_said_otherwise() {
        let of = |pattern: &str| spelled(pattern).replace(SPACE, "SPACE");
        for (pattern, said) in [
            (r"^\s*a\S", "^[SPACE]*a[^SPACE]"),
            (r"[^\s\d][]\S]", r"[^SPACE\d][][^SPACE]]"),
            (r"[a[\s]b]\s", "[a[SPACE]b][SPACE]"),
            (r"\\s\[\s", r"\\s\[[SPACE]"),
            (r"\", r"\"),
            (r"\s\", r"[SPACE]\"),
        ] {
            assert_eq!(of(pattern), said);
        }
        let mut schema = json!({
            "properties": {"pattern": {"pattern": r"\s"}, r"\s": true},
            "patternProperties": {r"^\S$": {"const": {"pattern": r"\s"}}},
        });
        spell_out(&mut schema);
        let space = format!("[{SPACE}]");
        assert_eq!(
            schema,
            json!({
                "properties": {"pattern": {"pattern": space}, r"\s": true},
                "patternProperties": {format!("^[^{SPACE}]$"): {"const": {"pattern": r"\s"}}},
            })
        );
    }
}

//! Enums of any size. llguidance reads an enum as a trie of its values, but gives up by limits that are meant for
//! grammars: those grow with the values here.

use llguidance::api::ParserLimits;
use serde_json::Value;

/// Values from which on an enum counts as large.
const LARGE: usize = 500;
/// Keywords whose values are data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Makes large enums of strings cheap to read: `"type": "string"` beside strings says nothing, but makes llguidance
/// compare each of them. Says how many bytes large enums have.
pub(super) fn prepare(schema: &mut Value) -> u64 {
    let mut bytes = 0;
    let mut left = vec![schema];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => {
                if let Some(Value::Array(values)) = members.get("enum")
                    && values.len() >= LARGE
                {
                    bytes += values.iter().map(size).sum::<u64>();
                    if values.iter().all(Value::is_string) && members.get("type").is_some_and(|kind| kind == "string") {
                        members.shift_remove("type");
                    }
                }
                left.extend(
                    members.iter_mut().filter(|(name, _)| !DATA.contains(&name.as_str())).map(|(_, value)| value),
                );
            }
            _ => {}
        }
    }
    bytes
}

fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 + 8,
        other => other.to_string().len() as u64 + 64,
    }
}

/// llguidance's limits for a grammar with so many bytes of large enums.
pub(super) fn limits(large: u64) -> ParserLimits {
    let usual = ParserLimits::default();
    ParserLimits {
        initial_lexer_fuel: usual.initial_lexer_fuel + 30 * large,
        step_lexer_fuel: usual.step_lexer_fuel + 60 * large,
        verbose_errors: false,
        ..usual
    }
}

//! Enums of any size. llguidance reads an enum as a trie of its values, but gives up by limits that are meant for
//! grammars: those grow with the values here.

use super::each::each_schema;
use llguidance::api::ParserLimits;
use serde_json::Value;

/// Values from which on an enum counts as large.
pub(super) const LARGE: usize = 500;
/// Bytes of large enums beside other things: more takes llguidance longer than anybody waits.
const MOST_BYTES: u64 = 1 << 24;
/// Arrays and objects in large enums beside other things: each is a part of a grammar, and all stand side by side in
/// every mask.
const MOST_INNER: usize = 10_000;

/// What large enums have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Large {
    bytes: u64,
    /// Arrays and objects, and what is in them.
    inner: usize,
}

impl Large {
    /// # Errors
    /// More than can be read, in words.
    pub(super) fn check(self) -> Result<(), String> {
        let alone = "a schema that is one enum alone takes any number";
        if self.inner > MOST_INNER {
            let count = self.inner;
            return Err(format!("its enums have {count} arrays and objects: at most {MOST_INNER} are taken; {alone}"));
        }
        if self.bytes > MOST_BYTES {
            let bytes = self.bytes;
            return Err(format!("its enums have some {bytes} bytes: at most {MOST_BYTES} are taken; {alone}"));
        }
        Ok(())
    }
}

/// Makes large enums of strings cheap to read: `"type": "string"` beside strings says nothing, but makes llguidance
/// compare each of them. Says what large enums have.
pub(super) fn prepare(schema: &mut Value) -> Large {
    let mut large = Large::default();
    each_schema(schema, |members| {
        let Some(Value::Array(values)) = members.get("enum") else { return };
        if values.len() < LARGE {
            return;
        }
        large.bytes += values.iter().map(size).sum::<u64>();
        large.inner += values.iter().map(inner).sum::<usize>();
        if values.iter().all(Value::is_string) && members.get("type").is_some_and(|kind| kind == "string") {
            members.shift_remove("type");
        }
    });
    large
}

/// Arrays and objects in a value, and itself if it is one.
fn inner(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(inner).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(inner).sum::<usize>(),
        _ => 0,
    }
}

fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 + 8,
        other => other.to_string().len() as u64 + 64,
    }
}

/// llguidance's limits for a grammar with such enums.
pub(super) fn limits(large: Large) -> ParserLimits {
    let usual = ParserLimits::default();
    ParserLimits {
        initial_lexer_fuel: usual.initial_lexer_fuel + 30 * large.bytes,
        step_lexer_fuel: usual.step_lexer_fuel + 60 * large.bytes,
        max_items_in_row: usual.max_items_in_row + 4 * large.inner,
        step_max_items: usual.step_max_items + 100 * large.inner,
        verbose_errors: false,
        ..usual
    }
}

//! Fingerprint by which a constraint is identified.

use super::Spec;
use serde_json::Value;
use sha2::{Digest, Sha256};
use trie_text::hexadecimal;

impl Spec {
    /// Returns the SHA-256, in hexadecimal, of the JSON form without its limits, which do not change its texts; `None`
    /// if the constraint cannot be written as data.
    pub fn fingerprint(&self) -> Option<String> {
        let mut json = self.json().ok()?;
        drop_limits(&mut json);
        Some(hexadecimal(&Sha256::digest(json.to_string())))
    }
}

/// Not inside schemas and payloads, which have names of their own.
fn drop_limits(spec: &mut Value) {
    const LIMITED: [&str; 6] = ["regex", "grammar", "gbnf", "lark", "json_schema", "wasm"];
    match spec {
        Value::Array(specs) => specs.iter_mut().for_each(drop_limits),
        Value::Object(fields) => {
            if LIMITED.iter().any(|kind| fields.contains_key(*kind)) {
                fields.shift_remove("limits");
            }
            let inside = |(name, _): &(&String, &mut Value)| !matches!(name.as_str(), "json_schema" | "payload");
            fields.iter_mut().filter(inside).for_each(|(_, value)| drop_limits(value));
        }
        _ => {}
    }
}

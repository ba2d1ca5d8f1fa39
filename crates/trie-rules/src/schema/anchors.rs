//! The parts of a schema, and those that have names.

use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Keywords whose values are data.
pub(super) const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// All objects in a schema, but data.
pub(super) fn all(schema: &Value) -> impl Iterator<Item = &Value> {
    let mut left = vec![schema];
    std::iter::from_fn(move || {
        while let Some(value) = left.pop() {
            match value {
                Value::Array(items) => left.extend(items),
                Value::Object(map) => {
                    left.extend(map.iter().filter(|(key, _)| !DATA.contains(&key.as_str())).map(|(_, value)| value));
                    return Some(value);
                }
                _ => {}
            }
        }
        None
    })
}

/// The parts of a schema that have names.
pub(super) struct Anchors<'a>(HashMap<&'a str, (&'a Value, usize)>);

impl<'a> Anchors<'a> {
    pub(super) fn of(schema: &'a Value) -> Self {
        let mut parts = HashMap::new();
        for part in all(schema) {
            let names: HashSet<&str> =
                ANCHORS.iter().filter_map(|key| part.get(*key).and_then(Value::as_str)).collect();
            for name in names {
                parts.entry(name).or_insert((part, 0_usize)).1 += 1;
            }
        }
        Self(parts)
    }

    /// How many parts have this name.
    pub(super) fn count(&self, name: &str) -> usize {
        self.0.get(name).map_or(0, |(_, count)| *count)
    }

    /// The only part with this name; where there are several, which is meant depends on the way to it.
    pub(super) fn only(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|(_, count)| *count == 1).map(|(part, _)| *part)
    }
}

//! Where references lead.

use super::front::Front;
use serde_json::Value;

/// Keywords whose values are data.
pub(super) const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
pub(super) const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

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

/// Whether parts of a schema have names to which references inside of them are relative.
pub(super) fn has_ids(schema: &Value) -> bool {
    let own = |part: &Value| {
        ["$id", "id"]
            .iter()
            .any(|key| part.get(*key).and_then(Value::as_str).is_some_and(|name| !name.starts_with('#')))
    };
    all(schema).skip(1).any(own)
}

impl Front<'_> {
    /// The only schema with this name; where there are several, which is meant depends on the way to it.
    fn named(&self, name: &str) -> Option<&Value> {
        let is = |part: &&Value| ANCHORS.iter().any(|key| part.get(*key).and_then(Value::as_str) == Some(name));
        let mut found = all(self.root).filter(is);
        found.next().filter(|_| found.next().is_none())
    }

    /// What a reference in this document leads to, wherever it stands.
    pub(super) fn target(&self, reference: &str) -> Option<&Value> {
        if self.has_ids {
            return None;
        }
        let own = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let short = reference.strip_prefix(own.trim_end_matches('#')).filter(|rest| rest.starts_with('#'));
        let pointer = short.unwrap_or(reference).strip_prefix('#')?;
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return self.named(pointer);
        }
        self.root.pointer(&plain(pointer))
    }

    /// Says what references lead to outside of all that was said.
    pub(super) fn follow(&mut self, spelled: &mut Value) {
        let mut known = 0;
        loop {
            let pointers: Vec<String> = all(spelled)
                .filter_map(|part| part.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#')))
                .filter(|pointer| pointer.starts_with('/'))
                .map(plain)
                .filter(|pointer| !self.done.contains(pointer))
                .collect();
            for pointer in pointers {
                if let Some(Value::Object(target)) = self.root.pointer(&pointer).cloned() {
                    let said = self.schema(Value::Object(target), &pointer);
                    if let Some(place) = spelled.pointer_mut(&pointer) {
                        *place = said;
                    }
                }
                self.done.insert(pointer);
            }
            if self.done.len() == known {
                return;
            }
            known = self.done.len();
        }
    }
}

/// A pointer out of a URI.
fn plain(pointer: &str) -> String {
    let codes = ["25", "24", "20", "22", "5E", "7C"].iter().zip(['%', '$', ' ', '"', '^', '|']);
    codes.fold(pointer.to_owned(), |text, (code, char)| text.replace(&format!("%{code}"), &char.to_string()))
}

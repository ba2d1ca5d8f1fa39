//! Repeated keys in the arguments of a call.

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// The first repeated key of the object in a JSON text. Objects inside its values are not checked.
pub(super) fn repeated_key(json: &str) -> Option<String> {
    serde_json::Deserializer::from_str(json).deserialize_map(Keys).ok().flatten()
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<String>, A::Error> {
        let (mut keys, mut repeated) = (HashSet::new(), None);
        while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            if let Some(again) = keys.replace(key) {
                repeated.get_or_insert(again);
            }
        }
        Ok(repeated)
    }
}

#[cfg(test)]
mod tests {
    use super::repeated_key;

    #[test]
    fn finds_the_first_that_comes_again() {
        assert_eq!(repeated_key(r#"{"a": {"b": 1, "b": 2}, "c": [], "\u0061": 1, "c": 2}"#).as_deref(), Some("a"));
        for once in [r#"{"a": {"a": 1}, "b": "a"}"#, "{}", "[1]", r#"{"a": 1, "a":"#, ""] {
            assert_eq!(repeated_key(once), None, "{once}");
        }
    }
}

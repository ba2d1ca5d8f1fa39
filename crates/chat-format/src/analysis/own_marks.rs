//! Marks around texts that a format writes into messages, so that a template prints them as its own.

use chat_template::{Data, TracedText};
use serde_json::Value;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Marks around a text that a format wrote, on its way to the template.
///
/// The marks are unpredictable, so no foreign text contains them, however it is decoded. By default the marks are
/// empty, and nothing is marked.
#[derive(Debug, Default)]
pub(crate) struct OwnMarks {
    begin: String,
    end: String,
}

impl OwnMarks {
    /// New marks, for one prompt.
    pub(super) fn random() -> Self {
        let number = || RandomState::new().build_hasher().finish();
        let key = format!("{:016x}{:016x}", number(), number());
        Self { begin: format!("\u{F0000}{key}\u{F0001}"), end: format!("\u{F0002}{key}\u{F0003}") }
    }

    /// A text that is marked.
    pub(super) fn wrap(&self, text: &str) -> String {
        format!("{}{text}{}", self.begin, self.end)
    }

    /// A value for the template, without the marks.
    pub(super) fn data(&self, value: &Value) -> Data {
        match value {
            Value::String(text) if !self.begin.is_empty() && text.contains(&self.begin) => {
                Data::Traced(self.to_traced(text))
            }
            Value::Array(items) => Data::List(items.iter().map(|item| self.data(item)).collect()),
            Value::Object(entries) => {
                Data::Dict(entries.iter().map(|(key, value)| (key.clone(), self.data(value))).collect())
            }
            other => Data::from(other),
        }
    }

    fn to_traced(&self, text: &str) -> TracedText {
        let mut parts = text.split(self.begin.as_str());
        let mut traced = TracedText::foreign_text(parts.next().unwrap_or_default());
        for part in parts {
            let (own, foreign) = part.split_once(self.end.as_str()).unwrap_or(("", part));
            traced.push_own(own);
            traced.push_foreign(foreign);
        }
        traced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_marked_is_own() {
        let marks = OwnMarks::random();
        let text = format!("a{}b{}", marks.wrap("<t>"), marks.wrap("</t>"));
        let Data::List(found) = marks.data(&json!([text, "a\u{F0000}b"])) else { panic!() };
        let Data::Traced(traced) = &found[0] else { panic!() };
        assert_eq!((traced.text(), traced.own_ranges()), ("a<t>b</t>", &[1..4, 5..9][..]));
        assert_eq!(found[1], Data::from("a\u{F0000}b"));
    }
}

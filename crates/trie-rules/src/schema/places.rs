//! Where references lead.

use super::anchors::all;
use super::front::{Front, LISTED, NAMED, ONE, WHOLE, weight};
use serde_json::Value;
use std::collections::VecDeque;

pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
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
    /// What a reference in this document leads to, wherever it stands.
    pub(super) fn target(&self, reference: &str) -> Option<&Value> {
        if self.has_ids {
            return None;
        }
        let own = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let short = reference.strip_prefix(own.trim_end_matches('#')).filter(|rest| rest.starts_with('#'));
        let pointer = short.unwrap_or(reference).strip_prefix('#')?;
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return self.anchors.only(pointer);
        }
        self.root.pointer(&plain(pointer))
    }

    /// Says what references lead to outside of all that was said.
    pub(super) fn follow(&mut self, spelled: &mut Value) {
        let mut known = 0;
        loop {
            if !self.turns(weight(spelled)) {
                return self.took("", WHOLE);
            }
            let pointers: Vec<String> = all(spelled)
                .filter_map(|part| part.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#')))
                .filter(|pointer| pointer.starts_with('/'))
                .map(plain)
                .filter(|pointer| !self.done.contains(pointer))
                .collect();
            for pointer in pointers {
                if let Some(target) = self.root.pointer(&pointer).filter(|target| target.is_object()) {
                    let said = self.schema(self.copy(target), &pointer);
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
pub(super) fn plain(pointer: &str) -> String {
    let codes = ["25", "24", "20", "22", "5E", "7C"].iter().zip(['%', '$', ' ', '"', '^', '|']);
    codes.fold(pointer.to_owned(), |text, (code, char)| text.replace(&format!("%{code}"), &char.to_string()))
}

/// Returns the place in a schema that a place in its other words is about, as a JSON pointer that leads to a schema in
/// it; with a keyword, the place at or below it where that stands.
///
/// ```
/// use serde_json::json;
/// use trie_rules::schema::place_in;
///
/// let given = json!({"properties": {"a": {"oneOf": [true, {"minimum": 3}]}}});
/// assert_eq!(place_in(&given, "/properties/a/anyOf/1/allOf/2/minimum"), "/properties/a/oneOf/1");
/// ```
pub fn place_in(given: &Value, at: &str) -> String {
    found(given, at).0
}

/// Returns the place of what is said of a keyword by others: it stands nowhere in the schema that was given.
pub(super) fn said_at(at: &str, keyword: &str) -> String {
    format!("{at}/{SAID}{keyword}")
}

/// A character that no keyword has.
const SAID: char = '\0';

/// Keywords that multiply what stands beside them.
const MULTIPLY: [&str; 15] = [
    "allOf",
    "if",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "oneOf",
    "anyOf",
    "contains",
    "not",
    "$ref",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// Returns the innermost place at or around one of a schema in other words, as [`place_in`] has it, where a keyword
/// multiplies what stands beside it, and that keyword.
pub fn multiplying<'a>(given: &Value, at: &str) -> (String, &'a str) {
    let at = place_in(given, at);
    let ends: Vec<usize> = at.match_indices('/').map(|(end, _)| end).chain([at.len()]).collect();
    let word = |at: &str| {
        let schema = given.pointer(at)?;
        MULTIPLY.into_iter().find(|keyword| schema.get(*keyword).is_some())
    };
    let found = ends.into_iter().rev().find_map(|end| Some((at[..end].to_owned(), word(&at[..end])?)));
    found.unwrap_or_else(|| (String::new(), WHOLE))
}

/// [`place_in`], and the keyword as the schema that was given has it.
pub(super) fn place_of(given: &Value, at: &str, keyword: &str) -> (String, String) {
    let (place, schema) = found(given, at);
    let said = at.split_once(SAID).and_then(|(_, rest)| rest.split('/').next());
    let keyword = said.filter(|_| keyword == WHOLE).unwrap_or(keyword);
    let words: Vec<&str> = std::iter::once(keyword).chain(others(keyword).iter().copied()).collect();
    let own = |schema: &Value| words.iter().find(|word| schema.get(**word).is_some()).map(|word| (*word).to_owned());
    let mut open = VecDeque::from([(place.clone(), schema)]);
    while let Some((place, schema)) = open.pop_front() {
        if let Some(word) = own(schema) {
            return (place, word);
        }
        open.extend(children(schema).map(|(name, child)| (format!("{place}{name}"), child)));
    }
    (place, keyword.to_owned())
}

/// Keywords that stand for another one in its other words.
fn others(keyword: &str) -> &'static [&'static str] {
    match keyword {
        "anyOf" => &["oneOf"],
        "prefixItems" => &["items"],
        "items" => &["additionalItems"],
        "dependentRequired" | "dependentSchemas" => &["dependencies"],
        "unevaluatedProperties" => &["unevaluatedItems"],
        "minProperties" => &["maxProperties"],
        _ => &[],
    }
}

/// Keywords in which schemas stand that are said by others.
const CONDITIONS: [&str; 7] =
    ["not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems", "additionalItems"];
const DEPENDENT: [&str; 2] = ["dependentSchemas", "dependencies"];

/// The schemas in a schema, each with its place in it.
fn children(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    let members = schema.as_object().into_iter().flatten();
    members.flat_map(|(key, value)| -> Vec<(String, &Value)> {
        let word = key.as_str();
        match value {
            Value::Object(named) if NAMED.contains(&word) || DEPENDENT.contains(&word) => {
                named.iter().map(|(name, value)| (format!("/{word}/{}", escaped(name)), value)).collect()
            }
            Value::Array(listed) if LISTED.contains(&word) || word == "items" => {
                listed.iter().enumerate().map(|(nth, value)| (format!("/{word}/{nth}"), value)).collect()
            }
            one if ONE.contains(&word) || CONDITIONS.contains(&word) => vec![(format!("/{word}"), one)],
            _ => Vec::new(),
        }
    })
}

/// The schema that a place leads to, as far as there is one in the schema that was given, and its own place.
fn found<'a>(given: &'a Value, at: &str) -> (String, &'a Value) {
    let (mut place, mut schema) = (String::new(), given);
    let mut parts = at.split('/').skip(1).peekable();
    while let Some(part) = parts.next().filter(|part| !part.starts_with(SAID)) {
        let words = || std::iter::once(part).chain(others(part).iter().copied());
        let step = words().filter(|word| schema.get(*word).is_some()).find_map(|word| {
            let (name, deep) = match parts.peek() {
                Some(next) => (format!("/{word}/{next}"), true),
                None => (format!("/{word}"), false),
            };
            let mut all = children(schema);
            all.find(|(own, _)| *own == name || (deep && *own == format!("/{word}"))).map(|found| (found, deep))
        });
        match step {
            Some(((name, child), deep)) => {
                // The name or number is a part of its own.
                if deep && name.matches('/').count() == 2 {
                    parts.next();
                }
                place.push_str(&name);
                schema = child;
            }
            // What was put around it: a part of a union or of all that must hold.
            None if LISTED.contains(&part) && part != "prefixItems" => drop(parts.next()),
            // Where the keyword stands that was said by others, and not in it.
            None if schema.get(part).is_some() || CONDITIONS.contains(&part) => {}
            None => break,
        }
    }
    (place, schema)
}

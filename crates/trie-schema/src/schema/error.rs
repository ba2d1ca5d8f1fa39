//! What is wrong with a schema, and where.

use serde_json::{Map, Value};
use trie_rules::schema::{contradictions, place_in};

/// A schema that cannot be used. Places are JSON pointers: empty for the whole schema, else `/properties/name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is no JSON.
    #[error("the schema is not JSON: line {line}, column {column}: {reason}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// Keywords that cannot be kept.
    #[error("{}{} {} not supported", place(.at), .keywords.join(", "), if .keywords.len() == 1 { "is" } else { "are" })]
    Unsupported {
        /// Where.
        at: String,
        /// The keywords.
        keywords: Vec<String>,
    },
    /// Something that is no schema.
    #[error("{}{reason}", place(.at))]
    Invalid {
        /// Where.
        at: String,
        /// What is wrong, with the value.
        reason: String,
    },
    /// No document is allowed.
    #[error("{}no document is allowed: {reason}", place(.at))]
    Nothing {
        /// Where.
        at: String,
        /// Why.
        reason: String,
    },
    /// It is larger than can be compiled.
    #[error("the schema is too large: {reason}")]
    TooLarge {
        /// What is.
        reason: String,
    },
}

trie_core::error_kind!(SchemaError, Rule);

impl SchemaError {
    /// Returns why the keywords of a schema are not supported, with the values that meet; `None` for other errors.
    #[must_use]
    pub fn reason(&self, schema: &str) -> Option<String> {
        let Self::Unsupported { at, keywords } = self else { return None };
        let schema: Value = serde_json::from_str(schema).ok()?;
        let part = schema.pointer(at)?.as_object()?;
        let reasons: Vec<String> = keywords.iter().filter_map(|keyword| reason(part, keyword)).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// Returns why one keyword is not supported, and what to do.
fn reason(part: &Map<String, Value>, keyword: &str) -> Option<String> {
    let value = part.get(keyword)?;
    let names = |key: &str| part.get(key).and_then(Value::as_object).map_or(0, Map::len);
    Some(match keyword {
        "minProperties" | "maxProperties" => {
            let required = part.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            let optional = names("properties").saturating_sub(required);
            format!(
                "{keyword} is {value} and {optional} names are optional, too many to count which of them came: require \
                 some of them, or leave {keyword} out"
            )
        }
        "patternProperties" => {
            let patterns = value.as_object()?.keys().take(SHOWN).map(|name| format!("{name:?}"));
            let patterns: Vec<String> = patterns.collect();
            format!(
                "its patterns {} overlap: a name may meet several of them, and the names of properties; write patterns \
                 that exclude each other",
                patterns.join(" and ")
            )
        }
        "format" => format!("no finite pattern says what texts {} are: give a pattern in its place", shown(value)),
        "uniqueItems" => "the items that must differ are not a short list of values: give them an enum of a few, or \
                          leave uniqueItems out"
            .to_owned(),
        "contains" => format!("which items are {} cannot be counted: bound maxItems, or use prefixItems", shown(value)),
        "not" | "if" | "oneOf" | "dependentSchemas" | "unevaluatedProperties" | "unevaluatedItems" => {
            format!("the values that {} refuses cannot be written as a schema: list what is allowed", shown(value))
        }
        _ => format!("{} says of a whole value what cannot be followed while it is written", shown(value)),
    })
}

/// Patterns that a message shows.
const SHOWN: usize = 6;

/// The error of a schema that allows nothing; keywords that exclude each other at its place are named.
pub(super) fn contradicted(given: &Value, at: String, reason: String) -> SchemaError {
    let here = place_in(given, &at);
    match contradictions(given).into_iter().find(|one| one.at == here) {
        Some(one) => SchemaError::Nothing { at: one.at, reason: one.reason },
        None => SchemaError::Nothing { at, reason },
    }
}

pub(super) fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("at {at}: ") }
}

/// A value as it is shown in messages.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 60 { text.chars().take(60).chain("...".chars()).collect() } else { text }
}

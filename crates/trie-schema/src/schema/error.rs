//! What is wrong with a schema, and where.

use serde_json::Value;

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

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("at {at}: ") }
}

/// A value as it is shown in messages.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 60 { text.chars().take(60).chain("...".chars()).collect() } else { text }
}

//! Errors and warnings about a schema, with their places.

use crate::json::Json;
use crate::shape::Refused;

/// A schema that cannot be used. Places are JSON pointers: empty for the whole schema, else `/properties/name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("the schema is not JSON: line {line}, column {column}: {reason}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// Description of the syntax error.
        reason: String,
    },
    /// Keywords that cannot be kept.
    #[error("{}{} {} not supported", place(.at), .keywords.join(", "), if .keywords.len() == 1 { "is" } else { "are" })]
    Unsupported {
        /// JSON pointer of the schema.
        at: String,
        /// The keywords.
        keywords: Vec<String>,
    },
    /// A value that is not a schema.
    #[error("{}{reason}", place(.at))]
    Invalid {
        /// JSON pointer of the schema.
        at: String,
        /// Description of the error, with the invalid value.
        reason: String,
    },
    /// No document is allowed.
    #[error("{}no document is allowed: {reason}", place(.at))]
    Nothing {
        /// JSON pointer of the schema.
        at: String,
        /// Why.
        reason: String,
    },
    /// It is larger than can be compiled.
    #[error("the schema is too large: {reason}")]
    TooLarge {
        /// Description of the part that is too large.
        reason: String,
    },
}

trie_core::error_kind!(SchemaError, Rule);

/// A part of a schema that is not enforced, or that has no effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SchemaWarning {
    /// JSON pointer of the schema that has it.
    pub at: String,
    /// The keyword.
    pub keyword: String,
    /// Reason, and the constraint that is enforced instead.
    pub reason: String,
}

impl SchemaWarning {
    pub(crate) fn new(at: &str, keyword: &str, reason: String) -> Self {
        Self { at: at.to_owned(), keyword: keyword.to_owned(), reason }
    }
}

impl SchemaError {
    /// Returns the JSON pointer of the faulty schema, and a description of the fault.
    #[must_use]
    pub fn placed(&self) -> (String, String) {
        match self {
            Self::Invalid { at, reason } | Self::Nothing { at, reason } => (at.clone(), reason.clone()),
            Self::Unsupported { at, .. } => (at.clone(), self.to_string()),
            Self::TooLarge { reason } => match reason.strip_prefix("at ").and_then(|rest| rest.split_once(": ")) {
                Some((at, reason)) => (at.to_owned(), reason.to_owned()),
                None => (String::new(), reason.clone()),
            },
            Self::Json { .. } => (String::new(), self.to_string()),
        }
    }

    /// Returns the reason why keywords of a schema are not supported, with their conflicting values; `None` for other
    /// errors.
    #[must_use]
    pub fn reason(&self, schema: &str) -> Option<String> {
        let Self::Unsupported { at, keywords } = self else { return None };
        let schema = Json::read(schema)?;
        let part = schema.pointer(at)?;
        let reason = |keyword: &String| {
            let value = part.get(keyword);
            Some(match (&**keyword, value) {
                ("format", Some(value)) => {
                    format!("no finite pattern says what texts {} are: give a pattern in its place", shown(value))
                }
                (_, Some(value)) => format!("{} cannot be followed while it is written", shown(value)),
                (_, None) => return None,
            })
        };
        let reasons: Vec<String> = keywords.iter().filter_map(reason).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

impl From<Refused> for SchemaError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TooLarge { at, keyword, why } => {
                Self::TooLarge { reason: format!("{}{keyword} is not supported: {why}", place(&at)) }
            }
            Refused::Over(over) => Self::TooLarge { reason: over.to_string() },
        }
    }
}

pub(crate) fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("at {at}: ") }
}

/// A value as it is shown in messages.
pub(crate) fn shown(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() > 60 { text.chars().take(60).chain("...".chars()).collect() } else { text }
}

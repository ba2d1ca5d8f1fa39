//! The JSON wire form of one or several tries.
//!
//! ```json
//! {"modelId": "my-model",
//!  "descriptors": [{"path": "action", "leaves": [{"name": "THINK", "tokens": [100, 101]}]}]}
//! ```

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use trie_core::AnyConstraint;
use trie_core::TokenId;
use trie_core::Trie;
use trie_core::UnknownPath;
use trie_core::{BuildError, TrieBuilder};

/// Several tries, one for each span that the host may constrain. They are never merged.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The model whose vocabulary the ids belong to; empty if the payload names none.
    pub model_id: String,
    /// Path and trie of each descriptor with at least one usable leaf, in the order of the payload.
    pub constraints: Arc<[(String, AnyConstraint)]>,
    /// Parts that were left out.
    pub report: PayloadReport,
}

/// Parts of a payload that were left out, so that nothing is lost silently.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayloadReport {
    /// Number of leaves without tokens.
    pub empty_leaves: usize,
    /// Leaves with an id outside the vocabulary: they could never be produced.
    pub out_of_vocabulary: usize,
    /// The first few of those.
    pub dropped: Vec<DroppedLeaf>,
    /// Descriptors in which no leaf was usable.
    pub empty_paths: Vec<String>,
}

/// A leaf that the vocabulary cannot spell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedLeaf {
    /// Path of its descriptor.
    pub path: String,
    /// Name of the leaf.
    pub name: String,
    /// Its first id that is outside.
    pub token: TokenId,
}

impl PayloadReport {
    const SHOWN: usize = 8;

    /// Returns a warning about leaves that cannot be generated with a vocabulary of this size; `None` if there are
    /// none.
    pub fn warning(&self, n_vocab: usize) -> Option<String> {
        let DroppedLeaf { path, name, token } = self.dropped.first()?;
        let dropped = self.out_of_vocabulary;
        let leaves = if dropped == 1 { "leaf" } else { "leaves" };
        Some(format!(
            "payload: dropped {dropped} {leaves} with ids outside the vocabulary of {n_vocab} tokens; the first is \
             {name:?} of {path:?} with id {token}"
        ))
    }
}

/// A payload that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Not JSON, or not of this form.
    #[error("payload, line {line}, column {column}{}: {reason}", at_field(.field))]
    Malformed {
        /// Line, counted from 1.
        line: usize,
        /// Column, from 1; 0 at the very start of a line.
        column: usize,
        /// The field, such as `descriptors[0].leaves[3].tokens[1]`; empty at the top.
        field: String,
        /// Description of the defect, with the value.
        reason: String,
    },
    /// Two descriptors claim one path.
    #[error("payload: two descriptors have the path {path:?}")]
    DuplicatePath {
        /// Path of the descriptor.
        path: String,
    },
    /// There is nothing to choose from.
    #[error(
        "payload: no usable leaf in {descriptors} descriptor(s): {empty} leaves have no tokens, \
         {outside} need ids outside the vocabulary"
    )]
    NoUsableLeaf {
        /// Descriptors in the payload.
        descriptors: usize,
        /// Number of leaves without tokens.
        empty: usize,
        /// Leaves with ids outside the vocabulary.
        outside: usize,
    },
    /// The leaves of one descriptor make no trie.
    #[error("payload, descriptor {path:?}: {source}")]
    Build {
        /// Path of the descriptor.
        path: String,
        /// Error of the builder.
        source: BuildError,
    },
}

trie_core::error_kind!(PayloadError, Payload);

fn at_field(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(", field {field}") }
}

#[derive(serde::Deserialize)]
#[serde(expecting = "an object with the field `descriptors`")]
struct RawPayload<'a> {
    #[serde(rename = "modelId", borrow, default)]
    model_id: Cow<'a, str>,
    #[serde(borrow)]
    descriptors: Vec<RawDescriptor<'a>>,
}

#[derive(serde::Deserialize)]
#[serde(expecting = "an object with the fields `path` and `leaves`")]
struct RawDescriptor<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    leaves: Vec<RawLeaf<'a>>,
}

#[derive(serde::Deserialize)]
#[serde(expecting = "an object with the fields `name` and `tokens`")]
struct RawLeaf<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    tokens: Vec<TokenId>,
}

impl Payload {
    /// Path and trie of each descriptor.
    pub fn tries(&self) -> impl Iterator<Item = (&str, &Trie)> {
        self.constraints.iter().filter_map(|(path, constraint)| Some((path.as_str(), constraint.as_trie()?)))
    }

    /// The trie with this path, or the first.
    ///
    /// # Errors
    /// No descriptor has that path.
    pub fn trie(&self, path: Option<&str>) -> Result<&Trie, UnknownPath> {
        let found = self.tries().find(|(known, _)| path.is_none_or(|path| path == *known));
        let unknown =
            || UnknownPath::new(path.unwrap_or_default(), self.constraints.iter().map(|(path, _)| path.as_str()));
        found.map(|(_, trie)| trie).ok_or_else(unknown)
    }

    /// Returns whether JSON text is meant as a payload, that is, an object with descriptors. `O(bytes)`, without
    /// recursion on the input.
    pub fn is_meant(text: &[u8]) -> bool {
        #[derive(serde::Deserialize)]
        struct PayloadShape {
            #[serde(default)]
            descriptors: Option<serde::de::IgnoredAny>,
        }
        serde_json::from_slice::<PayloadShape>(text).is_ok_and(|meant| meant.descriptors.is_some())
    }

    /// Reads a payload. Unknown fields are ignored at any depth. There is no recursion on the input.
    ///
    /// `n_vocab` is the size of the vocabulary: leaves with larger ids are dropped and reported. `O(bytes)` and one
    /// sort of the leaves, whatever the number of descriptors.
    ///
    /// # Errors
    /// [`PayloadError`] names the problem and its position. A payload without a usable leaf is an error.
    pub fn from_json(text: &[u8], n_vocab: Option<usize>) -> Result<Self, PayloadError> {
        let raw: RawPayload<'_> = serde_json::from_slice(text).map_err(|_| explain(text))?;
        let mut report = PayloadReport::default();
        let mut constraints: Vec<(String, AnyConstraint)> = Vec::with_capacity(raw.descriptors.len());
        let mut paths: HashSet<&str> = HashSet::with_capacity(raw.descriptors.len());
        for descriptor in &raw.descriptors {
            if !paths.insert(&descriptor.path) {
                return Err(PayloadError::DuplicatePath { path: descriptor.path.to_string() });
            }
            let builder = descriptor.usable(n_vocab.unwrap_or(usize::MAX), &mut report);
            if builder.is_empty() {
                report.empty_paths.push(descriptor.path.to_string());
                continue;
            }
            let path = descriptor.path.to_string();
            match builder.build() {
                Ok(trie) => constraints.push((path, trie.into())),
                Err(source) => return Err(PayloadError::Build { path, source }),
            }
        }
        if constraints.is_empty() {
            return Err(PayloadError::NoUsableLeaf {
                descriptors: raw.descriptors.len(),
                empty: report.empty_leaves,
                outside: report.out_of_vocabulary,
            });
        }
        Ok(Self { model_id: raw.model_id.into_owned(), constraints: constraints.into(), report })
    }
}

impl RawDescriptor<'_> {
    fn usable(&self, n_vocab: usize, report: &mut PayloadReport) -> TrieBuilder {
        let tokens = self.leaves.iter().map(|leaf| leaf.tokens.len()).sum();
        let mut builder = TrieBuilder::with_capacity(self.leaves.len(), tokens);
        for leaf in &self.leaves {
            if leaf.tokens.is_empty() {
                report.empty_leaves += 1;
            } else if let Some(&token) = leaf.tokens.iter().find(|token| token.index() >= n_vocab) {
                report.out_of_vocabulary += 1;
                if report.dropped.len() < PayloadReport::SHOWN {
                    let (path, name) = (self.path.to_string(), leaf.name.to_string());
                    report.dropped.push(DroppedLeaf { path, name, token });
                }
            } else {
                builder.push(Some(&leaf.name), &leaf.tokens);
            }
        }
        builder
    }
}

/// Reads a rejected payload once more, this time keeping track of the field.
#[cold]
fn explain(text: &[u8]) -> PayloadError {
    let mut json = serde_json::Deserializer::from_slice(text);
    let (field, error) = match serde_path_to_error::deserialize::<_, RawPayload<'_>>(&mut json) {
        Err(error) => (error.path().to_string(), error.into_inner()),
        Ok(_) => match json.end() {
            Err(error) => (String::new(), error),
            Ok(()) => {
                return PayloadError::Malformed {
                    line: 0,
                    column: 0,
                    field: String::new(),
                    reason: "unreadable".into(),
                };
            }
        },
    };
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text).to_owned();
    PayloadError::Malformed { line, column, field: if field == "." { String::new() } else { field }, reason }
}

//! Errors of specs, with their places.

use crate::json::place::Place;
use trie_core::work::{LimitExceeded, spend};
use trie_core::{ErrorKind, GateError, NotListed, Problem, SequenceError, UnknownPath};
use trie_formats::PayloadError;
use trie_rules::{ByRuleError, GrammarError, RegexError, RegularError, TextsError};
use trie_text::{FormError, ValuesError, VocabError};

/// A spec that cannot be read or used.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct SpecError {
    place: String,
    problem: Box<SpecProblem>,
}

impl SpecError {
    pub(crate) fn new(place: &Place<'_>, problem: impl Into<SpecProblem>) -> Self {
        Self { place: place.to_string(), problem: Box::new(problem.into()) }
    }

    /// Counts a step of a loop whose length depends on the text.
    pub(crate) fn step(place: &Place<'_>) -> Result<(), Self> {
        spend(1).map_err(|over| Self::new(place, over))
    }

    /// Returns the place, as `$.form[1].value`; `$` is the whole.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the problem at that place.
    pub fn problem(&self) -> &SpecProblem {
        &self.problem
    }

    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.problem.kind()
    }

    /// Returns the place and the problem.
    pub fn into_parts(self) -> (String, SpecProblem) {
        (self.place, *self.problem)
    }
}

/// Problem of a spec.
#[derive(Debug, thiserror::Error)]
pub enum SpecProblem {
    /// The text is not JSON.
    #[error("invalid JSON: line {line}, column {column}: {reason}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// Description of the error.
        reason: String,
    },
    /// Text that is longer than the limit.
    #[error("the text has {bytes} bytes: a spec has at most {most}")]
    TooLong {
        /// Size of the text in bytes.
        bytes: usize,
        /// Limit on the bytes.
        most: usize,
    },
    /// Specs that are nested too deeply.
    #[error("specs are nested more than {most} deep here: names that refer to each other, perhaps")]
    TooDeep {
        /// Limit on the depth.
        most: usize,
    },
    /// A field comes twice.
    #[error("the field comes twice: keep one of them")]
    Repeated,
    /// A number of a schema has more digits than a JSON tree keeps.
    #[error("the number {given} has more digits than JSON keeps here: {{\"json_schema\": TEXT}} keeps all of a schema")]
    Digits {
        /// The number as it was written.
        given: String,
    },
    /// A field that there is not.
    #[error(
        "unknown field{} fields: {}",
        .meant.as_ref().map_or_else(|| "; known".to_owned(), |meant| format!(": did you mean {meant:?}? Known")),
        quote_names(.known)
    )]
    Unknown {
        /// Names that are registered.
        known: Vec<String>,
        /// The field that was meant, where one is near.
        meant: Option<String>,
    },
    /// A field that must be there is not.
    #[error("the field {name:?} is missing")]
    Missing {
        /// Name of the field.
        name: &'static str,
    },
    /// An object that is not a spec.
    #[error(
        "unknown kind of spec: expected an object with one of {}, got one with {}{}",
        quote_names(.known),
        quote_names(.given),
        .meant.as_ref().map(|meant| format!(": did you mean {meant:?}?")).unwrap_or_default()
    )]
    NoKind {
        /// Fields that were given.
        given: Vec<String>,
        /// Kinds that are supported.
        known: Vec<String>,
        /// The kind that was meant, where one is near.
        meant: Option<String>,
    },
    /// An object with the names of several kinds.
    #[error("a spec is of one kind, and this is of several: {}", quote_names(.kinds))]
    Kinds {
        /// Kinds that were given.
        kinds: Vec<String>,
    },
    /// A value of another type.
    #[error("invalid value: expected {expected}, got {given}")]
    Type {
        /// Description of the expected value.
        expected: String,
        /// Value that was given.
        given: String,
    },
    /// A value that is not valid.
    #[error("{0}")]
    Value(String),
    /// A kind that cannot stand where it stands.
    #[error("a {kind} cannot stand {here}: {reason}")]
    NotHere {
        /// Name of the kind.
        kind: String,
        /// Description of the place.
        here: &'static str,
        /// Why, and what can.
        reason: &'static str,
    },
    /// A kind that needs more than the size of a vocabulary.
    #[error("a {what} needs a vocabulary that knows {knows}, not only the size {n_vocab} of one")]
    NeedsVocab {
        /// Name of the kind.
        what: String,
        /// Missing knowledge of the tokens.
        knows: &'static str,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// Something that the host does not provide.
    #[error("{0}")]
    NotGiven(String),
    /// A kind that the library was built without.
    #[error("this build of the library has no {kind}: use one with the feature {feature:?} of the crate tokentrie{}",
        if cfg!(target_family = "wasm") { "; load() says which module has it" } else { "" })]
    NotBuilt {
        /// Name of the kind.
        kind: &'static str,
        /// Name of the feature.
        feature: &'static str,
    },
    /// An object of a host's where data is wanted.
    #[error("a {kind} is an object of this program and cannot be written as JSON")]
    NoData {
        /// Description of the constraint.
        kind: String,
    },
    /// A marker without tokens.
    #[error("{0}")]
    Marker(String),
    /// Texts that make no set.
    #[error(transparent)]
    Texts(#[from] ValuesError),
    /// Error of a payload.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// A path that a payload does not have.
    #[error(transparent)]
    Path(#[from] UnknownPath),
    /// Error of a regular expression.
    #[error(transparent)]
    Regex(#[from] RegexError),
    /// Error of a combination of finite automata.
    #[error(transparent)]
    Regular(#[from] RegularError),
    /// A grammar for yacc, or in GBNF.
    #[error("grammar, {0}")]
    Grammar(#[from] GrammarError),
    /// A module of WebAssembly.
    #[cfg(feature = "wasm")]
    #[error("wasm: {0}")]
    Wasm(#[from] trie_rules::WasmError),
    /// A grammar in Lark.
    #[error("Lark: {0}")]
    Lark(#[source] trie_rules::GrammarError),
    /// Error of a JSON Schema.
    #[cfg(feature = "schema")]
    #[error("{error}{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Schema {
        /// Error of the schema.
        error: trie_schema::SchemaError,
        /// Why a keyword is not supported, and what to do.
        reason: Option<String>,
    },
    /// A rule over a vocabulary.
    #[error(transparent)]
    Rule(#[from] ByRuleError),
    /// A rule whose texts cannot be listed.
    #[error(transparent)]
    Listed(#[from] TextsError),
    /// Values that cannot be listed.
    #[error(transparent)]
    NotListed(#[from] NotListed),
    /// Constraints one after the other.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// Error of a thinking gate.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// Error of a form.
    #[error(transparent)]
    Form(#[from] FormError),
    /// A set of another vocabulary.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// Tools of a reply.
    #[cfg(feature = "chat")]
    #[error(transparent)]
    Tools(#[from] chat_format::ToolError),
    /// The chat template of a reply.
    #[cfg(feature = "chat")]
    #[error(transparent)]
    Template(#[from] chat_format::TemplateError),
    /// The format of a reply.
    #[cfg(feature = "chat")]
    #[error(transparent)]
    Reply(#[from] chat_format::FormatError),
    /// The work limit was reached while the spec was read.
    #[error(transparent)]
    Over(#[from] LimitExceeded),
    /// Error of the host.
    #[error(transparent)]
    Host(#[from] Problem),
}

impl SpecProblem {
    /// Returns what kind of error it is. The match has no wildcard: a new problem must be given a kind here.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Payload(error) => error.kind(),
            Self::Texts(error) => error.kind(),
            Self::Path(error) => error.kind(),
            Self::Regex(error) => error.kind(),
            Self::Regular(error) => error.kind(),
            Self::Grammar(error) => error.kind(),
            Self::Rule(error) => error.kind(),
            Self::Listed(error) => error.kind(),
            Self::NotListed(error) => error.kind(),
            Self::Sequence(error) => error.kind(),
            Self::Gate(error) => error.kind(),
            Self::Form(error) => error.kind(),
            Self::Vocab(error) => error.kind(),
            Self::Over(over) => over.kind(),
            Self::Host(problem) => problem.kind(),
            Self::NeedsVocab { .. } | Self::Marker(_) => ErrorKind::Vocabulary,
            Self::TooLong { .. } => ErrorKind::Limit,
            Self::Json { .. }
            | Self::TooDeep { .. }
            | Self::Repeated
            | Self::Digits { .. }
            | Self::Unknown { .. }
            | Self::Missing { .. }
            | Self::NoKind { .. }
            | Self::Kinds { .. }
            | Self::Type { .. }
            | Self::Value(_)
            | Self::NotHere { .. }
            | Self::NotGiven(_)
            | Self::NotBuilt { .. }
            | Self::NoData { .. } => ErrorKind::Spec,
            #[cfg(feature = "wasm")]
            Self::Wasm(error) => error.kind(),
            Self::Lark(error) => error.kind(),
            #[cfg(feature = "schema")]
            Self::Schema { error, .. } => error.kind(),
            #[cfg(feature = "chat")]
            Self::Tools(error) => error.kind(),
            #[cfg(feature = "chat")]
            Self::Template(_) => ErrorKind::Template,
            #[cfg(feature = "chat")]
            Self::Reply(error) => error.kind(),
        }
    }
}

fn quote_names(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

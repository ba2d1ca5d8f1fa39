//! Constraints as data: one JSON form for every host, made into a constraint over a vocabulary in one place.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod.rs` | the kinds |
//! | `read.rs`, `fields.rs`, `json.rs` | from JSON: kinds, fields of an object, text within limits |
//! | `foreign.rs` | JSON Schemas without the name of a kind; kinds as others call them |
//! | `write.rs`, `fingerprint.rs` | to JSON; by which that is known |
//! | `build.rs`, `after.rs` | over a vocabulary; after a prompt |
//! | `kinds/` | kinds that hold much of their own: rules over bytes, forms, gates, replies |
//! | `host.rs`, `object.rs`, `resolve.rs` | what a host has: files, names; objects that are no data |
//! | `limits.rs` | what making a rule may cost |
//! | `cache.rs` | what was built before |
//! | `error.rs`, `place.rs` | what is wrong, and where |

mod after;
mod build;
mod cache;
mod compiled;
mod error;
pub(crate) mod fields;
#[cfg(feature = "llama")]
mod fingerprint;
mod foreign;
mod host;
pub(crate) mod json;
pub(crate) mod kinds;
mod limits;
mod object;
pub(crate) mod place;
pub(crate) mod read;
mod resolve;
mod write;

pub use after::AfterPrompt;
pub use build::{Built, MOST_TEXTS, MOST_VALUES, Over, Spans, alone};
pub use cache::SpecCache;
pub use compiled::{ByteRanges, ByteTable, Compiled, MOST_TOKENS, MadeRule, RuleFacts};
pub use error::{SpecError, SpecProblem};
pub use host::{DataOnly, Host};
pub use json::{MOST_BYTES, MOST_DEPTH};
pub use kinds::form::Part;
pub use kinds::moment::MomentSpec;
pub use kinds::number::NumberSpec;
pub use kinds::repeat::RepeatSpec;
pub use kinds::reply::{Reply, ToolUse};
pub use kinds::rules::FEW_BLANKS;
pub use kinds::think::{Marker, OwnVocabulary, Think};
pub use limits::LimitsSpec;
pub use object::{HostConstraint, HostRule, Object};

use std::sync::Arc;
use trie_core::Problem;
pub use trie_rules::{AnyRule, ByRuleError, Clock, DeadEnd, MaskLimits, MaskStats, Read, Rule, Spelled, Value};
use trie_rules::{AutomatonLimits, Example};
use trie_text::{TextValues, Tokenization};

/// The version of the JSON form that this library reads and writes.
pub const VERSION: u64 = 1;

/// LR(1) grammars that come with the library, by name.
pub const GRAMMAR_EXAMPLES: [(&str, Example); 4] =
    [("json", Example::Json), ("arithmetic", Example::Arithmetic), ("c", Example::C), ("sql", Example::Sql)];

/// Returns whether a problem is that of a rule of a library below: JSON Schema, Lark, WebAssembly.
pub fn is_of_rule(problem: &Problem) -> bool {
    #[cfg(feature = "schema")]
    if problem.downcast_ref::<trie_schema::GuidedError>().is_some()
        || problem.downcast_ref::<trie_schema::SchemaError>().is_some()
    {
        return true;
    }
    #[cfg(feature = "wasm")]
    if problem.downcast_ref::<trie_rules::WasmError>().is_some() {
        return true;
    }
    let _ = problem;
    false
}

/// What may be written, without a vocabulary.
///
/// Compares by content. [`Spec::from_json`] reads the form that all hosts share, [`Spec::to_json`] writes it,
/// [`Spec::build`] makes a constraint of it.
///
/// ```
/// use tokentrie::spec::Spec;
///
/// let spec = Spec::from_json(br#"{"integer": {"max": 9, "min": 0}}"#)?;
/// assert_eq!(spec.to_json()?, r#"{"integer":{"min":0,"max":9}}"#);
///
/// let error = Spec::from_json(br#"{"then": ["no. ", {"integer": {"mni": 0}}]}"#).unwrap_err();
/// assert_eq!(error.place(), "$.then[1].integer.mni");
/// # Ok::<(), tokentrie::spec::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Spec {
    /// Everything may come.
    Any,
    /// One of these texts, as the tokenizer writes them.
    Choice(TextValues),
    /// A saved set, by the name under which the host has it.
    Set(Arc<str>),
    /// Sets of token ids by path.
    Payload {
        /// The JSON text of the payload.
        text: Arc<[u8]>,
        /// The only path that is taken.
        path: Option<Arc<str>>,
    },
    /// A regular expression.
    Regex {
        /// In the syntax of the crate `regex`.
        pattern: Arc<str>,
        /// The most memory of its automaton; `None` is the usual limit.
        max_bytes: Option<usize>,
        /// What making it may cost.
        limits: LimitsSpec,
    },
    /// An LR(1) grammar as for yacc.
    Grammar {
        /// The grammar.
        text: Arc<str>,
        /// Whether conflicts are decided as yacc does.
        lenient: bool,
        /// What making it may cost.
        limits: LimitsSpec,
    },
    /// A grammar in Lark.
    Lark {
        /// The grammar.
        text: Arc<str>,
        /// What making it may cost.
        limits: LimitsSpec,
    },
    /// A grammar in GBNF, the language of llama.cpp.
    Gbnf {
        /// The grammar.
        text: Arc<str>,
        /// What making it may cost.
        limits: LimitsSpec,
    },
    /// A module of WebAssembly.
    Wasm {
        /// Its bytes.
        module: Arc<[u8]>,
        /// What making and asking it may cost.
        limits: LimitsSpec,
    },
    /// A JSON document.
    JsonSchema(SchemaSpec),
    /// An integer of a range.
    Integer {
        /// The smallest.
        min: Option<i128>,
        /// The largest.
        max: Option<i128>,
    },
    /// A number as JSON writes it.
    Number(NumberSpec),
    /// A day, a time, or both.
    Moment(MomentSpec),
    /// A string as JSON writes it.
    String(StringSpec),
    /// A text of any of several rules.
    OneOf(Vec<Piece>),
    /// The text of one rule after that of the other; tokens may cross from one into the next.
    Then(Vec<Piece>),
    /// A rule several times; tokens may cross from one text of it into the next.
    Repeat(Box<RepeatSpec>),
    /// One constraint after the other, each in tokens of its own.
    Sequence(Vec<Self>),
    /// Text with parts to fill in.
    Form(Vec<Part>),
    /// Thinking before something else.
    Think(Box<Think>),
    /// A reply of a chat.
    Reply(Box<Reply>),
    /// What the host has registered under a name.
    Name(Arc<str>),
    /// What a host holds as an object.
    Object(Object),
}

/// A piece of what is put together of texts and rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Piece {
    /// This text.
    Text(Arc<str>),
    /// What is said by a spec.
    Spec(Spec),
}

/// A JSON Schema and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaSpec {
    /// The schema as JSON text. Properties come in its order.
    pub schema: Arc<str>,
    /// Blanks between the parts of a document.
    pub whitespace: Blanks,
    /// Whether any character in a string may be written as `\uXXXX`.
    pub unicode_escapes: bool,
    /// Whether keywords that are not supported are left out.
    pub lenient: bool,
    /// What making it may cost.
    pub limits: LimitsSpec,
}

/// Blanks between the parts of a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Blanks {
    /// A space, or a line break with up to 40 blanks.
    #[default]
    Few,
    /// Any number of them.
    Any,
    /// None.
    None,
    /// What this regular expression matches.
    Pattern(Arc<str>),
}

/// Characters of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StringSpec {
    /// The fewest.
    pub min_chars: usize,
    /// The most.
    pub max_chars: Option<usize>,
    /// Whether the quotes belong to the text.
    pub quotes: bool,
}

/// Whether texts stand for themselves, as the tokenizer writes them.
fn values_are_plain(values: &TextValues) -> bool {
    values.prefix.is_empty() && values.suffix.is_empty() && values.tokenization == Tokenization::Canonical
}

impl Spec {
    /// One of these texts.
    pub fn choice<S: Into<String>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self::Choice(TextValues::new(texts))
    }

    /// A regular expression. `max_bytes` is the most memory of its automaton.
    pub fn regex(pattern: &str, max_bytes: usize, limits: LimitsSpec) -> Self {
        let usual = max_bytes == AutomatonLimits::default().bytes;
        Self::Regex { pattern: pattern.into(), max_bytes: (!usual).then_some(max_bytes), limits }
    }

    /// The name of the kind in JSON; of an object, what it is.
    pub fn kind(&self) -> &str {
        match self {
            Self::Any => "any",
            Self::Choice(_) => "choice",
            Self::Set(_) => "set",
            Self::Payload { .. } => "payload",
            Self::Regex { .. } => "regex",
            Self::Grammar { .. } => "grammar",
            Self::Lark { .. } => "lark",
            Self::Gbnf { .. } => "gbnf",
            Self::Wasm { .. } => "wasm",
            Self::JsonSchema(_) => "json_schema",
            Self::Integer { .. } => "integer",
            Self::Number(_) => "number",
            Self::Moment(moment) => moment.name(),
            Self::String(_) => "string",
            Self::OneOf(_) => "one_of",
            Self::Then(_) => "then",
            Self::Repeat(_) => "repeat",
            Self::Sequence(_) => "sequence",
            Self::Form(_) => "form",
            Self::Think(_) => "think",
            Self::Reply(_) => "reply",
            Self::Name(_) => "name",
            Self::Object(object) => object.kind(),
        }
    }
}

//! Constraints as data: one JSON form for every host, built over a vocabulary in one place.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod.rs` | the kinds, and their JSON form |
//! | `objects.rs` | reading of specs that refer to objects of a host |
//! | `foreign.rs` | JSON Schemas without the name of a kind; kinds as others call them |
//! | `fingerprint.rs` | the fingerprint of a constraint |
//! | `build.rs`, `after.rs` | building over a vocabulary; placing after a prompt |
//! | `kinds/` | kinds that need a module each: rules over bytes, forms, gates, replies |
//! | `host.rs`, `object.rs`, `resolve.rs` | services of a host: files and names; objects without a JSON form |
//! | `limits.rs` | limits on the cost of compiling a rule |
//! | `cache.rs` | cache of built constraints |
//! | `error.rs` | errors, with their places |

mod after;
mod build;
mod cache;
mod compiled;
mod error;
#[cfg(feature = "llama")]
mod fingerprint;
pub(crate) mod foreign;
mod host;
pub(crate) mod kinds;
mod limits;
mod object;
pub(crate) mod objects;
mod resolve;

pub use crate::json::{MOST_BYTES, MOST_DEPTH};
pub use after::AfterPrompt;
pub use build::{Built, MOST_TEXTS, MOST_VALUES, Over, Spans, single_span};
pub use cache::SpecCache;
pub use compiled::{ByteRanges, ByteTable, CompiledSpec, MOST_TOKENS, MadeRule, RuleFacts};
pub use error::{SpecError, SpecProblem};
pub use host::{DataOnly, Host};
pub use kinds::form::Part;
pub use kinds::integer::IntegerSpec;
pub use kinds::moment::MomentSpec;
pub use kinds::number::NumberSpec;
pub use kinds::repeat::RepeatSpec;
pub use kinds::reply::{Reply, ReplyWhitespace, TemplateTexts, ToolUse};
pub use kinds::think::{Marker, OwnVocabulary, ThinkSpec};
pub use limits::LimitsSpec;
pub use object::{HostConstraint, HostRule, Object};

use crate::json::place::Place;
use crate::json::with::{base64, count, is_true, is_usual, maybe_count, maybe_text, text, yes};
use crate::json::{inner, parse, read, type_error, value_error};
use kinds::{form, moment};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use trie_core::Problem;
pub use trie_rules::{AnyRule, ByRuleError, Clock, CompiledRule, DeadEnd, MaskLimits, MaskStats, Read, Rule, Value};
use trie_rules::{AutomatonLimits, Example};
use trie_text::{TextValues, Tokenization};

/// The version of the JSON form that this library reads and writes.
pub const VERSION: u64 = 1;

/// LR(1) grammars that come with the library, by name.
pub const GRAMMAR_EXAMPLES: [(&str, Example); 4] =
    [("json", Example::Json), ("arithmetic", Example::Arithmetic), ("c", Example::C), ("sql", Example::Sql)];

/// Returns whether a problem comes from a rule of another crate: JSON Schema or WebAssembly.
pub fn is_of_rule(problem: &Problem) -> bool {
    #[cfg(feature = "schema")]
    if problem.downcast_ref::<trie_schema::SchemaError>().is_some() {
        return true;
    }
    #[cfg(feature = "wasm")]
    if problem.downcast_ref::<trie_rules::WasmError>().is_some() {
        return true;
    }
    let _ = problem;
    false
}

/// Constraint without a vocabulary, as data.
///
/// Compares by content. [`Spec::from_json`] reads the form that all hosts share, [`Spec::to_json`] writes it,
/// [`Spec::build`] makes a constraint of it.
///
/// ```
/// use tokentrie::constraint::Spec;
///
/// let spec = Spec::from_json(br#"{"integer": {"max": 9, "min": 0}}"#)?;
/// assert_eq!(spec.to_json()?, r#"{"integer":{"min":0,"max":9}}"#);
///
/// let error = Spec::from_json(br#"{"then": ["no. ", {"integer": {"mni": 0}}]}"#).unwrap_err();
/// assert_eq!(error.place(), "$.then[1].integer.mni");
/// # Ok::<(), tokentrie::constraint::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Spec {
    /// One of these texts, as the tokenizer writes them.
    #[serde(with = "choice")]
    Choice(TextValues),
    /// A saved set, by the name under which the host has it.
    Set(#[serde(with = "text")] Arc<str>),
    /// Sets of token ids by path.
    Payload {
        /// The JSON text of the payload.
        #[serde(rename = "payload", with = "payload")]
        text: Arc<[u8]>,
        /// The only path that is taken.
        #[serde(default, with = "maybe_text", skip_serializing_if = "Option::is_none")]
        path: Option<Arc<str>>,
    },
    /// Texts of a regular expression.
    Regex {
        /// In the syntax of the crate `regex`.
        #[serde(rename = "regex", with = "text")]
        pattern: Arc<str>,
        /// The most memory of its automaton; `None` is the usual limit.
        #[serde(default, deserialize_with = "unusual_bytes", skip_serializing_if = "Option::is_none")]
        max_bytes: Option<usize>,
        /// Limits on making it.
        #[serde(default, deserialize_with = "LimitsSpec::unusual", skip_serializing_if = "is_usual")]
        limits: LimitsSpec,
    },
    /// An LR(1) grammar as for yacc.
    Grammar {
        /// Text of the grammar.
        #[serde(rename = "grammar", with = "text")]
        text: Arc<str>,
        /// True to resolve conflicts as yacc does.
        #[serde(default, skip_serializing_if = "is_usual")]
        lenient: bool,
        /// Limits on making it.
        #[serde(default, deserialize_with = "LimitsSpec::unusual", skip_serializing_if = "is_usual")]
        limits: LimitsSpec,
    },
    /// A grammar in Lark.
    Lark {
        /// Text of the grammar.
        #[serde(rename = "lark", with = "text")]
        text: Arc<str>,
        /// Limits on making it.
        #[serde(default, deserialize_with = "LimitsSpec::unusual", skip_serializing_if = "is_usual")]
        limits: LimitsSpec,
    },
    /// A grammar in GBNF, the language of llama.cpp.
    Gbnf {
        /// Text of the grammar.
        #[serde(rename = "gbnf", with = "text")]
        text: Arc<str>,
        /// Limits on making it.
        #[serde(default, deserialize_with = "LimitsSpec::unusual", skip_serializing_if = "is_usual")]
        limits: LimitsSpec,
    },
    /// A module of WebAssembly.
    Wasm {
        /// Bytes of the module.
        #[serde(rename = "wasm", with = "base64")]
        module: Arc<[u8]>,
        /// Limits on making and calling it.
        #[serde(default, deserialize_with = "LimitsSpec::unusual", skip_serializing_if = "is_usual")]
        limits: LimitsSpec,
    },
    /// Documents of a JSON Schema.
    JsonSchema(SchemaSpec),
    /// An integer of a range.
    Integer(IntegerSpec),
    /// A number as JSON writes it.
    Number(NumberSpec),
    /// Days of a range.
    #[serde(with = "moment::date")]
    Date(MomentSpec),
    /// Times of a range.
    #[serde(with = "moment::time")]
    Time(MomentSpec),
    /// A day and a time.
    #[serde(with = "moment::date_time")]
    DateTime(MomentSpec),
    /// A string as JSON writes it.
    String(StringSpec),
    /// A text of any of several rules.
    #[serde(deserialize_with = "non_empty")]
    OneOf(Vec<Piece>),
    /// The text of one rule after that of the other; tokens may cross from one into the next.
    #[serde(deserialize_with = "non_empty")]
    Then(Vec<Piece>),
    /// A rule several times; tokens may cross from one text of it into the next.
    Repeat(Box<RepeatSpec>),
    /// One constraint after the other, each in tokens of its own.
    #[serde(deserialize_with = "non_empty")]
    Sequence(Vec<Self>),
    /// No constraint at all.
    Any,
    /// Text with parts to fill in.
    #[serde(deserialize_with = "form::read_parts")]
    Form(Vec<Part>),
    /// Thinking before something else.
    Think(Box<ThinkSpec>),
    /// A reply of a chat.
    Reply(Box<Reply>),
    /// Constraint that the host has registered under a name.
    Name(#[serde(with = "text")] Arc<str>),
    /// Object of a host.
    #[serde(skip_serializing, deserialize_with = "objects::read_object")]
    Object(Object),
}

/// A part of a concatenation or a choice: a text or a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Piece {
    /// Literal text of the piece.
    Text(#[serde(with = "text")] Arc<str>),
    /// Texts of a spec.
    Spec(Spec),
}

/// A JSON Schema and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct SchemaSpec {
    /// The schema as JSON text. Properties come in its order.
    #[serde(rename = "json_schema", with = "schema")]
    pub schema: Arc<str>,
    /// Whitespace between the parts of a document.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub whitespace: Whitespace,
    /// True if any character in a string may be written as `\uXXXX`.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub unicode_escapes: bool,
    /// True to ignore keywords that are not supported.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub lenient: bool,
    /// Treatment of `format`: asserted, or an annotation.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub formats: Formats,
    /// Order of the members of an object.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub order: Order,
    /// True if numbers may be written in any way: a whole one as `1.0` or `1e2`.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub any_numerals: bool,
    /// Treatment of members whose names the schema does not mention.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub names: Closing,
    /// True if a keyword for one type implies that type where the schema has no `type`.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub implied_types: bool,
    /// Limits on making it.
    #[serde(default, deserialize_with = "LimitsSpec::unusual", skip_serializing_if = "is_usual")]
    pub limits: LimitsSpec,
}

/// Treatment of `format` in a JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formats {
    /// Each that JSON Schema names.
    #[default]
    Assert,
    /// None: `format` is read as a comment.
    Annotate,
}

/// Order of the members of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As the schema names them; names that it does not name come behind those.
    #[default]
    Schema,
    /// Members may come in any order.
    Any,
}

/// Treatment of members whose names a JSON Schema does not mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// Allowed unless `additionalProperties` says otherwise, as in the standard.
    #[default]
    Open,
    /// Disallowed where the schema mentions some names and says nothing of others, as in the arguments of tools.
    Closed,
}

/// Whitespace between the parts of a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Whitespace {
    /// One space behind a comma or a colon, or none.
    #[default]
    Compact,
    /// Up to eight characters in a row, in each gap.
    Flexible,
    /// No whitespace at all.
    None,
    /// Whitespace that this regular expression matches.
    Pattern(Arc<str>),
}

/// Characters of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StringSpec {
    /// Minimum number of characters.
    #[serde(default, deserialize_with = "count::deserialize", skip_serializing_if = "is_usual")]
    pub min_chars: usize,
    /// Maximum number of characters.
    #[serde(default, deserialize_with = "maybe_count::deserialize", skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<usize>,
    /// True if the quotes belong to the text.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub quotes: bool,
}

/// Reading and writing of the JSON form.
impl Spec {
    /// Reads the JSON form: docs/specs.md. An object that can only be a JSON Schema is read as one.
    ///
    /// # Errors
    /// [`SpecError`] with the place: text that is not JSON, unknown or repeated fields, no kind or several kinds,
    /// values of a wrong type or out of range.
    pub fn from_json(text: &[u8]) -> Result<Self, SpecError> {
        const VERSION_FIELD: &str = "version";

        let mut value = parse(text)?;
        match value.as_object_mut().and_then(|fields| fields.shift_remove(VERSION_FIELD)) {
            None => {}
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => {
                let reason =
                    format!("it is {}: this library reads version {VERSION}", crate::json::shorten_value(&version));
                return Err(SpecError::new(&Place::ROOT.field(VERSION_FIELD), SpecProblem::Value(reason)));
            }
        }
        read(&Place::ROOT, &value)
    }

    /// Reads the JSON form that a host writes, with references to its objects: `{"object": n}` is the object with index
    /// `n`. A JSON Schema may be given as text. Errors that appear only when a rule is compiled are left to
    /// [`CompiledSpec::made_rule`].
    ///
    /// # Errors
    /// As [`Spec::from_json`], and an index without an object.
    pub fn from_host(text: &[u8], objects: &[Self]) -> Result<Self, SpecError> {
        let value = parse(text)?;
        objects::with_objects(objects, || read(&Place::ROOT, &value))
    }

    /// Returns the JSON form: equal specs have equal texts. Fields with default values are left out.
    ///
    /// # Errors
    /// [`SpecProblem::NoData`] for an object of a host.
    pub fn to_json(&self) -> Result<String, SpecError> {
        Ok(self.json()?.to_string())
    }

    fn json(&self) -> Result<Json, SpecError> {
        self.check_data(&Place::ROOT, MOST_DEPTH)?;
        let written = serde_json::to_value(self);
        written.map_err(|error| SpecError::new(&Place::ROOT, SpecProblem::Value(error.to_string())))
    }

    /// Checks that nothing in it is an object of a host.
    fn check_data(&self, place: &Place<'_>, deeper: usize) -> Result<(), SpecError> {
        let no_data = |kind: &str| Err(SpecError::new(place, SpecProblem::NoData { kind: kind.to_owned() }));
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(SpecError::new(place, SpecProblem::TooDeep { most: MOST_DEPTH }));
        };
        match self {
            Self::Object(Object::Compiled(compiled)) => return compiled.original().check_data(place, deeper),
            Self::Object(object) => return no_data(object.kind()),
            Self::Think(think) if think.vocab.is_some() => return no_data("gate with a vocabulary of its own"),
            _ => {}
        }
        // The walk is one that changes what it finds; what is cloned is shared.
        self.clone().for_each_inside(place, &mut |place, inside| inside.check_data(place, deeper))
    }
}

/// [`Spec`] as its kind and what that holds: fields that have the name of the kind among them stand in its place.
impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Self::Object(Object::Compiled(compiled)) = self {
            return compiled.original().serialize(to);
        }
        let written = Self::serialize(self, serde_json::value::Serializer).map_err(S::Error::custom)?;
        let written = match written {
            Json::String(kind) => Json::Object(Map::from_iter([(kind, json!({}))])),
            Json::Object(mut tagged) => match tagged.get_mut(self.kind()) {
                Some(Json::Object(fields)) if fields.contains_key(self.kind()) => Json::Object(std::mem::take(fields)),
                _ => Json::Object(tagged),
            },
            other => other,
        };
        written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = objects::deeper(MOST_DEPTH, || Self::deserialize(from));
        match read.ok_or_else(|| value_error(SpecProblem::TooDeep { most: MOST_DEPTH }))?? {
            Self::Object(object) => Ok(objects::take_found().unwrap_or(Self::Object(object))),
            read => Ok(read),
        }
    }
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Json::deserialize(from)? {
            Json::String(text) => Ok(Self::Text(text.into())),
            other => inner(&other).map(Self::Spec),
        }
    }
}

/// Reads an array with at least one item.
pub(crate) fn non_empty<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let items = Vec::deserialize(from)?;
    if items.is_empty() && objects::are_checked() {
        return Err(type_error("an array with at least one item", &json!([])));
    }
    Ok(items)
}

/// Reads the memory of an automaton; the usual limit counts as none given.
fn unusual_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let bytes = maybe_count::deserialize(from)?;
    Ok(bytes.filter(|&bytes| bytes != AutomatonLimits::default().bytes))
}

/// Tokenisation of texts, in JSON.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Tokenization", rename_all = "snake_case")]
pub(crate) enum TokenizationWord {
    Canonical,
    OpenEnd,
    All,
}

/// A list of texts with what stands around them.
mod choice {
    use super::{Deserialize, Deserializer, Serialize, Serializer, TextValues, Tokenization, TokenizationWord};
    use super::{is_usual, non_empty};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Choice {
        #[serde(rename = "choice", deserialize_with = "non_empty")]
        texts: Vec<String>,
        #[serde(default, skip_serializing_if = "str::is_empty")]
        prefix: String,
        #[serde(default, skip_serializing_if = "str::is_empty")]
        suffix: String,
        #[serde(default, with = "TokenizationWord", skip_serializing_if = "is_usual")]
        tokenization: Tokenization,
    }

    pub(super) fn serialize<S: Serializer>(values: &TextValues, to: S) -> Result<S::Ok, S::Error> {
        let TextValues { values, prefix, suffix, tokenization, .. } = values.clone();
        Choice { texts: values.to_vec(), prefix, suffix, tokenization }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TextValues, D::Error> {
        let Choice { texts, prefix, suffix, tokenization } = Choice::deserialize(from)?;
        let values = TextValues::new(texts).with_prefix(&*prefix).with_suffix(&*suffix);
        Ok(values.with_tokenization(tokenization))
    }
}

/// A payload as JSON.
mod payload {
    use super::{Arc, Deserialize, Deserializer, Json, Serialize, Serializer, type_error};
    use serde::ser::Error as _;

    pub(super) fn serialize<S: Serializer>(text: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let wrong = |error| S::Error::custom(format!("the payload is not JSON: {error}"));
        serde_json::from_slice::<Json>(text).map_err(wrong)?.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        match Json::deserialize(from)? {
            payload @ Json::Object(_) => Ok(payload.to_string().into_bytes().into()),
            other => Err(type_error("a payload, an object", &other)),
        }
    }
}

/// A JSON Schema as JSON, or as its text, which keeps every digit of its numbers.
mod schema {
    use super::{Arc, Deserialize, Deserializer, Json, Serialize, Serializer, objects, type_error};
    use crate::json::keeps_digits;
    use serde::ser::Error as _;

    pub(super) fn serialize<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
        if !keeps_digits(text.as_bytes()) {
            return to.serialize_str(text);
        }
        let wrong = |error| S::Error::custom(format!("the schema is not JSON: {error}"));
        serde_json::from_str::<Json>(text).map_err(wrong)?.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        const EXPECTED: &str = "a JSON Schema: an object, true, false, or the text of one";
        match Json::deserialize(from)? {
            Json::String(text) if objects::are_checked() => match serde_json::from_str(&text) {
                Ok(Json::Object(_) | Json::Bool(_)) if !keeps_digits(text.as_bytes()) => Ok(text.into()),
                Ok(schema @ (Json::Object(_) | Json::Bool(_))) => Ok(schema.to_string().into()),
                _ => Err(type_error(EXPECTED, &Json::String(text))),
            },
            Json::String(text) => Ok(text.into()),
            schema @ (Json::Object(_) | Json::Bool(_)) => Ok(schema.to_string().into()),
            other => Err(type_error(EXPECTED, &other)),
        }
    }
}

impl Serialize for Whitespace {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Self::Compact => "compact",
            Self::Flexible => "flexible",
            Self::None => "none",
            Self::Pattern(pattern) => pattern,
        })
    }
}

impl<'de> Deserialize<'de> for Whitespace {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Json::deserialize(from)? {
            Json::String(word) => Ok(match word.as_str() {
                "compact" => Self::Compact,
                "flexible" => Self::Flexible,
                "none" => Self::None,
                // Where the schema is read, a pattern of other signs than blanks is refused.
                _ => Self::Pattern(word.into()),
            }),
            other => Err(type_error("\"compact\", \"flexible\", \"none\" or a regular expression of blanks", &other)),
        }
    }
}

/// Returns whether texts are their own values, as the tokenizer writes them.
fn values_are_plain(values: &TextValues) -> bool {
    values.prefix.is_empty() && values.suffix.is_empty() && values.tokenization == Tokenization::Canonical
}

impl Spec {
    /// Returns the choice of one of these texts.
    pub fn choice<S: Into<String>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self::Choice(TextValues::new(texts))
    }

    /// Returns the spec of a regular expression. `max_bytes` limits the memory of its automaton.
    pub fn regex(pattern: &str, max_bytes: usize, limits: LimitsSpec) -> Self {
        let usual = max_bytes == AutomatonLimits::default().bytes;
        Self::Regex { pattern: pattern.into(), max_bytes: (!usual).then_some(max_bytes), limits }
    }

    /// Returns the spec of a payload, in canonical JSON.
    ///
    /// # Errors
    /// [`SpecError`]: text that is not JSON, or with a field that comes twice.
    pub fn payload(text: &[u8]) -> Result<Self, SpecError> {
        Ok(Self::Payload { text: parse(text)?.to_string().into_bytes().into(), path: None })
    }

    /// Returns the name of the kind in JSON; for an object of a host, a description of it.
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
            Self::Integer(_) => "integer",
            Self::Number(_) => "number",
            Self::Date(_) => "date",
            Self::Time(_) => "time",
            Self::DateTime(_) => "date_time",
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

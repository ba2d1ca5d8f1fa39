//! Generations and choices as JSON, for hosts that have no types of ours.

use super::ending::CallOptions;
use super::options::{Choose, Generate};
use crate::constraint::non_empty;
use crate::constraint::{Spec, SpecError};
use crate::json::place::Place;
use crate::json::with::Ids;
use crate::json::{Parts, ReadParts, inner, parse, read, type_error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use trie_text::Prompt;

type Result<T, E = SpecError> = std::result::Result<T, E>;

/// Request to prefill a prompt before any call uses it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefillRequest {
    /// The prompt. In a text, the names of control tokens are those tokens.
    #[serde(deserialize_with = "prompt")]
    pub prompt: Prompt,
    /// The shared cache that holds it, from 0 to [`PrefillRequest::MOST_SLOTS`]; `None` is the caller's own.
    #[serde(default, deserialize_with = "slot")]
    pub slot: Option<u8>,
}

/// Request for the generation of a text.
#[derive(Debug, Clone)]
pub struct GenerateRequest {
    /// The prompt; `None` continues the text that the session already has.
    pub prompt: Option<Prompt>,
    /// The constraint; `None` keeps the constraint of the session, or is free text if there is none.
    pub constraint: Option<Spec>,
    /// Options of the generation.
    pub options: Generate,
    /// True if the request sets the sampling; if not, the session's sampling applies.
    pub has_sampling: bool,
    /// Time limit and priority.
    pub call: CallOptions,
}

/// Request for a choice between values.
#[derive(Debug, Clone)]
pub struct ChooseRequest {
    /// The prompt; `None` is the text that stands there.
    pub prompt: Option<Prompt>,
    /// Values to choose among; `None` are those of the constraint that is followed already.
    pub choices: Option<Spec>,
    /// Options of the choice.
    pub options: Choose,
    /// Time limit and priority.
    pub call: CallOptions,
}

/// Reads the options of a call from the object that a host makes of its own: see [`Generate`], [`Choose`].
///
/// # Errors
/// [`SpecError`] with the place.
pub fn read_options<T: DeserializeOwned>(options: &Value) -> Result<T> {
    read(&Place::ROOT, options)
}

/// Returns the names of the options that a type reads.
pub fn names_of<T: DeserializeOwned>() -> Vec<&'static str> {
    Parts::names::<T>()
}

impl PrefillRequest {
    /// Number of shared caches.
    pub const MOST_SLOTS: u8 = 64;

    /// Reads `{"prompt": "...", "slot": 3}`, where a prompt is a text or an array of token ids.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        read(&Place::ROOT, &parse(json)?)
    }
}

fn slot<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    let value = Value::deserialize(from)?;
    let slot = value.as_u64().and_then(|slot| u8::try_from(slot).ok());
    let slot = slot.filter(|&slot| slot < PrefillRequest::MOST_SLOTS);
    slot.map(Some).ok_or_else(|| type_error("an integer from 0 to 63", &value))
}

impl GenerateRequest {
    /// Reads `{"prompt": "...", "constraint": {"regex": "[0-9]+"}, "sampling": {"seed": 1}, ...}`: docs/c-sessions.md.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OwnFields {
            #[serde(deserialize_with = "maybe_prompt")]
            prompt: Option<Prompt>,
            constraint: Option<Spec>,
        }

        let value = parse(json)?;
        let (OwnFields { prompt, constraint }, options, call) = ReadParts::read_parts(&value)?;
        let has_sampling = value.get("sampling").is_some_and(|sampling| !sampling.is_null());
        Ok(Self { prompt, constraint, options, has_sampling, call })
    }
}

impl ChooseRequest {
    /// Reads `{"prompt": "...", "choices": ["yes", "no"], "top": 1}`, where a list of texts stands for
    /// `{"choice": [...]}`.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OwnFields {
            #[serde(deserialize_with = "maybe_prompt")]
            prompt: Option<Prompt>,
            #[serde(deserialize_with = "choices")]
            choices: Option<Spec>,
        }

        let (OwnFields { prompt, choices }, options, call) = ReadParts::read_parts(&parse(json)?)?;
        Ok(Self { prompt, choices, options, call })
    }
}

/// Reads text or token ids.
fn prompt<'de, D: Deserializer<'de>>(from: D) -> Result<Prompt, D::Error> {
    match Value::deserialize(from)? {
        Value::String(text) => Ok(Prompt::Text(text)),
        ids @ Value::Array(_) => Ok(Prompt::Tokens(inner::<Ids, _>(&ids)?.0)),
        other => Err(type_error("a text or an array of token ids", &other)),
    }
}

pub(super) fn maybe_prompt<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Prompt>, D::Error> {
    prompt(from).map(Some)
}

/// Reads a spec, or a list of texts, which stands for the choice of them.
fn choices<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Spec>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Texts(#[serde(deserialize_with = "non_empty")] Vec<String>);

    match Value::deserialize(from)? {
        texts @ Value::Array(_) => Ok(Some(Spec::choice(inner::<Texts, _>(&texts)?.0))),
        other => inner(&other).map(Some),
    }
}

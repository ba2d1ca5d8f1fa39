//! Generations and choices as JSON, for hosts that have no types of ours.

use super::call::CallOptions;
use super::options::{Choose, Generate, OptionInfo, SAMPLING, call_options};
use crate::constraint::{Spec, SpecError};
use crate::json::fields::{Fields, token_ids, wrong_type};
use crate::json::parse;
use crate::json::place::Place;
use crate::json::read;
use serde_json::Value;
use trie_text::Prompt;

type Result<T> = std::result::Result<T, SpecError>;

const PROMPT: &str = "prompt";
const CONSTRAINT: &str = "constraint";
const CHOICES: &str = "choices";
const SLOT: &str = "slot";

/// A prompt that is computed before anything is asked of it.
#[derive(Debug, Clone)]
pub struct PrefillRequest {
    /// Of a text the names of control tokens are those tokens.
    pub prompt: Prompt,
    /// The shared cache that holds it, from 0 to [`PrefillRequest::MOST_SLOTS`]; `None` is the caller's own.
    pub slot: Option<u8>,
}

/// A generation.
#[derive(Debug, Clone)]
pub struct GenerateRequest {
    /// After what; `None` goes on after what stands there.
    pub prompt: Option<Prompt>,
    /// Inside what; `None` is what is followed already, or free text.
    pub constraint: Option<Spec>,
    /// How.
    pub options: Generate,
    /// Whether it says how tokens are chosen; if not, what is followed already may say it.
    pub has_sampling: bool,
    /// Its time and its turn.
    pub call: CallOptions,
}

/// A choice.
#[derive(Debug, Clone)]
pub struct ChooseRequest {
    /// After what; `None` is after what stands there.
    pub prompt: Option<Prompt>,
    /// Which values; `None` are those of what is followed already.
    pub choices: Option<Spec>,
    /// How.
    pub options: Choose,
    /// Its time and its turn.
    pub call: CallOptions,
}

impl PrefillRequest {
    /// How many shared caches there are.
    pub const MOST_SLOTS: u8 = 64;

    /// Reads `{"prompt": "...", "slot": 3}`, where a prompt is a text or an array of token ids.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let value = parse(json)?;
        let fields = Fields::of(&Place::ROOT, &value, &[PROMPT, SLOT])?;
        let slot = fields.read(SLOT, |place, value| {
            let slot = value.as_u64().and_then(|slot| u8::try_from(slot).ok()).filter(|&slot| slot < Self::MOST_SLOTS);
            slot.ok_or_else(|| wrong_type(place, "an integer from 0 to 63", value))
        })?;
        Ok(Self { prompt: fields.need(PROMPT, prompt)?, slot })
    }
}

impl GenerateRequest {
    /// Reads `{"prompt": "...", "constraint": {"regex": "[0-9]+"}, "sampling": {"seed": 1}, ...}`: docs/c-sessions.md.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let value = parse(json)?;
        let fields = fields(&value, &[PROMPT, CONSTRAINT], &Generate::OPTIONS)?;
        Ok(Self {
            prompt: fields.read(PROMPT, prompt)?,
            constraint: fields.read(CONSTRAINT, read)?,
            options: Generate::read(&fields)?,
            has_sampling: fields.get(SAMPLING.name).is_some(),
            call: call_options(&fields)?,
        })
    }
}

impl ChooseRequest {
    /// Reads `{"prompt": "...", "choices": ["yes", "no"], "top": 1}`, where a list of texts stands for
    /// `{"choice": [...]}`.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let value = parse(json)?;
        let fields = fields(&value, &[PROMPT, CHOICES], &Choose::OPTIONS)?;
        Ok(Self {
            prompt: fields.read(PROMPT, prompt)?,
            choices: fields.read(CHOICES, |place, value| match value {
                Value::Array(_) => read_choice(place, value),
                other => read(place, other),
            })?,
            options: Choose::read(&fields)?,
            call: call_options(&fields)?,
        })
    }
}

fn fields<'v>(value: &'v Value, own: &[&str], options: &[OptionInfo]) -> Result<Fields<'v>> {
    let known: Vec<&str> = own.iter().copied().chain(options.iter().map(|option| option.name)).collect();
    Fields::of(&Place::ROOT, value, &known)
}

/// Text or token ids.
fn prompt(place: &Place<'_>, value: &Value) -> Result<Prompt> {
    match value {
        Value::String(text) => Ok(Prompt::Text(text.clone())),
        Value::Array(_) => Ok(Prompt::Tokens(token_ids(place, value)?)),
        _ => Err(wrong_type(place, "a text or an array of token ids", value)),
    }
}

/// A list of texts, which stands for the choice of them.
fn read_choice(place: &Place<'_>, texts: &Value) -> Result<Spec> {
    let texts: Vec<String> = read(place, texts)?;
    if texts.is_empty() {
        return Err(wrong_type(place, "an array with at least one item", &Value::Array(Vec::new())));
    }
    Ok(Spec::choice(texts))
}

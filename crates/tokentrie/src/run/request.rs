//! Generations and choices as JSON, for hosts that have no types of ours.

use super::call::CallOptions;
use super::options::{Choose, Generate, OptionInfo, call_options};
use crate::spec::fields::{Fields, token_ids, wrong_type};
use crate::spec::json::parse;
use crate::spec::place::Place;
use crate::spec::read::Reader;
use crate::spec::{Spec, SpecError};
use serde_json::Value;
use trie_text::Prompt;

type Result<T> = std::result::Result<T, SpecError>;

const PROMPT: &str = "prompt";
const CONSTRAINT: &str = "constraint";
const CHOICES: &str = "choices";

/// A generation.
#[derive(Debug, Clone)]
pub struct GenerateRequest {
    /// After what; `None` goes on after what stands there.
    pub prompt: Option<Prompt>,
    /// Inside what; `None` is what is followed already, or free text.
    pub constraint: Option<Spec>,
    /// How.
    pub options: Generate,
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
            constraint: fields.read(CONSTRAINT, |place, value| Spec::read(place, value, Reader::DATA))?,
            options: Generate::read(&fields)?,
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
                Value::Array(_) => Spec::read_choice(place, value),
                other => Spec::read(place, other, Reader::DATA),
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

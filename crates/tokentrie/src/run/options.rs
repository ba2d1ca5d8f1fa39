//! The options of calls: one definition, with defaults and ranges, that every host reads by name.

use super::call::CallOptions;
use super::stops::{StopError, Stops};
use crate::constraint::SpecError;
use crate::constraint::SpecProblem;
use crate::json::fields::{Fields, text, texts, token_ids, wrong_type};
use crate::json::place::Place;
use serde_json::Value;
use trie_core::{After, ChooseOptions, DrawError, DrawSettings, LogitBias, Mode, SamplerOptions, TokenId};

type Result<T> = std::result::Result<T, SpecError>;

/// An option, as every host has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is where it is not given, as JSON; `null` for nothing.
    pub default: &'static str,
    /// What it may be.
    pub range: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// One of a table.
pub(crate) const fn option(
    name: &'static str,
    default: &'static str,
    range: &'static str,
    about: &'static str,
) -> OptionInfo {
    OptionInfo { name, default, range, about }
}

pub(super) const SAMPLING: OptionInfo =
    option("sampling", "{}", "mode, seed and the settings of the draw", "how a token is chosen among the allowed ones");
const FREE: OptionInfo = option(
    "free_sampling",
    "null",
    "as sampling",
    "how a token of the free text after a span is chosen, where that differs; with skip_ahead",
);
const END_TOKENS: &str = "end_tokens";
const IDS: &str = "token ids";
/// Texts that end the output, in every request.
pub(crate) const STOP: OptionInfo = option(
    "stop",
    "null",
    "a text, or an array of texts",
    "texts that end free text and are none of it; not inside constraints, which end by themselves",
);
/// The seconds that a call may take, in every request.
pub(crate) const TIMEOUT: OptionInfo =
    option("timeout", "null", "seconds, from 0 up", "ends the call when it takes longer");
/// How probable tokens were, in generations and chats.
pub(crate) const LOGPROBS: OptionInfo = option(
    "logprobs",
    "null",
    "0 to 4294967295",
    "tell how probable each token was among those that could come, and so many of the best beside it",
);
/// What is added to logits, in generations and chats.
pub(crate) const LOGIT_BIAS: OptionInfo = option(
    "logit_bias",
    "null",
    "an object of token ids and numbers",
    "added to the logits of these tokens before anything else; what may not come does not come by it",
);
/// How urgent a call is, in every request.
pub(crate) const PRIORITY: OptionInfo = option(
    "priority",
    "0",
    "-2147483648 to 2147483647",
    "of calls that share an engine, those of higher priority go first",
);

/// The most tokens of free text, unless something else is said.
pub const FREE_TOKENS: u32 = 64;

/// How to generate.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct Generate {
    /// How a token is chosen among the allowed ones.
    pub sampling: SamplerOptions,
    /// How a token of the free text after a span is chosen, where that differs.
    pub free_sampling: Option<SamplerOptions>,
    /// The most tokens to generate; `None`: [`FREE_TOKENS`] of free text, and of a value what the context has room
    /// for. A form is always filled to its end.
    pub max_tokens: Option<u32>,
    /// Texts that end free text: the output goes up to the first of them. Not where all of it is constrained.
    pub stop: Stops,
    /// Whether forced tokens are decoded together with what follows them.
    pub skip_ahead: bool,
    /// Tokens that close the span at the end of a leaf.
    pub end_tokens: Option<Vec<TokenId>>,
    /// Whether the output ends with the span; `None` is the host's default.
    pub after: Option<After>,
    /// Of a form: the most probable value of each slot as a whole.
    pub exact: bool,
    /// Of a form: the probability of every value of every slot.
    pub probabilities: bool,
    /// How probable each token was, and so many of the most probable beside it.
    pub logprobs: Option<u32>,
    /// Whether to keep what each token was chosen among, for a [`Receipt`](super::Receipt). Not of forms.
    pub receipt: bool,
    /// What is added to the logits of tokens. Not where whole values of a form are weighed.
    pub logit_bias: LogitBias,
}

impl Default for Generate {
    fn default() -> Self {
        Self {
            sampling: SamplerOptions::default(),
            free_sampling: None,
            max_tokens: None,
            stop: Stops::default(),
            skip_ahead: true,
            end_tokens: None,
            after: None,
            exact: false,
            probabilities: false,
            logprobs: None,
            receipt: false,
            logit_bias: LogitBias::default(),
        }
    }
}

impl Generate {
    /// All of them.
    pub const OPTIONS: [OptionInfo; 14] = [
        SAMPLING,
        FREE,
        option(
            "max_tokens",
            "null",
            "1 to 2147483647",
            "the most tokens to generate; null: 64 of free text, and of a value what the context has room for; a form \
             is filled to its end",
        ),
        STOP,
        option("skip_ahead", "true", "true or false", "decode forced tokens together with what follows them"),
        option(END_TOKENS, "null", IDS, "tokens that close the span at the end of a leaf; not for forms"),
        option("after", "null", "\"stop\" or \"free\"", "whether the output ends with the span; not for forms"),
        option("exact", "false", "true or false", "of a form, take the most probable value of each slot as a whole"),
        option("probabilities", "false", "true or false", "of a form, score every value of every slot"),
        LOGPROBS,
        option("receipt", "false", "true or false", "tell what each token was chosen among, chained"),
        LOGIT_BIAS,
        TIMEOUT,
        PRIORITY,
    ];

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self> {
        let usual = Self::default();
        let after = fields.read("after", |place, value| match text(place, value)? {
            "stop" => Ok(After::Stop),
            "free" => Ok(After::Free),
            _ => Err(wrong_type(place, "\"stop\" or \"free\"", value)),
        })?;
        Ok(Self {
            sampling: fields.read(SAMPLING.name, sampling)?.unwrap_or_default(),
            free_sampling: fields.read(FREE.name, sampling)?,
            max_tokens: from_one(fields, "max_tokens")?,
            stop: stops(fields)?,
            skip_ahead: fields.flag("skip_ahead", usual.skip_ahead)?,
            end_tokens: fields.read(END_TOKENS, token_ids)?,
            after,
            exact: fields.flag("exact", usual.exact)?,
            probabilities: fields.flag("probabilities", usual.probabilities)?,
            logprobs: fields.count(LOGPROBS.name)?,
            receipt: fields.flag("receipt", usual.receipt)?,
            logit_bias: fields.read(LOGIT_BIAS.name, logit_bias)?.unwrap_or_default(),
        })
    }
}

/// How to choose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Choose {
    /// One of these tokens must follow a value; `None`: those that the set brings.
    pub end_tokens: Option<Vec<TokenId>>,
    /// Score only what the best so many values need.
    pub top: Option<u32>,
    /// Read at most so many rows of logits.
    pub max_rows: Option<u32>,
    /// Go on from the best so many positions of each depth alone.
    pub beam: Option<u32>,
}

impl Choose {
    /// All of them. How texts become tokens is said by the spec of the choices.
    pub const OPTIONS: [OptionInfo; 6] = [
        option(END_TOKENS, "null", IDS, "one of these tokens must follow a value, and counts with it"),
        option("top", "null", "1 to 4294967295", "score only what the best so many values need"),
        option("max_rows", "null", "1 to 4294967295", "read at most so many rows of logits, and give bounds"),
        option(
            "beam",
            "null",
            "1 to 4294967295",
            "beam search: go on from the best so many positions of each depth alone",
        ),
        TIMEOUT,
        PRIORITY,
    ];

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            end_tokens: fields.read(END_TOKENS, token_ids)?,
            top: from_one(fields, "top")?,
            max_rows: from_one(fields, "max_rows")?,
            beam: from_one(fields, "beam")?,
        })
    }

    /// As the search has them.
    pub fn options(&self) -> ChooseOptions<'_> {
        let count = |count: Option<u32>| count.map(|count| count as usize);
        let options = ChooseOptions::new().with_top(count(self.top)).with_max_rows(count(self.max_rows));
        let options = options.with_beam(count(self.beam));
        self.end_tokens.as_deref().map_or(options, |ends| options.with_end_tokens(ends))
    }
}

/// A count of at least one.
pub(crate) fn from_one(fields: &Fields<'_>, name: &'static str) -> Result<Option<u32>> {
    let count = fields.count(name)?;
    let reason = || format!("it is 0: it must be from 1 to {}", u32::MAX);
    let none = || Err(SpecError::new(&fields.place.field(name), SpecProblem::Value(reason())));
    if count == Some(0) { none() } else { Ok(count) }
}

/// A text or several.
pub(crate) fn stops(fields: &Fields<'_>) -> Result<Stops> {
    let wrong =
        |error: StopError| SpecError::new(&fields.place.field(STOP.name), SpecProblem::Value(error.to_string()));
    Stops::new(&texts(fields, STOP.name)?).map_err(wrong)
}

pub(crate) fn call_options(fields: &Fields<'_>) -> Result<CallOptions> {
    let timeout = fields.read(TIMEOUT.name, |place, value| {
        let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0);
        seconds.ok_or_else(|| wrong_type(place, "a number of seconds, from 0 up", value))
    })?;
    let priority = fields.read(PRIORITY.name, |place, value| {
        let priority = value.as_i64().and_then(|priority| i32::try_from(priority).ok());
        priority.ok_or_else(|| wrong_type(place, "an integer from -2147483648 to 2147483647", value))
    })?;
    Ok(CallOptions { timeout, priority: priority.unwrap_or_default() })
}

/// `{"temperature": 0.7, "seed": 1}`: with any setting of the draw tokens are drawn, without one the best are taken.
/// Penalties are for both.
pub(crate) fn sampling(place: &Place<'_>, value: &Value) -> Result<SamplerOptions> {
    let names: Vec<&str> = DrawSettings::ALL.iter().map(|setting| setting.name).chain(["mode", "seed"]).collect();
    let fields = Fields::of(place, value, &names)?;
    let mut draw = DrawSettings::default();
    let mut is_drawn = false;
    for setting in DrawSettings::ALL {
        let number =
            |place: &Place<'_>, value: &Value| value.as_f64().ok_or_else(|| wrong_type(place, "a number", value));
        let Some(number) = fields.read(setting.name, number)? else { continue };
        let wrong =
            |error: DrawError| SpecError::new(&place.field(setting.name), SpecProblem::Value(error.to_string()));
        setting.set(&mut draw, number).map_err(wrong)?;
        is_drawn |= !setting.is_for_greedy;
    }
    let mode = fields.read("mode", |place, value| match text(place, value)? {
        "greedy" => Ok(Mode::Greedy),
        "sampled" => Ok(Mode::Sampled),
        _ => Err(wrong_type(place, "\"greedy\" or \"sampled\"", value)),
    })?;
    let usual = if is_drawn { Mode::Sampled } else { Mode::Greedy };
    Ok(SamplerOptions { mode: mode.unwrap_or(usual), draw, seed: fields.count("seed")? })
}

/// `{"15": -100, "7": 2.5}`: what is added to the logits of tokens.
pub(crate) fn logit_bias(place: &Place<'_>, value: &Value) -> Result<LogitBias> {
    let biases = value.as_object().ok_or_else(|| wrong_type(place, "an object of token ids and numbers", value))?;
    let bias = |(id, bias): (&String, &Value)| {
        let token = id.parse().ok().filter(|token: &u32| token.to_string() == *id).and_then(TokenId::new);
        let token = token.ok_or_else(|| {
            let id = Value::String(id.clone());
            wrong_type(place, "an object whose keys are token ids, from \"0\" to \"2147483647\"", &id)
        })?;
        let number = bias.as_f64().map(|bias| bias as f32).filter(|bias| bias.is_finite());
        let number = number.ok_or_else(|| wrong_type(&place.field(id), "a number", bias))?;
        Ok((token, number))
    };
    Ok(LogitBias::new(biases.iter().map(bias).collect::<Result<Vec<_>>>()?))
}

//! The options of calls: one definition, with defaults and ranges, that every host reads by name.

use super::stops::Stops;
use crate::constraint::SpecProblem;
use crate::constraint::TokenizationWord;
use crate::constraint::foreign::near_name;
use crate::json::with::{from_one, maybe_ids, named, share, texts};
use crate::json::{inner, refused_at, shorten_value, type_error, value_error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use trie_core::{After, ChooseOptions, DrawSettings, LogitBias, Mode, SamplerOptions, TokenId};
use trie_text::{TextValues, Tokenization};

/// Default limit on the tokens of free text.
pub const FREE_TOKENS: u32 = 64;

/// Options of a generation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct Generate {
    /// Sampling among the allowed tokens.
    #[serde(deserialize_with = "sampling")]
    pub sampling: SamplerOptions,
    /// Sampling of the free text after a span, where it differs.
    #[serde(deserialize_with = "maybe_sampling")]
    pub free_sampling: Option<SamplerOptions>,
    /// The most tokens to generate. `None` allows [`FREE_TOKENS`] of free text; a value may then fill the context. A
    /// form is always filled to its end.
    #[serde(deserialize_with = "from_one")]
    pub max_tokens: Option<u32>,
    /// Stop texts: free text ends before the first of them. Not for output that is constrained as a whole.
    pub stop: Stops,
    /// True to decode forced tokens together with the next token (jump-forward).
    pub skip_ahead: bool,
    /// Tokens that close the span at the end of a leaf.
    #[serde(deserialize_with = "maybe_ids")]
    pub end_tokens: Option<Vec<TokenId>>,
    /// True if the output ends with the span; `None` is the host's default.
    #[serde(deserialize_with = "read_after")]
    pub after: Option<After>,
    /// True if each slot of a form gets its most probable value, scored as a whole.
    pub exact: bool,
    /// True if, in a form, the probability of every value of every slot is returned.
    pub probabilities: bool,
    /// Number of most probable tokens to report beside each token, with the log-probability of the token itself.
    pub logprobs: Option<u32>,
    /// True if the alternatives of each token are kept, for a [`Receipt`](super::Receipt). Not for forms with `exact`
    /// or `probabilities`, or without `skip_ahead`.
    pub receipt: bool,
    /// Number of particles that correct the draw: the output is drawn as the model would write it if it had to write a
    /// text of the constraint, and not token by token.
    #[serde(deserialize_with = "particles")]
    pub correct: Option<u32>,
    /// Bias added to the logits of tokens. Not for forms with `exact` or `probabilities`.
    #[serde(deserialize_with = "logit_bias")]
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
            correct: None,
            logit_bias: LogitBias::default(),
        }
    }
}

fn particles<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let value = Value::deserialize(from)?;
    let particles = value.as_u64().filter(|particles| (1..=4096).contains(particles));
    particles.map(|particles| Some(particles as u32)).ok_or_else(|| type_error("an integer from 1 to 4096", &value))
}

/// Options of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Choose {
    /// End tokens, one of which must follow a value; `None` uses those of the set.
    #[serde(deserialize_with = "maybe_ids")]
    pub end_tokens: Option<Vec<TokenId>>,
    /// Number of best values to find; the others are scored only as far as needed.
    #[serde(deserialize_with = "from_one")]
    pub top: Option<u32>,
    /// Limit on the rows of logits that are read.
    #[serde(deserialize_with = "from_one")]
    pub max_rows: Option<u32>,
    /// Beam width: at each depth, only so many best positions are extended.
    #[serde(deserialize_with = "from_one")]
    pub beam: Option<u32>,
}

impl Choose {
    /// Returns the options in the form that the search takes.
    pub fn options(&self) -> ChooseOptions<'_> {
        let count = |count: Option<u32>| count.map(|count| count as usize);
        let options = ChooseOptions::new().with_top(count(self.top)).with_max_rows(count(self.max_rows));
        let options = options.with_beam(count(self.beam));
        self.end_tokens.as_deref().map_or(options, |ends| options.with_end_tokens(ends))
    }
}

/// Text around each value of a list, and its tokenization.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TextsAround {
    /// Text that stands before each value.
    pub prefix: String,
    /// Text that stands after each value.
    pub suffix: String,
    /// Token sequences that stand for a value.
    #[serde(with = "TokenizationWord")]
    pub tokenization: Tokenization,
    /// True if a token may spell the end of a value and continue beyond it.
    pub open_end: bool,
}

/// Options of a choice besides its values and their scoring.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ChooseTurn {
    /// Lowest probability of a result: below it the choice has no value.
    #[serde(deserialize_with = "share")]
    pub threshold: Option<f64>,
    /// System message of a chat in which the prompt is the user's message.
    #[serde(deserialize_with = "system")]
    pub system: Option<String>,
}

fn system<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() {
        let reason = "it is empty: leave it out, or say what the model is".to_owned();
        return Err(value_error(SpecProblem::Value(reason)));
    }
    Ok(Some(text))
}

/// Width of a beam search: the number of prefixes of one length that it extends.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BeamWidth {
    /// Number of prefixes, at least 1; `None` is the default.
    #[serde(deserialize_with = "from_one")]
    pub width: Option<u32>,
}

impl TextsAround {
    /// Returns the texts with the prefix and the suffix around each.
    #[must_use]
    pub fn texts(&self, texts: TextValues) -> TextValues {
        let tokenization = if self.open_end { Tokenization::OpenEnd } else { self.tokenization };
        texts.with_prefix(&*self.prefix).with_suffix(&*self.suffix).with_tokenization(tokenization)
    }
}

impl<'de> Deserialize<'de> for TextsAround {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let around = Self::deserialize(from)?;
        if around.open_end && around.tokenization == Tokenization::All {
            let reason = "open_end goes with tokenization=\"canonical\", not with \"all\"".to_owned();
            return Err(value_error(SpecProblem::Value(reason)));
        }
        Ok(around)
    }
}

impl<'de> Deserialize<'de> for Stops {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(&texts::deserialize(from)?).map_err(|error| value_error(SpecProblem::Value(error.to_string())))
    }
}

fn read_after<'de, D: Deserializer<'de>>(from: D) -> Result<Option<After>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        Stop,
        Free,
    }

    Ok(match Word::deserialize(from)? {
        Word::Stop => Some(After::Stop),
        Word::Free => Some(After::Free),
    })
}

/// Reads `{"temperature": 0.7, "seed": 1}`. Tokens are sampled if any setting of sampling is given; otherwise the most
/// probable are taken. Penalties apply to both.
pub(crate) fn sampling<'de, D: Deserializer<'de>>(from: D) -> Result<SamplerOptions, D::Error> {
    #[derive(Clone, Copy, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        Greedy,
        Sampled,
    }

    let value = Value::deserialize(from)?;
    let Value::Object(fields) = &value else { return Err(type_error("an object", &value)) };
    let (mut draw, mut mode, mut usual, mut seed) = (DrawSettings::default(), None, Mode::Greedy, None);
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        // Read as fields of one, so that what is wrong says which.
        let field = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        match name.as_str() {
            "mode" => mode = inner::<Field<Word>, _>(&field)?.value(),
            "seed" => seed = inner::<Field<u32>, _>(&field)?.value(),
            _ => {
                let Some(setting) = DrawSettings::ALL.iter().find(|setting| setting.name == name) else {
                    let known = DrawSettings::ALL.iter().map(|setting| setting.name).chain(["mode", "seed"]);
                    let known: Vec<String> = known.map(str::to_owned).collect();
                    return Err(refused_at(name, SpecProblem::Unknown { meant: near_name(name, &known), known }));
                };
                let number = inner::<Field<f64>, _>(&field)?.value().unwrap_or_default();
                let set = setting.set(&mut draw, number);
                set.map_err(|error| refused_at(name, SpecProblem::Value(error.to_string())))?;
                if !setting.is_for_greedy {
                    usual = Mode::Sampled;
                }
            }
        }
    }
    let mode = mode.map_or(usual, |word| match word {
        Word::Greedy => Mode::Greedy,
        Word::Sampled => Mode::Sampled,
    });
    Ok(SamplerOptions { mode, draw, seed })
}

/// The one field of an object.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Field<T>(#[serde(with = "named")] Vec<(String, T)>);

impl<T> Field<T> {
    fn value(self) -> Option<T> {
        self.0.into_iter().next().map(|(_, value)| value)
    }
}

fn maybe_sampling<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SamplerOptions>, D::Error> {
    sampling(from).map(Some)
}

/// Reads `{"15": -100, "7": 2.5}`: what is added to the logits of tokens.
pub(crate) fn logit_bias<'de, D: Deserializer<'de>>(from: D) -> Result<LogitBias, D::Error> {
    let value = Value::deserialize(from)?;
    let Value::Object(biases) = &value else { return Err(type_error("an object of token ids and numbers", &value)) };
    let bias = |(id, bias): (&String, &Value)| {
        let token = id.parse().ok().filter(|token: &u32| token.to_string() == *id).and_then(TokenId::new);
        let token = token.ok_or_else(|| {
            let ids = "an object whose keys are token ids, from \"0\" to \"2147483647\"";
            type_error(ids, &Value::String(id.clone()))
        })?;
        let number = bias.as_f64().map(|bias| bias as f32).filter(|bias| bias.is_finite());
        let wrong = || SpecProblem::Type { expected: "a number".to_owned(), given: shorten_value(bias) };
        Ok((token, number.ok_or_else(|| refused_at(id, wrong()))?))
    };
    Ok(LogitBias::new(biases.iter().map(bias).collect::<Result<Vec<_>, D::Error>>()?))
}

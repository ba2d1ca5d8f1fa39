//! The probability of a constraint: its request as JSON, prepared after a prompt, then run.

use super::ending::{CallOptions, Ended};
use super::error::GenerateError;
use super::request::maybe_prompt;
use super::run::{Hooks, ReadyCall};
use crate::constraint::{Built, Spec, SpecError, SpecProblem};
use crate::engine::Runtime;
use crate::json::with::{from_one, maybe_ids, share};
use crate::json::{ReadParts, parse, type_error};
use llama_sampler::{RuntimeError, Scorer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use trie_core::{
    AnyConstraint, Probability, ProbabilityJob, ProbabilityOptions, RulesError, SamplerOptions, SpanRules, TokenId,
    Trie,
};
use trie_text::{Prompt, TextValues, Tokenization, ValueSets, Vocab};

/// Options of a probability.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ProbabilitySettings {
    /// The bounds are close enough when they differ by this share of the upper one; 0.01 is the default.
    #[serde(deserialize_with = "share")]
    pub tolerance: Option<f64>,
    /// Limit on the rows of logits that are read for the bounds.
    #[serde(deserialize_with = "from_one")]
    pub max_rows: Option<u32>,
    /// Number of draws where the bounds are not close enough; 0 for none.
    #[serde(deserialize_with = "samples")]
    pub samples: u32,
    /// Limit on the tokens of a text; `None` is the room of the context.
    #[serde(deserialize_with = "from_one")]
    pub max_tokens: Option<u32>,
    /// Seed of the draws; `None` takes one from the operating system.
    pub seed: Option<u32>,
    /// End tokens, one of which must follow a text; `None` uses the end of generation. With an empty list the output
    /// need only begin with a text.
    #[serde(deserialize_with = "maybe_ids")]
    pub end_tokens: Option<Vec<TokenId>>,
    /// A text, whose probability is found, too.
    pub text: Option<String>,
}

impl ProbabilitySettings {
    const TOLERANCE: f64 = 0.01;
    const MAX_ROWS: u32 = 1024;
    /// The most draws: each is a path of the same batches.
    const MOST_SAMPLES: u64 = 1 << 16;
}

impl Default for ProbabilitySettings {
    fn default() -> Self {
        Self {
            tolerance: None,
            max_rows: None,
            samples: 64,
            max_tokens: None,
            seed: None,
            end_tokens: None,
            text: None,
        }
    }
}

fn samples<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(from)?;
    let samples = value.as_u64().filter(|&samples| samples <= ProbabilitySettings::MOST_SAMPLES);
    samples.map(|samples| samples as u32).ok_or_else(|| type_error("an integer from 0 to 65536", &value))
}

/// Request for the probability of a constraint.
#[derive(Debug, Clone)]
pub struct ProbabilityRequest {
    /// The prompt, as text or token ids; `None` is the text that stands there.
    pub prompt: Option<Prompt>,
    /// The constraint whose probability is wanted; `None` is the one that is followed already.
    pub constraint: Option<Spec>,
    /// Options of the estimation.
    pub options: ProbabilitySettings,
    /// Time limit and priority.
    pub call: CallOptions,
}

impl ProbabilityRequest {
    /// Reads `{"prompt": "...", "constraint": {"regex": "[0-9]+"}, "tolerance": 0.001, ...}`: docs/probabilities.md.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self, SpecError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OwnFields {
            #[serde(deserialize_with = "maybe_prompt")]
            prompt: Option<Prompt>,
            constraint: Option<Spec>,
        }

        let (OwnFields { prompt, constraint }, options, call) = ReadParts::read_parts(&parse(json)?)?;
        Ok(Self { prompt, constraint, options, call })
    }
}

/// A probability that is ready to be found: it only needs a decoder.
#[derive(Debug, Clone)]
pub struct ReadyProbability {
    prompt: Vec<TokenId>,
    vocab: Arc<Vocab>,
    healed_bytes: usize,
    rules: Arc<SpanRules>,
    text: Option<AnyConstraint>,
    options: ProbabilityOptions,
    started: Instant,
}

/// The probability of a constraint, as hosts show it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProbabilityResult {
    /// Estimate and bounds of the probability.
    #[serde(flatten)]
    pub probability: Probability,
    /// True if the time limit ended the estimation: the bounds hold, and no draw counts.
    pub timed_out: bool,
}

impl ProbabilityResult {
    /// Returns `{"estimate": 0.02, "lower": 0.01, "upper": 0.03, "text": null, "stats": {...}, ...}` under the names of
    /// the Python API, with `warnings` of its constraint. The logarithm of 0 is `null`.
    #[must_use]
    pub fn to_json(&self, warnings: &[String]) -> String {
        let mut found = json!(self);
        found["warnings"] = json!(warnings);
        found.to_string()
    }
}

impl ProbabilitySettings {
    /// Returns the estimation for a constraint after a prompt, over the vocabulary of `sets`.
    ///
    /// # Errors
    /// A constraint that cannot follow this prompt, a text that cannot be tokenised, or no token that ends a text.
    pub fn ready(self, prompt: Prompt, built: Built, sets: &ValueSets) -> Result<ReadyProbability, GenerateError> {
        let (started, vocab) = (Instant::now(), sets.vocab());
        let before = match &prompt {
            Prompt::Text(text) => text.clone().into_bytes(),
            Prompt::Tokens(tokens) => vocab.join(tokens)?,
        };
        let placed = built.after_prompt(prompt, sets)?;
        let mut rules = SpanRules::new(placed.spans, vocab.len())?;
        let ends = self.end_tokens.unwrap_or_else(|| vocab.end_of_generation().to_vec());
        let needs_end = vocab.end_of_generation().is_empty() && ends.is_empty();
        rules = rules.with_end_tokens(ends)?;
        let healed_bytes = placed.healed_bytes + rules.first_set().map_or(0, Trie::heal_bytes);
        if needs_end {
            return Err(RulesError::NothingToStopOn.into());
        }
        let healed = &before[before.len().saturating_sub(healed_bytes)..];
        let text = self.text.map(|text| one_text(vocab, healed, &text)).transpose()?;
        let options = ProbabilityOptions {
            tolerance: self.tolerance.unwrap_or(Self::TOLERANCE),
            max_rows: self.max_rows.unwrap_or(Self::MAX_ROWS) as usize,
            samples: self.samples as usize,
            max_tokens: self.max_tokens.map_or(usize::MAX, |most| most as usize),
            seed: SamplerOptions { seed: self.seed, ..SamplerOptions::default() }.drawn_seed(),
        };
        let (prompt, vocab, rules) = (placed.prompt, Arc::clone(vocab), Arc::new(rules));
        Ok(ReadyProbability { prompt, vocab, healed_bytes, rules, text, options, started })
    }
}

/// The set of a text in all token sequences that spell it after the healed bytes.
fn one_text(vocab: &Vocab, healed: &[u8], text: &str) -> Result<AnyConstraint, SpecProblem> {
    let bytes = [healed, text.as_bytes()].concat();
    let whole = String::from_utf8(bytes).map_err(|_| {
        SpecProblem::Value("the text is not supported after a prompt that ends inside a character".to_owned())
    })?;
    let texts = TextValues::new([whole]).with_tokenization(Tokenization::All);
    Ok(texts.set(vocab)?.trie().into())
}

impl ReadyCall for ReadyProbability {
    type Outcome = ProbabilityResult;
    type Error = RuntimeError;

    fn run_on(self, runtime: &mut Runtime<'_>, hooks: &mut dyn Hooks) -> Result<ProbabilityResult, RuntimeError> {
        let Self { prompt, vocab, healed_bytes, rules, text, options, started } = self;
        let prompt = match rules.first_set() {
            Some(set) => vocab.before_set(&prompt, set)?,
            None => &prompt,
        };
        let job = ProbabilityJob::new::<RuntimeError>(runtime.host(), prompt, rules, text, options)?;
        let done = runtime.complete(job, hooks)?;
        let timed_out = match done.stopped {
            Some(stopped) if !matches!(hooks.interruption(), Some(Ended::TimedOut(_))) => return Err(stopped),
            stopped => stopped.is_some(),
        };
        let mut probability = done.job.finish(done.n_threads);
        probability.stats.healed_bytes = healed_bytes;
        probability.stats.seconds = started.elapsed().as_secs_f64();
        Ok(ProbabilityResult { probability, timed_out })
    }
}

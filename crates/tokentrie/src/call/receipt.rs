//! Receipts: a record of the tokens that were allowed at each step, so that others can check it without the model.

use super::error::GenerateError;
use super::options::Generate;
use crate::constraint::{Built, Spec};
use hmac::{Hmac, KeyInit, Mac};
use llama_sampler::TrailStep;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use trie_core::{After, TokenId};
use trie_text::{Prompt, ValueSets, Vocab, hexadecimal};

/// Record of the allowed tokens of a generation: its prompt, its tokens and, at each step with a choice, the token mask
/// and the probabilities that the model gave. [`Receipt::check_seal`] and [`Receipt::check_steps`] verify it without
/// the model.
///
/// The parts are chained by SHA-256: `seal` is the last hash of the chain, or an HMAC of that hash if there is a key.
/// Without a key, anybody can seal a forged receipt; its tokens and masks must still be those of the constraint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The version of this form: 1.
    pub receipt: u32,
    /// The [`Vocab::fingerprint`] of the vocabulary.
    pub vocabulary: String,
    /// The [`Spec::fingerprint`] of the constraint, or of the reply in a chat; `None` if the constraint cannot be
    /// written as data.
    pub constraint: Option<String>,
    /// The prompt, as it was given.
    pub prompt: ReceiptPrompt,
    /// True if free text may follow the value.
    pub free: bool,
    /// Tokens that close the value, if the call set any.
    pub end_tokens: Option<Vec<u32>>,
    /// The tokens of the output, with the token that ended it.
    pub steps: Vec<ReceiptStep>,
    /// True if the seal needs a key.
    pub keyed: bool,
    /// The end of the chain, in hexadecimal.
    pub seal: String,
}

/// A prompt as text or as tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReceiptPrompt {
    /// A prompt that was given as text.
    Text(String),
    /// A prompt that was given as token ids.
    Tokens(Vec<u32>),
}

/// Subject of the receipts of one request, computed once for all of its results.
#[derive(Debug, Clone)]
pub(crate) struct ReceiptSubject {
    pub(crate) prompt: ReceiptPrompt,
    pub(crate) constraint: Option<String>,
    free: bool,
    end_tokens: Option<Vec<u32>>,
}

impl ReceiptSubject {
    /// A prompt, and the data of the constraint after it; nothing where the text is free, or the constraint no data.
    /// The options say what may follow the value.
    pub(crate) fn new(prompt: &Prompt, spec: Option<&Spec>, options: &Generate) -> Self {
        let prompt = match prompt {
            Prompt::Text(text) => ReceiptPrompt::Text(text.clone()),
            Prompt::Tokens(tokens) => ReceiptPrompt::Tokens(numbers(tokens)),
        };
        let end_tokens = options.end_tokens.as_deref().map(numbers);
        let free = options.after == Some(After::Free);
        Self { prompt, constraint: spec.and_then(Spec::fingerprint), free, end_tokens }
    }

    /// Returns the subject of a chat's receipts: its prompt, and the fingerprint of its reply.
    pub(crate) fn of_chat(prompt: &[TokenId], constraint: Option<String>) -> Self {
        Self { prompt: ReceiptPrompt::Tokens(numbers(prompt)), constraint, free: false, end_tokens: None }
    }
}

fn numbers(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.get()).collect()
}

/// # Errors
/// [`ReceiptError::Token`] for a token outside the vocabulary.
pub(super) fn known_token(vocab: &Vocab, step: usize, token: u32) -> Result<TokenId, ReceiptError> {
    let known = TokenId::new(token).filter(|known| known.index() < vocab.len());
    known.ok_or(ReceiptError::Token { step, token })
}

/// A token of a receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptStep {
    /// Id of the token that was written.
    pub token: u32,
    /// Alternatives to the token; missing where its text was forced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<ReceiptBranch>,
    /// True if the token goes beyond the end of a part of a form, and is left out of the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// Choice among several allowed tokens. Shares have nine digits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptBranch {
    /// Probability mass that the model gave to all allowed tokens together.
    pub mass: f64,
    /// Probability of the chosen token among the allowed tokens.
    pub probability: f64,
    /// Probability of the best other allowed token.
    pub runner_up: f64,
    /// The [`Vocab::mask_digest`] of the allowed tokens, in hexadecimal.
    pub mask: String,
}

/// Why a receipt is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    /// No receipt at all.
    #[error("no receipt: {0}")]
    Json(#[from] serde_json::Error),
    /// A version that is not known.
    #[error("the receipt is of version {0}: this reads version {VERSION}")]
    Version(u32),
    /// The chain does not end in the seal.
    #[error("the seal does not fit: the receipt was changed, or sealed with another key")]
    Seal,
    /// Sealed with a key.
    #[error("the receipt is sealed with a key: give it")]
    NeedsKey,
    /// A key was given, and the receipt was sealed without one.
    #[error("the receipt was sealed without a key: anybody could have, so it is not what the key stands for")]
    NotKeyed,
    /// The receipt is of another vocabulary.
    #[error("the receipt is of another vocabulary: its fingerprint is {found}, and that of the given one {own}")]
    Vocabulary {
        /// Fingerprint in the receipt.
        found: String,
        /// Fingerprint of the vocabulary that it is checked with.
        own: String,
    },
    /// The receipt is of another conversation.
    #[error("the receipt is of another conversation: its prompt is not that of these messages and tools")]
    Prompt,
    /// The receipt is of another constraint.
    #[error("the receipt is of another constraint: its fingerprint is {found}, and that of the given one {own}")]
    Constraint {
        /// Fingerprint in the receipt.
        found: String,
        /// Fingerprint of the constraint that it is checked with.
        own: String,
    },
    /// A number that is not a share of probability.
    #[error("steps[{step}]: {field} is {value}, which is not a share")]
    Share {
        /// Index of the step.
        step: usize,
        /// Name of the number.
        field: &'static str,
        /// The number that the receipt has there.
        value: f64,
    },
    /// A token that may not come.
    #[error("steps[{step}]: the constraint does not allow token {token} here")]
    Token {
        /// Index of the step.
        step: usize,
        /// Id of the token outside of the vocabulary.
        token: u32,
    },
    /// The allowed tokens are not those that the receipt claims.
    #[error("steps[{step}]: what could come here is not what the receipt says")]
    Mask {
        /// Index of the step.
        step: usize,
    },
    /// A token is kept that the receipt marks as dropped, or the other way round.
    #[error("steps[{step}]: whether the token stays in the text is not what the receipt says")]
    Dropped {
        /// Index of the step.
        step: usize,
    },
    /// Claim that no generation inside the constraint can make, such as an impossible prompt, end or end tokens.
    #[error("the receipt says what no generation inside the constraint has: {0}")]
    Generate(#[from] GenerateError),
}

trie_core::error_kind!(ReceiptError, Receipt);

/// The version that is written.
const VERSION: u32 = 1;
/// The digits of a share.
const DIGITS: f64 = 1e9;

impl Receipt {
    /// Creates the receipt of a generation with [`Generate::receipt`] after this prompt, inside this constraint.
    #[must_use]
    pub(crate) fn from_trail(subject: &ReceiptSubject, vocab: &Vocab, trail: &[TrailStep], key: Option<&[u8]>) -> Self {
        let ReceiptSubject { prompt, constraint, free, end_tokens } = subject.clone();
        let mut receipt = Self {
            receipt: VERSION,
            vocabulary: vocab.fingerprint().to_owned(),
            constraint,
            prompt,
            free,
            end_tokens,
            steps: trail.iter().map(ReceiptStep::from_trail_step).collect(),
            keyed: key.is_some(),
            seal: String::new(),
        };
        receipt.seal = receipt.compute_seal(key);
        receipt
    }

    /// Reads a receipt from JSON.
    ///
    /// # Errors
    /// [`ReceiptError::Json`].
    pub fn from_json(json: &[u8]) -> Result<Self, ReceiptError> {
        Ok(serde_json::from_slice(json)?)
    }

    /// Returns the receipt as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Checks that nothing was changed, and that the receipt is of this vocabulary and constraint. This half of the
    /// check needs no built constraint; [`Receipt::check_steps`] is the other half. `spec` is the constraint as data;
    /// `None` for free text.
    ///
    /// # Errors
    /// The first mismatch, with its place.
    pub fn check_seal(&self, spec: Option<&Spec>, vocab: &Vocab, key: Option<&[u8]>) -> Result<(), ReceiptError> {
        self.check_is_of(spec.and_then(Spec::fingerprint).as_deref(), vocab, key)
    }

    /// Checks the seal and the vocabulary, and that the constraint has this fingerprint.
    pub(crate) fn check_is_of(&self, own: Option<&str>, vocab: &Vocab, key: Option<&[u8]>) -> Result<(), ReceiptError> {
        if self.receipt != VERSION {
            return Err(ReceiptError::Version(self.receipt));
        }
        match (self.keyed, key) {
            (true, None) => return Err(ReceiptError::NeedsKey),
            (false, Some(_)) => return Err(ReceiptError::NotKeyed),
            _ => {}
        }
        self.check_shares()?;
        if self.seal != self.compute_seal(key) {
            return Err(ReceiptError::Seal);
        }
        if self.vocabulary != vocab.fingerprint() {
            return Err(ReceiptError::Vocabulary {
                found: self.vocabulary.clone(),
                own: vocab.fingerprint().to_owned(),
            });
        }
        let found = self.constraint.as_deref();
        if found != own {
            let shown = |of: Option<&str>| of.unwrap_or("none").to_owned();
            return Err(ReceiptError::Constraint { found: shown(found), own: shown(own) });
        }
        Ok(())
    }

    /// Checks that each token was allowed, among the tokens that the receipt claims: the other half of
    /// [`Receipt::check_seal`]. `built` is the constraint over the vocabulary of `sets`; `None` for free text.
    /// `O(tokens × vocabulary)`.
    ///
    /// # Errors
    /// The first mismatch, with its place.
    pub fn check_steps(&self, built: Option<Built>, sets: &ValueSets) -> Result<(), ReceiptError> {
        let vocab = sets.vocab();
        let all = |ids: &[u32]| {
            ids.iter().enumerate().map(|(at, &id)| known_token(vocab, at, id)).collect::<Result<Vec<_>, _>>()
        };
        let options = Generate {
            after: Some(if self.free { After::Free } else { After::Stop }),
            end_tokens: self.end_tokens.as_deref().map(all).transpose()?,
            // What has no receipt is refused, as it was.
            receipt: true,
            ..Generate::default()
        };
        let prompt = match &self.prompt {
            ReceiptPrompt::Text(text) => Prompt::Text(text.clone()),
            ReceiptPrompt::Tokens(ids) => Prompt::Tokens(all(ids)?),
        };
        let ready = options.ready(prompt, built.into(), None, sets)?;
        match ready.form() {
            Some(form) => self.check_filled(form, vocab),
            None => self.check_inside(ready.rules(), vocab),
        }
    }

    /// Checks that shares are valid, in the digits that are sealed.
    fn check_shares(&self) -> Result<(), ReceiptError> {
        for (step, of) in self.steps.iter().enumerate() {
            let Some(branch) = &of.branch else { continue };
            for (field, value) in branch.shares() {
                let rounded = (value * DIGITS).round();
                if !(0.0..=1.0).contains(&value) || (value * DIGITS - rounded).abs() > 1e-3 {
                    return Err(ReceiptError::Share { step, field, value });
                }
            }
            let sum = branch.probability + branch.runner_up;
            if sum > 1.0 + 1e-4 {
                return Err(ReceiptError::Share { step, field: "probability + runner_up", value: sum });
            }
        }
        Ok(())
    }

    fn compute_seal(&self, key: Option<&[u8]>) -> String {
        let mut chain = Sha256::new();
        let mut say = |bytes: &[u8]| {
            chain.update((bytes.len() as u64).to_le_bytes());
            chain.update(bytes);
        };
        say(b"tokentrie receipt");
        say(&self.receipt.to_le_bytes());
        say(self.vocabulary.as_bytes());
        say(self.constraint.as_deref().unwrap_or_default().as_bytes());
        let ids = |ids: &[u32]| ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>();
        match &self.prompt {
            ReceiptPrompt::Text(text) => say(text.as_bytes()),
            ReceiptPrompt::Tokens(tokens) => {
                say(b"tokens");
                say(&ids(tokens));
            }
        }
        let has = [self.constraint.is_some(), self.free, self.keyed, self.end_tokens.is_some()];
        say(&has.map(u8::from));
        say(&ids(self.end_tokens.as_deref().unwrap_or_default()));
        let mut chain = chain.finalize();
        for step in &self.steps {
            let mut link = Sha256::new_with_prefix(chain);
            link.update(step.token.to_le_bytes());
            if let Some(branch) = &step.branch {
                for (_, share) in branch.shares() {
                    link.update(((share * DIGITS).round() as u64).to_le_bytes());
                }
                link.update(branch.mask.as_bytes());
            }
            if step.dropped {
                link.update([1]);
            }
            chain = link.finalize();
        }
        let Some(key) = key else { return hexadecimal(&chain) };
        // A key of any length is one.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
        mac.update(&chain);
        hexadecimal(&mac.finalize().into_bytes())
    }
}

impl ReceiptStep {
    fn from_trail_step(step: &TrailStep) -> Self {
        let digits = |share: f64| (share * DIGITS).round() / DIGITS;
        let branch = step.branch.map(|branch| ReceiptBranch {
            mass: digits(branch.mass),
            probability: digits(branch.probability),
            runner_up: digits(branch.runner_up),
            mask: hexadecimal(&branch.mask),
        });
        Self { token: step.token.get(), branch, dropped: step.dropped }
    }
}

impl ReceiptBranch {
    fn shares(&self) -> [(&'static str, f64); 3] {
        [("mass", self.mass), ("probability", self.probability), ("runner_up", self.runner_up)]
    }
}

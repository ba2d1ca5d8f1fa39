//! The choice over a row of logits, for hosts that own the row.

use crate::machine::constraint::{Role, Scratch};
use crate::machine::span::{Allowed, Span, SpanError, SpanRules, Status};
use crate::rows::chooser::{Mode, RowChooser, SamplerOptions};
use crate::rows::row;
use crate::rows::settings::DrawError;
use crate::set::ids::TokenId;
use crate::work::ErrorKind;
use std::sync::Arc;

/// A row or mask that is too short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} has {got} entries: a vocabulary of {n_vocab} tokens needs at least {need}")]
pub struct RowError {
    /// Name of the buffer that is too short.
    pub what: &'static str,
    /// Length that was given.
    pub got: usize,
    /// Minimum length that is required.
    pub need: usize,
    /// Size of the vocabulary.
    pub n_vocab: usize,
}

crate::error_kind!(RowError, Row);

/// Why a sampler refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SamplerError {
    /// The row is too short.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The token or request does not fit the span.
    #[error(transparent)]
    Span(#[from] SpanError),
}

impl SamplerError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Row(error) => error.kind(),
            Self::Span(error) => error.kind(),
        }
    }
}

/// A [`Span`] with a way to choose tokens. Clones are independent and share the trie.
#[derive(Debug, Clone)]
pub struct Sampler {
    span: Span,
    chooser: RowChooser,
    saved: Vec<f32>,
    scratch: Scratch,
}

impl Sampler {
    /// A sampler armed at the root of the first trie.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(rules: Arc<SpanRules>, options: SamplerOptions) -> Result<Self, DrawError> {
        let chooser = RowChooser::new(options)?;
        Ok(Self { span: Span::new(rules), chooser, saved: Vec::new(), scratch: Scratch::default() })
    }

    /// Returns the walk of the sampler.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// The span, to activate or deactivate it. Accept tokens through [`Sampler::accept`], so that penalties count
    /// them.
    pub fn span_mut(&mut self) -> &mut Span {
        &mut self.span
    }

    /// Returns the mode: greedy or sampled.
    pub fn mode(&self) -> Mode {
        self.chooser.options().mode
    }

    /// Returns the options; the seed is the one in use.
    pub fn options(&self) -> SamplerOptions {
        self.chooser.options()
    }

    /// The seed in use: the one given, or the one taken from the operating system.
    pub fn seed(&self) -> u32 {
        self.chooser.seed()
    }

    /// Returns how often every allowed logit was −inf or NaN, so that the lowest allowed id was chosen.
    pub fn starved_count(&self) -> u64 {
        self.chooser.starved_count()
    }

    /// Restores the state after creation: armed, draws from the beginning.
    pub fn reset(&mut self) {
        self.span.reset();
        self.chooser.reset();
    }

    fn row<'r>(&self, logits: &'r [f32]) -> Result<&'r [f32], RowError> {
        let n_vocab = self.span.rules().n_vocab();
        // What a model pads beyond the vocabulary is never legal.
        logits.get(..n_vocab).ok_or(RowError { what: "a row of logits", got: logits.len(), need: n_vocab, n_vocab })
    }

    /// Chooses the next token without accepting it. `O(k)` in the number of allowed tokens, independent of the
    /// vocabulary;
    /// where everything is allowed, `O(V)`.
    ///
    /// # Errors
    /// A row shorter than the vocabulary, or a set that is damaged where the span stands.
    #[inline]
    pub fn sample(&mut self, logits: &[f32]) -> Result<TokenId, SamplerError> {
        let row = self.row(logits)?;
        let allowed = self.span.allowed(&mut self.scratch);
        self.chooser.choose(row, allowed).ok_or_else(|| self.span.dead_end_error().into())
    }

    /// [`Sampler::sample`] for a model that may prefer a token that is not allowed. If the output may end here, after
    /// the tool calls of a reply that holds nothing but calls, the choice is among all tokens, and a token that is not
    /// allowed stands for the end. Otherwise a model that wants to continue in prose after a call would have to call
    /// again.
    ///
    /// # Errors
    /// As [`Sampler::sample`].
    #[inline]
    pub fn sample_or_end(&mut self, logits: &[f32]) -> Result<TokenId, SamplerError> {
        if !self.span.text_ends() {
            return self.sample(logits);
        }
        let row = self.row(logits)?;
        let allowed = self.span.allowed(&mut self.scratch);
        let ends = if let Allowed::Only { ends, .. } = allowed { ends } else { &[] };
        let best = ends.iter().copied().max_by(|one, other| row[one.index()].total_cmp(&row[other.index()]));
        let Some(best) = best else { return self.sample(logits) };
        let chosen = self.chooser.choose(row, Allowed::All).ok_or_else(|| self.span.dead_end_error())?;
        Ok(if allowed.contains(chosen) { chosen } else { best })
    }

    /// Returns whether [`Sampler::sample_or_end`] reads only the logits of the tokens that are allowed here.
    pub fn chooses_among_allowed(&self) -> bool {
        !self.span.text_ends()
    }

    /// Accepts a token and returns its role.
    ///
    /// # Errors
    /// As [`Span::accept`]; nothing changed then.
    #[inline]
    pub fn accept(&mut self, token: TokenId) -> Result<Role, SpanError> {
        let role = self.span.accept(token)?;
        self.chooser.wrote(token);
        Ok(role)
    }

    /// Takes all tokens or none.
    ///
    /// # Errors
    /// As [`Span::accept_all`]; nothing changed then.
    pub fn accept_all(&mut self, tokens: &[TokenId]) -> Result<(), SpanError> {
        self.span.accept_all(tokens)?;
        for &token in tokens {
            self.chooser.wrote(token);
        }
        Ok(())
    }

    /// Takes back the last `n` accepted tokens.
    ///
    /// # Errors
    /// As [`Span::rollback`]; nothing changed then.
    pub fn rollback(&mut self, n: usize) -> Result<(), SpanError> {
        self.span.rollback(n)?;
        self.chooser.take_back(n);
        Ok(())
    }

    /// Accepts a token without a row of logits, because it is forced. The draws stay in step with those of a host that
    /// samples every token.
    ///
    /// # Errors
    /// As [`Span::accept`]; nothing changed then.
    pub fn accept_forced(&mut self, token: TokenId) -> Result<Role, SpanError> {
        let role = self.accept(token)?;
        self.chooser.skip();
        Ok(role)
    }

    /// Chooses and accepts a token, then accepts the forced tokens after it; appends all of them to `tokens`. One call
    /// is needed for each choice.
    ///
    /// # Errors
    /// A row shorter than the vocabulary; nothing was accepted then.
    pub fn advance(&mut self, logits: &[f32], tokens: &mut Vec<TokenId>) -> Result<(), SamplerError> {
        let chosen = self.sample(logits)?;
        self.accept(chosen)?;
        let start = tokens.len();
        tokens.push(chosen);
        tokens.extend(self.span.forced());
        tokens[start + 1..].iter().try_for_each(|&token| self.accept_forced(token).map(|_| ()))?;
        Ok(())
    }

    /// Sets the logit of every token that is not allowed to −inf; the others keep their exact bits. Changes nothing if
    /// every token is allowed.
    ///
    /// # Errors
    /// As [`Sampler::sample`]; nothing was written then.
    pub fn mask(&mut self, logits: &mut [f32]) -> Result<(), SamplerError> {
        self.row(logits)?;
        let allowed = self.span.allowed(&mut self.scratch);
        let Some(starved) = row::mask(logits, allowed, &mut self.saved) else {
            return Err(self.span.dead_end_error().into());
        };
        self.chooser.count_starved(starved);
        Ok(())
    }

    /// Number of 32-bit words of a mask over the vocabulary.
    pub fn mask_words(&self) -> usize {
        self.span.rules().n_vocab().div_ceil(32)
    }

    /// Sets bit `i % 32` of word `i / 32` for every allowed token `i`, and clears all other bits.
    ///
    /// # Errors
    /// Too few words, or a set that is damaged where the span stands; nothing was written then.
    pub fn fill_bitmask(&mut self, words: &mut [i32]) -> Result<(), SamplerError> {
        let (need, n_vocab) = (self.mask_words(), self.span.rules().n_vocab());
        if words.len() < need {
            return Err(RowError { what: "a bit mask", got: words.len(), need, n_vocab }.into());
        }
        let allowed = self.span.allowed(&mut self.scratch);
        row::write_bits(words, allowed, n_vocab).ok_or_else(|| self.span.dead_end_error().into())
    }

    /// Returns the allowed tokens, without a row: see [`Span::allowed`].
    pub fn allowed(&mut self) -> Allowed<'_> {
        self.span.allowed(&mut self.scratch)
    }

    /// [`Sampler::allowed`], with an error if no token is allowed.
    ///
    /// # Errors
    /// As [`SpanRules::choices`].
    pub fn choices(&mut self) -> Result<Allowed<'_>, SpanError> {
        self.span.choices(&mut self.scratch)
    }

    /// Shorthand for the span's status.
    pub fn status(&self) -> Status {
        self.span.status()
    }
}

//! The choice of a token from a row of logits, among the allowed tokens.

use crate::machine::span::Allowed;
use crate::rows::draw::Draw;
use crate::rows::row;
use crate::rows::settings::{DrawError, DrawSettings};
use crate::set::ids::TokenId;
use std::hash::{BuildHasher, RandomState};

/// Choice of a token among the allowed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The highest logit, ties to the lowest id.
    #[default]
    Greedy,
    /// A seeded draw: see [`DrawSettings`].
    Sampled,
}

/// Options of a [`RowChooser`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SamplerOptions {
    /// Highest logit or seeded draw.
    pub mode: Mode,
    /// Settings that transform the logits before a draw.
    pub draw: DrawSettings,
    /// Seed of the draw; `None` takes one from the operating system.
    pub seed: Option<u32>,
}

impl SamplerOptions {
    /// Returns the seed of draws: the one given, or one taken from the operating system.
    #[must_use]
    pub fn drawn_seed(&self) -> u32 {
        self.seed.unwrap_or_else(|| RandomState::new().hash_one(()) as u32)
    }
}

/// Chooses tokens from rows of logits: the best token, or the next of one sequence of draws.
#[derive(Debug, Clone)]
pub struct RowChooser {
    mode: Mode,
    settings: DrawSettings,
    draw: Option<Box<Draw>>,
    seed: u32,
    starved: u64,
    /// Tokens that penalties count; empty without penalties.
    written: Vec<TokenId>,
}

impl RowChooser {
    /// A chooser before its first choice.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(options: SamplerOptions) -> Result<Self, DrawError> {
        options.draw.check()?;
        let sampled = options.mode == Mode::Sampled;
        let seed = if sampled { options.drawn_seed() } else { options.seed.unwrap_or(0) };
        Ok(Self {
            mode: options.mode,
            settings: options.draw,
            draw: sampled.then(|| Box::new(Draw::new(seed))),
            seed,
            starved: 0,
            written: Vec::new(),
        })
    }

    /// The token to take; `None` if no token is allowed. The row is as long as the vocabulary. `O(k)` in the number of
    /// allowed tokens; `O(V)` where every token is allowed. Penalties count the tokens reported to
    /// [`RowChooser::wrote`].
    #[inline]
    pub fn choose(&mut self, row: &[f32], allowed: Allowed<'_>) -> Option<TokenId> {
        let chosen = row::choose(row, allowed, self.draw.as_deref_mut(), &self.settings, &self.written)?;
        self.starved += u64::from(chosen.starved);
        Some(chosen.token)
    }

    /// Reports a token that was written, whoever chose it.
    #[inline]
    pub fn wrote(&mut self, token: TokenId) {
        if self.settings.has_penalties() {
            self.written.push(token);
        }
    }

    /// Reports all written tokens, replacing those reported before.
    pub fn wrote_all(&mut self, tokens: &[TokenId]) {
        self.written.clear();
        if self.settings.has_penalties() {
            self.written.extend_from_slice(tokens);
        }
    }

    /// Reports that the last `n` tokens were taken back.
    pub fn take_back(&mut self, n: usize) {
        self.written.truncate(self.written.len().saturating_sub(n));
    }

    /// Uses up one draw, as choosing a forced token does.
    pub fn skip(&mut self) {
        if let Some(draw) = &mut self.draw {
            draw.skip();
        }
    }

    /// Returns the options; the seed is the one in use.
    pub fn options(&self) -> SamplerOptions {
        SamplerOptions { mode: self.mode, draw: self.settings, seed: Some(self.seed) }
    }

    /// The seed in use: the one given, or the one taken from the operating system.
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// Returns how often every allowed logit was −inf or NaN, so that the lowest allowed id was chosen.
    pub fn starved_count(&self) -> u64 {
        self.starved
    }

    pub(crate) fn count_starved(&mut self, starved: bool) {
        self.starved += u64::from(starved);
    }

    /// Restores the state after creation: no token written, draws from the beginning.
    pub fn reset(&mut self) {
        self.starved = 0;
        self.written.clear();
        if let Some(draw) = &mut self.draw {
            draw.reset();
        }
    }
}

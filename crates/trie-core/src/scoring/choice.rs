//! Options of a choice, and its result.

use super::decoder::DecodeCost;
use crate::rows::softmax::log_add;
use crate::set::ids::{LeafId, TokenId};

/// Options of a choice.
///
/// ```
/// use trie_core::ChooseOptions;
/// let options = ChooseOptions::new().with_top(5).with_max_rows(10_000);
/// assert_eq!((options.top, options.max_rows, options.end_tokens), (Some(5), Some(10_000), None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ChooseOptions<'a> {
    /// Tokens of which one must follow the value. `None` stands for the end tokens of the set
    /// ([`Trie::end_tokens`](crate::Trie::end_tokens)), often none.
    pub end_tokens: Option<&'a [TokenId]>,
    /// Number of best values to score; others are scored only as far as finding the best needs. `None` scores every
    /// value of a set that needs at most [`ChooseOptions::MAX_ROWS`] rows of logits, and of a larger set only the best
    /// value.
    pub top: Option<usize>,
    /// Approximate limit on the rows of logits to read; then the search ends with bounds. `None` sets no limit if each
    /// value has one sequence: the search reads the rows that the best values need. Where several sequences stand for
    /// one value, `None` means [`ChooseOptions::MAX_ROWS`].
    pub max_rows: Option<usize>,
    /// Width of a beam search: of all positions at the same depth, only this many of the most probable are continued,
    /// and the search never returns to the others. `None` searches until no better value is possible.
    ///
    /// The probability of a value that was found is exact; if several sequences stand for it, those that were found
    /// add up. Better values can be missed, unless no more positions than this are open at any depth.
    /// [`Choice::is_certain`] and the bounds of the mass take the skipped positions into account. Without
    /// [`ChooseOptions::top`], as many values as the width are ranked.
    pub beam: Option<usize>,
}

impl<'a> ChooseOptions<'a> {
    /// Rows of logits up to which every value is scored.
    pub const MAX_ROWS: usize = 4096;

    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the tokens of which one must follow the value. With an empty list none need follow, even if the set has
    /// end tokens.
    #[must_use]
    pub fn with_end_tokens(mut self, tokens: &'a [TokenId]) -> Self {
        self.end_tokens = Some(tokens);
        self
    }

    /// See [`ChooseOptions::top`]; at least 1.
    #[must_use]
    pub fn with_top(mut self, top: impl Into<Option<usize>>) -> Self {
        self.top = top.into();
        self
    }

    /// See [`ChooseOptions::max_rows`]; at least 1.
    #[must_use]
    pub fn with_max_rows(mut self, rows: impl Into<Option<usize>>) -> Self {
        self.max_rows = rows.into();
        self
    }

    /// See [`ChooseOptions::beam`]; at least 1.
    #[must_use]
    pub fn with_beam(mut self, width: impl Into<Option<usize>>) -> Self {
        self.beam = width.into();
        self
    }
}

/// Result of a choice. Values are leaves of the set, by number.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// Log of each value's probability under the whole vocabulary; NaN for a value that was not scored. If several
    /// sequences stand for a value, the sum over the scored ones: a lower bound unless all were scored.
    pub logprobs: Vec<f64>,
    /// Upper bounds for such values; `None` if they equal `logprobs`.
    pub logprobs_high: Option<Vec<f64>>,
    /// The most probable values, best first, ties by number: all of them, or `top`.
    pub ranking: Vec<LeafId>,
    /// True if no value can be more probable than the first of them.
    pub is_certain: bool,
    /// Lower bound of the probability that the output is any of the values.
    pub mass_low: f64,
    /// Upper bound; the same where every value was scored.
    pub mass_high: f64,
    /// Cost of the choice.
    pub stats: ChooseStats,
}

impl Choice {
    /// Probabilities among the values, which add up to 1 if all were scored. Otherwise each is a lower bound, computed
    /// with the upper bound of the mass, and NaN for a value that was not scored.
    pub fn probabilities(&self) -> Vec<f64> {
        let known = self.logprobs.iter().copied().filter(|logprob| !logprob.is_nan()).fold(f64::NEG_INFINITY, log_add);
        // The mass of all values can be too small for a double where its log is not.
        let log_mass = if self.mass_high > self.mass_low { known.max(self.mass_high.ln()) } else { known };
        let share = |logprob: &f64| match log_mass {
            // Every value is impossible: none is preferred.
            f64::NEG_INFINITY => 1.0 / self.logprobs.len() as f64,
            _ => (logprob - log_mass).exp(),
        };
        self.logprobs.iter().map(share).collect()
    }
}

/// Cost of a choice. Several prompts that were decoded together share it.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct ChooseStats {
    /// Forward passes of the host, the prompt's included.
    pub forward_passes: u64,
    /// Number of tokens in those passes.
    pub tokens_decoded: usize,
    /// Rows of logits that were read.
    pub rows: usize,
    /// Bytes at the end of the prompt that every value spells again, so that the prompt was decoded without them.
    pub healed_bytes: usize,
    /// Total duration in seconds.
    pub seconds: f64,
    /// Threads that the host decodes with; 0 where it does not say.
    pub n_threads: u32,
}

impl ChooseStats {
    /// Adds what a batch cost.
    pub(super) fn add_cost(&mut self, decoded: DecodeCost) {
        self.forward_passes += decoded.forward_passes;
        self.tokens_decoded += decoded.tokens;
    }
}

//! Options of a choice, and its result.

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
    /// One of these tokens must follow the value. `None`: those that the set brings
    /// ([`Trie::end_tokens`](crate::Trie::end_tokens)), often none.
    pub end_tokens: Option<&'a [TokenId]>,
    /// Score only as much as the best so many values need. `None` scores every value of a set that needs at most
    /// [`ChooseOptions::MAX_ROWS`] rows of logits, and of a larger one what the best value needs.
    pub top: Option<usize>,
    /// Rows of logits to read at most, about; then the search ends with bounds. `None`: what the best values need, and
    /// [`ChooseOptions::MAX_ROWS`] where several sequences stand for one value.
    pub max_rows: Option<usize>,
    /// Beam search: of the positions with equally many tokens only the most probable so many are gone on from, all of
    /// them together, and nothing goes back to the others. `None` searches until nothing can be better.
    ///
    /// The probability of a value that was found is exact; of several sequences of one value those that were found add
    /// up. Better values can be passed over, unless no more positions than this are open at any depth.
    /// [`Choice::is_certain`] and the bounds of the mass know of what was passed over. Without [`ChooseOptions::top`]
    /// the best so many values are ranked.
    pub beam: Option<usize>,
}

impl<'a> ChooseOptions<'a> {
    /// Rows of logits up to which every value is scored.
    pub const MAX_ROWS: usize = 4096;

    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// One of these tokens must follow the value; an empty list: none need follow, whatever the set brings.
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
    /// Log of each value's probability under the whole vocabulary; NaN for a value that was not scored. Where several
    /// sequences stand for a value, of all that were scored together: a lower bound unless all were.
    pub logprobs: Vec<f64>,
    /// Then the upper bounds; `None` where there are no others than `logprobs`.
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
    /// Probabilities among the values: they add up to 1 where all were scored. Where not, the share is a lower bound,
    /// taken of the upper bound of the mass, and NaN for what was not scored.
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
    /// Bytes at the end of the prompt that the values have again, so that it was decoded without them.
    pub healed_bytes: usize,
    /// Total duration in seconds.
    pub seconds: f64,
    /// Threads that the host decodes with; 0 where it does not say.
    pub n_threads: u32,
}

//! Continuations of a row, and the scores that they add.

use crate::machine::span::Allowed;
use crate::rows::element::Logit;
use crate::rows::logits::{clean, with_weight};
use crate::rows::softmax::{log_probability, log_sum_exp};
use crate::set::ids::TokenId;

/// Scoring mode of a continuation. The score of a continuation is added to that of its row.
///
/// If a set has [weights](crate::Trie::with_weights), every mode adds the weight of a token to its score. In a mode
/// that scores shares among tokens, the weights also change the sum that is shared; they never change the sum over the
/// vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ScoreMode {
    /// The log of the token's probability under the whole vocabulary, plus its weight: exact, and `O(V)` a row.
    /// Entries of a row beyond the vocabulary do not count. Weights are a bonus on top of the model's own probability,
    /// so scores may be above 0.
    #[default]
    Model,
    /// The log of the token's share among the allowed tokens, weights included. `O(k)` a row. `O(V)` where a value may
    /// end or continue and no end token decides, because every token is allowed there.
    Renormalised,
    /// The logit itself, plus its weight, for rows of log-probabilities. `O(k)` a row.
    AsGiven,
}

/// The continuations of a row.
pub(super) struct Continuations<'a> {
    /// Tokens that continue the row, and end tokens if they count as continuations.
    pub(super) tokens: &'a [TokenId],
    /// Their logits; where they share with each other, with their weights.
    pub(super) values: &'a [f32],
    /// Weight of each continuation; empty if all are zero.
    pub(super) weights: Vec<f32>,
    /// The log of the sum over all tokens that compete; `None` if logits are used as scores unchanged.
    pub(super) log_sum: Option<f64>,
    /// Score of ending the value here, if it may end and ending counts separately.
    pub(super) stop: Option<f64>,
}

/// Scoring of the end of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// Each end token is a continuation like others.
    AsTokens,
    /// All ways to end the value are one alternative, however many tokens may end it.
    Apart,
}

impl<'a> Continuations<'a> {
    /// Reads a row in which some token is allowed; `logits` has one entry for each token of the vocabulary. Returns
    /// `None` if no token continues the value and none ends it.
    pub(super) fn from_row<L: Logit>(
        allowed: Allowed<'a>,
        logits: &[L],
        mode: ScoreMode,
        ends: Ends,
        ids: &'a mut Vec<TokenId>,
        values: &'a mut Vec<f32>,
        wide: &mut Vec<f32>,
    ) -> Option<Self> {
        let goes_on = |tokens| Allowed::Only { tokens, ends: &[] };
        let (listed, closing): (Allowed<'a>, &[TokenId]) = match (allowed, ends) {
            (Allowed::Only { tokens, ends }, Ends::Apart) => (goes_on(tokens), ends),
            _ => (allowed, &[]),
        };
        let lent = match listed {
            Allowed::Only { tokens, ends: [] } | Allowed::Open { tokens } => tokens.ids(),
            _ => None,
        };
        let tokens: &'a [TokenId] = if let Some(tokens) = lent {
            tokens
        } else {
            ids.clear();
            ids.extend(listed.iter());
            ids
        };
        let is_open = matches!(allowed, Allowed::Open { .. });
        if tokens.is_empty() && closing.is_empty() {
            return None;
        }
        values.clear();
        values.extend(tokens.iter().map(|token| logits[token.index()].to_f32()));
        let listed = values.len();
        // A token that goes on and ends is one that goes on.
        let closing = closing.iter().filter(|end| tokens.binary_search(end).is_err());
        values.extend(closing.map(|end| logits[end.index()].to_f32()));
        let Weighing { weights, end, row } = match allowed.weights() {
            None => Weighing::default(),
            Some(_) => Weighing::from_row(allowed, logits, mode, tokens, values),
        };
        let log_sum = match mode {
            ScoreMode::AsGiven => None,
            ScoreMode::Renormalised if is_open && !row.is_empty() => Some(log_sum_exp(&row)),
            // Where everything may come, everything competes.
            ScoreMode::Renormalised if !is_open => Some(log_sum_exp(values)),
            ScoreMode::Model | ScoreMode::Renormalised => Some(log_sum_exp(L::widen(logits, wide))),
        };
        let stop = match (ends, is_open) {
            (Ends::AsTokens, _) => None,
            (Ends::Apart, true) => Some(remainder(values, log_sum)),
            (Ends::Apart, false) => (listed < values.len()).then(|| {
                let ending = log_sum_exp(&values[listed..]);
                log_sum.map_or(ending, |log_sum| (ending - log_sum).min(0.0))
            }),
        };
        values.truncate(listed);
        let stop = stop.map(|stop| if stop.is_nan() { 0.0 } else { stop });
        Some(Self { tokens, values, weights, log_sum, stop: stop.map(|stop| stop + end) })
    }

    /// Returns the score that the continuation with this number adds.
    pub(super) fn adds(&self, nth: usize) -> f64 {
        let logit = self.values[nth];
        let adds = match self.log_sum {
            Some(log_sum) => log_probability(logit, log_sum),
            None => f64::from(clean(logit)),
        };
        self.weights.get(nth).map_or(adds, |&weight| adds + f64::from(weight))
    }
}

/// Effect of weights on a row.
#[derive(Default)]
struct Weighing {
    /// Weight that each continuation adds to its logit; empty if the logit contains it.
    weights: Vec<f32>,
    /// Weight that ending adds.
    end: f64,
    /// Everything that competes if every token is allowed.
    row: Vec<f32>,
}

impl Weighing {
    /// Adds weights. `values` are the logits of the continuations, followed by those of the end tokens. In a mode that
    /// scores shares, weights are added to them; otherwise weights are added to the scores.
    #[cold]
    fn from_row<L: Logit>(
        allowed: Allowed<'_>,
        logits: &[L],
        mode: ScoreMode,
        tokens: &[TokenId],
        values: &mut [f32],
    ) -> Self {
        let weights: Vec<f32> = allowed.weigh(tokens.iter().copied()).map(|(_, weight)| weight).collect();
        let is_open = matches!(allowed, Allowed::Open { .. });
        let end = allowed.weights().filter(|_| !is_open).map_or(0.0, |weighted| weighted.end());
        if mode != ScoreMode::Renormalised {
            return Self { weights, end: f64::from(end), row: Vec::new() };
        }
        for (value, weight) in values.iter_mut().zip(weights.into_iter().chain(std::iter::repeat(end))) {
            *value = with_weight(*value, weight);
        }
        let row = if is_open { allowed.logits(logits).map(|(_, logit)| logit).collect() } else { Vec::new() };
        Self { row, ..Self::default() }
    }
}

/// The log of the probability that these values leave.
fn remainder(values: &[f32], log_sum: Option<f64>) -> f64 {
    let log_sum = log_sum.unwrap_or_default();
    let taken: f64 = values.iter().map(|&logit| log_probability(logit, log_sum).exp()).sum();
    (1.0 - taken).max(0.0).ln()
}

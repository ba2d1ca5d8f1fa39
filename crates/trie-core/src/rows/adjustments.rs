//! Logit adjustments before any other sampling step: given biases, and llama.cpp's penalties on written tokens.

use crate::rows::settings::DrawSettings;
use crate::set::ids::TokenId;
use std::sync::Arc;

/// Number of occurrences of each token that counts, ascending.
pub(crate) struct Penalties<'s> {
    settings: &'s DrawSettings,
    counts: Vec<(TokenId, u32)>,
}

impl<'s> Penalties<'s> {
    /// Counts the written tokens, oldest first. `O(n log n)` in the tokens that count.
    pub(crate) fn from_written(settings: &'s DrawSettings, written: &[TokenId]) -> Self {
        let last = usize::try_from(settings.penalty_last_n).unwrap_or(usize::MAX);
        let last = if settings.has_penalties() { last } else { 0 };
        let mut window = written[written.len().saturating_sub(last)..].to_vec();
        window.sort_unstable();
        let counts = window.chunk_by(TokenId::eq).map(|same| (same[0], same.len() as u32)).collect();
        Self { settings, counts }
    }

    /// The logits of tokens that come ascending, after the penalties. `O(k)` in all.
    pub(crate) fn apply(&self, logits: impl Iterator<Item = (TokenId, f32)>) -> impl Iterator<Item = (TokenId, f32)> {
        let mut left = self.counts.as_slice();
        logits.map(move |(token, logit)| {
            while let [(counted, _), rest @ ..] = left
                && *counted < token
            {
                left = rest;
            }
            match left {
                [(counted, count), ..] if *counted == token => (token, self.apply_penalties(logit, *count)),
                _ => (token, logit),
            }
        })
    }

    /// As llama.cpp has it, to the bit.
    fn apply_penalties(&self, logit: f32, count: u32) -> f32 {
        let &DrawSettings { repeat_penalty, presence_penalty, frequency_penalty, .. } = self.settings;
        // Dividing would make negative logits more probable.
        let logit = if logit <= 0.0 { logit * repeat_penalty } else { logit / repeat_penalty };
        logit - (count as f32 * frequency_penalty + presence_penalty)
    }
}

/// Numbers that are added to the logits of tokens, as by llama.cpp's `logit_bias`. An empty list changes nothing. A
/// bias does not make a token allowed. Clones share their contents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogitBias(Option<Arc<[(TokenId, f32)]>>);

impl LogitBias {
    /// Builds biases from tokens and numbers; those of one token are added up.
    pub fn new(biases: impl IntoIterator<Item = (TokenId, f32)>) -> Self {
        let biases: Arc<[_]> = biases.into_iter().collect();
        Self(Some(biases).filter(|biases| !biases.is_empty()))
    }

    /// Returns whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The tokens, in the order in which they were given.
    pub fn tokens(&self) -> impl Iterator<Item = TokenId> {
        self.0.iter().flat_map(|biases| biases.iter().map(|(token, _)| *token))
    }

    /// Adds the biases to a row of logits; tokens beyond the end of the row are skipped. `O(tokens)`.
    pub fn add_to(&self, row: &mut [f32]) {
        for &(token, bias) in self.0.iter().flat_map(|biases| biases.iter()) {
            if let Some(logit) = row.get_mut(token.index()) {
                *logit += bias;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_added_once_for_each_time_that_it_is_given() {
        let token = |id| TokenId::new(id).unwrap();
        let bias = LogitBias::new([(token(1), 2.5), (token(0), -1.0), (token(1), 0.5), (token(9), 4.0)]);
        let mut row = [1.0, f32::NEG_INFINITY, 3.0];
        bias.add_to(&mut row);
        assert_eq!(row, [0.0, f32::NEG_INFINITY, 3.0]);
        assert_eq!(bias.tokens().map(TokenId::get).collect::<Vec<_>>(), [1, 0, 1, 9]);
        assert!(!bias.is_empty() && LogitBias::new([]).is_empty() && LogitBias::default().is_empty());
    }
}

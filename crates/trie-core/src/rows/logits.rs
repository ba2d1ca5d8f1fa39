//! Weight of a logit: one policy for NaN, infinities, and rows without a usable logit.
//!
//! - NaN counts as −inf: it never wins and is never drawn.
//! - +inf is certainty: if an allowed token has it, only tokens that have it can be chosen.
//! - A row is *starved* if every allowed logit is −inf or NaN. Then the lowest allowed id is taken and counted, never
//!   another token. If the whole row has no usable logit, a caller that knows the whole row refuses it.

use crate::machine::span::Allowed;
use crate::rows::element::Logit;
use crate::set::ids::TokenId;

/// The logit, with NaN as −inf.
#[inline]
pub fn clean(logit: f32) -> f32 {
    if logit.is_nan() { f32::NEG_INFINITY } else { logit }
}

/// Returns whether a token with this logit can be chosen.
#[inline]
pub fn is_usable(logit: f32) -> bool {
    logit > f32::NEG_INFINITY
}

/// Returns a description of a row without a usable logit; `None` if some token can be chosen. For a usual row, its
/// first entry decides.
///
/// ```
/// use trie_core::logits::nothing_in;
/// assert_eq!(nothing_in(&[f32::NAN, 0.5]), None);
/// assert_eq!(nothing_in(&[f32::NAN, f32::NAN]), Some("NaN"));
/// ```
pub fn nothing_in<L: Logit>(row: &[L]) -> Option<&'static str> {
    let mut nan = 0;
    for logit in row {
        let logit = logit.to_f32();
        if is_usable(logit) {
            return None;
        }
        nan += usize::from(logit.is_nan());
    }
    Some(if nan == 0 {
        "-inf"
    } else if nan == row.len() {
        "NaN"
    } else {
        "NaN or -inf"
    })
}

/// A row in which no token can be chosen, although the model was asked for its logits: an error of the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the row of logits {} says nothing: all of its {n_vocab} entries are {found}", describe_prefix(.prefix))]
pub struct NoLogits {
    /// The tokens before the row, those of the prompt first.
    pub prefix: Vec<TokenId>,
    /// Contents of the row: `NaN`, `-inf`, or both.
    pub found: &'static str,
    /// Number of entries of the row.
    pub n_vocab: usize,
}

crate::error_kind!(NoLogits, Model);

/// The tokens as a position in a message; of many tokens only the last.
fn describe_prefix(prefix: &[TokenId]) -> String {
    const SHOWN: usize = 16;
    let shown: Vec<u32> = prefix.iter().skip(prefix.len().saturating_sub(SHOWN)).map(|token| token.get()).collect();
    match prefix.len() {
        0 => "after no tokens".to_owned(),
        all if all > SHOWN => format!("after {all} tokens, the last of which are {shown:?},"),
        _ => format!("after {shown:?}"),
    }
}

/// A logit with the weight of its token. A weight of 0 leaves its bits as they are; NaN becomes −inf.
#[inline]
pub fn with_weight(logit: f32, weight: f32) -> f32 {
    if weight == 0.0 { logit } else { clean(logit + weight) }
}

/// The greater of two logits; a NaN never wins.
#[inline]
pub(crate) fn greater(high: f32, logit: f32) -> f32 {
    if logit > high { logit } else { high }
}

/// Computes the weight of a logit relative to the best one: `exp(logit − best)`, in 0 … 1. If the best is +inf, the
/// weight is 1 for +inf and 0 for other logits. If no logit is usable, it is 0.
///
/// ```
/// use trie_core::logits::weight;
/// assert_eq!(weight(2.0, 2.0), 1.0);
/// assert_eq!(weight(f32::NAN, 2.0), 0.0);
/// assert_eq!(weight(2.0, f32::INFINITY), 0.0);
/// ```
#[inline]
pub fn weight(logit: f32, best: f32) -> f32 {
    if !is_usable(logit) {
        0.0
    } else if best == f32::INFINITY {
        f32::from(u8::from(logit == f32::INFINITY))
    } else {
        (logit - best).exp()
    }
}

/// The share of each logit in the sum of their weights. In a starved row, the first has the whole share.
pub fn shares(logits: &[f32]) -> Vec<f32> {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, greater);
    let weights: Vec<f32> = logits.iter().map(|&logit| weight(logit, best)).collect();
    let sum: f32 = weights.iter().sum();
    let first = |index: usize| f32::from(u8::from(index == 0));
    weights.iter().enumerate().map(|(index, weight)| if sum > 0.0 { weight / sum } else { first(index) }).collect()
}

impl<'a> Allowed<'a> {
    /// Returns the candidates of a choice: each allowed token, ascending and once, with its logit in this row and its
    /// weight together. `row` is as long as the vocabulary.
    pub fn logits<'r, L: Logit>(&self, row: &'r [L]) -> impl Iterator<Item = (TokenId, f32)> + use<'a, 'r, L> {
        let everything = matches!(self, Self::All | Self::Open { .. });
        let all = TokenId::all(if everything { row.len() } else { 0 });
        let some = (!everything).then(|| self.iter());
        let weighed = self.weigh(all.chain(some.into_iter().flatten()));
        weighed.map(|(token, weight)| (token, with_weight(row[token.index()].to_f32(), weight)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_logits() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(shares(&[1.0, 1.0, nan]), [0.5, 0.5, 0.0]);
        assert_eq!(shares(&[inf, 1.0, inf]), [0.5, 0.0, 0.5]);
        assert_eq!(shares(&[nan, -inf, nan]), [1.0, 0.0, 0.0]);
        assert!(shares(&[]).is_empty());
        assert!(is_usable(inf) && !is_usable(-inf) && !is_usable(nan));
        assert_eq!(nothing_in(&[nan, -inf]), Some("NaN or -inf"));
        assert_eq!((nothing_in(&[-inf]), nothing_in(&[nan, inf])), (Some("-inf"), None));
        assert_eq!((clean(nan), clean(1.0)), (-inf, 1.0));
    }
}

//! Allowed tokens, applied to one row of logits or of bits. [`Sampler`](crate::Sampler) and [`Batch`](crate::Batch)
//! treat their rows with the functions of this file only.
//!
//! Each function returns `None`, and writes nothing, if no token is allowed.

use crate::machine::constraint::{Tokens, WeightedTokens};
use crate::machine::span::Allowed;
use crate::rows::adjustments::Penalties;
use crate::rows::draw::Draw;
use crate::rows::element::Logit;
use crate::rows::kernel::{BestToken, argmax, argmax_of, argmax_row, clear_bits, fill_bits, mask_row};
use crate::rows::logits::{clean, is_usable, with_weight};
use crate::rows::settings::DrawSettings;
use crate::set::ids::TokenId;

/// A chosen token, and whether every allowed logit was −inf or NaN, so that the lowest allowed id was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenToken {
    pub(crate) token: TokenId,
    pub(crate) starved: bool,
}

/// The best allowed token, or a drawn one. The row is as long as the vocabulary. `written` holds the tokens that
/// penalties count, and is empty without penalties.
#[inline]
pub(crate) fn choose(
    row: &[f32],
    allowed: Allowed<'_>,
    draw: Option<&mut Draw>,
    settings: &DrawSettings,
    written: &[TokenId],
) -> Option<ChosenToken> {
    let chosen = match (allowed, draw) {
        (Allowed::Nothing, _) => return None,
        (allowed, draw) if allowed.weights().is_some() || !written.is_empty() => {
            choose_adjusted(row, allowed, draw, settings, written)
        }
        (Allowed::Only { tokens, ends }, None) => best_of(row, tokens, ends),
        (Allowed::All | Allowed::Open { .. }, None) => usable(argmax_row(row)),
        (Allowed::Only { .. }, Some(draw)) => draw.draw(row, allowed.iter(), settings),
        (Allowed::All | Allowed::Open { .. }, Some(draw)) => {
            draw.draw(row, (0..row.len() as u32).filter_map(TokenId::new), settings)
        }
    };
    Some(match chosen {
        Some(token) => ChosenToken { token, starved: false },
        None => ChosenToken { token: allowed.first().unwrap_or_default(), starved: true },
    })
}

/// The best allowed token, or a drawn one, with weights added and after penalties.
#[cold]
fn choose_adjusted(
    row: &[f32],
    allowed: Allowed<'_>,
    draw: Option<&mut Draw>,
    settings: &DrawSettings,
    written: &[TokenId],
) -> Option<TokenId> {
    let penalties = Penalties::from_written(settings, written);
    let logits = penalties.apply(allowed.logits(row));
    match draw {
        Some(draw) => draw.draw_from(logits, settings),
        None => {
            usable(logits.map(|(token, logit)| BestToken { token, logit: clean(logit) }).reduce(BestToken::or_better))
        }
    }
}

/// Sets the logit of every token that is not allowed to −inf, and adds weights to the others; changes nothing if every
/// token is allowed. `saved` is a buffer. Returns whether the row was starved: then the lowest allowed id has 0.
pub(crate) fn mask<L: Logit>(row: &mut [L], allowed: Allowed<'_>, saved: &mut Vec<L>) -> Option<bool> {
    if let Some(weighted) = allowed.weights() {
        return Some(mask_weighted(row, allowed, weighted, saved));
    }
    let (tokens, ends) = match allowed {
        Allowed::All | Allowed::Open { .. } => return Some(false),
        Allowed::Nothing => return None,
        Allowed::Only { tokens, ends } => (tokens, ends),
    };
    if !allowed.iter().any(|id| is_usable(row[id.index()].to_f32())) {
        starve(row, allowed);
        return Some(true);
    }
    mask_row(row, tokens, ends, saved);
    Some(false)
}

/// Leaves only the lowest allowed token, with logit 0, in a row without a usable logit.
fn starve<L: Logit>(row: &mut [L], allowed: Allowed<'_>) {
    let lowest = allowed.first().unwrap_or_default();
    row.fill(L::NEG_INFINITY);
    row[lowest.index()] = L::ZERO;
}

/// [`mask`] with weights, which are added to the allowed logits; where every token is allowed, only to those of the
/// tokens that continue the value.
#[cold]
fn mask_weighted<L: Logit>(
    row: &mut [L],
    allowed: Allowed<'_>,
    weighted: WeightedTokens<'_>,
    saved: &mut Vec<L>,
) -> bool {
    let add = |logit: L, weight: f32| {
        // A weight of 0 leaves the bits as they are.
        if weight == 0.0 { logit } else { L::from_f32(with_weight(logit.to_f32(), weight)) }
    };
    if let Allowed::Open { .. } = allowed {
        for (id, &weight) in weighted.ids().iter().zip(weighted.weights()) {
            row[id.index()] = add(row[id.index()], weight);
        }
        return false;
    }
    saved.clear();
    saved.extend(allowed.weigh(allowed.iter()).map(|(token, weight)| add(row[token.index()], weight)));
    if !saved.iter().any(|logit| is_usable(logit.to_f32())) {
        starve(row, allowed);
        return true;
    }
    row.fill(L::NEG_INFINITY);
    allowed.iter().zip(saved.iter()).for_each(|(id, &logit)| row[id.index()] = logit);
    false
}

/// Sets the bits of the allowed tokens and clears all others, those beyond the vocabulary too.
pub(crate) fn write_bits(words: &mut [i32], allowed: Allowed<'_>, n_vocab: usize) -> Option<()> {
    match allowed {
        Allowed::All | Allowed::Open { .. } => clear_bits(words, n_vocab),
        Allowed::Nothing => return None,
        Allowed::Only { tokens, ends } => {
            words.fill(0);
            fill_bits(words, tokens);
            fill_bits(words, Tokens::Ids(ends));
        }
    }
    Some(())
}

/// The token mask over a vocabulary of this size: bit `id % 32` of word `id / 32`. No bit is set if no token is
/// allowed.
///
/// ```
/// use trie_core::{Allowed, Tokens, TokenId, bitmask};
/// let ids = [TokenId::new(1).unwrap(), TokenId::new(33).unwrap()];
/// assert_eq!(bitmask(Allowed::Only { tokens: Tokens::Ids(&ids), ends: &[] }, 40), [2, 2]);
/// assert_eq!(bitmask(Allowed::All, 3), [7]);
/// ```
pub fn bitmask(allowed: Allowed<'_>, n_vocab: usize) -> Vec<i32> {
    let mut words = vec![0; n_vocab.div_ceil(32)];
    let _ = write_bits(&mut words, allowed, n_vocab);
    words
}

/// The best of two sets.
#[inline]
fn best_of(row: &[f32], tokens: Tokens<'_>, ends: &[TokenId]) -> Option<TokenId> {
    let best = match (argmax_of(row, tokens), ends) {
        (one, []) => one,
        (None, ends) => argmax(row, ends),
        (Some(token), ends) => Some(argmax(row, ends).map_or(token, |end| token.or_better(end))),
    };
    usable(best)
}

/// Returns the token, unless its logit is −inf or NaN.
#[inline]
fn usable(best: Option<BestToken>) -> Option<TokenId> {
    best.filter(|pick| !pick.is_starved()).map(|pick| pick.token)
}

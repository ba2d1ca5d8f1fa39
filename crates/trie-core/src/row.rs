//! What may come next, applied to one row of logits or of bits. [`Sampler`](crate::Sampler) and
//! [`Batch`](crate::Batch) do with their rows what stands here and nothing else.
//!
//! Each answers `None`, and writes nothing, where nothing may come.

use crate::constraint::Tokens;
use crate::draw::{Draw, DrawSettings};
use crate::element::Logit;
use crate::ids::TokenId;
use crate::kernel::{Pick, argmax, argmax_of, argmax_row, clear_bits, fill_bits, mask_row};
use crate::logits::is_usable;
use crate::span::Allowed;

/// A token, and whether every legal logit was −inf or NaN, so that the lowest legal id was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen {
    pub(crate) token: TokenId,
    pub(crate) starved: bool,
}

/// The best of the legal tokens, or one drawn. The row is as long as the vocabulary.
#[inline]
pub(crate) fn choose(
    row: &[f32],
    allowed: Allowed<'_>,
    draw: Option<&mut Draw>,
    settings: &DrawSettings,
) -> Option<Chosen> {
    let chosen = match (allowed, draw) {
        (Allowed::Nothing, _) => return None,
        (Allowed::Only { tokens, ends }, None) => best_of(row, tokens, ends),
        (Allowed::All | Allowed::Open { .. }, None) => usable(argmax_row(row)),
        (Allowed::Only { .. }, Some(draw)) => draw.draw(row, allowed.iter(), settings),
        (Allowed::All | Allowed::Open { .. }, Some(draw)) => {
            draw.draw(row, (0..row.len() as u32).filter_map(TokenId::new), settings)
        }
    };
    Some(match chosen {
        Some(token) => Chosen { token, starved: false },
        None => Chosen { token: allowed.first().unwrap_or_default(), starved: true },
    })
}

/// Sets every logit that may not come to −inf; nothing where everything may come. `saved` is scratch. Whether the row
/// was starved: then the lowest legal id has 0.
pub(crate) fn mask<L: Logit>(row: &mut [L], allowed: Allowed<'_>, saved: &mut Vec<L>) -> Option<bool> {
    let (tokens, ends) = match allowed {
        Allowed::All | Allowed::Open { .. } => return Some(false),
        Allowed::Nothing => return None,
        Allowed::Only { tokens, ends } => (tokens, ends),
    };
    if !allowed.iter().any(|id| is_usable(row[id.index()].to_f32())) {
        let lowest = allowed.first().unwrap_or_default();
        row.fill(L::NEG_INFINITY);
        row[lowest.index()] = L::ZERO;
        return Some(true);
    }
    mask_row(row, tokens, ends, saved);
    Some(false)
}

/// Sets the bits of the legal tokens and clears all others, those after the vocabulary too.
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

/// The token, unless its logit is as bad as none.
#[inline]
fn usable(best: Option<Pick>) -> Option<TokenId> {
    best.filter(|pick| !pick.starved()).map(|pick| pick.token)
}

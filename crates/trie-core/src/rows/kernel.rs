//! The loops over a row of logits: pick the best of `k`, mask all but `k`, set `k` bits.
//!
//! Ids ascend and lie inside the row; [`crate::Sampler`] checks that once per row. Bits beyond the row are not looked
//! at.

use crate::machine::constraint::{AllExcept, Mask, Tokens};
use crate::rows::element::Logit;
use crate::rows::logits::{greater, is_usable};
use crate::set::ids::TokenId;

/// A token with the reason it was picked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestToken {
    /// Id of the chosen token.
    pub token: TokenId,
    /// Its logit, or −inf where every candidate was −inf or NaN.
    pub logit: f32,
}

impl BestToken {
    /// Returns whether there was no finite logit to choose by: the lowest id was taken.
    pub fn is_starved(&self) -> bool {
        !is_usable(self.logit)
    }

    /// The better of two: the higher logit, at a tie the lower id.
    #[must_use]
    pub fn or_better(self, other: Self) -> Self {
        // Written without `partial_cmp`: neither logit is NaN here, and 0.0 ties with −0.0.
        if other.logit > self.logit || (other.logit == self.logit && other.token < self.token) { other } else { self }
    }
}

/// Labels are compared in blocks: eight running maxima break the chain of comparisons, and only the winning block
/// is searched for the label.
const BLOCK: usize = 64;
const LANES: usize = 8;
/// Up to this many ids, a single chain of comparisons is faster than blocks.
const FEW: usize = 32;

/// The id with the highest logit; ties to the lowest id, NaN as −inf. `None` without ids. `O(k)`.
///
/// # Panics
/// If an id is not inside the row.
#[inline]
pub fn argmax(row: &[f32], ids: &[TokenId]) -> Option<BestToken> {
    if ids.len() <= FEW {
        let start = BestToken { token: *ids.first()?, logit: f32::NEG_INFINITY };
        return Some(ids.iter().fold(start, |best, &token| {
            let logit = row[token.index()];
            if logit > best.logit { BestToken { token, logit } } else { best }
        }));
    }
    let mut best = f32::NEG_INFINITY;
    let mut winner = ids.get(..BLOCK.min(ids.len()))?;
    for block in ids.chunks(BLOCK) {
        let high = block_max(row, block);
        if high > best {
            best = high;
            winner = block;
        }
    }
    let dead = best == f32::NEG_INFINITY;
    let first = winner.iter().find(|id| dead || row[id.index()] == best)?;
    Some(BestToken { token: *first, logit: best })
}

#[inline]
fn block_max(row: &[f32], block: &[TokenId]) -> f32 {
    let mut high = [f32::NEG_INFINITY; LANES];
    let (eights, rest) = block.as_chunks::<LANES>();
    for eight in eights {
        for lane in 0..LANES {
            high[lane] = greater(high[lane], row[eight[lane].index()]);
        }
    }
    for (lane, id) in rest.iter().enumerate() {
        high[lane] = greater(high[lane], row[id.index()]);
    }
    high.into_iter().fold(f32::NEG_INFINITY, greater)
}

/// The best of a whole row, as [`argmax`]. `None` for an empty row. `O(V)`.
pub(crate) fn argmax_row(row: &[f32]) -> Option<BestToken> {
    let mut high = [f32::NEG_INFINITY; 4 * LANES];
    let (chunks, rest) = row.as_chunks::<{ 4 * LANES }>();
    for chunk in chunks {
        for lane in 0..4 * LANES {
            high[lane] = greater(high[lane], chunk[lane]);
        }
    }
    let best = rest.iter().copied().chain(high).fold(f32::NEG_INFINITY, greater);
    let dead = best == f32::NEG_INFINITY;
    let first = row.iter().position(|&logit| dead || logit == best)?;
    TokenId::new(first as u32).map(|token| BestToken { token, logit: best })
}

/// The best of a set, as [`argmax`].
#[inline]
pub(crate) fn argmax_of(row: &[f32], tokens: Tokens<'_>) -> Option<BestToken> {
    match tokens {
        Tokens::Ids(ids) => argmax(row, ids),
        // What has weights is chosen from by them (`row.rs`).
        Tokens::Weighted(weighted) => argmax(row, weighted.ids()),
        Tokens::Mask(mask) => argmax_bits(row, mask),
        Tokens::Except(except) => argmax_except(row, except),
    }
}

/// [`argmax`] over all tokens but a few, computed over the stretches of the row between them.
fn argmax_except(row: &[f32], except: AllExcept<'_>) -> Option<BestToken> {
    let row = &row[..except.n_vocab().min(row.len())];
    let mut best: Option<BestToken> = None;
    let mut from = 0;
    for to in except.denied_tokens().iter().map(|token| token.index()).chain([row.len()]) {
        let stretch = row.get(from..to).and_then(argmax_row);
        let stretch = stretch.and_then(|pick| Some(BestToken { token: pick.token.checked_add(from)?, ..pick }));
        // Stretches ascend: at a tie the first one stays.
        best = match (best, stretch) {
            (Some(best), Some(other)) if other.logit > best.logit => Some(other),
            (best, stretch) => best.or(stretch),
        };
        from = to + 1;
    }
    best
}

/// Words of a mask whose maxima are compared before the lanes of one of them are searched.
const WORDS: usize = 16;
/// Up to this many bits of a word are compared one by one.
const FEW_BITS: u32 = 3;

/// [`argmax`] over the bits of a mask: in blocks of words, where only the winning block is searched for the id.
fn argmax_bits(row: &[f32], mask: Mask<'_>) -> Option<BestToken> {
    let mut best = BestToken { token: mask.iter().next()?, logit: f32::NEG_INFINITY };
    let mut winner = 0;
    let blocks = || row.chunks(32 * WORDS).zip(mask.words().chunks(WORDS)).enumerate();
    for (block, (logits, words)) in blocks() {
        let high = words_max(logits, words);
        if high > best.logit {
            (best.logit, winner) = (high, block);
        }
    }
    if best.logit > f32::NEG_INFINITY
        && let Some((block, (logits, words))) = blocks().nth(winner)
    {
        let is_best = |&at: &usize| logits[at] == best.logit && words[at / 32] >> (at % 32) & 1 == 1;
        let first = (0..logits.len().min(32 * words.len())).find(is_best)?;
        best.token = TokenId::new((block * 32 * WORDS + first) as u32)?;
    }
    Some(best)
}

/// The highest logit whose bit is set, or −inf.
fn words_max(logits: &[f32], words: &[u32]) -> f32 {
    let mut high = [f32::NEG_INFINITY; 32];
    let (whole, rest) = logits.as_chunks::<32>();
    for (chunk, &word) in whole.iter().zip(words) {
        if word.count_ones() <= FEW_BITS {
            let mut left = word;
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                high[lane] = greater(high[lane], chunk[lane]);
                left &= left - 1;
            }
            continue;
        }
        for lane in 0..32 {
            let logit = if word >> lane & 1 == 1 { chunk[lane] } else { f32::NEG_INFINITY };
            high[lane] = greater(high[lane], logit);
        }
    }
    let last = words.get(whole.len()).copied().unwrap_or(0);
    for (lane, &logit) in rest.iter().enumerate().filter(|(lane, _)| last >> lane & 1 == 1) {
        high[lane] = greater(high[lane], logit);
    }
    high.into_iter().fold(f32::NEG_INFINITY, greater)
}

/// Sets every logit to −inf except those of `tokens` and `ends`, which keep their exact bits: weights are not added
/// here. `saved` is a buffer.
///
/// `O(V)`: one fill of the row, beside which saving and restoring `k` values costs little.
///
/// # Panics
/// If an id is not inside the row.
pub fn mask_row<L: Logit>(row: &mut [L], tokens: Tokens<'_>, ends: &[TokenId], saved: &mut Vec<L>) {
    match tokens {
        Tokens::Ids(_) | Tokens::Weighted(_) => {
            let ids = || tokens.ids().unwrap_or_default().iter().chain(ends);
            saved.clear();
            saved.extend(ids().map(|id| row[id.index()]));
            row.fill(L::NEG_INFINITY);
            for (id, &logit) in ids().zip(saved.iter()) {
                row[id.index()] = logit;
            }
        }
        Tokens::Mask(mask) => {
            saved.clear();
            saved.extend(ends.iter().map(|id| row[id.index()]));
            let words = mask.words().iter().copied().chain(std::iter::repeat(0));
            for (logits, word) in row.chunks_mut(32).zip(words) {
                match word {
                    u32::MAX => {}
                    0 => logits.fill(L::NEG_INFINITY),
                    _ => {
                        for (bit, logit) in logits.iter_mut().enumerate() {
                            *logit = if word >> bit & 1 == 1 { *logit } else { L::NEG_INFINITY };
                        }
                    }
                }
            }
            for (id, &logit) in ends.iter().zip(saved.iter()) {
                row[id.index()] = logit;
            }
        }
        Tokens::Except(except) => {
            let n_vocab = except.n_vocab().min(row.len());
            for id in except.denied_tokens().iter().filter(|id| ends.binary_search(id).is_err()) {
                row[id.index()] = L::NEG_INFINITY;
            }
            row[n_vocab..].fill(L::NEG_INFINITY);
        }
    }
}

/// Sets the bits of a set: bit `i % 32` of word `i / 32`.
///
/// # Panics
/// If there are too few words.
pub fn fill_bits(words: &mut [i32], tokens: Tokens<'_>) {
    match tokens {
        Tokens::Ids(_) | Tokens::Weighted(_) => {
            for id in tokens.ids().unwrap_or_default() {
                words[id.index() / 32] |= 1 << (id.index() % 32);
            }
        }
        Tokens::Mask(mask) => words.iter_mut().zip(mask.words()).for_each(|(word, &bits)| *word |= bits as i32),
        Tokens::Except(except) => {
            let mut denied = except.denied_tokens().iter().peekable();
            for (index, word) in words.iter_mut().enumerate() {
                let mut bits = first_bits(except.n_vocab().saturating_sub(index * 32));
                while let Some(id) = denied.next_if(|id| id.index() / 32 == index) {
                    bits &= !(1 << (id.index() % 32));
                }
                *word |= bits;
            }
        }
    }
}

/// Sets the first `ones` bits and clears the others.
pub fn clear_bits(words: &mut [i32], ones: usize) {
    for (index, word) in words.iter_mut().enumerate() {
        *word = first_bits(ones.saturating_sub(index * 32));
    }
}

/// A word whose first `ones` bits are set.
fn first_bits(ones: usize) -> i32 {
    match ones {
        32.. => -1,
        some => ((1u32 << some) - 1) as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(raw: &[u32]) -> &[TokenId] {
        bytemuck::cast_slice(raw)
    }

    #[test]
    fn ties_go_to_the_lowest_id_and_nan_never_wins() {
        let row = [f32::NAN, -0.0, 0.0, f32::NAN, 0.0];
        assert_eq!(argmax(&row, ids(&[0, 1, 2, 4])).unwrap().token.get(), 1);
        assert_eq!(argmax_row(&row).unwrap().token.get(), 1);
        let dead = [f32::NAN, f32::NEG_INFINITY];
        let pick = argmax(&dead, ids(&[0, 1])).unwrap();
        assert!(pick.is_starved() && pick.token.get() == 0);
        assert!(argmax(&dead, &[]).is_none() && argmax_row(&[]).is_none());
    }

    #[test]
    fn bits_and_ids_do_the_same() {
        let mut random = 7u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as u32
        };
        for n in [1usize, 31, 32, 33, 200] {
            for density in [1, 2, 40] {
                let row: Vec<f32> =
                    (0..n).map(|_| [f32::NAN, f32::NEG_INFINITY, 1.0, 2.0][next() as usize % 4]).collect();
                let mut words = vec![0u32; n.div_ceil(32)];
                for id in (0..n).filter(|_| next() % density == 0 || density == 1) {
                    words[id / 32] |= 1 << (id % 32);
                }
                let mask = Mask::new(&words, n).unwrap();
                let list: Vec<TokenId> = mask.iter().collect();
                let others: Vec<TokenId> = TokenId::all(n).filter(|&id| !mask.contains(id)).collect();
                let but = Tokens::Except(AllExcept::new(&others)).limit_to(n);
                let (bits, list) = (Tokens::Mask(mask), Tokens::Ids(&list));
                assert_eq!(argmax_of(&row, bits), argmax_of(&row, list));
                assert_eq!(argmax_of(&row, but), argmax_of(&row, list));
                let ends = ids(&[0]);
                let masked = |tokens| {
                    let mut row = row.clone();
                    mask_row(&mut row, tokens, ends, &mut Vec::new());
                    let mut words = vec![0; n.div_ceil(32)];
                    fill_bits(&mut words, tokens);
                    (row.into_iter().map(f32::to_bits).collect::<Vec<_>>(), words)
                };
                assert_eq!(masked(bits), masked(list));
                assert_eq!(masked(but), masked(list));
            }
        }
    }

    #[test]
    fn first_bits_up_to_any_boundary() {
        for ones in 0..=96 {
            let mut words = [77; 3];
            clear_bits(&mut words, ones);
            for bit in 0..96 {
                assert_eq!(words[bit / 32] >> (bit % 32) & 1, i32::from(bit < ones), "bit {bit} of {ones}");
            }
        }
    }
}

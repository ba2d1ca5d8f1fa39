//! Shrinks a candidate array to the tokens that a span allows. No pointers here: `table.rs` lends the array as a slice.
//!
//! Dropped candidates stay behind the kept ones, so the array remains a permutation of itself and nothing is ever
//! written past its end.

use super::abi::TokenData;
use trie_core::logits::{is_usable, with_weight};
use trie_core::{AllExcept, Allowed, Mode, TokenId, Tokens};

/// The selection index of an array in which nothing is selected yet.
const UNSELECTED: i64 = -1;

/// A candidate array: `data[..len]` is what remains of it.
#[derive(Debug)]
pub(crate) struct Candidates<'a> {
    data: &'a mut [TokenData],
    /// Number of candidates that remain.
    pub(crate) len: usize,
    /// True if `data[..len]` is in descending order of logits. False is always a safe answer.
    pub(crate) sorted: bool,
    /// Index of the chosen candidate, or −1.
    pub(crate) selected: i64,
    /// True if no legal candidate had a usable logit, so that one was put back.
    pub(crate) starved: bool,
}

impl<'a> Candidates<'a> {
    /// All of `data`, nothing dropped.
    pub(crate) fn new(data: &'a mut [TokenData], sorted: bool, selected: i64) -> Self {
        Self { len: data.len(), data, sorted, selected, starved: false }
    }

    /// Keeps the allowed candidates and adds the weights of the set. In greedy mode only the best candidate is kept,
    /// already selected.
    ///
    /// A candidate that an earlier sampler removed counts as −inf, and so does a NaN logit. An empty array stays empty,
    /// because it has no room for a candidate. If a damaged set allows nothing, one candidate remains: one of `stops`
    /// if the array has one.
    ///
    /// `O(k)` for `k` allowed tokens while `data[id].id == id` for each of them, else `O(n log k)`; `O(n)` at an open
    /// leaf, and where all but a few tokens are allowed.
    pub(crate) fn constrain(&mut self, allowed: Allowed<'_>, mode: Mode, n_vocab: usize, stops: &[TokenId]) {
        let lowest = match allowed {
            Allowed::All => return,
            Allowed::Nothing => return self.close(stops),
            Allowed::Open { .. } => {
                // Rows of padded models are wider than the vocabulary; what is past it is never legal.
                if !self.are_within(n_vocab) {
                    self.keep(|candidate| is_within(candidate, n_vocab));
                }
                self.weigh(&allowed);
                if mode == Mode::Sampled && self.len > 0 {
                    return;
                }
                Some(0)
            }
            Allowed::Only { tokens, ends } => {
                let moved = !self.sorted
                    && match (tokens, allowed.ids()) {
                        (Tokens::Except(except), _) => self.take_out(except, ends),
                        (_, Some(ids)) => self.gather(ids.iter().copied()),
                        (_, None) => self.gather(allowed.iter()),
                    };
                if !moved {
                    let legal = |id: i32| TokenId::try_from(id).is_ok_and(|id| allowed.contains(id));
                    self.keep(|candidate| legal(candidate.id));
                }
                self.weigh(&allowed);
                allowed.first().map(TokenId::as_i32)
            }
        };
        match mode {
            Mode::Greedy => self.pick(),
            Mode::Sampled => self.drop_unusable(),
        }
        if self.len == 0 {
            self.revive(lowest);
        }
    }

    /// Keeps exactly one candidate whatever is allowed: one of `ends` if there is one, else the first.
    pub(crate) fn close(&mut self, ends: &[TokenId]) {
        let at = self.remaining().iter().position(|candidate| is_in(ends, candidate.id)).unwrap_or(0);
        self.select(at);
    }

    /// Adds the weights of a set, if it has any, to the logits of the remaining candidates.
    fn weigh(&mut self, allowed: &Allowed<'_>) {
        if allowed.weights().is_none() {
            return;
        }
        for candidate in &mut self.data[..self.len] {
            let weight = TokenId::try_from(candidate.id).map_or(0.0, |token| allowed.weight_of(token));
            candidate.logit = with_weight(candidate.logit, weight);
        }
        self.sorted = self.len <= 1;
    }

    fn remaining(&self) -> &[TokenData] {
        &self.data[..self.len]
    }

    /// Returns whether a vocabulary of this size contains all remaining candidates.
    fn are_within(&self, n_vocab: usize) -> bool {
        self.remaining().iter().all(|candidate| is_within(candidate, n_vocab))
    }

    /// Moves the candidates with these ascending ids to the front. Returns `false`, with the order lost, if the array
    /// is not in id order at one of them.
    fn gather(&mut self, ids: impl Iterator<Item = TokenId>) -> bool {
        let mut kept = 0;
        self.selected = UNSELECTED;
        for id in ids {
            let from = id.index();
            match self.remaining().get(from) {
                // Ids ascend, so `kept <= from`, and no later id lies at a place that was already swapped.
                Some(candidate) if candidate.id == id.as_i32() => self.data.swap(kept, from),
                _ => return false,
            }
            kept += 1;
        }
        self.shorten(kept);
        self.sorted = kept <= 1;
        true
    }

    /// Moves the few forbidden candidates behind the others. The order of the others stays, because a draw adds them up
    /// in that order. Returns `false`, with nothing moved, if a forbidden candidate is not at the index of its id, or
    /// if the array is not the whole vocabulary.
    fn take_out(&mut self, except: AllExcept<'_>, ends: &[TokenId]) -> bool {
        let denied = || except.denied_tokens().iter().filter(|id| ends.binary_search(id).is_err());
        let at_home = |id: &&TokenId| self.data.get(id.index()).is_some_and(|candidate| candidate.id == id.as_i32());
        // What a padded row has beyond the vocabulary is taken out one by one; it may be all that an earlier sampler
        // left of it, and as long as the vocabulary by chance.
        let n_vocab = except.n_vocab();
        let whole = self.len == n_vocab && denied().all(|id| at_home(&id)) && self.are_within(n_vocab);
        if !whole {
            return false;
        }
        let mut kept = self.len;
        for id in denied().rev() {
            self.data[id.index()..kept].rotate_left(1);
            kept -= 1;
            self.data[kept].logit = f32::NEG_INFINITY;
        }
        self.shorten(kept);
        true
    }

    /// Keeps the candidates that pass, in their order; the others get −inf, for readers of the whole array.
    fn keep(&mut self, passes: impl Fn(&TokenData) -> bool) {
        let mut kept = 0;
        for at in 0..self.len {
            if passes(&self.data[at]) {
                self.data.swap(kept, at);
                kept += 1;
            }
        }
        for dropped in &mut self.data[kept..self.len] {
            dropped.logit = f32::NEG_INFINITY;
        }
        self.shorten(kept);
    }

    fn shorten(&mut self, kept: usize) {
        if kept != self.len {
            self.len = kept;
            self.selected = UNSELECTED;
        }
        self.sorted |= kept <= 1;
    }

    /// Keeps the highest logit, ties to the lowest id; nothing where all are −inf or NaN.
    fn pick(&mut self) {
        let mut best: Option<(usize, TokenData)> = None;
        for (at, &candidate) in self.remaining().iter().enumerate() {
            let better = best.is_none_or(|(_, best)| {
                candidate.logit > best.logit || (candidate.logit >= best.logit && candidate.id < best.id)
            });
            if better && is_usable(candidate.logit) {
                best = Some((at, candidate));
            }
        }
        match best {
            Some((at, _)) => self.select(at),
            None => self.shorten(0),
        }
    }

    /// Drops candidates that no draw may take (−inf, NaN); +inf is certainty, which llama.cpp's softmax cannot hold.
    fn drop_unusable(&mut self) {
        if self.remaining().iter().all(|candidate| candidate.logit.is_finite()) {
            return;
        }
        let certain = self.remaining().iter().any(|candidate| candidate.logit == f32::INFINITY);
        self.sorted = false;
        self.keep(|candidate| if certain { candidate.logit == f32::INFINITY } else { candidate.logit.is_finite() });
        if certain {
            self.data[..self.len].iter_mut().for_each(|candidate| candidate.logit = 0.0);
        }
    }

    /// Puts this legal token back as the only remaining candidate.
    fn revive(&mut self, lowest: Option<i32>) {
        self.starved = true;
        let (Some(first), Some(id)) = (self.data.first().copied(), lowest) else { return };
        let at = self.data.iter().position(|candidate| candidate.id == id).unwrap_or_else(|| {
            self.data[0] = TokenData { id, ..first };
            0
        });
        self.data[at].logit = 0.0;
        self.select(at);
    }

    /// Keeps this candidate alone, with a finite logit, and selects it.
    fn select(&mut self, at: usize) {
        if at >= self.data.len() {
            return;
        }
        self.data.swap(0, at);
        if !self.data[0].logit.is_finite() {
            self.data[0].logit = 0.0;
        }
        self.len = 1;
        self.sorted = true;
        self.selected = 0;
    }
}

fn is_within(candidate: &TokenData, n_vocab: usize) -> bool {
    usize::try_from(candidate.id).is_ok_and(|id| id < n_vocab)
}

fn is_in(ascending: &[TokenId], id: i32) -> bool {
    TokenId::try_from(id).is_ok_and(|id| ascending.binary_search(&id).is_ok())
}

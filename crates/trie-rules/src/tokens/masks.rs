//! Masks that were walked once: kept for each state, shared by all who walk the rule, bounded in bytes.

use crate::tokens::slices::{add, set};
use lru::{DefaultHasher, LruCache};
use std::hash::{BuildHasher, Hash};
use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::{Ending, Mask, Scratch, TokenId, Tokens};

/// How much may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MaskLimits {
    /// Bytes of all masks together, each with its entry, and of what the rule's [`Walker`](crate::Walker) keeps, about.
    /// The walker gets up to half of them, masks what it leaves.
    pub bytes: usize,
}

impl Default for MaskLimits {
    /// 64 MiB.
    fn default() -> Self {
        Self { bytes: 64 << 20 }
    }
}

impl MaskLimits {
    /// So many bytes.
    pub const fn bytes(bytes: usize) -> Self {
        Self { bytes }
    }
}

/// What is kept, and how often it was of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MaskStats {
    /// Masks kept.
    pub masks: usize,
    /// Bytes of them.
    pub bytes: usize,
    /// Bytes that the rule's [`Walker`](crate::Walker) keeps to find more of them.
    pub walker_bytes: usize,
    /// How often one was there already.
    pub hits: u64,
    /// How often one was walked.
    pub misses: u64,
}

/// Tokens that may come, in whichever form is smaller. A clone is one reference count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Legal {
    /// Few: ascending ids.
    Ids(Arc<[TokenId]>),
    /// Many: one bit each, bit `id % 32` of word `id / 32`.
    Words(Arc<[u32]>),
}

impl Legal {
    /// Of all tokens of a vocabulary, given as bits.
    pub fn of(words: &[u32]) -> Self {
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        // As many ids as take the memory of the bits.
        if count > words.len() {
            return Self::Words(words.into());
        }
        let bits = |(at, &word): (usize, &u32)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                TokenId::new(at as u32 * 32 + bit)
            })
        };
        Self::Ids(words.iter().enumerate().flat_map(bits).collect())
    }

    /// Whether none may come.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Ids(ids) if ids.is_empty())
    }

    /// Whether this one may come.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::Ids(ids) => ids.binary_search(&token).is_ok(),
            Self::Words(words) => {
                words.get(token.index() / 32).is_some_and(|word| word >> (token.index() % 32) & 1 == 1)
            }
        }
    }

    /// Whether a text is over where these go on, if one ends there.
    pub fn ending(&self, ends: bool) -> Ending {
        match (ends, self.is_empty()) {
            (false, _) => Ending::No,
            (true, false) => Ending::May,
            (true, true) => Ending::Must,
        }
    }

    /// As a constraint lends them.
    pub fn lent(self, n_vocab: usize, scratch: &mut Scratch) -> Tokens<'_> {
        match self {
            Self::Ids(ids) => Tokens::Ids(scratch.keep_ids(ids)),
            Self::Words(words) => {
                Mask::new(scratch.keep_words(words), n_vocab).map_or_else(Tokens::default, Tokens::Mask)
            }
        }
    }

    /// Bytes held.
    pub fn nbytes(&self) -> usize {
        match self {
            Self::Ids(ids) => size_of_val(&**ids),
            Self::Words(words) => size_of_val(&**words),
        }
    }

    /// Of so many tokens of a vocabulary, given as ids in any order.
    pub fn of_ids(mut ids: Vec<TokenId>, n_vocab: usize) -> Self {
        if ids.len() <= n_vocab.div_ceil(32) {
            ids.sort_unstable();
            ids.dedup();
            return Self::Ids(ids.into());
        }
        let mut words = vec![0; n_vocab.div_ceil(32)];
        for id in &ids {
            set(&mut words, *id);
        }
        Self::Words(words.into())
    }

    /// Sets the bits of its tokens.
    pub fn add_to(&self, words: &mut [u32]) {
        match self {
            Self::Ids(ids) => ids.iter().for_each(|&id| set(words, id)),
            Self::Words(own) => add(words, own),
        }
    }
}

/// Parts; each has a lock of its own.
const PARTS: usize = 16;

#[derive(Debug)]
pub(crate) struct Masks<S: Eq + Hash> {
    parts: Vec<Mutex<Part<S>>>,
    hasher: DefaultHasher,
    limits: MaskLimits,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug)]
struct Part<S: Eq + Hash> {
    kept: LruCache<S, Legal>,
    bytes: usize,
}

impl<S: Eq + Hash + Clone> Masks<S> {
    /// What an entry takes beside its tokens: its state, what counts references, its place in a list and in a table.
    const ENTRY: usize = size_of::<S>() + size_of::<Legal>() + 96;

    pub(crate) fn new(limits: MaskLimits) -> Self {
        let part = || Mutex::new(Part { kept: LruCache::unbounded(), bytes: 0 });
        Self {
            parts: (0..PARTS).map(|_| part()).collect(),
            hasher: DefaultHasher::default(),
            limits,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    fn part(&self, state: &S) -> MutexGuard<'_, Part<S>> {
        let part = &self.parts[self.hasher.hash_one(state) as usize % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept for a state, or what `walk` finds, with how many bytes are taken by others. Two threads may walk
    /// the same state at once; both find the same.
    pub(crate) fn get<E>(&self, state: &S, walk: impl FnOnce() -> Result<(Legal, usize), E>) -> Result<Legal, E> {
        if let Some(kept) = self.part(state).kept.get(state) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(kept.clone());
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let (found, taken) = walk()?;
        let limit = self.limits.bytes.saturating_sub(taken) / PARTS;
        let bytes = found.nbytes() + Self::ENTRY;
        let mut part = self.part(state);
        if let Some(before) = part.kept.put(state.clone(), found.clone()) {
            part.bytes -= before.nbytes() + Self::ENTRY;
        }
        part.bytes += bytes;
        while part.bytes > limit {
            let Some((_, oldest)) = part.kept.pop_lru() else { break };
            part.bytes -= oldest.nbytes() + Self::ENTRY;
        }
        Ok(found)
    }

    /// Whether every part has room for so many more masks, with how many bytes are taken by others.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn has_room(&self, count: usize, taken: usize, n_vocab: usize) -> bool {
        let most = count * (size_of::<u32>() * n_vocab.div_ceil(32) + Self::ENTRY);
        let limit = self.limits.bytes.saturating_sub(taken) / PARTS;
        self.parts.iter().all(|part| part.lock().unwrap_or_else(PoisonError::into_inner).bytes + most <= limit)
    }

    pub(crate) fn stats(&self) -> MaskStats {
        let mut stats = MaskStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            ..MaskStats::default()
        };
        for part in &self.parts {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            stats.masks += part.kept.len();
            stats.bytes += part.bytes;
        }
        stats
    }
}

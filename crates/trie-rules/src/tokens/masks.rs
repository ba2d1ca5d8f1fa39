//! Cache of token masks: one mask for each state, shared by all spans of the rule, and bounded in bytes.

use crate::tokens::memory::KeptMemory;
use crate::tokens::slices::{add, set};
use lru::{DefaultHasher, LruCache};
use std::hash::{BuildHasher, Hash};
use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::{Ending, Mask, Scratch, TokenId, Tokens};

/// Size limits of the mask cache of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MaskLimits {
    /// Approximate limit in bytes on all masks with their entries, and on the data of the rule's
    /// [`Walker`](crate::Walker). The walker may use up to half of it, and masks use the rest. All rules over a
    /// vocabulary share another limit: see [`MaskMemory`](crate::MaskMemory).
    pub bytes: usize,
}

impl Default for MaskLimits {
    /// Returns a limit of 64 MiB.
    fn default() -> Self {
        Self { bytes: 64 << 20 }
    }
}

impl MaskLimits {
    /// Sets the limit in bytes.
    pub const fn bytes(bytes: usize) -> Self {
        Self { bytes }
    }
}

/// Statistics of the mask cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MaskStats {
    /// Number of cached masks.
    pub masks: usize,
    /// Bytes of the cached masks.
    pub bytes: usize,
    /// Bytes that the rule's [`Walker`](crate::Walker) keeps to compute further masks.
    pub walker_bytes: usize,
    /// Number of cache hits.
    pub hits: u64,
    /// Number of cache misses.
    pub misses: u64,
}

/// The allowed tokens, in the smaller of two forms. A clone costs one reference count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Legal {
    /// Few tokens: ascending ids.
    Ids(Arc<[TokenId]>),
    /// Many: one bit each, bit `id % 32` of word `id / 32`.
    Words(Arc<[u32]>),
}

impl Legal {
    /// Builds the set from a token mask over a vocabulary.
    pub fn from_mask(words: &[u32]) -> Self {
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

    /// Returns whether no token is allowed.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Ids(ids) if ids.is_empty())
    }

    /// Returns whether this token is allowed.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::Ids(ids) => ids.binary_search(&token).is_ok(),
            Self::Words(words) => {
                words.get(token.index() / 32).is_some_and(|word| word >> (token.index() % 32) & 1 == 1)
            }
        }
    }

    /// Returns whether a text at a state with these tokens may, must or cannot end; `ends` says whether a text ends
    /// there.
    pub fn ending(&self, ends: bool) -> Ending {
        match (ends, self.is_empty()) {
            (false, _) => Ending::No,
            (true, false) => Ending::May,
            (true, true) => Ending::Must,
        }
    }

    /// Returns the tokens in the form that a constraint lends.
    pub fn lend(self, n_vocab: usize, scratch: &mut Scratch) -> Tokens<'_> {
        match self {
            Self::Ids(ids) => Tokens::Ids(scratch.keep_ids(ids)),
            Self::Words(words) => {
                Mask::new(scratch.keep_words(words), n_vocab).map_or_else(Tokens::default, Tokens::Mask)
            }
        }
    }

    /// Returns the number of bytes held.
    pub fn nbytes(&self) -> usize {
        match self {
            Self::Ids(ids) => size_of_val(&**ids),
            Self::Words(words) => size_of_val(&**words),
        }
    }

    /// Returns the number of its clones.
    pub(crate) fn holders(&self) -> usize {
        match self {
            Self::Ids(ids) => Arc::strong_count(ids),
            Self::Words(words) => Arc::strong_count(words),
        }
    }

    /// Builds the set from ids in any order, for a vocabulary of this size.
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
    /// Bytes among them that cannot be shared with other rules.
    own: usize,
}

impl<S: Eq + Hash + Clone> Masks<S> {
    /// Overhead of an entry beside its tokens: its state, reference counts, its place in a list and in a table.
    const ENTRY: usize = size_of::<S>() + size_of::<Legal>() + 96;

    pub(crate) fn new(limits: MaskLimits) -> Self {
        let part = || Mutex::new(Part { kept: LruCache::unbounded(), bytes: 0, own: 0 });
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

    /// Returns the cached tokens of a state.
    pub(crate) fn cached_tokens(&self, state: &S) -> Option<Legal> {
        let known = self.part(state).kept.get(state).cloned()?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(known)
    }

    /// Returns the result of `walk` for a state that is not cached; `walk` also returns the number of bytes taken by
    /// others. Two threads may walk the same state at once; both find the same.
    pub(crate) fn find<E>(&self, state: &S, walk: impl FnOnce() -> Result<(Legal, usize), E>) -> Result<Legal, E> {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let (found, taken) = walk()?;
        let limit = self.limits.bytes.saturating_sub(taken) / PARTS;
        let bytes = found.nbytes() + Self::ENTRY;
        let mut part = self.part(state);
        let own = |legal: &Legal| KeptMemory::own_bytes(legal) + Self::ENTRY;
        if let Some(before) = part.kept.put(state.clone(), found.clone()) {
            part.bytes -= before.nbytes() + Self::ENTRY;
            part.own -= own(&before);
        }
        part.bytes += bytes;
        part.own += own(&found);
        while part.bytes > limit {
            let Some((_, oldest)) = part.kept.pop_lru() else { break };
            part.bytes -= oldest.nbytes() + Self::ENTRY;
            part.own -= own(&oldest);
        }
        Ok(found)
    }

    /// Returns the largest size of a mask in bytes.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn most_bytes(n_vocab: usize) -> usize {
        size_of::<u32>() * n_vocab.div_ceil(32) + Self::ENTRY
    }

    /// Returns whether every part has room for so many more masks, given the number of bytes taken by others.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn has_room(&self, count: usize, taken: usize, n_vocab: usize) -> bool {
        let most = count * Self::most_bytes(n_vocab);
        let limit = self.limits.bytes.saturating_sub(taken) / PARTS;
        self.parts.iter().all(|part| part.lock().unwrap_or_else(PoisonError::into_inner).bytes + most <= limit)
    }

    /// Bytes that no other rule may have, too.
    pub(crate) fn own_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).own).sum()
    }

    /// Forgets all cached token masks.
    pub(crate) fn clear(&self) {
        for part in &self.parts {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            *part = Part { kept: LruCache::unbounded(), bytes: 0, own: 0 };
        }
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

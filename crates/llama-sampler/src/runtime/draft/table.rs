//! Drafts from all texts of a model: a table of n-grams.

use super::proposer::{Ahead, Proposer};
use crate::runtime::error::RuntimeError;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trie_core::TokenId;

/// The token that last followed each n-gram, for n-grams of several lengths. It has a fixed size, and a new entry
/// replaces an old one in its place. Threads share it without a lock: an entry is one number, and a wrong one is just a
/// wrong guess.
pub(super) struct NgramTable {
    /// The upper half of an n-gram's hash, and the token; 0 where there is none.
    entries: Box<[AtomicU64]>,
}

impl NgramTable {
    /// Lengths of n-grams, the one that is looked up first at the front.
    const LENGTHS: [usize; 3] = [8, 5, 3];
    /// Number of entries: 2 MiB.
    const ENTRIES: usize = 1 << 18;

    fn place(&self, ngram: &[TokenId]) -> (&AtomicU64, u64) {
        let mut hasher = DefaultHasher::new();
        ngram.hash(&mut hasher);
        let hash = hasher.finish();
        // The lowest bit tells an entry from none.
        (&self.entries[hash as usize % Self::ENTRIES], hash >> 32 << 32 | 1 << 32)
    }

    /// Notes that this token followed these.
    fn insert(&self, tokens: &[TokenId], token: TokenId) {
        for length in Self::LENGTHS {
            if let Some(begin) = tokens.len().checked_sub(length) {
                let (entry, key) = self.place(&tokens[begin..]);
                entry.store(key | u64::from(token.get()), Ordering::Relaxed);
            }
        }
    }

    /// Returns the token that last followed the longest n-gram of at least this length.
    fn look_up(&self, tokens: &[TokenId], least: usize) -> Option<TokenId> {
        Self::LENGTHS.iter().filter(|&&length| length >= least).find_map(|&length| {
            let (entry, key) = self.place(&tokens[tokens.len().checked_sub(length)?..]);
            let found = entry.load(Ordering::Relaxed);
            (found >> 32 << 32 == key).then(|| TokenId::new(found as u32)).flatten()
        })
    }
}

impl Default for NgramTable {
    fn default() -> Self {
        Self { entries: (0..Self::ENTRIES).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl std::fmt::Debug for NgramTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NgramTable {{ entries: {} }}", self.entries.len())
    }
}

/// One generation that reads and fills the table.
pub(super) struct TableProposer {
    table: Arc<NgramTable>,
    /// Tokens that must be alike.
    least: usize,
    /// Number of tokens of the text that the table has taken in.
    learned: usize,
}

impl TableProposer {
    pub(super) fn new(table: Arc<NgramTable>, least: usize) -> Self {
        Self { table, least, learned: 0 }
    }
}

impl Proposer for TableProposer {
    fn learn(&mut self, text: &[TokenId]) {
        for at in self.learned.min(text.len())..text.len() {
            self.table.insert(&text[..at], text[at]);
        }
        self.learned = text.len();
    }

    fn next(
        &mut self,
        tokens: &[TokenId],
        _: &mut dyn Ahead,
        _: &mut dyn FnMut() -> bool,
    ) -> Result<Option<TokenId>, RuntimeError> {
        Ok(self.table.look_up(tokens, self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_token_after_the_longest_ngram() {
        let ids = |ids: &[u32]| ids.iter().map(|&id| TokenId::new(id).unwrap()).collect::<Vec<_>>();
        let table = Arc::new(NgramTable::default());
        let learn = |text: &[u32]| TableProposer::new(Arc::clone(&table), 2).learn(&ids(text));
        assert_eq!(table.look_up(&ids(&[1, 2, 3]), 2), None);
        learn(&[1, 2, 3, 4]);
        assert_eq!(table.look_up(&ids(&[9, 1, 2, 3]), 2), TokenId::new(4));
        learn(&[0, 0, 1, 2, 3, 0]);
        assert_eq!(table.look_up(&ids(&[9, 1, 2, 3]), 2), TokenId::new(0), "the newer one");
        learn(&[9, 9, 1, 2, 3, 5]);
        assert_eq!(table.look_up(&ids(&[0, 0, 1, 2, 3]), 2), TokenId::new(0), "the longer one");
        assert_eq!(table.look_up(&ids(&[2, 3]), 2), None);
        assert_eq!(table.look_up(&ids(&[9, 1, 2, 3]), 5), None, "three tokens are too few");
    }
}

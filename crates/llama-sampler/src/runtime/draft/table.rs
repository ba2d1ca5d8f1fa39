//! Drafts from all texts of a model: a table of n-grams.

use super::proposer::{Ahead, Proposer};
use crate::runtime::error::RuntimeError;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trie_core::TokenId;

/// The two tokens that last followed each n-gram, for n-grams of several lengths. It has a fixed size, and a new entry
/// replaces the older of two in its place. Threads share it without a lock: an entry is one number, and a wrong one is
/// just a wrong guess.
pub(super) struct NgramTable {
    /// The upper half of an n-gram's hash, and the token; 0 where there is none. The newer of two goes first.
    entries: Box<[[AtomicU64; 2]]>,
}

impl NgramTable {
    /// Lengths of n-grams, the one that is looked up first at the front.
    const LENGTHS: [usize; 3] = [8, 5, 3];
    /// Number of places: 2 MiB.
    const PLACES: usize = 1 << 17;

    fn place(&self, ngram: &[TokenId]) -> (&[AtomicU64; 2], u64) {
        let mut hasher = DefaultHasher::new();
        ngram.hash(&mut hasher);
        let hash = hasher.finish();
        // The lowest bit tells an entry from none.
        (&self.entries[hash as usize % Self::PLACES], hash >> 32 << 32 | 1 << 32)
    }

    /// Notes that this token followed these.
    fn insert(&self, tokens: &[TokenId], token: TokenId) {
        for length in Self::LENGTHS {
            if let Some(begin) = tokens.len().checked_sub(length) {
                let ([newer, older], key) = self.place(&tokens[begin..]);
                let (entry, before) = (key | u64::from(token.get()), newer.load(Ordering::Relaxed));
                if before != entry {
                    older.store(before, Ordering::Relaxed);
                    newer.store(entry, Ordering::Relaxed);
                }
            }
        }
    }

    /// Returns at most `most` tokens that followed n-grams of at least this length: those after longer ones first, and
    /// then those that came last.
    fn look_up(&self, tokens: &[TokenId], least: usize, most: usize) -> Vec<TokenId> {
        let mut found = Vec::new();
        for &length in Self::LENGTHS.iter().filter(|&&length| length >= least && length <= tokens.len()) {
            let (entries, key) = self.place(&tokens[tokens.len() - length..]);
            let entries = entries.iter().map(|entry| entry.load(Ordering::Relaxed));
            for token in entries.filter(|entry| entry >> 32 << 32 == key).filter_map(|entry| TokenId::new(entry as u32))
            {
                if found.len() == most {
                    return found;
                }
                if !found.contains(&token) {
                    found.push(token);
                }
            }
        }
        found
    }
}

impl Default for NgramTable {
    fn default() -> Self {
        Self { entries: (0..Self::PLACES).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect() }
    }
}

impl std::fmt::Debug for NgramTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NgramTable {{ entries: {} }}", 2 * self.entries.len())
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

    fn guess(
        &mut self,
        tokens: &[TokenId],
        most: usize,
        _: &mut dyn Ahead,
        _: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<TokenId>, RuntimeError> {
        Ok(self.table.look_up(tokens, self.least, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tokens_after_the_longest_ngram() {
        let ids = |ids: &[u32]| ids.iter().map(|&id| TokenId::new(id).unwrap()).collect::<Vec<_>>();
        let table = Arc::new(NgramTable::default());
        let learn = |text: &[u32]| TableProposer::new(Arc::clone(&table), 2).learn(&ids(text));
        let found = |text: &[u32], least: usize, most: usize| {
            table.look_up(&ids(text), least, most).into_iter().map(TokenId::get).collect::<Vec<_>>()
        };
        assert!(found(&[1, 2, 3], 2, 4).is_empty());
        learn(&[1, 2, 3, 4]);
        assert_eq!(found(&[9, 1, 2, 3], 2, 1), [4]);
        learn(&[0, 0, 1, 2, 3, 0]);
        assert_eq!(found(&[9, 1, 2, 3], 2, 1), [0], "the newer one");
        learn(&[9, 9, 1, 2, 3, 5]);
        assert_eq!(found(&[0, 0, 1, 2, 3], 2, 1), [0], "the longer one");
        assert_eq!(found(&[0, 0, 1, 2, 3], 2, 4), [0, 5], "then the last two of the shorter one, each token once");
        learn(&[9, 9, 1, 2, 3, 5]);
        assert_eq!(found(&[9, 1, 2, 3], 2, 4), [5, 0], "one that comes again leaves the other");
        assert!(found(&[2, 3], 2, 4).is_empty());
        assert!(found(&[9, 1, 2, 3], 5, 4).is_empty(), "three tokens are too few");
    }
}

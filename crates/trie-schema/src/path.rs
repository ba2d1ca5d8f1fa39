//! The text that was written, as states that share what they have in common.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::LazyLock;
use trie_core::TokenId;

/// Which text a state stands for: its length, and two hashes by polynomials over a prime of 61 bits, whose bases are
/// drawn when the program starts. Two texts of `n` bytes have the same with a chance of `(n / 2^61)^2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Key {
    pub(crate) bytes: u64,
    hashes: [u64; 2],
}

impl Key {
    pub(crate) fn push(mut self, bytes: &[u8]) -> Self {
        const PRIME: u64 = (1 << 61) - 1;
        static BASES: LazyLock<[u64; 2]> = LazyLock::new(|| {
            let random = RandomState::new();
            // At least 2^32, or short texts would not be spread.
            [0u8, 1].map(|nth| (random.hash_one(nth) % (PRIME - (1 << 32))) + (1 << 32))
        });
        for (hash, &base) in self.hashes.iter_mut().zip(&*BASES) {
            for &byte in bytes {
                let product = u128::from(*hash) * u128::from(base) + u128::from(byte) + 1;
                let folded = (product & u128::from(PRIME)) as u64 + (product >> 61) as u64;
                *hash = if folded >= PRIME { folded - PRIME } else { folded };
            }
        }
        self.bytes += bytes.len() as u64;
        self
    }
}

/// A text, token by token; the beginning is shared with all that began so.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) key: Key,
    /// The last token, and what came before it; none at the start.
    pub(crate) last: Option<(TokenId, Arc<Path>)>,
}

impl Path {
    pub(crate) fn start() -> Arc<Self> {
        Arc::new(Self { key: Key::default(), last: None })
    }

    /// One token more.
    pub(crate) fn push(self: &Arc<Self>, token: TokenId, bytes: &[u8]) -> Arc<Self> {
        Arc::new(Self { key: self.key.push(bytes), last: Some((token, Arc::clone(self))) })
    }

    /// This text, and those before it: one token less each.
    pub(crate) fn back(from: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::successors(Some(from), |path| path.before())
    }

    fn before(&self) -> Option<&Arc<Self>> {
        self.last.as_ref().map(|(_, before)| before)
    }

    /// The longest text with which both begin and at which both have a state; `None` if that is more than so many bytes
    /// back from `to`. Walks back over what they do not share.
    pub(crate) fn shared(from: &Arc<Self>, to: &Arc<Self>, back: u64) -> Option<Arc<Self>> {
        let (mut one, mut other) = (from, to);
        while one.key != other.key {
            if to.key.bytes - other.key.bytes > back {
                return None;
            }
            let (one_bytes, other_bytes) = (one.key.bytes, other.key.bytes);
            if one_bytes >= other_bytes {
                one = one.before()?;
            }
            if other_bytes >= one_bytes {
                other = other.before()?;
            }
        }
        (to.key.bytes - other.key.bytes <= back).then(|| Arc::clone(other))
    }

    /// The tokens after this text, up to `to`, which goes on from it.
    pub(crate) fn tokens_to(&self, to: &Arc<Self>) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        let mut at = to;
        while at.key.bytes > self.key.bytes {
            let Some((token, before)) = &at.last else { break };
            tokens.push(*token);
            at = before;
        }
        tokens.reverse();
        tokens
    }
}

impl Drop for Path {
    /// One after the other: a text of a million tokens must not need a million frames.
    fn drop(&mut self) {
        let mut last = self.last.take();
        while let Some((_, before)) = last {
            last = Arc::try_unwrap(before).ok().and_then(|mut path| path.last.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(from: &Arc<Path>, tokens: &[&str]) -> Arc<Path> {
        let id = TokenId::new(1).unwrap();
        tokens.iter().fold(Arc::clone(from), |path, token| path.push(id, token.as_bytes()))
    }

    #[test]
    fn a_text_has_one_key_in_every_tokenisation() {
        let start = Path::start();
        assert_eq!(path(&start, &["ab", "c"]).key, path(&start, &["a", "b", "c"]).key);
        assert_ne!(path(&start, &["abc"]).key, path(&start, &["abd"]).key);
        assert_ne!(path(&start, &["\0"]).key, start.key);
        assert_ne!(path(&start, &["\0"]).key, path(&start, &["\0\0"]).key);
    }

    #[test]
    fn what_two_texts_share_is_found() {
        let start = Path::start();
        let begin = path(&start, &["one", "two"]);
        let (one, other) = (path(&begin, &["three"]), path(&begin, &["f", "our"]));
        let shared = |from: &_, to: &_| Path::shared(from, to, u64::MAX).unwrap().key;
        assert_eq!(shared(&one, &other), begin.key);
        assert_eq!(shared(&other, &one), begin.key);
        assert_eq!(shared(&begin, &one), begin.key);
        assert_eq!(shared(&one, &begin), begin.key);
        assert_eq!(shared(&one, &path(&start, &["x"])), start.key);
        assert_eq!(Path::shared(&one, &other, 3).map(|path| path.key), None);
        assert_eq!(Path::shared(&one, &other, 4).map(|path| path.key), Some(begin.key));
        assert_eq!(begin.tokens_to(&other).len(), 2);
        // The same text in other tokens.
        assert_eq!(shared(&path(&start, &["o", "ne"]), &one), path(&start, &["one"]).key);
    }

    #[test]
    fn a_long_text_is_dropped_without_recursion() {
        let mut at = Path::start();
        for _ in 0..1_000_000 {
            at = at.push(TokenId::new(0).unwrap(), b"x");
        }
        drop(at);
    }
}

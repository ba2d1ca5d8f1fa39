//! The payload cache of a session: the same text, or a different text with the same content, is built only once.

use crate::payload::{Payload, PayloadError};
use lru::LruCache;
use sha2::{Digest as _, Sha256};
use std::num::NonZeroUsize;
use std::sync::Arc;
use trie_core::AnyConstraint;

type Digest = [u8; 32];

/// Key of a text: its SHA-256, and the size of the vocabulary, which decides which leaves are dropped.
type TextKey = (Digest, Option<usize>);
type Constraints = Arc<[(String, AnyConstraint)]>;

/// Cache of the least recently used payloads. One session owns it, so it needs no locks. A trie in use survives its
/// eviction.
#[derive(Debug)]
pub struct TrieCache {
    by_text: LruCache<TextKey, Arc<Payload>>,
    by_content: LruCache<Digest, Constraints>,
    stats: CacheStats,
}

/// Statistics of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CacheStats {
    /// Payloads found by their text.
    pub hits: u64,
    /// Payloads with a new text but known content: the tries are shared.
    pub content_hits: u64,
    /// Number of payloads built.
    pub misses: u64,
    /// Texts that were evicted.
    pub evictions: u64,
    /// Number of payloads held.
    #[serde(rename = "size")]
    pub len: usize,
    /// Largest number of texts in the cache.
    pub capacity: usize,
}

impl Default for TrieCache {
    fn default() -> Self {
        Self::new(Self::CAPACITY)
    }
}

impl TrieCache {
    /// Payloads held by default.
    pub const CAPACITY: NonZeroUsize = NonZeroUsize::new(128).unwrap();

    /// An empty cache for this many payloads.
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self { by_text: LruCache::new(capacity), by_content: LruCache::new(capacity), stats: CacheStats::default() }
    }

    /// The payload of this text, from the cache where possible. A hit costs one SHA-256 of the text.
    ///
    /// # Errors
    /// As [`Payload::from_json`]; nothing is kept then.
    pub fn payload(&mut self, text: &[u8], n_vocab: Option<usize>) -> Result<Arc<Payload>, PayloadError> {
        let key = (text_digest(text), n_vocab);
        if let Some(found) = self.by_text.get(&key) {
            self.stats.hits += 1;
            return Ok(found.clone());
        }
        let mut payload = Payload::from_json(text, n_vocab)?;
        let content = content_key(&payload);
        if let Some(constraints) = self.by_content.get(&content) {
            self.stats.content_hits += 1;
            payload.constraints = constraints.clone();
        } else {
            self.stats.misses += 1;
            self.by_content.put(content, payload.constraints.clone());
        }
        let payload = Arc::new(payload);
        if self.by_text.push(key, payload.clone()).is_some() {
            self.stats.evictions += 1;
        }
        Ok(payload)
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> CacheStats {
        CacheStats { len: self.by_text.len(), capacity: self.by_text.cap().get(), ..self.stats }
    }

    /// Forgets all payloads; the counts stay.
    pub fn clear(&mut self) {
        self.by_text.clear();
        self.by_content.clear();
    }
}

fn text_digest(text: &[u8]) -> Digest {
    Sha256::digest(text).into()
}

fn content_key(payload: &Payload) -> Digest {
    let mut hash = Sha256::new();
    let mut text = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    text(&payload.model_id);
    text(&payload.constraints.len().to_string());
    for (path, _) in payload.constraints.iter() {
        text(path);
    }
    for (_, trie) in payload.tries() {
        trie.hash_content(&mut |bytes| hash.update(bytes));
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of a text is that of every implementation: another one's records can be told apart by it.
    #[test]
    fn texts_are_known_by_the_digest_in_the_vectors() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/payload_and_sampler.json");
        let all: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let cases = all["cases"].as_array().unwrap().iter().filter(|case| case["id"] == "cache-key-sha256");
        let mut checked = 0;
        for case in cases {
            let text = case["input"]["payload_text"].as_str().unwrap().as_bytes();
            let mut cache = TrieCache::default();
            cache.payload(text, Some(1000)).unwrap();
            let hex = case["expect"]["sha256_hex_of_bytes"].as_str().unwrap();
            let digest = std::array::from_fn(|byte| u8::from_str_radix(&hex[2 * byte..][..2], 16).unwrap());
            assert!(cache.by_text.iter().map(|(&key, _)| key).eq([(digest, Some(1000))]));
            checked += 1;
        }
        assert_eq!(checked, 1);
    }
}

//! A cache of payloads.

use super::structs::{tokentrie_cache, tokentrie_cache_stats};
use crate::error::{Error, done};
use crate::handles::{Kind, Table};
use crate::memory::Out;
use crate::status::tokentrie_status;
use std::num::NonZeroUsize;
use trie_formats::TrieCache;

pub(super) static CACHES: Table<TrieCache> = Table::new(Kind::Cache);

/// The most payloads that a cache can hold.
const LARGEST: usize = 1 << 20;

/// An empty cache, least recently used out first; capacity 0 takes 128.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_cache_new(capacity: usize, cache: Out<tokentrie_cache>) -> tokentrie_status {
    done(|| {
        cache.check("cache")?;
        if capacity > LARGEST {
            return Err(Error::argument(format!("capacity is {capacity}: it may be {LARGEST}")));
        }
        cache.put(CACHES.insert(TrieCache::new(NonZeroUsize::new(capacity).unwrap_or(TrieCache::CAPACITY)))?);
        Ok(())
    })
}

/// Returns the statistics of a cache. The caller sets stats->size.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_cache_get_stats(
    cache: tokentrie_cache,
    stats: Out<tokentrie_cache_stats>,
) -> tokentrie_status {
    done(|| {
        stats.check_fields("stats")?;
        let all = CACHES.with_waiting(cache, |cache| Ok(cache.stats()))?;
        let known = tokentrie_cache_stats {
            size: 0,
            capacity: all.capacity as u32,
            held: all.len as u64,
            hits: all.hits,
            content_hits: all.content_hits,
            misses: all.misses,
            evictions: all.evictions,
        };
        stats.put_fields(&known, "stats")
    })
}

/// Forgets all payloads; tries that were made stay.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_cache_clear(cache: tokentrie_cache) -> tokentrie_status {
    done(|| {
        CACHES.with_waiting(cache, |cache| {
            cache.clear();
            Ok(())
        })
    })
}

/// Ends the handle; tries that were made stay.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_cache_free(cache: tokentrie_cache) -> tokentrie_status {
    done(|| CACHES.free(cache))
}

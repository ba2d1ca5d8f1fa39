//! Token tries as files and texts, and back.
//!
//! [`TrieFile`] opens and saves `.ttrie` files, which are mapped into memory. An [`ExternalBuilder`] writes a set that
//! does not fit into memory. A [`Payload`] is the JSON form of one or several tries, and a [`TrieCache`] keeps
//! payloads. A [`PrefixTable`] is the JSON form of another program. A [`TextGrammar`] writes texts as GBNF or as a
//! regular expression. [`TrieOutline`] and [`svg`] display a set. Only `map.rs`, which maps files, contains `unsafe`
//! code.
//!
//! ```
//! use std::sync::Arc;
//! use trie_core::{Sampler, SamplerOptions, SpanRules, TokenId};
//! use trie_formats::Payload;
//!
//! let json = br#"{"modelId": "m", "descriptors": [{"path": "action", "leaves": [
//!     {"name": "THINK", "tokens": [5, 6]}, {"name": "STOP", "tokens": [2]}]}]}"#;
//! let payload = Payload::from_json(json, Some(8))?;
//! let rules = SpanRules::new(payload.constraints, 8)?;
//! let mut sampler = Sampler::new(Arc::new(rules), SamplerOptions::default())?;
//! let mut tokens = Vec::new();
//! sampler.advance(&[0.0, 0.1, 0.2, 0.3, 0.4, 0.9, 0.6, 9.0], &mut tokens)?;
//! assert_eq!(tokens, [TokenId::new(5).unwrap(), TokenId::new(6).unwrap()]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod byte_trie_image;
mod cache;
mod drawing;
mod export;
mod external;
mod file;
#[allow(unsafe_code, reason = "the map itself; every other file is safe")]
mod map;
mod outline;
mod payload;
mod prefix_table;

pub use byte_trie_image::{ByteTrieError, ByteTrieImage};
pub use cache::{CacheStats, TrieCache};
pub use drawing::{BoxKind, DrawnBox, svg};
pub use export::{NotInGbnf, TextGrammar};
pub use external::{ExternalBuilder, ExternalError};
pub use file::{FileError, FileOptions, FileProblem, FileStamp, TrieFile, replace_whole};
pub use outline::{OutlineLimits, OutlineNode, TrieOutline};
pub use payload::{DroppedLeaf, Payload, PayloadError, PayloadReport};
pub use prefix_table::{PrefixTable, PrefixTableError, PrefixTableReport, SkippedEntry, SkippedWhy, Strictness};

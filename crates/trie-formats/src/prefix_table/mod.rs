//! Prefix tables: the JSON input of RTP-LLM's tree decoding, as a trie.
//!
//! ```json
//! {"start_token_id": 225, "end_token_id": 2, "sep": "_",
//!  "prefix_dict": {"225": [64000, 64001], "225_64000": [7, 8], "225_64000_7": [2]}}
//! ```
//!
//! A key is a *status*: the path so far, starting with the start token. Its list holds the tokens that may follow. A
//! listed token that has no key of its own, or has an empty list, allows only the end token. The end token in a list
//! means that a value may end there.
//!
//! `read.rs` reads the JSON as a stream, `rows.rs` stores the rows, and `walk.rs` determines which paths are values.

mod problem;
mod read;
mod rows;
mod walk;

pub use problem::{PrefixTableError, PrefixTableReport, SkippedEntry, SkippedWhy};

use problem::shorten;
use read::Raw;
use std::convert::Infallible;
use std::io::Read;
use trie_core::TokenId;
use trie_core::Trie;
use trie_core::TrieBuilder;
use trie_core::storage::fits;
use walk::Walk;

/// Treatment of a table with mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strictness {
    /// An entry that is surely a mistake is an error that names key and value.
    #[default]
    Strict,
    /// Invalid entries are skipped and counted; a missing root is made from the keys of depth one.
    Repair,
}

/// The result of reading a prefix table: the set of its paths, without the start and end token, and a report on the
/// skipped parts.
#[derive(Debug, Clone)]
pub struct PrefixTable {
    /// The set of the paths. The end token is in its [`Trie::end_tokens`]. It has [weights](Trie::weights) if the
    /// table has them.
    pub trie: Trie,
    /// Parts that were skipped.
    pub report: PrefixTableReport,
}

impl PrefixTable {
    /// Reads a table from JSON text.
    ///
    /// ```
    /// use trie_core::TokenId;
    /// use trie_formats::{PrefixTable, Strictness};
    /// let json = br#"{"start_token_id": 1, "end_token_id": 2, "prefix_dict": {"1": [5, 6], "1_5": [7]}}"#;
    /// let table = PrefixTable::from_json(json, Strictness::Strict)?;
    /// let leaves: Vec<Vec<u32>> =
    ///     table.trie.leaves().map(|leaf| leaf.tokens.iter().map(|token| token.get()).collect()).collect();
    /// assert_eq!(leaves, [vec![5, 7], vec![6]]);
    /// assert_eq!(table.trie.end_tokens(), [TokenId::new(2).unwrap()]);
    /// # Ok::<(), trie_formats::PrefixTableError>(())
    /// ```
    ///
    /// # Errors
    /// [`PrefixTableError`] names the problem and its position.
    pub fn from_json(text: &[u8], strictness: Strictness) -> Result<Self, PrefixTableError> {
        Self::build(read::table(serde_json::Deserializer::from_slice(text))?, strictness)
    }

    /// Reads a table as a stream, such as from a file. Neither the text nor a tree of its JSON is kept in memory, only
    /// the tokens of its keys and lists: 4 bytes for each token and 16 for each key. `from` needs no buffer of its
    /// own.
    ///
    /// ```
    /// use trie_formats::{PrefixTable, Strictness};
    /// let json = r#"{"prefix_dict": {"225": [7], "225_7": [2]}, "start_token_id": 225, "end_token_id": 2}"#;
    /// assert_eq!(PrefixTable::read(json.as_bytes(), Strictness::Strict)?.trie.len(), 1);
    /// # Ok::<(), trie_formats::PrefixTableError>(())
    /// ```
    ///
    /// # Errors
    /// As [`PrefixTable::from_json`], or an error of `from`.
    pub fn read(from: impl Read, strictness: Strictness) -> Result<Self, PrefixTableError> {
        const BUFFER: usize = 1 << 18;
        let from = std::io::BufReader::with_capacity(BUFFER, from);
        Self::build(read::table(serde_json::Deserializer::from_reader(from))?, strictness)
    }

    fn build(raw: Raw, strictness: Strictness) -> Result<Self, PrefixTableError> {
        let Raw { start, end, sep, rows, weighted, ignored_keys } = raw;
        check_separator(&sep)?;
        fits("keys of the table", rows.len())?;
        let strict = strictness == Strictness::Strict;
        let mut report =
            PrefixTableReport { keys: rows.keys(), weighted, ignored_keys, ..PrefixTableReport::default() };
        let order = rows.put_in_order(&sep, &mut report);
        let walk = Walk::new(&rows, &order, start, end, &sep);
        // Counted first: room is then made once, and what is wrong is known before anything is built.
        let (mut leaves, mut tokens) = (0, 0);
        let root_is_missing = walk.run(&mut report, |path: &[TokenId], _: &[f32], _| {
            leaves += 1;
            tokens += path.len();
            Ok::<(), Infallible>(())
        });
        let Ok(root_is_missing) = root_is_missing;
        if strict {
            if root_is_missing {
                let first = order.first().map(|&row| shorten(&rows.key(row, &sep)));
                return Err(PrefixTableError::NoRoot { key: start.to_string(), keys: order.len(), first });
            }
            if let Some(first) = report.skipped.first() {
                let more = report.skipped_count() - 1;
                return Err(PrefixTableError::Refused { first: first.clone(), more });
            }
        }
        if leaves == 0 {
            return Err(PrefixTableError::NoValues { report: Box::new(report) });
        }
        let mut builder = TrieBuilder::with_capacity(leaves, tokens);
        let mut again = PrefixTableReport::default();
        let Ok(_) = walk.run(&mut again, |path: &[TokenId], _: &[f32], _| {
            builder.push(None, path);
            Ok::<(), Infallible>(())
        });
        if !weighted {
            // Building needs as much again.
            drop((order, rows));
            return Ok(Self { trie: builder.build()?.with_end_tokens([end]), report });
        }
        let trie = walk::weigh(builder.build()?, &walk)?;
        Ok(Self { trie: trie.with_end_tokens([end]), report })
    }
}

/// Checks that the separator makes keys unambiguous.
fn check_separator(sep: &str) -> Result<(), PrefixTableError> {
    if sep.is_empty() || sep.contains(|letter: char| letter.is_ascii_digit()) {
        return Err(PrefixTableError::Separator { sep: sep.to_owned() });
    }
    Ok(())
}

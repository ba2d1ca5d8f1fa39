//! Problems of a table, and the entries left out of it.

use std::fmt;
use std::io;
use trie_core::BuildError;
use trie_core::ErrorKind;
use trie_core::WeightsError;

/// Reasons why an entry of a table is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkippedWhy {
    /// The key is not a list of token ids with the separator between them.
    BadKey,
    /// A token id that is not from 0 to 2^31−1.
    BadId,
    /// The key comes again later, and the last one counts.
    Duplicate,
    /// A token has two weights in one list: the first counts.
    TwoWeights,
    /// No path from the start token leads to the key.
    Unreachable,
    /// The end token follows the start token: a value without tokens.
    EmptyValue,
}

/// An entry that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedEntry {
    /// Its key, shortened where it is very long.
    pub key: String,
    /// Part of it that was skipped, if not all.
    pub value: Option<String>,
    /// Reason for the skip.
    pub why: SkippedWhy,
}

impl fmt::Display for SkippedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, .. } = self;
        let value = value.as_deref().unwrap_or_default();
        match self.why {
            SkippedWhy::BadKey => write!(
                f,
                "key {key:?} is not token ids from 0 to 2147483647, written without leading zeros, with the separator \
                 between them"
            ),
            SkippedWhy::BadId => write!(f, "key {key:?} lists {value}: token ids are from 0 to 2147483647"),
            SkippedWhy::Duplicate => write!(f, "key {key:?} is there more than once"),
            SkippedWhy::TwoWeights => write!(f, "key {key:?} lists token {value} with two weights"),
            SkippedWhy::Unreachable => write!(f, "key {key:?} cannot be reached from the start: {value}"),
            SkippedWhy::EmptyValue => {
                write!(f, "key {key:?} lists the end token {value}: that is a value of no tokens, which no set has")
            }
        }
    }
}

/// Report on a table: its keys, and the entries that were left out of the set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrefixTableReport {
    /// Keys of the dictionary that was used.
    pub keys: usize,
    /// True if the set has weights, so that `prefix_weight_dict` was used.
    pub weighted: bool,
    /// Keys of `prefix_dict` that are ignored because there are weights.
    pub ignored_keys: usize,
    /// True if the start token had no key, so that its tokens were taken from the keys of depth one.
    pub derived_root: bool,
    /// Number of entries skipped for [`SkippedWhy::BadKey`].
    pub bad_keys: usize,
    /// Number of entries skipped for [`SkippedWhy::BadId`].
    pub bad_ids: usize,
    /// Number of entries skipped for [`SkippedWhy::Duplicate`].
    pub duplicate_keys: usize,
    /// Number of entries skipped for [`SkippedWhy::TwoWeights`].
    pub two_weights: usize,
    /// Number of entries skipped for [`SkippedWhy::Unreachable`].
    pub unreachable: usize,
    /// Number of entries skipped for [`SkippedWhy::EmptyValue`].
    pub empty_values: usize,
    /// Keys whose tokens are all unusable. They are not values, and no path leads to them.
    pub dead_ends: usize,
    /// Keys for the status after the end token. They only repeat that the end token alone may follow.
    pub after_end: usize,
    /// The first few skipped entries, and the first one of each kind.
    pub skipped: Vec<SkippedEntry>,
}

impl PrefixTableReport {
    const SHOWN: usize = 8;

    /// Records a skipped entry. `entry` is called only if its text will be shown.
    pub(super) fn skip(&mut self, why: SkippedWhy, entry: impl FnOnce() -> (String, Option<String>)) {
        *match why {
            SkippedWhy::BadKey => &mut self.bad_keys,
            SkippedWhy::BadId => &mut self.bad_ids,
            SkippedWhy::Duplicate => &mut self.duplicate_keys,
            SkippedWhy::TwoWeights => &mut self.two_weights,
            SkippedWhy::Unreachable => &mut self.unreachable,
            SkippedWhy::EmptyValue => &mut self.empty_values,
        } += 1;
        // At least one of each.
        if self.skipped.len() < Self::SHOWN || !self.skipped.iter().any(|skipped| skipped.why == why) {
            let (key, value) = entry();
            self.skipped.push(SkippedEntry { key: shorten(&key), value, why });
        }
    }

    /// Returns the number of skipped entries.
    pub fn skipped_count(&self) -> usize {
        let keys = self.bad_keys + self.duplicate_keys + self.unreachable;
        keys + self.bad_ids + self.two_weights + self.empty_values
    }
}

/// The beginning of a text that may be very long.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrefixTableError {
    /// It could not be read.
    #[error("prefix table: cannot read it: {0}")]
    Read(io::Error),
    /// Not JSON, or not of this form.
    #[error("prefix table, line {line}, column {column}: {reason}")]
    Malformed {
        /// Line, counted from 1.
        line: usize,
        /// Column, from 1; 0 at the very start of a line.
        column: usize,
        /// Description of the defect, with key and value.
        reason: String,
    },
    /// A separator that makes keys ambiguous.
    #[error("prefix table: the separator is {sep:?}: it must not be empty and must not hold a digit")]
    Separator {
        /// Separator that was given.
        sep: String,
    },
    /// The start token has no key.
    #[error(
        "prefix table: no key {key:?}: nothing but the end could be said{}",
        and_unreachable(*.keys, .first.as_deref())
    )]
    NoRoot {
        /// The key that is missing.
        key: String,
        /// Keys that cannot be reached therefore.
        keys: usize,
        /// The first of them.
        first: Option<String>,
    },
    /// An entry that is surely a mistake.
    #[error("prefix table: {first}{}", and_more(*.more))]
    Refused {
        /// First entry with it.
        first: SkippedEntry,
        /// Number of further ones.
        more: usize,
    },
    /// There is nothing to choose from.
    #[error(
        "prefix table: nothing but the end could be said: no value is left of {} key(s); {} cannot be reached, {} are \
         no ids, {} have only unusable ids",
        .report.keys, .report.unreachable, .report.bad_keys, .report.dead_ends
    )]
    NoValues {
        /// Report on the keys.
        report: Box<PrefixTableReport>,
    },
    /// The paths make no trie.
    #[error("prefix table: {0}")]
    Build(#[from] BuildError),
    /// The weights do not fit the paths.
    #[error("prefix table: {0}")]
    Weights(#[from] WeightsError),
}

impl PrefixTableError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(_) => ErrorKind::File,
            Self::Malformed { .. }
            | Self::Separator { .. }
            | Self::NoRoot { .. }
            | Self::Refused { .. }
            | Self::NoValues { .. }
            | Self::Build(_)
            | Self::Weights(_) => ErrorKind::Payload,
        }
    }
}

fn and_unreachable(keys: usize, first: Option<&str>) -> String {
    first.map_or_else(String::new, |first| format!("; {keys} key(s) cannot be reached, the first is {first:?}"))
}

fn and_more(more: usize) -> String {
    if more > 0 { format!(" (and {more} more entries that cannot be used)") } else { String::new() }
}

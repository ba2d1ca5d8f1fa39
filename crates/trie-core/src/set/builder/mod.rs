//! Building of the packed, breadth-first trie from leaves in any order.
//!
//! [`TrieBuilder`] collects leaves one by one; [`FlatSequences`] borrows leaves that lie in one slice already. Their
//! rows are sorted (`order.rs`, by keys from `key.rs`), turned into leaves (`collect.rs`) and written level by level
//! (`pack.rs`).

mod collect;
mod key;
mod order;
mod pack;
mod sequences;
#[cfg(test)]
mod tests;
#[cfg_attr(target_family = "wasm", path = "alone.rs")]
mod threads;

use crate::set::ids::TokenId;
use crate::set::trie::Trie;
use crate::work::ErrorKind;
use collect::NewLeaf;
#[cfg(not(target_family = "wasm"))]
use sequences::FixedRows;
use sequences::{Even, NameList, RaggedRows, Source};
use threads::Threads;

/// Collects leaves; [`TrieBuilder::build`] packs them. Order does not matter: the same set gives the same trie.
///
/// ```
/// use trie_core::{TokenId, TrieBuilder};
/// let id = |id| TokenId::new(id).unwrap();
/// let mut builder = TrieBuilder::default();
/// builder.push(Some("STOP"), &[id(9)]);
/// builder.push(Some("REPLY"), &[id(1), id(2)]);
/// let trie = builder.build()?;
/// assert_eq!(trie.leaves().filter_map(|leaf| leaf.name).collect::<Vec<_>>(), ["REPLY", "STOP"]);
/// # Ok::<(), trie_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct TrieBuilder {
    tokens: Vec<TokenId>,
    ends: Vec<usize>,
    names: String,
    name_ends: Vec<usize>,
    threads: Option<usize>,
}

/// Leaves without names that lie in one slice already: building from them copies nothing.
///
/// ```
/// use trie_core::{FlatSequences, TokenId};
/// let tokens = [9, 1, 1, 2].map(|id| TokenId::new(id).unwrap());
/// let trie = FlatSequences::even(&tokens, 2).unwrap().build()?;
/// assert_eq!(trie.leaves().map(|leaf| leaf.tokens).collect::<Vec<_>>(), [&tokens[2..], &tokens[..2]]);
/// # Ok::<(), trie_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FlatSequences<'a> {
    shape: Shape<'a>,
    threads: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Shape<'a> {
    Even(Even<'a>),
    Ragged(RaggedRows<'a>),
}

/// A leaf that comes after those before it.
#[derive(Debug, Clone, Copy)]
pub struct SortedLeaf<'a> {
    /// Tokens that it shares with the leaf before.
    pub shared: usize,
    /// Tokens after the shared prefix.
    pub tokens: &'a [TokenId],
    /// The first row of the input with these tokens.
    pub row: u32,
    /// Name of the leaf.
    pub name: Option<&'a str>,
}

/// Reasons why leaves cannot form a trie.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// There is nothing to choose from.
    #[error("the set has no leaf")]
    NoLeaves,
    /// A leaf without tokens could never be produced.
    #[error("row {row} is empty: a leaf needs at least one token")]
    EmptySequence {
        /// The row, from 0 in the order of the input.
        row: usize,
    },
    /// Names are given for all leaves or for none.
    #[error("{names} of {rows} leaves have a name: give all of them one, or none")]
    MixedNames {
        /// Leaves with a name.
        names: usize,
        /// Number of all leaves.
        rows: usize,
    },
    /// The caller wanted it to stop.
    #[error("stopped before the set was made")]
    Stopped,
    /// 32-bit offsets would not be enough.
    #[error("{what}: {count} is over the limit of {limit}")]
    TooLarge {
        /// Name of the quantity that exceeds its limit.
        what: &'static str,
        /// Number that was given.
        count: usize,
        /// Largest number that is allowed.
        limit: usize,
    },
}

impl BuildError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoLeaves | Self::EmptySequence { .. } | Self::MixedNames { .. } => ErrorKind::Set,
            Self::TooLarge { .. } => ErrorKind::Limit,
            Self::Stopped => ErrorKind::Cancelled,
        }
    }
}

/// Bytes reserved for each name.
const USUAL_NAME: usize = 16;

/// Nodes, rows and bytes of names are counted in 32 bits; one value is kept free.
const LIMIT: usize = u32::MAX as usize - 1;

/// Checks that this many items can be counted in 32 bits.
///
/// # Errors
/// [`BuildError::TooLarge`].
pub fn fits(what: &'static str, count: usize) -> Result<(), BuildError> {
    if count > LIMIT { Err(BuildError::TooLarge { what, count, limit: LIMIT }) } else { Ok(()) }
}

impl TrieBuilder {
    /// A builder with room for `rows` leaves of `tokens` tokens together.
    pub fn with_capacity(rows: usize, tokens: usize) -> Self {
        Self { tokens: Vec::with_capacity(tokens), ends: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Lets `build` use this many threads, at least one, instead of as many as pay off. The trie is the same.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Adds a leaf. Equal sequences become one leaf with the smallest name, by code point.
    pub fn push(&mut self, name: Option<&str>, tokens: &[TokenId]) {
        self.tokens.extend_from_slice(tokens);
        self.ends.push(self.tokens.len());
        if let Some(name) = name {
            if self.name_ends.is_empty() {
                // As many names as there is room for leaves.
                self.name_ends.reserve(self.ends.capacity());
                self.names.reserve(self.ends.capacity() * USUAL_NAME);
            }
            self.names.push_str(name);
            self.name_ends.push(self.names.len());
        }
    }

    /// Returns the number of leaves so far.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no leaf yet.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Names so far: as many as leaves, or none.
    #[doc(hidden)]
    pub fn name_count(&self) -> usize {
        self.name_ends.len()
    }

    /// Number of bytes that building would take now, including those held already.
    #[doc(hidden)]
    pub fn bytes(&self) -> usize {
        // Beside the tokens: where a row ends, its entry while it is sorted, and what is noted of a leaf.
        const ROW: usize = 32;
        self.names.len() + 8 * self.name_ends.len() + 8 * self.tokens.len() + ROW * self.ends.len()
    }

    /// Forgets the leaves and keeps the memory.
    #[doc(hidden)]
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.ends.clear();
        self.names.clear();
        self.name_ends.clear();
    }

    /// Visits the leaves in order. A builder without leaves is an error, as in `build`.
    ///
    /// # Errors
    /// As `build`, or what `visit` returns.
    #[doc(hidden)]
    pub fn visit_in_order<E: From<BuildError>>(
        &self,
        mut visit: impl FnMut(SortedLeaf<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows = RaggedRows { tokens: &self.tokens, ends: &self.ends };
        let names = self.name_list();
        check(&rows, names)?;
        let parts = order::leaves(&rows, names, &Threads::new(threads::worthwhile(rows.len())));
        let mut result = Ok(());
        for part in &parts {
            let mut origins = part.origins();
            part.for_each(|NewLeaf { shared, tokens }| {
                if let (Ok(()), Some((row, named))) = (&result, origins.next()) {
                    result = visit(SortedLeaf { shared, tokens, row, name: names.map(|names| names.get(named)) });
                }
            });
        }
        result
    }

    fn name_list(&self) -> Option<NameList<'_>> {
        (!self.name_ends.is_empty()).then_some(NameList { text: &self.names, ends: &self.name_ends })
    }

    /// Sorts the leaves and packs them. `O(n log n)`: keys of several tokens are sorted, and tokens only compared where
    /// keys are equal.
    ///
    /// # Errors
    /// No leaf at all, an empty leaf, names for some leaves only, or more than 32-bit offsets can address.
    pub fn build(self) -> Result<Trie, BuildError> {
        build(RaggedRows { tokens: &self.tokens, ends: &self.ends }, self.name_list(), self.threads)
    }
}

impl<'a> FlatSequences<'a> {
    /// Rows of `width` tokens each, or `None` where the tokens are not a whole number of such rows.
    pub fn even(tokens: &'a [TokenId], width: usize) -> Option<Self> {
        let whole = tokens.len().checked_rem(width) == Some(0);
        whole.then_some(Self { shape: Shape::Even(Even { tokens, width }), threads: None })
    }

    /// Rows of any length: row `n` ends before `ends[n]`, where the next one begins. `None` if the ends do not ascend
    /// or the last one is not the number of tokens.
    pub fn from_ends(tokens: &'a [TokenId], ends: &'a [usize]) -> Option<Self> {
        let fits = ends.is_sorted() && ends.last().copied().unwrap_or(0) == tokens.len();
        fits.then_some(Self { shape: Shape::Ragged(RaggedRows { tokens, ends }), threads: None })
    }

    /// Sets the number of threads, as [`TrieBuilder::threads`].
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// As [`TrieBuilder::build`].
    ///
    /// # Errors
    /// As [`TrieBuilder::build`].
    pub fn build(self) -> Result<Trie, BuildError> {
        match self.shape {
            // Of the copies that are made for each of them, pages would have to download all.
            #[cfg(not(target_family = "wasm"))]
            Shape::Even(Even { tokens, width: 2 }) => build(FixedRows::<2>(tokens.as_chunks().0), None, self.threads),
            #[cfg(not(target_family = "wasm"))]
            Shape::Even(Even { tokens, width: 3 }) => build(FixedRows::<3>(tokens.as_chunks().0), None, self.threads),
            #[cfg(not(target_family = "wasm"))]
            Shape::Even(Even { tokens, width: 4 }) => build(FixedRows::<4>(tokens.as_chunks().0), None, self.threads),
            Shape::Even(rows) => build(rows, None, self.threads),
            Shape::Ragged(rows) => build(rows, None, self.threads),
        }
    }
}

fn build<S: Source>(source: S, names: Option<NameList<'_>>, threads: Option<usize>) -> Result<Trie, BuildError> {
    check(&source, names)?;
    let threads = Threads::new(threads.unwrap_or_else(|| threads::worthwhile(source.len())));
    let leaves = order::leaves(&source, names, &threads);
    pack::pack(names, &leaves, &threads).map(Trie::from_store)
}

fn check<S: Source>(source: &S, names: Option<NameList<'_>>) -> Result<(), BuildError> {
    let rows = source.len();
    if rows == 0 {
        return Err(BuildError::NoLeaves);
    }
    let name_bytes = names.map_or(0, |names| names.text.len());
    fits("leaves", rows)?;
    fits("tokens of all leaves", source.tokens())?;
    fits("bytes of all names", name_bytes)?;
    if let Some(names) = names.filter(|names| names.ends.len() != rows) {
        return Err(BuildError::MixedNames { names: names.ends.len(), rows });
    }
    source.empty_row().map_or(Ok(()), |row| Err(BuildError::EmptySequence { row }))
}

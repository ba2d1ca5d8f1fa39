//! Numbers with a meaning: token ids, nodes and leaves are never bare integers in a signature.

use bytemuck::{Pod, Zeroable};
use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, Unexpected};
use std::fmt;

/// A token of a vocabulary: 0 … 2^31−1, the range that llama.cpp's signed ids and every tokenizer share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable, Serialize)]
#[repr(transparent)]
pub struct TokenId(u32);

impl TokenId {
    /// The largest id: 2^31−1.
    pub const MAX: Self = Self(i32::MAX as u32);

    /// The id, or `None` above [`TokenId::MAX`].
    #[inline]
    pub const fn new(id: u32) -> Option<Self> {
        if id <= Self::MAX.0 { Some(Self(id)) } else { None }
    }

    /// All ids of a vocabulary of this size, ascending: at most 2^31.
    ///
    /// ```
    /// use trie_core::TokenId;
    /// assert_eq!(TokenId::all(3).map(TokenId::get).collect::<Vec<_>>(), [0, 1, 2]);
    /// assert_eq!((TokenId::all(1 << 31).len(), TokenId::all(1 << 31).next_back()), (1 << 31, Some(TokenId::MAX)));
    /// ```
    pub fn all(n_vocab: usize) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator {
        // As unsigned numbers: the count itself is above the largest id.
        (0..n_vocab.min(Self::MAX.index() + 1) as u32).map(Self)
    }

    /// The id as an unsigned number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The id so many further on.
    #[inline]
    pub(crate) fn checked_add(self, by: usize) -> Option<Self> {
        u32::try_from(by).ok().and_then(|by| self.0.checked_add(by)).and_then(Self::new)
    }

    /// The id as llama.cpp writes it.
    #[inline]
    pub const fn as_i32(self) -> i32 {
        self.0 as i32
    }

    /// The id as an index into a row of logits.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An integer that is not a token id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("token id {value} must be from 0 to 2147483647")]
pub struct TokenIdError {
    /// The value that was given.
    pub value: i128,
}

crate::error_kind!(TokenIdError, Vocabulary);

macro_rules! token_id_from {
    ($($int:ty),*) => {$(
        impl TryFrom<$int> for TokenId {
            type Error = TokenIdError;
            #[inline]
            fn try_from(value: $int) -> Result<Self, TokenIdError> {
                let error = || TokenIdError { value: i128::try_from(value).unwrap_or(i128::MAX) };
                u32::try_from(value).ok().and_then(Self::new).ok_or_else(error)
            }
        }
    )*};
}
token_id_from!(i32, u32, i64, u64, usize);

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = TokenId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a token id, an integer from 0 to 2147483647")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<TokenId, E> {
                TokenId::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
            }
        }
        deserializer.deserialize_u64(Visitor)
    }
}

/// A node of one trie, numbered breadth first; the root is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub(crate) u32);

/// A leaf of one trie, numbered by the order of the token sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafId(pub(crate) u32);

impl NodeId {
    /// The root of every trie.
    pub const ROOT: Self = Self(0);

    /// The node with this number; one that a trie does not have has no children there and is not a terminal.
    #[inline]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Position in breadth-first order.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LeafId {
    /// The leaf with this number; one that a trie does not have is answered with `None` there.
    #[inline]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Returns the raw number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Position in the order of token sequences.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

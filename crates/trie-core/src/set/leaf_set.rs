//! Sets of leaves by number: a few of them, all but a few, or one bit for each.

use crate::set::ids::LeafId;
use std::ops::{Not, Range};

/// Subset of the leaves of a trie: immutable, and as small as its contents.
///
/// A few leaves, or all but a few, take four bytes each; otherwise there is a bit for every leaf.
///
/// ```
/// use trie_core::{LeafId, LeafSet};
/// let sold_out = LeafSet::from_leaves(1000, [LeafId::new(3), LeafId::new(7)])?;
/// let cheap = LeafSet::from_flags(&(0..1000).map(|leaf| leaf < 5).collect::<Vec<_>>());
/// let shown = cheap.and(&!sold_out)?;
/// assert_eq!(shown.iter().map(LeafId::get).collect::<Vec<_>>(), [0, 1, 2, 4]);
/// # Ok::<(), trie_core::LeafSetError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LeafSet {
    /// Number of leaves of the trie.
    len: u32,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Few(Box<[u32]>),
    AllBut(Box<[u32]>),
    Bits(Bits),
}

#[derive(Debug, Clone)]
struct Bits {
    words: Box<[u64]>,
    /// Bits set before each block of words.
    ranks: Box<[u32]>,
}

/// Leaves or sets that do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeafSetError {
    /// A leaf that the trie does not have.
    #[error("entry {entry}: leaf {leaf} is out of range: the trie has {len} leaves, numbered from 0")]
    NoSuchLeaf {
        /// Its place among those given.
        entry: usize,
        /// The leaf outside the set.
        leaf: u32,
        /// Number of leaves of the trie.
        len: usize,
    },
    /// Sets for tries of different sizes.
    #[error("leaves of a trie of {one} leaves with leaves of one of {other}: both must be of one trie")]
    Sizes {
        /// Number of leaves in the first set.
        one: usize,
        /// Leaves of the other.
        other: usize,
    },
}

crate::error_kind!(LeafSetError, Argument);

/// Density below which a list of numbers is smaller than bits: one leaf in this many.
const SPARSE: usize = 32;
/// Words of a block.
const BLOCK: usize = 8;

impl LeafSet {
    /// An empty subset of `len` leaves.
    pub fn none(len: usize) -> Self {
        Self { len: len as u32, form: Form::Few(Box::default()) }
    }

    /// A subset of all `len` leaves.
    pub fn full(len: usize) -> Self {
        !Self::none(len)
    }

    /// A subset of `len` leaves with these members, in any order.
    ///
    /// # Errors
    /// A leaf that is not among them.
    pub fn from_leaves(len: usize, leaves: impl IntoIterator<Item = LeafId>) -> Result<Self, LeafSetError> {
        let mut few = Vec::new();
        for (entry, leaf) in leaves.into_iter().enumerate() {
            if leaf.index() >= len {
                return Err(LeafSetError::NoSuchLeaf { entry, leaf: leaf.get(), len });
            }
            few.push(leaf.get());
        }
        // Most callers have them in order already: that costs one look.
        few.sort_unstable();
        few.dedup();
        Ok(Self { len: len as u32, form: Form::Few(few.into()) }.compact())
    }

    /// Collects the leaves with a set flag.
    pub fn from_flags(flags: &[bool]) -> Self {
        let word = |flags: &[bool]| flags.iter().rev().fold(0u64, |word, &flag| word << 1 | u64::from(flag));
        let words = flags.chunks(64).map(word).collect();
        Self { len: flags.len() as u32, form: Form::Bits(Bits::new(words)) }.compact()
    }

    /// In the smallest of the three forms.
    fn compact(self) -> Self {
        let (len, count) = (self.size(), self.count());
        let form = match self.form {
            Form::Bits(bits) if count.min(len - count) * SPARSE < len => {
                if count * 2 <= len {
                    Form::Few(bits.iter().collect())
                } else {
                    Form::AllBut(bits.invert(len).iter().collect())
                }
            }
            Form::Few(few) if few.len() * SPARSE >= len && len > 0 => Form::Bits(Bits::from_few(len, &few)),
            Form::AllBut(few) if few.len() * SPARSE >= len && len > 0 => {
                Form::Bits(Bits::from_few(len, &few).invert(len))
            }
            form => form,
        };
        Self { form, ..self }
    }

    /// Number of leaves of the trie, whether they are in the set or not.
    pub fn size(&self) -> usize {
        self.len as usize
    }

    /// Returns the number of leaves.
    pub fn count(&self) -> usize {
        self.count_in(0..self.len)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns whether this leaf is a member. `O(log n)` in the number of leaves that are written down.
    pub fn contains(&self, leaf: LeafId) -> bool {
        match &self.form {
            _ if leaf.get() >= self.len => false,
            Form::Few(few) => few.binary_search(&leaf.get()).is_ok(),
            Form::AllBut(few) => few.binary_search(&leaf.get()).is_err(),
            Form::Bits(bits) => {
                bits.words.get(leaf.index() / 64).is_some_and(|word| word >> (leaf.index() % 64) & 1 == 1)
            }
        }
    }

    /// Counts the members in a range. `O(log n)`; of bits `O(1)`.
    pub fn count_in(&self, range: Range<u32>) -> usize {
        let range = range.start.min(self.len)..range.end.min(self.len);
        if range.start >= range.end {
            return 0;
        }
        match &self.form {
            Form::Few(few) => slice_within(few, range).len(),
            Form::AllBut(few) => range.len() - slice_within(few, range).len(),
            Form::Bits(bits) => bits.rank(range.end as usize) - bits.rank(range.start as usize),
        }
    }

    /// The leaves in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = LeafId> + '_ {
        let (few, but, bits): (&[u32], Option<&[u32]>, Option<&Bits>) = match &self.form {
            Form::Few(few) => (few, None, None),
            Form::AllBut(few) => (&[], Some(few), None),
            Form::Bits(bits) => (&[], None, Some(bits)),
        };
        let others = but.into_iter().flat_map(|but| {
            let mut left = but;
            (0..self.len).filter(move |leaf| {
                let skipped = left.first() == Some(leaf);
                left = &left[usize::from(skipped)..];
                !skipped
            })
        });
        few.iter().copied().chain(others).chain(bits.into_iter().flat_map(Bits::iter)).map(LeafId::new)
    }

    /// The leaves that the set lists, ascending, and whether they are the excluded ones; `None` for bits.
    pub(crate) fn listed_leaves(&self) -> Option<(&[u32], bool)> {
        match &self.form {
            Form::Few(few) => Some((few, false)),
            Form::AllBut(few) => Some((few, true)),
            Form::Bits(_) => None,
        }
    }

    /// Leaves of both.
    ///
    /// # Errors
    /// Sets for tries of different sizes.
    pub fn and(&self, other: &Self) -> Result<Self, LeafSetError> {
        if self.len != other.len {
            return Err(LeafSetError::Sizes { one: self.size(), other: other.size() });
        }
        let form = match (&self.form, &other.form) {
            (Form::AllBut(one), Form::AllBut(other)) => {
                let mut few = [&one[..], other].concat();
                few.sort_unstable();
                few.dedup();
                Form::AllBut(few.into())
            }
            (Form::Few(few), _) => {
                Form::Few(few.iter().copied().filter(|&leaf| other.contains(LeafId::new(leaf))).collect())
            }
            (_, Form::Few(few)) => {
                Form::Few(few.iter().copied().filter(|&leaf| self.contains(LeafId::new(leaf))).collect())
            }
            _ => {
                let (one, other) = (self.bits(), other.bits());
                Form::Bits(Bits::new(one.words.iter().zip(&other.words).map(|(one, other)| one & other).collect()))
            }
        };
        Ok(Self { len: self.len, form }.compact())
    }

    /// Leaves of either.
    ///
    /// # Errors
    /// Sets for tries of different sizes.
    pub fn or(&self, other: &Self) -> Result<Self, LeafSetError> {
        Ok(!(!self).and(&!other)?)
    }

    fn bits(&self) -> Bits {
        match &self.form {
            Form::Few(few) => Bits::from_few(self.size(), few),
            Form::AllBut(few) => Bits::from_few(self.size(), few).invert(self.size()),
            Form::Bits(bits) => bits.clone(),
        }
    }
}

/// Returns the part of an ascending slice that lies in a range.
pub(crate) fn slice_within(ascending: &[u32], range: Range<u32>) -> &[u32] {
    let begin = ascending.partition_point(|&number| number < range.start);
    let rest = &ascending[begin..];
    &rest[..rest.partition_point(|&number| number < range.end)]
}

impl Bits {
    fn new(words: Box<[u64]>) -> Self {
        let mut before = 0;
        let ranks = words.chunks(BLOCK).map(|block| {
            let rank = before;
            before += ones(block) as u32;
            rank
        });
        Self { ranks: ranks.collect(), words }
    }

    fn from_few(len: usize, few: &[u32]) -> Self {
        let mut words = vec![0u64; len.div_ceil(64)];
        for &leaf in few {
            words[leaf as usize / 64] |= 1 << (leaf % 64);
        }
        Self::new(words.into())
    }

    fn invert(&self, len: usize) -> Self {
        let mut words: Box<[u64]> = self.words.iter().map(|word| !word).collect();
        if let Some(last) = words.last_mut().filter(|_| !len.is_multiple_of(64)) {
            *last &= (1 << (len % 64)) - 1;
        }
        Self::new(words)
    }

    /// Bits set before this one.
    fn rank(&self, at: usize) -> usize {
        let (word, block) = (at / 64, at / 64 / BLOCK);
        let Some(&before) = self.ranks.get(block) else {
            return self.ranks.last().map_or(0, |&last| last as usize)
                + self.words.chunks(BLOCK).last().map_or(0, ones);
        };
        let part = self.words.get(word).map_or(0, |bits| (bits & ((1 << (at % 64)) - 1)).count_ones() as usize);
        before as usize + ones(&self.words[block * BLOCK..word.min(self.words.len())]) + part
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().zip(0u32..).flat_map(|(&word, at)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }
}

fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

impl Not for LeafSet {
    type Output = Self;

    /// The leaves that are not in it.
    fn not(self) -> Self {
        let form = match self.form {
            Form::Few(few) => Form::AllBut(few),
            Form::AllBut(few) => Form::Few(few),
            Form::Bits(bits) => Form::Bits(bits.invert(self.len as usize)),
        };
        Self { len: self.len, form }
    }
}

impl Not for &LeafSet {
    type Output = LeafSet;

    fn not(self) -> LeafSet {
        !self.clone()
    }
}

impl PartialEq for LeafSet {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.count() == other.count() && self.iter().eq(other.iter())
    }
}

impl Eq for LeafSet {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn numbers(set: &LeafSet) -> BTreeSet<u32> {
        set.iter().map(LeafId::get).collect()
    }

    proptest! {
        #[test]
        fn they_are_sets(
            len in 1..3000u32, raw in prop::collection::vec((any::<u32>(), any::<bool>()), 0..400), sparse in 1..40u32,
            ranges in prop::collection::vec((0..3100u32, 0..3100u32), 8),
        ) {
            let leaf = |one: &(u32, bool)| one.0 % len / sparse * sparse;
            let pick = |which: bool| raw.iter().filter(move |one| one.1 == which).map(leaf);
            let (one, other): (BTreeSet<u32>, BTreeSet<u32>) = (pick(true).collect(), pick(false).collect());
            let all: BTreeSet<u32> = (0..len).collect();
            let leaves = |of: &BTreeSet<u32>| of.iter().rev().map(|&leaf| LeafId::new(leaf)).collect::<Vec<_>>();
            let set = |of: &BTreeSet<u32>| LeafSet::from_leaves(len as usize, leaves(of)).unwrap();
            let flags: Vec<bool> = (0..len).map(|leaf| one.contains(&leaf)).collect();
            let (a, b) = (set(&one), set(&other));
            prop_assert_eq!(&a, &LeafSet::from_flags(&flags));
            let cases = [
                (a.clone(), one.clone()),
                (!&a, &all - &one),
                (a.and(&b).unwrap(), &one & &other),
                (a.or(&b).unwrap(), &one | &other),
                (a.and(&!&b).unwrap(), &one - &other),
                ((!&a).or(&b).unwrap(), &(&all - &one) | &other),
                ((!&a).and(&!&b).unwrap(), &(&all - &one) - &other),
            ];
            for (found, expected) in cases {
                prop_assert_eq!(numbers(&found), expected.clone());
                prop_assert_eq!((found.count(), found.is_empty()), (expected.len(), expected.is_empty()));
                prop_assert!((0..len + 3).all(|leaf| found.contains(LeafId::new(leaf)) == expected.contains(&leaf)));
                for &(begin, end) in &ranges {
                    let count = expected.iter().filter(|&&leaf| begin <= leaf && leaf < end).count();
                    prop_assert_eq!(found.count_in(begin..end), count);
                }
            }
        }
    }

    #[test]
    fn what_does_not_go_together() {
        let error = LeafSet::from_leaves(3, [LeafId::new(1), LeafId::new(3)]).unwrap_err();
        assert_eq!(error, LeafSetError::NoSuchLeaf { entry: 1, leaf: 3, len: 3 });
        assert_eq!(LeafSet::full(3).and(&LeafSet::full(4)).unwrap_err(), LeafSetError::Sizes { one: 3, other: 4 });
        assert_eq!((LeafSet::none(0).count(), LeafSet::full(64).count(), LeafSet::full(65).count()), (0, 64, 65));
    }
}

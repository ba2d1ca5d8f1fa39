//! The names of leaves, and how a leaf is found by its name.

use crate::set::ids::LeafId;
use crate::set::storage::map::Array;
use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// One text and where each leaf's name ends in it.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) text: Array<u8>,
    pub(crate) ends: Array<u32>,
    by_name: OnceLock<ByName>,
}

/// Hashes of all names with their leaves, ascending; made when a name is first asked for. The hash is not to be
/// guessed: names come from strangers.
#[derive(Debug)]
struct ByName {
    hasher: RandomState,
    leaves: Box<[(u32, u32)]>,
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.ends == other.ends
    }
}

impl Eq for Names {}

impl Names {
    pub(crate) fn new(text: Array<u8>, ends: Array<u32>) -> Self {
        Self { text, ends, by_name: OnceLock::new() }
    }

    /// The name of a leaf; a copy of it where others may change the text.
    pub(crate) fn get(&self, index: usize) -> Option<Cow<'_, str>> {
        let end = *self.ends.get(index)? as usize;
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        match self.text.copied(begin..end)? {
            Cow::Borrowed(name) => std::str::from_utf8(name).ok().map(Cow::Borrowed),
            Cow::Owned(name) => String::from_utf8(name).ok().map(Cow::Owned),
        }
    }

    /// The leaves of this name, ascending. The first time `O(n log n)` in the number of leaves, then `O(log n)`.
    pub(crate) fn leaves<'n>(&'n self, name: &'n str) -> impl Iterator<Item = LeafId> + 'n {
        let ByName { hasher, leaves } = self.by_name.get_or_init(|| {
            let hasher = RandomState::new();
            let entry = |leaf: u32| Some((hasher.hash_one(&*self.get(leaf as usize)?) as u32, leaf));
            let mut leaves: Box<[_]> = (0..self.ends.len() as u32).filter_map(entry).collect();
            leaves.sort_unstable();
            ByName { hasher, leaves }
        });
        let wanted = hasher.hash_one(name) as u32;
        let first = leaves.partition_point(|&(hash, _)| hash < wanted);
        let same = leaves[first..].iter().take_while(move |&&(hash, _)| hash == wanted);
        same.filter(move |&&(_, leaf)| self.get(leaf as usize).as_deref() == Some(name)).map(|&(_, leaf)| LeafId(leaf))
    }

    /// Bytes held.
    pub(crate) fn nbytes(&self) -> usize {
        let index = self.by_name.get().map_or(0, |by_name| size_of_val(&*by_name.leaves));
        self.text.len() + 4 * self.ends.len() + index
    }
}

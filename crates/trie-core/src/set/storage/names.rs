//! The names of leaves, and the index that finds a leaf by its name.

use crate::set::ids::LeafId;
use crate::set::storage::memory::Array;
use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// One text and where each leaf's name ends in it.
#[derive(Debug)]
pub struct Names {
    /// All names, one after the other.
    pub text: Array<u8>,
    /// End of each name.
    pub ends: Array<u32>,
    by_name: OnceLock<ByName>,
    /// The leaves in the order of the bytes of their names; made when names are first completed.
    in_order: OnceLock<Box<[u32]>>,
}

/// Hashes of all names with their leaves, ascending; made at the first search for a name. The hash must be
/// unpredictable, because names are untrusted input.
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
    /// The names that lie in this text, one after the other.
    pub fn new(text: Array<u8>, ends: Array<u32>) -> Self {
        Self { text, ends, by_name: OnceLock::new(), in_order: OnceLock::new() }
    }

    /// The name of a leaf; a copy of it where others may change the text.
    pub(crate) fn get(&self, index: usize) -> Option<Cow<'_, str>> {
        match self.bytes(index)? {
            Cow::Borrowed(name) => std::str::from_utf8(name).ok().map(Cow::Borrowed),
            Cow::Owned(name) => String::from_utf8(name).ok().map(Cow::Owned),
        }
    }

    fn bytes(&self, index: usize) -> Option<Cow<'_, [u8]>> {
        let end = *self.ends.get(index)? as usize;
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.text.copy_bytes(begin..end)
    }

    /// The leaves whose names begin with these bytes, by the bytes of their names, of equal ones by number. The first
    /// time `O(n log n)` in the number of leaves, then `O(log n + found)`.
    pub(crate) fn starting_with(&self, bytes: &[u8]) -> &[u32] {
        let name = |leaf: u32| self.bytes(leaf as usize).unwrap_or_default();
        let in_order = self.in_order.get_or_init(|| {
            let mut leaves: Box<[u32]> = (0..self.ends.len() as u32).collect();
            if matches!(name(0), Cow::Owned(_)) {
                // Others may change the text meanwhile, and a name is to be the same in every comparison.
                leaves.sort_by_cached_key(|&leaf| name(leaf).into_owned());
            } else {
                leaves.sort_by(|&one, &other| name(one).cmp(&name(other)));
            }
            leaves
        });
        let first = in_order.partition_point(|&leaf| *name(leaf) < *bytes);
        let found = in_order[first..].partition_point(|&leaf| name(leaf).starts_with(bytes));
        &in_order[first..first + found]
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

    /// Returns the number of bytes held.
    pub(crate) fn nbytes(&self) -> usize {
        let index = self.by_name.get().map_or(0, |by_name| size_of_val(&*by_name.leaves));
        self.text.len() + 4 * (self.ends.len() + self.in_order.get().map_or(0, |leaves| leaves.len())) + index
    }
}

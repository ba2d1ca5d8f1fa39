//! A tree over the sequences of some leaves, numbered depth first: the leaves at and below a position are neighbours.

use super::draft::Draft;
use crate::set::builder::{BuildError, fits};
use crate::set::byte_order::shared_length;
use crate::set::trie::Names;

/// A leaf before it has a number.
pub(super) trait Sequence {
    /// Element type of the sequences.
    type Item: Copy + Ord + Default;
    fn items(&self) -> &[Self::Item];
    fn name(&self) -> &str;
    fn canonical(&self) -> &[crate::set::ids::TokenId];
}

/// The positions between the items of some sequences; sequences share the positions of their common prefix.
pub(super) struct Positions<T> {
    /// The item before each position; the root's means nothing.
    pub(super) items: Vec<T>,
    /// The first position that is not at or after each one.
    end: Vec<u32>,
    leaves_end: Vec<u32>,
    /// The position where each leaf ends, ascending.
    pub(super) ends: Vec<u32>,
    /// The row of each leaf, in the order of the sequences: of equal ones that with the smallest name.
    pub(super) rows: Vec<u32>,
    /// The first row with the same sequence.
    pub(super) input_rows: Vec<u32>,
    /// True if an end that others continue is followed by a position of its own, which nothing continues.
    spare: bool,
}

impl<T: Copy + Ord + Default> Positions<T> {
    pub(super) fn new<S: Sequence<Item = T>>(leaves: &[S], spare: bool) -> Result<Self, BuildError> {
        fits("leaves", leaves.len())?;
        fits("items of all leaves", leaves.iter().map(|leaf| leaf.items().len()).sum())?;
        fits("bytes of all names", leaves.iter().map(|leaf| leaf.name().len()).sum())?;
        fits("tokens of all leaves", leaves.iter().map(|leaf| leaf.canonical().len()).sum())?;
        if let Some(row) = leaves.iter().position(|leaf| leaf.items().is_empty()) {
            return Err(BuildError::EmptySequence { row });
        }
        let mut order: Vec<u32> = (0..leaves.len() as u32).collect();
        let leaf = |row: u32| &leaves[row as usize];
        order.sort_by(|&a, &b| (leaf(a).items(), leaf(a).name()).cmp(&(leaf(b).items(), leaf(b).name())));
        let (mut rows, mut input_rows): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for row in order {
            match (rows.last(), input_rows.last_mut()) {
                (Some(&last), Some(first)) if leaf(last).items() == leaf(row).items() => *first = row.min(*first),
                _ => {
                    rows.push(row);
                    input_rows.push(row);
                }
            }
        }
        if rows.is_empty() {
            return Err(BuildError::NoLeaves);
        }
        let (items, zero) = (vec![T::default()], vec![0]);
        let mut positions = Self {
            items,
            end: zero.clone(),
            leaves_end: zero,
            ends: Vec::with_capacity(rows.len()),
            rows: Vec::new(),
            input_rows,
            spare,
        };
        let mut path: Vec<u32> = Vec::new();
        for_each_path(leaves, &rows, spare, |number, now, shared| {
            positions.close(path.get(shared + 1..).unwrap_or_default(), number);
            let fresh = &leaf(rows[number]).items()[shared..];
            let begin = now[now.len() - fresh.len()];
            if positions.items.len() < begin as usize {
                // The position of its own for the end of the leaf before.
                positions.add(&[T::default()]);
                positions.close(&[begin - 1], number);
            }
            positions.add(fresh);
            positions.ends.push(now[now.len() - 1]);
            path.clear();
            path.extend_from_slice(now);
        });
        positions.close(&path, rows.len());
        positions.rows = rows;
        Ok(positions)
    }

    fn add(&mut self, items: &[T]) {
        self.items.extend_from_slice(items);
        self.end.resize(self.items.len(), 0);
        self.leaves_end.resize(self.items.len(), 0);
    }

    /// Nothing more comes after these positions, nor a leaf before this one.
    fn close(&mut self, path: &[u32], leaf: usize) {
        for &position in path {
            self.end[position as usize] = self.items.len() as u32;
            self.leaves_end[position as usize] = leaf as u32;
        }
    }

    /// The positions one item after this one.
    pub(super) fn successors(&self, position: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.end[position as usize];
        let first = if self.spare && self.is_end(position) { self.end_of(position) + 1 } else { position + 1 };
        std::iter::successors(Some(first), |&next| self.end.get(next as usize).copied())
            .take_while(move |&next| next < end)
    }

    pub(super) fn is_end(&self, position: u32) -> bool {
        self.ends.binary_search(&position).is_ok()
    }

    /// Returns the final position of a leaf that ends at a position: that one, or the position of its own behind it.
    pub(super) fn end_of(&self, position: u32) -> u32 {
        position + u32::from(self.spare && self.end[position as usize] > position + 1)
    }

    /// Leaves at and below a position.
    pub(super) fn leaves(&self, position: u32) -> u32 {
        let first = self.ends.partition_point(|&end| end < position) as u32;
        self.leaves_end[position as usize] - first
    }

    /// The draft of the set, without its edges and forced tokens.
    pub(super) fn draft<S: Sequence>(&self, leaves: &[S]) -> Draft {
        let mut draft = Draft { leaves_end: self.leaves_end.clone(), ..Draft::default() };
        let (mut text, mut text_ends) = (Vec::new(), Vec::with_capacity(self.rows.len()));
        for (number, (&row, &end)) in self.rows.iter().zip(&self.ends).enumerate() {
            let leaf = &leaves[row as usize];
            draft.ends.push((end, number as u32));
            if self.end_of(end) != end {
                draft.ends.push((self.end_of(end), number as u32));
            }
            draft.canonical.extend_from_slice(leaf.canonical());
            draft.canonical_ends.push(draft.canonical.len() as u32);
            text.extend_from_slice(leaf.name().as_bytes());
            text_ends.push(text.len() as u32);
        }
        draft.names = Some(Names::new(text.into(), text_ends.into()));
        draft.input_rows.clone_from(&self.input_rows);
        draft
    }

    /// Calls `each` with the row of every leaf and the positions on its path, the root's first.
    pub(super) fn for_each_leaf<S: Sequence<Item = T>>(&self, leaves: &[S], mut each: impl FnMut(usize, &[u32])) {
        for_each_path(leaves, &self.rows, self.spare, |number, path, _| each(self.rows[number] as usize, path));
    }
}

/// Calls `each` with every leaf, the positions on its path, the root's first, and how many items the leaf before begins
/// with alike.
fn for_each_path<S: Sequence>(leaves: &[S], rows: &[u32], spare: bool, mut each: impl FnMut(usize, &[u32], usize)) {
    let mut path = vec![0u32];
    let mut next = 1;
    let mut before: &[S::Item] = &[];
    for (number, &row) in rows.iter().enumerate() {
        let items = leaves[row as usize].items();
        let shared = shared_length(items, before);
        path.truncate(shared + 1);
        next += u32::from(spare && number > 0 && shared == before.len());
        let fresh = (items.len() - shared) as u32;
        path.extend(next..next + fresh);
        next += fresh;
        each(number, &path, shared);
        before = items;
    }
}

//! Turns rows that come in order into leaves.

use super::key::{MOST_ROUNDS, Packing, sort_from};
use super::sequences::{NameList, Source};
use crate::set::byte_order::shared_length;
use crate::set::ids::TokenId;
use std::hint::black_box;

/// Leaves in the order of their tokens, or a run of them.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// For each leaf, the first row of the input with its tokens.
    pub(super) rows: Vec<u32>,
    /// Leaves of this run that take their name from another row, with that row.
    pub(super) renamed: Vec<(u32, u32)>,
    /// For each leaf, the number of tokens shared with the leaf before it, and its length; or `LONG` if the next item
    /// of `long` holds them.
    lengths: Vec<[u8; 2]>,
    long: Vec<(u32, u32)>,
    /// The tokens of each leaf after those that it shares. They are copied while they are in the cache; later they
    /// would have to be fetched from all over the input.
    tokens: Vec<TokenId>,
    /// Number of tokens that the first leaf shares with the leaf before this run; the first leaf is stored with all
    /// its tokens.
    shared_before: u32,
    /// Tokens of the leaf before this run.
    pub(super) length_before: u32,
    /// Counts by depth: leaves whose first token of their own is at this depth, counted from 1, and leaves of this
    /// length.
    pub(super) begins: Vec<u32>,
    pub(super) ends: Vec<u32>,
}

/// Leaf of a collection.
pub(super) struct NewLeaf<'a> {
    /// Tokens that it shares with the leaf before.
    pub(super) shared: usize,
    /// Tokens after the shared prefix.
    pub(super) tokens: &'a [TokenId],
}

impl Leaves {
    /// All leaves, one after the other.
    #[inline]
    pub(super) fn for_each<'a>(&'a self, mut visit: impl FnMut(NewLeaf<'a>)) {
        let (mut before, mut tokens, mut long) = (self.shared_before, &self.tokens[..], self.long.iter());
        for &lengths in &self.lengths {
            let (shared, length) = match lengths {
                LONG => long.next().copied().unwrap_or_default(),
                [shared, length] => (u32::from(shared), u32::from(length)),
            };
            let (new, others) = tokens.split_at((length - shared) as usize);
            tokens = others;
            visit(NewLeaf { shared: (shared + before) as usize, tokens: &new[before as usize..] });
            before = 0;
        }
    }

    /// For each leaf the row that it comes from and the one that it has its name from.
    pub(super) fn origins(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut renamed = self.renamed.iter().peekable();
        (0..)
            .zip(&self.rows)
            .map(move |(leaf, &row)| (row, renamed.next_if(|(other, _)| *other == leaf).map_or(row, |&(_, row)| row)))
    }
}

/// Marker for a long leaf; a leaf is never shorter than its shared prefix, so no real entry looks like this.
const LONG: [u8; 2] = [1, 0];

/// Takes rows in order and makes leaves of them.
pub(super) struct Collector<'a, S> {
    pub(super) source: &'a S,
    names: Option<NameList<'a>>,
    pub(super) leaves: Leaves,
    last_key: Option<u64>,
    run: Vec<u32>,
    /// True if reading a row costs less than decoding its key, because all rows are in the cache.
    near: bool,
}

/// Length of leaves up to which counters exist from the start.
const USUAL_LENGTH: usize = 16;
const NEAR: usize = 1 << 12;

impl<'a, S: Source> Collector<'a, S> {
    pub(super) fn new(source: &'a S, names: Option<NameList<'a>>, rows: usize) -> Self {
        let leaves = Leaves {
            rows: Vec::with_capacity(rows),
            lengths: Vec::with_capacity(rows),
            // Most often a leaf has a token or two of its own.
            tokens: Vec::with_capacity(source.tokens().min(2 * rows + rows / 8 + 256)),
            begins: vec![0; USUAL_LENGTH],
            ends: vec![0; USUAL_LENGTH],
            ..Leaves::default()
        };
        Self { source, names, leaves, last_key: None, run: Vec::new(), near: source.tokens() < NEAR }
    }

    /// Reads from the rows that will be taken next, so that their cache misses overlap.
    #[inline]
    pub(super) fn touch(&self, rows: impl Iterator<Item = u32>) {
        let token = |row: u32| self.source.row(row as usize).last().map_or(0, |token| token.get());
        black_box(rows.fold(0, |all, row| all ^ token(row)));
    }

    /// Takes the rows with one key, in the order of their numbers.
    #[inline]
    pub(super) fn push_run(&mut self, packing: &Packing, key: u64, mut rows: impl ExactSizeIterator<Item = u32>) {
        let shared = self.last_key.replace(key).map_or(0, |last| packing.shared_tokens(last, key));
        let alone = rows.len() == 1;
        let Some(first) = rows.next() else { return };
        if alone && self.near {
            self.push_new(first, self.source.row(first as usize), shared);
        } else if packing.is_whole(key) {
            let (tokens, count) = packing.tokens(key);
            self.push_new(first, &tokens[..count], shared);
        } else if alone {
            self.push_new(first, self.source.row(first as usize), shared);
        } else {
            let from = packing.decided_tokens(key);
            let mut run = std::mem::take(&mut self.run);
            run.clear();
            run.push(first);
            run.extend(rows);
            sort_from(self.source, &mut run, from, MOST_ROUNDS);
            self.push_new(run[0], self.source.row(run[0] as usize), shared);
            run[1..].iter().for_each(|&row| self.push(row, from));
            self.run = run;
            return;
        }
        // All tokens are in the key, so rows with one key are equal.
        rows.for_each(|row| self.push_same(row));
    }

    /// Takes a row that shares at least `from` tokens with the one before it.
    pub(super) fn push(&mut self, row: u32, from: usize) {
        let tokens = self.source.row(row as usize);
        let before = self.leaves.rows.last().map_or(&[][..], |&row| self.source.row(row as usize));
        let shared = from + shared_length(&tokens[from..], before.get(from..).unwrap_or_default());
        if shared == tokens.len() && shared == before.len() {
            self.push_same(row);
        } else {
            self.push_new(row, tokens, shared as u32);
        }
    }

    #[inline]
    fn push_new(&mut self, row: u32, tokens: &[TokenId], shared: u32) {
        self.leaves.rows.push(row);
        if self.leaves.ends.len() <= tokens.len() {
            self.leaves.begins.resize(tokens.len() + 1, 0);
            self.leaves.ends.resize(tokens.len() + 1, 0);
        }
        self.leaves.begins[shared as usize + 1] += 1;
        self.leaves.ends[tokens.len()] += 1;
        if let (Ok(shared), Ok(length)) = (u8::try_from(shared), u8::try_from(tokens.len())) {
            self.leaves.lengths.push([shared, length]);
        } else {
            self.leaves.lengths.push(LONG);
            self.leaves.long.push((shared, tokens.len() as u32));
        }
        match &tokens[shared as usize..] {
            // Most often; a call to copy memory takes longer.
            &[token] => self.leaves.tokens.push(token),
            tokens => self.leaves.tokens.extend_from_slice(tokens),
        }
    }

    /// Another row of the last leaf. It comes later in the input but may have the smaller name.
    fn push_same(&mut self, row: u32) {
        let (Some(names), Some(&first)) = (self.names, self.leaves.rows.last()) else { return };
        let leaf = self.leaves.rows.len() as u32 - 1;
        let before = self.leaves.renamed.last_mut().filter(|(other, _)| *other == leaf);
        if names.get(row) < names.get(before.as_ref().map_or(first, |before| before.1)) {
            match before {
                Some(before) => before.1 = row,
                None => self.leaves.renamed.push((leaf, row)),
            }
        }
    }
}

/// Computes the prefixes that neighbours share across the cuts between parts, which no thread has seen.
pub(super) fn join<S: Source>(source: &S, mut parts: Vec<Leaves>) -> Vec<Leaves> {
    parts.retain(|part| !part.rows.is_empty());
    let mut before: &[TokenId] = &[];
    for part in &mut parts {
        if let (Some(&first), Some(&last)) = (part.rows.first(), part.rows.last()) {
            part.shared_before = shared_length(before, source.row(first as usize)) as u32;
            part.length_before = before.len() as u32;
            part.begins[1] -= 1;
            part.begins[part.shared_before as usize + 1] += 1;
            before = source.row(last as usize);
        }
    }
    parts
}

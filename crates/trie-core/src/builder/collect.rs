//! Makes leaves of rows that come in order.

use super::key::Packing;
use super::order::{MOST_ROUNDS, sort_from};
use super::rows::{NameList, Source};
use crate::ids::TokenId;
use std::hint::black_box;

/// Leaves in the order of their tokens, or a run of them.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// The first row of the input that gave each.
    pub(super) rows: Vec<u32>,
    /// The row with the smallest name, where there are names.
    pub(super) named: Vec<u32>,
    /// How many tokens each shares with the leaf before it, and how many it has.
    lengths: Vec<(u32, u32)>,
    /// The tokens of each after those it shares. They are copied where they are at hand: rows in the order of the input would
    /// have to be fetched from everywhere.
    tokens: Vec<TokenId>,
    /// The first leaf is noted with all its tokens; it shares so many of them with the leaf before this run.
    shared_before: u32,
}

/// One of them.
pub(super) struct NewLeaf<'a> {
    /// Tokens that it shares with the leaf before.
    pub(super) shared: usize,
    /// Its other tokens.
    pub(super) tokens: &'a [TokenId],
}

impl Leaves {
    /// All leaves of all runs, one after the other.
    #[inline]
    pub(super) fn for_each<'a>(parts: &'a [Self], mut visit: impl FnMut(NewLeaf<'a>)) {
        for part in parts {
            let (mut before, mut tokens) = (part.shared_before, &part.tokens[..]);
            for &(shared, length) in &part.lengths {
                let (new, others) = tokens.split_at((length - shared) as usize);
                tokens = others;
                visit(NewLeaf { shared: (shared + before) as usize, tokens: &new[before as usize..] });
                before = 0;
            }
        }
    }
}

/// Takes rows in order and makes leaves of them.
pub(super) struct Collector<'a, S> {
    pub(super) source: &'a S,
    names: Option<NameList<'a>>,
    pub(super) leaves: Leaves,
    last_key: Option<u64>,
    run: Vec<u32>,
}

impl<'a, S: Source> Collector<'a, S> {
    pub(super) fn new(source: &'a S, names: Option<NameList<'a>>, rows: usize) -> Self {
        let leaves = Leaves {
            rows: Vec::with_capacity(rows),
            named: Vec::with_capacity(if names.is_some() { rows } else { 0 }),
            lengths: Vec::with_capacity(rows),
            // Most often a leaf has a token or two of its own.
            tokens: Vec::with_capacity(source.tokens().min(2 * rows + 256)),
            shared_before: 0,
        };
        Self { source, names, leaves, last_key: None, run: Vec::new() }
    }

    /// Reads from rows that will be taken next, so that their memory is waited for together and not one after the other.
    #[inline]
    pub(super) fn touch(&self, rows: impl Iterator<Item = u32>) {
        let token = |row: u32| self.source.row(row as usize).last().map_or(0, |token| token.get());
        black_box(rows.fold(0, |all, row| all ^ token(row)));
    }

    /// Takes the rows with one key, in the order of their numbers.
    #[inline]
    pub(super) fn push_run(&mut self, packing: &Packing, key: u64, mut rows: impl ExactSizeIterator<Item = u32>) {
        let shared = self.last_key.replace(key).map_or(0, |last| packing.shared(last, key));
        let alone = rows.len() == 1;
        let Some(first) = rows.next() else { return };
        if packing.is_whole(key) {
            let (tokens, count) = packing.tokens(key);
            self.push_new(first, &tokens[..count], shared);
        } else if alone {
            self.push_new(first, self.source.row(first as usize), shared);
        } else {
            let mut run = std::mem::take(&mut self.run);
            run.clear();
            run.push(first);
            run.extend(rows);
            sort_from(self.source, &mut run, packing.end, MOST_ROUNDS);
            self.push_new(run[0], self.source.row(run[0] as usize), shared);
            run[1..].iter().for_each(|&row| self.push(row, packing.end));
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
        let shared = from + common(&tokens[from..], before.get(from..).unwrap_or_default());
        if shared == tokens.len() && shared == before.len() {
            self.push_same(row);
        } else {
            self.push_new(row, tokens, shared as u32);
        }
    }

    #[inline]
    fn push_new(&mut self, row: u32, tokens: &[TokenId], shared: u32) {
        self.leaves.rows.push(row);
        self.leaves.lengths.push((shared, tokens.len() as u32));
        match &tokens[shared as usize..] {
            // Most often; a call to copy memory takes longer.
            &[token] => self.leaves.tokens.push(token),
            tokens => self.leaves.tokens.extend_from_slice(tokens),
        }
        if self.names.is_some() {
            self.leaves.named.push(row);
        }
    }

    /// Another row of the last leaf. It comes later in the input but may have the smaller name.
    fn push_same(&mut self, row: u32) {
        if let (Some(names), Some(named)) = (self.names, self.leaves.named.last_mut())
            && names.get(row) < names.get(*named)
        {
            *named = row;
        }
    }
}

/// Tokens that two rows share.
fn common(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Notes what neighbours share across the cuts, which no thread has seen.
pub(super) fn join<S: Source>(source: &S, mut parts: Vec<Leaves>) -> Vec<Leaves> {
    parts.retain(|part| !part.rows.is_empty());
    let mut before: &[TokenId] = &[];
    for part in &mut parts {
        if let (Some(&first), Some(&last)) = (part.rows.first(), part.rows.last()) {
            part.shared_before = common(before, source.row(first as usize)) as u32;
            before = source.row(last as usize);
        }
    }
    parts
}

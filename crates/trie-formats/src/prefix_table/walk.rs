//! Paths of a table that are values, found in one pass over its sorted keys that keeps the keys above the current one.

use super::problem::{PrefixTableReport, SkippedWhy};
use super::rows::{Entry, Rows, key_text};
use std::convert::Infallible;
use trie_core::TokenId;
use trie_core::WeightsError;
use trie_core::{Cursor, Trie, shared_length};

/// The keys of a table in order, ready to be gone through as often as needed.
pub(super) struct Walk<'r> {
    rows: &'r Rows,
    order: &'r [u32],
    start: TokenId,
    end: TokenId,
    sep: &'r str,
    /// The tokens of the keys of depth one, where the start has no key.
    derived: Option<Vec<u32>>,
}

/// A key on the way to the current one.
struct Open<'w> {
    depth: usize,
    tokens: &'w [u32],
    weights: &'w [u32],
    /// True if the end token may follow.
    ends: bool,
    /// The first of them that may still be a key.
    next: usize,
}

/// Receives values: the path, the weights along it and the weight of its end. They come in the order of their paths,
/// each once; a table without weights gives none.
pub(super) trait Values<E> {
    fn value(&mut self, path: &[TokenId], weights: &[f32], end: f32) -> Result<(), E>;
}

impl<E, F: FnMut(&[TokenId], &[f32], f32) -> Result<(), E>> Values<E> for F {
    fn value(&mut self, path: &[TokenId], weights: &[f32], end: f32) -> Result<(), E> {
        self(path, weights, end)
    }
}

impl<'r> Walk<'r> {
    pub(super) fn new(rows: &'r Rows, order: &'r [u32], start: TokenId, end: TokenId, sep: &'r str) -> Self {
        let of_depth = |depth: usize| {
            let entries = order.iter().map(|&row| rows.entry(row));
            entries.filter(move |entry| entry.path[0] == start.get() && entry.path.len() == depth + 1)
        };
        let has_root = of_depth(0).next().is_some();
        let derived = (!has_root).then(|| of_depth(1).map(|entry| entry.path[1]).filter(|&t| t != end.get()).collect());
        Self { rows, order, start, end, sep, derived }
    }

    /// Passes every value to `values` and records skipped entries. Returns whether the start token has no key.
    pub(super) fn run<E>(&self, report: &mut PrefixTableReport, mut values: impl Values<E>) -> Result<bool, E> {
        let weighted = self.rows.has_weights();
        let mut state =
            State { end: self.end.get(), weighted, path: Vec::new(), weights: Vec::new(), open: Vec::new() };
        if let Some(tokens) = &self.derived {
            report.derived_root = !tokens.is_empty();
            state.open.push(Open { depth: 0, tokens, weights: &[], ends: false, next: 0 });
        }
        for &row in self.order {
            let entry = self.rows.entry(row);
            let path = &entry.path[1..];
            if entry.path[0] != self.start.get() {
                let why = || format!("it does not begin with the start token {}", self.start);
                report.skip(SkippedWhy::Unreachable, || (key_text(entry.path, self.sep), Some(why())));
                continue;
            }
            let Some((&last, above)) = path.split_last() else {
                self.open_root(&entry, &mut state, report);
                continue;
            };
            state.close_beside(above, &mut values)?;
            let only_end = !entry.emptied && entry.tokens.iter().all(|&token| token == last);
            if last == self.end.get() && only_end && state.may_end(above) {
                report.after_end += 1;
                continue;
            }
            let parent = state.open.last().filter(|open| open.depth == above.len());
            match parent.map(|open| open.tokens.binary_search(&last)) {
                Some(Ok(at)) if last != self.end.get() => state.open(&entry, at, report, &mut values)?,
                listed => {
                    let why = || match listed {
                        _ if state.may_end(above) => format!("after the end token {last} only the end may follow"),
                        Some(_) => format!("{} does not list {last}", self.key(above)),
                        None => format!("no path leads to {}", self.key(above)),
                    };
                    report.skip(SkippedWhy::Unreachable, || (key_text(entry.path, self.sep), Some(why())));
                }
            }
        }
        state.close(0, &mut values)?;
        Ok(self.derived.is_some())
    }

    fn key(&self, path: &[u32]) -> String {
        let path: Vec<u32> = [&[self.start.get()], path].concat();
        format!("{:?}", key_text(&path, self.sep))
    }

    fn open_root<'w>(&self, entry: &Entry<'w>, state: &mut State<'w>, report: &mut PrefixTableReport) {
        report.dead_ends += usize::from(entry.emptied);
        let ends = entry.tokens.binary_search(&self.end.get()).is_ok();
        if ends && entry.tokens.len() > 1 {
            let text = || (key_text(entry.path, self.sep), Some(self.end.to_string()));
            report.skip(SkippedWhy::EmptyValue, text);
        }
        state.open.push(Open { depth: 0, tokens: entry.tokens, weights: entry.weights, ends, next: 0 });
    }
}

/// The path to the last key that was opened, and the keys on it.
struct State<'w> {
    end: u32,
    weighted: bool,
    path: Vec<TokenId>,
    /// Weights of the edges of the path, if the table has any.
    weights: Vec<f32>,
    open: Vec<Open<'w>>,
}

impl<'w> State<'w> {
    /// Closes the keys that are not on the path to the key `path`.
    fn close_beside<E>(&mut self, path: &[u32], values: &mut impl Values<E>) -> Result<(), E> {
        let common = self.path.iter().zip(path).take_while(|(one, other)| one.get() == **other).count();
        self.close(common + 1, values)
    }

    /// Returns whether a value may end at this path: the last key belongs to it, or lists it.
    fn may_end(&self, path: &[u32]) -> bool {
        let Some(open) = self.open.last() else { return false };
        match path.len().checked_sub(open.depth) {
            Some(0) => open.ends,
            // Listed, and without a key of its own.
            Some(1) => path.last().is_some_and(|last| *last != self.end && open.tokens.binary_search(last).is_ok()),
            _ => false,
        }
    }

    /// Leaves the keys of this depth and below.
    fn close<E>(&mut self, depth: usize, values: &mut impl Values<E>) -> Result<(), E> {
        while self.open.last().is_some_and(|open| open.depth >= depth) {
            self.values_before(usize::MAX, values)?;
            self.open.pop();
            self.path.truncate(self.open.last().map_or(0, |open| open.depth));
            self.weights.truncate(self.path.len());
        }
        Ok(())
    }

    /// Reports the values that the last key lists before this position and that have no key of their own.
    fn values_before<E>(&mut self, at: usize, values: &mut impl Values<E>) -> Result<(), E> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let (tokens, weights) = (open.tokens, open.weights);
        let at = at.min(tokens.len());
        for (nth, &token) in tokens.iter().enumerate().take(at).skip(open.next) {
            if token != self.end {
                self.push(token, weights.get(nth));
                values.value(&self.path, &self.weights, 0.0)?;
                self.pop();
            }
        }
        if let Some(open) = self.open.last_mut() {
            open.next = at;
        }
        Ok(())
    }

    fn push(&mut self, token: u32, weight: Option<&u32>) {
        self.path.push(TokenId::new(token).unwrap_or_default());
        // A root that was derived lists no weights.
        self.weights.extend(self.weighted.then(|| weight.map_or(0.0, |&bits| f32::from_bits(bits))));
    }

    fn pop(&mut self) {
        self.path.pop();
        self.weights.truncate(self.path.len());
    }

    /// Opens the key at this position in the list of the last key.
    fn open<E>(
        &mut self,
        entry: &Entry<'w>,
        at: usize,
        report: &mut PrefixTableReport,
        values: &mut impl Values<E>,
    ) -> Result<(), E> {
        self.values_before(at, values)?;
        let Some(above) = self.open.last_mut() else { return Ok(()) };
        above.next = at + 1;
        let (token, weight) = (above.tokens[at], above.weights.get(at));
        self.push(token, weight);
        let Entry { tokens, weights, emptied, .. } = *entry;
        report.dead_ends += usize::from(emptied);
        let end = tokens.binary_search(&self.end);
        let ends = end.is_ok() || (tokens.is_empty() && !emptied);
        if ends {
            let weight = end.ok().and_then(|at| weights.get(at)).map_or(0.0, |&bits| f32::from_bits(bits));
            values.value(&self.path, &self.weights, weight)?;
        }
        self.open.push(Open { depth: self.path.len(), tokens, weights, ends, next: 0 });
        Ok(())
    }
}

/// The trie of the values that the walk gives, with their weights. Leaves are numbered as the walk gives them.
pub(super) fn weigh(trie: Trie, walk: &Walk<'_>) -> Result<Trie, WeightsError> {
    let (mut edges, mut ends) = (vec![0.0; trie.nodes()], Vec::with_capacity(trie.len()));
    // The positions on the path of the value before.
    let (mut path, mut passed): (Vec<TokenId>, Vec<Cursor>) = (Vec::new(), vec![Cursor::ROOT]);
    let Ok(_) = walk.run(&mut PrefixTableReport::default(), |value: &[TokenId], weights: &[f32], end| {
        let common = shared_length(&path, value);
        path.truncate(common);
        passed.truncate(common + 1);
        for (&token, &weight) in value.iter().zip(weights).skip(common) {
            // Every value is in the trie.
            let Some(at) = passed.last().and_then(|&at| trie.step(at, token)) else { break };
            edges[at.node().index()] = weight;
            path.push(token);
            passed.push(at);
        }
        ends.push(end);
        Ok::<(), Infallible>(())
    });
    trie.with_weights(edges, ends)
}

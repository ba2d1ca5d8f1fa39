//! A plain function of token prefixes as a host.

use super::decoder::{DecodeCost, TreeDecoder};
use super::tree::TokenTree;
use crate::set::ids::TokenId;
use crate::work::ErrorKind;

/// A function that returns a row of logits for each of several token prefixes, one row after the other, as is easy to
/// write in a notebook. Nothing is kept between calls, so the prompt is processed again for every row.
///
/// See [`choose`](super::choose) for an example.
#[derive(Debug, Clone)]
pub struct PrefixRows<F> {
    rows: F,
    n_vocab: usize,
    room: usize,
    at_once: usize,
}

/// A function of prefixes that gave no rows, or not as many as prefixes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixRowsError<E> {
    /// Error of the function itself.
    #[error(transparent)]
    Function(E),
    /// Not a row for each prefix.
    #[error("{found} logits for {prefixes} prefixes: rows of {n_vocab} were wanted")]
    Length {
        /// Numbers that it gave.
        found: usize,
        /// Prefixes that it got.
        prefixes: usize,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
}

impl<E> PrefixRowsError<E> {
    /// Returns what kind of error it is; an error of the function counts as a failure of the model.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Function(_) => ErrorKind::Model,
            Self::Length { .. } => ErrorKind::Row,
        }
    }
}

impl<F> PrefixRows<F> {
    /// Largest number of prefixes in one call, unless set otherwise.
    pub const AT_ONCE: usize = 128;

    /// A host around `rows`, which gets up to [`PrefixRows::AT_ONCE`] prefixes and returns `n_vocab` numbers for each.
    pub fn new(n_vocab: usize, rows: F) -> Self {
        Self { rows, n_vocab, room: usize::MAX, at_once: Self::AT_ONCE }
    }

    /// Sets the largest length of a prefix; without it there is no limit.
    #[must_use]
    pub fn with_room(mut self, tokens: usize) -> Self {
        self.room = tokens;
        self
    }

    /// Sets the largest number of prefixes in one call, at least one.
    #[must_use]
    pub fn with_rows_at_once(mut self, prefixes: usize) -> Self {
        self.at_once = prefixes.max(1);
        self
    }
}

impl<F, R, E> TreeDecoder for PrefixRows<F>
where
    F: FnMut(&[&[TokenId]]) -> Result<R, E>,
    R: AsRef<[f32]>,
{
    type Error = PrefixRowsError<E>;

    fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    fn room(&self) -> usize {
        self.room
    }

    fn rows_at_once(&self) -> usize {
        self.at_once
    }

    fn decode(
        &mut self,
        prompt: &[TokenId],
        tree: &TokenTree,
        each: &mut dyn FnMut(Option<usize>, &[f32]),
    ) -> Result<DecodeCost, Self::Error> {
        let wanted = (0..tree.nodes().len()).filter(|&node| tree.nodes()[node].wanted).map(Some);
        let wanted: Vec<Option<usize>> = tree.wants_root().then_some(None).into_iter().chain(wanted).collect();
        let mut decoded = DecodeCost::default();
        for nodes in wanted.chunks(self.at_once) {
            let path = |node: &Option<usize>| node.map_or_else(Vec::new, |node| tree.path(node));
            let prefixes: Vec<Vec<TokenId>> = nodes.iter().map(|node| [prompt, &path(node)].concat()).collect();
            let slices: Vec<&[TokenId]> = prefixes.iter().map(Vec::as_slice).collect();
            let rows = (self.rows)(&slices).map_err(PrefixRowsError::Function)?;
            let rows = rows.as_ref();
            if rows.len() != nodes.len() * self.n_vocab {
                let (found, prefixes) = (rows.len(), nodes.len());
                return Err(PrefixRowsError::Length { found, prefixes, n_vocab: self.n_vocab });
            }
            for (&node, row) in nodes.iter().zip(rows.chunks_exact(self.n_vocab)) {
                each(node, row);
            }
            decoded.forward_passes += 1;
            decoded.tokens += prefixes.iter().map(Vec::len).sum::<usize>();
        }
        Ok(decoded)
    }
}

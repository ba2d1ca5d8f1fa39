//! Tokens of a vocabulary in the order of their bytes, which a walk scans once from front to back.

use crate::tokens::memory::{KeptMemory, MaskMemory};
use crate::tokens::order::{LONGEST, TokenTree, common};
use crate::tokens::slices::Slices;
use crate::tokens::walk::{Path, tokens_from};
use std::mem::size_of;
use std::ops::Range;
use std::sync::OnceLock;
use trie_core::TokenId;

/// Tokens sorted by their bytes, each with the length of the prefix that it shares with the token before it: a walk
/// takes the steps of that prefix once. Several tokens may have the same bytes; a token without bytes is never allowed.
#[derive(Debug, Clone)]
pub struct TokenBytes {
    n_vocab: usize,
    order: TokenTree,
    /// Made when a rule first asks for them.
    slices: OnceLock<Slices>,
    /// Bytes of each token by its id, for single steps.
    spelled: TokenTexts,
    /// Bytes that are tokens of their own.
    single: [bool; 256],
    longest: usize,
    /// Masks of the rules over these tokens.
    kept: MaskMemory,
}

#[derive(Debug, Clone, Default)]
struct TokenTexts {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// Error of tokens that cannot form a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenBytesError {
    /// An id that the vocabulary does not have.
    #[error("token id {token} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// The invalid token id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// An id that comes twice.
    #[error("token id {token} comes twice: each token has one text")]
    Repeated {
        /// The invalid token id.
        token: TokenId,
    },
    /// More bytes than can be counted.
    #[error("a token has 16 MiB or more, or the tokens have 4 GiB or more together")]
    TooLong,
}

trie_core::error_kind!(TokenBytesError, Vocabulary);

impl Default for TokenBytes {
    /// Returns a vocabulary without tokens.
    fn default() -> Self {
        let (order, slices) = (TokenTree::of_rows(std::iter::empty()), OnceLock::new());
        let (spelled, single, kept) = (TokenTexts::default(), [false; 256], MaskMemory::default());
        Self { n_vocab: 0, order, slices, spelled, single, longest: 0, kept }
    }
}

impl TokenBytes {
    /// Builds the table from all text tokens, with their bytes. Leave control tokens out: they are never text.
    /// `n_vocab` is the number of token ids.
    ///
    /// # Errors
    /// [`TokenBytesError`].
    pub fn new<'b>(
        n_vocab: usize,
        tokens: impl IntoIterator<Item = (&'b [u8], TokenId)>,
    ) -> Result<Self, TokenBytesError> {
        let mut rows: Vec<(&[u8], TokenId)> = tokens.into_iter().collect();
        if let Some(&(_, token)) = rows.iter().find(|(_, token)| token.index() >= n_vocab) {
            return Err(TokenBytesError::OutsideVocabulary { token, n_vocab });
        }
        let lengths = || rows.iter().map(|(bytes, _)| bytes.len());
        if lengths().any(|length| length > LONGEST) || u32::try_from(lengths().sum::<usize>()).is_err() {
            return Err(TokenBytesError::TooLong);
        }
        let mut by_id = vec![None; n_vocab];
        for &(bytes, token) in &rows {
            if by_id[token.index()].replace(bytes).is_some() {
                return Err(TokenBytesError::Repeated { token });
            }
        }
        let mut spelled = TokenTexts { bytes: Vec::new(), ends: Vec::with_capacity(n_vocab) };
        for bytes in by_id {
            spelled.bytes.extend_from_slice(bytes.unwrap_or_default());
            spelled.ends.push(spelled.bytes.len() as u32);
        }
        rows.retain(|(bytes, _)| !bytes.is_empty());
        sort(&mut rows);
        let longest = rows.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
        let mut before: &[u8] = &[];
        let order = TokenTree::of_rows(rows.iter().map(|&(bytes, token)| {
            let common = common(bytes, std::mem::replace(&mut before, bytes));
            (bytes, common, token)
        }));
        let mut single = [false; 256];
        rows.iter().filter(|(bytes, _)| bytes.len() == 1).for_each(|(bytes, _)| single[usize::from(bytes[0])] = true);
        Ok(Self { n_vocab, order, slices: OnceLock::new(), spelled, single, longest, kept: MaskMemory::default() })
    }

    /// Sets the memory in which rules over these tokens keep their masks. Two tables of one vocabulary can share it,
    /// such as one in which control tokens are text.
    #[must_use]
    pub fn keeping_in(mut self, memory: &MaskMemory) -> Self {
        self.kept = memory.clone();
        self
    }

    /// Returns the memory of all rules over these tokens.
    pub fn mask_memory(&self) -> &MaskMemory {
        &self.kept
    }

    pub(crate) fn memory(&self) -> &KeptMemory {
        self.kept.kept_memory()
    }

    /// Returns the number of token ids.
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Returns the number of text tokens.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns whether no token is text.
    pub fn is_empty(&self) -> bool {
        self.order.len() == 0
    }

    /// Returns the length of the longest token in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the bytes of a token; none for a token that is not text.
    pub fn bytes(&self, token: TokenId) -> &[u8] {
        let Some(&end) = self.spelled.ends.get(token.index()) else { return &[] };
        let begin = token.index().checked_sub(1).map_or(0, |before| self.spelled.ends[before]);
        &self.spelled.bytes[begin as usize..end as usize]
    }

    /// Returns whether a token is this byte alone.
    pub fn has_byte(&self, byte: u8) -> bool {
        self.single[usize::from(byte)]
    }

    /// Returns the number of bytes held: by the tokens, and by the data that walks have derived from them so far.
    pub fn nbytes(&self) -> usize {
        let spelled = self.spelled.bytes.len() + size_of::<u32>() * self.spelled.ends.len();
        self.order.nbytes() + self.slices.get().map_or(0, Slices::nbytes) + spelled
    }

    /// Calls `each` with every token all of whose bytes `step` accepts from a state, in the order of their bytes.
    ///
    /// A shared prefix is walked once, and tokens with a refused prefix are skipped.
    pub fn walk<S>(&self, from: &S, step: impl FnMut(&S, u8) -> Option<S>, mut each: impl FnMut(TokenId)) {
        let mut path = Path::default();
        tokens_from(step, self.all_tokens(), from, &mut path, |token, _| each(token));
    }

    /// The tokens that begin with all of these bytes and go on, in the order of their bytes; none for no bytes.
    pub(crate) fn longer_than(&self, bytes: &[u8]) -> impl Iterator<Item = TokenId> {
        let all = self.order.tokens();
        // In the order of bytes they are neighbours, after what comes before them and equals them.
        let from = if bytes.is_empty() { all.len() } else { all.partition_point(|&token| self.bytes(token) <= bytes) };
        all[from..].iter().copied().take_while(|&token| self.bytes(token).starts_with(bytes))
    }

    /// All tokens, for a walk.
    pub(crate) fn all_tokens(&self) -> (&TokenTree, Range<usize>) {
        (&self.order, 0..self.order.nodes().len())
    }

    /// Returns all tokens that are text, as a tree of their bytes.
    #[inline]
    pub fn tree(&self) -> &TokenTree {
        &self.order
    }

    pub(crate) fn slices(&self) -> &Slices {
        self.slices.get_or_init(|| Slices::new(self.order.tokens().iter().map(|&token| self.bytes(token))))
    }
}

/// Sorts tokens by their bytes: by the first eight, digit by digit, since these decide nearly always, and then each run
/// of equals.
fn sort(rows: &mut Vec<(&[u8], TokenId)>) {
    let first = |bytes: &[u8]| {
        let mut first = [0; 8];
        let length = bytes.len().min(8);
        first[..length].copy_from_slice(&bytes[..length]);
        u64::from_be_bytes(first)
    };
    let mut keyed: Vec<(u64, u32)> = rows.iter().zip(0..).map(|(&(bytes, _), row)| (first(bytes), row)).collect();
    let mut sorted = keyed.clone();
    for shift in (0..u64::BITS).step_by(8) {
        let digit = |key: u64| usize::from((key >> shift) as u8);
        let mut places = [0; 256];
        for &(key, _) in &keyed {
            places[digit(key)] += 1;
        }
        if places.contains(&keyed.len()) {
            continue;
        }
        let mut end = 0;
        for place in &mut places {
            end += std::mem::replace(place, end);
        }
        for &(key, row) in &keyed {
            sorted[places[digit(key)]] = (key, row);
            places[digit(key)] += 1;
        }
        std::mem::swap(&mut keyed, &mut sorted);
    }
    let unsorted = std::mem::take(rows);
    rows.extend(keyed.iter().map(|&(_, row)| unsorted[row as usize]));
    let mut left = &mut rows[..];
    for equals in keyed.chunk_by(|one, other| one.0 == other.0) {
        let (run, after) = left.split_at_mut(equals.len());
        run.sort_unstable();
        left = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sorted_as_their_bytes_are() {
        let id = |n: usize| TokenId::new(n as u32).unwrap();
        let zeros = |n: usize| vec![0; n];
        let mut texts: Vec<Vec<u8>> = (0..12).flat_map(|n| [zeros(n), [&zeros(n)[..], b"\xff"].concat()]).collect();
        texts.extend((0u32..3000).map(|n| n.wrapping_mul(0x9E37_79B9).to_be_bytes()[..=(n as usize % 4)].to_vec()));
        texts.extend((0..300).map(|n| format!("a long beginning, then {}", n * 7919 % 300).into_bytes()));
        let mut rows: Vec<(&[u8], TokenId)> = texts.iter().enumerate().map(|(n, text)| (&text[..], id(n))).collect();
        let mut expected = rows.clone();
        expected.sort();
        sort(&mut rows);
        assert_eq!(rows, expected);
    }
}

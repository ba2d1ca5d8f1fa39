//! The tokens of a vocabulary in the order of their bytes: what a walk goes through once from front to back.

use std::mem::size_of;
use trie_core::TokenId;

/// Tokens sorted by their bytes. Of each it is known how many bytes it shares with the one before: what was walked for
/// those is not walked again. Tokens of any length; several may have the same bytes; one without bytes never comes.
#[derive(Debug, Clone)]
pub struct TokenBytes {
    n_vocab: usize,
    /// Bytes of all tokens in order, without what each shares with the one before.
    rest: Vec<u8>,
    /// Where those of each token begin in `rest`; one more than tokens.
    begins: Vec<u32>,
    /// How many bytes each shares with the one before.
    shared: Vec<u32>,
    tokens: Vec<TokenId>,
    /// The first token that begins with each byte, in order; 257 entries.
    first: Vec<u32>,
    /// Bytes of each token by its id, for single steps.
    spelled: Spelled,
    longest: usize,
}

#[derive(Debug, Clone, Default)]
struct Spelled {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// Tokens that make no vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenBytesError {
    /// An id that the vocabulary does not have.
    #[error("token id {token} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// The id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// An id that comes twice.
    #[error("token id {token} comes twice: each token has one text")]
    Repeated {
        /// The id.
        token: TokenId,
    },
    /// More bytes than 32 bits count.
    #[error("the tokens have more than 4 GiB of bytes")]
    TooLong,
}

impl Default for TokenBytes {
    /// Without tokens.
    fn default() -> Self {
        let (begins, first) = (vec![0], vec![0; 257]);
        let (rest, shared, tokens, spelled) = (Vec::new(), Vec::new(), Vec::new(), Spelled::default());
        Self { n_vocab: 0, rest, begins, shared, tokens, first, spelled, longest: 0 }
    }
}

impl TokenBytes {
    /// The tokens that are text, with their bytes. Leave control tokens out: they are never text. `n_vocab` is the
    /// number of token ids.
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
        if u32::try_from(rows.iter().map(|(bytes, _)| bytes.len()).sum::<usize>()).is_err() {
            return Err(TokenBytesError::TooLong);
        }
        let mut by_id = vec![None; n_vocab];
        for &(bytes, token) in &rows {
            if by_id[token.index()].replace(bytes).is_some() {
                return Err(TokenBytesError::Repeated { token });
            }
        }
        let mut spelled = Spelled { bytes: Vec::new(), ends: Vec::with_capacity(n_vocab) };
        for bytes in by_id {
            spelled.bytes.extend_from_slice(bytes.unwrap_or_default());
            spelled.ends.push(spelled.bytes.len() as u32);
        }
        rows.retain(|(bytes, _)| !bytes.is_empty());
        rows.sort_unstable();
        let longest = rows.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
        let (mut rest, mut begins, mut shared) = (Vec::new(), vec![0], Vec::with_capacity(rows.len()));
        let mut before: &[u8] = &[];
        for &(bytes, _) in &rows {
            let common = bytes.iter().zip(before).take_while(|(one, other)| one == other).count();
            rest.extend_from_slice(&bytes[common..]);
            begins.push(rest.len() as u32);
            shared.push(common as u32);
            before = bytes;
        }
        let first =
            (0..=256).map(|byte| rows.partition_point(|(bytes, _)| usize::from(bytes[0]) < byte) as u32).collect();
        let tokens = rows.iter().map(|&(_, token)| token).collect();
        Ok(Self { n_vocab, rest, begins, shared, tokens, first, spelled, longest })
    }

    /// Number of token ids.
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Number of tokens that are text.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether no token is text.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Bytes of the longest token.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The bytes of a token; empty for what is no text.
    pub fn bytes(&self, token: TokenId) -> &[u8] {
        let Some(&end) = self.spelled.ends.get(token.index()) else { return &[] };
        let begin = token.index().checked_sub(1).map_or(0, |before| self.spelled.ends[before]);
        &self.spelled.bytes[begin as usize..end as usize]
    }

    /// Whether a token is this byte alone.
    pub fn has_byte(&self, byte: u8) -> bool {
        // Shorter texts come first.
        let at = self.first[usize::from(byte)] as usize;
        at < self.first[usize::from(byte) + 1] as usize && self.begins[at + 1] - self.begins[at] == 1
    }

    /// Bytes held.
    pub fn nbytes(&self) -> usize {
        self.rest.len()
            + self.spelled.bytes.len()
            + size_of::<u32>() * (self.begins.len() + self.shared.len() + self.first.len() + self.spelled.ends.len())
            + size_of::<TokenId>() * self.tokens.len()
    }

    /// The tokens that begin with a byte, by their places in the order.
    pub(crate) fn beginning_with(&self, byte: u8) -> std::ops::Range<usize> {
        self.first[usize::from(byte)] as usize..self.first[usize::from(byte) + 1] as usize
    }

    /// The tokens that begin with all of these bytes and go on, in the order of their bytes.
    pub(crate) fn longer_than(&self, bytes: &[u8]) -> impl Iterator<Item = TokenId> {
        let places = bytes.first().map_or(0..0, |&first| self.beginning_with(first));
        let here = &self.tokens[places];
        // In the order of bytes they are neighbours, after what comes before them and equals them.
        let from = here.partition_point(|&token| self.bytes(token) <= bytes);
        here[from..].iter().copied().take_while(|&token| self.bytes(token).starts_with(bytes))
    }

    /// The token at a place in the order.
    #[inline]
    pub(crate) fn token(&self, place: usize) -> TokenId {
        self.tokens[place]
    }

    /// How many bytes the token at a place shares with the one before, and its others.
    #[inline]
    pub(crate) fn rest(&self, place: usize) -> (usize, &[u8]) {
        let bytes = &self.rest[self.begins[place] as usize..self.begins[place + 1] as usize];
        (self.shared[place] as usize, bytes)
    }

    /// The first place from `place` on, before `end`, whose token shares at most so many bytes with the one before.
    #[inline]
    pub(crate) fn skip(&self, place: usize, end: usize, shared: usize) -> usize {
        let behind = self.shared[place..end].iter().position(|&common| common as usize <= shared);
        behind.map_or(end, |behind| place + behind)
    }
}

//! Functions of the C interface for vocabularies.

use super::parts::{ids, items};
use super::structs::tokentrie_vocab;
use crate::error::{Error, Result, done};
use crate::handles::{Kind, Table};
use crate::memory::{Buffer, In, Out};
use crate::status::*;
use std::sync::Arc;
#[cfg(feature = "specs")]
use tokentrie::constraint::Over;
use trie_core::TokenId;

pub(crate) static VOCABS: Table<Arc<Vocab>> = Table::new(Kind::Vocab);

/// Vocabulary behind a handle.
#[derive(Debug)]
pub struct Vocab {
    size: usize,
    end_of_generation: Vec<TokenId>,
    /// Bytes of the tokens, if known.
    tokens: Option<Arc<trie_text::Vocab>>,
}

impl Vocab {
    fn of_size(size: usize, mut end_of_generation: Vec<TokenId>) -> Result<Self> {
        if size == 0 || size > TokenId::MAX.index() + 1 {
            return Err(Error::argument(format!("n_vocab is {size}: it must be from 1 to 2147483648")));
        }
        end_of_generation.sort_unstable();
        end_of_generation.dedup();
        if let Some(token) = end_of_generation.last().filter(|token| token.index() >= size) {
            let message = format!("end_of_generation: token id {token} is outside the vocabulary of {size} tokens");
            return Err(Error::new(TOKENTRIE_ERROR_VOCAB, message));
        }
        Ok(Self { size, end_of_generation, tokens: None })
    }

    /// The same tokens as a model has.
    pub(crate) fn of_tokens(tokens: Arc<trie_text::Vocab>) -> Self {
        let (size, end_of_generation) = (tokens.len(), tokens.end_of_generation().to_vec());
        Self { size, end_of_generation, tokens: Some(tokens) }
    }

    /// Returns the number of tokens.
    #[allow(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.size
    }

    /// Tokens that end the output, ascending.
    pub fn end_of_generation(&self) -> &[TokenId] {
        &self.end_of_generation
    }

    /// Their bytes and the rest, where more than their number is known.
    pub fn tokens(&self) -> Option<&Arc<trie_text::Vocab>> {
        self.tokens.as_ref()
    }

    /// Returns the vocabulary as the context of specs.
    #[cfg(feature = "specs")]
    pub(crate) fn over(&self) -> Over<'_> {
        self.tokens.as_ref().map_or(Over::size(self.size), Over::vocab)
    }

    fn piece(&self, token: TokenId) -> Result<&[u8]> {
        let n_vocab = self.size;
        let outside = || {
            let message = format!("token id {token} is outside the vocabulary of {n_vocab} tokens");
            Error::new(TOKENTRIE_ERROR_VOCAB, message)
        };
        let none = || Error::new(TOKENTRIE_ERROR_VOCAB, "this vocabulary was made without the bytes of its tokens");
        self.tokens.as_ref().ok_or_else(none)?.piece(token).ok_or_else(outside)
    }
}

/// `n_vocab` ids. Nothing is known of them but which ones end the output.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_new(
    n_vocab: usize,
    end_of_generation: In<i32>,
    n_end_of_generation: usize,
    vocab: Out<tokentrie_vocab>,
) -> tokentrie_status {
    done(|| {
        vocab.check("vocab")?;
        let ends = ids(end_of_generation.slice(n_end_of_generation, "end_of_generation")?, "end_of_generation")?;
        vocab.put(VOCABS.insert(Arc::new(Vocab::of_size(n_vocab, ends)?))?);
        Ok(())
    })
}

/// The bytes of every token, one after the other, and its kind, TOKENTRIE_TOKEN_…; `kinds` may be NULL: all normal.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_from_pieces(
    bytes: In<u8>,
    n_bytes: usize,
    ends: In<u64>,
    kinds: In<u8>,
    n_vocab: usize,
    vocab: Out<tokentrie_vocab>,
) -> tokentrie_status {
    done(|| {
        vocab.check("vocab")?;
        let (bytes, ends) = (bytes.slice(n_bytes, "bytes")?, ends.slice(n_vocab, "ends")?);
        let pieces = items(bytes.len(), ends, "bytes")?;
        let kinds = kinds.slice(if kinds.is_null() { 0 } else { n_vocab }, "kinds")?;
        if let Some((at, kind)) = kinds.iter().enumerate().find(|(_, kind)| **kind > TOKENTRIE_TOKEN_END_OF_GENERATION)
        {
            return Err(Error::argument(format!("kinds[{at}] is {kind}: it must be 0, 1 or 2")));
        }
        let of_kind = |wanted| {
            let all = TokenId::all(kinds.len()).zip(kinds).filter(move |(_, kind)| **kind == wanted);
            all.map(|(token, _)| token).collect()
        };
        let (ending, control) = (of_kind(TOKENTRIE_TOKEN_END_OF_GENERATION), of_kind(TOKENTRIE_TOKEN_CONTROL));
        let tokens = trie_text::Vocab::from_tokens(pieces.map(|range| &bytes[range]), ending, control)?;
        vocab.put(VOCABS.insert(Arc::new(Vocab::of_tokens(Arc::new(tokens))))?);
        Ok(())
    })
}

/// Returns the number of ids.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_size(vocab: tokentrie_vocab, n_vocab: Out<usize>) -> tokentrie_status {
    done(|| {
        n_vocab.check("n_vocab")?;
        n_vocab.put(VOCABS.get(vocab)?.len());
        Ok(())
    })
}

/// Returns the end-of-generation tokens, ascending.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_end_of_generation(
    vocab: tokentrie_vocab,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let (buffer, vocab) = (Buffer::new(&ids, capacity, &count, "ids")?, VOCABS.get(vocab)?);
        let ends = vocab.end_of_generation();
        buffer.fill_with(ends.len(), ends.iter().map(|token| token.as_i32()))
    })
}

/// The bytes of these tokens, one after the other; TOKENTRIE_ERROR_VOCAB where the vocabulary has none.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_bytes(
    vocab: tokentrie_vocab,
    ids: In<i32>,
    n_ids: usize,
    bytes: Out<u8>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let (buffer, vocab) = (Buffer::new(&bytes, capacity, &count, "bytes")?, VOCABS.get(vocab)?);
        let mut all = Vec::new();
        for token in super::parts::ids(ids.slice(n_ids, "ids")?, "ids")? {
            all.extend_from_slice(vocab.piece(token)?);
        }
        buffer.fill(&all)
    })
}

/// Ends the handle; what was made with it stays.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_free(vocab: tokentrie_vocab) -> tokentrie_status {
    done(|| VOCABS.free(vocab))
}

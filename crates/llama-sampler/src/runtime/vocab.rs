//! The tokens of a model: their bytes and their kinds; `vocab/text.rs` makes tokens of text and text of tokens.

mod text;

use super::cuts::Cuts;
use super::error::RuntimeError;
use super::model::load;
use super::preconditions::{MAX_TEXT, in_range, inside_vocabulary};
use super::tokenizer::Tokenizer;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token_type::LlamaTokenAttr;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use text::Source;
use trie_core::{ByteTrie, TokenId, Trie};

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Text,
    /// One byte of a character that has no token of its own.
    Byte,
    /// No text: it tells the model something.
    Control,
    /// Stands for text that the vocabulary cannot spell.
    Unknown,
    /// Never produced.
    Unused,
}

impl TokenKind {
    /// In lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Byte => "byte",
            Self::Control => "control",
            Self::Unknown => "unknown",
            Self::Unused => "unused",
        }
    }
}

/// A vocabulary: from a GGUF, with its tokenizer, or from a list of tokens, without one or with the caller's.
///
/// Immutable and shared between threads; put it into an `Arc`.
#[derive(Debug)]
pub struct Vocab {
    /// All pieces, one after the other.
    bytes: Vec<u8>,
    /// Where each piece ends.
    ends: Vec<usize>,
    end_of_generation: Vec<TokenId>,
    control: Vec<TokenId>,
    /// Of each token.
    kinds: Vec<TokenKind>,
    tokenizer: Option<Source>,
    /// Whether the tokenizer puts a space before a text.
    spaced: bool,
    fingerprint: OnceLock<String>,
    by_bytes: OnceLock<ByteTrie>,
    cuts: OnceLock<Option<Cuts>>,
}

impl Vocab {
    /// The vocabulary of a GGUF file, whether it holds weights or not. `O(tokens)`, a tenth of a second for big ones.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or holds no vocabulary.
    pub fn from_gguf(path: impl AsRef<Path>) -> Result<Self, RuntimeError> {
        let path = path.as_ref();
        super::gguf::read_header(path)?;
        Self::from_model(load(path, &LlamaModelParams::default().with_vocab_only(true))?, path)
    }

    pub(super) fn from_model(model: Arc<LlamaModel>, path: &Path) -> Result<Self, RuntimeError> {
        let tokenizer = model.meta_val_str("tokenizer.ggml.model").unwrap_or_default();
        let n_vocab = model.n_vocab();
        // Every query about a vocabulary of type "none" aborts the process.
        if n_vocab <= 0 || matches!(tokenizer.as_str(), "" | "none" | "no_vocab") {
            return Err(RuntimeError::NoVocabulary { path: path.to_owned(), tokenizer, n_vocab: n_vocab.into() });
        }
        let vocab = model.vocab();
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(n_vocab as usize);
        for token in vocab.tokens() {
            // The safe crate retries with the exact length, so no piece is truncated.
            vocab.token_to_piece_into(token, &mut bytes, true, None);
            ends.push(bytes.len());
        }
        let end_of_generation =
            vocab.tokens().filter(|&token| vocab.is_eog(token)).filter_map(|token| TokenId::try_from(token.0).ok());
        let kind = |token| {
            let has = |attribute| vocab.attr(token).contains(attribute);
            match () {
                // The tokenizer reads the name of the unknown token as it reads those of control tokens.
                () if has(LlamaTokenAttr::Unknown) => TokenKind::Unknown,
                () if vocab.is_control(token) => TokenKind::Control,
                () if has(LlamaTokenAttr::Unused) => TokenKind::Unused,
                () if has(LlamaTokenAttr::Byte) => TokenKind::Byte,
                () => TokenKind::Text,
            }
        };
        let kinds = vocab.tokens().map(kind).collect();
        let end_of_generation = end_of_generation.collect();
        Self::from_parts(bytes, ends, kinds, end_of_generation, Some(Source::Llama(model)))
    }

    /// A vocabulary from the bytes of its tokens, the end-of-generation tokens and the control tokens.
    ///
    /// # Errors
    /// No token at all, or an id that the list does not have.
    pub fn from_tokens(
        pieces: impl IntoIterator<Item = impl AsRef<[u8]>>,
        end_of_generation: Vec<TokenId>,
        control: Vec<TokenId>,
    ) -> Result<Self, RuntimeError> {
        let mut tokens: Vec<_> = pieces.into_iter().map(|piece| (piece, TokenKind::Text)).collect();
        inside_vocabulary(&control, tokens.len())?;
        for token in control {
            tokens[token.index()].1 = TokenKind::Control;
        }
        Self::new(tokens, end_of_generation, None)
    }

    /// A vocabulary from the bytes and kinds of its tokens and the end-of-generation tokens, with a tokenizer if there is one, which
    /// is asked for the tokens of some letters.
    ///
    /// # Errors
    /// No token at all, or an id that the list does not have.
    pub fn new(
        tokens: impl IntoIterator<Item = (impl AsRef<[u8]>, TokenKind)>,
        mut end_of_generation: Vec<TokenId>,
        tokenizer: Option<Arc<dyn Tokenizer>>,
    ) -> Result<Self, RuntimeError> {
        let (mut bytes, mut ends, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for (piece, kind) in tokens {
            bytes.extend_from_slice(piece.as_ref());
            ends.push(bytes.len());
            kinds.push(kind);
        }
        in_range("number of tokens", ends.len() as u64, 1, TokenId::MAX.index() as u64 + 1)?;
        inside_vocabulary(&end_of_generation, ends.len())?;
        end_of_generation.sort_unstable();
        end_of_generation.dedup();
        Self::from_parts(bytes, ends, kinds, end_of_generation, tokenizer.map(Source::Caller))
    }

    fn from_parts(
        bytes: Vec<u8>,
        ends: Vec<usize>,
        kinds: Vec<TokenKind>,
        end_of_generation: Vec<TokenId>,
        tokenizer: Option<Source>,
    ) -> Result<Self, RuntimeError> {
        // Keeps the byte trie within 32 bits.
        in_range("bytes of all tokens", bytes.len() as u64, 0, MAX_TEXT)?;
        let is_control = |kind: &TokenKind| matches!(kind, TokenKind::Control | TokenKind::Unknown);
        let control = kinds.iter().zip(0..).filter(|(kind, _)| is_control(kind)).filter_map(|(_, id)| TokenId::new(id));
        let control = control.collect();
        let (fingerprint, by_bytes, cuts) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let mut vocab = Self {
            bytes,
            ends,
            end_of_generation,
            control,
            kinds,
            tokenizer,
            spaced: false,
            fingerprint,
            by_bytes,
            cuts,
        };
        // Not when it is first needed: a caller's tokenizer may wait for a lock that those who wait for this one hold.
        vocab.spaced = vocab.can_tokenize() && vocab.puts_space();
        Ok(vocab)
    }

    /// That a set is not known to be for another vocabulary: only a file that was saved for one says.
    ///
    /// # Errors
    /// [`RuntimeError::OtherVocabulary`].
    pub fn check_set(&self, set: &Trie) -> Result<(), RuntimeError> {
        match set.fingerprint() {
            Some(found) if found != self.fingerprint() => {
                let (found, expected) = (found.to_owned(), self.fingerprint().to_owned());
                Err(RuntimeError::OtherVocabulary { found, expected })
            }
            _ => Ok(()),
        }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never: there is at least one token.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes that a token stands for, however long; a control token's are its name.
    pub fn piece(&self, token: TokenId) -> Option<&[u8]> {
        let end = *self.ends.get(token.index())?;
        let start = token.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    /// Tokens that end the output, ascending.
    pub fn end_of_generation(&self) -> &[TokenId] {
        &self.end_of_generation
    }

    /// Whether the token ends the output.
    pub fn is_end_of_generation(&self, token: TokenId) -> bool {
        self.end_of_generation.binary_search(&token).is_ok()
    }

    /// Tokens that are no text, ascending: control tokens and the unknown one.
    pub fn control(&self) -> &[TokenId] {
        &self.control
    }

    /// Whether the token is text: not a control token, not marked as unused, not one that ends the output, and not without bytes.
    pub fn is_text(&self, token: TokenId) -> bool {
        self.piece(token).is_some_and(|piece| !piece.is_empty())
            && matches!(self.kind(token), Some(TokenKind::Text | TokenKind::Byte))
            && !self.is_end_of_generation(token)
    }

    /// What the token is for; `None` outside the vocabulary. One that stands for nothing is unused.
    pub fn kind(&self, token: TokenId) -> Option<TokenKind> {
        let kind = *self.kinds.get(token.index())?;
        let empty = kind == TokenKind::Text && self.piece(token).is_none_or(<[u8]>::is_empty);
        Some(if empty { TokenKind::Unused } else { kind })
    }

    /// The tokens that are text ([`Vocab::is_text`]) by their bytes. Made on the first call, in some 30 ms for 150,000 tokens.
    pub fn by_bytes(&self) -> &ByteTrie {
        self.by_bytes.get_or_init(|| {
            let tokens = (0..self.len() as u32).filter_map(TokenId::new).filter(|&token| self.is_text(token));
            // Never the default: the bytes of all tokens are counted in 30 bits.
            ByteTrie::new(tokens.filter_map(|token| Some((self.piece(token)?, token)))).unwrap_or_default()
        })
    }

    /// Tokens of text whose bytes begin with these, ascending. `O(length + found · log found)`.
    pub fn tokens_with_prefix(&self, bytes: &[u8]) -> Vec<TokenId> {
        let mut found = self.by_bytes().starting_with(bytes).to_vec();
        found.sort_unstable();
        found
    }

    /// Tokens of text that these bytes begin with, shortest first. `O(longest token)`.
    pub fn prefix_tokens(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.by_bytes().prefixes(bytes).flat_map(|(_, tokens)| tokens.iter().copied()).collect()
    }

    /// The bytes of these tokens, one after the other, as they stand in the middle of a text.
    ///
    /// # Errors
    /// A token outside the vocabulary.
    pub fn join(&self, tokens: &[TokenId]) -> Result<Vec<u8>, RuntimeError> {
        inside_vocabulary(tokens, self.len())?;
        Ok(tokens.iter().filter_map(|&token| self.piece(token)).flatten().copied().collect())
    }

    /// SHA-256 in hexadecimal over the pieces with their lengths and the kinds of tokens: equal vocabularies, equal
    /// fingerprints. Computed once.
    pub fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| {
            let mut hash = Sha256::new();
            for number in self.ends.iter().map(|&end| end as u64) {
                hash.update(number.to_le_bytes());
            }
            hash.update(&self.bytes);
            for kind in [&self.end_of_generation, &self.control] {
                hash.update((kind.len() as u64).to_le_bytes());
                for token in kind {
                    hash.update(token.get().to_le_bytes());
                }
            }
            hash.finalize().iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        })
    }
}

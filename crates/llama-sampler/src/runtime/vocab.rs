//! The tokens of a model: their bytes, their kinds, and text to tokens and back.

use super::cuts::Cuts;
use super::error::RuntimeError;
use super::model::load;
use super::preconditions::{MAX_TEXT, in_range, inside_vocabulary};
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use trie_core::{ByteTrie, TokenId};

/// A vocabulary: from a GGUF, with its tokenizer, or from a list of tokens, without one.
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
    /// Tokens that the file says are not used.
    unused: Vec<TokenId>,
    tokenizer: Option<Arc<LlamaModel>>,
    fingerprint: OnceLock<String>,
    /// Whether the tokenizer puts a space before a text.
    spaced: OnceLock<bool>,
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
        let of_kind = |is: &dyn Fn(LlamaToken) -> bool| {
            vocab.tokens().filter(|&token| is(token)).filter_map(|token| TokenId::try_from(token.0).ok()).collect()
        };
        let end_of_generation = of_kind(&|token| vocab.is_eog(token));
        // The tokenizer reads the name of the unknown token as it reads those of control tokens.
        let unknown = |token| vocab.attr(token).contains(LlamaTokenAttr::Unknown);
        let control = of_kind(&|token| vocab.is_control(token) || unknown(token));
        let unused = of_kind(&|token| vocab.attr(token).contains(LlamaTokenAttr::Unused));
        Self::from_parts(bytes, ends, [end_of_generation, control, unused], Some(model))
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
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for piece in pieces {
            bytes.extend_from_slice(piece.as_ref());
            ends.push(bytes.len());
        }
        in_range("number of tokens", ends.len() as u64, 1, TokenId::MAX.index() as u64 + 1)?;
        let sorted = |mut tokens: Vec<TokenId>| {
            inside_vocabulary(&tokens, ends.len())?;
            tokens.sort_unstable();
            tokens.dedup();
            Ok::<_, RuntimeError>(tokens)
        };
        let (end_of_generation, control) = (sorted(end_of_generation)?, sorted(control)?);
        Self::from_parts(bytes, ends, [end_of_generation, control, Vec::new()], None)
    }

    fn from_parts(
        bytes: Vec<u8>,
        ends: Vec<usize>,
        [end_of_generation, control, unused]: [Vec<TokenId>; 3],
        tokenizer: Option<Arc<LlamaModel>>,
    ) -> Result<Self, RuntimeError> {
        // Keeps the byte trie within 32 bits.
        in_range("bytes of all tokens", bytes.len() as u64, 0, MAX_TEXT)?;
        let (fingerprint, by_bytes, cuts) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Self {
            bytes,
            ends,
            end_of_generation,
            control,
            unused,
            tokenizer,
            fingerprint,
            spaced: OnceLock::new(),
            by_bytes,
            cuts,
        })
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
            && [&self.control, &self.unused, &self.end_of_generation]
                .iter()
                .all(|kind| kind.binary_search(&token).is_err())
    }

    /// Whether the token is found in a text before anything else, so that none goes over its borders.
    pub(super) fn stands_alone(&self, token: TokenId) -> bool {
        let defined =
            |model: &LlamaModel| model.vocab().attr(LlamaToken(token.as_i32())).contains(LlamaTokenAttr::UserDefined);
        self.control.binary_search(&token).is_ok()
            || (token.index() < self.len() && self.tokenizer().is_some_and(defined))
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

    /// Whether text can be tokenized: not if the vocabulary was made from a list of tokens.
    pub fn can_tokenize(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// Whether these tokens are these texts, one after the other.
    pub(super) fn spells<const N: usize>(&self, tokens: &[TokenId], texts: [&str; N]) -> bool {
        let pieces = tokens.iter().filter_map(|&token| self.piece(token)).flatten().copied();
        pieces.eq(texts.iter().flat_map(|text| text.bytes()))
    }

    /// The same, or with a space before it where the tokenizer puts one.
    pub(super) fn writes(&self, tokens: &[TokenId], [before, text, after]: [&str; 3]) -> bool {
        self.spells(tokens, [before, text, after])
            || (self.cuts().is_some_and(Cuts::own_space) && self.spells(tokens, [" ", before, text, after]))
    }

    fn tokenizer(&self) -> Option<&LlamaModel> {
        self.tokenizer.as_deref()
    }

    /// Where texts may be cut for its tokenizer.
    pub(super) fn cuts(&self) -> Option<&Cuts> {
        self.cuts.get_or_init(|| self.tokenizer().and_then(Cuts::of)).as_ref()
    }

    /// Tokens of a text. `add_special` adds what the model wants around a prompt; `parse_special` reads the names of
    /// control tokens in the text as those tokens: only for text that is trusted.
    ///
    /// # Errors
    /// The vocabulary has no tokenizer, or the text is over 2^30 bytes.
    pub fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, RuntimeError> {
        let vocab = self.tokenizer.as_ref().ok_or(RuntimeError::NoTokenizer)?.vocab();
        in_range("length of the text in bytes", text.len() as u64, 0, MAX_TEXT)?;
        if add_special {
            // llama.cpp asserts that a special token which it is told to add exists.
            let wanted = [
                (vocab.should_add_bos(), vocab.bos(), "begin-of-text"),
                (vocab.should_add_eos(), vocab.eos(), "end-of-text"),
                (vocab.should_add_sep(), vocab.sep(), "separator"),
            ];
            if let Some(&(_, _, token)) = wanted.iter().find(|(add, token, _)| *add && token.0 < 0) {
                return Err(RuntimeError::MissingSpecial { token });
            }
        }
        let tokens = vocab.tokenize(text.as_bytes(), add_special, parse_special);
        Ok(tokens.into_iter().filter_map(|token| TokenId::try_from(token.0).ok()).collect())
    }

    /// Tokens of a text as it stands in the middle of another, as plain text: [`Vocab::join`] gives it back. `None` if there are
    /// none, as with a tokenizer that normalises.
    pub fn tokenize_inside(&self, text: &str) -> Option<Vec<TokenId>> {
        self.inside(text, false)
    }

    pub(super) fn inside(&self, text: &str, parse_special: bool) -> Option<Vec<TokenId>> {
        if text.is_empty() {
            return Some(Vec::new());
        }
        let tokens = self.tokenize(text, false, parse_special).ok()?;
        if self.spells(&tokens, [text]) {
            return Some(tokens);
        }
        // Some tokenizers put a space before a text: here it goes before a line break, and both are cut off.
        let tokens = self.tokenize(&format!("\n{text}"), false, parse_special).ok()?;
        let mut length = 0;
        let from = tokens.iter().rposition(|&token| {
            length += self.piece(token).map_or(0, <[u8]>::len);
            length >= text.len()
        })?;
        self.spells(&tokens[from..], [text]).then(|| tokens[from..].to_vec())
    }

    /// How many of these tokens it takes to write so many bytes.
    pub(super) fn tokens_over(&self, tokens: &[TokenId], bytes: usize) -> usize {
        let mut written = 0;
        tokens
            .iter()
            .take_while(|&&token| {
                let more = written < bytes;
                written += self.piece(token).map_or(0, <[u8]>::len);
                more
            })
            .count()
    }

    /// The bytes of a whole text: the inverse of [`Vocab::tokenize`]. Some tokenizers put a space before the text
    /// and take it away here; use [`Vocab::join`] for tokens from the middle of a text.
    ///
    /// # Errors
    /// A token outside the vocabulary.
    pub fn detokenize(&self, tokens: &[TokenId]) -> Result<Vec<u8>, RuntimeError> {
        let Some(model) = &self.tokenizer else { return self.join(tokens) };
        inside_vocabulary(tokens, self.len())?;
        in_range("number of tokens", tokens.len() as u64, 0, MAX_TEXT)?;
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        // llama.cpp also tidies up spaces before punctuation, which the text may have had.
        let spaced = *self.spaced.get_or_init(|| {
            let tokens = self.tokenize("a", false, false).and_then(|tokens| self.join(&tokens));
            tokens.is_ok_and(|bytes| bytes == b" a")
        });
        if !spaced {
            return self.join(tokens);
        }
        let tokens: Vec<LlamaToken> = tokens.iter().map(|token| LlamaToken(token.as_i32())).collect();
        Ok(model.vocab().detokenize(&tokens, false, true))
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

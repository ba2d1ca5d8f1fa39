//! The tokens of a model: their bytes, their kinds, and text to tokens and back.

use super::cuts::Cuts;
use super::error::RuntimeError;
use super::model::load;
use super::preconditions::{MAX_TEXT, in_range, inside_vocabulary};
use super::tokenizer::Tokenizer;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use trie_core::{ByteTrie, TokenId};

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

/// Who makes tokens of text.
#[derive(Debug)]
pub(super) enum Source {
    Llama(Arc<LlamaModel>),
    Caller(Arc<dyn Tokenizer>),
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
    /// is asked for the tokens of one letter.
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
        let first = vocab.tokenize("a", false, false).and_then(|tokens| vocab.join(&tokens));
        vocab.spaced = first.is_ok_and(|bytes| bytes == b" a");
        Ok(vocab)
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
        if self.spaced && self.spells(tokens, [" ", before, text, after]) {
            return true;
        }
        // Where a space is put only if there is none, a text that begins with one loses it.
        let begins = || [before, text, after].into_iter().find(|part| !part.is_empty()).unwrap_or_default();
        !(self.spaced && begins().starts_with(' ')) && self.spells(tokens, [before, text, after])
    }

    /// The tokenizer that a caller brought.
    pub(super) fn callers(&self) -> Option<&dyn Tokenizer> {
        match &self.tokenizer {
            Some(Source::Caller(tokenizer)) => Some(&**tokenizer),
            _ => None,
        }
    }

    /// Where texts may be cut for its tokenizer.
    pub(super) fn cuts(&self) -> Option<&Cuts> {
        let cuts = || match &self.tokenizer {
            Some(Source::Llama(model)) => Cuts::of(model),
            _ => None,
        };
        self.cuts.get_or_init(cuts).as_ref()
    }

    /// Tokens of a text. `add_special` adds what the model wants around a prompt; `parse_special` reads the names of
    /// control tokens in the text as those tokens: only for text that is trusted.
    ///
    /// # Errors
    /// The vocabulary has no tokenizer, the text is over 2^30 bytes, or a caller's tokenizer fails or reads the name of a control
    /// token as that token against `parse_special`.
    pub fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, RuntimeError> {
        let vocab = match self.tokenizer.as_ref().ok_or(RuntimeError::NoTokenizer)? {
            Source::Llama(model) => model.vocab(),
            Source::Caller(tokenizer) => {
                let rows = self.ask(&**tokenizer, &[text.to_owned()], add_special, parse_special)?;
                return Ok(rows.into_iter().next().unwrap_or_default());
            }
        };
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
        let Some(source) = &self.tokenizer else { return self.join(tokens) };
        inside_vocabulary(tokens, self.len())?;
        in_range("number of tokens", tokens.len() as u64, 0, MAX_TEXT)?;
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        // llama.cpp also tidies up spaces before punctuation, which the text may have had.
        if !self.spaced {
            return self.join(tokens);
        }
        let model = match source {
            Source::Llama(model) => model,
            Source::Caller(_) => {
                let mut bytes = self.join(tokens)?;
                bytes.drain(..usize::from(bytes.starts_with(b" ")));
                return Ok(bytes);
            }
        };
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

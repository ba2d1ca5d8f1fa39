//! The tokens of a model: their bytes and their kinds. `tokenize.rs` turns text into tokens and back, and
//! `tokenize_all.rs` does so for many texts at once.

mod ask;
mod detokenizer;
mod end_of_generation;
mod error;
mod tokenize;
mod tokenize_all;
mod tokenizer_json;

pub use detokenizer::{Detokenizer, LossyText};
pub use end_of_generation::end_of_generation_by_name;
pub use error::VocabError;
pub use tokenize_all::TokenizedTexts;
pub use tokenizer_json::TokenizerJson;

use crate::tokenizer::{SplitPoints, Tokenizer};
use error::{MAX_TEXT, in_range, inside_vocabulary};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use trie_core::{Allowed, ByteTrie, TokenId, Trie, VocabularyId, bitmask};
use trie_rules::{MaskMemory, Spelling, TokenBytes};

/// The tokens of a model: their bytes, their kinds, and the tokenizer, if there is one.
///
/// Immutable and shared between threads; put it into an `Arc`.
///
/// ```
/// use trie_core::TokenId;
/// use trie_text::Vocab;
///
/// let end = TokenId::new(3).unwrap();
/// let vocab = Vocab::from_tokens(["a", "b", "ab", "</s>"], vec![end], vec![end])?;
/// let found = vocab.prefix_tokens(b"abc");
/// assert_eq!(vocab.join(&found)?, b"aab");
/// assert!(!vocab.is_text(end));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Vocab {
    /// All pieces, one after the other.
    bytes: Vec<u8>,
    /// End of each piece.
    ends: Vec<usize>,
    end_of_generation: Vec<TokenId>,
    control: Vec<TokenId>,
    /// Kind of each token.
    kinds: Vec<TokenKind>,
    tokenizer: Option<Arc<dyn Tokenizer>>,
    /// True if the tokenizer puts a space before a text.
    spaced: bool,
    fingerprint: OnceLock<String>,
    by_bytes: OnceLock<ByteTrie>,
    token_bytes: OnceLock<Arc<TokenBytes>>,
    /// The same with control tokens, for whole replies.
    reply_bytes: OnceLock<Arc<TokenBytes>>,
    /// Mask memory of all rules over these tokens.
    masks: MaskMemory,
    split_points: OnceLock<Option<SplitPoints>>,
    boundary_tokens: OnceLock<Vec<TokenId>>,
}

/// Returns whether a character continues the word before it.
fn continues_word(character: char) -> bool {
    // Combining marks, joiners and variation selectors belong to the character before them.
    let joins = matches!(character, '\u{300}'..='\u{36f}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    joins || character == '_' || character.is_alphanumeric()
}

/// Bytes as two hexadecimal digits each, the form in which fingerprints are shown.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Vocab {
    /// A vocabulary from the bytes of its tokens, the end-of-generation tokens and the control tokens.
    ///
    /// # Errors
    /// No token at all, or an id that the list does not have.
    pub fn from_tokens(
        pieces: impl IntoIterator<Item = impl AsRef<[u8]>>,
        end_of_generation: Vec<TokenId>,
        control: Vec<TokenId>,
    ) -> Result<Self, VocabError> {
        let mut tokens: Vec<_> = pieces.into_iter().map(|piece| (piece, TokenKind::Text)).collect();
        inside_vocabulary(&control, tokens.len())?;
        for token in control {
            tokens[token.index()].1 = TokenKind::Control;
        }
        Self::new(tokens, end_of_generation, None)
    }

    /// A vocabulary from the bytes and kinds of its tokens, the end-of-generation tokens and, if there is one, a
    /// tokenizer, which is asked for the tokens of some letters.
    ///
    /// # Errors
    /// No token at all, or an id that the list does not have.
    pub fn new(
        tokens: impl IntoIterator<Item = (impl AsRef<[u8]>, TokenKind)>,
        mut end_of_generation: Vec<TokenId>,
        tokenizer: Option<Arc<dyn Tokenizer>>,
    ) -> Result<Self, VocabError> {
        let (mut bytes, mut ends, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for (piece, kind) in tokens {
            bytes.extend_from_slice(piece.as_ref());
            ends.push(bytes.len());
            kinds.push(kind);
        }
        in_range("number of tokens", ends.len() as u64, 1, TokenId::MAX.index() as u64 + 1)?;
        // Keeps the byte trie within 32 bits.
        in_range("bytes of all tokens", bytes.len() as u64, 0, MAX_TEXT)?;
        inside_vocabulary(&end_of_generation, ends.len())?;
        end_of_generation.sort_unstable();
        end_of_generation.dedup();
        let is_control = |kind: &TokenKind| matches!(kind, TokenKind::Control | TokenKind::Unknown);
        let control = kinds.iter().zip(0..).filter(|(kind, _)| is_control(kind)).filter_map(|(_, id)| TokenId::new(id));
        let control = control.collect();
        let (fingerprint, by_bytes, split_points) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (token_bytes, reply_bytes, boundary_tokens) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let spaced = false;
        let mut vocab = Self {
            bytes,
            ends,
            end_of_generation,
            control,
            kinds,
            tokenizer,
            spaced,
            fingerprint,
            by_bytes,
            token_bytes,
            reply_bytes,
            masks: MaskMemory::default(),
            split_points,
            boundary_tokens,
        };
        // Not when it is first needed: a caller's tokenizer may wait for a lock that those who wait for this one hold.
        vocab.spaced = vocab.can_tokenize() && vocab.puts_space();
        Ok(vocab)
    }

    /// Returns the identity that sets of its ids carry.
    pub fn id(&self) -> VocabularyId<'_> {
        VocabularyId { size: self.len(), fingerprint: Some(self.fingerprint()) }
    }

    /// Checks that a set is not known to be for another vocabulary. A set made for a vocabulary records it, and so
    /// does a file saved for one.
    ///
    /// # Errors
    /// [`VocabError::OtherVocabulary`].
    pub fn check_set(&self, set: &Trie) -> Result<(), VocabError> {
        match set.vocabulary() {
            Some(VocabularyId { size, fingerprint: Some(found) }) if found != self.fingerprint() => {
                let (found, expected) = (found.to_owned(), self.fingerprint().to_owned());
                Err(VocabError::OtherVocabulary { found, size, expected, own: self.len() })
            }
            _ => Ok(()),
        }
    }

    /// Checks that every token is in the vocabulary.
    ///
    /// # Errors
    /// [`VocabError::OutsideVocabulary`] for the first that is not.
    pub fn check_tokens(&self, tokens: &[TokenId]) -> Result<(), VocabError> {
        inside_vocabulary(tokens, self.len())
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns false: there is at least one token.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes that a token stands for, of any length; for a control token, its name.
    pub fn piece(&self, token: TokenId) -> Option<&[u8]> {
        let end = *self.ends.get(token.index())?;
        let start = token.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    /// Tokens that end the output, ascending.
    pub fn end_of_generation(&self) -> &[TokenId] {
        &self.end_of_generation
    }

    /// Returns whether the token ends the output.
    pub fn is_end_of_generation(&self, token: TokenId) -> bool {
        self.end_of_generation.binary_search(&token).is_ok()
    }

    /// Tokens that are no text, ascending: control tokens and the unknown one.
    pub fn control(&self) -> &[TokenId] {
        &self.control
    }

    /// Returns the text tokens that can follow a word but not continue it, ascending: their first character is neither
    /// a letter nor a digit, an underscore or a combining mark. A token that begins inside a character is none of them.
    ///
    /// The first call is `O(V)`.
    pub fn boundary_tokens(&self) -> &[TokenId] {
        let found = || {
            let ends_a_word = |token: &TokenId| {
                let piece = if self.is_text(*token) { self.piece(*token) } else { None };
                let first = piece.and_then(|piece| piece.utf8_chunks().next()?.valid().chars().next());
                first.is_some_and(|first| !continues_word(first))
            };
            TokenId::all(self.len()).filter(ends_a_word).collect()
        };
        self.boundary_tokens.get_or_init(found)
    }

    /// Returns whether the token is text: not a control token, not unused, not a token that ends the output, and not
    /// empty.
    pub fn is_text(&self, token: TokenId) -> bool {
        self.piece(token).is_some_and(|piece| !piece.is_empty())
            && matches!(self.kind(token), Some(TokenKind::Text | TokenKind::Byte))
            && !self.is_end_of_generation(token)
    }

    /// Returns the kind of a token; `None` outside the vocabulary. A text token without bytes is unused.
    pub fn kind(&self, token: TokenId) -> Option<TokenKind> {
        let kind = *self.kinds.get(token.index())?;
        let empty = kind == TokenKind::Text && self.piece(token).is_none_or(<[u8]>::is_empty);
        Some(if empty { TokenKind::Unused } else { kind })
    }

    /// The tokens that are text ([`Vocab::is_text`]) by their bytes. Made on the first call.
    pub fn by_bytes(&self) -> &ByteTrie {
        self.by_bytes.get_or_init(|| {
            let tokens = (0..self.len() as u32).filter_map(TokenId::new).filter(|&token| self.is_text(token));
            // Never the default: the bytes of all tokens are counted in 30 bits.
            ByteTrie::new(tokens.filter_map(|token| Some((self.piece(token)?, token)))).unwrap_or_default()
        })
    }

    /// Returns the spelling for rules over bytes: the text tokens and the tokenizer. Made on the first call, in some
    /// 10 ms for 150,000 tokens.
    pub fn spelling(self: &Arc<Self>) -> Spelling {
        let made = || {
            let tokens = (0..self.len() as u32).filter_map(TokenId::new).filter(|&token| self.is_text(token));
            let tokens = TokenBytes::new(self.len(), tokens.filter_map(|token| Some((self.piece(token)?, token))));
            // Never the default: each id comes once, and the bytes of all tokens are counted in 30 bits.
            Arc::new(tokens.unwrap_or_default().keeping_in(&self.masks))
        };
        let tokens = Arc::clone(self.token_bytes.get_or_init(made));
        if !self.can_tokenize() {
            return tokens.into();
        }
        let vocab = Arc::clone(self);
        Spelling::with_tokenizer(tokens, move |text| vocab.tokenize_inside(text))
    }

    /// The memory in which all rules over this vocabulary keep their masks.
    pub fn mask_memory(&self) -> &MaskMemory {
        &self.masks
    }

    /// The same with control tokens, spelled as the byte `mark` and their names, for constraints on whole replies in
    /// which markers may be control tokens. End-of-generation tokens are left out. Made on the first call.
    pub fn spelling_with_control(self: &Arc<Self>, mark: u8) -> Spelling {
        let made = || {
            let all = (0..self.len() as u32).filter_map(TokenId::new);
            let spelled = all.filter_map(|token| {
                let piece = self.piece(token)?;
                if self.is_text(token) {
                    // A token that is that byte alone is not a marker, and no text that anything asks for.
                    return (!piece.contains(&mark)).then(|| (piece.to_vec(), token));
                }
                let is_marker =
                    self.control.binary_search(&token).is_ok() && self.end_of_generation.binary_search(&token).is_err();
                (is_marker && !piece.is_empty()).then(|| ([&[mark], piece].concat(), token))
            });
            let spelled: Vec<(Vec<u8>, TokenId)> = spelled.collect();
            let tokens = TokenBytes::new(self.len(), spelled.iter().map(|(bytes, token)| (&bytes[..], *token)));
            // Never the default: each id comes once, and the bytes of all tokens are counted in 30 bits.
            Arc::new(tokens.unwrap_or_default().keeping_in(&self.masks))
        };
        let tokens = Arc::clone(self.reply_bytes.get_or_init(made));
        if !self.can_tokenize() {
            return tokens.into();
        }
        let vocab = Arc::clone(self);
        Spelling::with_tokenizer(tokens, move |text| vocab.tokenize_inside(text))
    }

    /// Text tokens whose bytes begin with these bytes, ascending. `O(length + found · log found)`.
    pub fn tokens_with_prefix(&self, bytes: &[u8]) -> Vec<TokenId> {
        let mut found = self.by_bytes().starting_with(bytes).to_vec();
        found.sort_unstable();
        found
    }

    /// Text tokens that are a prefix of these bytes, shortest first. `O(longest token)`.
    pub fn prefix_tokens(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.by_bytes().prefixes(bytes).flat_map(|(_, tokens)| tokens.iter().copied()).collect()
    }

    /// The joined bytes of these tokens, as they are in the middle of a text.
    ///
    /// # Errors
    /// A token outside the vocabulary.
    pub fn join(&self, tokens: &[TokenId]) -> Result<Vec<u8>, VocabError> {
        self.check_tokens(tokens)?;
        Ok(tokens.iter().filter_map(|&token| self.piece(token)).flatten().copied().collect())
    }

    /// SHA-256 of the token mask ([`trie_core::bitmask`]), as little-endian words.
    pub fn mask_digest(&self, allowed: Allowed<'_>) -> [u8; 32] {
        let words = bitmask(allowed, self.len());
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Sha256::digest(bytes).into()
    }

    /// SHA-256, in hexadecimal, over the bytes of all tokens with their lengths and kinds: equal vocabularies have
    /// equal fingerprints. Computed once.
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
            hexadecimal(&hash.finalize())
        })
    }
}

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Text,
    /// One byte of a character that has no token of its own.
    Byte,
    /// A token that is not text but controls the model.
    Control,
    /// The token for text that the vocabulary cannot spell.
    Unknown,
    /// A token that is never produced.
    Unused,
}

impl TokenKind {
    /// Returns the name in lower case.
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

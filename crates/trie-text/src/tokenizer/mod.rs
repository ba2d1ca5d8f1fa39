//! Tokenizers: they turn text into tokens. llama.cpp's tokenizer is one; a vocabulary without a GGUF file brings
//! another.

mod split_points;

pub use split_points::{SplitPoints, SplitRule};

use std::error::Error;
use std::fmt::Debug;
use std::path::Path;
use trie_core::TokenId;

/// Why a tokenizer failed.
pub type TokenizerError = Box<dyn Error + Send + Sync>;

/// Turns text into tokens for a [`Vocab`](crate::Vocab).
///
/// One method is needed. The others have defaults that are right for every tokenizer; who knows more says so there, and
/// gains speed or exactness. Ids are checked in any case; that names of control tokens stay text is checked unless
/// [`Tokenizer::keeps_control_text`] promises it.
///
/// ```
/// use trie_core::TokenId;
/// use trie_text::{Tokenizer, TokenizerError, TokenKind, Vocab};
/// use std::sync::Arc;
///
/// #[derive(Debug)]
/// struct Letters;
///
/// impl Tokenizer for Letters {
///     fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
///         let id = |letter: char| match letter {
///             'a'..='z' => TokenId::new(u32::from(letter) - u32::from('a')),
///             _ => None,
///         };
///         text.chars().map(|letter| id(letter).ok_or_else(|| format!("{letter:?} is not a letter").into())).collect()
///     }
/// }
///
/// let tokens = ('a'..='z').map(|letter| (letter.to_string(), TokenKind::Text));
/// let vocab = Vocab::new(tokens, vec![], Some(Arc::new(Letters)))?;
/// assert_eq!(vocab.detokenize(&vocab.tokenize("trie", false, false)?)?, b"trie");
/// assert_eq!(vocab.tokenize("a b", false, false).unwrap_err().to_string(), "the tokenizer: ' ' is not a letter");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Tokenizer: Debug + Send + Sync {
    /// The tokens of a text. `add_special` adds what the model wants around a prompt; only with `parse_special` may
    /// names of control tokens in the text become those tokens.
    ///
    /// # Errors
    /// Whatever it fails with.
    fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, TokenizerError>;

    /// The tokens of each text, in order. For a tokenizer that has a faster way for many; the default asks one by one.
    ///
    /// # Errors
    /// Whatever it fails with, for any of the texts.
    fn tokenize_batch(
        &self,
        texts: &[&str],
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<Vec<TokenId>>, TokenizerError> {
        texts.iter().map(|text| self.tokenize(text, add_special, parse_special)).collect()
    }

    /// Returns whether many texts are best tokenized one by one on several threads. By default they come in large
    /// batches from one.
    ///
    /// Any thread may call any method at any time whatever this says. With `true`, no call may wait for another.
    fn is_parallel(&self) -> bool {
        false
    }

    /// The file that it was read from, if it was: a whole path.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Returns whether names of control tokens in plain text are sure to stay text. By default every answer is looked
    /// through for them.
    fn keeps_control_text(&self) -> bool {
        false
    }

    /// The bytes of the tokens of a whole text. Asked only where the tokenizer puts a space before a text; `None`, the
    /// default, joins the tokens' bytes and takes that space away.
    fn detokenize(&self, _tokens: &[TokenId]) -> Option<Vec<u8>> {
        None
    }

    /// Returns whether this token is found in a text before anything else, so that no other token crosses its
    /// boundaries. Control tokens always are.
    fn stands_alone(&self, _token: TokenId) -> bool {
        false
    }

    /// Returns the points at which a text may be split so that its tokens are those of the parts. `None`, the default:
    /// nowhere. Asked once.
    fn split_points(&self) -> Option<SplitPoints> {
        None
    }
}

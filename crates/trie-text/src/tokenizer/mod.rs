//! Tokenizers, which turn text into tokens. llama.cpp's tokenizer is one; a vocabulary without a GGUF file needs
//! another.

mod split_points;

pub use split_points::{SplitPoints, SplitRule};

use std::error::Error;
use std::fmt::Debug;
use std::path::Path;
use trie_core::TokenId;

/// Error of a tokenizer, of any type.
pub type TokenizerError = Box<dyn Error + Send + Sync>;

/// Turns text into tokens for a [`Vocab`](crate::Vocab).
///
/// Only one method is required. The others have defaults that are correct for every tokenizer; an implementation that
/// knows more can override them, for speed or exactness. Ids are always checked. Names of control tokens must stay
/// text, which is checked unless [`Tokenizer::keeps_control_text`] promises it.
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
    /// The tokens of a text. `add_special` adds the special tokens that the model requires around a prompt. Only with
    /// `parse_special` may names of control tokens in the text become those tokens.
    ///
    /// # Errors
    /// Any error of the tokenizer.
    fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, TokenizerError>;

    /// The tokens of each text, in order, for a tokenizer that has a faster way for many texts. The default calls
    /// `tokenize` for each.
    ///
    /// # Errors
    /// Any error of the tokenizer, for any of the texts.
    fn tokenize_batch(
        &self,
        texts: &[&str],
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<Vec<TokenId>>, TokenizerError> {
        texts.iter().map(|text| self.tokenize(text, add_special, parse_special)).collect()
    }

    /// Returns whether many texts are best tokenized one by one on several threads. By default, they come in large
    /// batches from one thread.
    ///
    /// In either case, any thread may call any method at any time. With `true`, no call may wait for another.
    fn is_parallel(&self) -> bool {
        false
    }

    /// Absolute path of the file that it was read from, if it was.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Returns whether names of control tokens in plain text are certain to stay text. By default every result is
    /// searched for control tokens.
    fn keeps_control_text(&self) -> bool {
        false
    }

    /// The bytes of the tokens of a whole text. It is called only if the tokenizer puts a space before a text. `None`,
    /// the default, stands for the joined bytes of the tokens without that space.
    fn detokenize(&self, _tokens: &[TokenId]) -> Option<Vec<u8>> {
        None
    }

    /// Returns whether this token is found in a text before all others, so that no other token crosses its boundaries.
    /// This always holds for control tokens.
    fn stands_alone(&self, _token: TokenId) -> bool {
        false
    }

    /// Returns the points at which a text may be split so that its tokens are those of the parts. `None`, the default,
    /// means nowhere. Called once.
    fn split_points(&self) -> Option<SplitPoints> {
        None
    }
}

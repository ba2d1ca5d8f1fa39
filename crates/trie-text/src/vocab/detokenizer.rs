//! Detokenisation token by token, in whole characters.

use super::{Vocab, VocabError};
use std::sync::Arc;
use trie_core::TokenId;

/// Returns the text of tokens as they arrive. Returned text is never taken back: an incomplete character is held back
/// until it is complete.
///
/// All returned texts together equal `String::from_utf8_lossy` of [`Vocab::join`] of all tokens.
///
/// ```
/// use std::sync::Arc;
/// use trie_core::TokenId;
/// use trie_text::{Detokenizer, TokenKind, Vocab};
/// let pieces = [&b"a"[..], b"\xc3", b"\xa4b"];
/// let vocab = Vocab::new(pieces.map(|piece| (piece, TokenKind::Text)), vec![], None)?;
/// let mut text = Detokenizer::new(Arc::new(vocab));
/// let id = |id| TokenId::new(id).unwrap();
/// assert_eq!([text.push(id(0))?, text.push(id(1))?, text.push(id(2))?], ["a", "", "äb"]);
/// assert_eq!(text.finish(), "");
/// # Ok::<(), trie_text::VocabError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Detokenizer {
    vocab: Arc<Vocab>,
    text: LossyText,
}

impl Detokenizer {
    /// A detokenizer before the first token.
    pub fn new(vocab: Arc<Vocab>) -> Self {
        Self { vocab, text: LossyText::default() }
    }

    /// The text that a token completes: often its own text, or nothing. `O(bytes of the token)`.
    ///
    /// # Errors
    /// A token outside the vocabulary; nothing changed then.
    pub fn push(&mut self, token: TokenId) -> Result<String, VocabError> {
        self.vocab.check_tokens(&[token])?;
        Ok(self.text.push(self.vocab.piece(token).unwrap_or_default()))
    }

    /// Number of bytes of an incomplete character.
    pub fn pending_bytes(&self) -> usize {
        self.text.begun.len()
    }

    /// Returns the rest at the end: U+FFFD for an incomplete character. Then the detokenizer starts again.
    pub fn finish(&mut self) -> String {
        self.text.finish()
    }
}

/// Decoder of bytes to text that only grows; anything that is not UTF-8 becomes U+FFFD.
#[derive(Debug, Clone, Default)]
pub struct LossyText {
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl LossyText {
    /// The text that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.begun.extend_from_slice(bytes);
        let (mut text, mut left) = (String::new(), &self.begun[..]);
        loop {
            let error = match std::str::from_utf8(left) {
                Ok(whole) => {
                    text.push_str(whole);
                    left = &[];
                    break;
                }
                Err(error) => error,
            };
            let (valid, rest) = left.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            left = rest;
            let Some(wrong) = error.error_len() else { break };
            text.push(char::REPLACEMENT_CHARACTER);
            left = &left[wrong..];
        }
        let done = self.begun.len() - left.len();
        self.begun.drain(..done);
        text
    }

    /// Returns the rest at the end; the next bytes begin another text.
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.begun).into_owned();
        self.begun.clear();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_the_whole(
            parts in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..5),
                prop::collection::vec(prop::sample::select("aä€🙂".bytes().chain([0xff]).collect::<Vec<_>>()), 0..4),
            ], 0..12),
        ) {
            let mut growing = LossyText::default();
            let mut text: String = parts.iter().map(|part| growing.push(part)).collect();
            text += &growing.finish();
            let whole = parts.concat();
            prop_assert_eq!(text, String::from_utf8_lossy(&whole));
        }
    }
}

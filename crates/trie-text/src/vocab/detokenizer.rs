//! Text that grows token by token, in whole characters.

use super::{Vocab, VocabError};
use std::sync::Arc;
use trie_core::TokenId;

/// Gives the text of tokens as they come. What it gave is never taken back: a character that the tokens so far only
/// begin is kept until it is whole.
///
/// All texts together are what `String::from_utf8_lossy` makes of [`Vocab::join`] of all tokens.
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
    /// Before the first token.
    pub fn new(vocab: Arc<Vocab>) -> Self {
        Self { vocab, text: LossyText::default() }
    }

    /// The text that a token completes; often its own, or nothing. `O(bytes of the token)`.
    ///
    /// # Errors
    /// A token outside the vocabulary; nothing changed then.
    pub fn push(&mut self, token: TokenId) -> Result<String, VocabError> {
        self.vocab.check_tokens(&[token])?;
        Ok(self.text.push(self.vocab.piece(token).unwrap_or_default()))
    }

    /// Bytes of a character that is not whole yet.
    pub fn pending_bytes(&self) -> usize {
        self.text.begun.len()
    }

    /// Returns the rest at the end: U+FFFD for a character that was never completed. It begins anew then.
    pub fn finish(&mut self) -> String {
        self.text.finish()
    }
}

/// Bytes as text that only grows; anything that is not UTF-8 becomes U+FFFD.
#[derive(Debug, Clone, Default)]
pub struct LossyText {
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl LossyText {
    /// The text that some bytes complete.
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

    /// Returns the rest at the end, which becomes the beginning of another text.
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

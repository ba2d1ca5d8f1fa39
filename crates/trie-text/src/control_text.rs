//! Control text: the names of control tokens, kept from being read as those tokens where they stand in foreign text.

use crate::vocab::{Vocab, VocabError};
use std::collections::HashSet;
use std::ops::RangeInclusive;
use trie_core::{ByteTrie, TokenId};

/// Puts a character that occurs nowhere inside each name; the text is then tokenized in the parts between, where no
/// name is whole.
///
/// For text that is put together from trusted and foreign pieces, such as a filled chat template;
/// [`Vocab::tokenize_parts`] does it for pieces in a list.
#[derive(Debug)]
pub struct ControlTextGuard<'v> {
    vocab: &'v Vocab,
    names: ByteTrie,
    /// Bytes of the longest name.
    longest: usize,
    mark: char,
}

/// The characters that a mark is one of.
const MARKS: RangeInclusive<char> = '\u{F0000}'..='\u{FFFFD}';

impl<'v> ControlTextGuard<'v> {
    /// A guard over these texts.
    pub fn new(vocab: &'v Vocab, texts: impl IntoIterator<Item = String>) -> Self {
        let names = vocab.control().iter().filter_map(|&token| {
            let name = vocab.piece(token).filter(|name| !name.is_empty() && std::str::from_utf8(name).is_ok())?;
            Some((name, token))
        });
        let longest = names.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
        // Never the default: each id comes once, and the bytes of all tokens are counted in 30 bits.
        let names = ByteTrie::new(names).unwrap_or_default();
        let mut used = HashSet::new();
        for text in texts {
            used.extend(text.chars().filter(|char| MARKS.contains(char)));
        }
        let mark = MARKS.into_iter().find(|mark| !used.contains(mark)).unwrap_or(*MARKS.start());
        Self { vocab, names, longest, mark }
    }

    /// The positions in a text, the last first, from which on it is too short for the longest name.
    fn tail(&self, text: &str) -> impl Iterator<Item = usize> {
        let short = move |&(at, _): &(usize, char)| text.len() - at < self.longest;
        text.char_indices().rev().take_while(short).map(|(at, _)| at)
    }

    /// Foreign text with its marks: after the first character of each name, overlapping ones too, and at the end where
    /// another text could make it a name. `O(length · longest name)`.
    pub fn protect(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut protected = String::with_capacity(text.len());
        for (at, char) in text.char_indices() {
            protected.push(char);
            if self.names.prefixes(&bytes[at..]).next().is_some() {
                protected.push(self.mark);
            }
        }
        let begins = |at: usize| self.names.starting_with(&bytes[at..]).len() > self.names.equal(&bytes[at..]).len();
        if self.tail(text).any(begins) && !protected.ends_with(self.mark) {
            protected.push(self.mark);
        }
        protected
    }

    /// Foreign text with its marks where it follows a trusted one: a name that both would make together is cut too.
    pub fn protect_after(&self, trusted: &str, text: &str) -> String {
        let crosses = |at: usize| {
            let (before, after) = (&trusted.as_bytes()[at..], &text.as_bytes()[..text.len().min(self.longest)]);
            self.names.prefixes(&[before, after].concat()).any(|(length, _)| length > before.len())
        };
        let mut protected = self.protect(text);
        if self.tail(trusted).any(crosses) {
            protected.insert(0, self.mark);
        }
        protected
    }

    /// The tokens of a text with protected parts: names outside them are control tokens.
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokenize(&self, text: &str, add_special: bool) -> Result<Vec<TokenId>, VocabError> {
        let mut tokens = Vec::new();
        for (index, part) in text.split(self.mark).enumerate() {
            let inside = if index > 0 { self.vocab.inside(part, true) } else { None };
            match inside {
                Some(inside) => tokens.extend(inside),
                None => tokens.extend(self.vocab.tokenize(part, add_special && index == 0, true)?),
            }
        }
        Ok(tokens)
    }
}

impl Vocab {
    /// Tokens of a prompt made of parts, each with whether it is trusted: names of control tokens in trusted parts are
    /// those tokens, in the others they stay text.
    ///
    /// ```
    /// # use trie_core::TokenId;
    /// # use trie_text::{TokenKind, Tokenizer, TokenizerError};
    /// use trie_text::Vocab;
    /// # #[derive(Debug)]
    /// # struct Bytes;
    /// # impl Tokenizer for Bytes {
    /// #     fn tokenize(&self, text: &str, _: bool, parse: bool) -> Result<Vec<TokenId>, TokenizerError> {
    /// #         let mut found = Vec::new();
    /// #         for (at, part) in text.split("<s>").enumerate() {
    /// #             let name = if parse { "\u{0}" } else { "<s>" };
    /// #             let bytes = if at > 0 { name } else { "" }.bytes().chain(part.bytes());
    /// #             found.extend(bytes.filter_map(|byte| TokenId::new(byte.into())));
    /// #         }
    /// #         Ok(found)
    /// #     }
    /// # }
    /// # let bytes = (1..=255u8).map(|byte| (vec![byte], TokenKind::Text));
    /// # let tokens = [(b"<s>".to_vec(), TokenKind::Control)].into_iter().chain(bytes);
    /// # let vocab = Vocab::new(tokens, vec![], Some(std::sync::Arc::new(Bytes)))?;
    ///
    /// // One token a byte, and the control token <s>.
    /// let tokens = vocab.tokenize_parts(&[("<s>", true), ("<s>", false)], false)?;
    /// assert_eq!(tokens.len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokenize_parts(&self, parts: &[(&str, bool)], add_special: bool) -> Result<Vec<TokenId>, VocabError> {
        let guard = ControlTextGuard::new(self, parts.iter().map(|(text, _)| (*text).to_owned()));
        let text: String =
            parts.iter().map(|&(text, trusted)| if trusted { text.to_owned() } else { guard.protect(text) }).collect();
        guard.tokenize(&text, add_special)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(text: &str) -> String {
        let control: Vec<TokenId> = (0..2).map(|id| TokenId::new(id).unwrap()).collect();
        let vocab = Vocab::from_tokens(["<|im_end|>", "<s>", "a"], Vec::new(), control).unwrap();
        let guard = ControlTextGuard::new(&vocab, [text.to_owned()]);
        guard.protect(text).replace(guard.mark, "·")
    }

    #[test]
    fn names_are_cut_wherever_they_stand() {
        assert_eq!(protected("<|im_<|im_end|>end|>"), "<|im_<·|im_end|>end|>");
        assert_eq!(protected("<s><s>"), "<·s><·s>");
        assert_eq!(protected("plain > text"), "plain > text");
    }

    #[test]
    fn beginnings_of_names_are_closed() {
        assert_eq!(protected("a <|im_"), "a <|im_·");
        assert_eq!(protected("<"), "<·");
        assert_eq!(protected("<s>"), "<·s>");
    }

    #[test]
    fn names_across_a_boundary_are_cut() {
        let control: Vec<TokenId> = (0..1).map(|id| TokenId::new(id).unwrap()).collect();
        let vocab = Vocab::from_tokens(["<s>", "a"], Vec::new(), control).unwrap();
        let guard = ControlTextGuard::new(&vocab, ["s>".to_owned()]);
        let after = |trusted: &str, text: &str| guard.protect_after(trusted, text).replace(guard.mark, "·");
        assert_eq!(after("a<", "s>"), "·s>");
        assert_eq!(after("a<s", ">"), "·>");
        assert_eq!(after("a", "s>"), "s>");
        assert_eq!(after("<", "<s>"), "<·s>");
    }
}

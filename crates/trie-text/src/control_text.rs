//! Control text: the names of control tokens, kept from being read as those tokens where they stand in foreign text.

use crate::vocab::{Vocab, VocabError};
use trie_core::TokenId;

/// Puts a character that occurs nowhere inside each name; the text is then tokenized in the parts between, where no
/// name is whole.
///
/// For text that is put together from trusted and foreign pieces, such as a filled chat template;
/// [`Vocab::tokenize_parts`] does it for pieces in a list.
#[derive(Debug)]
pub struct ControlTextGuard<'v> {
    vocab: &'v Vocab,
    names: Vec<&'v str>,
    mark: char,
}

impl<'v> ControlTextGuard<'v> {
    /// A guard over these texts.
    pub fn new(vocab: &'v Vocab, texts: impl IntoIterator<Item = String>) -> Self {
        let names = vocab.control().iter().filter_map(|&token| std::str::from_utf8(vocab.piece(token)?).ok());
        let names = names.filter(|name| !name.is_empty()).collect();
        let texts: Vec<String> = texts.into_iter().collect();
        let mark = ('\u{F0000}'..='\u{FFFFD}').find(|&mark| !texts.iter().any(|text| text.contains(mark)));
        Self { vocab, names, mark: mark.unwrap_or('\u{F0000}') }
    }

    /// Foreign text with its marks: after the first character of each name, overlapping ones too, and at the end where
    /// another text could make it a name.
    pub fn protect(&self, text: &str) -> String {
        let mut positions: Vec<usize> = Vec::new();
        for name in &self.names {
            let inside = name.chars().next().map_or(0, char::len_utf8);
            let found = text.char_indices().filter(|&(at, _)| text[at..].starts_with(name));
            positions.extend(found.map(|(at, _)| at + inside));
            if name.char_indices().skip(1).any(|(end, _)| text.ends_with(&name[..end])) {
                positions.push(text.len());
            }
        }
        positions.sort_unstable();
        positions.dedup();
        let mut protected = String::with_capacity(text.len() + 4 * positions.len());
        let mut from = 0;
        for position in positions {
            protected.push_str(&text[from..position]);
            protected.push(self.mark);
            from = position;
        }
        protected + &text[from..]
    }

    /// Foreign text with its marks where it follows a trusted one: a name that both would make together is cut too.
    pub fn protect_after(&self, trusted: &str, text: &str) -> String {
        let crosses = |name: &str| {
            let mut cuts = name.char_indices().skip(1).map(|(at, _)| name.split_at(at));
            cuts.any(|(before, after)| trusted.ends_with(before) && text.starts_with(after))
        };
        let mut protected = self.protect(text);
        if self.names.iter().any(|name| crosses(name)) {
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

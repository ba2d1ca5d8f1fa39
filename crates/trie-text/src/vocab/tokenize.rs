//! Text to tokens and back.

use super::error::{MAX_TEXT, in_range};
use super::{Vocab, VocabError};
use crate::tokenizer::{SplitPoints, Tokenizer};
use std::path::Path;
use trie_core::TokenId;

impl Vocab {
    /// Returns whether the tokenizer puts a space before a text, found with the first letter that has a token.
    pub(super) fn puts_space(&self) -> bool {
        let space = |letter: char| {
            let text = letter.to_string();
            let tokens = self.tokenize(&text, false, false).ok()?;
            let spaced = self.spells(&tokens, [" ", &text]);
            (spaced || self.spells(&tokens, [&text])).then_some(spaced)
        };
        ('a'..='z').find_map(space).unwrap_or(false)
    }

    /// Returns whether text can be tokenized: not if the vocabulary was made from a list of tokens.
    pub fn can_tokenize(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// Absolute path of the file that it was read from with its tokenizer.
    pub fn file(&self) -> Option<&Path> {
        self.tokenizer.as_ref()?.file()
    }

    pub(super) fn tokenizer(&self) -> Result<&dyn Tokenizer, VocabError> {
        self.tokenizer.as_deref().ok_or(VocabError::NoTokenizer)
    }

    /// Returns whether these tokens spell these texts, one after the other.
    pub(crate) fn spells<const N: usize>(&self, tokens: &[TokenId], texts: [&str; N]) -> bool {
        let pieces = tokens.iter().filter_map(|&token| self.piece(token)).flatten().copied();
        pieces.eq(texts.iter().flat_map(|text| text.bytes()))
    }

    /// The same, or with a space before it where the tokenizer puts one.
    pub(crate) fn writes(&self, tokens: &[TokenId], [before, text, after]: [&str; 3]) -> bool {
        if self.spaced && self.spells(tokens, [" ", before, text, after]) {
            return true;
        }
        // Where a space is put only if there is none, a text that begins with one loses it.
        let begins = || [before, text, after].into_iter().find(|part| !part.is_empty()).unwrap_or_default();
        !(self.spaced && begins().starts_with(' ')) && self.spells(tokens, [before, text, after])
    }

    /// Returns whether the token is found in a text before all others, so that no other token crosses its boundaries.
    pub(crate) fn stands_alone(&self, token: TokenId) -> bool {
        self.control().binary_search(&token).is_ok()
            || self.tokenizer.as_ref().is_some_and(|tokenizer| tokenizer.stands_alone(token))
    }

    /// Returns the positions at which texts may be split for its tokenizer; `None` if unknown.
    pub fn split_points(&self) -> Option<&SplitPoints> {
        self.split_points.get_or_init(|| self.tokenizer.as_ref()?.split_points()).as_ref()
    }

    /// Tokens of a text. `add_special` adds the special tokens that the model requires around a prompt.
    /// `parse_special` reads names of control tokens in the text as those tokens, and is only for trusted text.
    ///
    /// # Errors
    /// The vocabulary has no tokenizer, the text is longer than 2^30 bytes, or the tokenizer fails or reads the name
    /// of a control token as that token without `parse_special`.
    pub fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, VocabError> {
        self.ask(self.tokenizer()?, text, add_special, parse_special)
    }

    /// Tokens of a plain text in the middle of another text; [`Vocab::join`] gives the text back. `None` if no tokens
    /// do, as with a tokenizer that normalises. Without a tokenizer, the fewest tokens that spell it.
    pub fn tokenize_inside(&self, text: &str) -> Option<Vec<TokenId>> {
        if self.can_tokenize() { self.tokenize_part(text, false) } else { self.fewest(text.as_bytes()) }
    }

    /// [`Vocab::tokenize_inside`] for a text that may name control tokens, such as a marker of a chat template.
    pub fn tokenize_marker(&self, text: &str) -> Option<Vec<TokenId>> {
        self.tokenize_part(text, true)
    }

    pub(crate) fn tokenize_part(&self, text: &str, parse_special: bool) -> Option<Vec<TokenId>> {
        if text.is_empty() {
            return Some(Vec::new());
        }
        let tokens = self.tokenize(text, false, parse_special).ok()?;
        if self.spells(&tokens, [text]) {
            return Some(tokens);
        }
        // Some tokenizers put a space before a text: here it goes before a line break, and both are cut off.
        let tokens = self.tokenize(&format!("\n{text}"), false, parse_special).ok()?;
        self.ending(&tokens, text).map(<[_]>::to_vec)
    }

    /// The fewest tokens that spell a text; of equally few, those with the longest first tokens.
    /// `O(length · longest token)`.
    pub(crate) fn fewest(&self, text: &[u8]) -> Option<Vec<TokenId>> {
        // From each byte: how many tokens it takes to the end, and the first of them with its length.
        let mut best: Vec<Option<(usize, TokenId, usize)>> = vec![None; text.len() + 1];
        let count = |best: &[Option<(usize, TokenId, usize)>], at: usize| {
            if at == text.len() { Some(0) } else { best[at].map(|(count, ..)| count) }
        };
        for at in (0..text.len()).rev() {
            for (length, tokens) in self.by_bytes().prefixes(&text[at..]) {
                if let (Some(more), Some(&token)) = (count(&best, at + length), tokens.first())
                    && best[at].is_none_or(|(least, ..)| more < least)
                {
                    best[at] = Some((more + 1, token, length));
                }
            }
        }
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (_, token, length) = best[at]?;
            tokens.push(token);
            at += length;
        }
        Some(tokens)
    }

    /// Returns the trailing tokens that spell this text, if any do.
    pub(crate) fn ending<'t>(&self, tokens: &'t [TokenId], text: &str) -> Option<&'t [TokenId]> {
        let mut length = 0;
        let from = tokens.iter().rposition(|&token| {
            length += self.piece(token).map_or(0, <[u8]>::len);
            length >= text.len()
        })?;
        Some(&tokens[from..]).filter(|tokens| self.spells(tokens, [text]))
    }

    /// Returns the number of these tokens that cover so many bytes.
    pub(crate) fn tokens_over(&self, tokens: &[TokenId], bytes: usize) -> usize {
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

    /// Detokenises a whole text: the inverse of [`Vocab::tokenize`]. Some tokenizers put a space before a text, which
    /// is removed here; use [`Vocab::join`] for tokens from the middle of a text.
    ///
    /// # Errors
    /// A token outside the vocabulary.
    pub fn detokenize(&self, tokens: &[TokenId]) -> Result<Vec<u8>, VocabError> {
        self.check_tokens(tokens)?;
        in_range("number of tokens", tokens.len() as u64, 0, MAX_TEXT)?;
        // The tokens' own bytes, where that is all: llama.cpp also tidies up spaces before punctuation, which the text
        // may have had.
        let tokenizer = self.tokenizer.as_ref().filter(|_| self.spaced && !tokens.is_empty());
        let Some(tokenizer) = tokenizer else { return self.join(tokens) };
        if let Some(bytes) = tokenizer.detokenize(tokens) {
            return Ok(bytes);
        }
        let mut bytes = self.join(tokens)?;
        bytes.drain(..usize::from(bytes.starts_with(b" ")));
        Ok(bytes)
    }
}

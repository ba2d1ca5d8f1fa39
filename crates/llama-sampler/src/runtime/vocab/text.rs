//! Text to tokens and back: through llama.cpp, or through a caller's tokenizer.

use super::Vocab;
use crate::runtime::cuts::Cuts;
use crate::runtime::error::RuntimeError;
use crate::runtime::preconditions::{MAX_TEXT, in_range, inside_vocabulary};
use crate::runtime::tokenizer::Tokenizer;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use std::sync::Arc;
use trie_core::TokenId;

/// Who makes tokens of text.
#[derive(Debug)]
pub(super) enum Source {
    Llama(Arc<LlamaModel>),
    Caller(Arc<dyn Tokenizer>),
}

impl Vocab {
    /// Asked of the first letter that has a token.
    pub(super) fn puts_space(&self) -> bool {
        let space = |letter: char| {
            let text = letter.to_string();
            let tokens = self.tokenize(&text, false, false).ok()?;
            let spaced = self.spells(&tokens, [" ", &text]);
            (spaced || self.spells(&tokens, [&text])).then_some(spaced)
        };
        ('a'..='z').find_map(space).unwrap_or(false)
    }

    /// Whether text can be tokenized: not if the vocabulary was made from a list of tokens.
    pub fn can_tokenize(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// Whether these tokens are these texts, one after the other.
    pub(in crate::runtime) fn spells<const N: usize>(&self, tokens: &[TokenId], texts: [&str; N]) -> bool {
        let pieces = tokens.iter().filter_map(|&token| self.piece(token)).flatten().copied();
        pieces.eq(texts.iter().flat_map(|text| text.bytes()))
    }

    /// The same, or with a space before it where the tokenizer puts one.
    pub(in crate::runtime) fn writes(&self, tokens: &[TokenId], [before, text, after]: [&str; 3]) -> bool {
        if self.spaced && self.spells(tokens, [" ", before, text, after]) {
            return true;
        }
        // Where a space is put only if there is none, a text that begins with one loses it.
        let begins = || [before, text, after].into_iter().find(|part| !part.is_empty()).unwrap_or_default();
        !(self.spaced && begins().starts_with(' ')) && self.spells(tokens, [before, text, after])
    }

    /// The tokenizer that a caller brought.
    pub(in crate::runtime) fn callers(&self) -> Option<&dyn Tokenizer> {
        match &self.tokenizer {
            Some(Source::Caller(tokenizer)) => Some(&**tokenizer),
            _ => None,
        }
    }

    /// Whether the token is found in a text before anything else, so that none goes over its borders.
    pub(in crate::runtime) fn stands_alone(&self, token: TokenId) -> bool {
        let defined = match &self.tokenizer {
            Some(Source::Llama(model)) if token.index() < self.len() => {
                model.vocab().attr(LlamaToken(token.as_i32())).contains(LlamaTokenAttr::UserDefined)
            }
            _ => false,
        };
        defined || self.control().binary_search(&token).is_ok()
    }

    /// Where texts may be cut for its tokenizer.
    pub(in crate::runtime) fn cuts(&self) -> Option<&Cuts> {
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

    pub(in crate::runtime) fn inside(&self, text: &str, parse_special: bool) -> Option<Vec<TokenId>> {
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

    /// Those of these tokens at the end that spell this text, if any do.
    pub(in crate::runtime) fn ending<'t>(&self, tokens: &'t [TokenId], text: &str) -> Option<&'t [TokenId]> {
        let mut length = 0;
        let from = tokens.iter().rposition(|&token| {
            length += self.piece(token).map_or(0, <[u8]>::len);
            length >= text.len()
        })?;
        Some(&tokens[from..]).filter(|tokens| self.spells(tokens, [text]))
    }

    /// How many of these tokens it takes to write so many bytes.
    pub(in crate::runtime) fn tokens_over(&self, tokens: &[TokenId], bytes: usize) -> usize {
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
}

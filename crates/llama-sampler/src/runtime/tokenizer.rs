//! Tokenizers of callers: what such an object must do, how it is asked, and what is not believed of it.

use super::error::RuntimeError;
use super::preconditions::{MAX_TEXT, in_range, inside_vocabulary};
use super::vocab::{TokenKind, Vocab};
use std::error::Error;
use std::fmt::Debug;
use trie_core::TokenId;

/// Why a tokenizer failed.
pub type TokenizerError = Box<dyn Error + Send + Sync>;

/// Turns text into tokens in place of llama.cpp, for a vocabulary that is no GGUF.
pub trait Tokenizer: Debug + Send + Sync {
    /// The tokens of each text, in order. `add_special` adds what the model wants around a prompt; only with `parse_special` may
    /// names of control tokens in the texts become those tokens.
    ///
    /// # Errors
    /// Whatever it fails with.
    fn tokenize(
        &self,
        texts: &[String],
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<Vec<TokenId>>, TokenizerError>;
}

/// Texts in one call: a tokenizer may keep more of each than its tokens.
const BATCH: usize = 1 << 16;

impl Vocab {
    /// The tokens of each text, checked: ids of this vocabulary, and without `parse_special` no token that ends the output or
    /// controls the model.
    pub(super) fn ask(
        &self,
        tokenizer: &dyn Tokenizer,
        texts: &[String],
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<Vec<TokenId>>, RuntimeError> {
        for text in texts {
            in_range("length of the text in bytes", text.len() as u64, 0, MAX_TEXT)?;
        }
        if add_special && !parse_special {
            // What is added around a text is meant, but the text itself is checked.
            self.ask(tokenizer, texts, false, false)?;
        }
        let rows = tokenizer.tokenize(texts, add_special, parse_special)?;
        if rows.len() != texts.len() {
            let (rows, texts) = (rows.len(), texts.len());
            return Err(TokenizerError::from(format!("it gave tokens of {rows} texts for {texts}")).into());
        }
        for (tokens, text) in rows.iter().zip(texts) {
            inside_vocabulary(tokens, self.len())?;
            if parse_special || add_special {
                continue;
            }
            if let Some(&token) = tokens.iter().find(|&&token| self.reads_name(token, text)) {
                let name = String::from_utf8_lossy(self.piece(token).unwrap_or_default());
                let reason = format!("it reads a part of {text:?} as the control token {token}, {name:?}");
                return Err(TokenizerError::from(reason).into());
            }
        }
        Ok(rows)
    }

    /// Whether this token may not come from plain text. The unknown token may, where text cannot be spelled, but not from its name.
    fn reads_name(&self, token: TokenId, text: &str) -> bool {
        match self.kind(token) {
            Some(TokenKind::Control) => true,
            Some(TokenKind::Unknown) => {
                let name = self.piece(token).and_then(|name| std::str::from_utf8(name).ok());
                name.is_some_and(|name| !name.is_empty() && text.contains(name))
            }
            _ => self.is_end_of_generation(token),
        }
    }

    /// As [`Vocab::ask`] for any number of plain texts; an error says of which.
    pub(super) fn ask_all(
        &self,
        tokenizer: &dyn Tokenizer,
        texts: impl Iterator<Item = String>,
        mut each: impl FnMut(&[TokenId]),
    ) -> Result<(), RuntimeError> {
        let mut texts = texts.peekable();
        let mut before = 0;
        while texts.peek().is_some() {
            let batch: Vec<String> = texts.by_ref().take(BATCH).collect();
            match self.ask(tokenizer, &batch, false, false) {
                Ok(rows) => rows.iter().for_each(|tokens| each(tokens)),
                Err(error) => return Err(self.blame(tokenizer, &batch, before, error)),
            }
            before += batch.len();
        }
        Ok(())
    }

    /// The same error, said of the first text that fails: a batch fails as a whole.
    fn blame(&self, tokenizer: &dyn Tokenizer, batch: &[String], before: usize, error: RuntimeError) -> RuntimeError {
        let (mut good, mut bad) = (0, batch.len());
        let mut error = error;
        while bad > good + 1 {
            let middle = usize::midpoint(good, bad);
            match self.ask(tokenizer, &batch[good..middle], false, false) {
                Ok(_) => good = middle,
                Err(found) => (bad, error) = (middle, found),
            }
        }
        // What fails only together is the fault of none.
        match self.ask(tokenizer, &batch[good..bad], false, false) {
            Ok(_) => error,
            Err(error) => RuntimeError::Value { row: before + good, error: Box::new(error) },
        }
    }
}

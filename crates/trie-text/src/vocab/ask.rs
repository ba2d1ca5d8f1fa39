//! Checked calls of tokenizers, whose results are not trusted.

use super::error::text_in_range;
use super::{TokenKind, Vocab, VocabError};
use crate::tokenizer::{Tokenizer, TokenizerError};
use std::sync::Arc;
use trie_core::TokenId;
use trie_core::work::{LimitExceeded, Work, apart, look};

/// Number of texts in one call. A tokenizer may keep more than the tokens of each, and cancellation is checked only
/// between calls.
const BATCH: usize = 1 << 13;

/// Length in bytes of a text that is tokenized on a separate thread, which is abandoned if the work ends first.
const LONG: usize = 1 << 17;

impl Vocab {
    /// The tokens of a text, checked: ids of this vocabulary and, without `parse_special`, no control token and no
    /// token that ends the output.
    pub(super) fn ask(
        &self,
        tokenizer: &dyn Tokenizer,
        text: &str,
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<TokenId>, VocabError> {
        text_in_range(text.len())?;
        if add_special && !parse_special && !tokenizer.keeps_control_text() {
            // What is added around a text is meant, but the text itself is checked.
            self.ask(tokenizer, text, false, false)?;
        }
        let tokens = match &self.tokenizer {
            // A long text takes seconds, in which no tokenizer can be asked to end.
            Some(own) if text.len() > LONG && Work::current().is_some() => {
                let (own, text) = (Arc::clone(own), text.to_owned());
                apart(move || own.tokenize(&text, add_special, parse_special))?
            }
            _ => tokenizer.tokenize(text, add_special, parse_special),
        };
        // A tokenizer may look itself whether the work is over.
        let tokens = tokens.map_err(|error| match error.downcast::<LimitExceeded>() {
            Ok(over) => VocabError::Over(*over),
            Err(error) => VocabError::Tokenizer(error),
        })?;
        self.check(tokenizer, text, &tokens, add_special || parse_special)?;
        Ok(tokens)
    }

    /// As [`Vocab::ask`] for plain texts.
    fn ask_batch(&self, tokenizer: &dyn Tokenizer, texts: &[&str]) -> Result<Vec<Vec<TokenId>>, VocabError> {
        texts.iter().try_for_each(|text| text_in_range(text.len()))?;
        let rows = tokenizer.tokenize_batch(texts, false, false)?;
        if rows.len() != texts.len() {
            let (rows, texts) = (rows.len(), texts.len());
            return Err(TokenizerError::from(format!("it gave tokens of {rows} texts for {texts}")).into());
        }
        rows.iter().zip(texts).try_for_each(|(tokens, text)| self.check(tokenizer, text, tokens, false))?;
        Ok(rows)
    }

    /// Checks the tokens of a text; with `special`, control tokens are allowed.
    fn check(
        &self,
        tokenizer: &dyn Tokenizer,
        text: &str,
        tokens: &[TokenId],
        special: bool,
    ) -> Result<(), VocabError> {
        self.check_tokens(tokens)?;
        if special || tokenizer.keeps_control_text() {
            return Ok(());
        }
        let Some(&token) = tokens.iter().find(|&&token| self.reads_name(token, text)) else { return Ok(()) };
        let name = String::from_utf8_lossy(self.piece(token).unwrap_or_default());
        let reason = format!("it reads a part of {text:?} as the control token {token}, {name:?}");
        Err(TokenizerError::from(reason).into())
    }

    /// Returns whether this token must not come from plain text. The unknown token may come from text that cannot be
    /// spelled, but not from its own name.
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

    /// As [`Vocab::ask`] for any number of plain texts, in large batches; an error names the text.
    pub(super) fn ask_all(
        &self,
        tokenizer: &dyn Tokenizer,
        texts: impl Iterator<Item = String>,
        mut each: impl FnMut(&[TokenId]),
    ) -> Result<(), VocabError> {
        let mut texts = texts.peekable();
        let mut before = 0;
        while texts.peek().is_some() {
            look(1, 0)?;
            let batch: Vec<String> = texts.by_ref().take(BATCH).collect();
            let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
            match self.ask_batch(tokenizer, &batch) {
                Ok(rows) => rows.iter().for_each(|tokens| each(tokens)),
                Err(error) => return Err(self.blame(tokenizer, &batch, before, error)),
            }
            before += batch.len();
        }
        Ok(())
    }

    /// The same error with the number of the first text that fails, because a batch fails as a whole.
    fn blame(&self, tokenizer: &dyn Tokenizer, batch: &[&str], before: usize, error: VocabError) -> VocabError {
        let (mut good, mut bad) = (0, batch.len());
        let mut error = error;
        while bad > good + 1 {
            let middle = usize::midpoint(good, bad);
            match self.ask_batch(tokenizer, &batch[good..middle]) {
                Ok(_) => good = middle,
                Err(found) => (bad, error) = (middle, found),
            }
        }
        // What fails only together is the fault of none.
        match self.ask_batch(tokenizer, &batch[good..bad]) {
            Ok(_) => error,
            Err(error) => VocabError::Value { row: before + good, error: Box::new(error) },
        }
    }
}

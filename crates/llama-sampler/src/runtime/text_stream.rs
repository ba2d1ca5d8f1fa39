//! A set of texts that come in portions, so that they need not be in memory together.

use super::error::RuntimeError;
use super::texts::{TextError, TextReport, Texts, spelled, value_spelled};
use super::tokenize_all::Rows;
use super::vocab::Vocab;
use std::path::Path;
use trie_core::{ExternalBuilder, TokenId, Trie, VocabularyId};

/// Collects texts as the tokenizer writes them: portions are tokenized on all cores, and only their tokens and names are kept,
/// as a [`ExternalBuilder`] keeps them.
#[derive(Debug)]
pub struct TextStream<'v> {
    vocab: &'v Vocab,
    prefix: String,
    suffix: String,
    /// The tokens of the prefix.
    before: Vec<TokenId>,
    rows: ExternalBuilder,
    report: TextReport,
    /// The first value with a token that begins in the prefix.
    straddling: Option<String>,
    /// The first of which nothing is left.
    empty: Option<usize>,
}

impl<'v> TextStream<'v> {
    /// A set without values; `rows` must be without leaves. Of `texts` the prefix and the suffix are taken: values are
    /// spelled as the tokenizer does, and nothing is healed, which takes all values at once.
    ///
    /// # Errors
    /// A vocabulary without a tokenizer, or one that cannot spell the prefix.
    pub fn new(vocab: &'v Vocab, texts: &Texts<'_>, rows: ExternalBuilder) -> Result<Self, TextError> {
        let before = vocab.tokenize(texts.prefix, false, false)?;
        spelled(vocab, texts.prefix, &before, || "prefix".to_owned())?;
        let (prefix, suffix) = (texts.prefix.to_owned(), texts.suffix.to_owned());
        let report = TextReport::default();
        Ok(Self { vocab, prefix, suffix, before, rows, report, straddling: None, empty: None })
    }

    /// Adds values. A part of a text that comes again in one call is tokenized once.
    ///
    /// # Errors
    /// As [`Texts::trie`], but what is wrong with the border to the prefix is told at the end; or a temporary file.
    pub fn push<S: AsRef<str> + Sync>(&mut self, values: &[S]) -> Result<(), TextError> {
        let before = self.report.values;
        let portions = self.vocab.tokenize_all(values, &self.prefix, &self.suffix).map_err(|error| match error {
            RuntimeError::Value { row, error } => RuntimeError::Value { row: before + row, error },
            error => error,
        })?;
        for (tokens, value) in portions.iter().flat_map(Rows::iter).zip(values) {
            self.add(tokens, value.as_ref())?;
        }
        Ok(())
    }

    fn add(&mut self, tokens: &[TokenId], value: &str) -> Result<(), TextError> {
        let row = self.report.values;
        self.report.values += 1;
        value_spelled(self.vocab, [&self.prefix, value, &self.suffix], tokens, row)?;
        match tokens.strip_prefix(&self.before[..]) {
            None => {
                self.report.straddles(row);
                self.straddling.get_or_insert_with(|| value.to_owned());
            }
            Some([]) => _ = self.empty.get_or_insert(row),
            Some(tokens) if self.straddling.is_none() && self.empty.is_none() => {
                self.rows.push(Some(value), tokens)?;
            }
            // There will be no trie, but the error says how many values straddle.
            Some(_) => {}
        }
        Ok(())
    }

    /// The trie, in memory.
    ///
    /// # Errors
    /// As [`Texts::trie`] and [`ExternalBuilder::finish`].
    pub fn finish(self) -> Result<(Trie, TextReport), TextError> {
        self.check()?;
        Ok((self.rows.finish()?, self.report))
    }

    /// Writes the trie as a file, without ever holding all of it.
    ///
    /// # Errors
    /// As [`Texts::trie`] and [`ExternalBuilder::finish_to`].
    pub fn finish_to(
        self,
        path: impl AsRef<Path>,
        vocabulary: Option<VocabularyId<'_>>,
    ) -> Result<TextReport, TextError> {
        self.check()?;
        self.rows.finish_to(path, vocabulary)?;
        Ok(self.report)
    }

    fn check(&self) -> Result<(), TextError> {
        self.report.none_straddles(&self.prefix, |_| self.straddling.clone().unwrap_or_default())?;
        self.empty.map_or(Ok(()), |row| Err(TextError::Empty { row }))
    }
}

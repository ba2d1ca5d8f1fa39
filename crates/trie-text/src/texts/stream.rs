//! A set of texts that come in portions, so that they need not be in memory together.

use super::{TextError, TextReport, Texts, check_spelling, value_spelled};
use crate::vocab::{Vocab, VocabError};
use std::path::Path;
use trie_core::{TokenId, Trie, VocabularyId};
use trie_formats::ExternalBuilder;

/// Collects texts in the tokenizer's own tokens. Portions are tokenized on all cores, and only their tokens and names
/// are kept, in an [`ExternalBuilder`].
///
/// ```
/// # use trie_core::TokenId;
/// # use trie_text::{TokenKind, Tokenizer, TokenizerError};
/// use trie_formats::ExternalBuilder;
/// use trie_text::{TextStream, Texts, Vocab};
/// # #[derive(Debug)]
/// # struct Bytes;
/// # impl Tokenizer for Bytes {
/// #     fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
/// #         Ok(text.bytes().filter_map(|byte| TokenId::new(byte.into())).collect())
/// #     }
/// # }
/// # let bytes = (0..=255u8).map(|byte| ([byte], TokenKind::Text));
/// # let vocab = Vocab::new(bytes, vec![], Some(std::sync::Arc::new(Bytes)))?;
///
/// let mut stream = TextStream::new(&vocab, &Texts::default(), ExternalBuilder::new(1 << 20))?;
/// for portion in ["one two three", "four five"] {
///     stream.push(&portion.split(' ').collect::<Vec<_>>())?;
/// }
/// let (trie, report) = stream.finish()?;
/// assert_eq!((trie.len(), report.values), (5, 5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    crossing: Option<String>,
    /// Row of the first value without any bytes.
    empty: Option<usize>,
}

impl<'v> TextStream<'v> {
    /// A stream without values so far; `rows` must be without leaves. Only the prefix and suffix of `texts` are used:
    /// values are written in the tokenizer's own tokens, without token healing, which would need all values at once.
    ///
    /// # Errors
    /// A vocabulary without a tokenizer, or one that cannot spell the prefix.
    pub fn new(vocab: &'v Vocab, texts: &Texts<'_>, rows: ExternalBuilder) -> Result<Self, TextError> {
        let before = vocab.tokenize(texts.prefix, false, false)?;
        check_spelling(vocab, texts.prefix, &before, || "prefix".to_owned())?;
        let (prefix, suffix) = (texts.prefix.to_owned(), texts.suffix.to_owned());
        let report = TextReport::default();
        Ok(Self { vocab, prefix, suffix, before, rows, report, crossing: None, empty: None })
    }

    /// Adds values. A part of a text that comes again in one call is tokenized once.
    ///
    /// # Errors
    /// As [`Texts::trie`], or an error of a temporary file. A token that crosses the boundary to the prefix is
    /// reported only at the end.
    pub fn push<S: AsRef<str> + Sync>(&mut self, values: &[S]) -> Result<(), TextError> {
        let before = self.report.values;
        let tokenized = self.vocab.tokenize_all(values, &self.prefix, &self.suffix).map_err(|error| match error {
            VocabError::Value { row, error } => VocabError::Value { row: before + row, error },
            error => error,
        })?;
        for (tokens, value) in tokenized.iter().zip(values) {
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
                self.report.crosses(row);
                self.crossing.get_or_insert_with(|| value.to_owned());
            }
            Some([]) => _ = self.empty.get_or_insert(row),
            Some(tokens) if self.crossing.is_none() && self.empty.is_none() => {
                self.rows.push(Some(value), tokens)?;
            }
            // There will be no trie, but the error says how many values cross.
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

    /// Writes the trie to a file, without ever holding all of it.
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
        self.report.none_crosses(&self.prefix, |_| self.crossing.clone().unwrap_or_default())?;
        self.empty.map_or(Ok(()), |row| Err(TextError::Empty { row }))
    }
}

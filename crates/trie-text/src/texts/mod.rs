//! Sets of texts: in the tokenizer's own tokens, or in every tokenization.

mod error;
mod look_up;
mod stream;
mod tokenizations;

pub use error::{TextError, quote};
pub use stream::TextStream;

use crate::vocab::{Vocab, VocabError};
use tokenizations::every_tokenization;
use trie_core::work::spend;
use trie_core::{NamedLeaf, TokenId, Trie, shared_length};

/// Token sequences that stand for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tokenization {
    /// The sequence that the tokenizer writes.
    #[default]
    Canonical,
    /// The same, and every single token that spells the end of that sequence and continues beyond it.
    OpenEnd,
    /// Every sequence that spells the value.
    All,
}

/// Text around values and their tokenisation. It matters because a tokenizer cuts a text into tokens as a whole.
///
/// ```
/// use trie_text::{Texts, Tokenization, Vocab};
///
/// let vocab = Vocab::from_tokens(["a", "b", "ab", "\"", "b\""], vec![], vec![])?;
/// let texts = Texts::default().with_suffix("\"").with_tokenization(Tokenization::All);
/// let made = texts.trie(&vocab, &["ab", "b"])?;
/// // ab" begins with a or with ab, and b" with b or with b".
/// let first = made.trie.children(made.trie.root());
/// assert_eq!(vocab.join(first)?, b"ababb\"");
/// assert_eq!(made.trie.leaves().map(|leaf| leaf.name.unwrap()).collect::<Vec<_>>(), ["ab", "b"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Texts<'t> {
    /// Text before every value: the prompt, or its end from a position where a token begins. [`Vocab::prompt_end`]
    /// returns the end of a prompt that matters.
    pub prefix: &'t str,
    /// Text after every value; it belongs to the leaves.
    pub suffix: &'t str,
    /// Token sequences that are leaves.
    pub tokenization: Tokenization,
    /// Token healing: if a token crosses the boundary to the prefix, the set begins before that token. Without
    /// healing, this is an error.
    pub heal: bool,
}

/// The trie of some texts; its names are the texts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TextTrie {
    /// Trie of the values.
    pub trie: Trie,
    /// Report on the values.
    pub report: TextReport,
}

/// Report on texts that became a trie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TextReport {
    /// Number of values given.
    pub values: usize,
    /// Number of values with a token that crosses the boundary to the prefix, in the tokenizer's own tokens.
    pub crossing: usize,
    /// Rows of the first of these values; at most eight.
    pub first_crossing: Vec<usize>,
}

impl TextReport {
    /// Notes a value that has a token which begins in the prefix.
    fn crosses(&mut self, row: usize) {
        self.crossing += 1;
        if self.first_crossing.len() < 8 {
            self.first_crossing.push(row);
        }
    }

    /// Checks that no value has such a token; `value` returns the text of the first.
    fn none_crosses(&self, prefix: &str, value: impl FnOnce(usize) -> String) -> Result<(), TextError> {
        let Some(&row) = self.first_crossing.first() else { return Ok(()) };
        let (value, prefix) = (value(row), prefix.to_owned());
        Err(TextError::CrossesBoundary { row, value, prefix, count: self.crossing, values: self.values })
    }
}

impl<'t> Texts<'t> {
    /// Sets [`Texts::prefix`] to a text.
    #[must_use]
    pub fn with_prefix(self, prefix: &'t str) -> Self {
        Self { prefix, ..self }
    }

    /// Sets [`Texts::suffix`] to a text.
    #[must_use]
    pub fn with_suffix(self, suffix: &'t str) -> Self {
        Self { suffix, ..self }
    }

    /// Sets [`Texts::tokenization`] to this.
    #[must_use]
    pub fn with_tokenization(self, tokenization: Tokenization) -> Self {
        Self { tokenization, ..self }
    }

    /// With token healing or without, see [`Texts::heal`].
    #[must_use]
    pub fn with_healing(self, heal: bool) -> Self {
        Self { heal, ..self }
    }

    /// The trie of these values. The tokenizer is called once for each different part of a text, on all cores.
    /// [`Trie::all_tokenizations`] or [`Trie::with_partial_tokens`] may add to the cost.
    ///
    /// # Errors
    /// See [`TextError`].
    pub fn trie<S: AsRef<str> + Sync>(&self, vocab: &Vocab, values: &[S]) -> Result<TextTrie, TextError> {
        self.trie_unless(vocab, values, &|| false)
    }

    /// [`Texts::trie`], unless `stop` ends it. `stop` is asked during the slowest step, the search for tokenizations
    /// and open ends.
    ///
    /// # Errors
    /// As [`Texts::trie`], and [`BuildError::Stopped`](trie_core::BuildError::Stopped).
    pub fn trie_unless<S: AsRef<str> + Sync>(
        &self,
        vocab: &Vocab,
        values: &[S],
        stop: &dyn Fn() -> bool,
    ) -> Result<TextTrie, TextError> {
        let TextTrie { trie, report } = self.build_unmarked(vocab, values, stop)?;
        Ok(TextTrie { trie: trie.with_vocabulary(Some(vocab.id())), report })
    }

    fn build_unmarked<S: AsRef<str> + Sync>(
        &self,
        vocab: &Vocab,
        values: &[S],
        stop: &dyn Fn() -> bool,
    ) -> Result<TextTrie, TextError> {
        let mut report = TextReport { values: values.len(), ..TextReport::default() };
        if self.tokenization == Tokenization::All && !vocab.can_tokenize() && (!self.heal || self.prefix.is_empty()) {
            let whole = values.iter().map(|value| format!("{}{}", value.as_ref(), self.suffix).into_bytes());
            let trie = every_tokenization(vocab, values, &whole.map(|text| (text, None)).collect::<Vec<_>>(), stop)?;
            return Ok(TextTrie { trie, report });
        }
        let before = vocab.tokenize(self.prefix, false, false)?;
        check_spelling(vocab, self.prefix, &before, || "prefix".to_owned())?;
        let tokenized = vocab.tokenize_all(values, self.prefix, self.suffix)?;
        let rows = || tokenized.iter().zip(values).enumerate();

        let mut common = before.len();
        for (row, (tokens, value)) in rows() {
            spend(1).map_err(VocabError::from)?;
            value_spelled(vocab, [self.prefix, value.as_ref(), self.suffix], tokens, row)?;
            if !tokens.starts_with(&before) {
                report.crosses(row);
                if self.heal {
                    common = common.min(shared_length(tokens, &before));
                }
            }
        }
        // A space that the tokenizer puts before a text counts.
        let heal_bytes: usize = before[common..].iter().filter_map(|&token| vocab.piece(token)).map(<[u8]>::len).sum();

        if self.tokenization == Tokenization::All {
            // What the tokenizer writes, a space of its own included, without what is kept of the prefix.
            let kept = vocab.join(&before[..common])?;
            let mut texts = Vec::with_capacity(values.len());
            for (row, (tokens, value)) in rows() {
                let whole = vocab.join(tokens)?;
                let unspellable = || TextError::Unspellable { row, value: value.as_ref().to_owned() };
                let text = whole.strip_prefix(kept.as_slice()).ok_or_else(unspellable)?.to_vec();
                texts.push((text, tokens.strip_prefix(&before[..common])));
            }
            let trie = every_tokenization(vocab, values, &texts, stop)?.with_heal_bytes(heal_bytes as u32);
            return Ok(TextTrie { trie, report });
        }
        if !self.heal {
            report.none_crosses(self.prefix, |row| values[row].as_ref().to_owned())?;
        }
        if let Some((row, _)) = rows().find(|(_, (tokens, _))| tokens.len() <= common) {
            return Err(TextError::Empty { row });
        }
        let leaves = rows().map(|(_, (tokens, value))| (value.as_ref(), &tokens[common..]));
        let trie = if self.tokenization == Tokenization::OpenEnd {
            let leaves: Vec<NamedLeaf<'_>> = leaves.map(|(name, tokens)| NamedLeaf { name, tokens }).collect();
            Trie::with_partial_tokens(&leaves, vocab.by_bytes(), |token| vocab.piece(token).unwrap_or_default(), stop)?
        } else {
            let mut builder = Trie::builder();
            leaves.for_each(|(name, tokens)| builder.push(Some(name), tokens));
            builder.build()?
        };
        Ok(TextTrie { trie: trie.with_heal_bytes(heal_bytes as u32), report })
    }
}

/// Checks that tokens spell a value between the texts around it.
fn value_spelled(vocab: &Vocab, texts: [&str; 3], tokens: &[TokenId], row: usize) -> Result<(), TextError> {
    if vocab.writes(tokens, texts) {
        return Ok(());
    }
    check_spelling(vocab, &texts.concat(), tokens, || format!("value {row}"))
}

/// Checks that tokens spell their text.
fn check_spelling(vocab: &Vocab, text: &str, tokens: &[TokenId], what: impl Fn() -> String) -> Result<(), TextError> {
    // Some tokenizers put a space before a text, and some tidy up spaces when they give one back.
    if vocab.writes(tokens, ["", text, ""]) || vocab.detokenize(tokens)? == text.as_bytes() {
        return Ok(());
    }
    let spelled = String::from_utf8_lossy(&vocab.join(tokens)?).into_owned();
    Err(TextError::NoRoundTrip { what: what(), text: text.to_owned(), spelled })
}

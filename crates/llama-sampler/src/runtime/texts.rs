//! A set of texts as a trie: as the tokenizer writes them, or in every spelling.

use super::error::RuntimeError;
use super::spellings::spellings;
use super::tokenize_all::Rows;
use super::vocab::Vocab;
use trie_core::{BuildError, ExternalError, NamedLeaf, TokenId, Trie};

/// Which token sequences stand for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Spelling {
    /// The one that the tokenizer writes.
    #[default]
    Canonical,
    /// The same, and where one token spells the last of it and goes on, that token.
    OpenEnd,
    /// All that spell it.
    All,
}

/// Values stand between texts, and a tokenizer cuts a text into tokens as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'t> {
    /// What stands before every value: the prompt, or its end from a place where a token begins; [`Vocab::border`] gives the end of
    /// a prompt that matters.
    pub prefix: &'t str,
    /// What stands after every value; it belongs to the leaves.
    pub suffix: &'t str,
    /// Which token sequences are leaves.
    pub spelling: Spelling,
    /// Where a token straddles the border to the prefix: begin the set before that token, instead of refusing.
    pub heal: bool,
}

/// The trie of some texts; its names are the texts.
#[derive(Debug, Clone)]
pub struct TextTrie {
    /// The trie.
    pub trie: Trie,
    /// What was found on the way.
    pub report: TextReport,
}

/// What was found while texts became a trie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextReport {
    /// Number of values.
    pub values: usize,
    /// How many of them have a token, in the tokenizer's writing, that begins in the prefix.
    pub straddling: usize,
    /// The first of them, by row; at most eight.
    pub first_straddling: Vec<usize>,
}

impl TextReport {
    /// Notes a value that has a token which begins in the prefix.
    pub(super) fn straddles(&mut self, row: usize) {
        self.straddling += 1;
        if self.first_straddling.len() < 8 {
            self.first_straddling.push(row);
        }
    }

    /// That there is none; `value` gives the first.
    pub(super) fn none_straddles(&self, prefix: &str, value: impl FnOnce(usize) -> String) -> Result<(), TextError> {
        let Some(&row) = self.first_straddling.first() else { return Ok(()) };
        let (value, prefix) = (value(row), prefix.to_owned());
        Err(TextError::Straddles { row, value, prefix, count: self.straddling, values: self.values })
    }
}

/// Why texts make no trie.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The vocabulary cannot tokenize, or a text is too long.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// No value, or more than 32 bits count.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A temporary file, or the one to write.
    #[error(transparent)]
    Run(#[from] ExternalError),
    /// Nothing is left of a value.
    #[error("row {row} is empty: a leaf needs at least one token, give a suffix or leave it out")]
    Empty {
        /// The value's place.
        row: usize,
    },
    /// The tokenizer changes the text, or the vocabulary lacks some of its bytes.
    #[error("{what}: the tokens of {} spell {}", short(.text), short(.spelled))]
    NoRoundTrip {
        /// Prefix or row.
        what: String,
        /// The whole text.
        text: String,
        /// What its tokens spell.
        spelled: String,
    },
    /// No tokens spell the value.
    #[error("value {row}: no tokens of this vocabulary spell {}", short(.value))]
    Unspellable {
        /// The value's place.
        row: usize,
        /// The value.
        value: String,
    },
    /// A token begins in the prefix and ends in the value.
    #[error(
        "value {row}: {} has a token that spans the border to the prefix {}; {count} of {values} values do: \
         Trie.from_strings with heal=True begins the set before that token",
        short(.value),
        short(.prefix)
    )]
    Straddles {
        /// The first such value's place.
        row: usize,
        /// That value.
        value: String,
        /// The prefix.
        prefix: String,
        /// How many values there are like it.
        count: usize,
        /// Of so many.
        values: usize,
    },
}

/// A text in quotes, not all of it if it is long.
pub(super) fn short(text: &str) -> String {
    const SHOWN: usize = 120;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}

impl Texts<'_> {
    /// The trie of these values. One run of the tokenizer for each different part of a text, on all cores; then what
    /// [`Trie::all_tokenizations`] and [`Trie::with_partial_tokens`] take.
    ///
    /// # Errors
    /// See [`TextError`].
    pub fn trie<S: AsRef<str> + Sync>(&self, vocab: &Vocab, values: &[S]) -> Result<TextTrie, TextError> {
        self.trie_unless(vocab, values, &|| false)
    }

    /// [`Texts::trie`], unless `stop` wants it to end before. It is asked while spellings and open ends are found, which
    /// takes longest.
    ///
    /// # Errors
    /// As there, and [`BuildError::Stopped`].
    pub fn trie_unless<S: AsRef<str> + Sync>(
        &self,
        vocab: &Vocab,
        values: &[S],
        stop: &dyn Fn() -> bool,
    ) -> Result<TextTrie, TextError> {
        let mut report = TextReport { values: values.len(), ..TextReport::default() };
        if self.spelling == Spelling::All && !vocab.can_tokenize() && !self.heal {
            let whole = values.iter().map(|value| format!("{}{}", value.as_ref(), self.suffix).into_bytes());
            let trie = spellings(vocab, values, &whole.map(|text| (text, None)).collect::<Vec<_>>(), stop)?;
            return Ok(TextTrie { trie, report });
        }
        let before = vocab.tokenize(self.prefix, false, false)?;
        spelled(vocab, self.prefix, &before, || "prefix".to_owned())?;
        let portions = vocab.tokenize_all(values, self.prefix, self.suffix)?;
        let rows = || portions.iter().flat_map(Rows::iter).zip(values).enumerate();

        let mut common = before.len();
        for (row, (tokens, value)) in rows() {
            value_spelled(vocab, [self.prefix, value.as_ref(), self.suffix], tokens, row)?;
            if !tokens.starts_with(&before) {
                report.straddles(row);
                if self.heal {
                    common = common.min(tokens.iter().zip(&before).take_while(|(a, b)| a == b).count());
                }
            }
        }
        // A space that the tokenizer puts before a text counts.
        let heal_bytes: usize = before[common..].iter().filter_map(|&token| vocab.piece(token)).map(<[u8]>::len).sum();

        if self.spelling == Spelling::All {
            // What the tokenizer writes, a space of its own included, without what is kept of the prefix.
            let kept = vocab.join(&before[..common])?;
            let mut texts = Vec::with_capacity(values.len());
            for (row, (tokens, value)) in rows() {
                let whole = vocab.join(tokens)?;
                let unspellable = || TextError::Unspellable { row, value: value.as_ref().to_owned() };
                let text = whole.strip_prefix(kept.as_slice()).ok_or_else(unspellable)?.to_vec();
                texts.push((text, tokens.strip_prefix(&before[..common])));
            }
            let trie = spellings(vocab, values, &texts, stop)?.with_heal_bytes(heal_bytes as u32);
            return Ok(TextTrie { trie, report });
        }
        if !self.heal {
            report.none_straddles(self.prefix, |row| values[row].as_ref().to_owned())?;
        }
        if let Some((row, _)) = rows().find(|(_, (tokens, _))| tokens.len() <= common) {
            return Err(TextError::Empty { row });
        }
        let leaves = rows().map(|(_, (tokens, value))| (value.as_ref(), &tokens[common..]));
        let trie = if self.spelling == Spelling::OpenEnd {
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

/// That tokens stand for a value between the texts around it.
pub(super) fn value_spelled(vocab: &Vocab, texts: [&str; 3], tokens: &[TokenId], row: usize) -> Result<(), TextError> {
    if vocab.writes(tokens, texts) {
        return Ok(());
    }
    spelled(vocab, &texts.concat(), tokens, || format!("value {row}"))
}

/// That tokens stand for their text.
pub(super) fn spelled(
    vocab: &Vocab,
    text: &str,
    tokens: &[TokenId],
    what: impl Fn() -> String,
) -> Result<(), TextError> {
    // Some tokenizers put a space before a text, and some tidy up spaces when they give one back.
    if vocab.writes(tokens, ["", text, ""]) || vocab.detokenize(tokens)? == text.as_bytes() {
        return Ok(());
    }
    let spelled = String::from_utf8_lossy(&vocab.join(tokens)?).into_owned();
    Err(TextError::NoRoundTrip { what: what(), text: text.to_owned(), spelled })
}

//! A set of texts as a trie: as the tokenizer writes them, or in every spelling.

use super::error::RuntimeError;
use super::tokenize_all::Rows;
use super::vocab::Vocab;
use trie_core::{BuildError, LeafId, TokenId, Trie};

/// Which token sequences stand for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spelling {
    /// The one that the tokenizer writes.
    #[default]
    Canonical,
    /// All that spell it, at most so many for all values together.
    All {
        /// The most sequences.
        limit: usize,
    },
}

/// Values stand between texts, and a tokenizer cuts a text into tokens as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'t> {
    /// What stands before every value: the prompt, or its end from a place where a token begins.
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
    /// Bytes of the prefix that the set spells again: take so many off the end of the prompt.
    pub heal_bytes: usize,
    /// With all spellings: how many sequences there are up to each value, itself included.
    ends: Option<Vec<usize>>,
}

impl TextReport {
    /// The row of the value that a leaf stands for.
    pub fn value_of(&self, trie: &Trie, leaf: LeafId) -> Option<usize> {
        let row = trie.input_row(leaf)?;
        Some(self.ends.as_ref().map_or(row, |ends| ends.partition_point(|&end| end <= row)))
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
    /// Nothing is left of a value.
    #[error("row {row} is empty: a leaf needs at least one token, give a suffix or leave it out")]
    Empty {
        /// The value's place.
        row: usize,
    },
    /// The tokenizer changes the text, or the vocabulary lacks some of its bytes.
    #[error("{what}: the tokens of {text:?} spell {spelled:?}")]
    NoRoundTrip {
        /// Prefix or row.
        what: String,
        /// The whole text.
        text: String,
        /// What its tokens spell.
        spelled: String,
    },
    /// No tokens spell the value.
    #[error("value {row}: no tokens of this vocabulary spell {value:?}")]
    Unspellable {
        /// The value's place.
        row: usize,
        /// The value.
        value: String,
    },
    /// A token begins in the prefix and ends in the value.
    #[error(
        "value {row}: {value:?} has a token that spans the border to the prefix {prefix:?}; {count} of {values} values do: \
         Trie.from_strings with heal=True begins the set before that token"
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
    /// Too many spellings.
    #[error(
        "value {row}: with the {count} spellings of {value:?} there are {total} token sequences, over the limit of {limit}"
    )]
    TooMany {
        /// The value at which the limit was crossed.
        row: usize,
        /// That value.
        value: String,
        /// Its spellings; the largest number stands for more.
        count: u64,
        /// All up to here.
        total: u64,
        /// The limit.
        limit: usize,
    },
}

impl Texts<'_> {
    /// The trie of these values. Canonical: one run of the tokenizer for each different part of a text, on all cores. All
    /// spellings: as many leaves as there are, which doubles with about every byte.
    ///
    /// # Errors
    /// See [`TextError`].
    pub fn trie<S: AsRef<str> + Sync>(&self, vocab: &Vocab, values: &[S]) -> Result<TextTrie, TextError> {
        let mut report = TextReport { values: values.len(), ..TextReport::default() };
        if let Spelling::All { limit } = self.spelling
            && !vocab.can_tokenize()
            && !self.heal
        {
            let texts: Vec<Vec<u8>> =
                values.iter().map(|value| format!("{}{}", value.as_ref(), self.suffix).into_bytes()).collect();
            let (trie, ends) = spellings(vocab, values, &texts, limit)?;
            report.ends = Some(ends);
            return Ok(TextTrie { trie, report });
        }
        let before = vocab.tokenize(self.prefix, false, false)?;
        spelled(vocab, self.prefix, &before, || "prefix".to_owned())?;
        let portions = vocab.tokenize_all(values, self.prefix, self.suffix)?;
        let rows = || portions.iter().flat_map(Rows::iter).zip(values).enumerate();

        let mut common = before.len();
        for (row, (tokens, value)) in rows() {
            if !vocab.writes(tokens, [self.prefix, value.as_ref(), self.suffix]) {
                let text = format!("{}{}{}", self.prefix, value.as_ref(), self.suffix);
                spelled(vocab, &text, tokens, || format!("value {row}"))?;
            }
            if !tokens.starts_with(&before) {
                report.straddling += 1;
                if report.first_straddling.len() < 8 {
                    report.first_straddling.push(row);
                }
                if self.heal {
                    common = common.min(tokens.iter().zip(&before).take_while(|(a, b)| a == b).count());
                }
            }
        }
        let again: usize = before[common..].iter().filter_map(|&token| vocab.piece(token)).map(<[u8]>::len).sum();
        report.heal_bytes = again.min(self.prefix.len());

        if let Spelling::All { limit } = self.spelling {
            // What the tokenizer writes, a space of its own included, without what is kept of the prefix.
            let kept = vocab.join(&before[..common])?;
            let mut texts = Vec::with_capacity(values.len());
            for (row, (tokens, value)) in rows() {
                let whole = vocab.join(tokens)?;
                let unspellable = || TextError::Unspellable { row, value: value.as_ref().to_owned() };
                texts.push(whole.strip_prefix(kept.as_slice()).ok_or_else(unspellable)?.to_vec());
            }
            let (trie, ends) = spellings(vocab, values, &texts, limit)?;
            report.ends = Some(ends);
            return Ok(TextTrie { trie, report });
        }
        if let (false, Some(&row)) = (self.heal, report.first_straddling.first()) {
            let (value, prefix) = (values[row].as_ref().to_owned(), self.prefix.to_owned());
            return Err(TextError::Straddles { row, value, prefix, count: report.straddling, values: values.len() });
        }
        let mut builder = Trie::builder();
        for (row, (tokens, value)) in rows() {
            if tokens.len() <= common {
                return Err(TextError::Empty { row });
            }
            builder.push(Some(value.as_ref()), &tokens[common..]);
        }
        Ok(TextTrie { trie: builder.build()?, report })
    }
}

/// That tokens stand for their text.
fn spelled(vocab: &Vocab, text: &str, tokens: &[TokenId], what: impl Fn() -> String) -> Result<(), TextError> {
    // Some tokenizers put a space before a text, and some tidy up spaces when they give one back.
    if vocab.writes(tokens, ["", text, ""]) || vocab.detokenize(tokens)? == text.as_bytes() {
        return Ok(());
    }
    let spelled = String::from_utf8_lossy(&vocab.join(tokens)?).into_owned();
    Err(TextError::NoRoundTrip { what: what(), text: text.to_owned(), spelled })
}

/// Every sequence of tokens of text that spells these texts, and how many there are up to each.
fn spellings<S: AsRef<str>>(
    vocab: &Vocab,
    values: &[S],
    texts: &[Vec<u8>],
    limit: usize,
) -> Result<(Trie, Vec<usize>), TextError> {
    let mut total = 0u64;
    for (row, (text, value)) in texts.iter().zip(values).enumerate() {
        let count = Lattice::new(vocab, text).count();
        let value = value.as_ref();
        if text.is_empty() {
            return Err(TextError::Empty { row });
        }
        if count == 0 {
            return Err(TextError::Unspellable { row, value: value.to_owned() });
        }
        total = total.saturating_add(count);
        if total > limit as u64 {
            return Err(TextError::TooMany { row, value: value.to_owned(), count, total, limit });
        }
    }
    let mut builder = Trie::builder();
    let mut ends = Vec::with_capacity(values.len());
    for (text, value) in texts.iter().zip(values) {
        Lattice::new(vocab, text).each(|tokens| builder.push(Some(value.as_ref()), tokens));
        ends.push(builder.len());
    }
    Ok((builder.build()?, ends))
}

/// The tokens that can stand at each place of a text.
struct Lattice {
    /// From each byte: tokens, and the byte after them. Only such that the end can be reached.
    steps: Vec<Vec<(TokenId, usize)>>,
    /// Ways from each byte to the end.
    ways: Vec<u64>,
}

impl Lattice {
    /// `O(length · longest token)` steps in the byte trie.
    fn new(vocab: &Vocab, text: &[u8]) -> Self {
        let mut ways = vec![0u64; text.len() + 1];
        ways[text.len()] = 1;
        let mut steps = vec![Vec::new(); text.len() + 1];
        for at in (0..text.len()).rev() {
            for (length, tokens) in vocab.by_bytes().prefixes(&text[at..]) {
                let (to, more) = (at + length, ways[at + length]);
                if more > 0 {
                    ways[at] = ways[at].saturating_add(more.saturating_mul(tokens.len() as u64));
                    steps[at].extend(tokens.iter().map(|&token| (token, to)));
                }
            }
        }
        Self { steps, ways }
    }

    fn count(&self) -> u64 {
        self.ways[0]
    }

    /// Every way from the first byte to the last.
    fn each(&self, mut found: impl FnMut(&[TokenId])) {
        let mut tokens = Vec::new();
        // For each token of the way and one more: the steps left to try there.
        let mut left = vec![self.steps[0].iter()];
        while let Some(steps) = left.last_mut() {
            let Some(&(token, to)) = steps.next() else {
                left.pop();
                tokens.pop();
                continue;
            };
            tokens.push(token);
            if to + 1 == self.ways.len() {
                found(&tokens);
                tokens.pop();
            } else {
                left.push(self.steps[to].iter());
            }
        }
    }
}

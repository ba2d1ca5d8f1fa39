//! Values after a prompt: the meaning of a list of texts, and the set that it forms there.
//!
//! A tokenizer cuts a text into tokens as a whole, so values are tokenised together with the end of the prompt before
//! them. [`ValueSets`] caches the sets, so that a loop over prompts tokenises its values once.

mod error;

pub use error::ValuesError;

use crate::healing::{HealingError, Prompt};
use crate::texts::{Texts, Tokenization};
use crate::vocab::{Vocab, VocabError};
use lru::LruCache;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::work::spend;
use trie_core::{LeafId, TokenId, Trie};

/// Values given as text, with the settings that turn them into a set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TextValues {
    /// Texts of the values.
    pub values: Arc<[String]>,
    /// Text before each value. If it is given, it determines the boundary instead of the prompt.
    pub prefix: String,
    /// Text after each value; it belongs to the value.
    pub suffix: String,
    /// Token sequences that stand for a value.
    pub tokenization: Tokenization,
    /// Requires distinct values, because they are identified by their index.
    pub distinct: bool,
}

/// A set, and the index of each leaf in the original list of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSet {
    pub(crate) trie: Trie,
    /// `None` if values are numbered as leaves are.
    pub(crate) order: Option<Arc<[usize]>>,
}

/// Values in the form in which a host gives them.
#[derive(Debug, Clone)]
pub enum Values {
    /// A set of tokens: the same after every prompt.
    Set(ValueSet),
    /// Texts: tokenised with the end of each prompt that is text.
    Texts(TextValues),
}

/// Cache of the recently used sets of text values, for one vocabulary.
///
/// ```
/// # use trie_core::TokenId;
/// # use trie_text::{TokenKind, Tokenizer, TokenizerError, Vocab};
/// use trie_text::{Prompt, TextValues, ValueSets, Values};
/// # const PIECES: [&str; 5] = ["is", " ", "blue", " blue", "red"];
/// # /// The longest tokens, from left to right.
/// # #[derive(Debug)]
/// # struct Longest;
/// # impl Tokenizer for Longest {
/// #     fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
/// #         let (mut rest, mut found) = (text, Vec::new());
/// #         let begins = |rest: &str, id: &usize| rest.starts_with(PIECES[*id]);
/// #         while let Some(id) = (0..5).filter(|id| begins(rest, id)).max_by_key(|&id| PIECES[id].len()) {
/// #             found.push(TokenId::new(id as u32).unwrap());
/// #             rest = &rest[PIECES[id].len()..];
/// #         }
/// #         Ok(found)
/// #     }
/// # }
/// # let tokenizer = std::sync::Arc::new(Longest);
/// # let vocab = Vocab::new(PIECES.map(|piece| (piece, TokenKind::Text)), vec![], Some(tokenizer))?;
///
/// // The tokens are "is", " ", "blue", " blue" and "red".
/// let sets = ValueSets::new(vocab.into());
/// let values = Values::Texts(TextValues::new(["red", "blue"]));
/// let (prompt, set) = sets.place(Prompt::Text("is ".to_owned()), &values)?;
/// // " blue" is one token, so both values begin with the space: what walks the set takes it off the prompt.
/// assert_eq!((prompt.len(), set.trie().heal_bytes()), (2, 1));
/// // Leaf 0 is " " and "red", leaf 1 " blue".
/// assert_eq!(set.by_value(&[0.25, 0.75]), [0.25, 0.75]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ValueSets {
    vocab: Arc<Vocab>,
    kept: Mutex<LruCache<TextValues, ValueSet>>,
}

impl TextValues {
    /// Text values with nothing around them, in the tokenizer's own tokens.
    pub fn new<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        Self {
            values: values.into_iter().map(Into::into).collect(),
            prefix: String::new(),
            suffix: String::new(),
            tokenization: Tokenization::Canonical,
            distinct: false,
        }
    }

    /// Sets [`TextValues::prefix`] to a text.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Sets [`TextValues::suffix`] to a text.
    #[must_use]
    pub fn with_suffix(self, suffix: impl Into<String>) -> Self {
        Self { suffix: suffix.into(), ..self }
    }

    /// Sets [`TextValues::tokenization`] to this.
    #[must_use]
    pub fn with_tokenization(self, tokenization: Tokenization) -> Self {
        Self { tokenization, ..self }
    }

    /// Sets [`TextValues::distinct`] to this.
    #[must_use]
    pub fn with_distinct(self, distinct: bool) -> Self {
        Self { distinct, ..self }
    }

    /// The set of these values. If a token crosses the boundary to the prefix, the set begins before that token (token
    /// healing).
    ///
    /// # Errors
    /// See [`ValuesError`].
    pub fn set(&self, vocab: &Vocab) -> Result<ValueSet, ValuesError> {
        if self.distinct {
            distinct(&self.values, !self.suffix.is_empty())?;
        }
        let around = Texts::default().with_prefix(&self.prefix).with_suffix(&self.suffix);
        let around = around.with_tokenization(self.tokenization).with_healing(true);
        let trie = around.trie(vocab, &self.values)?.trie;
        if self.distinct && trie.len() < self.values.len() {
            return Err(ValuesError::SameTokens);
        }
        Ok(ValueSet::as_given(trie))
    }
}

fn distinct(values: &[String], with_suffix: bool) -> Result<(), ValuesError> {
    let mut seen = HashMap::new();
    for (row, value) in values.iter().enumerate() {
        spend(1).map_err(VocabError::from)?;
        if value.is_empty() && !with_suffix {
            return Err(ValuesError::Empty { row });
        }
        if let Some(first) = seen.insert(value, row) {
            return Err(ValuesError::Repeated { row, value: value.clone(), first });
        }
    }
    Ok(())
}

impl From<Trie> for ValueSet {
    fn from(trie: Trie) -> Self {
        Self { trie, order: None }
    }
}

impl ValueSet {
    /// Returns the values in the order of the texts that the set was made of.
    pub fn as_given(trie: Trie) -> Self {
        let order = trie.leaves().filter_map(|leaf| trie.input_row(leaf.index)).collect();
        Self { trie, order: Some(order) }
    }

    /// Returns the built set.
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// The index of a leaf in the original list of values.
    pub fn index_of(&self, leaf: LeafId) -> usize {
        self.order.as_deref().map_or(leaf.index(), |order| order.get(leaf.index()).copied().unwrap_or(leaf.index()))
    }

    /// Reorders `by_leaf`, one entry for each leaf, by value; NaN for a value that has no leaf of its own.
    pub fn by_value(&self, by_leaf: &[f64]) -> Vec<f64> {
        let values = (0..by_leaf.len() as u32).map(|leaf| self.index_of(LeafId::new(leaf)) + 1).max().unwrap_or(0);
        let mut placed = vec![f64::NAN; values];
        for (leaf, &known) in (0..).zip(by_leaf) {
            placed[self.index_of(LeafId::new(leaf))] = known;
        }
        placed
    }

    /// Returns the names of the values, in their order; `None` for a value without one.
    pub fn names(&self) -> Vec<Option<String>> {
        let mut names = Vec::with_capacity(self.trie.len());
        for leaf in (0..self.trie.len() as u32).map(LeafId::new) {
            let index = self.index_of(leaf);
            names.resize(names.len().max(index + 1), None);
            names[index] = self.trie.name(leaf).map(Cow::into_owned);
        }
        names
    }

    /// Returns the entries of `by_leaf` by the name of each value, or by its index if it has no name, in the order of
    /// the values. Entries of values with the same name are added up.
    pub fn by_name(&self, by_leaf: &[f64]) -> Vec<(String, f64)> {
        let (mut named, mut places) = (Vec::<(String, f64)>::new(), HashMap::<String, usize>::new());
        for (index, (name, known)) in self.names().into_iter().zip(self.by_value(by_leaf)).enumerate() {
            let name = name.unwrap_or_else(|| index.to_string());
            match places.entry(name.clone()) {
                Entry::Occupied(place) => named[*place.get()].1 += known,
                Entry::Vacant(place) => {
                    place.insert(named.len());
                    named.push((name, known));
                }
            }
        }
        named
    }
}

impl ValueSets {
    /// Builds values for this vocabulary.
    pub fn new(vocab: Arc<Vocab>) -> Self {
        const ENTRIES: NonZeroUsize = NonZeroUsize::new(16).unwrap();
        Self { vocab, kept: Mutex::new(LruCache::new(ENTRIES)) }
    }

    /// Clears the cache; sets in use survive.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// The vocabulary that it was made for.
    pub fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    /// The tokens of a prompt, and the set of these values after it. Functions that walk the set take the bytes that
    /// it spells again off the prompt ([`Vocab::before_set`]).
    ///
    /// # Errors
    /// See [`ValuesError`].
    pub fn place(&self, prompt: Prompt, values: &Values) -> Result<(Vec<TokenId>, ValueSet), ValuesError> {
        match values {
            Values::Set(set) => Ok((prompt.tokens(&self.vocab, Some(set.trie()))?, set.clone())),
            Values::Texts(texts) => self.place_texts(prompt, texts),
        }
    }

    /// [`ValueSets::place`] for text values.
    ///
    /// # Errors
    /// As [`ValueSets::place`].
    pub fn place_texts(&self, prompt: Prompt, texts: &TextValues) -> Result<(Vec<TokenId>, ValueSet), ValuesError> {
        match prompt {
            // A prefix says what the boundary is.
            Prompt::Text(_) if texts.prefix.is_empty() => {
                let prompt = prompt.tokens(&self.vocab, None)?;
                let set = self.set_after(texts, &prompt)?;
                Ok((prompt, set))
            }
            prompt => {
                let set = self.get(texts)?;
                let is_tokens = matches!(prompt, Prompt::Tokens(_));
                let prompt = prompt.tokens(&self.vocab, Some(set.trie()))?;
                if is_tokens {
                    self.stands_before(&texts.prefix, &prompt)?;
                }
                Ok((prompt, set))
            }
        }
    }

    /// The set after a prompt that was given as text: values are tokenised together with its end, and may begin inside
    /// its last tokens.
    fn set_after(&self, texts: &TextValues, prompt: &[TokenId]) -> Result<ValueSet, ValuesError> {
        let prefix = self.vocab.prompt_end(prompt, &texts.values);
        let some = !texts.suffix.is_empty() || texts.values.iter().all(|value| !value.is_empty());
        if some && !prefix.is_empty() {
            // A prompt with odd ends stays as it is: then the values stand alone.
            if let Ok(set) = self.get(&TextValues { prefix, ..texts.clone() }) {
                match self.vocab.before_set(prompt, set.trie()) {
                    Ok(_) => return Ok(set),
                    Err(nothing_left @ HealingError::AllTakenBack { .. }) => return Err(nothing_left.into()),
                    Err(_) => {}
                }
            }
        }
        self.get(texts)
    }

    /// Checks that the tokens of a prompt end with a text.
    fn stands_before(&self, prefix: &str, prompt: &[TokenId]) -> Result<(), ValuesError> {
        let (mut bytes, mut left) = (Vec::new(), prompt);
        while let (true, Some((last, before))) = (bytes.len() < prefix.len(), left.split_last()) {
            bytes.splice(..0, self.vocab.piece(*last).unwrap_or_default().iter().copied());
            left = before;
        }
        if bytes.ends_with(prefix.as_bytes()) {
            return Ok(());
        }
        let end = String::from_utf8_lossy(&bytes).into_owned();
        Err(ValuesError::NotBefore { prefix: prefix.to_owned(), end })
    }

    /// The set of these texts with the text around them, made if it is not in the cache.
    ///
    /// # Errors
    /// As [`TextValues::set`].
    pub fn get(&self, texts: &TextValues) -> Result<ValueSet, ValuesError> {
        if let Some(set) = self.lock().get(texts) {
            return Ok(set.clone());
        }
        // Nothing is locked meanwhile: a tokenizer may wait for other threads.
        let set = texts.set(&self.vocab)?;
        self.lock().put(texts.clone(), set.clone());
        Ok(set)
    }

    /// Only whole entries are behind this lock, which no panic can leave half changed.
    fn lock(&self) -> MutexGuard<'_, LruCache<TextValues, ValueSet>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

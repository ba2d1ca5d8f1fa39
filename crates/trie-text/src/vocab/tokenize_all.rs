//! Tokenization of many texts, on all cores; repeated parts are looked up.
//!
//! A text may be split where no token crosses and neither side changes the tokens of the other. Then its tokens are
//! those of its parts, one after the other. The tokenizer is called once for each different part, or for several that
//! form one text. [`SplitPoints`] says where this holds; other texts are tokenized whole. The first text of each
//! portion is tokenized both ways: if the results ever differed, all texts would be tokenized again without splitting.

use super::error::text_in_range;
use super::{Vocab, VocabError};
use crate::tokenizer::SplitPoints;
use foldhash::fast::RandomState;
#[cfg(not(target_family = "wasm"))]
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::{PoisonError, RwLock};
use trie_core::TokenId;
use trie_core::work::{Limits, Work, look};

/// llama.cpp uses C++ regular expressions, which recurse: these threads have as much stack as a main thread.
#[cfg(not(target_family = "wasm"))]
static THREADS: trie_core::SharedThreads = trie_core::SharedThreads::new("tokenize").with_stack(16 << 20);

/// Texts that a thread takes at a time.
const PORTION: usize = 512;

/// The tokens of some texts, in order.
#[derive(Debug, Default)]
pub struct TokenizedTexts {
    portions: Vec<Portion>,
    in_parts: bool,
}

/// The tokens of some texts, one after the other.
#[derive(Debug, Default)]
struct Portion {
    tokens: Vec<TokenId>,
    ends: Vec<usize>,
}

impl Portion {
    fn iter(&self) -> impl Iterator<Item = &[TokenId]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.tokens[begin..end])
    }
}

impl TokenizedTexts {
    /// The tokens of each text.
    pub fn iter(&self) -> impl Iterator<Item = &[TokenId]> {
        self.portions.iter().flat_map(Portion::iter)
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.portions.iter().map(|portion| portion.ends.len()).sum()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether texts were split at the tokenizer's [`SplitPoints`] and tokenized in parts.
    pub fn in_parts(&self) -> bool {
        self.in_parts
    }
}

impl Vocab {
    /// The tokens of `prefix + value + suffix` for each value, as [`Vocab::tokenize`] returns them for plain text. It
    /// uses all cores if the tokenizer [is parallel](crate::Tokenizer::is_parallel), and large batches otherwise.
    ///
    /// # Errors
    /// As [`Vocab::tokenize`]; [`VocabError::Value`] names the value if the tokenizer is not parallel.
    pub fn tokenize_all<S: AsRef<str> + Sync>(
        &self,
        values: &[S],
        prefix: &str,
        suffix: &str,
    ) -> Result<TokenizedTexts, VocabError> {
        let tokenizer = self.tokenizer()?;
        if !tokenizer.is_parallel() {
            let mut all = Portion::default();
            let texts = values.iter().map(|value| [prefix, value.as_ref(), suffix].concat());
            self.ask_all(tokenizer, texts, |tokens| {
                all.tokens.extend_from_slice(tokens);
                all.ends.push(all.tokens.len());
            })?;
            return Ok(TokenizedTexts { portions: vec![all], in_parts: false });
        }
        // Threads of a pool have no work of their own.
        let work = Work::current().unwrap_or_else(|| Work::new(Limits::NONE));
        let job = |points| Job {
            vocab: self,
            values,
            prefix,
            suffix,
            points,
            known: KnownParts::default(),
            work: work.clone(),
        };
        if let Some(points) = self.split_points()
            && let Some(portions) = job(Some(points)).run()?
        {
            return Ok(TokenizedTexts { portions, in_parts: true });
        }
        Ok(TokenizedTexts { portions: job(None).run()?.unwrap_or_default(), in_parts: false })
    }
}

/// Values in the same surroundings, and how their texts are tokenized.
struct Job<'v, S> {
    vocab: &'v Vocab,
    values: &'v [S],
    prefix: &'v str,
    suffix: &'v str,
    /// Split points; with `None`, texts are tokenized whole.
    points: Option<&'v SplitPoints>,
    known: KnownParts,
    work: Work,
}

impl<S: AsRef<str> + Sync> Job<'_, S> {
    /// Returns `None` if splitting turned out to change a result.
    fn run(&self) -> Result<Option<Vec<Portion>>, VocabError> {
        let portions = self.values.len().div_ceil(PORTION);
        #[cfg(not(target_family = "wasm"))]
        if portions > 1
            && let Some(pool) = THREADS.pool()
        {
            return pool.install(|| (0..portions).into_par_iter().map(|number| self.portion(number)).collect());
        }
        (0..portions).map(|number| self.portion(number)).collect()
    }

    /// Returns `None` if splitting turned out to change a result.
    fn portion(&self, number: usize) -> Result<Option<Portion>, VocabError> {
        self.work.run(|| look(1, 0))?;
        let mut done = Portion::default();
        let values = self.values.iter().skip(number * PORTION).take(PORTION);
        let text = |value: &S| {
            let value = value.as_ref();
            text_in_range(self.prefix.len() + value.len() + self.suffix.len())?;
            Ok::<_, VocabError>([self.prefix, value, self.suffix].concat())
        };
        let Some(points) = self.points else {
            for value in values {
                done.tokens.extend(self.vocab.tokenize(&text(value)?, false, false)?);
                done.ends.push(done.tokens.len());
            }
            return Ok(Some(done));
        };
        let texts: Vec<String> = values.map(text).collect::<Result<_, _>>()?;
        let mut parts = Vec::new();
        let mut ends = Vec::with_capacity(texts.len());
        for text in &texts {
            parts.extend(points.parts(text));
            ends.push(parts.len());
        }
        self.known.learn(&parts, self.vocab, points)?;
        let mut begin = 0;
        for end in ends {
            for part in &parts[begin..end] {
                self.known.add(part, self.vocab, &mut done.tokens)?;
            }
            done.ends.push(done.tokens.len());
            begin = end;
        }
        let same = |text: &String| Ok(done.iter().next() == Some(&self.vocab.tokenize(text, false, false)?));
        let same: Result<bool, VocabError> = texts.first().map_or(Ok(true), same);
        Ok(same?.then_some(done))
    }
}

/// Tokens of parts, by their text.
type PartTokens = HashMap<String, Box<[TokenId]>, RandomState>;

/// The tokens of known parts, shared by all threads. Each part is under one of many locks, and nothing is tokenized
/// while a lock is held.
#[derive(Default)]
struct KnownParts {
    shards: [RwLock<PartTokens>; SHARDS],
    hasher: RandomState,
}

/// Number of locks: more than there are threads.
const SHARDS: usize = 32;

impl KnownParts {
    fn shard(&self, part: &str) -> &RwLock<PartTokens> {
        &self.shards[self.hasher.hash_one(part) as usize % SHARDS]
    }

    /// Returns whether the part is known, and passes its tokens to `take`.
    fn get(&self, part: &str, take: impl FnOnce(&[TokenId])) -> bool {
        let shard = self.shard(part).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(part).map(|known| take(known)).is_some()
    }

    fn insert(&self, part: &str, tokens: Box<[TokenId]>) {
        let mut shard = self.shard(part).write().unwrap_or_else(PoisonError::into_inner);
        shard.insert(part.to_owned(), tokens);
    }

    /// Tokenizes and stores the parts that are not known yet and can be joined.
    fn learn(&self, parts: &[&str], vocab: &Vocab, points: &SplitPoints) -> Result<(), VocabError> {
        let new = parts.iter().copied().filter(|part| points.joins(part) && !self.get(part, |_| ()));
        let new: Vec<&str> = new.collect::<HashSet<_, RandomState>>().into_iter().collect();
        let joint = if points.own_space() { " " } else { "" };
        for parts in new.chunks(64) {
            let text = parts.join(joint);
            if points.finds(&text) {
                continue;
            }
            let tokens = vocab.tokenize(&text, false, false)?;
            let mut rest = tokens.as_slice();
            for part in parts {
                let own = vocab.tokens_over(rest, part.len() + joint.len());
                let (own, others) = rest.split_at(own);
                // Where tokens do not spell their text, nothing says which are whose.
                if !vocab.spells(own, [joint, part]) {
                    break;
                }
                self.insert(part, own.into());
                rest = others;
            }
        }
        Ok(())
    }

    /// Appends the tokens of a part.
    fn add(&self, part: &str, vocab: &Vocab, tokens: &mut Vec<TokenId>) -> Result<(), VocabError> {
        if self.get(part, |known| tokens.extend_from_slice(known)) {
            return Ok(());
        }
        // Two threads may do the same part, once.
        let found = vocab.tokenize(part, false, false)?;
        tokens.extend_from_slice(&found);
        self.insert(part, found.into_boxed_slice());
        Ok(())
    }
}

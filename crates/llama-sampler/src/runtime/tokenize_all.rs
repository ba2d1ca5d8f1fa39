//! Many texts to tokens: on all cores, and a part that comes again is looked up.
//!
//! llama.cpp's `llama_tokenize` reads the vocabulary and writes only what belongs to the call (its tables are made once, behind
//! C++'s own guard), so threads may share it.
//!
//! A text may be cut before a space where no token spans the cut and nothing on one side changes the other. Then the tokens of
//! the text are those of its parts, one after the other, and llama.cpp is asked once for each different part. [`Cuts`] says
//! where that holds, and everything else is tokenised whole. Some texts are tokenised both ways; were one ever to differ, all
//! would be done again without cuts.

use super::error::RuntimeError;
use super::preconditions::{MAX_TEXT, in_range};
use super::threads::default_threads;
use super::vocab::Vocab;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token_type::LlamaTokenAttr;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use trie_core::{ByteTrie, TokenId};

/// Texts that a thread takes at a time.
const PORTION: usize = 512;

/// Regular expressions of C++ recurse: as much as a main thread has.
const STACK: usize = 16 << 20;

/// The tokens of some texts, one after the other.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tokens: Vec<TokenId>,
    ends: Vec<usize>,
}

impl Rows {
    pub(super) fn iter(&self) -> impl Iterator<Item = &[TokenId]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.tokens[begin..end])
    }
}

/// What a thread did: numbered portions, or none if cutting was found out to change something.
type Done = Result<Option<Vec<(usize, Rows)>>, RuntimeError>;

/// Where texts may be cut for a tokenizer: between which two bytes of ASCII.
///
/// The tokenizers named `gpt-2`, `llama-bpe` and `qwen2` first cut a text into words, which know nothing of each other. A run of
/// letters or digits ends before any other ASCII, and a run of anything visible before a space: none of their patterns goes on
/// there, or looks further than spaces. Those without words (`llama`, `gemma4`) merge neighbours into tokens: two bytes that
/// stand beside each other in no token are never merged.
#[derive(Debug)]
pub(super) struct Cuts {
    /// For each byte before a cut, those that may come after it, one bit each.
    between: Vec<u128>,
    /// The tokenizer puts a space before a text by itself: a part is given to it without its own.
    own_space: bool,
    /// Tokens that are found in a text before anything else. A text with one is not cut.
    found_first: ByteTrie,
}

impl Cuts {
    /// None where this is not known to be right.
    pub(super) fn of(model: &LlamaModel) -> Option<Self> {
        let meta = |key| model.meta_val_str(key).unwrap_or_default();
        let (kind, words) = (meta("tokenizer.ggml.model"), meta("tokenizer.ggml.pre"));
        let has_words = match (kind.as_str(), words.as_str()) {
            ("gpt2", "gpt-2" | "llama-bpe" | "llama3" | "llama-v3" | "qwen2") => true,
            ("llama", _) | ("gemma4", "" | "gemma4") => false,
            _ => return None,
        };
        let vocab = model.vocab();
        let first: Vec<u8> = vocab.tokenize(b"a", false, false).into_iter().fold(Vec::new(), |mut bytes, token| {
            vocab.token_to_piece_into(token, &mut bytes, true, None);
            bytes
        });
        let own_space = match first.as_slice() {
            b"a" => false,
            b" a" if !has_words => true,
            _ => return None,
        };
        let cuts = |before: u8, after: u8| match (has_words, after) {
            (true, b' ') => before.is_ascii_graphic(),
            (true, _) => before.is_ascii_alphanumeric() && !after.is_ascii_alphanumeric(),
            // What the tokenizer puts a space before must have had one.
            (false, _) => before.is_ascii_graphic() && (after == b' ' || !own_space),
        };
        let bits = |before| (0..128).filter(|&after| cuts(before, after)).fold(0, |bits, after| bits | 1 << after);
        let mut between: Vec<u128> = (0..=255).map(bits).collect();
        let mut found_first = Vec::new();
        for token in vocab.tokens() {
            let text = vocab.text(token)?.to_bytes();
            for at in (1..text.len()).filter(|_| !has_words) {
                let after = if text[at..].starts_with("▁".as_bytes()) { b' ' } else { text[at] };
                between[usize::from(text[at - 1])] &= !1u128.checked_shl(after.into()).unwrap_or(0);
            }
            if vocab.attr(token).contains(LlamaTokenAttr::UserDefined) {
                found_first.push((text, TokenId::try_from(token.0).ok()?));
            }
        }
        Some(Self { between, own_space, found_first: ByteTrie::new(found_first).ok()? })
    }

    /// Whether the tokenizer puts a space before a text by itself.
    pub(super) fn own_space(&self) -> bool {
        self.own_space
    }

    /// The parts of a text, as the tokenizer wants them.
    fn parts<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t, '_> {
        let bytes = text.as_bytes();
        let whole = !self.found_first.is_empty()
            && (0..bytes.len()).any(|at| self.found_first.prefixes(&bytes[at..]).next().is_some());
        let cut = move |at: &usize| {
            let after = 1u128.checked_shl(bytes[*at].into()).unwrap_or(0);
            !whole && self.between[usize::from(bytes[*at - 1])] & after != 0
                // The space that is left out must not be all of a part, nor be followed by another.
                && (!self.own_space || bytes.get(*at + 1).is_some_and(|&next| next > b' '))
        };
        let mut from = 0;
        std::iter::from_fn(move || {
            if from >= bytes.len() {
                return None;
            }
            let to = (from + 1..bytes.len()).find(cut).unwrap_or(bytes.len());
            let part = &text[from + usize::from(from > 0 && self.own_space)..to];
            from = to;
            Some(part)
        })
    }
}

/// The tokens of the parts that were seen, for all threads. Several locks, so that they seldom wait for each other.
struct Known {
    hasher: RandomState,
    shards: [Mutex<HashMap<String, Box<[TokenId]>>>; 64],
}

impl Known {
    fn new() -> Self {
        Self { hasher: RandomState::new(), shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Only whole entries are behind this lock, which no panic can leave half changed.
    fn shard(&self, part: &str) -> MutexGuard<'_, HashMap<String, Box<[TokenId]>>> {
        let shard = &self.shards[self.hasher.hash_one(part) as usize % self.shards.len()];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the tokens of a part.
    fn add(&self, part: &str, vocab: &Vocab, tokens: &mut Vec<TokenId>) -> Result<(), RuntimeError> {
        if let Some(known) = self.shard(part).get(part) {
            tokens.extend_from_slice(known);
            return Ok(());
        }
        // Not behind the lock: two threads may do the same part, once.
        let found = vocab.tokenize(part, false, false)?;
        tokens.extend_from_slice(&found);
        self.shard(part).insert(part.to_owned(), found.into_boxed_slice());
        Ok(())
    }
}

/// Values in the same surroundings, and how their texts are tokenised.
struct Job<'v, S> {
    vocab: &'v Vocab,
    values: &'v [S],
    prefix: &'v str,
    suffix: &'v str,
    /// Whole texts if None.
    cuts: Option<&'v Cuts>,
    known: Known,
}

impl<S: AsRef<str>> Job<'_, S> {
    /// None if cutting was found out to change something.
    fn portion(&self, portion: usize) -> Result<Option<Rows>, RuntimeError> {
        let mut rows = Rows::default();
        let mut text = String::new();
        for value in self.values.iter().skip(portion * PORTION).take(PORTION) {
            let value = value.as_ref();
            let length = self.prefix.len() + value.len() + self.suffix.len();
            in_range("length of the text in bytes", length as u64, 0, MAX_TEXT)?;
            text.clear();
            text.extend([self.prefix, value, self.suffix]);
            let Some(cuts) = self.cuts else {
                rows.tokens.extend(self.vocab.tokenize(&text, false, false)?);
                rows.ends.push(rows.tokens.len());
                continue;
            };
            for part in cuts.parts(&text) {
                self.known.add(part, self.vocab, &mut rows.tokens)?;
            }
            rows.ends.push(rows.tokens.len());
            if rows.ends.len() == 1 && self.vocab.tokenize(&text, false, false)? != rows.tokens {
                return Ok(None);
            }
        }
        Ok(Some(rows))
    }
}

impl Vocab {
    /// The tokens of `prefix + value + suffix` for each value, as [`Vocab::tokenize`] gives them for plain text; in order, a
    /// list of portions. On all cores.
    pub(super) fn tokenize_all<S: AsRef<str> + Sync>(
        &self,
        values: &[S],
        prefix: &str,
        suffix: &str,
    ) -> Result<Vec<Rows>, RuntimeError> {
        let job = |cuts| Job { vocab: self, values, prefix, suffix, cuts, known: Known::new() };
        if let Some(rows) = job(self.cuts()).run()? {
            return Ok(rows);
        }
        Ok(job(None).run()?.unwrap_or_default())
    }
}

impl<S: AsRef<str> + Sync> Job<'_, S> {
    /// None if cutting was found out to change something.
    fn run(&self) -> Result<Option<Vec<Rows>>, RuntimeError> {
        let portions = self.values.len().div_ceil(PORTION);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let portion = next.fetch_add(1, Ordering::Relaxed);
                if portion >= portions {
                    return Ok(Some(done));
                }
                match self.portion(portion)? {
                    Some(rows) => done.push((portion, rows)),
                    None => return Ok(None),
                }
            }
        };
        let threads = (default_threads() as usize).min(portions);
        let done: Vec<Done> = if threads < 2 {
            vec![work()]
        } else {
            thread::scope(|scope| {
                let spawn = |_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
                // Threads that the system refuses leave their work to the others; this one works too if there are none.
                let threads: Vec<_> = (0..threads).map_while(|number| spawn(number).ok()).collect();
                if threads.is_empty() {
                    return vec![work()];
                }
                let wait = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                threads.into_iter().map(wait).collect()
            })
        };
        let mut rows = Vec::with_capacity(portions);
        for done in done {
            let Some(done) = done? else { return Ok(None) };
            rows.extend(done);
        }
        rows.sort_unstable_by_key(|&(portion, _)| portion);
        Ok(Some(rows.into_iter().map(|(_, rows)| rows).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::{PORTION, Rows};
    use crate::Vocab;
    use proptest::prelude::*;
    use std::path::{Path, PathBuf};
    use trie_core::TokenId;

    /// What cuts could get wrong: spaces of all kinds, runs of them, contractions, digits, tokens found first, letters of
    /// several bytes, and the character that stands for a space in some vocabularies.
    const PARTS: &[&str] = &[
        "a",
        "b",
        "the",
        "The",
        "city",
        "12",
        "2048",
        " ",
        " ",
        " ",
        " ",
        " ",
        "  ",
        "   ",
        "\n",
        "\r\n",
        "\t",
        "\u{a0}",
        "\u{3000}",
        "\u{2003}",
        "'s",
        "'ll",
        ".",
        ":",
        "!",
        "-",
        "(",
        ")",
        "</",
        ">",
        "\"",
        "é",
        "e\u{301}",
        "ß",
        "日本",
        "🙂",
        "\u{2581}",
        "\0",
        "<0x20>",
        "<s>",
        "</s>",
        "<unk>",
        "[PAD151646]",
        "[PAD151646] ",
        " [PAD151646]",
        "<|tool_call>",
        " <|\"|> ",
        "<|endoftext|>",
        "\u{fffd}",
    ];

    fn vocabularies() -> Vec<PathBuf> {
        let mut paths = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tokentrie/models/tiny.gguf")];
        match std::env::var_os("TOKENTRIE_VOCAB_DIR").map(std::fs::read_dir) {
            Some(Ok(files)) => paths.extend(files.filter_map(|file| Some(file.ok()?.path()))),
            _ => println!("skipped the wide vocabularies: TOKENTRIE_VOCAB_DIR names no folder"),
        }
        paths.retain(|path| path.extension().is_some_and(|end| end == "gguf"));
        paths
    }

    fn rows(found: &[Rows]) -> Vec<Vec<TokenId>> {
        found.iter().flat_map(Rows::iter).map(<[TokenId]>::to_vec).collect()
    }

    #[test]
    fn the_same_tokens_as_one_by_one() {
        let part = prop::sample::select(PARTS);
        let texts = prop::collection::vec(prop::collection::vec(part, 0..12), 5 * PORTION);
        let around = prop::sample::select(&["", "a", " ", "the ", "\n", "The city: \"", "\"", " the city is b"][..]);
        for path in vocabularies() {
            let vocab = Vocab::from_gguf(&path).unwrap();
            println!("{}: {}", path.display(), if vocab.cuts().is_some() { "cut" } else { "whole" });
            let config = ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(3) };
            proptest!(config, |(texts in &texts, prefix in &around, suffix in &around)| {
                let texts: Vec<String> = texts.iter().map(|parts| parts.concat()).collect();
                let whole = |text: &String| vocab.tokenize(&format!("{prefix}{text}{suffix}"), false, false).unwrap();
                let expected: Vec<_> = texts.iter().map(whole).collect();
                let (cuts, known) = (vocab.cuts(), super::Known::new());
                let found = super::Job { vocab: &vocab, values: &texts, prefix, suffix, cuts, known }.run().unwrap();
                prop_assert_eq!(&rows(&found.expect("cuts are right")), &expected);
                prop_assert_eq!(&rows(&vocab.tokenize_all(&texts, prefix, suffix).unwrap()), &expected);
            });
        }
    }
}

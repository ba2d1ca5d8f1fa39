//! Many texts to tokens: on all cores, and a part that comes again is looked up.
//!
//! llama.cpp's `llama_tokenize` reads the vocabulary and writes only what belongs to the call (its tables are made once, behind
//! C++'s own guard), so threads may share it.
//!
//! A text may be cut where no token spans the cut and nothing on one side changes the other. Then the tokens of the text are
//! those of its parts, one after the other, and llama.cpp is asked once for each different part, or for several that make
//! one text. [`Cuts`] says where that holds, and everything else is tokenised whole. The first text of each portion is
//! tokenised both ways; were one ever to differ, all would be done again without cuts.

use super::cuts::Cuts;
use super::error::RuntimeError;
use super::preconditions::{MAX_TEXT, in_range};
use super::threads::default_threads;
use super::vocab::Vocab;
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use trie_core::TokenId;

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

/// Parts and their tokens.
type Shard = HashMap<String, Box<[TokenId]>, RandomState>;

/// The tokens of the parts that were seen, for all threads. Several locks, so that they seldom wait for each other.
struct Known {
    shards: [Mutex<Shard>; 64],
}

impl Known {
    fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Only whole entries are behind this lock, which no panic can leave half changed.
    fn shard(&self, part: &str) -> MutexGuard<'_, Shard> {
        // Its map hashes the part again, so this is only spread enough that threads seldom meet.
        let spread = part.bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let shard = &self.shards[spread % self.shards.len()];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns the parts that are not known and can be joined.
    fn learn(&self, parts: &[&str], vocab: &Vocab, cuts: &Cuts) -> Result<(), RuntimeError> {
        let new = parts.iter().copied().filter(|part| cuts.joins(part) && !self.shard(part).contains_key(*part));
        let new: Vec<&str> = new.collect::<HashSet<_, RandomState>>().into_iter().collect();
        let joint = if cuts.own_space() { " " } else { "" };
        for parts in new.chunks(64) {
            let text = parts.join(joint);
            if cuts.finds(&text) {
                continue;
            }
            let tokens = vocab.tokenize(&text, false, false)?;
            let mut rest = tokens.as_slice();
            for part in parts {
                let mut left = part.len() + joint.len();
                let own = rest.iter().take_while(|&&token| {
                    let more = left > 0;
                    left = left.saturating_sub(vocab.piece(token).map_or(0, <[u8]>::len));
                    more
                });
                let (own, others) = rest.split_at(own.count());
                // Where tokens do not spell their text, nothing says which are whose.
                if !vocab.spells(own, [joint, part]) {
                    break;
                }
                self.shard(part).insert((*part).to_owned(), own.into());
                rest = others;
            }
        }
        Ok(())
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
        let values = self.values.iter().skip(portion * PORTION).take(PORTION);
        let text = |value: &S| {
            let value = value.as_ref();
            let length = self.prefix.len() + value.len() + self.suffix.len();
            in_range("length of the text in bytes", length as u64, 0, MAX_TEXT)?;
            Ok::<_, RuntimeError>([self.prefix, value, self.suffix].concat())
        };
        let Some(cuts) = self.cuts else {
            for value in values {
                rows.tokens.extend(self.vocab.tokenize(&text(value)?, false, false)?);
                rows.ends.push(rows.tokens.len());
            }
            return Ok(Some(rows));
        };
        let texts: Vec<String> = values.map(text).collect::<Result<_, _>>()?;
        let mut parts = Vec::new();
        let mut ends = Vec::with_capacity(texts.len());
        for text in &texts {
            parts.extend(cuts.parts(text));
            ends.push(parts.len());
        }
        self.known.learn(&parts, self.vocab, cuts)?;
        let mut begin = 0;
        for end in ends {
            for part in &parts[begin..end] {
                self.known.add(part, self.vocab, &mut rows.tokens)?;
            }
            rows.ends.push(rows.tokens.len());
            begin = end;
        }
        let same = |text: &String| Ok(rows.iter().next() == Some(&self.vocab.tokenize(text, false, false)?));
        let same: Result<bool, RuntimeError> = texts.first().map_or(Ok(true), same);
        Ok(same?.then_some(rows))
    }
}

impl Vocab {
    /// The tokens of `prefix + value + suffix` for each value, as [`Vocab::tokenize`] gives them for plain text; in order, a
    /// list of portions. On all cores; a caller's tokenizer is given all texts at once.
    pub(super) fn tokenize_all<S: AsRef<str> + Sync>(
        &self,
        values: &[S],
        prefix: &str,
        suffix: &str,
    ) -> Result<Vec<Rows>, RuntimeError> {
        if let Some(tokenizer) = self.callers() {
            let mut rows = Rows::default();
            let texts = values.iter().map(|value| [prefix, value.as_ref(), suffix].concat());
            self.ask_all(tokenizer, texts, |tokens| {
                rows.tokens.extend_from_slice(tokens);
                rows.ends.push(rows.tokens.len());
            })?;
            return Ok(vec![rows]);
        }
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
    use std::io::Write;
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
        "'S",
        "'RE",
        "'d ",
        "iPhone",
        "ABC",
        "a1b2",
        "٣٤",
        "½",
        "/",
        "\n\n",
        " \n ",
        "é",
        "e\u{301}",
        "\u{301}",
        "ñandú",
        "한국어",
        "👩\u{200d}👩\u{200d}👧",
        "\u{1f1fa}\u{1f1f8}",
        "\u{feff}",
        "\u{85}",
        "\u{202e}",
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

    fn texts(count: usize) -> impl Strategy<Value = Vec<String>> {
        let text = prop::collection::vec(prop::sample::select(PARTS), 0..12).prop_map(|parts| parts.concat());
        prop::collection::vec(text, count)
    }

    fn rows(found: &[Rows]) -> Vec<Vec<TokenId>> {
        found.iter().flat_map(Rows::iter).map(<[TokenId]>::to_vec).collect()
    }

    /// A file of a vocabulary with another pattern for words, in a file of its own that goes away.
    fn with_words(path: &Path, words: &str) -> tempfile::NamedTempFile {
        let bytes = std::fs::read(path).unwrap();
        let key = b"tokenizer.ggml.pre\x08\0\0\0";
        let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len();
        let length = u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let words = [&(words.len() as u64).to_le_bytes()[..], words.as_bytes()].concat();
        file.write_all(&[&bytes[..at], &words, &bytes[at + 8 + length..]].concat()).unwrap();
        file
    }

    /// Every pattern, over a vocabulary in which tokens go over many borders of words.
    #[test]
    fn patterns_for_words() {
        let wide =
            |path: &PathBuf| ["llama-bpe.gguf", "qwen2.gguf"].iter().any(|end| path.to_string_lossy().ends_with(end));
        for path in vocabularies().iter().filter(|path| wide(path)) {
            for words in super::super::cuts::WORDS_OF_EACH_PATTERN {
                let file = with_words(path, words);
                let vocab = Vocab::from_gguf(file.path()).unwrap();
                assert!(vocab.cuts().is_some(), "{words}");
                proptest!(ProptestConfig::with_cases(1), |(texts in texts(PORTION + 1))| {
                    let expected: Vec<_> = texts.iter().map(|text| vocab.tokenize(text, false, false).unwrap()).collect();
                    let (cuts, known) = (vocab.cuts(), super::Known::new());
                    let job = super::Job { vocab: &vocab, values: &texts, prefix: "", suffix: "", cuts, known };
                    prop_assert_eq!(&rows(&job.run().unwrap().expect("cuts are right")), &expected, "{}", words);
                });
            }
        }
    }

    #[test]
    fn the_same_tokens_as_one_by_one() {
        let texts = texts(5 * PORTION);
        let around = prop::sample::select(&["", "a", " ", "the ", "\n", "The city: \"", "\"", " the city is b"][..]);
        for path in vocabularies() {
            let vocab = Vocab::from_gguf(&path).unwrap();
            println!("{}: {}", path.display(), if vocab.cuts().is_some() { "cut" } else { "whole" });
            let config = ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(3) };
            proptest!(config, |(texts in &texts, prefix in &around, suffix in &around)| {
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

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
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// Where texts may be cut for a tokenizer: between a byte that no token has before a space, and a single space before something
/// that is no space.
///
/// With the tokenizers named `gpt-2`, `llama-bpe` and `qwen2` a word always ends there, since none of their patterns goes on
/// over a space that something visible follows, and words know nothing of each other. Those without words (`llama`,
/// `gemma4`) merge neighbours into tokens: what would span the cut is no token, so it is never merged.
#[derive(Debug)]
pub(super) struct Cuts {
    /// Visible ASCII that may stand before a cut.
    before: [bool; 256],
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
        let merges_all = match (kind.as_str(), words.as_str()) {
            ("gpt2", "gpt-2" | "llama-bpe" | "llama3" | "llama-v3" | "qwen2") => false,
            ("llama", _) | ("gemma4", "" | "gemma4") => true,
            _ => return None,
        };
        let vocab = model.vocab();
        let mut before = [false; 256];
        before[usize::from(b'!')..=usize::from(b'~')].fill(true);
        let mut found_first = Vec::new();
        for token in vocab.tokens() {
            let text = vocab.text(token)?.to_bytes();
            let spaces = (1..text.len()).filter(|&at| text[at] == b' ' || text[at..].starts_with("▁".as_bytes()));
            for at in spaces.filter(|_| merges_all) {
                before[usize::from(text[at - 1])] = false;
            }
            if vocab.attr(token).contains(LlamaTokenAttr::UserDefined) {
                found_first.push((text, TokenId::try_from(token.0).ok()?));
            }
        }
        let first: Vec<u8> = vocab.tokenize(b"a", false, false).into_iter().fold(Vec::new(), |mut bytes, token| {
            vocab.token_to_piece_into(token, &mut bytes, true, None);
            bytes
        });
        let own_space = match first.as_slice() {
            b"a" => false,
            b" a" => true,
            _ => return None,
        };
        Some(Self { before, own_space, found_first: ByteTrie::new(found_first).ok()? })
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
            !whole && bytes[*at] == b' ' && self.before[usize::from(bytes[*at - 1])] && bytes[*at + 1] > b' '
        };
        let mut from = 0;
        let mut search = 1;
        std::iter::from_fn(move || {
            if from >= bytes.len() {
                return None;
            }
            let to = (search..bytes.len().saturating_sub(1)).find(cut).unwrap_or(bytes.len());
            let part = &text[from + usize::from(from > 0 && self.own_space)..to];
            (from, search) = (to, to + 1);
            Some(part)
        })
    }
}

/// One thread's work.
struct Worker<'v> {
    vocab: &'v Vocab,
    cuts: Option<&'v Cuts>,
    /// The tokens of each part seen, in one list.
    known: HashMap<String, Range<usize>>,
    tokens: Vec<TokenId>,
}

impl Worker<'_> {
    fn add(&mut self, text: &str, rows: &mut Rows) -> Result<(), RuntimeError> {
        match self.cuts {
            None => rows.tokens.extend(self.vocab.tokenize(text, false, false)?),
            Some(cuts) => {
                for part in cuts.parts(text) {
                    let known = if let Some(known) = self.known.get(part) {
                        known.clone()
                    } else {
                        let begin = self.tokens.len();
                        self.tokens.extend(self.vocab.tokenize(part, false, false)?);
                        self.known.insert(part.to_owned(), begin..self.tokens.len());
                        begin..self.tokens.len()
                    };
                    rows.tokens.extend_from_slice(&self.tokens[known]);
                }
            }
        }
        rows.ends.push(rows.tokens.len());
        Ok(())
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
        let texts = Around { values, prefix, suffix };
        if let Some(rows) = self.portions(&texts, self.cuts())? {
            return Ok(rows);
        }
        Ok(self.portions(&texts, None)?.unwrap_or_default())
    }

    /// None if cutting was found out to change something.
    fn portions<S: AsRef<str> + Sync>(
        &self,
        texts: &Around<'_, S>,
        cuts: Option<&Cuts>,
    ) -> Result<Option<Vec<Rows>>, RuntimeError> {
        let portions = texts.values.len().div_ceil(PORTION);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut worker = Worker { vocab: self, cuts, known: HashMap::new(), tokens: Vec::new() };
            let mut done = Vec::new();
            loop {
                let portion = next.fetch_add(1, Ordering::Relaxed);
                if portion >= portions {
                    return Ok(Some(done));
                }
                match texts.tokenize(portion, &mut worker)? {
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

/// Values in the same surroundings.
struct Around<'t, S> {
    values: &'t [S],
    prefix: &'t str,
    suffix: &'t str,
}

impl<S: AsRef<str>> Around<'_, S> {
    fn tokenize(&self, portion: usize, worker: &mut Worker<'_>) -> Result<Option<Rows>, RuntimeError> {
        let mut rows = Rows::default();
        let mut text = String::new();
        for value in self.values.iter().skip(portion * PORTION).take(PORTION) {
            let value = value.as_ref();
            let length = self.prefix.len() + value.len() + self.suffix.len();
            in_range("length of the text in bytes", length as u64, 0, MAX_TEXT)?;
            text.clear();
            text.extend([self.prefix, value, self.suffix]);
            worker.add(&text, &mut rows)?;
            let first = rows.ends.len() == 1 && worker.cuts.is_some();
            if first && worker.vocab.tokenize(&text, false, false)? != rows.tokens {
                return Ok(None);
            }
        }
        Ok(Some(rows))
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
                let found = vocab.portions(&super::Around { values: &texts, prefix, suffix }, vocab.cuts()).unwrap();
                prop_assert_eq!(&rows(&found.expect("cuts are right")), &expected);
                prop_assert_eq!(&rows(&vocab.tokenize_all(&texts, prefix, suffix).unwrap()), &expected);
            });
        }
    }
}

//! The choice over a row of logits.

use crate::buffer::{LOGITS, WORDS, for_each_row_mut, with_row};
use crate::errors::Result;
use crate::gil::locked;
use crate::ids::{OneOrMany, one_or_many};
use crate::leaf::Leaf;
use crate::options::{After, Mode, Options};
use crate::payload::{Cache, spans};
use crate::trie::{Trie, id_array};
use crate::vocab::VocabArg;
use numpy::PyArray1;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard};
use trie_core::{Allowed, SpanRules, TokenId};

/// A position in a trie with a way to choose the next token from a row of logits.
///
/// Args:
///     vocab: a Vocab, or the vocabulary size as an int (which then has no end-of-generation tokens).
///     constraint: payload JSON (str or bytes), a payload as a dict, or a Trie. Of several descriptors the first with a usable
///         leaf is active; `activate` selects another. Payloads come from the cache of the calling thread.
///     mode: "greedy" or 0: the highest logit, ties to the lowest id. "sampled" or 1: a seeded draw.
///     end_tokens: ids that may close the span at the end of a leaf.
///     after: what follows a complete leaf: "free" leaves logits alone, "stop" allows only end of generation.
///     temperature, top_k, top_p, min_p: what the draw does with the legal logits, as llama.cpp does it.
///     seed: of the draw, 0 to 2**32 - 1; None takes one from the operating system.
///
/// Raises PayloadError, VocabularyError or OptionError; warns with TokenTrieWarning of leaves that the vocabulary cannot spell.
/// One object may be used from several threads: calls take turns.
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Sampler(Mutex<trie_core::Sampler>);

impl Sampler {
    pub(crate) fn build(
        vocab: &VocabArg<'_>,
        constraint: &Bound<'_, PyAny>,
        options: &Options<'_, '_>,
        cache: Cache<'_>,
    ) -> Result<Self> {
        let n_vocab = vocab.size();
        let rules = SpanRules::new(spans(constraint, n_vocab, cache)?, n_vocab)?;
        if let VocabArg::Vocab(vocab) = vocab {
            rules.spans().iter().try_for_each(|(_, trie)| vocab.get().core().check_set(trie))?;
        }
        let rules = options.rules(rules, vocab.end_of_generation())?;
        Ok(Self(Mutex::new(trie_core::Sampler::new(Arc::new(rules), options.sampling()?)?)))
    }

    /// Nothing may touch Python while the lock is held.
    fn lock(&self, py: Python<'_>) -> Result<MutexGuard<'_, trie_core::Sampler>> {
        locked(py, &self.0)
    }
}

#[pymethods]
impl Sampler {
    #[new]
    #[pyo3(
        signature = (
            vocab, constraint, mode=Mode(trie_core::Mode::Greedy), end_tokens=None, after=After(trie_core::After::Free),
            temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=None
        ),
        text_signature = "(vocab, constraint, mode=\"greedy\", end_tokens=None, after=\"free\", temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=None)",
    )]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn new(
        vocab: VocabArg<'_>,
        constraint: &Bound<'_, PyAny>,
        mode: Mode,
        end_tokens: Option<&Bound<'_, PyAny>>,
        after: After,
        temperature: f32,
        top_k: i64,
        top_p: f32,
        min_p: f32,
        seed: Option<i64>,
    ) -> Result<Self> {
        let options = Options { mode, end_tokens, after, temperature, top_k, top_p, min_p, seed };
        Self::build(&vocab, constraint, &options, Cache::Thread)
    }

    /// Tokens that may come next: int32, ascending. O(children).
    ///
    /// At an open leaf (`open`) these are the tokens that go on to a longer one. Where the sampler leaves logits alone, that
    /// is the whole vocabulary.
    fn allowed<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i32>>> {
        let sampler = self.lock(py)?;
        let ids: Vec<i32> = match sampler.span().allowed() {
            Allowed::All => (0..sampler.span().rules().n_vocab() as i32).collect(),
            some @ (Allowed::Open { .. } | Allowed::Only { .. }) => some.iter().map(TokenId::as_i32).collect(),
        };
        drop(sampler);
        Ok(PyArray1::from_vec(py, ids))
    }

    /// Tokens that must come next because exactly one is allowed at each step: int32. A single end token is included; a
    /// choice never is. O(length).
    fn forced<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i32>>> {
        let forced: Vec<TokenId> = self.lock(py)?.span().forced().collect();
        Ok(id_array(py, forced.into_iter()))
    }

    /// Sets every logit that may not come to -inf, in place; the others keep their exact bits.
    ///
    /// Args:
    ///     logits: float32 [V] or [rows, V], writable, last axis contiguous; rows may be strided and wider than the vocabulary.
    ///
    /// Changes nothing at an open leaf and where everything may come. If every legal logit is -inf or NaN, the lowest legal
    /// id gets 0.0 and `starved` counts it. Raises TypeError or ValueError before anything is written. O(rows · V).
    fn apply(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> Result<()> {
        let need = self.lock(py)?.span().rules().n_vocab();
        for_each_row_mut::<f32>(logits, &LOGITS, need, |row| Ok(self.lock(py)?.mask(row)?))
    }

    /// Chooses the next token without accepting it.
    ///
    /// Args:
    ///     logits: float32 [V], contiguous; may be wider than the vocabulary.
    ///
    /// Returns the id. Raises TypeError or ValueError for another array. O(k) in the number of legal tokens, independent of
    /// the vocabulary; O(V) at an open leaf and where everything may come.
    fn sample(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> Result<u32> {
        with_row(logits, |row| Ok(self.lock(py)?.sample(row)?.get()))
    }

    /// Chooses, accepts, and accepts what is forced after it: everything to append, one call a branch.
    ///
    /// Args:
    ///     logits: as for `sample`.
    ///
    /// Returns a list of ids, at least one. Raises as `sample`; nothing was accepted then.
    fn advance(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> Result<Vec<u32>> {
        let mut tokens = Vec::new();
        with_row(logits, |row| Ok(self.lock(py)?.advance(row, &mut tokens)?))?;
        Ok(tokens.into_iter().map(TokenId::get).collect())
    }

    /// Takes a token, or a list of tokens as a whole or not at all.
    ///
    /// Raises TokenNotAllowedError for a token that may not come, VocabularyError for one that the vocabulary does not have;
    /// the state is then as before. O(log children) a token.
    fn accept(&self, tokens: &Bound<'_, PyAny>) -> Result<()> {
        let tokens_or_token = one_or_many(tokens)?;
        let mut sampler = self.lock(tokens.py())?;
        match tokens_or_token {
            OneOrMany::One(token) => Ok(sampler.span_mut().accept(token)?),
            OneOrMany::Many(tokens) => Ok(sampler.span_mut().accept_all(&tokens)?),
        }
    }

    /// Takes back the last n accepted tokens, those after a complete leaf included.
    ///
    /// Raises OptionError if fewer were accepted since the span was armed.
    fn rollback(&self, py: Python<'_>, n: i64) -> Result<()> {
        let n = crate::options::unsigned("n", n)?;
        Ok(self.lock(py)?.span_mut().rollback(n as usize)?)
    }

    /// As after creation: armed at the root of the first trie, and the draws begin again. O(1).
    fn reset(&self, py: Python<'_>) -> Result<()> {
        self.lock(py)?.reset();
        Ok(())
    }

    /// An independent copy at the same position; the trie is shared. O(1).
    fn clone(&self, py: Python<'_>) -> Result<Self> {
        Ok(Self(Mutex::new(self.lock(py)?.clone())))
    }

    /// Arms the root of the trie with this path.
    ///
    /// Raises OptionError, naming the paths there are.
    fn activate(&self, py: Python<'_>, path: &str) -> Result<()> {
        Ok(self.lock(py)?.span_mut().activate(path)?)
    }

    /// Stops constraining until a path is activated or the sampler is reset.
    fn deactivate(&self, py: Python<'_>) -> Result<()> {
        self.lock(py)?.span_mut().deactivate();
        Ok(())
    }

    /// str: "active", "complete", "idle" or "off".
    #[getter]
    fn state(&self, py: Python<'_>) -> Result<&'static str> {
        Ok(self.lock(py)?.state().as_str())
    }

    /// Leaf | None: the leaf, once complete.
    #[getter]
    fn leaf(&self, py: Python<'_>) -> Result<Option<Leaf>> {
        Ok(self.lock(py)?.span().leaf().map(Leaf::from))
    }

    /// int: tokens walked from the root of the trie.
    #[getter]
    fn depth(&self, py: Python<'_>) -> Result<usize> {
        Ok(self.lock(py)?.span().depth())
    }

    /// int: tokens accepted since the span was armed, those after a complete leaf included.
    #[getter]
    fn accepted(&self, py: Python<'_>) -> Result<usize> {
        Ok(self.lock(py)?.span().accepted())
    }

    /// bool: whether a leaf ends here that may also go on, with no end token to tell: the whole row competes.
    #[getter]
    fn open(&self, py: Python<'_>) -> Result<bool> {
        Ok(self.lock(py)?.span().is_open())
    }

    /// int: how often every legal logit was -inf or NaN, so that the lowest legal id was chosen.
    #[getter]
    fn starved(&self, py: Python<'_>) -> Result<u64> {
        Ok(self.lock(py)?.starved())
    }

    /// str: path of the trie that is walked; empty for a constraint given as a Trie.
    #[getter]
    fn path(&self, py: Python<'_>) -> Result<String> {
        Ok(self.lock(py)?.span().path().to_owned())
    }

    /// list[str]: the paths that `activate` knows.
    #[getter]
    fn paths(&self, py: Python<'_>) -> Result<Vec<String>> {
        Ok(self.lock(py)?.span().rules().spans().iter().map(|(path, _)| path.clone()).collect())
    }

    /// Trie: the trie that is walked.
    #[getter]
    fn trie(&self, py: Python<'_>) -> Result<Trie> {
        Ok(Trie::new(self.lock(py)?.span().trie().clone()))
    }

    /// int: the seed in use: the one given, or the one taken from the operating system.
    #[getter]
    fn seed(&self, py: Python<'_>) -> Result<u32> {
        Ok(self.lock(py)?.seed())
    }

    /// Writes the legal tokens as bits: bit i % 32 of word i // 32 is 1 where token i may come.
    ///
    /// Args:
    ///     words: int32 [W] or [rows, W], writable, last axis contiguous, W at least ceil(V / 32). Words beyond are cleared.
    ///
    /// At an open leaf and where everything may come, every bit of the vocabulary is set. Raises TypeError or ValueError
    /// before anything is written. O(rows · W).
    fn fill_bitmask(&self, py: Python<'_>, words: &Bound<'_, PyAny>) -> Result<()> {
        let need = self.lock(py)?.mask_words();
        for_each_row_mut::<i32>(words, &WORDS, need, |row| Ok(self.lock(py)?.fill_bitmask(row)?))
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        let sampler = self.lock(py)?;
        let (span, state) = (sampler.span(), sampler.state().as_str());
        Ok(format!("<tokentrie.Sampler: {state}, path {:?}, depth {}, {:?}>", span.path(), span.depth(), span.trie()))
    }
}

//! The choice over a row of logits.

use crate::convert::buffer::{LOGITS, Row, WORDS, for_each_row_mut};
use crate::convert::gil::{asking_for, locked};
use crate::convert::ids::{OneOrMany, id_array, one_or_many};
use crate::convert::words::{After, Mode};
use crate::errors::{Class, Result};
use crate::model::options::Options;
use crate::rows::sampling::{Given, Keywords, Sampling};
use crate::spec::payloads::Cache;
use crate::spec::rules_over;
use crate::trie::prefix_table::{NOT_IN_BITS, warn_unweighted};
use crate::vocab::VocabArg;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard};
use trie_core::{AnyConstraint, Constraint as _, SamplerOptions, Span, SpanRules, TokenId, Unconstrained};

/// A position in a set of values that chooses the next token from a row of logits.
///
/// Args:
///     vocab: a Vocab, or the vocabulary size as an int, which then has no end-of-generation tokens.
///     constraint: payload JSON (str or bytes), a payload as a dict, a Trie, a FilteredTrie, a list of str, a
///         Sequence, a ThinkGate, a Rule, a ChatConstraint, or Any. Of several descriptors the first with a usable
///         leaf is active; `activate` selects another. Payloads come from the cache of the calling thread. A list of
///         str is tokenised at each call as by `Trie.from_strings`: for many samplers make the Trie once.
///     mode: "greedy" or 0: the highest logit, ties to the lowest id. "sampled" or 1: a seeded draw.
///     end_tokens: ids that close the span at the end of a leaf. None: those of the set (`Trie.end_tokens`), which
///         has mostly none; then a leaf that cannot go on is complete at once.
///     after: what follows a complete leaf: "free" leaves logits alone, "stop" allows only end of generation.
///     temperature, top_k, top_p, min_p, seed: settings of the draw, as for `Sampling`.
///     sampling: a Sampling in place of mode and all settings.
///     settings: all other settings of the draw, as for `Sampling`.
///
/// One object may be used from several threads: calls take turns.
///
/// Raises:
///     PayloadError: the payload cannot be used; it says line, column and field.
///     VocabularyError: ids are outside the vocabulary, or texts are given and it cannot tokenise.
///     TrieError: a list of str makes no set.
///     OptionError: a setting is out of range, a keyword stands beside `sampling`, or `after="stop"` has nothing to
///         stop on.
///
/// Warns:
///     TokenTrieWarning: leaves of a payload were dropped, because the vocabulary does not have their ids.
///
/// Example:
///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [5, 7], [2]], names=["think", "talk", "stop"])
///     >>> sampler = tokentrie.Sampler(10, trie)
///     >>> logits = np.arange(10, dtype=np.float32)  # 9 is liked best, but only 2 and 5 may come
///     >>> sampler.sample(logits)
///     5
///     >>> sampler.accept([5, 6])
///     >>> sampler.leaf.name
///     'think'
#[pyclass(frozen, subclass, module = "tokentrie")]
pub(crate) struct Sampler {
    core: Mutex<trie_core::Sampler>,
    /// Why it cannot be used by itself: a gate that knows no vocabulary.
    unbound: bool,
    walks: bool, // Whether a step may have to walk a rule, which may take long.
}

impl Sampler {
    pub(crate) fn build(
        vocab: &VocabArg<'_>,
        constraint: &Bound<'_, PyAny>,
        options: &Options<'_, '_>,
        cache: Cache<'_>,
    ) -> Result<Self> {
        let rules = options.rules(rules_over(vocab, "constraint", constraint, cache)?, vocab.end_of_generation())?;
        Ok(Self::new(trie_core::Sampler::new(Arc::new(rules), options.keywords.options(constraint.py())?)?))
    }

    pub(crate) fn new(core: trie_core::Sampler) -> Self {
        let constraints = core.span().rules().constraints();
        let walks = constraints.iter().any(|(_, constraint)| constraint.sets().is_empty());
        Self { core: Mutex::new(core), unbound: false, walks }
    }

    /// One that only says that it knows no vocabulary.
    pub(crate) fn unbound() -> Result<Self> {
        let free = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), 1)?;
        let core = trie_core::Sampler::new(Arc::new(free), SamplerOptions::default())?;
        Ok(Self { core: Mutex::new(core), unbound: true, walks: false })
    }

    pub(crate) fn is_unbound(&self) -> bool {
        self.unbound
    }

    /// Returns the walk of the sampler.
    pub(crate) fn span(&self, py: Python<'_>) -> Result<Span> {
        Ok(self.lock(py)?.span().clone())
    }

    /// Runs work that may walk a rule: Ctrl-C ends it.
    pub(super) fn walking<T>(&self, py: Python<'_>, work: impl FnOnce(&mut trie_core::Sampler) -> T) -> Result<T> {
        let mut core = self.lock(py)?;
        if self.walks { asking_for(|| work(&mut core)) } else { Ok(work(&mut core)) }
    }

    /// Nothing may touch Python while the lock is held.
    pub(crate) fn lock(&self, py: Python<'_>) -> Result<MutexGuard<'_, trie_core::Sampler>> {
        if self.unbound {
            return Err(Class::Option.error(
                "this gate knows no vocabulary: give it vocab=, or give it as the constraint of a Sampler, a Batch or \
                 Model.generate",
            ));
        }
        locked(py, &self.core)
    }
}

#[pymethods]
impl Sampler {
    #[new]
    #[pyo3(
        signature = (
            vocab, constraint, mode=Given(None), end_tokens=None, after=After(trie_core::After::Free),
            *placed, sampling=None, **settings
        ),
        text_signature = "(vocab, constraint, mode=\"greedy\", end_tokens=None, after=\"free\", temperature=1.0, \
            top_k=0, top_p=1.0, min_p=0.0, seed=None, *, sampling=None, **settings)",
    )]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn make(
        vocab: VocabArg<'_>,
        constraint: &Bound<'_, PyAny>,
        mode: Given<Mode>,
        end_tokens: Option<&Bound<'_, PyAny>>,
        after: After,
        placed: &Bound<'_, PyTuple>,
        sampling: Option<&Bound<'_, Sampling>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> Result<Self> {
        let keywords = Keywords { call: "Sampler", mode, placed: Some(placed), settings, sampling };
        let options = Options { keywords, end_tokens, after };
        Self::build(&vocab, constraint, &options, Cache::Thread)
    }

    /// Tokens that may come next. Cost: O(children).
    ///
    /// Returns:
    ///     int32 [k], ascending. At an open leaf (`open`) the tokens that go on to a longer value. Where the
    ///     sampler leaves logits alone, the whole vocabulary.
    ///
    /// Raises:
    ///     RuleError: a rule has no way on. What a rule of yours raises is raised here.
    ///     TrieError: nothing may come, because the set's file was damaged.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6], [2]]))
    ///     >>> sampler.allowed()
    ///     array([2, 5], dtype=int32)
    fn allowed<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i32>>> {
        let ids = self.walking(py, |sampler| {
            let n_vocab = sampler.span().rules().n_vocab();
            sampler.choices().map(|allowed| allowed.to_vec(n_vocab))
        })??;
        Ok(id_array(py, ids.into_iter()))
    }

    /// Tokens that must come next, because exactly one is allowed at each step. Cost: O(length).
    ///
    /// They need no forward pass.
    ///
    /// Returns:
    ///     int32 [length], empty where there is a choice. A single end token is included.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6, 7], [2]]))
    ///     >>> sampler.accept(5)
    ///     >>> sampler.forced()
    ///     array([6, 7], dtype=int32)
    fn forced<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i32>>> {
        let forced: Vec<TokenId> = self.walking(py, |sampler| sampler.span().forced().collect())?;
        Ok(id_array(py, forced.into_iter()))
    }

    /// Masks logits in place: what may not come becomes -inf, the others keep their exact bits.
    ///
    /// Where the set has weights (`Trie.is_weighted`), they are added to the others: call it once a row. Cost:
    /// O(rows · V). Changes nothing else at an open leaf, and nothing where everything may come. If every legal
    /// logit is -inf or NaN, the lowest legal id gets 0.0 and `starved` counts it.
    ///
    /// Args:
    ///     logits: float32 [V] or [rows, V], writable, last axis contiguous. Rows may be strided, and wider than
    ///         the vocabulary: what is beyond it is masked too.
    ///
    /// Raises:
    ///     TypeError: the array has another dtype.
    ///     ValueError: it has another shape or order, is too short or read-only. Nothing was written.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(4, tokentrie.Trie.from_sequences([[1], [2]]))
    ///     >>> logits = np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32)
    ///     >>> sampler.apply(logits)
    ///     >>> logits
    ///     array([-inf,  1.5,  2.5, -inf], dtype=float32)
    fn apply(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> Result<()> {
        let need = self.lock(py)?.span().rules().n_vocab();
        for_each_row_mut::<f32>(logits, &LOGITS, need, |row| Ok(self.walking(py, |sampler| sampler.mask(row))??))
    }

    /// Chooses the next token without accepting it, by the logits with the weights of the set, if it has some.
    ///
    /// Cost: O(k) in the number of legal tokens, whatever the size of the vocabulary; O(V) at an open leaf and
    /// where everything may come.
    ///
    /// Args:
    ///     logits: float32 [V], contiguous; may be wider than the vocabulary.
    ///
    /// Returns:
    ///     The token id.
    ///
    /// Raises:
    ///     TypeError: the array has another dtype.
    ///     ValueError: it has another shape or order, or is too short.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(4, tokentrie.Trie.from_sequences([[1], [2]]))
    ///     >>> sampler.sample(np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32))
    ///     2
    fn sample(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> Result<u32> {
        let row = Row::new(logits)?;
        Ok(self.walking(py, |sampler| row.read(|row| sampler.sample(row)))??.get())
    }

    /// Chooses a token, accepts it, and accepts what is forced after it: everything to append, one call a branch.
    ///
    /// Args:
    ///     logits: float32 [V], as for `sample`.
    ///
    /// Returns:
    ///     list[int], at least one token id.
    ///
    /// Raises:
    ///     TypeError: the array has another dtype.
    ///     ValueError: it has another shape or order, or is too short. Nothing was accepted.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6, 7], [2]]))
    ///     >>> sampler.advance(np.arange(10, dtype=np.float32))
    ///     [5, 6, 7]
    ///     >>> sampler.state
    ///     'complete'
    fn advance(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> Result<Vec<u32>> {
        let mut tokens = Vec::new();
        let row = Row::new(logits)?;
        self.walking(py, |sampler| row.read(|row| sampler.advance(row, &mut tokens)))??;
        Ok(tokens.into_iter().map(TokenId::get).collect())
    }

    /// Takes a token, or several as a whole or not at all. Cost: O(log children) a token.
    ///
    /// Args:
    ///     tokens: a token id, a list of them, or an integer array of one dimension.
    ///
    /// Raises:
    ///     TokenNotAllowedError: a token may not come; it says which, where, and what may. The state is as before.
    ///     RuleError, TrieError: nothing may come, as for `allowed`.
    ///     VocabularyError: the vocabulary does not have a token. The state is as before.
    ///     TypeError: something is not an integer.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6, 7], [2]]))
    ///     >>> sampler.accept([5, 6])
    ///     >>> sampler.depth
    ///     2
    fn accept(&self, tokens: &Bound<'_, PyAny>) -> Result<()> {
        let given = one_or_many(tokens)?;
        let accepted = self.walking(tokens.py(), |sampler| match given {
            OneOrMany::One(token) => sampler.accept(token).map(|_| ()),
            OneOrMany::Many(tokens) => sampler.accept_all(&tokens),
        })?;
        Ok(accepted?)
    }

    /// Takes back the last n accepted tokens, those after a complete leaf included.
    ///
    /// Args:
    ///     n: how many, 0 or more.
    ///
    /// Raises:
    ///     OptionError: fewer were accepted since the span was armed.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6, 7], [2]]))
    ///     >>> sampler.accept([5, 6])
    ///     >>> sampler.rollback(1)
    ///     >>> sampler.depth
    ///     1
    fn rollback(&self, py: Python<'_>, n: i64) -> Result<()> {
        let n = crate::convert::words::unsigned("n", n)?;
        Ok(self.lock(py)?.rollback(n as usize)?)
    }

    /// Makes it as it was created: armed at the root of the first trie, and the draws begin again. Cost: O(1).
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6], [2]]))
    ///     >>> sampler.accept(2)
    ///     >>> sampler.reset()
    ///     >>> sampler.state
    ///     'active'
    fn reset(&self, py: Python<'_>) -> Result<()> {
        self.lock(py)?.reset();
        Ok(())
    }

    /// An independent copy at the same position; the trie is shared. Cost: O(1).
    ///
    /// Returns:
    ///     Sampler.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6], [2]]))
    ///     >>> copy = sampler.clone()
    ///     >>> copy.accept(5)
    ///     >>> (copy.depth, sampler.depth)
    ///     (1, 0)
    fn clone(&self, py: Python<'_>) -> Result<Self> {
        Ok(Self::new(self.lock(py)?.clone()))
    }

    /// Arms the root of the trie with this path.
    ///
    /// Args:
    ///     path: one of `paths`.
    ///
    /// Raises:
    ///     OptionError: there is no such path; it names those there are.
    ///
    /// Example:
    ///     >>> leaves = [{"name": "A", "tokens": [1]}]
    ///     >>> payload = {"descriptors": [{"path": path, "leaves": leaves} for path in ("action", "colour")]}
    ///     >>> sampler = tokentrie.Sampler(10, payload)
    ///     >>> sampler.activate("colour")
    ///     >>> sampler.path
    ///     'colour'
    fn activate(&self, py: Python<'_>, path: &str) -> Result<()> {
        Ok(self.lock(py)?.span_mut().activate(path)?)
    }

    /// Stops constraining until a path is activated or the sampler is reset.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6], [2]]))
    ///     >>> sampler.deactivate()
    ///     >>> (sampler.state, len(sampler.allowed()))
    ///     ('idle', 10)
    fn deactivate(&self, py: Python<'_>) -> Result<()> {
        self.lock(py)?.span_mut().deactivate();
        Ok(())
    }

    /// Writes the legal tokens as bits: bit i % 32 of word i // 32 is 1 where token i may come. Cost: O(rows · W).
    ///
    /// At an open leaf and where everything may come, every bit of the vocabulary is set. A bit has no weight: where
    /// the set has some (`Trie.is_weighted`), that is a TokenTrieWarning.
    ///
    /// Args:
    ///     words: int32 [W] or [rows, W], writable, last axis contiguous, W at least ceil(V / 32). Words beyond are
    ///         cleared.
    ///
    /// Raises:
    ///     TypeError: the array has another dtype.
    ///     ValueError: it has another shape or order, is too short or read-only. Nothing was written.
    ///
    /// Example:
    ///     >>> sampler = tokentrie.Sampler(40, tokentrie.Trie.from_sequences([[1], [3], [32]]))
    ///     >>> words = np.zeros(2, dtype=np.int32)
    ///     >>> sampler.fill_bitmask(words)
    ///     >>> words
    ///     array([10,  1], dtype=int32)
    fn fill_bitmask(&self, py: Python<'_>, words: &Bound<'_, PyAny>) -> Result<()> {
        let (need, weighted) = {
            let sampler = self.lock(py)?;
            (sampler.mask_words(), sampler.span().rules().is_weighted())
        };
        warn_unweighted(py, weighted, NOT_IN_BITS)?;
        for_each_row_mut::<i32>(words, &WORDS, need, |row| Ok(self.walking(py, |sampler| sampler.fill_bitmask(row))??))
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        let sampler = self.lock(py)?;
        let (span, state) = (sampler.span(), sampler.status().as_str());
        Ok(format!(
            "<tokentrie.Sampler: {state}, path {:?}, depth {}, {:?}>",
            span.path(),
            span.depth(),
            span.constraint()
        ))
    }
}

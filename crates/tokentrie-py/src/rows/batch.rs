//! Many rows at once.

use crate::convert::buffer::{Logits, LogitsMut, Words, on_cpu, over_logits};
use crate::convert::gil::{asked, asking_for, released};
use crate::convert::ids::{id_array, tokens, type_name};
use crate::convert::words::{After, Mode, unsigned};
use crate::errors::{Class, Error, Result};
use crate::exit::module;
use crate::rows::batch_rules::{Common, Sources, filtered, walks, which_repeat};
use crate::rows::sampling::{Given, Keywords, Sampling};
use crate::rows::score::{Score, doubles};
use crate::trie::leaf::Leaf;
use crate::trie::prefix_table::{NOT_IN_BITS, warn_unweighted};
use crate::vocab::VocabArg;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use trie_core::work::Limits;
use trie_core::{BatchError, Child, Children, MaskMemory, NoRepeat, RowsMut, ScoreMode, Scratch, SpanRules, TokenId};

type Array1<'py, T> = Bound<'py, PyArray1<T>>;

/// Rows that are decoded together, each in its own place of its own constraint: requests, beams, drafts.
///
/// A row is a state of a few bytes, so `reorder` copies integers, and `rollback` crosses it. Every call over rows does
/// all of them or none, lets other Python threads run, and uses all cores where that pays.
///
/// Args:
///     constraint: what all rows follow, as for `Sampler`; or a list with one for each row, None for a free row, which
///         ends with an end-of-generation token where `vocab` names some. A list of str is one constraint.
///     rows: number of rows; not needed with a list.
///     vocab: a Vocab, or the vocabulary size as an int, which then has no end-of-generation tokens.
///     mode: "greedy" or 0, or "sampled" or 1: what `select` does.
///     end_tokens: ids that close a row at the end of a leaf. None: those of the set (`Trie.end_tokens`).
///     after: what a finished row allows: "stop" only end of generation or, where the vocabulary names none, the end
///         tokens; where no such token is known the row is left alone, as with "free".
///     temperature, top_k, top_p, min_p, seed: settings of the draw, as for `Sampling`. Each place has a generator of
///         its own, made from the seed: it stays when rows are reordered.
///     sampling: a Sampling in place of mode and all settings.
///     allow, deny: which leaves may come, as for `Trie.filtered`, where all rows follow one Trie. For rows with
///         filters of their own give a list of `Trie.filtered`.
///     no_repeat: what a row may not write again after `next_item`: "row" (or True) its own items, "siblings" those of
///         all rows of its group, but for the first row of the group, which is held back by its own only.
///     settings: all other settings of the draw, as for `Sampling`.
///
/// Logits are [rows, V] or wider: float32, float16 or bfloat16, a numpy array, a tensor of torch, or anything with the
/// buffer protocol, never copied. Rows may be strided, the last axis is contiguous. What lies beyond the vocabulary may
/// never come. Tensors on another device stay there: see `tokentrie.integrations.device`.
///
/// One object may be used from several threads: calls take turns. An array must not be written while a call reads it.
///
/// Raises:
///     PayloadError, VocabularyError, TrieError, TypeError: as for `Sampler`, naming the row.
///     OptionError: a setting is out of range, or `rows` does not fit.
///
/// Example:
///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
///     >>> rows = tokentrie.Batch(trie, rows=2, vocab=6)
///     >>> logits = np.array([[0, 3, 0, 0, 2, 9], [0, 2, 0, 0, 3, 9]], dtype=np.float32)
///     >>> rows.select(logits)
///     array([1, 4], dtype=int32)
///     >>> rows.accept([1, 4])
///     >>> rows.allowed(0)
///     array([2, 3], dtype=int32)
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Batch {
    pub(crate) common: Common,
    held: Mutex<Held>,
    given: Mutex<Sources>,
    /// True if a step may have to walk a rule, which may take long.
    walks: AtomicBool,
    pub(crate) no_repeat: Option<NoRepeat>,
}

pub(crate) struct Held {
    pub(crate) batch: trie_core::Batch,
    mask: Option<Mask>,
    children: Children,
}

/// The words that `bitmask` shows, and what they hold.
struct Mask {
    words: Py<PyArray2<i32>>,
    view: Py<PyAny>,
    memory: MaskMemory,
    shape: [usize; 2],
}

impl Mask {
    fn new(py: Python<'_>, shape: [usize; 2]) -> Result<Self> {
        let words = PyArray2::<i32>::zeros(py, shape, false);
        let view = words.call_method0("view")?;
        view.call_method1("setflags", (false,))?;
        Ok(Self { words: words.unbind(), view: view.unbind(), memory: MaskMemory::default(), shape })
    }
}

fn broken<T>(_: T) -> Error {
    Class::Base.error("an earlier call on this object failed inside; make a new one")
}

/// Reads the numbers of rows.
fn numbers(what: &str, values: &Bound<'_, PyAny>) -> Result<Vec<usize>> {
    Ok(tokens(values, &format!("{what}, "))?.into_iter().map(TokenId::index).collect())
}

/// Returns the end of each group of rows.
pub(crate) fn group_ends(groups: Option<&Bound<'_, PyAny>>, rows: usize) -> Result<Vec<usize>> {
    let Some(groups) = groups else { return Ok(vec![rows]) };
    if groups.is_instance_of::<PyInt>() {
        let count: usize = groups.extract()?;
        if count == 0 || !rows.is_multiple_of(count) {
            return Err(Class::Option.error(format!("groups is {count}: {rows} rows cannot be shared out among them")));
        }
        return Ok((1..=count).map(|group| group * (rows / count)).collect());
    }
    let mut end = 0usize;
    let sizes = numbers("groups", groups)?;
    Ok(sizes
        .into_iter()
        .map(|size| {
            end = end.saturating_add(size);
            end
        })
        .collect())
}

/// Handles tensors outside this process's memory.
fn on_device<'py>(
    name: &str,
    rows: &Bound<'py, Batch>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> Result<Bound<'py, PyAny>> {
    let function = module(rows.py(), "tokentrie.integrations.device")?.getattr(name)?;
    Ok(function.call1(arguments)?)
}

impl Batch {
    /// Runs `work` on the batch without the GIL; where it may walk a rule, Ctrl-C ends it.
    pub(crate) fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Held) -> Result<T> + Send) -> Result<T> {
        let work = || work(&mut *self.held.lock().map_err(broken)?);
        if !self.walks.load(Ordering::Relaxed) {
            return released(py, work);
        }
        asked(py, Limits::NONE, work).inspect_err(|_| {
            // It may have been ended in the middle of writing them.
            if let Ok(mut held) = self.held.lock() {
                held.mask = None;
            }
        })?
    }

    /// Masks of bits have no room for weights.
    pub(crate) fn warn_of_weights(&self, py: Python<'_>) -> Result<()> {
        let weighted = self.with(py, |held| Ok(held.batch.is_weighted()))?;
        Ok(warn_unweighted(py, weighted, NOT_IN_BITS)?)
    }

    /// Returns the constraint from which the rules of a row were built.
    pub(crate) fn given<'py>(&self, py: Python<'py>, rules: &Arc<SpanRules>) -> Result<Option<Bound<'py, PyAny>>> {
        Ok(self.given.lock().map_err(broken)?.of(rules).map(|given| given.bind(py).clone()))
    }

    pub(crate) fn count(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |held| Ok(held.batch.len()))
    }

    /// A row by number; a negative one counts from the end.
    pub(crate) fn row(&self, py: Python<'_>, row: i64) -> Result<usize> {
        let rows = self.count(py)?;
        let from_end = if row < 0 { row + rows as i64 } else { row };
        usize::try_from(from_end).ok().filter(|&row| row < rows).ok_or_else(|| {
            Error::Index(format!("row {row} is out of range: the batch has {rows} rows, numbered from 0"))
        })
    }
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(
        signature = (
            constraint, rows=None, *, vocab, mode=Given(None), end_tokens=None, after=After(trie_core::After::Stop),
            sampling=None, allow=None, deny=None, no_repeat=None, **settings
        ),
        text_signature = "(constraint, rows=None, *, vocab, mode=\"greedy\", end_tokens=None, after=\"stop\", \
            temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=None, sampling=None, allow=None, deny=None, \
            no_repeat=None, **settings)",
    )]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn new(
        constraint: &Bound<'_, PyAny>,
        rows: Option<i64>,
        vocab: VocabArg<'_>,
        mode: Given<Mode>,
        end_tokens: Option<&Bound<'_, PyAny>>,
        after: After,
        sampling: Option<&Bound<'_, Sampling>>,
        allow: Option<&Bound<'_, PyAny>>,
        deny: Option<&Bound<'_, PyAny>>,
        no_repeat: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> Result<Self> {
        let py = constraint.py();
        let no_repeat = no_repeat.map_or(Ok(None), which_repeat)?;
        let filtered = filtered(constraint, allow, deny)?;
        let constraint = filtered.as_ref().unwrap_or(constraint);
        let options = Keywords { call: "Batch", mode, placed: None, settings, sampling }.options(py)?;
        let common = Common::new(&vocab, end_tokens, after)?;
        let rows = common.rows(constraint, rows)?;
        let walks = AtomicBool::new(rows.iter().any(walks));
        let given = Mutex::new(rows.iter().fold(Sources::default(), Sources::with));
        let rows = rows.into_iter().map(|(rules, _)| Some(rules));
        let batch = trie_core::Batch::of_rows(rows, common.n_vocab(), options)?;
        let held = Mutex::new(Held { batch, mask: None, children: Children::default() });
        Ok(Self { common, held, given, walks, no_repeat })
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        self.count(py)
    }

    /// int: number of token ids.
    #[getter]
    fn n_vocab(&self) -> usize {
        self.common.n_vocab()
    }

    /// Tokens that may come next in a row. Cost: O(children).
    ///
    /// Args:
    ///     row: its number; a negative one counts from the end.
    ///
    /// Returns:
    ///     int32 [k], ascending. At an open leaf the tokens that go on to a longer value; in a free row the whole
    ///     vocabulary.
    ///
    /// Raises:
    ///     IndexError: there is no such row.
    ///     RuleError, TrieError: nothing may come, as for `Sampler.allowed`.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=3, vocab=10)
    ///     >>> rows.allowed(2)
    ///     array([2, 5], dtype=int32)
    fn allowed<'py>(&self, py: Python<'py>, row: i64) -> Result<Array1<'py, i32>> {
        let row = self.row(py, row)?;
        let ids = self.with(py, |held| {
            let mut scratch = Scratch::default();
            Ok(held.batch.allowed(row, &mut scratch)?.to_vec(held.batch.n_vocab()))
        })?;
        Ok(id_array(py, ids.into_iter()))
    }

    /// Tokens that must come next in a row, because exactly one is allowed at each step. Cost: O(length).
    ///
    /// Args:
    ///     row: its number; a negative one counts from the end.
    ///
    /// Returns:
    ///     int32 [length], empty where there is a choice.
    ///
    /// Raises:
    ///     IndexError: there is no such row.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6, 7], [2]]), rows=1, vocab=10)
    ///     >>> rows.accept([5])
    ///     >>> rows.forced(0)
    ///     array([6, 7], dtype=int32)
    fn forced<'py>(&self, py: Python<'py>, row: i64) -> Result<Array1<'py, i32>> {
        let row = self.row(py, row)?;
        let ids: Vec<TokenId> =
            self.with(py, |held| Ok(held.batch.rules(row)?.forced_run(held.batch.state(row)?).collect()))?;
        Ok(id_array(py, ids.into_iter()))
    }

    /// bool [rows]: whether each row has its value; a free row, whether an end-of-generation token of the vocabulary
    /// came. The value is kept, whatever follows.
    #[getter]
    fn finished<'py>(&self, py: Python<'py>) -> Result<Array1<'py, bool>> {
        let finished: Vec<bool> = self.with(py, |held| Ok(held.batch.finished_rows().collect()))?;
        Ok(PyArray1::from_vec(py, finished))
    }

    /// int32 [rows]: where each row is: the number of its node in its trie, -1 for other kinds of constraint.
    #[getter]
    fn nodes<'py>(&self, py: Python<'py>) -> Result<Array1<'py, i32>> {
        let nodes = self.with(py, |held| {
            let node = |row| Ok(node_of(held.batch.state(row)?));
            (0..held.batch.len()).map(node).collect::<Result<Vec<i32>>>()
        })?;
        Ok(PyArray1::from_vec(py, nodes))
    }

    /// int32 [rows]: tokens that each row has accepted, those after its value included.
    #[getter]
    fn accepted<'py>(&self, py: Python<'py>) -> Result<Array1<'py, i32>> {
        let accepted = self.with(py, |held| {
            let of = |row| Ok(held.batch.state(row)?.accepted() as i32);
            (0..held.batch.len()).map(of).collect::<Result<Vec<i32>>>()
        })?;
        Ok(PyArray1::from_vec(py, accepted))
    }

    /// bool [rows]: whether anything may come in each row: in a free one, at an open leaf, after a value that
    /// nothing has to follow.
    #[getter]
    fn unbound<'py>(&self, py: Python<'py>) -> Result<Array1<'py, bool>> {
        Ok(PyArray1::from_vec(py, self.with(py, |held| Ok(held.batch.unbound()))?))
    }

    /// str: "greedy" or "sampled": what `select` does.
    #[getter]
    fn mode(&self, py: Python<'_>) -> Result<&'static str> {
        let mode = self.with(py, |held| Ok(held.batch.mode()))?;
        Ok(if mode == trie_core::Mode::Sampled { "sampled" } else { "greedy" })
    }

    /// Warns where weights have no effect, such as on a device.
    fn _warn_of_weights(&self, py: Python<'_>) -> Result<()> {
        let weighted = self.with(py, |held| Ok(held.batch.is_weighted()))?;
        Ok(warn_unweighted(py, weighted, "tensors on another device are not given")?)
    }

    /// `select` of the logits of the legal tokens alone, as `children` lists them; -1 where anything may come.
    fn _select_listed<'py>(&self, py: Python<'py>, listed: PyReadonlyArray1<'py, f32>) -> Result<Array1<'py, i32>> {
        let listed = listed.as_slice().map_err(|error| Error::Array(error.to_string()))?;
        let chosen = self.with(py, |held| Ok(held.batch.select_listed(listed)?))?;
        let ids = chosen.into_iter().map(|token| token.map_or(-1, TokenId::as_i32)).collect();
        Ok(PyArray1::from_vec(py, ids))
    }

    /// `top_children` of scores of the legal tokens alone, as `children` lists them.
    fn _top_listed<'py>(
        &self,
        py: Python<'py>,
        listed: PyReadonlyArray1<'py, f32>,
        k: i64,
        scores: Option<&Bound<'py, PyAny>>,
        groups: Option<&Bound<'py, PyAny>>,
    ) -> Result<(Array1<'py, i64>, Array1<'py, i32>, Array1<'py, f64>)> {
        let k = unsigned("k", k)? as usize;
        let scores = scores.map(|scores| doubles(py, "scores", scores)).transpose()?;
        let ends = group_ends(groups, self.count(py)?)?;
        let listed = listed.as_slice().map_err(|error| Error::Array(error.to_string()))?;
        let best = self.with(py, |held| Ok(held.batch.top_listed(listed, k, scores.as_deref(), &ends)?))?;
        Ok(child_arrays(py, best))
    }

    /// The value of a row, once complete.
    ///
    /// Args:
    ///     row: its number; a negative one counts from the end.
    ///
    /// Returns:
    ///     Leaf | None; of a Sequence the last value.
    ///
    /// Raises:
    ///     IndexError: there is no such row.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
    ///     >>> rows = tokentrie.Batch(trie, rows=2, vocab=10)
    ///     >>> rows.accept([5, 2])
    ///     >>> rows.leaf(1).name
    ///     'stop'
    fn leaf(&self, py: Python<'_>, row: i64) -> Result<Option<Leaf>> {
        let row = self.row(py, row)?;
        self.with(py, |held| Ok(held.batch.leaf(row)?.map(Leaf::from)))
    }

    /// The values of a row known so far: of a Sequence one for each set that is complete.
    ///
    /// Args:
    ///     row: its number; a negative one counts from the end.
    ///
    /// Returns:
    ///     list[Leaf], in their order.
    ///
    /// Raises:
    ///     IndexError: there is no such row.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5]], names=["go"]), rows=1, vocab=10)
    ///     >>> rows.accept([5])
    ///     >>> [leaf.name for leaf in rows.leaves(0)]
    ///     ['go']
    fn leaves(&self, py: Python<'_>, row: i64) -> Result<Vec<Leaf>> {
        let row = self.row(py, row)?;
        self.with(py, |held| Ok(held.batch.leaves(row)?.into_iter().map(Leaf::from).collect()))
    }

    /// Masks logits in place: what may not come becomes -inf, the others keep their exact bits.
    ///
    /// Cost: O(rows · V); `select` and `top_children` need no mask. If every legal logit of a row is -inf or NaN, the
    /// lowest legal id gets 0.0 and `starved` counts it.
    ///
    /// Args:
    ///     logits: [rows, V] or wider, writable; see the class.
    ///
    /// Raises:
    ///     TypeError: the array has another dtype.
    ///     ValueError: it has another shape or order, or is read-only. Nothing was written.
    ///     OptionError: it has another number of rows.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=1, vocab=4)
    ///     >>> logits = np.array([[0.5, 1.5, 2.5, 3.5]], dtype=np.float32)
    ///     >>> rows.apply(logits)
    ///     >>> logits
    ///     array([[-inf,  1.5,  2.5, -inf]], dtype=float32)
    fn apply(slf: &Bound<'_, Self>, logits: &Bound<'_, PyAny>) -> Result<()> {
        if !on_cpu(logits)? {
            return on_device("apply", slf, (slf, logits)).map(|_| ());
        }
        let py = slf.py();
        over_logits!(LogitsMut, &mut LogitsMut::new(logits)?, rows => {
            slf.get().with(py, |held| Ok(held.batch.apply(rows)?))
        })
    }

    /// Writes the legal tokens as bits: bit i % 32 of word i // 32 is 1 where token i may come.
    ///
    /// Cost: O(rows · W), as it writes every word; `bitmask` writes only what has changed. At an open leaf and in a
    /// free row every bit of the vocabulary is set.
    ///
    /// Args:
    ///     words: int32 [rows, W], writable, W at least ceil(V / 32). Words beyond are cleared.
    ///
    /// Raises:
    ///     TypeError: the array has another dtype.
    ///     ValueError: it has another shape or order, is too narrow or read-only. Nothing was written.
    ///     OptionError: it has another number of rows.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [3], [32]]), rows=1, vocab=40)
    ///     >>> words = np.zeros((1, 2), dtype=np.int32)
    ///     >>> rows.fill_bitmask(words)
    ///     >>> words
    ///     array([[10,  1]], dtype=int32)
    fn fill_bitmask(&self, py: Python<'_>, words: &Bound<'_, PyAny>) -> Result<()> {
        let mut words = Words::words(words)?;
        let rows = words.rows()?;
        self.warn_of_weights(py)?;
        self.with(py, |held| Ok(held.batch.fill_bitmask(rows)?))
    }

    /// The bit mask of all rows, in memory of the batch's own.
    ///
    /// It is brought up to date: only bits that have changed are written. Cost: O(k) a row in the number of legal
    /// tokens.
    ///
    /// Returns:
    ///     int32 [rows, ceil(V / 32)], read-only, laid out as by `fill_bitmask`. The next call writes into the same
    ///     memory: copy what must stay.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1, 3], [2]]), rows=1, vocab=40)
    ///     >>> rows.bitmask()
    ///     array([[6, 0]], dtype=int32)
    ///     >>> rows.accept([1])
    ///     >>> rows.bitmask()
    ///     array([[8, 0]], dtype=int32)
    fn bitmask<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.warn_of_weights(py)?;
        let (shape, fits) = self.with(py, |held| {
            let shape = [held.batch.len(), held.batch.mask_words()];
            Ok((shape, held.mask.as_ref().is_some_and(|mask| mask.shape == shape)))
        })?;
        // Made before the lock is taken: nothing may touch Python while it is held.
        let fresh = if fits { None } else { Some(Mask::new(py, shape)?) };
        let mut held = crate::convert::gil::locked(py, &self.held)?;
        let Held { batch, mask, .. } = &mut *held;
        if fresh.is_some() {
            *mask = fresh;
        }
        let Some(mask) = mask else { return Err(broken(())) };
        let view = mask.view.bind(py).clone();
        let updated = {
            let mut words = mask.words.bind(py).readwrite();
            let words = words.as_slice_mut().map_err(|error| Error::Array(error.to_string()))?;
            let [rows, width] = mask.shape;
            let words = RowsMut::new(words, rows, width, width).map_err(BatchError::from)?;
            let update = || batch.update_rows(words, &mut mask.memory);
            if self.walks.load(Ordering::Relaxed) {
                asking_for(update).and_then(|done| Ok(done?))
            } else {
                update().map_err(Error::from)
            }
        };
        if updated.is_err() {
            // It may have been ended in the middle of writing.
            held.mask = None;
        }
        updated?;
        Ok(view)
    }

    /// The token to take in each row, without taking it: the best of those that may come, or one drawn.
    ///
    /// Cost: O(k) a row in the number of legal tokens, whatever the size of the vocabulary; O(V) at an open leaf and in
    /// a free row.
    ///
    /// Args:
    ///     logits: [rows, V] or wider; see the class.
    ///
    /// Returns:
    ///     int32 [rows].
    ///
    /// Raises:
    ///     TypeError: the array has another dtype.
    ///     ValueError: it has another shape or order.
    ///     OptionError: it has another number of rows. Nothing was drawn.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=1, vocab=4)
    ///     >>> rows.select(np.array([[0.5, 1.5, 2.5, 3.5]], dtype=np.float32))
    ///     array([2], dtype=int32)
    fn select<'py>(slf: &Bound<'py, Self>, logits: &Bound<'py, PyAny>) -> Result<Array1<'py, i32>> {
        let py = slf.py();
        if !on_cpu(logits)? {
            return Ok(on_device("select", slf, (slf, logits))?.cast_into().map_err(PyErr::from)?);
        }
        let chosen = over_logits!(Logits, &Logits::new(logits)?, rows => slf.get().with(py, |held| {
            let mut chosen = vec![TokenId::default(); held.batch.len()];
            held.batch.select(rows, &mut chosen)?;
            Ok(chosen)
        }))?;
        Ok(id_array(py, chosen.into_iter()))
    }

    /// Takes a token in each row: in all of them or in none. Cost: O(log children) a row.
    ///
    /// Args:
    ///     tokens: one id a row: a list, an integer array, or a tensor on the CPU.
    ///     row: takes them in this row alone instead, one after the other, all or none.
    ///
    /// Raises:
    ///     TokenNotAllowedError: a token may not come in its row; it says which, where, and what may. No row has moved.
    ///     VocabularyError: the vocabulary does not have a token. No row has moved.
    ///     OptionError: not one token a row.
    ///     TypeError: something is not an integer.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
    ///     >>> rows.accept([5, 2])
    ///     >>> rows.finished
    ///     array([False,  True])
    ///     >>> rows.accept([6], row=0)
    ///     >>> rows.finished
    ///     array([ True,  True])
    #[pyo3(signature = (tokens, *, row=None))]
    fn accept(&self, tokens: &Bound<'_, PyAny>, row: Option<i64>) -> Result<()> {
        let py = tokens.py();
        let tokens = crate::convert::ids::tokens(&as_array(tokens)?, "")?;
        match row {
            Some(row) => {
                let row = self.row(py, row)?;
                self.with(py, |held| Ok(held.batch.accept_in(row, &tokens)?))
            }
            None => self.with(py, |held| Ok(held.batch.accept(&tokens)?)),
        }
    }

    /// Row i goes on where row parents[i] is. Rows may come again, be left out, and become more or fewer.
    ///
    /// What is needed to go back moves along, so `rollback` crosses it. Cost: O(rows).
    ///
    /// Args:
    ///     parents: row numbers: a list, an integer array, or a tensor on the CPU.
    ///
    /// Raises:
    ///     OptionError: a parent is not a row. No row has moved.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
    ///     >>> rows.accept([5, 2])
    ///     >>> rows.reorder([0, 0, 1])
    ///     >>> rows.finished
    ///     array([False, False,  True])
    fn reorder(&self, parents: &Bound<'_, PyAny>) -> Result<()> {
        let py = parents.py();
        let parents = numbers("parents", &as_array(parents)?)?;
        self.with(py, |held| Ok(held.batch.reorder(&parents)?))
    }

    /// Takes back the last n accepted tokens of each row: in all of them or in none.
    ///
    /// Args:
    ///     n: how many, 0 or more.
    ///     row: in this row alone.
    ///
    /// Raises:
    ///     OptionError: a row has accepted fewer; it is named. No row has moved.
    ///     IndexError: there is no such row.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
    ///     >>> rows.accept([5, 5])
    ///     >>> rows.rollback(1)
    ///     >>> rows.accepted
    ///     array([0, 0], dtype=int32)
    #[pyo3(signature = (n, *, row=None))]
    fn rollback(&self, py: Python<'_>, n: i64, row: Option<i64>) -> Result<()> {
        let n = unsigned("n", n)? as usize;
        match row {
            Some(row) => {
                let row = self.row(py, row)?;
                self.with(py, |held| Ok(held.batch.rollback_in(row, n)?))
            }
            None => self.with(py, |held| Ok(held.batch.rollback(n)?)),
        }
    }

    /// Each row at the start of its constraint; draws begin again.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=1, vocab=10)
    ///     >>> rows.accept([2])
    ///     >>> rows.reset()
    ///     >>> rows.finished
    ///     array([False])
    fn reset(&self, py: Python<'_>) -> Result<()> {
        self.with(py, |held| {
            held.batch.reset();
            Ok(())
        })
    }

    /// Gives a row to another request: at the start of this constraint. Other rows stay as they are.
    ///
    /// Args:
    ///     row: its number; a negative one counts from the end. The number of rows adds one.
    ///     constraint: as for `Batch`, for one row; None makes the row free.
    ///
    /// Raises:
    ///     PayloadError, VocabularyError, TrieError, TypeError: as for `Sampler`. The row is as before.
    ///     IndexError: there is no such row.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch([None, None], vocab=10)
    ///     >>> rows.assign(1, tokentrie.Trie.from_sequences([[5, 6], [2]]))
    ///     >>> rows.allowed(1)
    ///     array([2, 5], dtype=int32)
    fn assign(&self, row: i64, constraint: &Bound<'_, PyAny>) -> Result<()> {
        let py = constraint.py();
        let of_row = self.common.row(constraint)?;
        self.walks.fetch_or(walks(&of_row), Ordering::Relaxed);
        let (rows, rules) = (self.count(py)?, Some(Arc::clone(&of_row.0)));
        if row == rows as i64 {
            self.with(py, |held| Ok(held.batch.push(rules)?))?;
        } else {
            let row = self.row(py, row)?;
            self.with(py, |held| Ok(held.batch.assign(row, rules)?))?;
        }
        let mut given = self.given.lock().map_err(broken)?;
        *given = std::mem::take(&mut *given).with(&of_row);
        given.forget();
        Ok(())
    }

    /// Counts the leading draft tokens that each row would accept, and returns the mask at each position.
    ///
    /// No row changes. Behind a draft that is refused the masks repeat the one that refused it: no mask is ever empty.
    ///
    /// Args:
    ///     drafts: a list of token ids for each row, or an integer array [rows, n].
    ///
    /// Returns:
    ///     (accepted, masks): int32 [rows], and int32 [rows, n + 1, ceil(V / 32)] with n the most drafts of a row:
    ///     masks[r, i] says what may come in row r after its first i drafts.
    ///
    /// Raises:
    ///     OptionError: not one list a row.
    ///     TypeError: something is not an integer.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
    ///     >>> accepted, masks = rows.verify([[5, 7], [2]])
    ///     >>> accepted
    ///     array([1, 1], dtype=int32)
    ///     >>> masks[0, :, 0]
    ///     array([36, 64, 64], dtype=int32)
    fn verify<'py>(
        &self,
        py: Python<'py>,
        drafts: &Bound<'py, PyAny>,
    ) -> Result<(Array1<'py, i32>, Bound<'py, PyAny>)> {
        let drafts = as_array(drafts)?;
        let mut each: Vec<Vec<TokenId>> = Vec::new();
        let lists = crate::exit::items(&drafts).map_err(|_| {
            let message = format!("drafts must be a list of token ids for each row, not {}", type_name(&drafts));
            PyTypeError::new_err(message)
        })?;
        for (row, drafts) in lists.enumerate() {
            each.push(tokens(&drafts?, &format!("row {row}, "))?);
        }
        self.warn_of_weights(py)?;
        let longest = each.iter().map(Vec::len).max().unwrap_or(0);
        let (accepted, masks, width) = self.with(py, |held| {
            let (rows, width) = (held.batch.len(), held.batch.mask_words());
            if each.len() != rows {
                return Err(BatchError::Count { what: "lists of drafts", got: each.len(), rows }.into());
            }
            let size = (longest + 1) * width;
            let mut masks = vec![0; rows * size];
            let mut accepted = Vec::with_capacity(rows);
            for (row, (drafts, masks)) in each.iter().zip(masks.chunks_mut(size.max(1))).enumerate() {
                let (known, beyond) = masks.split_at_mut((drafts.len() + 1) * width);
                let place = RowsMut::new(known, drafts.len() + 1, width, width).map_err(BatchError::from)?;
                accepted.push(held.batch.verify(row, drafts, place)? as i32);
                let last = &known[drafts.len() * width..];
                beyond.chunks_mut(width.max(1)).for_each(|words| words.copy_from_slice(last));
            }
            Ok((accepted, masks, width))
        })?;
        let shape = (accepted.len(), longest + 1, width);
        let masks = PyArray1::from_vec(py, masks).call_method1("reshape", (shape,))?;
        Ok((PyArray1::from_vec(py, accepted), masks))
    }

    /// Returns the allowed tokens of each row as ragged lists, end tokens included: for authors of kernels.
    ///
    /// Cost: O(total). A row in which everything may come lists those that go on in its constraint: often none.
    ///
    /// Returns:
    ///     (offsets, tokens, next): int64 [rows + 1], int32 [total], int32 [total]. Row r has the entries
    ///     offsets[r] .. offsets[r + 1]: tokens, ascending, and the node each leads to (as `nodes`; -1 where the
    ///     constraint is not a trie). An end token stays at its node.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
    ///     >>> rows.accept([5], row=1)
    ///     >>> offsets, tokens, following = rows.children()
    ///     >>> offsets.tolist(), tokens.tolist(), following.tolist()
    ///     ([0, 2, 3], [2, 5, 6], [1, 2, 3])
    fn children<'py>(&self, py: Python<'py>) -> Result<(Array1<'py, i64>, Array1<'py, i32>, Array1<'py, i32>)> {
        let (offsets, tokens, next) = self.with(py, |Held { batch, children, .. }| {
            batch.children(children)?;
            let offsets: Vec<i64> = children.offsets().iter().map(|&offset| offset as i64).collect();
            let tokens: Vec<i32> = children.tokens().iter().map(|token| token.as_i32()).collect();
            let next: Vec<i32> = children.next().iter().map(node_of).collect();
            Ok((offsets, tokens, next))
        })?;
        Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, tokens), PyArray1::from_vec(py, next)))
    }

    /// The k best continuations over all rows, best first; ties by row, then by token.
    ///
    /// Fewer where there are fewer, never a filler. They are those of a full top-k over the masked matrix, without the
    /// mask. A finished row has none, and neither has one whose score is -inf, as when a search begins with one beam.
    ///
    /// Args:
    ///     logits: [rows, V] or wider; see the class.
    ///     k: how many at most, for each group.
    ///     scores: what each row has so far, added to what a token adds; numbers or -inf. None: 0.
    ///     score: what a token adds. "model": the log of its probability under the whole vocabulary, exact, O(V) a row.
    ///         "renormalised": the log of its share among the legal tokens, O(k) a row. "given": its logit, for rows of
    ///         log-probabilities.
    ///     groups: k for each group of rows: a number of groups of one size, or a list of their sizes.
    ///
    /// Returns:
    ///     (parents, tokens, scores): int64 [n], int32 [n], float64 [n], n at most k for each group, group after group.
    ///
    /// Raises:
    ///     TypeError, ValueError: as for `select`.
    ///     OptionError: another number of rows or scores, a score that is NaN or +inf, or groups that are not the rows.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2], [3]]), rows=1, vocab=4)
    ///     >>> logits = np.array([[9.0, 1.0, 3.0, 3.0]], dtype=np.float32)
    ///     >>> parents, tokens, scores = rows.top_children(logits, 2, score="renormalised")
    ///     >>> tokens, scores.round(2)
    ///     (array([2, 3], dtype=int32), array([-0.76, -0.76]))
    #[pyo3(
        signature = (logits, k, scores=None, score=Score(ScoreMode::Model), groups=None),
        text_signature = "(self, logits, k, scores=None, score=\"model\", groups=None)"
    )]
    fn top_children<'py>(
        slf: &Bound<'py, Self>,
        logits: &Bound<'py, PyAny>,
        k: i64,
        scores: Option<&Bound<'py, PyAny>>,
        score: Score,
        groups: Option<&Bound<'py, PyAny>>,
    ) -> Result<(Array1<'py, i64>, Array1<'py, i32>, Array1<'py, f64>)> {
        let (py, k) = (slf.py(), unsigned("k", k)? as usize);
        if !on_cpu(logits)? {
            let word = match score.0 {
                ScoreMode::Renormalised => "renormalised",
                ScoreMode::AsGiven => "given",
                _ => "model",
            };
            return Ok(on_device("top_children", slf, (slf, logits, k, scores, word, groups))?.extract()?);
        }
        let scores = scores.map(|scores| doubles(py, "scores", scores)).transpose()?;
        let ends = group_ends(groups, slf.get().count(py)?)?;
        let best = over_logits!(Logits, &Logits::new(logits)?, rows => slf.get().with(py, |held| {
            Ok(held.batch.top_children_of(rows, k, scores.as_deref(), score.0, &ends)?)
        }))?;
        Ok(child_arrays(py, best))
    }

    /// An independent copy at the same places; the tries are shared.
    ///
    /// Returns:
    ///     Batch.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=1, vocab=10)
    ///     >>> copy = rows.clone()
    ///     >>> copy.accept([2])
    ///     >>> rows.finished, copy.finished
    ///     (array([False]), array([ True]))
    fn clone(&self, py: Python<'_>) -> Result<Self> {
        let batch = self.with(py, |held| Ok(held.batch.clone()))?;
        let held = Mutex::new(Held { batch, mask: None, children: Children::default() });
        let walks = AtomicBool::new(self.walks.load(Ordering::Relaxed));
        let given = Mutex::new(self.given.lock().map_err(broken)?.clone());
        Ok(Self { common: self.common.clone_ref(py), held, given, walks, no_repeat: self.no_repeat })
    }

    /// int: how often every legal logit of a row was -inf or NaN, so that its lowest legal id was taken.
    #[getter]
    fn starved(&self, py: Python<'_>) -> Result<u64> {
        self.with(py, |held| Ok(held.batch.starved_count()))
    }

    /// int: the seed that was given, or the one taken from the operating system; that of the first place.
    #[getter]
    fn seed(&self, py: Python<'_>) -> Result<u32> {
        self.with(py, |held| Ok(held.batch.seed(0)))
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        self.with(py, |held| {
            let finished = held.batch.finished_rows().filter(|&finished| finished).count();
            let (rows, n_vocab) = (held.batch.len(), held.batch.n_vocab());
            Ok(format!("<tokentrie.Batch: {rows} rows, {finished} finished, vocabulary of {n_vocab}>"))
        })
    }
}

fn child_arrays(py: Python<'_>, best: Vec<Child>) -> (Array1<'_, i64>, Array1<'_, i32>, Array1<'_, f64>) {
    let parents: Vec<i64> = best.iter().map(|child| child.parent as i64).collect();
    let found = best.iter().map(|child| child.score).collect();
    let tokens = id_array(py, best.into_iter().map(|child| child.token));
    (PyArray1::from_vec(py, parents), tokens, PyArray1::from_vec(py, found))
}

fn node_of(state: &trie_core::SpanState<trie_core::AnyState>) -> i32 {
    let trie = state.position().as_trie();
    trie.map_or(-1, |at| i32::try_from(at.cursor().node().index()).unwrap_or(-1))
}

/// Tensors as arrays; everything else as it is.
fn as_array<'py>(values: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    if values.is_instance_of::<PyUntypedArray>() || values.is_instance_of::<PyList>() {
        return Ok(values.clone());
    }
    Ok(crate::convert::buffer::tensor_as_array("token ids", values)?.unwrap_or_else(|| values.clone()))
}

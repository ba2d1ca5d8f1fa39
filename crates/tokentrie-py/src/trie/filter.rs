//! Some leaves of a trie, and tries with only some leaves allowed.

use crate::convert::gil::released;
use crate::convert::ids::{id_array, is_integer, shown, tokens, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::{items, load_numpy};
use crate::trie::Trie;
use crate::trie::leaf::Leaf;
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use trie_core::{Constraint, LeafId, Scratch, TokenId, TrieState};

/// Some of the leaves of a trie, by number. Made by `Trie.leaf_set`; immutable.
///
/// `a & b`, `a | b`, `a - b` and `~a` combine them, `leaf in a` asks for a number, `len(a)` counts them, and iterating
/// gives their numbers in order. A few leaves, or all but a few, take four bytes each, others a bit for every leaf.
///
/// Example:
///     >>> trie = tokentrie.Trie.from_sequences([[1], [2], [3]], names=["a", "b", "c"])
///     >>> sold_out, cheap = trie.leaf_set(["b"]), trie.leaf_set([0, 1])
///     >>> list(cheap & ~sold_out)
///     [0]
#[pyclass(frozen, eq, module = "tokentrie.sets")]
#[derive(PartialEq)]
pub(crate) struct LeafSet {
    core: trie_core::LeafSet,
    trie: trie_core::Trie,
}

impl LeafSet {
    fn with(&self, core: trie_core::LeafSet) -> Self {
        Self { core, trie: self.trie.clone() }
    }

    /// Checks that both are of one trie.
    fn of_one_trie(&self, other: &Self) -> Result<()> {
        if self.trie == other.trie {
            return Ok(());
        }
        let (one, two) = (self.trie.len(), other.trie.len());
        Err(Class::Option.error(format!("these leaves are of two tries, of {one} and of {two} leaves")))
    }
}

#[pymethods]
impl LeafSet {
    fn __and__(&self, other: PyRef<'_, Self>) -> Result<Self> {
        self.of_one_trie(&other)?;
        Ok(self.with(self.core.and(&other.core)?))
    }

    fn __or__(&self, other: PyRef<'_, Self>) -> Result<Self> {
        self.of_one_trie(&other)?;
        Ok(self.with(self.core.or(&other.core)?))
    }

    fn __sub__(&self, other: PyRef<'_, Self>) -> Result<Self> {
        self.of_one_trie(&other)?;
        Ok(self.with(self.core.and(&!&other.core)?))
    }

    fn __invert__(&self) -> Self {
        self.with(!&self.core)
    }

    fn __len__(&self) -> usize {
        self.core.count()
    }

    fn __contains__(&self, leaf: i64) -> bool {
        u32::try_from(leaf).is_ok_and(|leaf| self.core.contains(LeafId::new(leaf)))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.ids(py)?.call_method0("tolist")?.call_method0("__iter__")?)
    }

    /// numpy.ndarray: int64 [n], the numbers of the leaves, ascending.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i64>>> {
        load_numpy(py)?;
        Ok(PyArray1::from_iter(py, self.core.iter().map(|leaf| i64::from(leaf.get()))))
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.sets.LeafSet: {} of {} leaves>", self.core.count(), self.core.size())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let trie = Bound::new(py, Trie::new(self.trie.clone()))?;
        Ok((trie.getattr("leaf_set")?, PyTuple::new(py, [self.ids(py)?])?))
    }
}

/// A trie with only some of its leaves allowed: a constraint wherever a Trie is one. Made by `Trie.filtered`.
///
/// A child is legal exactly where an allowed leaf lies at or below it, at any depth: so nothing leads into a dead
/// end, and where one leaf is left all of it is forced. The arrays are those of the trie, and leaves keep their
/// numbers. Only what is named is looked at when it is made; a step costs what it does in the trie, and up to twice
/// that where some children may not come. Immutable; compares by content; can be pickled.
///
/// Example:
///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
///     >>> left = trie.filtered(deny=["c"])
///     >>> sampler = tokentrie.Sampler(6, left)
///     >>> sampler.forced()
///     array([1], dtype=int32)
///     >>> left.filtered(deny=["a"]).forced()
///     array([1, 3], dtype=int32)
#[pyclass(frozen, module = "tokentrie.sets")]
pub(crate) struct FilteredTrie {
    core: trie_core::FilteredTrie,
    trie: Py<Trie>,
}

impl FilteredTrie {
    pub(crate) fn core(&self) -> &trie_core::FilteredTrie {
        &self.core
    }

    fn walk(&self, prefix: Option<&Bound<'_, PyAny>>) -> Result<TrieState> {
        let prefix = prefix.map_or(Ok(Vec::new()), |prefix| tokens(prefix, "prefix, "))?;
        Ok(self.core.walk(&prefix)?)
    }
}

#[pymethods]
impl FilteredTrie {
    /// Trie: the trie with all of its leaves.
    #[getter]
    fn trie(&self, py: Python<'_>) -> Py<Trie> {
        self.trie.clone_ref(py)
    }

    /// LeafSet: the leaves that may come.
    #[getter]
    fn allowed_leaves(&self) -> LeafSet {
        LeafSet { core: self.core.leaves(), trie: self.core.trie().clone() }
    }

    /// Some of the leaves that are left. Cost: as `Trie.filtered`.
    ///
    /// Args:
    ///     allow, deny: as for `Trie.filtered`.
    ///
    /// Returns:
    ///     FilteredTrie.
    ///
    /// Raises:
    ///     TrieError: nothing is left.
    ///     OptionError, ValueError, TypeError: as `Trie.leaf_set`.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[1], [2], [3]])
    ///     >>> list(trie.filtered(deny=[0]).filtered(deny=[2]).allowed_leaves)
    ///     [1]
    #[pyo3(signature = (allow=None, deny=None))]
    fn filtered(
        &self,
        py: Python<'_>,
        allow: Option<&Bound<'_, PyAny>>,
        deny: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let trie = self.trie.bind(py);
        let leaves = wanted(trie.get().core(), allow, deny)?.and(&self.core.leaves())?;
        Ok(Self { core: released(py, || self.core.trie().filter(&leaves))?, trie: trie.clone().unbind() })
    }

    /// Tokens that may follow a prefix. Cost: O(length · log children).
    ///
    /// Args:
    ///     prefix: token ids; the start if None.
    ///
    /// Returns:
    ///     int32 [k], ascending.
    ///
    /// Raises:
    ///     TokenNotAllowedError: the prefix leaves what is left of the trie.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]])
    ///     >>> trie.filtered(deny=[2]).allowed()
    ///     array([1], dtype=int32)
    #[pyo3(signature = (prefix=None))]
    fn allowed<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        let (at, mut scratch) = (self.walk(prefix)?, Scratch::default());
        let legal: Vec<TokenId> = self.core.next(&at, &mut scratch).tokens.iter().collect();
        Ok(id_array(py, legal.into_iter()))
    }

    /// Tokens that must follow a prefix, because exactly one may at each step. Cost: O(length).
    ///
    /// Args:
    ///     prefix: token ids; the start if None.
    ///
    /// Returns:
    ///     int32 [length], empty where there is a choice, or where a leaf ends.
    ///
    /// Raises:
    ///     TokenNotAllowedError: the prefix leaves what is left of the trie.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]])
    ///     >>> trie.filtered(allow=[1]).forced()
    ///     array([1, 3], dtype=int32)
    #[pyo3(signature = (prefix=None))]
    fn forced<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        let (mut at, mut scratch) = (self.walk(prefix)?, Scratch::default());
        let mut forced = Vec::new();
        while let Some(token) = self.core.forced_token(&at, &mut scratch) {
            if self.core.advance(&mut at, token).is_none() {
                break;
            }
            forced.push(token);
        }
        Ok(id_array(py, forced.into_iter()))
    }

    /// The leaves that are left as a Trie of their own, with other numbers. Cost: O(leaves).
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: several sequences stand for one leaf.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]])
    ///     >>> len(trie.filtered(deny=[0]).to_trie())
    ///     2
    fn to_trie(&self, py: Python<'_>) -> Result<Trie> {
        Ok(Trie::new(released(py, || self.core.to_trie(usize::MAX))?))
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __contains__(&self, sequence: &Bound<'_, PyAny>) -> Result<bool> {
        if let Ok(name) = sequence.cast::<PyString>() {
            let name = name.to_string_lossy();
            return Ok(self.core.trie().leaves_named(&name).any(|leaf| self.core.allows(leaf)));
        }
        let found = self.core.trie().find(&tokens(sequence, "")?);
        Ok(found.is_some_and(|leaf| self.core.allows(leaf)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let other = &other.get().core;
            self.core.trie() == other.trie() && self.core.leaves() == other.leaves()
        })
    }

    fn __hash__(&self) -> usize {
        self.core.len()
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.sets.FilteredTrie: {} of {} leaves>", self.core.len(), self.core.trie().len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let leaves = self.allowed_leaves().ids(py)?;
        Ok((self.trie.bind(py).getattr("filtered")?, PyTuple::new(py, [leaves])?))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(other, slf.as_any())
    }
}

#[pymethods]
impl Trie {
    /// Some of the leaves, to filter by.
    ///
    /// Cost: O(n log n) in what is named; the first time that a name is among them, O(leaves · log leaves), for an
    /// index of 8 bytes a leaf that the trie keeps.
    ///
    /// Args:
    ///     leaves: numbers of leaves, names (all leaves of that name), token sequences or each a Leaf, also mixed; an
    ///         integer array of numbers, or one of two dimensions with a sequence in each row; a bool array with one
    ///         entry for each leaf; a LeafSet of this trie.
    ///
    /// Returns:
    ///     LeafSet.
    ///
    /// Raises:
    ///     OptionError: an entry is not a leaf; it says which, and why.
    ///     ValueError: a bool array has another length.
    ///     TypeError: an entry is something else.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
    ///     >>> list(trie.leaf_set(["a", 1, [4, 2]]))
    ///     [0, 1, 2]
    ///     >>> list(~trie.leaf_set(np.array([True, False, False])))
    ///     [1, 2]
    fn leaf_set(&self, leaves: &Bound<'_, PyAny>) -> Result<LeafSet> {
        Ok(LeafSet { core: named(self.core(), leaves)?, trie: self.core().clone() })
    }

    /// The same trie with only some of its leaves allowed: without dead ends, and without making another trie.
    ///
    /// Cost: O(d log n) for d leaves that are named, so some thousandths of a second for ten thousand of a million; the
    /// first time that leaves are given by name as for `leaf_set`.
    ///
    /// Args:
    ///     allow: the leaves that may come, as for `leaf_set`; all if None.
    ///     deny: those that may not, also where they are allowed.
    ///
    /// Returns:
    ///     FilteredTrie.
    ///
    /// Raises:
    ///     TrieError: nothing is left.
    ///     OptionError, ValueError, TypeError: as `leaf_set`.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
    ///     >>> left = trie.filtered(allow=["a", "b"], deny=[[1, 2]])
    ///     >>> left.forced()
    ///     array([1, 3], dtype=int32)
    #[pyo3(signature = (allow=None, deny=None))]
    pub(crate) fn filtered(
        slf: &Bound<'_, Self>,
        allow: Option<&Bound<'_, PyAny>>,
        deny: Option<&Bound<'_, PyAny>>,
    ) -> Result<FilteredTrie> {
        let core = slf.get().core();
        let leaves = wanted(core, allow, deny)?;
        Ok(FilteredTrie { core: released(slf.py(), || core.filter(&leaves))?, trie: slf.clone().unbind() })
    }
}

fn wanted(
    trie: &trie_core::Trie,
    allow: Option<&Bound<'_, PyAny>>,
    deny: Option<&Bound<'_, PyAny>>,
) -> Result<trie_core::LeafSet> {
    let at = |what: &'static str| move |error: Error| error.at(&format!("{what}: "));
    let allowed = match allow {
        Some(allow) => named(trie, allow).map_err(at("allow"))?,
        None => trie_core::LeafSet::full(trie.len()),
    };
    let denied = match deny {
        Some(deny) => named(trie, deny).map_err(at("deny"))?,
        None => return Ok(allowed),
    };
    Ok(allowed.and(&!denied)?)
}

/// The leaves that Python named.
fn named(trie: &trie_core::Trie, leaves: &Bound<'_, PyAny>) -> Result<trie_core::LeafSet> {
    if let Ok(set) = leaves.cast::<LeafSet>() {
        let set = set.get();
        if set.trie != *trie {
            let (one, two) = (set.trie.len(), trie.len());
            let message = format!("the leaf set is of another trie, of {one} leaves; this one has {two}");
            return Err(Class::Option.error(message));
        }
        return Ok(set.core.clone());
    }
    if let Ok(array) = leaves.cast::<PyUntypedArray>() {
        if array.dtype().kind() == b'b' {
            return flags(trie, leaves);
        }
        if array.ndim() == 1 && is_integer(array) {
            return numbers(trie, leaves);
        }
    }
    let text = leaves.is_instance_of::<PyString>() || leaves.is_instance_of::<PyBytes>();
    if text || leaves.is_instance_of::<PyDict>() || !leaves.hasattr("__iter__")? {
        let (shown, name) = (shown(leaves), type_name(leaves));
        let message = format!(
            "leaves must be a list of numbers, names or token sequences, a bool array or a LeafSet, not {shown} of \
             type {name}"
        );
        return Err(PyTypeError::new_err(message).into());
    }
    let mut found = Vec::new();
    for (entry, item) in items(leaves)?.enumerate() {
        let item = item?;
        if let Ok(name) = item.cast::<PyString>() {
            let before = found.len();
            found.extend(trie.leaves_named(&name.to_string_lossy()));
            if found.len() == before {
                return Err(Class::Option.error(format!("entry {entry}: no leaf is named {}", shown(&item))));
            }
        } else if item.is_instance_of::<Leaf>() {
            found.push(sequence_of(trie, entry, &item.getattr("tokens")?)?);
        } else if let Ok(number) = item.extract::<i64>() {
            found.push(number_of(trie, entry, number)?);
        } else {
            found.push(sequence_of(trie, entry, &item)?);
        }
    }
    Ok(trie_core::LeafSet::from_leaves(trie.len(), found)?)
}

fn number_of(trie: &trie_core::Trie, entry: usize, number: i64) -> Result<LeafId> {
    let leaf = u32::try_from(number).ok().filter(|&leaf| (leaf as usize) < trie.len());
    leaf.map(LeafId::new).ok_or_else(|| {
        let leaves = trie.len();
        let message =
            format!("entry {entry}: leaf {number} is out of range: the trie has {leaves} leaves, numbered from 0");
        Class::Option.error(message)
    })
}

fn sequence_of(trie: &trie_core::Trie, entry: usize, item: &Bound<'_, PyAny>) -> Result<LeafId> {
    let sequence = tokens(item, &format!("entry {entry}, "))?;
    if let Some(leaf) = trie.find(&sequence) {
        return Ok(leaf);
    }
    let why = match trie.walk(&sequence) {
        Ok(at) => {
            let below = trie.leaves_below(at).len();
            format!("it only begins {below} of them; give all tokens of one, or leaves by number")
        }
        Err(error) => error.to_string(),
    };
    Err(Class::Option.error(format!("entry {entry}: {sequence:?} is not a leaf of the trie: {why}")))
}

/// A bool for each leaf.
fn flags(trie: &trie_core::Trie, leaves: &Bound<'_, PyAny>) -> Result<trie_core::LeafSet> {
    let Ok(flags) = leaves.extract::<PyReadonlyArray1<'_, bool>>() else {
        return Err(PyTypeError::new_err("a bool array of leaves must have one dimension").into());
    };
    let (got, wanted) = (flags.len(), trie.len());
    if got != wanted {
        return Err(Error::Array(format!("a bool array of {got} for {wanted} leaves: give one bool each")));
    }
    let flags = flags.as_array();
    Ok(match flags.as_slice() {
        Some(flags) => trie_core::LeafSet::from_flags(flags),
        None => trie_core::LeafSet::from_flags(&flags.iter().copied().collect::<Vec<_>>()),
    })
}

/// Reads numbers of leaves.
fn numbers(trie: &trie_core::Trie, leaves: &Bound<'_, PyAny>) -> Result<trie_core::LeafSet> {
    load_numpy(leaves.py())?;
    let wide = leaves.call_method1("astype", ("int64",))?;
    let wide = wide.cast_into::<PyArray1<i64>>().map_err(PyErr::from)?.readonly();
    let leaf = |(entry, &number): (usize, &i64)| number_of(trie, entry, number);
    let found = wide.as_array().iter().enumerate().map(leaf).collect::<Result<Vec<_>>>()?;
    Ok(trie_core::LeafSet::from_leaves(trie.len(), found)?)
}

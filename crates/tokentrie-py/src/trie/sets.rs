//! A trie as a set: operators, the methods of Python's `set`, parts of it.

use crate::convert::gil::released;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::{called, module};
use crate::trie::leaf::Leaf;
use crate::trie::{LeafIterator, Trie};
use numpy::{PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyList, PyTuple};
use trie_core::SetOperation;

#[pymethods]
impl Trie {
    /// The leaves of this trie and of all others: `a | b`. Cost: one pass over the nodes of both.
    ///
    /// Only token sequences decide what is equal; of equal leaves the smaller name stays, by code point.
    /// `input_rows` of the result counts its leaves.
    ///
    /// Args:
    ///     others: any number of Trie.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: some have names and some have none.
    ///     TypeError: something is not a Trie.
    ///
    /// Example:
    ///     >>> a, b = tokentrie.Trie.from_sequences([[1], [2]]), tokentrie.Trie.from_sequences([[2], [3]])
    ///     >>> [leaf.tokens for leaf in a.union(b)]
    ///     [[1], [2], [3]]
    #[pyo3(signature = (*others))]
    fn union(&self, others: &Bound<'_, PyTuple>) -> Result<Self> {
        let mut all = vec![self.core().clone()];
        all.extend(tries(others)?);
        let pair = |pair: &[trie_core::Trie]| match pair {
            [one, other] => one.combine(SetOperation::Union, other),
            single => Ok(single[0].clone()),
        };
        // Neighbours first, so that each leaf is written log(tries) times.
        released(others.py(), || {
            while all.len() > 1 {
                all = all.chunks(2).map(pair).collect::<Result<_, _>>()?;
            }
            Ok(Self::new(all.swap_remove(0)))
        })
    }

    /// The leaves that this trie and all others have: `a & b`. Equality and cost as for `union`.
    ///
    /// Of two names the smaller stays; where only one of two tries has names, its names stay.
    ///
    /// Args:
    ///     others: any number of Trie.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: there is no such leaf, and a trie has at least one; `isdisjoint` asks without raising.
    ///
    /// Example:
    ///     >>> a, b = tokentrie.Trie.from_sequences([[1], [2]]), tokentrie.Trie.from_sequences([[2], [3]])
    ///     >>> [leaf.tokens for leaf in a.intersection(b)]
    ///     [[2]]
    #[pyo3(signature = (*others))]
    fn intersection(&self, others: &Bound<'_, PyTuple>) -> Result<Self> {
        self.combine_all(SetOperation::Intersection, others)
    }

    /// The leaves of this trie that no other one has, with their names: `a - b`. Equality and cost as for `union`.
    ///
    /// Args:
    ///     others: any number of Trie.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: there is no such leaf, and a trie has at least one; `issubset` asks without raising.
    ///
    /// Example:
    ///     >>> a, b = tokentrie.Trie.from_sequences([[1], [2]]), tokentrie.Trie.from_sequences([[2], [3]])
    ///     >>> [leaf.tokens for leaf in a.difference(b)]
    ///     [[1]]
    #[pyo3(signature = (*others))]
    fn difference(&self, others: &Bound<'_, PyTuple>) -> Result<Self> {
        self.combine_all(SetOperation::Difference, others)
    }

    /// The leaves that exactly one of both tries has: `a ^ b`. Equality and cost as for `union`.
    ///
    /// Args:
    ///     other: a Trie.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: there is no such leaf, and a trie has at least one; or only one of them has names.
    ///
    /// Example:
    ///     >>> a, b = tokentrie.Trie.from_sequences([[1], [2]]), tokentrie.Trie.from_sequences([[2], [3]])
    ///     >>> [leaf.tokens for leaf in a.symmetric_difference(b)]
    ///     [[1], [3]]
    fn symmetric_difference(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<Self> {
        self.combine(py, SetOperation::SymmetricDifference, &other)
    }

    fn __or__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<Self> {
        self.combine(py, SetOperation::Union, &other)
    }

    fn __and__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<Self> {
        self.combine(py, SetOperation::Intersection, &other)
    }

    fn __sub__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<Self> {
        self.combine(py, SetOperation::Difference, &other)
    }

    fn __xor__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<Self> {
        self.combine(py, SetOperation::SymmetricDifference, &other)
    }

    /// Returns whether the other trie has all leaves of this one: `a <= b`. Names do not count, as they do in `==`.
    ///
    /// Cost: at most one pass over the nodes of both; it ends at the first leaf that the other one does not have.
    ///
    /// Args:
    ///     other: a Trie.
    ///
    /// Returns:
    ///     bool.
    ///
    /// Example:
    ///     >>> a, b = tokentrie.Trie.from_sequences([[1]]), tokentrie.Trie.from_sequences([[1], [2]])
    ///     >>> a.issubset(b)
    ///     True
    fn issubset(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<bool> {
        let (one, other) = (self.whole(py)?, other.whole(py)?);
        Ok(released(py, || one.is_subset(other)))
    }

    /// Returns whether this trie has all leaves of the other: `a >= b`. Names do not count. Cost as for `issubset`.
    ///
    /// Args:
    ///     other: a Trie.
    ///
    /// Returns:
    ///     bool.
    ///
    /// Example:
    ///     >>> a, b = tokentrie.Trie.from_sequences([[1]]), tokentrie.Trie.from_sequences([[1], [2]])
    ///     >>> a.issuperset(b)
    ///     False
    fn issuperset(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<bool> {
        let (one, other) = (self.whole(py)?, other.whole(py)?);
        Ok(released(py, || other.is_subset(one)))
    }

    /// Returns whether no leaf is in both. Names do not count.
    ///
    /// Cost: at most one pass over the nodes of both; it ends at the first leaf of both.
    ///
    /// Args:
    ///     other: a Trie.
    ///
    /// Returns:
    ///     bool.
    ///
    /// Example:
    ///     >>> a, b = tokentrie.Trie.from_sequences([[1]]), tokentrie.Trie.from_sequences([[1], [2]])
    ///     >>> a.isdisjoint(b)
    ///     False
    fn isdisjoint(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<bool> {
        let (one, other) = (self.whole(py)?, other.whole(py)?);
        Ok(released(py, || one.is_disjoint(other)))
    }

    // All comparisons share one slot of the class and must stand in one place.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.core() == other.get().core())
    }

    fn __le__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<bool> {
        self.issubset(py, other)
    }

    fn __ge__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<bool> {
        self.issuperset(py, other)
    }

    fn __lt__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<bool> {
        Ok(self.core().len() < other.core().len() && self.issubset(py, other)?)
    }

    fn __gt__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<bool> {
        Ok(self.core().len() > other.core().len() && self.issuperset(py, other)?)
    }

    /// The leaves that begin with a prefix, in order. A leaf that is the prefix itself comes first.
    ///
    /// The tokens of half a word begin some of the values that the text begins, not all: `complete` goes by bytes.
    ///
    /// Cost: O(length · log children), then O(depth · log nodes) a leaf.
    ///
    /// Args:
    ///     prefix: token ids; all leaves if None.
    ///
    /// Returns:
    ///     An iterator of Leaf.
    ///
    /// Raises:
    ///     TokenNotAllowedError: the prefix leaves the trie.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5], [5, 6], [2]])
    ///     >>> [leaf.tokens for leaf in trie.leaves([5])]
    ///     [[5], [5, 6]]
    #[pyo3(signature = (prefix=None))]
    fn leaves(&self, prefix: Option<&Bound<'_, PyAny>>) -> Result<LeafIterator> {
        Ok(LeafIterator::new(self.core().clone(), self.core().leaves_below(self.walk(prefix)?)))
    }

    /// The leaves that are wanted, as a trie. Cost: one pass over the nodes, and a call a leaf for a function.
    ///
    /// Args:
    ///     keep: a function that is given each Leaf and says whether to keep it, or a bool array (or list) of shape
    ///         [leaves].
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: none is wanted, and a trie has at least one leaf.
    ///     ValueError: the mask has another length.
    ///     TypeError: `keep` is neither.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5], [5, 6], [2]])
    ///     >>> [leaf.tokens for leaf in trie.filter(lambda leaf: len(leaf.tokens) == 1)]
    ///     [[2], [5]]
    ///     >>> len(trie.filter(np.array([True, False, False])))
    ///     1
    fn filter(&self, keep: &Bound<'_, PyAny>) -> Result<Self> {
        let mask = if keep.is_callable() { self.ask(keep)? } else { self.mask(keep)? };
        let trie = self.core();
        let selected = released(keep.py(), || trie.select(|leaf| mask.get(leaf.index()).is_some_and(|&keep| keep)));
        Ok(Self::new(selected?))
    }

    /// A trie of `n` different leaves chosen at random, all equally likely. Cost: one pass over the nodes.
    ///
    /// Args:
    ///     n: how many, 1 to the number of leaves.
    ///     seed: whatever `numpy.random.default_rng` takes; with None they are others each time. The leaves are
    ///         those with the numbers `default_rng(seed).choice(len(trie), n, replace=False, shuffle=False)`, so
    ///         the same numpy gives the same leaves.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     OptionError: `n` is out of range.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[token] for token in range(100)])
    ///     >>> part = trie.sample(10, seed=1)
    ///     >>> (len(part), part <= trie, part == trie.sample(10, seed=1))
    ///     (10, True, True)
    #[pyo3(signature = (n, seed=None))]
    fn sample(&self, py: Python<'_>, n: i64, seed: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let leaves = self.core().len();
        if !usize::try_from(n).is_ok_and(|n| (1..=leaves).contains(&n)) {
            return Err(Class::Option.error(format!("n is {n}: it must be from 1 to {leaves}, the number of leaves")));
        }
        let generator = module(py, "numpy.random")?.call_method1("default_rng", (seed,))?;
        let options = [("replace", false), ("shuffle", false)].into_py_dict(py)?;
        let drawn = generator.call_method("choice", (leaves, n), Some(&options))?;
        let mut mask = vec![false; leaves];
        for index in drawn.extract::<PyReadonlyArray1<'_, i64>>()?.as_array() {
            mask[*index as usize] = true;
        }
        let trie = self.core();
        Ok(Self::new(released(py, || trie.select(|leaf| mask[leaf.index()]))?))
    }
}

impl Trie {
    fn combine(&self, py: Python<'_>, operation: SetOperation, other: &Self) -> Result<Self> {
        let (one, other) = (self.core(), other.core());
        Ok(Self::new(released(py, || one.combine(operation, other))?))
    }

    fn combine_all(&self, operation: SetOperation, others: &Bound<'_, PyTuple>) -> Result<Self> {
        let py = others.py();
        let (one, others) = (self.core().clone(), tries(others)?);
        let all = || others.iter().try_fold(one, |one, other| one.combine(operation, other));
        Ok(Self::new(released(py, all)?))
    }

    fn ask(&self, keep: &Bound<'_, PyAny>) -> Result<Vec<bool>> {
        let ask = |leaf| {
            let leaf = (Leaf::from(leaf),).into_pyobject(keep.py())?;
            Ok(called(keep, &leaf, None)?.is_truthy()?)
        };
        self.whole(keep.py())?.leaves().map(ask).collect()
    }

    fn mask(&self, keep: &Bound<'_, PyAny>) -> Result<Vec<bool>> {
        let mask = if let Ok(array) = keep.cast::<PyUntypedArray>() {
            let Ok(mask) = keep.extract::<PyReadonlyArray1<'_, bool>>() else {
                let (dtype, shape) = (array.dtype(), array.shape());
                let message = format!(
                    "a mask must be a one-dimensional bool array, not one of dtype {dtype} and shape {shape:?}"
                );
                return Err(PyTypeError::new_err(message).into());
            };
            mask.as_array().to_vec()
        } else if keep.cast::<PyList>().is_ok() {
            keep.extract()?
        } else {
            let (shown, name) = (shown(keep), type_name(keep));
            let message = format!("keep must be a function or a bool array, not {shown} of type {name}");
            return Err(PyTypeError::new_err(message).into());
        };
        let leaves = self.core().len();
        if mask.len() == leaves {
            Ok(mask)
        } else {
            Err(Error::Array(format!("a mask of {} for {leaves} leaves: give one bool each", mask.len())))
        }
    }
}

fn tries(others: &Bound<'_, PyTuple>) -> Result<Vec<trie_core::Trie>> {
    let trie = |other: Bound<'_, PyAny>| match other.cast::<Trie>() {
        Ok(trie) => Ok(trie.get().core().clone()),
        Err(_) => {
            Err(PyTypeError::new_err(format!("only a Trie can be combined with one, not {}", type_name(&other))).into())
        }
    };
    others.iter().map(trie).collect()
}

//! Properties of a sampler's state.

use crate::errors::Result;
use crate::rows::sampler::Sampler;
use crate::trie::Trie;
use crate::trie::leaf::{Leaf, fields_of};
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pymethods]
impl Sampler {
    /// str: "active" inside a value, "complete" after it, "idle" when deactivated, "off" after something else was
    /// accepted.
    #[getter]
    fn state(&self, py: Python<'_>) -> Result<&'static str> {
        Ok(self.lock(py)?.status().as_str())
    }

    /// Leaf | None: the value, once complete; of a Sequence the last.
    #[getter]
    fn leaf(&self, py: Python<'_>) -> Result<Option<Leaf>> {
        Ok(self.lock(py)?.span().leaf().map(Leaf::from))
    }

    /// list[Leaf]: the values known so far, in their order: of a Sequence one for each set that is complete.
    #[getter]
    fn leaves(&self, py: Python<'_>) -> Result<Vec<Leaf>> {
        Ok(self.lock(py)?.span().leaves().into_iter().map(Leaf::from).collect())
    }

    /// dict[str, str]: the texts that were filled into a Form so far, by name; empty elsewhere.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let leaves = self.lock(py)?.span().leaves();
        let values = PyDict::new(py);
        fields_of(&leaves).into_iter().try_for_each(|(name, value)| values.set_item(name, value))?;
        Ok(values)
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
        self.walking(py, |sampler| sampler.span().is_open())
    }

    /// int: tokens thought so far behind a ThinkGate, without its markers; 0 for other constraints.
    #[getter]
    fn thinking(&self, py: Python<'_>) -> Result<usize> {
        Ok(self.lock(py)?.span().thought().tokens)
    }

    /// int: how often every legal logit was -inf or NaN, so that the lowest legal id was chosen.
    #[getter]
    fn starved(&self, py: Python<'_>) -> Result<u64> {
        Ok(self.lock(py)?.starved_count())
    }

    /// str: path of the trie that is walked; empty where the constraint is not a payload.
    #[getter]
    fn path(&self, py: Python<'_>) -> Result<String> {
        Ok(self.lock(py)?.span().path().to_owned())
    }

    /// list[str]: the paths that `activate` knows.
    #[getter]
    fn paths(&self, py: Python<'_>) -> Result<Vec<String>> {
        Ok(self.lock(py)?.span().rules().constraints().iter().map(|(path, _)| path.clone()).collect())
    }

    /// Trie | None: the trie that is walked; None for another kind of constraint.
    #[getter]
    fn trie(&self, py: Python<'_>) -> Result<Option<Trie>> {
        Ok(self.lock(py)?.span().constraint().as_trie().cloned().map(Trie::new))
    }

    /// int: seed of the draw: the one given, or the one taken from the operating system.
    #[getter]
    fn seed(&self, py: Python<'_>) -> Result<u32> {
        Ok(self.lock(py)?.seed())
    }
}

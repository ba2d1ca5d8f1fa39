//! Prefix tables, from text, a mapping or a file, and what a set weighs.

use crate::convert::gil::{interruptible, released};
use crate::errors::{Class, Error, Result, warn};
use crate::exit::called;
use crate::trie::Trie;
use crate::trie::payload::with_text;
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trie_formats::{FileError, PrefixTable, PrefixTableError, PrefixTableReport, Strictness};

#[pymethods]
impl Trie {
    /// Reads a prefix table, the JSON from which RTP-LLM's tree decoding is run.
    ///
    /// It has `start_token_id` (225), `end_token_id` (2), `sep` ("_") and `prefix_dict`, which lists for each
    /// path, as "225_64000", the tokens that may follow. A listed token without a list of its own, or with an
    /// empty one, allows only the end token. The end token in a list says that a value may end there.
    /// `prefix_weight_dict` lists "token:weight" and then counts alone: each weight is added to the logit of
    /// its token. Other fields are skipped. Cost: one pass over the text and one sort of the keys; a file is
    /// read as it comes and never held as text.
    ///
    /// Args:
    ///     table: JSON text (str or bytes), the same as a mapping, or a path (os.PathLike) of a file.
    ///     strict: refuse what could not mean what its writer meant: no key of the start, a key that cannot be
    ///         reached, is none or comes twice, an id outside 0 to 2**31 - 1, a token with two weights. If False, the
    ///         start's tokens are taken from the keys of depth one where it has no key, the rest is skipped, and
    ///         `report` counts.
    ///
    /// Returns:
    ///     Trie. Its leaves are the paths without start and end token, its `end_tokens` the end token.
    ///
    /// Raises:
    ///     PayloadError: the JSON is bad (it says line, column and key), `strict` refuses an entry (it says key and
    ///         value), or nothing but the end could be said.
    ///     OSError: what the operating system says of the file.
    ///     TypeError: `table` is something else.
    ///
    /// Example:
    ///     >>> table = {"start_token_id": 1, "end_token_id": 2, "prefix_dict": {"1": [5, 6], "1_5": [7]}}
    ///     >>> trie = tokentrie.Trie.from_prefix_table(table)
    ///     >>> [leaf.tokens for leaf in trie], trie.end_tokens.tolist()
    ///     ([[5, 7], [6]], [2])
    #[staticmethod]
    #[pyo3(signature = (table, *, strict=true))]
    fn from_prefix_table(table: &Bound<'_, PyAny>, strict: bool) -> Result<Self> {
        let strictness = if strict { Strictness::Strict } else { Strictness::Repair };
        let py = table.py();
        let read = if is_text(table) || table.is_instance_of::<PyDict>() {
            with_text(table, |text| hinted(table, text, released(py, || PrefixTable::from_json(text, strictness))))?
        } else if table.hasattr("__fspath__")? {
            of_file(py, &table.extract::<PathBuf>()?, strictness)?
        } else if table.cast::<PyMapping>().is_ok() {
            let dict = called(py.get_type::<PyDict>().as_any(), &(table,).into_pyobject(py)?, None)?;
            with_text(&dict, |text| Ok(released(py, || PrefixTable::from_json(text, strictness))?))?
        } else {
            let kind = crate::convert::ids::type_name(table);
            let message = format!("a prefix table must be JSON text (str or bytes), a mapping or a path, not {kind}");
            return Err(PyTypeError::new_err(message).into());
        };
        Ok(Self::of_table(read))
    }

    /// bool: whether tokens have weights, which `Sampler`, `Model.generate` and callbacks add to their logits. Only
    /// `from_prefix_table` gives some. Bit masks and `Model.choose` know nothing of them, and warn. Files, pickles,
    /// `filter` and the set operations keep them.
    #[getter]
    fn is_weighted(&self) -> bool {
        self.core().is_weighted()
    }

    /// Returns the biases on the logits of the tokens that may follow a prefix.
    ///
    /// Args:
    ///     prefix: token ids; the root if None.
    ///
    /// Returns:
    ///     float32 [k], one for each id of `allowed(prefix)`; zeros where the set has no weights.
    ///
    /// Raises:
    ///     TokenNotAllowedError: the prefix leaves the trie.
    ///
    /// Example:
    ///     >>> table = {"prefix_weight_dict": {"225": ["7:0.5", "8:-1"]}}
    ///     >>> tokentrie.Trie.from_prefix_table(table).weights()
    ///     array([ 0.5, -1. ], dtype=float32)
    #[pyo3(signature = (prefix=None))]
    fn weights<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<f32>>> {
        let at = self.walk(prefix)?;
        let weights = match self.core().weights(at) {
            [] => vec![0.0; self.core().children(at).len()],
            weights => weights.to_vec(),
        };
        Ok(PyArray1::from_vec(py, weights))
    }

    /// Returns the bias on the logit of an end token after these tokens.
    ///
    /// Args:
    ///     tokens: token ids.
    ///
    /// Returns:
    ///     float; 0.0 where no value ends or the set has no weights.
    ///
    /// Raises:
    ///     TokenNotAllowedError: the tokens leave the trie.
    ///
    /// Example:
    ///     >>> table = {"prefix_weight_dict": {"225": ["7:0.5"], "225_7": ["2:3.5", "8:1"]}}
    ///     >>> tokentrie.Trie.from_prefix_table(table).end_weight([7])
    ///     3.5
    fn end_weight(&self, tokens: &Bound<'_, PyAny>) -> Result<f32> {
        Ok(self.core().end_weight(self.walk(Some(tokens))?))
    }

    /// The same values without weights. Cost: O(1).
    ///
    /// Returns:
    ///     Trie. It is equal only to tries without weights.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_prefix_table({"prefix_weight_dict": {"225": ["7:0.5", "8:-1"]}})
    ///     >>> trie.without_weights().is_weighted
    ///     False
    fn without_weights(&self) -> Self {
        Self::new(self.core().clone().without_weights())
    }
}

fn is_text(table: &Bound<'_, PyAny>) -> bool {
    table.is_instance_of::<PyString>() || table.is_instance_of::<pyo3::types::PyBytes>()
}

/// A text that was meant as the name of a file is told so.
fn hinted(
    table: &Bound<'_, PyAny>,
    text: &[u8],
    read: std::result::Result<PrefixTable, PrefixTableError>,
) -> Result<PrefixTable> {
    let is_name = table.is_instance_of::<PyString>() && !text.contains(&b'{');
    read.map_err(|error| match error {
        PrefixTableError::Malformed { .. } if is_name => {
            Class::Payload.error(format!("{error} (a str is JSON text: give a file as a pathlib.Path)"))
        }
        error => error.into(),
    })
}

fn of_file(py: Python<'_>, path: &Path, strictness: Strictness) -> Result<PrefixTable> {
    let io = |action| move |source| Error::from(FileError::Io { path: path.to_owned(), action, source });
    interruptible(py, |stop| {
        let file = File::open(path).map_err(io("open"))?;
        PrefixTable::read(Stoppable { file, stop }, strictness).map_err(|error| match error {
            PrefixTableError::Read(source) => io("read")(source),
            error => Class::Payload.error(format!("{}: {error}", path.display())),
        })
    })?
}

/// A file whose reading ends when the caller wants it to.
struct Stoppable<'s> {
    file: File,
    stop: &'s (dyn Fn() -> bool + Sync),
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Not `Interrupted`, which is tried again.
        if (self.stop)() { Err(io::Error::other("stopped")) } else { self.file.read(into) }
    }
}

/// Converts the report on a table for `Trie.report`.
pub(crate) fn report<'py>(py: Python<'py>, report: &PrefixTableReport) -> PyResult<Bound<'py, PyDict>> {
    let PrefixTableReport {
        keys,
        weighted,
        ignored_keys,
        derived_root,
        bad_keys,
        bad_ids,
        duplicate_keys,
        two_weights,
        unreachable,
        empty_values,
        dead_ends,
        after_end,
        skipped,
    } = report;
    let dict = PyDict::new(py);
    dict.set_item("weighted", weighted)?;
    dict.set_item("derived_root", derived_root)?;
    for (name, count) in [
        ("keys", keys),
        ("ignored_keys", ignored_keys),
        ("bad_keys", bad_keys),
        ("bad_ids", bad_ids),
        ("duplicate_keys", duplicate_keys),
        ("two_weights", two_weights),
        ("unreachable", unreachable),
        ("empty_values", empty_values),
        ("dead_ends", dead_ends),
        ("after_end", after_end),
    ] {
        dict.set_item(name, count)?;
    }
    dict.set_item("skipped", skipped.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(dict)
}

/// Why masks of bits warn of weights.
pub(crate) const NOT_IN_BITS: &str = "a bit mask cannot hold: apply and sample add them";

/// Why `choose` warns of weights.
pub(crate) const NOT_IN_PROBABILITIES: &str = "the model's own probabilities do not have in them";

/// Says that weights do not act here.
pub(crate) fn warn_unweighted(py: Python<'_>, weighted: bool, what: &str) -> PyResult<()> {
    if !weighted {
        return Ok(());
    }
    warn(py, &format!("the set has weights, which {what}; trie.without_weights() is the same set without them"))
}

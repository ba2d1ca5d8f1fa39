//! A user's function of token prefixes as a host: what it returns, as rows of logits.

use crate::convert::buffer::{Logits, over_logits};
use crate::convert::ids::{token, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::called;
use crate::rows::pace::Pace;
use crate::vocab::VocabArg;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};
use trie_core::{Logit, Rows, TokenId, log_add};

/// Answer of the function for some prefixes.
pub(crate) enum Answer<'py> {
    /// A table of logits.
    Table(Logits<'py>),
    /// Rows of singles, made of log-probabilities of some tokens; the last entry of each is that of all others.
    Listed(Vec<f32>),
}

/// The function, and what is known of its rows.
pub(crate) struct Scorer<'py> {
    function: Bound<'py, PyAny>,
    name: &'static str,
    n_vocab: usize,
    listed: bool,
    /// Answer for the empty prefix, until it is used.
    first: Option<Answer<'py>>,
    pub(crate) pace: Pace<'py>,
}

impl<'py> Scorer<'py> {
    /// Asks the function for the row after no tokens: that tells how wide rows are where no vocabulary is given.
    /// `least` is the least size that the set needs.
    ///
    /// # Errors
    /// What the function raises, `TypeError` and `ValueError` for rows that are none.
    pub(crate) fn new(
        function: &Bound<'py, PyAny>,
        name: &'static str,
        vocab: Option<&VocabArg<'_>>,
        least: usize,
        pace: Pace<'py>,
    ) -> Result<Self> {
        if !function.is_callable() {
            let message = format!("{name} must be a function of token prefixes, not {}", type_name(function));
            return Err(PyTypeError::new_err(message).into());
        }
        let function = function.clone();
        let n_vocab = vocab.map_or(least, VocabArg::size);
        let mut scorer = Self { function, name, n_vocab, listed: false, first: None, pace };
        let answer = scorer.call(&[Vec::new()], |given| {
            Ok(given.cast::<PyList>().is_ok_and(|rows| rows.get_item(0).is_ok_and(|row| row.cast::<PyDict>().is_ok())))
        })?;
        if let (Answer::Table(table), None) = (&answer, vocab) {
            scorer.n_vocab = table.width();
        }
        scorer.first = Some(answer);
        Ok(scorer)
    }

    /// Returns the number of ids that rules cover: including the one for all others, if only some are listed.
    pub(crate) fn n_ids(&self) -> usize {
        self.n_vocab + usize::from(self.listed)
    }

    /// Rows after these prefixes, one for each.
    ///
    /// # Errors
    /// What the function raises, `TypeError` and `ValueError` for rows that are none, or not one a prefix; that the
    /// search is ended.
    pub(crate) fn rows(&mut self, prefixes: &[Vec<TokenId>]) -> Result<Answer<'py>> {
        let (listed, width) = (self.listed, self.n_ids());
        // No row is asked for twice.
        let known = self.first.take_if(|_| prefixes.first().is_some_and(Vec::is_empty));
        match known {
            None => self.call(prefixes, |_| Ok(listed)),
            Some(first) if prefixes.len() == 1 => Ok(first),
            Some(first) => {
                let mut rows = first.into_singles(width)?;
                rows.extend(self.call(&prefixes[1..], |_| Ok(listed))?.into_singles(width)?);
                Ok(Answer::Listed(rows))
            }
        }
    }

    fn call(
        &mut self,
        prefixes: &[Vec<TokenId>],
        is_listed: impl FnOnce(&Bound<'py, PyAny>) -> Result<bool>,
    ) -> Result<Answer<'py>> {
        let py = self.function.py();
        self.pace.check()?;
        let lists = prefixes.iter().map(|prefix| prefix.iter().map(|token| token.get()).collect::<Vec<u32>>());
        let arguments = PyTuple::new(py, [PyList::new(py, lists.collect::<Vec<_>>())?])?;
        let given = called(&self.function, &arguments, None)?;
        self.pace.read(prefixes.len())?;
        self.listed = is_listed(&given)?;
        if self.listed {
            return self.listed(&given, prefixes.len()).map(Answer::Listed);
        }
        let table = Logits::new(&given).map_err(|error| error.at(&format!("what {} returned: ", self.name)))?;
        let (count, width) = (table.count(), table.width());
        if count != prefixes.len() {
            let message = format!("{} returned {count} rows for {} prefixes", self.name, prefixes.len());
            return Err(Error::Array(message));
        }
        if width < self.n_vocab {
            let message = format!("{} returned rows of {width} entries: {} are needed", self.name, self.n_vocab);
            return Err(Error::Array(message));
        }
        Ok(Answer::Table(table))
    }

    /// Rows that only some log-probabilities are known of.
    fn listed(&self, given: &Bound<'py, PyAny>, prefixes: usize) -> Result<Vec<f32>> {
        let name = self.name;
        let wrong = |row: usize, what: &str| Error::Array(format!("row {row} of what {name} returned: {what}"));
        let rows = given.cast::<PyList>().map_err(|_| wrong(0, "a list of dict was wanted, as before"))?;
        if rows.len() != prefixes {
            let message = format!("{name} returned {} rows for {prefixes} prefixes", rows.len());
            return Err(Error::Array(message));
        }
        let width = self.n_vocab + 1;
        let mut made = vec![f32::NEG_INFINITY; width * prefixes];
        for (row, (given, entries)) in rows.iter().zip(made.chunks_exact_mut(width)).enumerate() {
            let Ok(given) = given.cast::<PyDict>() else {
                let what = format!("a dict of log-probabilities by token id was wanted, not {}", type_name(&given));
                return Err(wrong(row, &what));
            };
            let mut known = f64::NEG_INFINITY;
            for (id, logprob) in given.iter() {
                if !id.is_instance_of::<PyInt>() && !id.hasattr("__index__")? {
                    let what = format!("keys are token ids, not {}", type_name(&id));
                    return Err(PyTypeError::new_err(format!("row {row} of what {name} returned: {what}")).into());
                }
                let id = token(&id, || format!("row {row} of what {name} returned: "))?;
                let logprob: f64 = logprob.extract().map_err(|_| wrong(row, "values are numbers"))?;
                // A little above 0 is rounding.
                if logprob.is_nan() || logprob > 1e-3 {
                    let what = format!("token {id} has the log-probability {logprob}: it must be at most 0");
                    return Err(wrong(row, &what));
                }
                known = log_add(known, logprob.min(0.0));
                // What no value needs counts as one of the others.
                if let Some(entry) = entries[..width - 1].get_mut(id.index()) {
                    *entry = logprob.min(0.0) as f32;
                }
            }
            let kept = entries.iter().fold(f64::NEG_INFINITY, |sum, &entry| log_add(sum, f64::from(entry)));
            // A row that lists nothing says nothing of what it leaves out either.
            if known > f64::NEG_INFINITY {
                entries[width - 1] = (1.0 - kept.exp()).max(0.0).ln() as f32;
            }
            if known > 1e-3 {
                let what = format!("its probabilities add up to {:.3}", known.exp());
                return Err(wrong(row, &what));
            }
        }
        Ok(made)
    }
}

impl Answer<'_> {
    /// The first `n_ids` numbers of each row as singles, one row after the other.
    ///
    /// # Errors
    /// Rows that are too narrow.
    pub(crate) fn into_singles(self, n_ids: usize) -> Result<Vec<f32>> {
        fn singles<L: Logit>(rows: Rows<'_, L>, n_ids: usize) -> Vec<f32> {
            let mut all = Vec::with_capacity(rows.count() * n_ids);
            let mut wide = Vec::new();
            (0..rows.count()).for_each(|row| all.extend_from_slice(L::widen(&rows.row(row)[..n_ids], &mut wide)));
            all
        }
        match self {
            Self::Listed(rows) => Ok(rows),
            Self::Table(table) if table.width() < n_ids => {
                Err(Class::Option.error(format!("rows of {} entries: {n_ids} are needed", table.width())))
            }
            Self::Table(table) => Ok(over_logits!(Logits, &table, rows => singles(rows, n_ids))),
        }
    }
}

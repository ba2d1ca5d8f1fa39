//! A search over a user's function, between two calls of it: what ends the search, and who hears how far it is.

use crate::call::{CancelToken, begun, ended};
use crate::convert::ids::type_name;
use crate::errors::Result;
use crate::exit::{called, module};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use tokentrie::call::{Call, CallOptions};

/// Cancellation of a search, and its progress.
pub(crate) struct Pace<'py> {
    call: Call,
    tell: Option<Bound<'py, PyAny>>,
    /// The bar that is shown, a context manager of Python's.
    bar: Option<Bound<'py, PyAny>>,
    /// Rows that were read.
    done: usize,
    /// Rows that there are, where that is known.
    pub(crate) total: Option<usize>,
}

impl<'py> Pace<'py> {
    /// From now on. `progress` is None, a bool or a function.
    ///
    /// # Errors
    /// `TypeError` for another `progress`, `OptionError` for a time that is none.
    pub(crate) fn begun(
        cancel: Option<&Bound<'py, CancelToken>>,
        timeout: Option<f64>,
        progress: Option<&Bound<'py, PyAny>>,
        what: &str,
    ) -> Result<Self> {
        let mut pace = Self {
            call: begun(cancel, CallOptions { timeout, ..CallOptions::default() })?,
            tell: None,
            bar: None,
            done: 0,
            total: None,
        };
        let Some(progress) = progress else { return Ok(pace) };
        if progress.is_callable() {
            pace.tell = Some(progress.clone());
        } else if !progress.is_instance_of::<PyBool>() {
            let message = format!("progress must be True, False or a function, not {}", type_name(progress));
            return Err(PyTypeError::new_err(message).into());
        } else if progress.is_truthy()? {
            let bar = module(progress.py(), "tokentrie.cli.console")?.call_method1("progress", (what,))?;
            pace.tell = Some(bar.call_method0("__enter__")?);
            pace.bar = Some(bar);
        }
        Ok(pace)
    }

    /// Returns the handle that may end it.
    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// Checks that it may continue.
    ///
    /// # Errors
    /// `CancelledError` or `TimedOutError`.
    pub(crate) fn check(&self) -> Result<()> {
        let rows = if self.done == 1 { "row" } else { "rows" };
        let after = || format!("after {} {rows} of logits, before there was a result", self.done);
        self.call.ended().map_or(Ok(()), |_| Err(ended(&self.call, &after())))
    }

    /// So many more rows were read.
    ///
    /// # Errors
    /// What the function raises that is told.
    pub(crate) fn read(&mut self, rows: usize) -> Result<()> {
        self.done += rows;
        if let Some(tell) = &self.tell {
            let arguments = PyTuple::new(tell.py(), [Some(self.done), self.total])?;
            called(tell, &arguments, None)?;
        }
        Ok(())
    }
}

impl Drop for Pace<'_> {
    fn drop(&mut self) {
        let Some(bar) = self.bar.take() else { return };
        let none = bar.py().None();
        // A result is not lost because the bar failed.
        let _ = bar.call_method1("__exit__", (&none, &none, &none));
    }
}

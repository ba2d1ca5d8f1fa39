//! Errors of a rule: exceptions of a user's, and problems of the libraries below.

use crate::convert::gil::raise_pending;
use crate::errors::{Class, Error, Result};
use pyo3::prelude::*;
use std::fmt;
use tokentrie::constraint::{AnyRule, ByRuleError, DeadEnd};
use trie_core::Problem;
use trie_core::work::LimitExceeded as Ended;

/// An exception that a rule of a user's raised.
#[derive(Debug)]
pub(crate) struct Raised(PyErr);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Raised {}

impl Raised {
    pub(crate) fn of(error: PyErr) -> Self {
        Self(error)
    }

    /// Returns the exception itself.
    pub(crate) fn again(&self) -> PyErr {
        Python::attach(|py| self.0.clone_ref(py))
    }
}

impl From<ByRuleError> for Error {
    fn from(error: ByRuleError) -> Self {
        match error {
            ByRuleError::Failed(problem) => of_problem(&problem, String::new()),
            ByRuleError::Unspellable { .. } | ByRuleError::NoWay { .. } => Class::Vocabulary.error(error.to_string()),
            ByRuleError::Nothing { .. } => Class::Rule.error(error.to_string()),
        }
    }
}

/// Raises the pending error of a rule on this thread.
///
/// # Errors
/// What a rule of a user's raised, or did.
pub(crate) fn heard(rule: &dyn AnyRule) -> Result<()> {
    rule.take_failure().map_or(Ok(()), |problem| Err(of_problem(&problem, String::new())))
}

/// Converts an error inside a constraint: an exception of a user's is raised unchanged. `message` says where.
pub(crate) fn of_problem(problem: &Problem, message: String) -> Error {
    if let Some(raised) = problem.downcast_ref::<Raised>() {
        return Error::Python(raised.again());
    }
    if let (Some(Ended::Stopped), Err(raised)) = (problem.downcast_ref(), raise_pending()) {
        return raised;
    }
    let of_rule = problem.downcast_ref::<DeadEnd>().is_some()
        || problem.downcast_ref::<Ended>().is_some()
        || tokentrie::constraint::is_of_rule(problem);
    let class = if of_rule { Class::Rule } else { Class::Base };
    class.error(if message.is_empty() { problem.to_string() } else { message })
}

/// An error of ours through a crate that does not know Python.
pub(crate) fn problem(error: Error) -> Problem {
    Problem::new(Raised::of(error.into()))
}

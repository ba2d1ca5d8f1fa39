//! A rule that a user wrote in Python. Each state is asked once for each byte, and once whether a text ends there.

use crate::convert::asking::asking;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::{attached_or_fail, called, items};
use crate::rule::problem::{Raised, of_problem};
use pyo3::PyVisit;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokentrie::constraint::Rule;
use trie_core::Problem;
use trie_core::work::over;

/// A state that a rule has not, because asking it failed.
const NONE: u32 = u32::MAX;

/// More states than a rule may have: a rule that never comes back to one is asked for ever.
const MOST_STATES: usize = 1 << 18;

/// Numbers that `allowed_bytes` may give: some come twice.
const MOST_ALLOWED: usize = 1024;

thread_local! {
    /// Pending error of a call into Python on this thread.
    static FAILED: RefCell<Option<Problem>> = const { RefCell::new(None) };
}

/// A user's object and what it answered.
#[derive(Clone)]
pub(crate) struct UserRule(Arc<Asked>);

struct Asked {
    object: Py<PyAny>,
    start: u32,
    /// States by number, and their numbers.
    numbers: Py<PyDict>,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    states: Vec<Py<PyAny>>,
    /// For each state, whether a text ends there.
    ends: Vec<Option<bool>>,
    /// Allowed bytes of each state, if the rule lists them.
    allowed: Vec<Option<Box<[bool; 256]>>>,
    /// After each state by each byte that was asked; of bytes that lead nowhere only that they were asked.
    steps: Vec<Steps>,
}

#[derive(Default)]
struct Steps {
    asked: [u64; 4],
    /// Transitions, ascending by byte.
    after: Vec<(u8, u32)>,
}

impl Steps {
    fn get(&self, byte: u8) -> Option<u32> {
        if self.asked[usize::from(byte / 64)] >> (byte % 64) & 1 == 0 {
            return None;
        }
        let at = self.after.binary_search_by_key(&byte, |&(byte, _)| byte);
        Some(at.map_or(NONE, |at| self.after[at].1))
    }

    fn put(&mut self, byte: u8, after: u32) {
        self.asked[usize::from(byte / 64)] |= 1 << (byte % 64);
        if let (true, Err(at)) = (after != NONE, self.after.binary_search_by_key(&byte, |&(byte, _)| byte)) {
            self.after.insert(at, (byte, after));
        }
    }
}

impl fmt::Debug for UserRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UserRule").field(&self.0.object).finish()
    }
}

impl UserRule {
    /// # Errors
    /// What `start` raises, and a state that is not hashable.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Self> {
        let py = object.py();
        let asked = Asked {
            object: object.clone().unbind(),
            start: 0,
            numbers: PyDict::new(py).unbind(),
            answers: Mutex::default(),
        };
        let start = Asked::ask(|py| {
            let start = call(py, &asked.object, "start", None, None)?;
            asked.number(&start)
        })?;
        Ok(Self(Arc::new(Asked { start, ..asked })))
    }

    /// Raises the pending exception of this thread.
    ///
    /// # Errors
    /// The exception.
    pub(crate) fn raised() -> Result<()> {
        match FAILED.take() {
            Some(problem) => Err(of_problem(&problem, String::new())),
            None => Ok(()),
        }
    }

    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), pyo3::PyTraverseError> {
        visit.call(&self.0.object)?;
        visit.call(&self.0.numbers)?;
        let Ok(answers) = self.0.answers.try_lock() else { return Ok(()) };
        answers.states.iter().try_for_each(|state| visit.call(state))
    }
}

/// Calls a method of a rule.
fn call<'py>(
    py: Python<'py>,
    object: &Py<PyAny>,
    method: &str,
    state: Option<Py<PyAny>>,
    byte: Option<u8>,
) -> PyResult<Bound<'py, PyAny>> {
    let method = object.bind(py).getattr(method)?;
    let arguments = match (state, byte) {
        (Some(state), Some(byte)) => (state, byte).into_pyobject(py)?,
        (Some(state), None) => (state,).into_pyobject(py)?.into_any().cast_into()?,
        _ => PyTuple::empty(py),
    };
    called(&method, &arguments, None)
}

impl Asked {
    /// Never held while Python runs.
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, number: u32) -> Option<Py<PyAny>> {
        Python::attach(|py| self.answers().states.get(number as usize).map(|state| state.clone_ref(py)))
    }

    /// The number of a state.
    fn number(&self, state: &Bound<'_, PyAny>) -> PyResult<u32> {
        let py = state.py();
        let numbers = self.numbers.bind(py);
        let known = numbers.get_item(state).map_err(|error| {
            if !error.is_instance_of::<PyTypeError>(py) {
                return error;
            }
            let message = format!("a state must be hashable, not {} of type {}", shown(state), type_name(state));
            let raised = PyTypeError::new_err(message);
            raised.set_cause(py, Some(error));
            raised
        })?;
        if let Some(known) = known {
            return known.extract();
        }
        let mut answers = self.answers();
        let number = answers.states.len();
        if number >= MOST_STATES {
            drop(answers);
            let message = format!(
                "the rule has more than {MOST_STATES} states: let states be equal where they allow the same, and bound \
                 what they count"
            );
            return Err(Class::Rule.error(message).into());
        }
        answers.states.push(state.clone().unbind());
        answers.ends.push(None);
        answers.steps.push(Steps::default());
        answers.allowed.push(None);
        drop(answers);
        numbers.set_item(state, number)?;
        Ok(number as u32)
    }

    /// Runs a call into Python.
    fn ask<T>(question: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
        asking(|| attached_or_fail::<T, PyErr>(question)).map_err(Error::from)
    }

    /// Asks Python, and keeps what it raises for whoever wanted to know.
    fn answer<T>(question: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if FAILED.with_borrow(Option::is_some) {
            return None;
        }
        let failed = |error: Error| FAILED.set(Some(Problem::new(Raised::of(error.into()))));
        Self::ask(question).map_err(failed).ok()
    }

    /// Reads the allowed bytes, if the rule lists them.
    fn allowed(&self, py: Python<'_>, number: u32, state: &Py<PyAny>) -> PyResult<()> {
        if self.answers().allowed[number as usize].is_some() {
            return Ok(());
        }
        let mut bytes = Box::new([true; 256]);
        if self.object.bind(py).hasattr("allowed_bytes")? {
            let given = call(py, &self.object, "allowed_bytes", Some(state.clone_ref(py)), None)?;
            *bytes = [false; 256];
            for (number, byte) in items(&given)?.enumerate() {
                let byte = byte?;
                if number >= MOST_ALLOWED {
                    let message = format!("allowed_bytes gave more than {MOST_ALLOWED} numbers: there are 256 bytes");
                    return Err(Class::Rule.error(message).into());
                }
                let Ok(known) = byte.extract::<u8>() else {
                    let message = format!("allowed_bytes gave {}: it must give ints from 0 to 255", shown(&byte));
                    return Err(PyTypeError::new_err(message));
                };
                bytes[usize::from(known)] = true;
            }
        }
        self.answers().allowed[number as usize] = Some(bytes);
        Ok(())
    }
}

impl Rule for UserRule {
    type State = u32;

    fn start(&self) -> u32 {
        self.0.start
    }

    fn step(&self, &number: &u32, byte: u8) -> Option<u32> {
        let known = self.0.answers().steps.get(number as usize).and_then(|steps| steps.get(byte));
        let after = known.or_else(|| {
            let state = self.0.state(number)?;
            let after = Asked::answer(|py| {
                self.0.allowed(py, number, &state)?;
                let may = self.0.answers().allowed[number as usize].as_ref().is_none_or(|may| may[usize::from(byte)]);
                if !may {
                    return Ok(NONE);
                }
                let after = call(py, &self.0.object, "step", Some(state.clone_ref(py)), Some(byte))?;
                if after.is_none() { Ok(NONE) } else { self.0.number(&after) }
            })?;
            if let Some(steps) = self.0.answers().steps.get_mut(number as usize) {
                steps.put(byte, after);
            }
            Some(after)
        })?;
        (after != NONE).then_some(after)
    }

    fn is_end(&self, &number: &u32) -> bool {
        if let Some(known) = self.0.answers().ends.get(number as usize).copied().flatten() {
            return known;
        }
        let Some(state) = self.0.state(number) else { return false };
        let end = Asked::answer(|py| {
            let end = call(py, &self.0.object, "is_end", Some(state), None)?;
            if !end.is_instance_of::<PyBool>() {
                let message = format!("is_end gave {} of type {}: it must give a bool", shown(&end), type_name(&end));
                return Err(PyTypeError::new_err(message));
            }
            end.extract()
        });
        if let Some(end) = end {
            self.0.answers().ends[number as usize] = Some(end);
        }
        end.unwrap_or(false)
    }

    fn failure(&self) -> Option<Problem> {
        FAILED.take().or_else(|| over().map(Problem::new))
    }
}

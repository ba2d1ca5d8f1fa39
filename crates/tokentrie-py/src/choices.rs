//! A set to choose from, and choices over a stream of prompts.

use crate::choice::Choice;
use crate::errors::{Class, Error, Result};
use crate::gil::{Turns, locked};
use crate::model::Model;
use llama_sampler::RuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use trie_core::{TokenId, Trie};

/// What may be chosen, and how much of it is scored.
pub(crate) struct ChoiceSet {
    pub(crate) trie: Trie,
    /// The number of each leaf among the values as they were given; `None` for leaf order.
    pub(crate) order: Option<Arc<[usize]>>,
    pub(crate) end_tokens: Vec<TokenId>,
    pub(crate) top: Option<usize>,
}

/// Iterator over the choices of `Model.choose_many`, in the order of the prompts. Threads may share one: each choice goes to one
/// of them. What a bad prompt raises comes after the choices of the prompts before it.
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Choices {
    model: Py<Model>,
    prompts: Py<PyIterator>,
    set: ChoiceSet,
    turns: Turns,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Choice>,
    /// What is to be raised after them.
    failed: Option<Error>,
    /// Prompts that were read.
    read: usize,
}

impl Choices {
    /// Prompts that are read ahead and decoded together.
    const GROUP: usize = 32;

    pub(crate) fn new(model: Py<Model>, prompts: Py<PyIterator>, set: ChoiceSet) -> Self {
        Self { model, prompts, set, turns: Turns::default(), state: Mutex::default() }
    }

    /// Reads and decodes the next group. What goes wrong is kept for later.
    fn read(&self, py: Python<'_>, read: usize) -> (Vec<Choice>, Option<Error>) {
        let model = self.model.bind(py).get();
        let mut group = Vec::new();
        let mut failed = None;
        for prompt in self.prompts.bind(py).clone().take(Self::GROUP) {
            match prompt.map_err(Error::from).and_then(|prompt| model.prompt(&prompt)) {
                Ok(prompt) => group.push(prompt),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        match model.choose_group(py, &group, &self.set) {
            Ok(Ok(choices)) => (choices, failed),
            Ok(Err(RuntimeError::Prompt { number, error })) => {
                // Those before the bad one are good.
                let before = model.choose_group(py, &group[..number], &self.set);
                let choices = before.ok().and_then(Result::ok).unwrap_or_default();
                (choices, Some(RuntimeError::Prompt { number: read + number, error }.into()))
            }
            Ok(Err(error)) => (Vec::new(), Some(error.into())),
            Err(error) => (Vec::new(), Some(error)),
        }
    }
}

#[pymethods]
impl Choices {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Choice>> {
        let _turn =
            self.turns.take(py, || Class::Model.error("the prompts of `choose_many` must not ask for its choices"))?;
        let (empty, read) = {
            let state = locked(py, &self.state)?;
            (state.ready.is_empty() && state.failed.is_none(), state.read)
        };
        // Reading runs Python code: no lock is held meanwhile, only the turn.
        let fresh = empty.then(|| self.read(py, read));
        let mut state = locked(py, &self.state)?;
        if let Some((choices, failed)) = fresh {
            state.read += choices.len();
            state.ready = choices.into();
            state.failed = failed;
        }
        match state.ready.pop_front() {
            Some(choice) => Ok(Some(choice)),
            None => state.failed.take().map_or(Ok(None), Err),
        }
    }
}

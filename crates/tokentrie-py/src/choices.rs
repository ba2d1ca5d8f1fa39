//! A set to choose from, and choices over a stream of prompts.

use crate::choice::Choice;
use crate::errors::{Class, Error, Result};
use crate::gil::{Turns, locked};
use crate::model::Model;
use crate::strings::Texts;
use llama_sampler::RuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use trie_core::{TokenId, Trie};

/// What may be chosen, and how much of it is scored.
pub(crate) struct ChoiceSet {
    pub(crate) values: Values,
    pub(crate) end_tokens: Vec<TokenId>,
    pub(crate) top: Option<usize>,
    pub(crate) max_rows: Option<usize>,
}

/// Values as they were given.
pub(crate) enum Values {
    /// One set after every prompt.
    Made(Made),
    /// Tokenised with the end of each prompt that is text.
    Texts(Texts),
}

/// Values that are tokens.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) trie: Trie,
    /// The number of each leaf among the values as they were given; `None` for leaf order.
    pub(crate) order: Option<Arc<[usize]>>,
}

/// A prompt and the values after it.
pub(crate) struct Question {
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) set: Made,
}

/// Iterator over the choices of `Model.choose_many`, in the order of the prompts.
///
/// Threads may share one: each choice goes to one of them. What a bad prompt raises comes after the choices of the
/// prompts before it.
///
/// Example:
///     >>> choices = tokentrie.Model().choose_many(["The sky is ", "Roses are "], ["blue", "red"])
///     >>> len([choice.name for choice in choices])
///     2
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
            match prompt.map_err(Error::from).and_then(|prompt| model.question(&prompt, &self.set)) {
                Ok(question) => group.push(question),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        // Those before the first bad one are good.
        let mut good = group.len();
        loop {
            match model.choose_group(py, &group[..good], &self.set) {
                Ok(Ok(choices)) => return (choices, failed),
                Ok(Err(RuntimeError::Prompt { number, error })) if number < good => {
                    good = number;
                    failed = Some(RuntimeError::Prompt { number: read + number, error }.into());
                }
                Ok(Err(error)) => return (Vec::new(), Some(error.into())),
                Err(error) => return (Vec::new(), Some(error)),
            }
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

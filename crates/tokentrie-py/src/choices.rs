//! A set to choose from, and choices over a stream of prompts.

use crate::call::Call;
use crate::choice::Choice;
use crate::errors::{Class, Error, Result};
use crate::gil::{Turns, locked};
use crate::model::Model;
use llama_sampler::{Answers, Question};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::collections::VecDeque;
use std::sync::Mutex;
use trie_core::{ChooseOptions, TokenId};
use trie_text::Values;

/// What may be chosen, and how much of it is scored.
pub(crate) struct ChoiceSet {
    pub(crate) values: Values,
    /// `None`: those that the set brings.
    pub(crate) end_tokens: Option<Vec<TokenId>>,
    pub(crate) top: Option<usize>,
    pub(crate) max_rows: Option<usize>,
}

impl ChoiceSet {
    pub(crate) fn options(&self) -> ChooseOptions<'_> {
        let options = ChooseOptions::new().with_top(self.top).with_max_rows(self.max_rows);
        self.end_tokens.as_deref().map_or(options, |ends| options.with_end_tokens(ends))
    }
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
    call: Call,
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
    pub(crate) fn new(model: Py<Model>, prompts: Py<PyIterator>, set: ChoiceSet, call: Call) -> Self {
        Self { model, prompts, set, call, turns: Turns::default(), state: Mutex::default() }
    }

    /// Reads and decodes the next group. What goes wrong is kept for later.
    fn read(&self, py: Python<'_>, first: usize) -> (Vec<Choice>, Option<Error>) {
        let model = self.model.bind(py).get();
        let prompts = self.prompts.bind(py).clone();
        let question = |prompt: PyResult<Bound<'_, PyAny>>| model.question(&prompt?, &self.set.values);
        let (questions, failed) = Question::read_group(prompts.map(question));
        let answers = model.using(py, None, &self.call, |context, watch| {
            context.choose_until_bad(&questions, first, &self.set.options(), watch)
        });
        match answers {
            Ok(Answers { choices, refused, .. }) => {
                let choices =
                    choices.into_iter().zip(&questions).map(|(choice, asked)| Choice::new(choice, &asked.set));
                (choices.collect(), refused.map(Error::from).or(failed))
            }
            Err(error) => (Vec::new(), Some(error)),
        }
    }
}

#[pymethods]
impl Choices {
    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        Ok(format!("<tokentrie.Choices: {} prompts read>", locked(py, &self.state)?.read))
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Choice>> {
        let _turn = self
            .turns
            .take(py, &self.call, || Class::Model.error("the prompts of `choose_many` must not ask for its choices"))?;
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

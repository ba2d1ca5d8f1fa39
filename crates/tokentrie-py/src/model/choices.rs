//! A set to choose from, and choices over a stream of prompts.

use crate::convert::generic::generic;
use crate::convert::gil::{locked, turn};
use crate::errors::{Class, Error, Result};
use crate::model::choice::Choice;
use crate::model::loaded::Model;
use llama_sampler::{Answers, Question, QuestionScorer, RuntimeError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::collections::VecDeque;
use std::sync::Mutex;
use tokentrie::run::{Call, Choose, Turns};
use trie_text::{ValueSet, Values};

/// What may be chosen, and how much of it is scored.
pub(crate) struct ChoiceSet {
    pub(crate) values: Values,
    pub(crate) choose: Choose,
}

/// What becomes of a bad prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    Raise,
    Skip,
    Return,
}

impl OnError {
    pub(crate) fn read(text: &str) -> Result<Self> {
        match text {
            "raise" => Ok(Self::Raise),
            "skip" => Ok(Self::Skip),
            "return" => Ok(Self::Return),
            other => {
                Err(Class::Option.error(format!("on_error is {other:?}: it must be \"raise\", \"skip\" or \"return\"")))
            }
        }
    }
}

/// Iterator over the choices of `Model.choose_many`, in the order of the prompts.
///
/// Threads may share one: each choice goes to one of them. What a bad prompt raises comes after the choices of the
/// prompts before it; with `on_error="return"` it stands in their order.
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
    on_error: OnError,
    /// Called with the prompts that are done and how many there are.
    progress: Option<(Py<PyAny>, Option<usize>)>,
    call: Call,
    turns: Turns,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Result<Choice, PyErr>>,
    /// What is to be raised after them.
    failed: Option<Error>,
    /// Prompts that were read.
    read: usize,
    /// The numbers of those that were passed over.
    skipped: Vec<usize>,
}

/// What came of a group of prompts.
#[derive(Default)]
struct Group {
    answers: Vec<(usize, Result<Choice>)>,
    /// Prompts that were read.
    read: usize,
    /// What ends the stream.
    failed: Option<Error>,
}

impl Choices {
    pub(crate) fn new(
        model: Py<Model>,
        prompts: Py<PyIterator>,
        set: ChoiceSet,
        on_error: OnError,
        progress: Option<(Py<PyAny>, Option<usize>)>,
        call: Call,
    ) -> Self {
        Self { model, prompts, set, on_error, progress, call, turns: Turns::default(), state: Mutex::default() }
    }

    /// Reads and decodes the next group.
    fn read(&self, py: Python<'_>, first: usize) -> Group {
        let model = self.model.bind(py).get();
        let (mut group, mut questions, mut numbers) = (Group::default(), Vec::new(), Vec::new());
        for prompt in self.prompts.bind(py).clone().take(Question::GROUP) {
            let number = first + group.read;
            let question = match prompt {
                Ok(prompt) => model.question(&prompt, &self.set.values),
                Err(error) => {
                    group.failed = Some(error.into());
                    break;
                }
            };
            group.read += 1;
            match question {
                Ok(question) => {
                    questions.push(question);
                    numbers.push(number);
                }
                Err(error) => match of_prompt(py, number, error) {
                    Ok(error) if self.on_error != OnError::Raise => group.answers.push((number, Err(error))),
                    Ok(error) | Err(error) => {
                        group.failed = Some(error);
                        break;
                    }
                },
            }
        }
        let sets: Vec<ValueSet> = questions.iter().map(|question| question.set.clone()).collect();
        let options = self.set.choose.options();
        let named = |at: usize, error| {
            let number = numbers.get(at).copied().unwrap_or(first + at);
            Error::from(RuntimeError::Prompt { number, error: Box::new(error) })
        };
        if self.on_error == OnError::Raise {
            let answers = model
                .using(py, None, &self.call, |context, watch| context.choose_until_bad(&questions, 0, &options, watch));
            match answers {
                Ok(Answers { choices, refused, .. }) => {
                    let made = choices.into_iter().zip(&sets).map(|(choice, set)| Ok(Choice::new(choice, set)));
                    group.answers.extend(numbers.iter().copied().zip(made));
                    let refused = refused.map(|error| match error {
                        RuntimeError::Prompt { number, error } => named(number, *error),
                        other => Error::from(other),
                    });
                    group.failed = refused.or(group.failed);
                }
                Err(error) => group.failed = Some(error),
            }
        } else {
            match model
                .using(py, None, &self.call, |context, watch| context.choose_or_refuse(questions, &options, watch))
            {
                Ok(answers) => {
                    for (at, (answer, set)) in answers.into_iter().zip(&sets).enumerate() {
                        let made = answer.map(|choice| Choice::new(choice, set)).map_err(|error| named(at, error));
                        group.answers.push((numbers[at], made));
                    }
                    group.answers.sort_unstable_by_key(|&(number, _)| number);
                }
                Err(error) => group.failed = Some(error),
            }
        }
        group
    }

    /// Keeps what came of a group. Returns the prompts that are done.
    fn keep(&self, py: Python<'_>, group: Group) -> Result<usize> {
        let mut state = locked(py, &self.state)?;
        state.read += group.read;
        state.failed = group.failed;
        for (number, answer) in group.answers {
            match answer {
                Ok(choice) => state.ready.push_back(Ok(choice)),
                Err(_) if self.on_error == OnError::Skip => state.skipped.push(number),
                Err(error) => state.ready.push_back(Err(error.into())),
            }
        }
        Ok(state.read)
    }
}

/// Names the prompt that an error comes from. `Err` where it is not the prompt's fault.
fn of_prompt(py: Python<'_>, number: usize, error: Error) -> Result<Error> {
    match error {
        Error::Ours(class @ (Class::Option | Class::Context | Class::Vocabulary), message) => {
            Ok(class.error(format!("prompt {number}: {message}")))
        }
        Error::Array(message) => Ok(Error::Array(format!("prompt {number}: {message}"))),
        Error::Python(error) => {
            let (kind, message) = (error.get_type(py), format!("prompt {number}: {}", error.value(py)));
            let of_value = kind.is(py.get_type::<PyTypeError>()) || kind.is(py.get_type::<PyValueError>());
            if of_value { Ok(PyErr::from_type(kind, message).into()) } else { Err(error.into()) }
        }
        other => Err(other),
    }
}

generic!(Choices);

#[pymethods]
impl Choices {
    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        Ok(format!("<tokentrie.Choices: {} prompts read>", locked(py, &self.state)?.read))
    }

    /// list[int]: the prompts that `on_error="skip"` has passed over so far, by their numbers from 0.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> Result<Vec<usize>> {
        Ok(locked(py, &self.state)?.skipped.clone())
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Py<PyAny>>> {
        let own = || Class::Model.error("the prompts of `choose_many` must not ask for its choices");
        let _turn = turn(py, &self.turns, "choose_many", &self.call, own)?;
        loop {
            let first = {
                let mut state = locked(py, &self.state)?;
                match state.ready.pop_front() {
                    Some(Ok(choice)) => return Ok(Some(Py::new(py, choice)?.into_any())),
                    Some(Err(error)) => return Ok(Some(error.into_value(py).into_any())),
                    None => {}
                }
                if let Some(error) = state.failed.take() {
                    return Err(error);
                }
                state.read
            };
            // Reading runs Python code: no lock is held meanwhile, only the turn.
            let group = self.read(py, first);
            let (read, failed) = (group.read, group.failed.is_some());
            let done = self.keep(py, group)?;
            if read == 0 && !failed {
                return Ok(None);
            }
            if let Some((progress, total)) = self.progress.as_ref().filter(|_| read > 0) {
                progress.call1(py, (done, *total))?;
            }
        }
    }
}

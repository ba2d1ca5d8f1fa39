//! A set to choose from, and choices over a stream of prompts.

mod sequence;

use crate::convert::gil::{locked, made_in, turn};
use crate::errors::{Class, Error, Result};
use crate::model::choice::choice_result;
use crate::model::loaded::Model;
use crate::model::watch::Watch;
use llama_sampler::{Answers, Question, QuestionScorer, RuntimeError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::collections::VecDeque;
use std::sync::Mutex;
use tokentrie::call::{Call, Choose, Turns};
use trie_text::{ValueSet, Values};

/// Values of a choice, and the amount that is scored.
pub(crate) struct ChoiceSet {
    pub(crate) values: Values,
    pub(crate) choose: Choose,
    /// The least probability of a value.
    pub(crate) threshold: Option<f64>,
    /// Chat turn around each prompt.
    pub(crate) turn: Option<Turn>,
    /// Function that makes the value of a name, if there is one.
    pub(crate) reader: Option<Py<PyAny>>,
}

impl ChoiceSet {
    /// Returns a choice among its values as a `Choice`.
    ///
    /// # Errors
    /// As [`choice_result`].
    pub(crate) fn result(&self, py: Python<'_>, choice: &trie_core::Choice, set: &ValueSet) -> Result<Py<PyAny>> {
        let reader = self.reader.as_ref().map(|reader| reader.bind(py));
        Ok(choice_result(py, choice, set, self.threshold, reader)?.unbind())
    }
}

/// A turn of a chat in which a prompt is what the user says.
pub(crate) struct Turn {
    pub(crate) system: String,
    /// Beginning of the answer.
    pub(crate) prefix: String,
}

/// Handling of a bad prompt.
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

/// The choices of `Model.choose_many`, in the order of the prompts: a sequence that is made as it is read.
///
/// Where the prompts have a length (a list, a column), it has one too, takes indices and slices, can be read again, and
/// keeps what was made. Where they are an iterator, it is one, and keeps nothing. `next(choices)` gives each choice
/// once: threads that share one take turns. What a bad prompt raises comes after the choices of the prompts before it;
/// with `on_error="return"` it stands in their order.
///
/// Example:
///     >>> choices = tokentrie.Model().choose_many(["The sky is ", "Roses are "], ["blue", "red"])
///     >>> (len(choices), choices[-1].name in ("blue", "red"))
///     (2, True)
///     >>> [choice.name for choice in choices] == [choice.name for choice in choices[:]]
///     True
#[pyclass(frozen, module = "tokentrie.sets")]
pub(crate) struct Choices {
    model: Py<Model>,
    pub(super) given: Py<PyAny>,
    prompts: Py<PyIterator>,
    /// Number of them, if known.
    pub(super) count: Option<usize>,
    set: ChoiceSet,
    pub(super) on_error: OnError,
    /// Called with the prompts that are done and how many there are.
    progress: Option<Py<PyAny>>,
    call: Call,
    turns: Turns,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Choices, or what was raised in their place: all of them, or those of an iterator that nobody has taken.
    made: VecDeque<Py<PyAny>>,
    /// Number of results that `next` has returned.
    taken: usize,
    /// Exception to raise after them.
    failed: Option<PyErr>,
    /// Prompts that were read.
    read: usize,
    /// True at the end.
    over: bool,
    /// The numbers of those that were passed over.
    skipped: Vec<usize>,
}

/// Results of a group of prompts.
#[derive(Default)]
struct Group {
    answers: Vec<(usize, Result<Py<PyAny>>)>,
    /// Prompts that were read.
    read: usize,
    /// Error that ends the stream.
    failed: Option<Error>,
}

impl Choices {
    pub(crate) fn new(
        model: Py<Model>,
        prompts: &Bound<'_, PyAny>,
        set: ChoiceSet,
        on_error: OnError,
        progress: Option<Py<PyAny>>,
        call: Call,
    ) -> PyResult<Self> {
        let (given, count) = (prompts.clone().unbind(), prompts.len().ok());
        let prompts = PyIterator::from_object(prompts)?.unbind();
        let (turns, state) = (Turns::default(), Mutex::default());
        Ok(Self { model, given, prompts, count, set, on_error, progress, call, turns, state })
    }

    /// Reads and decodes the next group.
    fn read(&self, py: Python<'_>, first: usize) -> Group {
        let model = self.model.bind(py).get();
        let (mut group, mut questions, mut numbers) = (Group::default(), Vec::new(), Vec::new());
        for prompt in self.prompts.bind(py).clone().take(Question::GROUP) {
            let number = first + group.read;
            let question = match prompt {
                Ok(prompt) => made_in(py, &self.call, || model.question(&prompt, &self.set)),
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
        let result = |choice: &trie_core::Choice, set: &ValueSet| self.set.result(py, choice, set);
        let named = |at: usize, error| {
            let number = numbers.get(at).copied().unwrap_or(first + at);
            Error::from(RuntimeError::Prompt { number, error: Box::new(error) })
        };
        if self.on_error == OnError::Raise {
            let answers = model.using(py, Watch::new(&self.call), |context, watch| {
                context.choose_until_bad(&questions, 0, &options, watch)
            });
            match answers {
                Ok(Answers { choices, refused, .. }) => {
                    for ((choice, set), &number) in choices.iter().zip(&sets).zip(&numbers) {
                        match result(choice, set) {
                            Ok(made) => group.answers.push((number, Ok(made))),
                            Err(error) => {
                                group.failed = Some(error);
                                return group;
                            }
                        }
                    }
                    let refused = refused.map(|error| match error {
                        RuntimeError::Prompt { number, error } => named(number, *error),
                        other => Error::from(other),
                    });
                    group.failed = refused.or(group.failed);
                }
                Err(error) => group.failed = Some(error),
            }
        } else {
            match model.using(py, Watch::new(&self.call), |context, watch| {
                context.choose_or_refuse(questions, &options, watch)
            }) {
                Ok(answers) => {
                    for (at, (answer, set)) in answers.into_iter().zip(&sets).enumerate() {
                        let made = answer.map_err(|error| named(at, error)).map(|choice| result(&choice, set));
                        match made {
                            // No fault of the prompt: Ctrl-C, for one.
                            Ok(Err(error)) => {
                                group.failed = Some(error);
                                break;
                            }
                            Ok(Ok(made)) => group.answers.push((numbers[at], Ok(made))),
                            Err(error) => group.answers.push((numbers[at], Err(error))),
                        }
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
        state.over = group.read == 0 && group.failed.is_none();
        state.failed = group.failed.map(PyErr::from);
        for (number, answer) in group.answers {
            match answer {
                Ok(choice) => state.made.push_back(choice),
                Err(_) if self.on_error == OnError::Skip => state.skipped.push(number),
                Err(error) => state.made.push_back(PyErr::from(error).into_value(py).into_any()),
            }
        }
        Ok(state.read)
    }

    /// Makes the choices of a group more. The caller has the turn.
    pub(super) fn more(&self, py: Python<'_>) -> Result<()> {
        let first = locked(py, &self.state)?.read;
        // Reading runs Python code: no lock is held meanwhile, only the turn.
        let group = self.read(py, first);
        let read = group.read;
        let done = self.keep(py, group)?;
        if let Some(progress) = self.progress.as_ref().filter(|_| read > 0) {
            progress.call1(py, (done, self.count))?;
        }
        Ok(())
    }

    pub(super) fn own_turn(&self, py: Python<'_>) -> Result<tokentrie::call::Turn> {
        let own = || Class::Model.error("the prompts of `choose_many` must not ask for its choices");
        turn(py, &self.turns, "choose_many", &self.call, own)
    }

    /// The choice with a number, if there are so many. Only where all are kept.
    pub(super) fn at(&self, py: Python<'_>, number: usize) -> Result<Option<Py<PyAny>>> {
        loop {
            // The first look is for what was made before.
            for turn in [None, Some(())] {
                let _turn = turn.map(|()| self.own_turn(py)).transpose()?;
                let state = locked(py, &self.state)?;
                if let Some(made) = state.made.get(number) {
                    return Ok(Some(made.clone_ref(py)));
                }
                if let Some(failed) = &state.failed {
                    return Err(failed.clone_ref(py).into());
                }
                if state.over {
                    return Ok(None);
                }
                drop(state);
                if turn.is_some() {
                    self.more(py)?;
                }
            }
        }
    }

    /// Returns the number of choices.
    ///
    /// # Errors
    /// `TypeError` where they are an iterator; what making them raises, where only that tells how many are skipped.
    pub(super) fn size(&self, py: Python<'_>, what: &str) -> Result<usize> {
        let Some(count) = self.count else {
            let message = format!(
                "these choices are an iterator, as their prompts are, and have no {what}: give choose_many a list of \
                 prompts, or take list(choices)"
            );
            return Err(PyTypeError::new_err(message).into());
        };
        if self.on_error != OnError::Skip {
            return Ok(count);
        }
        self.at(py, usize::MAX)?;
        Ok(locked(py, &self.state)?.made.len())
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

#[pymethods]
impl Choices {
    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        Ok(format!("<tokentrie.sets.Choices: {} prompts read>", locked(py, &self.state)?.read))
    }

    /// list[int]: the prompts that `on_error="skip"` has passed over so far, by their numbers from 0.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> Result<Vec<usize>> {
        Ok(locked(py, &self.state)?.skipped.clone())
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Py<PyAny>>> {
        let _turn = self.own_turn(py)?;
        loop {
            {
                let mut state = locked(py, &self.state)?;
                let next = match self.count {
                    Some(_) => state.made.get(state.taken).map(|made| made.clone_ref(py)),
                    None => state.made.pop_front(),
                };
                if next.is_some() {
                    state.taken += 1;
                    return Ok(next);
                }
                if let Some(failed) = &state.failed {
                    let failed = failed.clone_ref(py);
                    if self.count.is_none() {
                        state.failed = None;
                    }
                    return Err(failed.into());
                }
                if state.over {
                    return Ok(None);
                }
            }
            self.more(py)?;
        }
    }
}

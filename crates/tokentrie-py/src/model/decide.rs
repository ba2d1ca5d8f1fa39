//! Decisions of a model. Questions as Python says them, and answers as it reads them, are in `tokentrie.decisions`.

use crate::call::OpenCall;
use crate::convert::gil::{asked, made_in};
use crate::errors::{Class, Error};
use crate::exit::{called, module};
use crate::model::loaded::Model;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::time::Instant;
use tokentrie::decide::{Answers, CalibrateError, Calibration, ReadyDecision, Request};
use tokentrie::run::Call;
use trie_core::work::Limits;

/// Calls a function of `tokentrie.decisions` with the arguments of a method.
fn of_decisions<'py>(
    function: &str,
    model: &Bound<'py, Model>,
    about: &Bound<'py, PyAny>,
    questions: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = model.py();
    let function = module(py, "tokentrie.decisions")?.getattr(function)?;
    called(&function, &(model, about, questions).into_pyobject(py)?, options)
}

#[pymethods]
impl Model {
    /// Answers typed questions about a state, each with the exact probability of every option.
    ///
    /// The prompt is the model's own chat template, thinking off: the state, what is asked, the options. Everything in
    /// it is plain text, never a control token. The state is decoded once for all questions, and what one of them asks
    /// changes the answer to no other. `docs/decisions.md` tells which readout is better when.
    ///
    /// Args:
    ///     state: a str; a dict or a list, shown as JSON; or a conversation, a list of messages.
    ///     questions: a dict of questions by name: `bool` asks for yes or no; a list of options, str or bool, or a dict
    ///         of options with what they mean, a Literal or an Enum for one of them; a Score for a level; a Question
    ///         says what is asked, else the name does. Or a pydantic model, a dataclass or a TypedDict of such fields.
    ///     instructions: what all questions are told: a str, or a dict or a list, shown as JSON.
    ///     readout: "text" reads the probability of each option's own text; "label" that of a short label before it.
    ///     list_options: whether the prompt lists the options. Where it does not, their order cannot matter.
    ///     permute: in how many orders options are listed, 1 to 64: the answer is the mean, and `Answer.flips` says how
    ///         often another option wins. Up to 4 options get all their orders. Levels keep theirs.
    ///     prior: "none"; "content-free" divides out what the model says of an empty state, "batch" (of `decide_many`)
    ///         what it says on average: long and rare texts are improbable whatever the state is.
    ///     threshold: the least probability of an answer, 0 to 1; below it the value is None, `Answer.reason` tells.
    ///     top: of a question with more options than can be scored one by one (some 4,000), the best so many are.
    ///     system: the system message; none if None.
    ///     prompt: the user's message, a str with `{state}`, `{instructions}`, `{options}` and `{answer}`.
    ///     calibration: a Calibration of these questions, from `Model.calibrate`, or the path of a saved one: the
    ///         probabilities are those it makes of them.
    ///     cancel: a CancelToken that ends this call.
    ///     timeout: the seconds that it may take, waiting for its turn included.
    ///     priority: an int; with slots, calls of higher priority go first.
    ///
    /// Returns:
    ///     Answers: an Answer for each question, by name.
    ///
    /// Raises:
    ///     OptionError: there is no question, or an option is empty, given twice or out of range; a calibration is for
    ///         another model or other questions.
    ///     TypeError: something cannot be asked.
    ///     ContextError: a prompt does not fit; the question is named.
    ///     TemplateError: the template refuses the conversation.
    ///     CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did.
    ///     ModelError: a forward pass fails, or the model is closed.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> answers = model.decide("Customer: I was charged twice.", {
    ///     ...     "refund": bool,
    ///     ...     "team": ["billing", "access"],
    ///     ...     "anger": tokentrie.Score(["calm", "annoyed", "furious"]),
    ///     ... })
    ///     >>> answers["team"].value in ("billing", "access"), 0 <= answers["refund"].probability <= 1
    ///     (True, True)
    ///     >>> round(sum(answers["anger"].probabilities.values()), 6), 0 <= answers["anger"].value <= 2
    ///     (1.0, True)
    #[pyo3(
        signature = (state, questions, **options),
        text_signature = "($self, state, questions, *, instructions=None, readout=\"text\", list_options=True, \
            permute=1, prior=\"none\", threshold=None, top=10, system=None, prompt=None, \
            calibration=None, cancel=None, timeout=None, priority=0)",
    )]
    fn decide<'py>(
        slf: &Bound<'py, Self>,
        state: &Bound<'py, PyAny>,
        questions: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        of_decisions("decided", slf, state, questions, options)
    }

    /// `decide` for many states. What their prompts begin with alike is decoded once, the rest in common passes.
    ///
    /// Args:
    ///     states: an iterable of states, such as a list or a column of pandas, polars or pyarrow; 32 are asked about
    ///         at a time, with prior="batch" all of them.
    ///     questions, options: as for `decide`.
    ///
    /// Returns:
    ///     list[Answers]: in the order of the states.
    ///
    /// Raises:
    ///     TypeError: `states` is one str, a dict, or a whole table.
    ///     TokenTrieError: as for `decide`; the state is named by its number from 0.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> [answers["on"].kind for answers in model.decide_many(["It is on.", "It is off."], {"on": bool})]
    ///     ['predicate', 'predicate']
    #[pyo3(signature = (states, questions, **options), text_signature = "($self, states, questions, **options)")]
    fn decide_many<'py>(
        slf: &Bound<'py, Self>,
        states: &Bound<'py, PyAny>,
        questions: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        of_decisions("decided_many", slf, states, questions, options)
    }

    /// `decide` for asyncio: the event loop goes on meanwhile, and cancelling the task ends it.
    ///
    /// Args:
    ///     state, questions, options: as for `decide`.
    ///
    /// Returns:
    ///     An awaitable of Answers.
    ///
    /// Raises:
    ///     TokenTrieError: as for `decide`, when it is awaited.
    ///
    /// Example:
    ///     >>> import asyncio
    ///     >>> model = tokentrie.Model()
    ///     >>> asyncio.run(model.adecide("It is on.", {"on": bool}))["on"].kind
    ///     'predicate'
    #[pyo3(signature = (state, questions, **options), text_signature = "($self, state, questions, **options)")]
    fn adecide<'py>(
        slf: &Bound<'py, Self>,
        state: &Bound<'py, PyAny>,
        questions: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        of_decisions("deciding", slf, state, questions, options)
    }

    /// Finds what makes the probabilities of some questions honest, on states whose answers are known.
    ///
    /// The logarithms of a question's probabilities are divided by a temperature, and each option gets a bias: those
    /// under which the known answers are most probable (the log loss, with a small penalty), or none of both where
    /// that is better on examples it has not seen. Ten examples are the least; a few hundred are good.
    ///
    /// Args:
    ///     states, questions: as for `decide_many`.
    ///     gold: a dict of the right answers by question: a list or a column, one for each state. A bool for yes or no,
    ///         also "yes" and "no"; an option or a level as it was given, or the number of a level. Questions without
    ///         are asked and not calibrated.
    ///     options: as for `decide_many`.
    ///
    /// Returns:
    ///     Calibration: for `decide(..., calibration=)` with the same model, questions and options.
    ///
    /// Raises:
    ///     OptionError: too few examples, an answer that is none, or other lengths.
    ///     TokenTrieError: as for `decide_many`.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> states = ["The lamp is on.", "The lamp is off."] * 10
    ///     >>> calibration = model.calibrate(states, {"on": bool}, {"on": [True, False] * 10})
    ///     >>> calibration.questions["on"].examples
    ///     20
    #[pyo3(
        signature = (states, questions, gold, **options),
        text_signature = "($self, states, questions, gold, **options)",
    )]
    fn calibrate<'py>(
        slf: &Bound<'py, Self>,
        states: &Bound<'py, PyAny>,
        questions: &Bound<'py, PyAny>,
        gold: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = options.map_or_else(|| Ok(PyDict::new(slf.py())), PyDictMethods::copy)?;
        options.set_item("gold", gold)?;
        of_decisions("calibrated", slf, states, questions, Some(&options))
    }

    /// A calibration of a request's questions, from examples: all as JSON.
    fn _calibrated(&self, py: Python<'_>, request: &str, examples: &str) -> crate::errors::Result<String> {
        let loaded = self.loaded(py)?;
        asked(py, Limits::NONE, || {
            let request = Request::from_json(request.as_bytes()).map_err(Error::from)?;
            let made = Calibration::fit(&request.questions, &request.options, loaded.model.path(), examples.as_bytes());
            let wrong = |error| match error {
                CalibrateError::Examples(error) => Error::from(error).at("examples: "),
                CalibrateError::Model(error) => Error::from(PyErr::from(error)),
                CalibrateError::Fit { .. } => Class::Option.error(error.to_string()),
            };
            made.map(|made| made.to_json()).map_err(wrong)
        })?
    }

    /// The answers to a request, both as JSON; `first` is the number of its first state among all.
    #[pyo3(signature = (request, first=0, call=None))]
    fn _decide(
        &self,
        request: &Bound<'_, PyString>,
        first: usize,
        call: Option<&Bound<'_, OpenCall>>,
    ) -> crate::errors::Result<String> {
        let (py, began) = (request.py(), Instant::now());
        let text = request.to_str().map_err(Error::from)?;
        let (loaded, format) = (self.loaded(py)?, self.format(py)?);
        let read = || asked(py, Limits::NONE, || Request::from_json(text.as_bytes()))?.map_err(Error::from);
        let (request, call) = if let Some(call) = call {
            (made_in(py, &call.get().0, read)?, &call.get().0)
        } else {
            // A request that came as text says how long it may take.
            let request = read()?;
            let call = Call::begun_at(began, request.call);
            (request, &call.map_err(|error| Class::Option.error(error.to_string()))?)
        };
        let ready = made_in(py, call, || {
            let over = format.get().over_vocab(py, loaded.model.vocab())?;
            let ready = || ReadyDecision::new(request, &over, &loaded.sets, loaded.model.path());
            asked(py, Limits::NONE, ready)?.map_err(|error| Error::from(error.after(first)))
        })?;
        self.using(py, None, call, |runtime, watch| {
            let done = ready.run(runtime, watch).map_err(|error| error.after(first));
            done.map(|all| Answers::to_json(&all))
        })
    }
}

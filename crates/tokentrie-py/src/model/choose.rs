//! `Model.choose`: the exact probability of every value.

use crate::call::{CancelToken, begun};
use crate::convert::gil::{asked, made_in, released};
use crate::convert::options::Options;
use crate::convert::strings;
use crate::errors::{Class, Result};
use crate::model::choice::hypothesis_result;
use crate::model::choices::{ChoiceSet, Choices, OnError, Turn};
use crate::model::loaded::Model;
use crate::model::meaning::value_reader;
use crate::model::watch::{Watch, check_callable};
use crate::spec::as_object;
use crate::trie::prefix_table::{NOT_IN_PROBABILITIES, warn_unweighted};
use llama_sampler::Question;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tokentrie::call::{BeamWidth, Call, CallOptions, ChoiceResult, Choose, ChooseTurn, ReadParts, TextsAround};
use tokentrie::chat::{Data, RenderOptions};
use trie_core::work::Limits;
use trie_core::{Constraint, LeafId};
use trie_text::{Prompt, Values};

/// The least width of a beam that nobody gave one.
const NARROWEST: u32 = 64;

/// Text around the values of a choice, and its options.
type Said = (TextsAround, ChooseTurn, Choose);

fn said(py: Python<'_>, call: &'static str, options: Option<&Bound<'_, PyDict>>) -> Result<Said> {
    let Options { data, end_tokens, .. } = Options::read(py, call, options, &["end_tokens"], ReadParts::read_parts)?;
    let (around, turn, mut choose): Said = data;
    choose.end_tokens = end_tokens;
    Ok((around, turn, choose))
}

#[pymethods]
impl Model {
    /// Implements `Model.choose` of Python.
    #[pyo3(
        signature = (prompt, choices, *, cancel=None, timeout=None, priority=0, **options),
        text_signature = "($self, prompt, choices, **options)"
    )]
    fn _choose(
        &self,
        prompt: &Bound<'_, PyAny>,
        choices: &Bound<'_, PyAny>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Py<PyAny>> {
        let call = begun(cancel, CallOptions { timeout, priority })?;
        let said = said(prompt.py(), "choose", options)?;
        let (of, ChoiceResult { choice, set }) = self.chosen(prompt, choices, said, &call)?;
        of.result(prompt.py(), &choice, &set)
    }

    /// Implements `Model.beam` of Python.
    #[pyo3(
        signature = (prompt, choices, k=10, *, cancel=None, timeout=None, priority=0, **options),
        text_signature = "($self, prompt, choices, k=10, **options)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments that are not data in Python")]
    fn _beam(
        &self,
        prompt: &Bound<'_, PyAny>,
        choices: &Bound<'_, PyAny>,
        k: i64,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Vec<Py<PyAny>>> {
        let call = begun(cancel, CallOptions { timeout, priority })?;
        let outside = || Class::Option.error(format!("k is {k}: it must be from 1 to {}", u32::MAX));
        let k = u32::try_from(k).ok().filter(|&k| k > 0).ok_or_else(outside)?;
        let Options { data, end_tokens, .. } =
            Options::read(prompt.py(), "beam", options, &["end_tokens"], ReadParts::read_parts)?;
        let (around, BeamWidth { width }): (TextsAround, _) = data;
        let mut choose = Choose::default();
        (choose.end_tokens, choose.top) = (end_tokens, Some(k));
        choose.beam = Some(width.unwrap_or_else(|| k.saturating_mul(4).max(NARROWEST)));
        let said = (around, ChooseTurn::default(), choose);
        let (_, ChoiceResult { choice, set: values }) = self.chosen(prompt, choices, said, &call)?;
        let hypothesis = |&found: &LeafId| {
            let logprob = choice.logprobs[found.index()];
            let leaf = values.trie().leaf(found).filter(|_| logprob > f64::NEG_INFINITY)?;
            let leaf = trie_core::Leaf { index: LeafId::new(values.index_of(found) as u32), ..leaf };
            let tokens = leaf.tokens.clone();
            Some(hypothesis_result(prompt.py(), leaf, &tokens, logprob).map(Bound::unbind))
        };
        Ok(choice.ranking.iter().filter_map(hypothesis).collect::<PyResult<_>>()?)
    }

    /// Implements `Model.choose_many` of Python.
    #[pyo3(
        signature = (
            prompts, choices, *, cancel=None, timeout=None, priority=0, on_error="raise", progress=None, **options
        ),
        text_signature = "($self, prompts, choices, **options)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments that are not data in Python")]
    fn _choose_many(
        slf: Bound<'_, Self>,
        prompts: &Bound<'_, PyAny>,
        choices: &Bound<'_, PyAny>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
        on_error: &str,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Choices> {
        if prompts.is_instance_of::<PyString>() {
            let message = "prompts must be an iterable of prompts, not one str: give it to `choose`";
            return Err(pyo3::exceptions::PyTypeError::new_err(message).into());
        }
        let py = slf.py();
        check_callable("progress", progress.as_ref().map(|progress| progress.bind(py)))?;
        let (call, on_error) = (begun(cancel, CallOptions { timeout, priority })?, OnError::read(on_error)?);
        let said = said(py, "choose_many", options)?;
        let set = made_in(py, &call, || slf.get().set(choices, said))?;
        let prompts = &strings::column("prompts", prompts)?;
        Ok(Choices::new(slf.unbind(), prompts, set, on_error, progress, call)?)
    }
}

impl Model {
    /// A prompt and the values after it. What ends the work of this thread ends it, too.
    pub(crate) fn question(&self, prompt: &Bound<'_, PyAny>, set: &ChoiceSet) -> Result<Question> {
        let (py, prompt, loaded) = (prompt.py(), self.asked_prompt(prompt, set)?, self.loaded(prompt.py())?);
        let (prompt, set) = asked(py, Limits::NONE, || loaded.sets.place(prompt, &set.values))??;
        Ok(Question::new(prompt, set))
    }

    /// Returns the prompt of a choice; with a system message, that of a chat in which `prompt` is what the user says.
    fn asked_prompt(&self, prompt: &Bound<'_, PyAny>, set: &ChoiceSet) -> Result<Prompt> {
        let (py, read) = (prompt.py(), crate::convert::prompt::read(prompt)?);
        let Some(Turn { system, prefix }) = &set.turn else { return Ok(read) };
        let Prompt::Text(text) = read else {
            return Err(Class::Option.error(
                "system goes around prompts of text, and this one is token ids already: put the system message into \
                 Model.chat_prompt",
            ));
        };
        let message = |role: &str, content: &str| {
            Data::Dict(vec![("role".to_owned(), Data::from(role)), ("content".to_owned(), Data::from(content))])
        };
        let messages = Data::List(vec![message("system", system), message("user", &text)]);
        let (options, loaded) = (RenderOptions::default().with_generation_prompt(true), self.loaded(py)?);
        let tokens = released(py, || loaded.model.chat_prompt(&messages, None, &options, prefix))?;
        Ok(Prompt::Tokens(tokens))
    }

    /// Returns the values, and the choice among them after a prompt.
    fn chosen(
        &self,
        prompt: &Bound<'_, PyAny>,
        choices: &Bound<'_, PyAny>,
        said: Said,
        call: &Call,
    ) -> Result<(ChoiceSet, ChoiceResult)> {
        let py = choices.py();
        let (set, ready) = made_in(py, call, || {
            let set = self.set(choices, said)?;
            let (prompt, loaded) = (self.asked_prompt(prompt, &set)?, self.loaded(py)?);
            let choose = set.choose.clone();
            let ready = asked(py, Limits::NONE, || choose.ready(prompt, &set.values, &loaded.sets))??;
            Ok((set, ready))
        })?;
        Ok((set, self.run(py, ready, Watch::new(call))?))
    }

    fn set(&self, choices: &Bound<'_, PyAny>, said: Said) -> Result<ChoiceSet> {
        let loaded = self.loaded(choices.py())?;
        let (around, ChooseTurn { threshold, system, .. }, choose) = said;
        let choices = &as_object(choices)?;
        let reader = value_reader(choices).map(Bound::unbind);
        let turn = system.map(|system| Turn { system, prefix: around.prefix.clone() });
        if let Some(texts) = crate::spec::listed(choices)? {
            let texts = around.texts(texts).with_distinct(true);
            return Ok(ChoiceSet { values: Values::Texts(texts), choose, threshold, turn, reader });
        }
        if around != TextsAround::default() {
            return Err(Class::Option.error(
                "prefix, suffix, tokenization and open_end go with a list of str: this set is made of tokens already",
            ));
        }
        let constraints = crate::spec::constraint("choices", choices, &loaded.around())?;
        let weighted = constraints[0].1.sets().iter().any(|set| set.is_weighted());
        warn_unweighted(choices.py(), weighted, NOT_IN_PROBABILITIES)?;
        let listed = || constraints[0].1.to_trie(tokentrie::constraint::MOST_VALUES);
        let trie = asked(choices.py(), Limits::NONE, listed)??;
        Ok(ChoiceSet { values: Values::Set(trie.into()), choose, threshold, turn, reader })
    }
}

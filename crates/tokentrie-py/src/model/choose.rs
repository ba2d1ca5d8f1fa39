//! `Model.choose`: the exact probability of every value.

use crate::call::{CancelToken, begun};
use crate::convert::gil::{asked, made_in};
use crate::convert::ids::tokens;
use crate::convert::strings;
use crate::errors::{Class, Result};
use crate::model::choice::Choice;
use crate::model::choices::{ChoiceSet, Choices, OnError};
use crate::model::loaded::Model;
use crate::model::watch::check_callable;
use crate::trie::prefix_table::{NOT_IN_PROBABILITIES, warn_unweighted};
use llama_sampler::{Question, Scorer};
use pyo3::prelude::*;
use pyo3::types::PyString;
use tokentrie::run::{CallOptions, Choose};
use trie_core::Constraint;
use trie_core::work::Limits;
use trie_text::{Tokenization, Values};

/// What makes a set of the texts of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Around<'t> {
    prefix: &'t str,
    suffix: &'t str,
    tokenization: Tokenization,
}

#[pymethods]
impl Model {
    /// The exact probability of every value after a prompt, and the most probable value.
    ///
    /// A greedy walk may end in another one. Small sets take one forward pass after the prompt. Token healing is as
    /// in `generate`: texts of a list are tokenised as the tokenizer would go on from a prompt that is text.
    ///
    /// Args:
    ///     prompt: text or token ids, as for `generate`.
    ///     choices: a list or other iterable of distinct str, a Trie, a payload (its first descriptor), or a Sequence
    ///         without Any, whose values are listed.
    ///     prefix, suffix: text around the values of a list, as for `Trie.from_strings` with `heal=True`: what a
    ///         prompt of ids ends with, or another boundary than that of a text.
    ///     tokenization, open_end: which token sequences stand for a value of a list, as for `Trie.from_strings`.
    ///         With "all" the probability is that of the text, in whatever tokens.
    ///     end_tokens: ids; one of them must follow a value, and its probability then counts as well. None: those of
    ///         the set (`Trie.end_tokens`), which has mostly none.
    ///     top: score only what the best so many values need, at least 1. None scores all of a set that needs at
    ///         most 4096 rows of logits, and of a larger one what the best value needs.
    ///     max_rows: read at most so many rows of logits, at least 1, and give bounds where that was too few:
    ///         `logprobs` are then lower and `logprobs_high` upper ones. None is 4096 where several sequences stand
    ///         for one value, otherwise no limit.
    ///     cancel: a CancelToken that ends this call.
    ///     timeout: the seconds that it may take, waiting for its turn included.
    ///     priority: an int; with slots, calls of higher priority go first.
    ///
    /// Returns:
    ///     Choice.
    ///
    /// Raises:
    ///     TrieError: a value is empty or repeated (it says which), there is none, or they cannot be listed, such as
    ///         those of Any.
    ///     PayloadError: the payload cannot be used; for one str it says that a list is wanted.
    ///     OptionError: a number is out of range, or the prompt does not end as a healed set begins.
    ///     ContextError: the prompt, or a value after it, does not fit.
    ///     VocabularyError: ids are outside the vocabulary.
    ///     CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did.
    ///     ModelError: a forward pass fails, or the model is closed.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> task = {"role": "system", "content": "Label the review: positive, negative or neutral."}
    ///     >>> review = {"role": "user", "content": "The service is so great."}
    ///     >>> prompt = model.chat_prompt([task, review])
    ///     >>> model.choose(prompt, ["positive", "negative", "neutral"]).name
    ///     'positive'
    #[pyo3(signature = (
        prompt, choices, *, prefix="", suffix="", tokenization="canonical", open_end=false, end_tokens=None, top=None,
        max_rows=None, cancel=None, timeout=None, priority=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn choose(
        &self,
        prompt: &Bound<'_, PyAny>,
        choices: &Bound<'_, PyAny>,
        prefix: &str,
        suffix: &str,
        tokenization: &str,
        open_end: bool,
        end_tokens: Option<&Bound<'_, PyAny>>,
        top: Option<i64>,
        max_rows: Option<i64>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
    ) -> Result<Choice> {
        let call = begun(cancel, CallOptions { timeout, priority })?;
        let around = Around { prefix, suffix, tokenization: strings::tokenization(tokenization, open_end)? };
        let (set, Question { prompt, set: values }) = made_in(choices.py(), &call, || {
            let set = self.set(choices, around, end_tokens, top, max_rows)?;
            let question = self.question(prompt, &set.values)?;
            Ok((set, question))
        })?;
        let choice = self.using(choices.py(), None, &call, |context, watch| {
            context.choose(&prompt, values.trie().clone(), &set.choose.options(), watch)
        })?;
        Ok(Choice::new(choice, &values))
    }

    /// `choose` for many prompts. What they begin with alike is decoded once, the rest in common forward passes.
    ///
    /// Args:
    ///     prompts: an iterable of prompts, such as a list or a column of pandas, polars or pyarrow; 32 are read at a
    ///         time.
    ///     choices, prefix, suffix, tokenization, open_end, end_tokens, top, max_rows, cancel, priority: as for
    ///         `choose`.
    ///     on_error: what becomes of a prompt that cannot be used, such as one that does not fit. "raise" ends the
    ///         iteration with its error, which names it by its number from 0; "return" gives the error, a
    ///         TokenTrieError, TypeError or ValueError, in place of its Choice; "skip" leaves it out, and
    ///         `Choices.skipped` tells which.
    ///     progress: called after each group with the prompts done so far and how many there are, None where
    ///         `prompts` has no length.
    ///
    /// Returns:
    ///     Choices: a sequence of Choice in the order of the prompts, made as it is read; an iterator where the prompts
    ///         are one.
    ///
    /// Raises:
    ///     TypeError: `prompts` is one str, or a whole table: give one of its columns.
    ///     OptionError: `on_error` is another word.
    ///     TokenTrieError: as for `choose`. What is wrong with a prompt is raised when its turn comes.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> prompts = ["Is it on? ", "Is it off? "]
    ///     >>> [choice.name in ("yes", "no") for choice in model.choose_many(prompts, ["yes", "no"])]
    ///     [True, True]
    #[pyo3(signature = (
        prompts, choices, *, prefix="", suffix="", tokenization="canonical", open_end=false, end_tokens=None, top=None,
        max_rows=None, cancel=None, priority=0, on_error="raise", progress=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn choose_many(
        slf: Bound<'_, Self>,
        prompts: &Bound<'_, PyAny>,
        choices: &Bound<'_, PyAny>,
        prefix: &str,
        suffix: &str,
        tokenization: &str,
        open_end: bool,
        end_tokens: Option<&Bound<'_, PyAny>>,
        top: Option<i64>,
        max_rows: Option<i64>,
        cancel: Option<&Bound<'_, CancelToken>>,
        priority: i32,
        on_error: &str,
        progress: Option<Py<PyAny>>,
    ) -> Result<Choices> {
        if prompts.is_instance_of::<PyString>() {
            let message = "prompts must be an iterable of prompts, not one str: give it to `choose`";
            return Err(pyo3::exceptions::PyTypeError::new_err(message).into());
        }
        check_callable("progress", progress.as_ref().map(|progress| progress.bind(slf.py())))?;
        let around = Around { prefix, suffix, tokenization: strings::tokenization(tokenization, open_end)? };
        let (call, on_error) =
            (begun(cancel, CallOptions { priority, ..CallOptions::default() })?, OnError::read(on_error)?);
        let set = made_in(slf.py(), &call, || slf.get().set(choices, around, end_tokens, top, max_rows))?;
        let prompts = &strings::column("prompts", prompts)?;
        Ok(Choices::new(slf.unbind(), prompts, set, on_error, progress, call)?)
    }
}

impl Model {
    /// A prompt and the values after it. What ends the work of this thread ends it, too.
    pub(crate) fn question(&self, prompt: &Bound<'_, PyAny>, values: &Values) -> Result<Question> {
        let (py, loaded, prompt) = (prompt.py(), self.loaded(prompt.py())?, crate::convert::prompt::read(prompt)?);
        let (prompt, set) = asked(py, Limits::NONE, || loaded.sets.place(prompt, values))??;
        Ok(Question { prompt, set })
    }

    fn set(
        &self,
        choices: &Bound<'_, PyAny>,
        around: Around<'_>,
        end_tokens: Option<&Bound<'_, PyAny>>,
        top: Option<i64>,
        max_rows: Option<i64>,
    ) -> Result<ChoiceSet> {
        let loaded = self.loaded(choices.py())?;
        let end_tokens = end_tokens.map(|ends| tokens(ends, "end_tokens, ")).transpose()?;
        let count = |name: &str, count: Option<i64>| {
            let outside = |count| Class::Option.error(format!("{name} is {count}: it must be from 1 to {}", u32::MAX));
            let positive = |count| u32::try_from(count).ok().filter(|&count| count > 0).ok_or_else(|| outside(count));
            count.map(positive).transpose()
        };
        let mut choose = Choose::default();
        (choose.end_tokens, choose.top, choose.max_rows) =
            (end_tokens, count("top", top)?, count("max_rows", max_rows)?);
        if let Some(texts) = crate::spec::listed(choices)? {
            let Around { prefix, suffix, tokenization } = around;
            let texts = texts.with_prefix(prefix).with_suffix(suffix);
            let texts = texts.with_tokenization(tokenization).with_distinct(true);
            return Ok(ChoiceSet { values: Values::Texts(texts), choose });
        }
        if around != Around::default() {
            return Err(Class::Option.error(
                "prefix, suffix, tokenization and open_end go with a list of str: this set is made of tokens already",
            ));
        }
        let constraints = crate::spec::constraint("choices", choices, &loaded.around())?;
        let weighted = constraints[0].1.sets().iter().any(|set| set.is_weighted());
        warn_unweighted(choices.py(), weighted, NOT_IN_PROBABILITIES)?;
        let listed = || constraints[0].1.to_trie(tokentrie::spec::MOST_VALUES);
        let trie = asked(choices.py(), Limits::NONE, listed)??;
        Ok(ChoiceSet { values: Values::Set(trie.into()), choose })
    }
}

//! `Model.choose`: the exact probability of every value.

use crate::call::{CancelToken, begun};
use crate::convert::gil::{asked, made_in, released};
use crate::convert::ids::tokens;
use crate::convert::strings;
use crate::errors::{Class, Result};
use crate::model::choice::{choice_result, hypothesis_result};
use crate::model::choices::{ChoiceSet, Choices, OnError, Turn};
use crate::model::loaded::Model;
use crate::model::watch::check_callable;
use crate::trie::prefix_table::{NOT_IN_PROBABILITIES, warn_unweighted};
use chat_format::{Data, RenderOptions};
use llama_sampler::{Question, Scorer};
use pyo3::prelude::*;
use pyo3::types::PyString;
use tokentrie::call::{Call, CallOptions, Choose};
use trie_core::work::Limits;
use trie_core::{Constraint, LeafId};
use trie_text::{Prompt, Tokenization, ValueSet, Values};

/// What makes a set of the texts of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Around<'t> {
    prefix: &'t str,
    suffix: &'t str,
    tokenization: Tokenization,
}

/// How much of a set is scored, as it was given.
#[derive(Debug, Clone, Copy, Default)]
struct Scored {
    top: Option<i64>,
    max_rows: Option<i64>,
    beam: Option<i64>,
}

/// The least width of a beam that nobody gave one.
const NARROWEST: i64 = 64;

/// A count from 1 up.
fn count(name: &str, given: i64) -> Result<u32> {
    let outside = || Class::Option.error(format!("{name} is {given}: it must be from 1 to {}", u32::MAX));
    u32::try_from(given).ok().filter(|&count| count > 0).ok_or_else(outside)
}

/// A threshold from 0 to 1.
fn checked_threshold(given: Option<f64>) -> Result<Option<f64>> {
    match given {
        Some(given) if !(0.0..=1.0).contains(&given) => {
            Err(Class::Option.error(format!("threshold is {given}: it must be from 0 to 1")))
        }
        given => Ok(given),
    }
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
    ///         prompt of ids ends with, or another boundary than that of a text. The suffix counts as the tokenizer
    ///         writes it at the end of a text: with `suffix='"'` a lone quote, though a text may go on with `",` in one
    ///         token. Give all that follows as suffix, or `open_end=True`, which counts what goes beyond it, too. A
    ///         slot of a Form with `mode="exact"` does so by itself: what follows is known there.
    ///     tokenization, open_end: which token sequences stand for a value of a list, as for `Trie.from_strings`.
    ///         With "all" the probability is that of the text, in whatever tokens.
    ///     end_tokens: ids; one of them must follow a value, and its probability then counts as well. None: those of
    ///         the set (`Trie.end_tokens`), which has mostly none.
    ///     top: score only what the best so many values need, at least 1. None scores all of a set that needs at
    ///         most 4096 rows of logits, and of a larger one what the best value needs.
    ///     max_rows: read at most so many rows of logits, at least 1, and give bounds where that was too few:
    ///         `logprobs` are then lower and `logprobs_high` upper ones. None is 4096 where several sequences stand
    ///         for one value, otherwise no limit.
    ///     beam: go on from the best so many beginnings of each length alone, at least 1, as `beam` does: far fewer
    ///         rows in a large set, of which better values may then be passed over (`certain`). None passes nothing
    ///         over.
    ///     threshold: the least probability of a value, 0 to 1; below it `Choice.value` is None, and `Choice.reason`
    ///         tells. Everything else of a Choice is as without it.
    ///     system: text of a system message: the prompt is then the text of a user in the model's chat template, as
    ///         content alone, and `prefix` opens the answer. A prompt of ids is refused beside it.
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
    ///     >>> same = model.choose(review["content"], ["positive", "negative", "neutral"], system=task["content"])
    ///     >>> same.name, model.choose("So: ", ["a", "b"], threshold=1).value
    ///     ('positive', None)
    #[pyo3(signature = (
        prompt, choices, *, prefix="", suffix="", tokenization="canonical", open_end=false, end_tokens=None, top=None,
        max_rows=None, beam=None, threshold=None, system=None, cancel=None, timeout=None, priority=0
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
        beam: Option<i64>,
        threshold: Option<f64>,
        system: Option<&str>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
    ) -> Result<Py<PyAny>> {
        let call = begun(cancel, CallOptions { timeout, priority })?;
        let around = Around { prefix, suffix, tokenization: strings::tokenization(tokenization, open_end)? };
        let threshold = checked_threshold(threshold)?;
        let scored = Scored { top, max_rows, beam };
        let (choice, values) = self.chosen(prompt, choices, around, end_tokens, scored, system, &call)?;
        Ok(choice_result(prompt.py(), &choice, &values, threshold)?.unbind())
    }

    /// The `k` most probable values of a set after a prompt, by a beam search: fast in sets of any size.
    ///
    /// All beginnings of one length are decoded together, and only the `width` most probable of them are gone on
    /// from. The probability of a value that is found is exact, as `choose` gives it. Which values are found is exact
    /// where no more than `width` beginnings of any length are open, so with a width of the number of values; otherwise
    /// a better value can be passed over, because its beginning was not among the best. `choose` with `top` never
    /// passes one over, and reads more for it; `choose` with `beam` tells whether the first is certain, and the mass
    /// that was passed over.
    ///
    /// Args:
    ///     prompt, choices: as for `choose`.
    ///     k: how many values, at least 1.
    ///     width: how many beginnings of one length are gone on from, at least 1. None: four times `k`, and 64
    ///         at least.
    ///     prefix, suffix, tokenization, open_end, end_tokens: as for `choose`. Of several token sequences of one value
    ///         those that are found count together, a lower bound.
    ///     cancel, timeout, priority: as for `choose`.
    ///
    /// Returns:
    ///     list[Hypothesis], best first: at most `k`, without values that the model calls impossible. `logprob` is the
    ///     natural logarithm of the value's probability under the whole vocabulary; leaves are numbered as the values
    ///     of `choose`.
    ///
    /// Raises:
    ///     TokenTrieError: as for `choose`; OptionError where `k` or `width` is out of range.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> trie = tokentrie.Trie.from_strings(model.vocab, [" red", " reddish", " blue", " green"])
    ///     >>> best, second = model.beam("The sky is", trie, 2)
    ///     >>> best.logprob >= second.logprob and best.leaf.name in trie.names
    ///     True
    #[pyo3(signature = (
        prompt, choices, k=10, *, width=None, prefix="", suffix="", tokenization="canonical", open_end=false,
        end_tokens=None, cancel=None, timeout=None, priority=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn beam(
        &self,
        prompt: &Bound<'_, PyAny>,
        choices: &Bound<'_, PyAny>,
        k: i64,
        width: Option<i64>,
        prefix: &str,
        suffix: &str,
        tokenization: &str,
        open_end: bool,
        end_tokens: Option<&Bound<'_, PyAny>>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
    ) -> Result<Vec<Py<PyAny>>> {
        let call = begun(cancel, CallOptions { timeout, priority })?;
        let around = Around { prefix, suffix, tokenization: strings::tokenization(tokenization, open_end)? };
        count("k", k)?;
        let width = width.map(|width| count("width", width)).transpose()?;
        let width = width.map_or(k.saturating_mul(4).clamp(NARROWEST, u32::MAX.into()), i64::from);
        let scored = Scored { top: Some(k), max_rows: None, beam: Some(width) };
        let (choice, values) = self.chosen(prompt, choices, around, end_tokens, scored, None, &call)?;
        let hypothesis = |&found: &LeafId| {
            let logprob = choice.logprobs[found.index()];
            let leaf = values.trie().leaf(found).filter(|_| logprob > f64::NEG_INFINITY)?;
            let leaf = trie_core::Leaf { index: LeafId::new(values.index_of(found) as u32), ..leaf };
            let tokens = leaf.tokens.clone();
            Some(hypothesis_result(prompt.py(), leaf, &tokens, logprob).map(Bound::unbind))
        };
        Ok(choice.ranking.iter().filter_map(hypothesis).collect::<PyResult<_>>()?)
    }

    /// `choose` for many prompts. What they begin with alike is decoded once, the rest in common forward passes.
    ///
    /// Args:
    ///     prompts: an iterable of prompts, such as a list or a column of pandas, polars or pyarrow; 32 are read at a
    ///         time.
    ///     choices, prefix, suffix, tokenization, open_end, end_tokens, top, max_rows, beam, threshold, system, cancel:
    ///         as for `choose`.
    ///     timeout: the seconds that all prompts together may take, from this call on, the time in which nobody reads
    ///         included.
    ///     priority: as for `choose`.
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
        max_rows=None, beam=None, threshold=None, system=None, cancel=None, timeout=None, priority=0, on_error="raise",
        progress=None
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
        beam: Option<i64>,
        threshold: Option<f64>,
        system: Option<&str>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
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
        let (call, on_error) = (begun(cancel, CallOptions { timeout, priority })?, OnError::read(on_error)?);
        let threshold = checked_threshold(threshold)?;
        let scored = Scored { top, max_rows, beam };
        let set = made_in(slf.py(), &call, || slf.get().set(choices, around, end_tokens, scored, system))?;
        let set = ChoiceSet { threshold, ..set };
        let prompts = &strings::column("prompts", prompts)?;
        Ok(Choices::new(slf.unbind(), prompts, set, on_error, progress, call)?)
    }
}

impl Model {
    /// A prompt and the values after it. What ends the work of this thread ends it, too.
    pub(crate) fn question(&self, prompt: &Bound<'_, PyAny>, set: &ChoiceSet) -> Result<Question> {
        let (py, loaded, mut prompt) = (prompt.py(), self.loaded(prompt.py())?, crate::convert::prompt::read(prompt)?);
        if let Some(Turn { system, prefix }) = &set.turn {
            let Prompt::Text(text) = prompt else {
                return Err(Class::Option.error(
                    "system goes around prompts of text, and this one is token ids already: put the system message \
                     into Model.chat_prompt",
                ));
            };
            let message = |role: &str, content: &str| {
                Data::Dict(vec![("role".to_owned(), Data::from(role)), ("content".to_owned(), Data::from(content))])
            };
            let messages = Data::List(vec![message("system", system), message("user", &text)]);
            let options = RenderOptions::default().with_generation_prompt(true);
            prompt = Prompt::Tokens(released(py, || loaded.model.chat_prompt(&messages, None, &options, prefix))?);
        }
        let (prompt, set) = asked(py, Limits::NONE, || loaded.sets.place(prompt, &set.values))??;
        Ok(Question { prompt, set })
    }

    /// Returns the choice among values after a prompt, and the set that they are there.
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn chosen(
        &self,
        prompt: &Bound<'_, PyAny>,
        choices: &Bound<'_, PyAny>,
        around: Around<'_>,
        end_tokens: Option<&Bound<'_, PyAny>>,
        scored: Scored,
        system: Option<&str>,
        call: &Call,
    ) -> Result<(trie_core::Choice, ValueSet)> {
        let (set, Question { prompt, set: values }) = made_in(choices.py(), call, || {
            let set = self.set(choices, around, end_tokens, scored, system)?;
            let question = self.question(prompt, &set)?;
            Ok((set, question))
        })?;
        let choice = self.using(choices.py(), None, call, |context, watch| {
            context.choose(&prompt, values.trie().clone(), &set.choose.options(), watch)
        })?;
        Ok((choice, values))
    }

    fn set(
        &self,
        choices: &Bound<'_, PyAny>,
        around: Around<'_>,
        end_tokens: Option<&Bound<'_, PyAny>>,
        scored: Scored,
        system: Option<&str>,
    ) -> Result<ChoiceSet> {
        let loaded = self.loaded(choices.py())?;
        if system.is_some_and(str::is_empty) {
            return Err(Class::Option.error("system is empty: leave it out, or say what the model is"));
        }
        let turn = system.map(|system| Turn { system: system.to_owned(), prefix: around.prefix.to_owned() });
        let end_tokens = end_tokens.map(|ends| tokens(ends, "end_tokens, ")).transpose()?;
        let count = |name: &str, given: Option<i64>| given.map(|given| count(name, given)).transpose();
        let mut choose = Choose::default();
        choose.end_tokens = end_tokens;
        (choose.top, choose.max_rows) = (count("top", scored.top)?, count("max_rows", scored.max_rows)?);
        choose.beam = count("beam", scored.beam)?;
        if let Some(texts) = crate::spec::listed(choices)? {
            let Around { prefix, suffix, tokenization } = around;
            let texts = texts.with_prefix(prefix).with_suffix(suffix);
            let texts = texts.with_tokenization(tokenization).with_distinct(true);
            return Ok(ChoiceSet { values: Values::Texts(texts), choose, threshold: None, turn });
        }
        if around != Around::default() {
            return Err(Class::Option.error(
                "prefix, suffix, tokenization and open_end go with a list of str: this set is made of tokens already",
            ));
        }
        let constraints = crate::spec::constraint("choices", choices, &loaded.around())?;
        let weighted = constraints[0].1.sets().iter().any(|set| set.is_weighted());
        warn_unweighted(choices.py(), weighted, NOT_IN_PROBABILITIES)?;
        let listed = || constraints[0].1.to_trie(tokentrie::constraint::MOST_VALUES);
        let trie = asked(choices.py(), Limits::NONE, listed)??;
        Ok(ChoiceSet { values: Values::Set(trie.into()), choose, threshold: None, turn })
    }
}

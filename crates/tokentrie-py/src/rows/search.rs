//! Beam search over a user's function.

use crate::call::CancelToken;
use crate::convert::buffer::over_logits;
use crate::convert::gil::released;
use crate::convert::ids::tokens;
use crate::convert::strings;
use crate::convert::words::unsigned;
use crate::errors::{Class, Error, Result};
use crate::exit::called;
use crate::model::choice::hypothesis_result;
use crate::rows::pace::Pace;
use crate::rows::score::Score;
use crate::rows::scorer::{Answer, Scorer};
use crate::spec::object::Constraint;
use crate::spec::payloads::Cache;
use crate::spec::rules_over;
use crate::spec::{Around, as_object};
use crate::trie::Trie;
use crate::vocab::VocabArg;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use tokentrie::constraint::{Over, Spec};
use trie_core::{AnyConstraint, BeamOptions, BeamSearch, Constraint as _, Rows, ScoreMode, TokenId};

/// The least vocabulary that the sets of a constraint need.
pub(super) fn least(constraint: &AnyConstraint, ends: &[TokenId]) -> usize {
    let own = constraint.sets().into_iter().flat_map(|set| set.end_tokens().iter().copied());
    let largest = constraint.max_token().into_iter().chain(own).chain(ends.iter().copied()).max();
    largest.map_or(1, |largest| largest.index() + 1)
}

/// The constraint that was given, before the size of the vocabulary is known.
pub(super) fn constraint_of(
    what: &str,
    constraint: &Bound<'_, PyAny>,
    vocab: Option<&VocabArg<'_>>,
    n_vocab: usize,
) -> Result<AnyConstraint> {
    if vocab.is_none() && strings::is_list(constraint) {
        let message = format!("{what}: a list of str needs a Vocab that can tokenize: give it as vocab=");
        return Err(pyo3::exceptions::PyTypeError::new_err(message).into());
    }
    let over = Over { n_vocab, vocab: vocab.and_then(VocabArg::core) };
    let around = Around { over, sets: None, cache: Cache::Thread };
    Ok(crate::spec::constraint(what, constraint, &around)?[0].1.clone())
}

/// The set of a rule's texts, as an object: beams end at leaves.
fn set_of_rule<'py>(constraint: &Bound<'py, PyAny>, vocab: Option<&VocabArg<'_>>) -> Result<Option<Bound<'py, PyAny>>> {
    let given = as_object(constraint)?;
    if !given.is_instance_of::<Constraint>() {
        return Ok(None);
    }
    let Some(texts) = crate::spec::listed(constraint)? else { return Ok(None) };
    let py = constraint.py();
    let over = Over { n_vocab: vocab.map_or(0, VocabArg::size), vocab: vocab.and_then(VocabArg::core) };
    let around = Around { over, sets: None, cache: Cache::Thread };
    let spans = crate::spec::with_host(py, &around, |over, host| Spec::Choice(texts).constraint(over, host))?;
    let Some(set) = spans[0].1.as_trie().cloned() else { return Ok(None) };
    Ok(Some(Bound::new(py, Trie::new(set))?.into_any()))
}

/// The largest vocabulary there may be.
pub(super) const ANY_SIZE: usize = 1 << 31;

/// The most probable values of a set under a model that is a function, by a beam search that never leaves the set.
///
/// After each step the beam keeps the `width` best hypotheses, finished ones included; ties go to what is finished,
/// then to the better parent, then to the lower token. With a width of at least the number of values all of them are
/// found, each with its exact probability; there is never a filler.
///
/// Args:
///     step: gets the token lists of the live rows, those after the prompt only, and returns their logits: [rows, V] or
///         wider, float32, float16 or bfloat16, as for `Batch`; or, where only some are known, a list with a dict
///         {token id: log-probability} for each row: what is not in it counts as impossible. At first it is asked for
///         [[]].
///     constraint: as for `Sampler`; it must end.
///     width: how many hypotheses are kept, at least 1.
///     vocab: a Vocab, or the vocabulary size. None: as many tokens as the first row has entries.
///     score: what a token adds. "model": the log of its probability under the whole vocabulary. "renormalised": the
///         log of its share among the legal tokens; steps that are forced in every row are skipped then. "given": its
///         logit.
///     num_return: how many to return at most. None: all that are kept.
///     length_penalty: ranks by score / length ** length_penalty; 0 ranks by the score.
///     end_tokens: ids that may close a value; their probabilities add up. None: those of the set.
///     sample: draws hypotheses without replacement instead, each in proportion to the product of its tokens' shares,
///         and returns them in the order in which they were drawn.
///     seed: seed of the draw, 0 to 2**32 - 1; None takes one from the operating system.
///     reorder: called before each step but the first with int64 [rows]: the row of the step before that each row comes
///         from. For functions that keep what they computed.
///     cancel: a CancelToken that ends the search, between two calls of `step`.
///     timeout: the seconds that it may take, looked at between two calls of `step`.
///     progress: called after each call of `step` with the rows read so far and None. True shows a bar on standard
///         error, where that is a terminal.
///
/// Cost: O(rows · V) a step with score="model", O(Σ children) with "renormalised".
///
/// Returns:
///     list[Hypothesis], best first: at most `width` and at most one for each value.
///
/// Raises:
///     OptionError: a setting is out of range, `seed` stands without `sample`, or a row is not one for each prefix.
///     TypeError, ValueError: `step` returned something else, or a row in which no token can be chosen, such as one of
///         NaN or -inf alone; its own exceptions come out as they are.
///     CancelledError: `cancel` ended it; TimedOutError: `timeout` did.
///     TrieError: the constraint has no end, as that of Any.
///     PayloadError, VocabularyError: as for `Sampler`.
///
/// Example:
///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
///     >>> logits = np.arange(6, dtype=np.float32)  # a model that likes high ids, whatever came before
///     >>> step = lambda prefixes: np.tile(logits, (len(prefixes), 1))
///     >>> [found.leaf.name for found in tokentrie.sets.beam_search(step, trie, width=2, score="renormalised")]
///     ['c', 'b']
#[pyfunction]
#[pyo3(
    signature = (
        step, constraint, width, *, vocab=None, score=Score(ScoreMode::Model), num_return=None, length_penalty=0.0,
        end_tokens=None, sample=false, seed=None, reorder=None, cancel=None, timeout=None, progress=None
    ),
    text_signature = "(step, constraint, width, *, vocab=None, score=\"model\", num_return=None, length_penalty=0.0, \
        end_tokens=None, sample=False, seed=None, reorder=None, cancel=None, timeout=None, progress=None)"
)]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn beam_search(
    step: &Bound<'_, PyAny>,
    constraint: &Bound<'_, PyAny>,
    width: i64,
    vocab: Option<VocabArg<'_>>,
    score: Score,
    num_return: Option<i64>,
    length_penalty: f64,
    end_tokens: Option<&Bound<'_, PyAny>>,
    sample: bool,
    seed: Option<i64>,
    reorder: Option<&Bound<'_, PyAny>>,
    cancel: Option<&Bound<'_, CancelToken>>,
    timeout: Option<f64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Vec<Py<PyAny>>> {
    let py = step.py();
    let listed = set_of_rule(constraint, vocab.as_ref())?;
    let constraint = listed.as_ref().unwrap_or(constraint);
    if seed.is_some() && !sample {
        return Err(Class::Option.error("seed is given, but nothing is drawn: set sample=True, or leave seed out"));
    }
    let num_return = num_return.map(|count| unsigned("num_return", count)).transpose()?;
    let seed = seed.map(|seed| unsigned("seed", seed)).transpose()?;
    let mut options = BeamOptions::new(unsigned("width", width)? as usize).mode(score.0).length_penalty(length_penalty);
    if sample {
        options = options.without_replacement(seed.unwrap_or_else(|| RandomState::new().hash_one(()) as u32));
    }
    let ends = end_tokens.map(|ends| tokens(ends, "end_tokens, ")).transpose()?;
    let known = vocab.as_ref().map_or(ANY_SIZE, VocabArg::size);
    let set = constraint_of("constraint", constraint, vocab.as_ref(), known)?;
    let pace = Pace::begun(cancel, timeout, progress, "searching")?;
    let needed = least(&set, ends.as_deref().unwrap_or_default());
    let mut scorer = Scorer::new(step, "step", vocab.as_ref(), needed, pace)?;
    let n_ids = VocabArg::Size(scorer.n_ids());
    let mut rules = match &vocab {
        // Sets of other vocabularies are refused.
        Some(vocab) => {
            rules_over(vocab, "constraint", constraint, Cache::Thread)?;
            trie_core::SpanRules::for_constraint(set, n_ids.size())?
        }
        None => trie_core::SpanRules::for_constraint(set, n_ids.size())?,
    };
    if let Some(ends) = ends {
        rules = rules.with_end_tokens(ends)?;
    }
    let mut search = BeamSearch::new(Arc::new(rules), options)?;
    let mut asked = false;
    while !search.prefixes().is_empty() {
        if let Some(reorder) = reorder.filter(|_| asked) {
            let parents = search.parents().iter().map(|&parent| parent as i64).collect();
            called(reorder, &PyTuple::new(py, [PyArray1::from_vec(py, parents)])?, None)?;
        }
        asked = true;
        let answer = scorer.rows(search.prefixes())?;
        let search = &mut search;
        match &answer {
            Answer::Table(table) => over_logits!(Logits, table, rows => {
                released(py, || Ok::<_, Error>(search.advance(rows)?))
            })?,
            Answer::Listed(listed) => {
                let width = scorer.n_ids();
                let rows = Rows::new(listed, listed.len() / width, width, width);
                search.advance(rows.map_err(|error| Error::Array(error.to_string()))?)?;
            }
        }
    }
    let most = num_return.map_or(usize::MAX, |count| count as usize);
    let found = search.into_hypotheses().into_iter().take(most);
    let made = found.map(|found| hypothesis_result(py, found.leaf, &found.tokens, found.logprob).map(Bound::unbind));
    Ok(made.collect::<PyResult<_>>()?)
}

//! Exact choice over a user's function.

use crate::call::CancelToken;
use crate::convert::gil::asked_in;
use crate::convert::ids::tokens;
use crate::convert::words::unsigned;
use crate::errors::{Class, Error, Result};
use crate::model::choice::choice_result;
use crate::model::meaning::value_reader;
use crate::rows::pace::Pace;
use crate::rows::scorer::Scorer;
use crate::rows::search::{ANY_SIZE, constraint_of, least};
use crate::spec::{as_object, listed};
use crate::trie::prefix_table::{NOT_IN_PROBABILITIES, warn_unweighted};
use crate::vocab::VocabArg;
use pyo3::prelude::*;
use trie_core::logits::NoLogits;
use trie_core::{ChooseError, ChooseOptions, Constraint, Host, PrefixRows, PrefixRowsError, Scoring, TokenId};
use trie_text::ValueSet;

/// Values of a constraint that is not a set: they are listed to be scored.
const MOST_VALUES: usize = 1 << 20;

/// The exact probability of every value under a model that is a function: `Model.choose` for any host.
///
/// Args:
///     scorer: gets token lists, those after the prompt only, and returns a row of logits for each, as `step` of
///         `beam_search` does. A whole tree of prefixes comes in calls of up to `rows_at_once`, so a host that can
///         decode a batch does so. At first it is asked for [[]].
///     values: a list of distinct str, which needs a Vocab, a Trie, a payload (its first descriptor), or a Sequence
///         without Any.
///     vocab: a Vocab, or the vocabulary size. None: as many tokens as the first row has entries.
///     end_tokens: ids; one of them must follow a value, and its probability then counts as well. None: those of the
///         set.
///     top: score only what the best so many values need, at least 1; None scores all of a set that needs at most 4096
///         rows.
///     max_rows: read at most so many rows of logits, at least 1, and give bounds where that was too few.
///     rows_at_once: prefixes of one call at most, at least 1.
///     cancel: a CancelToken that ends the call, between two calls of `scorer`.
///     timeout: the seconds that it may take, looked at between two calls of `scorer` and while values are listed.
///     progress: called after each call of `scorer` with the rows read so far and how many there are, None where a
///         search decides. True shows a bar on standard error, where that is a terminal.
///
/// Cost: no prefix is asked for twice. All values take as many rows as they have distinct prefixes that go on: mostly
/// more than there are values. `top` takes fewer, the less alike the values are.
///
/// Returns:
///     Choice, as of `Model.choose`. With a scorer that lists log-probabilities, what it does not list is impossible.
///
/// Raises:
///     TypeError, ValueError: `scorer` returned something else, or a row in which no token can be chosen, such as one
///         of NaN or -inf alone, after a prefix that may come; its own exceptions come out as they are.
///     CancelledError: `cancel` ended it; TimedOutError: `timeout` did.
///     TrieError, PayloadError, VocabularyError, OptionError: as for `Model.choose`.
///
/// Example:
///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [3]], names=["yes", "no"])
///     >>> scorer = lambda prefixes: np.zeros((len(prefixes), 4), dtype=np.float32)  # all tokens alike
///     >>> choice = tokentrie.sets.choose(scorer, trie)
///     >>> choice.name, {name: round(share, 2) for name, share in choice.probabilities.items()}
///     ('no', {'yes': 0.2, 'no': 0.8})
#[pyfunction]
#[pyo3(signature = (
    scorer, values, *, vocab=None, end_tokens=None, top=None, max_rows=None, rows_at_once=128, cancel=None,
    timeout=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn choose(
    scorer: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    vocab: Option<VocabArg<'_>>,
    end_tokens: Option<&Bound<'_, PyAny>>,
    top: Option<i64>,
    max_rows: Option<i64>,
    rows_at_once: i64,
    cancel: Option<&Bound<'_, CancelToken>>,
    timeout: Option<f64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Py<PyAny>> {
    let py = scorer.py();
    let pace = Pace::begun(cancel, timeout, progress, "choosing")?;
    let ends = end_tokens.map(|ends| tokens(ends, "end_tokens, ")).transpose()?;
    let positive = |name: &str, count: i64| match unsigned(name, count)? {
        0 => Err(Class::Option.error(format!("{name} is 0: it must be at least 1"))),
        count => Ok(count as usize),
    };
    let top = top.map(|count| positive("top", count)).transpose()?;
    let max_rows = max_rows.map(|count| positive("max_rows", count)).transpose()?;
    let at_once = positive("rows_at_once", rows_at_once)?;
    let known = vocab.as_ref().map_or(ANY_SIZE, VocabArg::size);
    let given = as_object(values)?;
    let (values, reader) = (&given, value_reader(&given));
    let texts = if matches!(vocab, Some(VocabArg::Vocab(_))) { listed(values)? } else { None };
    let set: ValueSet = if let (Some(VocabArg::Vocab(vocab)), Some(texts)) = (&vocab, texts) {
        let vocab = vocab.get().core();
        asked_in(py, pace.call(), || texts.with_distinct(true).set(vocab))
            .and_then(|set| pace.check().map(|()| set))??
    } else {
        let constraint = constraint_of("values", values, vocab.as_ref(), known)?;
        let weighted = constraint.sets().iter().any(|set| set.is_weighted());
        warn_unweighted(py, weighted, NOT_IN_PROBABILITIES)?;
        asked_in(py, pace.call(), || constraint.to_trie(MOST_VALUES))
            .and_then(|set| pace.check().map(|()| set))??
            .into()
    };
    if let Some(VocabArg::Vocab(vocab)) = &vocab {
        vocab.get().core().check_set(set.trie())?;
    }
    let needed = least(&set.trie().into(), ends.as_deref().unwrap_or_default());
    let mut scorer = Scorer::new(scorer, "scorer", vocab.as_ref(), needed, pace)?;
    let n_ids = scorer.n_ids();
    let mut options = ChooseOptions::new().with_top(top).with_max_rows(max_rows);
    if let Some(ends) = &ends {
        options = options.with_end_tokens(ends);
    }
    let host = Host { n_vocab: n_ids, room: usize::MAX, rows_at_once: at_once };
    let values = set.trie().into();
    let mut scoring = Scoring::new(host, &[&[TokenId::default()]], &values, &options).map_err(refused)?;
    scorer.pace.total = scoring.rows();
    let mut host = PrefixRows::new(n_ids, |prefixes: &[&[TokenId]]| -> Result<Vec<f32>> {
        // The first token only stands for the prompt, which is the function's own.
        let prefixes: Vec<Vec<TokenId>> = prefixes.iter().map(|prefix| prefix[1..].to_vec()).collect();
        scorer.rows(&prefixes)?.into_singles(n_ids)
    })
    .with_rows_at_once(at_once);
    trie_core::run(&mut scoring, &mut host).map_err(|error| refused(error.into()))?;
    let choice = scoring.finish(0).pop().ok_or_else(|| Class::Base.error("a choice without a prompt"))?;
    Ok(choice_result(py, &choice, &set, None, reader.as_ref())?.unbind())
}

fn refused(error: ChooseError<PrefixRowsError<Error>>) -> Error {
    let error = match error {
        ChooseError::Host(PrefixRowsError::Function(error)) => return error,
        ChooseError::NoLogits(row) => {
            // The first token only stands for the prompt.
            let row = NoLogits { prefix: row.prefix.get(1..).unwrap_or_default().to_vec(), ..row };
            return Error::Array(format!("what scorer returned: {row}"));
        }
        ChooseError::NotListed(error) => return error.into(),
        ChooseError::Rules(error) => return error.into(),
        ChooseError::Damaged(problem) => return Class::Trie.error(format!("{problem} (Trie.open with verify=True)")),
        ChooseError::SetOutsideVocabulary { max_token, n_vocab } => {
            let message = format!("the set has the token id {max_token}, outside the vocabulary of {n_vocab} tokens");
            return Class::Vocabulary.error(message);
        }
        ChooseError::EndTokenOutsideVocabulary { token, n_vocab, .. } => {
            let message = format!("end tokens: token id {token} is outside the vocabulary of {n_vocab} tokens");
            return Class::Vocabulary.error(message);
        }
        ChooseError::DeadEnd { depth } => format!("the set is damaged: nothing may follow {depth} tokens of a value"),
        ChooseError::ManySequences => "several token sequences stand for one value: score that set alone".to_owned(),
        ChooseError::Rows(problem) => problem.to_string(),
        _ => "the values cannot be scored".to_owned(),
    };
    Class::Trie.error(error)
}

//! From what Python gives for the rows of a batch to their rules.

use crate::convert::gil::released;
use crate::convert::ids::{shown, tokens, type_name};
use crate::convert::strings::is_list;
use crate::convert::words::{After, unsigned};
use crate::errors::{Class, Result};
use crate::spec::payloads::Cache;
use crate::spec::{as_object, rules_over};
use crate::trie::Trie;
use crate::trie::filter::FilteredTrie;
use crate::vocab::{Vocab, VocabArg};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::Arc;
use trie_core::{Constraint, NoRepeat, RulesError, SpanRules, TokenId};

/// More rows than that are a mistake, and would end the process where memory does.
const MOST_ROWS: usize = 1 << 22;

/// The rules of a row, and what they were made of; `None` of a free one.
pub(crate) type RowRules = (Arc<SpanRules>, Option<Arc<Py<PyAny>>>);

/// Settings shared by the rules of every row.
pub(crate) struct Common {
    vocab: Option<Py<Vocab>>,
    n_vocab: usize,
    end_tokens: Option<Vec<TokenId>>,
    after: trie_core::After,
    /// Rules of a free row.
    free: Arc<SpanRules>,
}

/// Python objects from which rules were built.
#[derive(Clone, Default)]
pub(crate) struct Sources(HashMap<usize, (Arc<SpanRules>, Arc<Py<PyAny>>)>);

impl Sources {
    /// With those of one row more.
    pub(crate) fn with(mut self, (rules, given): &RowRules) -> Self {
        if let Some(given) = given {
            self.0.entry(place(rules)).or_insert_with(|| (Arc::clone(rules), Arc::clone(given)));
        }
        self
    }

    /// Lets go of rules that no row follows.
    pub(crate) fn forget(&mut self) {
        self.0.retain(|_, (rules, _)| Arc::strong_count(rules) > 1);
    }

    pub(crate) fn of(&self, rules: &Arc<SpanRules>) -> Option<&Py<PyAny>> {
        self.0.get(&place(rules)).map(|(_, given)| &**given)
    }
}

/// Returns the identity of rules.
fn place(rules: &Arc<SpanRules>) -> usize {
    Arc::as_ptr(rules).addr()
}

/// Returns whether a step of a row may have to walk a rule.
pub(crate) fn walks((rules, given): &RowRules) -> bool {
    given.is_some() && rules.constraints().iter().any(|(_, constraint)| constraint.sets().is_empty())
}

impl Common {
    /// # Errors
    /// `TypeError` and `VocabularyError` for what are no token ids.
    pub(crate) fn new(vocab: &VocabArg<'_>, end_tokens: Option<&Bound<'_, PyAny>>, after: After) -> Result<Self> {
        let end_tokens = end_tokens.map(|ends| tokens(ends, "end_tokens, ")).transpose()?;
        let n_vocab = vocab.size();
        let free = Arc::new(SpanRules::free(n_vocab, vocab.end_of_generation(), after.0)?);
        let vocab = if let VocabArg::Vocab(vocab) = vocab { Some(vocab.clone().unbind()) } else { None };
        Ok(Self { vocab, n_vocab, end_tokens, after: after.0, free })
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        let Self { vocab, n_vocab, end_tokens, after, free } = self;
        let vocab = vocab.as_ref().map(|vocab| vocab.clone_ref(py));
        Self { vocab, n_vocab: *n_vocab, end_tokens: end_tokens.clone(), after: *after, free: Arc::clone(free) }
    }

    pub(crate) fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    fn vocab<'py>(&self, py: Python<'py>) -> VocabArg<'py> {
        match &self.vocab {
            Some(vocab) => VocabArg::Vocab(vocab.bind(py).clone()),
            None => VocabArg::Size(self.n_vocab),
        }
    }

    /// The rules of one row.
    ///
    /// # Errors
    /// As a sampler's.
    pub(crate) fn row(&self, constraint: &Bound<'_, PyAny>) -> Result<RowRules> {
        if constraint.is_none() {
            return Ok((Arc::clone(&self.free), None));
        }
        let py = constraint.py();
        let (vocab, given) = (self.vocab(py), as_object(constraint)?);
        let mut rules = rules_over(&vocab, "constraint", &given, Cache::Thread)?;
        if let Some(ends) = &self.end_tokens {
            rules = rules.with_end_tokens(ends.clone())?;
        }
        if !vocab.end_of_generation().is_empty() {
            rules = rules.with_end_of_generation(vocab.end_of_generation())?;
        }
        // Where nothing is known to stop on, a finished row is left alone.
        let rules = match rules.clone().with_after(self.after) {
            Err(RulesError::NothingToStopOn) => rules,
            stops => stops?,
        };
        Ok((Arc::new(rules), Some(Arc::new(given.unbind()))))
    }

    /// The vocabulary, where it is one and not a size alone.
    pub(crate) fn vocabulary(&self) -> Option<&Py<Vocab>> {
        self.vocab.as_ref()
    }

    /// The rules of all rows: one constraint for so many, or a list with one for each.
    ///
    /// # Errors
    /// As a sampler's, naming the row; `OptionError` for a count that does not fit.
    pub(crate) fn rows(&self, constraint: &Bound<'_, PyAny>, rows: Option<i64>) -> Result<Vec<RowRules>> {
        let count = rows.map(|rows| unsigned("rows", rows)).transpose()?.map(|rows| rows as usize);
        if let Some(count) = count.filter(|&count| count > MOST_ROWS) {
            return Err(Class::Option.error(format!("rows is {count}: a batch has up to {MOST_ROWS}")));
        }
        let Some(each) = one_each(constraint)? else {
            let Some(count) = count else {
                let message = "rows is not given: say how many rows follow one constraint, or give a list of them";
                return Err(Class::Option.error(message));
            };
            return Ok(vec![self.row(constraint)?; count]);
        };
        if count.is_some_and(|count| count != each.len()) {
            let message = format!("rows is {}, but {} constraints are given", count.unwrap_or_default(), each.len());
            return Err(Class::Option.error(message));
        }
        // Rows of one object share their rules.
        let mut known: HashMap<*mut pyo3::ffi::PyObject, RowRules> = HashMap::new();
        let mut all = Vec::with_capacity(each.len());
        for (row, constraint) in each.iter().enumerate() {
            let rules = match known.get(&constraint.as_ptr()) {
                Some(rules) => rules.clone(),
                None => self.row(constraint).map_err(|error| error.at(&format!("row {row}: ")))?,
            };
            known.insert(constraint.as_ptr(), rules.clone());
            all.push(rules);
        }
        released(constraint.py(), || one_vocabulary(&all))?;
        Ok(all)
    }
}

/// A list or tuple with a constraint for each row; `None` for anything that is one constraint, as a list of str is.
fn one_each<'py>(constraint: &Bound<'py, PyAny>) -> Result<Option<Vec<Bound<'py, PyAny>>>> {
    let each: Vec<Bound<'py, PyAny>> = match (constraint.cast::<PyList>(), constraint.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return Ok(None),
    };
    let texts = |item: &Bound<'py, PyAny>| item.is_instance_of::<pyo3::types::PyString>();
    if !each.is_empty() && each.iter().all(texts) {
        return Ok(None);
    }
    if let Some(row) = each.iter().position(|item| texts(item) && !looks_like_payload(item)) {
        let name = type_name(&each[(row + 1) % each.len()]);
        let message = format!("row {row} is a str among others of type {name}: give a list of str for its values");
        return Err(PyTypeError::new_err(message).into());
    }
    debug_assert!(is_list(constraint));
    Ok(Some(each))
}

fn looks_like_payload(text: &Bound<'_, PyAny>) -> bool {
    text.extract::<String>().is_ok_and(|text| text.trim_start().starts_with('{'))
}

/// Checks that no two sets are known to be for different vocabularies.
fn one_vocabulary(rows: &[RowRules]) -> Result<()> {
    let mut first: Option<(usize, String)> = None;
    for (row, rules) in rows.iter().enumerate() {
        let sets = rules.0.constraints().iter().flat_map(|(_, constraint)| constraint.sets());
        for found in sets.filter_map(|set| set.fingerprint()) {
            match &first {
                None => first = Some((row, found.to_owned())),
                Some((other, expected)) if expected != found => {
                    return Err(Class::Vocabulary.error(format!(
                        "row {row}: its set was saved for another vocabulary ({found}) than that of row {other} \
                         ({expected})"
                    )));
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// `"row"` or true, `"siblings"`, or false.
pub(crate) fn which_repeat(given: &Bound<'_, PyAny>) -> Result<Option<NoRepeat>> {
    if let Ok(flag) = given.extract::<bool>() {
        return Ok(flag.then_some(NoRepeat::Row));
    }
    let word = given.cast::<PyString>().ok();
    match word.as_ref().and_then(|word| word.to_str().ok()) {
        Some("row") => Ok(Some(NoRepeat::Row)),
        Some("siblings") => Ok(Some(NoRepeat::Siblings)),
        _ => Err(Class::Option
            .error(format!("no_repeat is {}: it must be True, False, \"row\" or \"siblings\"", shown(given)))),
    }
}

/// The one trie of all rows with a filter; `None` without one.
pub(crate) fn filtered<'py>(
    constraint: &Bound<'py, PyAny>,
    allow: Option<&Bound<'py, PyAny>>,
    deny: Option<&Bound<'py, PyAny>>,
) -> Result<Option<Bound<'py, PyAny>>> {
    if allow.is_none() && deny.is_none() {
        return Ok(None);
    }
    if constraint.is_instance_of::<Trie>() || constraint.is_instance_of::<FilteredTrie>() {
        return Ok(Some(constraint.call_method1("filtered", (allow, deny))?));
    }
    Err(Class::Option.error(format!(
        "allow and deny go with one Trie for all rows, not with {}: give trie.filtered(...) for each row",
        type_name(constraint)
    )))
}

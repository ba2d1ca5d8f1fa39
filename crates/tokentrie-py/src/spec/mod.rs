//! From what Python gives as a constraint to a spec, and from a spec over a vocabulary to what runs it.

pub(crate) mod depth;
pub(crate) mod helpers;
pub(crate) mod object;
pub(crate) mod payloads;
#[cfg(feature = "llama")]
pub(crate) mod receipt;

use crate::chat::constraint::ChatConstraint;
use crate::convert::gil::asked;
use crate::convert::strings::{is_list, texts};
use crate::errors::{Class, Error, Result, warn};
use crate::exit::attached_or_fail;
use crate::rule::gate::ThinkGate;
use crate::rule::problem::{of_problem, problem};
use crate::rule::typed::{Typed, is_type, of_type};
use crate::spec::depth::Inside;
use crate::spec::object::Constraint;
use crate::spec::payloads::Cache;
use crate::trie::Trie;
use crate::trie::filter::FilteredTrie;
use crate::trie::live::LiveSet;
use crate::trie::payload::{payload_text, warn_dropped};
use crate::vocab::VocabArg;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::sync::{Arc, Mutex, PoisonError};
use tokentrie::constraint::{
    AnyRule, Built, CompiledRule, DataOnly, Host, HostConstraint, HostRule, Object, Over, Spec, SpecError, SpecProblem,
    single_span,
};
use trie_core::work::Limits;
use trie_core::{AnyConstraint, Constraint as _, Problem, SpanRules};
use trie_formats::{Payload, PayloadReport};
use trie_text::{TextValues, ValueSets, ValuesError, Vocab};

/// Context for building constraints: the tokens, and the caches of texts and payloads.
#[derive(Clone, Copy)]
pub(crate) struct Around<'t> {
    pub(crate) over: Over<'t>,
    /// Cached sets of a model.
    pub(crate) sets: Option<&'t ValueSets>,
    pub(crate) cache: Cache<'t>,
}

/// The spec that an object is, whatever its kind: the one place that tells the kinds of Python's apart.
///
/// `what` is the name of the argument; `vocab` the vocabulary that it will be used with, where that is known.
///
/// # Errors
/// `TypeError` for anything that is not a constraint, `PayloadError` for a str that is not JSON, those of reading a
/// spec.
pub(crate) fn spec_of(what: &str, given: &Bound<'_, PyAny>, vocab: Option<&Arc<Vocab>>) -> Result<Spec> {
    let _inside = Inside::one_more()?;
    if let Ok(trie) = given.cast::<Trie>() {
        return Ok(Spec::Object(Object::Set(trie.get().core().clone())));
    }
    if let Ok(filtered) = given.cast::<FilteredTrie>() {
        return Ok(Spec::Object(Object::Spans(single_span(filtered.get().core().clone().into()))));
    }
    if let Ok(live) = given.cast::<LiveSet>() {
        return Ok(Spec::Object(Object::Spans(single_span(live.get().now(given.py())?.into()))));
    }
    if let Ok(gate) = given.cast::<ThinkGate>() {
        return gate.get().spec(given.py(), vocab);
    }
    if let Ok(constraint) = given.cast::<Constraint>() {
        return Ok(Spec::Object(Constraint::object(constraint)));
    }
    if let Ok(reply) = given.cast::<ChatConstraint>() {
        return Ok(Spec::Object(Object::Constraint(Arc::new(ReplyOfPython(reply.clone().unbind())))));
    }
    if let Ok(typed) = given.cast::<Typed>() {
        return spec_of(what, typed.get().held(given.py()), vocab);
    }
    if is_type(given) {
        return spec_of(what, &of_type(given)?, vocab);
    }
    if is_list(given) {
        return Ok(Spec::Choice(texts(given)?));
    }
    if let Some(spec) = of_dict(given)? {
        return Ok(spec.resolve(&DataOnly)?);
    }
    payload_text(what, given, of_text)
}

/// The spec of an object that another constraint holds.
///
/// # Errors
/// As [`spec_of`].
pub(crate) fn part_of(given: &Bound<'_, PyAny>) -> Result<Spec> {
    match given.cast::<LiveSet>() {
        Ok(live) => Ok(Spec::Object(Object::Constraint(Arc::new(LiveOfPython(live.clone().unbind()))))),
        Err(_) => spec_of("part", given, None),
    }
}

/// The spec of an object, as data as far as it is that: a Trie or a rule of a user's stays an object in it.
///
/// # Errors
/// As [`spec_of`].
pub(crate) fn data_of(what: &str, given: &Bound<'_, PyAny>) -> Result<Spec> {
    let py = given.py();
    let _inside = Inside::one_more()?;
    if let Some(compiled) = given.cast::<Constraint>().ok().and_then(|given| given.get().compiled()) {
        return Ok(compiled.original().clone());
    }
    if let Ok(typed) = given.cast::<Typed>() {
        return data_of(what, typed.get().held(py));
    }
    if is_type(given) {
        return data_of(what, &of_type(given)?);
    }
    if let Ok(gate) = given.cast::<ThinkGate>() {
        return gate.get().data(py);
    }
    if let Ok(reply) = given.cast::<ChatConstraint>() {
        return Ok(reply.get().spec(py));
    }
    match spec_of(what, given, None)? {
        Spec::Payload { text, path: None } => Ok(Spec::payload(&text)?),
        other => Ok(other),
    }
}

/// The spec that a dictionary is, unless it is a payload: that has descriptors.
pub(crate) fn of_dict(given: &Bound<'_, PyAny>) -> Result<Option<Spec>> {
    let Ok(dict) = given.cast::<PyDict>() else { return Ok(None) };
    if dict.contains("descriptors")? {
        return Ok(None);
    }
    let meanings = !dict.is_empty() && dict.iter().all(|(_, value)| value.is_instance_of::<PyString>());
    let read = |text: &[u8]| match Spec::from_json(text) {
        Err(error) if meanings && matches!(error.problem(), SpecProblem::NoKind { meant: None, .. }) => {
            let message = format!(
                "{error}. Names with what they mean are a question of Model.decide; as a constraint give list(...) \
                 of the names"
            );
            Err(Class::Option.error(message))
        }
        read => Ok(read?),
    };
    payload_text("constraint", given, read).map(Some)
}

/// The spec that a text is: a payload has descriptors, all else is a spec or a JSON Schema.
fn of_text(text: &[u8]) -> Result<Spec> {
    if Payload::is_meant(text) {
        return Ok(Spec::Payload { text: text.into(), path: None });
    }
    match Spec::from_json(text) {
        // Where payloads are read it is said what is wrong.
        Err(error) if matches!(error.problem(), SpecProblem::Json { .. }) => {
            Ok(Spec::Payload { text: text.into(), path: None })
        }
        read => Ok(read?.resolve(&DataOnly)?),
    }
}

/// A dictionary that is a spec, or a type, as an object; everything else as it is.
pub(crate) fn as_object<'py>(given: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    if is_type(given) {
        return of_type(given);
    }
    match of_dict(given)? {
        Some(spec) => Ok(Bound::new(given.py(), object::Spec::made(spec, &DataOnly)?)?.into_any()),
        None => Ok(given.clone()),
    }
}

/// A list of str, or the texts of a rule or a spec; `None` for other things.
///
/// # Errors
/// As [`list`], and those of a rule that has too many texts.
pub(crate) fn listed(values: &Bound<'_, PyAny>) -> Result<Option<TextValues>> {
    /// More are no choice.
    const MOST: usize = tokentrie::constraint::MOST_TEXTS;
    let mut given = as_object(values)?;
    if let Ok(typed) = given.cast::<Typed>() {
        given = typed.get().held(values.py()).clone();
    }
    if let Ok(constraint) = given.cast::<Constraint>() {
        return Ok(Constraint::listed(constraint, MOST)?.map(TextValues::new));
    }
    is_list(&given).then(|| texts(&given)).transpose()
}

/// Builds a constraint that was given.
///
/// # Errors
/// As [`spec_of`], and those of building it.
pub(crate) fn built(what: &str, given: &Bound<'_, PyAny>, around: &Around<'_>) -> Result<Built> {
    let py = given.py();
    if let Some(compiled) = given.cast::<Constraint>().ok().and_then(|given| given.get().compiled()) {
        return with_host(py, around, |over, host| compiled.build(over, host));
    }
    let spec = spec_of(what, given, around.over.vocab)?;
    with_host(py, around, |over, host| spec.build(over, host))
}

/// Constraints by path of one that was given.
///
/// # Errors
/// As [`built`].
pub(crate) fn constraint(
    what: &str,
    given: &Bound<'_, PyAny>,
    around: &Around<'_>,
) -> Result<tokentrie::constraint::Spans> {
    let py = given.py();
    // What stands already, and texts of payloads: all that could be saved is the way through a spec.
    if let Ok(trie) = given.cast::<Trie>() {
        return Ok(single_span(trie.get().core().clone().into()));
    }
    if let Ok(filtered) = given.cast::<FilteredTrie>() {
        return Ok(single_span(filtered.get().core().clone().into()));
    }
    if let Ok(live) = given.cast::<LiveSet>() {
        return Ok(single_span(live.get().now(py)?.into()));
    }
    if let Some(compiled) = given.cast::<Constraint>().ok().and_then(|given| given.get().compiled()) {
        return with_host(py, around, |over, host| compiled.constraint(over, host));
    }
    if given.is_exact_instance_of::<PyString>() || given.is_exact_instance_of::<PyBytes>() {
        let n_vocab = around.over.n_vocab;
        let payload = payload_text(what, given, |text| match around.cache.read(py, text, Some(n_vocab))? {
            Err(_) if !Payload::is_meant(text) => Ok(None),
            read => Ok(Some(read?)),
        })?;
        if let Some(payload) = payload {
            warn_dropped(py, &payload.report, n_vocab)?;
            return Ok(Arc::clone(&payload.constraints));
        }
    }
    let spec = spec_of(what, given, around.over.vocab)?;
    with_host(py, around, |over, host| spec.constraint(over, host))
}

/// Rules over the constraints that were given, each for this vocabulary.
///
/// # Errors
/// Those of [`constraint`], and `VocabularyError` for a set of another vocabulary.
pub(crate) fn rules_over(
    vocab: &VocabArg<'_>,
    what: &str,
    constraint: &Bound<'_, PyAny>,
    cache: Cache<'_>,
) -> Result<SpanRules> {
    let around = Around { over: Over { n_vocab: vocab.size(), vocab: vocab.core() }, sets: None, cache };
    let rules = SpanRules::new(self::constraint(what, constraint, &around)?, vocab.size())?;
    if let VocabArg::Vocab(vocab) = vocab {
        let mut sets = rules.constraints().iter().flat_map(|(_, constraint)| constraint.sets());
        sets.try_for_each(|set| vocab.get().core().check_set(set))?;
    }
    Ok(rules)
}

/// Runs `build` without the GIL, and then says what it warned of.
pub(crate) fn with_host<T: Send>(
    py: Python<'_>,
    around: &Around<'_>,
    build: impl FnOnce(&Over<'_>, &dyn Host) -> std::result::Result<T, SpecError> + Send,
) -> Result<T> {
    let (made, warnings) = told_by_host(py, around, Limits::NONE, build)?;
    let made = made?;
    warnings.iter().try_for_each(|warning| warn(py, warning))?;
    Ok(made)
}

/// Result or error of a spec, and the warnings about it.
type Told<T> = (std::result::Result<T, SpecError>, Vec<String>);

/// As [`with_host`], within limits, for callers that warn themselves.
pub(crate) fn told_by_host<T: Send>(
    py: Python<'_>,
    around: &Around<'_>,
    limits: Limits,
    build: impl FnOnce(&Over<'_>, &dyn Host) -> std::result::Result<T, SpecError> + Send,
) -> Result<Told<T>> {
    let host = HostOfPython { around, warnings: Mutex::default() };
    let made = asked(py, limits, || build(&around.over, &host))?;
    Ok((made, host.warnings.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// Context of specs in a Python program. Names and files were put in their place before.
struct HostOfPython<'a, 't> {
    around: &'a Around<'t>,
    warnings: Mutex<Vec<String>>,
}

impl Host for HostOfPython<'_, '_> {
    fn texts(&self, values: &TextValues, vocab: &Vocab) -> std::result::Result<trie_core::Trie, ValuesError> {
        let set = match self.around.sets {
            Some(sets) => sets.get(values)?,
            None => values.set(vocab)?,
        };
        Ok(set.trie().clone())
    }

    fn payload(&self, text: &[u8], n_vocab: Option<usize>) -> std::result::Result<Arc<Payload>, SpecProblem> {
        self.around.cache.payload(text, n_vocab)
    }

    fn report_dropped(&self, report: &PayloadReport) {
        if let Some(warning) = report.warning(self.around.over.n_vocab) {
            self.warn(&warning);
        }
    }

    fn warn(&self, warning: &str) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning.to_owned());
    }
}

/// A rule of a user's as an object that specs may hold.
pub(crate) fn user_rule(rule: &Bound<'_, Constraint>) -> Arc<dyn HostRule> {
    Arc::new(RuleOfPython(rule.clone().unbind()))
}

#[derive(Debug)]
struct RuleOfPython(Py<Constraint>);

impl HostRule for RuleOfPython {
    fn name(&self) -> String {
        attached_or_fail(|py| PyResult::Ok(self.0.bind(py).get_type().name()?.to_string()))
            .unwrap_or_else(|_| "Rule".to_owned())
    }

    fn rule(&self) -> std::result::Result<Arc<dyn AnyRule>, Problem> {
        attached_or_fail(|py| Constraint::rule(self.0.bind(py))).map_err(problem)
    }

    fn compile(&self, vocab: &Arc<Vocab>) -> std::result::Result<Arc<dyn CompiledRule>, Problem> {
        attached_or_fail(|py| Constraint::asked_over(self.0.bind(py), vocab)).map_err(problem)
    }
}

#[derive(Debug)]
struct ReplyOfPython(Py<ChatConstraint>);

impl HostConstraint for ReplyOfPython {
    fn name(&self) -> String {
        "ChatConstraint".to_owned()
    }

    fn build(&self, over: &Over<'_>) -> std::result::Result<AnyConstraint, Problem> {
        attached_or_fail(|py| ChatConstraint::over(self.0.bind(py), over.vocab, over.n_vocab)).map_err(problem)
    }

    fn check(&self, part: &str, vocab: &Arc<Vocab>) -> std::result::Result<(), Problem> {
        attached_or_fail(|py| ChatConstraint::check(self.0.bind(py), part, vocab)).map_err(problem)
    }
}

/// A set that changes: whoever asks gets it as it is then.
#[derive(Debug)]
struct LiveOfPython(Py<LiveSet>);

impl HostConstraint for LiveOfPython {
    fn name(&self) -> String {
        "LiveSet".to_owned()
    }

    fn build(&self, _over: &Over<'_>) -> std::result::Result<AnyConstraint, Problem> {
        attached_or_fail(|py| Ok::<_, Error>(self.0.bind(py).get().now(py)?.into())).map_err(problem)
    }
}

impl From<SpecError> for Error {
    fn from(error: SpecError) -> Self {
        let (place, problem) = error.into_parts();
        let error = of_spec(problem);
        // What was not written as a spec has no places.
        if place == "$" { error } else { error.at(&format!("{place}: ")) }
    }
}

pub(crate) fn of_spec(problem: SpecProblem) -> Error {
    let message = problem.to_string();
    match problem {
        SpecProblem::Texts(error) => error.into(),
        SpecProblem::Payload(error) => error.into(),
        SpecProblem::Path(error) => error.into(),
        SpecProblem::Rule(error) => error.into(),
        SpecProblem::NotListed(error) => error.into(),
        SpecProblem::Sequence(error) => error.into(),
        SpecProblem::Gate(error) => error.into(),
        SpecProblem::Form(error) => error.into(),
        SpecProblem::Vocab(error) => error.into(),
        SpecProblem::Template(error) => error.into(),
        SpecProblem::Reply(error) => error.into(),
        SpecProblem::Host(problem) => of_problem(&problem, String::new()),
        SpecProblem::Regex(_)
        | SpecProblem::Regular(_)
        | SpecProblem::Grammar(_)
        | SpecProblem::Wasm(_)
        | SpecProblem::Lark(_)
        | SpecProblem::Schema { .. }
        | SpecProblem::Listed(_) => Class::Rule.error(message),
        SpecProblem::NotHere { .. } => PyTypeError::new_err(message).into(),
        SpecProblem::NeedsVocab { what, n_vocab, .. } if what == "choice" => {
            let message = format!("a list of str needs a Vocab that can tokenize, not only the size {n_vocab} of one");
            PyTypeError::new_err(message).into()
        }
        SpecProblem::NeedsVocab { what, n_vocab, .. } => {
            let message = format!(
                "a {what} needs a Vocab, which knows the bytes of each token, not only the size {n_vocab} of one"
            );
            PyTypeError::new_err(message).into()
        }
        SpecProblem::Over(_) => Class::Option.error(message),
        other => Error::of_kind(other.kind(), &message),
    }
}

//! Rules over bytes: the class that all of them extend, and what is worked out of one for a vocabulary.

pub(crate) mod date;
pub(crate) mod form;
pub(crate) mod gate;
pub(crate) mod grammar;
pub(crate) mod number;
pub(crate) mod of_user;
pub(crate) mod regex;
pub(crate) mod regular;
pub(crate) mod samples;
pub(crate) mod schema;
pub(crate) mod sequence;
pub(crate) mod stats;
pub(crate) mod time;
pub(crate) mod typed;

use crate::convert::generic::generic;
use crate::convert::gil::{asked, locked, raise_pending};
use crate::convert::ids::shown;
use crate::convert::strings::text_bytes;
use crate::errors::{Class, Error, Result};
use crate::exit::module;
use crate::rule::of_user::{Raised, UserRule};
use crate::rule::sequence::added;
use crate::rule::stats::RuleStats;
use crate::vocab::Vocab;
use lru::LruCache;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use trie_core::Problem;
use trie_core::work::{Limits, Over as Ended};
use trie_rules::{AnyRule, ByRuleError, DeadEnd, MaskLimits, Read, Regular, Spelled, WasmError};
use trie_schema::GuidedError;

/// For how many vocabularies a rule keeps what it worked out.
const VOCABULARIES: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// A rule says byte by byte what may be written; its texts are the ones that it allows as a whole.
///
/// Regex, Grammar and the others are rules. Write one of your own by extending this class: `start`, `step` and
/// `is_end` say what is legal, and everything that takes a constraint takes it. States are what you like: equal ones
/// must answer alike, and they must be hashable, because each is asked only once. `step` says None exactly where no
/// text begins so. What they raise ends the call that asked, with that exception. A method `allowed_bytes(state)`, if
/// there is one, gives the only bytes (ints) for which `step` need be asked.
///
/// A rule is bound to no vocabulary. What it works out for one it keeps, and shares between all who use it there.
///
/// Args:
///     args, keywords: those of what extends it; Rule itself uses none.
///
/// Example:
///     >>> class Balanced(tokentrie.Rule):  # as many ( as ), at least one, at most 5 open
///     ...     def start(self):
///     ...         return (0, False)
///     ...     def step(self, state, byte):
///     ...         depth, begun = state
///     ...         if byte == ord("(") and depth < 5:
///     ...             return (depth + 1, True)
///     ...         return (depth - 1, True) if byte == ord(")") and depth else None
///     ...     def is_end(self, state):
///     ...         return state == (0, True)
///     >>> vocab = tokentrie.Vocab.from_tokens([b"(", b")", b"))", b"x"])
///     >>> sampler = tokentrie.Sampler(vocab, Balanced())
///     >>> sampler.accept([0, 0])
///     >>> sampler.allowed()
///     array([0, 1, 2], dtype=int32)
#[pyclass(frozen, subclass, module = "tokentrie")]
pub(crate) struct Rule {
    /// What it is; None for one of a user's, which is its own object.
    known: Option<Arc<dyn AnyRule>>,
    /// Where it is a finite automaton: what can be put together with others.
    regular: Option<Regular>,
    /// By the address of the vocabulary, which its entry keeps.
    over: Mutex<Option<LruCache<usize, Over>>>,
}

/// A rule over a vocabulary.
#[derive(Clone)]
struct Over {
    _vocab: Arc<trie_text::Vocab>,
    spelled: Arc<dyn Spelled>,
    /// Of a user's.
    user: Option<UserRule>,
}

impl Rule {
    /// The part of an object that all rules have.
    pub(crate) fn of(rule: impl AnyRule + 'static) -> Self {
        Self { known: Some(Arc::new(rule)), regular: None, over: Mutex::default() }
    }

    /// The same of a finite automaton.
    pub(crate) fn of_regular(rule: Regular) -> Self {
        Self { known: Some(rule.any()), regular: Some(rule), over: Mutex::default() }
    }

    /// The finite automaton that it is, if it is one.
    pub(crate) fn regular(&self) -> Option<&Regular> {
        self.regular.as_ref()
    }

    /// All texts, in UTF-8.
    ///
    /// # Errors
    /// `RuleError` for too many, texts without end, and bytes that are no text; what a rule of a user's raises.
    pub(crate) fn listed(slf: &Bound<'_, Self>, limit: usize) -> Result<Vec<String>> {
        let any = Self::any(slf)?;
        let texts = asked(slf.py(), Limits::default(), || any.texts(limit))?;
        heard(&*any)?;
        let refused = |error: String| Class::Rule.error(error);
        let texts = texts.map_err(|error| refused(format!("{}: {error}", shown(slf.as_any()))))?;
        let text = |bytes| String::from_utf8(bytes).map_err(|error| refused(format!("a text is no UTF-8: {error}")));
        texts.into_iter().map(text).collect()
    }

    /// What it is, to be used anywhere.
    pub(crate) fn any(slf: &Bound<'_, Self>) -> Result<Arc<dyn AnyRule>> {
        match &slf.get().known {
            Some(known) => Ok(Arc::clone(known)),
            None => Ok(Arc::new(UserRule::new(slf.as_any())?)),
        }
    }

    /// Over a vocabulary: worked out once, and kept.
    ///
    /// # Errors
    /// `RuleError` where it allows nothing, `VocabularyError` where the vocabulary cannot begin it, and what a rule of
    /// a user's raises.
    pub(crate) fn over(slf: &Bound<'_, Self>, vocab: &Arc<trie_text::Vocab>) -> Result<Arc<dyn Spelled>> {
        let (py, key) = (slf.py(), Arc::as_ptr(vocab) as usize);
        if let Some(over) = locked(py, &slf.get().over)?.as_mut().and_then(|known| known.get(&key)) {
            return Ok(Arc::clone(&over.spelled));
        }
        let (any, user): (Arc<dyn AnyRule>, _) = if let Some(known) = &slf.get().known {
            (Arc::clone(known), None)
        } else {
            collect_now_and_then(py)?;
            let user = UserRule::new(slf.as_any())?;
            (Arc::new(user.clone()), Some(user))
        };
        // Of a rule that was made within its limits this is the first mask.
        let limits = Limits::default().seconds(20.0).steps(u64::MAX);
        let spelled = asked(py, limits, || any.spelled(vocab.spelling(), MaskLimits::default()))??;
        let over = Over { _vocab: Arc::clone(vocab), spelled: Arc::clone(&spelled), user };
        locked(py, &slf.get().over)?.get_or_insert_with(|| LruCache::new(VOCABULARIES)).put(key, over);
        Ok(spelled)
    }
}

/// A rule of a user's and what it keeps hold each other. Python's collector counts objects and not their bytes, so it
/// would come late.
fn collect_now_and_then(py: Python<'_>) -> PyResult<()> {
    const RULES: usize = 256;
    static MADE: AtomicUsize = AtomicUsize::new(0);
    if MADE.fetch_add(1, Ordering::Relaxed) % RULES == RULES - 1 {
        module(py, "gc")?.call_method0("collect")?;
    }
    Ok(())
}

fn defined_by_users(slf: &Bound<'_, Rule>, method: &str) -> PyErr {
    let name = slf.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyNotImplementedError::new_err(format!("{name} has no method {method}: what extends Rule defines it"))
}

generic!(Rule);

#[pymethods]
impl Rule {
    #[new]
    #[pyo3(signature = (*args, **keywords))]
    fn new(args: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>) -> Self {
        let _ = (args, keywords);
        Self { known: None, regular: None, over: Mutex::default() }
    }

    /// The state before the first byte: any hashable object.
    ///
    /// Returns:
    ///     Any.
    ///
    /// Raises:
    ///     NotImplementedError: what extends Rule defines it.
    ///
    /// Example:
    ///     >>> class Yes(tokentrie.Rule):
    ///     ...     def start(self):
    ///     ...         return b"yes"
    ///     ...     def step(self, state, byte):
    ///     ...         return state[1:] if state[:1] == bytes([byte]) else None
    ///     ...     def is_end(self, state):
    ///     ...         return state == b""
    ///     >>> Yes().matches("yes")
    ///     True
    fn start(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Err(defined_by_users(slf, "start"))
    }

    /// The state after one byte more, or None if no text begins so.
    ///
    /// Args:
    ///     state: what `start` or `step` gave.
    ///     byte: int, 0 to 255.
    ///
    /// Returns:
    ///     Any | None.
    ///
    /// Raises:
    ///     NotImplementedError: what extends Rule defines it.
    ///
    /// Example:
    ///     >>> class Dots(tokentrie.Rule):  # one to three dots
    ///     ...     start = lambda self: 0
    ///     ...     step = lambda self, state, byte: state + 1 if byte == ord(".") and state < 3 else None
    ///     ...     is_end = lambda self, state: state > 0
    ///     >>> (Dots().matches("..."), Dots().matches("...."))
    ///     (True, False)
    fn step(slf: &Bound<'_, Self>, state: &Bound<'_, PyAny>, byte: u8) -> PyResult<Option<Py<PyAny>>> {
        let _ = (state, byte);
        Err(defined_by_users(slf, "step"))
    }

    /// Whether a text ends at a state; longer ones may go on.
    ///
    /// Args:
    ///     state: what `start` or `step` gave.
    ///
    /// Returns:
    ///     bool.
    ///
    /// Raises:
    ///     NotImplementedError: what extends Rule defines it.
    ///
    /// Example:
    ///     >>> class Even(tokentrie.Rule):  # an even number of letters a, not none
    ///     ...     start = lambda self: 2
    ///     ...     step = lambda self, state, byte: 1 - state % 2 if byte == ord("a") else None
    ///     ...     is_end = lambda self, state: state == 0
    ///     >>> (Even().matches("aa"), Even().matches("aaa"))
    ///     (True, False)
    fn is_end(slf: &Bound<'_, Self>, state: &Bound<'_, PyAny>) -> PyResult<bool> {
        let _ = state;
        Err(defined_by_users(slf, "is_end"))
    }

    /// Whether a text is legal as a whole. Cost: O(bytes).
    ///
    /// Args:
    ///     text: str or bytes.
    ///
    /// Returns:
    ///     bool.
    ///
    /// Raises:
    ///     TypeError: it is neither.
    ///     RuleError: a JsonSchema or a Lark is too complex to read this text on.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("[0-9]{2}").matches("42")
    ///     True
    fn matches(slf: &Bound<'_, Self>, text: &Bound<'_, PyAny>) -> Result<bool> {
        let (any, text) = (Self::any(slf)?, text_bytes("text", text)?);
        let read = asked(slf.py(), Limits::NONE, || any.read(&text))?;
        heard(&*any)?;
        if let Read::Unread { at } = read {
            return Err(Class::Rule.error(format!("the rule is too complex to read on after byte {at} of the text")));
        }
        Ok(read == Read::Whole)
    }

    /// What a text stands for: the text itself, unless the rule has a type.
    ///
    /// `Generated.value` and the values of a form are what it gives. Extend it where your rule has a type.
    ///
    /// Args:
    ///     text: str, legal as a whole.
    ///
    /// Returns:
    ///     Any.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("[a-z]+").parse("word")
    ///     'word'
    #[expect(clippy::unused_self, reason = "a method of Python has an object")]
    fn parse<'py>(&self, text: &Bound<'py, PyString>) -> Bound<'py, PyAny> {
        text.clone().into_any()
    }

    /// All texts of it, if there are few.
    ///
    /// Args:
    ///     limit: the most texts.
    ///
    /// Returns:
    ///     list[str], shorter ones first, those of equal length in the order of their bytes.
    ///
    /// Raises:
    ///     RuleError: there are more, or there is no end of them.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("yes|no?").texts()
    ///     ['n', 'no', 'yes']
    #[pyo3(signature = (limit=10_000))]
    fn texts(slf: &Bound<'_, Self>, limit: usize) -> Result<Vec<String>> {
        Self::listed(slf, limit)
    }

    /// Looks for laws that a rule breaks: whether answers repeat, and whether every text can be completed.
    ///
    /// For rules of your own. States are looked at, shortest texts first, by all 256 bytes: O(256 · states) calls.
    ///
    /// Args:
    ///     states: the most states to look at.
    ///
    /// Returns:
    ///     bool: whether there are no more states, so that nothing was missed.
    ///
    /// Raises:
    ///     RuleError: a law is broken; it says which, and after which text.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("[a-z]{3}").check()
    ///     True
    #[pyo3(signature = (states=1000))]
    fn check(slf: &Bound<'_, Self>, states: usize) -> Result<bool> {
        let any = Self::any(slf)?;
        let checked = asked(slf.py(), Limits::default().seconds(60.0).steps(u64::MAX), || any.check(states))?;
        heard(&*any)?;
        Ok(checked.map_err(|broken| Class::Rule.error(broken.to_string()))?.complete)
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        added(other, slf.as_any())
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        either(slf.as_any(), other)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        either(other, slf.as_any())
    }

    /// What is kept of it for a vocabulary, and how often that was of use.
    ///
    /// Args:
    ///     vocab: Vocab.
    ///
    /// Returns:
    ///     RuleStats. All zeros where it was not used with that vocabulary.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("[0-9]+").stats(tokentrie.Model().vocab)
    ///     RuleStats(masks=0, bytes=0, hits=0, misses=0)
    fn stats(slf: &Bound<'_, Self>, vocab: &Bound<'_, Vocab>) -> Result<RuleStats> {
        let key = Arc::as_ptr(vocab.get().core()) as usize;
        let mut over = locked(slf.py(), &slf.get().over)?;
        let stats = over.as_mut().and_then(|over| over.peek(&key)).map(|over| over.spelled.stats()).unwrap_or_default();
        let trie_rules::MaskStats { masks, bytes, hits, misses, .. } = stats;
        Ok(RuleStats { masks, bytes, hits, misses })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("<{}>", slf.get_type().qualname()?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = module(slf.py(), "copyreg")?.getattr("__newobj__")?;
        let state = slf.getattr("__dict__").unwrap_or_else(|_| slf.py().None().into_bound(slf.py()));
        (restore, (slf.get_type(),), state).into_pyobject(slf.py())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What somebody else holds too is not this object's to give up.
        let Ok(over) = self.over.try_lock() else { return Ok(()) };
        for (_, over) in over.iter().flatten() {
            let unused = over.spelled.unused();
            if let Some(user) = over.user.as_ref().filter(|user| unused == Some(user.holders() - 1)) {
                user.traverse(&visit)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        if let Ok(mut over) = self.over.try_lock() {
            *over = None;
        }
    }
}

impl From<ByRuleError> for Error {
    fn from(error: ByRuleError) -> Self {
        match error {
            ByRuleError::Failed(problem) => of_problem(&problem, String::new()),
            ByRuleError::Unspellable { .. } | ByRuleError::NoWay { .. } => Class::Vocabulary.error(error.to_string()),
            ByRuleError::Nothing { .. } => Class::Rule.error(error.to_string()),
        }
    }
}

/// What asking a rule failed with on this thread.
///
/// # Errors
/// What a rule of a user's raised, or did.
pub(crate) fn heard(rule: &dyn AnyRule) -> Result<()> {
    rule.failed().map_or(Ok(()), |problem| Err(of_problem(&problem, String::new())))
}

/// What went wrong inside a constraint: an exception of a user's is raised as it is. `message` says where.
pub(crate) fn of_problem(problem: &Problem, message: String) -> Error {
    if let Some(raised) = problem.downcast_ref::<Raised>() {
        return Error::Python(raised.again());
    }
    if let (Some(Ended::Stopped), Err(raised)) = (problem.downcast_ref(), raise_pending()) {
        return raised;
    }
    let of_rule = problem.downcast_ref::<DeadEnd>().is_some()
        || problem.downcast_ref::<Ended>().is_some()
        || problem.downcast_ref::<GuidedError>().is_some()
        || problem.downcast_ref::<WasmError>().is_some();
    let class = if of_rule { Class::Rule } else { Class::Base };
    class.error(if message.is_empty() { problem.to_string() } else { message })
}

/// `a | b`: a text of either, as `OneOf(a, b)`. What is neither a rule nor a str is left to Python.
fn either<'py>(one: &Bound<'py, PyAny>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let py = one.py();
    let is_part = |part: &Bound<'_, PyAny>| part.is_instance_of::<Rule>() || part.is_instance_of::<PyString>();
    if !is_part(one) || !is_part(other) {
        return Ok(py.NotImplemented().into_bound(py));
    }
    Ok(module(py, "tokentrie")?.getattr("OneOf")?.call1((one, other))?)
}

//! The one map from Rust's errors to Python's exceptions.
//!
//! Every match over errors of trie-core is without a wildcard: one added there breaks the build until it is mapped
//! here.

pub(crate) mod docs;
#[cfg(feature = "llama")]
pub(crate) mod runtime;

use crate::rule::of_problem;
use pyo3::exceptions::{
    PyDeprecationWarning, PyException, PyIndexError, PyKeyboardInterrupt, PyOSError, PySystemExit, PyTimeoutError,
    PyUserWarning, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::ffi::{CStr, CString};
use std::io;
use trie_core::{
    BatchError, BuildError, DrawError, ExternalError, FileError, FileProblem, FilterError, GateError, LeafSetError,
    NotAllowed, NotInGbnf, NotListed, PayloadError, PrefixTableError, RowError, RulesError, SamplerError,
    SequenceError, SetError, SpanError, UnknownPath,
};
use trie_text::{FormError, HealingError, TextError, ValuesError, VocabError};

/// Everything that a call can fail with.
#[derive(Debug)]
pub(crate) enum Error {
    /// An exception of Python's own: a wrong type, an interrupt, one that a callback raised.
    Python(PyErr),
    /// One of ours.
    Ours(Class, String),
    /// A bad array.
    Array(String),
    /// A subscript out of range.
    Index(String),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Our exception classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Base,
    Payload,
    Trie,
    Rule,
    Vocabulary,
    NotAllowed,
    Option,
    Model,
    Context,
    Cancelled,
    TimedOut,
    Template,
    Warning,
}

struct ClassSpec {
    class: Class,
    name: &'static CStr,
    doc: &'static CStr,
    parent: Class,
    also: Also,
}

/// The class of Python's own that a class also is.
#[derive(Debug, Clone, Copy)]
enum Also {
    Nothing,
    ValueError,
    TimeoutError,
}

const fn spec(class: Class, name: &'static CStr, parent: Class, also: Also, doc: &'static CStr) -> ClassSpec {
    ClassSpec { class, name, doc, parent, also }
}

/// In the order of [`Class`], parents first.
const CLASSES: [ClassSpec; 13] = [
    spec(Class::Base, c"tokentrie.TokenTrieError", Class::Base, Also::Nothing, docs::BASE),
    spec(Class::Payload, c"tokentrie.PayloadError", Class::Base, Also::ValueError, docs::PAYLOAD),
    spec(Class::Trie, c"tokentrie.TrieError", Class::Base, Also::ValueError, docs::TRIE),
    spec(Class::Rule, c"tokentrie.RuleError", Class::Base, Also::ValueError, docs::RULE),
    spec(Class::Vocabulary, c"tokentrie.VocabularyError", Class::Base, Also::Nothing, docs::VOCABULARY),
    spec(Class::NotAllowed, c"tokentrie.TokenNotAllowedError", Class::Base, Also::Nothing, docs::NOT_ALLOWED),
    spec(Class::Option, c"tokentrie.OptionError", Class::Base, Also::ValueError, docs::OPTION),
    spec(Class::Model, c"tokentrie.ModelError", Class::Base, Also::Nothing, docs::MODEL),
    spec(Class::Context, c"tokentrie.ContextError", Class::Model, Also::Nothing, docs::CONTEXT),
    spec(Class::Cancelled, c"tokentrie.CancelledError", Class::Model, Also::Nothing, docs::CANCELLED),
    spec(Class::TimedOut, c"tokentrie.TimedOutError", Class::Cancelled, Also::TimeoutError, docs::TIMED_OUT),
    spec(Class::Template, c"tokentrie.TemplateError", Class::Model, Also::Nothing, docs::TEMPLATE),
    spec(Class::Warning, c"tokentrie.TokenTrieWarning", Class::Warning, Also::Nothing, docs::WARNING),
];

/// What a call that was ended had made before.
const PARTIAL: &str = "partial";

static TYPES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

fn types(py: Python<'_>) -> PyResult<&[Py<PyType>]> {
    let types = TYPES.get_or_try_init(py, || {
        let mut types: Vec<Py<PyType>> = Vec::with_capacity(CLASSES.len());
        for spec in &CLASSES {
            let parent = match (types.get(spec.parent as usize), spec.class) {
                (Some(parent), _) => parent.bind(py).clone(),
                (None, Class::Warning) => py.get_type::<PyUserWarning>(),
                (None, _) => py.get_type::<PyException>(),
            };
            let class = match spec.also {
                Also::Nothing => PyErr::new_type(py, spec.name, Some(spec.doc), Some(&parent), None)?,
                Also::ValueError => both(py, spec, &parent, &py.get_type::<PyValueError>())?,
                Also::TimeoutError => both(py, spec, &parent, &py.get_type::<PyTimeoutError>())?,
            };
            if spec.class == Class::Cancelled {
                class.bind(py).setattr(PARTIAL, py.None())?;
            }
            types.push(class);
        }
        PyResult::Ok(types)
    })?;
    Ok(types)
}

/// A class with two bases, which `PyErr::new_type` cannot make: `type(name, bases, namespace)`.
fn both(py: Python<'_>, spec: &ClassSpec, ours: &Bound<'_, PyType>, other: &Bound<'_, PyType>) -> PyResult<Py<PyType>> {
    let name = spec.name.to_string_lossy();
    let namespace = pyo3::types::PyDict::new(py);
    namespace.set_item("__module__", "tokentrie")?;
    namespace.set_item("__doc__", spec.doc.to_string_lossy())?;
    let bases = PyTuple::new(py, [ours, other])?;
    let name = name.strip_prefix("tokentrie.").unwrap_or(&name);
    Ok(py.get_type::<PyType>().call1((name, bases, namespace))?.cast_into::<PyType>()?.unbind())
}

/// Adds the exception classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for class in types(module.py())? {
        let class = class.bind(module.py());
        module.add(class.name()?, class)?;
    }
    Ok(())
}

/// Python's `warnings.warn` with our category.
pub(crate) fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
    match types(py)?.get(Class::Warning as usize) {
        Some(category) => PyErr::warn(py, category.bind(py), &message, 1),
        None => Ok(()),
    }
}

/// Warns of a name that will go, `now` being the one that stays.
pub(crate) fn warn_renamed(py: Python<'_>, name: &str, now: &str) -> PyResult<()> {
    let message = CString::new(format!("{name} is now {now}")).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), &message, 1)
}

impl Error {
    /// The same with the place before its message, where it is one of ours.
    #[must_use]
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::Ours(class, message) => Self::Ours(class, format!("{place}{message}")),
            other => other,
        }
    }
}

impl Class {
    pub(crate) fn error(self, message: impl Into<String>) -> Error {
        Error::Ours(self, message.into())
    }
}

/// The error of a call that was ended, with what it had generated before.
#[cfg(feature = "llama")]
pub(crate) fn with_partial<'py>(py: Python<'py>, error: Error, partial: impl IntoPyObject<'py>) -> Error {
    let error = PyErr::from(error);
    let set = error.value(py).setattr(PARTIAL, partial);
    Error::Python(set.err().unwrap_or(error))
}

impl From<Error> for PyErr {
    #[cold]
    fn from(error: Error) -> Self {
        match error {
            Error::Python(error) => error,
            Error::Array(message) => PyValueError::new_err(message),
            Error::Index(message) => PyIndexError::new_err(message),
            Error::Ours(class, message) => {
                Python::attach(|py| match types(py).map(|types| types.get(class as usize)) {
                    Ok(Some(class)) => PyErr::from_type(class.bind(py).clone(), message),
                    Ok(None) => PyException::new_err(message),
                    Err(error) => error,
                })
            }
        }
    }
}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<PayloadError> for Error {
    fn from(error: PayloadError) -> Self {
        match &error {
            PayloadError::Malformed { .. }
            | PayloadError::DuplicatePath { .. }
            | PayloadError::NoUsableLeaf { .. }
            | PayloadError::Build { .. } => Class::Payload.error(error.to_string()),
        }
    }
}

impl From<PrefixTableError> for Error {
    fn from(error: PrefixTableError) -> Self {
        match error {
            PrefixTableError::Read(error) => Self::Python(error.into()),
            error => Class::Payload.error(error.to_string()),
        }
    }
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Class::Trie.error(error.to_string())
    }
}

impl From<ExternalError> for Error {
    fn from(error: ExternalError) -> Self {
        match error {
            ExternalError::Build(error) => error.into(),
            ExternalError::File(error) => error.into(),
            other => Class::Trie.error(other.to_string()),
        }
    }
}

impl From<SetError> for Error {
    fn from(error: SetError) -> Self {
        match error {
            SetError::Build(error) => error.into(),
            SetError::OtherVocabulary { .. } => Class::Vocabulary.error(error.to_string()),
            other => Class::Trie.error(other.to_string()),
        }
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        let message = error.to_string();
        match error {
            FileError::Io { path, action: _, source } => Self::Python(match source.raw_os_error() {
                // Python chooses the class by the number and adds the path.
                Some(number) => {
                    let text = source.to_string();
                    let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text).to_owned();
                    PyOSError::new_err((number, text, path.into_os_string()))
                }
                None => io::Error::new(source.kind(), message).into(),
            }),
            FileError::Content {
                problem:
                    FileProblem::OutsideVocabulary { .. }
                    | FileProblem::OtherVocabulary { .. }
                    | FileProblem::Fingerprint { .. },
                ..
            } => Class::Vocabulary.error(message),
            _ => Class::Trie.error(message),
        }
    }
}

impl From<NotInGbnf> for Error {
    fn from(error: NotInGbnf) -> Self {
        Class::Trie.error(error.to_string())
    }
}

impl From<RulesError> for Error {
    fn from(error: RulesError) -> Self {
        match &error {
            RulesError::NoConstraint => Class::Trie.error(error.to_string()),
            RulesError::VocabularySize { .. } | RulesError::OutsideVocabulary { .. } => {
                Class::Vocabulary.error(error.to_string())
            }
            RulesError::NothingToStopOn => Class::Option.error(error.to_string()),
            _ => Class::Base.error(error.to_string()),
        }
    }
}

impl From<DrawError> for Error {
    fn from(error: DrawError) -> Self {
        let DrawError { name: _, value: _, range: _ } = &error;
        Class::Option.error(error.to_string())
    }
}

impl From<NotAllowed> for Error {
    fn from(error: NotAllowed) -> Self {
        Class::NotAllowed.error(error.to_string())
    }
}

impl From<SpanError> for Error {
    fn from(error: SpanError) -> Self {
        match error {
            SpanError::NotAllowed(error) => error.into(),
            SpanError::OutsideVocabulary { .. } => Class::Vocabulary.error(error.to_string()),
            SpanError::UnknownPath(error) => error.into(),
            SpanError::RollbackTooFar { .. } => Class::Option.error(error.to_string()),
            _ => Class::Base.error(error.to_string()),
        }
    }
}

impl From<RowError> for Error {
    fn from(error: RowError) -> Self {
        Self::Array(error.to_string())
    }
}

impl From<SamplerError> for Error {
    fn from(error: SamplerError) -> Self {
        match error {
            SamplerError::Row(error) => error.into(),
            SamplerError::Span(error) => error.into(),
            SamplerError::Problem { ref problem, .. } => of_problem(problem, error.to_string()),
            SamplerError::Damaged { .. } => Class::Trie.error(format!("{error} (Trie.open with verify=True)")),
            _ => Class::Base.error(error.to_string()),
        }
    }
}

impl From<BatchError> for Error {
    fn from(error: BatchError) -> Self {
        let class = match &error {
            BatchError::Refused { source: SpanError::NotAllowed(_), .. } => Class::NotAllowed,
            BatchError::Refused { source: SpanError::OutsideVocabulary { .. }, .. }
            | BatchError::MixedVocabularies { .. } => Class::Vocabulary,
            BatchError::Problem { problem, .. } => return of_problem(problem, error.to_string()),
            BatchError::Damaged { .. } => return Class::Trie.error(format!("{error} (Trie.open with verify=True)")),
            BatchError::Width { .. } | BatchError::Listed { .. } | BatchError::Rows(_) => {
                return Self::Array(error.to_string());
            }
            BatchError::Rules(error) => return error.clone().into(),
            BatchError::Draw(error) => return (*error).into(),
            BatchError::Endless { .. } | BatchError::NothingLeft { .. } => Class::Trie,
            BatchError::Refused { .. }
            | BatchError::Count { .. }
            | BatchError::NoSuchRow { .. }
            | BatchError::Score { .. }
            | BatchError::Groups { .. }
            | BatchError::NoWidth
            | BatchError::NoItems { .. }
            | BatchError::LengthPenalty { .. } => Class::Option,
            _ => Class::Base,
        };
        class.error(error.to_string())
    }
}

impl From<UnknownPath> for Error {
    fn from(error: UnknownPath) -> Self {
        Class::Option.error(error.to_string())
    }
}

impl From<NotListed> for Error {
    fn from(error: NotListed) -> Self {
        Class::Trie.error(error.to_string())
    }
}

impl From<GateError> for Error {
    fn from(error: GateError) -> Self {
        Class::Option.error(error.to_string())
    }
}

impl From<FilterError> for Error {
    fn from(error: FilterError) -> Self {
        let class = match error {
            FilterError::NoSuchLeaf { .. } | FilterError::OtherTrie { .. } => Class::Option,
            _ => Class::Trie,
        };
        class.error(error.to_string())
    }
}

impl From<LeafSetError> for Error {
    fn from(error: LeafSetError) -> Self {
        Class::Option.error(error.to_string())
    }
}

impl From<SequenceError> for Error {
    fn from(error: SequenceError) -> Self {
        Class::Option.error(error.to_string())
    }
}

impl From<FormError> for Error {
    fn from(error: FormError) -> Self {
        let class = match error {
            FormError::Rules(error) => return error.into(),
            FormError::Rule { error, what } => return Self::from(error).at(&format!("{what}: ")),
            FormError::NeverEnds { .. } => return Class::Option.error(format!("{error} (Text)")),
            FormError::NothingToFill
            | FormError::RepeatedName { .. }
            | FormError::TextAfterText { .. }
            | FormError::NoSlot { .. }
            | FormError::NotHealed { .. }
            | FormError::NotListed { .. }
            | FormError::Endless { .. } => Class::Option,
            FormError::NoValues { .. }
            | FormError::RepeatedValue { .. }
            | FormError::NoTokens { .. }
            | FormError::NotATree { .. }
            | FormError::Ambiguous { .. } => Class::Trie,
            FormError::Unspellable { .. } => Class::Vocabulary,
            _ => Class::Base,
        };
        class.error(error.to_string())
    }
}

impl From<VocabError> for Error {
    fn from(error: VocabError) -> Self {
        let class = class_of_vocab(&error);
        raised(&error).map_or_else(|| class.error(error.to_string()), |cause| caused(class, &error, cause))
    }
}

pub(crate) fn class_of_vocab(error: &VocabError) -> Class {
    match error {
        VocabError::Value { error, .. } => class_of_vocab(error),
        VocabError::OutOfRange { .. } => Class::Option,
        VocabError::OutsideVocabulary { .. }
        | VocabError::OtherVocabulary { .. }
        | VocabError::NoTokenizer
        | VocabError::Tokenizer(_)
        | VocabError::TokenizerFile { .. } => Class::Vocabulary,
        _ => Class::Base,
    }
}

/// What a tokenizer in Python raised.
pub(crate) fn raised(error: &VocabError) -> Option<&PyErr> {
    match error {
        VocabError::Value { error, .. } => raised(error),
        VocabError::Tokenizer(error) => error.downcast_ref(),
        _ => None,
    }
}

/// An error of ours that was caused by one of Python's; interrupts stay what they are.
pub(crate) fn caused(class: Class, error: &dyn std::error::Error, cause: &PyErr) -> Error {
    Python::attach(|py| {
        let cause = cause.clone_ref(py);
        if cause.is_instance_of::<PyKeyboardInterrupt>(py) || cause.is_instance_of::<PySystemExit>(py) {
            return Error::Python(cause);
        }
        let ours = PyErr::from(class.error(error.to_string()));
        ours.set_cause(py, Some(cause));
        Error::Python(ours)
    })
}

impl From<HealingError> for Error {
    fn from(error: HealingError) -> Self {
        match error {
            HealingError::Vocab(error) => error.into(),
            error => class_of_healing(&error).error(error.to_string()),
        }
    }
}

pub(crate) fn class_of_healing(error: &HealingError) -> Class {
    match error {
        HealingError::Vocab(error) => class_of_vocab(error),
        HealingError::NotHealed { .. } | HealingError::AllTakenBack { .. } => Class::Option,
        _ => Class::Base,
    }
}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        let class = match error {
            TextError::Vocab(error) => return error.into(),
            TextError::Build(error) => return error.into(),
            TextError::Run(error) => return error.into(),
            TextError::Empty { .. } => Class::Trie,
            TextError::CrossesBoundary { .. } => {
                return Class::Vocabulary.error(format!("{error} (Trie.from_strings with heal=True)"));
            }
            TextError::NoRoundTrip { .. } | TextError::Unspellable { .. } => Class::Vocabulary,
            _ => Class::Base,
        };
        class.error(error.to_string())
    }
}

impl From<ValuesError> for Error {
    fn from(error: ValuesError) -> Self {
        let class = match error {
            ValuesError::Text(error) => return error.into(),
            ValuesError::Healing(error) => return error.into(),
            ValuesError::NotBefore { .. } => Class::Option,
            ValuesError::Empty { .. } | ValuesError::Repeated { .. } => Class::Trie,
            ValuesError::SameTokens => Class::Vocabulary,
            _ => Class::Base,
        };
        class.error(error.to_string())
    }
}

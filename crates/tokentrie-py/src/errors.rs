//! The one map from Rust's errors to Python's exceptions.
//!
//! Every match is exhaustive and without a wildcard: an error added in Rust breaks the build until it is mapped here.

use llama_sampler::{FormError, RuntimeError};
use pyo3::exceptions::{
    PyException, PyIndexError, PyKeyboardInterrupt, PyOSError, PySystemExit, PyUserWarning, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::ffi::{CStr, CString};
use std::io;
use trie_core::{
    BuildError, DrawError, ExternalError, FileError, FileProblem, NotAllowed, NotInGbnf, PayloadError, RowError,
    RulesError, SamplerError, SetError, SpanError,
};

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
    Vocabulary,
    NotAllowed,
    Option,
    Model,
    Context,
    Cancelled,
    Warning,
}

struct ClassSpec {
    class: Class,
    name: &'static CStr,
    doc: &'static CStr,
    parent: Class,
    also_value_error: bool,
}

const fn spec(
    class: Class,
    name: &'static CStr,
    parent: Class,
    also_value_error: bool,
    doc: &'static CStr,
) -> ClassSpec {
    ClassSpec { class, name, doc, parent, also_value_error }
}

/// In the order of [`Class`], parents first.
const CLASSES: [ClassSpec; 10] = [
    spec(Class::Base, c"tokentrie.TokenTrieError", Class::Base, false, c"Base of every error that tokentrie defines."),
    spec(
        Class::Payload,
        c"tokentrie.PayloadError",
        Class::Base,
        true,
        c"A payload that is not JSON, not of the documented form, or has no usable leaf; says line, column and field.",
    ),
    spec(
        Class::Trie,
        c"tokentrie.TrieError",
        Class::Base,
        true,
        c"Sequences or sets that make no trie: none at all, an empty one, names that do not match; texts that cannot be written; or a file that holds no trie.",
    ),
    spec(
        Class::Vocabulary,
        c"tokentrie.VocabularyError",
        Class::Base,
        false,
        c"A token id that the vocabulary does not have, or a vocabulary that cannot be used.",
    ),
    spec(
        Class::NotAllowed,
        c"tokentrie.TokenNotAllowedError",
        Class::Base,
        false,
        c"A token that may not come next; says which, where, and what was allowed. The state is as before.",
    ),
    spec(
        Class::Option,
        c"tokentrie.OptionError",
        Class::Base,
        true,
        c"A setting or request out of range; says which, its value and what it may be.",
    ),
    spec(
        Class::Model,
        c"tokentrie.ModelError",
        Class::Base,
        false,
        c"A model file that cannot be used, or a decode that failed.",
    ),
    spec(
        Class::Context,
        c"tokentrie.ContextError",
        Class::Model,
        false,
        c"The context window is too small for the prompt or the output.",
    ),
    spec(
        Class::Cancelled,
        c"tokentrie.CancelledError",
        Class::Model,
        false,
        c"The call was cancelled from another thread; the model can be used again.",
    ),
    spec(
        Class::Warning,
        c"tokentrie.TokenTrieWarning",
        Class::Warning,
        false,
        c"Something was left out, such as leaves that the vocabulary cannot spell.",
    ),
];

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
            let class = if spec.also_value_error {
                both(py, spec, &parent, &py.get_type::<PyValueError>())?
            } else {
                PyErr::new_type(py, spec.name, Some(spec.doc), Some(&parent), None)?
            };
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

impl Class {
    pub(crate) fn error(self, message: impl Into<String>) -> Error {
        Error::Ours(self, message.into())
    }
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
            RulesError::NoTrie => Class::Trie.error(error.to_string()),
            RulesError::VocabularySize { .. } | RulesError::OutsideVocabulary { .. } => {
                Class::Vocabulary.error(error.to_string())
            }
            RulesError::NothingToStopOn => Class::Option.error(error.to_string()),
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
            SpanError::RollbackTooFar { .. } | SpanError::UnknownPath { .. } => Class::Option.error(error.to_string()),
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
        }
    }
}

impl From<FormError> for Error {
    fn from(error: FormError) -> Self {
        let class = match error {
            FormError::Rules(error) => return error.into(),
            FormError::NothingToFill
            | FormError::RepeatedName { .. }
            | FormError::TextAfterText { .. }
            | FormError::NotHealed { .. }
            | FormError::Endless { .. } => Class::Option,
            FormError::NoValues { .. }
            | FormError::RepeatedValue { .. }
            | FormError::NoTokens { .. }
            | FormError::NotATree { .. }
            | FormError::Ambiguous { .. } => Class::Trie,
            FormError::Unspellable { .. } => Class::Vocabulary,
        };
        class.error(error.to_string())
    }
}

/// What a tokenizer in Python raised.
fn raised(error: &RuntimeError) -> Option<&PyErr> {
    match error {
        RuntimeError::Prompt { error, .. }
        | RuntimeError::Argument { error, .. }
        | RuntimeError::Value { error, .. } => raised(error),
        RuntimeError::Tokenizer(error) => error.downcast_ref(),
        _ => None,
    }
}

/// An error of ours that was caused by one of Python's; interrupts stay what they are.
fn caused(error: &RuntimeError, cause: &PyErr) -> Error {
    Python::attach(|py| {
        let cause = cause.clone_ref(py);
        if cause.is_instance_of::<PyKeyboardInterrupt>(py) || cause.is_instance_of::<PySystemExit>(py) {
            return Error::Python(cause);
        }
        let ours = PyErr::from(class_of(error).error(error.to_string()));
        ours.set_cause(py, Some(cause));
        Error::Python(ours)
    })
}

impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Self {
        if let Some(cause) = raised(&error) {
            return caused(&error, cause);
        }
        let class = class_of(&error);
        match error {
            RuntimeError::Draw(error) => error.into(),
            RuntimeError::Sampler(error) => error.into(),
            RuntimeError::Form(error) => error.into(),
            error => class.error(error.to_string()),
        }
    }
}

fn class_of(error: &RuntimeError) -> Class {
    match error {
        RuntimeError::Prompt { error, .. }
        | RuntimeError::Argument { error, .. }
        | RuntimeError::Value { error, .. } => class_of(error),
        // These have classes of their own.
        RuntimeError::Draw(_) | RuntimeError::Sampler(_) | RuntimeError::Form(_) => Class::Base,
        RuntimeError::Stopped { .. } => Class::Cancelled,
        RuntimeError::OutOfRange { .. }
        | RuntimeError::EmptyPrompt
        | RuntimeError::NotHealed { .. }
        | RuntimeError::AllTakenBack { .. }
        | RuntimeError::NothingSelected
        | RuntimeError::Grammar { .. } => Class::Option,
        RuntimeError::OutsideVocabulary { .. }
        | RuntimeError::VocabularyMismatch { .. }
        | RuntimeError::OtherVocabulary { .. }
        | RuntimeError::NoTokenizer
        | RuntimeError::Tokenizer(_)
        | RuntimeError::TokenizerFile { .. }
        | RuntimeError::NoVocabulary { .. }
        | RuntimeError::MissingSpecial { .. } => Class::Vocabulary,
        RuntimeError::DamagedSet => Class::Trie,
        RuntimeError::ContextFull { .. } | RuntimeError::ValueTooLong { .. } => Class::Context,
        RuntimeError::Backend { .. }
        | RuntimeError::File { .. }
        | RuntimeError::Path { .. }
        | RuntimeError::NotGguf { .. }
        | RuntimeError::VocabularyOnly { .. }
        | RuntimeError::NotADecoder { .. }
        | RuntimeError::Load { .. }
        | RuntimeError::Context { .. }
        | RuntimeError::NoTemplate { .. }
        | RuntimeError::Template { .. }
        | RuntimeError::NoLogits
        | RuntimeError::Decode { .. } => Class::Model,
    }
}

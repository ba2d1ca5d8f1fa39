//! Python's exceptions: their classes, and what a call of ours fails with.

pub(crate) mod docs;
mod maps;
#[cfg(feature = "llama")]
pub(crate) mod runtime;

use pyo3::exceptions::{PyException, PyIndexError, PyTimeoutError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::ffi::{CStr, CString};

/// Everything that a call can fail with.
#[derive(Debug)]
pub(crate) enum Error {
    /// An exception of Python's own: a wrong type, an interrupt, one that a callback raised.
    Python(PyErr),
    /// Class of this package.
    Ours(Class, String),
    /// An array of the wrong shape or type.
    Array(String),
    /// A subscript out of range.
    Index(String),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Exception classes of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Base,
    Payload,
    Trie,
    Rule,
    Invalid,
    Truncated,
    Vocabulary,
    NotAllowed,
    Option,
    Model,
    Context,
    Cancelled,
    TimedOut,
    QueueFull,
    Template,
    Receipt,
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
const CLASSES: [ClassSpec; 17] = [
    spec(Class::Base, c"tokentrie.TokenTrieError", Class::Base, Also::Nothing, docs::BASE),
    spec(Class::Payload, c"tokentrie.errors.PayloadError", Class::Base, Also::ValueError, docs::PAYLOAD),
    spec(Class::Trie, c"tokentrie.errors.TrieError", Class::Base, Also::ValueError, docs::TRIE),
    spec(Class::Rule, c"tokentrie.RuleError", Class::Base, Also::ValueError, docs::RULE),
    spec(Class::Invalid, c"tokentrie.errors.InvalidValueError", Class::Base, Also::ValueError, docs::INVALID),
    spec(Class::Truncated, c"tokentrie.errors.TruncatedError", Class::Base, Also::Nothing, docs::TRUNCATED),
    spec(Class::Vocabulary, c"tokentrie.errors.VocabularyError", Class::Base, Also::Nothing, docs::VOCABULARY),
    spec(Class::NotAllowed, c"tokentrie.TokenNotAllowedError", Class::Base, Also::Nothing, docs::NOT_ALLOWED),
    spec(Class::Option, c"tokentrie.errors.OptionError", Class::Base, Also::ValueError, docs::OPTION),
    spec(Class::Model, c"tokentrie.errors.ModelError", Class::Base, Also::Nothing, docs::MODEL),
    spec(Class::Context, c"tokentrie.errors.ContextError", Class::Model, Also::Nothing, docs::CONTEXT),
    spec(Class::Cancelled, c"tokentrie.errors.CancelledError", Class::Model, Also::Nothing, docs::CANCELLED),
    spec(Class::TimedOut, c"tokentrie.errors.TimedOutError", Class::Cancelled, Also::TimeoutError, docs::TIMED_OUT),
    spec(Class::QueueFull, c"tokentrie.errors.QueueFullError", Class::Model, Also::Nothing, docs::QUEUE_FULL),
    spec(Class::Template, c"tokentrie.TemplateError", Class::Model, Also::Nothing, docs::TEMPLATE),
    spec(Class::Receipt, c"tokentrie.errors.ReceiptError", Class::Base, Also::ValueError, docs::RECEIPT),
    spec(Class::Warning, c"tokentrie.errors.TokenTrieWarning", Class::Warning, Also::Nothing, docs::WARNING),
];

/// Attribute with the partial result of a call that was ended.
const PARTIAL: &str = "partial";

/// The text that a class refused, or that was cut off.
const TEXT: &str = "text";

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
            if matches!(spec.class, Class::Cancelled | Class::Invalid | Class::Truncated) {
                class.bind(py).setattr(PARTIAL, py.None())?;
            }
            if matches!(spec.class, Class::Invalid | Class::Truncated) {
                class.bind(py).setattr(TEXT, py.None())?;
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
    let (module, name) = name.rsplit_once('.').unwrap_or(("tokentrie", &name));
    let namespace = pyo3::types::PyDict::new(py);
    namespace.set_item("__module__", module)?;
    namespace.set_item("__doc__", spec.doc.to_string_lossy())?;
    let bases = PyTuple::new(py, [ours, other])?;
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

impl Error {
    /// The same with the place before its message, where it is one of ours.
    #[must_use]
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::Ours(class, message) => Self::Ours(class, format!("{place}{message}")),
            Self::Python(_) | Self::Array(_) | Self::Index(_) => self,
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

/// The error of a text that follows its constraint and that `refused` it, with that text.
pub(crate) fn invalid(py: Python<'_>, what: &str, text: &str, refused: PyErr) -> Error {
    let error = PyErr::from(Class::Invalid.error(format!("{what} is refused: {}", refused.value(py))));
    let set = error.value(py).setattr(TEXT, text);
    error.set_cause(py, Some(refused));
    Error::Python(set.err().unwrap_or(error))
}

/// A value that there is not, since a class refused its text or since that was cut off: why, and the error.
pub(crate) struct Refused {
    pub(crate) reason: String,
    pub(crate) error: Error,
}

impl Refused {
    /// A value whose text was cut off.
    #[cfg(feature = "llama")]
    pub(crate) fn truncated(py: Python<'_>, text: &str, reason: String) -> Self {
        let error = PyErr::from(Class::Truncated.error(reason.clone()));
        let set = error.value(py).setattr(TEXT, text);
        Self { reason, error: Error::Python(set.err().unwrap_or(error)) }
    }

    /// Wraps an exception raised while reading `text`, if it means that the text is invalid; other errors stay
    /// unchanged.
    ///
    /// # Errors
    /// Those.
    pub(crate) fn of(py: Python<'_>, text: &str, error: Error) -> Result<Self> {
        let error = match error {
            Error::Python(error) if error.is_instance_of::<PyValueError>(py) => error,
            other => return Err(other),
        };
        let known = types(py)?.get(Class::Invalid as usize).is_some_and(|class| error.is_instance(py, class.bind(py)));
        let reason = error
            .cause(py)
            .filter(|_| known)
            .map_or_else(|| error.value(py).to_string(), |of| of.value(py).to_string());
        let error = if known { Error::Python(error) } else { invalid(py, "the value", text, error) };
        Ok(Self { reason, error })
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

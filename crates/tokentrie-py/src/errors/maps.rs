//! Rust's errors as Python's exceptions: by their kind. Beside that stands here what only Python has: exceptions that
//! Python raised itself, and what to do about an error, in Python's names.

use crate::errors::{Class, Error};
use crate::rule::problem::of_problem;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PySystemExit};
use pyo3::prelude::*;
use std::fmt::Display;
use std::io;
use trie_core::{
    BatchError, BuildError, Damage, DrawError, ErrorKind, FilterError, GateError, LeafSetError, NotAllowed, NotListed,
    PatchError, RowError, RulesError, SamplerError, SequenceError, SetError, SpanError, UnknownPath,
};
use trie_formats::{ExternalError, FileError, NotInGbnf, PayloadError, PrefixTableError};
use trie_text::{FormError, HealingError, TextError, ValuesError, VocabError};

impl Error {
    /// An error of this kind.
    #[cold]
    pub(crate) fn of_kind(kind: ErrorKind, error: &dyn Display) -> Self {
        let class = match kind {
            ErrorKind::Row => return Self::Array(error.to_string()),
            // Nobody verified its file.
            ErrorKind::Damaged => return Class::Trie.error(format!("{error} (Trie.open with verify=True)")),
            ErrorKind::Context => {
                return Class::Context.error(format!("{error} (a Model with a larger n_ctx has more)"));
            }
            ErrorKind::Argument | ErrorKind::Spec | ErrorKind::State | ErrorKind::Prompt | ErrorKind::Limit => {
                Class::Option
            }
            ErrorKind::Payload => Class::Payload,
            ErrorKind::Set | ErrorKind::File => Class::Trie,
            ErrorKind::Vocabulary => Class::Vocabulary,
            ErrorKind::NotAllowed => Class::NotAllowed,
            ErrorKind::Rule => Class::Rule,
            ErrorKind::Cancelled => Class::Cancelled,
            ErrorKind::QueueFull => Class::QueueFull,
            ErrorKind::Template => Class::Template,
            ErrorKind::Receipt => Class::Receipt,
            ErrorKind::Model | ErrorKind::Busy => Class::Model,
            _ => Class::Base,
        };
        class.error(error.to_string())
    }
}

/// Errors whose class is that of their kind.
macro_rules! by_kind {
    ($($error:ty),+ $(,)?) => {$(
        impl From<$error> for Error {
            #[cold]
            fn from(error: $error) -> Self {
                Self::of_kind(error.kind(), &error)
            }
        }
    )+};
}

by_kind! {
    PayloadError, NotInGbnf, RulesError, DrawError, NotAllowed, RowError, UnknownPath, NotListed, GateError,
    FilterError, LeafSetError, SequenceError,
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Class::Trie.error(error.to_string())
    }
}

impl From<PrefixTableError> for Error {
    fn from(error: PrefixTableError) -> Self {
        match error {
            PrefixTableError::Read(error) => Self::Python(error.into()),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

impl From<ExternalError> for Error {
    fn from(error: ExternalError) -> Self {
        match error {
            ExternalError::Build(error) => error.into(),
            ExternalError::File(error) => error.into(),
        }
    }
}

impl From<PatchError> for Error {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Build(error) => error.into(),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

impl From<SetError> for Error {
    fn from(error: SetError) -> Self {
        match error {
            SetError::Build(error) => error.into(),
            SetError::Damaged(problem) => problem.into(),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

/// Converts damage of a set in memory: the errors of its file were reported before.
impl From<Damage> for Error {
    fn from(problem: Damage) -> Self {
        Class::Trie.error(format!("{problem} (Trie.open with verify=True finds it earlier)"))
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
            other @ FileError::Content { .. } => Self::of_kind(other.kind(), &message),
        }
    }
}

impl From<SpanError> for Error {
    fn from(error: SpanError) -> Self {
        match &error {
            SpanError::Problem { problem, .. } => of_problem(problem, error.to_string()),
            _ => Self::of_kind(error.kind(), &error),
        }
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

impl From<BatchError> for Error {
    fn from(error: BatchError) -> Self {
        match &error {
            BatchError::Refused { source: SpanError::Problem { problem, .. }, .. } => {
                of_problem(problem, error.to_string())
            }
            _ => Self::of_kind(error.kind(), &error),
        }
    }
}

impl From<FormError> for Error {
    fn from(error: FormError) -> Self {
        match error {
            FormError::Rule { error, what } => Self::from(error).at(&format!("{what}: ")),
            FormError::NeverEnds { .. } => Self::of_kind(error.kind(), &format!("{error} (Text)")),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

impl From<VocabError> for Error {
    fn from(error: VocabError) -> Self {
        caused(error.kind(), &error, raised(&error))
    }
}

/// Returns the exception that a tokenizer in Python raised.
pub(crate) fn raised(error: &VocabError) -> Option<&PyErr> {
    match error {
        VocabError::Value { error, .. } => raised(error),
        VocabError::Tokenizer(error) => error.downcast_ref(),
        _ => None,
    }
}

/// An error of ours, perhaps caused by one of Python's; interrupts stay interrupts.
pub(crate) fn caused(kind: ErrorKind, error: &dyn Display, cause: Option<&PyErr>) -> Error {
    let ours = Error::of_kind(kind, error);
    let Some(cause) = cause else { return ours };
    Python::attach(|py| {
        let cause = cause.clone_ref(py);
        if cause.is_instance_of::<PyKeyboardInterrupt>(py) || cause.is_instance_of::<PySystemExit>(py) {
            return Error::Python(cause);
        }
        let ours = PyErr::from(ours);
        ours.set_cause(py, Some(cause));
        Error::Python(ours)
    })
}

impl From<HealingError> for Error {
    fn from(error: HealingError) -> Self {
        match error {
            HealingError::Vocab(error) => error.into(),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        match error {
            TextError::Vocab(error) => error.into(),
            TextError::Build(error) => error.into(),
            TextError::Run(error) => error.into(),
            TextError::CrossesBoundary { .. } => {
                Self::of_kind(error.kind(), &format!("{error} (Trie.from_strings with heal=True)"))
            }
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

impl From<ValuesError> for Error {
    fn from(error: ValuesError) -> Self {
        match error {
            ValuesError::Text(error) => error.into(),
            ValuesError::Healing(error) => error.into(),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

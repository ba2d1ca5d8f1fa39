//! Errors of the library: a status for programs, a sentence for people, and where both leave the library.

use crate::status::*;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokentrie::constraint::{SpecError, SpecProblem};
use trie_core::{
    BatchError, BuildError, DrawError, ErrorKind, NotAllowed, RowError, RowsError, RulesError, SamplerError, SpanError,
    TokenIdError, UnknownPath,
};
use trie_formats::{FileError, PayloadError};
use trie_text::VocabError;

/// A status and what is wrong, where, and with which value.
#[derive(Debug, Clone)]
pub struct Error {
    /// Status code for programs.
    pub status: tokentrie_status,
    /// Message that people read.
    pub message: String,
}

/// Result of a function of the library.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A status with its sentence.
    #[cold]
    pub fn new(status: tokentrie_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// An error of this kind.
    #[cold]
    pub(crate) fn of_kind(kind: ErrorKind, error: &dyn fmt::Display) -> Self {
        Self::new(status_of(kind), error.to_string())
    }

    /// Converts an error about a spec: the spec is to blame, unless another vocabulary, payload or limit would do.
    #[cold]
    pub fn of_spec(problem: &SpecProblem, error: &dyn fmt::Display) -> Self {
        let status = match (problem, problem.kind()) {
            (SpecProblem::Vocab(_) | SpecProblem::NeedsVocab { .. }, _) => TOKENTRIE_ERROR_VOCAB,
            (SpecProblem::Payload(_), kind) | (_, kind @ (ErrorKind::Limit | ErrorKind::Cancelled)) => status_of(kind),
            _ => TOKENTRIE_ERROR_SPEC,
        };
        Self::new(status, error.to_string())
    }

    /// An argument that cannot be used.
    #[cold]
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(TOKENTRIE_ERROR_ARGUMENT, message)
    }

    #[cold]
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(TOKENTRIE_ERROR_BUSY, message)
    }

    /// The same, said of a named argument.
    #[cold]
    pub(crate) fn of(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// The sentence of this thread's last error.
pub(crate) fn last() -> *const std::ffi::c_char {
    // A thread that ends has none any more.
    LAST.try_with(|last| last.borrow().as_ref().map(|text| text.as_ptr())).ok().flatten().unwrap_or(c"".as_ptr())
}

/// The same, for C to keep.
#[cfg(feature = "llama")]
pub(crate) fn last_sentence() -> CString {
    LAST.try_with(|last| last.borrow().clone()).ok().flatten().unwrap_or_default()
}

/// Notes an error for this thread and gives its status.
#[cold]
pub fn report(error: &Error) -> tokentrie_status {
    let mut text = error.message.clone().into_bytes();
    text.retain(|&byte| byte != 0);
    if let Ok(text) = CString::new(text) {
        let _ = LAST.try_with(|last| *last.borrow_mut() = Some(text));
    }
    error.status
}

/// Runs what a function of the ABI does. Nothing unwinds into C: a panic becomes a status.
#[inline]
pub fn guarded(work: impl FnOnce() -> Result<tokentrie_status>) -> tokentrie_status {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => report(&error),
        Err(panic) => report(&panicked(&*panic)),
    }
}

/// [`guarded`] for what has nothing to return.
#[inline]
pub fn done(work: impl FnOnce() -> Result<()>) -> tokentrie_status {
    guarded(|| work().map(|()| TOKENTRIE_OK))
}

/// Converts a caught panic to an error.
#[cold]
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Error::new(TOKENTRIE_ERROR_PANIC, format!("a fault of the library, please report it: {said}"))
}

/// The status of a kind of error.
fn status_of(kind: ErrorKind) -> tokentrie_status {
    match kind {
        ErrorKind::Argument | ErrorKind::Template => TOKENTRIE_ERROR_ARGUMENT,
        ErrorKind::Spec | ErrorKind::Rule => TOKENTRIE_ERROR_SPEC,
        ErrorKind::Payload => TOKENTRIE_ERROR_PAYLOAD,
        ErrorKind::Set => TOKENTRIE_ERROR_SET,
        ErrorKind::File => TOKENTRIE_ERROR_FILE,
        ErrorKind::Damaged => TOKENTRIE_ERROR_DAMAGED,
        ErrorKind::Vocabulary => TOKENTRIE_ERROR_VOCAB,
        ErrorKind::NotAllowed | ErrorKind::State => TOKENTRIE_ERROR_NOT_ALLOWED,
        ErrorKind::Row => TOKENTRIE_ERROR_ROW,
        ErrorKind::Limit => TOKENTRIE_ERROR_LIMIT,
        ErrorKind::Busy | ErrorKind::QueueFull => TOKENTRIE_ERROR_BUSY,
        ErrorKind::Cancelled => TOKENTRIE_ERROR_CANCELLED,
        // Kinds that are added later are those of a model until they have a status.
        _ => TOKENTRIE_ERROR_MODEL,
    }
}

/// Errors whose status is that of their kind.
macro_rules! by_kind {
    ($($error:ty),+ $(,)?) => {$(
        impl From<$error> for $crate::error::Error {
            #[cold]
            fn from(error: $error) -> Self {
                Self::of_kind(error.kind(), &error)
            }
        }
    )+};
}
#[cfg(feature = "llama")]
pub(crate) use by_kind;

by_kind! {
    TokenIdError, NotAllowed, UnknownPath, DrawError, RowError, RowsError, BuildError, PayloadError, RulesError,
    SpanError, SamplerError, BatchError, VocabError, FileError,
}

impl From<SpecError> for Error {
    #[cold]
    fn from(error: SpecError) -> Self {
        Self::of_spec(error.problem(), &error)
    }
}

/// The name of a status.
pub(crate) fn status_name(status: tokentrie_status) -> &'static CStr {
    name_of(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trie_core::{SequenceError, TrieBuilder};
    use trie_formats::Payload;
    use trie_text::ValuesError;

    #[test]
    fn a_status_is_that_of_the_kind() {
        let of = |error: Error| error.status;
        let payload = Payload::from_json(b"{", None).unwrap_err();
        assert_eq!(of(payload.into()), TOKENTRIE_ERROR_PAYLOAD);
        assert_eq!(of(TrieBuilder::with_capacity(0, 0).build().unwrap_err().into()), TOKENTRIE_ERROR_SET);
        assert_eq!(of(BuildError::TooLarge { what: "nodes", count: 8, limit: 7 }.into()), TOKENTRIE_ERROR_LIMIT);
        assert_eq!(of(SpanError::RollbackTooFar { asked: 2, accepted: 1 }.into()), TOKENTRIE_ERROR_NOT_ALLOWED);
        let row = SamplerError::Row(RowError { what: "logits", got: 3, need: 4, n_vocab: 4 });
        assert_eq!(of(row.into()), TOKENTRIE_ERROR_ROW);
        let refused = BatchError::Refused { row: 1, source: SpanError::Damaged { path: String::new(), depth: 0 } };
        assert_eq!(of(refused.into()), TOKENTRIE_ERROR_DAMAGED);
    }

    #[test]
    fn a_spec_is_to_blame_unless_something_else_would_do() {
        let status = |problem: SpecProblem| Error::of_spec(&problem, &problem).status;
        assert_eq!(status(SpecProblem::Repeated), TOKENTRIE_ERROR_SPEC);
        assert_eq!(status(SpecProblem::Sequence(SequenceError::NoParts)), TOKENTRIE_ERROR_SPEC);
        // Another tokenizer would do, but the texts are those of the spec.
        assert_eq!(status(SpecProblem::Texts(ValuesError::SameTokens)), TOKENTRIE_ERROR_SPEC);
        assert_eq!(status(SpecProblem::Vocab(VocabError::NoTokenizer)), TOKENTRIE_ERROR_VOCAB);
        assert_eq!(status(SpecProblem::TooLong { bytes: 2, most: 1 }), TOKENTRIE_ERROR_LIMIT);
        assert_eq!(status(SpecProblem::Over(trie_core::work::LimitExceeded::Stopped)), TOKENTRIE_ERROR_CANCELLED);
        let payload = Payload::from_json(b"{", None).unwrap_err();
        assert_eq!(status(SpecProblem::Payload(payload)), TOKENTRIE_ERROR_PAYLOAD);
    }
}

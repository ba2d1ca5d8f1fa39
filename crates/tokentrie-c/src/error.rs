//! What went wrong: a status for programs, a sentence for people, and where both leave the library.
//!
//! No match over errors has a wildcard: one that is added breaks the build until it is mapped here.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::status::*;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokentrie::spec::{Concern, SpecError, SpecProblem};
use trie_core::{
    BatchError, BuildError, DrawError, FileError, FileProblem, NotAllowed, PayloadError, RowError, RowsError,
    RulesError, SamplerError, SpanError, TokenIdError, UnknownPath,
};
use trie_text::VocabError;

/// A status and what is wrong, where, and with which value.
#[derive(Debug, Clone)]
pub struct Error {
    /// What programs look at.
    pub status: tokentrie_status,
    /// What people read.
    pub message: String,
}

/// What a function of the library gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A status with its sentence.
    #[cold]
    pub fn new(status: tokentrie_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
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

/// What a panic is told as.
#[cold]
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Error::new(TOKENTRIE_ERROR_PANIC, format!("a fault of the library, please report it: {said}"))
}

macro_rules! statuses_of {
    ($($error:ty => $status:expr;)+) => {$(
        impl From<$error> for Error {
            #[cold]
            fn from(error: $error) -> Self {
                let status: fn(&$error) -> tokentrie_status = $status;
                Self::new(status(&error), error.to_string())
            }
        }
    )+};
}

statuses_of! {
    TokenIdError => |_| TOKENTRIE_ERROR_VOCAB;
    NotAllowed => |_| TOKENTRIE_ERROR_NOT_ALLOWED;
    UnknownPath => |_| TOKENTRIE_ERROR_NOT_ALLOWED;
    DrawError => |_| TOKENTRIE_ERROR_ARGUMENT;
    RowError => |_| TOKENTRIE_ERROR_ROW;
    RowsError => |_| TOKENTRIE_ERROR_ROW;
    BuildError => build;
    PayloadError => |error| match error {
        PayloadError::Build { source, .. } => build(source),
        PayloadError::Malformed { .. } | PayloadError::DuplicatePath { .. } | PayloadError::NoUsableLeaf { .. } => {
            TOKENTRIE_ERROR_PAYLOAD
        }
    };
    RulesError => rules;
    SpanError => span;
    SamplerError => |error| match error {
        SamplerError::Row(_) => TOKENTRIE_ERROR_ROW,
        SamplerError::Span(error) => span(error),
    };
    BatchError => |error| match error {
        BatchError::Width { .. } | BatchError::Rows(_) => TOKENTRIE_ERROR_ROW,
        BatchError::Refused { source, .. } => span(source),
        BatchError::MixedVocabularies { .. } => TOKENTRIE_ERROR_VOCAB,
        BatchError::Rules(error) => rules(error),
        BatchError::Count { .. }
        | BatchError::NoSuchRow { .. }
        | BatchError::Score { .. }
        | BatchError::Groups { .. }
        | BatchError::Listed { .. }
        | BatchError::Endless { .. }
        | BatchError::NoWidth
        | BatchError::LengthPenalty { .. }
        | BatchError::NothingLeft { .. }
        | BatchError::NoItems { .. }
        | BatchError::NoLogits { .. }
        | BatchError::Draw(_) => TOKENTRIE_ERROR_ARGUMENT,
    };
    SpecError => |error| spec_status(error.problem());
    VocabError => |_| TOKENTRIE_ERROR_VOCAB;
    FileError => |error| match error {
        FileError::Content { problem: FileProblem::OutsideVocabulary { .. } | FileProblem::OtherVocabulary { .. }, .. }
            => TOKENTRIE_ERROR_VOCAB,
        FileError::Io { .. } | FileError::Content { .. } => TOKENTRIE_ERROR_FILE,
    };
}

fn build(error: &BuildError) -> tokentrie_status {
    match error {
        BuildError::TooLarge { .. } => TOKENTRIE_ERROR_LIMIT,
        BuildError::NoLeaves
        | BuildError::EmptySequence { .. }
        | BuildError::MixedNames { .. }
        | BuildError::Stopped => TOKENTRIE_ERROR_SET,
    }
}

fn rules(error: &RulesError) -> tokentrie_status {
    match error {
        RulesError::OutsideVocabulary { .. } => TOKENTRIE_ERROR_VOCAB,
        RulesError::NoConstraint | RulesError::VocabularySize { .. } | RulesError::NothingToStopOn => {
            TOKENTRIE_ERROR_ARGUMENT
        }
    }
}

fn span(error: &SpanError) -> tokentrie_status {
    match error {
        SpanError::OutsideVocabulary { .. } => TOKENTRIE_ERROR_VOCAB,
        SpanError::NotAllowed(_) | SpanError::RollbackTooFar { .. } | SpanError::UnknownPath(_) => {
            TOKENTRIE_ERROR_NOT_ALLOWED
        }
        SpanError::Damaged { .. } | SpanError::Problem { .. } => TOKENTRIE_ERROR_DAMAGED,
    }
}

/// Of what is wrong with a spec.
pub fn spec_status(problem: &SpecProblem) -> tokentrie_status {
    match problem.concern() {
        Concern::Vocabulary => TOKENTRIE_ERROR_VOCAB,
        Concern::Limit => TOKENTRIE_ERROR_LIMIT,
        Concern::Payload => TOKENTRIE_ERROR_PAYLOAD,
        Concern::Spec => TOKENTRIE_ERROR_SPEC,
    }
}

/// The name of a status.
pub(crate) fn status_name(status: tokentrie_status) -> &'static CStr {
    name_of(status)
}

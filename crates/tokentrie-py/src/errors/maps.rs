//! The one map from Rust's errors to Python's exceptions.
//!
//! No match over errors has a wildcard: one that is added breaks the build until it is mapped here.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::errors::{Class, Error};
use crate::rule::problem::of_problem;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PySystemExit};
use pyo3::prelude::*;
use std::io;
use trie_core::{
    BatchError, BuildError, DrawError, ExternalError, FileError, FileProblem, FilterError, GateError, LeafSetError,
    NotAllowed, NotInGbnf, NotListed, PatchError, PayloadError, PrefixTableError, RowError, RulesError, SamplerError,
    SequenceError, SetError, SpanError, UnknownPath,
};
use trie_text::{FormError, HealingError, TextError, ValuesError, VocabError};

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
            PrefixTableError::Malformed { .. }
            | PrefixTableError::Separator { .. }
            | PrefixTableError::NoRoot { .. }
            | PrefixTableError::Refused { .. }
            | PrefixTableError::NoValues { .. }
            | PrefixTableError::Build(_)
            | PrefixTableError::Weights(_) => Class::Payload.error(error.to_string()),
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
        }
    }
}

impl From<PatchError> for Error {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Build(error) => error.into(),
            PatchError::NothingLeft
            | PatchError::HalfNamed { .. }
            | PatchError::NoTokens { .. }
            | PatchError::Weighted
            | PatchError::NotATree => Class::Trie.error(error.to_string()),
        }
    }
}

impl From<SetError> for Error {
    fn from(error: SetError) -> Self {
        match error {
            SetError::Build(error) => error.into(),
            SetError::Damaged(problem) => problem.into(),
            SetError::OtherVocabulary { .. } => Class::Vocabulary.error(error.to_string()),
            SetError::Empty { .. }
            | SetError::HalfNamed { .. }
            | SetError::NotATree { .. }
            | SetError::Healed { .. }
            | SetError::EndTokens { .. } => Class::Trie.error(error.to_string()),
        }
    }
}

/// Of a set in memory: what was asked of its file was asked before.
impl From<FileProblem> for Error {
    fn from(problem: FileProblem) -> Self {
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
            FileError::Content {
                problem:
                    FileProblem::OutsideVocabulary { .. }
                    | FileProblem::OtherVocabulary { .. }
                    | FileProblem::Fingerprint { .. },
                ..
            } => Class::Vocabulary.error(message),
            FileError::Content { .. } => Class::Trie.error(message),
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

/// Of a set that nobody verified.
fn damaged(error: &impl std::fmt::Display) -> Error {
    Class::Trie.error(format!("{error} (Trie.open with verify=True)"))
}

impl From<SpanError> for Error {
    fn from(error: SpanError) -> Self {
        match error {
            SpanError::NotAllowed(error) => error.into(),
            SpanError::OutsideVocabulary { .. } => Class::Vocabulary.error(error.to_string()),
            SpanError::UnknownPath(error) => error.into(),
            SpanError::RollbackTooFar { .. } => Class::Option.error(error.to_string()),
            SpanError::Problem { ref problem, .. } => of_problem(problem, error.to_string()),
            SpanError::Damaged { .. } => damaged(&error),
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

impl From<BatchError> for Error {
    fn from(error: BatchError) -> Self {
        let class = match &error {
            BatchError::Refused { source: SpanError::NotAllowed(_), .. } => Class::NotAllowed,
            BatchError::Refused { source: SpanError::OutsideVocabulary { .. }, .. }
            | BatchError::MixedVocabularies { .. } => Class::Vocabulary,
            BatchError::Refused { source: SpanError::Problem { problem, .. }, .. } => {
                return of_problem(problem, error.to_string());
            }
            BatchError::Refused { source: SpanError::Damaged { .. }, .. } => return damaged(&error),
            BatchError::Width { .. }
            | BatchError::Listed { .. }
            | BatchError::NoLogits { .. }
            | BatchError::Rows(_) => {
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
            FilterError::NothingLeft { .. } => Class::Trie,
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
            | FormError::TooManyEmpty { .. }
            | FormError::TextAfterText { .. }
            | FormError::NoSlot { .. }
            | FormError::NotHealed { .. }
            | FormError::NotListed { .. }
            | FormError::NoTokensLeft { .. }
            | FormError::NotLast { .. }
            | FormError::Begins { .. }
            | FormError::RepeatedStop { .. }
            | FormError::StopsTooLong { .. }
            | FormError::Endless { .. } => Class::Option,
            FormError::NoValues { .. }
            | FormError::RepeatedValue { .. }
            | FormError::NoTokens { .. }
            | FormError::NotATree { .. }
            | FormError::Damaged { .. }
            | FormError::Ambiguous { .. } => Class::Trie,
            FormError::PatternCut { .. } => Class::Rule,
            FormError::Unspellable { .. } => Class::Vocabulary,
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
        VocabError::Over(_) => Class::Cancelled,
        VocabError::OutsideVocabulary { .. }
        | VocabError::OtherVocabulary { .. }
        | VocabError::NoTokenizer
        | VocabError::Tokenizer(_)
        | VocabError::TokenizerFile { .. } => Class::Vocabulary,
    }
}

/// What a tokenizer in Python raised.
pub(crate) fn raised(error: &VocabError) -> Option<&PyErr> {
    match error {
        VocabError::Value { error, .. } => raised(error),
        VocabError::Tokenizer(error) => error.downcast_ref(),
        VocabError::OutOfRange { .. }
        | VocabError::Over(_)
        | VocabError::OutsideVocabulary { .. }
        | VocabError::OtherVocabulary { .. }
        | VocabError::NoTokenizer
        | VocabError::TokenizerFile { .. } => None,
    }
}

/// An error of ours that was caused by one of Python's; interrupts stay interrupts.
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
            HealingError::NotHealed { .. } | HealingError::AllTakenBack { .. } => {
                class_of_healing(&error).error(error.to_string())
            }
        }
    }
}

pub(crate) fn class_of_healing(error: &HealingError) -> Class {
    match error {
        HealingError::Vocab(error) => class_of_vocab(error),
        HealingError::NotHealed { .. } | HealingError::AllTakenBack { .. } => Class::Option,
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
        };
        class.error(error.to_string())
    }
}

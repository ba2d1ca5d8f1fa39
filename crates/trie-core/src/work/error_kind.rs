//! Kinds of errors that a host distinguishes.

/// Category of an error, whichever type reports it. A host maps each kind to an exception class or a status once.
///
/// Every error type of the workspace has a `kind`:
///
/// ```
/// use trie_core::{ErrorKind, Trie};
///
/// let error = Trie::builder().build().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Set);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument out of range, or arguments that do not go together.
    Argument,
    /// A request or constraint, given as data, that cannot be read or used.
    Spec,
    /// A payload that is malformed or has no usable leaf.
    Payload,
    /// Sequences or texts that make no set.
    Set,
    /// A file that cannot be read or written, or is not a file of its kind.
    File,
    /// A set or a constraint in which no token is allowed although one is needed.
    Damaged,
    /// A token id or a text that the vocabulary does not have, or a set for another vocabulary.
    Vocabulary,
    /// A token that may not come.
    NotAllowed,
    /// A request that does not fit the state.
    State,
    /// A row of logits or a mask of a wrong size.
    Row,
    /// A rule that cannot be made, or that allows nothing: a regular expression, a grammar, a schema.
    Rule,
    /// More than a limit allows.
    Limit,
    /// In use by another call, or no longer usable by this process.
    Busy,
    /// More calls wait than may.
    QueueFull,
    /// The work was cancelled on request.
    Cancelled,
    /// A model that cannot be loaded, or a forward pass that failed.
    Model,
    /// More tokens than the context holds.
    Context,
    /// A prompt after which nothing can be generated.
    Prompt,
    /// A chat template that fails.
    Template,
    /// A receipt that does not verify.
    Receipt,
}

/// Says of an error type that all of it is of one kind.
#[doc(hidden)]
#[macro_export]
macro_rules! error_kind {
    ($error:ident, $kind:ident) => {
        impl $error {
            /// Returns what kind of error it is.
            pub const fn kind(&self) -> $crate::ErrorKind {
                $crate::ErrorKind::$kind
            }
        }
    };
}

//! Errors of forms that are invalid, or that cannot be written where they stand.

use trie_core::ErrorKind;
use trie_core::{NotListed, RulesError};
use trie_rules::ByRuleError;

/// Reasons why parts do not make up a form.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormError {
    /// No slot or text to fill.
    #[error("a form needs at least one slot or text")]
    NothingToFill,
    /// Two parts of one name.
    #[error("two parts of the form have the name {name:?}")]
    RepeatedName {
        /// Name that was given.
        name: String,
    },
    /// Free text directly after free text, so that nothing marks the end of the first.
    #[error("text {name:?} follows text {before:?} directly: put a literal between them")]
    TextAfterText {
        /// Name of the second.
        name: String,
        /// Name of the first.
        before: String,
    },
    /// Too many slots side by side that may all be empty.
    #[error("slot {name:?}: more than {most} slots side by side may be empty: put literals between them")]
    TooManyEmpty {
        /// The first slot that is too many.
        name: String,
        /// The largest number that is allowed.
        most: usize,
    },
    /// A slot without values.
    #[error("slot {slot:?} has no values")]
    NoValues {
        /// Name of the slot.
        slot: String,
    },
    /// A value that is there already.
    #[error("slot {slot:?}: value {row}, {value:?}, repeats value {first}")]
    RepeatedValue {
        /// Name of the slot.
        slot: String,
        /// Number of the value.
        row: usize,
        /// Text of the value.
        value: String,
        /// The number of the first.
        first: usize,
    },
    /// Free text without a stop, or with no length.
    #[error("text {name:?} needs a stop, none of which may be empty, and max_tokens of at least 1")]
    Endless {
        /// Name of the text.
        name: String,
    },
    /// A stop that comes twice.
    #[error("text {name:?}: the stop {stop:?} comes twice")]
    RepeatedStop {
        /// Name of the text.
        name: String,
        /// Stop that was given.
        stop: String,
    },
    /// Several stops that are too long together.
    #[error(
        "text {name:?}: its {stops} stops have {bytes} bytes: several may have {} together",
        128usize.saturating_sub(*.stops)
    )]
    StopsTooLong {
        /// Name of the text.
        name: String,
        /// Number of stops given.
        stops: usize,
        /// Bytes of all stops.
        bytes: usize,
    },
    /// A text of no length.
    #[error("text {name:?} needs max_tokens of at least 1")]
    NoTokensLeft {
        /// Name of the text.
        name: String,
    },
    /// Every token is allowed, so nothing marks the end of a value.
    #[error("slot {slot:?}: its values never end, because anything may come; free text with a stop does")]
    NeverEnds {
        /// Name of the slot.
        slot: String,
    },
    /// Text that ends where the model ends its output, if other parts follow and tokens cannot be taken back.
    #[error(
        "text {name:?} ends where the model ends its output: it must be the last part here, where a token that is \
         written cannot be taken back"
    )]
    NotLast {
        /// Name of the text.
        name: String,
    },
    /// A text with a pattern that was cut off before it matched.
    #[error(
        "text {name:?}: {text:?} does not match its pattern, nor does any beginning of it, after {max_tokens} tokens: \
         raise max_tokens, or allow less in the pattern"
    )]
    PatternCut {
        /// Name of the text.
        name: String,
        /// Text that was written.
        text: String,
        /// The most tokens of it.
        max_tokens: usize,
    },
    /// A value that ended where the set has no value.
    #[error("slot {slot:?}: a value ended where the set has none: it is damaged; verifying its file says where")]
    Damaged {
        /// Name of the slot.
        slot: String,
    },
    /// A first set that cannot begin inside the text before it.
    #[error("{reason}")]
    Begins {
        /// Reason for the refusal.
        reason: String,
    },
    /// Values to be scored that cannot be listed.
    #[error("slot {slot:?}: {error}")]
    NotListed {
        /// Name of the slot.
        slot: String,
        /// Reason for the refusal.
        error: NotListed,
    },
    /// A part that is not a slot was asked for its set.
    #[error("part {index} of the form is not a slot")]
    NoSlot {
        /// Index of the part.
        index: usize,
    },
    /// The vocabulary cannot spell a part.
    #[error("{what}: the vocabulary cannot spell {text:?}")]
    Unspellable {
        /// Description of the part.
        what: String,
        /// Text of the part.
        text: String,
    },
    /// An empty value with nothing around it.
    #[error("slot {slot:?}: value {value:?} has no token here: put a literal before or after the slot")]
    NoTokens {
        /// Name of the slot.
        slot: String,
        /// Value that was given.
        value: String,
    },
    /// Two values that begin with the same tokens and cannot be distinguished.
    #[error("slot {slot:?}: {value:?} cannot be told from another value by the tokens around it")]
    Ambiguous {
        /// Name of the slot.
        slot: String,
        /// Value that was given.
        value: String,
    },
    /// A slot with several sequences for one value: the text after the slot depends on where the value ends.
    #[error(
        "slot {slot:?}: several sequences stand for one value; a slot takes texts, or a set with one sequence each"
    )]
    NotATree {
        /// Name of the slot.
        slot: String,
    },
    /// A slot whose set begins inside a different text than the one before it.
    #[error(
        "slot {slot:?} begins inside the text before it and spells {spelled:?} again (heal_bytes), \
         but {text:?} stands there"
    )]
    NotHealed {
        /// Name of the slot.
        slot: String,
        /// Text that every value begins with.
        spelled: String,
        /// Text before it and after the slot or text before it.
        text: String,
    },
    /// A rule that the vocabulary cannot spell in its place.
    #[error("{what}: {error}")]
    Rule {
        /// Description of the part.
        what: String,
        /// Reason for the refusal.
        error: ByRuleError,
    },
    /// A set of tokens for another vocabulary.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

impl FormError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Rules(error) => error.kind(),
            Self::Rule { error, .. } => error.kind(),
            Self::NothingToFill
            | Self::RepeatedName { .. }
            | Self::TooManyEmpty { .. }
            | Self::TextAfterText { .. }
            | Self::NoSlot { .. }
            | Self::NotHealed { .. }
            | Self::NotListed { .. }
            | Self::NoTokensLeft { .. }
            | Self::NotLast { .. }
            | Self::Begins { .. }
            | Self::RepeatedStop { .. }
            | Self::StopsTooLong { .. }
            | Self::Endless { .. }
            | Self::NeverEnds { .. } => ErrorKind::Spec,
            Self::NoValues { .. }
            | Self::RepeatedValue { .. }
            | Self::NoTokens { .. }
            | Self::NotATree { .. }
            | Self::Damaged { .. }
            | Self::Ambiguous { .. } => ErrorKind::Set,
            Self::PatternCut { .. } => ErrorKind::Rule,
            Self::Unspellable { .. } => ErrorKind::Vocabulary,
        }
    }
}

//! Syntax of replies as data: the markers around reasoning, content and tool calls.
//!
//! The analysis fills in a [`Dialect`] from renderings of a template. The machine that parses and constrains replies is
//! built from the dialect. This module knows no template.
//!
//! ```text
//!   reply   = [start of turn] ( reasoning | content | calls | joint )*
//!   calls   = section.start  call ( between call )*  section.end
//!   call    = each Part of a pattern, one after the other
//! ```
//!
//! Markers are kept as the template writes them, white space included. Readers search for a marker without the white
//! space around it, and accept any amount of white space there.

mod call;
mod value;

pub use call::{Calls, Field, ObjectCall, Part, Pattern, Wrap};
pub use value::{Arguments, Quote, Style, TaggedArguments, ValueOpening};

/// A format of replies. Two are equal if they read and write alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dialect {
    /// Markers around reasoning, and when they appear.
    pub reasoning: Reasoning,
    /// Marks around content for the user.
    pub content: Content,
    /// Syntax of tool calls; `None` if the template renders no calls.
    pub calls: Option<Calls>,
    /// Headers with which turns begin.
    pub turns: Turns,
    /// Texts without meaning between the parts of a reply: `<|end|>`, `<|start|>assistant`. After a joint the same may
    /// come as at the beginning of the reply, including patterns that are allowed only there.
    pub joints: Vec<String>,
    /// Texts that end a reply, if the vocabulary's own tokens do not.
    pub stops: Vec<String>,
}

impl Dialect {
    /// Returns whether calls are known by where they begin: with the reply.
    pub(crate) fn calls_only_begin(&self) -> bool {
        let mut patterns = self.calls.iter().flat_map(|calls| &calls.patterns);
        patterns.next().is_some_and(|pattern| pattern.at_start_only)
    }
}

/// Markers around reasoning, and when they appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reasoning {
    /// Presence of reasoning, and its opener.
    pub mode: ReasoningMode,
    /// Beginning of reasoning; empty if only the prompt begins it.
    pub start: String,
    /// End of the reasoning.
    pub end: String,
    /// True if a call also ends the reasoning, without `end`. Otherwise a call inside the reasoning is text.
    pub calls_end_it: bool,
    /// True if the template keeps reasoning only in turns with tool calls.
    pub in_tool_turns_only: bool,
}

/// Presence of reasoning, and its opener.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningMode {
    /// The model does not think.
    #[default]
    None,
    /// The model may open it.
    Optional,
    /// The prompt opens it.
    OpenedByPrompt,
    /// No marker opens it: the first text of a reply is reasoning if the end marker follows.
    OnlyEnded,
}

/// Marks around content for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// Presence of the marks.
    pub mode: ContentMode,
    /// Beginning of marked content. It is the end of a line if the line of the header may also name the recipient of a
    /// reply.
    pub start: String,
    /// End of marked content; may be empty if it runs to the end of the turn.
    pub end: String,
    /// Other texts that may begin marked content, such as other headers of a message.
    pub other_starts: Vec<String>,
}

impl Content {
    /// Returns whether all content begins with `start`, so that every other beginning of a reply names its recipient.
    pub(crate) fn is_addressed(&self) -> bool {
        self.mode == ContentMode::Wrapped || (self.mode == ContentMode::Plain && !self.start.is_empty())
    }
}

/// Presence of marks around content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContentMode {
    /// Content has no marks.
    #[default]
    Plain,
    /// All content has marks.
    Wrapped,
    /// Content has marks after reasoning.
    WrappedWithReasoning,
}

/// Beginning of turns: the text that the template writes before a message of each role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turns {
    /// Text before a message of the user.
    pub user: String,
    /// Text before a message of the model.
    pub assistant: String,
    /// Text after a message of the model, if it is more than the token that ends generation.
    pub end: String,
    /// The marker that ends a turn with calls, if other turns end differently. The marker may be missing.
    pub end_of_calls: String,
}

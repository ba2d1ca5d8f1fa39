//! Markers between a model's text: the boundaries of reasoning, content and tool calls, as data.
//!
//! Analysis fills a [`Dialect`] in from renderings of a template; the machine that reads and constrains output is made
//! of it. Nothing here knows a template.
//!
//! ```text
//!   reply   = [start of turn] ( reasoning | content | calls | joint )*
//!   calls   = section.start  call ( between call )*  section.end
//!   call    = each Part of a pattern, one after the other
//! ```
//!
//! Markers are kept as the template writes them, white space included. Readers look for them without the white space
//! around them, and take any amount of it there.

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
    /// Text between the parts of a reply that means nothing: `<|end|>`, `<|start|>assistant`. After one of them the
    /// reply stands where it stood at its beginning, and patterns that need that may come.
    pub joints: Vec<String>,
    /// Texts that end a reply where the vocabulary's own tokens do not say so.
    pub stops: Vec<String>,
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
    /// True if a call ends it too, without `end`. Elsewhere what looks like a call inside of it is text.
    pub calls_end_it: bool,
    /// True if the template keeps it in turns with tool calls only.
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
    /// Nothing opens it: what is written first is reasoning if its end comes.
    OnlyEnded,
}

/// Marks around content for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// Presence of the marks.
    pub mode: ContentMode,
    /// Beginning of marked content; the end of the line, if the line of the header continues with the recipient of a
    /// reply.
    pub start: String,
    /// End of marked content; may be empty if it runs to the end of the turn.
    pub end: String,
    /// Other texts it may begin with, such as other headers of a message.
    pub other_starts: Vec<String>,
}

impl Content {
    /// Returns whether all content begins so, and any other beginning of a reply names its recipient.
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
    /// Text after a message of the model, where that is more than a token which ends generation.
    pub end: String,
    /// The marker that ends a turn with calls, where that is not what ends other turns. It may be missing.
    pub end_of_calls: String,
}

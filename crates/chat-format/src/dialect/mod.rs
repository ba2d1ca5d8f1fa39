//! What a model writes between its text: where reasoning, content and tool calls begin and end, as data.
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
pub use value::{Arguments, Keyed, Opened, Quote, Style};

/// A format of replies. Two are equal if they read and write alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dialect {
    /// How the model thinks.
    pub reasoning: Reasoning,
    /// How what it says to the user is marked.
    pub content: Content,
    /// How it calls tools; `None` where the template renders no calls.
    pub calls: Option<Calls>,
    /// Where turns begin.
    pub turns: Turns,
    /// Text between the parts of a reply that means nothing: `<|end|>`, `<|start|>assistant`. After one of them the
    /// reply stands where it stood at its beginning, and patterns that need that may come.
    pub joints: Vec<String>,
    /// Texts that end a reply where the vocabulary's own tokens do not say so.
    pub stops: Vec<String>,
}

/// How the model thinks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reasoning {
    /// Whether, and who opens it.
    pub mode: ReasoningMode,
    /// What it begins with; empty where only the prompt begins it.
    pub start: String,
    /// What it ends with.
    pub end: String,
    /// Whether a call ends it too, without `end`. Elsewhere what looks like a call inside of it is text.
    pub calls_end_it: bool,
    /// Whether the template keeps it in turns with tool calls only.
    pub in_tool_turns_only: bool,
}

/// Whether a model thinks, and who opens it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningMode {
    /// It does not.
    #[default]
    None,
    /// The model may open it.
    Optional,
    /// The prompt opens it.
    OpenedByPrompt,
    /// Nothing opens it: what is written first is reasoning if its end comes.
    OnlyEnded,
}

/// How what is said to the user is marked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// Whether it is.
    pub mode: ContentMode,
    /// What it begins with, where it is marked; the end of the line, where that of the header goes on with whom a reply
    /// is for.
    pub start: String,
    /// What it ends with; may be empty where it runs to the end of the turn.
    pub end: String,
    /// Other texts it may begin with, such as other headers of a message.
    pub other_starts: Vec<String>,
}

impl Content {
    /// Whether all content begins so, and what a reply begins with otherwise says who it is for.
    pub(crate) fn is_addressed(&self) -> bool {
        self.mode == ContentMode::Wrapped || (self.mode == ContentMode::Plain && !self.start.is_empty())
    }
}

/// Whether content is marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContentMode {
    /// It is not.
    #[default]
    Plain,
    /// Always.
    Wrapped,
    /// Only after reasoning.
    WrappedWithReasoning,
}

/// Where turns begin: what the template writes before a message of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turns {
    /// Before what the user says.
    pub user: String,
    /// Before what the model says.
    pub assistant: String,
    /// After what the model says, where that is more than a token which ends generation.
    pub end: String,
    /// The marker that ends a turn with calls, where that is not what ends other turns. It may be missing.
    pub end_of_calls: String,
}

//! Replies of a model: the message, and the events by which it comes.

mod builder;
mod message;
mod parser;
mod repeated;
mod text_out;

pub use message::{CallKind, Event, Message, ReasoningFormat, ToolCall};
pub use parser::{Parser, ParserOptions};

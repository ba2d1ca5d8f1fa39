//! Chats: a model's template is rendered, its format of replies found; replies are read while they come, and held to
//! the tools.
//!
//! | to | take |
//! | --- | --- |
//! | turn messages into a prompt | [`ChatTemplate`] |
//! | know how a model writes reasoning, content and calls | [`Analysis`], of a template alone |
//! | do all that follows with one template | [`ChatFormat`] |
//! | read a reply, in any portions, as a message | [`Parser`] |
//! | let a model write only calls that the tools allow | [`ReplyConstraint`] |
//!
//! Templates are rendered by the crate [`chat_template`]; what hosts need of it is named here as well.
//!
//! ```
//! use chat_format::{ChatTemplate, Data, RenderOptions};
//! use serde_json::json;
//!
//! let template = ChatTemplate::new(
//!     "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{{ eos_token }}{% endfor %}",
//!     "<s>",
//!     "</s>",
//! )?;
//! let messages = Data::from(&json!([{"role": "user", "content": "Hello"}]));
//! let text = template.render(&messages, None, &RenderOptions::default())?;
//! assert_eq!(text, "<|user|>Hello</s>");
//! # Ok::<(), chat_format::TemplateError>(())
//! ```

#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "JSON and lists that are made for one call are handed over")]
#![allow(clippy::similar_names, reason = "from and form, start and stop, named and name are the right words")]

pub mod analysis;
mod check;
mod constraint;
pub mod dialect;
mod error;
mod format;
mod lock;
mod machine;
mod reply;
mod tools;
mod values;

pub use analysis::Analysis;
pub use chat_template::{ChatTemplate, Clock, Data, RenderOptions, TemplateError, TracedText};
pub use constraint::{BudgetedReply, CallSpelling, ControlTokens, ReplyConstraint};
pub use dialect::Dialect;
pub use error::FormatError;
pub use format::{ChatFormat, ConstraintOptions};
pub use machine::ToolChoice;
pub use reply::{Event, Message, Parser, ParserOptions, ReasoningFormat, ToolCall};
pub use tools::{Tool, ToolError, Tools};

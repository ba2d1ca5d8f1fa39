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
//! [`ChatTemplate`] renders templates as Jinja2 does under the settings of Hugging Face's transformers, byte for byte.
//! They are files of strangers: whatever stands in one, rendering ends soon, with a text or a [`TemplateError`], in
//! bounded memory.
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
#![allow(clippy::needless_pass_by_value, reason = "filters and functions of templates share one signature")]
#![allow(clippy::similar_names, reason = "from and form, start and stop, named and name are what they are")]

pub mod analysis;
mod check;
mod constraint;
pub mod dialect;
mod format;
mod jinja;
mod lock;
mod machine;
mod reply;
mod tools;
mod values;

pub use analysis::Analysis;
pub use constraint::{BudgetedReply, ControlTokens, ReplyConstraint};
pub use dialect::Dialect;
pub use format::{ChatFormat, ConstraintOptions, FormatError};
pub use jinja::{ChatTemplate, Clock, Data, RenderOptions, TemplateError};
pub use machine::ToolChoice;
pub use reply::{Event, Message, Parser, ParserOptions, ReasoningFormat, ToolCall};
pub use tools::{Tool, ToolError, Tools};
pub use values::ShapeError;

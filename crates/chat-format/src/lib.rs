//! Chat formats: rendering a model's chat template, finding out how the model writes replies, parsing replies as they
//! arrive, and constraining them to the given tools.
//!
//! | to | take |
//! | --- | --- |
//! | render messages into a prompt | [`ChatTemplate`] |
//! | find out how a model writes reasoning, content and calls | [`Analysis`], made from the template alone |
//! | render, analyse, parse and constrain with one template | [`ChatFormat`] |
//! | parse a reply, in portions of any size, into a message | [`Parser`] |
//! | let a model write only calls that the tools allow | [`ReplyConstraint`] |
//!
//! The crate [`chat_template`] renders the templates. This crate re-exports the items of it that hosts need.
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
mod custom;
pub mod dialect;
mod error;
mod format;
mod lock;
mod machine;
mod reply;
pub mod response_template;
mod tools;
mod values;

pub use analysis::Analysis;
pub use chat_template::{ChatTemplate, Clock, Data, RenderOptions, TemplateError, TracedText};
pub use constraint::{BudgetedReply, CallSpelling, ControlTokens, ReplyConstraint, Whitespace};
pub use custom::{InputGrammar, InputSyntax, ToolInput};
pub use dialect::Dialect;
pub use error::FormatError;
pub use format::{ChatFormat, ConstraintOptions};
pub use machine::ToolChoice;
pub use reply::{CallKind, Event, Message, Parser, ParserOptions, ReasoningFormat, ToolCall};
pub use tools::{Tool, ToolError, Tools};

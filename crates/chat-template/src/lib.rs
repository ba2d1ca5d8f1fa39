//! Chat templates, rendered as Jinja2 does under the settings of Hugging Face's transformers, byte for byte.
//!
//! Templates are untrusted input. Whatever a template contains, rendering ends soon and in bounded memory, with a text
//! or a [`TemplateError`]. This crate does not know how models write their replies.
//!
//! ```
//! use chat_template::{ChatTemplate, Data, RenderOptions};
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
//! # Ok::<(), chat_template::TemplateError>(())
//! ```

#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "filters and functions of templates share one signature")]
#![allow(clippy::similar_names, reason = "from and form, start and stop, named and name are the right words")]

mod builtins;
mod clock;
mod data;
mod error;
mod eval;
mod meter;
mod shapes;
mod syntax;
mod template;
mod value;

pub use clock::Clock;
pub use data::Data;
pub use error::TemplateError;
pub use template::{ChatTemplate, RenderOptions, Session};
pub use value::TracedText;

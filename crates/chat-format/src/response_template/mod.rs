//! Response templates: JSON by which the author of a model says how its replies are read.
//!
//! `transformers` keeps it in `tokenizer_config.json`, under `response_template`. A template has fields, which are keys
//! of the message, and anchors, which are texts or patterns that begin and end a region of a field.
//!
//! | to | take |
//! | --- | --- |
//! | read a reply as `transformers` does, whole or in parts | [`ResponseTemplate::parse`], [`ResponseParser`] |
//! | parse and constrain with it instead of a chat template | [`ChatFormat::from_response_template`] |
//! | compare it with a chat template, and take what that does not show | [`ChatFormat::with_response_template`] |
//! | write one for a format | [`ChatFormat::response_template`] |
//!
//! [`ChatFormat::from_response_template`]: crate::ChatFormat::from_response_template
//! [`ChatFormat::with_response_template`]: crate::ChatFormat::with_response_template
//! [`ChatFormat::response_template`]: crate::ChatFormat::response_template

mod content;
mod error;
mod follow;
mod parser;
mod pattern;
mod python;
mod python_calls;
mod read;
mod template;
mod transform;
mod typed;
mod write;

pub use error::ResponseError;
pub use parser::{RegionEvent, ResponseParser};
pub use template::ResponseTemplate;

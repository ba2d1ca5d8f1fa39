//! Chats: formats of models, tools, prompts and what is read from replies.

#[cfg(feature = "llama")]
pub(crate) mod asked;
pub(crate) mod constraint;
pub(crate) mod format;
pub(crate) mod message;
pub(crate) mod messages;
pub(crate) mod parser;
pub(crate) mod response_template;
pub(crate) mod template;
pub(crate) mod tools;

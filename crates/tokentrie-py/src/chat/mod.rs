//! Chats: formats of models, tools, prompts and what is read from replies.

pub(crate) mod constraint;
pub(crate) mod format;
pub(crate) mod message;
pub(crate) mod messages;
pub(crate) mod parser;
pub(crate) mod template;
pub(crate) mod tools;

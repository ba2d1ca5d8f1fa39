//! The chat loop: prompt, constraint, reader, finish reasons, probabilities.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `format.rs` | the format of a model's chats, over its vocabulary |
//! | `call_ids.rs` | ids of calls, each once in a conversation |
//! | `config.rs` | the files of a model as transformers keeps them |
//! | `content.rs` | constrained content |
//! | `messages.rs` | which messages there may be |
//! | `parser.rs` | a reply in parts, of text or of tokens |
//! | `prompt.rs` | the prompt of a conversation, in which only the template's own text names control tokens |
//! | `request.rs` | a request as JSON: messages, tools, settings |
//! | `reply.rs` | a reply: generated inside its format, read while it comes |
//! | `receipt.rs` | subject of a reply's receipt, and the check of a receipt |
//! | `reading.rs` | reading of a reply token by token, with reports of its events |
//! | `response_format.rs` | `response_format` as a constraint |
//! | `shown.rs` | the schema of the content, in the form that the model reads |
//! | `structural_tag.rs` | structural tags as a grammar |
//! | `tools.rs` | definitions of tools, and the cache of tool lists |
//! | `wire.rs` | events and replies as JSON |
//! | `shares.rs` | probabilities of the names and the enum values of calls |

#[cfg(feature = "llama")]
mod call_ids;
mod config;
#[cfg(feature = "llama")]
mod content;
pub(crate) mod format;
mod messages;
mod parser;
mod prompt;
#[cfg(feature = "llama")]
mod reading;
#[cfg(feature = "llama")]
mod receipt;
#[cfg(feature = "llama")]
mod reply;
#[cfg(feature = "llama")]
mod request;
mod response_format;
#[cfg(feature = "llama")]
mod shares;
#[cfg(feature = "llama")]
mod shown;
mod structural_tag;
mod tools;
mod wire;

pub use chat_format::analysis::{ContinuedPart, PromptOptions, ToolsIn};
pub use chat_format::response_template::{RegionEvent, ResponseError, ResponseParser, ResponseTemplate};
pub use chat_format::{
    CallKind, CallSpelling, ChatFormat, ChatTemplate, Clock, ConstraintOptions, Data, Event, FormatError, Message,
    ParserOptions, ReasoningFormat, RenderOptions, TemplateError, ToolChoice, ToolError, Tools, TracedText, Whitespace,
};
pub use config::{ConfigError, format_from_config};
pub use format::{CHATML, ConstraintError, ModelFormat, NO_TEMPLATE, control_texts, template_or_chatml};
pub use messages::check_message;
#[cfg(feature = "llama")]
pub(crate) use messages::is_media;
pub use parser::{PartError, ReplyParser};
pub use prompt::ChatPrompt;
#[cfg(feature = "llama")]
pub use reading::{ReplyPart, ReplyStep};
#[cfg(feature = "llama")]
pub use reply::{ChatReply, ChatStats, ReadyChat, ReplyOptions};
#[cfg(feature = "llama")]
pub use request::{ChatError, ChatOptions, ChatRequest, only_span};
pub use response_format::response_format;
#[cfg(feature = "llama")]
pub use shares::CallShares;
#[cfg(feature = "llama")]
pub use shown::{MOST_SHOWN, ShownSchema};
pub use tools::{forget_tools, known_tools, tool_choice, tools_in, wrapped_tool};
pub use wire::{event_json, message_json, prompt_json};

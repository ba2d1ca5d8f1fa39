//! The engine: what Jinja2 does under the settings of transformers, in bounded time and memory.

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
pub(crate) use template::Session;
pub use template::{ChatTemplate, RenderOptions};

//! JSON Schema. One binary, because each is linked anew.

mod common;
mod contradictions;
mod engine;
mod enums;
mod kept;
mod levels;
mod oracle;
mod rule;
mod schema;

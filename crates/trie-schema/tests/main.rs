//! JSON Schema. One binary, because each is linked anew.

mod cache;
mod common;
mod contradictions;
mod engine;
mod enums;
mod levels;
mod oracle;
mod rule;
mod schema;

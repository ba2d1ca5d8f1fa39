//! JSON Schema and Lark. One binary, because each is linked anew.

mod common;
mod contradictions;
mod engine;
mod enums;
mod lark;
mod oracle;
mod rule;
mod schema;

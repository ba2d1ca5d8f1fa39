//! The arguments of a call, read byte by byte in every style and converted to JSON on the fly. Where a tool's schema
//! must hold, they are checked against it.
//!
//! One deterministic, lenient machine reads ([`Reader`]). In strict use a second machine ([`trie_schema::Values`]) runs
//! beside it: it is told what was read, and may refuse it. So a lenient reader accepts whatever a strict reader
//! accepts, with the same output.

mod blanks;
mod escaped;
mod held;
mod json_out;
mod limits;
mod marker;
mod number_grammar;
mod out;
mod quoted_text;
mod reader;
mod styles;
mod syntax;
#[cfg(test)]
mod tests;
mod utf8;
mod watch;

pub(crate) use blanks::Gaps;
pub(crate) use held::Rest;
pub(crate) use json_out::JsonOut;
pub(crate) use limits::Limits;
pub(crate) use out::{Nobody, Out};
pub(crate) use reader::{ArgsState, Reader, Step};
pub(crate) use styles::raw::printed;

/// The byte before the text of a control token, in strict use: no UTF-8 has it.
pub(crate) const CONTROL: u8 = 0xFF;

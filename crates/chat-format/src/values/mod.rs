//! The arguments of a call, read byte by byte: in every style, on the fly made JSON, and, where a tool's schema must
//! hold, held to it.
//!
//! One deterministic machine reads ([`Reader`]); it is lenient. A strict one is the same machine with a second one
//! riding along ([`trie_schema::Values`]), which is told what was read and may say no. So whatever a strict reader
//! accepts a lenient one accepts too, with the same output.

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

pub(crate) use held::Rest;
pub(crate) use json_out::JsonOut;
pub(crate) use limits::Limits;
pub(crate) use out::{Nobody, Out};
pub(crate) use reader::{ArgsState, Reader, Step};
pub(crate) use styles::raw::printed;

/// The byte before the text of a control token, in strict use: no UTF-8 has it.
pub(crate) const CONTROL: u8 = 0xFF;

//! The arguments of a call, read byte by byte: in every style, on the fly made JSON, and, where a tool's schema must
//! hold, held to it.
//!
//! One deterministic machine reads ([`Reader`]); it is lenient. A strict one is the same machine with a second one
//! riding along ([`hold`]), which sees what was read and may say no. So whatever a strict reader accepts a lenient one
//! accepts too, with the same output.

mod blanks;
mod escaped;
mod hold;
mod json_out;
mod marker;
mod number_grammar;
mod out;
mod quoted_text;
mod reader;
mod schema;
mod shapes;
mod styles;
mod syntax;
#[cfg(test)]
mod tests;
mod types;
mod utf8;
mod watch;

pub(crate) use hold::Rest;
pub(crate) use json_out::JsonOut;
pub(crate) use out::{Nobody, Out};
pub(crate) use reader::{ArgsState, Reader, Step};
pub use shapes::ShapeError;
pub(crate) use shapes::limits::Limits;
pub(crate) use shapes::{ShapeId, ShapeWarning, Shapes};
pub(crate) use styles::raw::printed;
pub(crate) use types::Types;

/// The byte before the text of a control token, in strict use: no UTF-8 has it.
pub(crate) const CONTROL: u8 = 0xFF;

//! JSON to types and back: reads and writes every constraint and every request.
//!
//! | file | content |
//! | --- | --- |
//! | `text.rs` | text to a tree, within limits |
//! | `reader.rs` | a tree to types that derive `Deserialize`, with typed errors that say where |
//! | `place.rs` | places in a tree |
//! | `with.rs` | values that serde has no form for |

pub(crate) mod place;
pub(crate) mod reader;
mod text;
pub(crate) mod with;

#[cfg(feature = "llama")]
pub(crate) use reader::Parts;
#[cfg(feature = "llama")]
pub use reader::ReadParts;
#[cfg(feature = "chat")]
pub(crate) use reader::{ReadError, carry_error};
pub(crate) use reader::{inner, read, refused_at, shorten_value, type_error, value_error};
pub use text::{MOST_BYTES, MOST_DEPTH};
pub(crate) use text::{keeps_digits, parse};

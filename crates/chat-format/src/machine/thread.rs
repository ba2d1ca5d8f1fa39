//! Progress of a sequence.

use super::names::{NamePrefix, Names};
use super::space::Space;
use smallvec::SmallVec;

/// Progress in one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub seq: u16,
    pub atom: u8,
    /// Bytes of the atom, where it is a text or open.
    pub(super) at: u16,
    pub(super) space: Space,
    pub(super) name: NamePrefix,
    /// The tool whose name was written.
    pub tool: Option<u32>,
}

/// Threads while a byte is taken: mostly a few, which need no memory of their own.
pub(crate) type Threads = SmallVec<[Thread; 4]>;

/// Mode of reading sequences.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadMode<'a> {
    /// The names that may be written; any may where there are none.
    pub names: Option<&'a Names>,
    /// True if only text that can be parsed is allowed.
    pub strict: bool,
}

impl Thread {
    /// The same, of a call of this tool.
    pub(crate) fn with_tool(self, tool: u32) -> Self {
        Self { tool: Some(tool), ..self }
    }

    pub(super) fn after_atom(self) -> Self {
        Self { atom: self.atom + 1, at: 0, space: Space::default(), name: NamePrefix::default(), ..self }
    }
}

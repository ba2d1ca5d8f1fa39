//! Progress of a sequence.

use super::names::{NamePrefix, Names};
use super::space::Space;
use crate::values::Gaps;
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
    /// White space that may be written in the gaps of a call.
    pub gaps: Gaps,
}

impl ReadMode<'_> {
    /// The run of white space after one more byte, before a literal before which the template writes `template`;
    /// `None` if that is too much. Readers take any.
    pub(super) fn space(self, run: Space, byte: u8, template: &[u8]) -> Option<Space> {
        if self.strict { run.in_gap(byte, template, self.gaps) } else { Some(Space::default()) }
    }
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

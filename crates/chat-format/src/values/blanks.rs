//! White space between tokens.

/// A run of white space. In strict use it is bounded, so that a model cannot write blanks for ever: at most two
/// newlines, at most two blanks before the first newline, and after a newline at most four a level and eight more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(crate) struct Blanks {
    newlines: u8,
    blanks: u16,
}

/// Returns whether a byte is white space as JSON has it.
#[inline]
pub(crate) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

impl Blanks {
    /// The run after one more byte; `None` if that is too many.
    pub(crate) fn step(self, byte: u8, depth: usize) -> Option<Self> {
        match byte {
            b'\n' if self.newlines < 2 => Some(Self { newlines: self.newlines + 1, blanks: 0 }),
            b' ' | b'\t' => {
                let most = if self.newlines == 0 { 2 } else { 4 * depth as u16 + 8 };
                (self.blanks < most).then_some(Self { blanks: self.blanks + 1, ..self })
            }
            _ => None,
        }
    }
}

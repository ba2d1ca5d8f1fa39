//! White space between tokens.

/// A run of white space: in strict use it is bounded, lest a model writes blanks for ever. At most two newlines; before
/// the first newline at most two blanks, after one four a level and eight more.
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
    /// After one more; `None` where that is too many.
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

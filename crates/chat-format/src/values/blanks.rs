//! White space between tokens.

/// Limits on the white space in each gap of a call that is written. Readers take any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Gaps {
    /// One space behind a comma or a colon, or none.
    #[default]
    Compact,
    /// Line breaks and indentation too, for a template that writes arguments over several lines.
    Lines,
    /// Up to [`Gaps::MOST_FLEXIBLE`] bytes of any; or a line break and two spaces a level, and for each level that may
    /// be around the arguments.
    Flexible,
}

/// A run of white space. In strict use it is bounded, so that a model cannot write blanks for ever.
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

impl Gaps {
    /// Maximum number of bytes in a gap where they are flexible.
    pub(crate) const MOST_FLEXIBLE: u8 = trie_schema::Whitespace::MOST_FLEXIBLE as u8;
    /// Maximum number of bytes between the text of the template and the first value.
    const MOST_BEFORE: u16 = 2;

    /// The run between two tokens of a value after one more byte; `None` if that is too many. `is_behind_sign` says
    /// that a comma or a colon is before it.
    pub(crate) fn between(self, run: Blanks, byte: u8, depth: usize, is_behind_sign: bool) -> Option<Blanks> {
        match self {
            Self::Compact => (is_behind_sign && byte == b' ').then(|| run.counted(1))?,
            Self::Lines => run.step(byte, depth),
            Self::Flexible => run.flexible(byte, depth),
        }
    }

    /// The run before the first value, behind text of the template, after one more byte; `None` if that is too many.
    pub(crate) fn before(self, run: Blanks, byte: u8) -> Option<Blanks> {
        match self {
            Self::Compact => run.counted(Self::MOST_BEFORE),
            Self::Lines | Self::Flexible => self.between(run, byte, 0, true),
        }
    }
}

impl Blanks {
    /// The run after one more byte around tags; `None` if that is too many: at most two newlines, at most two blanks
    /// before the first newline, and after a newline at most four a level and eight more.
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

    /// The run where white space is flexible. `newlines` is 1 as long as it is a line break and spaces behind it alone.
    fn flexible(self, byte: u8, depth: usize) -> Option<Self> {
        /// Objects and a list that a call writes around its arguments, at most.
        const AROUND: usize = 3;
        const MOST: u16 = Gaps::MOST_FLEXIBLE as u16;
        match (self.newlines, byte) {
            (0, b'\n') if self.blanks == 0 => Some(Self { newlines: 1, blanks: 0 }),
            (0, _) => self.counted(MOST),
            (_, b' ') => {
                let most = (2 * (depth + AROUND)).max(usize::from(MOST) - 1);
                self.counted(u16::try_from(most).unwrap_or(u16::MAX))
            }
            _ => Self { newlines: 0, blanks: self.blanks + 1 }.counted(MOST),
        }
    }

    fn counted(self, most: u16) -> Option<Self> {
        (self.blanks < most).then_some(Self { blanks: self.blanks + 1, ..self })
    }
}

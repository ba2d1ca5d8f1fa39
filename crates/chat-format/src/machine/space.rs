//! White space between literals, as models write it: a run of it is limited.

/// A run of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Space {
    lines: u8,
    blanks: u8,
}

impl Space {
    /// The run after one more byte. `None` if that is too much, beyond two ends of lines with 40 blanks after each, or
    /// if the byte is a form feed, which no JSON has.
    pub(crate) fn and(self, byte: u8) -> Option<Self> {
        if byte == b'\x0c' {
            return None;
        }
        let (lines, blanks) = if byte == b'\n' { (self.lines + 1, 0) } else { (self.lines, self.blanks + 1) };
        (lines <= 2 && blanks <= 40).then_some(Self { lines, blanks })
    }
}

#[cfg(test)]
mod tests {
    use super::Space;

    #[test]
    fn a_form_feed_is_no_space() {
        for byte in *b" \t\n\r" {
            assert!(Space::default().and(byte).is_some());
        }
        assert_eq!(Space::default().and(b'\x0c'), None);
    }
}

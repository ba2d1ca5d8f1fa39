//! White space between literals, as models write it: a run of it is limited.

use crate::values::Gaps;

/// A run of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Space {
    lines: u8,
    length: u8,
}

impl Space {
    /// Maximum length outside of calls: before the first, and between two.
    const MOST_OUTSIDE: u8 = 8;
    /// Maximum length in a gap of a call whose template writes it in lines.
    const MOST_IN_LINES: u8 = 84;

    /// The run after one more byte, outside of calls. `None` if that is too much, or if the byte is a form feed, which
    /// no JSON has.
    pub(crate) fn and(self, byte: u8) -> Option<Self> {
        self.up_to(Self::MOST_OUTSIDE, byte)
    }

    /// The run after one more byte before a literal of a call, before which the template writes `template`.
    pub(crate) fn in_gap(self, byte: u8, template: &[u8], gaps: Gaps) -> Option<Self> {
        if self.next_in(template) == Some(byte) {
            return self.up_to(u8::MAX, byte);
        }
        match gaps {
            // Models write a space or a line break more than the template, too.
            Gaps::Compact => {
                let most = u8::try_from(template.len()).unwrap_or(u8::MAX).saturating_add(1);
                matches!(byte, b' ' | b'\n').then(|| self.up_to(most.min(Self::MOST_IN_LINES), byte))?
            }
            Gaps::Lines => self.up_to(Self::MOST_IN_LINES, byte),
            Gaps::Flexible => self.up_to(Gaps::MOST_FLEXIBLE, byte),
        }
    }

    /// Returns the byte that continues this run as the template writes it; `None` if it does not begin like that, or
    /// all of it is written.
    pub(crate) fn next_in(self, template: &[u8]) -> Option<u8> {
        let (begun, rest) = template.split_at_checked(usize::from(self.length))?;
        let lines: u8 = begun.iter().map(|&byte| u8::from(byte == b'\n')).sum();
        rest.first().copied().filter(|_| lines == self.lines)
    }

    fn up_to(self, most: u8, byte: u8) -> Option<Self> {
        if byte == b'\x0c' {
            return None;
        }
        let (lines, length) = (self.lines + u8::from(byte == b'\n'), self.length.checked_add(1)?);
        let is_written = most == u8::MAX;
        (is_written || lines <= 2 && length <= most).then_some(Self { lines, length })
    }
}

#[cfg(test)]
mod tests {
    use super::{Gaps, Space};

    #[test]
    fn a_form_feed_is_no_space() {
        for byte in *b" \t\n\r" {
            assert!(Space::default().and(byte).is_some());
        }
        assert_eq!(Space::default().and(b'\x0c'), None);
    }

    #[test]
    fn a_gap_is_what_the_template_writes_or_what_its_limit_allows() {
        let takes = |run: &str, template: &str, gaps: Gaps| {
            run.bytes()
                .try_fold(Space::default(), |space, byte| space.in_gap(byte, template.as_bytes(), gaps))
                .is_some()
        };
        for (run, template, compact, flexible) in [
            ("", "\n", true, true),
            ("\n", "\n", true, true),
            (" ", "\n", true, true),
            (" \n", "\n", true, true),
            ("\n\n", "\n", true, true),
            ("\n ", "\n", true, true),
            ("\n\n\n", "\n", false, false),
            ("\n            ", "\n            ", true, true),
            ("\n             ", "\n            ", true, false),
            ("\n              ", "\n            ", false, false),
            ("\n", "", true, true),
            ("\t", "", false, true),
            ("  ", "", false, true),
            ("        ", " ", false, true),
            ("         ", " ", false, false),
        ] {
            assert_eq!(takes(run, template, Gaps::Compact), compact, "{run:?} for {template:?}");
            assert_eq!(takes(run, template, Gaps::Flexible), flexible, "{run:?} for {template:?}");
        }
        assert!(takes(&format!("\n{}", " ".repeat(40)), "", Gaps::Lines));
    }
}

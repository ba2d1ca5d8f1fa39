//! UTF-8, byte by byte.

/// Position inside a UTF-8 character; the default is between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(crate) struct Utf8(u8);

impl Utf8 {
    pub(crate) const WHOLE: Self = Self(0);

    /// Returns whether no character is begun.
    #[inline]
    pub(crate) const fn is_whole(self) -> bool {
        self.0 == 0
    }

    /// After one more byte; `None` if it cannot come.
    #[inline]
    pub(crate) const fn step(self, byte: u8) -> Option<Self> {
        // 1 to 3: so many bytes are missing. 4 to 7: E0, ED, F0, F4, after which some bytes cannot come.
        let next = match (self.0, byte) {
            (0, 0..=0x7f) | (1, 0x80..=0xbf) => 0,
            (0, 0xc2..=0xdf) | (2, 0x80..=0xbf) | (4, 0xa0..=0xbf) | (5, 0x80..=0x9f) => 1,
            (0, 0xe1..=0xec | 0xee | 0xef) | (3, 0x80..=0xbf) | (6, 0x90..=0xbf) | (7, 0x80..=0x8f) => 2,
            (0, 0xf1..=0xf3) => 3,
            (0, 0xe0) => 4,
            (0, 0xed) => 5,
            (0, 0xf0) => 6,
            (0, 0xf4) => 7,
            _ => return None,
        };
        Some(Self(next))
    }
}

//! Checks that a strict reader makes while it reads.

use trie_schema::Event;

/// An escape that is not yet over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escaped {
    /// The backslash was read.
    Begun,
    /// The letter after it.
    Letter(u8),
    /// So many hexadecimal digits after `\u`, and their value.
    Hex(u8, u16),
}

/// Observer of everything that is read, which may refuse an event.
pub(crate) trait Watch {
    /// True if texts must be valid and white space bounded.
    const STRICT: bool;
    /// Returns whether this may come; if not, the text is dead.
    fn on(&mut self, event: Event) -> bool;
    /// Returns whether the string may end here.
    fn may_end(&self) -> bool;
    /// Returns whether the string may go on with these bytes.
    fn takes(&self, bytes: &[u8]) -> bool;
    /// Returns whether the string may go on with this escape.
    fn may_escape(&self, escaped: Escaped, quote: u8) -> bool;
}

/// Watch that allows everything.
#[derive(Debug)]
pub(crate) struct Lenient;

impl Watch for Lenient {
    const STRICT: bool = false;

    #[inline]
    fn on(&mut self, _: Event) -> bool {
        true
    }

    #[inline]
    fn may_end(&self) -> bool {
        true
    }

    #[inline]
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    #[inline]
    fn may_escape(&self, _: Escaped, _: u8) -> bool {
        true
    }
}

//! Values that must match a schema, checked while they are read.

use crate::values::watch::{Escaped, Watch};
use trie_schema::{Event, ValueState, Values};

/// State of a value that is being read, and the schemas that it must match.
pub(crate) struct Held<'a> {
    pub(crate) values: &'a Values,
    pub(crate) state: &'a mut ValueState,
}

/// The same for lenient use, where white space is free and texts may be invalid.
pub(crate) struct Loose<'a>(pub(crate) Held<'a>);

/// The rest of a text of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rest {
    /// The text from here on.
    pub(crate) text: Vec<u8>,
    /// The byte of the text that was written last, if any.
    pub(crate) before: Option<u8>,
    /// The bytes after it, as far as they are known.
    pub(crate) behind: Vec<u8>,
    /// `true` if the text continues in a way that is not known here.
    pub(crate) is_cut: bool,
}

/// Adds the rest of each text that is listed here. `false` if no text is listed, or there are more than `most`.
pub(crate) fn listed(state: &ValueState, most: usize, to: &mut Vec<Rest>) -> bool {
    let mut rests = Vec::new();
    let fits = state.listed(most.saturating_sub(to.len()), &mut rests);
    to.extend(rests.into_iter().filter(|_| fits).map(|rest| {
        // What is escaped in some way is written otherwise.
        let end = rest.text.iter().position(|&byte| byte < b' ' || b"'<>&".contains(&byte));
        let text = rest.text[..end.unwrap_or(rest.text.len())].into();
        Rest { text, before: rest.before, behind: Vec::new(), is_cut: rest.is_cut || end.is_some() }
    }));
    fits
}

/// Strings that must match something are escaped as little as possible, and in one way each. Otherwise an escape could
/// begin that nothing can end.
fn may_escape(values: &Values, state: &ValueState, escaped: Escaped, quote: u8) -> bool {
    if state.is_free_text() {
        return true;
    }
    let named = [(b'n', b'\n'), (b'r', b'\r'), (b't', b'\t'), (b'b', 8), (b'f', 12), (b'\\', b'\\'), (quote, quote)];
    let is_named = |byte: u8| named.iter().any(|(_, named)| *named == byte);
    let takes = |byte: u8| values.takes(state, &[byte]);
    let mut controls = (0..0x20).filter(|byte| !is_named(*byte));
    match escaped {
        Escaped::Begun => named.iter().any(|(_, byte)| takes(*byte)) || controls.any(takes),
        Escaped::Letter(b'u') => controls.any(takes),
        Escaped::Letter(letter) => named.iter().any(|(name, byte)| *name == letter && takes(*byte)),
        Escaped::Hex(digits, value) => {
            let begins = |byte: &u8| u16::from(*byte) >> (4 * (4 - u16::from(digits))) == value;
            controls.filter(begins).any(takes)
        }
    }
}

impl Watch for Held<'_> {
    const STRICT: bool = true;

    #[inline]
    fn on(&mut self, event: Event) -> bool {
        self.values.tell(self.state, event)
    }

    fn may_end(&self) -> bool {
        self.values.may_text_end(self.state)
    }

    fn takes(&self, bytes: &[u8]) -> bool {
        self.values.takes(self.state, bytes)
    }

    fn may_escape(&self, escaped: Escaped, quote: u8) -> bool {
        may_escape(self.values, self.state, escaped, quote)
    }
}

impl Watch for Loose<'_> {
    const STRICT: bool = false;

    #[inline]
    fn on(&mut self, event: Event) -> bool {
        self.0.on(event)
    }

    fn may_end(&self) -> bool {
        true
    }

    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn may_escape(&self, _: Escaped, _: u8) -> bool {
        true
    }
}

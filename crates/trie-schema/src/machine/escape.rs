//! Strings as JSON writes them: decoding of escapes to characters.

use trie_rules::{TextMachine, TextState};

/// State inside a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TextAt {
    pub(crate) state: TextState,
    escape: Escape,
}

/// State inside an escape sequence or a multi-byte character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Escape {
    No,
    /// Before so many bytes of a character that is written as itself.
    More(u8),
    Slash,
    /// So many hexadecimal digits, and their value.
    Unit(u8, u16),
    /// The first half of a pair.
    High(u16),
    HighSlash(u16),
    Low(u16, u8, u16),
}

/// Characters that stand in a string only as escapes: controls, quotes and backslashes.
const LAST_CONTROL: u32 = 0x1f;
const FIRST_PAIR: u32 = 0x1_0000;
const LAST: u32 = 0x10_ffff;

/// Decoded output of one byte of a string.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meant {
    Nothing,
    Byte(u8),
    Char(char),
}

/// A range of values that begin with some hexadecimal digits.
fn range(digits: u8, value: u16) -> (u32, u32) {
    let open = 4 * (4 - u32::from(digits));
    let low = u32::from(value) << open;
    (low, low | ((1 << open) - 1))
}

/// The characters of a pair.
fn paired(high: u16, low: u32) -> u32 {
    FIRST_PAIR + ((u32::from(high) - 0xD800) << 10) + (low - 0xDC00)
}

/// The text that bytes end with a quote, from between two characters on, with the quote behind it; `None` where they
/// end none.
pub(super) fn meant(machine: &TextMachine, bytes: &[u8]) -> Option<Box<[u8]>> {
    let (mut at, mut text) = (TextAt::start(machine), Vec::new());
    for &byte in bytes {
        if byte == b'"' && at.is_between() {
            text.push(byte);
            return Some(text.into());
        }
        let (next, meant) = at.step(machine, true, byte)?;
        meant.add_to(&mut text);
        at = next;
    }
    None
}

impl Meant {
    pub(crate) fn add_to(self, text: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::Byte(byte) => text.push(byte),
            Self::Char(char) => text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

impl TextAt {
    pub(crate) fn start(machine: &TextMachine) -> Self {
        Self { state: machine.start(), escape: Escape::No }
    }

    /// Returns the position in a state between two characters.
    pub(super) fn at(state: TextState) -> Self {
        Self { state, escape: Escape::No }
    }

    /// Returns the state, if a character begins here.
    pub(super) fn between(self) -> Option<TextState> {
        (self.escape == Escape::No).then_some(self.state)
    }

    /// Returns whether a character begins here.
    pub(crate) fn is_between(self) -> bool {
        self.escape == Escape::No
    }

    /// Returns whether the string may end here.
    pub(crate) fn is_end(self, machine: &TextMachine) -> bool {
        self.escape == Escape::No && machine.is_end(self.state)
    }

    /// After one byte, other than the quote that ends it; `any` says whether any character may be an escape.
    pub(crate) fn step(self, machine: &TextMachine, any: bool, byte: u8) -> Option<(Self, Meant)> {
        let Self { state, escape } = self;
        let on = |escape| Some((Self { state, escape }, Meant::Nothing));
        let takes = |low: u32, high: u32| low <= high && machine.takes_any(state, low, high);
        let char = |code: u32| {
            let char = char::from_u32(code)?;
            let state = machine.step_char(state, char)?;
            Some((Self { state, escape: Escape::No }, Meant::Char(char)))
        };
        // Whether a unit may have a value between two.
        let may_be = |low: u32, high: u32| {
            if !any {
                return takes(low, high.min(LAST_CONTROL));
            }
            let pairs = (low.max(0xD800), high.min(0xDBFF));
            takes(low, high.min(0xD7FF))
                || takes(low.max(0xE000), high)
                || pairs.0 <= pairs.1 && takes(paired(pairs.0 as u16, 0xDC00), paired(pairs.1 as u16, 0xDFFF))
        };
        let digit = || char::from(byte).to_digit(16).map(|digit| digit as u16);
        match escape {
            Escape::No if byte == b'\\' => {
                let needed = takes(0, LAST_CONTROL) || takes(0x22, 0x22) || takes(0x5c, 0x5c);
                if needed || any && takes(0, LAST) { on(Escape::Slash) } else { None }
            }
            Escape::No if byte < b' ' || byte == b'"' => None,
            Escape::No | Escape::More(_) => {
                let state = machine.step(state, byte)?;
                let escape = match (escape, byte) {
                    (Escape::More(more), _) if more > 1 => Escape::More(more - 1),
                    (Escape::No, 0xC0..=0xDF) => Escape::More(1),
                    (Escape::No, 0xE0..=0xEF) => Escape::More(2),
                    (Escape::No, 0xF0..) => Escape::More(3),
                    _ => Escape::No,
                };
                Some((Self { state, escape }, Meant::Byte(byte)))
            }
            Escape::Slash => match byte {
                b'"' | b'\\' => char(byte.into()),
                b'b' => char(8),
                b'f' => char(12),
                b'n' => char(10),
                b'r' => char(13),
                b't' => char(9),
                b'u' if may_be(0, 0xFFFF) => on(Escape::Unit(0, 0)),
                _ => None,
            },
            Escape::Unit(digits, value) => {
                let (digits, value) = (digits + 1, value << 4 | digit()?);
                if digits < 4 {
                    let (low, high) = range(digits, value);
                    return if may_be(low, high) { on(Escape::Unit(digits, value)) } else { None };
                }
                let is_high = (0xD800..0xDC00).contains(&value);
                if is_high {
                    return if may_be(value.into(), value.into()) { on(Escape::High(value)) } else { None };
                }
                if any || u32::from(value) <= LAST_CONTROL { char(value.into()) } else { None }
            }
            Escape::High(high) => {
                if byte == b'\\' {
                    on(Escape::HighSlash(high))
                } else {
                    None
                }
            }
            Escape::HighSlash(high) => {
                if byte == b'u' {
                    on(Escape::Low(high, 0, 0))
                } else {
                    None
                }
            }
            Escape::Low(high, digits, value) => {
                let (digits, value) = (digits + 1, value << 4 | digit()?);
                if digits < 4 {
                    let (from, to) = range(digits, value);
                    let (from, to) = (from.max(0xDC00), to.min(0xDFFF));
                    let goes_on = from <= to && takes(paired(high, from), paired(high, to));
                    return if goes_on { on(Escape::Low(high, digits, value)) } else { None };
                }
                if (0xDC00..0xE000).contains(&value) { char(paired(high, value.into())) } else { None }
            }
        }
    }
}

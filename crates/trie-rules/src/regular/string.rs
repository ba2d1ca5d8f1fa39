//! The content of JSON strings, as an automaton whose table is built directly.

use super::RegularError;
use crate::automaton::table::{Classes, DEAD, Table};
use crate::automaton::{Automaton, AutomatonError, AutomatonLimits};
use std::mem::size_of;

/// Length limits of a string, and its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StringOptions {
    /// True if the text has a quote before and after the string.
    pub quotes: bool,
    /// Minimum number of characters: an escape counts as one, and so does a pair of surrogates.
    pub min_chars: usize,
    /// Maximum number of characters; `None` for no limit.
    pub max_chars: Option<usize>,
    /// Size limits of the automaton: about 2.2 kB a character.
    pub automaton: AutomatonLimits,
}

impl Default for StringOptions {
    /// Without quotes, of any length.
    fn default() -> Self {
        Self { quotes: false, min_chars: 0, max_chars: None, automaton: AutomatonLimits::default() }
    }
}

impl StringOptions {
    /// Sets the field `quotes`: quotes in the text or not.
    #[must_use]
    pub const fn quotes(self, quotes: bool) -> Self {
        Self { quotes, ..self }
    }

    /// Sets the minimum number of characters.
    #[must_use]
    pub const fn min_chars(self, min_chars: usize) -> Self {
        Self { min_chars, ..self }
    }

    /// Sets the maximum number of characters.
    #[must_use]
    pub const fn max_chars(self, max_chars: usize) -> Self {
        Self { max_chars: Some(max_chars), ..self }
    }

    /// Sets the size limits of the automaton.
    #[must_use]
    pub const fn automaton(self, automaton: AutomatonLimits) -> Self {
        Self { automaton, ..self }
    }
}

/// Position inside one character.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum CharState {
    /// Before the first byte.
    Before,
    Escape,
    /// Before the first of four hexadecimal digits, and before the others.
    Hex4,
    Hex3,
    Hex2,
    Hex1,
    /// After a `D`, which may begin a surrogate.
    HexD,
    /// In the first half of a pair, and on the way to the second.
    High2,
    High1,
    LowBackslash,
    LowU,
    LowD,
    LowC,
    /// Before so many bytes that go on with a character.
    More1,
    More2,
    More3,
    /// After a first byte that restricts the second: no overlong forms, no surrogates, nothing behind the last
    /// character.
    AfterE0,
    AfterED,
    AfterF0,
    AfterF4,
}

const STATES: usize = 20;

const ALL: [CharState; STATES] = [
    CharState::Before,
    CharState::Escape,
    CharState::Hex4,
    CharState::Hex3,
    CharState::Hex2,
    CharState::Hex1,
    CharState::HexD,
    CharState::High2,
    CharState::High1,
    CharState::LowBackslash,
    CharState::LowU,
    CharState::LowD,
    CharState::LowC,
    CharState::More1,
    CharState::More2,
    CharState::More3,
    CharState::AfterE0,
    CharState::AfterED,
    CharState::AfterF0,
    CharState::AfterF4,
];

/// Effect of one byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ByteStep {
    No,
    /// Still inside: the number of the state.
    Inside(u32),
    /// The character is over.
    Over,
}

fn byte_step(inside: CharState, byte: u8) -> ByteStep {
    let hex = byte.is_ascii_hexdigit();
    let going = |to: CharState| ByteStep::Inside(to as u32);
    match (inside, byte) {
        (CharState::Before, b'\\') => going(CharState::Escape),
        (CharState::Before, 0x20..=0x21 | 0x23..=0x7F)
        | (CharState::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')
        | (CharState::More1, 0x80..=0xBF) => ByteStep::Over,
        (CharState::Before, 0xC2..=0xDF) => going(CharState::More1),
        (CharState::Before, 0xE0) => going(CharState::AfterE0),
        (CharState::Before, 0xED) => going(CharState::AfterED),
        (CharState::Before, 0xE1..=0xEF) => going(CharState::More2),
        (CharState::Before, 0xF0) => going(CharState::AfterF0),
        (CharState::Before, 0xF4) => going(CharState::AfterF4),
        (CharState::Before, 0xF1..=0xF3) => going(CharState::More3),
        (CharState::Escape, b'u') => going(CharState::Hex4),
        (CharState::Hex4, b'd' | b'D') => going(CharState::HexD),
        (CharState::Hex4, _) if hex => going(CharState::Hex3),
        (CharState::HexD, b'0'..=b'7') | (CharState::LowC, b'c'..=b'f' | b'C'..=b'F') => going(CharState::Hex2),
        (CharState::HexD, b'8' | b'9' | b'a' | b'b' | b'A' | b'B') => going(CharState::High2),
        (CharState::Hex3, _) if hex => going(CharState::Hex2),
        (CharState::Hex2, _) if hex => going(CharState::Hex1),
        (CharState::Hex1, _) if hex => ByteStep::Over,
        (CharState::High2, _) if hex => going(CharState::High1),
        (CharState::High1, _) if hex => going(CharState::LowBackslash),
        (CharState::LowBackslash, b'\\') => going(CharState::LowU),
        (CharState::LowU, b'u') => going(CharState::LowD),
        (CharState::LowD, b'd' | b'D') => going(CharState::LowC),
        (CharState::More2, 0x80..=0xBF) | (CharState::AfterE0, 0xA0..=0xBF) | (CharState::AfterED, 0x80..=0x9F) => {
            going(CharState::More1)
        }
        (CharState::More3, 0x80..=0xBF) | (CharState::AfterF0, 0x90..=0xBF) | (CharState::AfterF4, 0x80..=0x8F) => {
            going(CharState::More2)
        }
        _ => ByteStep::No,
    }
}

/// States level by level: one level for each number of characters. The table is minimal but for the numbers of its
/// states; thousands of levels are written, not determinised.
pub(super) fn string(options: StringOptions) -> Result<Automaton, RegularError> {
    let StringOptions { quotes, min_chars, max_chars, automaton: limits } = options;
    if let Some(max_chars) = max_chars.filter(|&max_chars| max_chars < min_chars) {
        return Err(RegularError::NoLength { min_chars, max_chars });
    }
    let classes = Classes::from_key(|byte| (ALL.map(|inside| byte_step(inside, byte)), quotes && byte == b'"'));
    let width = classes.bytes.len();
    // Without a limit the last level goes round.
    let levels = max_chars.unwrap_or(min_chars);
    let states = levels.saturating_add(1).saturating_mul(STATES).saturating_add(2);
    if states.saturating_mul((width + 1) * size_of::<u32>()) > limits.bytes {
        return Err(AutomatonError::TooLarge { limit: limits.bytes }.into());
    }
    // The states inside a character, after the class.
    let row = |inside: CharState| classes.bytes.iter().map(move |&byte| byte_step(inside, byte)).collect::<Vec<_>>();
    let rows = ALL.map(row);
    let quote = usize::from(classes.of[usize::from(b'"')]);
    // Two before the levels, where there are quotes: before the first, and after the last.
    let first = if quotes { 2 } else { 0 };
    let (mut next, mut ends) = (Vec::with_capacity(states * width), Vec::with_capacity(states));
    if quotes {
        next.resize(2 * width, DEAD);
        next[quote] = first;
        ends.extend([0, 1]);
    }
    for level in 0..=levels {
        let at = first + (level * STATES) as u32;
        let last = level == levels;
        let endless = last && max_chars.is_none();
        let over = if endless { at } else { at + STATES as u32 };
        let enough = level >= min_chars;
        if last && !endless {
            // Nothing may begin.
            next.resize(next.len() + width, DEAD);
        } else {
            for row in &rows {
                next.extend(row.iter().map(|after| match after {
                    ByteStep::No => DEAD,
                    ByteStep::Inside(inside) => at + inside,
                    ByteStep::Over => over,
                }));
            }
        }
        ends.resize(next.len() / width, 0);
        if quotes && enough {
            next[at as usize * width + quote] = 1;
        }
        ends[at as usize] = u32::from(enough && !quotes);
    }
    Ok(Automaton::of_exact(Table { classes: classes.of, width, next, ends, start: 0 }))
}

/// The text that the inside of a JSON string stands for; `None` if it is none.
pub(super) fn decode_string(inside: &str) -> Option<String> {
    let mut text = String::with_capacity(inside.len());
    let mut left = inside.chars();
    let unit = |left: &mut std::str::Chars<'_>| {
        let digits = left.as_str().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let unit = u32::from_str_radix(digits, 16).ok();
        left.nth(3)?;
        unit
    };
    while let Some(next) = left.next() {
        text.push(match next {
            '\\' => match left.next()? {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let high = unit(&mut left)?;
                    if (0xD800..0xDC00).contains(&high) {
                        (left.next()?, left.next()?).eq(&('\\', 'u')).then_some(())?;
                        let low = unit(&mut left)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
                        char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + low)?
                    } else {
                        char::from_u32(high)?
                    }
                }
                same @ ('"' | '\\' | '/') => same,
                _ => return None,
            },
            '"' | '\0'..='\u{1f}' => return None,
            plain => plain,
        });
    }
    Some(text)
}

//! Reads strings between quotes.

use crate::values::blanks::is_blank;
use crate::values::escaped::{is_escaped, unit, write, write_byte};
use crate::values::marker::fall_back;
use crate::values::reader::Step;
use crate::values::styles::after::Trail;
use crate::values::syntax::{Mark, Syntax};
use crate::values::utf8::Utf8;
use crate::values::watch::{Escaped, Watch};
use crate::values::{CONTROL, Out};
use trie_schema::Event;

/// Position in a string, after its opening quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Quoted {
    /// Index of the quotation mark.
    quote: u8,
    /// The bytes after the closing mark: a mark that is never escaped is text where something else comes.
    follow: Option<[u8; 2]>,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Plain(Utf8),
    /// So many bytes of the closing mark, which may be text too.
    Held(u16),
    /// Right after the sign of a control token, with so many bytes held.
    Control(u16),
    /// So many bytes of a closing mark that must go on.
    Forced(u16),
    /// After a closing mark that may be text, with white space; whether the string may end before it.
    Ended(Trail, bool),
    /// After a backslash; after the first half of a pair, which is 0 where there is none.
    Escape(u16),
    /// In `\x`: so many digits, and their value.
    HexByte(u8, u8),
    /// In `\u`: so many digits, their value, and the first half of a pair.
    Hex(u8, u16, u16),
    /// After the first half of a pair.
    Half(u16),
}

const PLAIN: At = At::Plain(Utf8::WHOLE);

impl Quoted {
    pub(crate) const fn new(quote: u8) -> Self {
        Self { quote, follow: None, at: PLAIN }
    }

    /// With one of these right after it, white space aside, where that is known.
    pub(crate) const fn before(self, follow: Option<[u8; 2]>) -> Self {
        Self { follow, ..self }
    }

    /// Reads a byte; `Done` at the end of the closing quote, `DoneBefore` at what follows it.
    pub(crate) fn step<W: Watch>(&mut self, syntax: &Syntax, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        let mark = &syntax.quotes[usize::from(self.quote)];
        if W::STRICT && byte == CONTROL {
            return self.control(mark, watch, out);
        }
        match self.at {
            At::Plain(utf8) => self.plain(mark, syntax.json, utf8, byte, watch, out),
            At::Held(held) => self.held(mark, held, byte, watch, out),
            At::Control(held) => {
                let (kept, fits) = fall_back(&mark.text, usize::from(held), byte);
                let flushed = usize::from(held) - kept;
                if !fits || !texts(&mark.text[..flushed], watch, out) || !watch.may_end() {
                    return Step::Dead;
                }
                self.marked(mark, kept + 1, true, watch, out)
            }
            At::Forced(held) if mark.text[usize::from(held)] == byte => {
                self.marked(mark, usize::from(held) + 1, true, watch, out)
            }
            At::Forced(_) => Step::Dead,
            At::Ended(trail, may_close) => self.ended(syntax, trail, may_close, byte, watch, out),
            At::Escape(half) => self.escape(mark, syntax.json, half, byte, watch, out),
            At::HexByte(digits, value) => match (char::from(byte).to_digit(16), digits) {
                (Some(digit), 0) => self.go(At::HexByte(1, digit as u8)),
                (Some(digit), _) => {
                    let value = char::from(value << 4 | digit as u8);
                    self.char(value, &unit(value as u16), watch, out)
                }
                (None, _) => Step::Dead,
            },
            At::Hex(digits, value, half) => {
                let Some(digit) = char::from(byte).to_digit(16) else { return Step::Dead };
                self.hex(mark, digits + 1, value << 4 | digit as u16, half, watch, out)
            }
            At::Half(half) if byte == b'\\' => self.go(At::Escape(half)),
            At::Half(_) if W::STRICT => Step::Dead,
            At::Half(_) => {
                out.json(&unit(0xfffd));
                self.at = PLAIN;
                self.step(syntax, byte, watch, out)
            }
        }
    }

    /// Returns whether it ends with a double quote and stands between two of its characters.
    pub(crate) fn is_plain_text(self, syntax: &Syntax) -> bool {
        self.at == PLAIN && syntax.quotes[usize::from(self.quote)].text[..] == *b"\""
    }

    /// Reads bytes at once that stand for themselves, leniently: how many.
    #[inline]
    pub(crate) fn run(self, syntax: &Syntax, bytes: &[u8], out: &mut impl Out) -> usize {
        if self.at != PLAIN {
            return 0;
        }
        let first = syntax.quotes[usize::from(self.quote)].text[0];
        let end = bytes.iter().position(|&byte| byte == first || is_escaped(byte)).unwrap_or(bytes.len());
        out.json(&bytes[..end]);
        end
    }

    fn go(&mut self, at: At) -> Step {
        self.at = at;
        Step::Inside
    }

    fn control<W: Watch>(&mut self, mark: &Mark, watch: &mut W, out: &mut impl Out) -> Step {
        match self.at {
            At::Ended(trail, _) => {
                let blanks: Vec<u8> = trail.bytes().collect();
                let text = texts(&mark.text, watch, out) && texts(&blanks, watch, out);
                if text && watch.may_end() { self.go(At::Control(0)) } else { Step::Dead }
            }
            _ if mark.text.len() == 1 => Step::Dead,
            At::Plain(utf8) if utf8.is_whole() && watch.may_end() => self.go(At::Control(0)),
            At::Held(held) | At::Forced(held) => self.go(At::Control(held)),
            _ => Step::Dead,
        }
    }

    #[inline]
    fn plain<W: Watch>(
        &mut self,
        mark: &Mark,
        json: bool,
        utf8: Utf8,
        byte: u8,
        watch: &mut W,
        out: &mut impl Out,
    ) -> Step {
        if byte == mark.text[0] && utf8.is_whole() {
            return self.held(mark, 0, byte, watch, out);
        }
        if byte == b'\\' && mark.escapes && utf8.is_whole() {
            return if watch.may_escape(Escaped::Begun, mark.text[0]) { self.go(At::Escape(0)) } else { Step::Dead };
        }
        if W::STRICT {
            let Some(utf8) = utf8.step(byte).filter(|_| !json || byte >= b' ') else { return Step::Dead };
            self.at = At::Plain(utf8);
        }
        if !watch.on(Event::Text(byte)) {
            return Step::Dead;
        }
        write_byte(byte, out);
        Step::Inside
    }

    /// With so many bytes of the closing mark read before this one.
    fn held<W: Watch>(&mut self, mark: &Mark, held: u16, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        let (kept, fits) = fall_back(&mark.text, usize::from(held), byte);
        let flushed = usize::from(held) - kept;
        if !texts(&mark.text[..flushed], watch, out) {
            return Step::Dead;
        }
        if fits {
            return self.marked(mark, kept + 1, false, watch, out);
        }
        self.at = PLAIN;
        if byte == b'\\' && mark.escapes {
            return if watch.may_escape(Escaped::Begun, mark.text[0]) { self.go(At::Escape(0)) } else { Step::Dead };
        }
        if W::STRICT {
            let Some(utf8) = Utf8::WHOLE.step(byte) else { return Step::Dead };
            self.at = At::Plain(utf8);
        }
        if !watch.on(Event::Text(byte)) {
            return Step::Dead;
        }
        write_byte(byte, out);
        Step::Inside
    }

    /// With so many bytes of the closing mark.
    fn marked<W: Watch>(&mut self, mark: &Mark, held: usize, forced: bool, watch: &mut W, out: &mut impl Out) -> Step {
        if held == mark.text.len() {
            // A control token is never text.
            if self.follow.is_some() && !mark.escapes && held > 1 && !forced {
                let may_close = !W::STRICT || watch.may_end();
                let fits = may_close || watch.takes(&mark.text);
                return if fits { self.go(At::Ended(Trail::default(), may_close)) } else { Step::Dead };
            }
            if !watch.on(Event::TextClose) {
                return Step::Dead;
            }
            out.json(b"\"");
            return Step::Done;
        }
        if forced {
            return self.go(At::Forced(held as u16));
        }
        if W::STRICT && !watch.may_end() && !watch.takes(&mark.text[..held]) {
            return Step::Dead;
        }
        self.go(At::Held(held as u16))
    }

    /// A byte after a closing mark: of what follows the string, or else all of that is text of it.
    fn ended<W: Watch>(
        &mut self,
        syntax: &Syntax,
        trail: Trail,
        may_close: bool,
        byte: u8,
        watch: &mut W,
        out: &mut impl Out,
    ) -> Step {
        let mark = &syntax.quotes[usize::from(self.quote)];
        let next = trail.and(byte);
        if let Some(next) = next {
            let text = || mark.text.iter().copied().chain(next.bytes()).collect::<Vec<u8>>();
            let fits = !W::STRICT || may_close || watch.takes(&text());
            return if fits { self.go(At::Ended(next, may_close)) } else { Step::Dead };
        }
        // So much white space is none of a string that goes on.
        if is_blank(byte) && W::STRICT {
            return Step::Dead;
        }
        if is_blank(byte) || self.follow.is_some_and(|follow| follow.contains(&byte)) {
            if !may_close || !watch.on(Event::TextClose) {
                return Step::Dead;
            }
            out.json(b"\"");
            return Step::DoneBefore;
        }
        let blanks: Vec<u8> = trail.bytes().collect();
        if !texts(&mark.text, watch, out) || !texts(&blanks, watch, out) {
            return Step::Dead;
        }
        self.at = PLAIN;
        self.step(syntax, byte, watch, out)
    }

    fn escape<W: Watch>(
        &mut self,
        mark: &Mark,
        json: bool,
        half: u16,
        byte: u8,
        watch: &mut W,
        out: &mut impl Out,
    ) -> Step {
        if half != 0 && byte != b'u' {
            if W::STRICT {
                return Step::Dead;
            }
            out.json(&unit(0xfffd));
        }
        if W::STRICT && half == 0 && !watch.may_escape(Escaped::Letter(byte), mark.text[0]) {
            return Step::Dead;
        }
        let stands_for = match byte {
            b'u' => return self.go(At::Hex(0, 0, half)),
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'"' | b'\\' | b'/' => char::from(byte),
            b'\'' if !W::STRICT || mark.text[..] == b"'"[..] => '\'',
            _ if W::STRICT => return Step::Dead,
            b'x' if !json => return self.go(At::HexByte(0, 0)),
            // Python joins the lines.
            b'\n' if !json => return self.go(PLAIN),
            // No escape: models write regular expressions and paths so.
            _ => {
                out.json(b"\\\\");
                self.at = PLAIN;
                return self.plain(mark, json, Utf8::WHOLE, byte, watch, out);
            }
        };
        let written = [b'\\', byte];
        self.char(stands_for, if byte == b'\'' { b"'" } else { &written }, watch, out)
    }

    fn hex<W: Watch>(
        &mut self,
        mark: &Mark,
        digits: u8,
        value: u16,
        half: u16,
        watch: &mut W,
        out: &mut impl Out,
    ) -> Step {
        let is_low = |value: u16| (0xdc00..0xe000).contains(&value);
        if W::STRICT && half == 0 {
            // The second half of a pair cannot come first.
            let low = match digits {
                2 => (0xdc..0xe0).contains(&value),
                3 => (0xdc0..0xe00).contains(&value),
                4 => is_low(value),
                _ => false,
            };
            if low || !watch.may_escape(Escaped::Hex(digits, value), mark.text[0]) {
                return Step::Dead;
            }
        } else if W::STRICT {
            let fits = match digits {
                1 => value == 0xd,
                2 => (0xdc..0xe0).contains(&value),
                _ => true,
            };
            if !fits {
                return Step::Dead;
            }
        }
        if digits < 4 {
            return self.go(At::Hex(digits, value, half));
        }
        match (half, value) {
            (0, 0xd800..0xdc00) => self.go(At::Half(value)),
            (0, 0xdc00..0xe000) => {
                out.json(&unit(0xfffd));
                self.go(PLAIN)
            }
            (0, _) => self.char(char::from_u32(u32::from(value)).unwrap_or('\u{fffd}'), &unit(value), watch, out),
            (half, low) if is_low(low) => {
                let code = 0x10000 + (u32::from(half & 0x3ff) << 10 | u32::from(low & 0x3ff));
                let written = [unit(half), unit(low)].concat();
                self.char(char::from_u32(code).unwrap_or('\u{fffd}'), &written, watch, out)
            }
            (_, other) => {
                out.json(&unit(0xfffd));
                self.hex(mark, 4, other, 0, watch, out)
            }
        }
    }

    /// A character that was escaped, and how JSON writes it.
    fn char<W: Watch>(&mut self, char: char, written: &[u8], watch: &mut W, out: &mut impl Out) -> Step {
        let mut bytes = [0; 4];
        for &byte in char.encode_utf8(&mut bytes).as_bytes() {
            if !watch.on(Event::Text(byte)) {
                return Step::Dead;
            }
        }
        out.json(written);
        self.go(PLAIN)
    }
}

/// Bytes that were held back and are text.
fn texts<W: Watch>(bytes: &[u8], watch: &mut W, out: &mut impl Out) -> bool {
    let fits = bytes.iter().all(|&byte| watch.on(Event::Text(byte)));
    if fits {
        write(bytes, out);
    }
    fits
}

//! Arguments as JSON text in a JSON string: `"{\"a\": 1}"`. What the string stands for is read as JSON.

use crate::values::blanks::{Blanks, is_blank};
use crate::values::reader::Step;
use crate::values::styles::literal::Literal;
use crate::values::syntax::Syntax;
use crate::values::watch::Watch;
use crate::values::{CONTROL, Out};

/// Position in the string.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct JsonText {
    inner: Literal,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// Before the quote.
    Before(Blanks),
    Plain,
    /// After a backslash; after the first half of a pair, which is 0 where there is none.
    Escape(u16),
    /// In `\u`: so many digits, their value, and the first half of a pair.
    Hex(u8, u16, u16),
    /// After the first half of a pair.
    Half(u16),
}

impl JsonText {
    pub(crate) fn new() -> Self {
        Self { inner: Literal::new(), at: At::Before(Blanks::default()) }
    }

    /// After the opening quote.
    pub(crate) fn opened() -> Self {
        Self { at: At::Plain, ..Self::new() }
    }

    /// Returns whether a backslash was the last byte.
    pub(crate) fn is_escaping(&self) -> bool {
        self.at == At::Escape(0)
    }

    /// Reads a byte; `Done` at the closing quote.
    pub(crate) fn step<W: Watch>(&mut self, syntax: &Syntax, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        if W::STRICT && byte == CONTROL {
            return Step::Dead;
        }
        match self.at {
            At::Before(_) if byte == b'"' => self.go(At::Plain),
            At::Before(blanks) if is_blank(byte) => match syntax.gaps.before(blanks, byte) {
                Some(blanks) => self.go(At::Before(blanks)),
                None => Step::Dead,
            },
            At::Before(_) => Step::Dead,
            At::Half(_) if byte != b'\\' => Step::Dead,
            At::Half(half) => self.go(At::Escape(half)),
            At::Plain => match byte {
                b'"' if self.inner.is_over() => Step::Done,
                // No arguments at all.
                b'"' if self.inner.is_fresh() && !W::STRICT => {
                    out.json(b"{}");
                    Step::Done
                }
                b'"' => Step::Dead,
                b'\\' => self.go(At::Escape(0)),
                0..=0x1f if W::STRICT => Step::Dead,
                _ => self.inner(syntax, byte, watch, out),
            },
            At::Escape(half) => self.escape(syntax, byte, half, watch, out),
            At::Hex(digits, value, half) => {
                let Some(digit) = char::from(byte).to_digit(16) else { return Step::Dead };
                let value = value << 4 | digit as u16;
                if digits < 3 {
                    return self.go(At::Hex(digits + 1, value, half));
                }
                if half == 0 && matches!(value, 0xd800..=0xdbff) {
                    return self.go(At::Half(value));
                }
                let units = if half == 0 { vec![value] } else { vec![half, value] };
                let text = String::from_utf16_lossy(&units);
                self.at = At::Plain;
                let each = |byte| self.inner(syntax, byte, watch, out);
                text.bytes().map(each).find(|step| *step != Step::Inside).unwrap_or(Step::Inside)
            }
        }
    }

    /// Reads bytes of a string in it at once, leniently: how many.
    #[inline]
    pub(crate) fn run(&self, syntax: &Syntax, bytes: &[u8], out: &mut impl Out) -> usize {
        if self.at == At::Plain { self.inner.run(syntax, bytes, out) } else { 0 }
    }

    fn go(&mut self, at: At) -> Step {
        self.at = at;
        Step::Inside
    }

    fn escape<W: Watch>(&mut self, syntax: &Syntax, byte: u8, half: u16, watch: &mut W, out: &mut impl Out) -> Step {
        // A strict reader takes one way to write each: no text but these needs an escape.
        let stands_for = match byte {
            b'u' if !W::STRICT => return self.go(At::Hex(0, 0, half)),
            _ if half != 0 => return Step::Dead,
            b'"' | b'\\' => byte,
            b'/' if !W::STRICT => byte,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            _ => return Step::Dead,
        };
        self.at = At::Plain;
        self.inner(syntax, stands_for, watch, out)
    }

    fn inner<W: Watch>(&mut self, syntax: &Syntax, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        if self.inner.is_over() {
            return if is_blank(byte) && !W::STRICT { Step::Inside } else { Step::Dead };
        }
        if self.inner.is_fresh() && byte != b'{' && !is_blank(byte) {
            return Step::Dead;
        }
        match self.inner.step(syntax, byte, watch, out) {
            Step::Dead => Step::Dead,
            _ => Step::Inside,
        }
    }
}

//! Arguments as `key=value` or `key:value`, with commas between.

use crate::dialect::Style;
use crate::values::blanks::{Blanks, Gaps, is_blank};
use crate::values::escaped::write_byte;
use crate::values::marker::{Choices, Chooses, Chosen};
use crate::values::reader::Step;
use crate::values::styles::literal::Literal;
use crate::values::styles::quoted::Quoted;
use crate::values::syntax::Syntax;
use crate::values::utf8::Utf8;
use crate::values::watch::Watch;
use crate::values::{CONTROL, Out};
use trie_schema::Event;

/// Pairs of keys and values, ready to be read.
#[derive(Debug)]
pub(crate) struct Pairs {
    syntax: Syntax,
    /// Between key and value.
    joint: u8,
    /// True if white space may stand before it in strict use too.
    keys_apart: bool,
    after: Choices,
    has_after: bool,
    /// The bytes after a value: a comma, or the text after the arguments.
    follow: Option<[u8; 2]>,
}

/// Position of a walk through pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PairsAt {
    at: At,
    blanks: Blanks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    First,
    /// After a comma.
    Next,
    Key(Utf8),
    QuotedKey(Quoted),
    AfterKey,
    Value(Literal),
    AfterValue,
    After(Chosen),
}

impl Pairs {
    pub(crate) fn new(style: &Style, joint: u8, after: &str, gaps: Gaps) -> Self {
        let after = after.trim();
        Self {
            syntax: Syntax::of(style).with_gaps(gaps),
            joint,
            keys_apart: style.keys_apart,
            after: Choices::new([after.as_bytes().to_vec()]),
            has_after: !after.is_empty(),
            follow: after.bytes().next().map(|first| [b',', first]),
        }
    }

    /// Returns whether the position is in a string, as [`Literal::is_plain_text`] says.
    pub(crate) fn is_plain_text(&self, state: &PairsAt) -> bool {
        matches!(&state.at, At::Value(literal) if literal.is_plain_text(&self.syntax))
    }

    pub(crate) fn begin() -> PairsAt {
        PairsAt { at: At::First, blanks: Blanks::default() }
    }

    /// Reads a byte. The object is begun already.
    #[inline]
    pub(crate) fn step<W: Watch>(&self, state: &mut PairsAt, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        match &mut state.at {
            At::Value(literal) => match literal.step(&self.syntax, byte, watch, out) {
                Step::Done => go(state, At::AfterValue),
                Step::DoneBefore => {
                    state.at = At::AfterValue;
                    self.step(state, byte, watch, out)
                }
                step => step,
            },
            &mut At::Key(utf8) => self.key(state, utf8, byte, watch, out),
            At::QuotedKey(quoted) => match quoted.step(&self.syntax, byte, watch, out) {
                Step::Done => go(state, At::AfterKey),
                step => step,
            },
            &mut At::After(chosen) => match self.after.step(chosen, byte, W::STRICT, |_| true) {
                Chooses::More(chosen) => go(state, At::After(chosen)),
                Chooses::Is(_) => Step::Done,
                _ => Step::Dead,
            },
            _ if is_blank(byte) => {
                if W::STRICT {
                    // Between a key and the sign after it, only where the template writes it.
                    let may_be_one = matches!(state.at, At::Next | At::AfterKey);
                    let blanks = self.syntax.gaps.between(state.blanks, byte, 0, may_be_one);
                    let Some(blanks) = blanks else { return Step::Dead };
                    state.blanks = blanks;
                }
                Step::Inside
            }
            At::First | At::Next => self.before_key(state, byte, watch, out),
            At::AfterKey if byte == self.joint => {
                out.json(b":");
                go(state, At::Value(Literal::before(self.follow)))
            }
            At::AfterKey => Step::Dead,
            At::AfterValue if byte == b',' && watch.on(Event::Comma) => go(state, At::Next),
            At::AfterValue => self.end(state, byte, b"}", watch, out),
        }
    }

    /// Reads bytes of a string at once, leniently: how many.
    #[inline]
    pub(crate) fn run(&self, state: &PairsAt, bytes: &[u8], out: &mut impl Out) -> usize {
        match &state.at {
            At::Value(literal) => literal.run(&self.syntax, bytes, out),
            _ => 0,
        }
    }

    fn before_key<W: Watch>(&self, state: &mut PairsAt, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        let first = state.at == At::First;
        let (chosen, strict) = (Chosen::default(), W::STRICT);
        let ends = self.after.step(chosen, byte, strict, |_| true) != Chooses::No;
        if ends && (first || !strict) {
            return self.end(state, byte, if first { b"{}" } else { b"}" }, watch, out);
        }
        if strict && (byte == CONTROL || byte == self.joint) || !watch.on(Event::TextOpen) {
            return Step::Dead;
        }
        out.json(if first { b"{\"" } else { b",\"" });
        let short = |mark: &crate::values::syntax::Mark| mark.text[..] == [byte];
        match self.syntax.quotes.iter().position(short).filter(|_| !strict) {
            Some(quote) => go(state, At::QuotedKey(Quoted::new(quote as u8))),
            None => self.key(state, Utf8::WHOLE, byte, watch, out),
        }
    }

    fn key<W: Watch>(&self, state: &mut PairsAt, utf8: Utf8, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        if byte == self.joint || (is_blank(byte) && (!W::STRICT || self.keys_apart)) {
            if !watch.on(Event::TextClose) {
                return Step::Dead;
            }
            out.json(b"\"");
            state.at = At::AfterKey;
            return self.step(state, byte, watch, out);
        }
        let mut utf8 = utf8;
        if W::STRICT {
            let Some(next) = utf8.step(byte).filter(|_| !b"{}[](),\"'".contains(&byte) && byte > b' ') else {
                return Step::Dead;
            };
            utf8 = next;
        }
        if !watch.on(Event::Text(byte)) {
            return Step::Dead;
        }
        write_byte(byte, out);
        go(state, At::Key(utf8))
    }

    /// The text after the arguments begins.
    fn end<W: Watch>(
        &self,
        state: &mut PairsAt,
        byte: u8,
        close: &'static [u8],
        watch: &mut W,
        out: &mut impl Out,
    ) -> Step {
        let chooses = self.after.step(Chosen::default(), byte, W::STRICT, |_| true);
        if (chooses == Chooses::No && self.has_after) || !watch.on(Event::Close) {
            return Step::Dead;
        }
        out.json(close);
        match chooses {
            Chooses::More(chosen) => go(state, At::After(chosen)),
            Chooses::Is(_) => Step::Done,
            _ => Step::DoneBefore,
        }
    }
}

fn go(state: &mut PairsAt, at: At) -> Step {
    state.at = at;
    state.blanks = Blanks::default();
    Step::Inside
}

//! Nested values: JSON, Python's literals, and those with quotes of their own.

use crate::values::blanks::{Blanks, is_blank};
use crate::values::escaped::write_byte;
use crate::values::number_grammar::NumberAt;
use crate::values::reader::Step;
use crate::values::styles::quoted::Quoted;
use crate::values::syntax::{MOST_LEVELS, Syntax};
use crate::values::utf8::Utf8;
use crate::values::watch::Watch;
use crate::values::{CONTROL, Out};
use trie_schema::Event;

/// Position in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Literal {
    at: At,
    /// A bit a level, the innermost lowest: whether it is an object.
    levels: u64,
    depth: u8,
    /// The two bytes that may come after the whole value, where they are known.
    follow: Option<[u8; 2]>,
    /// White space since the last token; only counted in strict use.
    blanks: Blanks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// A value must come.
    Value,
    FirstItem,
    FirstKey,
    NextItem,
    NextKey,
    Colon,
    AfterValue,
    Word(u8, u8),
    Number(NumberAt),
    /// In a string; whether it is a key.
    Quoted(bool, Quoted),
    /// In an opening mark: whether of a key, which, how much of it, whether a control token.
    Opening(bool, u8, u16),
    /// After the sign of a control token, with so much of the mark of a string.
    Control(bool, u16),
    BareKey(Utf8),
    Over,
}

/// A word, what it is in JSON, and what it says.
const WORDS: [(&[u8], &[u8], Event); 6] = [
    (b"true", b"true", Event::True),
    (b"false", b"false", Event::False),
    (b"null", b"null", Event::Null),
    (b"True", b"true", Event::True),
    (b"False", b"false", Event::False),
    (b"None", b"null", Event::Null),
];

impl Literal {
    /// Creates a reader that stands before a value.
    pub(crate) fn new() -> Self {
        Self { at: At::Value, levels: 0, depth: 0, follow: None, blanks: Blanks::default() }
    }

    /// Before a value that one of these follows.
    pub(crate) fn before(follow: Option<[u8; 2]>) -> Self {
        Self { follow, ..Self::new() }
    }

    /// Returns whether what was read may be whole: numbers end where something else comes.
    pub(crate) fn may_end(&self, may_number_end: impl FnOnce() -> bool) -> bool {
        match self.at {
            At::Over => true,
            At::Number(number) => self.depth == 0 && number.is_end() && may_number_end(),
            _ => false,
        }
    }

    /// Returns whether its last byte was read.
    pub(crate) fn is_over(&self) -> bool {
        self.at == At::Over
    }

    /// A number is over, as white space came.
    pub(crate) fn end(&mut self) {
        self.at = At::Over;
    }

    /// Returns whether nothing but white space was read.
    pub(crate) fn is_fresh(&self) -> bool {
        self.at == At::Value && self.depth == 0
    }

    /// Reads a byte: `Done` at the last of the value, `DoneBefore` after a number, or a string that may go on.
    #[inline]
    pub(crate) fn step<W: Watch>(&mut self, syntax: &Syntax, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        match &mut self.at {
            At::Quoted(key, quoted) => match quoted.step(syntax, byte, watch, out) {
                Step::Done if *key => self.go(At::Colon),
                Step::Done => self.value_over(),
                Step::DoneBefore => match self.value_over() {
                    Step::Done => Step::DoneBefore,
                    _ => self.between(syntax, byte, watch, out),
                },
                step => step,
            },
            At::Number(number) => match number.step(byte) {
                Some(next) => {
                    *number = next;
                    if W::STRICT && next.is_too_large() || !watch.on(Event::Number(byte)) {
                        return Step::Dead;
                    }
                    out.json(&[byte]);
                    Step::Inside
                }
                None if !number.is_end() || !watch.on(Event::NumberEnd) => Step::Dead,
                None if self.depth == 0 => {
                    self.at = At::Over;
                    Step::DoneBefore
                }
                None => {
                    self.at = At::AfterValue;
                    self.between(syntax, byte, watch, out)
                }
            },
            At::Word(word, read) => {
                let (text, json, _) = WORDS[usize::from(*word)];
                if text[usize::from(*read)] != byte {
                    return Step::Dead;
                }
                *read += 1;
                if usize::from(*read) < text.len() {
                    return Step::Inside;
                }
                out.json(json);
                self.value_over()
            }
            At::BareKey(utf8) => {
                let utf8 = *utf8;
                self.bare_key(utf8, byte, watch, out)
            }
            &mut At::Opening(key, quote, read) => {
                if W::STRICT && byte == CONTROL && syntax.quotes[usize::from(quote)].text.len() > 1 {
                    return self.go(At::Control(key, read));
                }
                self.opening(syntax, key, quote, read, byte, watch, out)
            }
            &mut At::Control(key, read) => {
                let fits =
                    |mark: &crate::values::syntax::Mark| mark.text.len() > 1 && mark.text[usize::from(read)] == byte;
                match syntax.quotes.iter().position(fits) {
                    Some(quote) => self.opening(syntax, key, quote as u8, read, byte, watch, out),
                    None => Step::Dead,
                }
            }
            _ => self.between(syntax, byte, watch, out),
        }
    }

    /// Returns whether it is in a string that ends with a double quote, between two of its characters.
    pub(crate) fn is_plain_text(&self, syntax: &Syntax) -> bool {
        matches!(self.at, At::Quoted(false, quoted) if quoted.is_plain_text(syntax))
    }

    /// Reads bytes of a string at once, leniently: how many.
    #[inline]
    pub(crate) fn run(&self, syntax: &Syntax, bytes: &[u8], out: &mut impl Out) -> usize {
        match self.at {
            At::Quoted(_, quoted) => quoted.run(syntax, bytes, out),
            _ => 0,
        }
    }

    fn go(&mut self, at: At) -> Step {
        self.at = at;
        self.blanks = Blanks::default();
        Step::Inside
    }

    fn value_over(&mut self) -> Step {
        self.blanks = Blanks::default();
        if self.depth == 0 {
            self.at = At::Over;
            Step::Done
        } else {
            self.at = At::AfterValue;
            Step::Inside
        }
    }

    /// Reads a byte between two tokens.
    fn between<W: Watch>(&mut self, syntax: &Syntax, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        if is_blank(byte) {
            if W::STRICT {
                let is_behind_sign = matches!(self.at, At::NextItem | At::NextKey | At::Value);
                let blanks = if self.is_fresh() {
                    syntax.gaps.before(self.blanks, byte)
                } else {
                    syntax.gaps.between(self.blanks, byte, usize::from(self.depth), is_behind_sign)
                };
                let Some(blanks) = blanks else { return Step::Dead };
                self.blanks = blanks;
            }
            // Before the value it is not part of it.
            if syntax.json && !self.is_fresh() {
                out.json(&[byte]);
            }
            return Step::Inside;
        }
        match (self.at, byte) {
            (At::Colon, b':') => {
                out.json(b":");
                self.go(At::Value)
            }
            (At::AfterValue, b',') if watch.on(Event::Comma) => {
                if syntax.json {
                    out.json(b",");
                }
                self.go(if self.levels & 1 == 1 { At::NextKey } else { At::NextItem })
            }
            (At::AfterValue | At::FirstKey, b'}') if self.levels & 1 == 1 => self.close(watch, out),
            (At::AfterValue | At::FirstItem, b']') if self.levels & 1 == 0 => self.close(watch, out),
            // Python takes a comma before the end.
            (At::NextKey, b'}') | (At::NextItem, b']') if !W::STRICT && !syntax.json => self.close(watch, out),
            (At::FirstKey | At::NextKey, CONTROL) if W::STRICT && syntax.bare_keys => Step::Dead,
            (At::FirstKey | At::NextKey, CONTROL) if W::STRICT => self.go_on(syntax, At::Control(true, 0), out),
            (At::Value | At::FirstItem | At::NextItem, CONTROL) if W::STRICT => {
                self.go_on(syntax, At::Control(false, 0), out)
            }
            (At::FirstKey | At::NextKey, _) => {
                self.item(syntax, out);
                self.key(syntax, byte, watch, out)
            }
            (At::Value | At::FirstItem | At::NextItem, _) => {
                self.item(syntax, out);
                self.value(syntax, byte, watch, out)
            }
            _ => Step::Dead,
        }
    }

    /// The comma before an item, where it was not written when it came.
    fn item(&self, syntax: &Syntax, out: &mut impl Out) {
        if !syntax.json && matches!(self.at, At::NextItem | At::NextKey) {
            out.json(b",");
        }
    }

    fn go_on(&mut self, syntax: &Syntax, at: At, out: &mut impl Out) -> Step {
        if syntax.quotes.iter().all(|mark| mark.text.len() == 1) {
            return Step::Dead;
        }
        self.item(syntax, out);
        self.go(at)
    }

    fn close<W: Watch>(&mut self, watch: &mut W, out: &mut impl Out) -> Step {
        if !watch.on(Event::Close) {
            return Step::Dead;
        }
        out.json(if self.levels & 1 == 1 { b"}" } else { b"]" });
        self.levels >>= 1;
        self.depth -= 1;
        self.value_over()
    }

    fn open<W: Watch>(&mut self, object: bool, watch: &mut W, out: &mut impl Out) -> Step {
        let event = if object { Event::ObjectOpen } else { Event::ArrayOpen };
        if self.depth == MOST_LEVELS || !watch.on(event) {
            return Step::Dead;
        }
        out.json(if object { b"{" } else { b"[" });
        self.levels = self.levels << 1 | u64::from(object);
        self.depth += 1;
        self.go(if object { At::FirstKey } else { At::FirstItem })
    }

    fn value<W: Watch>(&mut self, syntax: &Syntax, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        match byte {
            b'{' => self.open(true, watch, out),
            b'[' => self.open(false, watch, out),
            b't' | b'f' | b'n' | b'T' | b'F' | b'N' => {
                let word = WORDS.iter().position(|(text, ..)| text[0] == byte).unwrap_or_default();
                let python = word > 2;
                if python && (syntax.json || (W::STRICT && syntax.json_words)) || !watch.on(WORDS[word].2) {
                    return Step::Dead;
                }
                self.go(At::Word(word as u8, 1))
            }
            _ => {
                if let Some(number) = NumberAt::begin(byte) {
                    if !watch.on(Event::Number(byte)) {
                        return Step::Dead;
                    }
                    out.json(&[byte]);
                    return self.go(At::Number(number));
                }
                match syntax.quotes.iter().position(|mark| mark.text[0] == byte) {
                    Some(quote) => self.opening(syntax, false, quote as u8, 0, byte, watch, out),
                    None => Step::Dead,
                }
            }
        }
    }

    fn key<W: Watch>(&mut self, syntax: &Syntax, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        // A model writes keys as the template writes them.
        let quoted = !(W::STRICT && syntax.bare_keys);
        if let Some(quote) = syntax.quotes.iter().position(|mark| mark.text[0] == byte) {
            if !quoted {
                return Step::Dead;
            }
            return self.opening(syntax, true, quote as u8, 0, byte, watch, out);
        }
        if !syntax.bare_keys || byte == b':' || !watch.on(Event::TextOpen) {
            return Step::Dead;
        }
        out.json(b"\"");
        self.bare_key(Utf8::WHOLE, byte, watch, out)
    }

    fn bare_key<W: Watch>(&mut self, utf8: Utf8, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
        if byte == b':' && utf8.is_whole() {
            if !watch.on(Event::TextClose) {
                return Step::Dead;
            }
            out.json(b"\":");
            return self.go(At::Value);
        }
        if W::STRICT {
            let Some(utf8) = utf8.step(byte).filter(|_| !b"{}[](),\"'<=".contains(&byte) && byte > b' ') else {
                return Step::Dead;
            };
            self.at = At::BareKey(utf8);
        } else if self.at != At::BareKey(Utf8::WHOLE) {
            self.at = At::BareKey(Utf8::WHOLE);
        }
        if !watch.on(Event::Text(byte)) {
            return Step::Dead;
        }
        write_byte(byte, out);
        Step::Inside
    }

    /// With so many bytes of an opening mark read before this one.
    #[expect(clippy::too_many_arguments, reason = "where in the mark, and what every step has")]
    fn opening<W: Watch>(
        &mut self,
        syntax: &Syntax,
        key: bool,
        quote: u8,
        read: u16,
        byte: u8,
        watch: &mut W,
        out: &mut impl Out,
    ) -> Step {
        let mark = &syntax.quotes[usize::from(quote)].text;
        if mark[usize::from(read)] != byte || (read == 0 && !watch.on(Event::TextOpen)) {
            return Step::Dead;
        }
        if usize::from(read) + 1 < mark.len() {
            return self.go(At::Opening(key, quote, read + 1));
        }
        out.json(b"\"");
        let follow = match self.depth {
            _ if key => None,
            0 => self.follow,
            _ => Some([b',', if self.levels & 1 == 1 { b'}' } else { b']' }]),
        };
        self.go(At::Quoted(key, Quoted::new(quote).before(follow)))
    }
}

//! A value between tags, up to the text that ends it.

use crate::values::escaped::{is_escaped, write, write_byte};
use crate::values::marker::{Finder, Finds, Search};
use crate::values::styles::guard::Guard;
use crate::values::utf8::Utf8;
use crate::values::{CONTROL, Out};
use trie_schema::Types;
use trie_schema::ValueId;

/// Position in a value between tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    /// True if it is a string for sure: then its text can be written as it comes.
    pub(crate) text: bool,
    search: Search,
    /// True if a newline is held back, which is not part of the value where the end follows.
    newline: bool,
    utf8: Utf8,
}

/// Role of a byte that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slotted {
    Inside,
    Over,
    /// The text that ends it came, and text may go on all the same; whether the value may end before it.
    Ends(bool),
    Dead,
}

impl Slot {
    /// Before a value of which this is asked, of one of these types.
    pub(crate) fn begin(id: ValueId, types: Types, guard: &mut Guard, out: &mut impl Out) -> Option<Self> {
        let had = guard.values.types(id).and(types);
        let types = if had == Types::NONE { types } else { had };
        let text = types == Types::STRING;
        if text {
            out.json(b"\"");
        } else {
            out.raw_begin(id, types);
        }
        let slot = Self { text, search: Search::default(), newline: false, utf8: Utf8::WHOLE };
        guard.value(text, types).then_some(slot)
    }

    /// Bytes that are held back, as they may begin the end.
    pub(crate) fn held(self, finder: &Finder) -> usize {
        finder.held(self.search).len()
    }

    /// Reads a byte. `newline`: whether one may stand before the end without being part of the value.
    #[inline]
    pub(crate) fn step(
        &mut self,
        finder: &Finder,
        newline: bool,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Slotted {
        self.step_to::<true>(finder, newline, byte, guard, out)
    }

    /// The same where what follows the text that ends the value says whether it ended: see [`Slotted::Ends`].
    #[inline]
    pub(crate) fn step_up_to(
        &mut self,
        finder: &Finder,
        newline: bool,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Slotted {
        self.step_to::<false>(finder, newline, byte, guard, out)
    }

    #[inline]
    fn step_to<const ENDS: bool>(
        &mut self,
        finder: &Finder,
        newline: bool,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Slotted {
        let strict = guard.is_strict();
        let (flushed, finds) = finder.step(self.search, byte, strict);
        if strict && byte == CONTROL && self.search.is_idle() && !self.may_close(newline, guard) {
            return Slotted::Dead;
        }
        if flushed > 0 {
            let held = &finder.held(self.search)[..flushed];
            if !self.flush(guard, out) || !held.iter().all(|&byte| self.text_byte(byte, guard)) {
                return Slotted::Dead;
            }
            self.write(held, out);
        }
        match finds {
            Finds::Dead => Slotted::Dead,
            // A control token is never text.
            Finds::Found(which) if !ENDS && !self.search.is_forced() => {
                self.search = Search::default();
                let may_close = !strict || self.may_close(newline, guard);
                if !may_close && !self.takes(finder.text(which), guard) {
                    return Slotted::Dead;
                }
                Slotted::Ends(may_close)
            }
            Finds::Found(_) => {
                if strict && !self.may_close(newline, guard) {
                    return Slotted::Dead;
                }
                self.over(guard, out)
            }
            Finds::Held(search) => {
                self.search = search;
                if strict && !self.may_hold(finder, newline, guard) {
                    return Slotted::Dead;
                }
                Slotted::Inside
            }
            Finds::Text => {
                self.search = Search::default();
                if !self.flush(guard, out) {
                    return Slotted::Dead;
                }
                if newline && byte == b'\n' {
                    self.newline = true;
                    let fits = !strict || (self.utf8.is_whole() && (guard.may_end() || guard.takes(b"\n")));
                    return if fits { Slotted::Inside } else { Slotted::Dead };
                }
                if !self.text_byte(byte, guard) {
                    return Slotted::Dead;
                }
                if self.text {
                    write_byte(byte, out);
                } else {
                    out.raw(&[byte]);
                }
                Slotted::Inside
            }
        }
    }

    /// Reads bytes at once that are nothing but text, leniently: how many.
    #[inline]
    pub(crate) fn run(self, finder: &Finder, newline: bool, bytes: &[u8], out: &mut impl Out) -> usize {
        if self.newline || !self.search.is_idle() {
            return 0;
        }
        let ends = |byte: u8| finder.begins(byte) || (newline && byte == b'\n') || (self.text && is_escaped(byte));
        let end = bytes.iter().position(|&byte| ends(byte)).unwrap_or(bytes.len());
        if self.text {
            out.json(&bytes[..end]);
        } else {
            out.raw(&bytes[..end]);
        }
        end
    }

    /// Returns whether these bytes may be text here, in strict use.
    fn takes(self, bytes: &[u8], guard: &Guard) -> bool {
        if !guard.is_strict() {
            return true;
        }
        let text: Vec<u8> = self.newline.then_some(b'\n').into_iter().chain(bytes.iter().copied()).collect();
        self.utf8.is_whole() && !bytes.contains(&CONTROL) && guard.takes(&text)
    }

    /// These bytes are text; whether they may be.
    pub(crate) fn push(&mut self, bytes: &[u8], guard: &mut Guard, out: &mut impl Out) -> bool {
        let fits = self.flush(guard, out) && bytes.iter().all(|&byte| self.text_byte(byte, guard));
        self.write(bytes, out);
        fits
    }

    /// The value ends here, whatever held it.
    pub(crate) fn over(&mut self, guard: &mut Guard, out: &mut impl Out) -> Slotted {
        if !guard.end() {
            return Slotted::Dead;
        }
        if self.text {
            out.json(b"\"");
        } else {
            out.raw_end();
        }
        Slotted::Over
    }

    /// Returns whether the end is allowed here, in strict use: where the template writes a newline before it, only
    /// after one.
    fn may_close(self, newline: bool, guard: &Guard) -> bool {
        self.newline == newline && self.utf8.is_whole() && guard.may_end()
    }

    /// Returns whether the held bytes may stay held back: as the beginning of the end, as text, or as text and such a
    /// beginning.
    fn may_hold(self, finder: &Finder, newline: bool, guard: &Guard) -> bool {
        if !self.utf8.is_whole() {
            return false;
        }
        if self.may_close(newline, guard) {
            return true;
        }
        if self.search.is_forced() {
            return false;
        }
        let held = finder.held(self.search);
        let text: Vec<u8> = self.newline.then_some(b'\n').into_iter().chain(held.iter().copied()).collect();
        if guard.takes(&text) {
            return true;
        }
        // A newline must come right before the end: then none of what is held is of it.
        !newline && finder.shorter(self.search).any(|kept| guard.may_end_after(&text[..text.len() - kept]))
    }

    /// The newline that was held back is text.
    fn flush(&mut self, guard: &mut Guard, out: &mut impl Out) -> bool {
        if !std::mem::take(&mut self.newline) {
            return true;
        }
        self.write(b"\n", out);
        self.text_byte(b'\n', guard)
    }

    #[inline]
    fn text_byte(&mut self, byte: u8, guard: &mut Guard) -> bool {
        if guard.is_strict() {
            let Some(utf8) = self.utf8.step(byte) else { return false };
            self.utf8 = utf8;
            return guard.text(byte);
        }
        true
    }

    fn write(self, text: &[u8], out: &mut impl Out) {
        if self.text {
            write(text, out);
        } else {
            out.raw(text);
        }
    }
}

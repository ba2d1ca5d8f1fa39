//! What styles cannot write: texts that hold the end of a value, keys that hold what ends a key.

use crate::dialect::{Arguments, Calls, Part, Style};
use crate::values::marker::{Finder, Finds, Search};
use crate::values::syntax::CDATA;

/// What cannot be written in the styles of a format. The default is nothing.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// What ends a text, wherever it stands.
    ends: Vec<Finder>,
    /// What ends a key of the arguments.
    key_ends: Vec<Finder>,
    /// Keys of the arguments stand bare, and end with this byte.
    bare: Option<u8>,
    /// Keys inside of values too.
    bare_inside: bool,
    /// Keys are the names of elements.
    names: bool,
    /// A text that begins a section begins no other value.
    sections: bool,
}

impl Limits {
    /// Of all the ways to write calls.
    pub(crate) fn of(calls: &Calls) -> Self {
        let mut limits = Self::default();
        for part in calls.patterns.iter().flat_map(|pattern| &pattern.parts) {
            if let Part::Arguments(arguments) = part {
                limits.add(arguments);
            }
        }
        limits
    }

    /// Of one style too.
    pub(crate) fn add(&mut self, arguments: &Arguments) {
        let finder =
            |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(|text| Finder::new([text.into()]));
        match arguments {
            Arguments::Tagged(keyed) if keyed.is_lines() => {
                let exactly = |text: &str| Finder::new([text.into()]);
                self.ends.extend((!keyed.quoted).then(|| exactly("\n")));
                self.key_ends.extend(keyed.opened.iter().map(|opened| exactly(&opened.text)));
            }
            Arguments::Tagged(keyed) => {
                self.ends.extend(finder(&keyed.value_end).filter(|_| !keyed.quoted));
                let first = |text: &str| finder(text.trim().lines().next().unwrap_or_default());
                self.key_ends.extend(keyed.opened.iter().filter_map(|opened| first(&opened.text)));
                self.sections |= keyed.cdata;
            }
            Arguments::Keywords(style) => self.pairs(style, b'='),
            Arguments::Pairs(style) => self.pairs(style, b':'),
            Arguments::Elements { mark, quoted } => {
                self.ends.extend(finder(&format!("{}</", mark.trim())).filter(|_| !quoted));
                self.names = true;
            }
            Arguments::Json | Arguments::JsonText | Arguments::Literal(_) => {}
        }
    }

    fn pairs(&mut self, style: &Style, joint: u8) {
        self.bare = Some(joint);
        self.bare_inside |= style.bare_keys;
        let closed = style.quotes.iter().filter(|quote| !quote.escapes && !quote.mark.is_empty());
        self.ends.extend(closed.map(|quote| Finder::new([quote.mark.clone().into_bytes()])));
    }

    /// What ends a text.
    pub(in crate::values) fn ends(&self) -> Vec<Vec<u8>> {
        self.ends.iter().map(|end| end.text(0).to_vec()).collect()
    }

    /// Whether a text can be written.
    pub(in crate::values) fn writes(&self, text: &str) -> bool {
        self.ends.iter().all(|end| is_before(end, text)) && !(self.sections && text.as_bytes().starts_with(CDATA))
    }

    /// Whether a key can be; `top`: of the arguments themselves.
    pub(in crate::values) fn writes_key(&self, key: &str, top: bool) -> bool {
        let bare = |byte: u8| byte > b' ' && !b"{}[](),\"'<:=".contains(&byte);
        let bare_fits = match self.bare {
            Some(joint) if top => key.bytes().all(|byte| bare(byte) || (b"<:=".contains(&byte) && byte != joint)),
            _ if self.bare_inside => key.bytes().all(bare),
            _ => true,
        };
        let stands_bare = self.bare.is_some() && (top || self.bare_inside);
        let name = |byte: u8| byte > b' ' && !b"</>".contains(&byte);
        self.writes(key)
            && bare_fits
            && !(stands_bare && key.is_empty())
            && (!self.names || (!key.is_empty() && key.bytes().all(name)))
            && (!top || self.key_ends.iter().all(|end| is_before(end, key)))
    }
}

/// Whether the end is found after a text and not in it.
fn is_before(end: &Finder, text: &str) -> bool {
    let mut search = Search::default();
    for &byte in text.as_bytes().iter().chain(&end.text(0)[..end.text(0).len() - 1]) {
        search = match end.step(search, byte, false).1 {
            Finds::Held(search) => search,
            Finds::Text => Search::default(),
            Finds::Found(_) | Finds::Dead => return false,
        };
    }
    true
}

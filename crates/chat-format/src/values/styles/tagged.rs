//! Arguments between tags, one after the other.

use crate::dialect::TaggedArguments;
use crate::values::blanks::{Blanks, is_blank};
use crate::values::escaped::{write, write_byte};
use crate::values::held::Held;
use crate::values::marker::{Choices, Chooses, Chosen, Finder, Finds, Search};
use crate::values::reader::Step;
use crate::values::styles::after::{After, Ends, Follows};
use crate::values::styles::guard::Guard;
use crate::values::styles::literal::Literal;
use crate::values::styles::slot::{Slot, Slotted};
use crate::values::styles::track::Track;
use crate::values::syntax::CDATA;
use crate::values::utf8::Utf8;
use crate::values::watch::Lenient;
use crate::values::{CONTROL, Out};
use trie_schema::Event;
use trie_schema::Types;
use trie_schema::{ValueId, Values};

/// Arguments between tags, ready to be read.
#[derive(Debug)]
pub(crate) struct Tagged {
    /// Texts allowed between two arguments: [`KEY`], [`AFTER`], [`JOINT`].
    around: Choices,
    /// Texts that end a key.
    opened: Finder,
    /// Further texts required between key and value, with white space before them.
    more: Vec<Choices>,
    types: Vec<Types>,
    value_end: Finder,
    /// True if a newline after each of `opened` is not part of the value.
    begins_line: Vec<bool>,
    /// True if one before the end is not.
    ends_line: bool,
    cdata: Option<Cdata>,
    /// Text that closes a value which ended by itself.
    after: Choices,
    /// True if strings stand in quotes, so that all values end by themselves.
    quoted: bool,
}

#[derive(Debug)]
struct Cdata {
    start: Choices,
    end: Finder,
}

const KEY: usize = 0;
const AFTER: usize = 1;
const JOINT: usize = 2;

/// Position in arguments between tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TaggedAt {
    first: bool,
    at: At,
    blanks: Blanks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// Between two arguments; whether the text between them came.
    Around(Chosen, bool),
    Key(Track, Search, Utf8),
    /// After a part of what stands between key and value.
    More(ValueId, u8, Chosen),
    /// Before a value: whether a newline may still be dropped, and how much of the beginning of a CDATA section came.
    Begin(Slot, bool, Chosen),
    Value(Slot),
    /// After the text that ends a value, which is text of it where nothing follows that may stand there.
    Ended(Slot, After),
    Cdata(Slot),
    /// A value that ends by itself.
    Quoted(Literal),
    /// After a value, before what stands after it.
    Ending(Chosen),
}

impl Tagged {
    pub(crate) fn new(keyed: &TaggedArguments, after: &str) -> Self {
        // Where lines end values, white space says what keys and values are.
        let lines = keyed.is_lines();
        let trimmed = |text: &str| if lines { text } else { text.trim() }.as_bytes().to_vec();
        let has_newline = |text: &str, end: bool| {
            let rest = if end { &text[text.trim_end().len()..] } else { &text[..text.len() - text.trim_start().len()] };
            rest.contains('\n')
        };
        let mut opened: Vec<Vec<u8>> = keyed.opened.iter().map(|opened| trimmed(&opened.text)).collect();
        let mut more = Vec::new();
        if let ([only], false) = (&keyed.opened[..], lines) {
            let mut parts = only.text.trim().lines().map(trimmed).filter(|part| !part.is_empty());
            opened = vec![parts.next().unwrap_or_default()];
            more = parts.map(|part| Choices::new([part])).collect();
        }
        let value_end = if lines { b"\n".to_vec() } else { trimmed(&keyed.value_end) };
        let after_all = after.trim().as_bytes().to_vec();
        Self {
            around: Choices::new([trimmed(&keyed.key_start), after_all, trimmed(&keyed.between)]),
            opened: Finder::new(opened),
            more,
            types: keyed.opened.iter().map(|opened| types_of(&opened.types)).collect(),
            begins_line: keyed.opened.iter().map(|opened| has_newline(&opened.text, true)).collect(),
            ends_line: !lines && has_newline(&keyed.value_end, false),
            cdata: keyed
                .cdata
                .then(|| Cdata { start: Choices::new([CDATA.to_vec()]), end: Finder::new([b"]]>".to_vec()]) }),
            after: Choices::new([value_end.clone()]),
            quoted: keyed.quoted,
            value_end: Finder::new([value_end]),
        }
    }

    pub(crate) fn begin() -> TaggedAt {
        TaggedAt { first: true, at: At::Around(Chosen::default(), false), blanks: Blanks::default() }
    }

    /// Reads a byte of arguments of which this is asked.
    #[inline]
    pub(crate) fn step(
        &self,
        state: &mut TaggedAt,
        id: ValueId,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Step {
        match &mut state.at {
            At::Value(slot) => {
                // What may follow a value is known where something begins keys, and something ends them all.
                let step = if self.around.has(KEY) && self.around.has(AFTER) {
                    slot.step_up_to(&self.value_end, self.ends_line, byte, guard, out)
                } else {
                    slot.step(&self.value_end, self.ends_line, byte, guard, out)
                };
                match step {
                    Slotted::Inside => Step::Inside,
                    Slotted::Over => go(state, At::Around(Chosen::default(), false)),
                    Slotted::Ends(may_close) => {
                        let slot = *slot;
                        go(state, At::Ended(slot, After::new(may_close)))
                    }
                    Slotted::Dead => Step::Dead,
                }
            }
            &mut At::Ended(slot, after) => self.ended(state, id, slot, after, byte, guard, out),
            At::Quoted(literal) => {
                let Guard { values, syntax, .. } = *guard;
                let step = match guard.strict.as_mut() {
                    Some(strict) => literal.step(syntax, byte, &mut Held { values, state: &mut strict.state }, out),
                    None => literal.step(syntax, byte, &mut Lenient, out),
                };
                match step {
                    Step::Done => go(state, At::Ending(Chosen::default())),
                    Step::DoneBefore => {
                        go(state, At::Ending(Chosen::default()));
                        self.step(state, id, byte, guard, out)
                    }
                    step => step,
                }
            }
            At::Cdata(slot) => match (&self.cdata, guard.is_strict() && byte == CONTROL) {
                (Some(cdata), false) => match slot.step(&cdata.end, false, byte, guard, out) {
                    Slotted::Inside => Step::Inside,
                    Slotted::Over => go(state, At::Ending(Chosen::default())),
                    Slotted::Ends(_) | Slotted::Dead => Step::Dead,
                },
                _ => Step::Dead,
            },
            &mut At::Around(chosen, joined) => self.around(state, id, chosen, joined, byte, guard, out),
            &mut At::Key(track, search, utf8) => self.key(state, track, search, utf8, byte, guard, out),
            &mut At::More(id, part, chosen) => {
                if is_blank(byte) && Choices::is_untouched(chosen) {
                    return blank(state, byte, guard);
                }
                match self.more[usize::from(part)].step(chosen, byte, guard.is_strict(), |_| true) {
                    Chooses::More(chosen) => go(state, At::More(id, part, chosen)),
                    Chooses::Is(_) if usize::from(part) + 1 < self.more.len() => {
                        go(state, At::More(id, part + 1, Chosen::default()))
                    }
                    Chooses::Is(_) => self.value(state, id, 0, guard, out),
                    _ => Step::Dead,
                }
            }
            &mut At::Begin(slot, newline, chosen) => self.first_byte(state, slot, newline, chosen, byte, guard, out),
            &mut At::Ending(chosen) => match self.after.step(chosen, byte, guard.is_strict(), |_| true) {
                Chooses::More(chosen) => go(state, At::Ending(chosen)),
                Chooses::Is(_) => go(state, At::Around(Chosen::default(), false)),
                // A newline may be all that ends a value.
                _ if is_blank(byte) && Choices::is_untouched(chosen) => blank(state, byte, guard),
                _ => Step::Dead,
            },
        }
    }

    /// Reads bytes of a value at once, leniently: how many.
    #[inline]
    pub(crate) fn run(&self, state: &TaggedAt, bytes: &[u8], out: &mut impl Out) -> usize {
        match (&state.at, &self.cdata) {
            (At::Value(slot), _) => slot.run(&self.value_end, self.ends_line, bytes, out),
            (At::Cdata(slot), Some(cdata)) => slot.run(&cdata.end, false, bytes, out),
            _ => 0,
        }
    }

    /// Returns whether a text around arguments is allowed, in strict use.
    fn may(&self, what: usize, first: bool, joined: bool, guard: &Guard) -> bool {
        if !guard.is_strict() {
            return true;
        }
        let key: &[Event] = if first { &[Event::TextOpen] } else { &[Event::Comma, Event::TextOpen] };
        match what {
            KEY => (first || joined || !self.around.has(JOINT)) && guard.may(key),
            JOINT => !first && !joined && guard.may(key),
            AFTER => !joined && guard.may(&[Event::Close]),
            _ => false,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "where it is, and what every step has")]
    fn around(
        &self,
        state: &mut TaggedAt,
        id: ValueId,
        chosen: Chosen,
        joined: bool,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Step {
        if is_blank(byte) && Choices::is_untouched(chosen) {
            return blank(state, byte, guard);
        }
        let first = state.first;
        match self.around.step(chosen, byte, guard.is_strict(), |what| self.may(what, first, joined, guard)) {
            Chooses::More(chosen) => go(state, At::Around(chosen, joined)),
            Chooses::Is(KEY) => key_begins(state, id, guard, out),
            Chooses::Is(JOINT) => go(state, At::Around(Chosen::default(), true)),
            Chooses::Is(AFTER) if guard.on(Event::Close) => {
                out.json(if first { b"{}" } else { b"}" });
                Step::Done
            }
            Chooses::No if self.begins_key(state, chosen, byte, guard) => match key_begins(state, id, guard, out) {
                Step::Inside => self.step(state, id, byte, guard, out),
                step => step,
            },
            Chooses::No if !self.around.has(AFTER) && Choices::is_untouched(chosen) && guard.on(Event::Close) => {
                out.json(if first { b"{}" } else { b"}" });
                Step::DoneBefore
            }
            _ => Step::Dead,
        }
    }

    /// A byte after the text that ends a value: of what may follow it, or else all of that is text of the value.
    #[expect(clippy::too_many_arguments, reason = "where it is, and what every step has")]
    fn ended(
        &self,
        state: &mut TaggedAt,
        id: ValueId,
        mut slot: Slot,
        after: After,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Step {
        let first = state.first;
        let ends = Ends { end: &self.value_end, newline: self.ends_line, follow: &self.around };
        let decides = |chooses: Chooses| match chooses {
            Chooses::Is(what) => Some(what),
            _ => None,
        };
        let may = |what: usize, over: &Guard| self.may(what, first, false, over);
        match ends.step(&mut slot, after, byte, guard, out, decides, may) {
            Follows::More(after) => {
                state.at = At::Ended(slot, after);
                Step::Inside
            }
            Follows::Over(chooses) => match (slot.over(guard, out), decides(chooses)) {
                (Slotted::Over, Some(what)) => came(state, id, what, guard, out),
                _ => Step::Dead,
            },
            Follows::Blank => match slot.over(guard, out) {
                Slotted::Over => go(state, At::Around(Chosen::default(), false)),
                _ => Step::Dead,
            },
            Follows::Text => {
                go(state, At::Value(slot));
                self.step(state, id, byte, guard, out)
            }
            Follows::Dead => Step::Dead,
        }
    }

    /// Returns whether a byte that begins nothing else begins a key: where nothing ends the arguments, a word does.
    fn begins_key(&self, state: &TaggedAt, chosen: Chosen, byte: u8, guard: &Guard) -> bool {
        let word = self.around.has(AFTER) || byte.is_ascii_alphanumeric() || byte == b'_';
        !self.around.has(KEY)
            && word
            && byte != CONTROL
            && Choices::is_untouched(chosen)
            && self.may(KEY, state.first, false, guard)
    }

    #[expect(clippy::too_many_arguments, reason = "where it is, and what every step has")]
    fn key(
        &self,
        state: &mut TaggedAt,
        mut track: Track,
        search: Search,
        mut utf8: Utf8,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Step {
        let strict = guard.is_strict();
        let (flushed, finds) = self.opened.step(search, byte, strict);
        let held = &self.opened.held(search)[..flushed];
        let mut text = |byte: u8, guard: &mut Guard| {
            track = track.step(guard.values, byte);
            let next = utf8.step(byte);
            utf8 = next.unwrap_or_default();
            !strict || (next.is_some() && guard.on(Event::Text(byte)))
        };
        if !held.iter().all(|&byte| text(byte, guard)) {
            return Step::Dead;
        }
        write(held, out);
        match finds {
            Finds::Dead => Step::Dead,
            Finds::Text => {
                if !text(byte, guard) {
                    return Step::Dead;
                }
                write_byte(byte, out);
                go(state, At::Key(track, Search::default(), utf8))
            }
            Finds::Held(next) => {
                let held = self.opened.held(next);
                let opens =
                    |(text, types): (usize, &Types)| self.opened.text(text).starts_with(held) && guard.may_be(*types);
                let may_open = || self.types.iter().enumerate().any(opens);
                let may_go_on = || {
                    !next.is_forced()
                        && guard.strict.as_ref().is_some_and(|strict| guard.values.takes(&strict.state, held))
                };
                if strict && !(utf8.is_whole() && (may_open() || may_go_on())) {
                    return Step::Dead;
                }
                go(state, At::Key(track, next, utf8))
            }
            Finds::Found(which) => {
                let types = self.types[which];
                if !guard.may_be(types) || !guard.on(Event::TextClose) {
                    return Step::Dead;
                }
                out.json(b"\":");
                let id = track.id(guard.values);
                if !self.more.is_empty() {
                    return go(state, At::More(id, 0, Chosen::default()));
                }
                self.value(state, id, which, guard, out)
            }
        }
    }

    /// A value begins, after this text of `opened`.
    fn value(&self, state: &mut TaggedAt, id: ValueId, opened: usize, guard: &mut Guard, out: &mut impl Out) -> Step {
        if self.quoted {
            return go(state, At::Quoted(Literal::new()));
        }
        let Some(slot) = Slot::begin(id, self.types[opened], guard, out) else { return Step::Dead };
        go(state, At::Begin(slot, self.begins_line[opened], Chosen::default()))
    }

    #[expect(clippy::too_many_arguments, reason = "where it is, and what every step has")]
    fn first_byte(
        &self,
        state: &mut TaggedAt,
        mut slot: Slot,
        newline: bool,
        chosen: Chosen,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Step {
        let untouched = Choices::is_untouched(chosen);
        if newline && byte == b'\n' && untouched {
            return go(state, At::Begin(slot, false, chosen));
        }
        // A model writes what the template writes.
        if newline && guard.is_strict() {
            return Step::Dead;
        }
        let may_be_section = || !guard.is_strict() || (byte != CONTROL && guard.is_unlisted_text());
        if let Some(cdata) = self.cdata.as_ref().filter(|_| may_be_section()) {
            match cdata.start.step(chosen, byte, guard.is_strict(), |_| true) {
                Chooses::More(chosen) => return go(state, At::Begin(slot, false, chosen)),
                Chooses::Is(_) => return go(state, At::Cdata(slot)),
                _ => {}
            }
        }
        // It is not a CDATA section: what was read of its beginning is of the value, or begins the end of it.
        let read = CDATA.iter().take(chosen.len());
        for &byte in read {
            if slot.step(&self.value_end, self.ends_line, byte, guard, out) != Slotted::Inside {
                return Step::Dead;
            }
        }
        state.at = At::Value(slot);
        let id = Values::ANY;
        self.step(state, id, byte, guard, out)
    }
}

/// All types of these names; names that are none are left out, and without any name it is all types.
fn types_of(names: &[String]) -> Types {
    let named = names.iter().filter_map(|name| Types::named_anyhow(name)).fold(Types::NONE, Types::or);
    if named == Types::NONE { Types::ALL } else { named }
}

fn key_begins(state: &mut TaggedAt, id: ValueId, guard: &mut Guard, out: &mut impl Out) -> Step {
    let first = state.first;
    if !first && !guard.on(Event::Comma) || !guard.on(Event::TextOpen) {
        return Step::Dead;
    }
    out.json(if first { b"{\"" } else { b",\"" });
    state.first = false;
    go(state, At::Key(Track::new(guard.values, id), Search::default(), Utf8::WHOLE))
}

/// One of the texts around arguments came, after a value.
fn came(state: &mut TaggedAt, id: ValueId, what: usize, guard: &mut Guard, out: &mut impl Out) -> Step {
    match what {
        KEY => key_begins(state, id, guard, out),
        JOINT => go(state, At::Around(Chosen::default(), true)),
        _ if guard.on(Event::Close) => {
            out.json(b"}");
            Step::Done
        }
        _ => Step::Dead,
    }
}

fn go(state: &mut TaggedAt, at: At) -> Step {
    state.at = at;
    state.blanks = Blanks::default();
    Step::Inside
}

/// White space: bounded in strict use.
fn blank(state: &mut TaggedAt, byte: u8, guard: &Guard) -> Step {
    if guard.is_strict() {
        let Some(blanks) = state.blanks.step(byte, 0) else { return Step::Dead };
        state.blanks = blanks;
    }
    Step::Inside
}

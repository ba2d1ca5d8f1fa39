//! Arguments as elements named as their keys, inside each other.

use crate::values::blanks::{Blanks, is_blank};
use crate::values::escaped::write;
use crate::values::held::Held;
use crate::values::marker::{Choices, Chooses, Chosen, Finder};
use crate::values::reader::Step;
use crate::values::styles::after::{After, Ends, Follows};
use crate::values::styles::guard::Guard;
use crate::values::styles::literal::Literal;
use crate::values::styles::slot::{Slot, Slotted};
use crate::values::styles::track::Track;
use crate::values::utf8::Utf8;
use crate::values::watch::Lenient;
use crate::values::{CONTROL, Out};
use std::sync::Arc;
use trie_schema::{Event, MOST_LEVELS, Types, ValueId};

/// The name of the items of a list.
const ITEM: &[u8] = b"item";

/// Elements, ready to be read.
#[derive(Debug)]
pub(crate) struct Elements {
    /// Before the name of an element that opens: the mark and `<`.
    open: Vec<u8>,
    /// Texts allowed at the top level: [`KEY`], or the text after the arguments.
    top: Choices,
    /// Texts allowed inside an element: [`KEY`], or the text that closes it.
    inner: Choices,
    has_after: bool,
    /// True if all values end by themselves: they are JSON.
    quoted: bool,
    /// Ending of a value whose name was forgotten: a text that nothing spells, equal to the real one as far as that is
    /// the same for all names.
    unknown_end: Ending,
}

const KEY: usize = 0;

/// Position of a walk through elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ElementsAt {
    /// The arguments and the elements that are open, the innermost last.
    open: Vec<Level>,
    at: At,
    blanks: Blanks,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Level {
    /// `None` where it was forgotten.
    name: Option<Arc<[u8]>>,
    id: ValueId,
    kind: Kind,
    /// Number of children, as far as it matters: whether there are any and, in a list, which item has which id.
    children: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// Nothing of it was read.
    Open,
    Object,
    List,
    /// Its value was read, which ended by itself.
    Over,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum At {
    /// Between elements, or before the first.
    Around(Chosen),
    /// In the name of an element that opens; `None` where it was forgotten.
    Name(Option<Vec<u8>>, Track, Utf8),
    /// In the name of one that closes: so much of it.
    Close(u32),
    /// In a value that is text.
    Value(Slot, Ending),
    /// After the text that ends a value, which is text of it where nothing follows that may stand there.
    Ended(Slot, After, Ending),
    /// In a value that ends by itself.
    Quoted(Literal),
}

/// Text that ends a value. It follows from the name of its element.
#[derive(Debug, Clone)]
struct Ending(Arc<Finder>);

impl PartialEq for Ending {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Ending {}

impl std::hash::Hash for Ending {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

#[cfg(test)]
impl ElementsAt {
    /// Returns whether it is in the name of the first element in one that may be text.
    pub(crate) fn is_in_open_name(&self) -> bool {
        matches!(self.at, At::Name(..)) && self.open.last().is_some_and(|level| level.kind == Kind::Open)
    }
}

impl Elements {
    pub(crate) fn new(mark: &str, quoted: bool, after: &str) -> Self {
        let open = format!("{}<", mark.trim()).into_bytes();
        let close = format!("{}</", mark.trim()).into_bytes();
        let after = after.trim();
        let unknown_end = Ending(Arc::new(Finder::new([[&close[..], &[CONTROL]].concat()])));
        Self {
            unknown_end,
            top: Choices::new([open.clone(), after.as_bytes().to_vec()]),
            inner: Choices::new([open.clone(), close]),
            open,
            has_after: !after.is_empty(),
            quoted,
        }
    }

    pub(crate) fn begin(id: ValueId) -> ElementsAt {
        let top = Level { name: Some(Arc::from(&b""[..])), id, kind: Kind::Object, children: 0 };
        ElementsAt { open: vec![top], at: At::Around(Chosen::default()), blanks: Blanks::default() }
    }

    pub(crate) fn step(&self, state: &mut ElementsAt, byte: u8, guard: &mut Guard, out: &mut impl Out) -> Step {
        match &mut state.at {
            At::Value(slot, ending) => {
                // What may follow a value is known but at the top, where nothing ends the arguments.
                let step = if state.open.len() > 2 || self.has_after {
                    slot.step_up_to(&ending.0, false, byte, guard, out)
                } else {
                    slot.step(&ending.0, false, byte, guard, out)
                };
                match step {
                    Slotted::Inside => Step::Inside,
                    Slotted::Over => {
                        state.open.pop();
                        go(state, At::Around(Chosen::default()))
                    }
                    Slotted::Ends(may_close) => {
                        let (slot, ending) = (*slot, ending.clone());
                        go(state, At::Ended(slot, After::new(may_close), ending))
                    }
                    Slotted::Dead => Step::Dead,
                }
            }
            At::Ended(slot, after, ending) => {
                let (slot, after, ending) = (*slot, *after, ending.clone());
                self.ended(state, slot, after, ending, byte, guard, out)
            }
            At::Quoted(literal) => {
                let Guard { values, syntax, .. } = *guard;
                let step = match guard.strict.as_mut() {
                    Some(strict) => literal.step(syntax, byte, &mut Held { values, state: &mut strict.state }, out),
                    None => literal.step(syntax, byte, &mut Lenient, out),
                };
                match (step, state.open.last_mut()) {
                    (step @ (Step::Done | Step::DoneBefore), Some(level)) => {
                        level.kind = Kind::Over;
                        go(state, At::Around(Chosen::default()));
                        if step == Step::Done { Step::Inside } else { self.step(state, byte, guard, out) }
                    }
                    (step, _) => step,
                }
            }
            &mut At::Around(chosen) => self.around(state, chosen, byte, guard, out),
            At::Name(..) => self.name(state, byte, guard, out),
            &mut At::Close(read) => {
                let Some(Level { name: Some(name), .. }) = state.open.last() else { return Step::Dead };
                let read = read as usize;
                if read == name.len() && byte == b'>' {
                    return close(state, guard, out);
                }
                if name.get(read) == Some(&byte) { go(state, At::Close(read as u32 + 1)) } else { Step::Dead }
            }
        }
    }

    /// Reads bytes of a value at once, leniently: how many.
    #[inline]
    pub(crate) fn run(state: &ElementsAt, bytes: &[u8], out: &mut impl Out) -> usize {
        match &state.at {
            At::Value(slot, ending) => slot.run(&ending.0, false, bytes, out),
            _ => 0,
        }
    }

    fn around(&self, state: &mut ElementsAt, chosen: Chosen, byte: u8, guard: &mut Guard, out: &mut impl Out) -> Step {
        if is_blank(byte) && Choices::is_untouched(chosen) {
            if guard.is_strict() {
                let Some(blanks) = state.blanks.step(byte, 0) else { return Step::Dead };
                state.blanks = blanks;
            }
            return Step::Inside;
        }
        let levels = state.open.len();
        let at_top = levels == 1;
        let Some(level) = state.open.last() else { return Step::Dead };
        let may = |what: usize| match what {
            KEY => levels <= MOST_LEVELS && may_open(level, guard),
            _ if level.kind == Kind::Over => true,
            _ => level.kind == Kind::Open && may_be_empty(level, guard) || guard.may(&[Event::Close]),
        };
        let choices = if at_top { &self.top } else { &self.inner };
        match choices.step(chosen, byte, guard.is_strict(), may) {
            Chooses::Is(KEY) => opens(state, guard),
            Chooses::Was(KEY) => {
                let name = choices.begun(chosen)[self.open.len()..].iter().copied().chain([byte]);
                let opened = opens(state, guard);
                name.fold(opened, |step, byte| match step {
                    Step::Inside => self.step(state, byte, guard, out),
                    step => step,
                })
            }
            Chooses::Is(_) if !at_top => go(state, At::Close(0)),
            Chooses::Is(_) if guard.on(Event::Close) => {
                out.json(if level.children == 0 { b"{}" } else { b"}" });
                Step::Done
            }
            Chooses::More(chosen) => go(state, At::Around(chosen)),
            Chooses::No if at_top && !self.has_after && Choices::is_untouched(chosen) && guard.on(Event::Close) => {
                out.json(if level.children == 0 { b"{}" } else { b"}" });
                Step::DoneBefore
            }
            // No elements inside: what was read is the value.
            Chooses::No if level.kind == Kind::Open => {
                let (id, name) = (level.id, level.name.clone());
                let step = self.value(state, id, None, guard, out);
                let read = &self.open[..chosen.len().min(self.open.len())];
                let again = |step: Step, byte: u8| {
                    if step == Step::Inside { self.step(state, byte, guard, out) } else { step }
                };
                let step = read.iter().copied().chain([byte]).fold(step, again);
                // What ends it is made only where it goes on: so far it is the same for all names.
                if let (Step::Inside, At::Value(_, ending)) = (step, &mut state.at) {
                    *ending = self.ending(name.as_deref());
                }
                step
            }
            _ => Step::Dead,
        }
    }

    /// A byte after the text that ends a value: of what may follow it, or else all of that is text of the value.
    #[expect(clippy::too_many_arguments, reason = "where it is, and what every step has")]
    fn ended(
        &self,
        state: &mut ElementsAt,
        mut slot: Slot,
        after: After,
        ending: Ending,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Step {
        let levels = state.open.len() - 1;
        let Some(parent) = levels.checked_sub(1).and_then(|at| state.open.get(at)) else { return Step::Dead };
        let closes = match &parent.name {
            Some(name) => self.closes(name),
            None => self.unknown_end.0.text(0).to_vec(),
        };
        let inner = Choices::new([self.open.clone(), closes]);
        let follow = if levels == 1 { &self.top } else { &inner };
        let begun: Vec<u8> = follow.begun(after.chosen()).iter().copied().chain([byte]).collect();
        let decides = |chooses: Chooses| match chooses {
            Chooses::Is(what) => Some(what),
            Chooses::Was(KEY) if begun.get(self.open.len()) != Some(&b'/') => Some(KEY),
            _ => None,
        };
        let may = |what: usize, over: &Guard| match what {
            KEY => levels <= MOST_LEVELS && may_open(parent, over),
            1 => over.may(&[Event::Close]),
            _ => false,
        };
        let ends = Ends { end: &ending.0, newline: false, follow };
        match ends.step(&mut slot, after, byte, guard, out, decides, may) {
            Follows::More(after) => {
                state.at = At::Ended(slot, after, ending);
                Step::Inside
            }
            Follows::Over(chooses) => {
                if slot.over(guard, out) != Slotted::Over {
                    return Step::Dead;
                }
                state.open.pop();
                match chooses {
                    Chooses::Is(KEY) => opens(state, guard),
                    Chooses::Was(_) => {
                        let opened = opens(state, guard);
                        begun[self.open.len()..].iter().fold(opened, |step, &byte| match step {
                            Step::Inside => self.step(state, byte, guard, out),
                            step => step,
                        })
                    }
                    _ if levels > 1 => close(state, guard, out),
                    _ if guard.on(Event::Close) => {
                        out.json(b"}");
                        Step::Done
                    }
                    _ => Step::Dead,
                }
            }
            Follows::Blank => match slot.over(guard, out) {
                Slotted::Over => {
                    state.open.pop();
                    go(state, At::Around(Chosen::default()))
                }
                _ => Step::Dead,
            },
            Follows::Text => {
                go(state, At::Value(slot, ending));
                self.step(state, byte, guard, out)
            }
            Follows::Dead => Step::Dead,
        }
    }

    /// A byte of the name of an element that opens.
    fn name(&self, state: &mut ElementsAt, byte: u8, guard: &mut Guard, out: &mut impl Out) -> Step {
        let At::Name(name, track, utf8) = &mut state.at else { return Step::Dead };
        let Some(level) = state.open.last_mut() else { return Step::Dead };
        let strict = guard.is_strict();
        if byte != b'>' {
            let next = utf8.step(byte);
            if strict && (next.is_none() || b"</ \n\t\r".contains(&byte) || byte == CONTROL) {
                return Step::Dead;
            }
            *utf8 = next.unwrap_or_default();
            *track = track.step(guard.values, byte);
            if let Some(name) = name {
                name.push(byte);
            }
            let fits = !strict
                || match (level.kind, name) {
                    (Kind::List, Some(name)) => ITEM.starts_with(name),
                    (Kind::Object, _) => guard.on(Event::Text(byte)),
                    (Kind::Open, Some(name)) => {
                        (ITEM.starts_with(name) && may_be_list(level, guard)) || may_be_object(name, guard)
                    }
                    (Kind::Over | Kind::List | Kind::Open, _) => false,
                };
            return if fits { Step::Inside } else { Step::Dead };
        }
        if strict && name.as_ref().is_some_and(Vec::is_empty) {
            return Step::Dead;
        }
        let name: Option<Arc<[u8]>> = name.take().map(Into::into);
        let track = *track;
        if level.kind == Kind::Open {
            let name = name.as_deref().unwrap_or_default();
            level.kind = kind_of(level, name, guard);
            let fits = match level.kind {
                Kind::List => guard.on(Event::ArrayOpen) && guard.first_item(),
                _ => opens_object(name, guard),
            };
            if !fits {
                return Step::Dead;
            }
        }
        let first = level.children == 0;
        let id = if level.kind == Kind::List {
            if strict && name.as_deref() != Some(ITEM) {
                return Step::Dead;
            }
            out.json(if first { b"[" } else { b"," });
            let (id, known) = guard.values.item(level.id, level.children as usize);
            level.children = (level.children + 1).min(known as u32 + 1);
            id
        } else {
            if !guard.on(Event::TextClose) {
                return Step::Dead;
            }
            out.json(if first { b"{\"" } else { b",\"" });
            write(name.as_deref().unwrap_or_default(), out);
            out.json(b"\":");
            level.children = 1;
            track.id(guard.values)
        };
        let nested = !self.quoted && guard.values.types(id).meets(Types::OBJECT.or(Types::ARRAY));
        state.open.push(Level { name: name.clone(), id, kind: Kind::Open, children: 0 });
        if nested {
            go(state, At::Around(Chosen::default()))
        } else {
            self.value(state, id, name.as_deref(), guard, out)
        }
    }

    fn value(
        &self,
        state: &mut ElementsAt,
        id: ValueId,
        name: Option<&[u8]>,
        guard: &mut Guard,
        out: &mut impl Out,
    ) -> Step {
        if self.quoted {
            return go(state, At::Quoted(Literal::new()));
        }
        let Some(slot) = Slot::begin(id, Types::ALL, guard, out) else { return Step::Dead };
        let ending = self.ending(name);
        go(state, At::Value(slot, ending))
    }

    /// The text that ends the value of an element of this name.
    fn ending(&self, name: Option<&[u8]>) -> Ending {
        name.map_or_else(|| self.unknown_end.clone(), |name| Ending(Arc::new(Finder::new([self.closes(name)]))))
    }

    /// The text that closes an element of this name.
    fn closes(&self, name: &[u8]) -> Vec<u8> {
        [&self.open[..], b"/", name, b">"].concat()
    }

    /// Returns the text that a closing element begins with, before its name.
    pub(crate) fn closing(&self) -> Vec<u8> {
        [&self.open[..], b"/"].concat()
    }

    /// Forgets all names: that of the element that opens, and those of the open elements. If a text has begun that may
    /// close the innermost element, the names of the innermost two are kept. A text in which an element closes must not
    /// be judged after this.
    pub(crate) fn forget_names(&self, state: &mut ElementsAt, guard: &mut Guard) {
        let ElementsAt { open, at, .. } = state;
        if let At::Name(name, ..) = at
            && let Some(level) = open.last_mut()
            && let Some(known) = name
        {
            match level.kind {
                Kind::Object if !known.is_empty() => *name = None,
                // What names no item names the first key of an object.
                Kind::Open if !ITEM.starts_with(known) && opens_object(known, guard) => {
                    (level.kind, *name) = (Kind::Object, None);
                }
                _ => {}
            }
        }
        let is_closing = match at {
            At::Close(_) | At::Ended(..) => true,
            At::Around(chosen) => chosen.len() >= self.open.len(),
            At::Value(slot, ending) => slot.held(&ending.0) >= self.open.len(),
            At::Name(..) | At::Quoted(_) => false,
        };
        // After a value that closes, the element around it may close.
        let kept = if is_closing { open.len().saturating_sub(2) } else { open.len() };
        open.iter_mut().take(kept).for_each(|level| level.name = None);
        if let At::Value(_, ending) = at
            && !is_closing
        {
            *ending = self.unknown_end.clone();
        }
    }
}

/// The first key of an object comes, but for its end.
fn opens_object(name: &[u8], guard: &mut Guard) -> bool {
    guard.on(Event::ObjectOpen) && guard.on(Event::TextOpen) && name.iter().all(|&byte| guard.on(Event::Text(byte)))
}

/// An element opens here.
fn opens(state: &mut ElementsAt, guard: &mut Guard) -> Step {
    let levels = state.open.len();
    let Some(level) = state.open.last_mut() else { return Step::Dead };
    let fits = match level.kind {
        Kind::Open => true,
        Kind::List => guard.on(Event::Comma),
        Kind::Object => (level.children == 0 || guard.on(Event::Comma)) && guard.on(Event::TextOpen),
        Kind::Over => false,
    };
    if !fits || levels > MOST_LEVELS {
        return Step::Dead;
    }
    let track = Track::new(guard.values, level.id);
    go(state, At::Name(Some(Vec::new()), track, Utf8::WHOLE))
}

/// Returns whether an element may open here.
fn may_open(level: &Level, guard: &Guard) -> bool {
    match (level.kind, level.children) {
        (Kind::Object, 0) => guard.may(&[Event::TextOpen]),
        (Kind::Object, _) => guard.may(&[Event::Comma, Event::TextOpen]),
        (Kind::List, _) => guard.may(&[Event::Comma]),
        (Kind::Open, _) => may_be_list(level, guard) || may_be_object(b"", guard),
        (Kind::Over, _) => false,
    }
}

fn may_be_object(name: &[u8], guard: &Guard) -> bool {
    let begin = [Event::ObjectOpen, Event::TextOpen];
    let events: Vec<Event> = begin.into_iter().chain(name.iter().map(|&byte| Event::Text(byte))).collect();
    guard.may(&events)
}

fn may_be_list(level: &Level, guard: &Guard) -> bool {
    guard.values.types(level.id).meets(Types::ARRAY) && guard.may_have_items()
}

fn may_be_empty(level: &Level, guard: &Guard) -> bool {
    guard.may(empty(level, guard))
}

/// Returns the events of an element without content.
fn empty(level: &Level, guard: &Guard) -> &'static [Event] {
    let types = guard.values.types(level.id);
    if types.meets(Types::STRING) {
        &[Event::TextOpen, Event::TextClose]
    } else if types.meets(Types::OBJECT) {
        &[Event::ObjectOpen, Event::Close]
    } else {
        &[Event::ArrayOpen, Event::Close]
    }
}

/// Returns the kind of an element whose first child has this name.
fn kind_of(level: &Level, name: &[u8], guard: &Guard) -> Kind {
    let types = guard.values.types(level.id);
    let list = types.meets(Types::ARRAY) && (name == ITEM || !types.meets(Types::OBJECT));
    if list { Kind::List } else { Kind::Object }
}

/// The innermost element ends.
fn close(state: &mut ElementsAt, guard: &mut Guard, out: &mut impl Out) -> Step {
    let Some(level) = state.open.pop() else { return Step::Dead };
    let (events, json): (&[Event], &[u8]) = match level.kind {
        Kind::List => (&[Event::Close], b"]"),
        Kind::Object => (&[Event::Close], b"}"),
        Kind::Over => (&[], b""),
        Kind::Open => {
            let events = empty(&level, guard);
            let json: &[u8] = match events[0] {
                Event::TextOpen => b"\"\"",
                Event::ObjectOpen => b"{}",
                _ => b"[]",
            };
            (events, json)
        }
    };
    if !events.iter().all(|&event| guard.on(event)) {
        return Step::Dead;
    }
    out.json(json);
    go(state, At::Around(Chosen::default()))
}

fn go(state: &mut ElementsAt, at: At) -> Step {
    state.at = at;
    state.blanks = Blanks::default();
    Step::Inside
}

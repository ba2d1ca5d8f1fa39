//! One automaton that reads a reply byte by byte: for the parser, which must make something of everything, and for the
//! constraint, which lets nothing wrong begin.
//!
//! ```text
//!   free text ──marker──► threads: the ways in which what is being written may go on
//!       ▲  ▲                 │ one is whole
//!       │  └──── none left ──┤
//!       │                    ├──► reasoning or content begins or ends ──► free text
//!       │                    └──► arguments of a call ──► threads: its end, another call, the end of all
//!       └────────────────────────────────────────────────────┘
//! ```
//!
//! A state holds no text. Whoever listens keeps the bytes that may still become a marker, and is told what they were.

mod compile;
mod forms;
mod listener;
mod markers;
mod names;
mod seq;
mod space;

pub(crate) use compile::Plan;
pub use compile::ToolChoice;
pub(crate) use listener::{Called, Listener, Nobody};
pub(crate) use seq::{Outcome, Seq};

use crate::tools::Tools;
pub(crate) use crate::values::CONTROL;
use crate::values::{ArgsState, Reader, ShapeId, Shapes, Step};
use markers::{Found, Markers, Seen};
use names::Names;
use seq::{How, Thread};
use space::Space;
use std::collections::HashSet;
use std::sync::Arc;

/// A format with tools, ready to read.
#[allow(clippy::struct_excessive_bools, reason = "each says one thing of what may come")]
#[derive(Debug)]
pub(crate) struct Machine {
    seqs: Vec<Seq>,
    regions: [Entries; Region::COUNT],
    forms: Vec<Form>,
    /// What may come after a call where calls have an end of their own; empty where they have none.
    after: Vec<u16>,
    /// What may come after a list of calls.
    after_list: Vec<u16>,
    /// The names that may be called, if only they may.
    names: Option<Names>,
    shapes: Arc<Shapes>,
    /// What the arguments of each tool must be.
    arguments: Vec<ShapeId>,
    /// Whether only what must be understood may come.
    strict: bool,
    required: bool,
    may_call: bool,
    parallel: bool,
    /// Whether each message begins with a header: text before one is none.
    headed: bool,
}

/// Markers of a region, and the sequences that each begins: those of which more must come, and those that are whole.
#[derive(Debug)]
struct Entries {
    markers: Markers,
    begins: Vec<Begins>,
}

#[derive(Debug, Default)]
struct Begins {
    open: Vec<Thread>,
    whole: Vec<Thread>,
}

/// A way to write a call, from its arguments on.
#[derive(Debug)]
struct Form {
    reader: Reader,
    /// What follows the arguments; `None` where nothing does.
    tail: Option<u16>,
}

/// Where free text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    /// Nothing but white space was written: anything may begin.
    Fresh,
    /// Between marked parts, or in content without marks.
    Outside,
    /// A header that says nothing yet.
    Header,
    /// In reasoning.
    Reasoning,
    /// In marked content.
    Content,
    /// In a message for somebody else.
    Elsewhere,
    /// After the end.
    Over,
}

impl Region {
    const COUNT: usize = 7;
    const ALL: [Self; Self::COUNT] =
        [Self::Fresh, Self::Outside, Self::Header, Self::Reasoning, Self::Content, Self::Elsewhere, Self::Over];
}

/// Where a reply is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    at: At,
    /// Whether a call was written.
    called: bool,
    /// White space before a call that must come: it has an end.
    space: Space,
}

impl State {
    pub(crate) fn start() -> Self {
        Self { at: free(Region::Fresh), called: false, space: Space::default() }
    }

    /// Where the reply begins after the prompt's text before it.
    pub(crate) fn after_prelude(&mut self) {
        if matches!(self.at, At::Free(Region::Outside | Region::Header, _)) {
            self.at = free(Region::Fresh);
        }
        (self.called, self.space) = (false, Space::default());
    }

    /// Where text goes that is held here.
    pub(crate) fn region(&self) -> Region {
        match self.at {
            At::Free(region, _) | At::Threads(Home::Free(region), _) => region,
            At::Threads(..) | At::Arguments(..) => Region::Outside,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum At {
    Free(Region, Seen),
    Threads(Home, Vec<Thread>),
    Arguments(u16, ArgsState),
}

/// Where threads came from, and where text goes if none of them is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Home {
    Free(Region),
    Tail,
    After,
    AfterList,
}

/// There is no way on: only where the machine is strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dead;

fn free(region: Region) -> At {
    At::Free(region, Seen::default())
}

/// What became of a byte.
enum Done {
    /// It was taken.
    Taken,
    /// It comes after what ended: the state after that takes it.
    HandedOn,
}

impl Machine {
    pub(crate) fn shapes(&self) -> &Arc<Shapes> {
        &self.shapes
    }

    /// Whether a reply may end here.
    pub(crate) fn is_end(&self, state: &State) -> bool {
        let text = match &state.at {
            At::Free(..) => true,
            At::Threads(Home::Free(_), threads) => !self.any_committed(threads),
            At::Threads(Home::AfterList | Home::After, _) => !self.strict,
            At::Threads(Home::Tail, _) | At::Arguments(..) => false,
        };
        text && (state.called || !self.required)
    }

    /// Whether free text stands here.
    pub(crate) fn is_text(&self, state: &State) -> bool {
        matches!(state.at, At::Free(region, _) if self.may_say(state, region))
    }

    /// A tool whose name holds text that ends names, or white space, quotes or control characters; and that text.
    pub(crate) fn unwritable(&self, tools: Option<&Tools>) -> Option<(String, String)> {
        let ends: HashSet<String> = self.seqs.iter().flat_map(Seq::ends_of_names).collect();
        tools.into_iter().flat_map(Tools::iter).find_map(|tool| {
            let held = ends.iter().filter(|end| tool.name.contains(&end[..])).min().cloned();
            let bad = |c: char| c.is_whitespace() || c.is_control() || "\"'\\<>{}".contains(c);
            let held = held.or_else(|| tool.name.chars().find(|&c| bad(c)).map(String::from));
            Some((tool.name.clone(), held?))
        })
    }

    /// Whether the beginning of a call is written, for certain, and not its arguments.
    pub(crate) fn in_header(&self, state: &State) -> bool {
        matches!(&state.at, At::Threads(Home::Free(_), threads) if self.any_committed(threads))
    }

    /// Whether reasoning stands here, and no call in it.
    pub(crate) fn is_reasoning(&self, state: &State) -> bool {
        state.region() == Region::Reasoning && !self.in_call(state)
    }

    /// Whether the first bytes of a marker may have been written here.
    pub(crate) fn may_be_in_marker(&self, state: &State) -> bool {
        match state.at {
            At::Free(region, seen) => !self.entries(region).markers.begun(seen).is_empty(),
            _ => true,
        }
    }

    /// Whether a call is being written, for certain.
    pub(crate) fn in_call(&self, state: &State) -> bool {
        match &state.at {
            At::Arguments(..) | At::Threads(Home::Tail | Home::After | Home::AfterList, _) => true,
            At::Threads(Home::Free(_), threads) => self.any_committed(threads),
            At::Free(..) => false,
        }
    }

    /// The call whose name is written, where nothing else can be meant: the sequence that holds it.
    pub(crate) fn named(&self, state: &State) -> Option<&Seq> {
        let At::Threads(Home::Free(_) | Home::After, threads) = &state.at else { return None };
        let named = |thread: &Thread| self.seq(*thread).is_named(*thread);
        (!threads.is_empty() && threads.iter().all(named)).then(|| self.seq(threads[0]))
    }

    /// The next byte where white space may stand or not, as the template writes it: all that else may come is that.
    pub(crate) fn written_next(&self, state: &State) -> Option<u8> {
        let At::Threads(_, threads) = &state.at else { return None };
        let mut bytes = threads.iter().map(|&thread| self.seq(thread).written_next(thread));
        let first = bytes.next()??;
        bytes.all(|byte| byte == Some(first)).then_some(first)
    }

    /// How many of these bytes are text in which nothing begins, and of which region.
    pub(crate) fn plain(&self, state: &State, bytes: &[u8]) -> Option<(Region, usize)> {
        match state.at {
            At::Free(region, seen) if seen == Seen::default() && region != Region::Fresh => {
                Some((region, self.entries(region).markers.plain(bytes)))
            }
            _ => None,
        }
    }

    /// How many of these bytes are more of a string in arguments; the listener was told of them.
    pub(crate) fn in_string(&self, state: &mut State, bytes: &[u8], listener: &mut impl Listener) -> usize {
        let At::Arguments(form, args) = &mut state.at else { return 0 };
        let taken = self.forms[usize::from(*form)].reader.run(args, bytes, listener);
        if taken > 0 {
            listener.taken();
        }
        taken
    }

    /// One byte. `prelude`: it belongs to the prompt before the reply, where text says nothing.
    pub(crate) fn step(
        &self,
        state: &mut State,
        byte: u8,
        prelude: bool,
        listener: &mut impl Listener,
    ) -> Result<(), Dead> {
        // At most through the end of arguments, the end of the call, what may follow it, and text.
        for _ in 0..6 {
            let done = match &mut state.at {
                At::Free(region, seen) => {
                    let (region, seen) = (*region, *seen);
                    self.in_text(state, region, seen, byte, prelude, listener)?
                }
                At::Threads(home, threads) => {
                    let (home, threads) = (*home, std::mem::take(threads));
                    self.in_threads(state, home, &threads, byte, listener)?
                }
                At::Arguments(form, args) => {
                    let form = *form;
                    let step = self.forms[usize::from(form)].reader.step(&self.shapes, args, byte, listener);
                    self.in_arguments(state, form, step, listener)?
                }
            };
            if let Done::Taken = done {
                return Ok(());
            }
        }
        Err(Dead)
    }

    fn entries(&self, region: Region) -> &Entries {
        &self.regions[region as usize]
    }

    fn seq(&self, thread: Thread) -> &Seq {
        &self.seqs[usize::from(thread.seq)]
    }

    fn how(&self) -> How<'_> {
        How { names: self.names.as_ref(), strict: self.strict }
    }

    fn any_committed(&self, threads: &[Thread]) -> bool {
        threads.iter().any(|&thread| self.seq(thread).is_committed(thread))
    }

    fn alive(&self) -> Result<(), Dead> {
        if self.strict { Err(Dead) } else { Ok(()) }
    }

    /// Whether text may be said here: not where a call is required first.
    fn may_say(&self, state: &State, region: Region) -> bool {
        !self.strict || state.called || !self.required || region == Region::Reasoning
    }

    fn in_text(
        &self,
        state: &mut State,
        region: Region,
        seen: Seen,
        byte: u8,
        prelude: bool,
        listener: &mut impl Listener,
    ) -> Result<Done, Dead> {
        let entries = self.entries(region);
        if byte == CONTROL && self.strict {
            // Markers are found by their text, whatever tokens spell them.
            return Ok(Done::Taken);
        }
        match entries.markers.step(seen, byte) {
            Found::Text(next) => {
                let (before, begun) = (entries.markers.begun(seen).len(), entries.markers.begun(next));
                let blank = before == 0 && byte.is_ascii_whitespace();
                if before + 1 > begun.len() && !blank && !prelude {
                    return self.said(state, region, next, begun, listener).map(|()| Done::Taken);
                }
                if blank && !prelude && !self.may_say(state, region) {
                    state.space = state.space.and(byte).ok_or(Dead)?;
                }
                listener.text(region, begun.len());
                state.at = At::Free(region, next);
                Ok(Done::Taken)
            }
            Found::Marker(marker, length) => {
                listener.text(region, length);
                let Begins { open, whole } = &entries.begins[marker];
                self.whole_or_on(state, Home::Free(region), whole, open.clone(), true, listener)
            }
        }
    }

    /// Text is said, but for the last bytes: the reply is no longer at its beginning.
    fn said_but(
        &self,
        state: &mut State,
        region: Region,
        seen: Seen,
        keep: usize,
        listener: &mut impl Listener,
    ) -> Result<(), Dead> {
        if !self.may_say(state, region) {
            return Err(Dead);
        }
        let region = match region {
            Region::Fresh if self.headed => Region::Header,
            Region::Fresh => Region::Outside,
            other => other,
        };
        listener.text(region, keep);
        state.at = At::Free(region, seen);
        Ok(())
    }

    /// Text is said, and these bytes after it may begin a marker: the reply is no longer at its beginning.
    fn said(
        &self,
        state: &mut State,
        region: Region,
        seen: Seen,
        begun: &[u8],
        listener: &mut impl Listener,
    ) -> Result<(), Dead> {
        if region != Region::Fresh {
            return self.said_but(state, region, seen, begun.len(), listener);
        }
        let markers = &self.entries(if self.headed { Region::Header } else { Region::Outside }).markers;
        let mut seen = Seen::default();
        for &byte in begun {
            match markers.step(seen, byte) {
                Found::Text(next) => seen = next,
                // What begins a marker here holds none, as no marker begins another.
                Found::Marker(..) => seen = Seen::default(),
            }
        }
        self.said_but(state, region, seen, markers.begun(seen).len(), listener)
    }

    fn in_threads(
        &self,
        state: &mut State,
        home: Home,
        threads: &[Thread],
        byte: u8,
        listener: &mut impl Listener,
    ) -> Result<Done, Dead> {
        let (mut open, mut whole) = (Vec::with_capacity(threads.len()), Vec::new());
        for &thread in threads {
            whole.extend(self.seq(thread).step(thread, byte, self.how(), &mut open));
        }
        if whole.is_empty() && open.is_empty() {
            return self.none_left(state, home, threads, listener);
        }
        self.whole_or_on(state, home, &whole, open, self.any_committed(threads), listener)
    }

    /// The first whole sequence that is meant decides; else the others go on.
    fn whole_or_on(
        &self,
        state: &mut State,
        home: Home,
        whole: &[Thread],
        mut open: Vec<Thread>,
        committed: bool,
        listener: &mut impl Listener,
    ) -> Result<Done, Dead> {
        let may_call = !self.strict || (self.may_call && (self.parallel || !state.called));
        if !may_call {
            open.retain(|&thread| !self.seq(thread).is_committed(thread));
        }
        for &thread in whole {
            let seq = self.seq(thread);
            let may = if seq.then.is_call() { may_call } else { self.may_become(state, seq.then) };
            if may && self.becomes(state, seq, thread, listener) {
                return Ok(Done::Taken);
            }
        }
        if open.is_empty() {
            // Nothing that was written may be meant.
            if committed {
                self.alive()?;
            }
            self.back_to_text(state, home, 0, listener)?;
            return Ok(Done::Taken);
        }
        open.sort_unstable();
        open.dedup();
        state.at = At::Threads(home, open);
        Ok(Done::Taken)
    }

    fn may_become(&self, state: &State, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Content | Outcome::Stop | Outcome::Elsewhere => self.may_say(state, Region::Outside),
            _ => true,
        }
    }

    /// Whether it is that; the state after it.
    fn becomes(&self, state: &mut State, seq: &Seq, thread: Thread, listener: &mut impl Listener) -> bool {
        if let Outcome::Arguments(form) = seq.then {
            let shape = match listener.call(seq, thread.tool) {
                Called::Tool(tool) => self.arguments.get(tool as usize).copied().unwrap_or(Shapes::ANY),
                Called::Unknown => Shapes::ANY,
                Called::Text => return false,
            };
            state.at = At::Arguments(form, self.forms[usize::from(form)].reader.begin(shape));
            return true;
        }
        match seq.then {
            Outcome::CallOver => {
                listener.call_over(Some(seq));
                self.after_call(state);
                return true;
            }
            Outcome::ListOver if !self.after_list.is_empty() => {
                state.at = self.threads(Home::AfterList, &self.after_list);
            }
            then => state.at = free(then.region()),
        }
        listener.marker(seq.then);
        true
    }

    fn threads(&self, home: Home, seqs: &[u16]) -> At {
        At::Threads(home, seqs.iter().map(|&seq| self.seqs[usize::from(seq)].thread(seq)).collect())
    }

    fn none_left(
        &self,
        state: &mut State,
        home: Home,
        threads: &[Thread],
        listener: &mut impl Listener,
    ) -> Result<Done, Dead> {
        if !matches!(home, Home::Free(_)) || self.any_committed(threads) {
            self.alive()?;
        }
        if home == Home::Tail {
            listener.broke("what ends it is missing");
            listener.call_over(None);
            state.called = true;
        }
        self.back_to_text(state, home, 1, listener)?;
        Ok(Done::HandedOn)
    }

    /// What was held is text, but for its last bytes.
    fn back_to_text(
        &self,
        state: &mut State,
        home: Home,
        keep: usize,
        listener: &mut impl Listener,
    ) -> Result<(), Dead> {
        if let Home::Free(region) = home {
            return self.said_but(state, region, Seen::default(), keep, listener);
        }
        listener.text(Region::Outside, keep);
        state.at = free(Region::Outside);
        Ok(())
    }

    fn in_arguments(
        &self,
        state: &mut State,
        form: u16,
        step: Step,
        listener: &mut impl Listener,
    ) -> Result<Done, Dead> {
        if matches!(step, Step::Inside | Step::Done) {
            listener.taken();
        }
        match step {
            Step::Inside => return Ok(Done::Taken),
            Step::Dead => {
                self.alive()?;
                listener.broke("its arguments break off, and what follows is text");
                listener.call_over(None);
                state.called = true;
                state.at = free(Region::Outside);
                return Ok(Done::HandedOn);
            }
            Step::Done | Step::DoneBefore => {}
        }
        if let Some(tail) = self.forms[usize::from(form)].tail {
            state.at = self.threads(Home::Tail, &[tail]);
        } else {
            listener.call_over(None);
            self.after_call(state);
        }
        Ok(if step == Step::Done { Done::Taken } else { Done::HandedOn })
    }

    fn after_call(&self, state: &mut State) {
        state.called = true;
        let none = self.after.is_empty();
        state.at = if none { free(Region::Outside) } else { self.threads(Home::After, &self.after) };
    }
}

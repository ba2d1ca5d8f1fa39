//! One automaton that reads a reply byte by byte. The parser uses it to give every text a meaning; the constraint uses
//! it to forbid wrong beginnings.
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
//! A state holds no text. The listener keeps the bytes that may still become a marker, and is told what they were.

mod begun;
mod captured;
mod compile;
mod forms;
mod listed;
mod listener;
mod markers;
mod members;
mod names;
mod seq;
mod space;
mod state;
mod thread;
mod walk;

pub(crate) use crate::values::Nobody;
pub use compile::ToolChoice;
pub(crate) use compile::{Plan, is_set_off};
pub(crate) use listener::{CallDecision, LastThought, Listener};
pub(crate) use seq::{ByToken, Outcome, Seq};
pub(crate) use state::{Region, State};

use crate::tools::Tools;
pub(crate) use crate::values::CONTROL;
use crate::values::{ArgsState, Gaps, Reader};
use markers::{MarkerState, Markers};
use names::Names;
use space::Space;
use state::{BeforeCall, CallStage, Home, Mark, ReplyPhase};
use std::collections::HashSet;
use std::sync::Arc;
use thread::{ReadMode, Thread};
use trie_schema::{ValueId, Values};
use walk::Dead;

/// A format with tools, ready to read.
#[allow(clippy::struct_excessive_bools, reason = "each says one thing of what may come")]
#[derive(Debug)]
pub(crate) struct Machine {
    seqs: Vec<Seq>,
    regions: [Entries; Region::COUNT],
    /// Sequences that may begin a required call.
    before_call: [Entries; CallStage::COUNT],
    forms: Vec<Form>,
    /// Sequences that may come after a call, if calls have an end of their own; empty if they have none.
    after: Vec<u16>,
    /// Sequences that may come after a list of calls.
    after_list: Vec<u16>,
    /// The names that may be called, if only they may.
    names: Option<Names>,
    values: Arc<Values>,
    /// Schema of the arguments of each tool.
    arguments: Vec<ValueId>,
    /// True if only text that can be understood is allowed.
    strict: bool,
    /// White space that may be written in the gaps of a call.
    gaps: Gaps,
    required: bool,
    may_call: bool,
    parallel: bool,
    /// True if each message begins with a header: text before one does not count.
    headed: bool,
    /// True if calls that are recognised by their beginning may follow each other.
    again: bool,
    /// True if a reply begins with text that may be reasoning, decided by its end alone.
    only_ended: bool,
    /// The markers that count only where a control token begins them.
    by_token: ByToken,
}

/// Markers of a region, and the sequences that each begins: unfinished ones, and whole ones.
#[derive(Debug)]
struct Entries {
    markers: Markers,
    begins: Vec<EntryThreads>,
    /// All of these sequences, of which nothing is written.
    seqs: Vec<u16>,
}

#[derive(Debug, Default)]
struct EntryThreads {
    open: Vec<Thread>,
    whole: Vec<Thread>,
}

/// A way to write a call, from its arguments on.
#[derive(Debug)]
struct Form {
    reader: Reader,
    /// Sequence after the arguments; `None` if there is none.
    tail: Option<u16>,
}

impl Machine {
    /// Returns whether the first text is reasoning only if its end comes.
    pub(crate) fn may_have_thought(&self) -> bool {
        self.only_ended
    }

    pub(crate) fn values(&self) -> &Arc<Values> {
        &self.values
    }

    /// Returns whether a constrained reply may end here.
    pub(crate) fn is_end(&self, state: &State) -> bool {
        // Where nothing may be said, what begins a marker must become one.
        let held = state.must_call.is_some();
        let text = match &state.at {
            ReplyPhase::Free(region, seen) => {
                !held || self.entries(state, *region).markers.matched_bytes(*seen).is_empty()
            }
            ReplyPhase::Threads(Home::Free(_), threads) => !held && !self.any_committed(threads),
            ReplyPhase::Threads(..) | ReplyPhase::Arguments(..) | ReplyPhase::Unnamed(..) => false,
        };
        text && state.must_call.is_none_or(BeforeCall::is_called)
    }

    /// Returns whether any text is allowed here, and only markers are searched for.
    pub(crate) fn is_open(&self, state: &State) -> bool {
        state.is_text() || (state.must_call.is_none() && self.is_end(state))
    }

    /// Notes that a control token begins here, for replies that are read by tokens.
    pub(crate) fn control_begins(&self, state: &mut State) {
        if let ReplyPhase::Free(region, seen) = state.at
            && self.by_token.any()
        {
            state.mark = state.mark.at_control_token(self.entries(state, region).markers.matched_bytes(seen).len());
        }
    }

    /// A tool whose name cannot be written, and the text that forbids it: text that ends names, white space, quotes or
    /// control characters.
    pub(crate) fn unwritable(&self, tools: Option<&Tools>) -> Option<(String, String)> {
        let ends: HashSet<String> = self.seqs.iter().flat_map(Seq::ends_of_names).collect();
        tools.into_iter().flat_map(Tools::iter).find_map(|tool| {
            let held = ends.iter().filter(|end| tool.name.contains(&end[..])).min().cloned();
            let bad = |c: char| c.is_whitespace() || c.is_control() || "\"'\\<>{}".contains(c);
            let held = held.or_else(|| tool.name.chars().find(|&c| bad(c)).map(String::from));
            Some((tool.name.clone(), held?))
        })
    }

    /// A tool whose call is read as something else, and the text that begins that call. For example, it is read as
    /// content where a format names the recipient. `reader` reads with the same tools.
    pub(crate) fn misread(&self, reader: &Self, tools: Option<&Tools>) -> Option<(String, String)> {
        let call = self.seqs.iter().find(|seq| seq.then.is_call() && seq.begins_with_text())?;
        tools.into_iter().flat_map(Tools::iter).find_map(|tool| {
            let (text, mut state) = (call.spell_for_tool(&tool.name), State::start());
            let is_read = text.iter().all(|&byte| reader.step(&mut state, byte, false, &mut Nobody).is_ok())
                && matches!(state.at, ReplyPhase::Arguments(..));
            (!is_read).then(|| (tool.name.clone(), String::from_utf8_lossy(&text).into_owned()))
        })
    }

    /// Returns whether the beginning of a call is certainly being written, and not its arguments.
    pub(crate) fn in_header(&self, state: &State) -> bool {
        matches!(&state.at, ReplyPhase::Threads(Home::Free(_), threads) if self.any_call(threads))
    }

    /// Returns whether the position is inside reasoning, and not in a call.
    pub(crate) fn is_reasoning(&self, state: &State) -> bool {
        state.region() == Region::Reasoning && !self.in_call(state)
    }

    /// Returns whether the first bytes of a marker may have been written here.
    pub(crate) fn may_be_in_marker(&self, state: &State) -> bool {
        match state.at {
            ReplyPhase::Free(region, seen) => !self.entries(state, region).markers.matched_bytes(seen).is_empty(),
            _ => true,
        }
    }

    /// Returns whether a marker that is begun may have one of these meanings; true while markers cannot be told apart
    /// yet.
    pub(crate) fn may_mean(&self, state: &State, wanted: impl Fn(Outcome) -> bool) -> bool {
        match &state.at {
            ReplyPhase::Threads(Home::Free(_) | Home::Marked(_), threads) => {
                threads.iter().any(|thread| wanted(self.seq(*thread).then))
            }
            _ => true,
        }
    }

    /// Returns whether a call is certainly being written.
    pub(crate) fn in_call(&self, state: &State) -> bool {
        match &state.at {
            ReplyPhase::Arguments(..)
            | ReplyPhase::Unnamed(..)
            | ReplyPhase::Threads(Home::Tail | Home::After | Home::AfterList, _) => true,
            ReplyPhase::Threads(Home::Free(_), threads) => self.any_call(threads),
            ReplyPhase::Threads(Home::Marked(_), _) | ReplyPhase::Free(..) => false,
        }
    }

    /// Returns whether a call is certainly being written, up to its own end: not the end of all calls.
    pub(crate) fn is_calling(&self, state: &State) -> bool {
        match &state.at {
            ReplyPhase::Arguments(..) | ReplyPhase::Unnamed(..) | ReplyPhase::Threads(Home::Tail, _) => true,
            ReplyPhase::Threads(Home::Free(_) | Home::After, threads) => self.any_call(threads),
            ReplyPhase::Threads(Home::Marked(_) | Home::AfterList, _) | ReplyPhase::Free(..) => false,
        }
    }

    /// The sequence of the call whose name is written, if nothing else can be meant.
    pub(crate) fn unambiguous_call(&self, state: &State) -> Option<&Seq> {
        let ReplyPhase::Threads(Home::Free(_) | Home::After, threads) = &state.at else { return None };
        let named = |thread: &Thread| self.seq(*thread).is_named(*thread);
        // Other keys than the name may hold anything.
        let means_it = |thread: &Thread| named(thread) || self.seq(*thread).is_in_members(*thread);
        let first = threads.iter().find(|thread| named(thread))?;
        threads.iter().all(means_it).then(|| self.seq(*first))
    }

    /// Returns whether the marker of content is complete except for the white space that ends its word.
    pub(crate) fn is_marked(&self, state: &State) -> bool {
        let ReplyPhase::Threads(Home::Free(_), threads) = &state.at else { return false };
        threads.iter().any(|&at| self.seq(at).then == Outcome::Content && self.seq(at).is_but_for_its_end(at))
    }

    /// The next byte of optional white space, as the template writes it, if only that text may follow.
    pub(crate) fn written_next(&self, state: &State) -> Option<u8> {
        let ReplyPhase::Threads(_, threads) = &state.at else { return None };
        let mut bytes = threads.iter().map(|&thread| self.seq(thread).written_next(thread));
        let first = bytes.next()??;
        bytes.all(|byte| byte == Some(first)).then_some(first)
    }

    /// Returns the number of leading bytes that are plain text, and its region.
    pub(crate) fn plain(&self, state: &State, bytes: &[u8]) -> Option<(Region, usize)> {
        match state.at {
            ReplyPhase::Free(region, seen)
                if seen == MarkerState::default() && region != Region::Fresh && state.mark == Mark::Nowhere =>
            {
                Some((region, self.entries(state, region).markers.plain(bytes)))
            }
            _ => None,
        }
    }

    /// Returns the number of leading bytes that continue a string in arguments; the listener has to take them.
    pub(crate) fn in_string(&self, state: &mut State, bytes: &[u8], listener: &mut impl Listener) -> usize {
        let ReplyPhase::Arguments(form, args) = &mut state.at else { return 0 };
        self.forms[usize::from(*form)].reader.run(args, bytes, listener)
    }

    /// Calls [`Reader::forget_names`] for the state.
    pub(crate) fn forget_names(&self, state: &mut State) {
        let forget = |form: u16, args: &mut ArgsState| {
            self.forms[usize::from(form)].reader.forget_names(&self.values, args);
        };
        match &mut state.at {
            ReplyPhase::Arguments(form, args) => forget(*form, args),
            ReplyPhase::Unnamed(form, all) => all.iter_mut().for_each(|(_, args)| forget(*form, args)),
            ReplyPhase::Free(..) | ReplyPhase::Threads(..) => {}
        }
    }

    /// Returns the free characters of a string in arguments: see [`Reader::free_chars`].
    pub(crate) fn free_chars(&self, state: &State) -> u32 {
        match &state.at {
            ReplyPhase::Arguments(form, args) => self.forms[usize::from(*form)].reader.free_chars(args),
            _ => 0,
        }
    }

    /// Returns the beginnings of closing elements, in each syntax of a call: see [`Reader::closing`].
    pub(crate) fn closings(&self) -> impl Iterator<Item = Vec<u8>> {
        self.forms.iter().filter_map(|form| form.reader.closing())
    }

    fn entries(&self, state: &State, region: Region) -> &Entries {
        match state.must_call {
            Some(before) if region == Region::Fresh => &self.before_call[before.last() as usize],
            _ => &self.regions[region as usize],
        }
    }

    /// Sets the state after the prompt's text before a reply, which ends with a marker of this length.
    pub(crate) fn after_prelude(&self, state: &mut State, marker: usize) {
        if matches!(state.at, ReplyPhase::Free(Region::Outside | Region::Header, _)) {
            state.at = state::free(Region::Fresh);
        }
        if let ReplyPhase::Free(region, seen) = state.at
            && self.entries(state, region).markers.matched_bytes(seen).len() < marker
        {
            // What ends a marker of the prompt begins none of the reply.
            state.at = state::free(region);
        }
        if self.only_ended && state.at == state::free(Region::Fresh) {
            state.at = state::free(Region::Reasoning);
        }
        (state.called, state.space) = (false, Space::default());
    }

    /// Notes the end of the prompt: from here on a required call must come. `quiet`: the prompt closed the reasoning,
    /// so that none may come.
    pub(crate) fn begin(&self, state: &mut State, quiet: bool) {
        state.in_prompt(false);
        state.quiet = self.strict && quiet && state.region() != Region::Reasoning;
        if !(self.strict && self.required) {
            return;
        }
        state.must_call = Some(BeforeCall::begin(state.quiet));
        if let ReplyPhase::Threads(_, threads) = &mut state.at {
            threads.retain(|&thread| self.seq(thread).then.is_call());
        }
        let is_nothing = match &state.at {
            ReplyPhase::Free(region, _) => *region != Region::Reasoning,
            ReplyPhase::Threads(_, threads) => threads.is_empty(),
            ReplyPhase::Arguments(..) | ReplyPhase::Unnamed(..) => false,
        };
        if is_nothing {
            state.at = state::free(Region::Fresh);
        }
    }

    fn seq(&self, thread: Thread) -> &Seq {
        &self.seqs[usize::from(thread.seq)]
    }

    fn read_mode(&self) -> ReadMode<'_> {
        ReadMode { names: self.names.as_ref(), strict: self.strict, gaps: self.gaps }
    }

    fn any_committed(&self, threads: &[Thread]) -> bool {
        threads.iter().any(|&thread| self.seq(thread).is_committed(thread))
    }

    /// Returns whether a call is certainly meant.
    fn any_call(&self, threads: &[Thread]) -> bool {
        threads
            .iter()
            .map(|&thread| (self.seq(thread), thread))
            .any(|(seq, at)| seq.then.is_call() && seq.is_committed(at))
    }

    fn alive(&self) -> Result<(), Dead> {
        if self.strict { Err(Dead) } else { Ok(()) }
    }
}

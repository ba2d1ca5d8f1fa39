//! Transition on a byte.

use super::listener::Listener;
use super::markers::{MarkerState, MarkerStep};
use super::space::Space;
use super::state::{BeforeCall, Home, Mark, Region, ReplyPhase, State, free};
use super::thread::{Thread, Threads};
use super::{Entries, EntryThreads, Machine};
use crate::values::{ArgsState, CONTROL, Step};

/// There is no way on: only where the machine is strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dead;

/// Outcome of a byte.
pub(super) enum StepOutcome {
    /// The byte was consumed.
    Taken,
    /// It comes after what ended: the state after that takes it.
    HandedOn,
}

impl Machine {
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
                ReplyPhase::Free(region, seen) => {
                    let (region, seen) = (*region, *seen);
                    self.in_text(state, region, seen, byte, prelude, listener)?
                }
                ReplyPhase::Threads(home, threads) => {
                    let (home, threads) = (*home, std::mem::take(threads));
                    self.in_threads(state, home, threads, byte, prelude, listener)?
                }
                ReplyPhase::Arguments(form, args) => {
                    let form = *form;
                    let step = self.forms[usize::from(form)].reader.step(&self.values, args, byte, listener);
                    self.in_arguments(state, form, step, listener)?
                }
                ReplyPhase::Unnamed(form, ways) => {
                    let (form, ways) = (*form, std::mem::take(ways));
                    self.in_unnamed(state, form, ways, byte, listener)?
                }
            };
            if let StepOutcome::Taken = done {
                return Ok(());
            }
        }
        Err(Dead)
    }

    fn in_text(
        &self,
        state: &mut State,
        region: Region,
        seen: MarkerState,
        byte: u8,
        prelude: bool,
        listener: &mut impl Listener,
    ) -> Result<StepOutcome, Dead> {
        let entries = self.entries(state, region);
        if byte == CONTROL && self.strict {
            // Markers are found by their text, whatever tokens spell them. A header holds no other control tokens.
            if region == Region::Header || (region == Region::Fresh && self.headed) {
                state.at =
                    self.enter_marker(state, region, entries, entries.markers.matched_bytes(seen)).ok_or(Dead)?;
            } else {
                self.control_begins(state);
            }
            return Ok(StepOutcome::Taken);
        }
        match entries.markers.step(seen, byte) {
            MarkerStep::Text(next) => {
                let (before, begun) = (entries.markers.matched_bytes(seen).len(), entries.markers.matched_bytes(next));
                state.mark = state.mark.after_byte(begun.len());
                if !prelude && !state.may_say(region) && !self.may_become_marker(entries, begun, state.mark) {
                    return Err(Dead);
                }
                let blank = before == 0 && byte.is_ascii_whitespace();
                if before + 1 > begun.len() && !blank && !prelude {
                    return self.emit_text(state, region, next, begun, listener).map(|()| StepOutcome::Taken);
                }
                if blank && !prelude && !state.may_say(region) {
                    state.space = state.space.and(byte).ok_or(Dead)?;
                }
                listener.text(region, begun.len());
                state.at = ReplyPhase::Free(region, next);
                Ok(StepOutcome::Taken)
            }
            MarkerStep::Marker(marker, length) => {
                listener.text(region, length);
                let EntryThreads { open, whole } = &entries.begins[marker];
                let (mut open, mut whole) = (Threads::from_slice(open), Threads::from_slice(whole));
                if self.by_token.any() {
                    let is_token = state.mark.after_byte(length).begins(length);
                    let counts = |thread: &mut Thread| is_token || !self.seq(*thread).by_token;
                    open.retain(counts);
                    whole.retain(counts);
                    state.mark = if state.mark == Mark::Anywhere { state.mark } else { Mark::Nowhere };
                    if open.is_empty() && whole.is_empty() {
                        return self
                            .said_but(state, region, MarkerState::default(), 0, listener)
                            .map(|()| StepOutcome::Taken);
                    }
                }
                self.whole_or_on(state, Home::Free(region), &whole, &mut open, Vec::new(), listener)
            }
        }
    }

    /// Returns whether the begun text may become a marker, or is empty.
    fn may_become_marker(&self, entries: &Entries, begun: &[u8], mark: Mark) -> bool {
        let is_token = mark.begins(begun.len());
        let counts = |of: &EntryThreads| {
            let mut threads = of.open.iter().chain(&of.whole);
            is_token || threads.any(|&thread| !self.seq(thread).by_token)
        };
        let counts = |(text, of): (&[u8], &EntryThreads)| text.starts_with(begun) && counts(of);
        if begun.is_empty() {
            !entries.seqs.is_empty()
        } else {
            entries.markers.texts().zip(&entries.begins).any(counts)
        }
    }

    /// A marker is meant: one that is begun, or one from its start, where what is begun may be text.
    fn enter_marker(&self, state: &State, region: Region, entries: &Entries, begun: &[u8]) -> Option<ReplyPhase> {
        let ReplyPhase::Threads(_, fresh) = self.threads(state, Home::Marked(region), &entries.seqs) else {
            return None;
        };
        let on = |&thread: &Thread| {
            begun.iter().try_fold(Threads::from_elem(thread, 1), |threads, &byte| {
                let mut next = Threads::new();
                for at in threads {
                    self.seq(at).step(at, byte, self.read_mode(), &mut next);
                }
                (!next.is_empty()).then_some(next)
            })
        };
        let mut threads: Vec<Thread> = fresh.iter().filter_map(on).flatten().collect();
        if !begun.is_empty() && state.may_say(region) {
            threads.extend(fresh);
        }
        (!threads.is_empty()).then_some(ReplyPhase::Threads(Home::Marked(region), threads))
    }

    /// Text is said, but for the last bytes: the reply is no longer at its beginning.
    pub(super) fn said_but(
        &self,
        state: &mut State,
        region: Region,
        seen: MarkerState,
        keep: usize,
        listener: &mut impl Listener,
    ) -> Result<(), Dead> {
        if !state.may_say(region) {
            return Err(Dead);
        }
        let region = match region {
            Region::Fresh if self.headed => Region::Header,
            Region::Fresh => Region::Outside,
            other => other,
        };
        listener.text(region, keep);
        state.at = ReplyPhase::Free(region, seen);
        Ok(())
    }

    /// Text is said, and these bytes after it may begin a marker: the reply is no longer at its beginning.
    fn emit_text(
        &self,
        state: &mut State,
        region: Region,
        seen: MarkerState,
        begun: &[u8],
        listener: &mut impl Listener,
    ) -> Result<(), Dead> {
        if region != Region::Fresh {
            return self.said_but(state, region, seen, begun.len(), listener);
        }
        let markers = &self.entries(state, if self.headed { Region::Header } else { Region::Outside }).markers;
        let mut seen = MarkerState::default();
        for &byte in begun {
            match markers.step(seen, byte) {
                MarkerStep::Text(next) => seen = next,
                // What begins a marker here holds none, as no marker begins another.
                MarkerStep::Marker(..) => seen = MarkerState::default(),
            }
        }
        self.said_but(state, region, seen, markers.matched_bytes(seen).len(), listener)
    }

    fn in_arguments(
        &self,
        state: &mut State,
        form: u16,
        step: Step,
        listener: &mut impl Listener,
    ) -> Result<StepOutcome, Dead> {
        if matches!(step, Step::Inside | Step::Done) {
            listener.arguments();
        }
        match step {
            Step::Inside => return Ok(StepOutcome::Taken),
            Step::Dead => {
                self.alive()?;
                listener.broke("its arguments break off, and what follows is text");
                listener.call_over(None);
                state.called = true;
                state.at = free(Region::Outside);
                return Ok(StepOutcome::HandedOn);
            }
            Step::Done | Step::DoneBefore => {}
        }
        if let Some(tail) = self.forms[usize::from(form)].tail {
            state.at = self.threads(state, Home::Tail, &[tail]);
        } else {
            listener.call_over(None);
            self.after_call(state);
        }
        Ok(if step == Step::Done { StepOutcome::Taken } else { StepOutcome::HandedOn })
    }

    /// Arguments whose tool is named after them: it must be one that takes them.
    fn in_unnamed(
        &self,
        state: &mut State,
        form: u16,
        ways: Vec<(u32, ArgsState)>,
        byte: u8,
        listener: &mut impl Listener,
    ) -> Result<StepOutcome, Dead> {
        let reader = &self.forms[usize::from(form)].reader;
        let (mut open, mut over) = (Vec::with_capacity(ways.len()), Vec::new());
        let mut taken = StepOutcome::Taken;
        for (tool, mut args) in ways {
            match reader.step(&self.values, &mut args, byte, listener) {
                Step::Inside => open.push((tool, args)),
                Step::Done => over.push(tool),
                Step::DoneBefore => {
                    taken = StepOutcome::HandedOn;
                    over.push(tool);
                }
                Step::Dead => {}
            }
        }
        if over.is_empty() {
            state.at = ReplyPhase::Unnamed(form, open);
            return if matches!(&state.at, ReplyPhase::Unnamed(_, open) if open.is_empty()) {
                Err(Dead)
            } else {
                Ok(taken)
            };
        }
        let tail = self.forms[usize::from(form)].tail.ok_or(Dead)?;
        let thread = self.seqs[usize::from(tail)].thread(tail);
        let threads = over.into_iter().map(|tool| thread.with_tool(tool)).collect();
        state.at = ReplyPhase::Threads(Home::Tail, threads);
        Ok(taken)
    }

    pub(super) fn after_call(&self, state: &mut State) {
        // What is required came: another call may, or the end.
        let is_held = self.strict && self.required;
        (state.called, state.must_call) = (true, is_held.then(|| BeforeCall::after_call(self.parallel)));
        state.space = Space::default();
        let none = self.after.is_empty();
        let region = if self.again || is_held { Region::Fresh } else { Region::Outside };
        state.at = if none { free(region) } else { self.threads(state, Home::After, &self.after) };
    }
}

//! Effect of a byte on the sequences that have begun.

use super::Machine;
use super::listener::{CallDecision, Listener};
use super::markers::{MarkerState, MarkerStep};
use super::seq::{Outcome, Seq};
use super::space::Space;
use super::state::{BeforeCall, Home, Region, ReplyPhase, State, free};
use super::thread::{Thread, Threads};
use super::walk::{Dead, StepOutcome};
use trie_schema::Values;

impl Machine {
    pub(super) fn in_threads(
        &self,
        state: &mut State,
        home: Home,
        threads: Vec<Thread>,
        byte: u8,
        prelude: bool,
        listener: &mut impl Listener,
    ) -> Result<StepOutcome, Dead> {
        let (mut open, mut whole) = (Threads::new(), Threads::new());
        for &thread in &threads {
            if let Some(thread) = self.seq(thread).step(thread, byte, self.read_mode(), &mut open) {
                whole.push(thread);
            }
        }
        if prelude {
            // A prompt begins a call at most: it never names one.
            open.retain(|&mut thread| !self.seq(thread).is_in_name(thread));
        }
        if whole.is_empty() && open.is_empty() {
            return self.none_left(state, home, &threads, listener);
        }
        self.whole_or_on(state, home, &whole, &mut open, threads, listener)
    }

    /// The first whole sequence that may have its meaning decides; otherwise the others go on. `before` holds the
    /// sequences that had begun before this byte; none if a marker was found.
    pub(super) fn whole_or_on(
        &self,
        state: &mut State,
        home: Home,
        whole: &[Thread],
        open: &mut Threads,
        mut before: Vec<Thread>,
        listener: &mut impl Listener,
    ) -> Result<StepOutcome, Dead> {
        let may = |outcome: Outcome| self.may_become(state, outcome);
        // Where text may stand, what begins a marker is text until it must be that marker.
        let mut refused = false;
        open.retain(|&mut thread| {
            let (is_meant, may) = (self.seq(thread).is_committed(thread), may(self.seq(thread).then));
            refused |= is_meant && !may;
            may || !is_meant && state.must_call.is_none()
        });
        refused |= whole.iter().any(|&thread| !may(self.seq(thread).then));
        // A text that is known says more than a name that may be any.
        let is_call = |thread: &&Thread| self.seq(**thread).then.is_call();
        let known = whole.iter().filter(|thread| !is_call(thread));
        for &thread in known.chain(whole.iter().filter(is_call)) {
            let seq = self.seq(thread);
            if self.may_become(state, seq.then) && self.becomes(state, seq, thread, listener) {
                return Ok(if seq.hands_on() { StepOutcome::HandedOn } else { StepOutcome::Taken });
            }
        }
        if open.is_empty() {
            // Nothing that was written may be meant.
            if refused || before.is_empty() || self.any_committed(&before) {
                self.alive()?;
            }
            self.back_to_text(state, home, 0, listener)?;
            return Ok(StepOutcome::Taken);
        }
        open.sort_unstable();
        open.dedup();
        before.clear();
        before.extend_from_slice(open);
        state.at = ReplyPhase::Threads(home, before);
        Ok(StepOutcome::Taken)
    }

    /// Returns whether a completed sequence may have this meaning.
    pub(super) fn may_become(&self, state: &State, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Content | Outcome::Elsewhere => state.may_say(Region::Outside),
            Outcome::Stop => state.must_call.is_none_or(BeforeCall::is_called),
            Outcome::Reasoning => !state.quiet,
            Outcome::Arguments(_) => !self.strict || (self.may_call && (self.parallel || !state.called)),
            _ => true,
        }
    }

    /// Applies a sequence, and returns whether it had this meaning.
    fn becomes(&self, state: &mut State, seq: &Seq, thread: Thread, listener: &mut impl Listener) -> bool {
        if let Outcome::Arguments(form) = seq.then {
            let id = match listener.call(seq, thread.tool) {
                CallDecision::Tool(tool) => self.arguments.get(tool as usize).copied().unwrap_or(Values::ANY),
                CallDecision::Unknown => Values::ANY,
                CallDecision::Text => return false,
            };
            let reader = &self.forms[usize::from(form)].reader;
            state.at = match &self.names {
                Some(names) if self.strict && !seq.names_tool() => {
                    let id = |tool: u32| self.arguments.get(tool as usize).copied().unwrap_or(Values::ANY);
                    ReplyPhase::Unnamed(
                        form,
                        names.tools().map(|tool| (tool, reader.begin(&self.values, id(tool)))).collect(),
                    )
                }
                _ => ReplyPhase::Arguments(form, reader.begin(&self.values, id)),
            };
            return true;
        }
        match seq.then {
            Outcome::CallOver => {
                listener.call_over(Some(seq));
                self.after_call(state);
                return true;
            }
            Outcome::ListOver if !self.after_list.is_empty() => {
                state.at = self.threads(state, Home::AfterList, &self.after_list);
            }
            // What may follow a call that had to come is found where calls begin.
            then if state.must_call.is_some() && then.region() == Region::Outside => state.at = free(Region::Fresh),
            then => state.at = free(then.region()),
        }
        state.space = Space::default();
        state.must_call = state.must_call.map(|before| before.and(seq.then));
        listener.marker(seq.then);
        true
    }

    pub(super) fn threads(&self, state: &State, home: Home, seqs: &[u16]) -> ReplyPhase {
        let may = |seq: &&u16| self.may_become(state, self.seqs[usize::from(**seq)].then);
        ReplyPhase::Threads(home, seqs.iter().filter(may).map(|&seq| self.seqs[usize::from(seq)].thread(seq)).collect())
    }

    fn none_left(
        &self,
        state: &mut State,
        home: Home,
        threads: &[Thread],
        listener: &mut impl Listener,
    ) -> Result<StepOutcome, Dead> {
        if !matches!(home, Home::Free(_)) || self.any_committed(threads) {
            self.alive()?;
        }
        if home == Home::Tail {
            listener.broke("what ends it is missing");
            listener.call_over(None);
            state.called = true;
            // What was taken for its end may begin something else.
            let begun =
                threads.iter().map(|&thread| self.seq(thread).written_bytes(thread)).max_by_key(|begun| begun.len());
            let markers = &self.entries(state, Region::Outside).markers;
            let mut seen = MarkerState::default();
            for &byte in begun.unwrap_or_default() {
                seen = match markers.step(seen, byte) {
                    MarkerStep::Text(next) => next,
                    MarkerStep::Marker(..) => MarkerState::default(),
                };
            }
            // What of its end is written is not content.
            let is_begun = threads.iter().any(|thread| thread.atom > 0);
            let region = if is_begun { Region::Over } else { Region::Outside };
            listener.text(region, markers.matched_bytes(seen).len() + 1);
            state.at = ReplyPhase::Free(Region::Outside, seen);
            return Ok(StepOutcome::HandedOn);
        }
        let is_named = |thread: &Thread| self.seq(*thread).is_named(*thread);
        if threads.iter().any(is_named) || self.any_call(threads) {
            listener.no_call();
        }
        self.back_to_text(state, home, 1, listener)?;
        Ok(StepOutcome::HandedOn)
    }

    /// Releases held text, except its last bytes.
    fn back_to_text(
        &self,
        state: &mut State,
        home: Home,
        keep: usize,
        listener: &mut impl Listener,
    ) -> Result<(), Dead> {
        if let Home::Free(region) = home {
            return self.said_but(state, region, MarkerState::default(), keep, listener);
        }
        listener.text(Region::Outside, keep);
        state.at = free(Region::Outside);
        Ok(())
    }
}

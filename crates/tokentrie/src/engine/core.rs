//! Core of an engine: jobs join, advance and leave.

use super::branches::Branches;
use super::cells::Cells;
use super::job::{BranchProgress, Growing, QueuedJob, Running, Stage};
use super::slot::Slot;
use llama_sampler::{Bounds, RuntimeError, plan};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use trie_core::{DecodeCost, Host, TokenId, WantedRows, shared_length};

/// Smallest number of common tokens for which a job copies them, or waits for the job that decodes them.
pub(super) const WORTH_SHARING: usize = 32;

/// An engine without a thread.
pub(super) struct Core<M> {
    pub(super) cells: M,
    pub(super) slots: Vec<Slot>,
    pub(super) branches: Branches,
    /// Jobs that wait for a slot, the next one first.
    pub(super) waiting: VecDeque<QueuedJob>,
    /// True if they may begin: not while somebody waits to have the context alone.
    pub(super) lets_in: bool,
    /// Tokens in one pass: see [`EngineOptions::prefill_chunk`](super::options::EngineOptions::prefill_chunk).
    pub(super) prefill_chunk: usize,
    pub(super) counts: Counts,
}

/// Counters of the work done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passes: u64,
    pub(super) tokens: u64,
    pub(super) tokens_reused: u64,
    pub(super) jobs: u64,
    pub(super) failed_passes: u64,
    pub(super) decoding: Duration,
    pub(super) own: Duration,
}

impl<M: Cells> Core<M> {
    pub(super) fn new(cells: M, prefill_chunk: usize) -> Self {
        let slots = (0..cells.slots()).map(|_| Slot::default()).collect();
        let of = if cells.piece().is_some() { Branches::of_each } else { Branches::of_all };
        let branches = of(cells.slots(), cells.branches());
        let (waiting, counts) = (VecDeque::new(), Counts::default());
        Self { cells, slots, branches, waiting, lets_in: true, prefill_chunk, counts }
    }

    /// Adds a job. It runs once a slot is free, after jobs of higher priority and earlier jobs.
    pub(super) fn add(&mut self, arrived: QueuedJob) {
        let key = |arrived: &QueuedJob| (std::cmp::Reverse(arrived.priority), arrived.seat.number);
        // The next job of a call goes before calls that came after it.
        let before = |other: &QueuedJob| key(other) <= key(&arrived);
        let place = self.waiting.iter().rposition(before).map_or(0, |last| last + 1);
        self.waiting.insert(place, arrived);
    }

    pub(super) fn running(&self) -> usize {
        self.slots.iter().filter(|slot| slot.running.is_some()).count()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running() == 0
    }

    /// Cells of the cache that hold something.
    pub(super) fn held_cells(&self) -> usize {
        self.slots.iter().map(|slot| slot.held.len()).sum()
    }

    /// Clears the cache of all that no job uses.
    pub(super) fn forget(&mut self) {
        for number in 0..self.slots.len() {
            if self.slots[number].running.is_none() {
                self.keep(number, 0);
            }
        }
    }

    /// Advances every job as far as it can go without a row, ends jobs that are complete or cancelled, and starts
    /// waiting jobs.
    pub(super) fn go_on(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for mut arrived in std::mem::take(&mut waiting) {
            if catch_panic(|| Ok(arrived.job.stop())).unwrap_or(true) {
                finish(arrived, Err(stopped_error()), self.cells.n_threads());
            } else {
                waiting.push_back(arrived);
            }
        }
        self.waiting = waiting;
        for number in 0..self.slots.len() {
            let Some(running) = &mut self.slots[number].running else { continue };
            if catch_panic(|| Ok(running.arrived.job.stop())).unwrap_or(true) {
                self.end(number, Err(stopped_error()));
            } else {
                self.settle(number);
            }
        }
        while let Some(arrived) = self.let_in() {
            let number = self.place_for(&arrived);
            let served = self.counts.passes;
            let running = Running { arrived, stage: Stage::Prompt, cost: DecodeCost::default(), served };
            self.slots[number].running = Some(running);
            self.keep_pieces(number);
            self.settle(number);
        }
    }

    /// Returns the next waiting job that needs decoding, if a slot is free. Jobs that need none are ended here.
    fn let_in(&mut self) -> Option<QueuedJob> {
        while self.lets_in && self.slots.iter().any(|slot| slot.running.is_none()) {
            let mut arrived = self.waiting.pop_front()?;
            self.counts.jobs += 1;
            match advance_job(&mut arrived, self.cells.host()) {
                Ok(true) => return Some(arrived),
                ended => finish(arrived, ended.map(|_| ()), self.cells.n_threads()),
            }
        }
        None
    }

    /// Returns the free slot that holds the longest prefix of a job's prompt; among equals the least recently used.
    fn place_for(&self, arrived: &QueuedJob) -> usize {
        let WantedRows { prompt, .. } = arrived.job.want();
        let free = self.slots.iter().enumerate().filter(|(_, slot)| slot.running.is_none());
        // Something long keeps its place when something short waits.
        let worth =
            |slot: &Slot| Some(slot.shared_prefix(prompt)).filter(|&shared| shared >= WORTH_SHARING).unwrap_or(0);
        let best = free.max_by_key(|(_, slot)| (worth(slot), std::cmp::Reverse(slot.used)));
        best.map_or(0, |(number, _)| number)
    }

    /// Lets the job of a slot go on to where it needs a pass, or to its end.
    fn settle(&mut self, number: usize) {
        let host = self.cells.host();
        while let Some(running) = &mut self.slots[number].running {
            match running.stage {
                Stage::Asking => match advance_job(&mut running.arrived, host) {
                    Ok(true) => {
                        (running.stage, running.cost) = (Stage::Prompt, DecodeCost::default());
                        self.follow_draft(number);
                    }
                    ended => self.end(number, ended.map(|_| ())),
                },
                Stage::Prompt => {
                    if self.left_of_prompt(number) > 0 {
                        return;
                    }
                    self.begin_tree(number);
                }
                Stage::Branches(_) | Stage::Tree(_) => return,
            }
        }
    }

    /// Returns the number of prompt tokens that a job must still decode. Tokens in its slot after the common prefix are
    /// dropped.
    pub(super) fn left_of_prompt(&mut self, number: usize) -> usize {
        let Slot { held, running: Some(running), .. } = &self.slots[number] else { return 0 };
        let WantedRows { prompt, tree, .. } = running.arrived.job.want();
        let mut kept = shared_length(held, prompt);
        if kept == prompt.len() && tree.wants_root() {
            kept -= 1;
        }
        let (all, is_cut) = (prompt.len(), kept < held.len());
        if is_cut {
            self.keep(number, kept);
        }
        all - self.slots[number].held.len()
    }

    /// Keeps, for a job that begins, only the tokens that any slot would hold after decoding the same prompt, bit for
    /// bit.
    fn keep_pieces(&mut self, number: usize) {
        let Some(piece) = self.cells.piece() else { return };
        let Slot { held, pieces, running: Some(running), .. } = &self.slots[number] else { return };
        let WantedRows { prompt, tree, .. } = running.arrived.job.want();
        let most = prompt.len().saturating_sub(usize::from(tree.wants_root()));
        let kept = shared_length(held, prompt).min(most).min(*pieces) / piece * piece;
        self.counts.tokens_reused += kept as u64;
        self.keep(number, kept);
    }

    /// Returns the number of branches that a job may have at once: half of them beside other jobs.
    pub(super) fn branches_at_once(&self) -> usize {
        let busy = self.cells.piece().is_none() && self.running() > 1;
        let all = self.branches.len();
        if busy { all.div_ceil(2).max(1) } else { all.max(1) }
    }

    /// The prompt is decoded, and its row was read: what comes behind it is next, first its branches.
    pub(super) fn begin_tree(&mut self, number: usize) {
        let branches = self.branches_at_once();
        let Slot { held, running: Some(running), .. } = &mut self.slots[number] else { return };
        let want = running.arrived.job.want();
        if want.is_draft {
            return self.finish_batch(number);
        }
        if !want.tree.nodes().is_empty() && self.branches.len() == 0 {
            let reason = "the context has no room for branches: give a larger n_ctx".to_owned();
            return self.end(number, Err(RuntimeError::Unscored { reason }));
        }
        if matches!(running.stage, Stage::Prompt) && !want.branches.is_empty() {
            running.stage = Stage::Branches(BranchProgress::default());
            return;
        }
        let behind = held.len() + want.branch_positions();
        let cells = self.cells.host().room - held.len() - want.branch_tokens();
        let waves = VecDeque::from(plan(want.tree, behind, Bounds { branches, cells }));
        if waves.is_empty() {
            self.finish_batch(number);
        } else {
            running.stage = Stage::Tree(Growing { waves, from: 0, behind, branches: None });
        }
    }

    /// All that a job wanted is decoded.
    pub(super) fn finish_batch(&mut self, number: usize) {
        self.drop_joined(number);
        let Some(running) = &mut self.slots[number].running else { return };
        running.arrived.job.finish_batch(running.cost);
        running.stage = Stage::Asking;
    }

    /// Drops the branches of a prompt that the sequence of a slot owns after the held tokens.
    fn drop_joined(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        if std::mem::take(&mut slot.is_joined) {
            let held = slot.held.len();
            self.keep(number, held);
        }
    }

    /// Lets the sequence of a slot go on as that path of the last draft of which the prompt has most, and drops the
    /// others.
    fn follow_draft(&mut self, number: usize) {
        let Slot { held, paths: Some(paths), running: Some(running), .. } = &self.slots[number] else { return };
        let prompt = running.arrived.job.want().prompt;
        let shared = |tokens: &Vec<TokenId>| shared_length(tokens, prompt.get(paths.held..).unwrap_or_default());
        let best = paths.lent.clone().zip(&paths.tokens).map(|(sequence, tokens)| (shared(tokens), sequence)).max();
        let (before, here) = (paths.held, shared_length(held, prompt));
        if let Some((shared, sequence)) = best.filter(|&(shared, _)| here >= before && before + shared > here) {
            let more = prompt[here..before + shared].to_vec();
            self.keep(number, here);
            // Both are sequences of this context.
            let _ = self.cells.join(sequence, number as i32, here);
            self.slots[number].held.extend(more);
            self.keep(number, before + shared);
        }
        self.drop_draft(number);
    }

    /// Drops the paths of a slot's draft; its own sequence keeps the tokens that it has.
    fn drop_draft(&mut self, number: usize) {
        if let Some(paths) = self.slots[number].paths.take() {
            self.branches.give_back(&paths.lent);
            paths.lent.for_each(|sequence| {
                self.cells.cut_sequence(sequence, 0);
            });
        }
    }

    /// Keeps the first tokens of a slot, or none if its sequence cannot be cut.
    pub(super) fn keep(&mut self, number: usize, tokens: usize) {
        let kept = self.cells.cut_sequence(number as i32, tokens);
        let slot = &mut self.slots[number];
        slot.held.truncate(kept);
        slot.pieces = self.cells.piece().map_or(0, |piece| slot.pieces.min(kept) / piece * piece);
    }

    /// Ends what runs and what waits.
    pub(super) fn end_all(&mut self, why: impl Fn() -> RuntimeError) {
        for number in 0..self.slots.len() {
            self.end(number, Err(why()));
        }
        for arrived in std::mem::take(&mut self.waiting) {
            finish(arrived, Err(why()), 0);
        }
    }

    /// Ends the job of a slot. The slot keeps its tokens, for jobs with the same prefix.
    pub(super) fn end(&mut self, number: usize, ended: Result<(), RuntimeError>) {
        let Some(mut running) = self.slots[number].running.take() else { return };
        let lent = match &mut running.stage {
            Stage::Tree(growing) => growing.give_back(&mut self.branches),
            Stage::Branches(spreading) => spreading.give_back(&mut self.branches),
            Stage::Asking | Stage::Prompt => None,
        };
        lent.into_iter().flatten().for_each(|sequence| {
            self.cells.cut_sequence(sequence, 0);
        });
        self.drop_joined(number);
        self.drop_draft(number);
        self.slots[number].used = self.counts.passes;
        finish(running.arrived, ended, self.cells.n_threads());
    }
}

/// Returns the error of a job that was cancelled.
pub(super) fn stopped_error() -> RuntimeError {
    RuntimeError::Stopped { what: "tokens", done: 0, of: 0 }
}

/// Tells a job how it ended. A panic in its answer is dropped.
pub(super) fn finish(arrived: QueuedJob, ended: Result<(), RuntimeError>, n_threads: u32) {
    let QueuedJob { job, seat, .. } = arrived;
    drop(seat.place);
    let _ = catch_unwind(AssertUnwindSafe(|| job.finish(ended, n_threads)));
}

/// Returns the result of a call into a job; a panic in it becomes the error of that job alone.
pub(super) fn catch_panic<T>(asked: impl FnOnce() -> Result<T, RuntimeError>) -> Result<T, RuntimeError> {
    catch_unwind(AssertUnwindSafe(asked)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(RuntimeError::Failed { reason: said.unwrap_or_else(|| "it panicked".to_owned()) })
    })
}

/// Lets a job go on, and looks whether what it wants then exists and fits. `false` where it is over.
fn advance_job(arrived: &mut QueuedJob, Host { n_vocab, room, .. }: Host) -> Result<bool, RuntimeError> {
    let QueuedJob { job, work, .. } = arrived;
    if !catch_panic(|| work.run(|| job.advance()))? {
        return Ok(false);
    }
    let WantedRows { prompt, branches, tree, .. } = arrived.job.want();
    let outside = |token: &TokenId| token.index() >= n_vocab;
    let inside = branches.iter().flatten().copied().chain(tree.nodes().iter().map(|node| node.token));
    if let Some((position, token)) = prompt.iter().copied().chain(inside).enumerate().find(|(_, token)| outside(token))
    {
        return Err(trie_text::VocabError::OutsideVocabulary { position, token, n_vocab }.into());
    }
    if prompt.is_empty() && tree.wants_root() {
        return Err(RuntimeError::EmptyPrompt);
    }
    let asked = prompt.len() + tree.depth();
    let asked = asked + arrived.job.want().branch_tokens();
    if asked > room { Err(RuntimeError::ContextFull { held: 0, asked, n_ctx: room }) } else { Ok(true) }
}

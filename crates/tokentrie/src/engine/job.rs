//! A job, and its progress.

use super::branches::Branches;
use llama_sampler::{PlacedToken, PlannedWave, RuntimeError, Task};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trie_core::DecodeCost;
use trie_core::work::Work;

/// A task that an engine runs while a caller waits for its end.
pub trait Job: Task + Send {
    /// It is over, was stopped, or failed; `n_threads` decoded it.
    fn finish(self: Box<Self>, ended: Result<(), RuntimeError>, n_threads: u32);
}

/// A job that has come.
pub(super) struct QueuedJob {
    pub(super) job: Box<dyn Job>,
    /// Budget that may end it in the middle of a token mask.
    pub(super) work: Work,
    /// Higher ones go first.
    pub(super) priority: i32,
    /// Released before the job is told how it ended: a caller that learns of the end of its last job finds the place
    /// free.
    pub(super) seat: Seat,
}

/// The place of a call, which its jobs take one after the other.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub(super) place: Arc<Place>,
    /// The number of the call, in the order in which they came.
    pub(super) number: u64,
}

/// One of the places of an engine, for those that run and those that wait.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Place {
    /// One more, where `taken` are fewer than `most`; else how many are.
    pub(super) fn take(taken: &Arc<AtomicUsize>, most: usize) -> Result<Self, usize> {
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map(|_| Self(Arc::clone(taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A job that runs.
pub(super) struct Running {
    pub(super) arrived: QueuedJob,
    pub(super) stage: Stage,
    /// Cost of decoding since its last request.
    pub(super) cost: DecodeCost,
    /// The pass that took something of it last.
    pub(super) served: u64,
}

/// Progress of a running job.
pub(super) enum Stage {
    /// The job must be asked for its next request.
    Asking,
    /// Its prompt is decoded.
    Prompt,
    /// The branches of its prompt are decoded.
    Branches(BranchProgress),
    /// Its tree is decoded.
    Tree(Growing),
}

/// Branches of a prompt on their way.
#[derive(Default)]
pub(super) struct BranchProgress {
    /// Number of the branches that the slot's sequence owns.
    pub(super) done: usize,
    /// Tokens of the next ones, if they have sequences, and how many were decoded.
    pub(super) tokens: Vec<PlacedToken>,
    pub(super) from: usize,
    /// Sequences of these branches, once they are lent.
    pub(super) lent: Option<Range<i32>>,
}

impl BranchProgress {
    /// The sequences are free again.
    pub(super) fn give_back(&mut self, branches: &mut Branches) -> Option<Range<i32>> {
        let lent = self.lent.take();
        if let Some(lent) = &lent {
            branches.give_back(lent);
        }
        lent
    }
}

/// A tree on its way.
pub(super) struct Growing {
    /// Remaining waves; of the first one, the tokens from `from` on.
    pub(super) waves: VecDeque<PlannedWave>,
    pub(super) from: usize,
    /// Positions before the tree.
    pub(super) behind: usize,
    /// The sequences of the first wave, once they are lent.
    pub(super) branches: Option<Range<i32>>,
}

impl Growing {
    /// The sequences are free again.
    pub(super) fn give_back(&mut self, branches: &mut Branches) -> Option<Range<i32>> {
        let lent = self.branches.take();
        if let Some(lent) = &lent {
            branches.give_back(lent);
        }
        lent
    }
}

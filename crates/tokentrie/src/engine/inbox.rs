//! Inbox of an engine's thread, and the loop of that thread.

use super::core::{Core, stopped_error};
use super::job::QueuedJob;
use super::options::EngineStats;
use super::pool::Pool;
use super::relay::PAUSE;
use llama_callbacks::exit::{Working, is_ending};
use llama_sampler::{Context, Prefix, RuntimeError};
use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;

#[derive(Debug, Default)]
pub(super) struct SharedInbox {
    inbox: Mutex<Inbox>,
    pub(super) came: Condvar,
    /// Calls that run or wait.
    pub(super) taken: Arc<AtomicUsize>,
}

/// Task that runs with nothing beside it.
pub(super) type ExclusiveTask = Box<dyn FnOnce(&mut Core<Pool>) + Send>;

#[derive(Default)]
pub(super) struct Inbox {
    pub(super) arrived: Vec<QueuedJob>,
    pub(super) alone: VecDeque<ExclusiveTask>,
    /// Number of calls so far.
    pub(super) calls: u64,
    pub(super) is_closing: bool,
    /// Ends the calls that have come until now.
    pub(super) cancelled: bool,
    /// As the thread left it.
    pub(super) stats: EngineStats,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl SharedInbox {
    /// Locks the inbox. A poisoned lock is used nevertheless: no change behind it can be left incomplete.
    pub(super) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes, as long as there is something to do.
pub(super) fn run(shared: &SharedInbox, mut core: Core<Pool>) {
    loop {
        let alone = {
            let mut inbox = shared.inbox();
            loop {
                core.publish(&mut inbox.stats);
                let has_work = !inbox.arrived.is_empty() || !inbox.alone.is_empty() || !core.is_idle();
                if inbox.is_closing || has_work {
                    break;
                }
                inbox.cancelled = false;
                inbox = shared.came.wait(inbox).unwrap_or_else(PoisonError::into_inner);
            }
            for arrived in std::mem::take(&mut inbox.arrived) {
                core.add(arrived);
            }
            if inbox.is_closing {
                inbox.alone.clear();
                drop(inbox);
                return core.end_all(|| RuntimeError::Closed);
            }
            if std::mem::take(&mut inbox.cancelled) {
                drop(inbox);
                core.end_all(stopped_error);
                continue;
            }
            core.lets_in = inbox.alone.is_empty();
            if core.running() == 0 { inbox.alone.pop_front() } else { None }
        };
        let Some(_working) = Working::begin() else {
            core.end_all(stopped_error);
            sleep(PAUSE);
            continue;
        };
        if let Some(work) = alone {
            work(&mut core);
        } else if !core.pass() && core.running() > 0 && !is_ending() {
            // Nothing that could go on: no reason is known for this, and it must not burn a processor.
            sleep(PAUSE);
        }
    }
}

impl Core<Pool> {
    /// Uses the first context, whose cache is empty before and after.
    pub(super) fn with_first<T>(&mut self, work: impl FnOnce(&mut Context) -> T) -> T {
        self.forget();
        let done = work(self.cells.first());
        self.cells.first().clear();
        self.forget();
        done
    }

    /// The first slot, which holds it, is the last that another text takes.
    pub(super) fn restore(&mut self, prefix: &Prefix) -> Result<(), RuntimeError> {
        self.forget();
        self.cells.first().restore(prefix)?;
        self.slots[0].held = prefix.tokens().to_vec();
        self.slots[0].used = self.counts.passes;
        Ok(())
    }

    fn publish(&self, stats: &mut EngineStats) {
        let counts = self.counts;
        *stats = EngineStats {
            slots: self.slots.len(),
            running: self.running(),
            queued: self.waiting.len(),
            calls: counts.jobs,
            passes: counts.passes,
            tokens: counts.tokens,
            tokens_reused: counts.tokens_reused,
            cells: self.held_cells(),
            failed_passes: counts.failed_passes,
            decoding: counts.decoding,
            own: counts.own,
        };
    }
}

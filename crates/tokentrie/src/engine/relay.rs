//! Messages of a job to the thread that waits for it, and the flag by which that thread stops it.

use super::job::Job;
use llama_sampler::{
    CompletedJob, GenerateTask, Generated, ReadingTask, RuntimeError, ScoringTask, Step, Task, TokenLogprob, Watch,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use trie_core::{DecodeCost, Job as Work, ScoringError, TokenId, WantedRows};

/// Interval at which the thread that waits for a job looks for a reason to stop it, at first and at most. Many waiting
/// threads that look often take the processor from the passes that they wait for.
pub(super) const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(40);

/// Message of a job: a report on the way, or its end.
pub(crate) enum JobEvent<M, T> {
    Told(M),
    Done(Result<T, RuntimeError>),
}

/// Flag that is set once a job is no longer wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Watch for Stop {
    fn stop(&mut self) -> bool {
        self.is_stopped()
    }
}

/// Hears what a job says until its end.
pub(super) fn wait<M, T>(
    said: &Receiver<JobEvent<M, T>>,
    stop: &Stop,
    hear: &mut dyn FnMut(Option<M>) -> bool,
) -> Result<T, RuntimeError> {
    let mut pause = PAUSE;
    loop {
        let stops = match said.recv_timeout(pause) {
            Ok(JobEvent::Told(told)) => hear(Some(told)),
            Ok(JobEvent::Done(done)) => return done,
            Err(RecvTimeoutError::Timeout) => {
                pause = LONGEST_PAUSE.min(2 * pause);
                hear(None)
            }
            // Dropped unheard: with the engine.
            Err(RecvTimeoutError::Disconnected) => return Err(RuntimeError::Closed),
        };
        if stops {
            stop.stop();
        }
    }
}

/// Hears of a generation inside the engine, and tells of it.
pub(crate) struct Relay<T> {
    pub(super) stop: Stop,
    pub(super) wants_steps: bool,
    pub(super) wants_shares: bool,
    pub(super) tell: Sender<JobEvent<Step, T>>,
}

impl<T> Watch for Relay<T> {
    fn stop(&mut self) -> bool {
        self.stop.is_stopped()
    }

    fn wants_steps(&self) -> bool {
        self.wants_steps
    }

    fn wants_shares(&self) -> bool {
        self.wants_shares
    }

    fn step(&mut self, step: &Step) {
        // Who does not listen any more has stopped it.
        let _ = self.tell.send(JobEvent::Told(step.clone()));
    }
}

/// A generation as a job. `W` hears of it inside the engine.
pub(crate) struct Generating<W, F> {
    pub(crate) task: GenerateTask<W>,
    /// Gets what it gave.
    pub(crate) done: F,
}

impl<W, F> Job for Generating<W, F>
where
    W: Watch + Send,
    F: FnOnce(Result<(Generated, W), RuntimeError>) + Send,
{
    fn finish(self: Box<Self>, ended: Result<(), RuntimeError>, n_threads: u32) {
        let Self { task, done } = *self;
        done(match ended {
            Ok(()) => task.finish(false, n_threads),
            Err(RuntimeError::Stopped { .. }) => task.finish(true, n_threads),
            Err(error) => Err(error),
        });
    }
}

impl<W: Watch, F> Task for Generating<W, F> {
    fn stop(&mut self) -> bool {
        self.task.stop()
    }
}

impl<W: Watch, F> Work for Generating<W, F> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        self.task.advance()
    }

    fn want(&self) -> WantedRows<'_> {
        self.task.want()
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        self.task.take(node, row)
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.task.finish_batch(decoded);
    }
}

/// The row after some tokens, as a job.
pub(super) struct Row {
    pub(super) tokens: Vec<TokenId>,
    pub(super) found: Option<Vec<f32>>,
    pub(super) stop: Stop,
    pub(super) tell: Sender<JobEvent<(), Vec<f32>>>,
}

impl Job for Row {
    fn finish(self: Box<Self>, ended: Result<(), RuntimeError>, _: u32) {
        let Self { found, tell, .. } = *self;
        let row = ended.and_then(|()| found.ok_or(RuntimeError::NoLogits));
        // As in `Relay::step`.
        let _ = tell.send(JobEvent::Done(row));
    }
}

impl Task for Row {
    fn stop(&mut self) -> bool {
        self.stop.is_stopped()
    }
}

impl Work for Row {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        Ok(self.found.is_none())
    }

    fn want(&self) -> WantedRows<'_> {
        WantedRows::row_after(&self.tokens)
    }

    fn take(&mut self, _: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        self.found = Some(row.to_vec());
        Ok(())
    }

    fn finish_batch(&mut self, _: DecodeCost) {}
}

/// The probabilities of a prompt's tokens, as a job.
pub(super) struct Reading {
    pub(super) task: ReadingTask<Stop>,
    pub(super) tell: Sender<JobEvent<(), Vec<TokenLogprob>>>,
}

impl Job for Reading {
    fn finish(self: Box<Self>, ended: Result<(), RuntimeError>, _: u32) {
        let Self { task, tell } = *self;
        // As in `Relay::step`.
        let _ = tell.send(JobEvent::Done(ended.map(|()| task.finish())));
    }
}

impl Task for Reading {
    fn stop(&mut self) -> bool {
        self.task.stop()
    }
}

impl Work for Reading {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        self.task.advance()
    }

    fn want(&self) -> WantedRows<'_> {
        self.task.want()
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        self.task.take(node, row)
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.task.finish_batch(decoded);
    }
}

/// A job of `trie-core`, as a job of the engine.
pub(super) struct Completing<J> {
    pub(super) task: ScoringTask<J, Stop>,
    pub(super) tell: Sender<JobEvent<(), CompletedJob<J>>>,
}

impl<J: Work<Error = ScoringError> + Send> Job for Completing<J> {
    fn finish(self: Box<Self>, ended: Result<(), RuntimeError>, n_threads: u32) {
        let Self { task, tell } = *self;
        // As in `Relay::step`.
        let _ = tell.send(JobEvent::Done(CompletedJob::new(task.job, ended, n_threads)));
    }
}

impl<J: Work<Error = ScoringError>> Task for Completing<J> {
    fn stop(&mut self) -> bool {
        self.task.stop()
    }
}

impl<J: Work<Error = ScoringError>> Work for Completing<J> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        self.task.advance()
    }

    fn want(&self) -> WantedRows<'_> {
        self.task.want()
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        self.task.take(node, row)
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.task.finish_batch(decoded);
    }
}

//! Between a job and the thread that waits for it.

use llama_sampler::RuntimeError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often who waits for a job looks for a reason to stop it.
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// What a job says: something on the way, or its end.
pub(crate) enum Said<M, T> {
    Told(M),
    Done(Result<T, RuntimeError>),
}

/// Whether a job is still wanted.
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

/// Hears what a job says until its end.
pub(super) fn wait<M, T>(
    said: &Receiver<Said<M, T>>,
    stop: &Stop,
    hear: &mut dyn FnMut(Option<M>) -> bool,
) -> Result<T, RuntimeError> {
    loop {
        let stops = match said.recv_timeout(PAUSE) {
            Ok(Said::Told(told)) => hear(Some(told)),
            Ok(Said::Done(done)) => return done,
            Err(RecvTimeoutError::Timeout) => hear(None),
            // Dropped unheard: with the engine.
            Err(RecvTimeoutError::Disconnected) => return Err(RuntimeError::Closed),
        };
        if stops {
            stop.stop();
        }
    }
}

//! Threads that a whole process shares, and that a forked process starts again.

use crate::work::{Work, run_helpers};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::RwLock;
use std::thread::available_parallelism;

/// A process and its threads.
type ProcessPool = Option<(u32, &'static ThreadPool)>;

/// One thread for each core, made when they are first asked for.
///
/// A forked process has none of its parent's threads, so they are started again there. The thread pool of the parent
/// is not touched, because its locks may be held for ever.
#[derive(Debug)]
pub struct SharedThreads {
    name: &'static str,
    /// Bytes of each thread's stack; `None` is the usual size.
    stack: Option<usize>,
    made: RwLock<ProcessPool>,
}

impl SharedThreads {
    /// Threads of this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, stack: None, made: RwLock::new(None) }
    }

    /// With stacks of so many bytes.
    #[must_use]
    pub const fn with_stack(self, bytes: usize) -> Self {
        Self { stack: Some(bytes), ..self }
    }

    /// The thread pool. `None` if no threads are available at once: then the caller works alone.
    pub fn pool(&self) -> Option<&'static ThreadPool> {
        let process = std::process::id();
        let ours = |made: &ProcessPool| made.filter(|(of, _)| *of == process).map(|(_, pool)| pool);
        if let Some(pool) = self.made.try_read().ok().and_then(|made| ours(&made)) {
            return Some(pool);
        }
        // Never waited for: whoever held it when the process was forked does not exist here.
        let mut made = self.made.try_write().ok()?;
        if let Some(pool) = ours(&made) {
            return Some(pool);
        }
        let cores = available_parallelism().map_or(1, usize::from);
        let name = self.name;
        let named = move |number| format!("{name}-{number}");
        let builder = ThreadPoolBuilder::new().num_threads(cores).thread_name(named);
        let builder = if let Some(stack) = self.stack { builder.stack_size(stack) } else { builder };
        // For as long as the process: nothing waits for these threads at its end.
        let pool = &*Box::leak(Box::new(builder.build().ok()?));
        *made = Some((process, pool));
        Some(pool)
    }
}

/// Runs `work` for each part, in any order, and returns the results in the order of the parts. If the work of this
/// thread is cancelled or over its budget, so is the work of the others.
pub(crate) fn map_parts<P: Send, T: Send>(
    pool: Option<&ThreadPool>,
    parts: Vec<P>,
    work: impl Fn(P) -> T + Sync + Send,
) -> Vec<T> {
    let Some(pool) = pool else { return parts.into_iter().map(work).collect() };
    if Work::current().is_none() {
        return pool.install(|| parts.into_par_iter().with_max_len(1).map(work).collect());
    }
    let mut made: Vec<Option<T>> = parts.iter().map(|_| None).collect();
    pool.in_place_scope(|scope| {
        run_helpers(|limited, end| {
            for (part, made) in parts.into_iter().zip(&mut made) {
                let (work, limited, end) = (&work, limited.clone(), end.clone());
                scope.spawn(move |_| {
                    *made = Some(limited.run(|| work(part)));
                    drop(end);
                });
            }
        });
    });
    // A part that panicked has ended this thread's work, too.
    made.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{LimitExceeded, Limits, spend};

    #[test]
    fn what_ends_the_work_of_a_thread_ends_that_of_its_helpers() {
        static THREADS: SharedThreads = SharedThreads::new("helping");
        let limited = Work::new(Limits::NONE.seconds(0.05));
        let endless = |()| loop {
            if let Err(over) = spend(1) {
                return over;
            }
        };
        let ended = limited.run(|| map_parts(THREADS.pool(), vec![(); 3], endless));
        assert!(
            ended.iter().all(|over| matches!(over, LimitExceeded::Time(_) | LimitExceeded::Stopped))
                && ended.len() == 3
        );
    }

    #[test]
    fn threads_are_made_once_and_named() {
        static THREADS: SharedThreads = SharedThreads::new("counting").with_stack(1 << 20);
        let pool = THREADS.pool().unwrap();
        assert!(std::ptr::eq(pool, THREADS.pool().unwrap()));
        let names = pool.install(|| std::thread::current().name().map(str::to_owned));
        assert!(names.unwrap().starts_with("counting-"));
        for parts in [0, 1, 2, 7] {
            let squares: Vec<usize> = (0..parts).map(|part| part * part).collect();
            assert_eq!(map_parts(Some(pool), (0..parts).collect(), |part| part * part), squares);
            assert_eq!(map_parts(None, (0..parts).collect(), |part| part * part), squares);
            let limited = Work::new(Limits::default());
            assert_eq!(limited.run(|| map_parts(Some(pool), (0..parts).collect(), |part| part * part)), squares);
        }
    }
}

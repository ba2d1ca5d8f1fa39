//! The threads that tokenize.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Mutex, PoisonError};

/// llama.cpp's regular expressions are those of C++, which recurse: as much as a main thread has.
const STACK: usize = 16 << 20;

/// A pool of threads with large stacks, one for each core, made once in a process. `None` where the system gives no
/// threads: then the caller works alone.
pub(crate) fn pool() -> Option<&'static ThreadPool> {
    static POOL: Mutex<Option<(u32, Option<&'static ThreadPool>)>> = Mutex::new(None);
    let here = std::process::id();
    let mut made = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    match *made {
        Some((process, pool)) if process == here => pool,
        // A forked child has the pool of its parent without the threads.
        _ => {
            let name = |number| format!("tokenize-{number}");
            let pool = ThreadPoolBuilder::new().stack_size(STACK).thread_name(name).build();
            let pool = pool.ok().map(|pool| &*Box::leak(Box::new(pool)));
            *made = Some((here, pool));
            pool
        }
    }
}

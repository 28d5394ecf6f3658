//! Threads that live as long as one call.
//!
//! No thread outlives a call, so a process can fork at any time, and its child reads and writes like its parent.
//! Starting a thread takes about ten microseconds; only work that takes longer is worth a second thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;

use crate::error::{Error, Result};

/// How many processors this process may use.
///
/// Asked again each time: it takes less than a microsecond, and may change.
#[must_use]
pub fn processors() -> usize {
    #[cfg(target_os = "linux")]
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        return usize::try_from(set.count()).unwrap_or(1).max(1);
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Lock a mutex, even if a thread that held it has failed.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Run `work` on several threads, of which the caller's is one; return the first error, once all have ended.
///
/// # Errors
/// Those of `work`; a panic is one.
pub fn on_threads(threads: usize, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let guarded = || catch_unwind(AssertUnwindSafe(&work)).unwrap_or_else(|_| Err(Error::broken("a thread failed")));
    if threads <= 1 {
        return guarded();
    }
    std::thread::scope(|scope| {
        // A system that has no more threads gives an error: then there are fewer.
        let others: Vec<_> =
            (1..threads).map_while(|_| std::thread::Builder::new().spawn_scoped(scope, guarded).ok()).collect();
        let mut result = guarded();
        for other in others {
            result = result.and(joined(other));
        }
        result
    })
}

/// Wait for a thread; its panic is an error.
///
/// # Errors
/// Those of the thread.
pub fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(Error::broken("a thread failed")))
}

//! Threads that work for one call.
//!
//! A call does not wait for a thread that has not begun: on a busy machine, the system may let a new thread wait for
//! milliseconds, in which the caller has done all the work. Such a thread finds its crew gone, and ends without having
//! touched anything of the call. [`settle`] waits for these, so that a process can fork at any time, and its child reads
//! and writes like its parent: no other thread outlives its call.
//! Starting a thread takes about ten microseconds; only work that takes longer is worth a second thread.
// One lifetime is unsafe: that of the work, which only those in the crew see.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::error::{Error, Result};

/// With so many threads that have not begun, no more are started.
const MOST_LATE: usize = 256;

/// The threads that had not begun when their call ended, and the process that they are in.
static LATE: Mutex<(u32, Vec<JoinHandle<()>>)> = Mutex::new((0, Vec::new()));

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

/// The threads that work for one call.
#[derive(Default)]
struct Crew {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    /// The call has ended: a thread that begins now is too late.
    is_over: bool,
    /// How many threads besides the caller's are working.
    working: usize,
    /// The numbers of the threads that have begun.
    begun: Vec<usize>,
    /// The first error of these threads.
    failure: Option<Error>,
}

/// What a crew does.
struct Work(*const (dyn Fn() -> Result<()> + Sync));

// SAFETY: what it points to can be shared by threads, and is only looked at by those in the crew, see `Crew::join_in`.
unsafe impl Send for Work {}

/// Notes that a thread has ended its work, also if it panics.
struct Leaving<'a>(&'a Crew);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        locked(&self.0.state).working -= 1;
        self.0.left.notify_one();
    }
}

impl Crew {
    /// Work, unless the call has ended.
    fn join_in(&self, number: usize, work: &Work) {
        {
            let mut state = locked(&self.state);
            if state.is_over {
                return;
            }
            state.working += 1;
            state.begun.push(number);
        }
        let _leaving = Leaving(self);
        // SAFETY: `end` waits for those that are working, and the work lives until `end` has returned.
        if let Err(error) = unsafe { (*work.0)() } {
            locked(&self.state).failure.get_or_insert(error);
        }
    }

    /// Let no more threads begin, wait for those that have, and return their numbers and their first error.
    fn end(&self) -> (Vec<usize>, Option<Error>) {
        let mut state = locked(&self.state);
        state.is_over = true;
        while state.working > 0 {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (std::mem::take(&mut state.begun), state.failure.take())
    }
}

/// Ends a crew even if the caller's work panics.
struct Ending<'a>(&'a Crew);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Run `work` on several threads, of which the caller's is one; return the first error, once all that began have ended.
///
/// As a thread may begin too late, or never, `work` takes what there is to do from one place until nothing is left.
///
/// # Errors
/// Those of `work`; a panic is one.
pub fn on_threads(threads: usize, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let guarded = || catch_unwind(AssertUnwindSafe(&work)).unwrap_or_else(|_| Err(Error::broken("a thread failed")));
    if threads <= 1 {
        return guarded();
    }
    let crew = Arc::new(Crew::default());
    let task: *const (dyn Fn() -> Result<()> + Sync + '_) = &raw const guarded;
    // SAFETY: only the lifetime changes, and all that look at the work have ended before it does, see `ending`.
    #[allow(clippy::transmute_ptr_to_ptr)] // a cast cannot change the lifetime
    let task: *const (dyn Fn() -> Result<()> + Sync) = unsafe { std::mem::transmute(task) };
    let ending = Ending(&crew);
    // A system that has no more threads gives an error: then there are fewer.
    let others: Vec<_> = (1..if is_crowded() { 1 } else { threads })
        .map_while(|number| {
            let (crew, work) = (Arc::clone(&crew), Work(task));
            Builder::new().spawn(move || crew.join_in(number, &work)).ok()
        })
        .collect();
    let result = guarded();
    let (begun, failure) = crew.end();
    drop(ending);
    let late = (1..).zip(others).filter_map(|(number, thread)| {
        if begun.contains(&number) {
            // It has ended its work. Its panic, if any, is among the failures.
            let _ = thread.join();
            return None;
        }
        Some(thread)
    });
    remember(late.collect());
    result.and(failure.map_or(Ok(()), Err))
}

/// Return what `task` makes of each of the items, on several threads, or the first error.
///
/// # Errors
/// Those of `task`; a panic is one.
pub fn map_on_threads<T: Send, R: Send>(
    threads: usize,
    items: impl ExactSizeIterator<Item = T> + Send,
    task: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let count = items.len();
    let items = Mutex::new(items.enumerate());
    let results = Mutex::new(std::iter::repeat_with(|| None).take(count).collect::<Vec<_>>());
    on_threads(threads.min(count), || {
        loop {
            let Some((number, item)) = locked(&items).next() else { return Ok(()) };
            // After an error, no thread takes another item.
            let result = task(item).inspect_err(|_| locked(&items).by_ref().for_each(drop))?;
            locked(&results)[number] = Some(result);
        }
    })?;
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|result| result.ok_or_else(|| Error::broken("a thread failed"))).collect()
}

/// The threads that are late, if no other thread looks at them now (or did when this process was forked).
fn late() -> Option<MutexGuard<'static, (u32, Vec<JoinHandle<()>>)>> {
    let mut late = LATE.try_lock().ok()?;
    let process = std::process::id();
    if late.0 != process {
        // Threads of the process that forked this one: they are not here, and cannot be waited for.
        std::mem::take(&mut late.1).into_iter().for_each(std::mem::forget);
        late.0 = process;
    }
    late.1.retain(|thread| !thread.is_finished());
    Some(late)
}

/// Whether so many threads wait for a busy machine that more would only wait, too.
fn is_crowded() -> bool {
    late().is_some_and(|late| late.1.len() >= MOST_LATE)
}

fn remember(threads: Vec<JoinHandle<()>>) {
    if threads.is_empty() {
        return;
    }
    if let Some(mut late) = late() {
        late.1.extend(threads);
    }
}

/// Wait until no thread is left of calls that have ended: before the process forks.
pub fn settle() {
    let threads = late().map(|mut late| std::mem::take(&mut late.1));
    for thread in threads.unwrap_or_default() {
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_that_began_have_ended() {
        for threads in 1..9 {
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            on_threads(threads, || {
                while next.fetch_add(1, Ordering::Relaxed) < 100 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
            .unwrap();
            assert_eq!(done.into_inner(), 100);
        }
        settle();
        assert!(late().is_none_or(|late| late.1.is_empty()));
    }

    #[test]
    fn results_are_in_order() {
        let found = map_on_threads(4, 0..1000_usize, |number| Ok(number * 2)).unwrap();
        assert_eq!(found, (0..1000).map(|number| number * 2).collect::<Vec<_>>());
    }

    #[test]
    fn errors_and_panics_of_any_thread_are_errors() {
        for at in [0, 17, 99] {
            let failed = |number: usize| if number == at { Err(Error::broken("seventeen")) } else { Ok(number) };
            assert!(map_on_threads(3, 0..100_usize, failed).is_err());
            let panics = |number: usize| {
                assert_ne!(number, at);
                Ok(number)
            };
            assert!(map_on_threads(3, 0..100_usize, panics).is_err());
        }
    }

    #[test]
    fn who_comes_late_does_nothing() {
        let crew = Crew::default();
        crew.end();
        let work: &(dyn Fn() -> Result<()> + Sync) = &|| panic!("too late");
        crew.join_in(1, &Work(work));
        assert!(crew.end().0.is_empty());
    }
}

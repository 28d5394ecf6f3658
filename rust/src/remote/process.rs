//! What belongs to one process, and is made again in each child: threads do not survive a fork, nor do
//! connections.
#![allow(unsafe_code)]

use std::process;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Error, Result};
use crate::threads::processors;

/// Threads that fetch and decode: with more of them, those that wait for the network take turns too often.
const WORKERS: std::ops::RangeInclusive<usize> = 2..=8;

/// Something that each process makes for itself, when it first needs it.
///
/// No lock guards it, which a child could find taken. What the parent of a process has made is neither used nor dropped:
/// it may wait for threads that do not exist.
#[derive(Debug)]
pub struct OfProcess<T>(AtomicPtr<(u32, Arc<T>)>);

impl<T> OfProcess<T> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Return what this process has; `make` it if there is nothing.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let found = self.0.load(Ordering::Acquire);
        if let Some(value) = mine(found) {
            return Ok(value);
        }
        let value = Arc::new(make()?);
        let entry = Box::into_raw(Box::new((process::id(), Arc::clone(&value))));
        match self.0.compare_exchange(found, entry, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(value),
            Err(other) => {
                // SAFETY: it was made here, and is known nowhere else.
                drop(unsafe { Box::from_raw(entry) });
                mine(other).ok_or_else(|| Error::refused("made by two processes"))
            }
        }
    }
}

impl<T> Default for OfProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        let found = *self.0.get_mut();
        if mine(found).is_some() {
            // SAFETY: it was made by this process in `get`, and nothing refers to it any more.
            drop(unsafe { Box::from_raw(found) });
        }
    }
}

/// The value, if this process has made it.
fn mine<T>(found: *mut (u32, Arc<T>)) -> Option<Arc<T>> {
    // SAFETY: what the pointer has been set to lives until its owner is dropped.
    let (id, value) = unsafe { found.as_ref() }?;
    (*id == process::id()).then(|| Arc::clone(value))
}

/// The runtime on which this process fetches. It is never dropped.
///
/// # Errors
/// If the system gives no threads.
pub fn runtime() -> Result<Handle> {
    static RUNTIME: OfProcess<Runtime> = OfProcess::new();
    let runtime = RUNTIME.get(|| {
        Builder::new_multi_thread()
            .worker_threads(processors().clamp(*WORKERS.start(), *WORKERS.end()))
            .thread_name("omnizarr-remote")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| Error::refused(error.to_string()))
    })?;
    Ok(runtime.handle().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once() {
        let value = OfProcess::new();
        assert_eq!(*value.get(|| Ok(1)).unwrap(), 1);
        assert_eq!(*value.get(|| Ok(2)).unwrap(), 1);
    }

    #[test]
    fn what_could_not_be_made_is_made_at_the_next_time() {
        let value = OfProcess::new();
        assert!(value.get(|| Err(Error::refused("no"))).is_err());
        assert_eq!(*value.get(|| Ok(2)).unwrap(), 2);
    }
}

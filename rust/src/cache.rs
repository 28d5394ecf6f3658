//! Caches of decoded chunks and of indexes of shards. An entry is used as long as the stored value has not changed.
//!
//! If a process forks while another thread uses a cache, the cache is locked forever in the child. So a thread waits
//! for a cache only briefly, and then does without it.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::hint;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use crate::plan::Coords;
use crate::store::{Hold, Stamp};

/// Decoded chunks. The key is the number of the array, the coordinates of the chunk and, for chunks in shards, the number of
/// the chunk in the shard.
pub type Chunks = Cache<Coords, (Arc<[u8]>, Option<Hold>)>;

/// If a selection needs at most one in this number of bytes of a chunk, only the needed blocks are decoded.
pub const LARGEST_SHARE: usize = 2;
/// The same if several selections, which are read at the same time, share decoded chunks. It is larger, because a whole chunk
/// is decoded once for all of them, and blocks for each of them.
pub const SMALLEST_SHARE: usize = 16;

/// Where the decoded chunks of one array are kept. Several arrays may use one cache.
pub struct Shelf {
    /// The cache.
    pub chunks: Arc<Chunks>,
    /// The number of the array, which no other array has.
    pub number: u64,
    /// See [`Keep::share`].
    pub share: Option<usize>,
}

impl Shelf {
    /// Return where the decoded chunks of one value are kept.
    #[must_use]
    pub fn keep(&self, coords: &[u64], stamp: Stamp, hold: Option<Hold>) -> Keep<'_> {
        let place = std::iter::once(self.number).chain(coords.iter().copied()).collect();
        Keep { chunks: &self.chunks, place, stamp, hold, share: self.share }
    }
}

/// Where the decoded chunks of one value are kept.
#[derive(Clone)]
pub struct Keep<'a> {
    /// The cache.
    pub chunks: &'a Chunks,
    /// The key of the value in the cache.
    pub place: Coords,
    /// The stamp of the value.
    pub stamp: Stamp,
    /// An object that must live as long as the stamp is compared.
    pub hold: Option<Hold>,
    /// If a selection needs at most one in this number of bytes of a chunk, only the needed blocks are decoded, and nothing is
    /// kept. None: chunks are always decoded as a whole, and kept.
    pub share: Option<usize>,
}

/// Return [`Keep::share`], or [`LARGEST_SHARE`] if decoded chunks are not kept.
#[must_use]
pub fn share_of(keep: Option<&Keep<'_>>) -> Option<usize> {
    keep.map_or(Some(LARGEST_SHARE), |keep| keep.share)
}

impl Keep<'_> {
    /// Return the same for a chunk of the value, which is a shard.
    #[must_use]
    pub fn within(&self, number: usize) -> Self {
        let mut place = self.place.clone();
        place.push(number as u64);
        Self { place, hold: self.hold.clone(), ..*self }
    }

    /// Return the decoded chunk, if it is in the cache.
    #[must_use]
    pub fn get(&self) -> Option<Arc<[u8]>> {
        self.chunks.get(&self.place, &self.stamp).map(|(chunk, _)| chunk)
    }

    /// Put the decoded chunk into the cache.
    pub fn put(&self, chunk: Arc<[u8]>) {
        let nbytes = chunk.len();
        self.chunks.put(self.place.clone(), self.stamp, (chunk, self.hold.clone()), nbytes);
    }
}

/// Number of attempts to lock a cache without a pause. They take about as long as decoding a small chunk, which a cache saves.
const ATTEMPTS: usize = 1000;

/// Number of further attempts, and the pause before each. Together they take as long as the system may suspend a thread.
const NAPS: usize = 40;
const NAP: Duration = Duration::from_micros(200);

/// A cache with a limit of bytes. The entries that were not used for the longest time are dropped first.
pub struct Cache<K, V> {
    limit: usize,
    state: Mutex<State<K, V>>,
}

struct State<K, V> {
    kept: HashMap<K, Kept<V>>,
    /// Keys in the order of their use.
    used: BTreeMap<u64, K>,
    clock: u64,
    nbytes: usize,
}

struct Kept<V> {
    value: V,
    stamp: Stamp,
    nbytes: usize,
    used: u64,
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    /// Make a cache of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::new(State { kept: HashMap::new(), used: BTreeMap::new(), clock: 0, nbytes: 0 }) }
    }

    /// Return the entry of a key, if it was made from the version of the value with this stamp.
    #[must_use]
    pub fn get(&self, key: &K, stamp: &Stamp) -> Option<V> {
        let mut state = self.lock()?;
        let State { kept, used, clock, .. } = &mut *state;
        let found = kept.get_mut(key).filter(|found| found.stamp == *stamp)?;
        *clock += 1;
        let key = used.remove(&found.used)?;
        found.used = *clock;
        used.insert(*clock, key);
        Some(found.value.clone())
    }

    /// Put an entry of `nbytes` bytes into the cache, made from the version of the value with this stamp.
    pub fn put(&self, key: K, stamp: Stamp, value: V, nbytes: usize) {
        let Some(mut state) = self.lock() else { return };
        state.forget(&key);
        if nbytes > self.limit {
            return;
        }
        state.clock += 1;
        state.nbytes += nbytes;
        let used = state.clock;
        state.used.insert(used, key.clone());
        state.kept.insert(key, Kept { value, stamp, nbytes, used });
        while state.nbytes > self.limit {
            let Some(oldest) = state.used.values().next().cloned() else { return };
            state.forget(&oldest);
        }
    }

    /// Return the number of bytes in the cache.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.lock().map_or(0, |state| state.nbytes)
    }

    fn lock(&self) -> Option<MutexGuard<'_, State<K, V>>> {
        for attempt in 0..ATTEMPTS + NAPS {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => hint::spin_loop(),
                // The system has suspended the thread that holds the lock.
                Err(TryLockError::WouldBlock) => thread::sleep(NAP),
                Err(TryLockError::Poisoned(_)) => return None,
            }
        }
        None
    }
}

impl<K: Eq + Hash, V> State<K, V> {
    fn forget(&mut self, key: &K) {
        if let Some(old) = self.kept.remove(key) {
            self.used.remove(&old.used);
            self.nbytes -= old.nbytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_share_a_cache_keep_chunks_of_their_own() {
        let chunks = Arc::new(Cache::new(10));
        let [first, second] = [1, 2].map(|number| Shelf { chunks: Arc::clone(&chunks), number, share: None });
        first.keep(&[0, 3], FIRST, None).put([1; 4].into());
        second.keep(&[0, 3], FIRST, None).put([2; 4].into());
        assert_eq!(first.keep(&[0, 3], FIRST, None).get().as_deref(), Some(&[1; 4][..]));
        assert_eq!(second.keep(&[0, 3], FIRST, None).get().as_deref(), Some(&[2; 4][..]));
        assert!(first.keep(&[0, 3], SECOND, None).get().is_none());
        second.keep(&[0, 4], FIRST, None).put([2; 4].into());
        assert!(first.keep(&[0, 3], FIRST, None).get().is_none());
        assert_eq!(chunks.nbytes(), 8);
    }

    const FIRST: Stamp = [1, 0, 0, 0, 0];
    const SECOND: Stamp = [2, 0, 0, 0, 0];

    #[test]
    fn a_value_is_found_as_long_as_its_stamp_is_the_same() {
        let cache = Cache::new(10);
        cache.put("a", FIRST, 7, 4);
        assert_eq!(cache.get(&"a", &FIRST), Some(7));
        assert_eq!(cache.get(&"a", &SECOND), None);
        cache.put("a", SECOND, 8, 4);
        assert_eq!((cache.get(&"a", &FIRST), cache.get(&"a", &SECOND)), (None, Some(8)));
        assert_eq!(cache.nbytes(), 4);
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let cache = Cache::new(10);
        for (key, value) in [("a", 1), ("b", 2)] {
            cache.put(key, FIRST, value, 5);
        }
        assert_eq!(cache.get(&"a", &FIRST), Some(1));
        cache.put("c", FIRST, 3, 5);
        assert_eq!((cache.get(&"a", &FIRST), cache.get(&"b", &FIRST)), (Some(1), None));
        assert_eq!(cache.nbytes(), 10);
    }

    #[test]
    fn what_is_larger_than_the_cache_is_not_kept() {
        let cache = Cache::new(10);
        cache.put("a", FIRST, 1, 4);
        cache.put("a", FIRST, 2, 11);
        assert_eq!((cache.get(&"a", &FIRST), cache.nbytes()), (None, 0));
    }

    #[test]
    fn a_cache_that_is_in_use_is_gone_without() {
        let cache = Cache::new(10);
        cache.put("a", FIRST, 1, 4);
        let _held = cache.state.lock();
        assert_eq!(cache.get(&"a", &FIRST), None);
        cache.put("b", FIRST, 1, 4);
    }
}

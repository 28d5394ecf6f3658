//! Data that is kept between calls while it is valid: decoded chunks, and indexes of shards.
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

/// Decoded chunks, by their place: number of the array, coordinates of the chunk, then the number of the chunk within it
/// for each shard.
pub type Chunks = Cache<Coords, (Arc<[u8]>, Option<Hold>)>;

/// The place of one array's decoded chunks in a cache that arrays may share.
pub struct Shelf {
    /// All that is kept.
    pub chunks: Arc<Chunks>,
    /// Tells the array from others.
    pub number: u64,
}

impl Shelf {
    /// The place of the decoded parts of one value.
    #[must_use]
    pub fn keep(&self, coords: &[u64], stamp: Stamp, hold: Option<Hold>) -> Keep<'_> {
        let place = std::iter::once(self.number).chain(coords.iter().copied()).collect();
        Keep { chunks: &self.chunks, place, stamp, hold }
    }
}

/// Where the decoded chunks of one value are kept.
#[derive(Clone)]
pub struct Keep<'a> {
    /// All that is kept.
    pub chunks: &'a Chunks,
    /// The place of the value.
    pub place: Coords,
    /// Of the value.
    pub stamp: Stamp,
    /// What keeps the stamp true.
    pub hold: Option<Hold>,
}

impl Keep<'_> {
    /// The same for a chunk within the value.
    #[must_use]
    pub fn within(&self, number: usize) -> Self {
        let mut place = self.place.clone();
        place.push(number as u64);
        Self { chunks: self.chunks, place, stamp: self.stamp, hold: self.hold.clone() }
    }

    /// Return the decoded chunk.
    #[must_use]
    pub fn get(&self) -> Option<Arc<[u8]>> {
        self.chunks.get(&self.place, &self.stamp).map(|(chunk, _)| chunk)
    }

    /// Keep the decoded chunk.
    pub fn put(&self, chunk: Arc<[u8]>) {
        let nbytes = chunk.len();
        self.chunks.put(self.place.clone(), self.stamp, (chunk, self.hold.clone()), nbytes);
    }
}

/// How often a cache in use is tried: about as long as it takes to decode a small chunk, which is what it saves.
const ATTEMPTS: usize = 1000;

/// How often it is tried after that, and how long is waited in between: about as long as a thread may be kept from running.
const NAPS: usize = 40;
const NAP: Duration = Duration::from_micros(200);

/// Values that are kept up to a number of bytes. The least recently used ones are dropped first.
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
    /// A cache of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::new(State { kept: HashMap::new(), used: BTreeMap::new(), clock: 0, nbytes: 0 }) }
    }

    /// Return the data that is kept for a key, if it was made from the value with this stamp.
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

    /// Keep a value of `nbytes` for a key, made of what has this stamp.
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

    /// Bytes that are kept.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.lock().map_or(0, |state| state.nbytes)
    }

    fn lock(&self) -> Option<MutexGuard<'_, State<K, V>>> {
        for attempt in 0..ATTEMPTS + NAPS {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => hint::spin_loop(),
                // The thread that holds it is not running at the moment.
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
        let [first, second] = [1, 2].map(|number| Shelf { chunks: Arc::clone(&chunks), number });
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

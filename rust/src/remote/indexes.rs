//! Indexes of shards that a reader keeps, to fetch parts of the same shards again without asking for the index.
//!
//! A kept index is of one version of the shard, and parts are asked for in this version only. If the shard has changed, the
//! answer says so, and the index is fetched again. So only indexes of servers that name versions are kept.

use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::Cache;
use crate::chain::shard::Entry;
use crate::remote::answers::{Index, names_version};
use crate::remote::client::Live;
use crate::run::Codecs;

/// What tells a shard from others: the store and the codecs, by their places in memory, and its key.
type Name = (usize, usize, String);

/// About how many bytes an index takes without its entries.
const FRAME: usize = 512;

/// Indexes of shards, with a limit of bytes.
pub struct Indexes {
    cache: Cache<Name, Kept>,
    /// The number of the pass over the data: what tells it from all others.
    pass: AtomicU64,
}

/// The number of the last pass of any reader.
static PASSES: AtomicU64 = AtomicU64::new(0);

#[derive(Clone)]
struct Kept {
    index: Arc<Index>,
    /// Kept too, so that nothing else gets their places in memory.
    _owners: (Arc<Live>, Arc<Codecs>),
}

impl Indexes {
    /// Keep indexes of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { cache: Cache::new(limit), pass: AtomicU64::new(PASSES.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Begin another pass over the data, which shares no request with those before: data may have changed in between.
    pub fn begin(&self) {
        self.pass.store(PASSES.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// What readers who want the same shard in the same pass agree on.
    #[must_use]
    pub fn name_of(&self, shard: &str) -> String {
        format!("{} {shard}", self.pass.load(Ordering::Relaxed))
    }

    /// How many bytes they take.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.cache.nbytes()
    }

    /// How many bytes an index counts: `entries` is its number of chunks, `key` that of bytes of the key of its shard.
    #[must_use]
    pub fn nbytes_of(entries: usize, key: usize) -> usize {
        FRAME.saturating_add(key).saturating_add(entries.saturating_mul(size_of::<Entry>()))
    }

    fn name(live: &Arc<Live>, codecs: &Arc<Codecs>, key: &str) -> Name {
        (Arc::as_ptr(live) as usize, Arc::as_ptr(codecs) as usize, key.to_owned())
    }

    /// Return the index of a shard, if it is kept.
    #[must_use]
    pub fn get(&self, live: &Arc<Live>, codecs: &Arc<Codecs>, key: &str) -> Option<Arc<Index>> {
        self.cache.get(&Self::name(live, codecs, key), &[0; 5]).map(|kept| kept.index)
    }

    /// Keep the index of a shard, if the server names its version.
    pub fn put(&self, live: &Arc<Live>, codecs: &Arc<Codecs>, key: &str, index: &Arc<Index>) {
        if !names_version(&index.meta) {
            return;
        }
        let nbytes = Self::nbytes_of(index.entries.len(), key.len());
        let kept = Kept { index: Arc::clone(index), _owners: (Arc::clone(live), Arc::clone(codecs)) };
        self.cache.put(Self::name(live, codecs, key), [0; 5], kept, nbytes);
    }
}

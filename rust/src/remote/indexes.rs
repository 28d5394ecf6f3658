//! Indexes of shards that a reader keeps, to fetch parts of the same shards again without asking for the index.
//!
//! A kept index is of one version of the shard, and parts are asked for in this version only. If the shard has changed, the
//! answer says so, and the index is fetched again. So only indexes of servers that name versions are kept.

use std::mem::size_of;
use std::sync::Arc;

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
pub struct Indexes(Cache<Name, Kept>);

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
        Self(Cache::new(limit))
    }

    /// How many bytes they take.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.0.nbytes()
    }

    fn name(live: &Arc<Live>, codecs: &Arc<Codecs>, key: &str) -> Name {
        (Arc::as_ptr(live) as usize, Arc::as_ptr(codecs) as usize, key.to_owned())
    }

    /// Return the index of a shard, if it is kept.
    #[must_use]
    pub fn get(&self, live: &Arc<Live>, codecs: &Arc<Codecs>, key: &str) -> Option<Arc<Index>> {
        self.0.get(&Self::name(live, codecs, key), &[0; 5]).map(|kept| kept.index)
    }

    /// Keep the index of a shard, if the server names its version.
    pub fn put(&self, live: &Arc<Live>, codecs: &Arc<Codecs>, key: &str, index: &Arc<Index>) {
        if !names_version(&index.meta) {
            return;
        }
        let nbytes = FRAME + key.len() + index.entries.len() * size_of::<Entry>();
        let kept = Kept { index: Arc::clone(index), _owners: (Arc::clone(live), Arc::clone(codecs)) };
        self.0.put(Self::name(live, codecs, key), [0; 5], kept, nbytes);
    }
}

//! Writing chunks: they are encoded and stored, as a whole, or changed in part on the condition that no other writer changes
//! them meanwhile; if one does, that is done again.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::chain::Chain;
use crate::error::{Error, Result};
use crate::remote::change::{Conditions, Pauses, Put, too_slow, unchanged};
use crate::remote::fetch::Place;
use crate::remote::job::{Target, Tools};

/// Bytes of a chunk that is sent by one request; obstore sends larger ones in parts.
const LARGEST_SENT: usize = 32 * 1024 * 1024;

/// Store a chunk, or a part of one; delete one that need not be stored.
pub(super) async fn write(tools: &Tools, target: &Target<'_>) -> Result<()> {
    let Target { job, piece, .. } = target;
    let chain = job.order.array.codecs.chain_of(&piece.coords)?;
    let key = job.key(&piece.coords);
    let place = job.place(&key)?;
    if target.is_part(chain) {
        let conditions = job.order.conditions.ok_or_else(|| Error::refused("only a part"))?;
        return Changing { tools, target, chain, place, conditions }.run(&key).await;
    }
    if chain.layout.nbytes > LARGEST_SENT {
        return Err(Error::refused("more than one request sends"));
    }
    let data = tools.encoded(chain, |scratch| {
        let data = chain.encode(&piece.selection, &job.order.memory, scratch)?;
        Ok(data.map(Bytes::copy_from_slice))
    });
    let data = data.await?;
    let _permit = job.live.gate.pass().await;
    match data {
        Some(data) => place.put(data).await,
        None => place.delete().await,
    }
}

/// A part of a chunk that is being changed.
struct Changing<'a> {
    tools: &'a Tools,
    target: &'a Target<'a>,
    chain: &'a Chain,
    place: Place<'a>,
    conditions: Conditions,
}

impl Changing<'_> {
    /// Change it, again and again until no other writer is faster.
    async fn run(&self, key: &str) -> Result<()> {
        if self.chain.is_made_of_shards() && self.chain.as_shard().is_none() {
            return Err(Error::refused("a compressed shard is changed as a whole"));
        }
        let mut pauses: Option<Pauses> = None;
        loop {
            let turn = self.place.live.turns.take(key).await;
            let is_stopped =
                self.tools.is_stopped.load(Ordering::Relaxed) || self.target.job.is_stopped.load(Ordering::SeqCst);
            if is_stopped || self.once().await? == Put::Stored {
                return Ok(());
            }
            drop(turn);
            if pauses.as_ref().is_some_and(|pauses| pauses.are_over(self.conditions.patience)) {
                return Err(too_slow());
            }
            pauses.get_or_insert_default().pause().await?;
        }
    }

    async fn once(&self) -> Result<Put> {
        let Self { chain, place, target: Target { job, piece, .. }, .. } = self;
        let (old, meta) = place.current().await?.unzip();
        let condition =
            unchanged(meta.as_ref()).ok_or_else(|| Error::refused("a server that tells no versions apart"))?;
        let data = self.tools.encoded(chain, |scratch| {
            let changed = chain.update(old.as_deref(), &piece.selection, &job.order.memory, scratch)?;
            if let Some(data) = changed {
                return Ok(Some(Bytes::copy_from_slice(data)));
            }
            if old.is_none() {
                return Ok(None);
            }
            // Another writer may be changing another part: it must find the value that it has read, or notice the change.
            chain.encode_empty(scratch).map(|data| Some(Bytes::copy_from_slice(data)))
        });
        match data.await? {
            Some(data) => place.put_if(data, &condition, self.conditions.are_doubtful).await,
            None => Ok(Put::Stored),
        }
    }
}

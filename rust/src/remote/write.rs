//! Writing chunks: they are encoded and stored as a whole, or changed in part.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::remote::job::Target;
use crate::remote::merge;

/// Bytes of a chunk that is sent by one request; obstore sends larger ones in parts.
const LARGEST_SENT: usize = 32 * 1024 * 1024;

/// Store a chunk, or a part of one; delete one that need not be stored.
pub(super) async fn write(target: &Target<'_>) -> Result<()> {
    let Target { job, piece, .. } = target;
    let chain = job.order.array.codecs.chain_of(&piece.coords)?;
    if target.is_part(chain) {
        let conditions = job.order.conditions.ok_or_else(|| Error::refused("only a part"))?;
        if chain.is_made_of_shards() && chain.as_shard().is_none() {
            return Err(Error::refused("a compressed shard is changed as a whole"));
        }
        return merge::change(job, piece.clone(), conditions).await;
    }
    if chain.layout.nbytes > LARGEST_SENT {
        return Err(Error::refused("more than one request sends"));
    }
    let place = job.place(&job.key(&piece.coords))?;
    let data = job.tools.encoded(chain, |scratch| {
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

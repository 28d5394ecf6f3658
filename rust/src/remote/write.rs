//! Writing chunks: they are encoded and stored as a whole, or changed in part.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::remote::job::Target;
use crate::remote::merge;
use crate::remote::upload::LARGEST_WHOLE;

/// Store a chunk, or a part of one; delete one that need not be stored.
pub(super) async fn write(target: &Target<'_>) -> Result<()> {
    let Target { job, piece, .. } = target;
    let chain = job.order.array.chain_of(&piece.coords)?;
    if target.is_part(chain) {
        let conditions = job.order.conditions.ok_or_else(|| Error::refused("only a part"))?;
        return merge::change(job, piece.clone(), conditions).await;
    }
    let place = job.place(&job.key(&piece.coords))?;
    let data = job.tools.encoded(chain, |scratch| {
        let data = chain.encode(&piece.selection, &job.order.memory, scratch)?;
        Ok(data.map(Bytes::copy_from_slice))
    });
    match data.await? {
        Some(data) if data.len() > LARGEST_WHOLE => place.put_in_parts(&data).await,
        Some(data) => place.put(data).await,
        None => place.delete().await,
    }
}

//! Requests for values and for parts of values.

use std::ops::Range;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStoreExt as _, PutOptions};

use crate::chain::SMALL;
use crate::error::{Error, Result};
use crate::remote::answers::{Part, Parts, are_same, strong};
use crate::remote::client::Live;

/// Parts with at most this number of bytes between them are fetched by one request, because an additional request would take
/// longer than these bytes.
pub const GAP: u64 = 128 * 1024;
/// Largest number of bytes that one request for several parts fetches.
const LARGEST: u64 = 8 * 1024 * 1024;
/// Number of bytes at the beginning of a compressed chunk that are fetched first, to find out which other parts are needed.
/// So few bytes hardly make a request slower, and small chunks are complete with them.
pub const HEAD: usize = SMALL;
/// Compressed chunks with fewer stored bytes are fetched by one request. This takes less time than two requests of which the
/// second can be sent only after the answer to the first.
pub const LEAST_IN_PARTS: usize = 1024 * 1024;

/// A value of a store: its place, and how large it may be.
pub struct Place<'a> {
    /// The store.
    pub live: &'a Live,
    /// The path of the value in the store.
    pub path: Path,
    /// Values with more bytes are not fetched.
    pub most: u64,
}

impl Place<'_> {
    pub(super) fn check(&self) -> Result<()> {
        if self.live.is_declined.load(Ordering::Relaxed) {
            return Err(Error::refused("a server that only obstore can speak to"));
        }
        Ok(())
    }

    /// Send a request; None if there is no such key.
    pub(super) async fn ask(&self, range: Option<GetRange>, if_match: Option<String>) -> Result<Option<GetResult>> {
        self.check()?;
        let is_part = range.is_some();
        if is_part && self.live.ignores_ranges.load(Ordering::Relaxed) {
            return Err(Error::refused("a server that ignores ranges"));
        }
        let options = GetOptions { range, if_match, ..GetOptions::default() };
        match self.live.store.get_opts(&self.path, options).await {
            Ok(result) => Ok(Some(result)),
            Err(error) => {
                if is_part && ignores_ranges(&error) {
                    self.live.ignores_ranges.store(true, Ordering::Relaxed);
                }
                self.live.meaning(&error).map_or(Ok(None), Err)
            }
        }
    }

    /// Receive the bytes of an answer.
    pub(super) async fn receive(&self, result: GetResult) -> Result<Part> {
        let (meta, announced) = (result.meta.clone(), result.range.end.saturating_sub(result.range.start));
        if announced > self.most {
            return Err(Error::refused("larger than a value may be"));
        }
        match body(result, announced).await {
            Ok(Some(bytes)) => Ok((bytes, meta)),
            Ok(None) => Err(Error::refused("an answer of another length than announced")),
            Err(error) => Err(self.live.meaning(&error).unwrap_or_else(|| Error::refused("gone"))),
        }
    }

    /// Fetch the value; return None if there is none.
    ///
    /// # Errors
    /// If the store fails, or the value is too large or not of the size `expected`.
    pub async fn whole(&self, expected: Option<usize>) -> Result<Option<Bytes>> {
        let Some(result) = self.ask(None, None).await? else { return Ok(None) };
        if expected.is_some_and(|expected| result.meta.size != expected as u64) {
            return Err(Error::broken("the chunk has the wrong size"));
        }
        Ok(Some(self.receive(result).await?.0))
    }

    /// Make `data` the value, whatever it was before.
    ///
    /// # Errors
    /// If the store fails. Then the value may be either.
    pub async fn put(&self, data: Bytes) -> Result<()> {
        self.check()?;
        let _permit = self.live.gate.pass().await;
        match self.live.store.put_opts(&self.path, data.into(), PutOptions::default()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.live.meaning(&error).unwrap_or_else(|| Error::refused("there is no place for it"))),
        }
    }

    /// Remove the value; removing a missing one is not an error.
    ///
    /// # Errors
    /// If the store fails. Then the value may be there still.
    pub async fn delete(&self) -> Result<()> {
        self.check()?;
        let _permit = self.live.gate.pass().await;
        match self.live.store.delete(&self.path).await {
            Ok(()) => Ok(()),
            Err(error) => self.live.meaning(&error).map_or(Ok(()), Err),
        }
    }

    async fn range(&self, range: GetRange, if_match: Option<String>) -> Result<Option<Part>> {
        let _permit = self.live.gate.pass().await;
        match self.ask(Some(range), if_match).await? {
            None => Ok(None),
            Some(result) => self.receive(result).await.map(Some),
        }
    }

    /// Fetch the value, with what the server said about it; return None if there is none.
    ///
    /// # Errors
    /// If the store fails, or the value is too large.
    pub async fn all(&self) -> Result<Option<Part>> {
        let _permit = self.live.gate.pass().await;
        let Some(result) = self.ask(None, None).await? else { return Ok(None) };
        self.receive(result).await.map(Some)
    }

    /// Fetch the first or the last `size` bytes of a value; return None if there is no value.
    ///
    /// # Errors
    /// If the store fails, or the answer is not what was asked for.
    pub async fn edge(&self, size: usize, is_end: bool) -> Result<Option<Part>> {
        let size = size as u64;
        if !is_end {
            return self.range(GetRange::Bounded(0..size), None).await;
        }
        if self.live.knows_suffixes {
            return self.range(GetRange::Suffix(size), None).await;
        }
        let options = GetOptions { head: true, ..GetOptions::default() };
        let permit = self.live.gate.pass().await;
        let meta = match self.live.store.get_opts(&self.path, options).await {
            Ok(result) => result.meta,
            Err(error) => return self.live.meaning(&error).map_or(Ok(None), Err),
        };
        drop(permit);
        if meta.size < size {
            return Err(Error::broken("the shard is shorter than its index"));
        }
        self.range(GetRange::Bounded(meta.size - size..meta.size), strong(&meta)).await
    }

    /// Fetch parts of one version of a value: that of `pin`, if given. Return None if there is no value.
    ///
    /// # Errors
    /// If the store fails, the answer is not what was asked for, or the value has changed.
    pub async fn parts(&self, wanted: Vec<Range<u64>>, pin: Option<ObjectMeta>) -> Result<Option<Parts>> {
        Ok(self.parts_of(wanted, pin).await?.map(|(parts, _)| parts))
    }

    /// The same, with what the server said about the value; None of that if nothing was asked for.
    ///
    /// # Errors
    /// The same.
    pub(super) async fn parts_of(
        &self,
        wanted: Vec<Range<u64>>,
        pin: Option<ObjectMeta>,
    ) -> Result<Option<(Parts, Option<ObjectMeta>)>> {
        let if_match = pin.as_ref().and_then(strong);
        let requests = together(wanted).into_iter().map(|range| {
            let if_match = if_match.clone();
            async move { (range.start, self.range(GetRange::Bounded(range), if_match).await) }
        });
        let mut parts = Parts { size: pin.as_ref().map_or(0, |pin| pin.size), parts: Vec::new() };
        let (mut pin, mut said) = (pin, None);
        for (start, part) in futures_util::future::join_all(requests).await {
            let Some((bytes, meta)) = part? else {
                return if pin.is_none() { Ok(None) } else { Err(Error::refused("deleted meanwhile")) };
            };
            if pin.as_ref().is_some_and(|pin| !are_same(pin, &meta)) {
                return Err(Error::refused("changed meanwhile"));
            }
            parts.size = meta.size;
            parts.parts.push((start, bytes));
            said = Some(meta.clone());
            pin = Some(meta);
        }
        Ok(Some((parts, said)))
    }

    /// Fetch those of the `wanted` ranges that are not in `fetched` yet, and return all together. `pin` is the version of the
    /// value that `fetched` is from.
    ///
    /// # Errors
    /// Those of [`Place::parts`], and if the value has been deleted.
    pub async fn more(&self, mut fetched: Parts, wanted: Vec<Range<u64>>, pin: &ObjectMeta) -> Result<Parts> {
        let missing: Vec<_> = wanted.into_iter().filter_map(|range| fetched.missing(&range)).collect();
        let more = self.parts(missing, Some(pin.clone())).await?.ok_or_else(|| Error::refused("deleted meanwhile"))?;
        fetched.parts.extend(more.parts);
        Ok(fetched)
    }
}

/// Return the bytes of an answer; None if there are more or fewer than the server has announced. Additional bytes are not
/// collected.
///
/// # Errors
/// If the server breaks off.
pub async fn body(result: GetResult, announced: u64) -> object_store::Result<Option<Bytes>> {
    let mut stream = result.into_stream();
    let mut bytes = Bytes::new();
    let mut collected = Vec::new();
    while let Some(frame) = stream.next().await {
        let frame = frame?;
        if (bytes.len() + collected.len() + frame.len()) as u64 > announced {
            return Ok(None);
        }
        if bytes.is_empty() && collected.is_empty() {
            bytes = frame;
            continue;
        }
        if collected.is_empty() {
            collected.reserve_exact(usize::try_from(announced).unwrap_or(0));
            collected.extend_from_slice(&std::mem::take(&mut bytes));
        }
        collected.extend_from_slice(&frame);
    }
    let bytes = if collected.is_empty() { bytes } else { collected.into() };
    Ok((bytes.len() as u64 == announced).then_some(bytes))
}

fn ignores_ranges(error: &object_store::Error) -> bool {
    let text = error.to_string();
    text.contains("Range request not supported") || text.contains("non-partial response")
}

/// Return the ranges to ask for so that all given ranges are fetched. Ranges that are near each other become one.
fn together(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    let mut groups: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match groups.last_mut() {
            Some(last)
                if range.start < last.end
                    || (range.start <= last.end.saturating_add(GAP)
                        && range.end.max(last.end) - last.start <= LARGEST) =>
            {
                last.end = last.end.max(range.end);
            }
            _ => groups.push(range),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_parts_are_asked_for_together() {
        assert_eq!(together(vec![300_000..300_010, 0..10, 20..30, 5..5, 25..28]), [0..30, 300_000..300_010]);
        assert_eq!(together(vec![0..LARGEST, LARGEST..LARGEST + 1]), [0..LARGEST, LARGEST..LARGEST + 1]);
        assert_eq!(together(vec![0..LARGEST, 5..LARGEST + 1, 40 * LARGEST..41 * LARGEST]).len(), 2);
    }
}

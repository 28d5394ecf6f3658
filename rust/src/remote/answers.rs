//! Answers of servers: values and parts of values, with their versions, and what readers that ask at once share of them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectMeta;

use crate::chain::shard::Entry;
use crate::error::Result;
use crate::remote::failures::Reason;
use crate::store::Value;

/// Bytes of a value, and what the server said about the value.
pub type Part = (Bytes, ObjectMeta);

/// Return the `ETag`, if it is strong: two versions with different bytes never share it.
#[must_use]
pub fn strong(meta: &ObjectMeta) -> Option<String> {
    meta.e_tag.clone().filter(|tag| is_strong(tag))
}

/// Whether an `ETag` is strong.
#[must_use]
pub fn is_strong(tag: &str) -> bool {
    !tag.starts_with("W/")
}

/// Whether the server has sent a strong `ETag` or a version, which two versions with different bytes never share.
#[must_use]
pub fn names_version(meta: &ObjectMeta) -> bool {
    strong(meta).is_some() || meta.version.is_some()
}

/// Whether both describe the same version. If there is no strong `ETag` and no version, size and date must be the same too.
#[must_use]
pub fn are_same(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.e_tag == other.e_tag
        && one.version == other.version
        && (names_version(one) || (one.size == other.size && one.last_modified == other.last_modified))
}

/// Parts of a value that have been fetched. Other bytes are read as zeros; [`Value::holds`] says which have been fetched.
pub struct Parts {
    /// The size of the value.
    pub size: u64,
    /// Where each part begins, and its bytes.
    pub parts: Vec<(u64, Bytes)>,
}

impl Parts {
    /// Make parts of the beginning of a value.
    #[must_use]
    pub fn of_head((bytes, meta): &Part) -> Self {
        Self { size: meta.size, parts: vec![(0, bytes.clone())] }
    }

    /// Return the position of the first byte at or after `start` that has not been fetched.
    fn gap(&self, mut start: u64) -> u64 {
        let end = |(at, bytes): &(u64, Bytes)| at + bytes.len() as u64;
        while let Some(part) = self.parts.iter().find(|part| part.0 <= start && start < end(part)) {
            start = end(part);
        }
        start
    }

    /// Return the rest of a range, from the first byte that has not been fetched; None if all have been fetched.
    #[must_use]
    pub fn missing(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let start = self.gap(range.start);
        (start < range.end).then_some(start..range.end)
    }
}

impl Value for Parts {
    fn size(&self) -> Result<u64> {
        Ok(self.size)
    }

    fn holds(&self, start: u64, size: usize) -> bool {
        let end = self.size.min(start.saturating_add(size as u64));
        self.missing(&(start..end)).is_none()
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize> {
        let end = self.size.min(start.saturating_add(out.len() as u64));
        let found = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
        out[..found].fill(0);
        for (at, bytes) in &self.parts {
            let (from, to) = (start.max(*at), end.min(at + bytes.len() as u64));
            if from < to {
                let place = |place: u64, base: u64| usize::try_from(place - base).unwrap_or(0);
                out[place(from, start)..place(to, start)].copy_from_slice(&bytes[place(from, *at)..place(to, *at)]);
            }
        }
        Ok(found)
    }
}

// -- what readers share -------------------------------------------------------------------

/// The answer to a request for a chunk, which readers share; None: there is no chunk.
pub type Chunk = Result<Option<Stored>, Reason>;
/// The answer to a request for the index of a shard; None: there is no shard.
pub type Indexed = Result<Option<Arc<Index>>, Reason>;
/// The answer to a request for the beginning of a chunk; None: there is no chunk.
pub type Headed = Result<Option<Part>, Reason>;
/// The answer to a request for all of a shard; None: there is no shard.
pub type Sharded = Result<Option<(Bytes, Arc<Index>)>, Reason>;

/// A chunk, encoded or decoded.
#[derive(Clone, Debug)]
pub enum Stored {
    /// The stored bytes.
    Raw(Bytes),
    /// The bytes of the elements.
    Decoded(Arc<[u8]>),
}

/// The index of one version of a shard.
#[derive(Debug)]
pub struct Index {
    /// Where the chunks of the shard are.
    pub entries: Vec<Entry>,
    /// What the server said about the shard.
    pub meta: ObjectMeta,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_where_they_lie() {
        let parts = Parts { size: 12, parts: vec![(2, Bytes::from_static(b"ab")), (6, Bytes::from_static(b"cdef"))] };
        let mut out = [9; 8];
        assert_eq!(parts.read_at(3, &mut out).unwrap(), 8);
        assert_eq!(&out, b"b\0\0cdef\0");
        assert_eq!(parts.read_at(10, &mut out).unwrap(), 2);
    }

    #[test]
    fn parts_that_were_not_fetched_are_known() {
        let part = |at, bytes| (at, Bytes::from_static(bytes));
        let parts = Parts { size: 12, parts: vec![part(6, b"cdef"), part(2, b"abab"), part(11, b"g")] };
        let held = |start, size| parts.holds(start, size);
        assert_eq!([held(2, 8), held(3, 1), held(5, 2), held(0, 0), held(11, 9), held(12, 1)], [true; 6]);
        assert_eq!([held(1, 2), held(2, 9), held(0, 1), held(10, 2), held(0, 12)], [false; 5]);
        assert_eq!(parts.missing(&(4..12)), Some(10..12));
        assert_eq!(parts.missing(&(0..4)), Some(0..4));
        assert_eq!(parts.missing(&(4..10)), None);
    }
}

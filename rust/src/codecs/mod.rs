//! Codecs. No codec depends on another codec of a chunk.
//!
//! Decoding never produces more bytes than the caller allows. A codec refuses (`Error::refused`) whatever it cannot read
//! exactly as the engine in Python does: streams of an unusual form are rare, and that engine reads them all.

use std::ops::Range;

use crate::error::{Error, Result};

pub mod astype;
pub mod bind;
pub mod bitround;
pub mod blosc;
pub mod checksums;
pub mod deflate;
pub mod delta;
pub mod elements;
pub mod fixedscaleoffset;
pub mod lz4;
pub mod packbits;
pub mod predictor;
pub mod quantize;
mod room;
pub mod shuffle;
#[cfg(test)]
mod testing;
pub mod zstd;

/// Encoded bytes, of which only the needed ones are fetched.
pub struct Encoded<'a> {
    /// How many encoded bytes there are.
    pub length: usize,
    /// The bytes themselves, if they are in memory.
    pub bytes: Option<&'a [u8]>,
    /// Fills a buffer with the bytes that begin at a position.
    pub fetch: &'a dyn Fn(usize, &mut [u8]) -> Result<()>,
}

impl Encoded<'_> {
    /// Fill `out` with the bytes that begin at `start`.
    ///
    /// # Errors
    /// If there are fewer bytes, or they cannot be fetched.
    pub fn read(&self, start: usize, out: &mut [u8]) -> Result<()> {
        if start.checked_add(out.len()).is_none_or(|end| end > self.length) {
            return Err(Error::broken("the value is too short"));
        }
        (self.fetch)(start, out)
    }

    /// Return a range of the bytes: where they are in memory, or fetched into `buffer`, which becomes longer if necessary.
    ///
    /// # Errors
    /// As [`Encoded::read`].
    pub fn view<'b>(&'b self, range: Range<usize>, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        if let Some(bytes) = self.bytes {
            return bytes.get(range).ok_or_else(|| Error::broken("the value is too short"));
        }
        if buffer.len() < range.len() {
            *buffer = vec![0; range.len()];
        }
        let out = &mut buffer[..range.len()];
        self.read(range.start, out)?;
        Ok(out)
    }
}

/// A codec that encodes bytes as bytes.
pub trait Codec: Send + Sync {
    /// Put the encoded form of `data` into `out`, which is emptied first.
    ///
    /// # Errors
    /// If these bytes cannot be encoded.
    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Fill `out`, which has exactly the decoded size.
    ///
    /// # Errors
    /// If `data` is broken, decodes to more or fewer bytes, or has a form that is not known here. Then `out` may hold
    /// anything, but nothing was written beyond it.
    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()>;

    /// Put the decoded form of `data`, of at most `limit` bytes, into `out`, which is emptied first.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()>;

    /// Number of encoded bytes, if it depends only on the number of decoded bytes.
    fn encoded_size(&self, _decoded: usize) -> Option<usize> {
        None
    }

    /// Return the decoded bytes if they are a part of `data`, as for a checksum, which is verified first.
    fn decode_view<'a>(&self, _data: &'a [u8]) -> Option<Result<&'a [u8]>> {
        None
    }

    /// Fill `out` with the decoded bytes that begin at `start`, if that costs less than decoding all `size` bytes; return
    /// None otherwise. Several threads may decode several parts at once.
    fn decode_part(&self, _data: &[u8], _size: usize, _start: usize, _out: &mut [u8]) -> Option<Result<()>> {
        None
    }

    /// Whether [`Codec::ranges_of`] and [`Codec::fetch_runs`] may need only a part of the encoded bytes.
    fn fetches_runs(&self) -> bool {
        false
    }

    /// Return the ranges of encoded bytes that [`Codec::fetch_runs`] reads for the same runs, besides those that this
    /// method reads; None if all encoded bytes should be decoded. The ranges are in no order, and may overlap.
    ///
    /// # Errors
    /// If the bytes that were read are broken, or of a form that can only be decoded as a whole.
    fn ranges_of(
        &self,
        _encoded: &Encoded<'_>,
        _size: usize,
        _runs: &[Range<usize>],
    ) -> Result<Option<Vec<Range<usize>>>> {
        Ok(None)
    }

    /// Decode the bytes within `runs`, and read only the encoded bytes that hold them.
    ///
    /// `runs` are ranges of the decoded bytes, in order; there are `size` decoded bytes in all. `out` begins with the decoded
    /// byte `start`, and all runs are within it. The other bytes of `out` may hold anything afterwards. Return false, with
    /// `out` unchanged, if all encoded bytes should be decoded.
    ///
    /// # Errors
    /// If the bytes that were read are broken, or of a form that can only be decoded as a whole.
    fn fetch_runs(
        &self,
        _encoded: &Encoded<'_>,
        _size: usize,
        _runs: &[Range<usize>],
        _start: usize,
        _out: &mut [u8],
    ) -> Result<bool> {
        Ok(false)
    }

    /// The least number of bytes that one call of [`Codec::decode_part`] should decode; None if it cannot decode parts.
    fn part_size(&self, _data: &[u8]) -> Option<usize> {
        None
    }
}

/// A codec that encodes the elements of a chunk, in the order in which they are stored, as other elements.
pub trait Filter: Send + Sync {
    /// Bytes of all elements, encoded.
    fn encoded_size(&self) -> usize;

    /// Fill `out` (as long as the decoded elements) from `data` (as long as the encoded ones).
    ///
    /// # Errors
    /// If `data` is broken.
    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()>;

    /// Fill `out` (as long as the encoded elements) from `data` (as long as the decoded ones).
    ///
    /// # Errors
    /// If these elements cannot be encoded, or NumPy would warn about encoding them.
    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()>;
}

//! Codecs, each knowing only itself.
//!
//! Decoding never makes more bytes than it is allowed to, and whatever a codec cannot read exactly as the
//! engine in Python does, it refuses (`Error::refused`): streams of an unusual form are rare, and that engine
//! reads them all.

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
pub mod numbers;
pub mod packbits;
pub mod quantize;
mod room;
pub mod shuffle;
#[cfg(test)]
mod testing;
pub mod zstd;

/// Encoded bytes that are fetched as they are needed.
pub struct Encoded<'a> {
    /// How many there are.
    pub length: usize,
    /// Fills a buffer from somewhere on.
    pub fetch: &'a dyn Fn(usize, &mut [u8]) -> Result<()>,
}

impl Encoded<'_> {
    /// Fill `out` with the bytes from `start` on.
    ///
    /// # Errors
    /// If there are fewer, or they cannot be had.
    pub fn read(&self, start: usize, out: &mut [u8]) -> Result<()> {
        if start.checked_add(out.len()).is_none_or(|end| end > self.length) {
            return Err(Error::broken("the value is too short"));
        }
        (self.fetch)(start, out)
    }
}

/// Bytes become other bytes.
pub trait Codec: Send + Sync {
    /// Put the encoded form of `data` into `out`, which is emptied first.
    ///
    /// # Errors
    /// If these bytes cannot be encoded.
    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Fill `out`, which has exactly the decoded size.
    ///
    /// # Errors
    /// If `data` is broken, or decodes to more or fewer bytes (then nothing beyond `out` was decoded), or
    /// has a form that is not known here. `out` may then hold anything.
    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()>;

    /// Put the decoded form of `data`, of at most `limit` bytes, into `out`, which is emptied first.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()>;

    /// The size of the encoded form, if it depends only on the number of `decoded` bytes.
    fn encoded_size(&self, _decoded: usize) -> Option<usize> {
        None
    }

    /// Return the decoded bytes where they are a part of `data`, as with a checksum that was found right.
    fn decode_view<'a>(&self, _data: &'a [u8]) -> Option<Result<&'a [u8]>> {
        None
    }

    /// Fill `out` with the decoded bytes from `start` on, of which there are `size` in all, if that costs
    /// less than decoding them all. May be called for several parts by several threads.
    fn decode_part(&self, _data: &[u8], _size: usize, _start: usize, _out: &mut [u8]) -> Option<Result<()>> {
        None
    }

    /// Whether [`Codec::fetch_runs`] may fetch less than all.
    fn fetches_runs(&self) -> bool {
        false
    }

    /// Fill `out`, which begins with the first of `runs` and ends with the last, with the decoded bytes within them, of
    /// which there are `size` in all; fetch only what it takes. What is between runs may be filled with
    /// anything. Return false, with `out` left alone, if all should be fetched.
    ///
    /// # Errors
    /// If what was fetched is broken, or of a form that can be decoded as a whole only.
    fn fetch_runs(
        &self,
        _encoded: &Encoded<'_>,
        _size: usize,
        _runs: &[Range<usize>],
        _out: &mut [u8],
    ) -> Result<bool> {
        Ok(false)
    }

    /// How many bytes should be decoded at least by one call of [`Codec::decode_part`], if possible.
    fn part_size(&self, _data: &[u8]) -> Option<usize> {
        None
    }
}

/// The elements of a chunk, in the order they are stored, become other elements.
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
    /// If these elements cannot be encoded, or only with a warning of NumPy's.
    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()>;
}

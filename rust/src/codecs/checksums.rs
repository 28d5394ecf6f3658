//! Checksums: four bytes, little-endian, before or behind the data.

use super::{Codec, deflate, room};
use crate::error::{Error, Result};

const WIDTH: usize = 4;

/// Which checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-32, as gzip has it.
    Crc32,
    /// Adler-32, as zlib has it.
    Adler32,
    /// Fletcher-32 over big-endian numbers of 16 bits, as HDF5 has it.
    Fletcher32,
}

/// A checksum beside the data.
#[derive(Clone, Copy, Debug)]
pub struct Checksum {
    kind: Kind,
    is_first: bool,
}

impl Checksum {
    /// A checksum before the data, or behind it.
    #[must_use]
    pub fn new(kind: Kind, is_first: bool) -> Self {
        Self { kind, is_first }
    }

    /// Return the data, whose checksum was found right.
    fn verified<'a>(self, data: &'a [u8]) -> Result<&'a [u8]> {
        let parts = if self.is_first {
            data.split_first_chunk::<WIDTH>()
        } else {
            data.split_last_chunk::<WIDTH>().map(|(rest, stored)| (stored, rest))
        };
        let (stored, rest) = parts.ok_or_else(|| Error::broken("too short for a checksum"))?;
        if u32::from_le_bytes(*stored) != self.kind.of(rest) {
            return Err(Error::broken("the checksum differs"));
        }
        Ok(rest)
    }
}

impl Codec for Checksum {
    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        room::clear(out, data.len().saturating_add(WIDTH))?;
        let stored = self.kind.of(data).to_le_bytes();
        let (first, last) = if self.is_first { (&stored[..], data) } else { (data, &stored[..]) };
        out.extend_from_slice(first);
        out.extend_from_slice(last);
        Ok(())
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len().checked_sub(WIDTH) != Some(out.len()) {
            return Err(Error::broken(format!("{} bytes instead of {} and a checksum", data.len(), out.len())));
        }
        out.copy_from_slice(self.verified(data)?);
        Ok(())
    }

    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        if data.len().saturating_sub(WIDTH) > limit {
            return Err(Error::broken(format!("{} bytes instead of {limit} and a checksum", data.len())));
        }
        let rest = self.verified(data)?;
        room::clear(out, rest.len())?;
        out.extend_from_slice(rest);
        Ok(())
    }

    fn decode_view<'a>(&self, data: &'a [u8]) -> Option<Result<&'a [u8]>> {
        Some(self.verified(data))
    }
}

impl Kind {
    /// Return the checksum of `data`.
    #[must_use]
    pub fn of(self, data: &[u8]) -> u32 {
        match self {
            Self::Crc32c => crc32c::crc32c(data),
            Self::Crc32 => deflate::crc32(data),
            Self::Adler32 => deflate::adler32(data),
            Self::Fletcher32 => fletcher32(data),
        }
    }
}

/// The sum of all words, and the sum of that sum after each of them, both modulo 65535, where 65535 stands for 0
/// unless all words are 0. HDF5 adds 16 bits at a time with end-around carry, which comes to the same.
fn fletcher32(data: &[u8]) -> u32 {
    // So many words that their weighted sum fits into 32 bits: processors then add many at once.
    const WORDS: u32 = 256;
    let (mut sum, mut sum_of_sums) = (0_u64, 0_u64);
    for group in data.chunks(2 * WORDS as usize) {
        let words = group.chunks_exact(2);
        let last = words.remainder();
        let mut count = u32::try_from(words.len()).unwrap_or(WORDS);
        let (mut plain, mut weighted) = (0_u32, 0_u32);
        for (weight, word) in (0..count).rev().zip(words) {
            let word = u32::from(u16::from_be_bytes([word[0], word[1]]));
            plain += word;
            weighted += weight * word;
        }
        weighted += plain;
        if let [last] = last {
            count += 1;
            weighted += plain;
            plain += u32::from(*last) << 8;
            weighted += u32::from(*last) << 8;
        }
        sum_of_sums = reduced(sum_of_sums + u64::from(count) * sum + u64::from(weighted));
        sum = reduced(sum + u64::from(plain));
    }
    u32::from(reduced_to_16_bits(sum_of_sums)) << 16 | u32::from(reduced_to_16_bits(sum))
}

fn reduced(sum: u64) -> u64 {
    if sum == 0 { 0 } else { (sum - 1) % 65535 + 1 }
}

fn reduced_to_16_bits(sum: u64) -> u16 {
    u16::try_from(reduced(sum)).unwrap_or_default()
}

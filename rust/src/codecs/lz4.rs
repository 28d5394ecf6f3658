//! LZ4: the decoded size as a little-endian number of 32 bits, then one raw block.
#![allow(unsafe_code)]

use std::ffi::c_int;

use lz4_sys::{LZ4_compress_fast, LZ4_compressBound, LZ4_decompress_safe};

use super::{Codec, room};
use crate::error::{Error, Result};

const HEADER: usize = 4;
/// What the library takes at most, `LZ4_MAX_INPUT_SIZE`.
const LARGEST: usize = 0x7e00_0000;
/// Maximum number of bytes that one byte of a block decodes to.
const HIGHEST_RATIO: usize = 255;

/// One LZ4 block behind its size, as numcodecs writes it.
#[derive(Clone, Copy, Debug)]
pub struct Lz4 {
    acceleration: i32,
}

impl Lz4 {
    /// Compress with this acceleration; values below 1 mean 1.
    #[must_use]
    pub fn new(acceleration: i32) -> Self {
        Self { acceleration }
    }
}

impl Codec for Lz4 {
    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let too_many = || Error::refused(format!("{} bytes for LZ4", data.len()));
        if data.len() > LARGEST {
            return Err(too_many());
        }
        let size = c_int::try_from(data.len()).map_err(|_| too_many())?;
        // SAFETY: a function of a number.
        let bound = unsafe { LZ4_compressBound(size) };
        room::clear(out, HEADER + usize::try_from(bound).map_err(|_| too_many())?)?;
        out.extend_from_slice(&size.to_le_bytes());
        // SAFETY: the pointers are those of a slice of `size` bytes and of room for `bound` bytes.
        let written = unsafe {
            LZ4_compress_fast(
                data.as_ptr().cast(),
                out.spare_capacity_mut().as_mut_ptr().cast(),
                size,
                bound,
                self.acceleration,
            )
        };
        match usize::try_from(written) {
            Ok(written) if written > 0 => {
                // SAFETY: the library wrote so many bytes behind the size, into room that there was.
                unsafe { out.set_len(HEADER + written) };
                Ok(())
            }
            _ => Err(Error::refused("LZ4 needs more room than it says")),
        }
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let size = size_of(data)?;
        if size != out.len() {
            return Err(Error::broken(format!("{size} bytes instead of {}", out.len())));
        }
        decompress(&data[HEADER..], out)
    }

    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        let size = size_of(data)?;
        if size > limit {
            return Err(Error::broken(format!("{size} bytes instead of at most {limit}")));
        }
        room::clear(out, size)?;
        out.resize(size, 0);
        decompress(&data[HEADER..], out)
    }
}

/// Return the size before the block, if it is plausible.
fn size_of(data: &[u8]) -> Result<usize> {
    let (Some(&size), true) = (data.first_chunk::<HEADER>(), data.len() > HEADER) else {
        return Err(Error::broken("too short for LZ4"));
    };
    let size = u32::from_le_bytes(size) as usize;
    if size > HIGHEST_RATIO.saturating_mul(data.len()) || (size == 0 && data[HEADER..] != [0]) {
        return Err(Error::broken("the size before the LZ4 block cannot be true"));
    }
    Ok(size)
}

/// Fill `out` with what a block holds.
pub(super) fn decompress(block: &[u8], out: &mut [u8]) -> Result<()> {
    let (Ok(length), Ok(size)) = (c_int::try_from(block.len()), c_int::try_from(out.len())) else {
        return Err(Error::refused("too many bytes for LZ4"));
    };
    // SAFETY: pointers and lengths are those of slices.
    let written = unsafe { LZ4_decompress_safe(block.as_ptr().cast(), out.as_mut_ptr().cast(), length, size) };
    if written != size {
        return Err(Error::broken("the LZ4 block is broken"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_cut_off, check_round_trips, decoded, hex, numbers, text};
    use super::*;

    /// `numcodecs.lz4.compress(text, 1)`, numcodecs 0.16.6 with LZ4 1.10.0.
    const LZ4: &str = "73000000ff086f6d6e697a617272207265616473206368756e6b732c20170044506e6b732c20";
    /// `numcodecs.lz4.compress(b"", 1)`.
    const EMPTY: &str = "0000000000";

    #[test]
    fn decodes_what_others_wrote() {
        check(&Lz4::new(1), &hex(LZ4), &text());
        check(&Lz4::new(1), &hex(EMPTY), b"");
    }

    #[test]
    fn decodes_literals_as_the_format_says() {
        check(&Lz4::new(1), b"\x05\0\0\0\x50hello", b"hello");
    }

    #[test]
    fn blocks_that_are_cut_off_are_errors() {
        check_cut_off(&Lz4::new(1), &hex(LZ4), 115);
        check_cut_off(&Lz4::new(1), &hex(EMPTY), 0);
    }

    #[test]
    fn what_follows_a_block_is_an_error() {
        assert!(decoded(&Lz4::new(1), &[hex(LZ4), vec![0]].concat(), 115).is_err());
        assert!(decoded(&Lz4::new(1), &[0; 6], 0).is_err());
        assert!(decoded(&Lz4::new(1), &[0, 0, 0, 0, 1], 0).is_err());
    }

    #[test]
    fn a_size_that_no_block_can_hold_is_an_error() {
        let mut data = hex(LZ4);
        data[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Lz4::new(1).decode_any(&data, usize::MAX, &mut Vec::new()).is_err());
    }

    #[test]
    fn an_offset_before_the_start_is_an_error() {
        // one literal, then a match that begins two bytes before the end of it
        assert!(decoded(&Lz4::new(1), b"\x0a\0\0\0\x10a\x02\0\x50aaaaa", 10).is_err());
    }

    #[test]
    fn round_trips_with_all_accelerations() {
        for acceleration in [i32::MIN, -1, 0, 1, 2, 100, i32::MAX] {
            check_round_trips(&Lz4::new(acceleration));
        }
    }

    #[test]
    fn the_size_stands_first() {
        let mut encoded = Vec::new();
        Lz4::new(1).encode(&numbers(70_000), &mut encoded).expect("bytes");
        assert_eq!(encoded[..4], 70_000_u32.to_le_bytes());
    }
}

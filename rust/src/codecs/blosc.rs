//! Blosc: blocks that are shuffled and compressed, as C-Blosc 1 writes them.
//!
//! Encoding is the library's. Decoding takes the buffer apart here, where each length can be checked, so that blocks
//! can be decoded one by one, by several threads, and straight into the caller's memory; the streams within are
//! decoded by the other modules here, and of C-Blosc only its own compressor and the shuffles are called.
//!
//! A buffer is a header of 16 bytes, where each block starts, and for each block one stream, or one per byte of
//! the item size, behind its length. A stream as long as what it holds is not compressed; neither is anything in a
//! buffer that says it is a copy. Snappy, and Zstandard as it was before its format was settled, are refused.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

use blosc_src::blosc_compress_ctx;

use super::{Codec, deflate, lz4, room, zstd};
use crate::error::{Error, Result};

const HEADER: usize = 16;
const NUMBER: usize = 4;
const FORMAT: u8 = 2;
/// The format of the streams, whichever compressor made them.
const STREAM_FORMAT: u8 = 1;
const LARGEST: usize = i32::MAX as usize - HEADER;
/// What the library takes at most: two blocks and some numbers per byte of an item are one buffer of it.
const LARGEST_BLOCK: usize = (i32::MAX as usize - 255 * NUMBER) / 3;
const LARGEST_ITEM: usize = 255;

const SHUFFLED: u8 = 0x01;
const COPIED: u8 = 0x02;
const BITSHUFFLED: u8 = 0x04;
const RESERVED: u8 = 0x08;
const UNSPLIT: u8 = 0x10;

/// Blocks of few or large items are not split.
const MOST_SPLITS: usize = 16;
const SHORTEST_SPLIT: usize = 128;

/// It takes some bytes to be worth waking a thread.
const SMALLEST_PART: usize = 1 << 16;
/// What a thread keeps for the next block.
const LARGEST_KEPT: usize = 1 << 22;

unsafe extern "C" {
    // These are inside the library, and so are not in its header.
    fn blosclz_decompress(input: *const c_void, length: c_int, output: *mut c_void, maxout: c_int) -> c_int;
    fn blosc_internal_unshuffle(typesize: usize, size: usize, src: *const u8, dest: *mut u8);
    fn blosc_internal_bitunshuffle(typesize: usize, size: usize, src: *const u8, dest: *mut u8, tmp: *mut u8) -> c_int;
}

/// C-Blosc 1.
#[derive(Clone, Copy, Debug)]
pub struct Blosc {
    compressor: &'static CStr,
    clevel: u8,
    shuffle: u8,
    typesize: usize,
    blocksize: usize,
}

impl Blosc {
    /// Compress with one of blosclz, lz4, lz4hc, zlib and zstd, level 0 to 9, after shuffling nothing (0), bytes (1) or
    /// bits (2) of items of a size, in blocks of a size or (0) one that the library chooses.
    ///
    /// # Errors
    /// If the library has no such compressor, level or shuffle.
    pub fn new(cname: &str, clevel: u8, shuffle: u8, typesize: usize, blocksize: usize) -> Result<Self> {
        let compressor = match cname {
            "blosclz" => c"blosclz",
            "lz4" => c"lz4",
            "lz4hc" => c"lz4hc",
            "zlib" => c"zlib",
            "zstd" => c"zstd",
            _ => return Err(Error::refused(format!("no compressor {cname}"))),
        };
        if clevel > 9 || shuffle > 2 || !(1..=LARGEST_ITEM).contains(&typesize) || blocksize > LARGEST {
            return Err(Error::refused("a configuration that Blosc does not have"));
        }
        Ok(Self { compressor, clevel, shuffle, typesize, blocksize })
    }
}

impl Codec for Blosc {
    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if data.len() > LARGEST {
            return Err(Error::refused(format!("{} bytes for Blosc", data.len())));
        }
        let bound = data.len() + HEADER;
        room::clear(out, bound)?;
        // SAFETY: pointers and lengths are those of a slice, of the room behind an empty vector, and of a string with
        // a zero at its end; with one thread the library keeps its state on the stack.
        let written = unsafe {
            blosc_compress_ctx(
                c_int::from(self.clevel),
                c_int::from(self.shuffle),
                self.typesize,
                data.len(),
                data.as_ptr().cast(),
                out.as_mut_ptr().cast(),
                bound,
                self.compressor.as_ptr(),
                self.blocksize,
                1,
            )
        };
        match usize::try_from(written) {
            Ok(written) if (HEADER..=bound).contains(&written) => {
                // SAFETY: the library wrote so many bytes, into room that there was.
                unsafe { out.set_len(written) };
                Ok(())
            }
            _ => Err(Error::refused("Blosc cannot encode these bytes")),
        }
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let frame = Frame::of(data)?;
        frame.check_size(out.len())?;
        frame.decode(0, out)
    }

    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        let frame = Frame::of(data)?;
        if frame.size > limit {
            return Err(Error::broken(format!("{} bytes instead of at most {limit}", frame.size)));
        }
        room::clear(out, frame.size)?;
        out.resize(frame.size, 0);
        frame.decode(0, out)
    }

    fn decode_part(&self, data: &[u8], size: usize, start: usize, out: &mut [u8]) -> Option<Result<()>> {
        Some(Frame::of(data).and_then(|frame| {
            frame.check_size(size)?;
            if start.checked_add(out.len()).is_none_or(|stop| stop > size) {
                return Err(Error::refused("a part outside the whole"));
            }
            frame.decode(start, out)
        }))
    }

    fn part_size(&self, data: &[u8]) -> Option<usize> {
        let frame = Frame::of(data).ok().filter(|frame| frame.size > 0)?;
        Some(SMALLEST_PART.next_multiple_of(frame.block_size))
    }
}

/// What made the streams.
#[derive(Clone, Copy)]
enum Compressor {
    Blosclz,
    Lz4,
    Zlib,
    Zstd,
}

/// A buffer whose header is sound.
struct Frame<'a> {
    data: &'a [u8],
    compressor: Compressor,
    flags: u8,
    typesize: usize,
    size: usize,
    block_size: usize,
}

impl<'a> Frame<'a> {
    /// Check what the engine in Python and the library check in a header.
    fn of(data: &'a [u8]) -> Result<Self> {
        let Some((header, _)) = data.split_first_chunk::<HEADER>() else {
            return Err(Error::broken("too short for Blosc"));
        };
        let [format, stream_format, flags, typesize, numbers @ ..] = *header;
        let number = |at: usize| number_at(&numbers, at).unwrap_or_default();
        let (size, block_size, stored) = (number(0), number(NUMBER), number(2 * NUMBER));
        let is_broken = format != FORMAT
            || stored > data.len()
            || stored < HEADER
            || size > LARGEST
            || typesize == 0
            || (size > 0 && !(1..=size.min(LARGEST_BLOCK)).contains(&block_size))
            || flags & RESERVED != 0;
        if is_broken {
            return Err(Error::broken("the Blosc header is broken"));
        }
        let compressor = match (flags >> 5, stream_format) {
            (0, STREAM_FORMAT) => Compressor::Blosclz,
            (1, STREAM_FORMAT) => Compressor::Lz4,
            (3, STREAM_FORMAT) => Compressor::Zlib,
            (4, STREAM_FORMAT) => Compressor::Zstd,
            _ => return Err(Error::refused("a compressor inside Blosc that is not known here")),
        };
        let data = &data[..stored];
        let frame = Self { data, compressor, flags, typesize: usize::from(typesize), size, block_size };
        let is_whole = if frame.is_copied() {
            stored == HEADER + size
        } else {
            size == 0 || frame.size.div_ceil(block_size) <= (stored - HEADER) / NUMBER
        };
        if !is_whole {
            return Err(Error::broken("the Blosc buffer is cut off"));
        }
        Ok(frame)
    }

    fn check_size(&self, expected: usize) -> Result<()> {
        if self.size != expected {
            return Err(Error::broken(format!("{} bytes instead of {expected}", self.size)));
        }
        Ok(())
    }

    fn is_copied(&self) -> bool {
        self.flags & COPIED != 0
    }

    /// Return where the bytes of a block lie in the whole.
    fn range_of(&self, block: usize) -> Range<usize> {
        let start = block * self.block_size;
        start..(start + self.block_size).min(self.size)
    }

    /// Fill `out` with the bytes from `start` on, which must be there.
    fn decode(&self, start: usize, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        if self.is_copied() {
            out.copy_from_slice(&self.data[HEADER + start..][..out.len()]);
            return Ok(());
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let result = self.decode_blocks(start, out, scratch);
            scratch.forget_large();
            result
        })
    }

    fn decode_blocks(&self, start: usize, out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let Scratch { part, filtered, bits } = scratch;
        let stop = start + out.len();
        for block in start / self.block_size..stop.div_ceil(self.block_size) {
            let range = self.range_of(block);
            let (low, high) = (range.start.max(start), range.end.min(stop));
            let target = &mut out[low - start..high - start];
            if target.len() == range.len() {
                self.decode_block(block, target, filtered, bits)?;
            } else {
                let part = sized(part, range.len());
                self.decode_block(block, part, filtered, bits)?;
                target.copy_from_slice(&part[low - range.start..high - range.start]);
            }
        }
        Ok(())
    }

    /// Fill `out`, of its size, with a block.
    fn decode_block(&self, block: usize, out: &mut [u8], filtered: &mut Vec<u8>, bits: &mut Vec<u8>) -> Result<()> {
        let size = out.len();
        if self.flags & SHUFFLED != 0 && self.typesize > 1 {
            let filtered = sized(filtered, size);
            self.decompress_block(block, filtered)?;
            // SAFETY: both are of this size, and do not overlap; bytes behind the last item are copied.
            unsafe { blosc_internal_unshuffle(self.typesize, size, filtered.as_ptr(), out.as_mut_ptr()) };
            Ok(())
        } else if self.flags & BITSHUFFLED != 0 && size >= self.typesize {
            let (filtered, bits) = (sized(filtered, size), sized(bits, size));
            self.decompress_block(block, filtered)?;
            // SAFETY: all three are of this size, and do not overlap; bytes behind the last item are copied.
            let result = unsafe {
                blosc_internal_bitunshuffle(self.typesize, size, filtered.as_ptr(), out.as_mut_ptr(), bits.as_mut_ptr())
            };
            if result < 0 { Err(Error::refused("bits that cannot be put back")) } else { Ok(()) }
        } else {
            self.decompress_block(block, out)
        }
    }

    /// Fill `out`, of its size, with what the streams of a block hold.
    fn decompress_block(&self, block: usize, out: &mut [u8]) -> Result<()> {
        let size = out.len();
        let is_split = self.flags & UNSPLIT == 0
            && size == self.block_size
            && self.typesize <= MOST_SPLITS
            && size / self.typesize >= SHORTEST_SPLIT;
        let count = if is_split { self.typesize } else { 1 };
        if size % count != 0 {
            // The library leaves the rest as it was in memory.
            return Err(Error::broken("a block of Blosc that cannot be split"));
        }
        let cut_off = || Error::broken("the Blosc buffer is cut off");
        let mut position = number_at(self.data, HEADER + NUMBER * block).ok_or_else(cut_off)?;
        for out in out.chunks_exact_mut(size / count) {
            let length = number_at(self.data, position).ok_or_else(cut_off)?;
            let start = position + NUMBER;
            let stream = self.data.get(start..).and_then(|rest| rest.get(..length)).ok_or_else(cut_off)?;
            position = start + length;
            if length == out.len() {
                out.copy_from_slice(stream);
            } else {
                self.decompress(stream, out)?;
            }
        }
        Ok(())
    }

    /// Fill `out` with what a stream holds.
    fn decompress(&self, stream: &[u8], out: &mut [u8]) -> Result<()> {
        match self.compressor {
            Compressor::Blosclz => decompress_blosclz(stream, out),
            Compressor::Lz4 => lz4::decompress(stream, out),
            Compressor::Zlib => deflate::inflate_zlib(stream, out),
            Compressor::Zstd => zstd::decompress(stream, out),
        }
    }
}

/// Fill `out` with what a stream of Blosc's own compressor holds.
fn decompress_blosclz(stream: &[u8], out: &mut [u8]) -> Result<()> {
    let (Ok(length), Ok(size)) = (c_int::try_from(stream.len()), c_int::try_from(out.len())) else {
        return Err(Error::refused("too many bytes for Blosc"));
    };
    // SAFETY: pointers and lengths are those of slices.
    let written = unsafe { blosclz_decompress(stream.as_ptr().cast(), length, out.as_mut_ptr().cast(), size) };
    if written != size {
        return Err(Error::broken("the stream in the Blosc buffer is broken"));
    }
    Ok(())
}

/// Buffers for one block each.
#[derive(Default)]
struct Scratch {
    part: Vec<u8>,
    filtered: Vec<u8>,
    bits: Vec<u8>,
}

impl Scratch {
    fn forget_large(&mut self) {
        for buffer in [&mut self.part, &mut self.filtered, &mut self.bits] {
            if buffer.capacity() > LARGEST_KEPT {
                *buffer = Vec::new();
            }
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Return the first bytes of a buffer, made longer if need be.
fn sized(buffer: &mut Vec<u8>, size: usize) -> &mut [u8] {
    if buffer.len() < size {
        *buffer = vec![0; size];
    }
    &mut buffer[..size]
}

/// Return the number of 32 bits that stands somewhere, if it is inside.
fn number_at(data: &[u8], at: usize) -> Option<usize> {
    let bytes = data.get(at..)?.first_chunk::<NUMBER>()?;
    Some(u32::from_le_bytes(*bytes) as usize)
}

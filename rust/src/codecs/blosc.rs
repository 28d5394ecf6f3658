//! Blosc: blocks that are shuffled and compressed, as C-Blosc 1 writes them.
//!
//! The library C-Blosc encodes. Decoding is done here, so that each length is checked, and blocks can be fetched and
//! decoded one by one, by several threads, and directly into the caller's memory. Other modules decode the streams. Only
//! the decompressor of `BloscLZ` and the functions that undo the shuffles are those of C-Blosc.
//!
//! A buffer has a header of 16 bytes, then the offset of each block (for each 4 bytes), then the blocks. A block is one
//! stream, or as many streams as an item has bytes; before each stream is its length. A stream that is as long as its
//! decoded bytes is not compressed. If the header has the flag `COPIED`, there are no offsets and no blocks: after the
//! header come the decoded bytes. Snappy is refused, and so is Zstandard older than version 0.8, whose format was different.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

use blosc_src::blosc_compress_ctx;

use super::{Codec, Encoded, deflate, lz4, room, zstd};
use crate::error::{Error, Result};

const HEADER: usize = 16;
const NUMBER: usize = 4;
const FORMAT: u8 = 2;
/// The format of the streams, for every compressor.
const STREAM_FORMAT: u8 = 1;
const LARGEST: usize = i32::MAX as usize - HEADER;
/// The largest block that C-Blosc decodes: its buffer holds two blocks, and some numbers for each byte of an item.
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

/// To start a thread for fewer bytes takes longer than to decode them.
const SMALLEST_PART: usize = 1 << 16;
/// Each thread keeps buffers of up to this size for the next block.
const LARGEST_KEPT: usize = 1 << 22;

unsafe extern "C" {
    // Internal functions of the library, which its header does not declare.
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
        // SAFETY: pointers and lengths are those of a slice, of the capacity of an empty vector, and of a string that
        // ends with a zero; with one thread the library keeps its state on the stack.
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
                // SAFETY: the library wrote this number of bytes, and it is within the capacity.
                unsafe { out.set_len(written) };
                Ok(())
            }
            _ => Err(Error::refused("Blosc cannot encode these bytes")),
        }
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let frame = Frame::of(data)?;
        frame.header.check_size(out.len())?;
        frame.decode(0, out)
    }

    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        let frame = Frame::of(data)?;
        let size = frame.header.size;
        if size > limit {
            return Err(Error::broken(format!("{size} bytes instead of at most {limit}")));
        }
        room::clear(out, size)?;
        out.resize(size, 0);
        frame.decode(0, out)
    }

    fn decode_part(&self, data: &[u8], size: usize, start: usize, out: &mut [u8]) -> Option<Result<()>> {
        Some(Frame::of(data).and_then(|frame| {
            frame.header.check_size(size)?;
            if start.checked_add(out.len()).is_none_or(|stop| stop > size) {
                return Err(Error::refused("a part outside the whole"));
            }
            frame.decode(start, out)
        }))
    }

    fn part_size(&self, data: &[u8]) -> Option<usize> {
        let frame = Frame::of(data).ok().filter(|frame| frame.header.size > 0)?;
        Some(SMALLEST_PART.next_multiple_of(frame.header.block_size))
    }

    fn fetches_runs(&self) -> bool {
        true
    }

    fn ranges_of(
        &self,
        encoded: &Encoded<'_>,
        size: usize,
        runs: &[Range<usize>],
    ) -> Result<Option<Vec<Range<usize>>>> {
        let located = Located::of(encoded, size, runs)?;
        Ok(located.map(|located| located.ranges.into_iter().map(|(_, range)| range).collect()))
    }

    fn fetch_runs(
        &self,
        encoded: &Encoded<'_>,
        size: usize,
        runs: &[Range<usize>],
        start: usize,
        out: &mut [u8],
    ) -> Result<bool> {
        if runs.iter().any(|run| run.start < start || run.end > start.saturating_add(out.len())) {
            return Err(Error::refused("a part outside the whole"));
        }
        let Some(Located { header, ranges }) = Located::of(encoded, size, runs)? else { return Ok(false) };
        if header.is_copied() {
            for (run, range) in ranges {
                encoded.read(range.start, &mut out[run - start..][..range.len()])?;
            }
            return Ok(true);
        }
        with_scratch(|scratch| {
            let mut fetched = std::mem::take(&mut scratch.fetched);
            let result = ranges.into_iter().try_for_each(|(block, range)| {
                header.place_block(block, encoded.view(range, &mut fetched)?, start, out, scratch)
            });
            scratch.fetched = fetched;
            result
        })?;
        Ok(true)
    }
}

/// Where a buffer holds some runs of decoded bytes.
struct Located {
    header: Header,
    /// For each needed block its number and the range of its streams. For each run of a copy where the run starts and
    /// the range of its bytes.
    ranges: Vec<(usize, Range<usize>)>,
}

impl Located {
    /// Read the header and the offsets of the blocks; return None if so many blocks are needed that all should be decoded.
    fn of(encoded: &Encoded<'_>, size: usize, runs: &[Range<usize>]) -> Result<Option<Self>> {
        let mut header = [0; HEADER];
        encoded.read(0, &mut header)?;
        let header = Header::of(&header, encoded.length)?;
        header.check_size(size)?;
        if runs.iter().any(|run| run.start > run.end || run.end > size) {
            return Err(Error::refused("a part outside the whole"));
        }
        if header.is_copied() || runs.is_empty() {
            let ranges = runs.iter().map(|run| (run.start, HEADER + run.start..HEADER + run.end)).collect();
            return Ok(Some(Self { header, ranges }));
        }
        let mut blocks: Vec<_> = runs.iter().flat_map(|run| header.blocks_of(run)).collect();
        blocks.dedup();
        if blocks.len() > header.blocks() / 2 {
            return Ok(None);
        }
        let table = Table::of(&header, encoded)?;
        let range_of = |block| table.streams_of(block).map(|range| (block, range)).ok_or_else(cut_off);
        let ranges = blocks.into_iter().map(range_of).collect::<Result<_>>()?;
        Ok(Some(Self { header, ranges }))
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

/// A header whose numbers have been checked.
struct Header {
    compressor: Compressor,
    flags: u8,
    typesize: usize,
    size: usize,
    block_size: usize,
    /// Number of bytes of the whole buffer.
    stored: usize,
}

impl Header {
    /// Parse the header of a buffer of at most `length` bytes; check what the engine in Python and the library check.
    fn of(header: &[u8; HEADER], length: usize) -> Result<Self> {
        let [format, stream_format, flags, typesize, numbers @ ..] = header;
        let number = |at: usize| number_at(numbers, at).unwrap_or_default();
        let (size, block_size, stored) = (number(0), number(NUMBER), number(2 * NUMBER));
        let is_broken = *format != FORMAT
            || stored > length
            || stored < HEADER
            || size > LARGEST
            || *typesize == 0
            || (size > 0 && !(1..=size.min(LARGEST_BLOCK)).contains(&block_size))
            || flags & RESERVED != 0;
        if is_broken {
            return Err(Error::broken("the Blosc header is broken"));
        }
        let compressor = match (flags >> 5, *stream_format) {
            (0, STREAM_FORMAT) => Compressor::Blosclz,
            (1, STREAM_FORMAT) => Compressor::Lz4,
            (3, STREAM_FORMAT) => Compressor::Zlib,
            (4, STREAM_FORMAT) => Compressor::Zstd,
            _ => return Err(Error::refused("a compressor inside Blosc that is not known here")),
        };
        let header = Self { compressor, flags: *flags, typesize: usize::from(*typesize), size, block_size, stored };
        let is_whole = if header.is_copied() {
            stored == HEADER + size
        } else {
            size == 0 || header.blocks() <= (stored - HEADER) / NUMBER
        };
        if is_whole { Ok(header) } else { Err(cut_off()) }
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

    fn blocks(&self) -> usize {
        self.size.div_ceil(self.block_size)
    }

    /// Return which of the decoded bytes are in a block.
    fn range_of(&self, block: usize) -> Range<usize> {
        let start = block * self.block_size;
        start..(start + self.block_size).min(self.size)
    }

    /// Return the numbers of the blocks that hold a range of the decoded bytes.
    fn blocks_of(&self, bytes: &Range<usize>) -> Range<usize> {
        bytes.start / self.block_size..bytes.end.div_ceil(self.block_size)
    }

    /// Decode a block, and copy those of its bytes that belong into `out`, which begins at position `start` of all decoded
    /// bytes.
    ///
    /// `streams` begins with the first stream of the block, and may be longer than the block.
    fn place_block(
        &self,
        block: usize,
        streams: &[u8],
        start: usize,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Scratch { part, filtered, bits, .. } = scratch;
        let range = self.range_of(block);
        let (low, high) = (range.start.max(start), range.end.min(start + out.len()));
        let target = &mut out[low - start..high - start];
        if target.len() == range.len() {
            return self.decode_block(streams, target, filtered, bits);
        }
        let part = sized(part, range.len());
        self.decode_block(streams, part, filtered, bits)?;
        target.copy_from_slice(&part[low - range.start..high - range.start]);
        Ok(())
    }

    /// Fill `out`, which has the size of the block, with the decoded block.
    fn decode_block(&self, streams: &[u8], out: &mut [u8], filtered: &mut Vec<u8>, bits: &mut Vec<u8>) -> Result<()> {
        let size = out.len();
        if self.flags & SHUFFLED != 0 && self.typesize > 1 {
            let filtered = sized(filtered, size);
            self.decompress_block(streams, filtered)?;
            // SAFETY: both are of this size, and do not overlap; bytes behind the last item are copied.
            unsafe { blosc_internal_unshuffle(self.typesize, size, filtered.as_ptr(), out.as_mut_ptr()) };
            Ok(())
        } else if self.flags & BITSHUFFLED != 0 && size >= self.typesize {
            let (filtered, bits) = (sized(filtered, size), sized(bits, size));
            self.decompress_block(streams, filtered)?;
            // SAFETY: all three are of this size, and do not overlap; bytes behind the last item are copied.
            let result = unsafe {
                blosc_internal_bitunshuffle(self.typesize, size, filtered.as_ptr(), out.as_mut_ptr(), bits.as_mut_ptr())
            };
            if result < 0 { Err(Error::refused("bits that cannot be put back")) } else { Ok(()) }
        } else {
            self.decompress_block(streams, out)
        }
    }

    /// Fill `out`, which has the size of the block, with its decompressed streams; they are still shuffled.
    fn decompress_block(&self, streams: &[u8], out: &mut [u8]) -> Result<()> {
        let size = out.len();
        let is_split = self.flags & UNSPLIT == 0
            && size == self.block_size
            && self.typesize <= MOST_SPLITS
            && size / self.typesize >= SHORTEST_SPLIT;
        let count = if is_split { self.typesize } else { 1 };
        if size % count != 0 {
            // The library would not set the rest of the block.
            return Err(Error::broken("a block of Blosc that cannot be split"));
        }
        let mut position = 0;
        for out in out.chunks_exact_mut(size / count) {
            let length = number_at(streams, position).ok_or_else(cut_off)?;
            let start = position + NUMBER;
            let stream = streams.get(start..).and_then(|rest| rest.get(..length)).ok_or_else(cut_off)?;
            position = start + length;
            if length == out.len() {
                out.copy_from_slice(stream);
            } else {
                self.decompress(stream, out)?;
            }
        }
        Ok(())
    }

    /// Fill `out` with the decompressed bytes of a stream.
    fn decompress(&self, stream: &[u8], out: &mut [u8]) -> Result<()> {
        match self.compressor {
            Compressor::Blosclz => decompress_blosclz(stream, out),
            Compressor::Lz4 => lz4::decompress(stream, out),
            Compressor::Zlib => deflate::inflate_zlib(stream, out),
            Compressor::Zstd => zstd::decompress(stream, out),
        }
    }
}

/// A buffer whose header has been checked.
struct Frame<'a> {
    header: Header,
    data: &'a [u8],
}

impl<'a> Frame<'a> {
    fn of(data: &'a [u8]) -> Result<Self> {
        let Some((header, _)) = data.split_first_chunk::<HEADER>() else {
            return Err(Error::broken("too short for Blosc"));
        };
        let header = Header::of(header, data.len())?;
        Ok(Self { data: &data[..header.stored], header })
    }

    /// Fill `out` with the decoded bytes that begin at `start`; the caller has checked that there are as many.
    fn decode(&self, start: usize, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        if self.header.is_copied() {
            out.copy_from_slice(&self.data[HEADER + start..][..out.len()]);
            return Ok(());
        }
        with_scratch(|scratch| {
            for block in self.header.blocks_of(&(start..start + out.len())) {
                let streams = number_at(self.data, HEADER + NUMBER * block)
                    .and_then(|position| self.data.get(position..))
                    .ok_or_else(cut_off)?;
                self.header.place_block(block, streams, start, out, scratch)?;
            }
            Ok(())
        })
    }
}

/// Where the streams of each block are. The buffer says only where they start, and blocks may lie in any order because
/// threads write them, so the streams of a block end where the next ones start.
struct Table {
    starts: Vec<usize>,
    /// All starts and the end of the buffer, sorted.
    bounds: Vec<usize>,
}

impl Table {
    fn of(header: &Header, encoded: &Encoded<'_>) -> Result<Self> {
        let mut numbers = vec![0; NUMBER * header.blocks()];
        encoded.read(HEADER, &mut numbers)?;
        let starts: Vec<_> = (0..header.blocks()).filter_map(|block| number_at(&numbers, NUMBER * block)).collect();
        let mut bounds: Vec<_> = starts.iter().map(|&start| start.min(header.stored)).collect();
        bounds.push(header.stored);
        bounds.sort_unstable();
        Ok(Self { starts, bounds })
    }

    /// Return where the streams of a block are; None if they start behind the end of the buffer.
    fn streams_of(&self, block: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(block)?;
        let end = *self.bounds.get(self.bounds.partition_point(|&bound| bound <= start))?;
        Some(start..end)
    }
}

fn cut_off() -> Error {
    Error::broken("the Blosc buffer is cut off")
}

fn with_scratch(work: impl FnOnce(&mut Scratch) -> Result<()>) -> Result<()> {
    SCRATCH.with_borrow_mut(|scratch| {
        let result = work(scratch);
        scratch.forget_large();
        result
    })
}

/// Fill `out` with the decompressed bytes of a stream of `BloscLZ`, Blosc's own compressor.
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
    /// Encoded.
    fetched: Vec<u8>,
    part: Vec<u8>,
    filtered: Vec<u8>,
    bits: Vec<u8>,
}

impl Scratch {
    fn forget_large(&mut self) {
        for buffer in [&mut self.fetched, &mut self.part, &mut self.filtered, &mut self.bits] {
            if buffer.capacity() > LARGEST_KEPT {
                *buffer = Vec::new();
            }
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Return the first bytes of a buffer, made longer if necessary.
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

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // lists of one run
mod tests {
    use super::super::testing::{check, check_cut_off, check_round_trips, decoded, hex, numbers};
    use super::*;
    use crate::error::Kind;
    use std::cell::Cell;

    const COMPRESSORS: [&str; 5] = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"];

    // `numcodecs.blosc.compress(thirds(n), ...)`, numcodecs 0.16.6 with C-Blosc 1.21.7.dev.

    /// n = 300, blosclz, shuffled, split into the bytes of an item.
    const BLOSCLZ: &str = "02010104b0040000b004000077010000140000002c0100000000000101010202020303030404040505050606060707070808080909090a0a0a0b0b0b0c0c0c0d0d0d0e0e0e0f0f0f1010101111111212121313131414141515151616161717171818181919191a1a1a1b1b1b1c1c1c1d1d1d1e1e1e1f1f1f2020202121212222222323232424242525252626262727272828282929292a2a2a2b2b2b2c2c2c2d2d2d2e2e2e2f2f2f3030303131313232323333333434343535353636363737373838383939393a3a3a3b3b3b3c3c3c3d3d3d3e3e3e3f3f3f4040404141414242424343434444444545454646464747474848484949494a4a4a4b4b4b4c4c4c4d4d4d4e4e4e4f4f4f5050505151515252525353535454545555555656565757575858585959595a5a5a5b5b5b5c5c5c5d5d5d5e5e5e5f5f5f6060606161616262626363630d0000002300000000e0ff1d03020000000d0000002300000000e0ff1d03020000000d0000002300000000e0ff1d0302000000";
    /// n = 300, lz4, shuffled, split.
    const LZ4: &str = "02012104b0040000b004000074010000140000002c0100000000000101010202020303030404040505050606060707070808080909090a0a0a0b0b0b0c0c0c0d0d0d0e0e0e0f0f0f1010101111111212121313131414141515151616161717171818181919191a1a1a1b1b1b1c1c1c1d1d1d1e1e1e1f1f1f2020202121212222222323232424242525252626262727272828282929292a2a2a2b2b2b2c2c2c2d2d2d2e2e2e2f2f2f3030303131313232323333333434343535353636363737373838383939393a3a3a3b3b3b3c3c3c3d3d3d3e3e3e3f3f3f4040404141414242424343434444444545454646464747474848484949494a4a4a4b4b4b4c4c4c4d4d4d4e4e4e4f4f4f5050505151515252525353535454545555555656565757575858585959595a5a5a5b5b5b5c5c5c5d5d5d5e5e5e5f5f5f6060606161616262626363630c0000001f000100ff145000000000000c0000001f000100ff145000000000000c0000001f000100ff14500000000000";
    /// n = 304, lz4, bits shuffled.
    const LZ4_BITS: &str = "02012404c0040000c0040000a900000014000000610000006f388ee3388ee306000d6fc00ffcc00ffc06000d6f00f0ff00f0ff06000d6f000000ffffff06000e01020011ff0100010b000035000f0c0002040200011f000302000414000002000a0e00080200032d00030200081a000f0200025000000000000c0000001f000100ff185000000000000c0000001f000100ff185000000000000c0000001f000100ff18500000000000";
    /// n = 300, lz4hc, not shuffled.
    const LZ4HC: &str = "02012004b0040000b0040000e1010000140000006d00000017000100170104001702040017030400170404001705040017060400170704001708040017090400170a0400170b0400170c0400170d0400170e0400170f04001710040017110400171204001713040017140400171504001716040017170400c01800000018000000180000007000000044190000000400171a0400171b0400171c0400171d0400171e0400171f040017200400172104001722040017230400172404001725040017260400172704001728040017290400172a0400172b0400172c0400172d0400172e0400172f040017300400c0310000003100000031000000700000004432000000040017330400173404001735040017360400173704001738040017390400173a0400173b0400173c0400173d0400173e0400173f040017400400174104001742040017430400174404001745040017460400174704001748040017490400c04a0000004a0000004a00000070000000444b0000000400174c0400174d0400174e0400174f040017500400175104001752040017530400175404001755040017560400175704001758040017590400175a0400175b0400175c0400175d0400175e0400175f0400176004001761040017620400c0630000006300000063000000";
    /// n = 304, zlib, bits shuffled.
    const ZLIB_BITS: &str = "02016404c0040000c00400007e0000001400000033000000785eb3e87b6c41181de0ff430462f8f09f08c4c0c0f0ffff7f822418fc0703fc6c54b59832e8eab0ebc0ad0a150000342f82ea0d000000785e63601805a40000013000010d000000785e63601805a40000013000010d000000785e63601805a4000001300001";
    /// n = 300, zstd, not shuffled, in blocks of 512 bytes.
    const ZSTD_BLOCKS: &str = "02019004b004000000020000ed0000001c0000006f000000bd0000004f00000028b52ffd6000012d0200340300000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a0000002a0000002aa810f007e0c7101ef103e91d0158294a00000028b52ffd60000105020024032a0000002b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f5051525354550000002aa410f073e0c70800c029052c00000028b52ffd20b01d0100b05500000055000000565758595a5b5c5d5e5f606162630ea410f87a06f0c5088b9c52";
    /// The first 9 bytes, lz4, shuffled: too few to be compressed.
    const COPIED_BYTES: &str = "02013304090000000800000019000000000000000000000000";
    /// No bytes.
    const EMPTY: &str = "02013304000000000100000010000000";

    /// The numbers 0 0 0 1 1 1 2 2 2 ..., of 32 bits.
    fn thirds(n: u32) -> Vec<u8> {
        (0..n).flat_map(|i| (i / 3).to_le_bytes()).collect()
    }

    fn codec() -> Blosc {
        Blosc::new("lz4", 5, 1, 4, 0).expect("a configuration")
    }

    fn samples() -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut samples: Vec<_> = [BLOSCLZ, LZ4, LZ4HC, ZSTD_BLOCKS].map(|data| (hex(data), thirds(300))).into();
        samples.extend([LZ4_BITS, ZLIB_BITS].map(|data| (hex(data), thirds(304))));
        samples.push((hex(COPIED_BYTES), vec![0; 9]));
        samples.push((hex(EMPTY), Vec::new()));
        samples
    }

    /// Decode all parts that begin or end at one of `places`, and compare.
    fn check_parts(codec: &Blosc, data: &[u8], expected: &[u8], places: &[usize]) {
        for (&start, &stop) in places.iter().flat_map(|start| places.iter().map(move |stop| (start, stop))) {
            if start <= stop && stop <= expected.len() {
                let mut part = vec![0x5a; stop - start];
                let result = codec.decode_part(data, expected.len(), start, &mut part).expect("it has parts");
                result.unwrap_or_else(|error| panic!("{start}..{stop}: {error}"));
                assert_eq!(part, expected[start..stop], "{start}..{stop}");
            }
        }
    }

    #[test]
    fn decodes_what_others_wrote() {
        for (data, expected) in samples() {
            check(&codec(), &data, &expected);
        }
    }

    #[test]
    fn what_follows_a_buffer_is_ignored() {
        for (mut data, expected) in samples() {
            data.extend(b"rest");
            check(&codec(), &data, &expected);
        }
    }

    #[test]
    fn buffers_that_are_cut_off_are_errors() {
        for (data, expected) in samples() {
            check_cut_off(&codec(), &data, expected.len());
        }
    }

    #[test]
    fn parts_are_parts_of_the_whole() {
        for (data, expected) in samples() {
            let places: Vec<_> = (0..=expected.len()).step_by(7).chain([511, 512, 513, 1024, expected.len()]).collect();
            check_parts(&codec(), &data, &expected, &places);
        }
    }

    #[test]
    fn parts_outside_the_whole_are_errors() {
        for (data, expected) in samples() {
            let size = expected.len();
            for (start, length) in [(size, 1), (0, size + 1), (size + 1, 0), (usize::MAX, 2)] {
                let result = codec().decode_part(&data, size, start, &mut vec![0; length]).expect("it has parts");
                assert!(result.is_err(), "{start} {length}");
            }
            assert!(codec().decode_part(&data, size + 1, 0, &mut []).expect("it has parts").is_err());
        }
    }

    #[test]
    fn parts_are_whole_blocks() {
        assert_eq!(codec().part_size(&hex(ZSTD_BLOCKS)), Some(65536));
        assert_eq!(codec().part_size(&hex(LZ4)), Some(66000)); // 55 blocks of 1200 bytes
        assert_eq!(codec().part_size(&hex(EMPTY)), None);
        assert_eq!(codec().part_size(b"no buffer"), None);
    }

    #[test]
    fn round_trips_of_all_compressors_shuffles_and_sizes_of_items() {
        for (compressor, shuffle) in COMPRESSORS.into_iter().flat_map(|name| [(name, 0), (name, 1), (name, 2)]) {
            for (typesize, blocksize) in [(1, 0), (2, 0), (3, 500), (4, 1000), (8, 4096), (16, 0), (17, 333), (255, 0)]
            {
                check_round_trips(&Blosc::new(compressor, 5, shuffle, typesize, blocksize).expect("a configuration"));
            }
        }
    }

    #[test]
    fn round_trips_at_all_levels() {
        for compressor in COMPRESSORS {
            for level in 0..10 {
                check_round_trips(&Blosc::new(compressor, level, 1, 4, 0).expect("a configuration"));
            }
        }
    }

    #[test]
    fn parts_of_many_blocks_are_parts_of_the_whole() {
        let mut encoded = Vec::new();
        for (compressor, shuffle) in COMPRESSORS.into_iter().flat_map(|name| [(name, 0), (name, 1), (name, 2)]) {
            for (typesize, size) in [(1, 5000), (3, 5001), (4, 4098), (8, 4096), (255, 3000)] {
                let codec = Blosc::new(compressor, 5, shuffle, typesize, 512).expect("a configuration");
                let data = numbers(size);
                codec.encode(&data, &mut encoded).expect("bytes");
                check_parts(
                    &codec,
                    &encoded,
                    &data,
                    &[0, 1, 3, 509, 510, 512, 513, 2000, 2048, 2999, 4095, size - 1, size],
                );
            }
        }
    }

    /// Return the bytes within `runs`, and how many encoded bytes were fetched for them; None if all are to be fetched.
    fn fetched(data: &[u8], size: usize, runs: &[Range<usize>]) -> Result<Option<(Vec<u8>, usize)>> {
        let count = Cell::new(0);
        let fetch = |start: usize, out: &mut [u8]| {
            out.copy_from_slice(&data[start..start + out.len()]);
            count.set(count.get() + out.len());
            Ok(())
        };
        let base = runs[0].start;
        let base = base.saturating_sub(5); // a buffer may begin before the first run
        let mut out = vec![0x5a; runs[runs.len() - 1].end - base];
        let is_done = codec().fetch_runs(
            &Encoded { length: data.len(), bytes: None, fetch: &fetch },
            size,
            runs,
            base,
            &mut out,
        )?;
        let found = runs.iter().flat_map(|run| &out[run.start - base..run.end - base]).copied().collect();
        Ok(is_done.then(|| (found, count.get())))
    }

    #[test]
    fn few_blocks_are_fetched_by_themselves() {
        let mut encoded = Vec::new();
        let data = numbers(100_000); // some compressors are given larger blocks than they are told
        for (compressor, shuffle) in COMPRESSORS.into_iter().flat_map(|name| [(name, 0), (name, 1), (name, 2)]) {
            for typesize in [1, 3, 4, 8, 17, 255] {
                let codec = Blosc::new(compressor, 5, shuffle, typesize, 512).expect("a configuration");
                codec.encode(&data, &mut encoded).expect("bytes");
                for runs in [&[0..1][..], &[99_999..100_000], &[0..9, 700..1500, 9000..9001], &[511..513, 514..600]] {
                    let (found, count) =
                        fetched(&encoded, data.len(), runs).expect("a sound buffer").expect("few blocks");
                    let expected: Vec<_> = runs.iter().flat_map(|run| &data[run.clone()]).copied().collect();
                    assert_eq!(found, expected, "{compressor} {shuffle} {typesize} {runs:?}");
                    assert!(count < encoded.len(), "{count} of {}", encoded.len());
                }
                let most = fetched(&encoded, data.len(), &[0..90_000]).expect("a sound buffer");
                assert_eq!(most.is_some(), encoded[2] & COPIED != 0);
            }
        }
    }

    /// Replace all bytes by others but those of header, offsets and `ranges`.
    fn only(data: &[u8], ranges: &[Range<usize>]) -> Vec<u8> {
        let header = Header::of(data.first_chunk().unwrap(), data.len()).expect("a sound buffer");
        let offsets = if header.is_copied() { 0 } else { NUMBER * header.blocks() };
        let mut others: Vec<u8> = data.iter().map(|byte| !byte).collect();
        for range in ranges.iter().cloned().chain([0..HEADER + offsets]) {
            others[range.clone()].copy_from_slice(&data[range]);
        }
        others
    }

    #[test]
    fn ranges_are_all_that_is_fetched() {
        let mut encoded = Vec::new();
        let data = numbers(100_000);
        for compressor in COMPRESSORS {
            for (clevel, runs) in
                [(5, &[0..9, 700..1500, 9000..9001][..]), (5, &[99_999..100_000]), (0, &[5..9, 20..70])]
            {
                let codec = Blosc::new(compressor, clevel, 1, 4, 512).expect("a configuration");
                codec.encode(&data, &mut encoded).expect("bytes");
                let fetch = |start: usize, out: &mut [u8]| {
                    out.copy_from_slice(&encoded[start..start + out.len()]);
                    Ok(())
                };
                let whole = Encoded { length: encoded.len(), bytes: None, fetch: &fetch };
                let ranges = codec.ranges_of(&whole, data.len(), runs).expect("a sound buffer").expect("few blocks");
                assert!(ranges.iter().map(Range::len).sum::<usize>() < encoded.len());
                let (found, _) = fetched(&only(&encoded, &ranges), data.len(), runs).unwrap().expect("few blocks");
                let expected: Vec<_> = runs.iter().flat_map(|run| &data[run.clone()]).copied().collect();
                assert_eq!(found, expected, "{compressor} {clevel} {runs:?}");
                let all = codec.ranges_of(&whole, data.len(), &[0..90_000]).expect("a sound buffer");
                assert_eq!(all.is_none(), clevel > 0);
            }
        }
    }

    #[test]
    fn blocks_behind_the_end_of_the_buffer_are_errors() {
        let mut data = hex(ZSTD_BLOCKS);
        let (end, block) = (data.len(), data[28..111].to_vec());
        data.extend(block);
        data[16..18].copy_from_slice(&u16::try_from(end).unwrap().to_le_bytes());
        assert!(fetched(&data, 1200, &[0..4]).is_err());
        assert!(decoded(&codec(), &data, 1200).is_err());
    }

    #[test]
    fn blocks_may_lie_in_any_order() {
        // The blocks of ZSTD_BLOCKS, of 79, 74 and 44 bytes and their lengths, from the last to the first.
        let data = hex(ZSTD_BLOCKS);
        let (head, blocks) = data.split_at(28);
        let (first, rest) = blocks.split_at(83);
        let (second, third) = rest.split_at(78);
        let starts = [28 + third.len() + second.len(), 28 + third.len(), 28].map(|start| u32::try_from(start).unwrap());
        let numbers = starts.iter().flat_map(|start| start.to_le_bytes());
        let data: Vec<u8> = head[..16].iter().copied().chain(numbers).chain([third, second, first].concat()).collect();
        check(&codec(), &data, &thirds(300));
        for (place, value) in thirds(300).into_iter().enumerate() {
            let (found, count) = fetched(&data, 1200, &[place..place + 1]).expect("a sound buffer").expect("one block");
            assert_eq!(found, [value]);
            assert!(count <= 28 + 83);
        }
    }

    #[test]
    fn copies_are_fetched_as_they_are() {
        let (found, count) = fetched(&hex(COPIED_BYTES), 9, &[2..4, 8..9]).expect("a sound buffer").expect("a copy");
        assert_eq!((found, count), (vec![0; 3], HEADER + 3));
    }

    #[test]
    fn broken_buffers_are_fetched_in_parts_only_where_they_are_sound() {
        let sound = hex(ZSTD_BLOCKS);
        for at in 0..sound.len() {
            for flip in [1, 0x80, 0xff] {
                let mut data = sound.clone();
                data[at] ^= flip;
                if let (Ok(Some((found, _))), Ok(whole)) =
                    (fetched(&data, 1200, &[600..604]), decoded(&codec(), &data, 1200))
                {
                    assert_eq!(found, whole[600..604], "{at} {flip}");
                }
            }
        }
        for length in 0..sound.len() {
            assert!(fetched(&sound[..length], 1200, &[600..604]).is_err());
        }
    }

    #[test]
    fn headers_that_cannot_be_right_are_errors() {
        let broken = |at: usize, bytes: &[u8]| {
            let mut data = hex(ZSTD_BLOCKS);
            data[at..at + bytes.len()].copy_from_slice(bytes);
            decoded(&codec(), &data, 1200).expect_err("a header that cannot be right").kind
        };
        assert_eq!(broken(0, &[1]), Kind::Broken); // format
        assert_eq!(broken(0, &[3]), Kind::Broken);
        assert_eq!(broken(1, &[2]), Kind::Refused); // format of the streams
        assert_eq!(broken(2, &[0x50]), Kind::Refused); // snappy
        assert_eq!(broken(2, &[0xb0]), Kind::Refused); // no compressor
        assert_eq!(broken(2, &[0x98]), Kind::Broken); // a flag from the future
        assert_eq!(broken(2, &[0x92]), Kind::Broken); // a copy of another size
        assert_eq!(broken(3, &[0]), Kind::Broken); // size of items
        assert_eq!(broken(4, &[0xb1, 4]), Kind::Broken); // size
        assert_eq!(broken(4, &[0xff; 4]), Kind::Broken);
        assert_eq!(broken(8, &[0; 4]), Kind::Broken); // size of blocks
        assert_eq!(broken(8, &[1, 0]), Kind::Broken);
        assert_eq!(broken(8, &[0xff; 4]), Kind::Broken);
        assert_eq!(broken(12, &[15, 0]), Kind::Broken); // size of the buffer
        assert_eq!(broken(12, &[0xee, 0]), Kind::Broken);
        assert_eq!(broken(12, &[0xff; 4]), Kind::Broken);
        assert_eq!(broken(16, &[0xff; 4]), Kind::Broken); // where a block starts
        assert_eq!(broken(16, &[0xec, 0]), Kind::Broken);
        assert_eq!(broken(28, &[0xff; 4]), Kind::Broken); // length of a stream
    }

    #[test]
    fn streams_of_old_zstandard_are_errors() {
        let mut data = hex(ZSTD_BLOCKS);
        assert_eq!(data[32..36], [0x28, 0xb5, 0x2f, 0xfd]);
        for magic in 0x1e..0x28 {
            data[32] = magic;
            assert!(decoded(&codec(), &data, 1200).is_err());
        }
    }

    #[test]
    fn a_block_that_cannot_be_split_is_an_error() {
        // flags: split; items of 3 bytes do not divide a block of 512
        let mut data = hex(ZSTD_BLOCKS);
        data[2] = 0x80;
        data[3] = 3;
        assert!(decoded(&codec(), &data, 1200).is_err());
    }

    #[test]
    fn there_are_no_other_configurations() {
        for (name, level, shuffle, typesize) in [
            ("snappy", 5, 1, 4),
            ("none", 5, 1, 4),
            ("lz4", 10, 1, 4),
            ("lz4", 5, 3, 4),
            ("lz4", 5, 1, 0),
            ("lz4", 5, 1, 256),
        ] {
            let error = Blosc::new(name, level, shuffle, typesize, 0).expect_err("no such configuration");
            assert_eq!(error.kind, Kind::Refused);
        }
    }

    #[test]
    fn encodes_as_numcodecs_does() {
        let mut encoded = Vec::new();
        for (compressor, shuffle, n, expected) in
            [("lz4", 1, 300, LZ4), ("lz4", 2, 304, LZ4_BITS), ("blosclz", 1, 300, BLOSCLZ), ("lz4hc", 0, 300, LZ4HC)]
        {
            let blocksize = if shuffle == 0 { 512 } else { 0 };
            let codec = Blosc::new(compressor, 5, shuffle, 4, blocksize).expect("a configuration");
            codec.encode(&thirds(n), &mut encoded).expect("bytes");
            assert_eq!(encoded, hex(expected), "{compressor}");
        }
        codec().encode(&[], &mut encoded).expect("no bytes");
        assert_eq!(encoded, hex(EMPTY));
        codec().encode(&[0; 9], &mut encoded).expect("bytes");
        assert_eq!(encoded, hex(COPIED_BYTES));
    }
}

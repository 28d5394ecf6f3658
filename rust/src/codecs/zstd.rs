//! Zstandard frames.
//!
//! What the engine in Python says of them in `omnizarr.codecs.zstd` holds here: frames may follow each other, be
//! skippable, and need not state the size of their content. The frames are walked before they are decoded, and
//! nothing is given to the library but what is one by today's format: it may know older ones, and the other engine not.

use std::cell::RefCell;
use std::io::Cursor;
use std::ops::Range;

use zstd_safe::{CCtx, CParameter, DCtx, WriteBuf};

use super::{Codec, room};
use crate::error::{Error, Result};

const MAGIC: u32 = 0xfd2f_b528;
/// The magic numbers of skippable frames, but for the last four bits.
const SKIPPABLE: u32 = 0x0184_d2a5;
const LARGEST_BLOCK: u64 = 1 << 17;
const SLACK: u64 = 4096;
const COMPRESSED: u32 = 2;

/// Zstandard.
#[derive(Clone, Copy, Debug)]
pub struct Zstd {
    level: i32,
    checksum: bool,
}

impl Zstd {
    /// Compress with this level, 0 for the default of the library, and write checksums or not.
    #[must_use]
    pub fn new(level: i32, checksum: bool) -> Self {
        Self { level, checksum }
    }
}

impl Codec for Zstd {
    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        COMPRESSOR.with_borrow_mut(|slot| {
            let context = created(slot, CCtx::try_create)?;
            // A context that failed may still be within a frame, where parameters cannot be set.
            let reset = context.reset(zstd_safe::ResetDirective::SessionOnly);
            reset
                .and_then(|_| context.set_parameter(CParameter::CompressionLevel(self.level)))
                .and_then(|_| context.set_parameter(CParameter::ChecksumFlag(self.checksum)))
                .and_then(|_| context.set_parameter(CParameter::ContentSizeFlag(true)))
                .map_err(refused)?;
            room::clear(out, zstd_safe::compress_bound(data.len()))?;
            context.compress2(out, data).map(drop).map_err(refused)
        })
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        decompress(data, out)
    }

    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        let total = Total::of(data)?;
        let limit = to_u64(limit);
        if total.stated > limit {
            return Err(Error::broken(format!("{} bytes instead of at most {limit}", total.stated)));
        }
        total.check_silent(1, limit)?;
        // What frames hold that do not say it is known only afterwards.
        let room = usize::try_from(limit.min(total.stated + total.most_silent)).unwrap_or(usize::MAX);
        room::clear(out, room)?;
        for frame in Frames::of(data) {
            let frame = frame?;
            let mut tail = Cursor::new(&mut *out);
            tail.set_position(to_u64(tail.get_ref().len()));
            frame.decode(data, &mut tail)?;
            if to_u64(out.len()) > limit {
                return Err(Error::broken(format!("more than {limit} bytes")));
            }
        }
        Ok(())
    }
}

/// Fill `out` with what all frames hold.
pub(super) fn decompress(data: &[u8], out: &mut [u8]) -> Result<()> {
    let total = Total::of(data)?;
    let size = to_u64(out.len());
    total.check_silent(2, size)?;
    if total.stated > size || size - total.stated > total.most_silent {
        return Err(Error::broken(format!("{} bytes instead of {size}", total.stated)));
    }
    let mut position = 0;
    for frame in Frames::of(data) {
        position += frame?.decode(data, &mut out[position..])?;
    }
    if position != out.len() {
        return Err(Error::broken(format!("{position} bytes instead of {size}")));
    }
    Ok(())
}

thread_local! {
    // Contexts are large. Each thread has its own, so no lock is held when a process forks.
    static COMPRESSOR: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

fn created<T>(slot: &mut Option<T>, create: impl FnOnce() -> Option<T>) -> Result<&mut T> {
    if slot.is_none() {
        *slot = create();
    }
    slot.as_mut().ok_or_else(|| Error::refused("no memory for a context of Zstandard"))
}

fn refused(code: zstd_safe::ErrorCode) -> Error {
    Error::refused(zstd_safe::get_error_name(code))
}

fn to_u64(size: usize) -> u64 {
    size as u64
}

/// A frame with content, as it can be seen without decoding it.
struct Frame {
    range: Range<usize>,
    /// What its header says that it holds.
    size: Option<u64>,
    /// What its blocks can hold at most.
    most: u64,
}

impl Frame {
    /// Decode the frame into the start of `out`, and return how many bytes it held.
    fn decode<B: WriteBuf + ?Sized>(&self, data: &[u8], out: &mut B) -> Result<usize> {
        let size = DECOMPRESSOR.with_borrow_mut(|slot| {
            created(slot, DCtx::try_create)?
                .decompress(out, &data[self.range.clone()])
                .map_err(|code| Error::broken(zstd_safe::get_error_name(code)))
        })?;
        // The library knows both to be so; the other engine refuses the second, which has no purpose.
        if self.size.is_some_and(|stated| stated != to_u64(size)) || (size == 0 && self.most > 0) {
            return Err(Error::broken("the frame does not hold what it states"));
        }
        Ok(size)
    }
}

/// The frames of a value, skippable ones left out.
struct Frames<'a> {
    data: &'a [u8],
    position: usize,
}

impl<'a> Frames<'a> {
    fn of(data: &'a [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// Return `N` bytes from the place `at` on.
    fn bytes<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        self.data.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or_else(cut_off)
    }

    /// Return the frame that starts here.
    fn frame(&self) -> Result<Frame> {
        let start = self.position;
        let [descriptor] = self.bytes(start + 4)?;
        let is_single = descriptor & 0x20 != 0;
        if descriptor & 3 != 0 {
            return Err(Error::refused("a frame with a dictionary"));
        }
        let header = start + 5 + usize::from(!is_single);
        let (width, size) = match descriptor >> 6 {
            0 if is_single => (1, Some(u64::from(self.bytes::<1>(header)?[0]))),
            0 => (0, None),
            1 => (2, Some(u64::from(u16::from_le_bytes(self.bytes(header)?)) + 256)),
            2 => (4, Some(u64::from(u32::from_le_bytes(self.bytes(header)?)))),
            _ => (8, Some(u64::from_le_bytes(self.bytes(header)?))),
        };
        let mut position = header + width;
        let mut most = 0;
        loop {
            let [a, b, c] = self.bytes(position)?;
            let block = u32::from_le_bytes([a, b, c, 0]);
            let (is_last, kind, length) = (block & 1 != 0, block >> 1 & 3, block >> 3);
            // raw, one byte repeated, compressed, reserved
            position += 3 + if kind == 1 { 1 } else { length as usize };
            most += if kind == COMPRESSED { LARGEST_BLOCK } else { u64::from(length) };
            if is_last {
                break;
            }
        }
        position += if descriptor & 4 == 0 { 0 } else { 4 };
        if position > self.data.len() {
            return Err(cut_off());
        }
        if size.is_some_and(|size| size > most || (size == 0 && most > 0)) {
            return Err(Error::broken("the frame cannot hold what it states"));
        }
        Ok(Frame { range: start..position, size, most })
    }

    fn step(&mut self) -> Result<Option<Frame>> {
        while self.position < self.data.len() {
            let magic = u32::from_le_bytes(self.bytes(self.position)?);
            if magic == MAGIC {
                let frame = self.frame()?;
                self.position = frame.range.end;
                return Ok(Some(frame));
            }
            if magic >> 4 != SKIPPABLE {
                return Err(Error::broken("no Zstandard frame"));
            }
            let length = u32::from_le_bytes(self.bytes(self.position + 4)?) as usize;
            let rest = self.data.len() - self.position - 8;
            if length > rest {
                return Err(cut_off());
            }
            self.position += 8 + length;
        }
        Ok(None)
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

fn cut_off() -> Error {
    Error::broken("the Zstandard frame is cut off")
}

/// What all frames together say.
#[derive(Default)]
struct Total {
    /// The sum of the sizes that are stated.
    stated: u64,
    /// How many frames do not state theirs.
    silent: usize,
    /// What those can hold at most.
    most_silent: u64,
}

impl Total {
    fn of(data: &[u8]) -> Result<Self> {
        if data.is_empty() {
            return Err(Error::broken("no Zstandard frame"));
        }
        let mut total = Self::default();
        for frame in Frames::of(data) {
            let frame = frame?;
            if let Some(size) = frame.size {
                total.stated = total.stated.checked_add(size).ok_or_else(|| Error::broken("too many bytes"))?;
            } else {
                total.silent += 1;
                total.most_silent += frame.most;
            }
        }
        Ok(total)
    }

    /// Refuse what the other engine refuses: it measures frames that do not state their size, if it is asked to
    /// measure at least `count` of them, by decoding them.
    fn check_silent(&self, count: usize, limit: u64) -> Result<()> {
        let bound = limit.saturating_mul(4).saturating_add(SLACK + 64 * LARGEST_BLOCK);
        if self.silent >= count && self.stated + self.most_silent > bound {
            return Err(Error::refused("frames that do not state their size"));
        }
        Ok(())
    }
}

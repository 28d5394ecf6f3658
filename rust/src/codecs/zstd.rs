//! Zstandard frames.
//!
//! The rules of the engine in Python, in `omnizarr.codecs.zstd`, apply here: frames may follow each other, be
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

/// Return what frames hold that were compressed with a dictionary: at most `limit` bytes.
///
/// # Errors
/// If they hold more, or are broken.
pub fn decompress_by(dictionary: &[u8], data: &[u8], limit: usize) -> Result<Vec<u8>> {
    if !data.starts_with(&MAGIC.to_le_bytes()) {
        return Err(Error::broken("no Zstandard frame"));
    }
    let mut out = Vec::new();
    room::clear(&mut out, limit)?;
    DECOMPRESSOR.with_borrow_mut(|slot| {
        created(slot, DCtx::try_create)?
            .decompress_using_dict(&mut out, data, dictionary)
            .map_err(|code| Error::broken(zstd_safe::get_error_name(code)))
    })?;
    if out.len() > limit {
        return Err(Error::broken(format!("more than {limit} bytes")));
    }
    Ok(out)
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
    /// The largest possible size of their content.
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

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_cut_off, check_round_trips, decoded, hex, numbers, text};
    use super::*;
    use crate::error::Kind;

    /// `numcodecs.zstd.compress(text, 3)`, numcodecs 0.16.6: states its size.
    const SIZED: &str = "28b52ffd2073f50000b86f6d6e697a617272207265616473206368756e6b732c20010053a7d904";
    /// The same with a checksum.
    const CHECKED: &str = "28b52ffd2473f50000b86f6d6e697a617272207265616473206368756e6b732c20010053a7d904d2c9d51c";
    /// `zstd --no-check` of a pipe, zstd 1.5.4: does not state its size.
    const SILENT: &str = "28b52ffd0058f50000b86f6d6e697a617272207265616473206368756e6b732c20010053a7d904";
    /// `zstd` of a pipe: the same with a checksum.
    const SILENT_CHECKED: &str =
        "28b52ffd0458f50000b86f6d6e697a617272207265616473206368756e6b732c20010053a7d904d2c9d51c";
    /// `zstd --no-check` of a pipe without bytes: states that it holds none.
    const EMPTY: &str = "28b52ffd2000010000";
    /// `zstd -D` with a trained dictionary.
    const WITH_DICTIONARY: &str = "28b52ffd0358717e5c0d7d0000082c04fca051006e50ac2229060503";
    /// A skippable frame of three bytes, as RFC 8878, 3.1.2 has them.
    const SKIPPABLE_FRAME: &[u8] = b"\x5a\x2a\x4d\x18\x03\0\0\0xyz";

    fn codec() -> Zstd {
        Zstd::new(0, false)
    }

    #[test]
    fn decodes_what_others_wrote() {
        for data in [SIZED, CHECKED, SILENT, SILENT_CHECKED] {
            check(&codec(), &hex(data), &text());
        }
        check(&codec(), &hex(EMPTY), b"");
    }

    #[test]
    fn frames_may_follow_each_other() {
        for data in [[SIZED, CHECKED], [SILENT, SIZED], [SIZED, SILENT], [SILENT, SILENT_CHECKED]] {
            check(&codec(), &hex(&data.concat()), &text().repeat(2));
        }
        check(&codec(), &hex(&[EMPTY, SILENT, EMPTY, EMPTY].concat()), &text());
    }

    #[test]
    fn skippable_frames_are_skipped() {
        let skippable = SKIPPABLE_FRAME;
        check(&codec(), &[skippable, &hex(SIZED), skippable, &hex(SILENT), skippable].concat(), &text().repeat(2));
        check(&codec(), skippable, b"");
        check_cut_off(&codec(), skippable, 0);
    }

    #[test]
    fn frames_that_are_cut_off_are_errors() {
        for data in [SIZED, CHECKED, SILENT, SILENT_CHECKED] {
            check_cut_off(&codec(), &hex(data), 115);
        }
        check_cut_off(&codec(), &hex(EMPTY), 0);
    }

    #[test]
    fn a_wrong_checksum_is_an_error() {
        for data in [hex(CHECKED), hex(SILENT_CHECKED)] {
            for at in data.len() - 4..data.len() {
                let mut broken = data.clone();
                broken[at] ^= 1;
                assert!(decoded(&codec(), &broken, 115).is_err());
            }
        }
    }

    #[test]
    fn anything_else_behind_a_frame_is_an_error() {
        for rest in [&b"\0"[..], b"\0\0\0\0\0\0\0\0", b"\x28\xb5\x2f\xfd"] {
            assert!(decoded(&codec(), &[&hex(SIZED), rest].concat(), 115).is_err());
        }
    }

    #[test]
    fn frames_of_older_formats_are_errors() {
        for magic in 0x1e..0x28 {
            let mut old = hex(SIZED);
            old[0] = magic;
            assert!(decoded(&codec(), &old, 115).is_err());
            assert!(decoded(&codec(), &[hex(SIZED), old].concat(), 230).is_err());
        }
    }

    #[test]
    fn frames_with_a_dictionary_are_refused() {
        let error = decoded(&codec(), &hex(WITH_DICTIONARY), 115).expect_err("not read here");
        assert_eq!(error.kind, Kind::Refused);
    }

    #[test]
    fn an_empty_frame_has_no_blocks_that_can_hold_something() {
        // one block of two bytes repeated, in a frame that states that it holds none
        assert!(decoded(&codec(), b"\x28\xb5\x2f\xfd\x20\x00\x13\0\0a", 0).is_err());
        // and in one that does not state its size, which is right
        check(&codec(), b"\x28\xb5\x2f\xfd\x00\x00\x13\0\0a", b"aa");
    }

    #[test]
    fn many_blocks_in_frames_that_do_not_state_their_sizes_are_refused() {
        // compressed blocks without sequences, of one literal: what they could hold is far more than what they do
        let mut frame = b"\x28\xb5\x2f\xfd\x00\x58".to_vec();
        frame.extend(b"\x1c\0\0\x08a\0".repeat(99));
        frame.extend(b"\x1d\0\0\x08a\0");
        assert_eq!(decoded(&codec(), &frame, 100).expect("a sound frame"), b"a".repeat(100));
        let error = decoded(&codec(), &frame.repeat(2), 200).expect_err("not measured here");
        assert_eq!(error.kind, Kind::Refused);
    }

    #[test]
    fn a_stated_size_that_blocks_cannot_hold_is_an_error() {
        // nothing is allocated for it
        let mut data = b"\x28\xb5\x2f\xfd\xe0".to_vec();
        data.extend(u64::MAX.to_le_bytes());
        data.extend(b"\x0b\0\0a");
        assert!(codec().decode_any(&data, usize::MAX, &mut Vec::new()).is_err());
    }

    #[test]
    fn round_trips_at_all_levels_with_and_without_a_checksum() {
        for level in [-131_072, -7, -1, 0, 1, 2, 3, 4, 5, 9, 12, 15, 19, 22] {
            check_round_trips(&Zstd::new(level, level % 2 == 0));
        }
    }

    #[test]
    fn encoded_frames_state_their_size_and_checksum() {
        let mut encoded = Vec::new();
        for checksum in [false, true] {
            Zstd::new(3, checksum).encode(&numbers(70_000), &mut encoded).expect("bytes");
            assert_eq!(encoded[..4], [0x28, 0xb5, 0x2f, 0xfd]);
            // four bytes of size, one segment; RFC 8878, 3.1.1.1
            assert_eq!(encoded[4], 0xa0 | if checksum { 4 } else { 0 });
            assert_eq!(encoded[5..9], 70_000_u32.to_le_bytes());
        }
    }

    #[test]
    fn large_frames_without_a_size_are_decoded() {
        let data = numbers(1 << 20);
        let mut context = CCtx::create();
        context.set_parameter(CParameter::ContentSizeFlag(false)).expect("a parameter");
        let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(data.len()));
        context.compress2(&mut encoded, &data).expect("bytes");
        check(&codec(), &encoded, &data);
    }
}

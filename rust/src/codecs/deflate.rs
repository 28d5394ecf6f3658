//! gzip and zlib: deflate streams between a header and a checksum, by libdeflate.
//!
//! The rules of the engine in Python, in `omnizarr.codecs.gzip` and `zlib`, apply here: several gzip members
//! are one value, zeros may follow the last, and what follows a zlib stream is ignored. libdeflate skips the checksum of
//! a gzip header, which zlib verifies, so members that have one are refused.
//!
//! One difference remains: libdeflate accepts some streams that zlib refuses, such as streams with a code without a
//! length. No program writes them, and the checksum after them verifies the decoded bytes.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use libdeflate_sys as sys;

use super::{Codec, room};
use crate::error::{Error, Result};

const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Flag of a gzip header that is followed by a checksum of its own.
const HEADER_CHECKSUM: u8 = 0x02;
/// What zlib takes -1 for.
const DEFAULT_LEVEL: i32 = 6;
const LEVELS: usize = 10;

/// gzip members.
#[derive(Clone, Copy, Debug)]
pub struct Gzip {
    level: usize,
}

/// One zlib stream.
#[derive(Clone, Copy, Debug)]
pub struct Zlib {
    level: usize,
}

impl Gzip {
    /// Compress with this level: 0 to 9, -1 for the default.
    ///
    /// # Errors
    /// If there is no such level.
    pub fn new(level: i32) -> Result<Self> {
        Ok(Self { level: level_of(level)? })
    }
}

impl Zlib {
    /// Compress with this level: 0 to 9, -1 for the default.
    ///
    /// # Errors
    /// If there is no such level.
    pub fn new(level: i32) -> Result<Self> {
        Ok(Self { level: level_of(level)? })
    }
}

impl Codec for Gzip {
    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        deflate(Format::Gzip, self.level, data, out)
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        exactly(members(data, as_room(out))?, out.len())
    }

    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        // The last four bytes state the size of the last member, nearly always of the only one.
        let stated = data.last_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes) as usize);
        room::grow(out, stated.clamp(data.len(), data.len().saturating_mul(1024)), limit, |room| members(data, room))
    }
}

impl Codec for Zlib {
    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        deflate(Format::Zlib, self.level, data, out)
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        inflate_zlib(data, out)
    }

    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        room::grow(out, data.len().saturating_mul(4), limit, |room| {
            Ok(inflate(Format::Zlib, data, room)?.map(|(_, size)| size))
        })
    }
}

/// Fill `out` with what a zlib stream holds.
pub(super) fn inflate_zlib(data: &[u8], out: &mut [u8]) -> Result<()> {
    exactly(inflate(Format::Zlib, data, as_room(out))?.map(|(_, size)| size), out.len())
}

/// CRC-32, as in gzip, of `data` behind bytes that have the CRC-32 `before`; that of no bytes is 0.
pub(super) fn crc32(before: u32, data: &[u8]) -> u32 {
    // SAFETY: the pointer and the length are those of a slice, never null.
    unsafe { sys::libdeflate_crc32(before, data.as_ptr().cast(), data.len()) }
}

/// Adler-32, as in zlib, of `data` behind bytes that have the Adler-32 `before`; that of no bytes is 1.
pub(super) fn adler32(before: u32, data: &[u8]) -> u32 {
    // SAFETY: the pointer and the length are those of a slice, never null.
    unsafe { sys::libdeflate_adler32(before, data.as_ptr().cast(), data.len()) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Gzip,
    Zlib,
}

fn level_of(level: i32) -> Result<usize> {
    let level = if level == -1 { DEFAULT_LEVEL } else { level };
    usize::try_from(level)
        .ok()
        .filter(|&level| level < LEVELS)
        .ok_or_else(|| Error::refused(format!("no level of deflate: {level}")))
}

fn exactly(found: Option<usize>, expected: usize) -> Result<()> {
    match found {
        Some(size) if size == expected => Ok(()),
        Some(size) => Err(Error::broken(format!("{size} bytes instead of {expected}"))),
        None => Err(Error::broken(format!("more than {expected} bytes"))),
    }
}

/// View bytes as room that only libdeflate writes to.
fn as_room(out: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the layout is the same, and nothing here writes bytes that have no value.
    unsafe { &mut *(std::ptr::from_mut(out) as *mut [MaybeUninit<u8>]) }
}

/// Decode all gzip members, and return how many bytes they hold; None if that is more than there is room for.
fn members(data: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<Option<usize>> {
    let (mut rest, mut size) = (data, 0);
    loop {
        if rest.get(3).is_some_and(|flags| flags & HEADER_CHECKSUM != 0) {
            return Err(Error::refused("a gzip header with a checksum"));
        }
        let Some((read, written)) = inflate(Format::Gzip, rest, &mut out[size..])? else { return Ok(None) };
        size += written;
        rest = &rest[read..];
        if !rest.starts_with(&MAGIC) {
            break;
        }
    }
    if rest.iter().any(|&byte| byte != 0) {
        return Err(Error::broken("bytes follow the gzip stream"));
    }
    Ok(Some(size))
}

struct Decompressor(NonNull<sys::libdeflate_decompressor>);

impl Decompressor {
    fn new() -> Option<Self> {
        // SAFETY: takes nothing; null, if there is no memory, becomes None.
        NonNull::new(unsafe { sys::libdeflate_alloc_decompressor() }).map(Self)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: made by the library, and freed only here.
        unsafe { sys::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

struct Compressor(NonNull<sys::libdeflate_compressor>);

impl Compressor {
    fn new(level: usize) -> Option<Self> {
        let level = c_int::try_from(level).ok()?;
        // SAFETY: any level may be asked for; null, for one that does not exist or if there is no memory, becomes None.
        NonNull::new(unsafe { sys::libdeflate_alloc_compressor(level) }).map(Self)
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: made by the library, and freed only here.
        unsafe { sys::libdeflate_free_compressor(self.0.as_ptr()) }
    }
}

thread_local! {
    // Making one costs as much as a small chunk. Each thread has its own, so no lock is held when a process forks.
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
    static COMPRESSORS: RefCell<[Option<Compressor>; LEVELS]> = const { RefCell::new([const { None }; LEVELS]) };
}

/// Decode one stream at the start of `data`, and return how many bytes were read and written; None if it holds more
/// than there is room for.
fn inflate(format: Format, data: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<Option<(usize, usize)>> {
    DECOMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Decompressor::new();
        }
        let Some(decompressor) = slot else { return Err(Error::refused("no memory for a decompressor")) };
        let decompress = match format {
            Format::Gzip => sys::libdeflate_gzip_decompress_ex,
            Format::Zlib => sys::libdeflate_zlib_decompress_ex,
        };
        let (mut read, mut written) = (0, 0);
        // SAFETY: pointers and lengths are those of slices; only this thread uses its decompressor.
        let result = unsafe {
            decompress(
                decompressor.0.as_ptr(),
                data.as_ptr().cast(),
                data.len(),
                out.as_mut_ptr().cast(),
                out.len(),
                &raw mut read,
                &raw mut written,
            )
        };
        match result {
            sys::libdeflate_result_LIBDEFLATE_SUCCESS => Ok(Some((read, written))),
            sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Ok(None),
            _ => Err(Error::broken("the deflate stream is broken")),
        }
    })
}

/// Put one stream that holds `data` into `out`. It has no time and no name, so equal bytes give equal streams.
fn deflate(format: Format, level: usize, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    COMPRESSORS.with_borrow_mut(|slots| {
        let slot = &mut slots[level];
        if slot.is_none() {
            *slot = Compressor::new(level);
        }
        let Some(compressor) = slot else { return Err(Error::refused("no memory for a compressor")) };
        let compressor = compressor.0.as_ptr();
        // SAFETY: the compressor is sound.
        let bound = unsafe {
            match format {
                Format::Gzip => sys::libdeflate_gzip_compress_bound(compressor, data.len()),
                Format::Zlib => sys::libdeflate_zlib_compress_bound(compressor, data.len()),
            }
        };
        room::clear(out, bound)?;
        let compress = match format {
            Format::Gzip => sys::libdeflate_gzip_compress,
            Format::Zlib => sys::libdeflate_zlib_compress,
        };
        // SAFETY: pointers and lengths are those of a slice and of the spare capacity of an empty vector; only this
        // thread uses its compressor.
        let size =
            unsafe { compress(compressor, data.as_ptr().cast(), data.len(), out.as_mut_ptr().cast(), out.capacity()) };
        if size == 0 {
            return Err(Error::refused("deflate needs more room than it says"));
        }
        // SAFETY: the library wrote so many bytes, into room that there was.
        unsafe { out.set_len(size) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_cut_off, check_round_trips, decoded, hex, numbers, text};
    use super::*;
    use crate::error::Kind;

    /// `gzip.compress(text, 6, mtime=0)`, Python 3.11.7 with zlib 1.2.13.
    const GZIP: &str = "1f8b0800000000000003cbcfcdcbac4a2c2a52284a4d4c295648ce28cdcb2ed651c8a7a13000c2e6b27073000000";
    /// The same text in a file, by gzip 1.12: with the time and name of the file.
    const GZIP_NAMED: &str = "1f8b08081beb016b00036e616d652e74787400cbcfcdcbac4a2c2a52284a4d4c295648ce28cdcb2ed651c8a7a13000c2e6b27073000000";
    /// `gzip.compress(b"", 6, mtime=0)`.
    const GZIP_EMPTY: &str = "1f8b080000000000000303000000000000000000";
    /// `zlib.compress(text, 6)`, zlib 1.2.13.
    const ZLIB: &str = "789ccbcfcdcbac4a2c2a52284a4d4c295648ce28cdcb2ed651c8a7a13000dc332afe";
    /// `zlib.compress(b"", 6)`.
    const ZLIB_EMPTY: &str = "789c030000000001";
    /// `zlib.compressobj(6, zdict=b"omnizarr reads")`.
    const ZLIB_DICTIONARY: &str = "78bb2b1b05a2cb47e129246794e66517eb28d0521800dc332afe";

    fn gzip() -> Gzip {
        Gzip::new(5).expect("a level")
    }

    fn zlib() -> Zlib {
        Zlib::new(5).expect("a level")
    }

    #[test]
    fn gzip_decodes_what_others_wrote() {
        check(&gzip(), &hex(GZIP), &text());
        check(&gzip(), &hex(GZIP_NAMED), &text());
        check(&gzip(), &hex(GZIP_EMPTY), b"");
    }

    #[test]
    fn zlib_decodes_what_others_wrote() {
        check(&zlib(), &hex(ZLIB), &text());
        check(&zlib(), &hex(ZLIB_EMPTY), b"");
    }

    #[test]
    fn several_gzip_members_are_one_value() {
        let members = [hex(GZIP_EMPTY), hex(GZIP), hex(GZIP_NAMED), hex(GZIP_EMPTY)].concat();
        check(&gzip(), &members, &text().repeat(2));
    }

    #[test]
    fn zeros_may_follow_the_last_gzip_member() {
        check(&gzip(), &[hex(GZIP), vec![0; 9]].concat(), &text());
    }

    #[test]
    fn anything_else_behind_a_gzip_member_is_an_error() {
        for rest in [&b"\x01"[..], b"\0\0x", b"\x1f", b"\x1f\x8b", b"\0\x1f\x8b\x08"] {
            assert!(decoded(&gzip(), &[&hex(GZIP), rest].concat(), 115).is_err(), "{rest:?}");
        }
        let after_zeros = [hex(GZIP), vec![0; 3], hex(GZIP)].concat();
        assert!(decoded(&gzip(), &after_zeros, 230).is_err());
    }

    #[test]
    fn what_follows_a_zlib_stream_is_ignored() {
        check(&zlib(), &[&hex(ZLIB), &b"anything"[..]].concat(), &text());
        check(&zlib(), &[hex(ZLIB), hex(ZLIB)].concat(), &text());
    }

    #[test]
    fn streams_that_are_cut_off_are_errors() {
        check_cut_off(&gzip(), &hex(GZIP), 115);
        check_cut_off(&gzip(), &hex(GZIP_NAMED), 115);
        check_cut_off(&gzip(), &hex(GZIP_EMPTY), 0);
        check_cut_off(&zlib(), &hex(ZLIB), 115);
        check_cut_off(&zlib(), &hex(ZLIB_EMPTY), 0);
    }

    #[test]
    fn wrong_checksums_and_sizes_are_errors() {
        let gzip_data = hex(GZIP);
        for at in gzip_data.len() - 8..gzip_data.len() {
            let mut broken = gzip_data.clone();
            broken[at] ^= 1;
            assert!(decoded(&gzip(), &broken, 115).is_err(), "{at}");
        }
        let zlib_data = hex(ZLIB);
        for at in zlib_data.len() - 4..zlib_data.len() {
            let mut broken = zlib_data.clone();
            broken[at] ^= 1;
            assert!(decoded(&zlib(), &broken, 115).is_err(), "{at}");
        }
    }

    #[test]
    fn headers_that_say_what_is_not_known_here_are_refused() {
        let mut with_checksum = hex(GZIP);
        with_checksum[3] |= HEADER_CHECKSUM;
        let error = decoded(&gzip(), &with_checksum, 115).expect_err("not read here");
        assert_eq!(error.kind, Kind::Refused);
        let in_the_second = [hex(GZIP), with_checksum].concat();
        assert_eq!(decoded(&gzip(), &in_the_second, 230).expect_err("not read here").kind, Kind::Refused);
        assert!(decoded(&zlib(), &hex(ZLIB_DICTIONARY), 115).is_err());
    }

    #[test]
    fn round_trips_at_all_levels() {
        for level in -1..10 {
            check_round_trips(&Gzip::new(level).expect("a level"));
            check_round_trips(&Zlib::new(level).expect("a level"));
        }
    }

    #[test]
    fn there_are_no_other_levels() {
        for level in [-2, 10, i32::MIN, i32::MAX] {
            assert_eq!(Gzip::new(level).expect_err("no level").kind, Kind::Refused);
            assert_eq!(Zlib::new(level).expect_err("no level").kind, Kind::Refused);
        }
    }

    #[test]
    fn equal_bytes_are_equal_when_encoded_and_have_no_time() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        gzip().encode(&numbers(5000), &mut first).expect("bytes");
        gzip().encode(&numbers(300), &mut second).expect("bytes");
        gzip().encode(&numbers(5000), &mut second).expect("bytes");
        assert_eq!(first, second);
        assert_eq!(first[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn decode_any_finds_room_for_what_compresses_well() {
        let data = vec![0; 1 << 20];
        let mut encoded = Vec::new();
        gzip().encode(&data, &mut encoded).expect("bytes");
        check(&gzip(), &encoded.repeat(2), &data.repeat(2));
        zlib().encode(&data, &mut encoded).expect("bytes");
        check(&zlib(), &encoded, &data);
    }
}

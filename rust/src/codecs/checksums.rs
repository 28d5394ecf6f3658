//! Checksums: four bytes, little-endian, before or behind the data.

use super::{Codec, deflate, room};
use crate::error::{Error, Result};

const WIDTH: usize = 4;
/// Bytes of a block of lookup3.
const WORDS: usize = 12;
/// Bytes that are copied at once: few enough to be in the cache of the processor when their checksum is computed.
const PIECE: usize = 1 << 15;

/// Which checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-32, as in gzip.
    Crc32,
    /// Adler-32, as in zlib.
    Adler32,
    /// Fletcher-32 over big-endian numbers of 16 bits, as in HDF5.
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

    /// Return the data and the checksum beside it.
    fn split(self, data: &[u8]) -> Result<(&[u8], u32)> {
        let parts = if self.is_first {
            data.split_first_chunk::<WIDTH>()
        } else {
            data.split_last_chunk::<WIDTH>().map(|(rest, stored)| (stored, rest))
        };
        let (stored, rest) = parts.ok_or_else(|| Error::broken("too short for a checksum"))?;
        Ok((rest, u32::from_le_bytes(*stored)))
    }

    /// Return the data, whose checksum was found right.
    fn verified(self, data: &[u8]) -> Result<&[u8]> {
        let (rest, stored) = self.split(data)?;
        check(self.kind.of(rest), stored)?;
        Ok(rest)
    }
}

impl Codec for Checksum {
    fn encoded_size(&self, decoded: usize) -> Option<usize> {
        decoded.checked_add(WIDTH)
    }

    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        room::clear(out, data.len().saturating_add(WIDTH))?;
        if self.is_first {
            out.extend_from_slice(&[0; WIDTH]);
        }
        let mut running = Running::new(self.kind);
        for piece in data.chunks(PIECE) {
            out.extend_from_slice(piece);
            running.add(piece);
        }
        let stored = running.finish().to_le_bytes();
        if self.is_first {
            out[..WIDTH].copy_from_slice(&stored);
        } else {
            out.extend_from_slice(&stored);
        }
        Ok(())
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len().checked_sub(WIDTH) != Some(out.len()) {
            return Err(Error::broken(format!("{} bytes instead of {} and a checksum", data.len(), out.len())));
        }
        let (rest, stored) = self.split(data)?;
        let mut running = Running::new(self.kind);
        for (piece, out) in rest.chunks(PIECE).zip(out.chunks_mut(PIECE)) {
            running.add(piece);
            out.copy_from_slice(piece);
        }
        check(running.finish(), stored)
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
        let mut running = Running::new(self);
        running.add(data);
        running.finish()
    }
}

/// Return the hash lookup3 of Bob Jenkins, by which HDF5 checks its metadata.
#[must_use]
#[allow(clippy::many_single_char_names)] // those of its author
pub fn lookup3(data: &[u8]) -> u32 {
    // lookup3 counts in 32 bits
    #[allow(clippy::cast_possible_truncation)]
    let start = 0xdead_beef_u32.wrapping_add(data.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let last = data.len().saturating_sub(1) / WORDS * WORDS;
    let (whole, rest) = data.split_at(last);
    for block in whole.chunks_exact(WORDS) {
        let [x, y, z] = words(block);
        (a, b, c) = (a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    if rest.is_empty() {
        return c;
    }
    let mut block = [0; WORDS];
    block[..rest.len()].copy_from_slice(rest);
    let [x, y, z] = words(&block);
    (a, b, c) = (a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// Return the three words of a block.
fn words(block: &[u8]) -> [u32; 3] {
    std::array::from_fn(|at| u32::from_le_bytes(std::array::from_fn(|byte| block[4 * at + byte])))
}

fn check(found: u32, stored: u32) -> Result<()> {
    if found != stored {
        return Err(Error::broken("the checksum differs"));
    }
    Ok(())
}

/// A checksum of bytes that arrive in pieces. All pieces except the last have an even number of bytes.
enum Running {
    Crc32c(u32),
    Crc32(u32),
    Adler32(u32),
    Fletcher32(Fletcher32),
}

impl Running {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Crc32c => Self::Crc32c(0),
            Kind::Crc32 => Self::Crc32(0),
            Kind::Adler32 => Self::Adler32(1),
            Kind::Fletcher32 => Self::Fletcher32(Fletcher32::default()),
        }
    }

    fn add(&mut self, piece: &[u8]) {
        match self {
            Self::Crc32c(sum) => *sum = crc32c::crc32c_append(*sum, piece),
            Self::Crc32(sum) => *sum = deflate::crc32(*sum, piece),
            Self::Adler32(sum) => *sum = deflate::adler32(*sum, piece),
            Self::Fletcher32(sums) => sums.add(piece),
        }
    }

    fn finish(self) -> u32 {
        match self {
            Self::Crc32c(sum) | Self::Crc32(sum) | Self::Adler32(sum) => sum,
            Self::Fletcher32(sums) => sums.finish(),
        }
    }
}

/// The sum of all words, and the sum of that sum after each of them, both modulo 65535, where 65535 means 0
/// unless all words are 0. HDF5 adds 16 bits at a time with end-around carry, which gives the same result.
#[derive(Default)]
struct Fletcher32 {
    sum: u64,
    sum_of_sums: u64,
}

impl Fletcher32 {
    fn add(&mut self, data: &[u8]) {
        // The weighted sum of this many words fits into 32 bits, so that processors add many at once.
        const WORDS: u32 = 256;
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
            self.sum_of_sums = reduced(self.sum_of_sums + u64::from(count) * self.sum + u64::from(weighted));
            self.sum = reduced(self.sum + u64::from(plain));
        }
    }

    fn finish(self) -> u32 {
        // both are less than 2^16
        u32::try_from(self.sum_of_sums << 16 | self.sum).unwrap_or_default()
    }
}

fn reduced(sum: u64) -> u64 {
    if sum == 0 { 0 } else { (sum - 1) % 65535 + 1 }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_cut_off, check_round_trips, decoded};
    use super::*;

    const ALL: [Kind; 4] = [Kind::Crc32c, Kind::Crc32, Kind::Adler32, Kind::Fletcher32];

    /// Bytes that no checksum takes for others.
    fn ramp(size: usize, modulus: usize) -> Vec<u8> {
        (0..size).map(|i| u8::try_from(i * 7 % modulus).expect("a byte")).collect()
    }

    #[test]
    fn crcs_have_their_check_values() {
        // the catalogue of parametrised CRC algorithms: CRC-32/ISCSI and CRC-32/ISO-HDLC
        assert_eq!(Kind::Crc32c.of(b"123456789"), 0xe306_9283);
        assert_eq!(Kind::Crc32.of(b"123456789"), 0xcbf4_3926);
        assert_eq!((Kind::Crc32c.of(b""), Kind::Crc32.of(b"")), (0, 0));
    }

    #[test]
    fn crc32c_has_the_values_of_its_specification() {
        // RFC 3720, B.4
        assert_eq!(Kind::Crc32c.of(&[0; 32]), 0x8a91_36aa);
        assert_eq!(Kind::Crc32c.of(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn adler32_has_the_values_of_zlib() {
        assert_eq!(Kind::Adler32.of(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(Kind::Adler32.of(b""), 1);
    }

    #[test]
    fn long_bytes_have_the_values_of_other_programs() {
        // google-crc32c 1.9.0, zlib 1.2.13 and numcodecs 0.16.6
        let data = ramp(100_001, 251);
        assert_eq!(Kind::Crc32c.of(&data), 0x43c9_4311);
        assert_eq!(Kind::Crc32.of(&data), 0xb6d9_ef8e);
        assert_eq!(Kind::Adler32.of(&data), 0x088c_c502);
        assert_eq!(Kind::Fletcher32.of(&data), 0xa026_63f4);
    }

    #[test]
    fn fletcher32_has_the_values_of_numcodecs() {
        // numcodecs 0.16.6
        let cases: [(&[u8], u32); 10] = [
            (b"a", 0x6100_6100),
            (b"abcde", 0x4ff0_29c7),
            (b"abcdef", 0x5056_2a2d),
            (b"123456789", 0x09df_09d5),
            (&[0; 1000], 0),
            (b"\xff\xff", 0xffff_ffff),
            (&[0xff; 1000], 0xffff_ffff),
            (&[0xff; 1001], 0xff00_ff00),
            (b"\x00\x01\xff\xfe", 0x0001_ffff),
            (&ramp(721, 256), 0x434d_4a72),
        ];
        for (data, expected) in cases {
            assert_eq!(Kind::Fletcher32.of(data), expected, "{data:02x?}");
        }
        assert_eq!(Kind::Fletcher32.of(b""), 0);
    }

    #[test]
    fn lookup3_has_the_values_of_its_author_and_of_numcodecs() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
        // numcodecs 0.16.6
        assert_eq!(lookup3(&ramp(12, 256)), 0x4614_fb6b);
        assert_eq!(lookup3(&ramp(24, 256)), 0xec28_ba43);
        assert_eq!(lookup3(&ramp(721, 256)), 0x2cb6_3942);
    }

    #[test]
    fn stands_where_it_is_said_to() {
        let mut out = vec![1];
        Checksum::new(Kind::Crc32c, false).encode(b"123456789", &mut out).expect("bytes");
        assert_eq!(out, b"123456789\x83\x92\x06\xe3");
        Checksum::new(Kind::Crc32, true).encode(b"123456789", &mut out).expect("bytes");
        assert_eq!(out, b"\x26\x39\xf4\xcb123456789");
        check(&Checksum::new(Kind::Crc32c, false), b"123456789\x83\x92\x06\xe3", b"123456789");
        check(&Checksum::new(Kind::Crc32, true), b"\x26\x39\xf4\xcb123456789", b"123456789");
    }

    #[test]
    fn round_trips_on_both_sides() {
        for kind in ALL {
            check_round_trips(&Checksum::new(kind, true));
            check_round_trips(&Checksum::new(kind, false));
        }
    }

    #[test]
    fn any_wrong_bit_is_an_error() {
        for (kind, is_first) in ALL.into_iter().flat_map(|kind| [(kind, true), (kind, false)]) {
            let codec = Checksum::new(kind, is_first);
            let mut encoded = Vec::new();
            codec.encode(b"123456789", &mut encoded).expect("bytes");
            check_cut_off(&codec, &encoded, 9);
            for bit in 0..encoded.len() * 8 {
                let mut broken = encoded.clone();
                broken[bit / 8] ^= 1 << (bit % 8);
                assert!(decoded(&codec, &broken, 9).is_err(), "{kind:?} {bit}");
                assert!(codec.decode_view(&broken).is_some_and(|view| view.is_err()), "{kind:?} {bit}");
            }
        }
    }

    #[test]
    fn decodes_without_a_copy() {
        let encoded = b"123456789\x83\x92\x06\xe3";
        let view = Checksum::new(Kind::Crc32c, false).decode_view(encoded).expect("a view").expect("sound bytes");
        assert_eq!(view.as_ptr_range(), encoded[..9].as_ptr_range());
    }
}

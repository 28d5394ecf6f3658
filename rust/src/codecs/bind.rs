//! Codecs by name, with the arguments that `omnizarr.codecs.chain.describe_chain` writes down.
//!
//! | kind | name | arguments |
//! |---|---|---|
//! | codec | `gzip`, `zlib` | level |
//! | | `zstd` | level, checksum |
//! | | `lz4` | acceleration |
//! | | `blosc` | name of the compressor, level, shuffle, type size, block size |
//! | | `crc32c`, `crc32`, `adler32`, `fletcher32` | whether it stands before the data |
//! | | `shuffle` | item size |
//! | | `tiff_predictor` | elements of a row, samples, bytes of an element, whether swapped, whether floats |
//! | filter | `astype`, `delta` | number of elements, type in memory, type stored |
//! | | `fixedscaleoffset` | the same, offset, scale |
//! | | `quantize` | the same, scale |
//! | | `bitround` | number of floats, bytes of one, whether swapped, bits of the mantissa (0: integers), bits kept |
//! | | `packbools` | number of elements |
//! | | `packbits` | components, bytes of one, whether swapped, first bit, last bit, whether signed, padding |
//! | elements | | bytes of one, list of `swap` (offset, width, count), `bool` (offset, count), `mask` (offset, count, mask) and `text` (offset, count, whether swapped) |
//!
//! Types are type strings of NumPy that say their byte order; "swapped" means in the order that this machine has not.

use crate::codecs::elements::{Elements, Fix};
use crate::codecs::packbits::{PackBits, PackBools, Padding};
use crate::codecs::{Codec, Filter};
use crate::codecs::{
    astype, bitround, blosc, checksums, deflate, delta, fixedscaleoffset, lz4, predictor, quantize, shuffle, zstd,
};
use crate::error::{Error, Result};
use crate::numbers::Type;

/// A plain value.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An integer.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A name.
    Text(String),
    /// Several of them.
    List(Vec<Argument>),
}

use Argument::{Bool, Float, Int, List, Text};

fn narrow<T: TryFrom<i64>>(number: i64) -> Result<T> {
    T::try_from(number).map_err(|_| Error::refused("an argument that is out of range"))
}

fn unknown(name: &str) -> Error {
    Error::refused(format!("{name} with such arguments"))
}

/// Bytes to bytes.
///
/// # Errors
/// If there is no such codec here.
pub fn codec(name: &str, arguments: &[Argument]) -> Result<Box<dyn Codec>> {
    Ok(match (name, arguments) {
        ("gzip", [Int(level)]) => Box::new(deflate::Gzip::new(narrow(*level)?)?),
        ("zlib", [Int(level)]) => Box::new(deflate::Zlib::new(narrow(*level)?)?),
        ("zstd", [Int(level), Bool(checksum)]) => Box::new(zstd::Zstd::new(narrow(*level)?, *checksum)),
        ("lz4", [Int(acceleration)]) => Box::new(lz4::Lz4::new(narrow(*acceleration)?)),
        ("blosc", [Text(cname), Int(clevel), Int(shuffle), Int(typesize), Int(blocksize)]) => Box::new(
            blosc::Blosc::new(cname, narrow(*clevel)?, narrow(*shuffle)?, narrow(*typesize)?, narrow(*blocksize)?)?,
        ),
        ("crc32c", [Bool(is_first)]) => Box::new(checksums::Checksum::new(checksums::Kind::Crc32c, *is_first)),
        ("crc32", [Bool(is_first)]) => Box::new(checksums::Checksum::new(checksums::Kind::Crc32, *is_first)),
        ("adler32", [Bool(is_first)]) => Box::new(checksums::Checksum::new(checksums::Kind::Adler32, *is_first)),
        ("fletcher32", [Bool(is_first)]) => Box::new(checksums::Checksum::new(checksums::Kind::Fletcher32, *is_first)),
        ("shuffle", [Int(item)]) if *item > 0 => Box::new(shuffle::Shuffle::new(narrow(*item)?)),
        ("tiff_predictor", [Int(row), Int(samples), Int(size), Bool(swapped), Bool(is_floating)]) => {
            let is_little = cfg!(target_endian = "little") != *swapped;
            Box::new(predictor::Predictor::new(
                narrow(*row)?,
                narrow(*samples)?,
                narrow(*size)?,
                is_little,
                *is_floating,
            )?)
        }
        _ => return Err(unknown(name)),
    })
}

/// Elements to elements.
///
/// # Errors
/// If there is no such filter here, or none for such elements.
pub fn filter(name: &str, arguments: &[Argument]) -> Result<Box<dyn Filter>> {
    Ok(match (name, arguments) {
        ("packbools", [Int(count)]) => Box::new(PackBools::new(narrow(*count)?)),
        (
            "packbits",
            [Int(components), Int(width), Bool(swapped), Int(first), Int(last), Bool(signed), Text(padding)],
        ) => {
            let padding = match padding.as_str() {
                "none" => Padding::None,
                "first_byte" => Padding::First,
                "last_byte" => Padding::Last,
                _ => return Err(unknown(name)),
            };
            let (first, last) = (narrow(*first)?, narrow(*last)?);
            Box::new(PackBits::new(narrow(*components)?, narrow(*width)?, *swapped, first, last, *signed, padding)?)
        }
        ("bitround", [Int(count), Int(width), Bool(swapped), Int(mantissa), Int(keepbits)]) => {
            let (mantissa, keepbits) = (narrow(*mantissa)?, narrow(*keepbits)?);
            Box::new(bitround::BitRound::new(narrow(*count)?, narrow(*width)?, *swapped, mantissa, keepbits)?)
        }
        (_, [Int(count), Text(decoded), Text(encoded), parameters @ ..]) => {
            let (count, decoded, encoded) = (narrow(*count)?, Type::parse(decoded)?, Type::parse(encoded)?);
            match (name, parameters) {
                ("astype", []) => Box::new(astype::AsType::new(count, decoded, encoded)?),
                ("delta", []) => Box::new(delta::Delta::new(count, decoded, encoded)?),
                ("fixedscaleoffset", [Float(offset), Float(scale)]) => {
                    Box::new(fixedscaleoffset::FixedScaleOffset::new(count, decoded, encoded, *offset, *scale)?)
                }
                ("quantize", [Float(scale)]) => Box::new(quantize::Quantize::new(count, decoded, encoded, *scale)?),
                _ => return Err(unknown(name)),
            }
        }
        _ => return Err(unknown(name)),
    })
}

/// Elements as they are stored.
///
/// # Errors
/// If this is not how to describe them.
pub fn elements(arguments: &[Argument]) -> Result<Elements> {
    let [Int(item), List(fixes)] = arguments else { return Err(unknown("elements")) };
    Elements::new(narrow(*item)?, fixes.iter().map(fix).collect::<Result<_>>()?)
}

fn fix(argument: &Argument) -> Result<Fix> {
    let List(parts) = argument else { return Err(unknown("elements")) };
    let [Text(name), Int(offset), parameters @ ..] = parts.as_slice() else { return Err(unknown("elements")) };
    let offset = narrow(*offset)?;
    match (name.as_str(), parameters) {
        ("swap", [Int(width), Int(count)]) => Ok(Fix::Swap { offset, width: narrow(*width)?, count: narrow(*count)? }),
        ("bool", [Int(count)]) => Ok(Fix::Bool { offset, count: narrow(*count)? }),
        ("mask", [Int(count), Int(mask)]) => Ok(Fix::Mask { offset, count: narrow(*count)?, mask: narrow(*mask)? }),
        ("text", [Int(count), Bool(swapped)]) => Ok(Fix::Text { offset, count: narrow(*count)?, swapped: *swapped }),
        _ => Err(unknown(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn text(text: &str) -> Argument {
        Text(text.into())
    }

    #[test]
    fn every_codec_is_known_by_its_name() {
        for (name, arguments) in [
            ("gzip", vec![Int(-1)]),
            ("zlib", vec![Int(9)]),
            ("zstd", vec![Int(-131_072), Bool(true)]),
            ("lz4", vec![Int(-2_147_483_648)]),
            ("blosc", vec![text("zstd"), Int(5), Int(2), Int(4), Int(0)]),
            ("crc32c", vec![Bool(false)]),
            ("crc32", vec![Bool(true)]),
            ("adler32", vec![Bool(true)]),
            ("fletcher32", vec![Bool(false)]),
            ("shuffle", vec![Int(4)]),
        ] {
            let codec = codec(name, &arguments).unwrap();
            let (mut encoded, mut decoded) = (Vec::new(), [0; 8]);
            codec.encode(b"abcdefgh", &mut encoded).unwrap();
            codec.decode(&encoded, &mut decoded).unwrap();
            assert_eq!(&decoded, b"abcdefgh", "{name}");
        }
    }

    #[test]
    fn every_filter_is_known_by_its_name() {
        let row = |count: i64| vec![Int(count), text("<f8"), text("<f8")];
        for (name, arguments, size) in [
            ("astype", row(2), 16),
            ("delta", row(2), 16),
            ("fixedscaleoffset", [row(2), vec![Float(0.0), Float(1.0)]].concat(), 16),
            ("quantize", [row(2), vec![Float(8.0)]].concat(), 16),
            ("bitround", vec![Int(4), Int(4), Bool(false), Int(23), Int(5)], 16),
            ("packbools", vec![Int(16)], 3),
            ("packbits", vec![Int(16), Int(1), Bool(false), Int(0), Int(1), Bool(true), text("last_byte")], 5),
        ] {
            let filter = filter(name, &arguments).unwrap();
            assert_eq!(filter.encoded_size(), size, "{name}");
            let mut encoded = vec![0; size];
            filter.encode(&[0; 16], &mut encoded).unwrap();
            filter.decode(&encoded, &mut [1; 16]).unwrap();
        }
    }

    #[test]
    fn elements_are_known_by_what_is_to_be_done_to_them() {
        let fixes = List(vec![
            List(vec![text("swap"), Int(0), Int(2), Int(1)]),
            List(vec![text("bool"), Int(2), Int(1)]),
            List(vec![text("mask"), Int(3), Int(1), Int(15)]),
            List(vec![text("text"), Int(4), Int(1), Bool(false)]),
        ]);
        let mut bytes = [1, 2, 3, 255, 0, 0, 0, 0];
        elements(&[Int(8), fixes]).unwrap().decode(&mut bytes).unwrap();
        assert_eq!(bytes, [2, 1, 1, 15, 0, 0, 0, 0]);
    }

    #[test]
    fn other_names_and_arguments_are_refused() {
        assert_eq!(codec("bz2", &[Int(1)]).err().map(|error| error.kind), Some(Kind::Refused));
        for (name, arguments) in [
            ("gzip", vec![]),
            ("gzip", vec![Bool(true)]),
            ("gzip", vec![Int(i64::MAX)]),
            ("shuffle", vec![Int(0)]),
            ("shuffle", vec![Int(-4)]),
            ("blosc", vec![text("zstd"), Int(-1), Int(2), Int(4), Int(0)]),
        ] {
            assert!(codec(name, &arguments).is_err(), "{name}");
        }
        for (name, arguments) in [
            ("gzip", vec![Int(1)]),
            ("delta", vec![Int(-1), text("<i4"), text("<i4")]),
            ("delta", vec![Int(1), text("<i4"), text("<c8")]),
            ("delta", vec![Int(1), text("<i4"), text("<i4"), Int(1)]),
            ("packbits", vec![Int(16), Int(1), Bool(false), Int(0), Int(1), Bool(true), text("middle")]),
        ] {
            assert!(filter(name, &arguments).is_err(), "{name}");
        }
        assert!(elements(&[Int(4)]).is_err());
        assert!(elements(&[Int(4), List(vec![Int(1)])]).is_err());
        assert!(elements(&[Int(4), List(vec![List(vec![text("turn"), Int(0)])])]).is_err());
    }
}

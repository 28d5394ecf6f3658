//! packbits: elements of few bits, packed without gaps. See `omnizarr.codecs.packbits` for the two codecs of this name.

use crate::codecs::Filter;
use crate::error::{Error, Result};

/// The filter of numcodecs: truth values, highest bit first, behind the number of bits that fill the last byte.
#[derive(Clone, Copy, Debug)]
pub struct PackBools {
    count: usize,
}

impl PackBools {
    /// The filter for `count` elements of one byte.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { count }
    }

    fn check(self, decoded: &[u8], encoded: &[u8]) -> Result<()> {
        if decoded.len() == self.count && encoded.len() == self.encoded_size() {
            Ok(())
        } else {
            Err(Error::refused("another number of elements"))
        }
    }

    fn padding(self) -> u8 {
        padding_of(self.count)
    }
}

/// How many bits fill the last byte.
fn padding_of(bits: usize) -> u8 {
    // Less than 8.
    ((8 - bits % 8) % 8).to_le_bytes()[0]
}

impl Filter for PackBools {
    fn encoded_size(&self) -> usize {
        1 + self.count.div_ceil(8)
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.check(out, data)?;
        if data[0] != self.padding() {
            return Err(Error::broken("the number of padding bits is wrong"));
        }
        for (byte, values) in data[1..].iter().zip(out.chunks_mut(8)) {
            for (place, value) in values.iter_mut().enumerate() {
                *value = byte >> (7 - place) & 1;
            }
        }
        Ok(())
    }

    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.check(data, out)?;
        out[0] = self.padding();
        for (values, byte) in data.chunks(8).zip(&mut out[1..]) {
            *byte =
                values.iter().enumerate().fold(0, |byte, (place, &value)| byte | u8::from(value != 0) << (7 - place));
        }
        Ok(())
    }
}

/// Where the number of bits that fill the last byte is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Nowhere.
    None,
    /// In a byte in front.
    First,
    /// In a byte behind.
    Last,
}

/// The codec of zarr-extensions: some bits of each component of the elements, lowest bit first.
#[derive(Clone, Copy, Debug)]
pub struct PackBits {
    /// Of all elements.
    components: usize,
    /// Bytes of a component in memory.
    width: usize,
    /// Its first byte in memory is the highest.
    is_big: bool,
    first: u32,
    /// How many bits of a component are stored, from `first` on.
    bits: u32,
    is_signed: bool,
    padding: Padding,
}

/// A component and its parts.
struct Layout {
    /// Bytes of a component in memory.
    width: usize,
    is_big: bool,
}

impl Layout {
    fn load(&self, component: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        bytes[..self.width].copy_from_slice(component);
        if self.is_big {
            bytes[..self.width].reverse();
        }
        u64::from_le_bytes(bytes)
    }

    fn store(&self, value: u64, component: &mut [u8]) {
        component.copy_from_slice(&value.to_le_bytes()[..self.width]);
        if self.is_big {
            component.reverse();
        }
    }
}

impl PackBits {
    /// The codec for so many `components` of `width` bytes, in the byte order that this machine has not if `swapped`.
    /// The bits from `first` to `last`, both counted from the lowest and included, are stored; those above are copies
    /// of the last one `if is_signed`, else 0.
    ///
    /// # Errors
    /// If there are no such bits, or more than can be.
    pub fn new(
        components: usize,
        width: usize,
        swapped: bool,
        first: u32,
        last: u32,
        is_signed: bool,
        padding: Padding,
    ) -> Result<Self> {
        let fits = components.checked_mul(64).is_some_and(|bits| isize::try_from(bits).is_ok());
        if !fits || !(1..=8).contains(&width) || first > last || last as usize >= 8 * width {
            return Err(Error::refused("bits of such a form"));
        }
        let is_big = swapped == cfg!(target_endian = "little");
        Ok(Self { components, width, is_big, first, bits: last - first + 1, is_signed, padding })
    }

    /// Bytes of all bits, without the number of those that fill the last.
    fn packed(&self) -> usize {
        (self.components * self.bits as usize).div_ceil(8)
    }

    /// The begin of the packed bytes, and the place of the number of padding bits.
    fn places(&self) -> (usize, Option<usize>) {
        match self.padding {
            Padding::None => (0, None),
            Padding::First => (1, Some(0)),
            Padding::Last => (0, Some(self.packed())),
        }
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    fn check(self, decoded: &[u8], encoded: &[u8]) -> Result<()> {
        if decoded.len() == self.components * self.width && encoded.len() == self.encoded_size() {
            Ok(())
        } else {
            Err(Error::refused("another number of elements"))
        }
    }
}

impl Filter for PackBits {
    fn encoded_size(&self) -> usize {
        self.packed() + usize::from(self.padding != Padding::None)
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.check(out, data)?;
        let (start, padding) = self.places();
        if padding.is_some_and(|at| data[at] != padding_of(self.components * self.bits as usize)) {
            return Err(Error::broken("the number of padding bits is wrong"));
        }
        let layout = Layout { width: self.width, is_big: self.is_big };
        let (mask, bits) = (self.mask(), self.bits);
        // The bits above the last one, if that is set.
        let sign = if self.is_signed { u64::MAX.checked_shl(self.first + bits).unwrap_or(0) } else { 0 };
        let mut bytes = data[start..start + self.packed()].iter();
        let (mut waiting, mut count) = (0_u128, 0);
        for component in out.chunks_exact_mut(self.width) {
            while count < bits {
                waiting |= u128::from(*bytes.next().unwrap_or(&0)) << count;
                count += 8;
            }
            // The lower half has all the bits of a field.
            #[allow(clippy::cast_possible_truncation)]
            let field = waiting as u64 & mask;
            waiting >>= bits;
            count -= bits;
            let above = if field >> (bits - 1) & 1 == 1 { sign } else { 0 };
            layout.store(field << self.first | above, component);
        }
        Ok(())
    }

    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.check(data, out)?;
        let (start, padding) = self.places();
        if let Some(at) = padding {
            out[at] = padding_of(self.components * self.bits as usize);
        }
        let layout = Layout { width: self.width, is_big: self.is_big };
        let mask = self.mask();
        let mut bytes = out[start..start + self.packed()].iter_mut();
        let mut put = |waiting: u128| {
            if let Some(byte) = bytes.next() {
                *byte = waiting.to_le_bytes()[0];
            }
        };
        let (mut waiting, mut count) = (0_u128, 0);
        for component in data.chunks_exact(self.width) {
            waiting |= u128::from(layout.load(component) >> self.first & mask) << count;
            count += self.bits;
            while count >= 8 {
                put(waiting);
                waiting >>= 8;
                count -= 8;
            }
        }
        if count > 0 {
            put(waiting);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn packed(codec: &dyn Filter, data: &[u8]) -> Vec<u8> {
        let mut encoded = vec![0xEE; codec.encoded_size()];
        codec.encode(data, &mut encoded).unwrap();
        encoded
    }

    fn unpacked(codec: &dyn Filter, data: &[u8], size: usize) -> Vec<u8> {
        let mut decoded = vec![0xEE; size];
        codec.decode(data, &mut decoded).unwrap();
        decoded
    }

    #[test]
    fn bools_are_packed_highest_bit_first_behind_the_padding() {
        // np.packbits([1, 0, 0, 0, 0, 0, 0, 1, 0, 1])
        let bools = [1, 0, 0, 0, 0, 0, 0, 1, 0, 1];
        let codec = PackBools::new(10);
        assert_eq!(packed(&codec, &bools), [6, 0x81, 0x40]);
        assert_eq!(unpacked(&codec, &[6, 0x81, 0x7F], 10), bools);
        assert_eq!(packed(&PackBools::new(0), &[]), [0]);
    }

    #[test]
    fn bools_with_another_padding_are_broken() {
        let error = PackBools::new(10).decode(&[5, 0, 0], &mut [0; 10]).unwrap_err();
        assert_eq!(error.kind, Kind::Broken);
        assert_eq!(PackBools::new(10).decode(&[6, 0], &mut [0; 10]).unwrap_err().kind, Kind::Refused);
    }

    #[test]
    fn fields_of_bits_are_packed_lowest_bit_first() {
        // np.packbits([1, 0, 0, 0, 0, 0, 0, 1, 0, 1], bitorder="little")
        let codec = PackBits::new(10, 1, false, 0, 0, false, Padding::First).unwrap();
        let bools = [1, 0, 0, 0, 0, 0, 0, 1, 0, 1];
        assert_eq!(packed(&codec, &bools), [6, 0x81, 0x02]);
        assert_eq!(unpacked(&codec, &[6, 0x81, 0xFE], 10), bools);
        // int4: the lower half of a byte first; negative numbers are widened.
        let codec = PackBits::new(3, 1, false, 0, 3, true, Padding::Last).unwrap();
        assert_eq!(packed(&codec, &[0x01, 0xFE, 0x07]), [0xE1, 0x07, 4]);
        assert_eq!(unpacked(&codec, &[0xE1, 0xF7, 4], 3), [0x01, 0xFE, 0x07]);
    }

    #[test]
    fn bits_are_taken_from_the_middle_of_numbers_in_either_order() {
        for swapped in [false, true] {
            let codec = PackBits::new(2, 2, swapped, 4, 11, true, Padding::None).unwrap();
            let bytes = |number: u16| if swapped { number.swap_bytes() } else { number }.to_ne_bytes();
            let numbers = [bytes(0x1234), bytes(0xF8F1)].concat();
            assert_eq!(packed(&codec, &numbers), [0x23, 0x8F]);
            assert_eq!(unpacked(&codec, &[0x23, 0x8F], 4), [bytes(0x0230), bytes(0xF8F0)].concat());
        }
    }

    #[test]
    fn all_bits_of_wide_numbers_are_copied() {
        let codec = PackBits::new(3, 8, cfg!(target_endian = "big"), 0, 63, true, Padding::None).unwrap();
        let bytes: Vec<u8> = (200..224).collect();
        assert_eq!(packed(&codec, &bytes), bytes);
        assert_eq!(unpacked(&codec, &bytes, 24), bytes);
    }

    #[test]
    fn bits_that_numbers_have_not_are_refused() {
        for (components, width, first, last) in
            [(1, 9, 0, 0), (1, 0, 0, 0), (1, 1, 0, 8), (1, 1, 3, 2), (usize::MAX / 8, 1, 0, 0)]
        {
            assert!(PackBits::new(components, width, false, first, last, false, Padding::None).is_err());
        }
    }
}

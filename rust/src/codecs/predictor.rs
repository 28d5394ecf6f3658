//! The predictors of TIFF: differences along rows, of integers or of the bytes of floats. See `omnizarr.codecs.tiff`.

use crate::codecs::Codec;
use crate::error::{Error, Result};

/// Do something with the unsigned integers of some bytes, in an order of bytes.
macro_rules! with_integer {
    ($size:expr, $is_little:expr, $type:ident, $load:ident, $store:ident => $body:expr) => {
        with_integer!(@each $size, $is_little, $type, $load, $store, $body, 1 u8, 2 u16, 4 u32, 8 u64)
    };
    (@each $size:expr, $is_little:expr, $type:ident, $load:ident, $store:ident, $body:expr, $($bytes:literal $of:ty),*) => {
        match ($size, $is_little) {
            $(
                ($bytes, true) => {
                    type $type = $of;
                    let ($load, $store) = (<$of>::from_le_bytes, <$of>::to_le_bytes);
                    $body
                }
                ($bytes, false) => {
                    type $type = $of;
                    let ($load, $store) = (<$of>::from_be_bytes, <$of>::to_be_bytes);
                    $body
                }
            )*
            _ => {}
        }
    };
}

/// Differences between an element and that of the same sample before it, in each row.
#[derive(Clone, Copy, Debug)]
pub struct Predictor {
    /// Elements of a row, of all samples.
    row: usize,
    /// Samples of a pixel, which lie beside each other.
    samples: usize,
    /// Bytes of an element.
    size: usize,
    /// Whether elements are stored with the least byte first.
    is_little: bool,
    /// Whether the differences are of bytes, which are ordered by significance.
    is_floating: bool,
}

impl Predictor {
    /// The predictor of rows of `row` elements, of which each has `size` bytes.
    ///
    /// # Errors
    /// If there are no such rows or elements.
    pub fn new(row: usize, samples: usize, size: usize, is_little: bool, is_floating: bool) -> Result<Self> {
        let is_known = if is_floating { matches!(size, 2 | 4 | 8) } else { matches!(size, 1 | 2 | 4 | 8) };
        if !is_known || samples == 0 || row == 0 || row % samples != 0 || row.checked_mul(size).is_none() {
            return Err(Error::refused("a predictor of such rows"));
        }
        Ok(Self { row, samples, size, is_little, is_floating })
    }

    /// Change all rows in place.
    fn rows(&self, data: &mut [u8], change: impl FnMut(&mut [u8])) -> Result<()> {
        let length = self.row * self.size;
        if data.len() % length != 0 {
            return Err(Error::refused("no whole number of rows"));
        }
        data.chunks_exact_mut(length).for_each(change);
        Ok(())
    }

    /// Call `change` with each element of a row, of bytes or integers, and the one before it of the same sample; `change`
    /// returns what takes the place of the element, and what the next one is called with.
    fn pairs<const SIZE: usize>(&self, row: &mut [u8], change: impl Fn([u8; SIZE], [u8; SIZE]) -> Pair<SIZE>) {
        for sample in 0..self.samples {
            let mut before = [0; SIZE];
            for place in row[sample * SIZE..].chunks_mut(self.samples * SIZE) {
                let Some(element) = place.first_chunk_mut() else { return };
                (*element, before) = change(*element, before);
            }
        }
    }

    /// Replace elements of `size` bytes by their sums.
    fn add(&self, row: &mut [u8], size: usize) {
        with_integer!(size, self.is_little, T, load, store => self.pairs(row, |element, before| {
            let sum = store(T::wrapping_add(load(element), load(before)));
            (sum, sum)
        }));
    }

    /// Replace elements of `size` bytes by their differences.
    fn subtract(&self, row: &mut [u8], size: usize) {
        with_integer!(size, self.is_little, T, load, store => self.pairs(row, |element, before| {
            (store(T::wrapping_sub(load(element), load(before))), element)
        }));
    }

    /// Room for the bytes of a row, if there is a row.
    fn planes(&self, nbytes: usize) -> Vec<u8> {
        let length = self.row * self.size;
        vec![0; if self.is_floating && nbytes >= length { length } else { 0 }]
    }

    /// The byte of an element, as it is stored, that stands at this place in the order of significance.
    fn place(&self, significance: usize) -> usize {
        if self.is_little { self.size - 1 - significance } else { significance }
    }
}

type Pair<const SIZE: usize> = ([u8; SIZE], [u8; SIZE]);

impl Codec for Predictor {
    fn encoded_size(&self, decoded: usize) -> Option<usize> {
        Some(decoded)
    }

    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.extend_from_slice(data);
        let mut planes = self.planes(data.len());
        self.rows(out, |row| {
            if !self.is_floating {
                return self.subtract(row, self.size);
            }
            for (significance, plane) in planes.chunks_exact_mut(self.row).enumerate() {
                let place = self.place(significance);
                plane.iter_mut().zip(row.chunks_exact(self.size)).for_each(|(byte, element)| *byte = element[place]);
            }
            row.copy_from_slice(&planes);
            self.subtract(row, 1);
        })
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len() != out.len() {
            return Err(Error::broken("the decoded bytes have the wrong size"));
        }
        out.copy_from_slice(data);
        let mut planes = self.planes(data.len());
        self.rows(out, |row| {
            if !self.is_floating {
                return self.add(row, self.size);
            }
            self.add(row, 1);
            planes.copy_from_slice(row);
            for (significance, plane) in planes.chunks_exact(self.row).enumerate() {
                let place = self.place(significance);
                plane.iter().zip(row.chunks_exact_mut(self.size)).for_each(|(byte, element)| element[place] = *byte);
            }
        })
    }

    fn decode_any(&self, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        if data.len() > limit {
            return Err(Error::broken("the decoded bytes are too many"));
        }
        out.resize(data.len(), 0);
        self.decode(data, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(predictor: Predictor, decoded: &[u8], encoded: &[u8]) {
        let (mut there, mut back) = (Vec::new(), vec![0; decoded.len()]);
        predictor.encode(decoded, &mut there).unwrap();
        assert_eq!(there, encoded);
        predictor.decode(encoded, &mut back).unwrap();
        assert_eq!(back, decoded);
    }

    #[test]
    fn differences_are_of_the_same_sample_and_row() {
        let predictor = Predictor::new(4, 2, 1, true, false).unwrap();
        both(predictor, &[1, 100, 3, 90, 255, 0, 1, 1], &[1, 100, 2, 246, 255, 0, 2, 1]);
    }

    #[test]
    fn differences_have_an_order_of_bytes() {
        let little = Predictor::new(2, 1, 2, true, false).unwrap();
        both(little, &[0xff, 0x00, 0x00, 0x01], &[0xff, 0x00, 0x01, 0x00]);
        let big = Predictor::new(2, 1, 2, false, false).unwrap();
        both(big, &[0x00, 0xff, 0x01, 0x00], &[0x00, 0xff, 0x00, 0x01]);
    }

    #[test]
    fn bytes_of_floats_are_ordered_by_significance() {
        // 1.0 and 2.0, little-endian: 00 00 80 3f, 00 00 00 40. The planes: 3f 40, 80 00, 00 00, 00 00.
        let floats = Predictor::new(2, 1, 4, true, true).unwrap();
        let encoded = [0x3f, 1, 0x40, 0x80, 0, 0, 0, 0];
        both(floats, &[0, 0, 0x80, 0x3f, 0, 0, 0, 0x40], &encoded);
    }

    #[test]
    fn other_sizes_are_refused() {
        assert!(Predictor::new(4, 3, 1, true, false).is_err());
        assert!(Predictor::new(4, 1, 3, true, false).is_err());
        assert!(Predictor::new(0, 1, 1, true, false).is_err());
        let predictor = Predictor::new(4, 1, 1, true, false).unwrap();
        assert!(predictor.decode(&[0; 5], &mut [0; 5]).is_err());
        assert!(predictor.decode(&[0; 4], &mut [0; 8]).is_err());
    }
}

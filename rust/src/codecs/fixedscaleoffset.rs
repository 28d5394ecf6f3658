//! fixedscaleoffset: `round((x - offset) * scale)` in another type. See `omnizarr.codecs.fixedscaleoffset`.
//!
//! Floats are computed with in their own type, as NumPy does if offset and scale are numbers of Python's; stored
//! integers as float64.

use crate::codecs::Filter;
use crate::error::{Error, Result};
use crate::numbers::{Cast, Float, Number, Rows, Type, Value, map, with_float, with_number};

/// The filter of numcodecs, of floats.
#[derive(Clone, Copy, Debug)]
pub struct FixedScaleOffset {
    rows: Rows,
    offset: f64,
    scale: f64,
}

impl FixedScaleOffset {
    /// The filter for `count` floats of the type `decoded` that are stored as `encoded`.
    ///
    /// # Errors
    /// If elements are integers, or one of the numbers cannot be represented in the types involved.
    pub fn new(count: usize, decoded: Type, encoded: Type, offset: f64, scale: f64) -> Result<Self> {
        if !decoded.number.is_float() {
            return Err(Error::refused("scaled integers"));
        }
        let is_narrow = [decoded, encoded].iter().any(|kind| kind.number == Number::F32);
        let usable = scale.is_usable() && (!is_narrow || f32::nearest(scale).is_usable());
        let finite = offset.is_finite() && (!is_narrow || f32::nearest(offset).is_finite());
        if !usable || !finite {
            return Err(Error::refused("such a scale or offset"));
        }
        Ok(Self { rows: Rows::new(count, decoded, encoded)?, offset, scale })
    }

    fn unscale<M: Value + Cast<W>, W: Float + Cast<S>, S: Value>(&self, data: &[u8], out: &mut [u8]) -> bool {
        let (scale, offset) = (W::nearest(self.scale), W::nearest(self.offset));
        map::<M, S>(data, self.rows.encoded.swapped, out, self.rows.decoded.swapped, |value| {
            value.cast().0.over(scale).plus(offset).cast()
        })
    }
}

impl Filter for FixedScaleOffset {
    fn encoded_size(&self) -> usize {
        self.rows.encoded_size()
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let Rows { decoded, encoded, .. } = self.rows;
        self.rows.run(out.len(), data.len(), || {
            with_float!(decoded.number, S => match encoded.number {
                Number::F32 => self.unscale::<f32, f32, S>(data, out),
                number => with_number!(number, M => self.unscale::<M, f64, S>(data, out)),
            })
        })
    }

    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let Rows { decoded, encoded, .. } = self.rows;
        self.rows.run(data.len(), out.len(), || {
            with_float!(decoded.number, S => with_number!(encoded.number, M => {
                let (scale, offset) = (S::nearest(self.scale), S::nearest(self.offset));
                map::<S, M>(data, decoded.swapped, out, encoded.swapped, |value| {
                    value.minus(offset).times(scale).rounded().cast()
                })
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn filter(count: usize, decoded: &str, encoded: &str, offset: f64, scale: f64) -> Result<FixedScaleOffset> {
        FixedScaleOffset::new(count, Type::parse(decoded)?, Type::parse(encoded)?, offset, scale)
    }

    #[test]
    fn numbers_are_scaled_as_numcodecs_does() {
        // The example of numcodecs: offset 1000, scale 10.
        let codec = filter(5, "<f8", "|u1", 1000.0, 10.0).unwrap();
        let numbers: Vec<u8> =
            [1000.0, 1000.25, 1000.75, 1001.0, 1025.5_f64].iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut encoded = [0; 5];
        codec.encode(&numbers, &mut encoded).unwrap();
        assert_eq!(encoded, [0, 2, 8, 10, 255]);
        let mut decoded = [0; 40];
        codec.decode(&encoded, &mut decoded).unwrap();
        let wanted: Vec<u8> =
            [1000.0, 1000.2, 1000.8, 1001.0, 1025.5_f64].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(decoded.as_slice(), wanted);
    }

    #[test]
    fn float32_is_computed_with_as_float32() {
        let codec = filter(1, ">f4", "<i4", 0.1, 1e6).unwrap();
        let mut encoded = [0; 4];
        // np.around((np.array([0.3], ">f4") - 0.1) * 1e6); in float64 it would be 200000 as well, and below not
        codec.encode(&0.3_f32.to_be_bytes(), &mut encoded).unwrap();
        assert_eq!(i32::from_le_bytes(encoded), 200_000);
        // np.around((np.array([7.7], ">f4") - 0.1) * 1e6); 7599999.809 in float64
        codec.encode(&7.7_f32.to_be_bytes(), &mut encoded).unwrap();
        assert_eq!(i32::from_le_bytes(encoded), 7_600_000);
    }

    #[test]
    fn chunks_that_do_not_fit_are_refused() {
        let codec = filter(1, "<f8", "|u1", 0.0, 1.0).unwrap();
        for number in [-1.0, 256.0, f64::NAN] {
            assert_eq!(codec.encode(&number.to_le_bytes(), &mut [0]).unwrap_err().kind, Kind::Refused);
        }
    }

    #[test]
    fn numbers_that_are_none_in_float32_are_refused() {
        assert!(filter(1, "<f4", "<i4", 1e39, 1.0).is_err());
        assert!(filter(1, "<f8", "<f4", 0.0, 1e-60).is_err());
        assert!(filter(1, "<f8", "<i4", 1e39, 1e-60).is_ok());
        assert!(filter(1, "<f8", "<i4", 0.0, 0.0).is_err());
        assert!(filter(1, "<i4", "<i4", 0.0, 1.0).is_err());
    }
}

//! quantize: floats rounded to a number of decimal digits, by way of powers of two. See `omnizarr.codecs.quantize`.

use crate::codecs::Filter;
use crate::error::{Error, Result};
use crate::numbers::{Cast, Float, Number, Rows, Type, convert, map, with_float, with_number};

/// The filter of numcodecs.
#[derive(Clone, Copy, Debug)]
pub struct Quantize {
    rows: Rows,
    scale: f64,
}

impl Quantize {
    /// The filter for `count` floats of the type `decoded`, rounded to multiples of 1 / `scale` and stored as `encoded`.
    ///
    /// # Errors
    /// If elements are not floats, or the scale cannot be represented in the types involved.
    pub fn new(count: usize, decoded: Type, encoded: Type, scale: f64) -> Result<Self> {
        let usable = scale.is_usable() && (decoded.number != Number::F32 || f32::nearest(scale).is_usable());
        if !decoded.number.is_float() || !encoded.number.is_float() || !usable {
            return Err(Error::refused("numbers of such types, or such a scale"));
        }
        Ok(Self { rows: Rows::new(count, decoded, encoded)?, scale })
    }
}

impl Filter for Quantize {
    fn encoded_size(&self) -> usize {
        self.rows.encoded_size()
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.rows.run(out.len(), data.len(), || convert(data, self.rows.encoded, out, self.rows.decoded))
    }

    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let Rows { decoded, encoded, .. } = self.rows;
        self.rows.run(data.len(), out.len(), || {
            with_float!(decoded.number, S => with_number!(encoded.number, M => {
                let scale = S::nearest(self.scale);
                map::<S, M>(data, decoded.swapped, out, encoded.swapped, |value| {
                    scale.times(value).rounded().over(scale).cast()
                })
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_rounded_to_multiples_of_a_power_of_two() {
        let (f8, f4) = (Type::parse("<f8").unwrap(), Type::parse("<f4").unwrap());
        let codec = Quantize::new(3, f8, f4, 16.0).unwrap();
        let numbers: Vec<u8> = [0.1_f64, -2.7, f64::INFINITY].iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut encoded = [0; 12];
        codec.encode(&numbers, &mut encoded).unwrap();
        // np.around(16 * x) / 16
        let wanted = [0.125_f32, -2.6875, f32::INFINITY];
        assert_eq!(encoded.as_slice(), wanted.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>());
        let mut decoded = [0; 24];
        codec.decode(&encoded, &mut decoded).unwrap();
        assert_eq!(decoded[..8], 0.125_f64.to_le_bytes());
    }

    #[test]
    fn a_scale_that_is_none_in_the_type_is_refused() {
        let (f8, f4) = (Type::parse("<f8").unwrap(), Type::parse("<f4").unwrap());
        assert!(Quantize::new(1, f4, f4, 1e39).is_err());
        assert!(Quantize::new(1, f8, f8, 1e39).is_ok());
        assert!(Quantize::new(1, f8, Type::parse("<i4").unwrap(), 1.0).is_err());
    }
}

//! astype: the elements in another type. See `omnizarr.codecs.astype`.

use crate::codecs::Filter;
use crate::error::Result;
use crate::numbers::{Rows, Type, convert};

/// The filter of numcodecs.
///
/// Floats that do not fit into integers are refused: the result would depend on the processor.
#[derive(Clone, Copy, Debug)]
pub struct AsType {
    rows: Rows,
}

impl AsType {
    /// The filter for `count` elements of the type `decoded` that are stored as `encoded`.
    ///
    /// # Errors
    /// If there are more than can be.
    pub fn new(count: usize, decoded: Type, encoded: Type) -> Result<Self> {
        Ok(Self { rows: Rows::new(count, decoded, encoded)? })
    }
}

impl Filter for AsType {
    fn encoded_size(&self) -> usize {
        self.rows.encoded_size()
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.rows.run(out.len(), data.len(), || convert(data, self.rows.encoded, out, self.rows.decoded))
    }

    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.rows.run(data.len(), out.len(), || convert(data, self.rows.decoded, out, self.rows.encoded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn filter(count: usize, decoded: &str, encoded: &str) -> AsType {
        AsType::new(count, Type::parse(decoded).unwrap(), Type::parse(encoded).unwrap()).unwrap()
    }

    #[test]
    fn integers_wrap_around_as_in_numpy() {
        let mut out = [0; 2];
        // np.array([300, -1], "<i4").astype("|u1")
        filter(2, "<i4", "|u1").encode(&[[0x2C, 1, 0, 0], [255; 4]].concat(), &mut out).unwrap();
        assert_eq!(out, [44, 255]);
        let mut out = [0; 8];
        // np.array([128, 127], "|i1").astype(">i4")
        filter(2, ">i4", "|i1").decode(&[128, 127], &mut out).unwrap();
        assert_eq!(out, [255, 255, 255, 128, 0, 0, 0, 127]);
    }

    #[test]
    fn floats_are_rounded_to_narrower_ones_and_keep_the_bits_of_nans() {
        // np.array([...]).astype("f4").view("u4")
        let cases: [(u64, u32); 5] = [
            (0x3FB9_9999_9999_999A, 0x3DCC_CCCD), // 0.1
            (0x47EF_FFFF_EFFF_FFFF, 0x7F7F_FFFF), // the largest that is not an infinity as float32
            (0x3690_0000_0000_0000, 0x0000_0000), // half of the smallest
            (0xFFF0_0000_0000_0000, 0xFF80_0000),
            (0x7FF8_1234_6000_0000, 0x7FC0_91A3), // NaN
        ];
        let wide: Vec<u8> = cases.iter().flat_map(|case| case.0.to_le_bytes()).collect();
        let narrow: Vec<u8> = cases.iter().flat_map(|case| case.1.to_le_bytes()).collect();
        let mut out = vec![0; narrow.len()];
        filter(cases.len(), "<f8", "<f4").encode(&wide, &mut out).unwrap();
        assert_eq!(out, narrow);
    }

    #[test]
    fn floats_that_numpy_casts_with_a_warning_are_refused() {
        // Halfway behind the largest float32, and signalling NaNs.
        for bits in [0x47EF_FFFF_F000_0000_u64, 0xFFF0_0000_2000_0000] {
            let error = filter(1, "<f8", "<f4").encode(&bits.to_le_bytes(), &mut [0; 4]).unwrap_err();
            assert_eq!(error.kind, Kind::Refused);
        }
        let error = filter(1, "<f8", "<f4").decode(&0x7F80_0001_u32.to_le_bytes(), &mut [0; 8]).unwrap_err();
        assert_eq!(error.kind, Kind::Refused);
    }

    #[test]
    fn large_integers_are_rounded_once() {
        let mut out = [0; 8];
        // np.array([2**63 + 2**39 + 1, 2**24 + 1], "<u8").astype("<f4").view("<u4")
        let numbers = [(1_u64 << 63) + (1 << 39) + 1, (1 << 24) + 1];
        let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        filter(2, "<u8", "<f4").encode(&data, &mut out).unwrap();
        assert_eq!(out, [1, 0, 0, 0x5F, 0, 0, 0x80, 0x4B]);
    }

    #[test]
    fn chunks_with_floats_that_fit_into_no_integer_are_refused() {
        let mut out = [0; 2];
        let encode = |number: f32, out: &mut [u8]| {
            filter(1, "<f4", "<i2").encode(&number.to_le_bytes(), out).map_err(|error| error.kind)
        };
        assert_eq!(encode(-32_768.5, &mut out), Ok(()));
        assert_eq!(out, [0, 0x80]);
        for number in [32_768.0, -32_769.0, f32::NAN, f32::INFINITY] {
            assert_eq!(encode(number, &mut out), Err(Kind::Refused));
        }
    }
}

//! delta: the first element, then differences. See `omnizarr.codecs.delta`.

use crate::codecs::Filter;
use crate::error::{Error, Result};
use crate::numbers::{Cast, Rows, Type, Value, with_number};

/// The filter of numcodecs.
#[derive(Clone, Copy, Debug)]
pub struct Delta {
    rows: Rows,
}

impl Delta {
    /// The filter for `count` elements of the type `decoded`, the differences of which are stored as `encoded`.
    ///
    /// # Errors
    /// If NumPy adds up such differences as numbers that round: integers and floats, floats of two sizes, or signed
    /// integers and unsigned ones of 64 bits.
    pub fn new(count: usize, decoded: Type, encoded: Type) -> Result<Self> {
        let (one, other) = (decoded.number, encoded.number);
        let are_integers = !one.is_float() && !other.is_float();
        let wraps = |one: Type, other: Type| {
            one.number.is_signed() == other.number.is_signed() || one.number.is_signed() || one.size() < 8
        };
        if one != other && !(are_integers && wraps(decoded, encoded) && wraps(encoded, decoded)) {
            return Err(Error::refused("differences of such types"));
        }
        Ok(Self { rows: Rows::new(count, decoded, encoded)? })
    }
}

impl Filter for Delta {
    fn encoded_size(&self) -> usize {
        self.rows.encoded_size()
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let Rows { decoded, encoded, .. } = self.rows;
        self.rows.run(out.len(), data.len(), || {
            with_number!(encoded.number, M => with_number!(decoded.number, S => {
                sums::<M, S>(data, encoded.swapped, out, decoded.swapped)
            }))
        })
    }

    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let Rows { decoded, encoded, .. } = self.rows;
        self.rows.run(data.len(), out.len(), || {
            with_number!(decoded.number, S => with_number!(encoded.number, M => {
                differences::<S, M>(data, decoded.swapped, out, encoded.swapped)
            }))
        })
    }
}

/// The sum of two NaNs is one or the other, depending on the instruction; so NaN is refused.
fn sums<M: Value + Cast<S>, S: Value>(data: &[u8], swapped: bool, out: &mut [u8], swap: bool) -> bool {
    let mut fine = true;
    let mut sum = S::NOTHING_MORE;
    for (from, to) in data.chunks_exact(M::SIZE).zip(out.chunks_exact_mut(S::SIZE)) {
        sum = sum.plus(M::load(from, swapped).cast().0);
        sum.store(to, swap);
    }
    // Once the sum is NaN, it stays NaN.
    fine &= !sum.is_nan();
    fine
}

fn differences<S: Value + Cast<M>, M: Value>(data: &[u8], swapped: bool, out: &mut [u8], swap: bool) -> bool {
    let mut fine = true;
    let mut last = S::NOTHING_LESS;
    for (from, to) in data.chunks_exact(S::SIZE).zip(out.chunks_exact_mut(M::SIZE)) {
        let value = S::load(from, swapped);
        let difference = value.minus(last);
        fine &= !difference.is_nan();
        difference.cast().0.store(to, swap);
        last = value;
    }
    fine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn filter(count: usize, decoded: &str, encoded: &str) -> Result<Delta> {
        Delta::new(count, Type::parse(decoded)?, Type::parse(encoded)?)
    }

    #[test]
    fn differences_wrap_around_as_in_numpy() {
        // np.diff of [3, 1, 250] as uint8, and its sums.
        let delta = filter(3, "|u1", "|u1").unwrap();
        let (mut encoded, mut decoded) = ([0; 3], [0; 3]);
        delta.encode(&[3, 1, 250], &mut encoded).unwrap();
        assert_eq!(encoded, [3, 254, 249]);
        delta.decode(&encoded, &mut decoded).unwrap();
        assert_eq!(decoded, [3, 1, 250]);
    }

    #[test]
    fn differences_have_type_and_order_of_their_own() {
        let delta = filter(3, "<i4", ">i2").unwrap();
        let numbers: Vec<u8> = [1000_i32, 998, 40_998].iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut encoded = [0; 6];
        delta.encode(&numbers, &mut encoded).unwrap();
        // 40000 as int16 is -25536.
        let wanted: Vec<u8> = [1000_i16, -2, -25_536].iter().flat_map(|number| number.to_be_bytes()).collect();
        assert_eq!(encoded.as_slice(), wanted);
        let mut decoded = [0; 12];
        delta.decode(&encoded, &mut decoded).unwrap();
        let wanted: Vec<u8> = [1000_i32, 998, -24_538].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(decoded.as_slice(), wanted);
    }

    #[test]
    fn negative_zeros_stay() {
        let delta = filter(2, "<f8", "<f8").unwrap();
        let numbers: Vec<u8> = [-0.0_f64, -0.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut out = [0; 16];
        delta.encode(&numbers, &mut out).unwrap();
        assert_eq!(out.as_slice(), [(-0.0_f64).to_le_bytes(), 0.0_f64.to_le_bytes()].concat());
        delta.decode(&numbers, &mut out).unwrap();
        assert_eq!(out.as_slice(), numbers);
    }

    #[test]
    fn chunks_with_nans_are_refused() {
        let delta = filter(2, "<f4", "<f4").unwrap();
        let numbers: Vec<u8> = [f32::NAN, 1.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut out = [0; 8];
        assert_eq!(delta.encode(&numbers, &mut out).unwrap_err().kind, Kind::Refused);
        assert_eq!(delta.decode(&numbers, &mut out).unwrap_err().kind, Kind::Refused);
    }

    #[test]
    fn types_that_numpy_adds_up_as_floats_are_refused() {
        for (decoded, encoded) in [("<f4", "<f8"), ("<i4", "<f4"), ("<f8", "<i8"), ("<u8", "<i8"), ("<i2", "<u8")] {
            assert_eq!(filter(1, decoded, encoded).unwrap_err().kind, Kind::Refused, "{decoded} {encoded}");
        }
        for (decoded, encoded) in [("<u8", "|u1"), ("<i8", "<u4"), ("<u4", "<i8"), ("|u1", "<u8"), (">f4", "<f4")] {
            assert!(filter(1, decoded, encoded).is_ok(), "{decoded} {encoded}");
        }
    }

    #[test]
    fn rows_of_other_lengths_are_refused() {
        let delta = filter(2, "<i4", "<i2").unwrap();
        assert_eq!(delta.encoded_size(), 4);
        assert_eq!(delta.decode(&[0; 4], &mut [0; 4]).unwrap_err().kind, Kind::Refused);
        assert_eq!(delta.decode(&[0; 5], &mut [0; 8]).unwrap_err().kind, Kind::Refused);
        assert!(filter(usize::MAX / 2, "<i4", "<i2").is_err());
        assert!(filter(0, "<i4", "<i2").unwrap().decode(&[], &mut []).is_ok());
    }
}

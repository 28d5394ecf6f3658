//! The types of numbers that filters and conversions know, and NumPy's casts between them.

// Casts of integers wrap around in NumPy, too; casts of floats are checked below.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(clippy::cast_precision_loss, clippy::cast_lossless)]

use crate::error::{Error, Result};

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Number {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

/// A type of numbers in a byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// What they are.
    pub number: Number,
    /// Their bytes are in the order that this machine has not.
    pub swapped: bool,
}

impl Number {
    /// Bytes of a number.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it has a fraction.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether it is an integer that can be negative.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }
}

impl Type {
    /// The type of a type string of NumPy, with its byte order: `<i4`, `|u1`, `>f8`.
    ///
    /// # Errors
    /// If it names another type, or no byte order.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = || Error::refused(format!("elements of type {text:?}"));
        let (order, name) = text.split_at_checked(1).ok_or_else(refused)?;
        let number = match name {
            "i1" => Number::I8,
            "i2" => Number::I16,
            "i4" => Number::I32,
            "i8" => Number::I64,
            "u1" => Number::U8,
            "u2" => Number::U16,
            "u4" => Number::U32,
            "u8" => Number::U64,
            "f4" => Number::F32,
            "f8" => Number::F64,
            _ => return Err(refused()),
        };
        let swapped = match order {
            "<" => cfg!(target_endian = "big"),
            ">" => cfg!(target_endian = "little"),
            "|" if number.size() == 1 => false,
            _ => return Err(refused()),
        };
        Ok(Self { number, swapped })
    }

    /// Bytes of a number.
    #[must_use]
    pub fn size(self) -> usize {
        self.number.size()
    }
}

/// A number as a type of Rust's.
pub trait Value: Copy {
    /// Subtracting this leaves every number unchanged.
    const NOTHING_LESS: Self;
    /// Adding this leaves every number unchanged.
    const NOTHING_MORE: Self;
    /// No number is less.
    const LOWEST: Self;
    /// No number is greater.
    const HIGHEST: Self;
    /// Bytes of a number.
    const SIZE: usize;

    /// The number with these bytes; their count is the number's size.
    fn load(bytes: &[u8], swapped: bool) -> Self;

    /// Write its bytes into a slice of the same size.
    fn store(self, bytes: &mut [u8], swapped: bool);

    /// The sum; integers wrap around.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// The difference; integers wrap around.
    #[must_use]
    fn minus(self, other: Self) -> Self;

    /// Whether it is not a number after all.
    fn is_nan(self) -> bool;
}

macro_rules! integers {
    ($($type:ty)+) => {$(
        impl Value for $type {
            const NOTHING_LESS: Self = 0;
            const NOTHING_MORE: Self = 0;
            const LOWEST: Self = Self::MIN;
            const HIGHEST: Self = Self::MAX;
            const SIZE: usize = size_of::<$type>();

            #[inline]
            fn load(bytes: &[u8], swapped: bool) -> Self {
                let value = Self::from_ne_bytes(bytes.try_into().unwrap_or_default());
                if swapped { value.swap_bytes() } else { value }
            }

            #[inline]
            fn store(self, bytes: &mut [u8], swapped: bool) {
                let value = if swapped { self.swap_bytes() } else { self };
                bytes.copy_from_slice(&value.to_ne_bytes());
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline]
            fn is_nan(self) -> bool {
                false
            }
        }
    )+};
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($type:ty, $bits:ty;)+) => {$(
        impl Value for $type {
            const NOTHING_LESS: Self = 0.0;
            const NOTHING_MORE: Self = -0.0;
            const LOWEST: Self = Self::NEG_INFINITY;
            const HIGHEST: Self = Self::INFINITY;
            const SIZE: usize = size_of::<$type>();

            #[inline]
            fn load(bytes: &[u8], swapped: bool) -> Self {
                Self::from_bits(<$bits>::load(bytes, swapped))
            }

            #[inline]
            fn store(self, bytes: &mut [u8], swapped: bool) {
                self.to_bits().store(bytes, swapped);
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline]
            fn minus(self, other: Self) -> Self {
                self - other
            }

            #[inline]
            fn is_nan(self) -> bool {
                self != self
            }
        }
    )+};
}
floats!(f32, u32; f64, u64;);

/// Numbers with a fraction.
pub trait Float: Value {
    /// The nearest one.
    fn nearest(number: f64) -> Self;

    /// The product.
    #[must_use]
    fn times(self, other: Self) -> Self;

    /// The quotient.
    #[must_use]
    fn over(self, other: Self) -> Self;

    /// The nearest whole number, of two the even one.
    #[must_use]
    fn rounded(self) -> Self;

    /// Whether something can be multiplied with it, and be divided by it.
    fn is_usable(self) -> bool;
}

macro_rules! fractions {
    ($($type:ty, $whole:expr;)+) => {$(
        impl Float for $type {
            #[inline]
            fn nearest(number: f64) -> Self {
                number as Self
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                self * other
            }

            #[inline]
            fn over(self, other: Self) -> Self {
                self / other
            }

            #[inline]
            fn rounded(self) -> Self {
                // From here on all numbers are whole: adding that much rounds, and any processor can do it to
                // several numbers at once, whereas few have an instruction for it.
                const WHOLE: $type = $whole;
                let size = self.abs();
                let rounded = ((size + WHOLE) - WHOLE).copysign(self);
                if size < WHOLE { rounded } else { self }
            }

            fn is_usable(self) -> bool {
                self.is_finite() && self != 0.0
            }
        }
    )+};
}
fractions!(f32, 8_388_608.0; f64, 4_503_599_627_370_496.0;);

/// The result of converting a number to another type.
pub trait Cast<T> {
    /// The same number, cut to what the type can hold as NumPy does it; and whether NumPy does it without a warning, and
    /// in the same way on all machines. A float that is out of range becomes an infinity with a warning, or an
    /// integer that depends on the instruction; a signalling NaN gives a warning as any other float.
    fn cast(self) -> (T, bool);
}

macro_rules! casts {
    ($($from:ty)+ => $to:tt) => {$(casts!(@each $from => $to);)+};
    (@each $from:ty => [$($to:ty)+]) => {$(
        impl Cast<$to> for $from {
            #[inline]
            fn cast(self) -> ($to, bool) {
                (self as $to, true)
            }
        }
    )+};
}
casts!(i8 i16 i32 i64 u8 u16 u32 u64 => [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64]);
casts!(f32 => [f32]);
casts!(f64 => [f64]);

impl Cast<f64> for f32 {
    #[inline]
    fn cast(self) -> (f64, bool) {
        (self as f64, !(self.is_nan() && self.to_bits() & 1 << 22 == 0))
    }
}

impl Cast<f32> for f64 {
    #[inline]
    fn cast(self) -> (f32, bool) {
        let narrow = self as f32;
        let overflows = narrow.is_infinite() && !self.is_infinite();
        (narrow, !(overflows || self.is_nan() && self.to_bits() & 1 << 51 == 0))
    }
}

macro_rules! truncations {
    ($($from:ty)+ => $to:tt) => {$(truncations!(@each $from => $to);)+};
    (@each $from:ty => [$($to:ty)+]) => {$(
        impl Cast<$to> for $from {
            #[inline]
            fn cast(self) -> ($to, bool) {
                let (wide, lowest) = (self as f64, <$to>::MIN as f64);
                // The neighbours of the largest integers are not floats: hence both ways to look at the lowest one.
                let fits = (wide > lowest - 1.0 || wide >= lowest) && wide < <$to>::MAX as f64 + 1.0;
                (self as $to, fits)
            }
        }
    )+};
}
truncations!(f32 f64 => [i8 i16 i32 i64 u8 u16 u32 u64]);

/// Run an expression with `$T` as the type of a [`Number`].
macro_rules! with_number {
    ($number:expr, $T:ident => $body:expr) => {{
        use $crate::numbers::Number;
        match $number {
            Number::I8 => {
                type $T = i8;
                $body
            }
            Number::I16 => {
                type $T = i16;
                $body
            }
            Number::I32 => {
                type $T = i32;
                $body
            }
            Number::I64 => {
                type $T = i64;
                $body
            }
            Number::U8 => {
                type $T = u8;
                $body
            }
            Number::U16 => {
                type $T = u16;
                $body
            }
            Number::U32 => {
                type $T = u32;
                $body
            }
            Number::U64 => {
                type $T = u64;
                $body
            }
            Number::F32 => {
                type $T = f32;
                $body
            }
            Number::F64 => {
                type $T = f64;
                $body
            }
        }
    }};
}
/// Run an expression with `$T` as the type of a [`Number`] with a fraction; it is false for others.
macro_rules! with_float {
    ($number:expr, $T:ident => $body:expr) => {{
        use $crate::numbers::Number;
        match $number {
            Number::F32 => {
                type $T = f32;
                $body
            }
            Number::F64 => {
                type $T = f64;
                $body
            }
            _ => false,
        }
    }};
}
pub(crate) use {with_float, with_number};

/// Convert each number. Return whether all results are the same as in NumPy.
#[inline]
pub(crate) fn map<S: Value, T: Value>(
    data: &[u8],
    swapped: bool,
    out: &mut [u8],
    swap: bool,
    mut make: impl FnMut(S) -> (T, bool),
) -> bool {
    let mut fine = true;
    for (from, to) in data.chunks_exact(S::SIZE).zip(out.chunks_exact_mut(T::SIZE)) {
        let (value, is_fine) = make(S::load(from, swapped));
        fine &= is_fine;
        value.store(to, swap);
    }
    fine
}

/// Convert numbers to another type. Return whether all of them could be converted.
pub(crate) fn convert(data: &[u8], from: Type, out: &mut [u8], to: Type) -> bool {
    with_number!(from.number, S => with_number!(to.number, T => {
        map::<S, T>(data, from.swapped, out, to.swapped, Cast::cast)
    }))
}

/// What a filter of elements works on: numbers of one type, and the same number of another type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) count: usize,
    pub(crate) decoded: Type,
    pub(crate) encoded: Type,
}

impl Rows {
    pub(crate) fn new(count: usize, decoded: Type, encoded: Type) -> Result<Self> {
        let fits = |size: usize| count.checked_mul(size).is_some_and(|nbytes| isize::try_from(nbytes).is_ok());
        if fits(decoded.size()) && fits(encoded.size()) {
            Ok(Self { count, decoded, encoded })
        } else {
            Err(Error::refused("so many elements"))
        }
    }

    pub(crate) fn encoded_size(&self) -> usize {
        self.count * self.encoded.size()
    }

    /// Check the sizes of both rows, then run the conversion and check its result.
    pub(crate) fn run(&self, decoded: usize, encoded: usize, work: impl FnOnce() -> bool) -> Result<()> {
        if decoded != self.count * self.decoded.size() || encoded != self.encoded_size() {
            return Err(Error::refused("another number of elements"));
        }
        if work() { Ok(()) } else { Err(Error::refused("elements that depend on the machine, or on NumPy")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_string_names_number_and_order() {
        let little = Type::parse("<i4").unwrap();
        let big = Type::parse(">i4").unwrap();
        assert_eq!((little.number, big.number), (Number::I32, Number::I32));
        assert_ne!(little.swapped, big.swapped);
        assert!(!Type::parse("|u1").unwrap().swapped);
    }

    #[test]
    fn other_type_strings_are_refused() {
        for text in ["", "<", "i4", "=i4", "|i4", "<c8", "<f2", "<M8[s]", "\u{e9}i4"] {
            assert!(Type::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn floats_are_rounded_half_to_even() {
        // np.around of each, in float64 and float32
        for (number, wanted) in [
            (0.5, 0.0),
            (1.5, 2.0),
            (2.5, 2.0),
            (-0.5, -0.0),
            (-1.5, -2.0),
            (0.3, 0.0),
            (-0.3, -0.0),
            (8_388_607.5, 8_388_608.0),
            (4_503_599_627_370_495.5, 4_503_599_627_370_496.0),
            (f64::INFINITY, f64::INFINITY),
            (f64::MIN_POSITIVE, 0.0),
        ] {
            let number: f64 = number;
            let wanted: f64 = wanted;
            assert_eq!(number.rounded().to_bits(), wanted.to_bits());
            let narrow = number as f32;
            if f64::from(narrow).to_bits() == number.to_bits() {
                assert_eq!(narrow.rounded().to_bits(), (wanted as f32).to_bits());
            }
        }
        assert!(f64::NAN.rounded().is_nan());
    }

    #[test]
    fn floats_become_integers_where_they_fit_when_cut() {
        fn cast<S: Cast<T>, T>(number: S) -> Option<T> {
            let (value, fits) = number.cast();
            fits.then_some(value)
        }
        assert_eq!(cast::<f64, u8>(-0.9), Some(0));
        assert_eq!(cast::<f64, u8>(-1.0), None);
        assert_eq!(cast::<f64, u8>(255.9), Some(255));
        assert_eq!(cast::<f64, u8>(256.0), None);
        assert_eq!(cast::<f64, i32>(-2_147_483_648.9), Some(i32::MIN));
        assert_eq!(cast::<f64, i32>(-2_147_483_649.0), None);
        assert_eq!(cast::<f32, i64>(-9_223_372_036_854_775_808.0), Some(i64::MIN));
        assert_eq!(cast::<f64, i64>(9_223_372_036_854_775_808.0), None);
        assert_eq!(cast::<f32, u64>(18_446_744_073_709_551_616.0), None);
        assert_eq!(cast::<f64, u64>(18_446_744_073_709_549_568.0), Some(18_446_744_073_709_549_568));
        assert_eq!(cast::<f64, i64>(f64::NAN), None);
        assert_eq!(cast::<f32, u8>(f32::INFINITY), None);
    }
}

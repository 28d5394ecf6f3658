//! Conversions of elements on their way from a chunk into the caller's array: other types, and what packed numbers mean.
//!
//! The meaning is that of `omnizarr.engine.conversion`, bit for bit. Elements for which NumPy would give a warning, or
//! another result on another machine, are left to it: `run` is false then.

use crate::error::{Error, Result};
use crate::numbers::{Cast, Float, Type, Value, convert, map, with_float, with_number};

/// Elements that are worked on at once: those and their results stay in the fastest cache.
const BLOCK: usize = 1024;
/// Bytes of the largest number.
const WIDEST: usize = 8;

/// What packed numbers mean: `number * scale + offset`, and NaN for those that are missing or not valid.
#[derive(Clone, Debug, Default)]
pub struct Packing {
    /// What numbers are multiplied by.
    pub scale: Option<f64>,
    /// What is added then.
    pub offset: Option<f64>,
    /// The bytes of numbers that are missing, in the byte order of this machine.
    pub missing: Vec<Vec<u8>>,
    /// The bytes of the smallest valid number.
    pub low: Option<Vec<u8>>,
    /// The bytes of the largest valid number.
    pub high: Option<Vec<u8>>,
}

/// One conversion.
#[derive(Clone, Debug)]
pub struct Step {
    /// The type of the elements.
    pub from: Type,
    /// The type of the results.
    pub to: Type,
    /// What the elements mean; None: they are cast.
    pub packing: Option<Packing>,
}

impl Step {
    fn is_sound(&self) -> bool {
        let Some(packing) = &self.packing else { return true };
        let Packing { scale, offset, missing, low, high } = packing;
        self.to.number.is_float()
            && [scale, offset].into_iter().flatten().all(|number| !number.is_nan())
            && missing.iter().chain(low).chain(high).all(|bytes| bytes.len() == self.from.size())
    }

    /// Convert elements. `out` has room for as many.
    fn run(&self, data: &[u8], out: &mut [u8]) -> bool {
        let Some(packing) = &self.packing else { return convert(data, self.from, out, self.to) };
        let (from, to) = (self.from.size(), self.to.size());
        let mut turned = [0; BLOCK * WIDEST];
        data.chunks(BLOCK * from).zip(out.chunks_mut(BLOCK * to)).fold(true, |fine, (data, out)| {
            let data = if self.from.swapped {
                turned[..data.len()].copy_from_slice(data);
                turned[..data.len()].chunks_exact_mut(from).for_each(<[u8]>::reverse);
                &turned[..data.len()]
            } else {
                data
            };
            let unpacked = with_number!(self.from.number, S => with_float!(self.to.number, T => {
                unpack::<S, T>(data, out, packing)
            }));
            if self.to.swapped {
                out.chunks_exact_mut(to).for_each(<[u8]>::reverse);
            }
            fine & unpacked
        })
    }
}

/// Unpack numbers, all in the byte order of this machine.
///
/// There is one of these for each pair of types: so it has few loops, each of which a processor does for several
/// numbers at once.
#[inline]
fn unpack<S: Value + PartialOrd + Cast<T>, T: Float>(data: &[u8], out: &mut [u8], packing: &Packing) -> bool {
    let Packing { scale, offset, missing, low, high } = packing;
    let fine = if let (None, None) = (scale, offset) {
        map::<S, T>(data, false, out, false, Cast::cast)
    } else {
        // These leave every number as it is.
        let (scale, offset) = (T::nearest(scale.unwrap_or(1.0)), T::nearest(offset.unwrap_or(-0.0)));
        map::<S, T>(data, false, out, false, |number| {
            let (value, is_fine) = number.cast();
            (value.times(scale).plus(offset), is_fine)
        })
    };
    for mark in missing {
        let mark = S::load(mark, false);
        if mark.is_nan() {
            hide::<S, T>(data, out, Value::is_nan);
        } else {
            hide::<S, T>(data, out, |number| number == mark);
        }
    }
    if low.is_some() || high.is_some() {
        let bound = |bytes: &Option<Vec<u8>>, other: S| bytes.as_ref().map_or(other, |bytes| S::load(bytes, false));
        let (low, high) = (bound(low, S::LOWEST), bound(high, S::HIGHEST));
        hide::<S, T>(data, out, |number| number < low || number > high);
    }
    fine
}

/// Set the results of some numbers to NaN.
#[inline]
fn hide<S: Value, T: Float>(data: &[u8], out: &mut [u8], is_hidden: impl Fn(S) -> bool) {
    let nan = T::nearest(f64::NAN);
    for (from, to) in data.chunks_exact(S::SIZE).zip(out.chunks_exact_mut(T::SIZE)) {
        let value = T::load(to, false);
        (if is_hidden(S::load(from, false)) { nan } else { value }).store(to, false);
    }
}

/// Conversions that follow one another.
#[derive(Clone, Debug)]
pub struct Conversion {
    steps: Vec<Step>,
    /// Bytes of an element before them.
    pub from: usize,
    /// Bytes of a result.
    pub to: usize,
}

impl Conversion {
    /// Conversions of which each takes the results of the one before it.
    ///
    /// # Errors
    /// If there are none, or they do not fit together.
    pub fn new(steps: Vec<Step>) -> Result<Self> {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return Err(Error::refused("no conversion"));
        };
        let (from, to) = (first.from.size(), last.to.size());
        if !steps.iter().all(Step::is_sound) || !steps.windows(2).all(|pair| pair[0].to == pair[1].from) {
            return Err(Error::refused("conversions that do not fit"));
        }
        Ok(Self { steps, from, to })
    }

    /// Convert elements. Return whether all results are those of NumPy, for the same number of elements.
    #[must_use]
    pub fn run(&self, data: &[u8], out: &mut [u8]) -> bool {
        if data.len() % self.from != 0 || Some(out.len()) != (data.len() / self.from).checked_mul(self.to) {
            return false;
        }
        if let [step] = self.steps.as_slice() {
            return step.run(data, out);
        }
        let (mut one, mut other) = ([0; BLOCK * WIDEST], [0; BLOCK * WIDEST]);
        data.chunks(BLOCK * self.from).zip(out.chunks_mut(BLOCK * self.to)).fold(true, |mut fine, (data, out)| {
            let count = data.len() / self.from;
            one[..data.len()].copy_from_slice(data);
            for step in &self.steps {
                fine &= step.run(&one[..count * step.from.size()], &mut other[..count * step.to.size()]);
                std::mem::swap(&mut one, &mut other);
            }
            out.copy_from_slice(&one[..out.len()]);
            fine
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(from: &str, to: &str, packing: Option<Packing>) -> Step {
        Step { from: Type::parse(from).unwrap(), to: Type::parse(to).unwrap(), packing }
    }

    fn run(steps: Vec<Step>, data: &[u8], count: usize) -> (bool, Vec<u8>) {
        let conversion = Conversion::new(steps).unwrap();
        let mut out = vec![0; count * conversion.to];
        (conversion.run(data, &mut out), out)
    }

    fn floats(out: &[u8]) -> Vec<f64> {
        out.chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect()
    }

    #[test]
    fn packed_numbers_are_scaled_and_marked_ones_are_nan() {
        let bytes = |number: i16| number.to_ne_bytes().to_vec();
        let packing = Packing {
            scale: Some(0.5),
            offset: Some(10.0),
            missing: vec![bytes(-1), bytes(-2)],
            low: Some(bytes(-100)),
            high: Some(bytes(100)),
        };
        let numbers: Vec<i16> = vec![0, -1, -2, 3, -100, -101, 100, 101];
        let native = if cfg!(target_endian = "little") { ("<i2", ">i2", "<f8") } else { (">i2", "<i2", ">f8") };
        let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let turned: Vec<u8> = numbers.iter().flat_map(|number| number.swap_bytes().to_ne_bytes()).collect();
        for (from, data) in [(native.0, data), (native.1, turned)] {
            let (fine, out) = run(vec![step(from, native.2, Some(packing.clone()))], &data, numbers.len());
            let found = floats(&out);
            assert!(fine);
            assert_eq!((found[0], found[3], found[4], found[6]), (10.0, 11.5, -40.0, 60.0));
            assert!([1, 2, 5, 7].iter().all(|&number| found[number].to_bits() == f64::NAN.to_bits()));
        }
    }

    #[test]
    fn more_elements_than_a_block_go_through_several_steps() {
        let numbers: Vec<u8> = (0..3 * BLOCK + 7).map(|number| number.to_le_bytes()[0]).collect();
        let packing = Packing { scale: Some(2.0), ..Packing::default() };
        let steps = vec![step("|u1", "<f8", Some(packing)), step("<f8", "<f4", None), step("<f4", ">i2", None)];
        let (fine, out) = run(steps, &numbers, numbers.len());
        assert!(fine);
        for (number, bytes) in numbers.iter().zip(out.chunks_exact(2)) {
            assert_eq!(i16::from_be_bytes(bytes.try_into().unwrap()), 2 * i16::from(*number));
        }
    }

    #[test]
    fn what_numpy_warns_about_is_left_to_it() {
        let data = [1e300_f64.to_le_bytes(), 1.0_f64.to_le_bytes()].concat();
        assert!(!run(vec![step("<f8", "<f4", None)], &data, 2).0);
        assert!(!run(vec![step("<f8", "<f4", Some(Packing::default()))], &data, 2).0);
        assert!(!run(vec![step("<f8", "|u1", None)], &data, 2).0);
        assert!(run(vec![step("<f8", "<f8", None)], &data, 2).0);
    }

    #[test]
    fn conversions_that_do_not_fit_are_refused() {
        let packing = |missing: Vec<Vec<u8>>| Some(Packing { missing, ..Packing::default() });
        let nan = Some(Packing { scale: Some(f64::NAN), ..Packing::default() });
        for steps in [
            vec![],
            vec![step("<i2", "<f8", packing(vec![vec![0]]))],
            vec![step("<i2", "<i4", packing(vec![]))],
            vec![step("<i2", "<f8", nan)],
            vec![step("<i2", "<f8", None), step("<f4", "<f8", None)],
        ] {
            assert!(Conversion::new(steps).is_err());
        }
        let conversion = Conversion::new(vec![step("<i2", "<f8", None)]).unwrap();
        assert!(!conversion.run(&[0; 3], &mut [0; 8]));
        assert!(!conversion.run(&[0; 4], &mut [0; 8]));
    }
}

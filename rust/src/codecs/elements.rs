//! What the `bytes` codec does beyond copying: elements as they are stored become elements as they are in memory.
//!
//! See `omnizarr.codecs.bytes`. `Elements::new` takes the size of an element and the operations on it, in order. An
//! array whose stored bytes equal its memory needs no operation.

use crate::error::{Error, Result};

/// Bytes that are worked on at once: all that is to be done to them is done while they are near.
const BLOCK: usize = 16 * 1024;
const LAST_CODE_POINT: u32 = 0x0010_FFFF;

/// Something to be done to values within each element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Reverse the bytes of values.
    Swap {
        /// Where the first is in an element.
        offset: usize,
        /// Bytes of a value.
        width: usize,
        /// How many are side by side.
        count: usize,
    },
    /// Any byte but 0 is true, which is 1. In decoding only.
    Bool {
        /// Where the first is in an element.
        offset: usize,
        /// How many are side by side.
        count: usize,
    },
    /// Bits that mean nothing are 0. In decoding only.
    Mask {
        /// Where the first is in an element.
        offset: usize,
        /// How many are side by side.
        count: usize,
        /// The bits that mean something.
        mask: u8,
    },
    /// Text holds code points, or is broken. In decoding only.
    Text {
        /// Where the first is in an element.
        offset: usize,
        /// How many numbers of four bytes are side by side.
        count: usize,
        /// In memory they are in the byte order that this machine has not.
        swapped: bool,
    },
}

impl Fix {
    /// Where its values begin in an element, and how many bytes they have; None if that cannot be counted.
    fn span(&self) -> Option<(usize, usize)> {
        let (offset, width, count) = match *self {
            Self::Swap { offset, width, count } => (offset, width, count),
            Self::Bool { offset, count } | Self::Mask { offset, count, .. } => (offset, 1, count),
            Self::Text { offset, count, .. } => (offset, 4, count),
        };
        Some((offset, width.checked_mul(count)?))
    }

    /// Apply it to values side by side, as in decoding.
    fn decode(&self, values: &mut [u8]) -> Result<()> {
        match *self {
            Self::Swap { width, .. } => swap(values, width),
            Self::Bool { .. } => {
                for value in values {
                    *value = u8::from(*value != 0);
                }
            }
            Self::Mask { mask, .. } => {
                for value in values {
                    *value &= mask;
                }
            }
            Self::Text { swapped, .. } => {
                let broken = values.chunks_exact(4).fold(false, |broken, point| {
                    let point = u32::from_ne_bytes(point.try_into().unwrap_or_default());
                    broken | ((if swapped { point.swap_bytes() } else { point }) > LAST_CODE_POINT)
                });
                if broken {
                    return Err(Error::broken("text holds a number that is not a code point"));
                }
            }
        }
        Ok(())
    }

    /// Apply it as in encoding.
    fn encode(&self, values: &mut [u8]) {
        if let Self::Swap { width, .. } = *self {
            swap(values, width);
        }
    }
}

/// Reverse the bytes of values of this many bytes.
fn swap(values: &mut [u8], width: usize) {
    macro_rules! swap_words {
        ($word:ty) => {
            for value in values.chunks_exact_mut(size_of::<$word>()) {
                let word = <$word>::from_ne_bytes((&*value).try_into().unwrap_or_default());
                value.copy_from_slice(&word.swap_bytes().to_ne_bytes());
            }
        };
    }
    match width {
        2 => swap_words!(u16),
        4 => swap_words!(u32),
        8 => swap_words!(u64),
        _ => values.chunks_exact_mut(width).for_each(<[u8]>::reverse),
    }
}

/// The operations on elements.
#[derive(Clone, Debug)]
pub struct Elements {
    item: usize,
    fixes: Vec<Fix>,
}

impl Elements {
    /// Elements of `item` bytes, to each of which `fixes` are applied in that order.
    ///
    /// # Errors
    /// If elements have no bytes, or a fix reaches beyond them.
    pub fn new(item: usize, fixes: Vec<Fix>) -> Result<Self> {
        let inside = |fix: &Fix| {
            fix.span().is_some_and(|(offset, size)| offset.checked_add(size).is_some_and(|end| end <= item))
                && !matches!(fix, Fix::Swap { width: 0, .. })
        };
        if item == 0 || !fixes.iter().all(inside) {
            return Err(Error::refused("elements of such a form"));
        }
        Ok(Self { item, fixes })
    }

    /// Whether there are no operations.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.fixes.is_empty()
    }

    /// Turn stored elements into elements in memory, in place.
    ///
    /// # Errors
    /// If these are not whole elements, or text that holds numbers that are not code points.
    pub fn decode(&self, elements: &mut [u8]) -> Result<()> {
        if elements.len() % self.item != 0 {
            return Err(Error::refused("no whole number of elements"));
        }
        self.each(elements, Fix::decode)
    }

    /// Turn elements in memory into stored ones, in place. Bytes behind the last whole element are left
    /// unchanged.
    pub fn encode(&self, elements: &mut [u8]) {
        let whole = elements.len() - elements.len() % self.item;
        // Encoding never fails.
        let _ = self.each(&mut elements[..whole], |fix, values| {
            fix.encode(values);
            Ok(())
        });
    }

    fn each(&self, elements: &mut [u8], apply: impl Fn(&Fix, &mut [u8]) -> Result<()>) -> Result<()> {
        if self.is_plain() {
            return Ok(());
        }
        for block in elements.chunks_mut((BLOCK / self.item).max(1) * self.item) {
            for fix in &self.fixes {
                let (offset, size) = fix.span().unwrap_or((0, 0));
                if size == self.item {
                    apply(fix, block)?;
                } else {
                    for element in block.chunks_exact_mut(self.item) {
                        apply(fix, &mut element[offset..offset + size])?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn decoded(item: usize, fixes: Vec<Fix>, mut bytes: Vec<u8>) -> Vec<u8> {
        Elements::new(item, fixes).unwrap().decode(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn values_of_any_width_are_swapped() {
        for width in [1, 2, 3, 4, 5, 8, 16] {
            for count in [1, 2, 3] {
                let bytes: Vec<u8> = (0..u8::try_from(5 * width * count).unwrap()).collect();
                let wanted: Vec<u8> = bytes.chunks(width).flat_map(|value| value.iter().rev().copied()).collect();
                let elements = Elements::new(width * count, vec![Fix::Swap { offset: 0, width, count }]).unwrap();
                let mut found = bytes.clone();
                elements.decode(&mut found).unwrap();
                assert_eq!(found, wanted);
                elements.encode(&mut found);
                assert_eq!(found, bytes);
            }
        }
    }

    #[test]
    fn fields_of_a_record_are_fixed_where_they_lie() {
        let fixes = vec![
            Fix::Bool { offset: 0, count: 1 },
            Fix::Swap { offset: 1, width: 2, count: 2 },
            Fix::Mask { offset: 6, count: 1, mask: 0x0F },
        ];
        let bytes = [[7, 1, 2, 3, 4, 0x55, 0xAB], [0, 5, 6, 7, 8, 0x66, 0xFF]].concat();
        let wanted = [[1, 2, 1, 4, 3, 0x55, 0x0B], [0, 6, 5, 8, 7, 0x66, 0x0F]].concat();
        assert_eq!(decoded(7, fixes, bytes), wanted);
    }

    #[test]
    fn elements_beyond_one_block_are_fixed_too() {
        let bytes: Vec<u8> = (0..100_002_u32).map(|number| number.to_le_bytes()[0]).collect();
        let wanted: Vec<u8> = bytes.chunks(3).flat_map(|item| [item[1], item[0], item[2]]).collect();
        assert_eq!(decoded(3, vec![Fix::Swap { offset: 0, width: 2, count: 1 }], bytes), wanted);
    }

    #[test]
    fn truth_values_and_unused_bits_are_stored_as_they_are() {
        let fixes = vec![Fix::Bool { offset: 0, count: 1 }, Fix::Mask { offset: 1, count: 1, mask: 1 }];
        let mut bytes = vec![9, 9];
        Elements::new(2, fixes).unwrap().encode(&mut bytes);
        assert_eq!(bytes, [9, 9]);
    }

    #[test]
    fn text_is_broken_if_it_holds_no_code_points() {
        for swapped in [false, true] {
            let elements = Elements::new(8, vec![Fix::Text { offset: 4, count: 1, swapped }]).unwrap();
            for (point, kind) in [(LAST_CODE_POINT, None), (LAST_CODE_POINT + 1, Some(Kind::Broken))] {
                let point = if swapped { point.swap_bytes() } else { point };
                let mut bytes = [u32::MAX.to_ne_bytes(), point.to_ne_bytes()].concat();
                assert_eq!(elements.decode(&mut bytes).err().map(|error| error.kind), kind);
            }
        }
    }

    #[test]
    fn a_fix_beyond_the_element_is_refused() {
        for (item, fix) in [
            (0, Fix::Bool { offset: 0, count: 0 }),
            (4, Fix::Bool { offset: 4, count: 1 }),
            (4, Fix::Swap { offset: 0, width: 0, count: 1 }),
            (4, Fix::Swap { offset: 1, width: 2, count: 2 }),
            (4, Fix::Swap { offset: 1, width: usize::MAX, count: 2 }),
            (4, Fix::Text { offset: usize::MAX, count: 1, swapped: false }),
        ] {
            assert_eq!(Elements::new(item, vec![fix]).unwrap_err().kind, Kind::Refused);
        }
    }

    #[test]
    fn a_part_of_an_element_is_refused() {
        let elements = Elements::new(4, Vec::new()).unwrap();
        assert!(elements.is_plain());
        assert_eq!(elements.decode(&mut [0; 6]).unwrap_err().kind, Kind::Refused);
    }
}

//! bitround: numbers rounded to a number of bits. Decoding changes nothing. See `omnizarr.codecs.bitround`.

use crate::codecs::Filter;
use crate::error::{Error, Result};

/// The filters of zarr-extensions and of numcodecs.
#[derive(Clone, Copy, Debug)]
pub struct BitRound {
    nbytes: usize,
    width: usize,
    swapped: bool,
    mantissa: u32,
    keepbits: u32,
}

impl BitRound {
    /// The filter for `count` numbers of `width` bytes, in the byte order that this machine has not if `swapped`: floats
    /// with so many bits of `mantissa` below those of the exponent, or integers if that is 0. Of the mantissa, or from
    /// the highest set bit of an integer on, `keepbits` stay.
    ///
    /// # Errors
    /// If there are no such numbers.
    pub fn new(count: usize, width: usize, swapped: bool, mantissa: u32, keepbits: u32) -> Result<Self> {
        let nbytes = count.checked_mul(width).filter(|&nbytes| isize::try_from(nbytes).is_ok());
        match nbytes {
            Some(nbytes) if matches!(width, 1 | 2 | 4 | 8) && (mantissa as usize) < 8 * width - 1 && keepbits <= 64 => {
                Ok(Self { nbytes, width, swapped, mantissa, keepbits })
            }
            _ => Err(Error::refused("numbers of such a form")),
        }
    }
}

macro_rules! round_words {
    ($word:ty, $codec:expr, $data:expr, $out:expr) => {{
        let BitRound { swapped, mantissa, keepbits, .. } = *$codec;
        let round = |word: $word, drop: u32| {
            let half: $word = (1 << (drop.max(1) - 1)) - 1;
            let added = word.wrapping_add((word >> drop & 1) + half);
            let added = if added < word { <$word>::MAX } else { added };
            if drop > 0 { added >> drop << drop } else { word }
        };
        // Behind the sign, the largest exponent and no mantissa: infinity; NaNs are above.
        let infinity = <$word>::MAX >> 1 >> mantissa << mantissa;
        let drop = mantissa.saturating_sub(keepbits);
        for (from, to) in $data.chunks_exact(size_of::<$word>()).zip($out.chunks_exact_mut(size_of::<$word>())) {
            let word = <$word>::from_ne_bytes(from.try_into().unwrap_or_default());
            let word = if swapped { word.swap_bytes() } else { word };
            let rounded = if mantissa == 0 {
                round(word, (<$word>::BITS - word.leading_zeros()).saturating_sub(keepbits))
            } else if word & (<$word>::MAX >> 1) > infinity {
                word
            } else {
                round(word, drop)
            };
            to.copy_from_slice(&(if swapped { rounded.swap_bytes() } else { rounded }).to_ne_bytes());
        }
    }};
}

impl Filter for BitRound {
    fn encoded_size(&self) -> usize {
        self.nbytes
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len() != self.nbytes || out.len() != self.nbytes {
            return Err(Error::refused("another number of elements"));
        }
        out.copy_from_slice(data);
        Ok(())
    }

    fn encode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len() != self.nbytes || out.len() != self.nbytes {
            return Err(Error::refused("another number of elements"));
        }
        match self.width {
            1 => round_words!(u8, self, data, out),
            2 => round_words!(u16, self, data, out),
            4 => round_words!(u32, self, data, out),
            _ => round_words!(u64, self, data, out),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(words: &[u32], mantissa: u32, keepbits: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for swapped in [false, true] {
            let turned = |word: u32| if swapped { word.swap_bytes() } else { word };
            let data: Vec<u8> = words.iter().flat_map(|&word| turned(word).to_ne_bytes()).collect();
            let mut out = vec![0; data.len()];
            BitRound::new(words.len(), 4, swapped, mantissa, keepbits).unwrap().encode(&data, &mut out).unwrap();
            let here: Vec<u32> =
                out.chunks(4).map(|word| turned(u32::from_ne_bytes(word.try_into().unwrap()))).collect();
            assert!(found.is_empty() || found == here);
            found = here;
        }
        found
    }

    #[test]
    fn floats_are_rounded_to_the_even_neighbour_and_nans_stay() {
        // numcodecs.BitRound(1) of 1.25, 1.75, 1.3, infinity and NaNs, as bits
        let words = [0x3FA0_0000, 0x3FE0_0000, 0x3FA6_6666, 0x7F80_0000, 0xFF80_0001, 0x7FFF_FFFF];
        let wanted = [0x3F80_0000, 0x4000_0000, 0x3FC0_0000, 0x7F80_0000, 0xFF80_0001, 0x7FFF_FFFF];
        assert_eq!(rounded(&words, 23, 1), wanted);
    }

    #[test]
    fn integers_keep_bits_from_the_highest_one_on_and_saturate() {
        assert_eq!(rounded(&[0, 1, 5, 6, 7, 0x1_0001, u32::MAX], 0, 2), [0, 1, 4, 6, 8, 0x1_0000, 0xC000_0000]);
    }

    #[test]
    fn nothing_is_rounded_if_all_bits_stay() {
        let words = [0, 1, 0x3FA6_6667, u32::MAX];
        assert_eq!(rounded(&words, 23, 23), words);
        assert_eq!(rounded(&words, 0, 64), words);
    }

    #[test]
    fn numbers_of_other_sizes_are_refused() {
        assert!(BitRound::new(1, 3, false, 0, 1).is_err());
        assert!(BitRound::new(1, 4, false, 31, 1).is_err());
        assert!(BitRound::new(usize::MAX, 4, false, 23, 1).is_err());
        assert!(BitRound::new(2, 4, false, 23, 1).unwrap().decode(&[0; 8], &mut [0; 4]).is_err());
    }
}

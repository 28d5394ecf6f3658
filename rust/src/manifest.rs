//! Where the chunks of an array lie in files of other formats: which bytes of which file each of them is.
//!
//! What `omnizarr.stores.manifests.manifest` is in Python.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};

/// The length of a chunk that is not stored.
pub const NOT_STORED: u64 = u64::MAX;
/// The length of a chunk that no plan has looked for yet.
const UNKNOWN: u64 = u64::MAX - 1;
/// The length of a chunk that the store in Python must be asked for.
pub const ASK: u64 = u64::MAX - 2;
/// The length of a chunk whose bytes are in memory.
pub const INLINE: u64 = u64::MAX - 3;
/// The length of a chunk that is a whole file, of any size.
pub const WHOLE: u64 = u64::MAX - 4;

/// Columns of numbers, by the number of the chunk.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The first byte of each chunk.
    pub offsets: Vec<u64>,
    /// Bytes of each chunk.
    pub lengths: Vec<u64>,
    /// The file of each chunk; None: the first.
    pub files: Option<Vec<u32>>,
}

/// Chunks at regular distances: see `Strided` in Python.
#[derive(Clone, Debug)]
pub struct Strided {
    /// The first byte of the array.
    pub start: u64,
    /// Bytes from one chunk to the next along each dimension.
    pub steps: Vec<u64>,
    /// The dimension of the units.
    pub axis: usize,
    /// Units of the array.
    pub units: u64,
    /// Units of a chunk.
    pub per_chunk: u64,
    /// Bytes of a unit.
    pub unit: u64,
    /// Bytes from one unit to the next.
    pub stride: u64,
    /// The number of the file.
    pub file: u32,
}

/// Where the chunks of an array lie.
#[derive(Clone, Debug)]
pub enum Chunks {
    /// Anywhere.
    Columns(Columns),
    /// At regular distances.
    Strided(Strided),
    /// Where they were found when they were first needed.
    Known(Arc<Known>),
}

/// Number of chunks of a block.
const BLOCK: u64 = 64;
const LANES: usize = 64;
/// The most blocks and the most bytes of values that are kept.
const MOST_BLOCKS: usize = 1 << 15;
const MOST_INLINE: usize = 64 << 20;

/// Where those chunks lie that a plan has looked for, by number. There may be far more chunks than fit in memory.
#[derive(Clone, Debug, Default)]
pub struct Known {
    blocks: HashMap<u64, Arc<Block>>,
    inline: HashMap<u64, Arc<[u8]>>,
    nbytes: usize,
}

#[derive(Clone, Debug)]
struct Block {
    offsets: [u64; LANES],
    lengths: [u64; LANES],
    files: [u32; LANES],
}

impl Known {
    fn at(&self, number: u64) -> (u64, u64, u32) {
        let Some(block) = self.blocks.get(&(number / BLOCK)) else { return (0, UNKNOWN, 0) };
        #[allow(clippy::cast_possible_truncation)] // less than 64
        let lane = (number % BLOCK) as usize;
        (block.offsets[lane], block.lengths[lane], block.files[lane])
    }

    /// Whether a plan has looked for a chunk.
    #[must_use]
    pub fn holds(&self, number: u64) -> bool {
        self.at(number).1 != UNKNOWN
    }

    /// Whether so much is kept that it is time to forget.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.blocks.len() >= MOST_BLOCKS || self.nbytes >= MOST_INLINE
    }

    /// Keep where a chunk lies.
    pub fn put(&mut self, number: u64, offset: u64, length: u64, file: u32) {
        let new = || Arc::new(Block { offsets: [0; LANES], lengths: [UNKNOWN; LANES], files: [0; LANES] });
        let block = Arc::make_mut(self.blocks.entry(number / BLOCK).or_insert_with(new));
        #[allow(clippy::cast_possible_truncation)] // less than 64
        let lane = (number % BLOCK) as usize;
        (block.offsets[lane], block.lengths[lane], block.files[lane]) = (offset, length, file);
    }

    /// Keep the bytes of a chunk.
    pub fn put_inline(&mut self, number: u64, bytes: &[u8]) {
        self.nbytes += bytes.len();
        self.inline.insert(number, bytes.into());
        self.put(number, 0, INLINE, u32::MAX);
    }

    /// The bytes of a chunk, if they are in memory.
    #[must_use]
    pub fn inline(&self, number: u64) -> Option<&Arc<[u8]>> {
        self.inline.get(&number)
    }

    fn find(&self, number: u64) -> Result<Option<Extent>> {
        let (offset, length, file) = self.at(number);
        match length {
            NOT_STORED => Ok(None),
            UNKNOWN | ASK => Err(Error::refused("a chunk that the store must be asked for")),
            // No file has this number.
            INLINE => Ok(Some(Extent { file: u32::MAX, offset: 0, length: INLINE, parts: 1, stride: 0, padding: 0 })),
            length => Ok(Some(Extent { file, offset, length, parts: 1, stride: 0, padding: 0 })),
        }
    }
}

/// The bytes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of the file.
    pub file: u32,
    /// The first byte.
    pub offset: u64,
    /// Bytes of each part.
    pub length: u64,
    /// Number of parts.
    pub parts: u64,
    /// Bytes from the beginning of one part to that of the next.
    pub stride: u64,
    /// Zeros behind the parts, which are in no file.
    pub padding: u64,
}

/// The chunks of an array.
#[derive(Debug)]
pub struct Manifest {
    /// Number of chunks along each dimension.
    pub grid: Vec<u64>,
    /// Where they lie.
    pub chunks: Chunks,
    /// The codecs that each chunk skips.
    pub skipped: Option<Vec<u32>>,
}

impl Manifest {
    /// Return the number of a chunk; None if there is no such chunk.
    #[must_use]
    pub fn number(&self, coords: &[u64]) -> Option<u64> {
        if coords.len() != self.grid.len() {
            return None;
        }
        self.grid.iter().zip(coords).try_fold(0_u64, |number, (&length, &coordinate)| {
            if coordinate >= length {
                return None;
            }
            number.checked_mul(length)?.checked_add(coordinate)
        })
    }

    /// Return the coordinates of a chunk by its number.
    #[must_use]
    pub fn coords(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut coords: Vec<_> = self
            .grid
            .iter()
            .rev()
            .map(|&length| {
                let coordinate = rest % length.max(1);
                rest /= length.max(1);
                coordinate
            })
            .collect();
        coords.reverse();
        coords
    }

    /// Return which codecs a chunk skips.
    #[must_use]
    pub fn mask(&self, coords: &[u64]) -> u32 {
        let Some(skipped) = &self.skipped else { return 0 };
        let number = self.number(coords).and_then(|number| usize::try_from(number).ok());
        number.and_then(|number| skipped.get(number)).copied().unwrap_or(0)
    }

    /// Return where a chunk lies; None if it is not stored.
    ///
    /// # Errors
    /// If there is no such chunk.
    pub fn find(&self, number: u64) -> Result<Option<Extent>> {
        match &self.chunks {
            Chunks::Columns(columns) => columns.find(number),
            Chunks::Strided(strided) => strided.find(number, &self.grid).map(Some),
            Chunks::Known(known) => known.find(number),
        }
    }

    /// Return the bytes of a chunk, if they are in memory.
    #[must_use]
    pub fn inline(&self, number: u64) -> Option<&Arc<[u8]>> {
        match &self.chunks {
            Chunks::Known(known) => known.inline(number),
            _ => None,
        }
    }
}

/// The error of a chunk that is in no manifest.
#[must_use]
pub fn outside() -> Error {
    Error::refused("a chunk outside the manifest")
}

impl Columns {
    fn find(&self, number: u64) -> Result<Option<Extent>> {
        let at = usize::try_from(number).map_err(|_| outside())?;
        let (&offset, &length) = self.offsets.get(at).zip(self.lengths.get(at)).ok_or_else(outside)?;
        if length == NOT_STORED {
            return Ok(None);
        }
        let file = match &self.files {
            None => 0,
            Some(files) => *files.get(at).ok_or_else(outside)?,
        };
        Ok(Some(Extent { file, offset, length, parts: 1, stride: 0, padding: 0 }))
    }
}

impl Strided {
    fn find(&self, number: u64, grid: &[u64]) -> Result<Extent> {
        let (mut rest, mut offset, mut place) = (number, Some(self.start), 0);
        for (axis, &length) in grid.iter().enumerate().rev() {
            if length == 0 {
                return Err(outside());
            }
            let coordinate = rest % length;
            rest /= length;
            let step = self.steps.get(axis).ok_or_else(outside)?;
            offset = step.checked_mul(coordinate).and_then(|step| step.checked_add(offset?));
            if axis == self.axis {
                place = coordinate;
            }
        }
        let first = place.checked_mul(self.per_chunk).ok_or_else(outside)?;
        let count = self.per_chunk.min(self.units.checked_sub(first).ok_or_else(outside)?);
        let missing = self.per_chunk - count;
        let padding = missing.checked_mul(self.unit).ok_or_else(outside)?;
        let offset = offset.ok_or_else(outside)?;
        if count == 1 || self.stride == self.unit {
            let length = count.checked_mul(self.unit).ok_or_else(outside)?;
            return Ok(Extent { file: self.file, offset, length, parts: 1, stride: 0, padding });
        }
        Ok(Extent { file: self.file, offset, length: self.unit, parts: count, stride: self.stride, padding })
    }
}

impl Extent {
    /// Bytes of the value.
    ///
    /// # Errors
    /// If no memory holds so many.
    pub fn size(&self) -> Result<u64> {
        self.parts
            .checked_mul(self.length)
            .and_then(|size| size.checked_add(self.padding))
            .ok_or_else(|| Error::broken("larger than memory"))
    }

    /// Where the last part ends in the file.
    ///
    /// # Errors
    /// If that is nowhere.
    pub fn stop(&self) -> Result<u64> {
        let last = self.parts.saturating_sub(1).checked_mul(self.stride);
        last.and_then(|last| self.offset.checked_add(last)?.checked_add(self.length)).ok_or_else(outside)
    }

    /// Fill `out` with the bytes of the value that begin at `start`, and return how many there were. `read` is called with places
    /// in the file, and with what is to be filled from there.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read(
        &self,
        start: u64,
        out: &mut [u8],
        mut read: impl FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<usize> {
        let size = self.size()?;
        let stored = size - self.padding;
        let available = usize::try_from(size.saturating_sub(start)).unwrap_or(usize::MAX).min(out.len());
        let in_file = usize::try_from(stored.saturating_sub(start)).unwrap_or(usize::MAX).min(available);
        let (mut bytes, zeros) = out[..available].split_at_mut(in_file);
        zeros.fill(0);
        let mut at = start;
        while !bytes.is_empty() {
            let (number, skip) = (at / self.length, at % self.length);
            let count = usize::try_from(self.length - skip).unwrap_or(usize::MAX).min(bytes.len());
            let place =
                number.checked_mul(self.stride).and_then(|place| place.checked_add(self.offset)?.checked_add(skip));
            let (part, rest) = bytes.split_at_mut(count);
            read(place.ok_or_else(outside)?, part)?;
            (bytes, at) = (rest, at + count as u64);
        }
        Ok(available)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_kept_by_number() {
        let mut known = Known::default();
        known.put(5, 100, 7, 2);
        known.put(64, 0, WHOLE, 1);
        known.put(6, 0, NOT_STORED, 0);
        known.put(7, 0, ASK, 0);
        known.put_inline(1 << 60, b"abc");
        let kept = known.clone();
        known.put(8, 1, 1, 1);
        let extent = |file, offset, length| Some(Extent { file, offset, length, parts: 1, stride: 0, padding: 0 });
        assert_eq!(known.find(5).unwrap(), extent(2, 100, 7));
        assert_eq!(known.find(64).unwrap(), extent(1, 0, WHOLE));
        assert_eq!(known.find(6).unwrap(), None);
        assert!(known.find(7).is_err() && known.find(9).is_err() && known.find(1 << 40).is_err());
        assert!(known.holds(7) && known.holds(8) && !kept.holds(8) && !known.holds(9) && !known.is_full());
        let manifest = Manifest { grid: vec![1 << 61], chunks: Chunks::Known(Arc::new(known)), skipped: None };
        assert_eq!(manifest.inline(1 << 60).map(|bytes| bytes.to_vec()), Some(b"abc".to_vec()));
        assert_eq!(manifest.inline(5), None);
    }
}

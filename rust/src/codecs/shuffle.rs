//! shuffle: first all first bytes of the items, then all second ones, and so on. See `omnizarr.codecs.shuffle`.

use crate::codecs::Codec;
use crate::error::{Error, Result};
use crate::scatter::{VECTOR, Vector, merged, transposed};

/// The byte shuffle of HDF5.
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    item: usize,
}

impl Shuffle {
    /// The shuffle of items of this many bytes.
    #[must_use]
    pub fn new(item_size: usize) -> Self {
        Self { item: item_size.max(1) }
    }
}

impl Codec for Shuffle {
    fn encoded_size(&self, decoded: usize) -> Option<usize> {
        Some(decoded)
    }

    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        if data.len() % self.item != 0 {
            return Err(Error::refused("the size is not a multiple of the item size"));
        }
        if self.item == 1 {
            out.extend_from_slice(data);
            return Ok(());
        }
        out.resize(data.len(), 0);
        if !data.is_empty() {
            split(data, out, self.item);
        }
        Ok(())
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len() != out.len() {
            return Err(Error::broken("the decoded bytes have the wrong size"));
        }
        if self.item == 1 || data.len() < self.item {
            out.copy_from_slice(data);
            return Ok(());
        }
        // Bytes after the last whole item stay in place.
        let whole = data.len() - data.len() % self.item;
        join(&data[..whole], &mut out[..whole], self.item);
        out[whole..].copy_from_slice(&data[whole..]);
        Ok(())
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

/// Put the bytes of whole items, at least one, into planes.
fn split(items: &[u8], planes: &mut [u8], item: usize) {
    match item {
        2 => split_vectors::<2>(items, planes),
        4 => split_vectors::<4>(items, planes),
        8 => split_vectors::<8>(items, planes),
        16 => split_vectors::<16>(items, planes),
        _ => split_bytes(items, planes, item),
    }
}

/// Put the bytes of items of `ITEM` bytes into planes: a vector of each plane at a time.
fn split_vectors<const ITEM: usize>(items: &[u8], planes: &mut [u8]) {
    let count = items.len() / ITEM;
    let blocks = items.chunks_exact(ITEM * VECTOR);
    let rest = blocks.remainder();
    for (number, block) in blocks.enumerate() {
        let mut rows = [[0; VECTOR]; ITEM];
        rows.as_flattened_mut().copy_from_slice(block);
        for (plane, row) in planes.chunks_exact_mut(count).zip(merged::<1, ITEM>(rows, VECTOR.ilog2())) {
            plane[number * VECTOR..][..VECTOR].copy_from_slice(&row);
        }
    }
    let start = count - count % VECTOR;
    for (place, plane) in planes.chunks_exact_mut(count).enumerate() {
        for (byte, item) in plane[start..].iter_mut().zip(rest.chunks_exact(ITEM)) {
            *byte = item[place];
        }
    }
}

fn split_bytes(items: &[u8], planes: &mut [u8], item: usize) {
    let count = items.len() / item;
    for (place, plane) in planes.chunks_exact_mut(count).enumerate() {
        for (byte, from) in plane.iter_mut().zip(items.chunks_exact(item)) {
            *byte = from[place];
        }
    }
}

/// Put the bytes of planes, at least one of each, into items.
fn join(planes: &[u8], items: &mut [u8], item: usize) {
    match item {
        2 => join_vectors::<2>(planes, items),
        4 => join_vectors::<4>(planes, items),
        8 => join_vectors::<8>(planes, items),
        16 => join_vectors::<16>(planes, items),
        _ => join_bytes(planes, items, item),
    }
}

/// Put the bytes of planes into items of `ITEM` bytes: a vector of each plane at a time.
fn join_vectors<const ITEM: usize>(planes: &[u8], items: &mut [u8]) {
    let count = items.len() / ITEM;
    let mut each = planes.chunks_exact(count);
    let planes: [&[u8]; ITEM] = std::array::from_fn(|_| each.next().unwrap_or_default());
    let mut blocks = items.chunks_exact_mut(ITEM * VECTOR);
    for (number, block) in blocks.by_ref().enumerate() {
        let start = number * VECTOR;
        let rows: [Vector; ITEM] =
            std::array::from_fn(|place| planes[place][start..].first_chunk().copied().unwrap_or_default());
        block.copy_from_slice(transposed::<1, ITEM>(rows).as_flattened());
    }
    let start = count - count % VECTOR;
    for (number, item) in blocks.into_remainder().chunks_exact_mut(ITEM).enumerate() {
        for (byte, plane) in item.iter_mut().zip(&planes) {
            *byte = plane[start + number];
        }
    }
}

fn join_bytes(planes: &[u8], items: &mut [u8], item: usize) {
    let count = items.len() / item;
    for (place, plane) in planes.chunks_exact(count).enumerate() {
        for (byte, to) in plane.iter().zip(items.chunks_exact_mut(item)) {
            to[place] = *byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn noise(size: usize) -> Vec<u8> {
        let mut state = 1_u32;
        (0..size)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            })
            .collect()
    }

    /// Byte `place` of item `number` is at `place * count + number`.
    fn transposed(data: &[u8], item: usize) -> Vec<u8> {
        let count = data.len() / item;
        let mut out = vec![0; data.len()];
        for (at, &byte) in data.iter().enumerate() {
            out[at % item * count + at / item] = byte;
        }
        out
    }

    #[test]
    fn items_of_any_size_and_number_are_shuffled_and_back() {
        for item in [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 255] {
            for count in [0, 1, 2, 7, 8, 9, 31, 32, 33, 64, 100, 1000] {
                let data = noise(item * count);
                let shuffle = Shuffle::new(item);
                let mut out = vec![9; 3];
                shuffle.encode(&data, &mut out).unwrap();
                assert_eq!(out, transposed(&data, item), "{count} items of {item} bytes");
                let mut back = vec![0; data.len()];
                shuffle.decode(&out, &mut back).unwrap();
                assert_eq!(back, data, "{count} items of {item} bytes");
            }
        }
    }

    #[test]
    fn bytes_that_are_left_over_stay_at_the_end_but_are_not_written() {
        let mut out = [0; 7];
        Shuffle::new(3).decode(&[1, 4, 2, 5, 3, 6, 7], &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4, 5, 6, 7]);
        Shuffle::new(8).decode(&[1, 2, 3, 4, 5, 6, 7], &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(Shuffle::new(3).encode(&out, &mut Vec::new()).unwrap_err().kind, Kind::Refused);
    }

    #[test]
    fn another_size_is_broken() {
        assert_eq!(Shuffle::new(2).decode(&[0; 4], &mut [0; 6]).unwrap_err().kind, Kind::Broken);
        let mut out = Vec::new();
        assert_eq!(Shuffle::new(2).decode_any(&[0; 4], 3, &mut out).unwrap_err().kind, Kind::Broken);
        Shuffle::new(2).decode_any(&[1, 2, 3, 4], 4, &mut out).unwrap();
        assert_eq!(out, [1, 3, 2, 4]);
    }
}

//! Samples for training: what they have of decoded chunks is copied into a batch.

use crate::error::{Error, Result};

/// The samples of a batch.
pub struct Batch<'a> {
    /// Length of a sample along each dimension of the array.
    pub size: &'a [usize],
    /// The dimensions along which samples begin at different places.
    pub axes: &'a [usize],
    /// Bytes of an element.
    pub item: usize,
}

/// A chunk in memory, in C order.
pub struct Chunk<'a> {
    /// Its elements along each dimension.
    pub shape: &'a [usize],
    /// Their bytes.
    pub bytes: &'a [u8],
}

/// Along one dimension: how many elements are copied, and where they begin in the chunk and in the sample.
#[derive(Clone, Copy)]
struct Span {
    count: usize,
    inner: usize,
    outer: usize,
}

impl Batch<'_> {
    /// Copy what a sample has of a chunk. `starts`: where the sample begins in the chunk along each of `axes`, perhaps before
    /// it.
    ///
    /// # Errors
    /// If the sample, the chunk and the place do not fit each other.
    pub fn place(&self, sample: &mut [u8], chunk: &Chunk<'_>, starts: &[i64]) -> Result<()> {
        let unfit = || Error::refused("a sample that does not fit its chunk");
        let ndim = self.size.len();
        if chunk.shape.len() != ndim || starts.len() != self.axes.len() {
            return Err(unfit());
        }
        let mut spans: smallvec::SmallVec<[Span; 8]> = smallvec::SmallVec::with_capacity(ndim);
        for (&size, &length) in self.size.iter().zip(chunk.shape) {
            spans.push(Span { count: size.min(length), inner: 0, outer: 0 });
        }
        for (&axis, &start) in self.axes.iter().zip(starts) {
            let (size, length) = (signed(self.size.get(axis).copied())?, signed(chunk.shape.get(axis).copied())?);
            let (low, high) = (start.max(0), start.checked_add(size).ok_or_else(unfit)?.min(length));
            let whole = |number: i64| usize::try_from(number).map_err(|_| unfit());
            spans[axis] = Span { count: whole((high - low).max(0))?, inner: whole(low)?, outer: whole(low - start)? };
        }
        // Dimensions that are copied whole, at the end, are one run of bytes with the one before them.
        let (mut run, mut first) = (self.item, ndim);
        let (mut inner, mut outer) = (0, 0);
        let (mut in_step, mut out_step) = (self.item, self.item);
        while first > 0 {
            let (span, length, size) = (spans[first - 1], chunk.shape[first - 1], self.size[first - 1]);
            inner += span.inner * in_step;
            outer += span.outer * out_step;
            run *= span.count;
            first -= 1;
            in_step *= length;
            out_step *= size;
            if span.count != length || span.count != size {
                break;
            }
        }
        let steps = Steps { spans: &spans[..first], chunk: chunk.shape, size: self.size };
        steps.copy((sample, outer, out_step), (chunk.bytes, inner, in_step), run).ok_or_else(unfit)
    }
}

fn signed(length: Option<usize>) -> Result<i64> {
    length.and_then(|length| i64::try_from(length).ok()).ok_or_else(|| Error::refused("a dimension of that length"))
}

/// The dimensions before those of one run of bytes.
struct Steps<'a> {
    spans: &'a [Span],
    chunk: &'a [usize],
    size: &'a [usize],
}

impl Steps<'_> {
    /// Copy all runs: `to` and `from` are memory, where the first begins, and bytes of one step of the last dimension.
    /// None: out of the memory.
    fn copy(&self, to: (&mut [u8], usize, usize), from: (&[u8], usize, usize), run: usize) -> Option<()> {
        let (out, to, out_step) = to;
        let (bytes, from, in_step) = from;
        let Some((span, rest)) = self.spans.split_last() else {
            out.get_mut(to..to.checked_add(run)?)?.copy_from_slice(bytes.get(from..from.checked_add(run)?)?);
            return Some(());
        };
        let (to, from) = (to + span.outer * out_step, from + span.inner * in_step);
        if rest.is_empty() {
            for at in 0..span.count {
                let (to, from) = (to + at * out_step, from + at * in_step);
                out.get_mut(to..to.checked_add(run)?)?.copy_from_slice(bytes.get(from..from.checked_add(run)?)?);
            }
            return Some(());
        }
        let axis = rest.len();
        let outer = Self { spans: rest, ..*self };
        let (next_out, next_in) = (out_step * self.size[axis], in_step * self.chunk[axis]);
        for at in 0..span.count {
            outer.copy((out, to + at * out_step, next_out), (bytes, from + at * in_step, next_in), run)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(size: &[usize], axes: &[usize], shape: &[usize], starts: &[i64]) -> Result<Vec<u8>> {
        let bytes: Vec<u8> = (1..=u8::try_from(shape.iter().product::<usize>()).unwrap()).collect();
        let mut sample = vec![0; size.iter().product()];
        let batch = Batch { size, axes, item: 1 };
        batch.place(&mut sample, &Chunk { shape, bytes: &bytes }, starts)?;
        Ok(sample)
    }

    #[test]
    fn samples_get_what_they_have_of_a_chunk() {
        assert_eq!(placed(&[1, 3], &[0], &[2, 3], &[1]).unwrap(), [4, 5, 6]);
        assert_eq!(placed(&[2, 2], &[0, 1], &[3, 3], &[1, 1]).unwrap(), [5, 6, 8, 9]);
        assert_eq!(placed(&[2, 2], &[0, 1], &[3, 3], &[-1, 2]).unwrap(), [0, 0, 3, 0]);
        assert_eq!(placed(&[2, 2, 2], &[1], &[2, 3, 2], &[2]).unwrap(), [5, 6, 0, 0, 11, 12, 0, 0]);
        assert_eq!(placed(&[2, 1, 2], &[0, 1], &[2, 2, 2], &[0, 1]).unwrap(), [3, 4, 7, 8]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(placed(&[2, 2], &[0], &[3], &[1]).is_err());
        assert!(placed(&[2], &[1], &[3], &[1]).is_err());
        assert!(placed(&[2], &[0], &[3], &[i64::MAX]).is_err());
        assert!(placed(&[2], &[0], &[2], &[5]).is_err());
        let batch = Batch { size: &[2], axes: &[0], item: 4 };
        assert!(batch.place(&mut [0; 4], &Chunk { shape: &[2], bytes: &[0; 8] }, &[0]).is_err());
        assert!(batch.place(&mut [0; 8], &Chunk { shape: &[2], bytes: &[0; 4] }, &[0]).is_err());
    }
}

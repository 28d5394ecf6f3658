//! Samples for training, out of decoded chunks into the memory of batches, for `omnizarr.data`.

use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::prelude::*;

use super::{refused, unknown};
use crate::samples::{Batch, Chunk};

/// Where what samples have of some chunks is.
type Places<'py> = (Vec<usize>, PyBuffer<i64>, PyBuffer<i64>);

/// Copy what samples have of chunks into `out`, a batch in C order. Uses number `bounds[n]` up to `bounds[n + 1]` are those
/// of chunk `n`: of the sample `samples[use]`, which begins at `starts[use]` in the chunk along `axes`. `size`: length of a
/// sample along each dimension of the array.
///
/// Raises `NotImplementedError` if they do not fit each other.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn place_samples(
    py: Python<'_>,
    out: &Bound<'_, PyAny>,
    chunks: Vec<Bound<'_, PyAny>>,
    places: Places<'_>,
    size: Vec<usize>,
    axes: Vec<usize>,
) -> PyResult<()> {
    let (bounds, samples, starts) = places;
    let buffer = PyUntypedBuffer::get(out)?;
    if buffer.readonly() || !buffer.is_c_contiguous() || bounds.len() != chunks.len() + 1 {
        return Err(unknown("memory that cannot be filled"));
    }
    let item = buffer.item_size();
    let sources = chunks.iter().map(PyUntypedBuffer::get).collect::<PyResult<Vec<_>>>()?;
    if sources.iter().any(|chunk| !chunk.is_c_contiguous() || chunk.item_size() != item) {
        return Err(unknown("chunks of another form"));
    }
    let (samples, starts) = (samples.to_vec(py)?, starts.to_vec(py)?);
    let length = size.iter().fold(item, |nbytes, &length| nbytes.saturating_mul(length));
    if length == 0 || axes.is_empty() || starts.len() != samples.len() * axes.len() {
        return Err(unknown("samples of another form"));
    }
    let nbytes = buffer.len_bytes();
    // SAFETY: the buffer is held, contiguous and writable, and not empty; the caller shares it with no other thread.
    let out: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), nbytes) };
    let batch = Batch { size: &size, axes: &axes, item };
    let chunks: Vec<(Chunk<'_>, std::ops::Range<usize>)> = sources
        .iter()
        .zip(bounds.windows(2))
        .map(|(chunk, bounds)| {
            let bytes: &[u8] = match chunk.len_bytes() {
                0 => &[],
                // SAFETY: the buffer is held and contiguous, and chunks that were read are not written any more.
                nbytes => unsafe { std::slice::from_raw_parts(chunk.buf_ptr().cast(), nbytes) },
            };
            (Chunk { shape: chunk.shape(), bytes }, bounds[0]..bounds[1])
        })
        .collect();
    py.detach(|| {
        for (chunk, uses) in chunks {
            for number in uses {
                let found = samples.get(number).and_then(|&sample| usize::try_from(sample).ok());
                let sample = found
                    .and_then(|sample| out.get_mut(sample.checked_mul(length)?..)?.get_mut(..length))
                    .ok_or_else(|| crate::error::Error::refused("a sample outside the batch"))?;
                batch.place(sample, &chunk, &starts[number * axes.len()..(number + 1) * axes.len()])?;
            }
        }
        Ok(())
    })
    .map_err(|error: crate::error::Error| refused(&error))
}

//! Indexes of chunks in HDF5 files, for `omnizarr.readers.hdf5.chunks`.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{PyMemory, refused};
use crate::error::Result as EngineResult;
use crate::threads::locked;
use crate::trees::{Answer, Form, Tree, Wanted};

/// A B-tree of version 1.
// Locked only with the interpreter, and while nothing of Python runs: so a process can fork at any time.
#[pyclass(frozen, name = "ChunkTree", module = "omnizarr._native")]
pub struct PyTree(Mutex<Tree>);

type Sizes = (usize, usize, u64, u64);
type Answered<'py> = (Option<Vec<Wanted>>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn answered(py: Python<'_>, answer: EngineResult<Answer>) -> PyResult<Answered<'_>> {
    match answer.map_err(|error| refused(&error))? {
        Answer::Missing(wanted) => Ok((Some(wanted), PyBytes::new(py, b""), PyBytes::new(py, b""))),
        Answer::Found(offsets, lengths) => Ok((None, bytes(py, &offsets)?, bytes(py, &lengths)?)),
    }
}

fn bytes<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 8 * numbers.len(), |out| {
        for (place, number) in out.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}

#[pymethods]
impl PyTree {
    /// `sizes`: bytes of an address, the largest number of entries of a node, the byte from which addresses count, and bytes
    /// of the file.
    #[new]
    fn new(root: u64, grid: Vec<u64>, chunk_shape: Vec<u64>, sizes: Sizes) -> PyResult<Self> {
        let (offset_size, most, base, size) = sizes;
        let form = Form { grid, chunk_shape, offset_size, most, base, size };
        Tree::new(root, form).map(|tree| Self(Mutex::new(tree))).map_err(|error| refused(&error))
    }

    fn __len__(&self) -> usize {
        locked(&self.0).len()
    }

    /// Add nodes, by address and level, with their bytes.
    #[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
    fn add(&self, wanted: Vec<Wanted>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = PyMemory::of(rows)?;
        locked(&self.0).add(&wanted, &rows).map_err(|error| refused(&error))
    }

    /// Return which nodes are missing, or None, and the offsets and the lengths of chunks by their numbers of 64 bits.
    fn seek<'py>(&self, py: Python<'py>, numbers: &[u8]) -> PyResult<Answered<'py>> {
        let numbers: Vec<u64> =
            numbers.chunks_exact(8).map(|each| each.try_into().map_or(0, u64::from_ne_bytes)).collect();
        let answer = locked(&self.0).seek(&numbers);
        answered(py, answer)
    }

    /// Return the same of all chunks.
    fn whole<'py>(&self, py: Python<'py>) -> PyResult<Answered<'py>> {
        let answer = locked(&self.0).whole();
        answered(py, answer)
    }
}

//! Indexes of chunks in HDF5 files, for `omnizarr.readers.hdf5.chunks`.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{PyMemory, refused};
use crate::error::Result as EngineResult;
use crate::threads::locked;
use crate::trees::{Answer, Form, Tree, Wanted};
#[cfg(unix)]
pub use near::{Near, PyIndex};

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

/// Indexes of files of this machine.
#[cfg(unix)]
mod near {
    use std::cell::OnceCell;
    use std::sync::{Arc, Mutex};

    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    use super::super::manifests::{Described, described};
    use super::super::{refused, unknown};
    use super::{Sizes, bytes};
    use crate::error::Result as EngineResult;
    use crate::files::manifest::{Opened, Source};
    use crate::threads::locked;
    use crate::trees::Form;
    use crate::trees::index::{Chunk, Index, Kept, Kind};

    /// As many threads find the parts again that they have read.
    const MOST_KEPT: usize = 4;

    /// An index of chunks in a file of this machine, which is read here.
    #[pyclass(frozen, name = "ChunkIndex", module = "omnizarr._native")]
    pub struct PyIndex(pub Arc<Near>);

    /// The index, and those parts of it that no call uses now.
    pub struct Near {
        index: Index,
        pub source: Source,
        // Locked only with the interpreter, and while nothing of Python runs: so a process can fork at any time.
        kept: Mutex<Vec<Kept>>,
    }

    type Elements = (u64, u32, usize, usize, Vec<u64>);

    #[pymethods]
    impl PyIndex {
        /// `sizes`: as of a tree; `elements`: bytes of a chunk without filters, the number of filters, bytes of a length, the
        /// dimension that grows, and the lengths by which an array of elements counts; `file`: as of `Sources`.
        #[new]
        fn new(
            kind: &str,
            address: u64,
            grid: Vec<u64>,
            chunk_shape: Vec<u64>,
            sizes: Sizes,
            elements: Elements,
            file: Described,
        ) -> PyResult<Self> {
            let kind = match kind {
                "tree" => Kind::Nodes,
                "tree 2" => Kind::Records,
                "fixed" => Kind::Fixed,
                "extensible" => Kind::Extensible,
                _ => return Err(unknown("an index of another kind")),
            };
            let (offset_size, most, base, size) = sizes;
            let (bytes, filters, length_size, first, lengths) = elements;
            let form = Form { grid, chunk_shape, offset_size, most, base, size };
            let chunk = Chunk { bytes, filters, length_size, first, lengths };
            let index = Index::new(kind, address, form, chunk).map_err(|error| refused(&error))?;
            let source = described(file, true);
            if source.size != size {
                return Err(unknown("a file of another size"));
            }
            Ok(Self(Arc::new(Near { index, source, kept: Mutex::default() })))
        }

        /// Return the offsets and the lengths of chunks by their numbers of 64 bits.
        fn seek<'py>(&self, py: Python<'py>, numbers: &[u8]) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
            let numbers: Vec<u64> =
                numbers.chunks_exact(8).map(|each| each.try_into().map_or(0, u64::from_ne_bytes)).collect();
            let (offsets, lengths) = self.0.seek(py, &numbers).map_err(|error| refused(&error))?;
            Ok((bytes(py, &offsets)?, bytes(py, &lengths)?))
        }
    }

    impl Near {
        /// Return the offsets and the lengths of chunks by number, without the interpreter.
        pub fn seek(&self, py: Python<'_>, numbers: &[u64]) -> EngineResult<(Vec<u64>, Vec<u64>)> {
            let mut kept = locked(&self.kept).pop().unwrap_or_default();
            let (found, kept) = py.detach(|| (self.found(numbers, &mut kept), kept));
            if found.is_ok() {
                let mut all = locked(&self.kept);
                if all.len() < MOST_KEPT {
                    all.push(kept);
                }
            }
            found
        }

        fn found(&self, numbers: &[u64], kept: &mut Kept) -> EngineResult<(Vec<u64>, Vec<u64>)> {
            // Many calls need no byte of the file.
            let file = OnceCell::new();
            let read = |start: u64, out: &mut [u8]| {
                if file.get().is_none() {
                    let _ = file.set(Opened::of(&self.source)?);
                }
                file.get().map_or(Ok(()), |opened: &Opened| opened.read(start, out))
            };
            let found = self.index.seek(numbers, kept, &read)?;
            file.get().map_or(Ok(()), |opened| opened.check(&self.source))?;
            Ok(found)
        }
    }
}

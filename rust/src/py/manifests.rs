//! Manifests: where the chunks of an array lie in files of other formats.

#[cfg(unix)]
pub use unix::{Given, PyManifest, PySources, Shared, as_store, check, grid, session, shared, skipping};

#[cfg(not(unix))]
pub use other::{Given, Shared, as_store, check, grid, session, shared, skipping};

#[cfg(unix)]
mod unix {
    use std::collections::HashMap;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;
    use std::sync::Arc;

    use pyo3::buffer::PyBuffer;
    use pyo3::prelude::*;

    use super::super::{PyCodecs, unknown};
    use crate::error::Result as EngineResult;
    use crate::files::manifest::{Chunks, Columns, Manifest, Session, Source, Strided};
    use crate::run::Skipping;
    use crate::store::Store;

    pub type Given<'py> = PyRef<'py, PyManifest>;
    pub type Shared = Arc<Manifest>;

    /// The files that manifests of several arrays name.
    #[pyclass(frozen, name = "Sources", module = "omnizarr._native")]
    pub struct PySources(Arc<Vec<Source>>);

    #[pymethods]
    impl PySources {
        /// `files`: path, size in bytes, and the time of the last change in nanoseconds, of each.
        #[new]
        fn new(files: Vec<(PathBuf, u64, i128)>) -> Self {
            let files = files.into_iter().map(|(path, size, modified)| Source {
                path: path.into_os_string().into_vec(),
                size,
                modified,
            });
            Self(Arc::new(files.collect()))
        }
    }

    /// Where the chunks of an array lie.
    #[pyclass(frozen, name = "Manifest", module = "omnizarr._native")]
    pub struct PyManifest(Arc<Manifest>);

    type Numbers<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);
    type Distances = (u64, Vec<u64>, usize, u64, u64, u64, u64, u32);

    #[pymethods]
    impl PyManifest {
        /// `columns`: offsets, lengths, files and skipped codecs; `strided`: the attributes of that form.
        // PyO3 hands over what it made.
        #[allow(clippy::needless_pass_by_value)]
        #[new]
        #[pyo3(signature = (sources, grid, *, columns=None, strided=None))]
        fn new(
            py: Python<'_>,
            sources: PyRef<'_, PySources>,
            grid: Vec<u64>,
            columns: Option<Numbers<'_>>,
            strided: Option<Distances>,
        ) -> PyResult<Self> {
            let small = |column: Option<Bound<'_, PyAny>>| {
                column.map(|column| PyBuffer::<u32>::get(&column)?.to_vec(py)).transpose()
            };
            let (chunks, skipped) = match (columns, strided) {
                (Some((offsets, lengths, files, skipped)), None) => {
                    let columns = Columns {
                        offsets: PyBuffer::<u64>::get(&offsets)?.to_vec(py)?,
                        lengths: PyBuffer::<u64>::get(&lengths)?.to_vec(py)?,
                        files: small(files)?,
                    };
                    (Chunks::Columns(columns), small(skipped)?)
                }
                (None, Some((start, steps, axis, units, per_chunk, unit, stride, file))) => {
                    (Chunks::Strided(Strided { start, steps, axis, units, per_chunk, unit, stride, file }), None)
                }
                _ => return Err(unknown("a manifest of another form")),
            };
            Ok(Self(Arc::new(Manifest { grid, chunks, skipped, sources: Arc::clone(&sources.0) })))
        }
    }

    pub fn shared(manifest: &Given<'_>) -> Shared {
        Arc::clone(&manifest.0)
    }

    pub fn grid(manifest: &Shared) -> Vec<u64> {
        manifest.grid.clone()
    }

    /// The codecs of chunks that skip some.
    pub fn skipping(manifest: &Shared, codecs: Vec<(u32, PyRef<'_, PyCodecs>)>) -> Option<Skipping> {
        manifest.skipped.as_ref()?;
        let codecs: HashMap<_, _> = codecs.into_iter().map(|(mask, codecs)| (mask, Arc::clone(&codecs.0))).collect();
        let manifest = Arc::clone(manifest);
        Some(Skipping { mask: Box::new(move |coords| manifest.mask(coords)), codecs })
    }

    pub fn session(manifest: &Shared) -> Session<'_> {
        manifest.session()
    }

    pub fn as_store<'a>(session: &'a Session<'_>) -> &'a dyn Store {
        session
    }

    pub fn check(session: &Session<'_>) -> EngineResult<()> {
        session.check()
    }
}

/// Never given: these systems have no such files.
#[cfg(not(unix))]
mod other {
    use std::convert::Infallible;

    use pyo3::prelude::*;

    use super::super::PyCodecs;
    use crate::error::Result as EngineResult;
    use crate::run::Skipping;
    use crate::store::Store;

    pub type Given<'py> = Bound<'py, PyAny>;
    pub type Shared = Infallible;

    pub fn shared(_: &Given<'_>) -> Shared {
        unreachable!("no manifest is given here")
    }

    pub fn grid(manifest: &Shared) -> Vec<u64> {
        match *manifest {}
    }

    pub fn skipping(manifest: &Shared, _: Vec<(u32, PyRef<'_, PyCodecs>)>) -> Option<Skipping> {
        match *manifest {}
    }

    pub fn session(manifest: &Shared) -> Shared {
        *manifest
    }

    pub fn as_store(session: &Shared) -> &dyn Store {
        match *session {}
    }

    pub fn check(session: &Shared) -> EngineResult<()> {
        match *session {}
    }
}

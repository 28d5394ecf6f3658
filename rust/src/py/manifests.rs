//! Manifests: where the chunks of an array lie in files of other formats.

#[cfg(unix)]
pub use unix::{Given, PyManifest, PySources, Shared, as_store, check, grid, session, shared, skipping};
#[cfg(all(unix, feature = "remote"))]
pub use unix::{PyVersions, located};

#[cfg(all(not(unix), feature = "remote"))]
pub use other::located;
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
    use crate::files::manifest::{Session, Source};
    use crate::manifest::{Chunks, Columns, Manifest, Strided};
    #[cfg(feature = "remote")]
    use crate::remote::located::{File, Located};
    use crate::run::Skipping;
    use crate::store::Store;

    pub type Given<'py> = PyRef<'py, PyManifest>;

    /// Where the chunks of an array lie, and in which files.
    #[derive(Clone)]
    pub struct Shared {
        manifest: Arc<Manifest>,
        files: Files,
    }

    #[derive(Clone)]
    enum Files {
        /// On this machine.
        Near(Arc<Vec<Source>>),
        /// In a store that is remote.
        #[cfg(feature = "remote")]
        Far(Arc<Vec<File>>),
    }

    /// The files that manifests of several arrays name.
    #[pyclass(frozen, name = "Sources", module = "omnizarr._native")]
    pub struct PySources(Arc<Vec<Source>>);

    #[pymethods]
    impl PySources {
        /// `files`: path, size in bytes, times of the last change and of that of the inode in nanoseconds, and number of the
        /// inode, or 0, of each.
        #[new]
        fn new(files: Vec<(PathBuf, u64, i128, i128, u64)>) -> Self {
            let files = files.into_iter().map(|(path, size, modified, changed, number)| Source {
                path: path.into_os_string().into_vec(),
                size,
                modified,
                changed,
                number,
            });
            Self(Arc::new(files.collect()))
        }
    }

    /// The same of files in a remote store: the versions of them that were opened.
    #[cfg(feature = "remote")]
    #[pyclass(frozen, name = "Versions", module = "omnizarr._native")]
    pub struct PyVersions(Arc<Vec<File>>);

    #[cfg(feature = "remote")]
    type Version = (String, String, u64, Option<String>, Option<String>, u64);

    #[cfg(feature = "remote")]
    #[pymethods]
    impl PyVersions {
        /// `files`: path in the store of the client, key in messages, size in bytes, `ETag`, version, and the time of the last
        /// change in microseconds, of each.
        #[new]
        fn new(files: Vec<Version>) -> Self {
            let files = files.into_iter().map(|(path, key, size, e_tag, version, modified)| File {
                path,
                key,
                size,
                e_tag,
                version,
                modified,
            });
            Self(Arc::new(files.collect()))
        }
    }

    fn files(sources: &Bound<'_, PyAny>) -> PyResult<Files> {
        #[cfg(feature = "remote")]
        if let Ok(versions) = sources.cast::<PyVersions>() {
            return Ok(Files::Far(Arc::clone(&versions.get().0)));
        }
        Ok(Files::Near(Arc::clone(&sources.cast::<PySources>()?.get().0)))
    }

    /// Where the chunks of an array lie.
    #[pyclass(frozen, name = "Manifest", module = "omnizarr._native")]
    pub struct PyManifest(Shared);

    type Numbers<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);
    type Distances = (u64, Vec<u64>, usize, u64, u64, u64, u64, u32);

    #[pymethods]
    impl PyManifest {
        /// `sources`: `Sources` or `Versions`; `columns`: offsets, lengths, files and skipped codecs; `strided`: the attributes of that form.
        // PyO3 hands over what it made.
        #[allow(clippy::needless_pass_by_value)]
        #[new]
        #[pyo3(signature = (sources, grid, *, columns=None, strided=None))]
        fn new(
            py: Python<'_>,
            sources: &Bound<'_, PyAny>,
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
            let manifest = Arc::new(Manifest { grid, chunks, skipped });
            Ok(Self(Shared { manifest, files: files(sources)? }))
        }
    }

    pub fn shared(manifest: &Given<'_>) -> Shared {
        manifest.0.clone()
    }

    /// The same of files in a remote store; None: they are on this machine.
    #[cfg(feature = "remote")]
    pub fn located(shared: &Shared) -> Option<Arc<Located>> {
        let Files::Far(files) = &shared.files else { return None };
        Some(Arc::new(Located { manifest: Arc::clone(&shared.manifest), files: Arc::clone(files) }))
    }

    pub fn grid(shared: &Shared) -> Vec<u64> {
        shared.manifest.grid.clone()
    }

    /// The codecs of chunks that skip some.
    pub fn skipping(shared: &Shared, codecs: Vec<(u32, PyRef<'_, PyCodecs>)>) -> Option<Skipping> {
        let manifest = &shared.manifest;
        manifest.skipped.as_ref()?;
        let codecs: HashMap<_, _> = codecs.into_iter().map(|(mask, codecs)| (mask, Arc::clone(&codecs.0))).collect();
        let manifest = Arc::clone(manifest);
        Some(Skipping { mask: Box::new(move |coords| manifest.mask(coords)), codecs })
    }

    pub fn session(shared: &Shared) -> Session<'_> {
        let files: &[Source] = match &shared.files {
            Files::Near(files) => files,
            #[cfg(feature = "remote")]
            Files::Far(_) => &[],
        };
        Session::new(&shared.manifest, files)
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

    #[cfg(feature = "remote")]
    pub fn located(manifest: &Shared) -> Option<std::sync::Arc<crate::remote::located::Located>> {
        match *manifest {}
    }

    pub fn as_store(session: &Shared) -> &dyn Store {
        match *session {}
    }

    pub fn check(session: &Shared) -> EngineResult<()> {
        match *session {}
    }
}

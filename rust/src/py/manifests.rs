//! Manifests: where the chunks of an array lie in files of other formats.

#[cfg(unix)]
pub use crate::files::manifest::Session;
#[cfg(unix)]
pub use lookup::{Begun, Lookup, PyLookup};
#[cfg(unix)]
pub use unix::{
    Described, Given, PyManifest, PySources, Shared, as_store, check, grid, session, shared, skipping,
    source as described,
};
#[cfg(all(unix, feature = "remote"))]
pub use unix::{PyVersions, located};

#[cfg(all(not(unix), feature = "remote"))]
pub use other::located;
#[cfg(not(unix))]
pub use other::{Begun, Given, Lookup, PyLookup, Session, Shared, as_store, check, grid, session, shared, skipping};

#[cfg(unix)]
mod unix {
    use std::collections::HashMap;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;
    use std::sync::Arc;

    use pyo3::buffer::PyBuffer;
    use pyo3::prelude::*;

    #[cfg(feature = "remote")]
    use super::super::refused;
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
        Near(Arc<Vec<Option<Source>>>),
        /// In a store that is remote.
        #[cfg(feature = "remote")]
        Far(Arc<Vec<Option<Arc<File>>>>),
    }

    /// The files that manifests of several arrays name.
    #[pyclass(frozen, name = "Sources", module = "omnizarr._native")]
    pub struct PySources(Arc<Vec<Option<Source>>>);

    #[pymethods]
    impl PySources {
        /// `files`: path, size in bytes, times of the last change and of that of the inode in nanoseconds, and number of the
        /// inode, or 0, of each.
        #[new]
        fn new(files: Vec<(PathBuf, u64, i128, i128, u64)>) -> Self {
            Self(Arc::new(files.into_iter().map(|file| Some(source(file, true))).collect()))
        }
    }

    /// A file as Python describes it.
    pub type Described = (PathBuf, u64, i128, i128, u64);

    pub fn source((path, size, modified, changed, number): Described, is_fixed: bool) -> Source {
        Source { path: path.into_os_string().into_vec(), size, modified, changed, number, is_fixed }
    }

    /// The same of files in a remote store: the versions of them that were opened.
    #[cfg(feature = "remote")]
    #[pyclass(frozen, name = "Versions", module = "omnizarr._native")]
    pub struct PyVersions(Arc<Vec<Option<Arc<File>>>>);

    #[cfg(feature = "remote")]
    type Version = (String, String, u64, Option<String>, Option<String>, u64);

    #[cfg(feature = "remote")]
    #[pymethods]
    impl PyVersions {
        /// `files`: path in the store of the client, key in messages, size in bytes, `ETag`, version, and the time of the last
        /// change in microseconds, of each.
        #[new]
        fn new(files: Vec<Version>) -> PyResult<Self> {
            let files = files.into_iter().map(|(path, key, size, e_tag, version, modified)| {
                let file = File::new(path, key, Some((size, e_tag, version, modified)));
                file.map(|file| Some(Arc::new(file))).map_err(|error| refused(&error))
            });
            Ok(Self(Arc::new(files.collect::<PyResult<_>>()?)))
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
        let files: &[Option<Source>] = match &shared.files {
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

/// Where chunks lie, asked in Python when they are first needed.
#[cfg(unix)]
mod lookup {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use pyo3::buffer::PyBuffer;
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyDict};

    use super::super::trees::{Near, PyIndex};
    use super::super::{Remote, calls, names, unknown};
    #[cfg(feature = "remote")]
    use super::super::{far, refused};
    use super::unix::{Described, source};
    use crate::files::manifest::{Session, Source};
    use crate::manifest::{Chunks, Known, Manifest};
    use crate::plan::Plan;
    #[cfg(feature = "remote")]
    use crate::remote::located::{File, Located, Version};
    use crate::run::Keys;
    use crate::threads::locked;

    /// Of plans with more chunks, the store is asked for each.
    const MOST: usize = 1 << 21;

    /// What finds chunks, in Python.
    ///
    /// `find(keys, numbers)` returns None if the store is to be asked for the chunks of this array, now and later. Otherwise
    /// it returns columns of offsets, lengths and numbers of files, values by the number of their chunk, the first number of
    /// the files that it names for the first time, files of this machine, whether they must stay the same, files elsewhere,
    /// and how to reach these.
    #[pyclass(frozen, name = "Lookup", module = "omnizarr._native")]
    pub struct PyLookup(pub Arc<Lookup>);

    /// What was found.
    pub struct Lookup {
        finder: Py<PyAny>,
        /// What finds chunks in one file without Python.
        index: Option<Arc<Near>>,
        keys: Keys,
        grid: Vec<u64>,
        is_declined: AtomicBool,
        // Locked only with the interpreter, and while nothing of Python runs: so a process can fork at any time.
        state: Mutex<State>,
    }

    #[derive(Default)]
    struct State {
        known: Arc<Known>,
        near: Arc<Vec<Option<Source>>>,
        #[cfg(feature = "remote")]
        files: Arc<Vec<Option<Arc<File>>>>,
        #[cfg(feature = "remote")]
        far: Option<Arc<far::Far>>,
    }

    /// Where the chunks of a plan are.
    pub struct Begun {
        manifest: Arc<Manifest>,
        near: Arc<Vec<Option<Source>>>,
        /// If the files are elsewhere.
        #[cfg(feature = "remote")]
        pub far: Option<far::Far>,
        #[cfg(feature = "remote")]
        located: Option<Arc<Located>>,
    }

    impl Begun {
        pub fn session(&self) -> Session<'_> {
            Session::new(&self.manifest, &self.near)
        }
    }

    #[pymethods]
    impl PyLookup {
        /// `names`: how keys of chunks are written, for `finder`; `grid`: number of chunks along each dimension; `index`: what
        /// is asked first, and `finder` only if it refuses.
        #[new]
        #[pyo3(signature = (finder, names, grid, index=None))]
        fn new(
            finder: Py<PyAny>,
            names: (String, String, String, String),
            grid: Vec<u64>,
            index: Option<PyRef<'_, PyIndex>>,
        ) -> Self {
            let (head, separator, tail, scalar) = names;
            let keys = Keys { head, separator, tail, scalar, grid: None };
            let (is_declined, state) = (AtomicBool::new(false), Mutex::default());
            let index = index.map(|index| Arc::clone(&index.0));
            Self(Arc::new(Lookup { finder, index, keys, grid, is_declined, state }))
        }
    }

    type Columns<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);
    #[cfg(feature = "remote")]
    type Elsewhere = (String, String, Option<Version>);
    #[cfg(not(feature = "remote"))]
    type Elsewhere = (String, String, Option<(u64, Option<String>, Option<String>, u64)>);
    type Found<'py> = (
        Columns<'py>,
        Bound<'py, PyDict>,
        usize,
        Vec<(Described, bool)>,
        Vec<Elsewhere>,
        Option<(Remote<'py>, Py<PyAny>)>,
    );

    impl Lookup {
        pub fn grid(&self) -> Vec<u64> {
            self.grid.clone()
        }

        /// Return where the chunks of a plan are; None if the store is to be asked for each.
        pub fn begin(&self, py: Python<'_>, plan: &Plan) -> PyResult<Option<Begun>> {
            if self.is_declined.load(Ordering::Relaxed) || plan.len() > MOST {
                return Ok(None);
            }
            let grid = Manifest { grid: self.grid(), chunks: Chunks::Known(Arc::default()), skipped: None };
            let mut known = {
                let mut state = locked(&self.state);
                if state.known.is_full() {
                    state.known = Arc::default();
                }
                Arc::clone(&state.known)
            };
            let mut numbers = Vec::new();
            for piece in 0..plan.len() {
                let Some(number) = grid.number(&plan.piece(piece).coords) else { return Ok(None) };
                if !known.holds(number) {
                    numbers.push(number);
                }
            }
            if !numbers.is_empty() {
                drop(known); // so that what is added need not be copied
                if !self.find_here(py, &numbers) && !self.find(py, &numbers, &grid)? {
                    self.is_declined.store(true, Ordering::Relaxed);
                    return Ok(None);
                }
                known = Arc::clone(&locked(&self.state).known);
            }
            let manifest = Arc::new(Manifest { grid: grid.grid, chunks: Chunks::Known(known), skipped: None });
            let state = locked(&self.state);
            #[cfg(feature = "remote")]
            if let Some(far) = state.far.clone() {
                let located = Arc::new(Located { manifest: Arc::clone(&manifest), files: Arc::clone(&state.files) });
                drop(state);
                let far = far.with_files(py, Arc::clone(&located));
                return Ok(Some(Begun { manifest, near: Arc::default(), far: Some(far), located: Some(located) }));
            }
            Ok(Some(Begun {
                manifest,
                near: Arc::clone(&state.near),
                #[cfg(feature = "remote")]
                far: None,
                #[cfg(feature = "remote")]
                located: None,
            }))
        }

        /// Look for chunks in the index, and keep where they are; return whether that was possible.
        fn find_here(&self, py: Python<'_>, numbers: &[u64]) -> bool {
            let Some(index) = &self.index else { return false };
            let Ok((offsets, lengths)) = index.seek(py, numbers) else { return false };
            let mut state = locked(&self.state);
            if state.near.is_empty() {
                add(&mut state.near, 0, vec![Some(index.source.clone())]);
            }
            let known = Arc::make_mut(&mut state.known);
            for ((&number, offset), length) in numbers.iter().zip(offsets).zip(lengths) {
                known.put(number, offset, length, 0);
            }
            true
        }

        /// Ask for chunks, and keep where they are; return false if the store is to be asked for them.
        fn find(&self, py: Python<'_>, numbers: &[u64], grid: &Manifest) -> PyResult<bool> {
            let keys: Vec<_> = numbers.iter().map(|&number| self.keys.key(&grid.coords(number))).collect();
            let raw: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            let answer = calls::method(self.finder.bind(py), &names(py).find, (keys, PyBytes::new(py, &raw)))?;
            if answer.is_none() {
                return Ok(false);
            }
            let ((offsets, lengths, files), values, first, near, elsewhere, remote): Found<'_> = answer.extract()?;
            let offsets = PyBuffer::<u64>::get(&offsets)?.to_vec(py)?;
            let lengths = PyBuffer::<u64>::get(&lengths)?.to_vec(py)?;
            let files = PyBuffer::<u32>::get(&files)?.to_vec(py)?;
            if [offsets.len(), lengths.len(), files.len()] != [numbers.len(); 3] {
                return Err(unknown("columns of another length"));
            }
            let values = values
                .iter()
                .map(|(number, value)| Ok((number.extract()?, value.extract()?)))
                .collect::<PyResult<Vec<(u64, Vec<u8>)>>>()?;
            let near: Vec<_> =
                near.into_iter().map(|(described, is_fixed)| Some(source(described, is_fixed))).collect();
            #[cfg(feature = "remote")]
            let elsewhere = elsewhere
                .into_iter()
                .map(|(path, key, version)| File::new(path, key, version).map(|file| Some(Arc::new(file))))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| refused(&error))?;
            #[cfg(feature = "remote")]
            let far = remote.map(|(remote, store)| far::Far::new(remote, None, store).map(Arc::new)).transpose()?;
            #[cfg(not(feature = "remote"))]
            if remote.is_some() || !elsewhere.is_empty() {
                return Ok(false);
            }
            let mut state = locked(&self.state);
            add(&mut state.near, first, near);
            #[cfg(feature = "remote")]
            {
                add(&mut state.files, first, elsewhere);
                state.far = state.far.take().or(far);
            }
            let known = Arc::make_mut(&mut state.known);
            for (((&number, offset), length), file) in numbers.iter().zip(offsets).zip(lengths).zip(files) {
                known.put(number, offset, length, file);
            }
            for (number, value) in &values {
                known.put_inline(*number, value);
            }
            Ok(true)
        }

        /// Tell Python which versions of files the chunks are from that it is asked for next.
        #[cfg(feature = "remote")]
        pub fn tell(&self, py: Python<'_>, begun: &Begun, plan: &Plan, pieces: &[usize]) -> PyResult<()> {
            let Some(located) = &begun.located else { return Ok(()) };
            let mut versions: Vec<_> =
                pieces.iter().filter_map(|&piece| located.version(&plan.piece(piece).coords)).collect();
            versions.sort_unstable();
            versions.dedup();
            calls::method(self.finder.bind(py), &names(py).opened, (versions,))?;
            Ok(())
        }
    }

    /// Put files at their numbers. Another thread may have put others there before or behind them.
    fn add<T: Clone>(files: &mut Arc<Vec<Option<T>>>, first: usize, new: Vec<Option<T>>) {
        if new.is_empty() {
            return;
        }
        let files = Arc::make_mut(files);
        let stop = first.saturating_add(new.len());
        if files.len() < stop {
            files.resize(stop, None);
        }
        for (place, file) in files[first..stop].iter_mut().zip(new) {
            *place = file;
        }
    }
}

/// Never given: these systems have no such files.
#[cfg(not(unix))]
mod other {
    use std::convert::Infallible;
    use std::sync::Arc;

    use pyo3::prelude::*;

    use super::super::PyCodecs;
    use crate::error::Result as EngineResult;
    use crate::plan::Plan;
    use crate::run::Skipping;
    use crate::store::Store;

    pub type Given<'py> = Bound<'py, PyAny>;
    pub type Shared = Infallible;

    /// Never made here.
    #[pyclass(frozen, name = "Lookup", module = "omnizarr._native")]
    pub struct PyLookup(pub Arc<Lookup>);
    pub struct Lookup(Infallible);

    pub enum Session<'a> {
        Never(Infallible, std::marker::PhantomData<&'a ()>),
    }

    pub struct Begun {
        #[cfg(feature = "remote")]
        pub far: Option<super::super::far::Far>,
    }

    impl Begun {
        pub fn session(&self) -> Session<'_> {
            unreachable!("nothing is looked up here")
        }
    }

    impl Lookup {
        pub fn grid(&self) -> Vec<u64> {
            match self.0 {}
        }

        pub fn begin(&self, _: Python<'_>, _: &Plan) -> PyResult<Option<Begun>> {
            match self.0 {}
        }

        #[cfg(feature = "remote")]
        pub fn tell(&self, _: Python<'_>, _: &Begun, _: &Plan, _: &[usize]) -> PyResult<()> {
            match self.0 {}
        }
    }

    pub fn shared(_: &Given<'_>) -> Shared {
        unreachable!("no manifest is given here")
    }

    pub fn grid(manifest: &Shared) -> Vec<u64> {
        match *manifest {}
    }

    pub fn skipping(manifest: &Shared, _: Vec<(u32, PyRef<'_, PyCodecs>)>) -> Option<Skipping> {
        match *manifest {}
    }

    pub fn session(manifest: &Shared) -> Session<'_> {
        match *manifest {}
    }

    #[cfg(feature = "remote")]
    pub fn located(manifest: &Shared) -> Option<std::sync::Arc<crate::remote::located::Located>> {
        match *manifest {}
    }

    pub fn as_store<'a>(session: &'a Session<'_>) -> &'a dyn Store {
        match *session {
            Session::Never(never, _) => match never {},
        }
    }

    pub fn check(session: &Session<'_>) -> EngineResult<()> {
        match *session {
            Session::Never(never, _) => match never {},
        }
    }
}

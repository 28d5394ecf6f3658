//! The module `omnizarr._native`: the only place that knows Python.
//!
//! `omnizarr.engine.native` calls it. Errors here are not for users: a piece that is refused or fails is returned by
//! its number, and the engine in Python reads or writes that piece, or raises the error.
#![allow(unsafe_code)]

use std::any::Any;
use std::collections::HashMap;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PySlice, PyString, PyTuple};

use crate::cache::{Cache, Chunks, SMALLEST_SHARE, Shelf};
use crate::chain::shard::Shard;
use crate::chain::{Chain, Policy, Serializer};
use crate::codecs::bind::{self, Argument};
use crate::convert::{Conversion, Packing, Step};
use crate::error::{Error, Kind, Result as EngineResult};
use crate::numbers::Type;
use crate::plan::{Axis, Coords, Cut, Even, List, Loose, Part, Places, Plan, Points, Run};
use crate::run::{Array, Codecs, Failure, Job, Keys, Uneven, Verb};
use crate::scatter::{Layout, Memory};
use crate::store::{Change, Hold, Stamp, Store, Value};

mod buffers;
#[cfg(feature = "remote")]
mod far;
mod json;
mod manifests;
#[cfg(feature = "remote")]
mod objects;
mod samples;
#[cfg(unix)]
mod small;
mod trees;

/// Bytes of indexes of shards that are kept for each array.
const INDEX_BYTES: usize = 16 * 1024 * 1024;
/// Values in memory are asked for in batches, as that takes the interpreter.
const AT_ONCE: usize = 64;
/// The number of objects, and their bytes, that may wait for the interpreter to be released.
const MOST_DROPPED: usize = 256;
const MOST_DROPPED_BYTES: usize = 1024 * 1024;
/// Values are fetched together up to this number of bytes.
const BYTES_AT_ONCE: usize = 1024 * 1024;

fn refused(error: &Error) -> PyErr {
    PyNotImplementedError::new_err(error.message.clone())
}

fn unknown(what: &str) -> PyErr {
    PyNotImplementedError::new_err(what.to_owned())
}

// -- names ----------------------------------------------------------------------------

/// Names that are looked up in Python.
///
/// All are made as the module is imported. Were each made at its first use, with `intern!`, a thread would release the
/// interpreter meanwhile, and a child forked by another thread at that moment would wait for ever.
struct Names {
    #[cfg(feature = "remote")]
    answered: Py<PyString>,
    axes: Py<PyString>,
    enter: Py<PyString>,
    exit: Py<PyString>,
    #[cfg(unix)]
    find: Py<PyString>,
    #[cfg(all(unix, feature = "remote"))]
    opened: Py<PyString>,
    bounds: Py<PyString>,
    coords: Py<PyString>,
    delete: Py<PyString>,
    get: Py<PyString>,
    get_many: Py<PyString>,
    grid: Py<PyString>,
    indices: Py<PyString>,
    lock: Py<PyString>,
    order: Py<PyString>,
    parts: Py<PyString>,
    place: Py<PyString>,
    places: Py<PyString>,
    rest: Py<PyString>,
    runs: Py<PyString>,
    set: Py<PyString>,
    start: Py<PyString>,
    step: Py<PyString>,
    stop: Py<PyString>,
}

fn names(py: Python<'_>) -> &'static Names {
    static NAMES: PyOnceLock<Names> = PyOnceLock::new();
    NAMES.get_or_init(py, || Names {
        #[cfg(feature = "remote")]
        answered: PyString::intern(py, "answered").unbind(),
        axes: PyString::intern(py, "axes").unbind(),
        enter: PyString::intern(py, "__enter__").unbind(),
        exit: PyString::intern(py, "__exit__").unbind(),
        #[cfg(unix)]
        find: PyString::intern(py, "find").unbind(),
        #[cfg(all(unix, feature = "remote"))]
        opened: PyString::intern(py, "opened").unbind(),
        bounds: PyString::intern(py, "bounds").unbind(),
        coords: PyString::intern(py, "coords").unbind(),
        delete: PyString::intern(py, "delete").unbind(),
        get: PyString::intern(py, "get").unbind(),
        get_many: PyString::intern(py, "get_many").unbind(),
        grid: PyString::intern(py, "grid").unbind(),
        indices: PyString::intern(py, "indices").unbind(),
        lock: PyString::intern(py, "lock").unbind(),
        order: PyString::intern(py, "order").unbind(),
        parts: PyString::intern(py, "parts").unbind(),
        place: PyString::intern(py, "place").unbind(),
        places: PyString::intern(py, "places").unbind(),
        rest: PyString::intern(py, "rest").unbind(),
        runs: PyString::intern(py, "runs").unbind(),
        set: PyString::intern(py, "set").unbind(),
        start: PyString::intern(py, "start").unbind(),
        step: PyString::intern(py, "step").unbind(),
        stop: PyString::intern(py, "stop").unbind(),
    })
}

// -- into Python ----------------------------------------------------------------------

/// Calls of Python that may run its code, made such that a thread that never returns from them does no harm.
///
/// When the interpreter ends, a thread that is not waited for and wants to go on there is ended by the system (before
/// Python 3.14), which unwinds its stack; through ours it cannot, and the whole process would be aborted. So such a
/// thread stays where it is until the process is gone. `PyO3` does the same where a thread attaches, but not here.
///
/// A new object runs code of Python, too, where it begins a collection of garbage (before Python 3.12).
mod calls {
    use std::ffi::c_int;
    use std::hint::black_box;
    use std::mem::ManuallyDrop;
    use std::ops::Deref;

    use pyo3::exceptions::{PyAttributeError, PySystemError};
    use pyo3::ffi;
    use pyo3::prelude::*;
    use pyo3::types::{PyString, PyTuple};

    // PyO3 declares that they never unwind, and the optimizer, which sees one function where there are two declarations,
    // would believe that and leave `Stay` out. So they are called by pointers, and `black_box` hides which these are.
    #[cfg(unix)]
    #[allow(clashing_extern_declarations)]
    mod raw {
        use std::ffi::c_int;

        use pyo3::ffi::PyObject;

        pub type Plain = unsafe extern "C-unwind" fn() -> c_int;
        pub type Release = unsafe extern "C-unwind" fn(*mut PyObject);
        pub type One = unsafe extern "C-unwind" fn(*mut PyObject) -> *mut PyObject;
        pub type Two = unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;

        unsafe extern "C-unwind" {
            pub fn PyErr_CheckSignals() -> c_int;
            pub fn PyObject_CallObject(callable: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject;
            pub fn PyObject_GetAttr(object: *mut PyObject, name: *mut PyObject) -> *mut PyObject;
            pub fn PyObject_GetIter(object: *mut PyObject) -> *mut PyObject;
            pub fn PyIter_Next(iterator: *mut PyObject) -> *mut PyObject;
            pub fn Py_DecRef(object: *mut PyObject);
        }
    }
    #[cfg(not(unix))]
    mod raw {
        use std::ffi::c_int;

        pub use pyo3::ffi::*;

        pub type Plain = unsafe extern "C" fn() -> c_int;
        pub type Release = unsafe extern "C" fn(*mut PyObject);
        pub type One = unsafe extern "C" fn(*mut PyObject) -> *mut PyObject;
        pub type Two = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
    }

    /// Keeps the thread that drops it.
    struct Stay;

    impl Drop for Stay {
        fn drop(&mut self) {
            stay_for_ever();
        }
    }

    fn stay_for_ever() -> ! {
        loop {
            std::thread::park();
        }
    }

    /// Return the result of `work`, called with the interpreter. If the interpreter has ended, the thread waits
    /// forever.
    pub fn attached<T>(work: impl for<'py> FnOnce(Python<'py>) -> T) -> T {
        Python::try_attach(work).unwrap_or_else(|| stay_for_ever())
    }

    /// Return what a function of Python returns, written such that only it is between Python and `Stay`.
    macro_rules! stay {
        ($call:expr) => {{
            let stay = Stay;
            // SAFETY: the objects are alive, and the thread is attached.
            let result = unsafe { $call };
            std::mem::forget(stay);
            result
        }};
    }

    /// Keeps garbage from being collected where Rust makes objects, so that no code of Python runs there. It must not
    /// outlive that. From Python 3.12 on, garbage is collected only where Python runs its own code.
    struct Uncollected(c_int);

    impl Uncollected {
        fn begin(_: Python<'_>) -> Self {
            // SAFETY: the thread is attached, and keeps the only interpreter lock (there is none without one before 3.13).
            Self(unsafe { if ffi::Py_Version < 0x030C_0000 { ffi::PyGC_Disable() } else { 0 } })
        }
    }

    impl Drop for Uncollected {
        fn drop(&mut self) {
            if self.0 != 0 {
                // SAFETY: as above.
                unsafe { ffi::PyGC_Enable() };
            }
        }
    }

    /// Make the arguments of a call.
    pub fn arguments<'py>(
        py: Python<'py>,
        values: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _uncollected = Uncollected::begin(py);
        values.into_pyobject(py).map_err(Into::into)
    }

    /// Take the exception that is set, which is made here if Python has not yet.
    fn raised(py: Python<'_>) -> Option<PyErr> {
        let _uncollected = Uncollected::begin(py);
        PyErr::take(py)
    }

    /// Run the handlers of signals that have come.
    pub fn check_signals(py: Python<'_>) -> PyResult<()> {
        match stay!(black_box(raw::PyErr_CheckSignals as raw::Plain)()) {
            0 => Ok(()),
            _ => raised(py).map_or(Ok(()), Err),
        }
    }

    /// An object that Python handed over. Letting go of it is a call as well: a generator that is left early, or a frame
    /// of a traceback, runs code of Python when it dies.
    pub struct Object<'py>(ManuallyDrop<Bound<'py, PyAny>>);

    impl<'py> Deref for Object<'py> {
        type Target = Bound<'py, PyAny>;

        fn deref(&self) -> &Self::Target {
            &self.0
        }
    }

    impl Drop for Object<'_> {
        fn drop(&mut self) {
            let object = self.0.as_ptr();
            stay!(black_box(raw::Py_DecRef as raw::Release)(object));
        }
    }

    fn owned(py: Python<'_>, result: *mut ffi::PyObject) -> PyResult<Object<'_>> {
        // SAFETY: Python hands the reference over, or has set an exception.
        match unsafe { Bound::from_owned_ptr_or_opt(py, result) } {
            Some(object) => Ok(Object(ManuallyDrop::new(object))),
            None => Err(raised(py).unwrap_or_else(|| PySystemError::new_err("a call failed without an exception"))),
        }
    }

    /// Release an exception, and the frames that it holds.
    pub fn forget(error: PyErr) {
        attached(|py| drop(Object(ManuallyDrop::new(error.into_value(py).into_bound(py).into_any()))));
    }

    /// Call an object.
    pub fn call<'py>(callable: &Bound<'py, PyAny>, arguments: &Bound<'py, PyTuple>) -> PyResult<Object<'py>> {
        let function = callable.as_ptr();
        owned(callable.py(), stay!(black_box(raw::PyObject_CallObject as raw::Two)(function, arguments.as_ptr())))
    }

    /// Call a method.
    pub fn method<'py>(
        object: &Bound<'py, PyAny>,
        name: &Py<PyString>,
        values: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
    ) -> PyResult<Object<'py>> {
        let arguments = arguments(object.py(), values)?;
        call(&*attribute(object, name)?, &arguments)
    }

    /// Look an attribute up, which may be a property.
    pub fn attribute<'py>(object: &Bound<'py, PyAny>, name: &Py<PyString>) -> PyResult<Object<'py>> {
        owned(object.py(), stay!(black_box(raw::PyObject_GetAttr as raw::Two)(object.as_ptr(), name.as_ptr())))
    }

    /// Look up an attribute that need not be there.
    pub fn attribute_if_there<'py>(object: &Bound<'py, PyAny>, name: &Py<PyString>) -> PyResult<Option<Object<'py>>> {
        match attribute(object, name) {
            Err(error) if error.is_instance_of::<PyAttributeError>(object.py()) => Ok(None),
            found => found.map(Some),
        }
    }

    /// What Python iterates over.
    pub struct Items<'py>(Object<'py>);

    /// Iterate over an object.
    pub fn items<'py>(object: &Bound<'py, PyAny>) -> PyResult<Items<'py>> {
        owned(object.py(), stay!(black_box(raw::PyObject_GetIter as raw::One)(object.as_ptr()))).map(Items)
    }

    impl<'py> Iterator for Items<'py> {
        type Item = PyResult<Object<'py>>;

        fn next(&mut self) -> Option<Self::Item> {
            let py = self.0.py();
            let next = stay!(black_box(raw::PyIter_Next as raw::One)(self.0.as_ptr()));
            if next.is_null() {
                return raised(py).map(Err);
            }
            Some(owned(py, next))
        }
    }
}

// -- codecs ---------------------------------------------------------------------------

fn argument(value: &Bound<'_, PyAny>) -> PyResult<Argument> {
    if value.is_instance_of::<PyBool>() {
        value.extract().map(Argument::Bool)
    } else if value.is_instance_of::<PyInt>() {
        value.extract().map(Argument::Int)
    } else if value.is_instance_of::<PyFloat>() {
        value.extract().map(Argument::Float)
    } else if value.is_instance_of::<PyString>() {
        value.extract().map(Argument::Text)
    } else {
        arguments(value.cast::<PyTuple>()?, 0).map(Argument::List)
    }
}

fn arguments(values: &Bound<'_, PyTuple>, skip: usize) -> PyResult<Vec<Argument>> {
    values.iter().skip(skip).map(|value| argument(&value)).collect()
}

/// A codec as `omnizarr.codecs.chain.describe` describes it: its name, then its arguments.
fn described<'py>(description: &Bound<'py, PyAny>) -> PyResult<(String, Bound<'py, PyTuple>)> {
    let description = description.cast::<PyTuple>()?;
    Ok((description.get_item(0)?.extract()?, description.clone()))
}

/// What the elements of a chunk are, whatever its shape.
#[derive(Clone)]
struct Elements {
    item: usize,
    fill: Box<[u8]>,
    policy: Policy,
}

/// Bind the codecs of a chunk whose axes `order` has permuted already.
fn chain_of(
    description: &Bound<'_, PyAny>,
    shape: &[usize],
    mut order: Vec<usize>,
    elements: &Elements,
) -> PyResult<Chain> {
    let (filters, serializer, compressors): (Bound<'_, PyTuple>, Bound<'_, PyAny>, Bound<'_, PyTuple>) =
        description.extract()?;
    let mut bound = Vec::new();
    for filter in filters.iter() {
        let (name, values) = described(&filter)?;
        if name == "transpose" {
            let permutation: Vec<usize> = values.get_item(1)?.extract()?;
            if !bound.is_empty() || permutation.len() != order.len() {
                return Err(unknown("a transposition behind a filter"));
            }
            order = permutation
                .iter()
                .map(|&axis| order.get(axis).copied().ok_or_else(|| unknown("an axis that is not there")))
                .collect::<PyResult<_>>()?;
        } else {
            bound.push(bind::filter(&name, &arguments(&values, 1)?).map_err(|error| refused(&error))?);
        }
    }
    let layout = Layout::new(shape, &order, elements.item).map_err(|error| refused(&error))?;
    let (name, values) = described(&serializer)?;
    let serializer = match name.as_str() {
        "bytes" => Serializer::Elements(bind::elements(&arguments(&values, 1)?).map_err(|error| refused(&error))?),
        "sharding" => Serializer::Shard(Box::new(shard_of(&values, shape, &order, elements)?)),
        _ => return Err(unknown("an unknown serializer")),
    };
    let compressors = compressors
        .iter()
        .map(|codec| {
            let (name, values) = described(&codec)?;
            bind::codec(&name, &arguments(&values, 1)?).map_err(|error| refused(&error))
        })
        .collect::<PyResult<_>>()?;
    Chain::new(layout, elements.fill.clone(), elements.policy, bound, serializer, compressors)
        .map_err(|error| refused(&error))
}

fn shard_of(values: &Bound<'_, PyTuple>, shape: &[usize], order: &[usize], elements: &Elements) -> PyResult<Shard> {
    let (_, chunk, inner, index, index_at_end): (String, Vec<usize>, Bound<'_, PyAny>, Bound<'_, PyAny>, bool) =
        values.get_slice(0, 5).extract()?;
    let sequence: Vec<usize> = if values.len() > 5 { values.get_item(5)?.extract()? } else { Vec::new() };
    // The shape of a chunk refers to the stored shard; everything here refers to the axes of the array.
    let mut lengths = vec![1; shape.len()];
    let mut grid = vec![1; shape.len()];
    for (&axis, &length) in order.iter().zip(&chunk) {
        lengths[axis] = length;
        grid[axis] = shape[axis].checked_div(length).ok_or_else(|| unknown("a chunk of length 0"))?;
    }
    let inner = chain_of(&inner, &lengths, order.to_vec(), elements)?;
    let mut table: Vec<usize> = order.iter().map(|&axis| grid[axis]).collect();
    table.push(2);
    let numbers = Elements { item: 8, fill: Box::new([u8::MAX; 8]), policy: Policy::default() };
    let (filters, _, _): (Bound<'_, PyTuple>, Bound<'_, PyAny>, Bound<'_, PyAny>) = index.extract()?;
    if !filters.is_empty() {
        return Err(unknown("an index that is filtered"));
    }
    let index = chain_of(&index, &table, (0..table.len()).collect(), &numbers)?;
    Shard::new(grid, order, inner, index, index_at_end, sequence).map_err(|error| refused(&error))
}

/// The codecs of the chunks of all arrays with the same chunk metadata.
#[pyclass(frozen, name = "Codecs", module = "omnizarr._native")]
struct PyCodecs(Arc<Codecs>);

#[pymethods]
impl PyCodecs {
    // PyO3 hands over what it made.
    #[allow(clippy::needless_pass_by_value)]
    /// Bind the codecs of `description` for chunks of each of the `shapes`, the first of which is the largest.
    #[new]
    fn new(
        item: usize,
        fill: &[u8],
        write_empty: bool,
        missing_is_error: bool,
        shapes: Vec<(Vec<usize>, Bound<'_, PyAny>)>,
        lengths: Option<Vec<Vec<(u64, usize)>>>,
    ) -> PyResult<Self> {
        let elements = Elements { item, fill: fill.into(), policy: Policy { write_empty, missing_is_error } };
        let chain = |(shape, description): &(Vec<usize>, Bound<'_, PyAny>)| {
            chain_of(description, shape, (0..shape.len()).collect(), &elements)
        };
        let largest = chain(shapes.first().ok_or_else(|| unknown("no shape"))?)?;
        let uneven = match lengths {
            None => None,
            Some(lengths) => {
                let chains = shapes
                    .iter()
                    .map(|shape| Ok((shape.0.clone(), chain(shape)?)))
                    .collect::<PyResult<HashMap<_, _>>>()?;
                Some(Uneven { lengths, chains })
            }
        };
        Ok(Self(Arc::new(Codecs { chain: largest, uneven })))
    }
}

// -- plans ----------------------------------------------------------------------------

fn list(numbers: &Bound<'_, PyAny>) -> PyResult<List> {
    // NumPy's int64 has several spellings of its format.
    let buffer = PyBuffer::<i64>::get(numbers)?;
    Ok(List::new(buffer.to_vec(numbers.py())?))
}

fn places(selector: &Bound<'_, PyAny>) -> PyResult<Places> {
    let py = selector.py();
    if !selector.is_instance_of::<PySlice>() {
        return list(selector).map(Places::List);
    }
    let start: i64 = calls::attribute(selector, &names(py).start)?.extract()?;
    let step: i64 = calls::attribute(selector, &names(py).step)?.extract()?;
    // Only backwards: to the very first element.
    let end: i64 = calls::attribute(selector, &names(py).stop)?.extract::<Option<i64>>()?.unwrap_or(-1);
    let (distance, stride) = if step > 0 { (end - start, step) } else { (start - end, -step) };
    if stride == 0 {
        return Err(unknown("a slice of step 0"));
    }
    let len = usize::try_from((distance.max(0) + stride - 1) / stride).unwrap_or(0);
    Ok(Places::Range { start, step, len })
}

fn run(columns: &Bound<'_, PyAny>) -> PyResult<Run> {
    let (chunks, first, size, visible, start, step, points, out, flip) = columns.extract()?;
    let run = Run { chunks, first, size, visible, start, step, points, out, flip };
    if run.is_sound() { Ok(run) } else { Err(unknown("a run that cannot be")) }
}

/// One dimension of a plan: a `Run`, a `Chain` of them, or `Fixed` columns.
fn part(part: &Bound<'_, PyAny>) -> PyResult<Part> {
    let py = part.py();
    let Ok(columns) = part.cast::<PyTuple>() else {
        let runs = calls::attribute(part, &names(py).runs)?;
        return Ok(Part::of(calls::items(&runs)?.map(|item| run(&*item?)).collect::<PyResult<_>>()?));
    };
    if columns.len() == 9 {
        return Ok(Part::of(vec![run(part)?]));
    }
    let (numbers, inner, outer, wholes) =
        (columns.get_item(1)?, columns.get_item(2)?, columns.get_item(3)?, columns.get_item(4)?);
    let mut cuts = Vec::with_capacity(columns.get_item(0)?.extract()?);
    let rest = calls::items(&inner)?.zip(calls::items(&outer)?).zip(calls::items(&wholes)?);
    for (number, ((inner, outer), whole)) in calls::items(&numbers)?.zip(rest) {
        cuts.push(Cut {
            number: number?.extract()?,
            axis: Axis { inner: places(&*inner?)?, outer: places(&*outer?)? },
            whole: whole?.extract()?,
        });
    }
    Ok(Part::Fixed(cuts))
}

fn parts_of(parts: &Bound<'_, PyAny>) -> PyResult<Vec<Part>> {
    calls::items(parts)?.map(|item| part(&*item?)).collect()
}

/// A plan of one piece that is given unchanged: its axes are parts of one chunk each.
fn only(piece: &Bound<'_, PyAny>) -> PyResult<Vec<Part>> {
    let (coords, inner, outer, whole): (Bound<'_, PyTuple>, Bound<'_, PyTuple>, Bound<'_, PyTuple>, bool) =
        piece.extract()?;
    coords
        .iter()
        .zip(inner.iter().zip(outer.iter()))
        .map(|(number, (inner, outer))| {
            let axis = Axis { inner: places(&inner)?, outer: places(&outer)? };
            Ok(Part::Fixed(vec![Cut { number: number.extract()?, axis, whole }]))
        })
        .collect()
}

/// The parts of the dimensions along which there are no points.
fn rest_of(points: &Bound<'_, PyAny>) -> PyResult<Vec<Part>> {
    let py = points.py();
    let rest = calls::attribute(points, &names(py).rest)?;
    if rest.is_none() { Ok(Vec::new()) } else { parts_of(&*calls::attribute(&rest, &names(py).parts)?) }
}

/// The numbers in a buffer, which other threads may change; None if they are not side by side.
fn shared(buffer: &PyBuffer<i64>) -> Option<&[AtomicI64]> {
    if buffer.item_count() == 0 {
        return Some(&[]);
    }
    let start = buffer.buf_ptr().cast_const().cast::<AtomicI64>();
    // SAFETY: the numbers are there as long as the buffer is, side by side and aligned, and are only read.
    (buffer.is_c_contiguous() && start.is_aligned())
        .then(|| unsafe { std::slice::from_raw_parts(start, buffer.item_count()) })
}

/// Points that are not grouped by chunk.
fn grouped(points: &Bound<'_, PyAny>, indices: &Bound<'_, PyAny>) -> PyResult<Points> {
    let py = points.py();
    let columns: Vec<PyBuffer<i64>> =
        calls::items(indices)?.map(|item| PyBuffer::get(&*item?)).collect::<PyResult<_>>()?;
    let grid: Vec<(u64, u64)> = calls::attribute(points, &names(py).grid)?.extract()?;
    let grid = grid
        .into_iter()
        .map(|(length, count)| Even::new(length, count))
        .collect::<EngineResult<_>>()
        .map_err(|error| refused(&error))?;
    let dims = calls::attribute(points, &names(py).axes)?.extract::<Vec<usize>>()?.into();
    let place = calls::attribute(points, &names(py).place)?.extract()?;
    let parts = rest_of(points)?;
    let held: Option<Vec<_>> = columns.iter().map(shared).collect();
    let points = if let Some(columns) = held {
        Points::group(&Loose { dims, columns, grid }, place, parts)
    } else {
        let copies: Vec<Vec<i64>> = columns.iter().map(|column| column.to_vec(py)).collect::<PyResult<_>>()?;
        let columns = copies.iter().map(Vec::as_slice).collect();
        Points::group(&Loose { dims, columns, grid }, place, parts)
    };
    let points = points.map_err(|error| refused(&error))?;
    if points.is_sound() { Ok(points) } else { Err(unknown("points that cannot be")) }
}

/// The pieces of a plan of `omnizarr.indexing`.
fn plan(pieces: &Bound<'_, PyAny>) -> PyResult<Option<Plan>> {
    let py = pieces.py();
    if let Ok(pieces) = pieces.cast::<PyTuple>() {
        return match pieces.len() {
            0 => Ok(None),
            1 => Ok(Some(Plan::Product(only(&pieces.get_item(0)?)?))),
            _ => Err(unknown("a tuple of pieces")),
        };
    }
    if let Some(parts) = calls::attribute_if_there(pieces, &names(py).parts)? {
        let plan = Plan::Product(parts_of(&parts)?);
        return Ok(if plan.is_empty() { None } else { Some(plan) });
    }
    if let Some(indices) = calls::attribute_if_there(pieces, &names(py).indices)? {
        let plan = Plan::Points(grouped(pieces, &indices)?);
        return Ok(if plan.is_empty() { None } else { Some(plan) });
    }
    let column = |name: &Py<PyString>| -> PyResult<Vec<List>> {
        calls::items(&*calls::attribute(pieces, name)?)?.map(|item| list(&*item?)).collect()
    };
    let order = calls::attribute(pieces, &names(py).order)?;
    let points = Points {
        dims: calls::attribute(pieces, &names(py).axes)?.extract::<Vec<usize>>()?.into(),
        coords: column(&names(py).coords)?,
        bounds: calls::attribute(pieces, &names(py).bounds)?.extract()?,
        places: column(&names(py).places)?,
        order: if order.is_none() { None } else { Some(list(&order)?) },
        place: calls::attribute(pieces, &names(py).place)?.extract()?,
        parts: rest_of(pieces)?,
    };
    if !points.is_sound() {
        return Err(unknown("points that cannot be"));
    }
    let plan = Plan::Points(points);
    Ok(if plan.is_empty() { None } else { Some(plan) })
}

// -- stores ---------------------------------------------------------------------------

/// Python objects that are no longer needed, and their size in bytes.
static DROPPED: Mutex<(Vec<Box<dyn Any + Send>>, usize)> = Mutex::new((Vec::new(), 0));

/// An object of Python that may be dropped without the interpreter.
///
/// `PyO3` puts such objects on a list that a lock guards; a child that is forked while another thread has that lock
/// finds it locked forever, and then waits for it whenever it attaches. So they are collected here, without waiting.
struct Held<T: Send + 'static>(Option<T>, usize);

impl<T: Send + 'static> Drop for Held<T> {
    fn drop(&mut self) {
        let Some(object) = self.0.take() else { return };
        let Ok(mut dropped) = DROPPED.try_lock() else {
            calls::attached(|_| drop(object));
            return;
        };
        dropped.0.push(Box::new(object));
        dropped.1 = dropped.1.saturating_add(self.1);
        if dropped.0.len() >= MOST_DROPPED || dropped.1 >= MOST_DROPPED_BYTES {
            let objects = std::mem::take(&mut *dropped);
            drop(dropped);
            calls::attached(|_| drop(objects));
        }
    }
}

/// Release objects that were dropped without the interpreter.
fn clear_dropped(_: Python<'_>) {
    // Taken first, as the lock must not be held while Python does whatever it does with objects that die.
    let objects = DROPPED.try_lock().map(|mut dropped| std::mem::take(&mut *dropped));
    drop(objects);
}

/// The bytes of a value, in memory that Python holds.
enum PyMemory {
    Bytes(PyBackedBytes),
    /// Of another object, whose owner does not change them.
    Buffer(PyBuffer<u8>),
}

impl PyMemory {
    /// Memory that others may change is copied.
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Self::Bytes(PyBackedBytes::from(bytes.clone())));
        }
        let buffer = PyBuffer::<u8>::get(value)?;
        if buffer.readonly() && buffer.is_c_contiguous() {
            return Ok(Self::Buffer(buffer));
        }
        let copy = PyBytes::new(value.py(), &buffer.to_vec(value.py())?);
        Ok(Self::Bytes(PyBackedBytes::from(copy)))
    }
}

impl Deref for PyMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Buffer(buffer) if buffer.len_bytes() == 0 => &[],
            // SAFETY: the buffer is held, contiguous, of single bytes, and read-only.
            Self::Buffer(buffer) => unsafe {
                std::slice::from_raw_parts(buffer.buf_ptr().cast_const().cast(), buffer.len_bytes())
            },
        }
    }
}

/// A value that a store in Python gave.
struct PyValue {
    bytes: Arc<Held<PyMemory>>,
    /// Where the object is: as long as it lives, no other is there. None if the store has another one
    /// each time.
    place: Option<u64>,
}

impl PyValue {
    /// `is_kept`: the store keeps this object.
    fn of(value: &Bound<'_, PyAny>, is_kept: bool) -> PyResult<Option<Box<dyn Value>>> {
        if value.is_none() {
            return Ok(None);
        }
        let place = (is_kept && value.is_instance_of::<PyBytes>()).then(|| value.as_ptr() as u64);
        let bytes = PyMemory::of(value)?;
        let nbytes = bytes.len();
        Ok(Some(Box::new(Self { bytes: Arc::new(Held(Some(bytes), nbytes)), place })))
    }
}

impl Value for PyValue {
    fn bytes(&self) -> Option<&[u8]> {
        self.bytes.0.as_deref()
    }

    fn size(&self) -> EngineResult<u64> {
        Ok(self.bytes.1 as u64)
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> EngineResult<usize> {
        let bytes = self.bytes().unwrap_or_default();
        let rest = usize::try_from(start).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
        let size = rest.len().min(out.len());
        out[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    fn stamp(&self) -> EngineResult<Option<Stamp>> {
        Ok(self.place.map(|place| [place, 0, 0, 0, 0]))
    }

    fn hold(&self) -> Option<Hold> {
        Some(self.bytes.clone())
    }
}

/// A store in Python, and the dictionary that it keeps its values in, if it does.
struct PyStore {
    store: Py<PyAny>,
    values: Option<Py<PyDict>>,
    concurrency: usize,
    most_in_flight: usize,
    is_conditional: bool,
}

/// An exception of a store, which only the first of several that fail at once passes on.
struct Raised(Option<PyErr>);

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(error) = self.0.take() {
            calls::forget(error);
        }
    }
}

fn foreign(error: PyErr) -> Error {
    Error::foreign(Box::new(Raised(Some(error))))
}

impl Store for PyStore {
    fn open(&self, key: &str) -> EngineResult<Option<Box<dyn Value + '_>>> {
        calls::attached(|py| -> PyResult<_> {
            match &self.values {
                Some(values) => values.bind(py).get_item(key)?.map_or(Ok(None), |value| PyValue::of(&value, true)),
                None => PyValue::of(&*calls::method(self.store.bind(py), &names(py).get, (key,))?, false),
            }
        })
        .map_err(foreign)
    }

    fn attached(&self, work: &mut (dyn FnMut() + Send)) {
        // What Python keeps of a thread is made once, and not for each request.
        calls::attached(|py| py.detach(work));
    }

    fn concurrency(&self) -> usize {
        self.concurrency
    }

    fn most_in_flight(&self) -> usize {
        self.most_in_flight
    }

    fn changes_parts(&self) -> bool {
        !self.is_conditional
    }

    fn at_once(&self, nbytes: usize) -> Option<usize> {
        if self.concurrency > 1 {
            return None;
        }
        // A fetched value takes memory until it is decoded; a value in a dictionary takes memory in any case.
        let bound = if self.values.is_some() { usize::MAX } else { BYTES_AT_ONCE };
        Some((bound / nbytes.max(1)).clamp(1, AT_ONCE))
    }

    fn reads_parts(&self) -> bool {
        self.values.is_some()
    }

    fn open_many(&self, keys: &[String]) -> Vec<EngineResult<Option<Box<dyn Value + '_>>>> {
        let mut opened: Vec<EngineResult<_>> = Vec::with_capacity(keys.len());
        calls::attached(|py| {
            if let Some(values) = &self.values {
                let values = values.bind(py);
                for key in keys {
                    let value = values
                        .get_item(key)
                        .and_then(|value| value.map_or(Ok(None), |value| PyValue::of(&value, true)));
                    opened.push(value.map_err(foreign));
                }
                return;
            }
            opened.extend(keys.iter().map(|_| Err(Error::refused("the value did not arrive"))));
            let requests: Vec<_> = keys.iter().map(|key| (key, py.None())).collect();
            let fetched = calls::method(self.store.bind(py), &names(py).get_many, (requests,)).and_then(|items| {
                for item in calls::items(&items)? {
                    let (position, value): (usize, Bound<'_, PyAny>) = item?.extract()?;
                    if let Some(place) = opened.get_mut(position) {
                        *place = PyValue::of(&value, false).map_err(foreign);
                    }
                }
                Ok(())
            });
            if let Err(error) = fetched
                && let Some(place) = opened.iter_mut().find(|opened| opened.is_err())
            {
                *place = Err(foreign(error));
            }
        });
        opened
    }

    fn set(&self, key: &str, data: &[u8]) -> EngineResult<()> {
        calls::attached(|py| {
            let data = PyBytes::new(py, data);
            match &self.values {
                Some(values) => values.bind(py).set_item(key, data),
                None => calls::method(self.store.bind(py), &names(py).set, (key, data)).map(|_| ()),
            }
        })
        .map_err(foreign)
    }

    fn delete(&self, key: &str) -> EngineResult<()> {
        calls::attached(|py| calls::method(self.store.bind(py), &names(py).delete, (key,)).map(|_| ())).map_err(foreign)
    }

    fn locked(&self, key: &str, _waiting: &dyn Fn() -> EngineResult<()>, change: &mut Change<'_>) -> EngineResult<()> {
        // The thread stays attached in name: what Python knows of it (which locks it holds) must not be forgotten.
        calls::attached(|py| {
            // As a `with` statement does: what leaves is found before anything is entered, and alone keeps the lock.
            let none = || py.None();
            let nothing = calls::arguments(py, (none(), none(), none())).map_err(foreign)?;
            let lock = calls::method(self.store.bind(py), &names(py).lock, (key,)).map_err(foreign)?;
            let leave = calls::attribute(&lock, &names(py).exit).map_err(foreign)?;
            let entered = calls::method(&lock, &names(py).enter, ());
            drop(lock);
            entered.map_err(foreign)?;
            let result = py.detach(&mut *change);
            let left = calls::call(&leave, &nothing);
            result.and(left.map(|_| ()).map_err(foreign))
        })
    }
}

// -- the cache ------------------------------------------------------------------------

/// Decoded chunks of many arrays, and those of the engine in Python, which tells its stamps apart itself.
#[pyclass(frozen, name = "ChunkCache", module = "omnizarr._native")]
struct PyChunkCache(Arc<Chunks>);

/// The stamp of what the engine in Python keeps: no value has it.
const OF_PYTHON: Stamp = [0; 5];

#[pymethods]
impl PyChunkCache {
    /// A cache of at most `limit` bytes.
    #[new]
    fn new(limit: usize) -> Self {
        Self(Arc::new(Cache::new(limit)))
    }

    /// Bytes that are kept.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }

    // PyO3 hands over what it made.
    #[allow(clippy::needless_pass_by_value)]
    /// What `put` keeps for a place, whatever its stamp.
    fn get(&self, py: Python<'_>, place: Vec<u64>) -> Option<Py<PyAny>> {
        let (_, hold) = self.0.get(&Coords::from_vec(place), &OF_PYTHON)?;
        Some(hold?.downcast_ref::<Held<Py<PyAny>>>()?.0.as_ref()?.clone_ref(py))
    }

    /// Keep a value of `nbytes` for a place.
    fn put(&self, place: Vec<u64>, value: Py<PyAny>, nbytes: usize) {
        let hold: Hold = Arc::new(Held(Some(value), nbytes));
        self.0.put(Coords::from_vec(place), OF_PYTHON, (Arc::from([]), Some(hold)), nbytes);
    }
}

// -- the engine -----------------------------------------------------------------------

/// The chunks that the engine in Python is to move; whether all others have been; an error to raise. None of it, if of a
/// local array nothing that was to be read is stored: then that engine is to find out whether there is an array.
type Rest<'py> = (Vec<Bound<'py, PyTuple>>, bool, Option<PyErr>);

#[cfg(feature = "remote")]
type Remote<'py> = far::Remote<'py>;
/// Never given: nothing is fetched here.
#[cfg(not(feature = "remote"))]
type Remote<'py> = Bound<'py, PyAny>;

/// The engine of one array.
#[pyclass(frozen, module = "omnizarr._native")]
struct Engine {
    array: Arc<Array>,
    store: Arc<dyn Store>,
    /// What is done to the elements that are read.
    conversion: Option<Arc<Conversion>>,
    /// Whether to tell that nothing is there.
    tells: bool,
    /// Where the chunks are, if they are in files of another format.
    manifest: Option<manifests::Shared>,
    /// The same, if that is found out for each plan; and the array whose keys are numbers. If it is not found out, the store
    /// is asked for the chunks.
    lookup: Option<(Arc<manifests::Lookup>, Arc<Array>)>,
    /// How chunks are fetched without the interpreter.
    #[cfg(feature = "remote")]
    far: Option<Arc<far::Far>>,
}

/// A conversion as `omnizarr.engine.conversion` describes it: the types of elements and results, and what packed numbers
/// mean (scale, offset, missing ones, the lowest, the highest).
type Described = (String, String, Option<(Option<f64>, Option<f64>, Vec<Vec<u8>>, Option<Vec<u8>>, Option<Vec<u8>>)>);

#[pymethods]
impl Engine {
    /// `root`: of a local store; `home`: the directory of the array in it, and the document that must be there if that is
    /// to be made; `blocks`: of an array of N5, what keys of chunks begin with, what paths of blocks begin with, and the
    /// header of a block; `values`: of a store in memory; `concurrency`, `most_in_flight`, `is_conditional`: of any other;
    /// `cache`: for decoded chunks, and the number of the array in it; `remote`: what fetches and stores chunks, as
    /// `py/far.rs` says; `manifest`: where chunks lie in files of another format, and `skipping`: the codecs of chunks
    /// that skip some of them; `lookup`: what finds out where chunks lie when they are needed.
    #[new]
    #[pyo3(signature = (codecs, keys, store, *, root=None, fsync=false, home=None, blocks=None, values=None,
        concurrency=1, most_in_flight=usize::MAX, is_conditional=false, cache=None, remote=None, manifest=None, skipping=Vec::new(),
        lookup=None))]
    #[allow(clippy::too_many_arguments)] // they have names in Python
    #[cfg_attr(not(feature = "remote"), allow(clippy::needless_pass_by_value))]
    fn new(
        #[cfg_attr(not(feature = "remote"), allow(unused_variables))] py: Python<'_>,
        codecs: &PyCodecs,
        keys: (String, String, String, String),
        store: Py<PyAny>,
        root: Option<std::path::PathBuf>,
        fsync: bool,
        home: Option<(String, String)>,
        blocks: Option<(String, String, Vec<u8>)>,
        values: Option<Py<PyDict>>,
        concurrency: usize,
        most_in_flight: usize,
        is_conditional: bool,
        cache: Option<(PyRef<'_, PyChunkCache>, u64)>,
        remote: Option<Remote<'_>>,
        manifest: Option<manifests::Given<'_>>,
        skipping: Vec<(u32, PyRef<'_, PyCodecs>)>,
        lookup: Option<PyRef<'_, manifests::PyLookup>>,
    ) -> PyResult<Self> {
        let manifest = manifest.map(|manifest| manifests::shared(&manifest));
        #[cfg(feature = "remote")]
        let far = remote
            .map(|remote| far::Far::new(remote, manifest.as_ref().and_then(manifests::located), store.clone_ref(py)))
            .transpose()?
            .map(Arc::new);
        #[cfg(not(feature = "remote"))]
        if remote.is_some() {
            return Err(unknown("stores that are far away"));
        }
        let (head, separator, tail, scalar) = keys;
        let tells = home.is_some();
        let store: Arc<dyn Store> = match root {
            None => Arc::new(PyStore { store, values, concurrency, most_in_flight, is_conditional }),
            Some(root) => files(root, fsync, home, blocks)?,
        };
        let array = Array {
            keys: Keys { head, separator, tail, scalar, grid: manifest.as_ref().map(manifests::grid) },
            skipping: manifest.as_ref().and_then(|manifest| manifests::skipping(manifest, skipping)),
            codecs: Arc::clone(&codecs.0),
            indexes: Cache::new(INDEX_BYTES),
            chunks: cache.map(|(cache, number)| Shelf { chunks: Arc::clone(&cache.0), number, share: None }),
        };
        let lookup = lookup.map(|lookup| {
            let numbered = Array {
                keys: Keys { grid: Some(lookup.0.grid()), ..Keys::default() },
                skipping: None,
                codecs: Arc::clone(&codecs.0),
                indexes: Cache::new(INDEX_BYTES),
                chunks: None,
            };
            (Arc::clone(&lookup.0), Arc::new(numbered))
        });
        Ok(Self {
            array: Arc::new(array),
            store,
            conversion: None,
            tells,
            manifest,
            lookup,
            #[cfg(feature = "remote")]
            far,
        })
    }

    /// The engine of the same array whose elements are converted as they are read. It does not write.
    fn converting(&self, steps: Vec<Described>) -> PyResult<Self> {
        let steps = steps
            .into_iter()
            .map(|(from, to, packing)| {
                let packing =
                    packing.map(|(scale, offset, missing, low, high)| Packing { scale, offset, missing, low, high });
                Ok(Step { from: Type::parse(&from)?, to: Type::parse(&to)?, packing })
            })
            .collect::<EngineResult<_>>();
        let conversion = steps.and_then(Conversion::new).map_err(|error| refused(&error))?;
        Ok(Self {
            array: Arc::clone(&self.array),
            store: Arc::clone(&self.store),
            conversion: Some(Arc::new(conversion)),
            tells: self.tells,
            manifest: self.manifest.clone(),
            lookup: self.lookup.clone(),
            #[cfg(feature = "remote")]
            far: self.far.clone(),
        })
    }

    /// Whether this engine fetches chunks without the interpreter.
    #[getter]
    #[cfg_attr(not(feature = "remote"), allow(clippy::unused_self))]
    fn fetches(&self) -> bool {
        #[cfg(feature = "remote")]
        return self.far.is_some();
        #[cfg(not(feature = "remote"))]
        false
    }

    /// Fill `out` with the elements of a plan. `stop`: ends that early, and then part of `out` is filled; `shared`: where
    /// selections of this array that are read at the same time keep decoded chunks.
    // PyO3 hands over what it made.
    #[allow(clippy::needless_pass_by_value)]
    #[pyo3(signature = (pieces, out, concurrency, stop=None, shared=None))]
    fn read<'py>(
        &self,
        pieces: &Bound<'py, PyAny>,
        out: &Bound<'py, PyAny>,
        concurrency: Option<usize>,
        stop: Option<PyRef<'py, Stop>>,
        shared: Option<PyRef<'py, PyChunkCache>>,
    ) -> PyResult<Option<Rest<'py>>> {
        let kept = shared.map(|cache| Shelf { chunks: Arc::clone(&cache.0), number: 0, share: Some(SMALLEST_SHARE) });
        let limits =
            Limits { threads: concurrency, seen: None, stop: stop.as_ref().map(|stop| &stop.0), shared: kept.as_ref() };
        self.guarded(pieces, out, &limits, Verb::Read)
    }

    /// Whether selections that are read at the same time should share chunks: decoded, they are no more as
    /// stored.
    #[getter]
    fn decodes(&self) -> bool {
        let chain = &self.array.codecs.chain;
        let inner = chain.as_shard().map_or(chain, |shard| &shard.inner);
        self.array.chunks.is_none() && inner.as_elements().is_none()
    }

    /// Store `values` in the elements of a plan. `seen`: how many chunks along each dimension others may ask for meanwhile.
    // PyO3 hands over what it made.
    #[allow(clippy::needless_pass_by_value)]
    #[pyo3(signature = (pieces, values, concurrency, seen=None))]
    fn write<'py>(
        &self,
        pieces: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        concurrency: Option<usize>,
        seen: Option<Vec<u64>>,
    ) -> PyResult<Option<Rest<'py>>> {
        let limits = Limits { threads: concurrency, seen: seen.as_deref(), stop: None, shared: None };
        self.guarded(pieces, values, &limits, Verb::Write)
    }
}

/// Ends the reading of a plan before its time.
#[pyclass(frozen, module = "omnizarr._native")]
#[derive(Default)]
struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Cancel running requests soon.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was set.
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a plan is run.
struct Limits<'a> {
    threads: Option<usize>,
    /// How many chunks along each dimension others may ask for while it writes; None: all.
    seen: Option<&'a [u64]>,
    stop: Option<&'a AtomicBool>,
    shared: Option<&'a Shelf>,
}

impl Engine {
    /// The caller's array, with what is done to the elements that are read into it.
    fn converted(&self, memory: Memory, verb: Verb) -> PyResult<Memory> {
        match &self.conversion {
            None => Ok(memory),
            Some(_) if verb == Verb::Write => Err(unknown("elements that are converted")),
            Some(conversion) => memory.converting(Arc::clone(conversion)).map_err(|error| refused(&error)),
        }
    }

    /// Run a plan; if this engine fails where it must not, the one in Python does all of it.
    fn guarded<'py>(
        &self,
        pieces: &Bound<'py, PyAny>,
        array: &Bound<'py, PyAny>,
        limits: &Limits<'_>,
        verb: Verb,
    ) -> PyResult<Option<Rest<'py>>> {
        catch_unwind(AssertUnwindSafe(|| self.run(pieces, array, limits, verb)))
            .unwrap_or_else(|_| Err(unknown("the engine failed")))
    }

    fn run<'py>(
        &self,
        pieces: &Bound<'py, PyAny>,
        array: &Bound<'py, PyAny>,
        limits: &Limits<'_>,
        verb: Verb,
    ) -> PyResult<Option<Rest<'py>>> {
        let &Limits { threads, seen, stop, shared } = limits;
        let py = array.py();
        let Some(plan) = plan(pieces)? else { return Ok(None) };
        let buffer = buffer_of(array, verb)?;
        let elements = buffer.item_count();
        // SAFETY: the buffer is held until all threads are done.
        let memory = self.converted(unsafe { memory_of(&buffer, &plan) }, verb)?;
        #[cfg(feature = "remote")]
        if let Some(far) = &self.far {
            let rest = self.run_far(py, far, verb, plan, memory, elements, threads);
            buffer.release(py);
            return rest;
        }
        let begun = match &self.lookup {
            Some((lookup, _)) if verb == Verb::Read => lookup.begin(py, &plan)?,
            _ => None,
        };
        #[cfg(feature = "remote")]
        let begun = match begun {
            // Together, concurrent selections share what the store is asked for.
            Some(begun) if begun.far.is_some() && shared.is_some() => None,
            Some(begun) if begun.far.is_some() => {
                let rest = self.run_found(py, &begun, plan, memory, limits);
                buffer.release(py);
                return rest;
            }
            begun => begun,
        };
        let missing = AtomicUsize::new(0);
        let session = self.session(begun.as_ref());
        let job = Job {
            array: self.array_for(begun.as_ref()),
            shared,
            store: session.as_ref().map_or(self.store.as_ref(), manifests::as_store),
            plan: &plan,
            memory: &memory,
            elements,
            threads,
            seen,
            stop,
            missing: &missing,
            interrupted: &asked,
        };
        let result = py.detach(|| match verb {
            Verb::Read => job.read().and_then(|left| {
                session.as_ref().map_or(Ok(()), manifests::check).map_err(|error| Failure { piece: None, error })?;
                Ok(left)
            }),
            Verb::Write => job.write(None),
        });
        clear_dropped(py);
        buffer.release(py);
        let is_nothing_there = self.tells && plan.len() == missing.into_inner() && !plan.is_empty();
        let rest = rest(py, &plan, result)?;
        Ok(if rest.is_none() && is_nothing_there { Some((Vec::new(), true, None)) } else { rest })
    }

    /// What reads the files of a manifest, for one plan.
    fn session<'a>(&'a self, begun: Option<&'a manifests::Begun>) -> Option<manifests::Session<'a>> {
        begun.map(manifests::Begun::session).or_else(|| self.manifest.as_ref().map(manifests::session))
    }

    /// The array with the keys that a plan needs.
    fn array_for(&self, begun: Option<&manifests::Begun>) -> &Arc<Array> {
        self.lookup.as_ref().filter(|_| begun.is_some()).map_or(&self.array, |(_, numbered)| numbered)
    }

    /// Read chunks that were found in files elsewhere.
    #[cfg(feature = "remote")]
    fn run_found<'py>(
        &self,
        py: Python<'py>,
        begun: &manifests::Begun,
        plan: Plan,
        memory: Memory,
        limits: &Limits<'_>,
    ) -> PyResult<Option<Rest<'py>>> {
        let (Some((lookup, array)), Some(far)) = (&self.lookup, &begun.far) else {
            return Err(unknown("files that are near"));
        };
        let &Limits { threads, stop, .. } = limits;
        let batch = far::run(py, array, far, Verb::Read, plan, memory, threads, stop)?;
        let is_stopped = stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let outcome = batch.outcome(0);
        clear_dropped(py);
        if is_stopped {
            return Ok(None);
        }
        match &outcome {
            Ok(refused) if refused.is_empty() => {}
            Ok(refused) => lookup.tell(py, begun, batch.plan(0), refused)?,
            Err(Failure { piece, .. }) => lookup.tell(py, begun, batch.plan(0), piece.as_slice())?,
        }
        rest(py, batch.plan(0), outcome)
    }

    /// Run a plan on chunks that are far away. Chunks that cannot be sent from here are stored by way of Python.
    #[cfg(feature = "remote")]
    #[allow(clippy::too_many_arguments)]
    fn run_far<'py>(
        &self,
        py: Python<'py>,
        far: &far::Far,
        verb: Verb,
        plan: Plan,
        memory: Memory,
        elements: usize,
        threads: Option<usize>,
    ) -> PyResult<Option<Rest<'py>>> {
        let batch = far::run(py, &self.array, far, verb, plan, memory, threads, None)?;
        let refused = match batch.outcome(0) {
            Ok(refused) if verb == Verb::Write && !refused.is_empty() => refused,
            outcome => return far::left(py, far, &batch, 0, outcome),
        };
        let missing = AtomicUsize::new(0);
        let job = Job {
            array: &self.array,
            shared: None,
            store: self.store.as_ref(),
            plan: batch.plan(0),
            memory: batch.memory(0),
            elements,
            threads,
            seen: None,
            stop: None,
            missing: &missing,
            interrupted: &asked,
        };
        let (again, mut left): (Vec<_>, Vec<_>) = refused.into_iter().partition(|&number| job.may_write(number));
        let result = if again.is_empty() { Ok(again) } else { py.detach(|| job.write(Some(&again))) };
        clear_dropped(py);
        let result = result.map(|refused| {
            left.extend(refused);
            left.sort_unstable();
            left
        });
        rest(py, batch.plan(0), result)
    }
}

/// What one of several plans needs while all are run.
struct Begun {
    plan: Plan,
    buffer: PyUntypedBuffer,
    memory: Memory,
    missing: AtomicUsize,
}

/// Read plans of several arrays, none of which is far away: (engine, pieces, array to fill). Return what `Engine.read`
/// returns for each.
#[pyfunction]
#[pyo3(signature = (requests, concurrency=None))]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made.
fn read_together<'py>(
    py: Python<'py>,
    requests: Vec<(PyRef<'py, Engine>, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    concurrency: Option<usize>,
) -> PyResult<Vec<Option<Rest<'py>>>> {
    let mut begun = Vec::with_capacity(requests.len());
    let mut founds: Vec<Option<manifests::Begun>> = Vec::with_capacity(requests.len());
    for (engine, pieces, array) in &requests {
        if engine.fetches() || engine.store.concurrency() > 1 {
            return Err(unknown("stores that take their time"));
        }
        let Some(plan) = plan(pieces)? else {
            begun.push(None);
            founds.push(None);
            continue;
        };
        let buffer = buffer_of(array, Verb::Read)?;
        // SAFETY: the buffer is held until all threads are done.
        let memory = engine.converted(unsafe { memory_of(&buffer, &plan) }, Verb::Read)?;
        let found = match &engine.lookup {
            Some((lookup, _)) => lookup.begin(py, &plan)?,
            None => None,
        };
        #[cfg(feature = "remote")]
        if found.as_ref().is_some_and(|found| found.far.is_some()) {
            return Err(unknown("files that take their time"));
        }
        founds.push(found);
        begun.push(Some(Begun { plan, buffer, memory, missing: AtomicUsize::new(0) }));
    }
    let sessions: Vec<_> =
        requests.iter().zip(&founds).map(|((engine, _, _), found)| engine.session(found.as_ref())).collect();
    let stop = AtomicBool::new(false);
    let jobs: Vec<Job<'_>> = requests
        .iter()
        .zip(&begun)
        .zip(sessions.iter().zip(&founds))
        .filter_map(|(((engine, _, _), begun), (session, found))| {
            begun.as_ref().map(|begun| Job {
                array: engine.array_for(found.as_ref()),
                shared: None,
                store: session.as_ref().map_or(engine.store.as_ref(), manifests::as_store),
                plan: &begun.plan,
                memory: &begun.memory,
                elements: begun.buffer.item_count(),
                threads: concurrency,
                seen: None,
                stop: Some(&stop),
                missing: &begun.missing,
                interrupted: &asked,
            })
        })
        .collect();
    let mut results = py.detach(|| crate::run::read_all(&jobs, concurrency, &stop)).into_iter();
    drop(jobs);
    clear_dropped(py);
    let mut found = Vec::with_capacity(begun.len());
    let mut interrupted = None;
    for (((engine, _, _), begun), session) in requests.iter().zip(begun).zip(&sessions) {
        let Some(Begun { plan, buffer, missing, .. }) = begun else {
            found.push(None);
            continue;
        };
        buffer.release(py);
        let Some(result) = results.next().flatten() else { continue };
        let checked = result.and_then(|left| {
            session.as_ref().map_or(Ok(()), manifests::check).map_err(|error| Failure { piece: None, error })?;
            Ok(left)
        });
        let is_nothing_there = engine.tells && plan.len() == missing.into_inner() && !plan.is_empty();
        match rest(py, &plan, checked) {
            Err(error) => interrupted = interrupted.or(Some(error)),
            Ok(None) if is_nothing_there => found.push(Some((Vec::new(), true, None))),
            Ok(rest) => found.push(rest),
        }
    }
    interrupted.map_or(Ok(found), Err)
}

/// Ask the caller whether to go on.
fn asked() -> EngineResult<()> {
    calls::attached(calls::check_signals).map_err(|error| Error::interrupted(Box::new(Raised(Some(error)))))
}

/// The exception for an error of something that Ctrl-C may have ended.
fn interrupted(error: Error) -> PyErr {
    match error {
        Error { kind: Kind::Interrupted, foreign: Some(foreign), .. } => {
            as_python(foreign).unwrap_or_else(|| unknown("interrupted"))
        }
        error => refused(&error),
    }
}

/// The memory of an array. Memory that is read-only is never filled: it may be that of constants, or of a file.
fn buffer_of(array: &Bound<'_, PyAny>, verb: Verb) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(array)?;
    if verb == Verb::Read && buffer.readonly() {
        return Err(PyValueError::new_err("the array to fill is read-only"));
    }
    Ok(buffer)
}

/// The caller's array, to be filled or read by a plan.
///
/// # Safety
/// The buffer must be held as long as the memory is in use. NumPy's layout of the elements is correct. The caller owns
/// the elements that are written, and must not touch them meanwhile, as everywhere in NumPy.
unsafe fn memory_of(buffer: &PyUntypedBuffer, plan: &Plan) -> Memory {
    // An array without dimensions comes as one with a single element.
    let dimensions = if plan.has_dimensions() { buffer.dimensions() } else { 0 };
    let (shape, strides) = (buffer.shape()[..dimensions].to_vec(), buffer.strides()[..dimensions].to_vec());
    // SAFETY: as above.
    unsafe { Memory::new(buffer.buf_ptr().cast(), shape, strides, buffer.item_size()) }
}

/// What of a plan is left to the engine in Python.
fn rest<'py>(py: Python<'py>, plan: &Plan, outcome: Result<Vec<usize>, Failure>) -> PyResult<Option<Rest<'py>>> {
    match outcome {
        Ok(refused) if refused.is_empty() => Ok(None),
        Ok(refused) => Ok(Some((chunks(py, plan, &refused)?, true, None))),
        Err(Failure { piece, error }) => {
            let pieces = chunks(py, plan, piece.as_slice())?;
            match (error.kind, error.foreign.and_then(as_python)) {
                (Kind::Interrupted, Some(error)) => Err(error),
                (_, error) => Ok(Some((pieces, false, error))),
            }
        }
    }
}

fn chunks<'py>(py: Python<'py>, plan: &Plan, pieces: &[usize]) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    pieces.iter().map(|&piece| PyTuple::new(py, plan.piece(piece).coords)).collect()
}

fn as_python(error: Box<dyn Any + Send>) -> Option<PyErr> {
    error.downcast::<Raised>().ok().and_then(|mut error| error.0.take())
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)]
fn files(
    root: std::path::PathBuf,
    fsync: bool,
    home: Option<(String, String)>,
    blocks: Option<(String, String, Vec<u8>)>,
) -> PyResult<Arc<dyn Store>> {
    let files = crate::files::Files::new(root, fsync);
    if let Some((head, folder, header)) = blocks {
        return Ok(Arc::new(crate::files::blocks::Blocks::new(files, head, folder, header)));
    }
    Ok(Arc::new(match home {
        None => files,
        Some((folder, document)) => files.of_array(&folder, &document),
    }))
}

#[cfg(not(unix))]
fn files(
    _: std::path::PathBuf,
    _: bool,
    _: Option<(String, String)>,
    _: Option<(String, String, Vec<u8>)>,
) -> PyResult<Arc<dyn Store>> {
    Err(unknown("files of this system"))
}

/// Wait for threads that came too late to do anything: before a fork.
#[pyfunction]
fn settle(py: Python<'_>) {
    py.detach(crate::threads::settle);
}

/// Release resources that only the parent of a forked process may hold.
#[pyfunction]
fn forget_after_fork() {
    #[cfg(unix)]
    crate::files::forget_after_fork();
}

/// The native engine of omnizarr.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    names(module.py());
    // What PyO3 itself looks up when it first collects what Python iterates over.
    let _ = PyTuple::empty(module.py()).try_iter()?.size_hint();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<PyChunkCache>()?;
    module.add_class::<PyCodecs>()?;
    module.add_class::<Engine>()?;
    module.add_class::<Stop>()?;
    module.add_class::<trees::PyTree>()?;
    #[cfg(unix)]
    module.add_class::<trees::PyIndex>()?;
    module.add_function(wrap_pyfunction!(read_together, module)?)?;
    #[cfg(feature = "remote")]
    {
        module.add_class::<far::PyClient>()?;
        module.add_class::<far::PyBatch>()?;
        module.add_class::<far::PyIndexes>()?;
        module.add_class::<objects::Objects>()?;
        module.add_class::<objects::Pages>()?;
        module.add("RequestError", module.py().get_type::<objects::RequestError>())?;
    }
    #[cfg(unix)]
    {
        module.add_class::<manifests::PySources>()?;
        #[cfg(feature = "remote")]
        module.add_class::<manifests::PyVersions>()?;
        module.add_class::<manifests::PyManifest>()?;
        module.add_class::<manifests::PyLookup>()?;
        module.add_function(wrap_pyfunction!(small::read_small, module)?)?;
        module.add_function(wrap_pyfunction!(small::read_spans, module)?)?;
        module.add_function(wrap_pyfunction!(small::present, module)?)?;
        module.add_function(wrap_pyfunction!(small::create_with, module)?)?;
        module.add_function(wrap_pyfunction!(small::open_beneath, module)?)?;
        module.add_function(wrap_pyfunction!(small::set_file, module)?)?;
        module.add_function(wrap_pyfunction!(small::delete_file, module)?)?;
        module.add_function(wrap_pyfunction!(small::delete_files, module)?)?;
        module.add_function(wrap_pyfunction!(small::delete_node, module)?)?;
        module.add_function(wrap_pyfunction!(small::members, module)?)?;
        module.add_function(wrap_pyfunction!(small::delete_tree, module)?)?;
        module.add_function(wrap_pyfunction!(small::remove_tree, module)?)?;
    }
    module.add_function(wrap_pyfunction!(buffers::encode, module)?)?;
    module.add_function(wrap_pyfunction!(buffers::decode, module)?)?;
    module.add_function(wrap_pyfunction!(buffers::decode_into, module)?)?;
    module.add_function(wrap_pyfunction!(buffers::lookup3, module)?)?;
    module.add_function(wrap_pyfunction!(buffers::zstd_by, module)?)?;
    module.add_function(wrap_pyfunction!(samples::place_samples, module)?)?;
    module.add_function(wrap_pyfunction!(buffers::split, module)?)?;
    module.add_function(wrap_pyfunction!(buffers::join, module)?)?;
    module.add_function(wrap_pyfunction!(json::is_plain_json, module)?)?;
    module.add_function(wrap_pyfunction!(json::json_members, module)?)?;
    module.add("changes_copies", cfg!(target_os = "linux"))?;
    module.add("reads_blocks", cfg!(unix))?;
    module.add_function(wrap_pyfunction!(settle, module)?)?;
    module.add_function(wrap_pyfunction!(forget_after_fork, module)?)
}

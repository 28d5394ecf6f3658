//! Stores that are remote: clients, and plans that are carried out by them.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use super::{
    Engine, Rest, asked, buffer_of, calls, chunks, clear_dropped, memory_of, names, plan, refused, rest, unknown,
};
use crate::error::Error;
use crate::plan::Plan;
use crate::remote::batch::{Batch, Bell, Outcome};
use crate::remote::change::Conditions;
use crate::remote::client::{Client, Cloud, Retries, Setup};
use crate::remote::failures::Answered;
use crate::remote::indexes::Indexes;
use crate::remote::job::Order;
use crate::remote::located::Located;
use crate::run::{Array, Failure, Verb};
use crate::scatter::Memory;

/// A client of a store, which arrays share.
#[pyclass(frozen, name = "Client", module = "omnizarr._native")]
pub struct PyClient(Arc<Client>);

impl PyClient {
    /// What it is for those in Rust.
    pub fn client(&self) -> &Arc<Client> {
        &self.0
    }
}

#[pymethods]
impl PyClient {
    /// `kind`: the class of obstore's store; `url`: of a web server; `config`, `options`: by name; `retries`: how many, then
    /// seconds for all of them, for the first pause and for the longest, and what pauses grow by; `missing_places`: signs
    /// that not the key is missing.
    #[new]
    #[allow(clippy::too_many_arguments)] // they have names in Python
    fn new(
        kind: &str,
        url: String,
        config: Vec<(String, String)>,
        options: Vec<(String, String)>,
        headers: Vec<(String, Vec<u8>)>,
        retries: Option<(usize, f64, f64, f64, f64)>,
        concurrency: usize,
        missing_places: Vec<String>,
    ) -> PyResult<Self> {
        let cloud = match kind {
            "S3Store" => Cloud::S3,
            "GCSStore" => Cloud::Google,
            "AzureStore" => Cloud::Azure,
            "HTTPStore" => Cloud::Http,
            _ => return Err(unknown("a store of another kind")),
        };
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unknown("a name of no header"))?;
            let mut value = HeaderValue::from_bytes(&value).map_err(|_| unknown("a value of no header"))?;
            value.set_sensitive(true);
            sent.insert(name, value);
        }
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).map_err(|_| unknown("a time that cannot be"));
        let retries = retries
            .map(|(max_retries, all, first, longest, base)| {
                Ok::<_, PyErr>(Retries {
                    max_retries,
                    retry_timeout: seconds(all)?,
                    init_backoff: seconds(first)?,
                    max_backoff: seconds(longest)?,
                    base,
                })
            })
            .transpose()?;
        let setup = Setup { cloud, url, config, options, headers: sent, retries, concurrency, missing_places };
        Ok(Self(Arc::new(Client::new(setup))))
    }

    /// Make the store, and with it the threads that serve it; raise `NotImplementedError` if it cannot be made so.
    fn check(&self) -> PyResult<()> {
        self.0.live().map(|_| ()).map_err(|error| refused(&error))
    }
}

/// The place of an array, and the Python object that raises its errors.
pub struct Far {
    client: Arc<Client>,
    prefix: Arc<str>,
    most: u64,
    bytes_in_flight: usize,
    conditions: Option<Conditions>,
    /// Where the chunks lie, if they are in files of another format.
    located: Option<Arc<Located>>,
    store: Py<PyAny>,
}

/// What makes it: a client, what stands before the keys of the store there, how large a value may be, how many bytes may be
/// in flight, and of a store with conditions whether it must be seen that the server takes notice of them, and for how
/// many seconds conflicts are no error.
pub type Remote<'py> = (PyRef<'py, PyClient>, String, u64, usize, Option<(bool, f64)>);

impl Far {
    pub fn new(
        (client, prefix, most, bytes_in_flight, conditions): Remote<'_>,
        located: Option<Arc<Located>>,
        store: Py<PyAny>,
    ) -> PyResult<Self> {
        let conditions = conditions.map(|(are_doubtful, patience)| {
            let patience = Duration::try_from_secs_f64(patience).map_err(|_| unknown("a time that cannot be"))?;
            Ok::<_, PyErr>(Conditions { are_doubtful, patience })
        });
        Ok(Self {
            client: Arc::clone(&client.0),
            prefix: prefix.into(),
            most,
            bytes_in_flight,
            conditions: conditions.transpose()?,
            located,
            store,
        })
    }
}

impl Far {
    /// The same place, for chunks in files.
    #[must_use]
    pub fn with_files(&self, py: Python<'_>, located: Arc<Located>) -> Self {
        Self {
            client: Arc::clone(&self.client),
            prefix: Arc::clone(&self.prefix),
            most: self.most,
            bytes_in_flight: self.bytes_in_flight,
            conditions: None,
            located: Some(located),
            store: self.store.clone_ref(py),
        }
    }
}

/// Indexes of shards that a reader keeps, of at most `limit` bytes.
#[pyclass(frozen, name = "ShardIndexes", module = "omnizarr._native")]
pub struct PyIndexes(Arc<Indexes>);

#[pymethods]
impl PyIndexes {
    #[new]
    fn new(limit: usize) -> Self {
        Self(Arc::new(Indexes::new(limit)))
    }

    /// Begin another pass over the data: it shares no request with those before.
    fn begin(&self) {
        self.0.begin();
    }

    /// Bytes that the index of a shard takes: `entries` is its number of chunks, `key` that of bytes of its key.
    #[staticmethod]
    fn nbytes_of(entries: usize, key: usize) -> usize {
        Indexes::nbytes_of(entries, key)
    }

    /// Bytes that they take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }
}

fn order(array: &Arc<Array>, far: &Far, plan: Plan, memory: Memory) -> Order {
    Order {
        array: Arc::clone(array),
        plan,
        memory,
        client: Arc::clone(&far.client),
        prefix: Arc::clone(&far.prefix),
        most: far.most,
        bytes_in_flight: far.bytes_in_flight,
        conditions: far.conditions,
        located: far.located.clone(),
        indexes: None,
    }
}

/// What of an order is left to the engine in Python.
pub fn left<'py>(
    py: Python<'py>,
    far: &Far,
    batch: &Batch,
    number: usize,
    outcome: Outcome,
) -> PyResult<Option<Rest<'py>>> {
    let plan = batch.plan(number);
    match outcome {
        Err(Failure { piece, error }) if error.foreign.as_ref().is_some_and(|error| error.is::<Answered>()) => {
            let Some(Ok(answered)) = error.foreign.map(<Box<dyn Any + Send>>::downcast::<Answered>) else {
                return Err(unknown("an error of another kind"));
            };
            let key = piece.map(|piece| batch.key(number, piece));
            let arguments = (answered.kind, answered.text.as_str(), key);
            let error = calls::method(far.store.bind(py), &names(py).answered, arguments)?;
            Ok(Some((chunks(py, plan, piece.as_slice())?, false, Some(PyErr::from_value((*error).clone())))))
        }
        outcome => rest(py, plan, outcome),
    }
}

/// Fill the caller's array, or store what it holds; return when that is done.
#[allow(clippy::too_many_arguments)] // all are needed for one call
pub fn run(
    py: Python<'_>,
    array: &Arc<Array>,
    far: &Far,
    verb: Verb,
    plan: Plan,
    memory: Memory,
    concurrency: Option<usize>,
    stop: Option<&AtomicBool>,
) -> PyResult<Batch> {
    let orders = vec![order(array, far, plan, memory)];
    let batch = py.detach(|| Batch::start(verb, orders, concurrency, true, None)).map_err(|error| refused(&error))?;
    wait(py, &batch, stop)?;
    Ok(batch)
}

/// Wait until all is done, or `stop` is set.
fn wait(py: Python<'_>, batch: &Batch, stop: Option<&AtomicBool>) -> PyResult<()> {
    let is_stopped = || stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let asked = || if is_stopped() { Err(Error::refused("stopped")) } else { asked() };
    match py.detach(|| batch.wait(&asked)) {
        Err(_) if is_stopped() => Ok(()),
        result => result.map_err(super::interrupted),
    }
}

type Wanted<'py> = (PyRef<'py, Engine>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Plans of several arrays, being read or written.
#[pyclass(frozen, name = "Batch", module = "omnizarr._native")]
pub struct PyBatch {
    batch: Batch,
    /// In the order of the orders.
    engines: Vec<Py<Engine>>,
    /// The memory that is filled or stored.
    _buffers: Vec<PyUntypedBuffer>,
    /// The process that has begun it.
    process: u32,
}

#[pymethods]
impl PyBatch {
    /// Begin to read or, if `is_write`, to write. `requests`: an engine, pieces, and an array to be filled or stored;
    /// `is_one`: the first failure ends all; `bell`: a socket to which a byte is written whenever something is done;
    /// `indexes`: where indexes of shards are kept.
    #[new]
    #[pyo3(signature = (requests, concurrency=None, is_one=true, bell=None, is_write=false, indexes=None))]
    #[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
    fn new(
        py: Python<'_>,
        requests: Vec<Wanted<'_>>,
        concurrency: Option<usize>,
        is_one: bool,
        bell: Option<i32>,
        is_write: bool,
        indexes: Option<PyRef<'_, PyIndexes>>,
    ) -> PyResult<Self> {
        let verb = if is_write { Verb::Write } else { Verb::Read };
        let bell = bell.map(ringing).transpose()?;
        let (mut orders, mut engines, mut buffers) = (Vec::new(), Vec::new(), Vec::new());
        for (engine, pieces, array) in requests {
            let far = engine.far.as_ref().ok_or_else(|| unknown("an array that is near"))?;
            let plan = plan(&pieces)?.unwrap_or(Plan::Product(vec![crate::plan::Part::Fixed(Vec::new())]));
            let buffer = buffer_of(&array, verb)?;
            // SAFETY: the buffer is held until all is done.
            let memory = engine.converted(unsafe { memory_of(&buffer, &plan) }, verb)?;
            let indexes = indexes.as_ref().map(|indexes| Arc::clone(&indexes.0));
            orders.push(Order { indexes, ..order(&engine.array, far, plan, memory) });
            buffers.push(buffer);
            engines.push(engine.into());
        }
        let batch =
            py.detach(|| Batch::start(verb, orders, concurrency, is_one, bell)).map_err(|error| refused(&error))?;
        Ok(Self { batch, engines, _buffers: buffers, process: std::process::id() })
    }

    /// Wait until all is done.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, &self.batch, None)
    }

    /// The numbers of the requests that were done since this was last asked.
    fn done(&self) -> Vec<usize> {
        self.batch.done()
    }

    /// Whether no request is running any more.
    fn is_over(&self) -> bool {
        self.batch.is_over()
    }

    /// Cancel unfinished requests.
    fn stop(&self) {
        self.batch.stop();
    }

    /// Cancel one request. After that, nothing is written into its memory.
    fn give_up(&self, py: Python<'_>, number: usize) {
        py.detach(|| self.batch.give_up(number));
    }

    /// Begin no more chunks of a request that is being written, and return whether nothing of it is under way. Otherwise it
    /// will be done soon: what takes too long is broken off.
    fn end(&self, number: usize) -> bool {
        self.batch.end(number)
    }

    /// What of a request is left to do, once it is done.
    fn rest<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Option<Rest<'py>>> {
        let engine = self.engines.get(number).ok_or_else(|| unknown("a request that was not made"))?.get();
        let far = engine.far.as_ref().ok_or_else(|| unknown("an array that is near"))?;
        clear_dropped(py);
        left(py, far, &self.batch, number, self.batch.outcome(number))
    }
}

impl Drop for PyBatch {
    fn drop(&mut self) {
        // A child that was forked meanwhile has none of the threads that would end it.
        if self.process != std::process::id() {
            return;
        }
        // Wait until no task uses the caller's memory any more. Tasks only finish the chunk that they are decoding.
        if !self.batch.is_over() {
            self.batch.abort();
            let _ = self.batch.wait(&|| Ok(()));
        }
    }
}

#[cfg(unix)]
fn ringing(socket: i32) -> PyResult<Bell> {
    use std::os::fd::BorrowedFd;

    // SAFETY: the caller keeps the socket open during the call.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let socket = rustix::io::fcntl_dupfd_cloexec(socket, 0).map_err(|_| unknown("a socket that is closed"))?;
    Ok(Box::new(move || {
        // One that is full rings already.
        let _ = rustix::io::write(&socket, b"\0");
    }))
}

#[cfg(not(unix))]
fn ringing(_: i32) -> PyResult<Bell> {
    Err(unknown("sockets of this system"))
}

//! Requests for values, one at a time, with the answers of obstore: for a process that was forked from one that used
//! obstore, whose threads it does not have.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, GetOptions, GetRange, ObjectMeta, ObjectStoreExt as _, PutMode, PutOptions,
    PutResult, UpdateVersion, WriteMultipart,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTimeoutError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, channel};

use super::far::PyClient;
use super::{asked, interrupted, refused, unknown};
use crate::remote::client::{Client, Live};
use crate::remote::fetch::body;
use crate::remote::process::runtime;

create_exception!(_native, RequestError, PyException, "The class and the text of an exception of obstore.");

/// How often a thread that waits looks for signals.
const PATIENCE: Duration = Duration::from_millis(50);
/// Keys of a page of a listing.
const PAGE: usize = 1000;
/// Larger values are sent in parts,
const LARGEST_WHOLE: usize = 32 * 1024 * 1024;
/// of this number of bytes,
const PART: usize = 8 * 1024 * 1024;
/// so many at once.
const PARTS_AT_ONCE: usize = 4;

/// Path, size, `ETag`, version, and the time of the last change in microseconds since 1970.
type Meta = (String, u64, Option<String>, Option<String>, i64);
/// Metadata, the range that was sent, attributes of the user, and bytes, if they were wanted.
type Fetched = (Meta, (u64, u64), Vec<(String, String)>, Option<Py<PyBytes>>);
type Page = object_store::Result<Vec<Meta>>;

fn meta_of(meta: &ObjectMeta) -> Meta {
    let modified = meta.last_modified.timestamp_micros();
    (meta.location.to_string(), meta.size, meta.e_tag.clone(), meta.version.clone(), modified)
}

fn path_of(text: &str) -> PyResult<Path> {
    Path::parse(text).map_err(|error| raised(&error.into()))
}

fn raised(error: &object_store::Error) -> PyErr {
    use object_store::Error as Of;
    let kind = match error {
        Of::NotFound { .. } => "FileNotFoundError",
        Of::AlreadyExists { .. } => "AlreadyExistsError",
        Of::Precondition { .. } => "PreconditionError",
        Of::NotModified { .. } => "NotModifiedError",
        Of::NotSupported { .. } | Of::NotImplemented { .. } => "NotSupportedError",
        Of::PermissionDenied { .. } => "PermissionDeniedError",
        Of::Unauthenticated { .. } => "UnauthenticatedError",
        Of::InvalidPath { .. } => "InvalidPathError",
        _ => "GenericError",
    };
    RequestError::new_err((kind, format!("{error}\n\nDebug source:\n{error:#?}")))
}

/// Wait for what a task of the runtime comes to. Ctrl-C gives it up.
fn waited<T: Send + 'static>(py: Python<'_>, task: impl Future<Output = T> + Send + 'static) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    let runtime = runtime().map_err(|error| refused(&error))?;
    py.detach(move || {
        let running = runtime.spawn(async move {
            let _ = sender.send(task.await);
        });
        loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = asked() {
                        running.abort();
                        return Err(interrupted(error));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(unknown("a request that has ended without an answer"));
                }
            }
        }
    })
}

/// The values of a store.
#[pyclass(frozen, module = "omnizarr._native")]
pub struct Objects(Arc<Client>);

impl Objects {
    fn ask<T, F>(&self, py: Python<'_>, request: impl FnOnce(Arc<Live>) -> F) -> PyResult<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let live = self.0.live().map_err(|error| refused(&error))?;
        let (gate, task) = (Arc::clone(&live.gate), request(live));
        let answer = waited(py, async move {
            let _permit = gate.pass().await;
            task.await
        })?;
        answer.map_err(|error| raised(&error))
    }
}

#[pymethods]
impl Objects {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
    fn new(client: PyRef<'_, PyClient>) -> Self {
        Self(Arc::clone(client.client()))
    }

    /// Fetch a value, or a range of it: first and end, only the first, or only how many at the end. No bytes are received
    /// with `is_head`, nor if there are more than `most`.
    #[allow(clippy::too_many_arguments)] // they have names in Python
    #[pyo3(signature = (path, span=None, if_match=None, if_none_match=None, is_head=false, most=u64::MAX))]
    fn get(
        &self,
        py: Python<'_>,
        path: &str,
        span: Option<(Option<u64>, Option<u64>)>,
        if_match: Option<String>,
        if_none_match: Option<String>,
        is_head: bool,
        most: u64,
    ) -> PyResult<Fetched> {
        let path = path_of(path)?;
        let range = match span {
            Some((Some(start), Some(stop))) => Some(GetRange::Bounded(start..stop)),
            Some((Some(start), None)) => Some(GetRange::Offset(start)),
            Some((None, Some(count))) => Some(GetRange::Suffix(count)),
            _ => None,
        };
        let options = GetOptions { range, if_match, if_none_match, head: is_head, ..GetOptions::default() };
        let (meta, range, attributes, bytes) = self.ask(py, |live| async move {
            let result = live.store.get_opts(&path, options).await?;
            let (meta, range, attributes) = (meta_of(&result.meta), result.range.clone(), result.attributes.clone());
            let length = range.end.saturating_sub(range.start);
            let bytes = if is_head || length > most { None } else { Some(body(result, length).await?) };
            Ok((meta, range, attributes, bytes))
        })?;
        let own = attributes.iter().filter_map(|(name, value)| match name {
            Attribute::Metadata(name) => Some((name.to_string(), value.to_string())),
            _ => None,
        });
        let bytes = match bytes {
            None => None,
            Some(Some(bytes)) => Some(PyBytes::new(py, &bytes).unbind()),
            Some(None) => {
                let text = "the answer is shorter or longer than announced";
                return Err(RequestError::new_err(("GenericError", text)));
            }
        };
        Ok((meta, (range.start, range.end), own.collect(), bytes))
    }

    /// Store a value: if there is none with `creates`, if it is the version `of`, or in any case. Return its `ETag` and version.
    #[pyo3(signature = (path, data, creates=false, of=None, attributes=Vec::new()))]
    fn put(
        &self,
        py: Python<'_>,
        path: &str,
        data: &[u8],
        creates: bool,
        of: Option<(Option<String>, Option<String>)>,
        attributes: Vec<(String, String)>,
    ) -> PyResult<(Option<String>, Option<String>)> {
        let path = path_of(path)?;
        let data = Bytes::copy_from_slice(data);
        let mut own = Attributes::new();
        for (name, value) in attributes {
            own.insert(Attribute::Metadata(name.into()), AttributeValue::from(value));
        }
        let is_plain = !creates && of.is_none();
        let mode = match of {
            Some((e_tag, version)) => PutMode::Update(UpdateVersion { e_tag, version }),
            None if creates => PutMode::Create,
            None => PutMode::Overwrite,
        };
        let stored: PutResult = self.ask(py, |live| async move {
            if is_plain && data.len() > LARGEST_WHOLE {
                let mut upload = WriteMultipart::new_with_chunk_size(live.store.put_multipart(&path).await?, PART);
                for start in (0..data.len()).step_by(PART) {
                    if let Err(error) = upload.wait_for_capacity(PARTS_AT_ONCE - 1).await {
                        let _ = upload.abort().await; // so that no parts stay
                        return Err(error);
                    }
                    upload.put(data.slice(start..data.len().min(start + PART)));
                }
                return upload.finish().await;
            }
            let options = PutOptions { mode, attributes: own, ..PutOptions::default() };
            live.store.put_opts(&path, data.into(), options).await
        })?;
        Ok((stored.e_tag, stored.version))
    }

    /// Delete values.
    #[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
    fn delete(&self, py: Python<'_>, paths: Vec<String>) -> PyResult<()> {
        let paths = paths.iter().map(|path| path_of(path)).collect::<PyResult<Vec<_>>>()?;
        self.ask(py, |live| async move {
            let paths = futures_util::stream::iter(paths.into_iter().map(Ok)).boxed();
            live.store.delete_stream(paths).try_for_each(|_| async { Ok(()) }).await
        })
    }

    /// Make another value with the same bytes.
    fn copy(&self, py: Python<'_>, path: &str, target: &str) -> PyResult<()> {
        let (path, target) = (path_of(path)?, path_of(target)?);
        self.ask(py, |live| async move { live.store.copy(&path, &target).await })
    }

    /// What is directly below a prefix: values, and prefixes.
    fn list_below(&self, py: Python<'_>, prefix: &str, seconds: f64) -> PyResult<(Vec<Meta>, Vec<String>)> {
        let prefix = path_of(prefix)?;
        let limit = Duration::try_from_secs_f64(seconds).map_err(|_| unknown("a time that cannot be"))?;
        let found = self.ask(py, |live| async move {
            Ok(tokio::time::timeout(limit, live.store.list_with_delimiter(Some(&prefix))).await)
        })?;
        let found = found.map_err(|_| PyTimeoutError::new_err("the listing"))?.map_err(|error| raised(&error))?;
        let below = found.common_prefixes.iter().map(ToString::to_string).collect();
        Ok((found.objects.iter().map(meta_of).collect(), below))
    }

    /// All values below a prefix, page by page.
    fn list(&self, prefix: &str) -> PyResult<Pages> {
        let prefix = path_of(prefix)?;
        let live = self.0.live().map_err(|error| refused(&error))?;
        let (sender, receiver) = channel(1);
        runtime().map_err(|error| refused(&error))?.spawn(async move {
            let mut values = live.store.list(Some(&prefix));
            let mut page = Vec::new();
            while let Some(value) = values.next().await {
                match value {
                    Ok(meta) => page.push(meta_of(&meta)),
                    Err(error) => {
                        let _ = sender.send(Err(error)).await;
                        return;
                    }
                }
                if page.len() == PAGE && sender.send(Ok(std::mem::take(&mut page))).await.is_err() {
                    return; // the iterator was dropped
                }
            }
            if !page.is_empty() {
                let _ = sender.send(Ok(page)).await;
            }
        });
        Ok(Pages(Arc::new(Mutex::new(receiver))))
    }
}

/// Pages of a listing, which are fetched as they are taken.
#[pyclass(frozen, module = "omnizarr._native")]
pub struct Pages(Arc<Mutex<Receiver<Page>>>);

#[pymethods]
impl Pages {
    /// The next page; None after the last.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Vec<Meta>>> {
        let pages = Arc::clone(&self.0);
        let page = waited(py, async move { pages.lock().await.recv().await })?;
        page.transpose().map_err(|error| raised(&error))
    }
}

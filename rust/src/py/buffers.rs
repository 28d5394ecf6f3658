//! Single buffers that are encoded and decoded for the engine in Python, which has no compressors of its own.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::{PyMemory, arguments, described, unknown};
use crate::codecs::{Codec, bind, checksums};
use crate::error::Error;

/// What libraries in Python raise for data that is broken.
fn failed(error: &Error) -> PyErr {
    PyRuntimeError::new_err(error.message.clone())
}

fn codec_of(description: &Bound<'_, PyAny>) -> PyResult<Box<dyn Codec>> {
    let (name, values) = described(description)?;
    bind::codec(&name, &arguments(&values, 1)?).map_err(|error| failed(&error))
}

/// Return the hash lookup3 of `data`.
#[pyfunction]
pub fn lookup3(data: &[u8]) -> u32 {
    checksums::lookup3(data)
}

/// Return what frames of Zstandard hold that were compressed with a dictionary: at most `limit` bytes.
#[pyfunction]
pub fn zstd_by<'py>(py: Python<'py>, dictionary: &[u8], data: &[u8], limit: usize) -> PyResult<Bound<'py, PyBytes>> {
    let found = crate::codecs::zstd::decompress_by(dictionary, data, limit).map_err(|error| failed(&error))?;
    Ok(PyBytes::new(py, &found))
}

/// Return the encoded form of `data`.
#[pyfunction]
pub fn encode<'py>(
    py: Python<'py>,
    description: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (codec, data) = (codec_of(description)?, PyMemory::of(data)?);
    let mut out = Vec::new();
    py.detach(|| codec.encode(&data, &mut out)).map_err(|error| failed(&error))?;
    Ok(PyBytes::new(py, &out))
}

/// Return the decoded form of `data`, of at most `limit` bytes.
#[pyfunction]
pub fn decode<'py>(
    py: Python<'py>,
    description: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
    limit: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let (codec, data) = (codec_of(description)?, PyMemory::of(data)?);
    let mut out = Vec::new();
    py.detach(|| codec.decode_any(&data, limit, &mut out)).map_err(|error| failed(&error))?;
    Ok(PyBytes::new(py, &out))
}

/// Fill `out` with the decoded form of `data`.
#[pyfunction]
pub fn decode_into(
    py: Python<'_>,
    description: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (codec, data) = (codec_of(description)?, PyMemory::of(data)?);
    let buffer = PyBuffer::<u8>::get(out)?;
    if buffer.readonly() || !buffer.is_c_contiguous() {
        return Err(unknown("memory that cannot be filled"));
    }
    let size = buffer.len_bytes();
    let out: &mut [u8] = if size == 0 {
        &mut []
    } else {
        // SAFETY: the buffer is held, contiguous, of single bytes, and writable; callers share it with no other thread.
        unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), size) }
    };
    py.detach(|| codec.decode(&data, out)).map_err(|error| failed(&error))
}

const PREFIX: usize = 4;

fn prefix_of(data: &[u8], at: usize) -> Option<usize> {
    let bytes = data.get(at..)?.first_chunk::<PREFIX>()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

/// Return the items of a value of `vlen-utf8` or `vlen-bytes`.
///
/// Raises `ValueError` if they are cut off, or are not text.
#[pyfunction]
pub fn split<'py>(py: Python<'py>, data: &Bound<'py, PyAny>, is_text: bool) -> PyResult<Bound<'py, PyList>> {
    let cut_off = || PyValueError::new_err("the items are cut off");
    let data = PyMemory::of(data)?;
    let count = prefix_of(&data, 0).ok_or_else(cut_off)?;
    let (found, mut at) = (PyList::empty(py), PREFIX);
    for _ in 0..count {
        let size = prefix_of(&data, at).ok_or_else(cut_off)?;
        let item = data.get(at + PREFIX..).and_then(|rest| rest.get(..size)).ok_or_else(cut_off)?;
        if is_text {
            found.append(PyString::from_bytes(py, item)?)?;
        } else {
            found.append(PyBytes::new(py, item))?;
        }
        at += PREFIX + size;
    }
    Ok(found)
}

/// Return the value of `vlen-utf8` or `vlen-bytes` that has these items.
///
/// Raises `TypeError` for an item of another type.
#[pyfunction]
pub fn join<'py>(items: &Bound<'py, PyList>, is_text: bool) -> PyResult<Bound<'py, PyBytes>> {
    let too_large = |_| PyValueError::new_err("too many items, or one that is too large");
    let add = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend_from_slice(&u32::try_from(bytes.len()).map_err(too_large)?.to_le_bytes());
        out.extend_from_slice(bytes);
        PyResult::Ok(())
    };
    let another = || PyTypeError::new_err("an item of another type");
    let mut out = Vec::with_capacity(PREFIX * (1 + items.len()));
    out.extend_from_slice(&u32::try_from(items.len()).map_err(too_large)?.to_le_bytes());
    for item in items.iter() {
        if is_text {
            add(&mut out, item.cast::<PyString>().map_err(|_| another())?.to_str()?.as_bytes())?;
        } else {
            add(&mut out, item.cast::<PyBytes>().map_err(|_| another())?.as_bytes())?;
        }
    }
    Ok(PyBytes::new(items.py(), &out))
}

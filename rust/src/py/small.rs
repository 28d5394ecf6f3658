//! The calls of `files/small.rs`, for the store in Python (`omnizarr.stores.local.directory`).

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyBytes;

use super::PyMemory;
use crate::files::small::{self, Created};

/// Return the content of a small file; None if it is none; the number of an error of the system.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn read_small(py: Python<'_>, path: PathBuf) -> PyResult<Option<Bound<'_, PyAny>>> {
    match py.detach(|| small::read(&path)) {
        Ok(data) => Ok(data.map(|data| PyBytes::new(py, &data).into_any())),
        Err(error) => Ok(Some(error.raw_os_error().into_pyobject(py)?.into_any())),
    }
}

/// Return the positions of those names that are files in a directory; None if it is none.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn present(py: Python<'_>, folder: PathBuf, names: Vec<PyBackedStr>) -> Option<Vec<usize>> {
    py.detach(|| small::present(&folder, &names))
}

/// Make a directory and its first file. Return "": the directory cannot be made; "directory": only that was made; "set":
/// the file is there; "alone": and nothing else was there.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn create_with(py: Python<'_>, folder: PathBuf, name: &str, data: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    let data = PyMemory::of(data)?;
    Ok(match py.detach(|| small::create(&folder, name, &data)) {
        Created::Nothing => "",
        Created::Directory => "directory",
        Created::File => "set",
        Created::Alone => "alone",
    })
}

//! The calls of `files/small.rs`, for the store in Python (`omnizarr.stores.local.directory`).

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyBytes;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::PyMemory;
use crate::files::removal::{self, Stopped};
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

/// Return parts of an open file, by start and length: shorter ones where it ends, or where reading stopped.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn read_spans(py: Python<'_>, file: i32, spans: Vec<(u64, usize)>) -> PyResult<Vec<Bound<'_, PyBytes>>> {
    // SAFETY: the caller holds the file open.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    let parts = py.detach(|| small::spans(file, &spans)).map_err(failure)?;
    Ok(parts.iter().map(|part| PyBytes::new(py, part)).collect())
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

/// Open what an absolute path names, with no link on the way, and return the descriptor.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn open_beneath(py: Python<'_>, path: PathBuf, flags: u32) -> PyResult<i32> {
    let flags = OFlags::from_bits_retain(flags);
    let opened = py.detach(|| crate::files::open(path.as_os_str().as_bytes(), flags));
    opened.map(IntoRawFd::into_raw_fd).map_err(failure)
}

/// Write a file in a directory, in the place of another or only if the name is free.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn set_file(py: Python<'_>, folder: PathBuf, name: &str, data: &Bound<'_, PyAny>, replaces: bool) -> PyResult<()> {
    let data = PyMemory::of(data)?;
    py.detach(|| small::set(&folder, name, &data, replaces)).map_err(failure)
}

/// Remove a file, and directories that are empty then. Return how many these are; None if there is no such file.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn delete_file(py: Python<'_>, root: PathBuf, parent: &str, name: &str) -> PyResult<Option<usize>> {
    py.detach(|| small::delete(&root, parent, name)).map_err(failure)
}

/// Remove the files of some keys, and directories that are empty then. Return how many keys were looked at, before one that
/// needs a closer look, and which directories are gone.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn delete_files(py: Python<'_>, root: PathBuf, keys: Vec<PyBackedStr>) -> PyResult<(usize, Vec<String>)> {
    py.detach(|| small::delete_many(&root, &keys, &super::asked)).map_err(super::interrupted)
}

/// Keys of files, their sizes, and directories.
type Listed = (Vec<String>, Vec<u64>, Vec<String>);

/// List a directory: the keys of its files with `prefix` before their names, their sizes if asked for, and directories.
/// None if something in it needs a closer look.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn members(py: Python<'_>, folder: PathBuf, prefix: &str, sizes: bool) -> PyResult<Option<Listed>> {
    let found = py.detach(|| small::members(&folder, prefix, sizes, &super::asked)).map_err(super::interrupted)?;
    Ok(found.map(|found| (found.files, found.sizes, found.folders)))
}

/// Remove the directory `name` in `parent` below a root, with everything in it, and directories above that are empty then.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn delete_tree(py: Python<'_>, root: PathBuf, parent: &str, name: &str) -> PyResult<()> {
    py.detach(|| removal::delete(&root, parent, name, &super::asked)).map_err(stopped)
}

/// Remove the directory `name` of a node in `parent` below a root, under its lock. Return False if it is to be done in steps.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn delete_node(py: Python<'_>, root: PathBuf, parent: &str, name: &str, lock: &str, whole: bool) -> PyResult<bool> {
    py.detach(|| removal::delete_node(&root, (parent, name), lock, whole, &super::asked)).map_err(stopped)
}

/// Remove a directory in an open one, with everything in it; without a name, everything in the open one.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it made
pub fn remove_tree(py: Python<'_>, folder: i32, name: Option<PathBuf>) -> PyResult<()> {
    // SAFETY: the caller holds the directory open.
    let folder = unsafe { BorrowedFd::borrow_raw(folder) };
    let done = py.detach(|| match &name {
        Some(name) => removal::remove_tree(folder, name.as_os_str().as_bytes(), &super::asked),
        None => removal::clear(folder, &super::asked),
    });
    done.map_err(stopped)
}

/// The exception for a removal that stopped, with the path below the directory that was given.
fn stopped(stopped: Stopped) -> PyErr {
    match stopped {
        Stopped::System(error, path) => {
            let number = error.raw_os_error();
            PyOSError::new_err((number, nix::errno::Errno::from_raw(number).desc(), OsString::from_vec(path)))
        }
        Stopped::Asked(error) => super::interrupted(error),
    }
}

/// The exception for an error of the system, with its number and its words.
fn failure(error: Errno) -> PyErr {
    let number = error.raw_os_error();
    PyOSError::new_err((number, nix::errno::Errno::from_raw(number).desc()))
}

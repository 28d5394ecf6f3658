//! Documents as text, for `omnizarr.formats.scanning`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::json;

/// Begin and end of an object, the names of its members, and for each begin and end of its name and of its value.
type Found<'py> = (usize, usize, Bound<'py, PyList>, Bound<'py, PyBytes>);

/// Whether a text is an ordinary document: see `crate::json`.
#[pyfunction]
pub fn is_plain_json(text: &[u8]) -> bool {
    json::is_plain(text)
}

/// Return where the members of an object in a text are; None if the text is unusual, or has no such object.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub fn json_members<'py>(py: Python<'py>, text: &[u8], path: Vec<String>) -> PyResult<Option<Found<'py>>> {
    let path: Vec<&[u8]> = path.iter().map(String::as_bytes).collect();
    let Some(object) = json::object_at(text, &path) else { return Ok(None) };
    let mut bounds = Vec::with_capacity(object.members.len() * 32);
    for member in &object.members {
        for bound in [member.name.start, member.name.end, member.value.start, member.value.end] {
            bounds.extend_from_slice(&(bound as u64).to_ne_bytes());
        }
    }
    let mut names = Vec::with_capacity(object.members.len());
    for member in &object.members {
        names.push(PyString::from_bytes(py, &text[member.name.start + 1..member.name.end - 1])?);
    }
    Ok(Some((object.place.start, object.place.end, PyList::new(py, names)?, PyBytes::new(py, &bounds))))
}

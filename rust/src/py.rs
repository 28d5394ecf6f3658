//! The module `omnizarr._native`: the only place that knows Python.

use pyo3::prelude::*;

/// The native engine of omnizarr.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

"""netCDF4-python's own tests, with `omnizarr.netcdf` under the name netCDF4, and with netCDF4 itself on NCZarr.

Names of files mean Zarr directories in both. Tests that do not apply to them are apart.
"""

from __future__ import annotations

from tests.downstream.suite import Suite

_TYPES = "types that a program defines (compound, enum, vlen): NCZarr has none"
_MEMORY = "a file of HDF5 or netCDF-3 in memory"
_FORMATS = "a format of files other than netCDF-4"
_PROGRAMS = "the programs of the package, which convert files of netCDF-3"
_HDF5 = "how HDF5 aligns what is in a file"
_NETWORK = "what netCDF-C does in a network: OPeNDAP, .ncrc"
_PRIVATE = "functions of the package's own: netCDF4.utils"

_APART = {
    _TYPES: (
        "test_complex.py::*",
        "test_compound_alignment.py::*",
        "test_compoundatt.py::*",
        "test_compoundvar.py::*",
        "test_enum.py::*",
        "test_vlen.py::VariablesTestCase::*",
        "test_vlen.py::TestObjectArrayIndexing::*",
        "test_vlen.py::VlenAppendTestCase::*",
        "test_vlen.py::Vlen_ScaledInts::*",
    ),
    _MEMORY: ("test_create_mem.py::*", "test_diskless.py::*", "test_open_mem.py::*"),
    _FORMATS: ("test_cdf5.py::*",),
    _PROGRAMS: ("test_cli.py::*",),
    _HDF5: ("test_alignment.py::*",),
    _NETWORK: ("test_dap.py::*", "test_ncrc.py::*"),
    _PRIVATE: ("test_utils.py::*",),
}

KNOWN = {
    "test_atts.py::*::test_numeric_attribute_byte_order": (
        "expects that attributes in files of netCDF-3 are not int64; there are no such files here"
    ),
    "test_atts.py::*::test_unsupported_numeric_attributes": "an attribute may be boolean here: it becomes a byte",
    "test_cdl.py::*::test_tocdl": "expects the special attributes of a file of netCDF-3; those of Zarr are others",
    "test_empty_indexing.py::*::test_multifile_selected_*": (
        "where a list selects records of datasets that are decoded to several types, values keep their digits here; "
        "netCDF4-python casts them to the type of the last record"
    ),
    "test_masked2.py::*": "stores a number that does not fit int16: an error here; netCDF4-python wraps it around",
    "test_no_iter_contains.py::*::test_no_contains": "`name in dataset` tells here whether it is there",
    "test_types.py::*": "stores numbers as characters, of which netCDF4-python keeps the first digit; an error here",
}
"""Differences of `omnizarr.netcdf` from netCDF4-python."""

_BY_TEST = {test: reason for reason, tests in _APART.items() for test in tests}

SUITES = (
    Suite(
        "netCDF4-python, netCDF4 is itself on NCZarr",
        "netCDF4",
        ("test",),
        plugin="netcdf4_on_nczarr",
        known={"*": "netCDF4-python and netCDF-C, for comparison"},
        apart=_BY_TEST,
    ),
    Suite(
        "netCDF4-python, netCDF4 is omnizarr.netcdf",
        "netCDF4",
        ("test",),
        plugin="named_netcdf4",
        known=KNOWN,
        apart=_BY_TEST,
    ),
)

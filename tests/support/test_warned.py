"""Warnings name the line of the program, wherever in the library they come from."""

import ast
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.netcdf import Dataset
from omnizarr.stores import MemoryStore
from omnizarr.support import warned
from tests.fakes import FaultyStore, UnlistableStore

pytestmark = pytest.mark.rules

SOURCE = Path(inspect.getfile(omnizarr)).parent


def test_no_other_module_gives_warnings_of_its_own():
    """`warnings.warn` counts functions, of which there are more or fewer with each change."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in {"warn", "warn_explicit"}:
                found.add(path.relative_to(SOURCE).as_posix())
    assert found == {"support/warned.py"}


def gone(values):
    root = omnizarr.create_group(values, zarr_format=2)
    root["g/a"] = np.arange(3.0)
    omnizarr.consolidate_metadata(values)
    for key in [key for key in values if key.startswith("g/a/")]:
        del values[key]
    return values


def read_gone(store):
    return omnizarr.open_group(store, mode="r")["g/a"][:]


def broken_copies():
    values = {}
    omnizarr.create_group(values, zarr_format=2)
    values[".zmetadata"] = b"{"
    return list(omnizarr.open_group(values).members())


def copies_of_other_formats():
    values = {}
    root = omnizarr.create_group(values, zarr_format=2)
    omnizarr.create_group(MemoryStore(values), path="b", zarr_format=3)
    assert root.zarr_format == 2
    omnizarr.consolidate_metadata(values, zarr_format=2)


def bad_scale():
    with Dataset("x.zarr", "w", memory=None) as dataset:
        dataset.createDimension("x", 2)
        variable = dataset.createVariable("v", "f4", ("x",))
        variable.scale_factor = "two"
        return variable[:]


CASES = {
    "gone": lambda: read_gone(gone({})),
    "gone, far": lambda: read_gone(FaultyStore(MemoryStore(gone({})), concurrency=8)),
    "gone, and not listed": lambda: read_gone(UnlistableStore(MemoryStore(gone({})))),
    "broken copies": broken_copies,
    "copies of other formats": copies_of_other_formats,
    "bad scale": bad_scale,
    "ignored": lambda: omnizarr.open_group(gone({}), meta_array=np.zeros(1)),
    "context": lambda: warned.warn("here"),
}


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_a_warning_names_the_line_of_the_caller(name, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with omnizarr.config.set({"engine": engine}), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        CASES[name]()
    assert found
    assert {each.filename for each in found} == {__file__}


def test_hierarchies_that_have_only_consolidated_documents_are_no_reason_to_warn():
    values = gone({})
    store = UnlistableStore(MemoryStore({".zmetadata": values[".zmetadata"]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not read_gone(store).any()


@pytest.mark.parametrize("filename", ["<string>", "/opt/program.py"])
def test_the_program_may_be_anything(filename):
    code = compile("warn('x')", filename, "exec")
    with pytest.warns(UserWarning, match="x") as found:
        exec(code, {"warn": warned.warn, "__name__": "__main__"})
    assert found[0].filename == filename

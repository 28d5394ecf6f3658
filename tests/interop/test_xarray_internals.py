"""What omnizarr uses of xarray without its being public is there, means what it did, and needs no zarr-python."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from omnizarr.interop.xarray import internals

FOLDER = Path(internals.__file__).parent


def test_private_names_are_imported_in_one_place():
    private = re.compile(r"(from|import) xarray\.(core|backends\.\w|coding|namedarray)|xarray\S* import _")
    others = [path for path in FOLDER.glob("*.py") if path.name not in ("internals.py", "backend.py")]
    assert others
    assert not [path.name for path in others if private.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (internals.choose_mode, {"mode", "append_dim", "region"}),
        (internals.dump_to_store, {"dataset", "store", "encoding"}),
        (internals.extract_zarr_variable_encoding, {"variable", "raise_on_invalid", "name", "zarr_format"}),
        (internals.grid_rechunk, {"v", "enc_chunks", "region"}),
        (
            internals.validate_grid_chunks_alignment,
            {"nd_v_chunks", "enc_chunks", "region", "allow_partial_chunks", "name", "backend_shape"},
        ),
        (internals.validate_and_transpose, {"var_name", "new_var", "existing_var", "region", "append_dim"}),
        (internals.validate_data_types, {"vname", "existing_var", "new_var"}),
        (internals.ArrayWriter.add, {"source", "target", "region"}),
        (internals.ArrayWriter.sync, {"compute", "chunkmanager_store_kwargs"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_functions_take_what_they_are_given(function, names):
    assert names <= set(inspect.signature(function).parameters)


def test_masks_are_encoded_as_they_were():
    assert internals.FillValueCoder.encode(-9.0, np.dtype("f4")) == "AAAAAAAAIsA="


def test_inherited_methods_look_at_what_is_set():
    slots = xr.backends.ZarrStore.__slots__
    assert {"_mode", "_append_dim", "_write_region"} <= set(slots)


def test_the_engine_needs_nothing_of_xarray_that_only_new_releases_have(tmp_path):
    program = f"""
import sys
import omnizarr, xarray
vars(xarray.backends).pop("writers", None)  # releases before 2025.9 have none
sys.modules["xarray.backends.writers"] = None
from omnizarr.interop.xarray import OmnizarrBackendEntrypoint
place = {str(tmp_path / "a.zarr")!r}
omnizarr.create_group(place).create_array("a", data=[1, 2], dimension_names=["x"])
assert OmnizarrBackendEntrypoint().open_dataset(place).sizes["x"] == 2
try:
    xarray.Dataset().omnizarr.to_zarr({{}})
except omnizarr.errors.MissingDependencyError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert "expected 2025.9 or later" in done.stdout


def test_writing_and_reading_need_no_zarr_python(tmp_path):
    program = f"""
import sys
sys.modules["zarr"] = None
import numpy as np, xarray
import omnizarr.interop.xarray
data = xarray.Dataset({{"a": ("x", [1.5, 2.5]), "b": ("x", ["a", "b"])}}, coords={{"x": [1, 2]}})
place = {str(tmp_path / "a.zarr")!r}
data.omnizarr.to_zarr(place)
data.assign_coords(x=[3, 4]).omnizarr.to_zarr(place, append_dim="x")
data.omnizarr.to_zarr(place, region="auto")
assert xarray.open_dataset(place, engine="omnizarr").sizes["x"] == 4
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)

"""Names of dimensions are found wherever any program stored them."""

import asyncio
import json

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.model import dimensions

FORMATS = [1, 2, "3-draft2019", "3-draft2020", 3]
every_format = pytest.mark.parametrize("zarr_format", FORMATS)


def made(zarr_format=2, attributes=None, **options):
    return omnizarr.create_array(
        {}, shape=(3, 4), dtype="int16", fill_value=0, zarr_format=zarr_format, attributes=attributes, **options
    )


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_names_that_xarray_writes_are_reported(tmp_path, zarr_format):
    xarray = pytest.importorskip("xarray", reason="it writes the names")
    pytest.importorskip("zarr", reason="xarray writes through it")
    written = xarray.Dataset({"t": (("y", "x"), np.zeros((2, 3)))}, coords={"x": [1, 2, 3]})
    written.to_zarr(tmp_path / "x.zarr", zarr_format=zarr_format, consolidated=False)
    group = omnizarr.open_group(tmp_path / "x.zarr")
    assert {name: array.dimension_names for name, array in group.arrays()} == {"t": ("y", "x"), "x": ("x",)}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_finds_the_names_on_the_array_itself(zarr_format):
    backend = pytest.importorskip("xarray.backends.zarr", reason="it looks for names")
    options = {"dimension_names": ["y", "x"]} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["y", "x"]}}
    names, _ = backend._get_zarr_dims_and_attrs(made(zarr_format, **options), "_ARRAY_DIMENSIONS", try_nczarr=False)
    assert tuple(names) == ("y", "x")


@pytest.mark.parametrize("mode", ["nczarr", "zarr", "nczarr,noxarray"])
def test_names_that_netcdf_c_writes_are_reported(tmp_path, mode):
    netcdf = pytest.importorskip("netCDF4", reason="it writes the names")
    url = f"file://{tmp_path}/n.zarr#mode={mode},file"
    with netcdf.Dataset(url, "w") as dataset:
        dataset.createDimension("y", 3)
        dataset.createDimension("x", 4)
        dataset.createVariable("v", "i4", ("y", "x"))[:] = 1
    (path,) = (tmp_path / "n.zarr").glob("**/v/.zarray")
    stored = path.read_text() + path.with_name(".zattrs").read_text()
    names = omnizarr.open_array(path.parent).dimension_names
    # With noxarray, some releases leave out their own marks as well.
    assert names == (("y", "x") if '"/y"' in stored or '"y"' in stored else None)


@every_format
def test_names_in_the_attribute_of_xarray_are_reported(zarr_format):
    assert made(zarr_format, {"_ARRAY_DIMENSIONS": ["y", "x"]}).dimension_names == ("y", "x")
    assert made(zarr_format).dimension_names is None


@pytest.mark.parametrize("is_attribute", [True, False])
@pytest.mark.parametrize("key", ["_nczarr_array", "_NCZARR_ARRAY"])
@pytest.mark.parametrize("member", ["dimension_references", "dimrefs"])
def test_names_in_the_marks_of_nczarr_are_reported_without_their_groups(is_attribute, key, member):
    array = made(attributes={"units": "K"})
    document = ".zattrs" if is_attribute else ".zarray"
    values = json.loads(array.store.get(document))
    array.store.set(document, json.dumps({**values, key: {member: ["/y", "/sea/x"], "storage": "chunked"}}).encode())
    assert omnizarr.open_array(array.store).dimension_names == ("y", "x")


def test_member_of_v3_wins_over_the_attribute():
    array = made(3, {"_ARRAY_DIMENSIONS": ["b", "a"]}, dimension_names=["y", None])
    assert array.dimension_names == ("y", None)


def test_attribute_wins_over_the_marks_of_nczarr():
    array = made(2, {"_ARRAY_DIMENSIONS": ["y", "x"], "_nczarr_array": {"dimension_references": ["/b", "/a"]}})
    assert array.dimension_names == ("y", "x")


@every_format
@pytest.mark.parametrize(
    "names", [[], ["x"], ["y", "x", "t"], ["y", None], ["y", 1], "yx", {"y": 3, "x": 4}, None, 7, [[], {}]]
)
def test_names_that_do_not_fit_are_none(zarr_format, names):
    marks = [
        {"_ARRAY_DIMENSIONS": names},
        {"_nczarr_array": {"dimension_references": names}},
        {"_nczarr_array": names},
        {"_NCZARR_ARRAY": {"dimrefs": names}},
    ]
    for attributes in marks:
        assert made(zarr_format, attributes).dimension_names is None


def test_names_that_do_not_fit_hide_no_others():
    array = made(2, {"_ARRAY_DIMENSIONS": "yx", "_nczarr_array": {"dimension_references": ["/y", "/x"]}})
    assert array.dimension_names == ("y", "x")


def test_array_without_dimensions_has_no_names_or_none_at_all():
    array = omnizarr.create_array({}, shape=(), dtype="i2", zarr_format=2, attributes={"_ARRAY_DIMENSIONS": []})
    assert array.dimension_names == ()


@every_format
def test_awaited_array_tells_the_same_names(zarr_format):
    array = made(zarr_format, {"_ARRAY_DIMENSIONS": ["y", "x"]})
    found = asyncio.run(aio.open_array(array.store, zarr_format=zarr_format))
    assert found.dimension_names == ("y", "x")
    assert hasattr(found.metadata, "dimension_names") == (zarr_format == 3)


def test_names_follow_the_attribute():
    array = made()
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    assert array.dimension_names == ("y", "x")
    del array.attrs["_ARRAY_DIMENSIONS"]
    assert array.dimension_names is None


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_array_like_a_named_one_can_be_created(zarr_format):
    options = {"dimension_names": ["y", "x"]} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["y", "x"]}}
    like = omnizarr.zeros_like(made(zarr_format, **options), store={})
    assert (like.shape, like.zarr_format) == ((3, 4), zarr_format)
    assert like.dimension_names == (("y", "x") if zarr_format == 3 else None)


def test_names_that_a_format_has_no_place_for_are_refused_as_by_zarr_python():
    zarr = pytest.importorskip("zarr", reason="it refuses them")
    for library in (zarr, omnizarr):
        with pytest.raises(ValueError, match="dimension"):
            library.create_array({}, shape=(3,), dtype="i2", zarr_format=2, dimension_names=["x"])


def test_names_of_a_model_are_those_of_its_array():
    array = made(2, {"_ARRAY_DIMENSIONS": ["y", "x"]})
    assert dimensions.names_of(array._state.metadata) == array.dimension_names

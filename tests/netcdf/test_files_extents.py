"""Elements that a netCDF-4 file does not store, and headers that netCDF-C misreads; h5py says what is expected."""

import itertools
from functools import partial

import h5py
import netCDF4
import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.netcdf import files
from omnizarr.netcdf.files import writing

TYPES = ["i1", "u2", "i4", "f4", "f8", "i8", "S1", "str"]
SHAPES = {"x": [(3,), (7,), (0,)], "xy": [(2, 5), (4, 3), (0, 0), (0, 3)], "xyz": [(2, 5, 3), (1, 1, 3)]}


def fill_of(kind, dataset):
    """What stands beyond the end of a dataset, as netCDF-C defines it."""
    if kind == "str":
        return ""
    return b"\0" if kind == "S1" else np.dtype(kind).type(netCDF4.default_fillvals[np.dtype(kind).str[1:]])


def values_of(kind, shape):
    numbers = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)
    if kind == "S1":
        return (numbers % 26 + 65).astype("u1").view("S1")
    if kind != "str":
        return numbers.astype(kind)
    texts = np.empty(shape, object)
    texts.reshape(-1)[:] = [f"text {each}" for each in numbers.ravel()]
    return texts


@pytest.fixture(scope="module", params=["filled", "nofill"])
def growing(request, tmp_path_factory):
    """A file of unlimited dimensions, in which each variable has another length."""
    path = tmp_path_factory.mktemp("growing") / "growing.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for name, size in {"x": None, "y": None, "z": 3}.items():
            ds.createDimension(name, size)
        for kind, (axes, shapes) in itertools.product(TYPES, SHAPES.items()):
            for number, shape in enumerate(shapes):
                can_unfill = request.param == "nofill" and kind not in {"str", "S1"}
                made = ds.createVariable(
                    f"{kind}_{axes}_{number}",
                    str if kind == "str" else kind,
                    tuple(axes),
                    chunksizes=[2] * len(axes),
                    fill_value=False if can_unfill else None,
                )
                if 0 not in shape:
                    made[tuple(map(slice, shape))] = values_of(kind, shape)
        longest = ds.createVariable("longest", "i4", ("x", "y"), chunksizes=(2, 2))
        longest[8, 6] = 1
    return path


def expected_of(path):
    """All variables as their dimensions make them: what h5py reads, and fill values beyond."""
    found = {}
    with h5py.File(path) as file:
        for name, each in file.items():
            if name in {"x", "y", "z", "longest"}:
                continue
            kind, axes, number = name.split("_")
            stored = SHAPES[axes][int(number)]
            whole = np.full([{"x": 9, "y": 7, "z": 3}[axis] for axis in axes], fill_of(kind, each))
            if kind == "str":
                whole = whole.astype(object)
            if 0 not in stored:
                part = tuple(map(slice, stored))
                whole[part] = each.asstr()[part] if kind == "str" else each[part]
            found[name] = whole
    return found


def test_elements_beyond_what_is_stored_are_fill_values(growing):
    whole = expected_of(growing)
    with files.open_file(growing) as source:
        sizes = source.root.sizes()
        for name, expected in whole.items():
            header = source.root.variables[name]
            read = source.read(f"/{name}", tuple(slice(0, sizes[each].size) for each in header.dimensions))
            assert read.shape == expected.shape
            assert (read == expected).all(), name


def test_parts_across_the_end_are_parts_of_the_whole(growing):
    whole = expected_of(growing)
    with files.open_file(growing) as source:
        for name, expected in whole.items():
            for start, stop in [(0, 1), (1, 4), (2, 3), (3, 7), (6, 7)]:
                selection = tuple(slice(min(start, size), min(stop, size)) for size in expected.shape)
                assert (source.read(f"/{name}", selection) == expected[selection]).all(), (name, selection)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_conversions_hold_fill_values_and_nothing_else_beyond_the_end(growing, tmp_path, zarr_format):
    done = omnizarr.convert(growing, tmp_path / "x.zarr", zarr_format=zarr_format)
    assert not done.losses
    with netcdf.Dataset(tmp_path / "x.zarr") as ds:
        for name, expected in expected_of(growing).items():
            ds[name].set_auto_mask(False)
            assert (ds[name][...] == expected).all(), name


@pytest.mark.parametrize("shape", [(None,), (None, 2), (None, None), (2,), ()])
@pytest.mark.parametrize("written", [None, 0, -1])
def test_strings_that_were_never_written_are_empty(tmp_path, shape, written):
    path = tmp_path / "strings.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for axis, size in enumerate(shape):
            ds.createDimension(f"d{axis}", size)
        names = [f"d{axis}" for axis in range(len(shape))]
        length = ds.createVariable("length", "i4", names)
        length[(3 if shape[:1] == (None,) else 1,) if len(shape) == 1 else (2, 1)[: len(shape)]] = 1
        whole = length[...].shape
        text = ds.createVariable("text", str, names)
        if written is not None and shape:
            text[tuple(size + written if written else 0 for size in whole)] = "here"
    expected = np.full(whole, "", object)
    if written is not None and shape:
        expected[tuple(size + written if written else 0 for size in whole)] = "here"
    omnizarr.convert(path, tmp_path / "x.zarr")
    with netcdf.Dataset(tmp_path / "x.zarr") as ds:
        assert np.asarray(ds["text"][...], object).tolist() == expected.tolist()


PROPERTIES = {
    "fixed, version 1": b"version=1|netcdflibversion=4.4.1|hdf5libversion=1.8.17",
    "fixed, version 2": b"version=2,netcdf=4.9.2,hdf5=1.14.2",
    "variable": "version=2,h5netcdf=1.3.0,hdf5=1.14.2,h5py=3.11.0",
    "vector": np.array([b"version=1"] * 3),
    "number": np.arange(500),
}


@pytest.fixture(params=PROPERTIES)
def provenance(request, tmp_path):
    path, given = tmp_path / "x.nc", PROPERTIES[request.param]
    with netCDF4.Dataset(path, "w") as ds:
        ds.createVariable("v", "i4")[...] = 1
    with h5py.File(path, "r+") as file:
        del file.attrs["_NCProperties"]
        if isinstance(given, bytes):  # as netCDF-C 4.4 to 4.6 wrote it: no NUL fits
            kind = h5py.h5t.C_S1.copy()
            kind.set_size(len(given))
            made = h5py.h5a.create(file.id, b"_NCProperties", kind, h5py.h5s.create(h5py.h5s.SCALAR))
            made.write(np.array(given), kind)
        else:
            file.attrs["_NCProperties"] = given
    return path, given


def test_provenance_is_read_if_it_is_one_text(provenance):
    path, given = provenance
    with files.open_file(path) as source:
        if isinstance(given, np.ndarray):
            assert source.read("/v", ()) == 1
            assert "_NCProperties" not in source.root.special
            assert [note.pointer for note in source.root.notes] == ["/attributes/_NCProperties"]
            return
        found = source.root.special["_NCProperties"].value
        assert source.read("/v", ()) == 1
    assert found == (given.decode() if isinstance(given, bytes) else given)


SPARSE = {"f4": (np.nan, -0.0), "f8": (-0.0, 0.0), "u2": (0, 7), "i8": (-1, 0)}
"""By type: the fill value, and a value that must not be taken for it."""


@pytest.mark.parametrize("unlimited", [False, True])
@pytest.mark.parametrize("kind", SPARSE)
def test_chunks_that_hold_only_the_fill_value_are_not_stored(tmp_path, monkeypatch, kind, unlimited):
    fill, other = (np.dtype(kind).type(each) for each in SPARSE[kind])
    values = np.full((6, 8), fill)
    values[2, 5] = other
    with netCDF4.Dataset(tmp_path / "full.nc", "w") as ds:
        ds.createDimension("y", None if unlimited else 6)
        ds.createDimension("x", 8)
        ds.createVariable("v", kind, ("y", "x"), chunksizes=(2, 4), fill_value=fill)[:] = values
        ds.createVariable("without", kind, ("y", "x"), chunksizes=(2, 4))[:] = np.zeros_like(values)
    monkeypatch.setattr(writing, "blocks", partial(writing.blocks, limit=1))
    with files.open_file(tmp_path / "full.nc") as source:
        assert files.write_file(tmp_path / "sparse.nc", source) == ()
    with h5py.File(tmp_path / "sparse.nc") as found:
        chunks = [found["v"].id.get_chunk_info(at).chunk_offset for at in range(found["v"].id.get_num_chunks())]
        assert found["without"].id.get_num_chunks() == 6
    assert chunks == [(2, 4), *([(4, 0), (4, 4)] if unlimited else [])]  # without its last chunks it would be shorter
    with netCDF4.Dataset(tmp_path / "sparse.nc") as ds:
        ds.set_auto_mask(False)
        assert ds["v"][:].tobytes() == values.tobytes()

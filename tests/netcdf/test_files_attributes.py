"""Attributes of HDF5 of all types, wherever they are: each is carried or reported. Expected values are h5py's."""

import h5py
import netCDF4
import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NotRepresentableError

INTEGERS = ("i1", "i2", "i8", "u1", "u2", "u4", "u8")
SHAPES = {
    "scalar": (),
    "one": (1,),
    "vector": (3,),
    "table": (2, 3),
    "cube": (1, 2, 1),
    "none": (0,),
    "no_rows": (0, 2),
}
PAIR = np.dtype([("a", "i4"), ("b", "f8"), ("c", "S3"), ("d", [("e", "u1")]), ("f", "i2", (2,))])

PLACES = ["/", "g", "v", "g/v"]
UNKNOWN = ("region", "long_double", "sequence_of_texts", "references_in_a_compound")
IN_SHORT = (
    *UNKNOWN,
    "b1_scalar",
    "i4_scalar",
    "i4_one",
    "i4_table",
    "texts_one",
    "c16_vector",
    "compound_one",
    "to_group",
)


def of_shape(dtype, shape):
    """Return values that differ, and need all bits of integers."""
    count = int(np.prod(shape))
    if dtype.kind in "iu":
        values = np.resize(np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, 1], dtype), count)
    elif dtype.kind == "c":
        values = np.arange(count) / 3 - 1j * np.arange(count)
    else:
        values = np.arange(count) / 3
    return values.astype(dtype).reshape(shape)


def numbers():
    every = ["i4", "f8", "f2", "?", "c16"]
    for dtype in [np.dtype(each) for each in (*every, *INTEGERS, "f4", "c8", ">i2", ">f4", ">c16")]:
        code = dtype.str.strip("<|").replace(">", "big_")
        for name in SHAPES if code in (*every, "b1") else ("scalar", "vector"):
            yield f"{code}_{name}", of_shape(dtype, SHAPES[name])
        yield f"{code}_null", h5py.Empty(dtype)
    yield "nan", np.array([np.nan, np.inf, -np.inf, -0.0])
    yield "nan_table", np.array([[np.nan, np.inf], [-np.inf, -0.0]], "f4")
    yield "nan_complex", np.complex64(complex(np.nan, -np.inf))


def texts():
    yield "text", "plain"
    yield "umlaut", "größe"
    yield "bytes", np.bytes_(b"fixed")
    yield "empty_text", ""
    yield "null_text", h5py.Empty(h5py.string_dtype())
    yield "null_bytes", h5py.Empty("S3")
    for name, shape in SHAPES.items():
        yield f"texts_{name}", np.array(np.full(shape, "né"), h5py.string_dtype())
        yield f"bytes_{name}", np.full(shape, b"abc", "S5")


def others(file):
    kinds = h5py.enum_dtype({"RED": 0, "GREEN": 200}, "u1")
    for name, shape in SHAPES.items():
        yield f"enum_{name}", np.full(shape, 200, kinds)
        yield f"compound_{name}", np.full(shape, np.array((1, np.pi, b"x", (7,), (8, 9)), PAIR), PAIR)
        yield f"opaque_{name}", np.full(shape, np.void(b"\0\xffz"), "V3")
        references = np.full(shape, None, h5py.ref_dtype)
        references[...] = file["g/v"].ref
        yield f"reference_{name}", references
        sequences = np.empty(shape, h5py.vlen_dtype("i2"))
        for index in np.ndindex(*shape):
            sequences[index] = np.arange(sum(index) + 2, dtype="i2")
        yield f"vlen_{name}", sequences
    yield "null_enum", h5py.Empty(kinds)
    yield "no_reference", h5py.Reference()
    yield "to_group", file["g"].ref
    yield "nan_compound", np.array((1, np.nan, b"", (0,), (2**15 - 1, -1)), PAIR)


def unknown(file):
    yield "region", file["g/v"].regionref[1:2]
    yield "long_double", np.longdouble(1) / 3
    texts = np.empty((), h5py.vlen_dtype(h5py.string_dtype()))
    texts[()] = np.array(["a", "b"], h5py.string_dtype())
    yield "sequence_of_texts", texts
    yield "references_in_a_compound", np.array((1, file.ref), [("a", "i4"), ("r", h5py.ref_dtype)])


def put(owner, attributes):
    for name, value in attributes:
        dtype = getattr(value, "dtype", None)
        if dtype is not None and h5py.check_vlen_dtype(dtype) and np.shape(value) == ():  # h5py makes a vector of it
            space, h5_type = h5py.h5s.create(h5py.h5s.SCALAR), h5py.h5t.py_create(dtype, logical=True)
            h5py.h5a.create(owner.id, name.encode(), h5_type, space).write(value)
        else:
            owner.attrs[name] = value


@pytest.fixture(scope="module", params=["h5py", "netcdf"])
def source(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("attributes") / "x.h5"
    if request.param == "netcdf":
        with netCDF4.Dataset(path, "w") as dataset:
            dataset.createDimension("x", 3)
            for group in (dataset, dataset.createGroup("g")):
                group.createVariable("v", "i4", ("x",))[:] = np.arange(3)
                group.createVariable("scalar", "i4")[...] = 1
    else:
        with h5py.File(path, "w") as file:
            for group in (file, file.create_group("g")):
                group["v"] = np.arange(3)
                group["scalar"] = 1
    with h5py.File(path, "r+") as file:
        for place in PLACES:
            every = [*numbers(), *texts(), *others(file), *unknown(file)]
            owner = file[place]
            put(owner, every if place.startswith("g") else [each for each in every if each[0] in IN_SHORT])
            if owner.name in ("/", "/g"):
                owner.attrs["CLASS"] = "GROUP"
    return path


def as_seen(file, value):
    """Return a value of h5py so that it can be compared: bytes are text, references are paths."""
    if isinstance(value, h5py.Empty):
        return "null", value.dtype.kind.replace("S", "O")
    if isinstance(value, h5py.Reference):
        return file[value].name if value else ""
    if isinstance(value, bytes | str):
        return value.decode() if isinstance(value, bytes) else value
    array = np.asarray(value)
    if array.dtype.kind in "SO":
        items = [as_seen(file, each) if not isinstance(each, np.ndarray) else each.tolist() for each in array.ravel()]
        return array.shape, items
    return (
        array.shape,
        array.dtype.newbyteorder("="),
        h5py.check_enum_dtype(array.dtype),
        array.tobytes() if (array.dtype.isnative) else array.astype(array.dtype.newbyteorder("=")).tobytes(),
    )


def seen(path, at):
    with h5py.File(path) as file:
        hidden = {"DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates"}
        names = [name for name in file[at].attrs if name not in hidden]
        return {name: None if name in UNKNOWN else as_seen(file, file[at].attrs[name]) for name in names}


def is_table_of_numbers(each):
    """Return whether netCDF-C could list no attributes beside one."""
    return len(each) == 4 and isinstance(each[0], tuple) and len(each[0]) > 1 and each[1].kind in "iuf" and not each[2]


def pointers(losses):
    return {(each.path, each.pointer) for each in losses}


@pytest.mark.parametrize("zarr_format", [2, 3, None])
def test_each_attribute_comes_back_or_is_listed(source, tmp_path, zarr_format):
    unknown_there = {(at.strip("/"), f"/attributes/{name}") for at in PLACES for name in UNKNOWN}
    through, back = source, tmp_path / "back.nc"
    if zarr_format is not None:
        through = tmp_path / "x.zarr"
        with h5py.File(
            source
        ) as file:  # attributes of NCZarr, which keep types, are written for other HDF5 files if you ask
            place = f"{through}#mode=nczarr" if zarr_format == 3 and "_NCProperties" not in file.attrs else through
        assert pointers(omnizarr.convert(source, place, zarr_format=zarr_format).losses) == unknown_there
        unknown_there = set()
    lost = pointers(omnizarr.convert(through, back).losses)
    tables = set()
    for at in PLACES:
        expected = {name: each for name, each in seen(source, at).items() if name not in UNKNOWN}
        flattened = {name for name, each in expected.items() if is_table_of_numbers(each) and "f2" not in name}
        tables |= {(at.strip("/"), f"/attributes/{name}") for name in flattened}
        found = seen(back, at)
        assert found.keys() == expected.keys()
        assert {name for name, each in found.items() if each != expected[name]} == flattened
    assert lost == unknown_there | tables
    with netCDF4.Dataset(back) as dataset:
        assert "i4_vector" in dataset["g/v"].ncattrs()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_readers_of_zarr_see_attributes_in_their_shape(source, tmp_path, zarr_format):
    omnizarr.convert(source, tmp_path / "x.zarr", zarr_format=zarr_format)
    found = omnizarr.open(tmp_path / "x.zarr")["g/v"].attrs
    is_plain = "_NCProperties" not in seen_root(source)
    assert found["i4_table"] == [[2**31 - 1, -(2**31), 1], [2**31 - 1, -(2**31), 1]]
    assert found["i4_scalar"] == 2**31 - 1
    assert found["i4_one"] == ([2**31 - 1] if is_plain else 2**31 - 1)
    assert found["texts_one"] == (["né"] if is_plain else "né")
    assert found["texts_table"] == [["né"] * 3] * 2
    assert found["b1_vector"] == [False, True, True]
    assert found["c16_one"] == [[0, 0]]
    assert found["reference_vector"] == ["/g/v"] * 3
    assert found["enum_one"] == [200]
    assert found["compound_scalar"] == {"a": 1, "b": np.pi, "c": "x", "d": {"e": 7}, "f": [8, 9]}
    assert found["vlen_vector"] == [[0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert found["opaque_scalar"] == "AP96"


def seen_root(path):
    with h5py.File(path) as file:
        return set(file.attrs)


@pytest.mark.parametrize("target", ["x.zarr", "x.nc", "file://{}/x.zarr#mode=nczarr", "file://{}/x.zarr#mode=zarr"])
def test_what_cannot_be_carried_is_refused_by_strict(source, tmp_path, target):
    with pytest.raises(NotRepresentableError):
        omnizarr.convert(source, target.format(tmp_path) if "{" in target else tmp_path / target, strict=True)


def test_nczarr_lists_what_has_no_form_there(source, tmp_path):
    lost = pointers(omnizarr.convert(source, f"file://{tmp_path}/x.zarr#mode=nczarr", zarr_format=2).losses)
    for name in ("b1_scalar", "i4_table", "texts_table", "c16_vector", "compound_scalar", "reference_scalar"):
        assert ("g/v", f"/attributes/{name}") in lost


def test_changed_attributes_lose_their_old_form(source, tmp_path):
    omnizarr.convert(source, tmp_path / "x.zarr")
    changes = {"b1_scalar": 5, "i4_table": [1, 2], "c16_one": 1.5, "compound_scalar": "text", "opaque_scalar": "?"}
    omnizarr.open(tmp_path / "x.zarr", mode="r+")["g/v"].attrs.update(changes)
    omnizarr.convert(tmp_path / "x.zarr", tmp_path / "y.nc")
    with h5py.File(tmp_path / "y.nc") as file:
        found = {name: np.ravel(file["g/v"].attrs[name]).tolist() for name in changes}
    assert found == {
        "b1_scalar": [5],
        "i4_table": [1, 2],
        "c16_one": [1.5],
        "compound_scalar": ["text"] if isinstance(found["compound_scalar"][0], str) else [b"text"],
        "opaque_scalar": ["?"] if isinstance(found["opaque_scalar"][0], str) else [b"?"],
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("columns", [{}, {"n": [1, 2, 3]}, {"n": [1, 2, 3], "m": [1.5, 2.5, 3.5]}])
def test_anndata_reads_its_file_after_a_conversion(tmp_path, columns):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    obs = pandas.DataFrame(columns, index=list("xyz"))
    anndata.AnnData(np.eye(3, dtype="f4"), obs=obs).write_h5ad(tmp_path / "x.h5ad")
    omnizarr.convert(tmp_path / "x.h5ad", tmp_path / "x.zarr")
    found = anndata.read_zarr(tmp_path / "x.zarr")
    assert {name: found.obs[name].tolist() for name in found.obs} == columns
    np.testing.assert_array_equal(found.X, np.eye(3))


@pytest.mark.filterwarnings("ignore")
def test_anndata_reads_categories_after_a_conversion(tmp_path):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    obs = pandas.DataFrame({"kind": pandas.Categorical(["a", "b", "a"])}, index=list("xyz"))
    anndata.AnnData(np.eye(3, dtype="f4"), obs=obs).write_h5ad(tmp_path / "x.h5ad")
    omnizarr.convert(tmp_path / "x.h5ad", tmp_path / "x.zarr")
    found = anndata.read_zarr(tmp_path / "x.zarr")
    assert found.obs["kind"].tolist() == ["a", "b", "a"]
    assert found.obs["kind"].cat.ordered is False

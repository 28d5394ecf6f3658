"""What xarray reads is the same before and after a conversion.

xarray writes, omnizarr converts, xarray reads both.
"""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr.formats import V3
from omnizarr.formats.conventions import Nodes, faults

xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")

SIZE, CHUNK = 6, 2

TIMES = np.array(["2020-01-01", "2020-01-02", "NaT", "2020-01-04", "2020-01-05", "1970-01-01"], "M8[ns]")
STEPS = np.array([0, 1, 2, "NaT", 4, 5], "m8[s]").astype("m8[ns]")
WORDS = ["", "a", "bb", "", "é", "b"]

# name -> values, encoding
VARIABLES = {
    **{
        f"{dtype}{'' if fill is None else f' masked by {fill}'}": (
            np.arange(SIZE).astype(dtype),
            {} if fill is None else {"_FillValue": np.dtype(dtype).type(fill)},
        )
        for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
        for fill in (None, 0, 3, 127)
    },
    "packed": (
        np.array([-54.5, np.nan, 0, 1, 2, 3]),
        {"dtype": "i2", "_FillValue": np.int16(-32768), "scale_factor": 0.5, "add_offset": 3.0},
    ),
    "packed unsigned": (
        np.array([0, 1, 254, np.nan, 3, 4]),
        {"dtype": "i1", "_FillValue": np.int8(-1), "_Unsigned": "true", "scale_factor": 1.0},
    ),
    **{
        f"{dtype} masked by {fill}": (
            np.array([0, 1.5, np.nan, -9, 4, 0]).astype(dtype),
            {"_FillValue": None if fill is None else np.dtype(dtype).type(fill)},
        )
        for dtype in ("f2", "f4", "f8")
        for fill in (None, np.nan, 0.0, -9.0, np.inf, -0.0)
    },
    "missing_value": (np.array([0, 1.5, np.nan, -9, 4, 0]), {"_FillValue": -9.0, "missing_value": -9.0}),
    "bool": (np.array([True, False, True, False, False, True]), {}),
    "complex": (np.arange(SIZE) * (1 + 2j), {}),
    "text": (np.array(WORDS), {}),
    "text of objects": (np.array(WORDS, object), {}),
    "bytes": (np.array([word.encode() for word in WORDS]), {}),
    "times": (TIMES, {}),
    "times by days": (TIMES[[0, 1, 3]].repeat(2), {"units": "days since 2000-01-01", "dtype": "i4"}),
    "times by float": (TIMES, {"units": "hours since 2000-01-01", "dtype": "f8", "_FillValue": -1.0}),
    "steps": (STEPS, {}),
}


def dataset(names, scalar=False):
    """Return a dataset with a variable for each of `VARIABLES` that is named."""
    variables = {}
    for at, name in enumerate(names):
        values, encoding = VARIABLES[name]
        values = values[0] if scalar else values
        attributes = {"units": "m"} if np.asarray(values).dtype.kind in "iuf" else {"a": [1, 2.5]}
        variable = xr.Variable(() if scalar else ("x",), values, attributes)
        variable.encoding.update(encoding)
        if not scalar:
            variable.encoding["chunks"] = (CHUNK,)
        variables[f"v{at}"] = variable
    return xr.Dataset(variables, attrs={"title": "a dataset"})


def remove_chunks(path, stored):
    """Remove all chunks, or one of each array; what xarray reads afterwards is what it reads of missing chunks."""
    gone = {"all": "", "some": "1", "none": "012"}[stored]
    for chunk in list(path.rglob("v*/*")) + list(path.rglob("v*/c/*")):
        if chunk.name in gone:
            chunk.unlink()


def read(path):
    with xr.open_zarr(path, consolidated=False) as found:
        return found.load()


@pytest.mark.filterwarnings("ignore")  # zarr-python's on types that are not in its specification
@pytest.mark.parametrize("stored", ["all", "some", "none", "scalar"])
@pytest.mark.parametrize(("old", "new"), [(2, 3), (3, 2)])
@pytest.mark.sampled(4)
def test_xarray_reads_the_same_before_and_after(tmp_path, old, new, stored):
    before, after, back = (tmp_path / f"{name}.zarr" for name in ("before", "after", "back"))
    dataset(VARIABLES, scalar=stored == "scalar").to_zarr(before, zarr_format=old, consolidated=False)
    if stored != "scalar":
        remove_chunks(before, stored)
    expected = read(before)
    report = omnizarr.convert(before, after, zarr_format=new)
    assert report.verified
    found = read(after)
    xr.testing.assert_identical(found, expected)
    assert {name: found[name].dtype for name in found} == {name: expected[name].dtype for name in expected}
    assert omnizarr.convert(after, back, zarr_format=old).verified
    xr.testing.assert_identical(read(back), expected)


# What zarr-python makes with a fill value of v2, which xarray treats as a mask
FILLED = {
    "bool": (np.array([True, False] * 3), False),
    "i4": (np.arange(SIZE, dtype="i4"), 0),
    "u8": (np.arange(SIZE, dtype="u8"), 2**64 - 1),
    "f4": (np.arange(SIZE, dtype="f4"), 2.0),
    "c8": (np.arange(SIZE).astype("c8"), 1 + 0j),
    "U2": (np.array(WORDS, "U2"), ""),
    "M8": (TIMES, np.datetime64(0, "ns")),
    "m8": (STEPS, np.timedelta64(0, "ns")),
    "string": (np.array(WORDS, object), "a"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stored", ["all", "some", "none"])
@pytest.mark.parametrize("name", FILLED)
def test_fill_value_of_v2_stays_the_mask(tmp_path, name, stored):
    values, fill = FILLED[name]
    group = zarr.open_group(tmp_path / "before.zarr", mode="w", zarr_format=2)
    dtype = str if name == "string" else values.dtype
    array = group.create_array("v", shape=(SIZE,), chunks=(CHUNK,), dtype=dtype, fill_value=fill)
    array.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    array[...] = values
    remove_chunks(tmp_path / "before.zarr", stored)
    expected = read(tmp_path / "before.zarr")
    if values.dtype.kind in "mM":  # not a mask there: xarray shows the fill value as an attribute
        del expected["v"].attrs["_FillValue"]
    report = omnizarr.convert(tmp_path / "before.zarr", tmp_path / "after.zarr")
    assert (report.is_lossless, report.verified) == (True, True)
    xr.testing.assert_identical(read(tmp_path / "after.zarr"), expected)


def test_bytes_masked_in_v2_are_reported_as_a_loss(tmp_path):
    group = zarr.open_group(tmp_path / "before.zarr", mode="w", zarr_format=2)
    array = group.create_array("v", shape=(2,), dtype="S2", fill_value=b"")
    array.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    array[...] = [b"", b"b"]
    assert read(tmp_path / "before.zarr")["v"].isnull().values.tolist() == [True, False]
    report = omnizarr.convert(tmp_path / "before.zarr", tmp_path / "after.zarr")
    assert [(loss.path, loss.pointer) for loss in report.losses] == [("v", "/fill_value")]
    assert read(tmp_path / "after.zarr")["v"].values.tolist() == [b"", b"b"]  # it opens all the same


@pytest.mark.parametrize("new", [1, "3-draft2019", "3-draft2020"])
@pytest.mark.parametrize("old", [2, 3])
def test_masks_survive_formats_that_xarray_does_not_read(tmp_path, old, new):
    names = ["i2", "i2 masked by 3", "f4 masked by -9.0", "packed"]
    dataset(names).to_zarr(tmp_path / "before.zarr", zarr_format=old, consolidated=False)
    expected = read(tmp_path / "before.zarr")
    omnizarr.convert(tmp_path / "before.zarr", tmp_path / "there.zarr", zarr_format=new)
    for last in (2, 3):
        omnizarr.convert(tmp_path / "there.zarr", tmp_path / f"{last}.zarr", zarr_format=last)
        found = read(tmp_path / f"{last}.zarr")
        xr.testing.assert_identical(found.drop_attrs(deep=False), expected.drop_attrs(deep=False))


@pytest.mark.parametrize("fill", [-9.0, "NaN", [-9.0]])
def test_fill_value_attribute_that_xarray_cannot_read_in_v3_is_understood(tmp_path, fill):
    group = zarr.open_group(tmp_path / "before.zarr", mode="w")
    array = group.create_array("v", shape=(3,), dtype="f4", dimension_names=["x"], attributes={"_FillValue": fill})
    array[...] = [1, -9, 3]
    omnizarr.convert(tmp_path / "before.zarr", tmp_path / "after.zarr", zarr_format=2)
    missing = read(tmp_path / "after.zarr")["v"].isnull().values.tolist()
    assert missing == [False, fill != "NaN", False]


def test_conversion_tells_the_convention_that_it_carried(tmp_path):
    dataset(["i2"]).to_zarr(tmp_path / "before.zarr", zarr_format=2)
    report = omnizarr.convert(tmp_path / "before.zarr", tmp_path / "after.zarr")
    assert {node.path: list(node.conventions) for node in report.nodes} == {"": [], "v0": ["xarray"]}
    assert "conventions carried: xarray/CF (1 array)" in str(report).splitlines()
    assert json.dumps(report.to_json()["nodes"][1]["conventions"])


# Faults


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def node(shape=(4,), names=("x",), attributes=None, data_type="float32"):
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1] * len(shape)}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": "" if data_type == "string" else 0,
        "codecs": [
            {"name": "vlen-utf8"} if data_type == "string" else {"name": "bytes", "configuration": {"endian": "little"}}
        ],
        "dimension_names": list(names),
        "attributes": attributes or {},
    }
    return V3.load({"zarr.json": document})


@pytest.mark.parametrize(
    ("attributes", "data_type", "code"),
    [
        ({"_FillValue": -9.0}, "float32", "mask-unreadable"),
        ({"_FillValue": "AAAAAAAAIsA="}, "float32", None),
        ({"_FillValue": "nine"}, "float32", "mask-of-another-type"),
        ({"_FillValue": 300}, "int8", "mask-of-another-type"),
        ({"_FillValue": "a"}, "int8", "mask-of-another-type"),
        ({"_FillValue": 3}, "int8", None),
        ({"_FillValue": ""}, "string", "mask-unreadable"),
    ],
)
def test_masks_that_xarray_does_not_understand_are_faults(attributes, data_type, code):
    found = faults("v", Nodes({"v": node(attributes=attributes, data_type=data_type)}))
    assert [fault.code for fault in found] == ([] if code is None else [code])


@pytest.mark.parametrize(("length", "codes"), [(4, []), (5, ["coordinate-length"])])
def test_coordinate_of_another_length_is_a_fault(length, codes):
    nodes = Nodes({"g/v": node(shape=(2, 4), names=("y", "x")), "g/x": node(shape=(length,))})
    assert [fault.code for path in nodes for fault in faults(path, nodes)] == codes


def test_check_finds_what_xarray_refuses(tmp_path):
    group = zarr.open_group(tmp_path / "d.zarr", mode="w")
    group.create_array("x", shape=(5,), dtype="i2", dimension_names=["x"])
    group.create_array("v", shape=(4,), dtype="f4", dimension_names=["x"], attributes={"_FillValue": -9.0})
    with pytest.raises(TypeError, match="decode fill_value"):
        xr.open_zarr(tmp_path / "d.zarr", consolidated=False)
    del group["v"].attrs["_FillValue"]
    with pytest.raises(ValueError, match="conflicting sizes"):
        xr.open_zarr(tmp_path / "d.zarr", consolidated=False)
    group["v"].attrs["_FillValue"] = -9.0
    found = {
        (finding.code, finding.path, finding.key, finding.pointer) for finding in omnizarr.check(tmp_path / "d.zarr")
    }
    assert ("mask-unreadable", "v", "v/zarr.json", "/attributes/_FillValue") in found
    assert ("coordinate-length", "v", "v/zarr.json", "/shape") in found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_check_finds_nothing_in_what_xarray_writes(tmp_path, zarr_format):
    dataset(VARIABLES).to_zarr(tmp_path / "d.zarr", zarr_format=zarr_format)
    codes = {finding.code for finding in omnizarr.check(tmp_path / "d.zarr")}
    assert not codes & {"array-dimensions", "mask-of-another-type", "mask-unreadable", "coordinate-length"}

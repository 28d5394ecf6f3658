"""What the two experimental writers of NCZarr in Zarr v3 made of `v3.cdl`, from which the expected values are."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr

import omnizarr
from omnizarr.netcdf import Attribute, Dataset, types
from omnizarr.netcdf.header import DimensionHeader

DATA = Path(__file__).parent.parent / "data" / "layouts"
WRITERS = {"v3-2918": "4.9.3", "v3-plug": "4.10.0", "v3-plug-inline": "4.10.0"}

VALUES = {
    "/b": np.int8([1, -1, 3]),
    "/ub": np.uint8([1, 2, 255]),
    "/s": np.int16([[1, 2, 3], [4, 5, 6]]),
    "/us": np.uint16([1, 2, 65534]),
    "/i": np.int32([1, 2, 3]),
    "/ui": np.uint32([1, 2, 4294967294]),
    "/i64": np.int64([1, 2, -9223372036854775807]),
    "/ui64": np.uint64([1, 2, 2**64 - 1]),
    "/f": np.float32([0.5, 1.5]),
    "/d": np.float64(3.25),
    "/n": np.float64([1, np.nan, 3]),
    "/c": np.array([b"a", b"7", b"b"]),
    "/st": np.array(["one", "none", "three"], object),
    "/g/v": np.int32([[1, 2, 3], [4, 5, 6]]),
    "/g/h/w": np.float64([1, 2]),
}


@pytest.fixture(params=WRITERS)
def name(request):
    return request.param


@pytest.fixture
def dataset(name):
    with Dataset(DATA / f"{name}.zip") as opened:
        yield opened


def header(dataset, path):
    above, _, name = path.rpartition("/")
    group = dict(dataset.header.walk())[above]
    return group.variables[name]


@pytest.mark.parametrize("path", VALUES)
def test_data_are_read(dataset, path):
    source = dataset.as_source()
    sizes = source.root.sizes()
    selection = tuple(slice(0, sizes[each].size) for each in header(dataset, path).dimensions)
    found = source.read(path, selection)
    assert found.dtype.newbyteorder("=") == VALUES[path].dtype
    np.testing.assert_array_equal(found, VALUES[path])


def test_types_are_those_of_the_cdl(dataset):
    assert {each.name: each.type.name for each in dataset.header.variables.values()} == {
        "b": "byte", "ub": "ubyte", "s": "short", "us": "ushort", "i": "int", "ui": "uint", "i64": "int64",
        "ui64": "uint64", "f": "float", "d": "double", "n": "double", "c": "char", "st": "string",
    }  # fmt: skip


def test_dimensions_are_where_they_were_defined(dataset):
    assert dataset.header.sizes() == {
        "/t": DimensionHeader("t", 2, unlimited=True),
        "/x": DimensionHeader("x", 3),
        "/g/y": DimensionHeader("y", 2),
    }
    assert header(dataset, "/g/v").dimensions == ("/g/y", "/x")
    assert header(dataset, "/d").dimensions == ()


def test_attributes_have_their_types(dataset):
    assert dataset.header.attributes == {
        "title": Attribute.of("all types"),
        "num": Attribute.of(np.int32(42)),
        "u64": Attribute.of(np.uint64(2**64 - 1)),
        "json": Attribute.of('{"a": 1}'),
        "text": Attribute.of("42"),
        "more": Attribute.of("1.50"),
        "q": Attribute.of('it\'s "quoted"'),
        "e": Attribute.of(""),
        "ss": Attribute.of(["one", "two"]),
    }
    assert header(dataset, "/s").attributes == {"valid_range": Attribute.of(np.int16([-5, 5]))}
    assert header(dataset, "/d").attributes == {
        "nonfin": Attribute.of(np.float64([np.nan, np.inf, -np.inf])),
        "v": Attribute.of(np.float64([1, 2.5])),
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/b", np.int8([-1])),
        ("/f", np.float32([1.5])),
        ("/n", np.float64([np.nan])),
        ("/c", "7"),
        ("/st", ["none"]),
    ],
)
def test_fill_values_are_attributes(dataset, path, expected):
    assert header(dataset, path).attributes == {"_FillValue": Attribute.of(expected)}


@pytest.mark.parametrize("path", ["/ub", "/i64", "/ui64", "/g/h/w"])
def test_defaults_are_no_attributes(dataset, path):
    assert header(dataset, path).attributes == {}


def test_filters_are_those_of_the_cdl(dataset):
    found = dataset.header.variables
    assert found["i"].special["_Shuffle"] == Attribute.of("true")
    assert found["i"].special["_DeflateLevel"] == Attribute.of(np.int32(4))
    assert found["ui"].special["_Fletcher32"] == Attribute.of("true")
    assert found["i64"].special["_Filter"] == Attribute.of("307,9")
    assert found["s"].special["_Endianness"] == Attribute.of("big")


def test_the_layout_and_the_writer_are_known(name, dataset):
    assert dataset.data_model == "NETCDF4"
    assert dataset.header.special["_NCProperties"].value.startswith(f"version=2,netcdf={WRITERS[name]}")


def test_omnizarr_opens_it_as_zarr(name):
    group = omnizarr.open_group(str(DATA / f"{name}.zip"), mode="r")
    np.testing.assert_array_equal(group["s"][...], VALUES["/s"])
    np.testing.assert_array_equal(group["g/v"][...], VALUES["/g/v"])
    assert group["c"].fill_value == ord("7")
    assert {each for each, _ in group.members(max_depth=None)} == {*(path[1:] for path in VALUES), "g", "g/h"}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_scalar_has_no_dimension_whatever_its_chunk_has(name, zarr_format, tmp_path):
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        archive.extractall(tmp_path / "here")
    (here,) = [
        path.parent for path in (tmp_path / "here").rglob("zarr.json") if "_nczarr_superblock" in path.read_text()
    ]
    array = omnizarr.open_group(here)["d"]
    assert (array.shape, array.chunks, array[()]) == ((), (), VALUES["/d"])
    array[...] = 4.5
    if (here / "d" / "zarr.json").exists():  # else its document is in that of the root alone
        array.attrs["new"] = 1
    assert omnizarr.open_group(here)["d"][()] == 4.5
    with Dataset(here) as dataset:
        assert dataset["d"].shape == ()
        assert dataset["d"][...] == 4.5
    omnizarr.convert(here, tmp_path / "there", zarr_format=zarr_format)
    theirs = zarr.open_array(tmp_path / "there" / "d", mode="r")
    assert (theirs.shape, theirs[()]) == ((), 4.5)


def test_what_is_not_zarr_is_noted(name):
    group = omnizarr.open_group(str(DATA / f"{name}.zip"), mode="r")
    assert any(note.message.startswith("not Zarr: ") for note in group["c"].metadata.notes)
    assert any(note.message.startswith("not ") for note in group.metadata.notes) is (name != "v3-plug")


@pytest.mark.parametrize("variable", ["z", "bl", "bit"])
def test_further_filters_are_read(variable):
    expected = np.full(300, types.INT.default_fill, "i4")
    expected[:3] = [1, 2, 3]
    with Dataset(DATA / "v3-plug-filters.zip") as dataset:
        found = dataset.as_source().read(f"/{variable}", (slice(0, 300),))
        np.testing.assert_array_equal(found, expected)

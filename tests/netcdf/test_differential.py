"""Datasets of all kinds, written by omnizarr and read by netCDF-C, and the other way round: all of it is the same.

What netCDF-C itself does wrong is listed in `deviations`, and left out for just the direction that it concerns.
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from omnizarr.netcdf import Attribute, Dataset, copying, types
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, VariableHeader
from tests.netcdf import deviations
from tests.netcdf.deviations import NEWEST, OLD
from tests.netcdf.generated import completed, datasets
from tests.netcdf.peers import described
from tests.repeats import runs

# With RUNS=100: 300 datasets each way.
EXAMPLES = 3 * runs(10)


class Place:
    """A new folder for each example, and its URLs."""

    def __enter__(self):
        self._folder = tempfile.mkdtemp()
        self.path = str(Path(self._folder, "made.zarr"))
        self.url = f"file://{self.path}#mode=nczarr,file"
        return self

    def __exit__(self, *_):
        shutil.rmtree(self._folder)


def write(path, made, **how):
    with Dataset(path, "w", **how) as dataset:
        copying.write(dataset, made.source())


def read(path, like):
    with Dataset(path) as dataset:
        return described(dataset.as_source(), like)


@settings(max_examples=EXAMPLES)
@given(datasets(deviations.allowed(NEWEST, "reading")))
def test_netcdf_c_reads_what_omnizarr_wrote(newest, made):
    with Place() as place:
        write(place.path, made)
        assert described(newest.read(place.url).source(), made.root) == described(made.source(), made.root)


@settings(max_examples=EXAMPLES)
@given(datasets(deviations.allowed(NEWEST, "writing")))
def test_omnizarr_reads_what_netcdf_c_wrote(newest, made):
    with Place() as place:
        newest.write(place.url, made)
        assert read(place.path, made.root) == described(made.source(), made.root)


@settings(max_examples=EXAMPLES)
@given(datasets(deviations.allowed(OLD, "reading")))
def test_netcdf_c_4_9_0_reads_what_omnizarr_wrote(old, made):
    with Place() as place:
        write(place.path, made, layout="B")
        assert described(old.read(place.url).source(), made.root) == described(made.source(), made.root)


def test_netcdf_c_4_9_0_reads_nuls_that_are_not_the_fill_value(old, tmp_path):
    made = deviations.with_variable(types.CHAR, [b"", b""], {"_FillValue": "j"})
    write(str(tmp_path / "x"), made, layout="B")
    found = old.read(f"file://{tmp_path}/x#mode=nczarr,file")
    np.testing.assert_array_equal(found.data["/v"], made.data["/v"])


@pytest.mark.parametrize(("release", "layout"), [("old", "B"), ("newest", "C")])
@pytest.mark.parametrize("value", [np.nan, np.float32("-inf"), np.array([1.5, np.nan, np.inf])])
def test_netcdf_c_reads_numbers_of_attributes_that_are_not_finite(request, tmp_path, release, layout, value):
    made = deviations.with_attribute(value)
    write(str(tmp_path / "x"), made, layout=layout)
    found = request.getfixturevalue(release).read(f"file://{tmp_path}/x#mode=nczarr,file")
    assert described(found.source(), made.root) == described(made.source(), made.root)


@settings(max_examples=EXAMPLES)
@given(datasets(deviations.allowed(OLD, "writing")))
def test_omnizarr_reads_what_netcdf_c_4_9_0_wrote(old, made):
    with Place() as place:
        old.write(place.url, made)
        assert read(place.path, made.root) == described(made.source(), made.root)


@settings(max_examples=EXAMPLES)
@given(datasets(deviations.WITHOUT_JSON))
def test_omnizarr_reads_all_that_it_wrote(made):
    with Place() as place:
        write(place.path, made)
        assert read(place.path, made.root) == described(made.source(), made.root)


@pytest.mark.parametrize("layout", ["xarray", "v3"])
@settings(max_examples=EXAMPLES)
@given(made=datasets())
def test_omnizarr_reads_all_that_it_wrote_for_xarray(made, layout):
    with Place() as place:
        write(place.path, made, layout=layout)
        assert read(place.path, made.root) == described(made.source(), made.root)


SPECIAL = {
    "deflate": {"_DeflateLevel": np.int32(4)},
    "shuffle and deflate": {"_Shuffle": "true", "_DeflateLevel": np.int32(4)},
    "fletcher32": {"_Fletcher32": "true"},
    "fletcher32, shuffle and deflate": {"_Fletcher32": "true", "_Shuffle": "true", "_DeflateLevel": np.int32(4)},
    "bzip2": {"_Filter": "307,9"},
    "zstd": {"_Filter": "32015,3"},
    "blosc": {"_Filter": "32001,0,0,0,0,5,1,0"},
    "blosc lz4": {"_Filter": "32001,0,0,0,0,5,1,1"},
    "blosc zlib without shuffle": {"_Filter": "32001,0,0,0,0,5,0,4"},
    "blosc zstd with bit shuffle": {"_Filter": "32001,0,0,0,0,5,2,5"},
    "szip": {"_Filter": "4,32,16"},
}


def filtered(special):
    header = VariableHeader(
        name="v",
        type=types.SHORT,
        dimensions=("/y", "/x"),
        special={
            name: Attribute.of(value) for name, value in ({"_ChunkSizes": np.array([64, 64], "i4")} | special).items()
        },
    )
    dimensions = {"y": DimensionHeader("y", 100), "x": DimensionHeader("x", 80)}
    values = np.arange(8000, dtype="i2").reshape(100, 80)
    return completed(GroupHeader(dimensions=dimensions, variables={"v": header}), {"/v": values})


@pytest.mark.parametrize("special", SPECIAL.values(), ids=SPECIAL)
def test_netcdf_c_reads_the_filter(newest, tmp_path, special):
    made = filtered(special)
    write(str(tmp_path / "x"), made)
    assert described(newest.read(f"file://{tmp_path}/x#mode=nczarr,file").source()) == described(made.source())


@pytest.mark.parametrize("special", SPECIAL.values(), ids=SPECIAL)
def test_omnizarr_reads_the_filter(newest, tmp_path, special):
    made = filtered(special)
    newest.write(f"file://{tmp_path}/x#mode=nczarr,file", made)
    assert read(str(tmp_path / "x"), made.root) == described(made.source())

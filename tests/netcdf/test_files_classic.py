"""Headers of netCDF-3 files that are damaged: netCDF-C crashes, or never ends, on some of them."""

import struct
from contextlib import suppress
from pathlib import Path

import netCDF4
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnizarr.errors import MetadataError
from omnizarr.netcdf import files
from omnizarr.netcdf.files import classic

DATA = Path(__file__).parent / "data" / "files"
FILES = ["classic.nc", "offset64.nc", "data64.nc", "scipy.nc"]
FORMATS = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]


@pytest.mark.parametrize("name", FILES)
def test_header_of_a_whole_file_is_right(name):
    classic.opened(DATA / name)


@pytest.mark.parametrize("file_format", FORMATS)
def test_file_without_anything_is_right(tmp_path, file_format):
    netCDF4.Dataset(tmp_path / "x.nc", "w", format=file_format).close()
    classic.opened(tmp_path / "x.nc")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("length", [4, 7, 12, 40, 100])
def test_header_that_is_cut_off_is_refused(tmp_path, name, length):
    (tmp_path / "x.nc").write_bytes((DATA / name).read_bytes()[:length])
    with pytest.raises(MetadataError, match=r"cut off|not there"):
        classic.opened(tmp_path / "x.nc")


# An integer attribute "a" of one value, in the classic format; where its parts begin.
COUNT, LENGTH_OF_NAME, TYPE, VALUES = 20, 24, 32, 36


@pytest.fixture
def small(tmp_path):
    with netCDF4.Dataset(tmp_path / "x.nc", "w", format="NETCDF3_CLASSIC") as dataset:
        dataset.setncattr("a", 1)
    assert (tmp_path / "x.nc").read_bytes()[COUNT:40] == struct.pack(">II4sII", 1, 1, b"a\0\0\0", 4, 1)
    return tmp_path / "x.nc"


@pytest.mark.parametrize(
    ("where", "value", "why"),
    [
        (COUNT, 2**31 - 1, "counts 2147483647 parts"),
        (COUNT, 2**32 - 1, "counts 4294967295 parts"),
        (LENGTH_OF_NAME, 2**31 - 4, "counts 2147483644 values"),
        (TYPE, 0, "the type 0"),
        (TYPE, 7, "the type 7"),
        (VALUES, 2**31 - 1, "counts 2147483647 values"),
        (COUNT - 4, 13, "the tag 13, not 12"),
    ],
)
def test_number_that_cannot_be_is_refused_before_netcdf_c_sees_it(small, where, value, why):
    raw = bytearray(small.read_bytes())
    raw[where : where + 4] = struct.pack(">I", value)
    small.write_bytes(raw)
    with pytest.raises(MetadataError, match=why) as caught, files.open_file(small):
        pass
    assert caught.value.store == str(small)


def test_dimension_that_does_not_exist_is_refused(tmp_path):
    with netCDF4.Dataset(tmp_path / "x.nc", "w", format="NETCDF3_CLASSIC") as dataset:
        dataset.createDimension("x", 2)
        dataset.createVariable("v", "i4", ("x",))
    raw = bytearray((tmp_path / "x.nc").read_bytes())
    at = raw.index(b"v\0\0\0") + 8  # behind the number of its dimensions
    raw[at : at + 4] = struct.pack(">I", 1)
    (tmp_path / "x.nc").write_bytes(raw)
    with pytest.raises(MetadataError, match="dimension 1, of 1"):
        classic.opened(tmp_path / "x.nc")


@settings(deadline=None, max_examples=200)
@given(
    name=st.sampled_from(FILES), where=st.integers(4, 1500), noise=st.binary(min_size=1, max_size=8), cut=st.booleans()
)
def test_damage_is_an_error_or_nothing(tmp_path_factory, name, where, noise, cut):
    path = tmp_path_factory.getbasetemp() / "damaged.nc"
    raw = (DATA / name).read_bytes()
    path.write_bytes(raw[:where] + noise + (b"" if cut else raw[where + len(noise) :]))
    with suppress(MetadataError):
        classic.opened(path)

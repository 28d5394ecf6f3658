"""`_FillValue` in the form that xarray stores in v3."""

import math

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st
from xarray.backends.zarr import FillValueCoder

from omnizarr.formats.conventions import fill_values

NUMBERS = ["?", "i1", "u1", ">i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", ">f8", "c8", "c16"]


def same(one: object, other: object) -> bool:
    """Whether two scalars are equal, all NaN being one value."""
    if isinstance(one, bytes | str):
        return one == other
    return np.array_equal(np.atleast_1d(one), np.atleast_1d(other), equal_nan=True)


def scalars(dtype: str) -> st.SearchStrategy:
    return npst.from_dtype(np.dtype(dtype))


@pytest.mark.parametrize("dtype", NUMBERS)
@given(data=st.data())
def test_numbers_are_written_as_xarray_writes_them(dtype, data):
    value = data.draw(scalars(dtype))
    expected = FillValueCoder.encode(value.item(), np.dtype(dtype))
    assert fill_values.encode(value) == expected


@pytest.mark.parametrize("value", [b"x", b"ab", b"\xff\0\xfe", b""])
def test_bytes_are_written_as_xarray_writes_them(value):
    assert fill_values.encode(np.bytes_(value)) == FillValueCoder.encode(np.bytes_(value), np.dtype("S3"))


@pytest.mark.parametrize("dtype", NUMBERS)
@given(data=st.data())
def test_xarray_reads_the_numbers_that_are_written(dtype, data):
    value = data.draw(scalars(dtype))
    assert same(FillValueCoder.decode(fill_values.encode(value), np.dtype(dtype)), value.item())


@pytest.mark.parametrize("dtype", NUMBERS)
@given(data=st.data())
def test_numbers_that_xarray_wrote_are_read_with_their_type(dtype, data):
    value = data.draw(scalars(dtype))
    found = fill_values.decode(FillValueCoder.encode(value.item(), np.dtype(dtype)), np.dtype(dtype))
    assert same(found, value)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")


@given(value=st.binary(max_size=8))
def test_bytes_that_xarray_wrote_are_read(value):
    value = np.bytes_(value)
    assert fill_values.decode(FillValueCoder.encode(value, np.dtype("S8")), np.dtype("S8")) == value


@given(value=st.text())
def test_texts_are_themselves(value):
    assert fill_values.encode(np.array(value, dtype=np.dtypes.StringDType())) == value
    assert fill_values.decode(value, np.dtypes.StringDType()) == value


@pytest.mark.parametrize(
    ("json", "dtype", "meant"),
    [
        (-9, "f4", np.float32(-9)),
        (-9.5, "f8", np.float64(-9.5)),
        ([-9.5], "f8", np.float64(-9.5)),
        ("NaN", "f4", np.float32(math.nan)),
        (math.nan, "f4", np.float32(math.nan)),
        ("-Infinity", "f8", np.float64(-math.inf)),
        (-9.0, "i2", np.int16(-9)),
        ([1.0, "NaN"], "c8", np.complex64(complex(1, math.nan))),
        (2.5, "c16", np.complex128(2.5)),
        (1, "?", np.True_),
        ("x", "S1", b"x"),
        ("é", "U1", "é"),
    ],
)
def test_forms_that_other_programs_write_are_read(json, dtype, meant):
    assert same(fill_values.decode(json, np.dtype(dtype)), meant)


@pytest.mark.parametrize(
    ("json", "dtype"),
    [
        (300, "i1"),
        (-1, "u8"),
        (2.5, "i4"),
        (math.nan, "i4"),
        ("5", "i4"),
        (None, "f8"),
        ("AAAA", "f8"),
        ("no base64", "f8"),
        ({"a": 1}, "f8"),
        (1e300, "f4"),
        (10**400, "f8"),
        ([1, 2], "f8"),
        ([1, 2, 3], "c8"),
        ([], "i4"),
        (2, "?"),
        ("ab", "U1"),
        ("much too long", "S1"),
        (1, "S1"),
        (1, "M8[s]"),
        ("2000", "M8[s]"),
    ],
)
def test_what_is_not_valid_is_no_value(json, dtype):
    assert fill_values.decode(json, np.dtype(dtype)) is None


@pytest.mark.parametrize("value", [np.datetime64(0, "s"), np.void(b"ab")])
def test_types_without_a_form_are_refused(value):
    with pytest.raises(TypeError, match="xarray has no form for it"):
        fill_values.encode(value)


@pytest.mark.parametrize("dtype", ["i2", "u4", "f4", "f8"])
def test_attribute_of_a_file_that_xarray_wrote_is_read(tmp_path, dtype):
    data = xr.Dataset({"a": ("x", np.arange(3, dtype=dtype), {"_FillValue": np.dtype(dtype).type(2)})})
    data.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    attributes = zarr.open_array(tmp_path / "a.zarr/a").attrs
    assert fill_values.decode(attributes["_FillValue"], np.dtype(dtype)) == np.dtype(dtype).type(2)

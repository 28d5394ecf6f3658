"""Array filters against numcodecs, and NumPy's arithmetic."""

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.codecs.cases import FLOATS, NUMBERS, bound

CASES = [
    ("delta", {"dtype": "<i4"}, NUMBERS),
    ("delta", {"dtype": "<i4", "astype": "<i8"}, NUMBERS),
    ("delta", {"dtype": "<i4", "astype": "<i2"}, NUMBERS % 100),
    ("delta", {"dtype": ">i4", "astype": ">i2"}, NUMBERS.astype(">i4") % 100),
    ("delta", {"dtype": "<f8", "astype": "<f4"}, FLOATS),
    ("delta", {"dtype": "|u1"}, (NUMBERS % 256).astype("u1")),
    ("fixedscaleoffset", {"offset": -40, "scale": 100, "dtype": "<f8", "astype": "<u2"}, FLOATS),
    ("fixedscaleoffset", {"offset": 0.5, "scale": 10.5, "dtype": "<f4", "astype": "|i1"}, FLOATS.astype("<f4") / 10),
    ("fixedscaleoffset", {"offset": 10, "scale": 1, "dtype": "<i4"}, NUMBERS),
    ("quantize", {"digits": 3, "dtype": "<f8"}, FLOATS),
    ("quantize", {"digits": 1, "dtype": "<f8", "astype": "<f4"}, FLOATS),
    ("quantize", {"digits": -1, "dtype": ">f4", "astype": ">f2"}, FLOATS.astype(">f4")),
    ("astype", {"encode_dtype": "<f4", "decode_dtype": "<i4"}, NUMBERS),
    ("astype", {"encode_dtype": "|i1", "decode_dtype": "<f8"}, FLOATS),
    ("astype", {"encode_dtype": ">i8", "decode_dtype": "<i4"}, NUMBERS),
    ("bitround", {"keepbits": 5}, FLOATS),
    ("bitround", {"keepbits": 0}, FLOATS.astype("<f4")),
    ("bitround", {"keepbits": 10}, FLOATS.astype("<f2")),
    ("packbits", {}, NUMBERS % 3 == 0),
    ("packbits", {}, (NUMBERS % 3 == 0)[:3, :5]),
    ("categorize", {"labels": ["a", "bb"], "dtype": "<U2", "astype": "|u1"}, np.array([["a", "bb", "c"]], "<U2")),
]


@pytest.mark.parametrize(("codec_id", "configuration", "array"), CASES)
def test_agrees_with_numcodecs(codec_id, configuration, array):
    codec = bound(f"numcodecs.{codec_id}", configuration, array)
    theirs = numcodecs.get_codec({"id": codec_id, **configuration})
    stored = np.asarray(theirs.encode(array))
    encoded = codec.encode(array)
    assert encoded.tobytes() == stored.tobytes()
    assert encoded.shape == codec.encoded.shape
    assert encoded.dtype == codec.encoded.dtype
    decoded = codec.decode(stored.view(codec.encoded.dtype).reshape(codec.encoded.shape))
    assert decoded.dtype == array.dtype
    assert decoded.shape == array.shape
    assert decoded.tobytes() == np.asarray(theirs.decode(stored)).tobytes()


@pytest.mark.parametrize(("codec_id", "configuration", "array"), CASES)
def test_strides_make_no_difference(codec_id, configuration, array):
    codec = bound(f"numcodecs.{codec_id}", configuration, array)
    assert codec.encode(np.asfortranarray(array)).tobytes() == codec.encode(array).tobytes()


@given(hnp.arrays(np.int32, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))
def test_delta_comes_back_whatever_the_numbers(array):
    codec = bound("numcodecs.delta", {"dtype": "<i4"}, array)
    np.testing.assert_array_equal(codec.decode(codec.encode(array)), array)


@given(hnp.arrays(bool, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))
def test_packed_booleans_come_back(array):
    codec = bound("numcodecs.packbits", {}, array)
    np.testing.assert_array_equal(codec.decode(codec.encode(array)), array)


def test_datetimes_are_filtered_as_integers():
    times = np.array(["2020-01-01", "2020-01-03", "NaT"], "<M8[D]")
    codec = bound("numcodecs.delta", {"dtype": "<i8"}, times)
    encoded = codec.encode(times)
    assert encoded[1] == 2
    np.testing.assert_array_equal(codec.decode(encoded), times)


def test_dtype_of_another_size_makes_another_number_of_elements():
    codec = bound("numcodecs.delta", {"dtype": "<i2"}, NUMBERS)
    assert codec.encoded.shape == (240,)
    np.testing.assert_array_equal(codec.decode(codec.encode(NUMBERS)), NUMBERS)


@pytest.mark.parametrize("fill", [0, 1.5, -3])
def test_fill_value_is_filtered_like_an_element(fill):
    configuration = {"offset": -5, "scale": 100, "dtype": "<f8", "astype": "<i4"}
    codec = bound("numcodecs.fixedscaleoffset", configuration, FLOATS, fill_value=fill)
    assert codec.encoded.fill_value == (fill + 5) * 100
    assert codec.encoded.fill_value.dtype == np.dtype("i4")


@pytest.mark.parametrize(
    ("codec_id", "configuration"),
    [
        ("astype", {"encode_dtype": "<f4", "decode_dtype": "<f8"}),
        ("delta", {"dtype": "<f8", "astype": "<f4"}),
        ("astype", {"encode_dtype": "<i4", "decode_dtype": "<f8"}),
    ],
)
@pytest.mark.filterwarnings("error")
def test_casts_that_overflow_do_so_without_a_warning(codec_id, configuration):
    array = np.array([1e300])
    with np.errstate(all="ignore"):
        cast = array.astype(configuration.get("encode_dtype") or configuration["astype"])
    assert bound(f"numcodecs.{codec_id}", configuration, array).encode(array).tobytes() == cast.tobytes()


def test_labels_of_text_of_any_length():
    text = np.array(["a", "x", "löwe"], dtype=np.dtypes.StringDType())
    codec = bound("numcodecs.categorize", {"labels": ["löwe", "a"], "dtype": "|O", "astype": "|u1"}, text)
    assert codec.encode(text).tolist() == [2, 0, 1]
    assert codec.decode(np.array([2, 0, 1], "u1")).tolist() == ["a", "", "löwe"]
    assert codec.decode(np.array([3, 255, 1], "u1")).tolist() == ["", "", "löwe"]


@pytest.mark.parametrize("dtype", ["<U3", np.dtypes.StringDType()])
def test_label_of_an_array_without_dimensions(dtype):
    text = np.array("abc", dtype=dtype)
    codec = bound("numcodecs.categorize", {"labels": ["a", "abc"], "dtype": "|O", "astype": "|u1"}, text)
    decoded = codec.decode(codec.encode(text))
    assert (decoded.shape, decoded.dtype, decoded[()]) == ((), text.dtype, "abc")


@given(st.integers(1, 52), hnp.arrays(np.float64, 5, elements=st.floats(-1e300, 1e300)))
def test_rounded_floats_are_near(keepbits, array):
    rounded = bound("bitround", {"keepbits": keepbits}, array).encode(array)
    assert (np.abs(rounded - array) <= np.abs(array) * 2.0**-keepbits + 1e-307).all()

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.codecs.registry import find
from omnizarr.errors import ChunkError, CodecError
from tests.codecs.cases import array_spec, bound


def test_the_example_of_the_text():
    array = np.array([1000, 1255], "u2")
    codec = bound("scale_offset", {"offset": 1000}, array, fill_value=1000)
    assert codec.encode(array).tolist() == [0, 255]
    assert codec.decode(np.array([0, 255], "u2")).tolist() == [1000, 1255]
    assert codec.encoded.fill_value == 0


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2"])
def test_floats_are_computed_in_their_type(dtype):
    array = np.linspace(-3, 3, 7).astype(dtype)
    codec = bound("scale_offset", {"offset": 0.3, "scale": 0.7}, array)
    native = array.astype(array.dtype.newbyteorder("="))
    offset, scale = native.dtype.type(0.3), native.dtype.type(0.7)
    np.testing.assert_array_equal(codec.encode(array), (native - offset) * scale)
    np.testing.assert_array_equal(codec.decode(array), native / scale + offset)
    assert codec.encode(array).dtype == codec.decode(array).dtype == array.dtype


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i2", ">i4", "u8", "i8"])
@given(data=st.data())
def test_integers_are_exact_or_refused(dtype, data):
    info = np.iinfo(dtype)
    whole = st.integers(info.min, info.max)
    value, offset = data.draw(whole), data.draw(whole)
    scale = data.draw(st.one_of(whole, st.integers(1, 3)).filter(lambda n: n != 0))
    codec = find("scale_offset")({"offset": offset, "scale": scale}, array_spec(np.zeros(1, dtype), fill_value=offset))
    array = np.array([value], dtype)
    difference = value - offset
    if info.min <= difference <= info.max and info.min <= difference * scale <= info.max:
        assert codec.encode(array).tolist() == [difference * scale]
        assert codec.decode(codec.encode(array)).tolist() == [value]
    else:
        with pytest.raises(CodecError):
            codec.encode(array)


def test_quotient_that_is_not_whole_is_refused():
    codec = bound("scale_offset", {"scale": 2}, np.zeros(1, "i4"))
    with pytest.raises(ChunkError):
        codec.decode(np.array([3], "i4"))


def test_float_that_becomes_infinite_is_refused():
    codec = bound("scale_offset", {"scale": 1e30}, np.zeros(1, "f4"))
    with pytest.raises(CodecError):
        codec.encode(np.array([1e30], "f4"))
    assert codec.encode(np.array([np.inf], "f4"))[0] == np.inf


def test_fill_value_that_does_not_fit_is_refused():
    with pytest.raises(CodecError) as caught:
        bound("scale_offset", {"offset": 1}, np.zeros(1, "u1"), fill_value=0)
    assert caught.value.pointer == "/fill_value"


def test_nothing_configured_does_nothing():
    array = np.arange(5)
    np.testing.assert_array_equal(bound("scale_offset", {}, array).encode(array), array)

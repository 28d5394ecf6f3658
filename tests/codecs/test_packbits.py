import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from omnizarr.errors import ChunkError, ChunkSizeError
from omnizarr.model import Named
from tests.codecs.cases import bound

BOOLS = np.array([1, 0, 1, 1, 0, 0, 0, 0, 1, 1], bool)


def test_booleans_are_packed_lowest_bit_first():
    # by the text: bit i of the sequence is bit i % 8 of byte i // 8
    assert bound("packbits", {}, BOOLS).encode(BOOLS) == bytes([0b00001101, 0b00000011])


@pytest.mark.parametrize(("padding", "expected"), [("first_byte", [6, 13, 3]), ("last_byte", [13, 3, 6])])
def test_padding_is_counted(padding, expected):
    codec = bound("packbits", {"padding_encoding": padding}, BOOLS)
    assert codec.encode(BOOLS) == bytes(expected)
    np.testing.assert_array_equal(codec.decode(bytes(expected)), BOOLS)
    with pytest.raises(ChunkError):
        codec.decode(bytes(expected).replace(b"\x06", b"\x05"))


def test_all_bits_are_the_bytes_codec():
    array = np.array([[1, -2], [3, -4]], ">i4")
    assert bound("packbits", {}, array).encode(array) == array.astype("<i4").tobytes()


@pytest.mark.parametrize(("name", "width"), [("int2", 2), ("uint2", 2), ("int4", 4), ("uint4", 4)])
def test_small_integers(name, width):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="the small integers are its types")
    low = -(2 ** (width - 1)) if name[0] == "i" else 0
    array = np.arange(low, low + 2**width).astype(getattr(ml_dtypes, name))
    codec = bound("packbits", {}, array, named=Named(name))
    word = sum((value % 2**width) << (width * i) for i, value in enumerate(range(low, low + 2**width)))
    assert codec.encode(array) == word.to_bytes(2**width * width // 8, "little")
    np.testing.assert_array_equal(codec.decode(codec.encode(array)), array)


@given(st.data(), st.sampled_from(["i1", "u1", "<i2", ">u4", "<i8"]))
def test_numbers_of_few_bits_come_back(data, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    last = data.draw(st.integers(0, bits - 1))
    first = data.draw(st.integers(0, last))
    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_side=0)))
    codec = bound("packbits", {"first_bit": first, "last_bit": last}, array)
    decoded = codec.decode(codec.encode(array))
    # what Python's shifts of the same bits say
    for found, given_ in zip(decoded.ravel().tolist(), array.ravel().tolist(), strict=True):
        field = (given_ >> first) % 2 ** (last - first + 1)
        value = field << first
        if np.dtype(dtype).kind == "i" and field >> (last - first):
            value -= 2 ** (last + 1)
        assert found == value


def test_parts_of_complex_numbers():
    array = np.array([1.5 - 2j], "c8")
    codec = bound("packbits", {"first_bit": 16}, array)
    assert codec.encode(array) == array.view("<u2")[1::2].tobytes()
    np.testing.assert_array_equal(codec.decode(codec.encode(array)), array)


@pytest.mark.parametrize("data", [b"\0", b"\0\0\0"])
def test_wrong_size_is_refused(data):
    with pytest.raises(ChunkSizeError):
        bound("packbits", {}, BOOLS).decode(data)


def test_numcodecs_has_the_highest_bit_first():
    array = BOOLS[:4]
    assert bound("numcodecs.packbits", {}, array).encode(array).tolist() == [4, 0b10110000]
    with pytest.raises(ChunkError):
        bound("numcodecs.packbits", {}, array).decode(np.array([3, 0], "u1"))

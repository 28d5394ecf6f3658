import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import ChunkError, ChunkSizeError
from omnizarr.model import Named
from tests.codecs.cases import bound

TEXT = np.array(["ab", "é"], dtype=np.dtypes.StringDType())
STORED = bytes.fromhex("02000000 02000000 6162 02000000 c3a9")


def test_format_is_that_of_the_text():
    codec = bound("vlen-utf8", {}, TEXT)
    assert bytes(codec.encode(TEXT)) == STORED
    assert codec.decode(STORED).tolist() == ["ab", "é"]
    assert codec.decode(STORED).dtype == np.dtypes.StringDType()


def test_text_of_fixed_width_is_stored_as_zarr_python_3_0_did():
    array = np.array(["ab", "é"], "<U2")
    codec = bound("vlen-utf8", {}, array)
    assert bytes(codec.encode(array)) == STORED
    assert codec.decode(STORED).dtype == array.dtype


def test_none_is_stored_as_nothing():
    array = np.array(["a", None], dtype=object)
    assert bytes(bound("vlen-utf8", {}, array, named=Named("omnizarr.object")).encode(array)).endswith(bytes(4))


@given(st.lists(st.text(max_size=20), max_size=8))
def test_any_text_comes_back(items):
    items = [item.encode("utf-8", "ignore").decode() for item in items]
    array = np.array(items, dtype=np.dtypes.StringDType())
    codec = bound("vlen-utf8", {}, array)
    assert codec.decode(codec.encode(array)).tolist() == items


@pytest.mark.parametrize("count", [0, 1, 3, 2**32 - 1])
def test_wrong_count_is_refused_before_anything_is_allocated(count):
    with pytest.raises(ChunkSizeError):
        bound("vlen-utf8", {}, TEXT).decode(struct.pack("<I", count) + STORED[4:])


@pytest.mark.parametrize("size", [3, 4, 2**31, 2**32 - 1])
def test_item_that_reaches_too_far_is_refused(size):
    with pytest.raises(ChunkError):
        bound("vlen-utf8", {}, TEXT).decode(STORED[:10] + struct.pack("<I", size) + b"\xc3\xa9")


def test_item_that_is_no_text_is_refused():
    with pytest.raises(ChunkError):
        bound("vlen-utf8", {}, TEXT).decode(STORED.replace(b"\xc3", b"\xff"))


def test_array_of_half_an_element_is_refused():
    array = np.empty(1, object)
    array[0] = np.arange(2, dtype="<i4")
    named = Named("omnizarr.vlen_array", {"data_type": "int32"})
    codec = bound("numcodecs.vlen-array", {"dtype": "<i4"}, array, named=named)
    with pytest.raises(ChunkError):
        codec.decode(struct.pack("<II", 1, 3) + b"abc")


def test_arrays_of_other_types_are_cast():
    array = np.empty(2, object)
    array[:] = [[1, 2], np.array([3.0])]
    named = Named("omnizarr.vlen_array", {"data_type": "int32"})
    codec = bound("numcodecs.vlen-array", {"dtype": ">i4"}, array, named=named)
    assert [item.tolist() for item in codec.decode(codec.encode(array))] == [[1, 2], [3]]

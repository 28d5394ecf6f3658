"""Decoding undoes encoding, for every codec that loses nothing, in every form of bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnizarr.codecs.contract import ArrayToBytes, BytesToBytes, DecodesInto
from tests.codecs.cases import ARRAY_TO_BYTES, BYTES_TO_BYTES, PLAIN, bound, label

bytes_codecs = pytest.mark.parametrize(("name", "configuration"), BYTES_TO_BYTES, ids=label)
array_codecs = pytest.mark.parametrize(("name", "configuration", "array", "named"), ARRAY_TO_BYTES, ids=label)


@bytes_codecs
def test_bytes_come_back(name, configuration):
    @given(st.binary(max_size=400))
    @settings(max_examples=40)
    def check(data):
        # some take whole elements alone
        size = configuration.get("elementsize", 4 if name == "omnizarr.bytes_filter" else 1)
        data = data[: len(data) // size * size]
        codec = bound(name, configuration, data)
        encoded = codec.encode(data)
        assert bytes(codec.decode(encoded)) == data
        if codec.encoded.nbytes is not None:
            assert len(encoded) == codec.encoded.nbytes

    check()


@bytes_codecs
@pytest.mark.parametrize("form", [bytearray, memoryview, lambda data: memoryview(bytearray(data))])
def test_any_buffer_will_do(name, configuration, form):
    codec = bound(name, configuration, PLAIN)
    assert bytes(codec.decode(form(bytes(codec.encode(form(PLAIN)))))) == PLAIN


@bytes_codecs
def test_results_are_buffers_of_bytes(name, configuration):
    codec = bound(name, configuration, PLAIN)
    assert isinstance(codec, BytesToBytes)
    for result in (codec.encode(PLAIN), codec.decode(codec.encode(PLAIN))):
        assert isinstance(result, bytes | bytearray | memoryview)
        assert memoryview(result).format == "B"
        assert memoryview(result).ndim == 1


@bytes_codecs
def test_decoding_into_memory_gives_the_same(name, configuration):
    codec = bound(name, configuration, PLAIN)
    if not isinstance(codec, DecodesInto):
        return
    out = bytearray(len(PLAIN))
    codec.decode_into(codec.encode(PLAIN), memoryview(out))
    assert bytes(out) == PLAIN


@array_codecs
def test_array_comes_back(name, configuration, array, named):
    codec = bound(name, configuration, array, named=named)
    assert isinstance(codec, ArrayToBytes)
    decoded = codec.decode(codec.encode(array))
    assert decoded.shape == array.shape
    assert decoded.dtype == codec.decoded.dtype
    for found, expected in zip(decoded.ravel(), array.ravel(), strict=True):
        assert np.array_equal(found, expected)


@array_codecs
def test_strides_make_no_difference(name, configuration, array, named):
    codec = bound(name, configuration, array, named=named)
    if codec.encoded.max_nbytes is None and array.dtype.kind == "O":
        return
    assert bytes(codec.encode(np.asfortranarray(array))) == bytes(codec.encode(array))

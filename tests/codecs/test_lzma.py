import lzma

import numcodecs
import pytest

from omnizarr.errors import ChunkError
from tests.codecs.cases import PLAIN, bound

RAW = [{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 1}]
CONFIGURATIONS = [
    {},
    {"format": 1, "check": 4, "preset": 1, "filters": None},
    {"format": 1, "check": 10, "preset": 6 | lzma.PRESET_EXTREME},
    {"format": 1, "check": -1, "preset": None, "filters": RAW},
    {"format": 2},
    {"format": 3, "filters": RAW},
]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_agrees_with_numcodecs(configuration):
    theirs = numcodecs.LZMA(**configuration)
    codec = bound("numcodecs.lzma", configuration, PLAIN)
    container = configuration.get("format", 1)
    filters = configuration["filters"] if container == lzma.FORMAT_RAW else None
    assert lzma.decompress(codec.encode(PLAIN), container, filters=filters) == PLAIN
    assert codec.decode(theirs.encode(PLAIN)) == PLAIN


def test_several_streams_are_one_value():
    assert bound("lzma", {}, PLAIN).decode(lzma.compress(PLAIN[:50]) + lzma.compress(PLAIN[50:])) == PLAIN


def test_bytes_behind_the_stream_are_ignored():
    assert bound("lzma", {}, PLAIN).decode(lzma.compress(PLAIN) + b"more") == PLAIN


def test_delta_of_gdal_means_nothing():
    assert bound("lzma", {"delta": 4}, PLAIN).decode(lzma.compress(PLAIN)) == PLAIN


def test_header_that_asks_for_much_memory_is_refused():
    alone = bytearray(lzma.compress(b"abc", lzma.FORMAT_ALONE))
    alone[1:5] = (2**32 - 1).to_bytes(4, "little")  # the size of the dictionary
    with pytest.raises(ChunkError, match="emory"):
        bound("lzma", {"format": 2}, b"abc").decode(bytes(alone))

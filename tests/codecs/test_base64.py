import base64

import numcodecs
import pytest

from omnizarr.errors import ChunkError
from tests.codecs.cases import PLAIN, bound


def test_agrees_with_numcodecs():
    codec = bound("numcodecs.base64", {}, PLAIN)
    assert codec.encode(PLAIN) == numcodecs.Base64().encode(PLAIN)
    assert codec.decode(numcodecs.Base64().encode(PLAIN)) == PLAIN


def test_size_is_known():
    for size in range(10):
        assert bound("base64", {}, bytes(size)).encoded.nbytes == len(base64.b64encode(bytes(size)))


def test_lines_may_be_wrapped():
    assert bound("base64", {}, PLAIN).decode(base64.encodebytes(PLAIN)) == PLAIN


@pytest.mark.parametrize("data", [b"YWJj!", b"YWJ", b"YW-_"])
def test_what_is_no_base64_is_refused(data):
    with pytest.raises(ChunkError):
        bound("base64", {}, b"abc").decode(data)

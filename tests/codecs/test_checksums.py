import struct
import zlib

import google_crc32c
import numcodecs
import numpy as np
import pytest
from numcodecs.checksum32 import CRC32, CRC32C, Adler32, JenkinsLookup3
from numcodecs.fletcher32 import Fletcher32

from omnizarr.codecs import compiled
from omnizarr.errors import ChecksumError, ChunkError, ChunkSizeError
from omnizarr.settings import engines
from tests.codecs.cases import PLAIN, bound

CASES = [
    ("crc32c", {}, CRC32C(), False),
    ("numcodecs.crc32c", {"location": "start"}, CRC32C(location="start"), True),
    ("numcodecs.crc32", {}, CRC32(), True),
    ("numcodecs.crc32", {"location": None}, CRC32(), True),
    ("numcodecs.crc32", {"location": "end"}, CRC32(location="end"), False),
    ("numcodecs.adler32", {}, Adler32(), True),
    ("numcodecs.adler32", {"location": "end"}, Adler32(location="end"), False),
    ("numcodecs.fletcher32", {}, Fletcher32(), False),
    ("numcodecs.jenkins_lookup3", {}, JenkinsLookup3(), False),
    ("numcodecs.jenkins_lookup3", {"initval": 7, "prefix": None}, JenkinsLookup3(initval=7), False),
]
every = pytest.mark.parametrize(("name", "configuration", "theirs", "is_first"), CASES)


@every
@pytest.mark.parametrize("data", [PLAIN, b"a", b"odd", b"abcd"])
def test_agrees_with_numcodecs(name, configuration, theirs, is_first, data):
    codec = bound(name, configuration, data)
    assert bytes(codec.encode(data)) == bytes(theirs.encode(data))
    assert bytes(codec.decode(bytes(theirs.encode(data)))) == data


@every
def test_four_bytes_are_added(name, configuration, theirs, is_first):
    codec = bound(name, configuration, PLAIN)
    assert codec.encoded.nbytes == len(PLAIN) + 4 == len(codec.encode(PLAIN))
    assert codec.encoded.item_size == 4


@every
def test_changed_byte_is_reported_with_both_checksums(name, configuration, theirs, is_first):
    codec = bound(name, configuration, PLAIN)
    data = bytearray(codec.encode(PLAIN))
    stored = data[:4] if is_first else data[-4:]
    data[100] ^= 1
    with pytest.raises(ChecksumError) as caught:
        codec.decode(bytes(data))
    assert caught.value.expected == f"0x{int.from_bytes(stored, 'little'):08x}"
    assert caught.value.found.startswith("0x")


@every
def test_decoding_copies_nothing(name, configuration, theirs, is_first):
    codec = bound(name, configuration, PLAIN)
    data = bytearray(codec.encode(PLAIN))
    view = codec.decode(data)
    data[50] ^= 0xFF
    assert view[46 if is_first else 50] == data[50]


def test_crc32c_of_rfc_3720():
    # RFC 3720, B.4: 32 bytes of zeros, 32 bytes of ones
    assert bytes(bound("crc32c", {}, bytes(32)).encode(bytes(32)))[-4:] == bytes.fromhex("aa36918a")
    assert bytes(bound("crc32c", {}, b"\xff" * 32).encode(b"\xff" * 32))[-4:] == bytes.fromhex("43aba862")


def test_crc32_is_that_of_zlib():
    assert bytes(bound("crc32", {}, b"abc").encode(b"abc")) == struct.pack("<I", zlib.crc32(b"abc")) + b"abc"


def test_too_short_and_too_long_are_refused():
    codec = bound("crc32c", {}, PLAIN)
    for data in (b"", b"abc", bytes(codec.encode(PLAIN))[1:], bytes(codec.encode(PLAIN)) + b"x"):
        with pytest.raises(ChunkSizeError):
            codec.decode(data)


def test_empty_value():
    for name in ("crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3"):
        codec = bound(name, {}, b"")
        assert bytes(codec.decode(codec.encode(b""))) == b""
        with pytest.raises(ChunkError):
            codec.decode(b"\x01\x02\x03\x04")


def test_numcodecs_knows_these():
    assert {"crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"} <= set(numcodecs.registry.codec_registry)


@pytest.mark.parametrize("data", [b"", b"a", b"123456789", PLAIN])
def test_native_engine_computes_the_same_crc32c_as_google_crc32c(data):
    native = engines.module()
    if native is None:
        pytest.skip("the native engine is not built")
    array = np.frombuffer(data, np.uint8)
    assert compiled._crc32c(native)(data) == compiled._crc32c(native)(array) == google_crc32c.value(data)

"""Whatever the bytes are, a decoder returns what was promised or raises a ChunkError, and allocates no more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnizarr.codecs import registry
from omnizarr.codecs.contract import BytesSpec
from omnizarr.errors import ChunkError
from tests.codecs.cases import ARRAY_TO_BYTES, BYTES_TO_BYTES, PLAIN, bound, label
from tests.traced import peak_of

ALL = [(name, configuration, PLAIN, None) for name, configuration in BYTES_TO_BYTES] + ARRAY_TO_BYTES
every = pytest.mark.parametrize(("name", "configuration", "value", "named"), ALL, ids=label)
compressors = pytest.mark.parametrize(
    ("name", "configuration"), [c for c in BYTES_TO_BYTES if c[0].split(".")[-1] in
                                ("gzip", "zlib", "bz2", "lzma", "lz4", "zstd", "blosc")], ids=label)  # fmt: skip


def decoder(name, configuration, value, named):
    codec = bound(name, configuration, value, **({} if named is None else {"named": named}))
    return codec, bytes(codec.encode(value))


def decoded_or_refused(codec, data, value):
    try:
        result = codec.decode(data)
    except ChunkError:
        return
    if isinstance(value, np.ndarray):
        assert result.shape == value.shape
    else:
        assert len(result) == len(value)


@every
def test_cut_bytes_are_refused_or_of_the_right_size(name, configuration, value, named):
    codec, data = decoder(name, configuration, value, named)
    for length in {*range(min(len(data), 40)), *range(0, len(data), max(1, len(data) // 40)), len(data) - 1}:
        decoded_or_refused(codec, data[:length], value)


@every
def test_flipped_bits_are_refused_or_of_the_right_size(name, configuration, value, named):
    codec, data = decoder(name, configuration, value, named)
    rng = np.random.default_rng(0)
    for position in {*range(min(len(data), 60)), *rng.integers(0, len(data), 60).tolist()}:
        broken = bytearray(data)
        broken[position] ^= 1 << int(rng.integers(8))
        decoded_or_refused(codec, bytes(broken), value)


@every
def test_random_bytes_are_refused_or_of_the_right_size(name, configuration, value, named):
    codec, data = decoder(name, configuration, value, named)

    @given(st.binary(max_size=200))
    @settings(max_examples=60)
    def check(tail):
        decoded_or_refused(codec, tail, value)
        # behind a true beginning a decoder gets further
        decoded_or_refused(codec, data[:16] + tail, value)

    check()


@every
def test_no_bytes_are_refused(name, configuration, value, named):
    codec, _ = decoder(name, configuration, value, named)
    with pytest.raises(ChunkError):
        codec.decode(b"")


@compressors
@pytest.mark.parametrize("spec", [BytesSpec(1000), BytesSpec(None, max_nbytes=1000)])
def test_bomb_is_refused_before_it_goes_off(name, configuration, spec):
    size = 20_000_000
    bomb = bytes(registry.find(name)(configuration, BytesSpec(size)).encode(bytes(size)))
    codec = registry.find(name)(configuration, spec)

    def decode():
        with pytest.raises(ChunkError):
            codec.decode(bomb)

    # LZMA makes room for its dictionary, of 8 MiB by default, before anything else
    most = 10_000_000 if "lzma" in name else 1_000_000
    assert peak_of(decode, most) < most


@compressors
def test_too_few_bytes_are_refused(name, configuration):
    data = bound(name, configuration, PLAIN).encode(PLAIN)
    with pytest.raises(ChunkError) as caught:
        bound(name, configuration, PLAIN + b"more").decode(data)
    assert caught.value.expected is not None or "broken" in caught.value.message


@compressors
def test_bytes_within_a_bound_are_decoded(name, configuration):
    data = bound(name, configuration, PLAIN).encode(PLAIN)
    codec = registry.find(name)(configuration, BytesSpec(None, max_nbytes=len(PLAIN)))
    assert bytes(codec.decode(data)) == PLAIN


@compressors
def test_encoded_bytes_keep_their_bound(name, configuration):
    noise = np.random.default_rng(0).bytes(5000)
    codec = bound(name, configuration, noise)
    assert len(codec.encode(noise)) <= codec.encoded.max_nbytes

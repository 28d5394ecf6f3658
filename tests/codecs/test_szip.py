import itertools
import sys

import h5py
import imagecodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.codecs import registry
from omnizarr.codecs.contract import BytesSpec
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, MetadataError, MissingDependencyError
from omnizarr.formats.filters import dump_codec, fit_szip
from omnizarr.model import Named

MASKS = {"nn": 32, "ec": 4}
FILES = itertools.count()
CHUNKS = [(10, 25), (30, 4), (1000,), (7, 33), (3, 4), (3, 65), (1, 5000)]


def named(mask, pixels):
    return Named("numcodecs.szip", {"mask": mask, "pixels-per-block": pixels})


def fitted(mask, pixels, shape, chunks, dtype):
    codec = fit_szip([named(mask, pixels)], shape, chunks, np.dtype(dtype))[0]
    item_size = np.dtype(dtype).itemsize
    return registry.find(codec.name)(codec.configuration, BytesSpec(int(np.prod(chunks)) * item_size, item_size))


def plain(nbytes=64, item_size=4, **configuration):
    """Return a codec of pixels in one scanline."""
    defaults = {"mask": 32, "pixels-per-block": 8, "pixels-per-scanline": 16}
    return registry.find("numcodecs.szip")(defaults | configuration, BytesSpec(nbytes, item_size))


@pytest.fixture
def dataset():
    with h5py.File(f"szip{next(FILES)}.h5", "w", driver="core", backing_store=False) as file:

        def create(array, coding, pixels):
            return file.create_dataset(
                "v", data=array, chunks=array.shape, compression="szip", compression_opts=(coding, pixels)
            )

        yield create


@pytest.mark.sampled(4)
@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("coding", ["nn", "ec"])
@pytest.mark.parametrize("pixels", [4, 8, 32])
@pytest.mark.parametrize("dtype", ["i1", "<i2", ">i2", "<u4", ">i4", "<i8", "<f4", ">f8"])
def test_bytes_are_those_of_hdf5(dataset, dtype, pixels, coding, chunks):
    array = (np.arange(np.prod(chunks)).reshape(chunks) // 7 % 100).astype(dtype)
    codec = fitted(MASKS[coding], pixels, chunks, chunks, dtype) if pixels <= array.size else None
    if codec is None:
        with pytest.raises(ValueError, match="pixels per block greater"):
            dataset(array, coding, pixels)
        with pytest.raises(CodecError, match="scanline"):
            fitted(MASKS[coding], pixels, chunks, chunks, dtype)
        return
    stored = dataset(array, coding, pixels)
    parameters = stored.id.get_create_plist().get_filter(0)[2]
    skipped, raw = stored.id.read_direct_chunk((0,) * array.ndim)
    assert codec.parameters == parameters
    if skipped:  # HDF5 leaves out a filter that saves nothing
        raw = codec.encode(array.tobytes())
        stored.id.write_direct_chunk((0,) * array.ndim, raw)
        np.testing.assert_array_equal(stored[...], array)
    assert bytes(codec.encode(array.tobytes())) == raw
    assert bytes(codec.decode(raw)) == array.tobytes()


def test_scanline_of_netcdf_is_as_long_as_the_last_dimension_not_a_chunk():
    codec = fit_szip([named(32, 8)], (30, 50), (10, 25), np.dtype("<f4"))[0]
    assert codec.configuration["pixels-per-scanline"] == 50


@pytest.mark.parametrize(
    ("last", "pixels", "scanline"),
    [(7, 8, 70), (8, 8, 8), (1024, 8, 1024), (1025, 8, 1024), (4096, 32, 4096), (4097, 4, 512), (4097, 32, 4096)],
)
def test_scanline_is_bounded_by_blocks_and_pixels(last, pixels, scanline):
    codec = fit_szip([named(32, pixels)], (10, last), (10, last), np.dtype("<f4"))[0]
    assert codec.configuration["pixels-per-scanline"] == scanline


@pytest.mark.parametrize(
    ("dtype", "bits", "endian"),
    [("i1", 8, "little"), (">i2", 16, "big"), ("S3", 24, "little"), (">f4", 32, "big"), ("<i8", 64, "little")],
)
def test_pixels_are_elements(dtype, bits, endian):
    configuration = fit_szip([named(4, 8)], (16,), (16,), np.dtype(dtype))[0].configuration
    assert (configuration["bits-per-pixel"], configuration["endian"]) == (bits, endian)


def test_what_a_document_said_is_what_is_written_again():
    codec = fit_szip([named(141, 8)], (16,), (16,), np.dtype("<i4"))[0]
    assert dump_codec(codec) == {"id": "szip", "mask": 141, "pixels-per-block": 8}


def test_other_codecs_are_left_unchanged():
    codecs = (Named("bytes"), Named("gzip", {"level": 1}))
    assert fit_szip(codecs, (16,), (16,), np.dtype("<i4")) == codecs


def test_a_configuration_that_says_all_is_left_unchanged():
    codec = Named("numcodecs.szip", {"mask": 32, "pixels-per-block": 8, "pixels-per-scanline": 3})
    assert fit_szip([codec], (16,), (16,), np.dtype("<i4")) == (codec,)


@given(
    data=st.binary(max_size=300),
    pixels=st.sampled_from([2, 4, 8, 16, 32]),
    scanline=st.integers(1, 256),
    mask=st.sampled_from([4, 32, 141, 169]),
    endian=st.sampled_from(["little", "big"]),
    item_size=st.sampled_from([1, 2, 4, 8]),
)
def test_data_come_back(data, pixels, scanline, mask, endian, item_size):
    data = data[: len(data) // item_size * item_size]
    fields = {"pixels-per-block": pixels, "pixels-per-scanline": scanline, "mask": mask, "endian": endian}
    codec = plain(len(data), item_size, **fields)
    assert bytes(codec.decode(codec.encode(data))) == data


@given(cut=st.integers(0, 60), changes=st.dictionaries(st.integers(4, 60), st.integers(0, 255), max_size=5))
def test_broken_streams_decode_to_the_promised_size_or_are_refused(cut, changes):
    data = np.arange(16, dtype="<i4").tobytes()
    codec = plain(len(data))
    stored = bytearray(codec.encode(data))
    for place, value in changes.items():
        if place < len(stored):
            stored[place] = value
    try:
        decoded = codec.decode(bytes(stored[: len(stored) - cut]))
    except ChunkError:
        return
    assert len(decoded) == len(data)


def test_size_in_the_header_is_checked_before_memory_is_taken():
    stored = (2**32 - 1).to_bytes(4, "little") + b"\0" * 20
    with pytest.raises(ChunkSizeError, match="expected 64 bytes"):
        plain(64).decode(stored)


def test_stream_without_its_header_is_refused():
    with pytest.raises(ChunkError, match="found 3 bytes"):
        plain().decode(b"\0\0\0")


def test_pixels_that_are_cut_off_are_refused():
    codec = plain()
    with pytest.raises(ChunkError):
        codec.decode(bytes(codec.encode(np.arange(16, dtype="<i4").tobytes())[:8]))


def test_a_memoryview_is_taken():
    data = np.arange(16, dtype="<i4").tobytes()
    codec = plain()
    assert bytes(codec.decode(memoryview(bytes(codec.encode(memoryview(data)))))) == data


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"pixels-per-block": 7}, "pixels-per-block"),
        ({"pixels-per-block": 0}, "pixels-per-block"),
        ({"pixels-per-block": 34}, "pixels-per-block"),
        ({"mask": -1}, "mask"),
        ({"mask": "nn"}, "mask"),
        ({"bits-per-pixel": 25}, "bits-per-pixel"),
        ({"bits-per-pixel": 65}, "bits-per-pixel"),
        ({"pixels-per-scanline": 0}, "pixels-per-scanline"),
        ({"pixels-per-scanline": 1025}, "pixels-per-scanline"),
        ({"endian": "native"}, "endian"),
        ({"pixels_per_block": 8}, "pixels_per_block"),
    ],
)
def test_configuration_that_means_nothing_is_refused(fields, pointer):
    with pytest.raises(MetadataError) as caught:
        plain(**fields)
    assert caught.value.pointer == f"/configuration/{pointer}"


def test_elements_that_szip_does_not_have_are_refused():
    with pytest.raises(MetadataError, match="bits-per-pixel"):
        plain(80, 5)


def test_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, imagecodecs.__name__, None)
    monkeypatch.setattr(registry, "_found", {})
    with pytest.raises(MissingDependencyError) as caught:
        registry.find("numcodecs.szip")
    assert caught.value.remedy == 'pip install "omnizarr[szip]"'

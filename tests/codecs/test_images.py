"""Chunks that are pictures. imagecodecs and TensorStore are the reference."""

import contextlib
import json

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.codecs.pictures import jpeg_shape, jpegxl_shape

imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs is not installed")
SMOOTH = (np.add.outer(np.arange(24), np.arange(30)) * 4 % 251).astype("u1")
LOSSLESS = {"lossless": True, "distance": 0, "effort": 3, "decodingspeed": 0, "photometric": "unknown",
            "primaries": "srgb", "transfer": "unknown", "usecontainer": False}  # fmt: skip


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def made(values, serializer, store=None, **options):
    options = {"chunks": values.shape, "compressors": None, **options}
    return omnizarr.create_array({} if store is None else store, data=values, serializer=serializer, **options)


@pytest.mark.parametrize("shape", [(23, 30), (2, 11, 30), (23, 10, 3), (2, 4, 29, 3), (690,), (7, 101), ()])
def test_jpeg_stores_what_imagecodecs_decodes(shape):
    values = SMOOTH.ravel()[7 : 7 + int(np.prod(shape))].reshape(shape)
    store = {}
    array = made(values, named("jpeg", quality=95), store)
    data = next(value for key, value in store.items() if key != "zarr.json")
    decoded = imagecodecs.jpeg8_decode(data)
    np.testing.assert_array_equal(array[...], decoded.reshape(shape))
    assert decoded.ndim == 2 + (shape[-1:] == (3,))
    assert np.abs(array[...].astype(int) - values).mean() < 30


def test_jpeg_reads_what_tensorstore_writes_for_neuroglancer(tmp_path):
    tensorstore = pytest.importorskip("tensorstore", reason="tensorstore is not installed")
    theirs = tensorstore.open({
        "driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": str(tmp_path)}, "create": True,
        "multiscale_metadata": {"data_type": "uint8", "num_channels": 3, "type": "image"},
        "scale_metadata": {"size": [30, 24, 4], "encoding": "jpeg", "chunk_size": [30, 24, 4], "resolution": [1, 1, 1]},
    }).result()  # fmt: skip
    theirs[...] = np.broadcast_to(SMOOTH.T[:, :, None, None], (30, 24, 4, 3))
    (chunk,) = (path for path in tmp_path.rglob("*-*_*") if path.is_file())
    store = {}
    array = made(np.zeros((4, 24, 30, 3), "u1"), named("jpeg"), store)
    store["c/0/0/0/0"] = chunk.read_bytes()
    np.testing.assert_array_equal(array[...], np.asarray(theirs).transpose(2, 1, 0, 3))


@pytest.mark.parametrize("dtype", ["u1", "u2", "f2", "f4"])
@pytest.mark.parametrize(
    "shape", [(5, 6), (5, 6, 3), (5, 6, 4), (5, 6, 1), (3, 5, 6), (1, 5, 6), (3, 5, 6, 3), (1, 5, 6, 3), (3, 5, 6, 1)]
)
def test_jpegxl_without_loss(shape, dtype):
    values = (np.random.default_rng(0).random(shape) * 200).astype(dtype)
    bits = 8 * values.dtype.itemsize
    store = {}
    made(values, named("jpegxl", **LOSSLESS, bitspersample=bits), store)
    array = omnizarr.open(store)
    np.testing.assert_array_equal(array[...], values)
    assert array.dtype == values.dtype
    data = next(value for key, value in store.items() if key != "zarr.json")
    np.testing.assert_array_equal(imagecodecs.jpegxl_decode(data), np.squeeze(values))


def test_jpegxl_keeps_samples_of_few_bits_as_they_are():
    values = np.arange(30, dtype="u2").reshape(5, 6) * 130
    store = {}
    made(values, named("jpegxl", **LOSSLESS, bitspersample=12), store)
    np.testing.assert_array_equal(omnizarr.open(store)[...], values)


def test_jpegxl_refuses_values_that_do_not_fit_the_bits():
    with pytest.raises(errors.CodecError, match="bits"):
        made(np.full((5, 6), 4096, "u2"), named("jpegxl", **LOSSLESS, bitspersample=12))


@pytest.mark.parametrize("shape", [(6,), (2, 5, 6, 5), (1, 1, 2, 5, 6)])
def test_jpegxl_refuses_other_shapes(shape):
    with pytest.raises(errors.CodecError, match="reshape"):
        made(np.zeros(shape, "u1"), named("jpegxl", **LOSSLESS, bitspersample=8))


def test_reshape_before_it_makes_frames():
    values = np.arange(2 * 1 * 3 * 5 * 6, dtype="u1").reshape(2, 1, 3, 5, 6)
    array = made(
        values, named("jpegxl", **LOSSLESS, bitspersample=8), chunks=(1, 1, 3, 5, 6),
        filters=[named("reshape", shape=[[2], [3], [4]])],
    )  # fmt: skip
    np.testing.assert_array_equal(array[1, 0, ::2], values[1, 0, ::2])


@pytest.mark.parametrize("codec", [named("jpeg"), named("jpegxl", **LOSSLESS, bitspersample=8)])
@pytest.mark.parametrize("dtype", ["i4", "f8", "i1", "bool"])
def test_other_data_types_are_refused(codec, dtype):
    with pytest.raises(errors.CodecError, match="uint8"):
        made(np.zeros((4, 4), dtype), codec)


@pytest.mark.parametrize("codec", [named("jpeg"), named("jpegxl", **LOSSLESS, bitspersample=8)])
def test_broken_pictures_are_errors(codec):
    store = {}
    array = made(SMOOTH, codec, store, fill_value=None)
    good = bytes(store["c/0/0"])
    larger = {}
    made(np.zeros((48, 30), "u1") + np.uint8(1), codec, larger)
    for data in (b"", b"\xff\xd8", good[:2], good[: len(good) // 3], b"x" * 50, bytes(larger["c/0/0"])):
        store["c/0/0"] = data
        with pytest.raises(errors.ChunkError):
            array[...]
    random = np.random.default_rng(1)
    for _ in range(100):
        data = bytearray(good)
        data[random.integers(len(data))] ^= 1 << random.integers(8)
        store["c/0/0"] = bytes(data)
        with contextlib.suppress(errors.ChunkError):
            assert array[...].shape == SMOOTH.shape


def test_shapes_are_read_from_the_headers():
    assert jpeg_shape(imagecodecs.jpeg8_encode(SMOOTH)) == (8, 24, 30)
    assert jpegxl_shape(imagecodecs.jpegxl_encode(SMOOTH, lossless=True)) == (24, 30)


def test_lzw():
    store = {}
    omnizarr.create_array(store, data=SMOOTH, chunks=SMOOTH.shape, compressors=["lzw"])
    assert imagecodecs.lzw_decode(store["c/0/0"]) == SMOOTH.tobytes()
    np.testing.assert_array_equal(omnizarr.open(store)[...], SMOOTH)
    for data in (imagecodecs.lzw_encode(b"x" * 719), imagecodecs.lzw_encode(b"x" * 10**6), b"\xff" * 9):
        store["c/0/0"] = data
        with pytest.raises(errors.ChunkError):
            omnizarr.open(store)[...]


def test_converting_says_what_loses_precision():
    store = {}
    made(SMOOTH, named("jpeg"), store)
    document = json.loads(store["zarr.json"])
    assert document["codecs"] == [named("jpeg")] or document["codecs"] == [{"name": "jpeg"}]
    target = {}
    omnizarr.convert(store, target, zarr_format=2)
    np.testing.assert_array_equal(omnizarr.open(target)[...], omnizarr.open(store)[...])

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.errors import ChunkSizeError
from tests.codecs.cases import FLOATS, bound

zfpy = pytest.importorskip("zfpy", reason="zfpy compresses")

MODES = [
    ({"mode": "reversible"}, {}),
    ({"mode": "fixed_accuracy", "tolerance": 0.01}, {"tolerance": 0.01}),
    ({"mode": "fixed_rate", "rate": 16}, {"rate": 16}),
    ({"mode": "fixed_precision", "precision": 20}, {"precision": 20}),
]


@pytest.mark.parametrize(("configuration", "parameters"), MODES)
@pytest.mark.parametrize("shape", [(120,), (10, 12), (2, 5, 12), (2, 5, 3, 4)])
@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8"])
def test_stream_is_that_of_zfpy_without_header(configuration, parameters, shape, dtype):
    array = FLOATS.reshape(shape).astype(dtype)
    codec = bound("zfp", configuration, array)
    native = array.astype(array.dtype.newbyteorder("="))
    stored = codec.encode(array)
    assert stored == zfpy.compress_numpy(native, write_header=False, **parameters)
    with_header = zfpy.compress_numpy(native, write_header=True, **parameters)
    np.testing.assert_array_equal(codec.decode(stored), zfpy.decompress_numpy(with_header))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "i8", "f2"])
def test_small_types_come_back(dtype):
    array = np.arange(64).reshape(8, 8).astype(dtype)
    codec = bound("zfp", {"mode": "reversible"}, array)
    np.testing.assert_array_equal(codec.decode(codec.encode(array)), array)


def test_promotion_is_that_of_the_text():
    array = np.array([0, 1, 128, 255], "u1")
    promoted = (array.astype("i4") - 128) << 23
    assert bound("zfp", {"mode": "reversible"}, array).encode(array) == zfpy.compress_numpy(
        promoted, write_header=False
    )


def test_scalar_is_a_vector_of_one():
    array = np.array(1.5)
    codec = bound("zfp", {"mode": "reversible"}, array)
    assert codec.decode(codec.encode(array)).tolist() == 1.5
    assert codec.decode(codec.encode(array)).shape == ()


def test_stream_of_another_shape_is_reported_by_its_header():
    stored = zfpy.compress_numpy(FLOATS[:2], write_header=True)
    with pytest.raises(ChunkSizeError):
        bound("numcodecs.zfpy", {}, FLOATS).decode(stored)


EXPERT = ("minbits", "maxbits", "maxprec", "minexp")


def expert(parameters):
    configuration = {"mode": "expert", **dict(zip(EXPERT, parameters, strict=True))}
    return {"name": "zfp", "configuration": configuration}


def opened_as(values, parameters, chunk):
    """Return an array of one chunk, a stream of zfp in the expert mode."""
    store = {}
    reversible = {"name": "zfp", "configuration": {"mode": "reversible"}}
    omnizarr.create_array(store, data=values, chunks=values.shape, serializer=reversible, compressors=None)
    document = {**json.loads(store["zarr.json"]), "codecs": [expert(parameters)]}
    key = "/".join(["c", *"0" * values.ndim])
    return omnizarr.open_array({"zarr.json": json.dumps(document).encode(), key: chunk})


def test_expert_streams_of_the_filter_of_hdf5_are_read():
    """The file holds what hdf5plugin wrote, and what it read back."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(Path(__file__).parents[1] / "readers" / "hdf5" / "data" / "plugins.h5") as file:
        _, chunk = file["zfp expert"].id.read_direct_chunk((5, 9))
        expected = file["zfp expert decoded"][5:10, 9:18]
    found = opened_as(np.zeros((5, 9), "f4"), (1, 16657, 40, -20), chunk)
    np.testing.assert_array_equal(found[...], expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("parameters", [(300, 300, 32, 2), (250, 250, 24, 0)])
def test_expert_streams_are_decoded_as_their_headers_say(dtype, parameters):
    imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs is not installed")
    values = (np.add.outer(np.arange(10), np.arange(13.0)) ** 1.5 * 3).astype(dtype)
    whole = imagecodecs.zfp_encode(values, level=parameters, mode=imagecodecs.ZFP.MODE.EXPERT, header=True)
    body = (int.from_bytes(whole, "little") >> 148).to_bytes(len(whole), "little")
    np.testing.assert_array_equal(opened_as(values, parameters, body)[...], imagecodecs.zfp_decode(whole))


@pytest.mark.parametrize(
    ("parameters", "other"),
    [
        ((1, 16658, 14, -1074), {"mode": "fixed_precision", "precision": 14}),
        ((0, 16658, 64, -4), {"mode": "fixed_accuracy", "tolerance": 0.0625}),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_expert_streams_that_are_those_of_another_mode_are_written(parameters, other, dtype):
    values = (np.add.outer(np.arange(10), np.arange(13.0)) ** 1.5).astype(dtype)
    stores = {}, {}
    for store, codec in zip(stores, (expert(parameters), {"name": "zfp", "configuration": other}), strict=True):
        omnizarr.create_array(store, data=values, chunks=values.shape, serializer=codec, compressors=None)
    assert stores[0]["c/0/0"] == stores[1]["c/0/0"]
    np.testing.assert_array_equal(omnizarr.open_array(stores[0])[...], omnizarr.open_array(stores[1])[...])


def test_other_expert_streams_are_not_written():
    with pytest.raises(errors.CodecError, match="writes no zfp stream of this expert mode"):
        omnizarr.create_array({}, data=np.ones((4, 4)), serializer=expert((64, 300, 20, -9)), compressors=None)


@pytest.mark.parametrize("parameters", [(9, 8, 20, 0), (1, 2**15 + 1, 20, 0), (1, 9, 0, 0), (1, 9, 9, -20000)])
def test_expert_modes_that_zfp_does_not_have_are_refused(parameters):
    with pytest.raises(errors.MetadataError):
        omnizarr.create_array({}, data=np.ones((4, 4)), serializer=expert(parameters), compressors=None)


@pytest.mark.parametrize("size", [1, 9, 40])
def test_cut_expert_streams_do_no_harm(size):
    values = np.ones((40, 40))
    array = opened_as(values, (1, 16658, 40, -100), b"\xff" * size)
    with contextlib.suppress(errors.ChunkError):
        assert array[...].shape == (40, 40)

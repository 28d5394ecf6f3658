import numpy as np
import pytest

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

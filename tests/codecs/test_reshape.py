import numpy as np
import pytest

from omnizarr.errors import CodecError
from tests.codecs.cases import bound

ARRAY = np.arange(100 * 5 * 6 * 3).reshape(100, 5, 6, 3)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ([[0, 1], [2], 3], (500, 6, 3)),  # the example of the text
        ([-1], (9000,)),
        ([100, -1, 3], (100, 30, 3)),
        ([[0], [1, 2, 3]], (100, 90)),
        ([[0, 1], -1], (500, 18)),
        ([1, [0], 1, -1], (1, 100, 1, 90)),
        ([9000, []], (9000, 1)),
    ],
)
def test_forms(shape, expected):
    codec = bound("reshape", {"shape": shape}, ARRAY)
    assert codec.encoded.shape == expected
    np.testing.assert_array_equal(codec.encode(ARRAY), ARRAY.reshape(expected))
    np.testing.assert_array_equal(codec.decode(ARRAY.reshape(expected)), ARRAY)


@pytest.mark.parametrize("shape", [[7, -1], [9001], [], [[0], [2]], [50, 2, [1], -1, [3], 2], [3, [0, 1], -1]])
def test_shapes_that_do_not_fit_are_refused(shape):
    with pytest.raises(CodecError):
        bound("reshape", {"shape": shape}, ARRAY)


def test_scalar_becomes_a_vector():
    array = np.array(5)
    assert bound("reshape", {"shape": [1]}, array).encode(array).tolist() == [5]

import numpy as np
import pytest

from tests.codecs.cases import bound


@pytest.mark.parametrize(
    ("dtype", "given", "rounded"),
    [
        # the values in the tests of zarrs
        ("f4", [0.0, 1.23456789, -8.3587192834, 98765.43210], [0.0, 1.25, -8.0, 98304.0]),
        ("u4", [0, 1024, 1280, 1664, 1685, 123145182, 4294967295], [0, 1024, 1280, 1536, 1792, 117440512, 3758096384]),
        ("u1", [0, 3, 7, 15, 17, 54, 89, 128, 255], [0, 3, 7, 16, 16, 56, 96, 128, 224]),
    ],
)
def test_agrees_with_zarrs(dtype, given, rounded):
    array = np.array(given, dtype)
    codec = bound("bitround", {"keepbits": 3}, array)
    np.testing.assert_array_equal(codec.encode(array), np.array(rounded, dtype))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "c8", "c16"])
def test_numbers_that_need_few_bits_stay(dtype):
    array = np.array([0, -0.0, 1, 1.5, -2.5, np.inf, -np.inf, np.nan], dtype)
    np.testing.assert_array_equal(bound("bitround", {"keepbits": 3}, array).encode(array), array)


def test_nan_of_all_bits_stays_a_nan():
    array = np.array([0x7FFFFFFF, 0xFFFFFFFF], "u4").view("f4")
    assert np.isnan(bound("bitround", {"keepbits": 3}, array).encode(array)).all()


def test_parts_of_complex_numbers_are_rounded_one_by_one():
    array = np.array([1.23456789 - 8.3587192834j], "c8")
    assert bound("bitround", {"keepbits": 3}, array).encode(array)[0] == 1.25 - 8j


def test_decoding_does_nothing():
    array = np.arange(5.0)
    assert bound("bitround", {"keepbits": 3}, array).decode(array) is array

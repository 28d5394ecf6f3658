"""`omnizarr.tools.pyramid.reducing`, held against NumPy, scikit-image and exact arithmetic."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from omnizarr.tools.pyramid.reducing import METHODS, reduce

DTYPES = ["u1", "i1", "<u2", ">i2", "i4", "u4", "i8", "u8", "f2", "f4", ">f8", "?"]
SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=7)


@st.composite
def cases(draw, dtypes=DTYPES):
    values = draw(arrays.arrays(draw(st.sampled_from(dtypes)), SHAPES))
    factors = draw(st.lists(st.integers(1, 4), min_size=values.ndim, max_size=values.ndim))
    return values, factors


def blocks(values, factors):
    """The elements of each block, in order, by the coordinates of the block."""
    counts = [math.ceil(length / factor) for length, factor in zip(values.shape, factors, strict=True)]
    for at in product(*map(range, counts)):
        yield at, values[tuple(slice(i * f, (i + 1) * f) for i, f in zip(at, factors, strict=True))].ravel().tolist()


def half_to_even(numbers):
    return round(Fraction(sum(map(int, numbers)), len(numbers)))


def present(numbers):
    return [number for number in numbers if number == number]  # noqa: PLR0124 - NaN alone differs from itself


@given(cases(["u1", "i1", "<u2", ">i2", "i4", "u4", "i8", "u8"]))
def test_mean_of_integers_is_exact_and_rounded_to_even(case):
    values, factors = case
    result = reduce(values, factors, "mean")
    assert result.dtype == values.dtype
    assert {at: int(result[at]) for at, _ in blocks(values, factors)} == {
        at: half_to_even(numbers) for at, numbers in blocks(values, factors)
    }


@given(cases(["f2", "f4", ">f8"]))
@settings(max_examples=200)
def test_mean_of_floats_leaves_out_nan(case):
    values, factors = case
    result = reduce(values, factors, "mean")
    assert result.dtype == values.dtype
    for at, numbers in blocks(values, factors):
        there = present(numbers)
        if not there or (math.inf in there and -math.inf in there):
            assert np.isnan(result[at])
        elif any(map(math.isinf, there)):
            assert np.isinf(result[at])
        else:
            with np.errstate(over="ignore"):
                exact = np.array(float(sum(map(Fraction, there)) / len(there))).astype(values.dtype)
            np.testing.assert_allclose(
                float(result[at]), float(exact), rtol=1e-3 if values.dtype.itemsize == 2 else 1e-6,
                atol=max(map(abs, there)) * 1e-15,
            )  # fmt: skip


@given(cases())
def test_extremes(case):
    values, factors = case
    for method, choose in (("max", max), ("min", min)):
        result = reduce(values, factors, method)
        assert result.dtype == values.dtype
        for at, numbers in blocks(values, factors):
            there = present(numbers)
            assert result[at] == choose(there) if there else np.isnan(result[at])


@given(cases([*DTYPES, "M8[s]", "S2", "U1"]))
def test_mode_is_the_most_frequent_and_of_several_the_smallest(case):
    values, factors = case
    if values.dtype.kind == "M":
        values = np.nan_to_num(values.astype("i8")).astype("M8[s]")
    result = reduce(values, factors, "mode")
    assert result.dtype == values.dtype
    for at, _ in blocks(values, factors):
        part = values[tuple(slice(i * f, (i + 1) * f) for i, f in zip(at, factors, strict=True))].ravel()
        there = part[part == part]  # noqa: PLR0124
        if not there.size or there.dtype.kind == "M":
            continue
        found, counts = np.unique(there, return_counts=True)
        assert result[at] == found[counts.argmax()]


@given(cases([*DTYPES, "M8[s]", "S2", "c8"]))
def test_nearest_is_an_element_at_the_middle(case):
    values, factors = case
    result = reduce(values, factors, "nearest")
    for at in np.ndindex(result.shape):
        place = tuple(min(i * f + (f - 1) // 2, n - 1) for i, f, n in zip(at, factors, values.shape, strict=True))
        np.testing.assert_array_equal(result[at], values[place])


@given(cases(["u1", "<u2", "f4", "f8"]))
def test_even_blocks_are_those_of_scikit_image(case):
    measure = pytest.importorskip("skimage.measure", reason="scikit-image is the reference")
    transform = pytest.importorskip("skimage.transform", reason="scikit-image is the reference")
    values, factors = case
    values = np.nan_to_num(
        values[tuple(slice(n - n % f) for n, f in zip(values.shape, factors, strict=True))], posinf=1
    )
    values = np.clip(values.astype("f8"), -1e30, 1e30)
    if not values.size:
        return
    mean = transform.downscale_local_mean(values, tuple(factors))
    np.testing.assert_allclose(reduce(values, factors, "mean"), mean, rtol=1e-12, atol=np.abs(values).max() * 1e-15)
    for method, choose in (("max", np.max), ("min", np.min)):
        np.testing.assert_array_equal(
            reduce(values, factors, method), measure.block_reduce(values, tuple(factors), choose)
        )


@pytest.mark.parametrize("method", METHODS)
def test_array_without_elements(method):
    assert reduce(np.zeros((0, 5), "f4"), (2, 2), method).shape == (0, 3)


@pytest.mark.parametrize(
    ("method", "dtype"), [("mean", "S2"), ("mean", "M8[s]"), ("max", "S2"), ("max", "c8"), ("mode", "c8")]
)
def test_method_that_is_not_valid(method, dtype):
    with pytest.raises(TypeError, match="use the method"):
        reduce(np.zeros(4, dtype), (2,), method)

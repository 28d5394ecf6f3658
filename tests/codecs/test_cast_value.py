from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import ChunkError, CodecError
from tests.codecs.cases import bound

ROUNDINGS = ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]


def cast(values, source, target, **configuration):
    array = np.array(values, source)
    codec = bound("cast_value", {"data_type": target, **configuration}, array)
    encoded = codec.encode(array)
    assert encoded.dtype == codec.encoded.dtype
    return encoded.tolist()


def whole(value, rounding):
    """Return a Fraction rounded to an integer, by the definitions of the text."""
    low = value.numerator // value.denominator
    part = value - low
    if part == 0:
        return low
    if rounding == "towards-positive" or (rounding == "towards-zero" and value < 0):
        return low + 1
    if rounding in ("towards-negative", "towards-zero"):
        return low
    if part == Fraction(1, 2):
        return (low + 1 if low % 2 else low) if rounding == "nearest-even" else (low + 1 if value > 0 else low)
    return low + 1 if part > Fraction(1, 2) else low


finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-600, 600).map(lambda n: n / 2),
    st.floats(-(2.0**65), 2.0**65),
)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "int64", "uint64"])
@given(value=finite)
def test_floats_to_integers(rounding, target, value):
    info = np.iinfo(target)
    expected = whole(Fraction(value), rounding)
    bits = info.bits
    wrapped = (expected - info.min) % 2**bits + info.min
    clamped = min(max(expected, info.min), info.max)
    assert cast([value], "f8", target, rounding=rounding, out_of_range="wrap") == [wrapped]
    assert cast([value], "f8", target, rounding=rounding, out_of_range="clamp") == [clamped]
    if expected == clamped:
        assert cast([value], "f8", target, rounding=rounding) == [expected]
    else:
        with pytest.raises(CodecError):
            cast([value], "f8", target, rounding=rounding)


@pytest.mark.parametrize("source", ["f8", "i8", "u8"])
@pytest.mark.parametrize("target", ["float32", "float16"])
@given(data=st.data())
def test_rounding_to_floats_is_correct(source, target, data):
    if source == "f8":
        limit = 60000.0 if target == "float16" else 3e38
        value = data.draw(st.floats(-limit, limit))
    else:
        info = np.iinfo(source)
        value = data.draw(st.integers(info.min, info.max))
        value = max(min(value, 60000), -60000) if target == "float16" else value
    up = cast([value], source, target, rounding="towards-positive")[0]
    down = cast([value], source, target, rounding="towards-negative")[0]
    exact = Fraction(value)
    assert Fraction(down) <= exact <= Fraction(up)
    step = np.dtype(target).type
    assert up == down or np.nextafter(step(down), step(np.inf)) == step(up)
    assert cast([value], source, target, rounding="towards-zero")[0] == (down if value > 0 else up)
    near = cast([value], source, target)[0]
    away = cast([value], source, target, rounding="nearest-away")[0]
    below, above = exact - Fraction(down), Fraction(up) - exact
    if below != above:
        assert near == away == (down if below < above else up)
    elif up != down:
        assert away == (up if value > 0 else down)
        assert step(near).view(f"u{step().itemsize}") % 2 == 0


def test_examples_of_the_text():
    assert cast([128.0], "f8", "int8", out_of_range="clamp") == [127]
    assert cast([128.0], "f8", "int8", out_of_range="wrap") == [-128]
    assert cast([32768, 32769, -32769], "i4", "int16", out_of_range="wrap") == [-32768, -32767, 32767]
    with pytest.raises(CodecError):
        cast([128.0], "f8", "int8")


def test_cast_of_numpy_can_be_configured():
    scalar_map = {"encode": [["NaN", 0], ["+Infinity", 0], ["-Infinity", 0]]}
    values = [np.nan, np.inf, -np.inf, 300.7, -1.5]
    assert cast(values, "f8", "uint8", rounding="towards-zero", out_of_range="wrap", scalar_map=scalar_map) == [
        0, 0, 0, 44, 255,
    ]  # fmt: skip


@pytest.mark.parametrize("out_of_range", ["clamp", "wrap", None])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_integer_means_nan_and_infinity(value, out_of_range):
    with pytest.raises(CodecError):
        cast([value], "f8", "int16", out_of_range=out_of_range)


def test_nan_infinity_and_signed_zero_stay():
    found = cast([np.nan, np.inf, -np.inf, -0.0], "f8", "float32")
    assert np.isnan(found[0])
    assert found[1:3] == [np.inf, -np.inf]
    assert np.signbit(found[3])


def test_too_large_floats_become_infinite_only_if_clamped():
    assert cast([1e300, -1e300], "f8", "float32", out_of_range="clamp") == [np.inf, -np.inf]
    with pytest.raises(CodecError):
        cast([1e300], "f8", "float32")


# cast-value-rs 0.5.1, which zarr-python 3.4.2 runs, for 64-bit floats beyond the largest 32-bit one
LARGEST = float(np.finfo("f4").max)
STEP = 2.0**104


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        ("nearest-even", [LARGEST, np.inf, np.inf, np.inf, -LARGEST, -np.inf]),
        ("towards-zero", [LARGEST, LARGEST, LARGEST, np.inf, -LARGEST, -LARGEST]),
        ("towards-positive", [np.inf, np.inf, np.inf, np.inf, -LARGEST, -LARGEST]),
        ("towards-negative", [LARGEST, LARGEST, LARGEST, np.inf, -np.inf, -np.inf]),
        ("nearest-away", [LARGEST, np.inf, np.inf, np.inf, -LARGEST, -np.inf]),
    ],
)
def test_largest_float_agrees_with_zarr_python(rounding, expected):
    values = [LARGEST + part * STEP for part in (0.25, 0.5, 0.75, 1)] + [
        -LARGEST - part * STEP for part in (0.25, 0.75)
    ]
    assert cast(values, "f8", "float32", rounding=rounding, out_of_range="clamp") == expected


def test_first_of_equal_keys_counts():
    assert cast([3, 4], "i4", "int8", scalar_map={"encode": [[3, 1], [3, 2]]}) == [1, 4]


def test_way_back_has_its_own_map():
    array = np.array([np.nan, 5.0])
    scalar_map = {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}
    codec = bound("cast_value", {"data_type": "uint8", "scalar_map": scalar_map}, array, fill_value=np.nan)
    assert codec.encoded.fill_value == 0
    encoded = codec.encode(array)
    assert encoded.tolist() == [0, 5]
    np.testing.assert_array_equal(codec.decode(encoded), array)


def test_stored_number_without_a_place_is_a_broken_chunk():
    codec = bound("cast_value", {"data_type": "int32"}, np.zeros(1, "i1"))
    with pytest.raises(ChunkError):
        codec.decode(np.array([300], "i4"))


@pytest.mark.parametrize(("fill", "target"), [(300, "int8"), (1.5, "int8"), (np.nan, "int16")])
def test_fill_value_has_to_survive(fill, target):
    with pytest.raises(CodecError) as caught:
        bound("cast_value", {"data_type": target}, np.zeros(1), fill_value=fill)
    assert caught.value.pointer == "/fill_value"


@pytest.mark.parametrize("order", ["<", ">"])
def test_byte_orders(order):
    array = np.array([1, 2, 3], order + "i4")
    codec = bound("cast_value", {"data_type": "float32"}, array)
    np.testing.assert_array_equal(codec.decode(codec.encode(array)), array)
    assert codec.decode(codec.encode(array)).dtype == array.dtype


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint2"])
def test_small_types_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="the small types are its own")
    values = np.array([0, 1, 2, 3])
    array = values.astype("f8")
    codec = bound("cast_value", {"data_type": name, "out_of_range": "clamp"}, array)
    encoded = codec.encode(array)
    assert encoded.dtype == np.dtype(getattr(ml_dtypes, name))
    np.testing.assert_array_equal(codec.decode(encoded), array)
    largest = codec.encode(np.array([1e30] * 4)).astype("f8")[0]
    assert largest in {"bfloat16": [np.float64(np.array(1e30).astype(ml_dtypes.bfloat16))], "float8_e4m3fn": [448],
                       "float8_e5m2": [np.inf], "float4_e2m1fn": [6], "int4": [7], "uint2": [3]}[name]  # fmt: skip

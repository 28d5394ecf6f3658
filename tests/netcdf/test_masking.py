"""Masks and scales are those of netCDF4-python."""

import warnings
from unittest import mock

import netCDF4
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omnizarr.errors import ValueTypeError
from omnizarr.netcdf import Attribute, UserType, types
from omnizarr.netcdf.masking import Packing, masked
from omnizarr.nodes import packing as packed

NUMBERS = [each for each in types.TYPES.values() if not each.is_text]
FLOATS = (types.FLOAT, types.DOUBLE)
SETTINGS = st.fixed_dictionaries({"mask": st.booleans(), "scale": st.booleans(), "always_mask": st.booleans()})


def code(nc_type):
    return nc_type.dtype.str[1:]


def seen_by_netcdf4(stored, attributes, nc_type, *, no_fill=False, mask=True, scale=True, always_mask=True):
    """What netCDF4-python makes of stored values, and what it warns of."""
    with netCDF4.Dataset("masks.nc", "w", diskless=True, persist=False) as dataset:
        variable = variable_of(dataset, stored.shape, attributes, nc_type, no_fill=no_fill)
        variable.set_auto_maskandscale(False)
        variable[...] = stored
        variable.set_auto_mask(mask)
        variable.set_auto_scale(scale)
        variable.set_always_mask(always_mask)
        return warned(lambda: variable[...])


def stored_by_netcdf4(data, shape, attributes, nc_type):
    """What netCDF4-python stores for values."""
    with netCDF4.Dataset("packs.nc", "w", diskless=True, persist=False) as dataset:
        variable = variable_of(dataset, shape, attributes, nc_type)
        variable[...] = data
        variable.set_auto_maskandscale(False)
        return np.asarray(variable[...])


def variable_of(dataset, shape, attributes, nc_type, *, no_fill=False):
    names = tuple(f"d{number}" for number in range(len(shape)))
    for name, length in zip(names, shape, strict=True):
        dataset.createDimension(name, length)
    fill = False if no_fill else attributes.get("_FillValue")
    variable = dataset.createVariable("v", code(nc_type), names, fill_value=fill)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in attributes.items():
            if name != "_FillValue":
                variable.setncattr(name, value)
    return variable


def warned(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    # Casting and arithmetic of NumPy may warn as well; what netCDF4-python itself says counts.
    return result, [str(each.message) for each in caught if each.category is UserWarning]


def packing_of(attributes, nc_type, **options):
    return Packing.of({name: Attribute.of(value) for name, value in attributes.items()}, nc_type, **options)


def check_same(result, expected):
    """Check values, masks, types and fill values."""
    assert (result is np.ma.masked) == (expected is np.ma.masked)
    assert isinstance(result, np.ma.MaskedArray) == isinstance(expected, np.ma.MaskedArray)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    if isinstance(expected, np.ma.MaskedArray):
        assert np.array_equal(np.ma.getmaskarray(result), np.ma.getmaskarray(expected))
        assert (result.mask is np.ma.nomask) == (expected.mask is np.ma.nomask)
        if expected is not np.ma.masked and np.ma.is_masked(expected):
            assert np.array_equal(result.fill_value, expected.fill_value, equal_nan=result.dtype.kind in "fc")
    nan = result.dtype.kind in "fc"
    assert np.array_equal(np.ma.getdata(result), np.ma.getdata(expected), equal_nan=nan)


def some(nc_type):
    """Numbers of a type, few of them, so that attributes and data meet."""
    dtype = nc_type.dtype
    common = [0, 1, 2, 5, 100, nc_type.default_fill.item()]
    if dtype.kind == "f":
        common += [-1.0, 0.5, float("nan"), float("inf"), 1e20]
    else:
        limits = np.iinfo(dtype)
        common += [limits.min, limits.max, limits.max - 4]
    return st.sampled_from(common).map(dtype.type)


def vectors(nc_type, length):
    return st.lists(some(nc_type), min_size=length, max_size=length).map(lambda each: np.array(each, nc_type.dtype))


@st.composite
def stored_values(draw, nc_type):
    shape = draw(st.sampled_from([(), (1,), (4,), (2, 3)]))
    size = int(np.prod(shape))
    return np.array(draw(st.lists(some(nc_type), min_size=size, max_size=size)), nc_type.dtype).reshape(shape)


@st.composite
def speaking_attributes(draw, nc_type):
    """Attributes that mask and scale."""
    other = st.sampled_from(NUMBERS).flatmap(some)
    own = some(nc_type)
    single = own | own | other
    scales = st.sampled_from([0.1, 2.0, 1.0, np.float32(0.5), np.float32(1), np.int16(3), np.int32(1), "2", "x"])
    offsets = st.sampled_from([0.0, 1.5, -100.0, np.float32(0), np.float32(7), np.int8(1), np.array([1.0, 2.0])])
    return draw(
        st.fixed_dictionaries(
            {},
            optional={
                "_FillValue": own,
                "missing_value": single | vectors(nc_type, 2) | st.sampled_from(["none", "5", ""]),
                "valid_min": single,
                "valid_max": single,
                "valid_range": vectors(nc_type, 2) | single | st.just("0 5"),
                "scale_factor": scales,
                "add_offset": offsets,
                "_Unsigned": st.sampled_from(["true", "True", "TRUE", "false", ""]),
            },
        )
    )


@given(st.data())
def test_unpacks_what_netcdf4_unpacks(data):
    nc_type = data.draw(st.sampled_from(NUMBERS))
    attributes = data.draw(speaking_attributes(nc_type))
    stored, settings = data.draw(stored_values(nc_type)), data.draw(SETTINGS)
    no_fill = "_FillValue" not in attributes and data.draw(st.booleans())
    try:
        expected, said = seen_by_netcdf4(stored, attributes, nc_type, no_fill=no_fill, **settings)
    except (TypeError, AttributeError, np.exceptions.DTypePromotionError):
        # Text as a number is multiplied, asked for its size, or a fill value does not fit an unsigned type.
        assume(False)
    packing = packing_of(attributes, nc_type, no_fill=no_fill)
    # Large arrays are unpacked in blocks; no array without dimensions is.
    large = data.draw(st.sampled_from([packed._LARGE, 0])) if stored.ndim else packed._LARGE
    with mock.patch.multiple(packed, _LARGE=large, _BLOCK=2):
        result, warnings_ = warned(lambda: packing.unpack(stored, **settings))
    check_same(result, expected)
    assert sorted(warnings_) == sorted(said)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"missing_value": np.int16(-5)},
        {"valid_max": np.int16(1000), "missing_value": np.int16(-5), "_FillValue": np.int16(7)},
        {"scale_factor": 0.25, "add_offset": np.float32(3), "_FillValue": np.int16(7)},
        {"_Unsigned": "true", "valid_max": np.int16(-2)},
    ],
    ids=str,
)
def test_large_arrays_are_unpacked_as_netcdf4_does(attributes, order):
    stored = np.arange(2**20 + 2**17, dtype=np.int64).astype(np.int16).reshape((3, -1, 128), order=order)
    expected, _ = seen_by_netcdf4(stored, attributes, types.SHORT)
    result = packing_of(attributes, types.SHORT).unpack(stored)
    check_same(result, expected)
    assert result.flags.f_contiguous == (order == "F")


@pytest.mark.parametrize(
    "attributes",
    [{}, {"_FillValue": "x"}, {"missing_value": "x"}, {"valid_min": np.int8(1)}, {"scale_factor": 2.0}],
    ids=str,
)
@pytest.mark.parametrize("always_mask", [True, False])
def test_characters_are_masked_as_netcdf4_does(attributes, always_mask):
    stored = np.array([b"x", b"a", b"\0", b"5"])
    scale = "scale_factor" not in attributes  # netCDF4-python fails to multiply text
    expected, said = seen_by_netcdf4(stored, attributes, types.CHAR, scale=scale, always_mask=always_mask)
    packing = packing_of(attributes, types.CHAR)
    result, warnings_ = warned(lambda: packing.unpack(stored, always_mask=always_mask))
    check_same(result, expected)
    assert warnings_ == said


@pytest.mark.parametrize("always_mask", [True, False])
def test_enums_are_masked_and_not_scaled_as_netcdf4_does(always_mask):
    members = {"a": 0, "b": 1, "c": 255}
    stored = np.array([0, 1, 255], "u1")
    with netCDF4.Dataset("enums.nc", "w", diskless=True, persist=False) as dataset:
        dataset.createDimension("x", 3)
        variable = dataset.createVariable("v", dataset.createEnumType("u1", "e", members), ("x",), fill_value=1)
        variable.scale_factor = 2.0
        variable[:] = stored
        variable.set_always_mask(always_mask)
        expected = variable[:]
    enum = UserType("e", "enum", np.dtype("u1"), members, types.UBYTE)
    packing = packing_of({"_FillValue": np.uint8(1), "scale_factor": 2.0}, enum)
    check_same(packing.unpack(stored, always_mask=always_mask), expected)


@pytest.mark.parametrize(
    "nc_type",
    [types.STRING, UserType("pair", "compound", np.dtype("i4,f4")), UserType("raw", "opaque", np.dtype("V3"))],
    ids=str,
)
def test_strings_compounds_and_opaque_values_are_unchanged(nc_type):
    stored = np.zeros(2, nc_type.dtype)
    assert packing_of({"scale_factor": 2.0, "missing_value": 0.0}, nc_type).unpack(stored) is stored


def test_big_endian_values_are_masked_and_scaled():
    attributes = {"_FillValue": np.int16(-1), "scale_factor": 0.5, "_Unsigned": "true"}
    result = packing_of(attributes, types.SHORT).unpack(np.array([1, -1, -2], ">i2"))
    assert result.tolist() == [0.5, None, 32767.0]


def test_a_fill_value_with_the_payload_of_another_nan_masks():
    stored = np.array([0x7FC00001, 0xFFC00000, 0x3F800000], "u4").view("f4")
    expected, _ = seen_by_netcdf4(stored, {"_FillValue": np.float32("nan")}, types.FLOAT)
    check_same(packing_of({"_FillValue": np.float32("nan")}, types.FLOAT).unpack(stored), expected)


def test_limits_of_several_values_are_no_limits():
    packing = packing_of({"valid_min": np.array([1, 2], "i4"), "valid_max": np.array([], "i4")}, types.INT)
    assert not np.ma.is_masked(packing.unpack(np.arange(4, dtype="i4")))


def test_an_unsigned_default_fill_value_fills_bytes():
    # netCDF4-python raises a TypeError here: -127 is not an unsigned byte.
    packing = packing_of({"missing_value": np.int8(0), "valid_max": np.int8(5), "_Unsigned": "true"}, types.BYTE)
    result = packing.unpack(np.array([1, 9], "i1"))
    assert result.tolist() == [1, None]
    assert result.fill_value == 129


@pytest.mark.parametrize("name", ["scale_factor", "add_offset"])
def test_text_scales_nothing(name):
    packing = packing_of({name: "2"}, types.INT)
    result, said = warned(lambda: packing.unpack(np.array([1], "i4")))
    assert result.tolist() == [1]
    assert said == ["invalid scale_factor or add_offset attribute, no unpacking done..."]


def test_masked_is_for_those_who_have_only_attributes():
    attributes = {"_FillValue": Attribute.of(np.int16(7)), "scale_factor": Attribute.of(2.0)}
    assert masked(np.array([7, 1], "i2"), attributes, types.SHORT).tolist() == [None, 1]
    assert type(masked(np.array([1], "i2"), attributes, types.SHORT, always_mask=False)) is np.ndarray
    assert masked(np.array([7], "i2"), attributes, types.SHORT, mask=False).tolist() == [7]


# -- writing ------------------------------------------------------------------------


@st.composite
def packing_attributes(draw, nc_type):
    within = st.integers(0, 100).map(nc_type.dtype.type)
    return draw(
        st.fixed_dictionaries(
            {},
            optional={
                "_FillValue": within,
                "missing_value": within,
                "scale_factor": st.sampled_from([0.1, 2.0, np.float32(0.5), np.float32(0.01), np.int16(3)]),
                "add_offset": st.sampled_from([1.5, -10.0, np.float32(7), np.int8(1)]),
            },
        )
    )


@given(st.data())
def test_packs_what_netcdf4_packs(data):
    nc_type = data.draw(st.sampled_from(NUMBERS))
    attributes = data.draw(packing_attributes(nc_type))
    shape = data.draw(st.sampled_from([(), (1,), (4,), (2, 3)]))
    size = int(np.prod(shape))
    counts = st.integers(0, 120) | st.floats(0, 120)
    values = np.array(data.draw(st.lists(counts, min_size=size, max_size=size))).reshape(shape)
    values = values * attributes.get("scale_factor", 1) + attributes.get("add_offset", 0)
    if "scale_factor" not in attributes and "add_offset" not in attributes:
        values = values.astype(data.draw(st.sampled_from(["f8", "f4", "i8", "i2", "u1", ">i4"])))
    form = data.draw(st.sampled_from(["array", "list", "masked", "masked all"]))
    given_ = values
    if form == "list":
        given_ = values.tolist()
    elif form.startswith("masked"):
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size))).reshape(shape)
        given_ = np.ma.masked_array(values, mask | (form == "masked all"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of rounding what just misses an unsigned zero
        expected = stored_by_netcdf4(given_, shape, attributes, nc_type)
    try:
        result = packing_of(attributes, nc_type).pack(given_)
    except ValueTypeError:
        assume(False)
    assert result.dtype == nc_type.dtype
    assert np.array_equal(np.broadcast_to(result, shape), expected)


def test_packing_is_the_reverse_of_unpacking_whatever_is_masked():
    attributes = {"_FillValue": np.int16(-9), "scale_factor": 0.25, "add_offset": 100.0}
    packing = packing_of(attributes, types.SHORT)
    stored = np.array([-32768, -9, 0, 1, 32767], "i2")
    assert np.array_equal(packing.pack(packing.unpack(stored)), stored)


@pytest.mark.parametrize(
    ("attributes", "filled"),
    [
        ({}, -32767),
        ({"_FillValue": np.int16(5)}, 5),
        ({"missing_value": np.int16(6)}, 6),
        ({"_FillValue": np.int16(5), "missing_value": np.int16(6)}, 6),
        ({"_FillValue": np.int16(5), "missing_value": np.int16(6), "scale_factor": 2.0}, 6),
    ],
    ids=str,
)
@pytest.mark.parametrize("data", [np.ma.masked, np.ma.masked_array([1.0], [True])], ids=["masked", "array"])
def test_what_is_masked_is_filled_as_netcdf4_does(attributes, filled, data):
    assert stored_by_netcdf4(data, (1,), attributes, types.SHORT) == filled
    assert packing_of(attributes, types.SHORT).pack(data) == filled


def test_missing_values_behind_a_mask_stay_as_in_netcdf4():
    attributes = {"missing_value": np.array([6, 7], "i2")}
    data = np.ma.masked_array([1, 7, 6], [False, True, True], dtype="i2")
    assert stored_by_netcdf4(data, (3,), attributes, types.SHORT).tolist() == [1, 7, 6]
    assert packing_of(attributes, types.SHORT).pack(data).tolist() == [1, 7, 6]


def test_the_first_of_several_missing_values_fills():
    data = np.ma.masked_array([1, 2], [False, True], dtype="i2")
    with pytest.raises(RuntimeError):
        stored_by_netcdf4(data, (2,), {"missing_value": np.array([6, 7], "i2")}, types.SHORT)
    assert packing_of({"missing_value": np.array([6, 7], "i2")}, types.SHORT).pack(data).tolist() == [1, 6]


def test_a_missing_value_that_the_type_cannot_hold_does_not_fill():
    packing = packing_of({"missing_value": 1e20, "_FillValue": np.int16(5)}, types.SHORT)
    assert packing.pack(np.ma.masked).item() == 5


@pytest.mark.parametrize("scale", [True, False])
def test_what_is_behind_a_mask_is_never_stored(scale):
    data = np.ma.masked_array([1.0, np.nan, 1e30], [False, True, True])
    assert packing_of({"_FillValue": np.int16(-1)}, types.SHORT).pack(data, scale=scale).tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    ("data", "nc_type"),
    [
        (300, types.BYTE),
        ([1, -129], types.BYTE),
        (np.array([128]), types.BYTE),
        (np.array([-1]), types.UBYTE),
        (np.array([2.0**31]), types.INT),
        (np.array([2.0**63]), types.INT64),
        (np.array([2**63], "u8"), types.INT64),
        (np.array([-1], "i1"), types.UINT64),
        (np.array([2.0**64]), types.UINT64),
        (np.array([70000.0], "f4"), types.USHORT),
        (np.array([1.0, np.nan]), types.INT),
        (np.array([np.inf]), types.INT),
        (np.array([-np.inf], "f2"), types.INT64),
        (np.array([1j]), types.DOUBLE),
        (1j, types.INT),
        ("text", types.INT),
        (None, types.INT),
        ([[1], [2, 3]], types.INT),
        (2**70, types.UINT64),
        (1, types.CHAR),
        (["ab"], types.CHAR),
        ("é", types.CHAR),
        ([1], types.STRING),
    ],
    ids=str,
)
def test_values_that_the_type_cannot_hold_are_refused(data, nc_type):
    with pytest.raises(ValueTypeError):
        packing_of({}, nc_type).pack(data)


def test_values_that_scaling_makes_too_large_are_refused():
    packing = packing_of({"scale_factor": 0.01}, types.SHORT)
    assert packing.pack([327.67]).tolist() == [32767]
    with pytest.raises(ValueTypeError, match=r"32768\.0"):
        packing.pack([327.68])


@pytest.mark.parametrize(
    ("data", "nc_type"),
    [
        ([-128, 127], types.BYTE),
        (np.array([-(2.0**63), 2.0**62]), types.INT64),
        (np.array([-0.9, 255.9]), types.UBYTE),
        (np.array([2**64 - 1], "u8"), types.UINT64),
        (np.array([], "f8"), types.BYTE),
        (np.array([True, False]), types.SHORT),
        ([1.7, -1.7], types.INT),
        (np.array([1, 2], ">i8"), types.SHORT),
        (np.array([2**53 + 1]), types.FLOAT),
        (np.float32(0.1), types.DOUBLE),
        ("5", types.INT),
    ],
    ids=str,
)
def test_values_that_the_type_holds_become_what_numpy_makes_of_them(data, nc_type):
    result = packing_of({}, nc_type).pack(data)
    assert result.dtype == nc_type.dtype
    assert np.array_equal(result, np.array(data).astype(nc_type.dtype))


def test_integers_keep_all_of_their_64_bits():
    # numpy.array of these lists is an array of floats.
    assert packing_of({}, types.UINT64).pack([2**64 - 1, 1]).tolist() == [2**64 - 1, 1]
    unsigned = packing_of({"_Unsigned": "true"}, types.INT64)
    assert unsigned.unpack(unsigned.pack([2**63 + 1, 1])).tolist() == [2**63 + 1, 1]
    with pytest.raises(ValueTypeError):
        packing_of({}, types.UINT64).pack([2**63, -1])


@pytest.mark.parametrize("data", [[200, 255, 0], np.array([200, 255, 0], "u1"), [200.0, 255.4, 0.0]], ids=str)
def test_unsigned_values_are_stored_in_signed_bytes(data):
    packing = packing_of({"_Unsigned": "true"}, types.BYTE)
    assert packing.pack(data).tolist() == [-56, -1, 0]
    assert packing.unpack(packing.pack(data)).tolist() == [200, 255, 0]
    assert packing.pack([-56, -1, 0]).tolist() == [-56, -1, 0]
    for refused in ([256], [-129], [-1, 200]):
        with pytest.raises(ValueTypeError):
            packing.pack(refused)


def test_text_is_stored_as_characters_and_objects():
    assert packing_of({}, types.CHAR).pack(["a", ""]).tolist() == [b"a", b""]
    assert packing_of({"_FillValue": "x"}, types.CHAR).pack(np.ma.masked).item() == b"x"
    assert packing_of({"_FillValue": "x"}, types.CHAR).pack(np.ma.masked_array([b"a", b"b"], [0, 1])).tolist() == [
        b"a",
        b"x",
    ]
    assert packing_of({}, types.STRING).pack(np.array(["é", "b"])).tolist() == ["é", "b"]
    assert packing_of({}, types.STRING).pack(np.ma.masked_array(["é", "b"], [0, 1])).tolist() == ["é", ""]


def test_without_scaling_values_are_stored_unchanged():
    assert packing_of({"scale_factor": 2.0, "add_offset": 1.0}, types.INT).pack([4, 6], scale=False).tolist() == [4, 6]

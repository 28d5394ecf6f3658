"""Masks and scales are those of netCDF4-python."""

import warnings

import netCDF4
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omnizarr.errors import ValueTypeError
from omnizarr.netcdf import types
from omnizarr.netcdf.header import Attribute
from omnizarr.netcdf.masking import Packing, masked
from omnizarr.netcdf.types import UserType

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
    result, warnings_ = warned(lambda: packing.unpack(stored, **settings))
    check_same(result, expected)
    assert sorted(warnings_) == sorted(said)

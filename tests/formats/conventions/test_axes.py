"""Which dimensions a picture shows: the same for `show` and for the page of `view`."""

import numpy as np
import pytest

import omnizarr
from omnizarr.formats.conventions.axes import role_of
from omnizarr.nodes import showing
from omnizarr.web.facts import Dataset

Z = {"axis": "Z", "positive": "down"}
# Names of dimensions as programs write them, attributes of coordinates, and the names of rows and columns.
NAMES = [
    (("time", "lat", "lon"), {}, ("lat", "lon")),
    (("lon", "lat", "time"), {}, ("lat", "lon")),
    (("latitude", "longitude", "pressure_level"), {}, ("latitude", "longitude")),
    # CORDEX
    (("rlat", "rlon", "level"), {}, ("rlat", "rlon")),
    (("time", "height", "rlat", "rlon"), {}, ("rlat", "rlon")),
    (("rlon", "rlat", "time"), {"rlon": {"axis": "X"}, "rlat": {"axis": "Y"}}, ("rlat", "rlon")),
    # NEMO
    (("nav_lat", "nav_lon", "depth"), {"depth": Z}, ("nav_lat", "nav_lon")),
    (("time_counter", "deptht", "y", "x"), {}, ("y", "x")),
    (("y", "x", "nav_lev"), {}, ("y", "x")),
    (("x", "deptht"), {}, ("deptht", "x")),
    # CMIP6 and other models of the ocean
    (("time", "j", "i", "lev"), {}, ("j", "i")),
    (("nlat", "nlon", "z_t"), {"z_t": Z}, ("nlat", "nlon")),
    (("ocean_time", "eta_rho", "xi_rho", "s_rho"), {}, ("eta_rho", "xi_rho")),
    # WRF
    (("Time", "bottom_top", "south_north", "west_east"), {}, ("south_north", "west_east")),
    (("south_north", "west_east_stag", "bottom_top"), {}, ("south_north", "west_east_stag")),
    (("south_north_stag", "west_east", "bottom_top_stag"), {}, ("south_north_stag", "west_east")),
    # OME-Zarr
    (("t", "c", "z", "y", "x"), {}, ("y", "x")),
    (("c", "y", "x", "z"), {}, ("y", "x")),
    # Images
    (("height", "width", "frame"), {}, ("height", "width")),
    (("band", "y", "x"), {}, ("y", "x")),
    (("row", "col", "band"), {}, ("row", "col")),
    # Coordinates decide where names say nothing.
    (("east", "north", "n"), {"east": {"axis": "X"}, "north": {"axis": "Y"}}, ("north", "east")),
    (("a", "b"), {"a": {"units": "degrees_east"}, "b": {"units": "degrees_north"}}, ("b", "a")),
    (("lon", "station", "n"), {"n": {"units": "days since 2000-01-01"}}, ("lon", "station")),
    (("lon", "sigma"), {"sigma": {"positive": "down"}}, ("sigma", "lon")),
    # Nothing is known: the last two that are not time or channels.
    (("a", "b", "time"), {}, ("a", "b")),
    (("time", "station"), {}, ("time", "station")),
]  # fmt: skip


def put(root, name, data, names, attributes):
    """Create an array with names of its dimensions as its format has them."""
    if root.zarr_format == 3:
        root.create_array(name, data=data, dimension_names=names, attributes=attributes)
    else:
        root.create_array(name, data=data, attributes={"_ARRAY_DIMENSIONS": list(names), **attributes})


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("names", "coordinates", "expected"), NAMES, ids="-".join)
def test_show_and_view_choose_the_same_dimensions(names, coordinates, expected, zarr_format):
    root = omnizarr.create_group({}, zarr_format=zarr_format)
    shape = tuple(range(4, 4 + len(names)))
    put(root, "values", np.zeros(shape, "f4"), names, {})
    for name, attributes in coordinates.items():
        put(root, name, np.arange(float(shape[names.index(name)])), [name], attributes)
    shown = showing.chosen_in(root["values"], ()).shown
    assert tuple(names[at] for at in shown) == expected
    assert tuple(names[at] for at in Dataset(root, "x").info("values")["array"]["view"]) == expected


@pytest.mark.parametrize("shape", [(40, 30), (1, 40, 1, 30, 1), (5, 40, 30, 3), (3, 40, 30), (40, 30, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_show_and_view_choose_the_same_without_names(shape, dtype):
    root = omnizarr.create_group({})
    root.create_array("values", shape=shape, dtype=dtype)
    shown = showing.chosen_in(root["values"], ()).shown
    assert list(shown) == Dataset(root, "x").info("values")["array"]["view"]


def test_height_is_that_of_an_image_beside_width():
    assert role_of("height", names=("height", "width")) == "y"
    assert role_of("height", names=("height", "lat", "lon")) == "z"

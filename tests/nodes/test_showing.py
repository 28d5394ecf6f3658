"""`Array.show`: what it reads, and what the picture says of it."""

import math
import re

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import BoundsCheckError, NodeNotFoundError, SelectionError
from omnizarr.nodes.showing import slices
from omnizarr.pictures.contents import Chart, Image, Table
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore

U1, F4 = np.dtype("u1"), np.dtype("f4")
LAT, LON = np.linspace(-90, 90, 19), np.arange(0, 360, 10.0)
VALUES = np.arange(3 * 19 * 36, dtype="f4").reshape(3, 19, 36)


@pytest.fixture(params=[2, 3])
def climate(request):
    root = omnizarr.create_group({}, zarr_format=request.param)

    def create(name, data, names, **attributes):
        more = {"dimension_names": names} if request.param == 3 else {}
        array = root.create_array(name, data=data, fill_value=-999 if name == "t2m" else None, **more)
        array.attrs.update(attributes | ({"_ARRAY_DIMENSIONS": list(names)} if request.param == 2 else {}))
        return array

    values = VALUES.copy()
    values[0, 5, 7], values[0, 6, 7] = -999, np.nan
    marks = {"_FillValue": -999.0} if request.param == 3 else {}
    create("t2m", values, ("time", "lat", "lon"), units="K", long_name="temperature", **marks)
    create("time", np.array([0, 31, 59]), ("time",), units="days since 2026-01-01", calendar="standard")
    create("lat", LAT, ("lat",), units="degrees_north")
    create("lon", LON, ("lon",), units="degrees_east")
    return root


# -- which elements ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "names", "dtype", "selection", "axes", "shown", "channels", "assumed"),
    [
        ((), "", F4, (), (), (), None, ()),
        ((5,), ".", F4, (), (range(5),), (0,), None, ()),
        ((5, 6), "..", F4, (), (range(5), range(6)), (0, 1), None, ()),
        ((5, 6), "..", F4, (slice(None, None, -2), -1), (range(4, -1, -2), 5), (0,), None, ()),
        ((4, 5, 6), "...", F4, (), (0, range(5), range(6)), (1, 2), None, (0,)),
        ((4, 5, 6), "...", F4, (slice(2, 4),), (2, range(5), range(6)), (1, 2), None, (0,)),
        ((4, 5, 6), "...", F4, (Ellipsis, 3), (range(4), range(5), 3), (0, 1), None, ()),
        ((4, 5, 6), "yxt", F4, (), (range(4), range(5), 0), (0, 1), None, (2,)),
        ((6, 5), "xy", F4, (), (range(6), range(5)), (1, 0), None, ()),
        ((6, 5, 4), "xyz", F4, (), (range(6), range(5), 0), (1, 0), None, (2,)),
        ((16, 20, 3), "...", U1, (), (range(16), range(20), range(3)), (0, 1), 2, ()),
        ((16, 20, 3), "...", U1, (slice(5),), (range(5), range(20), range(3)), (0, 1), 2, ()),  # a part of a picture
        ((5, 6, 3), "...", U1, (), (0, range(6), range(3)), (1, 2), None, (0,)),  # too small for one
        ((16, 20, 3), "yxz", U1, (), (range(16), range(20), 0), (0, 1), None, (2,)),
        ((5, 6, 4), "yxc", U1, (), (range(5), range(6), range(4)), (0, 1), 2, ()),
        ((4, 5, 6), "cyx", U1, (), (0, range(5), range(6)), (1, 2), None, (0,)),  # opacity comes last
        ((5, 6, 3), "...", F4, (), (range(5), 0, range(3)), None, None, None),
        ((3, 5, 6), "cyx", U1, (), (range(3), range(5), range(6)), (1, 2), 0, ()),
        ((3, 5, 6), "zyx", U1, (), (0, range(5), range(6)), (1, 2), None, (0,)),
        ((9, 20, 16, 4), "....", U1, (), (0, range(20), range(16), range(4)), (1, 2), 3, (0,)),
    ],
)
def test_choice(shape, names, dtype, selection, axes, shown, channels, assumed):
    found = slices.choose(
        shape, tuple(names.replace(".", " ")[at].strip() for at in range(len(shape))), dtype, selection
    )
    if shown is None:
        assert found.channels is None
        return
    assert (found.axes, found.shown, found.channels, found.assumed) == (axes, shown, channels, assumed)


@pytest.mark.parametrize(
    ("selection", "error"),
    [
        ((5,), BoundsCheckError),
        ((-6,), BoundsCheckError),
        ((0, 0, 0), SelectionError),
        ((Ellipsis, Ellipsis), SelectionError),
        (([1, 2],), SelectionError),
        (("a",), SelectionError),
        ((True,), SelectionError),
        ((None,), SelectionError),
    ],
)
def test_selections_that_make_no_picture(selection, error):
    with pytest.raises(error):
        slices.choose((5, 6), ("", ""), F4, selection)


def test_dimension_without_elements_among_many_is_named():
    with pytest.raises(SelectionError, match="length 0"):
        omnizarr.create_array({}, shape=(0, 4, 5), dtype="f4").show()


def test_colours_that_are_asked_for_must_be_there():
    with pytest.raises(SelectionError, match="red"):
        omnizarr.create_array({}, shape=(5, 6, 7), dtype="f4").show(rgb=True)
    array = omnizarr.create_array({}, data=np.random.default_rng(0).random((5, 6, 3)))
    assert array.show(rgb=True).page.content.legend is None
    assert array.show().page.content.legend is not None


def test_no_more_elements_are_read_than_there_is_room_for():
    array = omnizarr.create_array({}, data=np.arange(1000.0 * 700).reshape(1000, 700), chunks=(100, 100))
    image = array.show(size=(70, 50)).page.content
    assert image.levels.shape == (50, 35)
    assert array.show(0, size=(70, 50)).page.content.numbers.values.shape == (140,)  # two of each 10


def chunks_read(store):
    return [key for _, key in store.log if re.search(r"(^|/)c(/\d+)+$", key)]


def test_only_the_chunks_of_the_slice_are_read():
    values = {}
    omnizarr.create_array(values, data=np.zeros((4, 8, 8)) + 1, chunks=(1, 8, 8))
    store = FaultyStore(MemoryStore(values))
    omnizarr.open_array(store, mode="r").show(2)
    assert chunks_read(store) == ["c/2/0/0"]


# -- remarks ----------------------------------------------------------------------


def test_coordinates_units_and_title(climate):
    page = climate["t2m"].show((1,)).page
    image = page.content
    assert page.title == "/t2m[1, :, :] float32"
    assert (image.height.title, image.width.title) == ("lat [degrees_north]", "lon [degrees_east]")
    np.testing.assert_array_equal(image.width.coordinates, LON)
    assert image.legend.title == "temperature [K]"
    assert "at time=1 (2026-02-01)" in page.notes


def test_north_is_up(climate):
    image = climate["t2m"].show((1,)).page.content
    np.testing.assert_array_equal(image.height.coordinates, LAT[::-1])
    np.testing.assert_array_equal(image.legend.numbers.values, VALUES[1, ::-1])


def test_indices_do_not_say_where_north_is():
    array = omnizarr.create_array({}, data=np.eye(3, 4), dimension_names=("lat", "lon"))
    image = array.show().page.content
    np.testing.assert_array_equal(image.legend.numbers.values, np.eye(3, 4))
    assert image.height.coordinates.tolist() == [0, 1, 2]


Y, X = np.mgrid[:40, :50]


@pytest.fixture
def curved():
    """Return a group with latitudes and longitudes along two dimensions; the first row is the northern one."""
    root = omnizarr.create_group({})
    names, attributes = ["time", "y", "x"], {"coordinates": "time lat lon no"}
    root.create_array("t", data=np.stack([Y + X] * 2), dimension_names=names, attributes=attributes)
    root.create_array("time", data=[0, 1], dimension_names=["time"])
    north, east = {"units": "degrees_north"}, {"units": "degrees_east"}
    root.create_array("lat", data=60 - Y / 2 + X / 10, chunks=(10, 10), dimension_names=["y", "x"], attributes=north)
    root.create_array("lon", data=(X / 5 + Y / 10).T, chunks=(10, 10), dimension_names=["x", "y"], attributes=east)
    return root


def test_coordinates_along_two_dimensions_are_told_at_the_corners(curved):
    page = curved["t"].show(1).page
    assert "at the corners lat 40.5 to 64.9 degrees_north, lon 0.0 to 13.7 degrees_east" in page.notes
    assert (page.content.height.title, page.content.width.title) == ("y", "x")


@pytest.mark.parametrize("turn", [1, -1])
def test_north_of_a_curved_grid_is_up(curved, turn):
    image = curved["t"].show((0, slice(None, None, turn))).page.content
    np.testing.assert_array_equal(image.height.coordinates, np.arange(40))
    np.testing.assert_array_equal(image.legend.numbers.values, Y + X)


def test_few_chunks_of_coordinates_along_two_dimensions_are_read(curved):
    store = FaultyStore(curved.store)
    omnizarr.open_group(store, mode="r")["t"].show(0)
    read = [key for key in chunks_read(store) if key.startswith(("lat/", "lon/"))]
    corners = [f"lat/c/{y}/{x}" for y in (0, 3) for x in (0, 4)] + [f"lon/c/{x}/{y}" for y in (0, 3) for x in (0, 4)]
    assert sorted(read) == sorted(corners)


MANY = " ".join(map(str, range(10**5)))


@pytest.mark.parametrize(
    "names", [3, "", "lat " * 10**5, "../lat /lat . ..", "t", "other", MANY], ids=lambda it: str(it)[:9]
)
def test_names_of_coordinates_that_do_not_fit_do_no_harm(names):
    root = omnizarr.create_group({})
    root.create_array("t", data=np.eye(3), dimension_names=["y", "x"], attributes={"coordinates": names})
    root.create_array("lat", data=np.array([["a"] * 3] * 3), dimension_names=["y", "x"])
    root.create_array("other", data=np.eye(4), dimension_names=["y", "x"])
    store = FaultyStore(root.store)
    assert isinstance(omnizarr.open_group(store, mode="r")["t"].show().page.content, Image)
    assert len(store.log) < 1000


def test_index_that_nobody_asked_for_is_stated(climate):
    assert "the first element along dimension 0" in climate["t2m"].show().page.notes
    assert "the first element" not in climate["t2m"].show((0,)).page.notes


def test_missing_values_are_reported_from_nan(climate):
    numbers = climate["t2m"].show().page.content.legend.numbers
    assert (int(numbers.missing.sum()), numbers.nan_count) == (1, 1)


def test_a_line_has_its_coordinates(climate):
    chart = climate["t2m"].show((slice(None), 3, 4)).page.content
    assert isinstance(chart, Chart)
    np.testing.assert_array_equal(
        chart.along.coordinates, np.array(["2026-01-01", "2026-02-01", "2026-03-01"], "M8[us]")
    )
    np.testing.assert_array_equal(chart.numbers.values, VALUES[:, 3, 4])


def test_packed_values_are_unpacked():
    array = omnizarr.create_array(
        {},
        data=np.array([0, 10, -1], "i2"),
        attributes={"scale_factor": 0.5, "add_offset": 100, "_FillValue": -1, "units": "m"},
    )
    np.testing.assert_array_equal(array.show().page.content.numbers.values, [100, 105, np.nan])


@pytest.mark.parametrize(
    ("units", "calendar", "value", "text"),
    [
        ("hours since 1900-01-01", "gregorian", 24 * 31, "1900-02-01"),
        ("seconds since 1970-01-01T00:00:00Z", "standard", 1.5, "1970-01-01T00:00:01.500"),
        ("days since 1-1-1 00:00:00", "proleptic_gregorian", 365, "0002-01-01"),
        ("days since 2000-02-28", "noleap", 1, "2000-03-01"),
        ("days since 2000-02-29", "360_day", 1, "2000-02-30"),
        ("hours since 2001-02-28T12:00", "366_day", 24, "2001-02-29T12"),
        ("days since 1582-10-04", "standard", 1, "1582-10-15"),
        ("days since 1500-02-28", "julian", 1, "1500-02-29"),
        ("days since 2000-02-29", "noleap", 1, "1"),
        ("days since 2000-01-01", "lunar", 1, "1"),
        ("days since yesterday", "standard", 1, "1"),
        ("days since 2000-13-01", "standard", 1, "1"),
        ("months since 2000-01-01", "standard", 1, "1"),
    ],
)
def test_times_of_cf(units, calendar, value, text):
    root = omnizarr.create_group({})
    root.create_array("v", data=np.arange(3.0), dimension_names=["t"])
    data = np.array([value, value + 1, value + 2])
    root.create_array("t", data=data, attributes={"units": units, "calendar": calendar})
    assert root["v"].show((slice(0, 1),)).page.content.along.ticks(1)[0].text == text


@pytest.mark.parametrize("data", [np.zeros(4), np.zeros((3, 3))])
def test_coordinates_that_do_not_fit_are_not_taken(data):
    root = omnizarr.create_group({})
    root.create_array("v", data=np.arange(3.0), dimension_names=["t"])
    root.create_array("t", data=data)
    assert root["v"].show().page.content.along.coordinates.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "attributes", [{"units": 5}, {"scale_factor": "x"}, {"missing_value": {}}, {"_FillValue": "?"}, {"long_name": []}]
)
def test_attributes_that_mean_nothing_do_no_harm(attributes):
    array = omnizarr.create_array({}, data=np.arange(6.0).reshape(2, 3), attributes=attributes)
    assert isinstance(array.show().page.content, Image)


def test_array_that_was_opened_by_its_own_path_has_coordinates(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr")
    root.create_array("v", data=np.arange(3.0), dimension_names=["t"])
    root.create_array("t", data=np.array([5, 6, 7]))
    chart = omnizarr.open_array(tmp_path / "a.zarr" / "v", mode="r").show().page.content
    assert chart.along.coordinates.tolist() == [5, 6, 7]


# -- images of several levels ------------------------------------------------------------


@pytest.fixture
def image():
    root = {}
    y, x = np.mgrid[:256, :512]
    data = np.stack([np.hypot(y - 128, x - 256), np.hypot(y, x)])
    omnizarr.create_array(root, name="0", data=data, chunks=(1, 64, 64), dimension_names=("c", "y", "x"))
    unit = {"space": "micrometer"}
    omnizarr.pyramid(root, path="0", levels=4, scale={"y": 0.5, "x": 0.5}, unit=unit)
    return root


@pytest.mark.parametrize(("size", "shape"), [((600, 600), (256, 512)), ((256, 200), (128, 256)), ((64, 64), (32, 64))])
def test_level_is_the_coarsest_that_is_fine_enough(image, size, shape):
    page = omnizarr.open_group(image)["0"].show(size=size).page
    assert page.content.levels.shape == shape
    assert ("read from level" in page.notes) is (shape != (256, 512))


def test_levels_have_the_coordinates_of_ome_zarr(image):
    content = omnizarr.open_group(image)["0"].show((1,), size=(64, 64)).page.content
    assert content.width.title == "x [micrometer]"
    np.testing.assert_allclose(content.width.coordinates, 1.75 + np.arange(64) * 4)


def test_coarser_level_shows_the_part_that_was_selected(image):
    selected = (1, slice(64, 192), slice(256, 512))
    fine = omnizarr.open_group(image)["0"]
    content = fine.show(selected, size=(64, 32)).page.content
    assert content.levels.shape == (32, 64)
    np.testing.assert_allclose(content.legend.numbers.values, fine[selected][::4, ::4], atol=3)
    assert fine.show(selected, size=(64, 32)).page.title == "/0[1, 64:192, 256:] float64"


def test_only_the_coarse_level_is_read(image):
    store = FaultyStore(MemoryStore(image))
    omnizarr.open_group(store, mode="r")["0"].show(size=(64, 64))
    assert {key.partition("/")[0] for key in chunks_read(store)} == {"3"}


def test_level_that_is_missing_is_ignored(image):
    for key in [key for key in image if key.startswith("2/")]:
        del image[key]
    assert omnizarr.open_group(image)["0"].show(size=(64, 64)).page.content.levels.shape[1] == 64


def test_pixels_that_are_not_square_are_drawn_so():
    root = {}
    omnizarr.create_array(root, name="0", data=np.zeros((8, 16)) + 1.0, dimension_names=("y", "x"))
    omnizarr.pyramid(root, path="0", levels=1, scale={"y": 3, "x": 1})
    assert omnizarr.open_group(root)["0"].show().page.content.proportion == pytest.approx(1.5)


@pytest.fixture
def cells():
    """Return an image of three channels, of which two have colours and one has no window."""
    root = {}
    y, x = np.mgrid[:8, :16]
    data = np.stack([100 * (x >= 8), 10 * (y >= 4), x]).astype("u2")
    omnizarr.create_array(root, name="0", data=data, dimension_names=("c", "y", "x"))
    omnizarr.pyramid(root, path="0", levels=1)
    channels = [
        {"label": "DAPI", "color": "0000FF", "window": {"start": 0, "end": 200}},
        {"label": "GFP", "color": "#00FF00", "window": {"start": 0, "end": 10}},
    ]
    group = omnizarr.open_group(root)
    group.attrs["ome"] = {**group.attrs["ome"], "omero": {"channels": channels}}
    return group


def test_channels_are_blended_in_their_colours(cells):
    page = cells["0"].show((slice(2),)).page
    assert page.content.pixels[0, 0].tolist() == [0, 0, 0, 255]
    assert page.content.pixels[0, 15].tolist() == [0, 0, 128, 255]
    assert page.content.pixels[7, 0].tolist() == [0, 255, 0, 255]
    assert page.content.pixels[7, 15].tolist() == [0, 255, 128, 255]
    assert page.title == "/0[:2, :, :] uint16"
    assert page.notes.startswith("DAPI #0000FF from 0 to 200 · GFP #00FF00 from 0 to 10")
    assert page.notes.endswith("1 channel of the image not shown")


def test_channel_without_a_colour_is_white_and_spans_its_values(cells):
    content = cells["0"].show(percentiles=(0, 100)).page.content
    assert content.channels[2] == "channel 2 #ffffff from 0 to 15"
    assert content.pixels[0, 7].tolist() == [119, 119, 119, 255]  # 7 / 15 of 255
    assert cells["0"].show(limits=(0, 50)).page.content.pixels[0, 15].tolist() == [76, 76, 255, 255]


def test_one_channel_has_the_colours_of_numbers(cells):
    assert cells["0"].show(1).page.content.legend.texts == ("0", "10")
    assert cells["0"].show(rgb=False).page.title == "/0[0, :, :] uint16"
    assert cells["0"].show(rgb=True).page.content.channels == ()


def test_channels_are_read_from_the_coarser_level():
    root = {}
    y, x = np.mgrid[:64, :64]
    omnizarr.create_array(root, name="0", data=np.stack([y, x]).astype("u1"), dimension_names=("c", "y", "x"))
    omnizarr.pyramid(root, path="0", levels=3)
    group = omnizarr.open_group(root)
    group.attrs["ome"] = {**group.attrs["ome"], "omero": {"channels": [{"color": "FF0000"}, {"color": "00FF00"}]}}
    page = group.show(size=(16, 16)).page
    assert page.content.pixels.shape == (16, 16, 4)
    assert "read from level 2" in page.notes
    assert page.content.pixels[0, -1].tolist() == [0, 255, 0, 255]
    assert page.content.pixels[-1, 0].tolist() == [255, 0, 0, 255]


def test_colours_are_left_to_text_and_broken_metadata_does_no_harm(cells):
    cells.attrs["ome"] = {
        **cells.attrs["ome"],
        "omero": {"channels": [7, {"color": 3, "window": {"start": 5, "end": 5}}]},
    }
    content = cells["0"].show((slice(2),), percentiles=(0, 100)).page.content
    assert [text.partition(" from")[0] for text in content.channels] == ["channel 0 #ffffff", "channel 1 #ffffff"]


# -- groups ---------------------------------------------------------------------------------


def test_group_shows_its_first_array_of_data(climate):
    page = climate.show().page
    assert page.title.startswith("/t2m[0, ")
    assert "of the group" not in page.notes


def test_group_prefers_two_dimensions():
    root = omnizarr.create_group({})
    root.create_array("crs", data=np.int32(0))
    root.create_array("depth", data=np.arange(3.0), dimension_names=["depth"])
    root.create_array("name", data=np.array(["a", "b"]))
    assert root.show().page.title.startswith("/crs ")
    root.create_array("series", data=np.arange(3.0), dimension_names=["depth"])
    assert root.show().page.title.startswith("/series[")
    root.create_array("field", data=np.zeros((3, 4)))
    root.create_array("z", data=np.zeros((3, 4)))
    page = root.show(0).page
    assert page.title.startswith("/field[0, ")
    assert "one of 5 arrays of the group: show others by their names, crs, name, series, z" in page.notes


def test_group_without_arrays_says_what_it_has():
    root = omnizarr.create_group({})
    with pytest.raises(NodeNotFoundError, match="no array"):
        root.show()
    root.create_array("deep/field", data=np.zeros((3, 4)))
    with pytest.raises(NodeNotFoundError, match="groups deep"):
        root.show()
    assert root["deep"].show().page.title.startswith("/deep/field[")


# -- values of all kinds ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (np.float64(3), Table),
        (np.array(["a", "b"], np.dtypes.StringDType()), Table),
        (np.zeros(3, [("a", "i4"), ("b", "f8")]), Table),
        (np.ones((3, 4), bool), Image),
        (np.ones((3, 4), "c8"), Image),
        (np.array(["2026-01-01", "NaT"], "M8[D]"), Chart),
        (np.zeros((2, 3, 4, 5, 6), "f4"), Image),
        (np.zeros((0, 3)), Table),
        (np.zeros((1, 1)), Image),
    ],
)
def test_arrays_of_all_kinds_have_a_picture(data, kind):
    picture = omnizarr.create_array({}, data=data).show()
    assert isinstance(picture.page.content, kind)
    assert repr(picture)
    assert picture._repr_html_()
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_field_of_records_is_a_line():
    array = omnizarr.create_array({}, data=np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")]))
    picture = array.show("b")
    assert picture.page.content.numbers.values.tolist() == [2.5, 4.5]
    assert picture.page.title == "/[:, 'b'] float64"


@pytest.mark.parametrize("shape", [(3,), (5, 4), (5, 5, 5)])
def test_colours_that_are_requested_need_a_dimension_of_their_own(shape):
    array = omnizarr.create_array({}, data=np.zeros(shape, "u1"))
    with pytest.raises(omnizarr.errors.SelectionError, match="red, green and blue"):
        array.show(rgb=True)


def test_records_have_no_colours():
    array = omnizarr.create_array({}, data=np.zeros((4, 5, 3), [("a", "i4"), ("b", "f8")]))
    with pytest.raises(omnizarr.errors.SelectionError, match="red, green and blue"):
        array.show(rgb=True)


def test_table_of_many_rows_reads_the_first():
    data = np.array([[f"{row},{column}" for column in range(30)] for row in range(50)])
    content = omnizarr.create_array({}, data=data).show().page.content
    assert len(content.rows) == 20
    assert content.rows[19][8] == "19,7"
    assert content.omitted == "30 rows more · 22 columns more"


def test_huge_array_without_chunks_has_a_picture():
    array = omnizarr.create_array({}, shape=(2**40, 2**40), chunks=(2**36, 2**36), dtype="u1", fill_value=7)
    image = array.show((0,), size=(4, 4)).page.content
    assert image.numbers.values.tolist() == [7] * 8
    assert math.isfinite(image.high)


def test_unknown_names_of_colours_are_refused():
    with pytest.raises(ValueError, match="viridis"):
        omnizarr.create_array({}, data=np.zeros((2, 2))).show(colormap="jet")


@pytest.mark.parametrize(
    ("name", "values", "attributes", "is_upside_down"),
    [
        ("depth", [0, 10, 500], {"positive": "down"}, False),
        ("depth", [500, 10, 0], {"positive": "down"}, True),
        ("z", [0, 10, 500], {"positive": "up"}, True),
        ("z", [500, 10, 0], {"positive": "up"}, False),
        ("lev", [1000, 500, 10], {"units": "hPa"}, True),
        ("lev", [10, 500, 1000], {"units": "hPa"}, False),
        ("height", [2, 10, 80], {}, True),
        ("n", [-10, 0, 10], {"units": "degrees_north"}, True),
        ("n", [10, 0, -10], {"standard_name": "latitude"}, False),
        ("y", [5e6, 5.1e6, 5.2e6], {"standard_name": "projection_y_coordinate"}, True),
        ("y", [0, 1, 2], {}, False),  # rows that are counted
        ("y", [0.5, 1.5, 2.5], {}, True),
        ("lev", [1, 2, 7], {}, False),  # nothing tells
    ],
)
def test_the_surface_and_the_north_are_up(name, values, attributes, is_upside_down):
    root = omnizarr.create_group({})
    data = np.arange(12).reshape(3, 4)
    root.create_array("v", data=data, dimension_names=[name, "x"])
    root.create_array(name, data=values, dimension_names=[name], attributes=attributes)
    root.create_array("x", data=[1, 2, 4, 8], dimension_names=["x"])
    image = root["v"].show().page.content
    order = slice(None, None, -1 if is_upside_down else 1)
    np.testing.assert_array_equal(image.legend.numbers.values, data[order])
    np.testing.assert_array_equal(image.height.coordinates, np.array(values)[order])


def test_flags_have_their_meanings():
    attributes = {"flag_values": [0, 1, 2], "flag_meanings": "clear thin_cloud snow"}
    array = omnizarr.create_array({}, data=np.array([[0, 1], [2, 9]], "u1"), attributes=attributes)
    page = array.show(percentiles=(0, 100)).page
    assert page.content.legend.texts == ("clear", "9")
    assert "flags: 0 clear, 1 thin cloud, 2 snow" in page.notes


def test_one_packed_value_is_unpacked():
    attributes = {"scale_factor": 0.5, "valid_max": 100, "units": "K"}
    array = omnizarr.create_array({}, data=np.array([3, 101], "i2"), attributes=attributes)
    assert [array.show(at).page.content.rows for at in (0, 1)] == [(("1.5",),), (("missing",),)]


def test_channels_that_are_not_active_are_not_drawn(cells):
    ome = cells.attrs["ome"]
    ome["omero"]["channels"].append({"label": "c"})
    ome["omero"]["channels"][0]["active"] = False
    cells.attrs["ome"] = ome
    page = cells["0"].show().page
    assert page.notes.startswith("GFP #00FF00 from 0 to 10 · c #ffffff")
    assert page.notes.endswith("1 channel of the image not shown")
    assert page.content.pixels[0, 15, 2] > page.content.pixels[0, 0, 2]  # white by column
    assert cells["0"].show((slice(2),)).page.notes.startswith("DAPI #0000FF")  # as asked for


def test_an_active_channel_between_others_is_read_alone(cells):
    ome = cells.attrs["ome"]
    ome["omero"]["channels"] = [
        {"active": False},
        {"color": "00FF00", "window": {"start": 0, "end": 10}},
        {"active": False},
    ]
    cells.attrs["ome"] = ome
    page = cells["0"].show().page
    assert page.title == "/0[1:2, :, :] uint16"
    assert page.content.pixels[7, 0].tolist() == [0, 255, 0, 255]
    ome["omero"]["channels"] = [{"color": "FF0000"}, {"active": False}, {"color": "0000FF"}]
    cells.attrs["ome"] = ome
    assert cells["0"].show(percentiles=(0, 100)).page.content.pixels[:, :, 1].max() == 0


def test_map_without_coordinates_has_the_places_of_its_transform():
    said = {
        "spatial:dimensions": ["y", "x"],
        "spatial:transform": [2.0, 0, 10.0, 0, 1.0, -40.0],
        "proj:code": "EPSG:4326",
    }
    array = omnizarr.create_array({}, data=np.eye(4, 5, dtype="f4"), dimension_names=("y", "x"), attributes=said)
    image = array.show().page.content
    assert (image.height.title, image.width.title) == ("y [degrees_north]", "x [degrees_east]")
    np.testing.assert_array_equal(image.width.coordinates, [11.0, 13.0, 15.0, 17.0, 19.0])
    np.testing.assert_array_equal(image.height.coordinates, [-36.5, -37.5, -38.5, -39.5])  # north is up

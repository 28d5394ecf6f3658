"""Selections by coordinates. xarray says what they are."""

import itertools
import tracemalloc

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import SelectionError
from omnizarr.nodes import labels
from omnizarr.nodes.labels import positions

xr = pytest.importorskip("xarray")
pytestmark = pytest.mark.filterwarnings("ignore")  # of zarr-python, about text in v3

AXES = {
    "days": xr.date_range("2019-12-30", periods=70, freq="D", use_cftime=False),
    "hours": xr.date_range("2020-01-01T12", periods=60, freq="h", use_cftime=False),
    "months": xr.date_range("2020-01-01", periods=30, freq="MS", use_cftime=False),
    "noleap": xr.date_range("2020-02-26", periods=10, freq="D", calendar="noleap", use_cftime=True),
    "360": xr.date_range("2020-02-26", periods=10, freq="D", calendar="360_day", use_cftime=True),
    "up": np.linspace(-90, 90, 37),
    "down": np.linspace(90, -90, 37)[:30],
    "whole": np.array([1, 3, 5, 1000], dtype="int32"),
    "names": np.array(["ams", "ber", "par"]),
}
LABELS = {
    "days": ["2020", "2020-01", "2020-01-05", "2019", slice("2020-01", "2020-02-03"), slice(None, "2019-12-31"),
             slice("2020-03", None), slice("1990", "1991"), ["2020-01-05", "2020-01-02"], np.datetime64("2020-01-05")],
    "hours": ["2020", "2020-01-02", "2020-01-01T12", "2020-01-02T00:00", slice("2020-01-02", "2020-01-02T05")],
    "months": ["2021", "2020-01", "2020-01-01", slice("2020-05", "2021-02")],
    "noleap": ["2020", "2020-03", "2020-02-28", slice("2020-02-28", "2020-03-01")],
    "360": ["2020-02", "2020-02-30", slice("2020-02-29", "2020-03-02")],
    "up": [40.0, 0, slice(-10, 10), slice(-12, 11), slice(None, -60), slice(60, None), [5.0, -5.0], slice(91, 95)],
    "down": [40.0, slice(50, 40), slice(None, 70), slice(-40, None), [0.0, 90.0]],
    "whole": [3, slice(2, 6), 1000, [1000, 1]],
    "names": ["ber", ["par", "ams"], slice("b", "c")],
}  # fmt: skip
CASES = [(axis, label) for axis, given in LABELS.items() for label in given]


@pytest.fixture(params=[2, 3])
def stored(request, tmp_path):
    def make(axis):
        values = np.arange(len(AXES[axis]) * 3).reshape(-1, 3)
        dataset = xr.Dataset({"v": (("axis", "x"), values)}, coords={"axis": AXES[axis]})
        dataset.to_zarr(tmp_path / "x.zarr", zarr_format=request.param, consolidated=False)
        return dataset, omnizarr.open_array(tmp_path / "x.zarr", path="v")

    return make


@pytest.mark.parametrize(("axis", "label"), CASES, ids=str)
def test_labels_mean_what_they_mean_to_xarray(stored, axis, label):
    dataset, array = stored(axis)
    wanted = label
    if axis in {"noleap", "360"} and isinstance(label, str) and label.count("-") == 2:
        wanted = dataset.indexes["axis"][[str(each)[:10] for each in dataset.indexes["axis"]].index(label)]
    expected = dataset.v.sel(axis=wanted).to_numpy()
    np.testing.assert_array_equal(omnizarr.get(array, axis=label), expected)


@pytest.mark.parametrize(
    ("axis", "label", "says"),
    [
        ("days", "2018", "no place 2018: found '2018', expected one of 70 from 2019-12-30 to 2020-03-08; the nearest"),
        ("days", "north", "not a date or a time"),
        ("days", "2020-02-30", "there is no 2020-02-30"),
        ("360", "2020-02-31", "there is no 2020-02-31"),
        ("up", 41.3, "no place 41.3: found 41.3, expected one of 37 from -90.0 to 90.0; the nearest is 40.0"),
        ("up", "north", "are numbers: found 'north'"),
        ("whole", 2, "expected 1, 3, 5, 1000"),
        ("names", "lon", "expected ams, ber, par"),
    ],
)
def test_error_says_what_the_dimension_holds(stored, axis, label, says):
    _, array = stored(axis)
    with pytest.raises(SelectionError) as caught:
        positions(array, {"axis": label})
    assert says in str(caught.value)
    assert ("'axis'" in str(caught.value), caught.value.path) == (True, "v")


def test_misspelt_dimension_is_named_with_those_that_there_are(stored):
    _, array = stored("up")
    with pytest.raises(SelectionError, match=r"no dimension 'axes': found 'axes', expected 'axis', 'x'; did you mean"):
        positions(array, {"axes": 1})


def test_slice_of_falling_coordinates_may_begin_with_the_smaller_one(stored):
    dataset, array = stored("down")
    expected = dataset.v.sel(axis=slice(50, 40)).to_numpy()
    np.testing.assert_array_equal(omnizarr.get(array, axis=slice(40, 50)), expected)


def test_dimension_without_coordinates_is_selected_by_position(stored):
    dataset, array = stored("up")
    for label in (1, -1, slice(0, 2), [2, 0]):
        np.testing.assert_array_equal(omnizarr.get(array, x=label), dataset.v.sel(x=label).to_numpy())
    for label in (3, -4, 0.5, "a"):
        with pytest.raises(SelectionError, match="dimension 'x'"):
            positions(array, {"x": label})


def test_labels_of_several_dimensions(stored):
    dataset, array = stored("days")
    expected = dataset.v.sel(axis="2020-01", x=slice(1, 3)).to_numpy()
    np.testing.assert_array_equal(omnizarr.get(array, select={"axis": "2020-01"}, x=slice(1, 3)), expected)
    assert omnizarr.get(array, axis="2020-01-01", x=2) == dataset.v.sel(axis="2020-01-01", x=2)
    with pytest.raises(TypeError, match="selection and labels"):
        omnizarr.get(array, 0, x=1)


def test_coordinate_selects_itself(stored):
    dataset, array = stored("up")
    group = omnizarr.open_group(array.store)
    np.testing.assert_array_equal(omnizarr.get(group["axis"], axis=slice(0, 20)), dataset.axis.sel(axis=slice(0, 20)))


def made(values, **options):
    root = omnizarr.create_group({})
    root.create_array("axis", data=values, dimension_names=["axis"], **options)
    return root.create_array("v", data=np.arange(len(values)), dimension_names=["axis"])


def test_coordinates_of_a_group_above_count():
    root = omnizarr.create_group({})
    root.create_array("lat", data=[1.0, 2.0], dimension_names=["lat"])
    array = root.create_array("deep/er/v", data=[10, 20], dimension_names=["lat"])
    assert omnizarr.get(array, lat=2) == 20


def test_number_of_single_precision_is_found_as_it_is_typed():
    array = made(np.array([40.1, 40.2, 40.3], dtype="float32"))
    assert omnizarr.get(array, axis=40.2) == 1
    assert omnizarr.get(array, axis=slice(40.2, 40.3)).tolist() == [1, 2]


def test_packed_coordinates_count_as_what_they_mean():
    array = made(np.array([0, 10, 20], dtype="int16"), attributes={"scale_factor": 0.5, "add_offset": 100.0})
    assert omnizarr.get(array, axis=105) == 1


def test_times_of_numpy():
    root = omnizarr.create_group({}, zarr_format=2)
    dates = np.array(["2020-01-01", "2020-02-01", "NaT"], dtype="M8[ns]")
    names = {"_ARRAY_DIMENSIONS": ["axis"]}
    root.create_array("axis", data=dates, attributes=names)
    array = root.create_array("v", data=[1, 2, 3], attributes=names)
    assert omnizarr.get(array, axis="2020-02").tolist() == [2]
    assert omnizarr.get(array, axis="2020-02-01") == 2


def test_missing_times_are_in_no_slice():
    units = {"units": "days since 2020-01-01"}
    array = made(np.array([0.0, 0.5, np.nan]), attributes=units)
    assert omnizarr.get(array, axis=slice(None, "2030")).tolist() == [0, 1]
    assert omnizarr.get(array, axis="2020-01-01T12").tolist() == 1


def test_value_that_is_there_several_times_selects_all_of_them():
    assert omnizarr.get(made([1, 2, 2, 3]), axis=2).tolist() == [1, 2]
    assert omnizarr.get(made([2, 1, 2]), axis=2).tolist() == [0, 2]


@pytest.mark.parametrize("values", [[1, 3, 2], [3, 1, 2]])
def test_slice_of_coordinates_without_order_is_refused(values):
    with pytest.raises(SelectionError, match="not in order"):
        omnizarr.get(made(values), axis=slice(1, 2))


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_blocks_do_not_matter(block, monkeypatch, stored):
    dataset, array = stored("days")
    monkeypatch.setattr(labels, "_BLOCK", block)
    for label in LABELS["days"][:3] + LABELS["days"][4:8]:
        np.testing.assert_array_equal(omnizarr.get(array, axis=label), dataset.v.sel(axis=label).to_numpy())
    for values in itertools.permutations([1, 2, 3]):
        if values not in {(1, 2, 3), (3, 2, 1)}:
            with pytest.raises(SelectionError, match="not in order"):
                omnizarr.get(made(values), axis=slice(1, 2))


def test_long_coordinates_are_read_in_bounded_memory():
    root = omnizarr.create_group({})
    root.create_array("axis", shape=(40_000_000,), chunks=(2**20,), dtype="float64", dimension_names=["axis"])
    array = root.create_array("v", shape=(40_000_000,), chunks=(2**20,), dtype="int8", dimension_names=["axis"])
    tracemalloc.start()
    try:
        assert positions(array, {"axis": slice(-1, 1)}) == (slice(0, 40_000_000),)
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20  # the coordinates are 320 MB
    finally:
        tracemalloc.stop()

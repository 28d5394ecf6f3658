"""Many groups as one: order, overlaps, gaps, units, packing, and what makes it impossible. The reference is xarray."""

import asyncio
import base64
import pickle
from itertools import pairwise

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import aio
from omnizarr.errors import JoinError, NodeNotFoundError, ReadOnlyError
from omnizarr.interop.zarr_python import to_zarr_python
from omnizarr.nodes.lazy.passing import ShownChunks
from omnizarr.stores.wrap.wrappers import PrefixStore
from tests.repeats import runs

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")


def daily(start, days, **variables):
    time = xr.date_range(start, periods=days, use_cftime=False)
    numbers = (time - np.datetime64("1999-01-01")).days.to_numpy()
    data = {"t": (("time", "x"), numbers[:, None] * 10.0 + np.arange(3)), **variables}
    return xr.Dataset(data, coords={"time": time, "x": np.arange(3)}, attrs={"title": "t", "first": str(start)})


def stored(dataset, path, **options):
    dataset.to_zarr(path, **{"zarr_format": 3, **options})
    return str(path)


def years(tmp_path, *numbers, **options):
    found = []
    for number in numbers:
        days = 366 if number % 4 == 0 else 365
        found.append(stored(daily(f"{number}-01-01", days), tmp_path / f"{number}.zarr", **options))
    return found


def opened(group):
    return xr.open_dataset(group, engine="omnizarr").load()


# ---- along the dimension


def test_groups_are_joined_in_the_order_of_their_coordinate_also_in_leap_years(tmp_path):
    paths = years(tmp_path, 1999, 2000, 2001)
    both = opened(omnizarr.combine([paths[1], paths[2], paths[0]], "time"))
    expected = daily("1999-01-01", 365 + 366 + 365).drop_attrs(deep=False)
    xr.testing.assert_equal(both, expected)
    assert both.attrs == {"title": "t"}


@settings(max_examples=runs(15))  # each writes several files
@given(data=st.data())
def test_any_division_of_a_dataset_is_joined_to_it_again(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("parts")
    whole = daily("1999-12-20", 40)
    whole["t"] = whole["t"].round().astype("i2")
    whole["fixed"] = ("x", [1.5, np.nan, 2.5])
    cuts = data.draw(st.lists(st.integers(1, 39), max_size=4, unique=True).map(sorted))
    edges = [0, *cuts, 40]
    paths = []
    for number, (start, stop) in enumerate(pairwise(edges)):
        unit = data.draw(st.sampled_from(["days", "hours", "seconds"]))
        since = data.draw(st.sampled_from(["1999-12-01", "1950-01-01 12:00:00", "2000-03-01"]))
        scale = data.draw(st.sampled_from([None, 0.5, 0.25]))
        encoding = {"time": {"units": f"{unit} since {since}", "dtype": data.draw(st.sampled_from(["f8", "i8"]))}}
        if unit == "days":
            encoding["time"]["dtype"] = "f8"  # days since noon
        if scale:
            encoding["t"] = {"scale_factor": scale, "dtype": "i4", "_FillValue": -1}
        part = whole.isel(time=slice(start, stop)).chunk(time=data.draw(st.integers(1, 40)))
        paths.append(
            stored(part, folder / str(number), zarr_format=data.draw(st.sampled_from([2, 3])), encoding=encoding)
        )
    order = data.draw(st.permutations(paths))
    joined = opened(omnizarr.combine(order, "time"))
    xr.testing.assert_equal(joined, whole)


def test_a_missing_file_is_an_error_that_names_both_neighbours(tmp_path):
    paths = years(tmp_path, 1999, 2001)
    with pytest.raises(JoinError, match=r"gap along 'time'.*2001\.zarr.*2001-01-01.*1999-12-31.*1999\.zarr"):
        omnizarr.combine(paths, "time")
    kept = opened(omnizarr.combine(paths, "time", gaps="keep"))
    assert kept.sizes["time"] == 730
    filled = omnizarr.combine(paths, "time", gaps="fill")
    xr.testing.assert_equal(opened(filled), kept.reindex(time=daily("1999-01-01", 1096).time))
    assert "366 places after time=1999-12-31 are filled with missing values" in filled.store.notes


def test_months_of_different_lengths_have_no_gaps():
    def month(number):
        group = omnizarr.create_group({})
        group.create_array(
            "time", data=np.array([f"2001-{number:02}"], "M8[M]").astype("M8[D]"), dimension_names=["time"]
        )
        group.create_array("t", data=[number], dimension_names=["time"])
        return group

    months = [month(number) for number in range(1, 13)]
    assert omnizarr.combine(months[::-1], "time")["t"][...].tolist() == list(range(1, 13))
    with pytest.raises(JoinError, match="gap"):
        omnizarr.combine([*months[:4], *months[5:]], "time")


def numbered(values, **attributes):
    group = omnizarr.create_group({})
    group.create_array("z", data=values, dimension_names=["z"], attributes=attributes)
    group.create_array("v", data=np.asarray(values, "f8") * 10, dimension_names=["z"])
    return group


def test_overlaps_are_an_error_unless_you_say_whose_elements_to_take():
    first, second = numbered([0, 1, 2]), numbered([2, 3])
    second["v"][...] = [-2, -3]
    with pytest.raises(JoinError, match=r"overlap along 'z'.*begins at z=2.*after z=2"):
        omnizarr.combine([first, second], "z")
    for overlaps, given_order, expected in (
        ("first", (first, second), [0, 10, 20, -3]),
        ("last", (first, second), [0, 10, -2, -3]),
        ("first", (second, first), [0, 10, -2, -3]),
    ):
        joined = omnizarr.combine(given_order, "z", overlaps=overlaps)
        assert joined["v"][...].tolist() == expected
        assert joined["z"][...].tolist() == [0, 1, 2, 3]
        assert f"1 places along 'z' are in several sources: taken from the {overlaps} one" in joined.store.notes


def test_sources_that_lie_within_each_other_are_interleaved_only_when_asked():
    outer, inner = numbered([0, 1, 4, 5]), numbered([2, 3])
    with pytest.raises(JoinError, match="overlap"):
        omnizarr.combine([outer, inner], "z")
    assert omnizarr.combine([outer, inner], "z", overlaps="first")["v"][...].tolist() == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize("dtype", ["u1", "i2", "u8", "f4"])
def test_descending_coordinates_stay_descending(dtype):
    parts = [numbered(np.array(values, dtype)) for values in ([3, 2], [9, 8, 7], [6, 5, 4])]
    assert omnizarr.combine(parts, "z")["z"][...].tolist() == [9, 8, 7, 6, 5, 4, 3, 2]


def test_what_has_no_order_is_refused_or_kept():
    parts = [numbered([5, 1, 3]), numbered([2])]
    with pytest.raises(JoinError, match="neither ascends nor descends"):
        omnizarr.combine(parts, "z")
    assert omnizarr.combine(parts, "z", sort=False)["z"][...].tolist() == [5, 1, 3, 2]
    with pytest.raises(JoinError, match="ascends in some sources and descends in others"):
        omnizarr.combine([numbered([0, 1]), numbered([5, 4])], "z")
    with pytest.raises(JoinError, match="missing values"):
        omnizarr.combine([numbered([0.0, np.nan]), numbered([5.0])], "z")


def test_without_a_coordinate_the_order_is_that_of_the_sources():
    def part(value):
        group = omnizarr.create_group({})
        group.create_array("v", data=[value], dimension_names=["n"])
        return group

    assert omnizarr.combine([part(3), part(1)], "n")["v"][...].tolist() == [3, 1]


def test_texts_are_places_as_well():
    parts = []
    for name in ("ssp585", "ssp126"):
        group = omnizarr.create_group({})
        group.create_array("scenario", data=[name], dtype="string", dimension_names=["scenario"])
        group.create_array("t", data=[float(name[3:])], dimension_names=["scenario"])
        parts.append(group)
    both = omnizarr.combine(parts, "scenario")
    assert both["t"][...].tolist() == [126.0, 585.0]
    assert both["scenario"][...].tolist() == ["ssp126", "ssp585"]


def test_an_empty_source_adds_nothing():
    assert omnizarr.combine([numbered([1, 2]), numbered(np.zeros(0, int))], "z")["v"][...].tolist() == [10, 20]
    assert omnizarr.combine([numbered(np.zeros(0, int))], "z")["v"].shape == (0,)


# ---- units and packing


def test_bounds_follow_the_units_of_their_coordinate(tmp_path):
    paths = []
    for year in (2000, 2001):
        part = daily(f"{year}-01-01", 365 + (year == 2000))
        part["time_bnds"] = (("time", "nv"), np.stack([part.time, part.time + np.timedelta64(1, "D")], 1))
        part.time.attrs["bounds"] = "time_bnds"
        paths.append(stored(part, tmp_path / str(year), encoding={"time": {"units": f"days since {year}-01-01"}}))
    both = opened(omnizarr.combine(paths, "time"))
    np.testing.assert_array_equal(both.time_bnds[:, 0], both.time)
    np.testing.assert_array_equal(both.time_bnds[:, 1], both.time + np.timedelta64(1, "D"))


def test_units_that_are_not_those_of_a_time_must_agree():
    with pytest.raises(JoinError, match=r"different units.*'km'.*'m'"):
        omnizarr.combine([numbered([0], units="m"), numbered([1], units="km")], "z")
    with pytest.raises(JoinError, match="different calendar"):
        omnizarr.combine(
            [
                numbered([0], units="days since 2000-01-01", calendar="360_day"),
                numbered([1], units="days since 2000-01-01", calendar="noleap"),
            ],
            "z",
        )


@pytest.mark.parametrize("calendars", [("standard", "proleptic_gregorian"), ("proleptic_gregorian", "gregorian")])
def test_calendars_with_the_same_dates_are_joined(tmp_path, calendars):
    said = [
        {"units": f"hours since 20{year}-01-01", "calendar": name}
        for year, name in zip((23, 24), calendars, strict=True)
    ]
    groups = [numbered([0, 5], **each) for each in said]
    found = opened(omnizarr.combine(groups, "z", gaps="keep"))
    days = ["2023-01-01T00", "2023-01-01T05", "2024-01-01T00", "2024-01-01T05"]
    np.testing.assert_array_equal(found["z"], np.array(days, "M8[ns]"))


def test_dates_before_1582_are_joined_in_one_calendar_only():
    said = [{"units": "days since 0001-01-01", "calendar": name} for name in ("standard", "proleptic_gregorian")]
    with pytest.raises(JoinError, match="different calendar"):
        omnizarr.combine([numbered([10], **said[0]), numbered([11], **said[1])], "z")
    # The same days, which differ in their number since a year in which the calendars were two days apart.
    cftime = pytest.importorskip("cftime", reason="it tells the dates")
    both = omnizarr.combine([numbered([738000], **said[0]), numbered([738000], **said[1])], "z")
    dates = [cftime.num2date(738000, **each).strftime() for each in said]
    attributes = {name: both["z"].attrs[name] for name in ("units", "calendar")}
    assert [each.strftime() for each in cftime.num2date(both["z"][:], **attributes)] == sorted(dates)


@pytest.mark.parametrize("file_format", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_netcdf_files_keep_all_records_and_the_unlimited_dimension(tmp_path, file_format):
    netcdf4 = pytest.importorskip("netCDF4", reason="writes the files")
    for day in range(3):
        with netcdf4.Dataset(tmp_path / f"{day}.nc", "w", format=file_format) as dataset:
            dataset.createDimension("time", None)
            time = dataset.createVariable("time", "f8", ("time",))
            time.units = "hours since 2024-01-01"
            time[:] = np.arange(4) + 4 * day
            dataset.createVariable("t", "i2", ("time",))[:] = np.arange(4) + 10 * day
    both = omnizarr.combine(str(tmp_path / "?.nc"), "time")
    assert not both.store.notes
    expected = [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    with omnizarr.netcdf.Dataset(both) as dataset:
        assert len(dataset.dimensions["time"]) == 12
        assert dataset["t"][:].tolist() == expected
    report = omnizarr.convert(both, tmp_path / "all.nc")
    assert not report.losses
    with netcdf4.Dataset(tmp_path / "all.nc") as dataset:
        assert dataset["t"][:].tolist() == expected


def test_nan_as_a_fill_value_is_no_other_packing(tmp_path):
    """As if some files are netCDF, and others of xarray, which gives floating-point numbers a _FillValue."""
    sets = [daily(f"1999-01-0{day}", 1, lat=("x", np.arange(3, dtype="f4"))) for day in (1, 2)]
    paths = [
        stored(each, tmp_path / f"{number}.zarr", encoding={"lat": {"_FillValue": fill}})
        for number, (each, fill) in enumerate(zip(sets, (None, np.nan), strict=True))
    ]
    both = omnizarr.combine(paths, "time")
    assert both["lat"].dtype == np.float32
    assert not [note for note in both.store.notes if "packed" in note]
    other = stored(sets[1], tmp_path / "2.zarr", encoding={"lat": {"_FillValue": np.float32(0)}})
    both = omnizarr.combine([paths[0], other], "time", compat="override")
    assert both["lat"].dtype == np.float32


def test_arrays_of_a_combined_group_keep_their_units_in_joins(tmp_path):
    """Their elements are in memory, where attributes are not: both coordinates begin with 0."""
    first, second = (
        omnizarr.combine([numbered([0, 1], units=f"days since {year}-01-01")], "z") for year in (2000, 2001)
    )
    assert first["z"].lazy[...].attrs["units"] == "days since 2000-01-01"
    with pytest.raises(JoinError, match="different units"):
        omnizarr.concat([first["z"], second["z"]])
    assert omnizarr.combine([first, second], "z", gaps="keep")["z"][...].tolist() == [0, 1, 366, 367]


def test_packing_that_changes_from_source_to_source_gives_no_wrong_value(tmp_path):
    generator = np.random.default_rng(1)
    paths, expected = [], []
    for number in range(12):
        part = daily(np.datetime64("2000-01-01") + 3 * number, 3)
        part["t"] = part["t"] + generator.normal(size=(3, 3))
        part["t"][0, 1] = np.nan
        encoding = {"dtype": "i2", "scale_factor": generator.uniform(0.1, 9), "_FillValue": -(number % 3) - 1}
        paths.append(stored(part, tmp_path / str(number), encoding={"t": encoding}, zarr_format=2 + number % 2))
        expected.append(xr.open_dataset(paths[-1], engine="zarr")["t"].to_numpy())
    both = omnizarr.combine(paths, "time")
    np.testing.assert_array_equal(opened(both)["t"].to_numpy(), np.concatenate(expected))
    assert any("unpacked" in note for note in both.store.notes)
    assert "scale_factor" not in both["t"].attrs


def test_equal_packing_is_kept_also_if_formats_write_it_differently(tmp_path):
    paths = [
        stored(daily(start, 5), tmp_path / start, zarr_format=number, encoding={"t": {"dtype": "i2", "_FillValue": -7}})
        for number, start in ((2, "2000-01-01"), (3, "2000-01-06"))
    ]
    both = omnizarr.combine(paths, "time")
    assert (both["t"].dtype, both["t"].attrs["_FillValue"]) == (np.dtype("i2"), -7)


@pytest.mark.parametrize("types", [["f4", "f4"], ["i8", "f8"], ["f8", "i2"]])
@pytest.mark.parametrize("file_format", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_xarray_opens_the_copy_whatever_form_the_fill_value_has_in_the_sources(tmp_path, types, file_format):
    """netCDF-3 has numbers, and a data type of two can need another form than those of its sources."""
    netcdf4 = pytest.importorskip("netCDF4")
    for number, dtype in enumerate(types):
        form = file_format if dtype != "i8" else "NETCDF4"
        with netcdf4.Dataset(tmp_path / f"{number}.nc", "w", format=form) as dataset:
            dataset.createDimension("z", 2)
            dataset.createVariable("z", "i4", ("z",))[:] = [2 * number, 2 * number + 1]
            dataset.createVariable("t", dtype, ("z",), fill_value=-99)[:] = np.ma.masked_equal([number, -99], -99)
            dataset.createVariable("s", "f4", (), fill_value=-1)[...] = 5
    both = omnizarr.combine(str(tmp_path / "*.nc"), "z")
    for zarr_format in (2, 3):
        omnizarr.convert(both, tmp_path / "all.zarr", zarr_format=zarr_format, overwrite=True)
        with xr.open_dataset(tmp_path / "all.zarr", engine="zarr", consolidated=False) as copy:
            np.testing.assert_array_equal(copy["t"], [0, np.nan, 1, np.nan])
            assert float(copy["s"]) == 5
    assert "mask-unreadable" not in {each.code for each in omnizarr.check(both.store).findings}


# ---- variables


def test_a_variable_that_appears_late(tmp_path):
    early = stored(daily("2000-01-01", 4), tmp_path / "early")
    late = daily("2000-01-05", 4)
    late["new"] = ("time", np.arange(4.0))
    late = stored(late, tmp_path / "late")
    with pytest.raises(JoinError, match=r"lacks an array that others have.*early.*'new', as in .*late"):
        omnizarr.combine([early, late], "time")
    assert "new" not in omnizarr.combine([early, late], "time", absent="drop")
    filled = opened(omnizarr.combine([early, late], "time", absent="fill"))
    np.testing.assert_array_equal(filled["new"], [np.nan] * 4 + [0, 1, 2, 3])


def test_integers_without_a_missing_value_cannot_be_filled():
    early, late = numbered([0]), numbered([1])
    late.create_array("count", data=[5], dimension_names=["z"])
    with pytest.raises(JoinError, match=r"nothing in an array means that an element is missing.*'count', int64"):
        omnizarr.combine([early, late], "z", absent="fill")
    late["count"].attrs["_FillValue"] = -1
    assert omnizarr.combine([early, late], "z", absent="fill")["count"][...].tolist() == [-1, 5]


@pytest.mark.parametrize("kinds", [("i4", "f4"), ("f4", "i4"), ("f4", "f8")])
def test_nan_that_one_source_marks_as_missing_is_no_integer_of_the_others(kinds):
    sources = []
    for number, kind in enumerate(kinds):
        group = omnizarr.create_group({})
        group.create_array("time", data=[number], dimension_names=["time"])
        array = group.create_array("v", data=np.array([number], kind), dimension_names=["time"])
        if kind == "f4":
            array.attrs["_FillValue"] = "NaN"
        sources.append(group)
    both = omnizarr.combine(sources, "time")["v"]
    assert both[:].tolist() == [0, 1]
    assert np.isnan(np.frombuffer(base64.b64decode(both.attrs["_FillValue"]), "<f8"))  # as xarray writes it


def test_variables_without_the_dimension_are_compared():
    parts = [numbered([0]), numbered([1])]
    for part, value in zip(parts, (1.0, 2.0), strict=True):
        part.create_array("area", data=[value, np.nan], dimension_names=["x"])
    with pytest.raises(JoinError, match=r"'area' of .*, expected the same"):
        omnizarr.combine(parts, "z")
    assert omnizarr.combine(parts, "z", compat="override")["area"][0] == 1
    parts[1]["area"][0] = 1.0
    assert omnizarr.combine(parts, "z")["area"].shape == (2,)


def test_groups_within_groups_are_joined_by_the_coordinate_above():
    parts = []
    for value in (1, 0):
        root = numbered([value])
        root.create_group("deep/er").create_array("w", data=[[value, 5]], dimension_names=["z", "x"])
        root["deep"].attrs["level"] = 2
        parts.append(root)
    both = omnizarr.combine(parts, "z")
    assert both["deep/er/w"][...].tolist() == [[0, 5], [1, 5]]
    assert both["deep"].attrs["level"] == 2


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda group: group.create_array("w", data=[1, 2], dimension_names=["z"]), "different lengths along 'z'"),
        (lambda group: group.create_group("x"), "a group in one source is an array in another"),
        (lambda group: group.create_array("y", data=[[1]], dimension_names=["z", "a"]), "different dimensions"),
    ],
)
def test_groups_that_do_not_fit_together(change, match):
    first, second = numbered([0]), numbered([1])
    for group in (first,):
        group.create_array("x", data=[1], dimension_names=["z"])
        group.create_array("y", data=[[1]], dimension_names=["a", "z"])
    if "group in one" not in match:
        second.create_array("x", data=[1], dimension_names=["z"])
    if "different dimensions" not in match:
        second.create_array("y", data=[[1]], dimension_names=["a", "z"])
    change(second)
    with pytest.raises(JoinError, match=match):
        omnizarr.combine([first, second], "z")


def test_bad_arguments(tmp_path):
    with pytest.raises(JoinError, match="nothing to join"):
        omnizarr.combine([], "z")
    with pytest.raises(JoinError, match="no path matches"):
        omnizarr.combine(str(tmp_path / "*.zarr"), "z")
    with pytest.raises(NodeNotFoundError):
        omnizarr.combine([tmp_path / "x"], "z")
    with pytest.raises(ValueError, match="gaps='ignore': expected one of 'error', 'keep', 'fill'"):
        omnizarr.combine([numbered([0])], "z", gaps="ignore")
    with pytest.raises(JoinError, match="no array has the dimension 'time'"):
        omnizarr.combine([numbered([0])], "time")


# ---- the result is a hierarchy


def test_a_pattern_and_the_engine_of_xarray_open_it(tmp_path):
    paths = years(tmp_path, 2000, 2001)
    by_pattern = xr.open_dataset(str(tmp_path / "*.zarr"), engine="omnizarr", combine="time")
    by_list = xr.open_dataset(paths, engine="omnizarr", combine={"along": "time"}, chunks={})
    expected = xr.open_mfdataset(paths, engine="zarr", data_vars="minimal", combine_attrs="drop_conflicts")
    xr.testing.assert_identical(by_pattern.load(), expected.load())
    xr.testing.assert_identical(by_list.load(), expected)


def test_patterns_and_paths_can_be_mixed(tmp_path):
    first, *_ = years(tmp_path, 2000, 2001, 2002)
    with_brackets = stored(daily("2003-01-01", 365), tmp_path / "2003[final].zarr")
    both = omnizarr.combine([first, tmp_path / "200[12].zarr", with_brackets], "time")
    assert both["time"].shape == (366 + 3 * 365,)
    with pytest.raises(JoinError, match=r"no path matches.*nothing-\*"):
        omnizarr.combine([first, str(tmp_path / "nothing-*.zarr")], "time")


def test_other_programs_read_it(tmp_path):
    both = omnizarr.combine(years(tmp_path, 2000, 2001), "time")
    theirs = to_zarr_python(both)
    np.testing.assert_array_equal(theirs["t"][...], both["t"][...])
    np.testing.assert_array_equal(theirs["t"][300:400:7, 1:], both["t"][300:400:7, 1:])


def test_it_is_converted_compared_checked_and_pickled(tmp_path):
    both = omnizarr.combine(years(tmp_path, 2000, 2001), "time")
    omnizarr.convert(both, tmp_path / "out.zarr")
    assert omnizarr.diff(both, tmp_path / "out.zarr").equal
    assert not omnizarr.check(both).findings
    again = pickle.loads(pickle.dumps(both))
    np.testing.assert_array_equal(again["t"][...], both["t"][...])
    with pytest.raises(ReadOnlyError, match="made of others"):
        both.store.set("zarr.json", b"{}")
    with pytest.raises(ReadOnlyError):
        both["t"][0] = 1


class TestBrackets:
    """Brackets of a combined group read its sources, as its lazy arrays do."""

    @staticmethod
    def group():
        parts = []
        for year in (2000, 2001):
            part = omnizarr.create_group({}, zarr_format=2)
            for name, data in (("time", np.arange(5)), ("x", np.arange(30).reshape(5, 6) + year)):
                array = part.create_array(name, data=data, chunks=(3, 4)[: data.ndim])
                array.attrs["_ARRAY_DIMENSIONS"] = ["time", "x"][: data.ndim]
            parts.append(part)
        return omnizarr.combine(parts, along="time", sort=False)

    @given(st.data())
    @settings(deadline=None)
    def test_every_kind_of_selection_reads_what_numpy_selects(self, data):
        array = self.group()["x"]
        expected = np.concatenate([np.arange(30).reshape(5, 6) + year for year in (2000, 2001)])
        basic = data.draw(hnp.basic_indices((10, 6), allow_newaxis=True, allow_ellipsis=True, max_dims=4))
        np.testing.assert_array_equal(array[basic], expected[basic])
        mask = data.draw(hnp.arrays(bool, (10, 6)))
        np.testing.assert_array_equal(array[mask], expected[mask])
        rows = data.draw(st.lists(st.integers(-10, 9), max_size=7))
        columns = data.draw(st.lists(st.integers(-6, 5), max_size=7))
        np.testing.assert_array_equal(array.oindex[rows, columns], expected[np.ix_(rows, columns)])
        both = min(len(rows), len(columns))
        points = np.array(rows[:both], int), np.array(columns[:both], int)
        np.testing.assert_array_equal(array.vindex[points], expected[points])
        out = np.empty((6, 10), "f8")
        array.get_basic_selection(..., out=out.T)
        np.testing.assert_array_equal(out.T, expected)
        one, many = omnizarr.read_many([(array, basic), (array, (rows, slice(None)))])
        np.testing.assert_array_equal(one, expected[basic])
        np.testing.assert_array_equal(many, expected[rows])

    def test_no_chunk_is_made(self, monkeypatch):
        array = self.group()["x"]
        monkeypatch.setattr(ShownChunks, "value", None)
        assert array[4:6, 1].tolist() == [2025, 2002]
        assert asyncio.run(aio.AsyncArray(array).getitem((slice(4, 6), 1))).tolist() == [2025, 2002]

    def test_chunks_are_made_where_the_reader_wants_them(self):
        array = self.group()["x"]
        kept = array.with_config({"chunk_cache": 10**6})
        assert kept[4:6, 1].tolist() == [2025, 2002]
        through = omnizarr.open(PrefixStore(array.store, "x"), mode="r")
        assert through[4:6, 1].tolist() == [2025, 2002]

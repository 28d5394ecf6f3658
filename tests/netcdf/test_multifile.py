"""Several datasets read as one: the same as netCDF4-python's MFDataset makes of files of netCDF-4's classic model."""

import itertools
import pickle
from datetime import timedelta

import cftime
import netCDF4
import numpy as np
import pytest

from omnizarr import netcdf
from omnizarr.errors import NodeNotFoundError, NotRepresentableError, ReadOnlyError, ShapeError, StoreError

LENGTHS = (3, 1, 4)
TOTAL = sum(LENGTHS)


def made(library, folder, fill, lengths=LENGTHS, **options):
    """Make one dataset for each length with `fill(dataset, number)`, and return their places."""
    places = [str(folder / f"part{number}.{'nc' if library is netCDF4 else 'zarr'}") for number in range(len(lengths))]
    for number, (place, length) in enumerate(zip(places, lengths, strict=True)):
        format_ = "NETCDF4_CLASSIC" if library is netCDF4 else "NETCDF4"
        with library.Dataset(place, "w", format=format_) as ds:
            ds.createDimension("t", options.get("size"))
            ds.createDimension("x", 3)
            ds.createDimension("n", 2)
            fill(ds, number, length)
    return places


def numbers(ds, number, length):
    ds.title = f"part {number}"
    values = np.arange(length * 3).reshape(length, 3) + 100 * number
    plain = ds.createVariable("plain", "i4", ("t", "x"))
    plain.units = "m"
    plain[:] = values
    masked = ds.createVariable("masked", "f4", ("t", "x"), fill_value=-1)
    masked[:] = np.ma.masked_equal(values, 101)
    scaled = ds.createVariable("scaled", "i2", ("t", "x"))
    scaled.setncatts({"scale_factor": 0.5 * (number + 1), "add_offset": 10.0})  # not the same everywhere
    scaled.set_auto_maskandscale(False)
    scaled[:] = values
    text = ds.createVariable("text", "S1", ("t", "n"))
    text._Encoding = "ascii"
    text[:] = np.array([f"{chr(97 + number)}{each}" for each in range(length)], "S2")
    ds.createVariable("x", "f8", ("x",))[:] = [1, 2, 3]
    ds.createVariable("t", "i4", ("t",))[:] = np.arange(length)


@pytest.fixture
def pair(tmp_path):
    """The same datasets, opened by both libraries."""
    opened = [library.MFDataset(made(library, tmp_path, numbers), check=True) for library in (netcdf, netCDF4)]
    yield opened
    for each in opened:
        if each.isopen():
            each.close()


def same(ours, theirs):
    assert type(ours) is type(theirs)
    assert np.shape(ours) == np.shape(theirs)
    assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)
    if theirs is not np.ma.masked:
        np.testing.assert_array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(theirs))
        np.testing.assert_array_equal(np.ma.getdata(ours)[~np.ma.getmaskarray(ours)], np.ma.compressed(theirs))


SELECTIONS = [
    slice(None),
    ...,
    slice(1, 6, 2),
    slice(0, 0),
    slice(3, 4),
    0,
    -1,
    4,
    (slice(2, 7), slice(1, 3)),
    (3, 1),
    (slice(None), 0),
    [0, 4, 7],
    np.array([True, False, True, True, False, False, False, True]),
    ([1, 5], slice(None, None, 2)),
    (slice(None), [0, 2]),
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize("name", ["plain", "masked", "scaled"])
def test_selection_reads_what_netcdf4_python_reads(pair, name, selection):
    ours, theirs = (each.variables[name] for each in pair)
    same(ours[selection], theirs[selection])


@pytest.mark.parametrize(("mask", "scale"), list(itertools.product([True, False], repeat=2)))
def test_settings_are_those_of_all_datasets(pair, mask, scale):
    found = []
    for each in pair:
        for variable in (each.variables["masked"], each.variables["scaled"]):
            variable.set_auto_mask(mask)
            variable.set_auto_scale(scale)
            found.append(variable[:])
    for one, other in zip(found[:2], found[2:], strict=True):
        same(one, other)


def test_characters_become_strings(pair):
    """netCDF4-python fails, if they are to be strings."""
    ours, theirs = (each.variables["text"] for each in pair)
    assert ours[:].tolist() == ["a0", "a1", "a2", "b0", "c0", "c1", "c2", "c3"]
    assert ours[3] == "b0"
    ours.set_auto_chartostring(False)
    theirs.set_auto_chartostring(False)
    same(ours[1:5], theirs[1:5])


def test_what_it_is(pair):
    ours, theirs = pair
    for each in pair:
        assert (each.title, each.ncattrs(), list(each.variables)) == (
            "part 0",
            ["title"],
            ["plain", "masked", "scaled", "text", "x", "t"],
        )
        assert len(each.dimensions["t"]) == TOTAL
        assert each.dimensions["t"].isunlimited()
        plain = each.variables["plain"]
        assert (plain.shape, plain.dimensions, plain.units, plain.typecode(), len(plain), plain.ndim) == (
            (TOTAL, 3),
            ("t", "x"),
            "m",
            np.dtype("i4"),
            TOTAL,
            2,
        )
        assert each.variables["x"][:].tolist() == [1, 2, 3]
        assert [found.name for found in each.get_variables_by_attributes(units="m")] == ["plain"]
        assert each.isopen()
        each.close()
        assert not each.isopen()
    assert isinstance(ours, netcdf.Dataset)
    assert isinstance(theirs, netCDF4.Dataset)


def test_steps_back_and_lists_in_any_order_select_as_in_numpy(tmp_path):
    whole = np.concatenate([np.arange(n * 3).reshape(n, 3) + 100 * part for part, n in enumerate(LENGTHS)])
    with netcdf.MFDataset(made(netcdf, tmp_path, numbers)) as ds:
        plain = ds["plain"]
        np.testing.assert_array_equal(plain[::-1], whole[::-1])
        np.testing.assert_array_equal(plain[6:1:-2, ::-1], whole[6:1:-2, ::-1])
        np.testing.assert_array_equal(plain[[7, 0, 3, 0]], whole[[7, 0, 3, 0]])


def test_list_of_records_keeps_the_digits_of_all_datasets(tmp_path):
    """netCDF4-python casts all to the type of the last record."""

    def fill(ds, number, length):
        v = ds.createVariable("v", "i2", ("t",))
        v[:] = np.full(length, 3)
        if number == 0:
            v.scale_factor = 0.5

    with netcdf.MFDataset(made(netcdf, tmp_path, fill)) as ds:
        assert ds["v"][[0, 7]].tolist() == [1.5, 3.0]


def test_dimension_can_be_given(tmp_path):
    found = []
    for library in (netcdf, netCDF4):
        places = made(library, tmp_path, numbers, (2, 2), size=2)
        with pytest.raises(OSError, match="dimension"):
            library.MFDataset(places)
        with library.MFDataset(places, aggdim="t", exclude=["plain"]) as ds:
            found.append(ds.variables["masked"][:])
            if library is netcdf:  # netCDF4-python reads beyond the end of what it does not join
                assert ds.variables["plain"][:].shape == (2, 3)
            assert ds.variables["masked"].shape == (4, 3)
    same(*found)


def test_master_is_the_one_that_is_named(tmp_path):
    for library in (netcdf, netCDF4):
        places = made(library, tmp_path, numbers)
        with library.MFDataset(places, master_file=places[1]) as ds:
            assert ds.title == "part 1"
            assert ds.variables["plain"][0].tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match="master"):
            library.MFDataset(places, master_file="other")


def test_pattern_finds_paths_in_the_order_of_their_names(tmp_path):
    made(netcdf, tmp_path, numbers)
    with netcdf.MFDataset(str(tmp_path / "part*.zarr")) as ds:
        assert ds["t"][:].tolist() == [0, 1, 2, 0, 0, 1, 2, 3]
    with pytest.raises(OSError, match="no datasets"):
        netcdf.MFDataset(str(tmp_path / "none*.zarr"))
    with pytest.raises(ValueError, match="list"):
        netcdf.MFDataset("s3://bucket/part*.zarr")


@pytest.mark.parametrize(
    "other",
    [
        lambda ds: ds.createVariable("v", "f4", ("t",)),
        lambda ds: ds.createVariable("v", "i4", ("t", "x")),
        lambda ds: ds.createVariable("v", "i4", ("t", "n", "n")),
        lambda ds: ds.createVariable("w", "i4", ("t",)),
    ],
    ids=["type", "dimensions", "rank", "missing"],
)
def test_check_refuses_what_does_not_fit(tmp_path, other):
    for library in (netcdf, netCDF4):

        def fill(ds, number, length):
            if number:
                other(ds)
            else:
                ds.createVariable("v", "i4", ("t",))

        places = made(library, tmp_path, fill, (0, 0))
        with pytest.raises(OSError, match="v"):
            library.MFDataset(places, check=True)


def test_groups_and_several_unlimited_dimensions_are_refused(tmp_path):
    places = made(netcdf, tmp_path, numbers, (1, 1))
    with netcdf.Dataset(places[0], "a") as ds:
        ds.createDimension("u", None)
    with pytest.raises(ValueError, match="t, u"):
        netcdf.MFDataset(places)
    with netcdf.Dataset(places[1], "a") as ds:
        ds.createGroup("g")
    with pytest.raises(NotRepresentableError):
        netcdf.MFDataset(places, aggdim="t")


def test_nothing_to_join_is_stated(tmp_path):
    places = made(netcdf, tmp_path, lambda ds, *_: ds.createVariable("x", "i4", ("x",)))
    with pytest.raises(NodeNotFoundError, match="no variables"):
        netcdf.MFDataset(places)
    with pytest.raises(NodeNotFoundError, match="no dimension"):
        netcdf.MFDataset(places, aggdim="other")
    with pytest.raises(NodeNotFoundError):
        netcdf.MFDataset([])


def test_nothing_is_written(tmp_path):
    with netcdf.MFDataset(made(netcdf, tmp_path, numbers)) as ds:
        for write in (
            lambda: ds["plain"].__setitem__(0, 1),
            lambda: ds.setncattr("title", "other"),
            lambda: ds["plain"].setncattr("units", "km"),
            lambda: ds.createDimension("y", 2),
            lambda: ds.createVariable("y", "i4"),
        ):
            with pytest.raises(ReadOnlyError):
                write()
        with pytest.raises(NotRepresentableError):
            _ = ds["plain"].array


def test_mixed_characters_and_strings_are_refused(tmp_path):
    def fill(ds, number, length):
        text = ds.createVariable("text", "S1", ("t", "n"))
        text[:] = np.full((length, 2), b"a")
        if number:
            text._Encoding = "ascii"

    with netcdf.MFDataset(made(netcdf, tmp_path, fill)) as ds:
        with pytest.raises(ShapeError):
            _ = ds["text"][:]
        ds.set_auto_chartostring(False)
        assert ds["text"][:].shape == (TOTAL, 2)


def test_growth_is_seen_after_sync(tmp_path):
    places = made(netcdf, tmp_path, numbers)
    with netcdf.MFDataset(places) as ds:
        with netcdf.Dataset(places[1], "a") as part:
            part["t"][1:3] = [8, 9]
        assert len(ds["t"]) == TOTAL
        ds.sync()
        assert ds["t"][:].tolist() == [0, 1, 2, 0, 8, 9, 0, 1, 2, 3]


def test_copies_dumps_and_pickles(tmp_path):
    places = made(netcdf, tmp_path, numbers)
    with netcdf.MFDataset(places) as ds:
        assert "t = UNLIMITED ; // (8 currently)" in ds.tocdl()
        assert "\n t = 0, 1, 2, 0, 0, 1, 2, 3 ;\n" in ds.tocdl(data=True)
        again = pickle.loads(pickle.dumps(ds))
        same(again["plain"][:], ds["plain"][:])
        variable = ds["masked"]
        variable.set_auto_mask(False)
        assert not np.ma.isMA(pickle.loads(pickle.dumps(variable))[:])
        again.close()


# Times


def times(units, calendars, dtype="i4", values=np.arange):
    def fill(ds, number, length):
        t = ds.createVariable("t", dtype, ("t",))
        t.units = units[number]
        if calendars[number]:
            t.calendar = calendars[number]
        t[:] = values(length)

    return fill


MONTHS = ("days since 2000-01-01", "days since 2000-02-01", "days since 2001-02-01")


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day", "proleptic_gregorian", "julian"])
@pytest.mark.parametrize("dtype", ["i4", "f8"])
@pytest.mark.parametrize("units", [None, "days since 1979-01-01"])
def test_times_are_those_of_netcdf4_python(tmp_path, calendar, dtype, units):
    found = []
    for library in (netcdf, netCDF4):
        with library.MFDataset(made(library, tmp_path, times(MONTHS, (calendar,) * 3, dtype))) as ds:
            time = library.MFTime(ds.variables["t"], units)
            assert (time.units, time.calendar, len(time), time.shape) == (units or MONTHS[0], calendar, TOTAL, (TOTAL,))
            found.append((time[:], time[3], time[2:5], time[[0, 4]]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_dates_are_those_of_the_datasets(tmp_path):
    """netCDF4-python adds one difference to each number, whatever the units are."""
    units = ("days since 2000-01-01", "hours since 2000-02-01", "minutes since 2000-03-01 12:00")
    places = made(netcdf, tmp_path, times(units, ("standard",) * 3))
    wanted = []
    for place in places:
        with netcdf.Dataset(place) as ds:
            wanted += list(cftime.num2date(ds["t"][:], ds["t"].units, "standard"))
    with netcdf.MFDataset(places) as ds:
        time = netcdf.MFTime(ds["t"])
        got = cftime.num2date(time[:], time.units, time.calendar)
    assert all(abs(one - other) < timedelta(milliseconds=1) for one, other in zip(got, wanted, strict=True))


def test_index_of_a_date_is_found(tmp_path):
    with netcdf.MFDataset(made(netcdf, tmp_path, times(MONTHS, ("standard",) * 3))) as ds:
        assert netcdf.date2index(cftime.datetime(2000, 2, 1), netcdf.MFTime(ds["t"])) == 3


@pytest.mark.parametrize("calendars", [("standard", "", "standard"), ("standard", "noleap", "standard")], ids=str)
def test_calendar_must_be_one(tmp_path, calendars):
    for library in (netcdf, netCDF4):
        with library.MFDataset(made(library, tmp_path, times(MONTHS, calendars))) as ds:
            with pytest.raises(ValueError, match="calendar"):
                library.MFTime(ds.variables["t"])
            assert library.MFTime(ds.variables["t"], calendar="standard")[3] == 31


def test_missing_times_stay_masked(tmp_path):
    def values(length):
        return np.ma.masked_equal(np.arange(length), 1)

    with netcdf.MFDataset(made(netcdf, tmp_path, times(MONTHS, ("standard",) * 3, values=values))) as ds:
        found = netcdf.MFTime(ds["t"])[:]
        assert found.tolist() == [0, None, 2, 31, 397, None, 399, 400]


def test_store_error_names_the_dataset(tmp_path):
    places = made(netcdf, tmp_path, numbers, (1, 1))
    with netcdf.Dataset(places[1], "a") as ds:
        ds.renameVariable("plain", "other")
    with pytest.raises(StoreError, match=r"part1\.zarr.*plain"):
        netcdf.MFDataset(places)

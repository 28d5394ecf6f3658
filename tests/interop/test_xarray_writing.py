"""Writing datasets of xarray: `omnizarr.interop.xarray.to_zarr`, held against xarray's own writer."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

import omnizarr
from omnizarr.errors import NotJSONError, NotRepresentableError, SchedulerError
from omnizarr.interop.xarray import to_zarr
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore, verbs
from omnizarr.stores.base import answers
from tests.fakes import FaultyStore, WatchedStore
from tests.interop.test_xarray import by_zarr, opened, sea

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of zarr-python: data types that are not part of the core
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::xarray.SerializationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
FORMATS = [2, 3]


def encoded(variable, **encoding):
    variable.encoding = encoding
    return variable


def one(data, *dims, attrs=None, **encoding):
    """Return a dataset of one variable."""
    return xr.Dataset({"v": encoded(xr.Variable(dims, data, attrs), **encoding)})


def curvilinear():
    return xr.Dataset(
        {
            "t": (("y", "x"), np.arange(6.0).reshape(2, 3), {"grid_mapping": "crs"}),
            "crs": ((), 0, {"name": "mercator"}),
        },
        coords={
            "lat": (("y", "x"), np.ones((2, 3))),
            "lon": (("y", "x"), np.zeros((2, 3))),
            "time": ((), np.datetime64("2001-02-03", "ns")),
        },
    )


DATASETS = {
    "sea": sea(),
    "empty": xr.Dataset(),
    "attributes alone": xr.Dataset(attrs={"a": 1, "b": [1.5, None], "c": {"d": "ü"}}),
    "attributes of NumPy": one(
        [1], "x", attrs={"a": np.float32(0.5), "b": np.arange(3), "c": np.int8(4), "d": np.bool_(1)}
    ),
    "floats": one([1.5, np.nan, np.inf, -0.0], "x"),
    "small floats": one(np.array([1.5, np.nan], "f2"), "x"),
    "mask of floats": one([1.5, np.nan], "x", _FillValue=-9.0),
    "no mask": one([1.5, np.nan], "x", _FillValue=None),
    "mask of integers": one(np.array([1, 2], "i2"), "x", _FillValue=2),
    "packed": one([0.5, np.nan, 2.0], "x", dtype="i2", scale_factor=0.5, add_offset=1.0, _FillValue=-99),
    "packed, unsigned": one([0.0, 200.0], "x", dtype="i1", _Unsigned="true", _FillValue=-1),
    "missing value": one([1.0, np.nan], "x", missing_value=-9.0, _FillValue=-9.0),
    "big-endian": one(np.array([1, 2], ">i4"), "x"),
    "unsigned": one(np.array([2**64 - 1], "u8"), "x"),
    "bool": one([True, False], "x"),
    "complex": one(np.array([1 + 2j, np.nan]), "x"),
    "small complex": one(np.array([1 + 2j], "c8"), "x"),
    "times": one(np.array(["1999-12-31T23:59", "NaT"], "M8[ns]"), "x"),
    "times with units": one(np.array(["2000-01-02"], "M8[ns]"), "x", units="hours since 1990-01-01", dtype="i8"),
    "durations": one(np.array([1, 2], "m8[s]").astype("m8[ns]"), "x"),
    "texts": one(np.array(["a", "Größe", ""], object), "x"),
    "fixed texts": one(np.array(["a", "Größe", ""]), "x"),
    "bytes": one(np.array([b"a", b"bcd"]), "x"),
    "objects that are numbers": one(np.array([1.5, None], object), "x"),
    "texts that are missing": one(np.array(["a", None], object), "x"),
    "scalar": one(5.5),
    "scalar text": one("Größe"),
    "scalar time": one(np.datetime64("2000-01-01", "ns")),
    "no elements": one(np.zeros((0, 3)), "x", "y"),
    "unlimited": one([1, 2], "x").assign_attrs(a=1),
    "unicode names": xr.Dataset({"größe": ("länge", [1, 2])}, coords={"länge": [3, 4]}, attrs={"ä": "ö"}),
    "name with a space": xr.Dataset({"a b": ("x", [1])}, coords={"c d": ("x", [2])}),
    "coordinates": curvilinear(),
    "multi-dimensional": one(np.arange(24).reshape(2, 3, 4), "a", "b", "c", chunks=(1, 2, 2)),
    "datetime axis": one(np.zeros(3), "t").assign_coords(t=np.array(["2000", "2001", "2002"], "M8[ns]")),
}
DATASETS["unlimited"].encoding["unlimited_dims"] = {"x"}


def described(path):
    """Return what documents say of each variable, as far as the writers need not differ."""
    found = {}
    for name, array in omnizarr.open(path, mode="r").arrays():
        metadata = array.metadata
        found[name] = (
            array.shape,
            metadata.data_type,
            metadata.fill_value,
            array.dimension_names or (),
            array.attrs.asdict(),
        )
    return json.loads(json.dumps(found, default=str))


class TestAsXarraysWriter:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("name", DATASETS)
    def test_datasets(self, tmp_path, name, zarr_format):
        data = DATASETS[name]
        data.copy(deep=True).to_zarr(tmp_path / "theirs.zarr", zarr_format=zarr_format)
        to_zarr(data.copy(deep=True), tmp_path / "ours.zarr", zarr_format=zarr_format)
        theirs = xr.open_zarr(tmp_path / "theirs.zarr", chunks=None).load()
        assert xr.open_zarr(tmp_path / "ours.zarr", chunks=None).load().identical(theirs)
        assert opened(tmp_path / "ours.zarr").identical(theirs)
        assert by_zarr(tmp_path / "ours.zarr").identical(theirs)  # and what is not consolidated
        assert described(tmp_path / "ours.zarr") == described(tmp_path / "theirs.zarr")

    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("name", DATASETS)
    def test_datasets_of_dask(self, tmp_path, name, zarr_format):
        data = DATASETS[name].copy(deep=True)
        to_zarr(data.chunk(), tmp_path / "ours.zarr", zarr_format=zarr_format)
        data.to_zarr(tmp_path / "theirs.zarr", zarr_format=zarr_format)
        assert by_zarr(tmp_path / "ours.zarr").identical(by_zarr(tmp_path / "theirs.zarr"))

    @pytest.mark.parametrize(
        ("array", "name"),
        [
            (xr.DataArray([1.5], dims="x", name="t", attrs={"units": "K"}), "t"),
            (xr.DataArray([1.5], dims="x", coords={"x": [1]}, name="x"), "x"),
            (xr.DataArray([1.5], dims="x"), None),
        ],
    )
    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("engine", ["zarr", "omnizarr"])
    def test_data_arrays_keep_their_name(self, tmp_path, array, name, zarr_format, engine):
        array.omnizarr.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format)
        found = xr.open_dataarray(tmp_path / "a.zarr", engine=engine)
        assert found.identical(array)
        assert found.name == name

    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("inherit", [False, True])
    def test_trees(self, tmp_path, zarr_format, inherit):
        tree = xr.DataTree.from_dict(
            {"/": sea()[["n"]], "/deep": xr.Dataset(attrs={"a": 1}), "/deep/below": sea()[["packed"]]}
        )
        options = {"zarr_format": zarr_format, "write_inherited_coords": inherit}
        tree.to_zarr(tmp_path / "theirs.zarr", **options)
        tree.omnizarr.to_zarr(tmp_path / "ours.zarr", **options)
        theirs = xr.open_datatree(tmp_path / "theirs.zarr", engine="zarr")
        for engine in ("zarr", "omnizarr"):
            assert xr.open_datatree(tmp_path / "ours.zarr", engine=engine).identical(theirs)

    @pytest.mark.parametrize(
        "encoding",
        [
            {"chunks": (1, 2)},
            {"chunks": (1, 1), "shards": (2, 2)},
            {"compressors": (zarr.codecs.BloscCodec(typesize=8, cname="lz4", clevel=3, shuffle="shuffle"),)},
            {"compressors": None},
            {"dtype": "f4", "_FillValue": -1.0},
            {"fill_value": 7.0},
            {"chunk_key_encoding": {"name": "v2", "separator": "."}},
        ],
        ids=str,
    )
    def test_encoding(self, tmp_path, encoding):
        data = one(np.arange(6.0).reshape(2, 3), "x", "y")
        data.to_zarr(tmp_path / "theirs.zarr", encoding={"v": dict(encoding)})
        to_zarr(data, tmp_path / "ours.zarr", encoding={"v": dict(encoding)})
        ours, theirs = (omnizarr.open(tmp_path / name / "v").metadata for name in ("ours.zarr", "theirs.zarr"))
        if "chunks" in encoding or "compressors" in encoding:  # each has its own idea of what is meant by "auto"
            assert (ours.chunk_grid, ours.codecs) == (theirs.chunk_grid, theirs.codecs)
        assert (ours.data_type, ours.fill_value, ours.chunk_key_encoding) == (
            theirs.data_type,
            theirs.fill_value,
            theirs.chunk_key_encoding,
        )
        assert by_zarr(tmp_path / "ours.zarr").identical(by_zarr(tmp_path / "theirs.zarr"))

    def test_encoding_of_what_was_read_stays(self, tmp_path):
        data = one(np.arange(6.0).reshape(2, 3), "x", "y")
        codec = {"name": "gzip", "configuration": {"level": 3}}
        to_zarr(
            data, tmp_path / "a.zarr", encoding={"v": {"chunks": (1, 1), "shards": (2, 3), "compressors": (codec,)}}
        )
        to_zarr(opened(tmp_path / "a.zarr"), tmp_path / "b.zarr")
        opened(tmp_path / "a.zarr").to_zarr(tmp_path / "c.zarr")
        first, *others = (omnizarr.open(tmp_path / name / "v").metadata for name in ("a.zarr", "b.zarr", "c.zarr"))
        assert [each.codecs for each in others] == [first.codecs] * 2

    @pytest.mark.parametrize("bad", [{"level": 3}, {"chunks": (1.5,)}, {"chunks": [(1, 2)]}])
    def test_encoding_that_is_not_valid(self, tmp_path, bad):
        for write in (to_zarr, xr.Dataset.to_zarr):
            with pytest.raises((ValueError, TypeError)):
                write(one([1, 2, 3], "x"), tmp_path / f"{write.__module__}.zarr", encoding={"v": bad})
        assert not (tmp_path / f"{to_zarr.__module__}.zarr").exists()

    def test_keywords_that_are_gone(self):
        with pytest.raises(TypeError, match="zarr_version"):
            to_zarr(one([1], "x"), {}, zarr_version=2)


@pytest.mark.parametrize("zarr_format", [2, "3-draft2019", "3-draft2020", 1])
def test_older_formats(tmp_path, zarr_format):
    data = sea().drop_vars(["text", "s"]).drop_attrs(deep=False)  # neither texts nor scalars are in all of them
    to_zarr(data, tmp_path / "old.zarr", zarr_format=zarr_format)
    assert omnizarr.open(tmp_path / "old.zarr" / "n").zarr_format == zarr_format
    data.to_zarr(tmp_path / "theirs.zarr", zarr_format=2)
    assert opened(tmp_path / "old.zarr").identical(by_zarr(tmp_path / "theirs.zarr"))


def test_attributes_where_groups_have_none(tmp_path):
    with pytest.raises(NotRepresentableError, match="title"):
        to_zarr(sea()[["n"]], tmp_path / "old.zarr", zarr_format=1)
    assert not (tmp_path / "old.zarr").exists()


class TestModes:
    def test_new_place_is_not_overwritten(self, tmp_path):
        to_zarr(one([1], "x"), tmp_path / "a.zarr")
        with pytest.raises(FileExistsError):
            to_zarr(one([2], "x"), tmp_path / "a.zarr")
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [1]

    def test_w_replaces_all(self, tmp_path):
        to_zarr(sea(), tmp_path / "a.zarr")
        to_zarr(one([2], "x"), tmp_path / "a.zarr", mode="w")
        assert by_zarr(tmp_path / "a.zarr").identical(one([2], "x"))

    def test_w_of_a_group_leaves_its_siblings_alone(self, tmp_path):
        for number in (1, 2):
            to_zarr(one([number], "x"), tmp_path / "a.zarr", group="deep/a", mode="w")
            to_zarr(one([3], "x"), tmp_path / "a.zarr", group="deep/b", mode="a")
        found = xr.open_groups(tmp_path / "a.zarr", engine="zarr")
        assert {name: each["v"].values.tolist() for name, each in found.items() if "v" in each} == {
            "/deep/a": [2],
            "/deep/b": [3],
        }

    def test_w_of_what_is_read_from_there(self, tmp_path):
        to_zarr(one([1, 2], "x"), tmp_path / "a.zarr")
        to_zarr(opened(tmp_path / "a.zarr") + 1, tmp_path / "a.zarr", mode="w")
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [2, 3]
        lazy = opened(tmp_path / "a.zarr")
        to_zarr(lazy, tmp_path / "a.zarr", mode="w")
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [2, 3]
        to_zarr(opened(tmp_path / "a.zarr", chunks={}) + 1, tmp_path / "a.zarr", mode="w")
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [3, 4]
        to_zarr(xr.open_zarr(tmp_path / "a.zarr", consolidated=False) + 1, tmp_path / "a.zarr", mode="w")
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [4, 5]
        with pytest.raises(ValueError, match="mode='w' would remove"):  # it would be read later
            to_zarr(opened(tmp_path / "a.zarr", chunks={}) + 1, tmp_path / "a.zarr", mode="w", compute=False)
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [4, 5]

    def test_what_cannot_be_stored_replaces_nothing(self, tmp_path):
        to_zarr(one([1], "x"), tmp_path / "a.zarr")
        for bad in (
            one([2], "x", attrs={"a": object()}),
            one([2], "x").assign_attrs(a=object()),
            one([2], "x", compressors=({"name": "no-such-codec", "configuration": {}},)),
            one(np.array([{}], object), "x"),
        ):
            with pytest.raises((TypeError, ValueError)):
                to_zarr(bad, tmp_path / "a.zarr", mode="w")
        assert opened(tmp_path / "a.zarr").identical(one([1], "x"))

    def test_attributes_that_are_no_json(self):
        with pytest.raises(NotJSONError, match="a"):
            to_zarr(one([2], "x").assign_attrs(a=object()), {})

    def test_a_keeps_other_variables(self, tmp_path):
        to_zarr(one([1], "x").assign_attrs(a=1), tmp_path / "a.zarr")
        to_zarr(xr.Dataset({"w": ("x", [2])}, attrs={"b": 2}), tmp_path / "a.zarr", mode="a")
        expected = xr.Dataset({"v": ("x", [1]), "w": ("x", [2])}, attrs={"b": 2})
        assert xr.open_zarr(tmp_path / "a.zarr").identical(expected)

    def test_r_plus_creates_nothing(self, tmp_path):
        xr.DataTree.from_dict({"/": one([1], "x")}).omnizarr.to_zarr(tmp_path / "tree.zarr")
        with pytest.raises(KeyError, match="below"):
            xr.DataTree.from_dict({"/below": xr.Dataset()}).omnizarr.to_zarr(tmp_path / "tree.zarr", mode="r+")
        with pytest.raises(FileNotFoundError):
            to_zarr(one([1], "x"), tmp_path / "a.zarr", mode="r+")
        to_zarr(one([1], "x"), tmp_path / "a.zarr")
        with pytest.raises(ValueError, match="non-pre-existing"):
            to_zarr(xr.Dataset({"w": ("x", [2])}), tmp_path / "a.zarr", mode="r+")

    def test_failure_names_what_was_begun(self, tmp_path):
        def fail(block):
            raise ArithmeticError("no value")

        data = one(da.ones(4, chunks=2).map_blocks(fail, dtype=float, meta=np.ones(0)), "x").assign(w=("y", [1, 2]))
        with pytest.raises(ArithmeticError) as caught:
            to_zarr(data, tmp_path / "a.zarr")
        assert "the arrays v, w exist" in caught.value.__notes__[0]


class TestConsolidatedMetadata:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_is_written_unless_refused(self, tmp_path, zarr_format):
        to_zarr(sea(), tmp_path / "a.zarr", zarr_format=zarr_format)
        assert zarr.open_consolidated(tmp_path / "a.zarr")["n"].shape == (2, 3)
        to_zarr(sea(), tmp_path / "b.zarr", zarr_format=zarr_format, consolidated=False)
        with pytest.raises(ValueError, match=r"onsolidated|zmetadata"):
            zarr.open_consolidated(tmp_path / "b.zarr")

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_is_kept_current(self, tmp_path, zarr_format):
        to_zarr(one([1], "x"), tmp_path / "a.zarr", zarr_format=zarr_format)
        to_zarr(one([2], "x"), tmp_path / "a.zarr", append_dim="x", consolidated=False)
        assert xr.open_zarr(tmp_path / "a.zarr", consolidated=True)["v"].values.tolist() == [1, 2]

    def test_of_a_group_is_that_of_the_root(self, tmp_path):
        to_zarr(one([1], "x"), tmp_path / "a.zarr", group="deep")
        assert zarr.open_consolidated(tmp_path / "a.zarr")["deep/v"].shape == (1,)


class TestAppending:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("chunks", [None, {"t": 1}, {"t": 2, "x": 2}])
    def test_as_xarray_does(self, tmp_path, zarr_format, chunks):
        data = sea().drop_vars(["d"])
        later = data.assign_coords(t=data["t"] + np.timedelta64(2, "D"))
        for name, write in (("ours", to_zarr), ("theirs", xr.Dataset.to_zarr)):
            write(data, tmp_path / f"{name}.zarr", zarr_format=zarr_format)
            more = later if chunks is None else later.chunk(chunks)
            options = {} if write is to_zarr else {"align_chunks": True}
            write(more, tmp_path / f"{name}.zarr", append_dim="t", **options)
        ours, theirs = (xr.open_zarr(tmp_path / f"{name}.zarr") for name in ("ours", "theirs"))
        assert ours.identical(theirs)
        assert ours.sizes["t"] == 4

    def test_a_minus_leaves_others_alone(self, tmp_path):
        data = xr.Dataset({"v": ("x", [1]), "w": ("y", [5])})
        to_zarr(data, tmp_path / "a.zarr")
        to_zarr(data + 1, tmp_path / "a.zarr", mode="a-", append_dim="x")
        assert {name: each.values.tolist() for name, each in opened(tmp_path / "a.zarr").items()} == {
            "v": [1, 2],
            "w": [5],
        }

    def test_wrong_dimensions(self, tmp_path):
        to_zarr(one(np.zeros((1, 2)), "x", "y"), tmp_path / "a.zarr")
        with pytest.raises(ValueError, match="append_dim"):
            to_zarr(one(np.zeros((1, 2)), "x", "y"), tmp_path / "a.zarr", append_dim="z")
        with pytest.raises(ValueError, match="different dimension sizes"):
            to_zarr(one(np.zeros((1, 3)), "x", "y"), tmp_path / "a.zarr", append_dim="x")
        assert omnizarr.open(tmp_path / "a.zarr" / "v").shape == (1, 2)

    @pytest.mark.parametrize("place", ["local", "conditional"])
    @pytest.mark.parametrize("failing", range(1, 40, 3))
    def test_failure_leaves_all_variables_as_they_were(self, place, failing, tmp_path):
        bucket = pytest.importorskip("obstore.store").MemoryStore()
        store = LocalStore(tmp_path / "a.zarr") if place == "local" else omnizarr.storage.ObjectStore(bucket)
        names = ["a", "b", "x"]
        data = xr.Dataset({"a": ("x", [1, 2]), "b": ("x", [1.5, 2.5])}, coords={"x": [0, 1]})
        to_zarr(data, store)
        breaking = Breaking(store, failing)
        try:
            to_zarr(data, breaking, append_dim="x")
        except OSError:
            breaking.left = -1
            lengths = {omnizarr.open(store)[name].shape[0] for name in names}
            assert lengths == {2}
            assert by_omnizarr(store).identical(data)
        else:
            assert breaking.left > 0
        again = by_omnizarr(store).sizes["x"]
        to_zarr(data, store, append_dim="x")
        assert by_omnizarr(store)["a"].values.tolist() == [1, 2] * (again // 2 + 1)

    @pytest.mark.parametrize("place", ["memory", "conditional"])
    def test_many_who_append_get_a_place_of_their_own(self, place):
        bucket = pytest.importorskip("obstore.store").MemoryStore()
        store = MemoryStore() if place == "memory" else omnizarr.storage.ObjectStore(bucket)

        def some(number):
            return xr.Dataset({"a": ("x", [number] * 3), "b": ("x", [-number] * 3)})

        to_zarr(some(0), store, encoding={"a": {"chunks": (4,)}})
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: to_zarr(some(number), store, append_dim="x", consolidated=False), range(1, 6)))
        found = by_omnizarr(store)
        assert (found["a"] == -found["b"]).all()
        assert sorted(found["a"].values.tolist()) == sorted(list(range(6)) * 3)

    def test_readers_see_the_old_length_until_all_is_written(self, tmp_path):
        data = xr.Dataset({"a": ("x", [1]), "b": ("x", [2])})
        to_zarr(data, tmp_path / "a.zarr")
        seen = []

        def look(block):
            seen.append({name: array.shape for name, array in omnizarr.open(tmp_path / "a.zarr").arrays()})
            return block

        lazy = xr.Dataset({"a": ("x", da.ones(1, dtype=int).map_blocks(look, dtype=int, meta=np.ones(0, int)))})
        to_zarr(lazy.assign(b=("x", [3])), tmp_path / "a.zarr", append_dim="x")
        assert seen == [{"a": (1,), "b": (1,)}]
        assert opened(tmp_path / "a.zarr")["a"].values.tolist() == [1, 1]

    def test_nczarr_says_itself_how_long_it_is(self, tmp_path):
        with omnizarr.netcdf.Dataset(tmp_path / "a.zarr", "w") as dataset:
            dataset.createDimension("x", 1)
            dataset.createVariable("v", "i4", ("x",))[:] = [1]
        with pytest.raises(NotRepresentableError, match="NCZarr"):
            to_zarr(one([2], "x"), tmp_path / "a.zarr", append_dim="x")
        to_zarr(one(np.array([2], "i4"), "x"), tmp_path / "a.zarr", region={"x": slice(0, 1)})
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [2]


def by_omnizarr(store):
    return xr.open_dataset(store, engine="omnizarr").load()


class Unlocked(WrapperStore):
    """A store that keeps apart writers of one process only."""

    @property
    def features(self):
        return replace(self.store.features, exclusion="process")


class Breaking(WrapperStore):
    """A store whose n-th write fails, and those after it do not."""

    def __init__(self, store, number):
        super().__init__(store)
        self.left = number

    def _count(self):
        self.left -= 1
        if self.left == 0:
            raise omnizarr.errors.StoreError("the disk is full")

    def set(self, key, value):
        self._count()
        super().set(key, value)

    def update(self, key, change):
        self._count()
        return super().update(key, change)

    @answers(verbs.set_partial)
    def _set_partial(self, *arguments, **options):
        self._count()
        return verbs.set_partial(self.store, *arguments, **options)


class TestRegions:
    @pytest.fixture
    def stored(self, tmp_path):
        data = xr.Dataset({"v": (("x", "y"), np.zeros((4, 6)))}, coords={"x": np.arange(4) * 10, "y": np.arange(6)})
        to_zarr(data.chunk(x=2, y=3), tmp_path / "a.zarr")
        return tmp_path / "a.zarr"

    @pytest.mark.parametrize(
        "region", [{"x": slice(1, 3)}, {"x": slice(1, 3), "y": "auto"}, {"x": "auto", "y": "auto"}, "auto"], ids=str
    )
    def test_region(self, stored, region):
        part = xr.Dataset({"v": (("x", "y"), np.ones((2, 6)))}, coords={"x": [10, 20], "y": np.arange(6)})
        to_zarr(part if "y" in region or region == "auto" else part.drop_vars("y"), stored, region=region)
        assert opened(stored)["v"].sum("y").values.tolist() == [0, 6, 6, 0]

    @pytest.mark.parametrize(
        ("region", "error"),
        [
            ({"z": slice(1)}, ValueError),
            ({"x": [1]}, TypeError),
            ({"x": slice(0, 4, 2)}, ValueError),
            ({"x": slice(0, 3)}, ValueError),
            (slice(1), TypeError),
        ],
        ids=str,
    )
    def test_wrong_regions(self, stored, region, error):
        with pytest.raises(error):
            to_zarr(xr.Dataset({"v": (("x", "y"), np.ones((2, 6)))}), stored, region=region)
        assert not opened(stored)["v"].any()

    def test_new_variables(self, stored):
        part = xr.Dataset({"w": (("x", "y"), np.ones((2, 6)))})
        with pytest.raises(ValueError, match="'w' is not there"):
            to_zarr(part, stored, region={"x": slice(1, 3)}, mode="a")
        assert "w" not in omnizarr.open(stored)

    def test_unknown_coordinates(self, stored):
        part = xr.Dataset({"v": (("x", "y"), np.ones((1, 6)))}, coords={"x": [15], "y": np.arange(6)})
        with pytest.raises(KeyError, match="x"):
            to_zarr(part, stored, region="auto")

    def test_regions_written_side_by_side_lose_nothing(self, stored):
        def write(row):
            to_zarr(
                xr.Dataset({"v": (("x", "y"), np.full((1, 6), row + 1.0))}), stored, region={"x": slice(row, row + 1)}
            )

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        assert opened(stored)["v"][:, 0].values.tolist() == [1, 2, 3, 4]


class TestDask:
    def test_chunks_of_dask_become_those_of_the_array(self, tmp_path):
        to_zarr(one(da.ones((4, 5), chunks=(2, 2)), "x", "y"), tmp_path / "a.zarr")
        assert omnizarr.open(tmp_path / "a.zarr" / "v").chunks == (2, 2)

    @pytest.mark.parametrize("shards", [None, (6,)])
    def test_chunks_that_end_elsewhere_lose_nothing(self, tmp_path, shards):
        data = one(da.arange(1000, chunks=7), "x", chunks=(3,), shards=shards)
        to_zarr(data, tmp_path / "a.zarr")
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == list(range(1000))

    def test_processes_that_share_chunks_lose_nothing(self, tmp_path):
        data = one(da.arange(60, chunks=7), "x", chunks=(10,))
        with dask.config.set(scheduler="processes", num_workers=2):
            to_zarr(data, tmp_path / "a.zarr")
            to_zarr(data + 60, tmp_path / "a.zarr", append_dim="x")
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == list(range(120))

    def test_asked_to_be_safe_it_refuses_them_as_xarray_does(self, tmp_path):
        data = one(da.arange(10, chunks=4), "x", chunks=(3,))
        for write in (to_zarr, xr.Dataset.to_zarr):
            with pytest.raises(ValueError, match="would overlap"):
                write(data, tmp_path / "a.zarr", safe_chunks=True)

    def test_chunks_are_aligned_if_asked_for(self, tmp_path):
        data = one(da.arange(10, chunks=4), "x", chunks=(3,))
        to_zarr(data, tmp_path / "a.zarr", safe_chunks=True, align_chunks=True)
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == list(range(10))

    def test_chunks_of_many_lengths(self, tmp_path):
        root = omnizarr.create_group(tmp_path / "a.zarr")
        root.create_array("v", shape=10, dtype="i8", chunks=[[3, 5, 2]], dimension_names=["x"])
        data = one(da.arange(10, chunks=4), "x")
        to_zarr(data, tmp_path / "a.zarr", mode="r+")
        to_zarr(data, tmp_path / "a.zarr", append_dim="x")
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [*range(10)] * 2
        with pytest.raises(ValueError, match="would overlap"):
            to_zarr(data, tmp_path / "a.zarr", mode="r+", region={"x": slice(10)}, safe_chunks=True)

    def test_other_processes_where_nobody_keeps_them_apart(self, tmp_path):
        data = one(da.arange(10, chunks=4), "x", chunks=(3,))
        store = Unlocked(LocalStore(tmp_path / "a.zarr"))
        with dask.config.set(scheduler="processes"):
            with pytest.raises(ValueError, match="would overlap"):
                to_zarr(data, store)
            with pytest.raises(SchedulerError):
                to_zarr(data, {})
        with pytest.raises(ValueError, match="would overlap"):
            to_zarr(data, store, compute=False)  # who knows where
        to_zarr(data, store)
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == list(range(10))

    def test_compute_later(self, tmp_path):
        data = xr.Dataset({"v": ("x", da.arange(10, chunks=3)), "w": ("y", [1, 2])})
        later = to_zarr(data, tmp_path / "a.zarr", compute=False)
        before = opened(tmp_path / "a.zarr").load()
        assert (before["v"].sum(), before["w"].values.tolist()) == (0, [1, 2])
        later.compute()
        assert xr.open_zarr(tmp_path / "a.zarr").identical(data)

    def test_append_later(self, tmp_path):
        data = xr.Dataset({"v": ("x", da.arange(3, chunks=3))})
        to_zarr(data, tmp_path / "a.zarr")
        later = to_zarr(data, tmp_path / "a.zarr", append_dim="x", compute=False)
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [0, 1, 2, 0, 0, 0]
        later.compute()
        assert opened(tmp_path / "a.zarr")["v"].values.tolist() == [0, 1, 2] * 2

    def test_keywords_reach_dask(self, tmp_path):
        asked = []

        def get(graph, keys, **options):
            asked.append(keys)
            return dask.get(graph, keys, **options)

        to_zarr(one(da.arange(3, chunks=3), "x"), tmp_path / "a.zarr", chunkmanager_store_kwargs={"scheduler": get})
        assert len(asked) == 1


class TestPlaces:
    def test_returns_the_group(self):
        group = to_zarr(one([1], "x"))
        assert group["v"][...].tolist() == [1]

    def test_archive_is_whole_when_written(self, tmp_path):
        to_zarr(sea(), tmp_path / "a.zip")
        assert opened(tmp_path / "a.zip").identical(to_and_fro(sea(), tmp_path))

    def test_archive_is_whole_when_computed(self, tmp_path):
        to_zarr(one(da.arange(3, chunks=3), "x"), tmp_path / "a.zip", compute=False).compute()
        assert opened(tmp_path / "a.zip")["v"].values.tolist() == [0, 1, 2]

    def test_stores_of_zarr_python(self):
        store = zarr.storage.MemoryStore()
        to_zarr(sea(), store)
        assert xr.open_zarr(store, chunks=None).load().identical(by_omnizarr(store))

    def test_store_of_the_user_stays_open(self):
        values = {}
        store = MemoryStore(values)
        to_zarr(one([1], "x"), store)
        to_zarr(one([2], "x"), store, append_dim="x")
        assert by_omnizarr(store)["v"].values.tolist() == [1, 2]

    def test_variables_go_side_by_side_where_answers_take_time(self):
        started, both = [], threading.Barrier(2, timeout=30)

        def meet(verb, key):
            if verb == "set" and "/c/" in key:
                started.append(key)
                both.wait()

        store = WatchedStore(FaultyStore(MemoryStore(), concurrency=4), meet)
        to_zarr(xr.Dataset({"a": ("x", [1.0, 2.0]), "b": ("x", [1.0, 2.0])}), store)
        assert sorted(started) == ["a/c/0", "b/c/0"]


def to_and_fro(data, tmp_path):
    data.to_zarr(tmp_path / "by xarray.zarr", consolidated=False)
    return by_zarr(tmp_path / "by xarray.zarr")


def test_chunks_of_dask_that_end_within_shards_store_each_shard_once():
    keys = []
    store = WatchedStore(MemoryStore(), lambda verb, key: keys.append(key) if verb == "set" and "/c/" in key else None)
    data = np.arange(64 * 40, dtype="i4").reshape(64, 40)
    blocks = {name: (("y", "x"), da.from_array(data + number, chunks=(5, 7))) for number, name in enumerate("ab")}
    encoding = {name: {"chunks": (8, 10), "shards": (32, 20)} for name in blocks}
    to_zarr(xr.Dataset(blocks), store, encoding=encoding, safe_chunks=False, zarr_format=3)
    assert len(keys) == len(set(keys)) == 8
    more = xr.Dataset(blocks).isel(y=slice(0, 17))
    to_zarr(more, store, append_dim="y", safe_chunks=False)
    found = opened(store)
    for number, name in enumerate("ab"):
        np.testing.assert_array_equal(found[name], np.concatenate([data, data[:17]]) + number)

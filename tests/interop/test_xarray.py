"""The engine ``omnizarr`` of xarray."""

import asyncio
import pickle
import threading

import numpy as np
import pytest
import xarray as xr

import omnizarr
from omnizarr import netcdf
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore, WatchedStore
from tests.netcdf.foreign import WRITERS
from tests.netcdf.tools.test_in_xarray import differences

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of zarr-python: data types that are not part of the core
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::xarray.SerializationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
FORMATS = [2, 3]
OLDER = [1, "3-draft2019", "3-draft2020"]


def sea():
    """Return a dataset with all that xarray codes in some way."""
    data = xr.Dataset(
        {
            "packed": (("t", "x"), [[0.5, np.nan, 1.5], [2.0, 2.5, np.nan]], {"units": "m"}),
            "n": (("t", "x"), np.arange(6).reshape(2, 3)),
            "f": ("x", np.array([1, np.nan, 3], "f4")),
            "b": ("x", [True, False, True]),
            "text": ("x", np.array(["a", "Größe", ""], object)),
            "s": ((), 5),
            "d": ("x", np.array([1, 2, 3], "m8[s]").astype("m8[ns]")),
        },
        coords={"t": np.array(["2000-01-01", "2000-01-02"], "M8[ns]"), "x": [1.5, 2.5, 3.5]},
        attrs={"title": "sea", "number": 1.5},
    )
    data["packed"].encoding = {"dtype": "i2", "_FillValue": -99, "scale_factor": 0.5}
    return data


@pytest.fixture(scope="module", params=FORMATS)
def stored(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("sea") / "sea.zarr"
    sea().to_zarr(path, zarr_format=request.param, consolidated=False)
    sea()[["n"]].to_zarr(path, group="deep/below", mode="a", zarr_format=request.param, consolidated=False)
    return path


def opened(path, **options):
    return xr.open_dataset(path, engine="omnizarr", **options)


def by_zarr(path, **options):
    return xr.open_dataset(path, engine="zarr", consolidated=False, **options)


class TestAsTheEngineZarr:
    def test_dataset_is_identical(self, stored):
        theirs = by_zarr(stored)
        ours = opened(stored)
        assert ours.identical(theirs)
        for name in theirs.variables:
            assert ours[name].dtype == theirs[name].dtype
            for key in ("chunks", "preferred_chunks", "scale_factor", "units", "calendar", "_FillValue"):
                assert str(ours[name].encoding.get(key)) == str(theirs[name].encoding.get(key))

    @pytest.mark.parametrize(
        "options",
        [
            {"mask_and_scale": False},
            {"decode_times": False},
            {"decode_cf": False},
            {"drop_variables": ["n", "s"]},
            {"group": "deep/below"},
            {"group": "/deep"},
            {"chunks": {"x": 2}},
            {"use_zarr_fill_value_as_mask": None},
        ],
        ids=str,
    )
    def test_options_mean_the_same(self, stored, options):
        assert opened(stored, **options).identical(by_zarr(stored, **options))

    @pytest.mark.parametrize(
        "select",
        [
            lambda d: d.isel(x=1),
            lambda d: d.isel(x=slice(None, None, -1)),
            lambda d: d.isel(x=[2, 0]),
            lambda d: d.isel(x=[2, 0], t=[1, 0]),
            lambda d: d.isel(x=xr.DataArray([2, 0], dims="p"), t=xr.DataArray([1, 0], dims="p")),
            lambda d: d.isel(x=xr.DataArray([[2, 0]], dims=["p", "q"])).isel(q=0),
            lambda d: d.sel(x=2.5, t="2000-01-02"),
            lambda d: d.isel(x=slice(1, None)).isel(x=[1], t=-1),
            lambda d: d.isel(x=[]),
            lambda d: d.transpose(),
        ],
    )
    @pytest.mark.parametrize("asynchronously", [False, True])
    def test_selections(self, stored, select, asynchronously):
        found = select(opened(stored))
        if asynchronously:
            found = asyncio.run(found.load_async())
        assert found.identical(select(by_zarr(stored).load()))

    def test_groups_and_tree(self, stored):
        ours, theirs = (
            xr.open_groups(stored, engine=engine, **more)
            for engine, more in (("omnizarr", {}), ("zarr", {"consolidated": False}))
        )
        assert list(ours) == list(theirs) == ["/", "/deep", "/deep/below"]
        for name, each in theirs.items():
            assert ours[name].identical(each)
        tree = xr.open_datatree(stored, engine="omnizarr")
        assert tree.identical(xr.open_datatree(stored, engine="zarr", consolidated=False))
        below = xr.open_datatree(stored, engine="omnizarr", group="deep")
        assert list(below.groups) == ["/", "/below"]

    def test_nothing_is_read_before_it_is_asked_for(self, stored):
        node = omnizarr.open(stored)
        (stored / "hidden").mkdir()
        key = next(
            each for each in node.store.list() if each.startswith("n/") and not each.endswith(("json", "y", "s"))
        )
        (stored / key).rename(stored / "hidden" / "chunk")
        try:
            found = opened(stored)["n"]
        finally:
            (stored / "hidden" / "chunk").rename(stored / key)
            (stored / "hidden").rmdir()
        assert found.values.tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_pickled_dataset_is_read_elsewhere(self, stored):
        found = pickle.loads(pickle.dumps(opened(stored)))
        assert found.identical(by_zarr(stored))

    def test_many_files(self, tmp_path):
        for number in range(3):
            data = sea()[["n"]].assign_coords(t=np.array([2 * number, 2 * number + 1]))
            data.to_zarr(tmp_path / f"{number}.zarr", consolidated=False)
        found = xr.open_mfdataset(sorted(tmp_path.glob("*.zarr")), engine="omnizarr", combine="by_coords")
        assert found["n"].values.tolist() == [[0, 1, 2], [3, 4, 5]] * 3
        assert found["n"].chunks is not None
        places = [str(path) for path in sorted(tmp_path.glob("*.zarr"))]
        again = xr.open_mfdataset(places, engine="omnizarr", parallel=True, drop_variables=["x"], chunks={"x": 2})
        assert again["n"].identical(found["n"].drop_vars("x"))
        assert again["n"].chunks == ((2, 2, 2), (2, 1))

    def test_what_was_read_can_be_written(self, stored, tmp_path):
        found = opened(stored)
        found.to_zarr(tmp_path / "again.zarr", consolidated=False)
        assert by_zarr(tmp_path / "again.zarr").identical(by_zarr(stored))


class TestWhatOnlyOmnizarrOpens:
    @pytest.mark.parametrize("zarr_format", [2, 3, *OLDER[1:]])
    def test_every_format_with_groups(self, tmp_path, zarr_format):
        data = sea().drop_vars("text")  # texts of any length are not in the drafts
        data.to_zarr(tmp_path / "old.zarr", zarr_format=2, consolidated=False)
        omnizarr.convert(tmp_path / "old.zarr", tmp_path / "new.zarr", zarr_format=zarr_format)
        assert opened(tmp_path / "new.zarr").identical(by_zarr(tmp_path / "old.zarr"))

    @pytest.mark.parametrize("zarr_format", OLDER)
    def test_arrays_without_names_of_dimensions(self, tmp_path, zarr_format):
        omnizarr.create_array(tmp_path / "temp", data=np.zeros((2, 3)), zarr_format=zarr_format)
        found = opened(omnizarr.open(tmp_path / "temp"))["data"]
        assert (found.dims, found.shape) == (("phony_dim_0", "phony_dim_1"), (2, 3))
        assert found.values.tolist() == np.zeros((2, 3)).tolist()

    def test_dimensions_without_names_are_shared_by_length(self):
        root = omnizarr.create_group({})
        root["a"], root["b"], root["c"] = np.zeros((2, 3)), np.zeros(3), np.zeros((3, 3))
        found = opened(root)
        assert found.sizes == {"phony_dim_0": 2, "phony_dim_1": 3}
        assert (found["b"].dims, found["c"].dims) == (("phony_dim_1",), ("phony_dim_1",) * 2)

    def test_fill_value_of_an_array_that_is_none_of_xarrays_masks_nothing(self, tmp_path):
        omnizarr.create_array(tmp_path / "n", data=[0, 1], fill_value=0, zarr_format=1)
        assert opened(tmp_path / "n")["data"].dtype == np.dtype("i8")
        assert np.isnan(opened(tmp_path / "n", use_zarr_fill_value_as_mask=True)["data"].values[0])

    @pytest.mark.parametrize("suffix", [".zip", ".sqlite"])
    def test_every_store(self, tmp_path, suffix):
        sea().to_zarr(tmp_path / "old.zarr", consolidated=False)
        omnizarr.copy_store(tmp_path / "old.zarr", tmp_path / f"new{suffix}")
        assert opened(tmp_path / f"new{suffix}").identical(by_zarr(tmp_path / "old.zarr"))

    def test_mapping_and_open_nodes(self):
        root = omnizarr.create_group({}, attributes={"title": "t"})
        array = root.create_array("a", data=[1, 2], dimension_names=["x"])
        assert opened(root).attrs == {"title": "t"}
        assert opened(array)["a"].dims == ("x",)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("name", WRITERS)
def test_nczarr_is_what_the_file_was(tmp_path, name, zarr_format):
    WRITERS[name](tmp_path / "old.nc")
    done = omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr", zarr_format=zarr_format)
    theirs = {
        path.rstrip("/"): each.load() for path, each in xr.open_groups(tmp_path / "old.nc", engine="netcdf4").items()
    }
    ours = {
        path.rstrip("/"): each.load() for path, each in xr.open_groups(tmp_path / "new.zarr", engine="omnizarr").items()
    }
    for loss in done.losses:  # strings that are longer than an attribute says
        for each in (ours, theirs):
            del each[""]["v"].attrs[loss.pointer.removeprefix("/attributes/")]
    assert differences(theirs, ours) == []


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_nczarr_is_loaded_asynchronously(tmp_path, zarr_format):
    WRITERS[next(iter(WRITERS))](tmp_path / "old.nc")
    omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr", zarr_format=zarr_format)
    expected = opened(tmp_path / "new.zarr").load()
    assert asyncio.run(opened(tmp_path / "new.zarr").load_async()).identical(expected)


@pytest.mark.parametrize("layout", ["A", "B", "C", "D"])
def test_layouts_of_nczarr(tmp_path, layout):
    with netcdf.Dataset(tmp_path / "x.zarr", "w", layout=layout) as dataset:
        dataset.createDimension("x", 2)
        dataset.createDimension("n", 3)
        dataset.createVariable("name", "S1", ("x", "n"))[:] = np.array([b"abc", b"de"], "S3").view("S1").reshape(2, 3)
        dataset.createVariable("v", "i2", ("x",), fill_value=-9)[:] = [1, -9]
        dataset.createGroup("g").title = "below"
    found = opened(tmp_path / "x.zarr")
    assert found["name"].values.tolist() == [b"abc", b"de"]
    assert np.isnan(found["v"].values).tolist() == [False, True]
    assert opened(tmp_path / "x.zarr", group="g").attrs == {"title": "below"}


class TestClosing:
    @pytest.mark.parametrize("opening", [xr.open_dataset, xr.open_datatree, xr.open_mfdataset])
    def test_store_of_a_path_is_closed(self, stored, tmp_path, opening, monkeypatch):
        omnizarr.copy_store(stored, tmp_path / "a.zip")
        closed = []
        monkeypatch.setattr(omnizarr.storage.ZipStore, "close", lambda store: closed.append(str(store)))
        found = opening(tmp_path / "a.zip", engine="omnizarr")
        assert not closed
        found.close()
        assert closed

    def test_what_was_loaded_stays(self, stored, tmp_path):
        omnizarr.copy_store(stored, tmp_path / "a.zip")
        with opened(tmp_path / "a.zip") as found:
            found.load()
        assert found["n"].values.tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_store_of_the_user_stays_open(self, monkeypatch):
        store = omnizarr.storage.MemoryStore()
        omnizarr.create_group(store)["a"] = [1]
        monkeypatch.setattr(omnizarr.storage.MemoryStore, "close", lambda _: pytest.fail("closed"))
        for place in (store, omnizarr.open(store), store.store_dict):
            opened(place).close()

    def test_store_is_closed_if_there_is_no_dataset(self, tmp_path, monkeypatch):
        root = omnizarr.create_group(tmp_path / "a.zarr")
        root.create_array("a", data=[1], dimension_names=["x"])
        root.create_array("b", data=[1, 2], dimension_names=["x"])
        closed = []
        monkeypatch.setattr(omnizarr.storage.LocalStore, "close", lambda store: closed.append(str(store)))
        with pytest.raises(ValueError, match="conflicting sizes"):
            opened(tmp_path / "a.zarr")
        assert closed


class TestChunks:
    @pytest.mark.parametrize("chunks", [{}, "auto"])
    def test_those_of_dask_are_shards(self, tmp_path, chunks):
        root = omnizarr.create_group(tmp_path / "a.zarr")
        root.create_array("a", data=np.arange(10), chunks=(2,), shards=(4,), dimension_names=["x"])
        found = opened(tmp_path / "a.zarr", chunks=chunks)["a"]
        assert found.chunks == (((4, 4, 2),) if chunks == {} else ((10,),))
        assert (found.encoding["chunks"], found.encoding["shards"]) == ((2,), (4,))
        found.to_dataset().to_zarr(tmp_path / "again.zarr")  # which refuses chunks that would share a shard

    def test_those_of_dask_are_inner_chunks_where_shards_are_large(self, tmp_path):
        root = omnizarr.create_group(tmp_path / "a.zarr")
        root.create_array("a", shape=2**28, dtype="i1", chunks=2**26, shards=2**28, dimension_names=["x"])
        assert opened(tmp_path / "a.zarr", chunks={})["a"].chunks == ((2**26,) * 4,)

    def test_codecs_are_reported_as_zarr_python_takes_them(self, tmp_path):
        root = omnizarr.create_group(tmp_path / "a.zarr")
        codec = {"name": "gzip", "configuration": {"level": 3}}
        root.create_array("a", data=np.arange(10), compressors=[codec], dimension_names=["x"])
        opened(tmp_path / "a.zarr").to_zarr(tmp_path / "again.zarr")
        assert omnizarr.open(tmp_path / "again.zarr" / "a").compressors[0].to_dict() == codec


class TestGuessing:
    def test_xarray_finds_the_engine_where_no_other_can_open(self, tmp_path):
        omnizarr.create_array(tmp_path / "old.zarr", data=[1, 2], zarr_format=1)
        assert xr.open_dataset(tmp_path / "old.zarr")["data"].values.tolist() == [1, 2]
        sea().to_zarr(tmp_path / "unusual", consolidated=False)
        assert xr.open_dataset(tmp_path / "unusual").identical(by_zarr(tmp_path / "unusual"))

    def test_the_engine_zarr_stays_the_first(self, stored, tmp_path):
        guess = xr.backends.list_engines()["omnizarr"].guess_can_open
        assert not guess(stored)
        assert not guess(f"{stored}/")
        assert not guess("https://example.org/x.zarr")
        assert not guess(tmp_path / "nothing")
        sea().drop_vars(["text", "s"]).to_netcdf(tmp_path / "x.nc")
        assert not guess(tmp_path / "x.nc")
        assert not guess(3)


class TestErrors:
    def test_nothing_there(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            opened(tmp_path / "nothing.zarr")

    def test_no_such_group(self, stored):
        with pytest.raises(KeyError, match="nowhere"):
            opened(stored, group="nowhere")


# -- keywords of the engine zarr ----------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "r"}, {"mode": "r+"}, {"zarr_version": 3}, {"zarr_version": 3, "zarr_format": 3},
        {"synchronizer": object()}, {"cache_members": False}, {"chunk_store": None}, {"store": None},
        {"overwrite_encoded_chunks": True}, {"chunks": {}}, {"consolidated": False}, {"group": "/"},
        {"storage_options": None}, {"backend_kwargs": {"mode": "r"}},
    ],
    ids=", ".join,
)  # fmt: skip
def test_keywords_of_the_engine_zarr_are_taken(options, tmp_path):
    data = xr.Dataset({"a": ("x", [1.5, 2.5])})
    data.to_zarr(tmp_path / "a.zarr", consolidated=False)
    assert opened(tmp_path / "a.zarr", **options).identical(data)
    if "chunks" in options or "overwrite_encoded_chunks" in options:
        return
    assert xr.open_datatree(tmp_path / "a.zarr", engine="omnizarr", **options).to_dataset().identical(data)
    assert xr.open_groups(tmp_path / "a.zarr", engine="omnizarr", **options)["/"].identical(data)


@pytest.mark.parametrize(
    ("options", "error", "remedy"),
    [
        ({"mode": "w"}, ValueError, "to_zarr"),
        ({"mode": "a"}, ValueError, "to_zarr"),
        ({"chunk_store": {}}, TypeError, "engine='zarr'"),
        ({"store": {}}, TypeError, "first argument"),
        ({"zarr_version": 2, "zarr_format": 3}, ValueError, "leave out zarr_version"),
    ],
    ids=str,
)
@pytest.mark.parametrize("verb", [xr.open_dataset, xr.open_datatree, xr.open_groups])
def test_keywords_that_reading_cannot_follow_name_the_remedy(verb, options, error, remedy, tmp_path):
    omnizarr.create_array(tmp_path / "a.zarr", data=[1, 2])
    with pytest.raises(error, match=remedy):
        verb(tmp_path / "a.zarr", engine="omnizarr", **options)
    assert omnizarr.open(tmp_path / "a.zarr")[:].tolist() == [1, 2]


@pytest.mark.parametrize("zarr_format", [2, 3, "3-draft2019", "3-draft2020"])
@pytest.mark.parametrize("path", ["", "a", "g/a"])
def test_arrays_without_dimensions_say_so_when_created_as_when_converted(tmp_path, path, zarr_format):
    created, plain = tmp_path / "created", tmp_path / "plain"
    omnizarr.create_array(created, name=path, data=5.0, zarr_format=zarr_format, dimension_names=())
    omnizarr.create_array(plain, name=path, data=5.0)
    omnizarr.convert(plain, tmp_path / "converted", zarr_format=zarr_format)
    attributes = [dict(omnizarr.open_array(tmp_path / way, path=path).attrs) for way in ("created", "converted")]
    assert attributes[0] == attributes[1] == ({} if zarr_format == 3 else {"_ARRAY_DIMENSIONS": []})


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("way", ["created", "converted"])
def test_xarray_itself_opens_groups_with_arrays_without_dimensions(tmp_path, way, zarr_format):
    pytest.importorskip("zarr", reason="xarray reads Zarr by zarr-python")
    asked = {"zarr_format": zarr_format, "dimension_names": ()} if way == "created" else {}
    omnizarr.create_array(tmp_path / "created", name="crs", data=5.0, **asked)
    omnizarr.convert(tmp_path / "created", tmp_path / "converted", zarr_format=zarr_format)
    with xr.open_dataset(tmp_path / way, engine="zarr", consolidated=False) as dataset:
        assert dataset["crs"].dims == ()
        assert dataset["crs"].item() == 5
        assert "_ARRAY_DIMENSIONS" not in dataset["crs"].attrs


def test_groups_of_a_remote_tree_are_looked_into_at_the_same_time():
    both = threading.Barrier(2, timeout=20)

    def meet(verb, key):
        if verb == "list_dir" and key in {"a/b/", "c/d/"}:
            both.wait()

    values = {}
    root = omnizarr.create_group(values)
    for name in ("a/b", "c/d"):
        root.create_array(f"{name}/v", data=np.arange(3), dimension_names=["x"])
    store = WatchedStore(FaultyStore(MemoryStore(values), concurrency=8), meet)
    with xr.open_datatree(store, engine="omnizarr") as tree:
        assert list(tree.groups) == ["/", "/a", "/c", "/a/b", "/c/d"]
        assert tree["c/d/v"].values.tolist() == [0, 1, 2]


def test_joined_arrays_stay_lazy_in_xarray_and_decode_like_its_own(tmp_path):
    from omnizarr.interop.xarray import as_variable
    from omnizarr.stores import LocalStore, MetricsStore

    stores, expected = [], []
    for year in range(3):
        values = np.arange(12, dtype="i2").reshape(4, 3) + 100 * year
        array = omnizarr.create_array(tmp_path / str(year), data=values, chunks=(2, 2), dimension_names=("time", "x"))
        array.attrs.update({"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": 3, "units": "K"})
        stores.append(MetricsStore(LocalStore(tmp_path / str(year))))
        expected.append(values)
    lazy = omnizarr.concat([omnizarr.open_array(store, mode="r") for store in stores])
    for store in stores:
        store.reset()
    dataset = xr.decode_cf(xr.Dataset({"temp": as_variable(lazy)}))
    temp = dataset["temp"].transpose("x", "time")[::-1].isel(time=slice(5, 7))
    assert [store.report().total.requests for store in stores] == [0, 0, 0]
    stored = np.concatenate(expected)
    meant = np.where(stored == 3, np.nan, stored * 0.5 + 10)
    np.testing.assert_array_equal(temp.values, meant.T[::-1, 5:7])
    assert [store.report().total.requests > 0 for store in stores] == [False, True, False]
    np.testing.assert_array_equal(dataset["temp"].isel(time=[9, 0, 0], x=[2, 1]).values, meant[[9, 0, 0]][:, [2, 1]])
    points = {"time": xr.DataArray([1, 10], dims="at"), "x": xr.DataArray([0, 2], dims="at")}
    np.testing.assert_array_equal(dataset["temp"].isel(points).values, meant[[1, 10], [0, 2]])
    assert as_variable(omnizarr.create_array({}, data=[[1]])).dims == ("dim_0", "dim_1")
    np.testing.assert_array_equal(dataset.chunk({"time": 5})["temp"].mean("time").values, np.nanmean(meant, 0))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(dataset))["temp"].values, meant)


def test_joined_arrays_become_one_block_by_block(tmp_path):
    sources = [omnizarr.create_array({}, data=np.arange(24).reshape(4, 6) + 100 * n, chunks=(3, 4)) for n in range(3)]
    lazy = omnizarr.concat(sources).lazy[::-1]
    made = omnizarr.create_array(tmp_path / "all.zarr", data=lazy, chunks=(5, 6))
    np.testing.assert_array_equal(made[...], np.concatenate([source[...] for source in sources])[::-1])


def test_nullable_arrays_of_pandas_keep_integers_if_asked():
    stored = {}
    root = omnizarr.create_group(stored)
    values = np.ma.MaskedArray([1, 2**62 + 1, 100], [0, 0, 1])
    for name in ("int64", "uint8", "bool", "float32", "float16"):
        data = values.astype("u1") if name == "float16" else values
        root.create_array(
            name, data=data, dtype=f"optional[{name}]", dimension_names=["x"], attributes={"long_name": "n"}
        )
    for name, attributes in (("scaled", {"scale_factor": 0.5}), ("time", {"units": "days since 2000-01-01"})):
        root.create_array(
            name, data=[1, None, 3], dtype="optional[int16]", dimension_names=["x"], attributes=attributes
        )
    root.create_array("plane", data=values[None], dtype="optional[int64]", dimension_names=["y", "x"])
    floats = xr.open_dataset(stored, engine="omnizarr")
    dataset = xr.open_dataset(stored, engine="omnizarr", nullable=True)
    tree = xr.open_datatree(stored, engine="omnizarr", nullable=True)
    for found in (dataset, tree.to_dataset()):
        assert found["int64"].data.tolist() == [1, 2**62 + 1, found["int64"].dtype.na_value]
        assert [str(found[name].dtype) for name in ("int64", "uint8", "bool", "float32", "float16")] == [
            *("Int64", "UInt8", "boolean", "Float32", "float16")
        ]
        assert found["int64"].attrs == {"long_name": "n"}
        for name in ("scaled", "time", "plane", "float16"):
            xr.testing.assert_equal(found[name], floats[name])
    assert floats["int64"].dtype == "f8"
    assert np.isnan(floats["int64"].values[2])

"""Tiles hold what NumPy's strides give, in every format, and reading one reads no more than it needs."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import ChunkError, NotRepresentableError, SelectionError

pytest.importorskip("starlette", reason="the extra serve is not installed")
from omnizarr.storage import MemoryStore
from omnizarr.web.facts import Dataset
from omnizarr.web.stopping import StoppedError
from omnizarr.web.tiles import Steps, Stored, TileArray
from tests.fakes import FaultyStore

FORMATS = (1, 2, 3, "3-draft2019", "3-draft2020")


def whole(tiles):
    """Return all elements of a tile array, put together by its document alone."""
    document = json.loads(tiles.document())
    shape, side = document["shape"], document["chunk_grid"]["configuration"]["chunk_shape"]
    dtype = np.dtype(document["data_type"]).newbyteorder("<")
    values = np.empty(shape, dtype)
    for coords in np.ndindex(*(-(-size // length) for size, length in zip(shape, side, strict=True))):
        tile = tiles.tile(coords)
        assert tile.thinning == 1
        box = [slice(n * length, (n + 1) * length) for n, length in zip(coords, side, strict=True)]
        target = values[tuple(box)]
        inside = tuple(slice(size) for size in target.shape)
        target[...] = np.frombuffer(tile.data, dtype).reshape(side)[inside]
    return values


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("strides", ["1.1.1", "2.3.5", "1.700.1", "1.4.4-0,2", "1.1.4-2", "2.2.2-1.0"])
def test_every_format(zarr_format, strides):
    values = np.arange(3 * 600 * 70, dtype=">i4").reshape(3, 600, 70)
    array = omnizarr.create_array({}, data=values, chunks=(2, 100, 30), zarr_format=zarr_format)
    steps = Steps.of(strides)
    expected = values[tuple(slice(None, None, stride) for stride in steps.strides)]
    np.testing.assert_array_equal(whole(TileArray(array, steps)), expected)


@pytest.mark.parametrize("strides", ["1.1", "3.2"])
def test_shards(strides):
    values = np.random.default_rng(1).integers(0, 9, (500, 300)).astype("u2")
    array = omnizarr.create_array({}, data=values, chunks=(50, 50), shards=(250, 150))
    steps = Steps.of(strides)
    expected = values[:: steps.strides[0], :: steps.strides[1]]
    np.testing.assert_array_equal(whole(TileArray(array, steps)), expected)


def test_chunks_of_different_shapes():
    values = np.arange(300 * 20).reshape(300, 20)
    array = omnizarr.create_array({}, data=values, chunks=[[100, 150, 50], [20]])
    np.testing.assert_array_equal(whole(TileArray(array, Steps((3, 1)))), values[::3])


@pytest.mark.parametrize("dtype", ["?", "i1", ">u8", "f2", ">f4", "f8", "c8", ">c16"])
def test_types_stay_unchanged(dtype):
    values = np.arange(30).reshape(5, 6).astype(dtype)
    array = omnizarr.create_array({}, data=values, chunks=(2, 3))
    np.testing.assert_array_equal(whole(TileArray(array, Steps((1, 2)))), values[:, ::2])


def test_times_are_their_numbers():
    values = np.array(["2020-01-01", "NaT"], "M8[s]")
    tiles = TileArray(omnizarr.create_array({}, data=values), Steps((1,)))
    np.testing.assert_array_equal(np.frombuffer(tiles.tile((0,)).data, "<M8[s]"), values)
    assert json.loads(tiles.document())["data_type"]["name"] == "numpy.datetime64"


def test_past_the_edge_is_the_fill_value():
    array = omnizarr.create_array({}, shape=(300, 300), chunks=(100, 100), dtype="f4", fill_value=7)
    tile = np.frombuffer(TileArray(array, Steps((1, 1))).tile((0, 0)).data, "<f4")
    np.testing.assert_array_equal(tile, 7)


def test_the_document_is_one_of_zarr_v3():
    array = omnizarr.create_array({}, shape=(9, 6), dtype="f4", fill_value=np.nan, dimension_names=["y", "x"])
    assert json.loads(TileArray(array, Steps((2, 4))).document()) == {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [5, 2],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN",
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
        "dimension_names": ["y", "x"],
    }


class TestCost:
    def test_only_chunks_under_the_tile_are_read(self):
        store = FaultyStore(MemoryStore({}))
        array = omnizarr.create_array(store, shape=(5, 2000, 2000), chunks=(1, 250, 250), dtype="u1", fill_value=0)
        array[...] = 1
        tiles = TileArray(array, Steps.of("1.1.1"))
        store.log.clear()
        tiles.tile((3, 2, 4))
        assert {key for _, key in store.log if "c/" in key} == {"c/3/2/4"}

    def test_steps_wider_than_chunks_leave_chunks_out(self):
        store = FaultyStore(MemoryStore({}))
        array = omnizarr.create_array(store, shape=(1000, 1000), chunks=(10, 10), dtype="u1", fill_value=0)
        array[...] = 1
        tiles = TileArray(array, Steps.of("100.100"))
        store.log.clear()
        tiles.tile((0, 0))
        assert len({key for _, key in store.log if "c/" in key}) == 100

    def test_tiles_keep_step_with_chunks(self):
        array = omnizarr.create_array({}, shape=(10_000, 10_000), chunks=(1000, 100), dtype="u1")
        assert TileArray(array, Steps.of("1.1")).tile_shape == (250, 300)
        assert TileArray(array, Steps.of("4.4")).tile_shape == (250, 250)

    def test_one_drawn_dimension_has_long_tiles(self):
        array = omnizarr.create_array({}, shape=(5, 10**9), chunks=(1, 4096), dtype="u1")
        assert TileArray(array, Steps.of("1.1-1")).tile_shape == (1, 65_536)

    def test_an_overview_is_thinned(self, monkeypatch):
        monkeypatch.setattr("omnizarr.web.tiles._MOST_DECODED", 100 * 100 * 2 * 4)
        store = FaultyStore(MemoryStore({}))
        values = np.add.outer(np.arange(1000), np.arange(1000)).astype("u2")
        array = omnizarr.create_array(store, data=values, chunks=(100, 100))
        tiles = TileArray(array, Steps.of("50.50"))
        store.log.clear()
        tile = tiles.tile((0, 0))
        assert tile.thinning == 16
        assert len({key for _, key in store.log if "c/" in key}) <= 4
        found = np.frombuffer(tile.data, "<u2").reshape(tiles.tile_shape)[:20, :20]
        assert found[0, 0] == values[0, 0]
        assert found[17, 3] == values[800, 0]

    def test_missing_chunks_are_seen_in_an_overview(self, monkeypatch):
        monkeypatch.setattr("omnizarr.web.tiles._MOST_DECODED", 100 * 100 * 2 * 4)
        array = omnizarr.create_array({}, shape=(1000, 1000), chunks=(100, 100), dtype="u2", fill_value=9)
        array[:500] = 1
        array[700:800, 200:400] = 1
        dataset = Dataset(array, "x")
        tiles = TileArray(array, Steps.of("50.50"), lambda: Stored(*dataset.stored("")))
        tile = tiles.tile((0, 0))
        assert tile.thinning == 16
        found = np.frombuffer(tile.data, "<u2").reshape(tiles.tile_shape)[:20, :20]
        expected = array[::50, ::50]
        assert (found[expected == 9] == 9).all()
        assert (found[:10] == 1).all()

    def test_without_steps_nothing_is_thinned(self, monkeypatch):
        monkeypatch.setattr("omnizarr.web.tiles._MOST_DECODED", 1)
        values = np.arange(10_000, dtype="i4").reshape(100, 100)
        array = omnizarr.create_array({}, data=values, chunks=(10, 10))
        np.testing.assert_array_equal(whole(TileArray(array, Steps.of("1.1"))), values)

    @pytest.mark.parametrize("strides", ["1.1", "3.7", "16.16", "1.2"])
    def test_tiles_are_read_in_parts(self, monkeypatch, strides):
        monkeypatch.setattr("omnizarr.web.tiles._MOST_AT_ONCE", 40 * 40 * 3)
        values = np.arange(1_000_000, dtype="i4").reshape(1000, 1000)
        array = omnizarr.create_array({}, data=values, chunks=(40, 40))
        steps = Steps.of(strides)
        asked = []
        TileArray(array, steps).tile((0, 0), lambda: bool(asked.append(None)))
        assert len(asked) > 10
        expected = values[:: steps.strides[0], :: steps.strides[1]]
        np.testing.assert_array_equal(whole(TileArray(array, steps)), expected)

    def test_a_tile_that_nobody_waits_for_is_not_read(self):
        store = FaultyStore(MemoryStore({}))
        array = omnizarr.create_array(store, data=np.ones((100, 100)), chunks=(10, 10))
        tiles = TileArray(array, Steps.of("1.1"))
        store.log.clear()
        with pytest.raises(StoppedError):
            tiles.tile((0, 0), lambda: True)
        assert not store.log

    def test_size_of_the_array_does_not_matter(self):
        array = omnizarr.create_array({}, shape=(10**17, 10**17), chunks=(10**6, 10**6), dtype="f8", fill_value=2)
        tiles = TileArray(array, Steps.of(f"{2**40}.{2**40}"))
        tile = tiles.tile((300, 300))
        np.testing.assert_array_equal(np.frombuffer(tile.data, "<f8"), 2)


class TestBroken:
    @pytest.fixture
    def array(self):
        """Return an array with a broken chunk, at rows 20 to 30 and columns 40 to 50."""
        store = MemoryStore({})
        values = np.arange(10_000, dtype="i4").reshape(100, 100)
        array = omnizarr.create_array(store, data=values, chunks=(10, 10), fill_value=-1)
        store.set("c/2/4", b"broken")
        return array

    def test_a_tile_with_a_broken_chunk_is_refused(self, array):
        with pytest.raises(ChunkError):
            TileArray(array, Steps.of("1.1")).tile((0, 0))

    @pytest.mark.parametrize(
        ("steps", "boxes"),
        [("1.1", [((20, 30), (40, 50))]), ("5.2", [((4, 6), (20, 25))]), ("3.3", [((7, 10), (14, 17))])],
    )
    def test_only_the_part_of_the_broken_chunk_is_marked(self, array, steps, boxes):
        strides = Steps.of(steps).strides
        tiles = TileArray(array, Steps.of(steps))
        tile = tiles.tile((0, 0), marks=True)
        assert [part.box for part in tile.broken] == boxes
        assert "c/2/4" in str(tile.broken[0].error)
        found = np.frombuffer(tile.data, "<i4").reshape(tiles.tile_shape)
        expected = np.arange(10_000).reshape(100, 100)
        expected[20:30, 40:50] = -1
        wanted = expected[:: strides[0], :: strides[1]]
        np.testing.assert_array_equal(found[: wanted.shape[0], : wanted.shape[1]], wanted)

    def test_only_dimensions_that_are_drawn_are_told(self, array):
        tile = TileArray(array, Steps.of("1.1-1")).tile((25, 0), marks=True)
        assert [part.box for part in tile.broken] == [((40, 50),)]

    def test_very_many_broken_chunks_are_told_together(self, monkeypatch):
        monkeypatch.setattr("omnizarr.web.tiles._MOST_BROKEN", 3)
        store = MemoryStore({})
        array = omnizarr.create_array(store, data=np.ones((40, 40)), chunks=(10, 10))
        for key in [key for key in store.list() if key.startswith("c/")]:
            store.set(key, b"broken")
        broken = TileArray(array, Steps.of("1.1")).tile((0, 0), marks=True).broken
        assert 3 <= len(broken) < 16
        covered = np.zeros((40, 40), int)
        for part in broken:
            covered[tuple(slice(*ends) for ends in part.box)] += 1
        assert (covered == 1).all()


class TestRefused:
    @pytest.fixture
    def array(self):
        return omnizarr.create_array({}, shape=(4, 6), dtype="i2")

    @pytest.mark.parametrize("text", ["", "a", "1,1", "1.1-", "1.-1", "1.1-x", "1." * 40, "1.1\n", "٣.1"])
    def test_steps_that_are_none(self, text):
        with pytest.raises(SelectionError):
            Steps.of(text)

    @pytest.mark.parametrize("text", ["1", "1.1.1", "0.1", "1.1-2", "1.1-0,0", "1.1-0,1,0"])
    def test_steps_that_do_not_fit(self, array, text):
        with pytest.raises(SelectionError):
            TileArray(array, Steps.of(text))

    @pytest.mark.parametrize("dtype", ["S3", "i4,f8", "U2"])
    def test_what_is_no_number(self, dtype):
        with pytest.raises(NotRepresentableError, match="numbers"):
            TileArray(omnizarr.create_array({}, shape=(4,), dtype=dtype), Steps((1,)))

    def test_scalars(self):
        with pytest.raises(SelectionError):
            TileArray(omnizarr.create_array({}, data=3.5), Steps((1,)))

    @pytest.mark.parametrize("key", ["c/0", "c/0/0/0", "c/1/0", "c/00/0", "c/-1/0", "d/0/0", "c/0/", "c/0/٣", "0/0"])
    def test_keys_of_no_tile(self, array, key):
        assert TileArray(array, Steps((1, 1))).coords_of(key) is None

    def test_an_empty_array_has_no_tiles(self):
        tiles = TileArray(omnizarr.create_array({}, shape=(0, 4), dtype="i2"), Steps((1, 1)))
        assert json.loads(tiles.document())["shape"] == [0, 4]
        assert tiles.coords_of("c/0/0") is None

    def test_missing_optional_elements_are_nan(self):
        data = np.ma.masked_less(np.arange(12, dtype="u2").reshape(3, 4), 5)
        tiles = TileArray(omnizarr.create_array({}, data=data, dtype="optional[uint16]"), Steps((2, 1)))
        document = json.loads(tiles.document())
        assert (document["data_type"], document["fill_value"]) == ("float64", "NaN")
        found = np.frombuffer(tiles.tile((0, 0)).data, "<f8").reshape(2, 4)
        assert np.array_equal(found, data[::2].astype("f8").filled(np.nan), equal_nan=True)

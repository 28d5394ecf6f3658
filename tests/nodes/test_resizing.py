"""`omnizarr.nodes.resizing`: data beyond an edge is never seen, whatever left it there, and whatever failed."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore as ObstoreMemory

import omnizarr
from omnizarr import errors
from omnizarr.nodes import hierarchy, resizing
from omnizarr.stores import LocalStore, MemoryStore, ObjectStore, SQLiteStore, ZipStore, verbs
from tests.engine.both import ENGINES, needs_native
from tests.fakes import FaultyStore
from tests.mortal import attempts

LAYOUTS = {
    "v0": {"zarr_format": 0},
    "v1": {"zarr_format": 1},
    "v2": {"zarr_format": 2},
    "v2, nested": {"zarr_format": 2, "fill_value": 0, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "draft of 2019": {"zarr_format": "3-draft2019"},
    "draft of 2020": {"zarr_format": "3-draft2020"},
    "v3": {"zarr_format": 3},
    "v3, uncompressed": {"zarr_format": 3, "compressors": None},
    "v3, with empty chunks": {"zarr_format": 3, "write_empty_chunks": True},
    "shards": {"zarr_format": 3, "shards": (8, 4)},
}
FILL = -1


@pytest.fixture(params=[pytest.param(name, marks=needs_native) if name == "native" else name for name in ENGINES])
def engine(request):
    with omnizarr.config.set({"engine": request.param}):
        yield request.param


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return {"fill_value": FILL, **LAYOUTS[request.param]}


@pytest.fixture(params=["memory", "local", "sqlite", "zip", "condition"])
def store(request, tmp_path):
    kinds = {
        "memory": MemoryStore,
        "local": lambda: LocalStore(tmp_path / "a.zarr"),
        "sqlite": lambda: SQLiteStore(tmp_path / "a.sqlite"),
        "zip": lambda: ZipStore(tmp_path / "a.zip", mode="w"),
        "condition": lambda: ObjectStore(ObstoreMemory()),
    }
    with kinds[request.param]() as store:
        yield store


def make(store, shape, chunks, layout, value=1):
    array = omnizarr.create_array(store, shape=shape, chunks=chunks, dtype="i4", **layout)
    array[...] = value
    return array


def litter(array, shape, value=9):
    """Store values beyond the edge of an array, as a writer that was killed leaves them."""
    larger = omnizarr.Array(array.store_path, resizing.with_shape(array.metadata, shape), array.config)
    region = tuple(slice(length) for length in array.shape)
    inside = array[...]
    larger[...] = value
    larger[region] = inside


def grown(values, shape, fill=FILL):
    """Return values in a larger shape, filled up."""
    expected = np.full(shape, fill, values.dtype)
    expected[tuple(slice(length) for length in values.shape)] = values
    return expected


def reopened(array):
    return omnizarr.open_array(array.store, mode="r+", zarr_format=array.metadata.dialect.removeprefix("v"))


class TestWhatOthersLeft:
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("shape", [(10, 6), (7, 6), (12, 4), (20, 20), (8, 4), (7, 5)], ids=str)
    def test_growing_shows_the_fill_value(self, engine, layout, shape):
        array = make({}, (7, 4), (4, 2), layout)
        fill = array.fill_value
        litter(array, (24, 24))
        before = array[...]
        array.resize(shape)
        np.testing.assert_array_equal(array[...], grown(before, shape, fill))
        np.testing.assert_array_equal(reopened(array)[...], grown(before, shape, fill))

    def test_growing_shows_the_fill_value_in_every_store(self, store, engine):
        array = make(store, (7, 4), (4, 2), {"fill_value": FILL})
        before = array[...]
        litter(array, (16, 8))
        array.resize(13, 7)
        np.testing.assert_array_equal(array[...], grown(before, (13, 7)))

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.parametrize("length", [1, 3, 4, 9])
    def test_appending_shows_the_block_alone_and_growing_then_the_fill_value(self, engine, layout, axis, length):
        array = make({}, (7, 3), (4, 2), layout)
        fill, before = array.fill_value, array[...]
        litter(array, (24, 24))
        block = np.full((length, 3) if axis == 0 else (7, length), 5)
        array.append(block, axis)
        expected = np.concatenate([before, block], axis)
        np.testing.assert_array_equal(array[...], expected)
        array.resize(20, 20)
        np.testing.assert_array_equal(array[...], grown(expected, (20, 20), fill))

    def test_appending_shows_the_block_alone_in_every_store(self, store, engine):
        array = make(store, (6,), (4,), {"fill_value": FILL})
        litter(array, (24,))
        array.append([2])
        array.append([3, 3, 3])
        array.resize(18)
        assert array[...].tolist() == [1] * 6 + [2] + [3] * 3 + [FILL] * 8

    def test_a_chunk_beyond_the_edge_that_cannot_be_decoded_does_not_matter(self, store, engine):
        array = make(store, (6,), (4,), {"fill_value": FILL})
        for number in (2, 3):
            store.set(f"c/{number}", b"no chunk")
        array.append([2, 2, 2])
        array.resize(16)
        assert array[...].tolist() == [1] * 6 + [2] * 3 + [FILL] * 7

    def test_chunks_that_are_there_are_replaced_by_other_files_and_not_written_into(self, tmp_path, engine):
        path = tmp_path / "a.zarr"
        array = make(str(path), (6,), (4,), {"fill_value": FILL})
        (path / "c/2").write_bytes(b"no chunk")
        old = {}
        for number in (1, 2):  # the one that the edge cuts, and one beyond it
            (tmp_path / f"{number}").hardlink_to(path / f"c/{number}")
            old[number] = (tmp_path / f"{number}").read_bytes()
        array.append(np.full(12, 2, "i4"))
        assert array[...].tolist() == [1] * 6 + [2] * 12
        assert {number: (tmp_path / f"{number}").read_bytes() for number in old} == old
        assert sorted(each.name for each in (path / "c").iterdir()) == ["0", "1", "2", "3", "4"]

    def test_rows_of_chunks_of_other_sizes(self, engine):
        array = make({}, (10,), [[1, 2, 7]], {"fill_value": FILL})
        litter(array, (16,))
        array.resize(13)
        assert array[...].tolist() == [1] * 10 + [FILL] * 3

    def test_an_array_without_fill_value(self, engine):
        array = omnizarr.create_array({}, shape=6, chunks=4, dtype="i4", fill_value=None, zarr_format=2)
        array[...] = 1
        litter(array, (24,))
        array.resize(14)
        assert array[...].tolist() == [1] * 6 + [0] * 8

    @pytest.mark.parametrize(
        ("dtype", "value"),
        [("string", "x"), ("float64", 1.0), ([("x", "i4"), ("y", "f8")], (1, 2.0)), ("S3", b"x"), ("datetime64[s]", 1)],
        ids=str,
    )
    def test_elements_of_any_type(self, engine, dtype, value):
        fill = {"fill_value": np.nan} if dtype == "float64" else {}
        array = omnizarr.create_array({}, shape=14, chunks=4, dtype=dtype, **fill)
        expected = array[6:]
        array.resize(6)
        array[...] = np.array(value, array.dtype)
        litter(array, (24,), value=np.array(value, array.dtype))
        array.resize(14)
        np.testing.assert_array_equal(array[6:], expected)

    def test_a_broken_chunk_at_the_edge_refuses_to_grow(self, engine):
        array = make({}, (6,), (4,), {"fill_value": FILL})
        array.store.set("c/1", b"no chunk")
        with pytest.raises(errors.ChunkError, match="key 'c/1'"):
            array.resize(8)
        assert reopened(array).shape == (6,)

    def test_one_dimension_grows_as_another_shrinks(self, engine, layout):
        array = make({}, (7, 9), (4, 2), layout)
        fill, before = array.fill_value, array[:, :3]
        litter(array, (24, 24))
        array.resize(11, 3)
        np.testing.assert_array_equal(array[...], grown(before, (11, 3), fill))
        array.resize(11, 20)
        np.testing.assert_array_equal(array[...], grown(before, (11, 20), fill))


@st.composite
def histories(draw):
    ndim = draw(st.integers(1, 3))
    lengths = st.tuples(*[st.integers(0, 9)] * ndim)
    chunks = draw(st.tuples(*[st.integers(1, 4)] * ndim))
    step = st.one_of(
        st.tuples(st.just("resize"), lengths),
        st.tuples(st.just("append"), st.tuples(st.integers(0, ndim - 1), st.integers(0, 5))),
        st.tuples(st.just("litter"), lengths),
    )
    return draw(lengths), chunks, draw(st.booleans()), draw(st.sampled_from([2, 3])), draw(st.lists(step, max_size=6))


@pytest.mark.parametrize("kind", [MemoryStore, lambda: ObjectStore(ObstoreMemory())], ids=["lock", "condition"])
@given(history=histories())
@settings(max_examples=40)
def test_whatever_is_left_beyond_the_edge_arrays_equal_numpys(kind, history):
    shape, chunks, sharded, zarr_format, steps = history
    options = {"shards": tuple(2 * n for n in chunks)} if sharded and zarr_format == 3 else {}
    array = omnizarr.create_array(
        kind(), shape=shape, chunks=chunks, dtype="i2", fill_value=-7, zarr_format=zarr_format, **options
    )
    expected = np.full(shape, -7, "i2")
    for number, (verb, argument) in enumerate(steps):
        if verb == "litter":
            litter(array, tuple(map(max, argument, array.shape)), 1000)
        elif verb == "resize":
            array.resize(argument)
            common = tuple(slice(min(pair)) for pair in zip(expected.shape, argument, strict=True))
            expected = grown(expected[common], argument, -7)
        else:
            axis, length = argument
            block = np.full([length if at == axis else n for at, n in enumerate(expected.shape)], number, "i2")
            array.append(block, axis)
            expected = np.concatenate([expected, block], axis)
        np.testing.assert_array_equal(array[...], expected)


class TestWhatGrowingCosts:
    @pytest.mark.parametrize(("shape", "requests"), [((250,), 5), ((300,), 4)], ids=["into a chunk", "a new chunk"])
    def test_appending_to_an_object_store_takes_a_request_more_than_four_or_three(self, monkeypatch, shape, requests):
        """The document and the chunk are read and written, or a new chunk is only written; and one looks before."""
        array = make(ObjectStore(ObstoreMemory()), shape, (100,), {"fill_value": FILL})
        asked = []
        ask = ObjectStore._ask

        def watched(store, key, function, *args, **kwargs):
            if function.__name__ in {"get", "put", "head", "delete"}:
                asked.append((function.__name__, key))
            return ask(store, key, function, *args, **kwargs)

        monkeypatch.setattr(ObjectStore, "_ask", watched)
        array.append(np.ones(10 if requests == 5 else 100))
        assert len(asked) == requests, asked

    def test_a_bit_of_a_huge_array_is_neither_listed_nor_read(self):
        store = FaultyStore(MemoryStore())
        array = omnizarr.create_array(store, shape=(2**40, 10), chunks=(4, 10), dtype="u1")
        array[8:12] = 1
        store.reset()
        array.resize(2**40 + 8, 10)
        assert [store.requests[verb] for verb in ("exists", "list_prefix", "list", "delete")] == [2, 0, 0, 0]
        assert {key for verb, key in store.log if verb.startswith("get")} == {"zarr.json"}

    def test_a_row_of_many_chunks_is_listed_by_itself(self):
        store = FaultyStore(MemoryStore())
        array = omnizarr.create_array(store, shape=(2**20, 200, 200), chunks=(1, 1, 1), dtype="u1")
        array[5, 5, 5] = 1
        store.set(f"c/{2**20}/7/7", b"left behind")
        store.reset()
        array.resize(2**20 + 1, 200, 200)
        assert [key for verb, key in store.log if verb == "list_prefix"] == [f"c/{2**20}/"]
        assert sorted(store.list()) == ["c/5/5/5", "zarr.json"]

    @pytest.mark.parametrize("is_dense", [True, False])
    def test_many_chunks_are_listed_to_be_deleted_only_if_most_are_missing(self, is_dense):
        store = FaultyStore(MemoryStore())
        array = omnizarr.create_array(store, shape=(60, 20_000), chunks=(60, 1), dtype="u1", compressors=None)
        array[...] = 1
        if not is_dense:
            verbs.delete_many(store, [f"c/0/{number}" for number in range(5000, 19_990)])
        store.set("c/0/20000", b"not of the array")
        store.reset()
        array.resize(60, 4000)
        listings = [key for verb, key in store.log if verb == "list_prefix"]
        assert (listings, store.requests["exists"] < 100) == ([] if is_dense else [""], True)
        kept = sorted(f"c/0/{number}" for number in [*range(4000), 20_000])
        assert sorted(store.list()) == [*kept, "zarr.json"]

    def test_the_chunks_that_the_old_edge_cuts_are_read_and_no_others(self):
        store = FaultyStore(MemoryStore())
        array = omnizarr.create_array(store, shape=(6, 8), chunks=(4, 4), dtype="u1")
        array[...] = 1
        array[4:, 4:] = 0
        store.reset()
        array.resize(8, 8)
        assert {key for verb, key in store.log if verb.startswith(("get", "read"))} == {"zarr.json", "c/1/0", "c/1/1"}
        assert store.requests["set"] == 1

    def test_appending_asks_for_no_chunk_but_those_that_it_writes(self):
        store = FaultyStore(MemoryStore())
        array = omnizarr.create_array(store, shape=(4,), chunks=(4,), dtype="i4")
        array[...] = 1
        store.reset()
        for number in range(8):
            array.append([number])
        # One look at each new chunk, when its first element is written.
        assert store.requests["exists"] == 2
        assert not store.requests["list_prefix"]


CHANGES = {
    "append a part of a chunk": ((6, 5), lambda array: array.append(np.full((1, 5), 2, "i4"))),
    "append chunks": ((8, 5), lambda array: array.append(np.full((8, 5), 2, "i4"))),
    "append along the last axis": ((6, 5), lambda array: array.append(np.full((6, 7), 2, "i4"), 1)),
    "shrink": ((10, 9), lambda array: array.resize(3, 4)),
    "grow": ((6, 5), lambda array: array.resize(20, 20)),
    "shrink and grow": ((10, 9), lambda array: array.resize(20, 3)),
}


def opened(change):
    return lambda store: change(omnizarr.open_array(store, mode="r+"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fails", [False, True], ids=["killed", "failed"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_stops_at_any_step_leaves_the_old_state_or_the_new(engine, layout, change, fails):
    littered = not fails
    values = np.arange(math.prod(CHANGES[change][0]), dtype="i4").reshape(CHANGES[change][0]) + 100
    fill = layout["fill_value"]

    def build():
        store = MemoryStore()
        array = make(store, values.shape, (4, 4), {**layout, **({"shards": (8, 8)} if "shards" in layout else {})})
        array[...] = values
        if littered:
            litter(array, (24, 24), 999)
        return store

    with_fill = omnizarr.create_array({}, shape=values.shape, chunks=(4, 4), dtype="i4", fill_value=fill)
    with_fill[...] = values
    CHANGES[change][1](with_fill)
    states = [values, with_fill[...]]
    for store in attempts(build, opened(CHANGES[change][1]), fails=fails):
        found = omnizarr.open_array(store, mode="r+")
        state = found[...]
        assert any(np.array_equal(state, each) for each in states)
        if fails and state.shape == values.shape:
            assert stored_beyond(found) == []
        found.resize(24, 24)
        np.testing.assert_array_equal(found[...], grown(state, (24, 24), fill))


def stored_beyond(array):
    """Return what check says of chunks beyond the shape."""
    report = omnizarr.check(array.store)
    return [finding.key for finding in report.findings if finding.code == "chunk-beyond-grid"]


@pytest.mark.parametrize("fails", [False, True], ids=["killed", "failed"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.sampled(4)
def test_where_writers_are_kept_apart_by_conditions_a_block_is_claimed_first(engine, change, fails):
    """A writer killed after that leaves the fill value in place of what was not written yet, and nothing else."""
    shape, run = CHANGES[change]
    values = np.arange(math.prod(shape), dtype="i4").reshape(shape) + 100

    def build(kind=lambda: ObjectStore(ObstoreMemory())):
        array = make(kind(), shape, (4, 4), {"fill_value": FILL}, values)
        litter(array, (24, 24), 999)
        return array.store

    wanted = omnizarr.open_array(build(MemoryStore), mode="r+")
    run(wanted)
    states = [values, wanted[...]]
    if change.startswith("append"):
        states.append(grown(values, wanted.shape))
    for store in attempts(build, opened(run), fails=fails):
        array = omnizarr.open_array(store, mode="r+")
        state = array[...]
        possible = [each for each in states if each.shape == state.shape]
        assert possible
        assert np.logical_or.reduce([state == each for each in possible]).all()
        if fails and change.startswith("append"):
            assert any(np.array_equal(state, each) for each in states[:2])
        array.resize(24, 24)
        np.testing.assert_array_equal(array[...], grown(state, (24, 24)))


@pytest.mark.parametrize("moment", ["before the chunk is read", "before the chunk is replaced"])
def test_what_is_beyond_the_edge_is_kept_if_somebody_has_claimed_it_meanwhile(moment):
    """Where there are only conditions: between the look at a chunk and its removal, another program appends to it."""
    bucket = ObstoreMemory()
    array = make(ObjectStore(bucket), (6,), (4,), {"fill_value": FILL})
    litter(array, (16,))
    copy = MemoryStore({key: bytes(array.store.get(key)) for key in array.store.list()})
    omnizarr.open_array(copy, mode="r+").append([3, 3, 3])

    class Overtaken(ObjectStore):
        waits = True

        def overtake(self):
            if self.waits:
                self.waits = False
                for key in ("zarr.json", "c/1", "c/2"):
                    bucket.put(key, bytes(copy.get(key)))

        def update(self, key, change):
            if moment == "before the chunk is read":
                self.overtake()

            def changed(old):
                new = change(old)
                self.overtake()
                return new

            super().update(key, changed)

    mine = omnizarr.open_array(Overtaken(bucket), mode="r+")
    assert mine.append([4, 4]).region == (slice(9, 11),)
    mine.resize(16)
    assert mine[...].tolist() == [1] * 6 + [3] * 3 + [4] * 2 + [FILL] * 5


def test_a_shrink_that_cannot_delete_says_that_the_shape_is_new():
    store = FaultyStore(MemoryStore())
    array = make(store, (8,), (4,), {"fill_value": FILL})
    store.fail("delete", 1)
    with pytest.raises(errors.StoreError, match=r"the array has its new shape \(3,\).*omnizarr repair") as caught:
        array.resize(3)
    assert caught.value.key == "c/1"
    assert array.shape == reopened(array).shape == (3,)
    assert stored_beyond(array) == ["c/1"]
    array.resize(8)
    assert array[...].tolist() == [1, 1, 1] + [FILL] * 5


def test_an_append_whose_document_was_stored_in_spite_of_an_error_stays():
    class Late(FaultyStore):
        def set(self, key, value):
            super().set(key, value)
            if key == "zarr.json" and self.requests["set"] > 1:
                raise errors.StoreError("the answer is lost", store=repr(self), key=key)

    store = Late(MemoryStore())
    array = omnizarr.create_array(store, shape=(0,), chunks=(4,), dtype="i4", fill_value=FILL)
    with pytest.raises(errors.StoreError, match="the answer is lost"):
        array.append([2, 2, 2])
    assert reopened(array)[...].tolist() == [2, 2, 2]


V3_BY_OTHERS = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [3, 4],
    "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 4]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}
V2_BY_OTHERS = {
    "zarr_format": 2,
    "shape": [3, 4],
    "chunks": [2, 4],
    "dtype": "<i2",
    "compressor": None,
    "filters": None,
    "fill_value": 0,
    "order": "C",
}


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize(
    "document",
    [
        V3_BY_OTHERS,
        {**V3_BY_OTHERS, "attributes": {"shape": [3, 4], "scale": 1e2}},
        {"attributes": {"zarr.json": '"shape": [1, 2]'}, **V3_BY_OTHERS},
        {**V3_BY_OTHERS, "shape": [0, 4]},
        {**V3_BY_OTHERS, "shape": [3, 0]},
        V2_BY_OTHERS,
        {**V2_BY_OTHERS, "shape": [0, 4], "chunks": [0, 4]},
    ],
)
def test_document_after_many_changes_of_the_shape_is_what_writing_it_again_gives(monkeypatch, document, indent):
    name = "zarr.json" if document["zarr_format"] == 3 else ".zarray"
    text = json.dumps(document, indent=indent).encode()

    def documents():
        store = omnizarr.storage.MemoryStore({name: text})
        array = omnizarr.open_array(store)
        columns = array.shape[1]
        for change in (
            lambda: array.append(np.ones((1, columns))),
            lambda: array.append(np.ones((9, columns))),
            lambda: array.resize((7, 5)),
            lambda: array.resize((0, 5)),
            lambda: array.append(np.ones((2, 5))),
            lambda: array.attrs.update(shape=[7, 5]),
            lambda: array.append(np.ones((2, 5))),
            lambda: array.append(np.ones((4, 1)), axis=1),
        ):
            change()
            assert json.loads(store.get(name))["shape"] == list(array.shape)
            yield bytes(store.get(name))

    changed = list(documents())
    monkeypatch.setattr(hierarchy, "_resized", lambda *_: None)
    assert changed == list(documents())


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("fill", [0, np.nan, -0.0, 1e300])
def test_document_of_a_new_array_that_grows_is_what_writing_it_again_gives(monkeypatch, zarr_format, fill):
    def documents():
        array = omnizarr.create_array(
            {}, shape=(0, 4), chunks=(2, 4), dtype="f8", fill_value=fill, zarr_format=zarr_format,
            attributes={"lengths": [0, 4], "é": ["\ud800", 1.0, None, float("inf")]},
        )  # fmt: skip
        for change in (lambda: array.append(np.ones((3, 4))), lambda: array.resize(0, 4), lambda: array.resize(5, 4)):
            change()
            found = {key: bytes(array.store.get(key)) for key in array.store.list() if not key[0].isdigit()}
            yield {key: value for key, value in found.items() if not key.startswith("c/")}

    with monkeypatch.context() as patch:
        patch.setattr(hierarchy.stored, "rewrite", None)
        changed = list(documents())
    name = "zarr.json" if zarr_format == 3 else ".zarray"
    assert [json.loads(each[name])["shape"] for each in changed] == [[3, 4], [0, 4], [5, 4]]
    monkeypatch.setattr(hierarchy, "_resized", lambda *_: None)
    assert changed == list(documents())


def test_appending_again_does_not_write_the_document_again(monkeypatch):
    array = omnizarr.create_array({}, shape=(1, 2), chunks=(4, 2), dtype="i2")
    array.append(np.ones((1, 2)))
    monkeypatch.setattr(hierarchy.stored, "rewrite", None)
    for _ in range(3):
        array.append(np.ones((1, 2)))
    assert array.shape == (5, 2)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ["locks", "condition"])
@pytest.mark.parametrize("nth", range(1, 8))
def test_append_that_fails_changes_neither_the_array_nor_consolidated_metadata(kind, zarr_format, nth):
    inner = MemoryStore() if kind == "locks" else ObjectStore(ObstoreMemory())
    root = omnizarr.create_group(inner, zarr_format=zarr_format)
    root.create_array("a", data=np.ones(3, "i2"), chunks=2, fill_value=FILL)
    omnizarr.consolidate_metadata(inner)
    store = FaultyStore(inner)
    array = omnizarr.open_array(store, path="a", mode="r+")
    for verb in ("set", "update"):
        store.fail(verb, nth)
    expected = [1, 1, 1, 2, 2]
    try:
        array.append(np.full(2, 2, "i2"))
    except errors.StoreError:
        expected = [1, 1, 1]
    store.reset()
    for use_consolidated in (True, False):
        found = omnizarr.open_group(inner, use_consolidated=use_consolidated)["a"]
        assert found[...].tolist() == expected
    omnizarr.open_array(inner, path="a", mode="r+").resize(6)
    assert omnizarr.open_array(inner, path="a")[...].tolist() == expected + [FILL] * (6 - len(expected))

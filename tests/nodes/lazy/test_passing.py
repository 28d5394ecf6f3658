"""Chunks of lazy arrays: stored chunks of the sources are passed on, others encoded, and missing ones stay missing."""

import json
import pickle
import shutil
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
import zarr
from hypothesis import given, settings

import omnizarr
from omnizarr.errors import ChunkMemoryError, MetadataError, OmnizarrError
from omnizarr.storage import LazyStore, MemoryStore
from omnizarr.stores import WrapperStore, verbs
from tests.nodes.lazy.test_against_numpy import a_change, a_join, a_selection, a_source


def parts(count=3, length=6, **options):
    """Arrays of `length` rows and four columns, each with other values."""
    first = np.arange(length * 4, dtype="i4").reshape(length, 4)
    return [omnizarr.create_array({}, data=first + 100 * n, **{"chunks": (3, 2), **options}) for n in range(count)]


def shown(lazy, **options):
    return LazyStore({"x": lazy}, **options)


def copied(store):
    """All that a store lists, as a hierarchy of its own."""
    return MemoryStore({key: bytes(store.get(key)) for key in store.list()})


def number_passed_on(store, sources):
    """The number of chunks whose bytes are those of a stored chunk of a source."""
    stored = {bytes(source.store.get(key)) for source in sources for key in source.store.list()}
    keys = [key for key in store.list() if not key.endswith(".json")]
    return sum(bytes(store.get(key)) in stored for key in keys), len(keys)


V2 = {"zarr_format": 2}
CASES = {
    # how the sources are made, how they are joined, chunks that are passed on of how many, codecs
    "v3": ({}, omnizarr.concat, (12, 12), ["bytes", "zstd"]),
    "not compressed": ({"compressors": None}, omnizarr.concat, (12, 12), ["bytes"]),
    "big endian": (
        {"serializer": {"name": "bytes", "configuration": {"endian": "big"}}},
        omnizarr.concat,
        (12, 12),
        ["bytes", "zstd"],
    ),
    "v2": (V2, omnizarr.concat, (12, 12), ["bytes", "zstd"]),
    "v2, blosc, order F": (
        {**V2, "compressors": {"id": "blosc"}, "order": "F"},
        omnizarr.concat,
        (12, 12),
        ["transpose", "bytes", "blosc"],
    ),
    "v2, filter": (
        {**V2, "filters": [{"id": "delta", "dtype": "<i4"}]},
        omnizarr.concat,
        (12, 12),
        ["numcodecs.delta", "bytes", "zstd"],
    ),
    "v1": ({"zarr_format": 1}, omnizarr.concat, (12, 12), ["bytes", "blosc"]),
    "shards": ({"shards": (6, 4)}, omnizarr.concat, (3, 3), ["sharding_indexed"]),
    "shards across sources": ({"shards": (12, 4), "chunks": (4, 2)}, omnizarr.concat, (0, 3), ["sharding_indexed"]),
    "stacked": ({}, omnizarr.stack, (12, 12), ["bytes", "zstd"]),
    "stacked behind": ({}, lambda sources: omnizarr.stack(sources, axis=2), (12, 12), ["bytes", "zstd"]),
    "stacked, order F": ({**V2, "order": "F"}, omnizarr.stack, (0, 12), ["bytes", "zstd"]),
    "mosaic": ({}, lambda s: omnizarr.block([[s[0], s[1]], [None, s[2]]]), (12, 12), ["bytes", "zstd"]),
    "partial chunks": ({"length": 7}, omnizarr.concat, (4, 14), ["bytes", "zstd"]),
    "from a chunk on": ({}, lambda sources: omnizarr.concat(sources).lazy[3:12], (6, 6), ["bytes", "zstd"]),
    "from within a chunk": ({}, lambda sources: omnizarr.concat(sources).lazy[1:], (0, 12), ["bytes", "zstd"]),
    "every second": ({}, lambda sources: omnizarr.concat(sources).lazy[::2], (0, 18), ["bytes", "zstd"]),
    "one row in its chunk": (
        {"chunks": (1, 4)},
        lambda sources: omnizarr.concat(sources).lazy[8],
        (1, 1),
        ["bytes", "zstd"],
    ),
    "one row of a chunk": ({}, lambda sources: omnizarr.concat(sources).lazy[8], (0, 2), ["bytes", "zstd"]),
    "transposed": ({}, lambda sources: omnizarr.concat(sources).transpose(), (0, 12), ["bytes", "zstd"]),
    "converted": ({}, lambda sources: omnizarr.concat(sources).astype("f8"), (0, 12), ["bytes", "zstd"]),
    "broadcast": ({}, lambda sources: sources[0].lazy.broadcast_to((2, 6, 4)), (0, 4), ["bytes", "zstd"]),
}


@pytest.mark.parametrize("name", CASES)
def test_stored_chunks_are_passed_on_unchanged(name):
    options, join, expected, codecs = CASES[name]
    sources = parts(**options)
    lazy = join(sources)
    store = shown(lazy)
    array = omnizarr.open(store)["x"]
    assert [codec.name for codec in array.metadata.codecs] == codecs
    assert number_passed_on(store, sources) == expected
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], lazy[...])
    np.testing.assert_array_equal(array[...], lazy[...])


@pytest.mark.parametrize("name", [name for name in CASES if "filter" not in name])
def test_zarr_python_reads_the_same(name):
    options, join, *_ = CASES[name]
    lazy = join(parts(**options))
    values = {
        key: zarr.core.buffer.cpu.Buffer.from_bytes(value) for key, value in copied(shown(lazy)).store_dict.items()
    }
    np.testing.assert_array_equal(zarr.open_group(values, mode="r")["x"][...], lazy[...])


def test_a_rectilinear_grid_passes_on_all_but_the_last_chunks_of_sources():
    sources = parts(length=7)
    lazy = omnizarr.concat(sources)
    store = shown(lazy, grid="rectilinear")
    array = omnizarr.open(store)["x"]
    assert array.chunks == ((3, 3, 1, 3, 3, 1, 3, 3, 1), (2, 2))
    assert number_passed_on(store, sources) == (14, 18)
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], lazy[...])


def test_a_rectilinear_grid_has_the_chunks_of_each_source():
    sources = [parts(count=1, length=length, chunks=(length, 2))[0] for length in (6, 5, 6)]
    lazy = omnizarr.concat(sources)
    store = shown(lazy, grid="rectilinear")
    assert omnizarr.open(store)["x"].chunks == ((6, 5, 6), (2, 2))
    assert number_passed_on(store, sources) == (6, 6)
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], lazy[...])


def test_a_chunk_that_no_memory_holds_is_an_error_that_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    omnizarr.create_array("a", data=np.arange(4.0), chunks=2)
    omnizarr.save_view("v.zview", omnizarr.concat(["a"]))
    document = json.loads((tmp_path / "v.zview").read_text())
    document["documents"]["zarr.json"]["chunk_grid"]["configuration"]["chunk_shape"] = [10**17]
    (tmp_path / "v.zview").write_text(json.dumps(document))
    array = omnizarr.open("v.zview")
    assert array[...].tolist() == [0, 1, 2, 3]
    with pytest.raises(ChunkMemoryError, match="too large for the available memory"):
        array.store.get("c/0")


@pytest.mark.parametrize(
    ("lazy", "chunks"),
    [
        (lambda: omnizarr.concat(parts()).lazy[1:], ((2, 3, 3, 3, 3, 3), (2, 2))),
        (lambda: omnizarr.concat(parts(shards=(6, 4), length=9)), (3, 2)),
        (lambda: omnizarr.concat(parts()).lazy[:, ::-1], (3, 2)),
        (lambda: omnizarr.stack(parts()), (1, 3, 2)),
        (lambda: omnizarr.concat([np.zeros((3, 2)), np.zeros((4, 2))]), (3, 2)),
    ],
    ids=["begins within a chunk", "shards that do not fit", "backwards", "one chunk each", "not chunked"],
)
def test_a_rectilinear_grid_is_regular_where_it_can_be_or_must_be(lazy, chunks):
    view = lazy()
    store = shown(view, grid="rectilinear")
    assert omnizarr.open(store)["x"].chunks == chunks
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], view[...])


def test_an_unknown_grid_is_refused():
    with pytest.raises(ValueError, match="grid='odd': expected one of 'regular', 'rectilinear'"):
        shown(omnizarr.concat(parts()), grid="odd")


@pytest.mark.parametrize("grid", ["regular", "rectilinear"])
@pytest.mark.parametrize("stored", [[], [0], [0, 3]])
@pytest.mark.parametrize("picked", [[0], [3], [0, 3], [1, 2, 3]])
def test_chunks_are_listed_if_they_can_be_read_where_elements_are_picked(picked, stored, grid):
    array = omnizarr.create_array({}, shape=4, chunks=1, dtype="i4", fill_value=0)
    for chunk in stored:
        array[chunk] = chunk + 1
    ways = [array.lazy[picked], array.lazy.oindex[np.array(picked)], array.lazy.vindex[picked]]
    for view in (*ways, array.lazy[np.isin(np.arange(4), picked)]):
        store = shown(view, grid=grid)
        keys = [f"x/c/{number}" for number in range(omnizarr.open(store)["x"].nchunks)]
        assert [key for key in keys if store.get(key) is not None] == [key for key in keys if key in set(store.list())]
        np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], array[...][picked])


@given(st.data())
@settings(deadline=None)
def test_chunks_hold_what_brackets_read(data):
    view, expected = data.draw(a_source())
    for _ in range(data.draw(st.integers(0, 3))):
        view, expected = data.draw(data.draw(st.sampled_from([a_selection, a_change, a_join]))(view, expected))
    store = shown(view, grid=data.draw(st.sampled_from(["regular", "rectilinear"])))
    array = omnizarr.open(store)["x"]
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], expected)
    np.testing.assert_array_equal(array[...], expected)
    keys = list(store.list())
    assert len(keys) == len(set(keys))
    for coords in np.ndindex(*array.cdata_shape):
        key = "/".join(["x/c", *map(str, coords)])
        value = store.get(key)
        assert store.exists(key) == (key in keys) == (value is not None)
        assert store.size(key) == (None if value is None else len(value))
        if value is not None:
            assert bytes(store.get(key, (1, 5))) == bytes(value)[1:5]
            assert [bytes(each) for each in verbs.get_spans(store, key, [(0, 2), (-3, None)])] == [
                bytes(value)[:2],
                bytes(value)[-3:],
            ]


# -- missing chunks ------------------------------------------------------------------------


def sparse(fill=7, **options):
    array = omnizarr.create_array({}, shape=(6,), chunks=(2,), dtype="i2", fill_value=fill, **options)
    array[2:4] = 1
    return array


def chunk_keys(store):
    return sorted(key for key in store.list() if not key.endswith(".json"))


@pytest.mark.parametrize(
    ("lazy", "keys"),
    [
        (lambda: omnizarr.concat([sparse(), sparse()]), ["x/c/1", "x/c/4"]),
        (lambda: omnizarr.concat([sparse(), sparse()]).lazy[1:], ["x/c/0", "x/c/1", "x/c/3", "x/c/4"]),
        (lambda: omnizarr.concat([sparse(), sparse(fill=8)]), ["x/c/1", "x/c/3", "x/c/4", "x/c/5"]),
        (lambda: omnizarr.concat([sparse(), np.full(2, 7, "i2")]), ["x/c/1", "x/c/3"]),
        (lambda: omnizarr.stack([sparse(), sparse()]), ["x/c/0/1", "x/c/1/1"]),
        (lambda: omnizarr.block([[sparse(), None], [None, sparse()]], fill_value=7), ["x/c/0/1", "x/c/1/4"]),
        (lambda: omnizarr.block([[sparse(), None], [None, sparse()]], fill_value=6), None),
        (lambda: omnizarr.concat([sparse(), sparse()]).astype("f4"), None),
    ],
    ids=["joined", "within chunks", "other fill", "NumPy", "stacked", "gaps", "gaps of another value", "converted"],
)
def test_missing_chunks_stay_missing(lazy, keys):
    view = lazy()
    store = shown(view)
    if keys is not None:
        assert chunk_keys(store) == keys
    for coords in np.ndindex(*omnizarr.open(store)["x"].cdata_shape):
        key = "/".join(["x/c", *map(str, coords)])
        assert store.exists(key) == (key in chunk_keys(store)) == (store.get(key) is not None)
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], view[...])


class Unlisted(WrapperStore):
    """A store that cannot list."""

    @property
    def features(self):
        return replace(self.store.features, listing="none")


def test_no_chunk_is_missing_where_a_source_cannot_be_listed():
    other = sparse()
    hidden = omnizarr.open(Unlisted(other.store), mode="r")
    store = shown(omnizarr.concat([sparse(), hidden]))
    assert chunk_keys(store) == [f"x/c/{number}" for number in range(6)]
    assert store.exists("x/c/0")
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], [7, 7, 1, 1, 7, 7] * 2)


def test_an_array_of_many_missing_chunks_lists_what_is_stored():
    huge = omnizarr.create_array({}, shape=(10**15, 10**3), chunks=(1, 1), dtype="u1", fill_value=0)
    huge[10**14, 5] = 1
    store = shown(omnizarr.concat([huge, huge]))
    assert chunk_keys(store) == [f"x/c/{10**14}/5", f"x/c/{11 * 10**14}/5"]


def test_a_source_that_is_gone_is_an_error_and_no_missing_chunk(tmp_path):
    for name in "ab":
        omnizarr.create_array(tmp_path / name, data=np.ones(4), chunks=2)
    store = shown(omnizarr.concat([tmp_path / "a", tmp_path / "b"]))
    shutil.rmtree(tmp_path / "b")
    assert store.get("x/c/0") is not None
    with pytest.raises(OmnizarrError):
        store.get("x/c/2")
    with pytest.raises(OmnizarrError):
        list(store.list())


# -- what codecs the array has --------------------------------------------------------------


def test_codecs_that_few_readers_know_are_replaced_as_by_convert():
    source = parts(count=1, zarr_format=2, compressors={"id": "zlib", "level": 1})[0]
    target = {}
    omnizarr.convert(source, target)
    store = shown(source.lazy[...])
    assert omnizarr.open(store)["x"].metadata.codecs == omnizarr.open(target).metadata.codecs


def test_codecs_that_lose_digits_are_not_applied_twice():
    rounding = {"id": "fixedscaleoffset", "scale": 10, "offset": 0, "dtype": "<f8", "astype": "<i2"}
    values = np.linspace(0, 1, 7)
    sources = [omnizarr.create_array({}, data=values, zarr_format=2, filters=[rounding], chunks=4) for _ in range(2)]
    lazy = omnizarr.concat(sources)
    store = shown(lazy)
    assert [codec.name for codec in omnizarr.open(store)["x"].metadata.codecs] == ["bytes", "zstd"]
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], lazy[...])


def test_a_compressor_that_sees_items_sees_those_of_the_new_type():
    packed = [
        omnizarr.create_array({}, data=np.arange(6, dtype="i2"), compressors=omnizarr.codecs.BloscCodec(typesize=2))
        for _ in range(2)
    ]
    store = shown(omnizarr.concat(packed).unpack(0.5))
    (_, blosc) = omnizarr.open(store)["x"].metadata.codecs
    assert blosc.configuration["typesize"] == 8
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][...], [*np.arange(6) / 2] * 2)


def test_sources_of_other_codecs_are_encoded_with_those_of_the_first():
    first, second = parts()[0], parts(compressors=None)[1]
    store = shown(omnizarr.concat([first, second]))
    assert number_passed_on(store, [first, second]) == (4, 8)
    np.testing.assert_array_equal(omnizarr.open(copied(store))["x"][6:], second[...])


def test_text_keeps_its_compressor():
    sources = [omnizarr.create_array({}, data=np.array(["a", "bc", "d"]), chunks=3) for _ in range(2)]
    store = shown(omnizarr.concat(sources))
    assert number_passed_on(store, sources) == (2, 2)
    assert omnizarr.open(copied(store))["x"][...].tolist() == ["a", "bc", "d"] * 2


# -- copies, saved views, pickles -----------------------------------------------------------


def test_a_copy_has_the_stored_chunks_of_the_sources(tmp_path):
    sources = [omnizarr.create_group(tmp_path / name) for name in "ab"]
    for number, group in enumerate(sources):
        data = np.arange(8.0).reshape(4, 2) + number
        group.create_array("t", data=data, chunks=(2, 2), shards=(4, 2), dimension_names=["time", "x"])
        group.create_array("time", data=np.arange(4) + 4 * number, dimension_names=["time"])
    run = omnizarr.combine([tmp_path / "a", tmp_path / "b"], along="time")
    done = omnizarr.convert(run, tmp_path / "copy")
    how = {node.path: node.how for node in done.nodes}
    assert how["t"] == "copied"
    assert done.verified
    copy = omnizarr.open(tmp_path / "copy")
    assert (copy["t"].chunks, copy["t"].shards) == ((2, 2), (4, 2))
    assert [codec.name for codec in copy["time"].metadata.codecs] == ["bytes", "zstd"]
    for number, name in enumerate("ab"):
        assert (tmp_path / f"copy/t/c/{number}/0").read_bytes() == (tmp_path / name / "t/c/0/0").read_bytes()


def test_a_copy_of_shifted_chunks_is_encoded_by_blocks(monkeypatch):
    monkeypatch.setattr("omnizarr.nodes.lazy.passing.ShownChunks.value", None)
    target = {}
    done = omnizarr.convert(shown(omnizarr.concat(parts()).lazy[1:]), target)
    assert [node.how for node in done.nodes] == ["documents", "encoded"]
    np.testing.assert_array_equal(omnizarr.open(target)["x"][...], omnizarr.concat(parts())[1:])


def test_a_pickled_store_passes_on_the_same(tmp_path):
    for name in "ab":
        omnizarr.create_array(tmp_path / name, data=np.arange(4.0), chunks=2)
    store = shown(omnizarr.concat([tmp_path / "a", tmp_path / "b"]))
    again = pickle.loads(pickle.dumps(store))
    assert copied(again).store_dict == copied(store).store_dict


def test_a_saved_view_passes_on_the_same_without_opening_a_source_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        omnizarr.create_array(name, data=np.arange(4.0), chunks=2)
    lazy = omnizarr.concat(["a", "b"])
    omnizarr.save_view("v.zview", lazy)
    store = omnizarr.open("v.zview").store
    assert bytes(store.get("c/2")) == (tmp_path / "b/c/0").read_bytes()
    assert sorted(store.list()) == ["c/0", "c/1", "c/2", "c/3", "zarr.json"]


def test_saved_views_of_before_are_read(tmp_path, monkeypatch):
    """Their chunks are not compressed."""
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        omnizarr.create_array(name, data=np.arange(4.0), chunks=2)
    omnizarr.save_view("v.zview", omnizarr.concat(["a", "b"]))
    document = json.loads((tmp_path / "v.zview").read_text())
    array = document["documents"]["zarr.json"]
    array["codecs"] = [codec for codec in array["codecs"] if codec["name"] == "bytes"]
    (tmp_path / "v.zview").write_text(json.dumps(document))
    again = omnizarr.open("v.zview")
    assert bytes(again.store.get("c/1")) == np.array([2.0, 3.0]).tobytes()
    np.testing.assert_array_equal(again[...], [0, 1, 2, 3] * 2)


@pytest.mark.parametrize(("member", "value"), [("shape", [9]), ("data_type", "float32")])
def test_a_document_that_does_not_describe_the_view_is_refused(tmp_path, monkeypatch, member, value):
    monkeypatch.chdir(tmp_path)
    omnizarr.create_array("a", data=np.arange(4.0), chunks=2)
    omnizarr.save_view("v.zview", omnizarr.concat(["a"]))
    document = json.loads((tmp_path / "v.zview").read_text())
    document["documents"]["zarr.json"][member] = value
    (tmp_path / "v.zview").write_text(json.dumps(document))
    with pytest.raises(MetadataError, match="does not describe its lazy array"):
        omnizarr.open("v.zview")

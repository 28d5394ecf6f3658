"""A chunk that is shorter or longer than its codecs promise is an error for every selection, with both engines."""

import asyncio
import os

import numpy as np
import pytest
from obstore.store import MemoryStore as ObstoreMemory

import omnizarr
from omnizarr import aio, errors
from omnizarr.stores import CacheStore, LocalStore, MemoryStore, ObjectStore, SQLiteStore, ZipStore, verbs
from omnizarr.stores.base import answers
from tests.engine.both import ENGINES, needs_native, opened, outcome
from tests.fakes import FaultyStore

SHAPE = (512, 128)  # 256 KiB: parts of it are fetched by themselves
SIZE = 512 * 128 * 4
SIZES = [0, 1, SIZE // 2, SIZE - 4, SIZE - 1, SIZE + 1, 2 * SIZE]
SELECTIONS = {
    "first row": np.s_[0],
    "first element": np.s_[0, 0],
    "last row": np.s_[-1],
    "last element": np.s_[-1, -1],
    "rows far from each other": np.s_[::100],
    "a column": np.s_[:, 5],
    "points": ([0, 300], [1, 2]),
    "half": np.s_[:256],
    "all": np.s_[...],
}
CODECS = {
    "raw": {},
    "big-endian": {"serializer": {"name": "bytes", "configuration": {"endian": "big"}}},
    "transposed": {"filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    "v2": {"zarr_format": 2},
    "v2, in order F": {"zarr_format": 2, "order": "F"},
    "inner chunks": {"shards": (1024, 128)},
}
STORES = {
    "memory": lambda _: MemoryStore(),
    "local": lambda folder: LocalStore(folder / "a.zarr"),
    "sqlite": lambda folder: SQLiteStore(folder / "a.sqlite"),
    "zip": lambda folder: ZipStore(folder / "a.zip", mode="w"),
    "object": lambda _: ObjectStore(ObstoreMemory()),
    "cached": lambda _: CacheStore(MemoryStore()),
    "wrapped": lambda _: FaultyStore(MemoryStore()),
}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    with STORES[request.param](tmp_path) as store:
        yield store


@pytest.fixture(params=[pytest.param(name, marks=needs_native) if name == "native" else name for name in ENGINES])
def engine(request):
    return request.param


def create(store, codecs="raw"):
    array = omnizarr.create_array(
        store, shape=(1024, 128), chunks=SHAPE, dtype="i4", compressors=None, **CODECS[codecs]
    )
    array[...] = np.arange(1024 * 128).reshape(1024, 128)
    return next(key for key in sorted(store.list()) if key.startswith(("c/0/0", "0.0")))


def set_size(store, key, size):
    data = bytes(store.get(key))
    store.set(key, (data + data)[:size])


def found_by(array):
    """Return what each selection of the first chunk raises."""

    def read(selection):
        if isinstance(selection, tuple) and isinstance(selection[0], list):
            return array.vindex[selection]
        return array[:512][selection] if selection is Ellipsis else array[_within(selection)]

    return {name: outcome(lambda selection=selection: read(selection)) for name, selection in SELECTIONS.items()}


def _within(selection):
    """Return a selection of the first chunk as one of the array."""
    first, *rest = selection if isinstance(selection, tuple) else (selection,)
    first = slice(first.start, min(first.stop or 512, 512), first.step) if isinstance(first, slice) else first % 512
    return first, *rest


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codecs", [name for name in CODECS if name != "inner chunks"])
def test_every_selection_says_how_many_bytes_there_are(engine, codecs, size):
    store = MemoryStore()
    key = create(store, codecs)
    set_size(store, key, size)
    for name, result in found_by(opened(store, engine)).items():
        assert result[0] is errors.ChunkSizeError, name
        assert (result[2]["found"], result[2]["expected"]) == (f"{size} bytes", f"{SIZE} bytes"), name
        assert result[2]["key"] == key


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", SIZES)
def test_every_store_that_knows_the_size_of_what_it_reads_tells_it(engine, store, size):
    key = create(store)
    set_size(store, key, size)
    for name, result in found_by(opened(store, engine)).items():
        assert result[0] is errors.ChunkSizeError, name
        assert (result[2]["found"], result[2]["expected"]) == (f"{size} bytes", f"{SIZE} bytes"), name


class Plain(MemoryStore):
    """A store that sends parts, and does not know how much there is."""

    @answers(verbs.get_spans)
    def _get_spans(self, key, spans):
        parts = verbs.get_spans.default(self, key, spans)
        return parts and [*parts]


@pytest.mark.parametrize("size", [0, 1, SIZE // 2, SIZE - 4, SIZE - 1])
def test_where_nobody_knows_the_size_a_part_that_is_missing_tells_how_short_the_chunk_is(engine, size):
    store = Plain()
    set_size(store, create(store), size)
    for name in ("last row", "last element", "all"):
        result = found_by(opened(store, engine))[name]
        assert (result[0], result[2]["found"]) == (errors.ChunkSizeError, f"{size} bytes"), name


@pytest.mark.parametrize("size", SIZES)
def test_coroutines_say_the_same(store, size):
    key = create(store)
    set_size(store, key, size)

    async def read():
        array = await aio.open_array(store, mode="r")
        for selection in (np.s_[0], np.s_[511], np.s_[:512]):
            with pytest.raises(errors.ChunkSizeError, match=f"found {size} bytes, expected {SIZE} bytes"):
                await array.getitem(selection)

    asyncio.run(read())


@pytest.mark.parametrize("size", [1, SIZE // 2, SIZE - 1, SIZE + 1])
def test_an_inner_chunk_of_another_size_is_an_error_for_every_selection(engine, store, size):
    """The index of a shard says how long they are."""
    key = create(store, "inner chunks")
    data = bytearray(store.get(key))
    table = np.frombuffer(data[-36:-4], "<u8").copy()
    table[1] = size
    crc = __import__("google_crc32c").value(table.tobytes())
    store.set(key, bytes(data[:-36]) + table.tobytes() + crc.to_bytes(4, "little"))
    for name, result in found_by(opened(store, engine)).items():
        assert result[0] is errors.ChunkSizeError, name
        assert (result[2]["found"], result[2]["expected"]) == (f"{size} bytes", f"{SIZE} bytes"), name


def test_to_know_the_size_costs_no_request(store):
    create(store)
    watched = FaultyStore(store)
    opened(watched, "reference", mode="r")[0]
    assert [verb for verb, key in watched.log if key == "c/0/0" and verb != "lock"] in (["get_spans"], ["pinned"])


@pytest.mark.parametrize("codecs", ["raw", "big-endian", "compressed", "small", "small and compressed"])
def test_a_file_that_claims_to_be_larger_than_memory_is_an_error_that_says_so(engine, tmp_path, codecs):
    how = {**CODECS, "compressed": {"compressors": "auto"}}.get(codecs.removeprefix("small and "), {})
    chunks = (8, 8) if codecs.startswith("small") else SHAPE
    array = omnizarr.create_array(
        tmp_path / "a", shape=(1024, 128), dtype="i4", **{"compressors": None, "chunks": chunks, **how}
    )
    array[...] = 1
    size = claim_much(tmp_path / "a" / "c" / "0" / "0")
    for selection in (np.s_[0], np.s_[:512], np.s_[0, 0], np.s_[...]):
        with pytest.raises(errors.ChunkSizeError, match=rf"key 'c/0/0'.*found {size} bytes"):
            opened(tmp_path / "a", engine)[selection]
    with pytest.raises(errors.OmnizarrError, match=r"key 'c/0/0'"):
        opened(tmp_path / "a", engine)[0, 0] = 2


def claim_much(path):
    """Make a file as large as the file system lets it be, without storing anything; return how large."""
    for size in (2**63 - 1, 2**62, 2**53, 2**44 - 4096, 2**43):
        try:
            os.truncate(path, size)
        except OSError:
            continue
        with pytest.raises((MemoryError, OverflowError)):  # or the system promises memory that it does not have
            bytearray(size)
        return size
    return pytest.skip("the file system has no room for large files with holes")

"""Chunks that a view encodes are kept: one encoding for many ranges and many readers, and never an old one."""

import threading
import zlib

import numpy as np
import pytest

import omnizarr
from omnizarr.nodes import encoded
from omnizarr.storage import LocalStore, MemoryStore, TranslatedStore
from omnizarr.stores import WrapperStore, verbs
from omnizarr.stores.base import answers
from omnizarr.tools.convert import showing
from tests.fakes import FaultyStore

VALUES = np.arange(4096, dtype="i4")


class Unstamped(WrapperStore):
    """A store without stamps."""

    @answers(verbs.stamp)
    def _stamp(self, key):
        return None


@pytest.fixture
def made(monkeypatch):
    """How often a chunk was encoded."""
    times = []
    encode = showing.ShownArray._made

    def counted(array, coords):
        times.append(coords)
        return encode(array, coords)

    monkeypatch.setattr(showing.ShownArray, "_made", counted)
    return times


def old(store, **options):
    """Make an array of v2 whose chunks are compressed again for v3, and return how its first one begins there."""
    given = {"chunks": 1024, "compressors": {"id": "zlib", "level": 1}, "fill_value": -1, **options}
    return omnizarr.create_array(store, name="a", data=VALUES, zarr_format=2, **given)


def shards(store):
    """Make an array whose shards become chunks in v2."""
    return omnizarr.create_array(store, name="a", data=VALUES, chunks=1024, shards=2048, compressors=None)


@pytest.mark.parametrize(
    ("make", "zarr_format", "key"), [(old, 3, "a/c/1"), (shards, 2, "a/1")], ids=["compressed again", "encoded again"]
)
def test_a_thousand_ranges_of_a_chunk_encode_it_once(make, zarr_format, key, made):
    store = MemoryStore()
    make(store)
    whole = bytes(TranslatedStore(store, zarr_format).get(key))
    assert len(whole) > 1000
    made.clear()
    view = TranslatedStore(store, zarr_format)
    assert b"".join(bytes(view.get(key, (at, at + 1))) for at in range(1000)) == whole[:1000]
    assert made == [(1,)]


def test_readers_at_the_same_time_encode_a_chunk_once(made):
    store = MemoryStore()
    old(store)
    view = TranslatedStore(store)
    start, found = threading.Barrier(16), []

    def read():
        start.wait()
        found.append(bytes(view.get("a/c/2")))

    readers = [threading.Thread(target=read) for _ in range(16)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert made == [(2,)]
    [value] = set(found)
    np.testing.assert_array_equal(np.frombuffer(zlib.decompress(value, 31), "<i4"), VALUES[2048:3072])


@pytest.mark.parametrize("is_stamped", [True, False], ids=["with stamps", "without"])
@pytest.mark.parametrize("kind", ["memory", "directory"])
def test_changed_chunks_are_encoded_anew(kind, is_stamped, tmp_path):
    store = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    array = old(store)
    view = TranslatedStore(store if is_stamped else Unstamped(store))
    for value in (0, 1, 2, -1, 3):
        array[:1024] = value
        shown = omnizarr.open(view)["a"]
        assert set(shown[:1024].tolist()) == {value}
    array.resize(4000)
    assert omnizarr.open(view)["a"].shape == (4000,)
    np.testing.assert_array_equal(omnizarr.open(view)["a"][1024:], VALUES[1024:4000])


def test_chunks_that_come_and_go_are_seen():
    store = MemoryStore()
    array = old(store)
    view = TranslatedStore(store)
    assert view.get("a/c/0") is not None
    store.delete("a/0")
    assert view.get("a/c/0") is None
    array[:10] = 5
    assert view.get("a/c/0") is not None


def test_changed_metadata_change_what_is_kept():
    store = MemoryStore()
    old(store)
    view = TranslatedStore(store)
    assert view.get("a/c/0") is not None
    stored = bytes(store.get("a/0"))
    omnizarr.create_array(
        store, name="a", shape=4096, chunks=1024, dtype="u4", fill_value=7, compressors={"id": "zlib"}, zarr_format=2,
        overwrite=True,
    )  # fmt: skip
    store.set("a/0", stored)
    view.get("a/zarr.json")
    assert omnizarr.open(view)["a"].dtype == "u4"
    np.testing.assert_array_equal(omnizarr.open(view)["a"][:1024], VALUES[:1024])


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(encoded.EncodedChunks.__init__, "__defaults__", (6000,))
    store = MemoryStore()
    old(store, compressors={"id": "zlib", "level": 0})
    view = TranslatedStore(store)
    for number in range(4):
        assert len(view.get(f"a/c/{number}")) > 2000
    assert 0 < view._shown._kept._shelf.nbytes <= 6000


def test_chunks_without_stamps_are_not_kept(made):
    store = MemoryStore()
    old(store)
    view = TranslatedStore(Unstamped(store))
    for _ in range(3):
        view.get("a/c/0")
    assert len(made) == 3


def test_missing_chunks_are_not_read_again():
    store = FaultyStore(MemoryStore())
    omnizarr.create_array(store, name="a", shape=8, chunks=4, dtype="i4", zarr_format=2, compressors={"id": "zlib"})
    view = TranslatedStore(store)
    for _ in range(3):
        assert view.get("a/c/0") is None
    assert [key for verb, key in store.log if verb == "get" and key.split("/")[-1].isdigit()] == ["a/0"]

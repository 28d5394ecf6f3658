"""`omnizarr.nodes.copying`."""

import threading
from dataclasses import replace

import numpy as np
import obstore.store
import pytest

import omnizarr
from omnizarr.errors import ConflictError, StoreError, StoreLimitError
from omnizarr.nodes import copying, hierarchy
from omnizarr.nodes.copying import Copier, Done, pieces, same_value
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, MemoryStore, ObjectStore, WrapperStore, verbs
from omnizarr.stores.base import answers
from tests.fakes import FaultyStore, WatchedStore


class Far(WrapperStore):
    """A store with latency, which copies values itself, and of which the bytes in flight are counted."""

    @property
    def features(self):
        return replace(self.store.features, concurrency=32)

    def __init__(self, values):
        super().__init__(MemoryStore(values))
        self.guard = threading.Lock()
        self.calls, self.flying, self.most = [], 0, 0
        self.gate = threading.Barrier(1)

    def get(self, key, span=None):
        value = super().get(key, span)
        with self.guard:
            self.calls.append(("get", key))
            self.flying += len(value or b"")
            self.most = max(self.most, self.flying)
        return value

    def landed(self, nbytes):
        with self.guard:
            self.flying -= nbytes

    @answers(verbs.copy_value)
    def _copy_value(self, key, target):
        self.calls.append(("copy", key))
        return verbs.copy_value(self.store, key, target)


class Landing(WrapperStore):
    """What is written here is no longer in flight."""

    def __init__(self, source):
        super().__init__(MemoryStore())
        self.source = source

    def set(self, key, value):
        super().set(key, value)
        threading.Event().wait(0.002)
        self.source.landed(len(value))


def copied(values, **options):
    source, target = MemoryStore(values), MemoryStore(options.pop("there", {}))
    copy = Copier(source, target, **options).copier()
    done = {key: copy(key, key) for key in [*values, "missing"]}
    return done, {key: bytes(target.get(key)) for key in target.list()}


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("verify", [False, True])
def test_values_are_copied_and_missing_ones_are_not(monkeypatch, in_pieces, verify):
    monkeypatch.setattr(copying, "_PIECE", 4)
    values = {"a": b"", "b": b"123", "c": b"1234", "d": b"123456789"}
    done, found = copied(values, in_pieces=in_pieces, verify=verify)
    assert found == values
    assert done == {**{key: Done(len(value), True) for key, value in values.items()}, "missing": Done(0, False)}


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize(
    ("keeps", "expected", "written"),
    [("none", b"12345", {"a", "b"}), ("equal", b"12345", {"b"}), ("all", b"123456", set())],
)
def test_values_that_are_there_already(monkeypatch, keeps, expected, written, in_pieces):
    monkeypatch.setattr(copying, "_PIECE", 4)
    there = {"a": b"1234", "b": b"123456"}
    done, found = copied({"a": b"1234", "b": b"12345"}, there=there, keeps=keeps, in_pieces=in_pieces)
    assert found == {"a": b"1234", "b": expected}
    assert {key for key, each in done.items() if each.is_written} == written


def test_a_copy_that_differs_is_an_error():
    class Forgetful(MemoryStore):
        def set(self, key, value):
            super().set(key, bytes(value)[:-1])

    with pytest.raises(StoreError, match="differs"):
        Copier(MemoryStore({"a": b"12"}), Forgetful(), verify=True).copier()("a", "a")


def test_a_value_that_is_too_large_is_an_error():
    with pytest.raises(StoreLimitError):
        Copier(MemoryStore({"a": b"12"}), MemoryStore(), most=1).copier()("a", "a")


def test_a_store_copies_within_itself_but_not_documents_or_what_is_compared():
    store = Far({"a": b"12"})
    assert Copier(store, store, sized=False).copier()("a", "b") == Done(0, is_written=True)
    assert Copier(store, store).copier()("a", "b") == Done(2, is_written=True)
    assert Copier(store, store).copier()("x", "y") == Done(0, is_written=False)
    assert {name for name, key in store.calls if key == "a"} == {"copy"}
    store.calls.clear()
    Copier(store, store, by_server=False).copier()("a", "c")
    Copier(store, store, verify=True).copier()("a", "d")
    assert {name for name, _ in store.calls} == {"get"}


@pytest.mark.parametrize("size", [1, 2**10, 2**16])
def test_no_more_bytes_are_in_memory_than_may_be_in_flight(size):
    source = Far({str(number): bytes(size) for number in range(200)})
    target = Landing(source)
    with omnizarr.config.set(bytes_in_flight=2**16):
        Copier(source, target).run((str(number), str(number)) for number in range(200))
    assert len(list(target.list())) == 200
    assert source.most <= max(size, 2**15)  # twice: in the parts that are received, and put together


@pytest.mark.parametrize("size", [2**12, 2**15])
def test_values_of_no_bytes_do_not_show_that_all_others_are_small(size):
    source = Far({str(number): bytes(size * (number > 0)) for number in range(100)})
    with omnizarr.config.set(bytes_in_flight=2**16):
        Copier(source, Landing(source)).run((str(number), str(number)) for number in range(100))
    assert source.most <= 2**16


class Telling(Far):
    """A store that knows how large values are, and reads parts."""

    @answers(verbs.get_within)
    def _get_within(self, key, most):
        verbs.check_limit(self, key, self.size(key) or 0, most)
        return self.get(key)

    @answers(verbs.pinned)
    def _pinned(self, key):
        return lambda spans: verbs.get_spans(self.store, key, spans)


def test_one_large_value_is_in_memory_among_many_small_ones_from_the_first():
    sizes = [10 if number % 7 else 2**15 for number in range(100)]
    source = Telling({str(number): bytes(size) for number, size in enumerate(sizes)})
    target = Landing(source)
    with omnizarr.config.set(bytes_in_flight=2**16):
        Copier(source, target).run((str(number), str(number)) for number in range(100))
    assert {key: len(target.get(key)) for key in target.list()} == dict(zip(map(str, range(100)), sizes, strict=True))
    assert source.most <= 2**16 + 32 * 10


def test_a_value_that_is_too_large_is_an_error_in_any_share():
    source = Telling({str(number): bytes(2**10 * (number + 1)) for number in range(20)})
    with omnizarr.config.set(bytes_in_flight=2**14), pytest.raises(StoreLimitError, match="20480"):
        Copier(source, MemoryStore(), most=19 * 2**10).run((str(number), str(number)) for number in range(20))


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("size", [1, 2**13, 2**16])
def test_no_value_is_asked_for_twice_if_the_listing_shows_how_large_they_are(monkeypatch, size, verify):
    monkeypatch.setattr(copying, "_RECEIVED", 2**10)
    inner = ObjectStore(obstore.store.MemoryStore())
    for number in range(60):
        inner.set(f"c/{number}", bytes(size))
    refused, flying, most, guard = [], [0], [0], threading.Lock()
    plain = ObjectStore._get_within

    def counted(store, key, within):
        try:
            value = plain(store, key, within)
        except StoreLimitError:
            refused.append(key)
            raise
        with guard:
            flying[0] += len(value)
            most[0] = max(most[0], flying[0])
        return value

    class Landed(WrapperStore):
        def set(self, key, value):
            super().set(key, value)
            threading.Event().wait(0.002)
            with guard:
                flying[0] -= len(value)

    monkeypatch.setattr(ObjectStore, "_get_within", counted)
    inner._concurrency = 32
    target = Landed(MemoryStore())
    layout = copying.Layout(StorePath(inner, ""), StorePath(target, ""))
    with omnizarr.config.set(bytes_in_flight=2**16):
        Copier(inner, target, verify=verify, sizes=layout.sizes).run(layout.chunks())
    assert (layout.sizes.largest, refused, len(list(target.list()))) == (size, [], 60)
    assert most[0] <= max(size, 2**16)


def test_half_of_the_copies_are_read_at_a_time_to_be_compared():
    source = Telling({str(number): bytes(2**10) for number in range(60)})
    guard, reading, most = threading.Lock(), [0], [0]

    class Slow(WrapperStore):
        def get(self, key, span=None):
            with guard:
                reading[0] += 1
                most[0] = max(most[0], reading[0])
            threading.Event().wait(0.002)
            with guard:
                reading[0] -= 1
            return super().get(key, span)

    copier = Copier(source, Slow(MemoryStore()), verify=True, sizes=copying.Sizes(2**10))
    with omnizarr.config.set(bytes_in_flight=20 * 2**10):  # twice when received, and half of a copy: eight at a time
        copier.run((str(number), str(number)) for number in range(60))
    assert 1 < most[0] <= 4


@pytest.mark.parametrize(("at", "expected"), [(None, True), (0, False), (2**20, False), (2**21 + 2, False)])
def test_values_are_compared_to_their_last_byte(at, expected):
    one = bytearray(2**21 + 3)
    other = bytearray(one)
    if at is not None:
        other[at] = 1
    assert copying.equals(memoryview(one), bytes(other)) is expected
    assert not copying.equals(memoryview(one)[:-1], one)


def stores_with_versions(tmp_path):
    return LocalStore(tmp_path), ObjectStore(obstore.store.MemoryStore())


@pytest.mark.parametrize("kind", [0, 1])
class TestValuesThatAreReplacedWhileTheyAreReadInPieces:
    OLD, NEW = bytes(range(1, 9)), bytes(range(11, 19))

    @pytest.fixture
    def store(self, tmp_path, kind, monkeypatch):
        monkeypatch.setattr(copying, "_PIECE", 4)
        store = stores_with_versions(tmp_path)[kind]
        store.set("a", self.OLD)
        return store

    def test_are_no_mixture(self, store):
        read = pieces(store, "a", 4)
        assert bytes(next(read)) == self.OLD[:4]
        store.set("a", self.NEW)
        with pytest.raises(ConflictError):
            list(read)

    def test_may_be_removed(self, store):
        read = pieces(store, "a", 4)
        next(read)
        store.delete("a")
        with pytest.raises(ConflictError):
            list(read)

    @pytest.mark.parametrize("length", [1, 3, 4, 7, 8, 9])
    def test_are_whole_otherwise(self, store, length):
        found = list(map(bytes, pieces(store, "a", length)))
        assert b"".join(found) == self.OLD
        assert {len(piece) for piece in found[:-1]} <= {length}
        assert list(pieces(store, "missing", length)) == []

    def test_are_copied_as_they_are_then(self, store, monkeypatch):
        self.replaces_after_the_first_piece(store, monkeypatch)
        target = MemoryStore()
        Copier(store, target, in_pieces=True).copier()("a", "a")
        assert bytes(target.get("a")) == self.NEW

    def test_are_compared_as_they_are_then(self, store, monkeypatch):
        mixture = MemoryStore({"b": self.OLD[:4] + self.NEW[4:]})
        self.replaces_after_the_first_piece(store, monkeypatch)
        assert not same_value(store, "a", mixture, "b")

    def replaces_after_the_first_piece(self, store, monkeypatch):
        plain, left = copying.pieces, [True]

        def replacing(*args):
            for piece in plain(*args):
                yield piece
                if args[0] is store and left:
                    left.pop()
                    store.set("a", self.NEW)

        monkeypatch.setattr(copying, "pieces", replacing)


def test_a_large_copy_is_compared_in_pieces(monkeypatch):
    monkeypatch.setattr(copying, "_COMPARED", 4)
    values = {"less": b"123", "whole": b"12345678", "more": b"123456789"}
    source, target = MemoryStore(values), Far({})
    for key in values:
        Copier(source, target, verify=True).copier()(key, key)
    assert {key: target.get(key) for key in values} == values

    class Forgetful(MemoryStore):
        def set(self, key, value):
            super().set(key, bytes(value)[:-1] + b"0")

    with pytest.raises(StoreError, match="differs"):
        Copier(source, Forgetful(), verify=True).copier()("more", "more")


def test_a_large_copy_is_read_once_from_a_store_that_does_not_read_parts(monkeypatch):
    monkeypatch.setattr(copying, "_COMPARED", 4)
    target = Far({})
    Copier(MemoryStore({"a": bytes(100)}), target, verify=True).copier()("a", "a")
    assert target.calls == [("get", "a")]


def test_values_are_copied_side_by_side():
    source, meet = Far({str(number): b"1" for number in range(64)}), threading.Barrier(16)

    class Meeting(WrapperStore):
        def set(self, key, value):
            if int(key) >= 32:  # the first ones show how large values are
                meet.wait(10)
            super().set(key, value)

    target = Meeting(MemoryStore())
    Copier(source, target).run((str(number), str(number)) for number in range(64))
    assert len(list(target.list())) == 64


class Unlistable(WrapperStore):
    @property
    def features(self):
        return replace(self.store.features, listing="none")

    def __init__(self, store):
        super().__init__(store)

    def list(self):
        raise NotImplementedError

    def list_prefix(self, prefix):
        raise NotImplementedError

    def list_dir(self, prefix):
        raise NotImplementedError

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix):
        raise NotImplementedError


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_is_copied_from_a_store_that_cannot_list(zarr_format):
    values = {}
    root = omnizarr.create_group(values, zarr_format=zarr_format)
    root.create_array("a", shape=(10,), chunks=(2,), dtype="i4", fill_value=-1)[2:6] = 7
    dest = omnizarr.create_group({}, zarr_format=zarr_format)
    source = omnizarr.open_array(Unlistable(MemoryStore(values)), path="a")
    assert omnizarr.copy(source, dest, "b").copied == 1
    np.testing.assert_array_equal(dest["b"][...], root["a"][...])
    assert dest["b"].nchunks_initialized == 2


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("new_format", [2, 3])
def test_a_group_is_copied_from_a_store_that_cannot_list(zarr_format, new_format):
    values = {}
    root = omnizarr.create_group(values, zarr_format=zarr_format)
    root["g/a"] = np.arange(4)
    root["g/b/c"] = np.arange(5)
    omnizarr.consolidate_metadata(values)
    source = omnizarr.open_group(Unlistable(MemoryStore(values)))
    dest = omnizarr.create_group({}, zarr_format=new_format)
    assert omnizarr.copy_all(source, dest).copied == 4
    np.testing.assert_array_equal(dest["g/a"][...], np.arange(4))
    np.testing.assert_array_equal(dest["g/b/c"][...], np.arange(5))
    if zarr_format == new_format:
        assert omnizarr.copy(source["g"], dest, "h").copied == 4
        np.testing.assert_array_equal(dest["h/b/c"][...], np.arange(5))


def growing(store, new):
    """Return a store whose array gets longer when a value is first written to another one."""
    left = [1]

    def before(verb, key):
        if verb == "set" and "/c/" in f"/{key}" and left:
            left.pop()
            array = omnizarr.open_array(store, path="g/a")
            array.append(np.full(6, 9, "i4"))
            store.delete("g/a/c/0")
            omnizarr.open_group(store, path="g").create_array("new", data=np.arange(3))

    return WatchedStore(new, before)


COPIES = {
    "copy_node": lambda old, new: omnizarr.copy_node(old, new, path="g", target_path="g"),
    "copy_node of a store with latency": lambda old, new: omnizarr.copy_node(
        FaultyStore(old, concurrency=8), FaultyStore(new, concurrency=8), path="g", target_path="g"
    ),
    "copy_store": omnizarr.copy_store,
    "hierarchy.copy": lambda old, new: hierarchy.copy(StorePath(old, "g"), StorePath(new, "g")),
}


@pytest.mark.parametrize("name", COPIES)
def test_what_comes_and_goes_while_it_is_copied_is_in_the_copy_or_not(name):
    old, new = MemoryStore(), MemoryStore()
    omnizarr.create_group(old, path="g").create_array("a", data=np.arange(10, dtype="i4"), chunks=2)
    done = COPIES[name](old, growing(old, new))
    if name == "copy_store":
        new.delete("g/a/c/0")  # it copies keys, and removes none
    copied, source = omnizarr.open_group(new, path="g"), omnizarr.open_group(old, path="g")
    assert np.array_equal(copied["a"][...], source["a"][...])
    assert copied["a"].shape == (16,)
    assert np.array_equal(copied["new"][...], np.arange(3))
    assert not name.startswith("copy_node") or "came or went" in str(done)


def test_what_stays_is_not_asked_for_when_something_came():
    """A request for each of a million chunks takes hours."""
    old, new = MemoryStore(), MemoryStore()
    omnizarr.create_group(old, path="g").create_array("a", data=np.arange(400, dtype="i4"), chunks=2)
    source = FaultyStore(old, concurrency=8)
    target = FaultyStore(growing(old, new), concurrency=8)
    omnizarr.copy_node(source, target, path="g", target_path="g")
    asked = [key for verb, key in (*source.log, *target.log) if verb == "exists" and "c/" in key]
    assert len(asked) < 10


def test_a_source_that_changes_faster_than_it_is_copied_is_named():
    old, new, number = MemoryStore(), MemoryStore(), iter(range(2, 100))
    array = omnizarr.create_array(old, shape=100, chunks=1, dtype="i4")
    array[:2] = 1

    def before(verb, key):
        if verb == "set" and key.startswith("c/"):
            array[next(number)] = 2

    assert "goes on changing" in str(omnizarr.copy_node(old, WatchedStore(new, before)))

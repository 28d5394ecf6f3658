import math
import multiprocessing
import os
import pickle
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr.errors import ConflictError, SettingError, StoreError
from omnizarr.stores import CacheStore, LocalStore, MemoryStore, WrapperStore, verbs
from omnizarr.stores.base import Parts, Stamped, answers, parts_of
from omnizarr.stores.wrap import cache_backends
from tests.fakes import FaultyStore
from tests.stores.contract import StoreContract, in_threads


class TestCacheStore(StoreContract):
    @pytest.fixture
    def store(self):
        return CacheStore(MemoryStore())


class TestCacheStoreThatIsNotAsked(StoreContract):
    @pytest.fixture
    def store(self):
        return CacheStore(MemoryStore(), max_age=math.inf)


class TestCacheStoreWithLittleRoom(StoreContract):
    @pytest.fixture
    def store(self):
        return CacheStore(MemoryStore(), max_age=60, max_bytes=600)


class TestCacheStoreThatAsksOnce(StoreContract):
    @pytest.fixture
    def store(self):
        return CacheStore(StampedParts(), max_age="once")


class TestCacheStoreOnDisk(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return CacheStore(LocalStore(tmp_path / "data"), tmp_path / "cache", max_age=60)


class ETags(WrapperStore):
    """A store whose values have text as stamps, and that tells them with values: as object stores do."""

    def __init__(self, store=None):
        super().__init__(store or MemoryStore())
        self.versions = {}

    def set(self, key, value):
        self.versions[key] = self.versions.get(key, 0) + 1
        super().set(key, value)

    @answers(verbs.stamp)
    def _stamp(self, key):
        return f'"{self.versions.get(key, 0)}"' if self.exists(key) else None

    @answers(verbs.get_stamped)
    def _get_stamped(self, key, unless=None):
        return verbs.get_stamped.default(self, key, unless)


def counted(values=None, **options):
    """Return a counting store of values that have ETags, and a cache before it."""
    below = ETags()
    for key, value in (values or {}).items():
        below.set(key, value)
    faulty = FaultyStore(below)
    return faulty, CacheStore(faulty, **options)


# -- what is asked


def test_value_is_read_once_and_then_asked_about():
    below, store = counted({"a": b"0123456789"})
    assert [bytes(store.get("a")) for _ in range(3)] == [b"0123456789"] * 3
    assert below.requests == {"get_stamped": 3}
    assert below.bytes_read == 10
    assert store.info()[:3] == (0, 2, 1)


def test_value_is_not_asked_about_while_it_is_young():
    below, store = counted({"a": b"0123456789"}, max_age=3600)
    assert [store.get("a") for _ in range(3)] == [b"0123456789"] * 3
    assert store.exists("a")
    assert store.size("a") == 10
    assert verbs.stamp(store, "a") == '"1"'
    assert verbs.get_stamped(store, "a") == (b"0123456789", '"1"')
    assert verbs.get_stamped(store, "a", '"1"') is None
    assert below.requests == {"get_stamped": 1}


def test_value_that_has_aged_is_asked_about():
    below, store = counted({"a": b"0"}, max_age=0.05)
    store.get("a")
    time.sleep(0.06)
    store.get("a")
    assert below.requests["get_stamped"] == 2


def test_missing_key_is_remembered_for_a_while():
    below, store = counted(max_age=0.1)
    assert store.get("a") is None
    assert store.get("a") is None
    assert not store.exists("a")
    assert store.size("a") is None
    below.set("a", b"1")
    assert below.requests["get_stamped"] == 1
    time.sleep(0.11)
    assert store.get("a") == b"1"


def test_missing_key_is_not_remembered_without_age():
    below, store = counted()
    assert store.get("a") is None
    below.set("a", b"1")
    assert store.get("a") == b"1"


def test_parts_of_kept_values_are_cut_from_them():
    below, store = counted({"a": b"0123456789"})
    store.get("a")
    below.reset()
    assert bytes(store.get("a", (2, 4))) == b"23"
    assert bytes(store.get("a", (-2, None))) == b"89"
    assert [bytes(part) for part in verbs.get_spans(store, "a", [(0, 1), (8, 99)])] == [b"0", b"89"]
    out = bytearray(4)
    assert verbs.read_into(store, "a", memoryview(out), 3) == 7
    assert out == b"3456"
    assert below.requests == {"get_stamped": 4}
    assert below.bytes_read == 0


def test_parts_of_values_that_are_not_kept_pass_through():
    below, store = counted({"a": b"0123456789"}, max_age=60)
    assert bytes(store.get("a", (2, 4))) == b"23"
    assert bytes(store.get("a", (2, 4))) == b"23"
    assert [bytes(part) for part in verbs.get_spans(store, "a", [(0, 1), (8, 99)])] == [b"0", b"89"]
    assert verbs.read_into(store, "a", memoryview(bytearray(2)), 3) == 7
    assert below.requests == {"get_spans": 3, "read_into": 1}
    assert below.bytes_read == 2 + 2 + 3 + 2


class StampedParts(ETags):
    """A store that tells the stamp with parts of a value, too."""

    @answers(verbs.get_spans)
    def _get_spans(self, key, spans):
        value = self.get(key)
        return None if value is None else Parts(parts_of(value, spans), len(value), verbs.stamp(self, key))

    @answers(verbs.pinned)
    def _pinned(self, key):
        pin = []

        def read(spans):
            if spans is None:
                return [self.get(key)]
            found = verbs.get_spans(self, key, spans)
            pin.append(None if found is None else found.stamp)
            if pin[0] != pin[-1]:
                raise ConflictError("the value has changed")
            return found

        return read


def counted_parts(values, store=None, **options):
    """Return a counting store that tells stamps with parts, and a cache before it."""
    below = StampedParts(store)
    for key, value in values.items():
        below.set(key, value)
    faulty = FaultyStore(below)
    return faulty, CacheStore(faulty, **options)


@pytest.mark.parametrize("max_age", [60, "once"])
def test_parts_are_kept_with_the_stamp_of_their_value(max_age):
    below, store = counted_parts({"a": b"0123456789"}, max_age=max_age)
    for _ in range(2):
        assert bytes(store.get("a", (2, 4))) == b"23"
        assert [bytes(part) for part in verbs.get_spans(store, "a", [(2, 4), (-1, None)])] == [b"23", b"9"]
        assert [bytes(part) for part in verbs.pinned(store, "a")([(-1, None)])] == [b"9"]
    assert below.requests == {"get_spans": 2}
    assert below.bytes_read == 3
    assert store.info()[:3] == (4, 0, 2)


def test_parts_of_two_versions_are_not_mixed():
    below, store = counted_parts({"a": b"0123456789"}, max_age=60)
    store.get("a", (2, 4))
    below.set("a", b"abcdefghij")
    assert [bytes(part) for part in verbs.get_spans(store, "a", [(2, 4), (4, 6)])] == [b"cd", b"ef"]
    assert bytes(store.get("a", (2, 4))) == b"cd"
    read = verbs.pinned(store, "a")
    assert read([(2, 4)]) == [b"cd"]
    below.set("a", b"ABCDEFGHIJ")
    assert read([(4, 6)]) == [b"ef"]
    with pytest.raises(ConflictError):
        read([(7, 9)])
    assert bytes(store.get("a", (4, 6))) == b"EF"


def test_parts_that_are_too_old_cost_a_request_without_a_value(tmp_path):
    below, store = counted_parts({"a": b"0123456789"}, LocalStore(tmp_path / "data"), cache=tmp_path, max_age="once")
    verbs.get_spans(store, "a", [(2, 4), (-1, None)])
    below.reset()
    again = CacheStore(below, tmp_path, max_age="once")
    assert [bytes(part) for part in verbs.get_spans(again, "a", [(2, 4), (-1, None)])] == [b"23", b"9"]
    assert bytes(again.get("a", (2, 4))) == b"23"
    assert below.requests == {"stamp": 1}
    assert again.info()[:3] == (1, 1, 0)
    below.set("a", b"abcdefghij")
    other = CacheStore(below, tmp_path, max_age="once")
    assert bytes(other.get("a", (2, 4))) == b"cd"
    below.delete("a")
    assert CacheStore(below, tmp_path, max_age="once").get("a", (2, 4)) is None


def test_each_value_is_asked_for_once(tmp_path):
    below, store = counted_parts({"a": b"1"}, LocalStore(tmp_path / "data"), cache=tmp_path, max_age="once")
    assert [store.get(key) for key in "abab"] == [b"1", None, b"1", None]
    assert pickle.loads(pickle.dumps(store)).max_age == "once"
    assert below.requests == {"get_stamped": 2}
    below.reset()
    again = CacheStore(below, tmp_path, max_age="once")
    assert [again.get(key) for key in "abab"] == [b"1", None, b"1", None]
    assert below.requests == {"get_stamped": 2}
    assert below.bytes_read == 0
    again.set("a", b"2")
    assert again.get("a") == b"2"


def test_parts_of_missing_values_are_asked_for_once():
    below, store = counted_parts({}, max_age="once")
    assert store.get("a", (0, 2)) is None
    assert verbs.get_spans(store, "a", [(0, 2)]) is None
    assert below.requests == {"get_spans": 1}


def test_parts_of_data_that_nobody_changes_are_kept():
    below, store = counted({"a": b"0123456789"}, max_age=math.inf)
    assert bytes(store.get("a", (2, 4))) == b"23"
    assert [bytes(part) for part in verbs.get_spans(store, "a", [(2, 4), (-1, None), (5, 6)])] == [b"23", b"9", b"5"]
    assert [bytes(part) for part in verbs.get_spans(store, "a", [(-1, None), (2, 4)])] == [b"9", b"23"]
    assert below.requests == {"get": 1, "get_spans": 1}
    assert below.bytes_read == 4
    assert store.get("missing", (0, 1)) is None
    assert verbs.get_spans(store, "missing", [(0, 1), (2, 3)]) is None
    assert verbs.get_spans(store, "a", []) == []


def test_whole_value_read_into_memory_is_kept():
    below, store = counted({"a": b"0123456789"}, max_age=60)
    out = bytearray(10)
    assert verbs.read_into(store, "a", memoryview(out)) == 10
    assert store.get("a") == out == b"0123456789"
    assert below.requests == {"get_stamped": 1}


def test_many_values_are_asked_for_side_by_side():
    below, store = counted({str(number): b"1" for number in range(32)})
    below._concurrency, below.delay = 16, 0.03
    assert len(list(verbs.get_many(store, ((str(number), None) for number in range(32))))) == 32
    assert below.max_in_flight > 4


# -- what is true


def test_change_by_others_is_seen_at_once():
    below, store = counted({"a": b"old"})
    store.get("a")
    below.set("a", b"newer")
    assert store.get("a") == b"newer"
    assert bytes(store.get("a", (0, 2))) == b"ne"
    below.delete("a")
    assert store.get("a") is None
    assert store.get("a", (0, 2)) is None


@pytest.mark.parametrize("max_age", [0, 60, math.inf])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda store: store.set("a/b", b"new"), b"new"),
        (lambda store: verbs.set_many(store, [("a/b", b"new")]), b"new"),
        (lambda store: verbs.set_partial(store, "a/b", 1, b"x"), b"oxd"),
        (lambda store: store.update("a/b", lambda old: bytes(old) + b"er"), b"older"),
        (lambda store: store.delete("a/b"), None),
        (lambda store: verbs.delete_many(store, iter(["a/b"])), None),
        (lambda store: verbs.delete_prefix(store, "a"), None),
        (lambda store: (store.delete("a/b"), verbs.set_if_absent(store, "a/b", b"new")), b"new"),
    ],
)
def test_what_is_written_is_read_at_once(max_age, keep, write, expected):
    _, store = counted({"a/b": b"old"}, max_age=max_age, cache_set_data=keep)
    store.get("a/b")
    store.get("a/b", (0, 2))
    write(store)
    assert store.get("a/b") == expected
    part = store.get("a/b", (0, 2))
    assert (None if part is None else bytes(part)) == (None if expected is None else expected[:2])


def test_part_that_was_kept_is_not_read_after_a_write():
    _, store = counted({"a": b"0123"}, max_age=math.inf)
    assert bytes(store.get("a", (0, 2))) == b"01"
    store.set("a", b"4567")
    store.clear_cache()
    assert bytes(store.get("a", (0, 2))) == b"45"


def test_write_that_failed_is_asked_about():
    below, store = counted({"a": b"old"}, max_age=60)
    store.get("a")
    below.fail("set")
    with pytest.raises(StoreError):
        store.set("a", b"new")
    assert store.get("a") == b"old"
    assert below.requests["get_stamped"] == 2


def test_written_value_is_kept_only_where_it_needs_no_question():
    below, store = counted(max_age=60)
    store.set("a", b"1")
    assert store.get("a") == b"1"
    assert below.requests == {"set": 1}
    below, store = counted(max_age=60, cache_set_data=False)
    store.set("a", b"1")
    store.get("a")
    assert below.requests == {"set": 1, "get_stamped": 1}


def test_value_that_is_changed_after_it_was_set_is_not_changed_in_the_cache():
    _, store = counted(max_age=60)
    value = bytearray(b"abc")
    store.set("a", value)
    value[:] = b"xyz"
    assert store.get("a") == b"abc"


def test_lock_reads_existing_data_whatever_is_kept():
    below, store = counted({"n": b"1"}, max_age=math.inf)
    store.get("n")
    below.set("n", b"2")
    assert store.get("n") == b"1"
    with store.lock("n"):
        assert store.get("n") == b"2"
        assert bytes(store.get("n", (0, 1))) == b"2"
        assert verbs.get_spans(store, "n", [(0, 1)]) == [b"2"]
        below._concurrency = 8
        assert [value for _, value in verbs.get_many(store, [("n", None)] * 8)] == [b"2"] * 8
        assert verbs.get_stamped(store, "n").value == b"2"
        assert verbs.read_into(store, "n", memoryview(bytearray(1))) == 1
        assert verbs.stamp(store, "n") == '"2"'
        store.set("n", b"3")
    assert store.get("n") == b"3"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_that_others_have_set_are_not_lost(zarr_format):
    values = {}
    first = omnizarr.create_group(CacheStore(MemoryStore(values), max_age=math.inf), zarr_format=zarr_format)
    first.attrs["a"] = 1
    assert dict(omnizarr.open_group(first.store).attrs) == {"a": 1}
    omnizarr.open_group(MemoryStore(values)).attrs["b"] = 2
    omnizarr.open_group(first.store).attrs["c"] = 3
    assert dict(omnizarr.open_group(MemoryStore(values)).attrs) == {"a": 1, "b": 2, "c": 3}


def test_writers_with_caches_of_their_own_lose_nothing():
    values = {"n": b"0"}
    stores = [CacheStore(MemoryStore(values), max_age=math.inf) for _ in range(4)]

    def count(store):
        for _ in range(50):
            store.get("n")
            store.update("n", lambda old: b"%d" % (int(bytes(old)) + 1))

    in_threads(count, stores)
    assert values["n"] == b"200"


class Conditional(ETags):
    """A store that writes only if no other has written what was read under the lock."""

    @property
    def features(self):
        return replace(self.store.features, exclusion="condition")

    def __init__(self):
        super().__init__()
        self.read = {}

    def get(self, key, span=None):
        self.read[key] = verbs.stamp(self, key)
        return super().get(key, span)

    def set(self, key, value):
        if key in self.read and self.read.pop(key) != verbs.stamp(self, key):
            raise ConflictError("somebody else has written", key=key)
        super().set(key, value)


def test_condition_of_the_store_is_that_of_the_value_read_within_the_lock():
    below = Conditional()
    below.set("n", b"1")
    store = CacheStore(below, max_age=math.inf)
    store.get("n")
    tries = []

    def change(old):
        tries.append(bytes(old))
        if len(tries) == 1:
            ETags.set(below, "n", b"5")  # somebody else
        return b"%d" % (int(bytes(old)) + 1)

    store.update("n", change)
    assert tries == [b"1", b"5"]
    assert store.get("n") == b"6"


def test_value_without_a_stamp_is_not_kept():
    values = {"a": np.arange(4, dtype="u1")}  # could be changed by its owner
    store = CacheStore(MemoryStore(values))
    assert bytes(store.get("a")) == bytes([0, 1, 2, 3])
    values["a"][0] = 9
    assert bytes(store.get("a")) == bytes([9, 1, 2, 3])
    assert store.info().nbytes == 0


def test_slow_answer_does_not_bring_back_what_was_replaced():
    below, store = counted({"a": b"old"}, max_age=math.inf)
    reading, written = threading.Event(), threading.Event()

    class Slow(WrapperStore):
        @answers(verbs.get_stamped)
        def _get_stamped(self, key, unless=None):
            found = verbs.get_stamped(self.store, key, unless)
            reading.set()
            written.wait(10)
            return found

    store = CacheStore(Slow(below), max_age=math.inf)
    thread = threading.Thread(target=store.get, args=("a",))
    thread.start()
    reading.wait(10)
    store.set("a", b"new")
    written.set()
    thread.join(10)
    assert store.get("a") == b"new"


def test_two_writers_at_once_keep_nothing_that_may_be_old():
    below = ETags()
    inside = threading.Event()
    go_on = threading.Event()

    class Slow(WrapperStore):
        def set(self, key, value):
            super().set(key, value)
            if value == b"first":
                inside.set()
                go_on.wait(10)

    store = CacheStore(Slow(below), max_age=math.inf)
    thread = threading.Thread(target=store.set, args=("a", b"first"))
    thread.start()
    inside.wait(10)
    store.set("a", b"second")
    go_on.set()
    thread.join(10)
    assert store.get("a") == below.get("a") == b"second"


class Pinning(ETags):
    @answers(verbs.pinned)
    def _pinned(self, key):
        def read(spans):
            value = self.get(key)
            if value is None:
                return None
            return [value] if spans is None else [value[slice(*span)] for span in spans]

        return read


def test_pinned_reader_gives_one_version():
    below = FaultyStore(Pinning())
    below.set("a", b"0123")
    store = CacheStore(below)
    assert verbs.pinned(store, "a")([(0, 2)]) == [b"01"]
    read = verbs.pinned(store, "a")
    assert read(None) == [b"0123"]
    below.set("a", b"4567")
    assert read([(0, 2), (3, 4)]) == [b"01", b"3"]
    assert [bytes(part) for part in verbs.pinned(store, "a")([(0, 2)])] == [b"45"]
    below.delete("a")
    assert verbs.pinned(store, "a")(None) is None
    assert verbs.pinned(CacheStore(MemoryStore()), "a") is None


def test_entries_of_a_clock_that_was_set_back_mean_nothing(tmp_path, monkeypatch):
    now = [2_000_000_000.0]
    monkeypatch.setattr(cache_backends.StoreBackend, "clock", lambda _: now[0])
    below = LocalStore(tmp_path / "data")
    below.set("a", b"old")
    for max_age in ("once", 60):
        assert CacheStore(below, tmp_path / "cache", max_age=max_age).get("a") == b"old"
    below.set("a", b"new")
    now[0] -= 100_000_000
    for max_age in ("once", 60):
        assert CacheStore(below, tmp_path / "cache", max_age=max_age).get("a") == b"new"


@pytest.mark.parametrize("change", ["set", "read whole"])
def test_parts_are_not_kept_longer_than_the_value_they_are_of(change, tmp_path):
    below = StampedParts(LocalStore(tmp_path / "data"))
    below.set("a", b"old-old-old")
    store = CacheStore(below, tmp_path / "cache", max_age=3600, cache_set_data=False, max_bytes=4)
    assert store.get("a", (0, 3)) == b"old"
    if change == "set":
        store.set("a", b"new-new-new")
    else:
        below.set("a", b"new-new-new")
        assert store.get("a") == b"new-new-new"
    assert CacheStore(below, tmp_path / "cache", max_age=3600).get("a", (0, 3)) == b"new"
    assert store.get("a", (0, 3)) == b"new"


def test_stale_answers_of_the_store_are_no_older_than_the_store_gives_them():
    below, store = counted({"a": b"old"})
    store.get("a")
    below.freeze("a", reads=1)
    below.set("a", b"new")
    assert store.get("a") == b"old"
    assert store.get("a") == b"new"


KEYS = st.sampled_from(["a", "b/c", "b/d"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.binary(max_size=30)),
        st.tuples(st.just("below"), KEYS, st.none() | st.binary(max_size=30)),
        st.tuples(st.just("delete"), KEYS, st.none()),
        st.tuples(st.just("get"), KEYS, st.none()),
        st.tuples(st.just("part"), KEYS, st.tuples(st.integers(0, 20), st.integers(0, 30))),
        st.tuples(st.just("into"), KEYS, st.integers(0, 20)),
        st.tuples(st.just("lock"), KEYS, st.binary(max_size=5)),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=150)
@given(steps=STEPS, limit=st.sampled_from([0, 300, 10_000]), on_disk=st.booleans())
def test_cache_that_asks_reads_existing_data_whatever_program_has_written_it(steps, limit, on_disk):
    below = ETags()
    store = CacheStore(below, MemoryStore() if on_disk else None, max_bytes=limit)
    model = {}
    for verb, key, what in steps:
        value = model.get(key)
        if verb == "set":
            store.set(key, what)
            model[key] = what
        elif verb == "below" and what is not None:
            below.set(key, what)
            model[key] = what
        elif verb in {"below", "delete"}:
            (store if verb == "delete" else below).delete(key)
            model.pop(key, None)
        elif verb == "get":
            assert as_bytes(store.get(key)) == value
        elif verb == "part":
            expected = None if value is None else value[slice(*what)]
            assert as_bytes(store.get(key, what)) == expected
            assert as_bytes((verbs.get_spans(store, key, [what]) or [None])[0]) == expected
        elif verb == "into":
            out = bytearray(b"." * 40)
            assert verbs.read_into(store, key, memoryview(out), what) == (None if value is None else len(value[what:]))
            assert out == (b"" if value is None else value[what:]).ljust(40, b".")
        else:
            store.update(key, lambda old, what=what: bytes(old or b"") + what)
            model[key] = (value or b"") + what
        assert not limit or store.info().nbytes <= limit


def as_bytes(value):
    return None if value is None else bytes(value)


# -- how much is kept


def test_what_was_not_used_for_longest_goes_first():
    below, store = counted({name: bytes(1000) for name in "abcd"}, max_bytes=4000, max_age=60)
    for name in "abca":
        store.get(name)
    store.get("d")  # no room for four
    assert store.info().nbytes <= 4000
    below.reset()
    for name in "acd":
        store.get(name)
    assert below.requests == {}
    store.get("b")
    assert below.requests == {"get_stamped": 1}


def test_value_larger_than_the_cache_is_not_kept():
    below, store = counted({"a": bytes(10_000), "b": b"1"}, max_bytes=5000, max_age=60)
    store.get("b")
    store.get("a")
    store.get("a")
    store.get("b")
    assert below.requests == {"get_stamped": 3}


@pytest.mark.parametrize("options", [{"max_bytes": -1}, {"max_age": -1}, {"max_age": math.nan}, {"max_age": "long"}])
def test_setting_that_is_not_valid_is_refused(options):
    with pytest.raises(SettingError):
        CacheStore(MemoryStore(), **options)


def test_names_of_zarr_python_mean_the_same():
    cache = MemoryStore()
    store = CacheStore(
        MemoryStore(), cache_store=cache, max_size=1000, max_age_seconds="infinity", cache_set_data=False
    )
    assert store == CacheStore(store.store, cache, max_bytes=1000, max_age=math.inf, cache_set_data=False)
    assert (store.max_bytes, store.max_age) == (1000, math.inf)
    assert CacheStore(MemoryStore(), max_age_seconds=5).max_age == 5


# -- on disk


def test_directory_is_shared_by_stores_on_the_same_data(tmp_path):
    data = LocalStore(tmp_path / "data")
    data.set("a", b"0123")
    first, second = (CacheStore(FaultyStore(data), tmp_path / "cache", max_age=60) for _ in range(2))
    assert bytes(first.get("a")) == b"0123"
    assert bytes(second.get("a")) == b"0123"
    assert second.store.requests == {}


def test_directory_is_shared_by_stores_of_other_data_without_mixing_them(tmp_path):
    for name in "xy":
        LocalStore(tmp_path / name).set("a", name.encode())
    stores = [CacheStore(LocalStore(tmp_path / name), tmp_path / "cache", max_age=60) for name in "xyx"]
    assert [bytes(store.get("a")) for store in stores] == [b"x", b"y", b"x"]


def test_values_of_one_process_are_not_mistreated_as_those_of_another(tmp_path):
    first, second = MemoryStore({"a": b"1"}), MemoryStore({"a": b"2"})
    second.origin = first.origin  # as if it had come to be where the other one did
    assert bytes(CacheStore(first, tmp_path, max_age=math.inf).get("a")) == b"1"
    assert bytes(CacheStore(second, tmp_path, max_age=math.inf).get("a")) == b"2"


def test_values_that_were_pickled_and_changed_are_not_mistreated_as_those_of_the_first(tmp_path):
    store = CacheStore(MemoryStore({"a": b"1"}), tmp_path, max_age=math.inf)
    copy = pickle.loads(pickle.dumps(store))
    copy.store.set("a", b"2")
    assert [bytes(each.get("a")) for each in (store, copy)] == [b"1", b"2"]


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "damage",
    [
        lambda old: old[: len(old) // 2],
        lambda _: b"",
        lambda old: old[:-1] + bytes([old[-1] ^ 1]),
        lambda old: old[:25] + bytes([old[25] ^ 1]) + old[26:],
        lambda _: b"\xff" * 100,
        lambda _: bytes(64),
    ],
    ids=["torn", "empty", "value", "time", "noise", "zeros"],
)
def test_damaged_file_is_not_believed(tmp_path, damage):
    data = LocalStore(tmp_path / "data")
    data.set("a", b"0123456789")
    CacheStore(data, tmp_path / "cache", max_age=math.inf).get("a")
    (file,) = files_of(tmp_path / "cache")
    file.write_bytes(damage(file.read_bytes()))
    assert bytes(CacheStore(data, tmp_path / "cache", max_age=math.inf).get("a")) == b"0123456789"


def test_file_of_another_key_is_not_believed(tmp_path):
    data = LocalStore(tmp_path / "data")
    data.set("a", b"of a")
    data.set("b", b"of b")
    store = CacheStore(data, tmp_path / "cache", max_age=math.inf)
    store.get("a")
    (first,) = files_of(tmp_path / "cache")
    store.get("b")
    (second,) = set(files_of(tmp_path / "cache")) - {first}
    second.write_bytes(first.read_bytes())
    assert bytes(CacheStore(data, tmp_path / "cache", max_age=math.inf).get("b")) == b"of b"


def test_directory_does_not_grow_beyond_its_limit(tmp_path):
    data = MemoryStore({str(number): os.urandom(1000) for number in range(200)})
    store = CacheStore(ETags(data), tmp_path, max_bytes=20_000, max_age=60)
    for number in range(200):
        store.get(str(number))
    kept = sum(path.stat().st_size for path in files_of(tmp_path))
    assert 10_000 < kept <= 20_000
    assert store.info().nbytes == kept


def test_directory_that_others_fill_keeps_its_limit(tmp_path):
    data = LocalStore(tmp_path / "data")
    for number in range(100):
        data.set(str(number), bytes(1000))
    for _ in range(3):
        store = CacheStore(data, tmp_path / "cache", max_bytes=20_000, max_age=60)
        for number in range(0, 100, 2):
            store.get(str(number))
        assert sum(path.stat().st_size for path in files_of(tmp_path / "cache")) <= 20_000
        CacheStore(data, tmp_path / "cache", max_bytes=None, max_age=60).get("1")


def test_cache_that_fails_is_done_without_after_one_warning():
    below, store = counted({"a": b"1"}, cache=(cache := FaultyStore(MemoryStore())), max_age=60)
    cache.fail("get", 1)
    cache.fail("set", 1)
    with pytest.warns(RuntimeWarning, match="done without"):
        assert store.get("a") == b"1"
    assert store.get("a") == b"1"
    assert bytes(store.get("a")) == b"1"
    assert below.requests["get_stamped"] == 2


def test_read_only_cache_directory_is_done_without(tmp_path):
    store = CacheStore(MemoryStore({"a": b"1"}), LocalStore(tmp_path, read_only=True), max_age=60)
    with pytest.warns(RuntimeWarning, match="read-only"):
        assert store.get("a") == b"1"


def test_stamp_that_is_no_text_is_not_written_to_a_directory(tmp_path):
    store = CacheStore(MemoryStore({"a": b"1"}), tmp_path)
    assert store.get("a") == b"1"
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("stamp", ['"etag"', "ü", (1, 2**70, ("a", None), True), 5])
def test_stamp_that_is_written_is_read_as_the_same(tmp_path, stamp):
    class Stamping(WrapperStore):
        @answers(verbs.get_stamped)
        def _get_stamped(self, key, unless=None):
            return None if unless == stamp and type(unless) is type(stamp) else Stamped(self.get(key), stamp)

    data = Stamping(LocalStore(tmp_path / "data"))
    data.set("a", b"1")
    CacheStore(data, tmp_path / "cache").get("a")
    other = CacheStore(data, tmp_path / "cache")
    assert bytes(other.get("a")) == b"1"
    assert other.info()[:3] == (0, 1, 0)


def _read_and_write(arguments):
    data, cache, seed = arguments
    store = CacheStore(LocalStore(data), cache, max_bytes=30_000)
    rng = np.random.default_rng(seed)
    for _ in range(150):
        key = str(rng.integers(20))
        if rng.random() < 0.3:
            fill = int(rng.integers(256))
            store.set(key, bytes([fill]) * int(rng.integers(1, 3000)))
        else:
            value = bytes(store.get(key) or b"")
            if len(set(value)) > 1:
                return f"torn value of {key}"
    return None


def test_processes_that_share_a_directory_read_whole_values(tmp_path):
    jobs = [(tmp_path / "data", tmp_path / "cache", seed) for seed in range(2)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_read_and_write, jobs) == [None] * 2
    data, cached = LocalStore(tmp_path / "data"), CacheStore(LocalStore(tmp_path / "data"), tmp_path / "cache")
    for key in data.list():
        assert bytes(cached.get(key)) == bytes(data.get(key))


# -- the store itself


def test_cache_in_memory_begins_empty_elsewhere():
    _, store = counted({"a": b"1"}, max_age=60)
    store.get("a")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.info() == (0, 0, 0, 0)
    assert copy.get("a") == b"1"
    assert store.info().nbytes > 0


def test_read_only_view_shares_the_cache():
    below, store = counted({"a": b"1"}, max_age=60)
    store.get("a")
    assert store.with_read_only().get("a") == b"1"
    assert below.requests == {"get_stamped": 1}


def test_cleared_cache_is_empty(tmp_path):
    for cache in (None, tmp_path):
        _, store = counted({"a": b"1"}, cache=cache, max_age=60)
        store.get("a")
        store.clear_cache()
        assert store.info().nbytes == 0
        assert files_of(tmp_path) == []


@pytest.mark.parametrize("shards", [None, (20,)])
@pytest.mark.parametrize("max_age", [0, math.inf])
def test_array_is_read_right_through_a_cache(shards, max_age):
    below, store = counted(max_age=max_age)
    data = np.arange(97)
    omnizarr.create_array(store, data=data, chunks=(5,), shards=shards)
    array = omnizarr.open_array(store)
    for _ in range(2):
        assert (array[...] == data).all()
        assert (array[3:18] == data[3:18]).all()
    array[7:33] = -1
    data[7:33] = -1
    assert (array[...] == data).all()
    moved = below.bytes_read
    assert (array[...] == data).all()
    if not shards or max_age:
        assert below.bytes_read == moved


def test_arrays_of_two_caches_see_each_others_changes():
    values = {}
    first = omnizarr.create_array(CacheStore(MemoryStore(values)), data=np.zeros(10), chunks=(5,))
    second = omnizarr.open_array(CacheStore(MemoryStore(values)))
    assert second[...].sum() == 0
    first[2:7] = 1
    assert second[...].sum() == 5
    second[6:9] = 2
    assert first[...].sum() == 4 + 6


def test_directory_keeps_values_of_an_object_store_and_asks_whether_they_are_the_same(tmp_path):
    import obstore.store

    from omnizarr.stores import ObjectStore

    below = FaultyStore(ObjectStore(obstore.store.MemoryStore()))
    below.set("a", b"x" * 1000)
    store = CacheStore(below, tmp_path)
    for expected in (1000, 0):
        below.reset()
        assert bytes(store.get("a")) == b"x" * 1000
        assert below.bytes_read == expected
    below.set("a", b"new")
    assert bytes(store.get("a")) == b"new"

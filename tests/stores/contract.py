"""What every store must do. A store's own tests inherit `StoreContract` and say how to make one.

Keys that are both a value and a prefix of others are left out: a file system cannot have them.
"""

import contextlib
import pickle
import threading
import time
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from omnizarr.errors import InvalidKeyError, ReadOnlyError, StoreLimitError
from omnizarr.stores import Store, verbs

INVALID_KEYS = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/../b",
    "a/..",
    "a/./b",
    "./a",
    "a\0b",
    "a\\b",
    "..\\a",
    "C:",
    "C:/a",
    "c:\\a",
    "//host/share",
    "\ud800",
    ".omnizarr-x.tmp",
    "a/.omnizarr-x.lock",
]

VALID_KEYS = [
    "a",
    ".zarray",
    "zarr.json",
    "c/0/1/2",
    "0.0",
    "ä/β/c 1",
    "...",
    "a:b",
    "..a",
    "x" * 200,
    "a\nb",
    "a%2F..",
]


class StoreContract:
    """Facts about every store; `store` gives an empty one that can be written."""

    picklable = True
    listing = "complete"

    @pytest.fixture
    def store(self):
        raise NotImplementedError

    # -- values

    @pytest.mark.parametrize("value", [b"", b"\0", b"abc", bytes(range(256)) * 1000])
    def test_value_set_is_the_value_got(self, store, value):
        store.set("a/b", value)
        assert bytes(store.get("a/b")) == value
        assert store.size("a/b") == len(value)
        assert store.exists("a/b")

    @pytest.mark.parametrize("others", [0, 3, 100])
    def test_has_any_looks_directly_below_the_prefix(self, store, others):
        names = ["zarr.json", ".zarray"]
        assert not verbs.has_any(store, "", names)
        assert not verbs.has_any(store, "a/", names)
        for number in range(others):
            store.set(f"a/{number}", b"")
        store.set("a/zarr.json2", b"")
        store.set("a/b/zarr.json", b"")
        assert not verbs.has_any(store, "a/", names)
        assert not verbs.has_any(store, "a/b/", [])
        assert verbs.has_any(store, "a/b/", names)
        assert verbs.has_any(store, "a/b", iter(names))
        store.set("a/.zarray", b"")
        assert verbs.has_any(store, "a/", names)

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_value_may_be_any_buffer(self, store, kind):
        store.set("a", kind(b"abc"))
        assert bytes(store.get("a")) == b"abc"

    def test_value_is_not_touched_by_later_changes_of_the_buffer(self, store):
        buffer = bytearray(b"abc")
        store.set("a", buffer)
        buffer[:] = b"xyz"
        assert bytes(store.get("a")) == b"abc"

    @pytest.mark.parametrize("value", ["text", 3, None])
    def test_value_that_is_no_buffer_is_refused_and_the_old_one_stays(self, store, value):
        store.set("a", b"old")
        with pytest.raises(TypeError):
            store.set("a", value)
        assert bytes(store.get("a")) == b"old"
        assert list(store.list()) == ["a"]

    def test_later_value_replaces_earlier(self, store):
        store.set("a", b"a long old value")
        store.set("a", b"new")
        assert bytes(store.get("a")) == b"new"
        assert list(store.list()) == ["a"]

    def test_missing_key_is_none(self, store):
        assert store.get("a/b") is None
        assert store.get("a/b", (0, 1)) is None
        assert verbs.get_spans(store, "a/b", [(0, 1)]) is None
        assert verbs.read_into(store, "a/b", memoryview(bytearray(1))) is None
        assert store.size("a/b") is None
        assert verbs.stamp(store, "a/b") is None
        assert not store.exists("a/b")

    def test_prefix_is_no_key(self, store):
        store.set("a/b/c", b"1")
        for key in ("a", "a/b"):
            assert store.get(key) is None
            assert store.get(key, (0, 1)) is None
            assert verbs.get_spans(store, key, [(0, 1)]) is None
            assert verbs.read_into(store, key, memoryview(bytearray(1))) is None
            assert store.size(key) is None
            assert verbs.stamp(store, key) is None
            assert not store.exists(key)
            store.delete(key)
        assert bytes(store.get("a/b/c")) == b"1"

    def test_what_is_below_a_value_is_missing(self, store):
        store.set("a", b"1")
        assert store.get("a/b") is None
        assert store.size("a/b/c") is None
        assert store.list_dir("a/") == ([], [])
        assert list(store.list_prefix("a/")) == []
        store.delete("a/b")
        verbs.delete_prefix(store, "a/")
        assert bytes(store.get("a")) == b"1"

    def test_equal_stamps_are_of_equal_values(self, store):
        values = {}
        for number in range(300):
            if number == 150:
                time.sleep(0.2)  # time enough for files to have a stamp, which what follows must not share
            for new in (None, b"%04d" % number):
                if new is not None:
                    store.set("a/b", new)
                before = verbs.stamp(store, "a/b")
                value = store.get("a/b")
                if before is not None and before == verbs.stamp(store, "a/b"):
                    assert values.setdefault(before, value) == value

    @pytest.mark.parametrize(
        "span", [(0, None), (0, 4), (2, 5), (2, None), (3, 3), (0, 99), (8, 99), (10, None), (50, 60), (-3, None)]
    )
    def test_span_is_a_slice(self, store, span):
        value = b"0123456789"
        store.set("a", value)
        assert bytes(store.get("a", span)) == value[slice(*span)]
        assert [bytes(part) for part in verbs.get_spans(store, "a", [span, (1, 2)])] == [value[slice(*span)], b"1"]

    def test_span_from_the_end_beyond_the_start_is_everything(self, store):
        store.set("a", b"012")
        assert bytes(store.get("a", (-9, None))) == b"012"

    def test_huge_span_allocates_no_more_than_there_is(self, store):
        store.set("a", b"012")
        assert bytes(store.get("a", (1, 2**62))) == b"12"
        assert bytes(store.get("a", (2**62, 2**63))) == b""

    @pytest.mark.parametrize(
        ("size", "start", "returned", "filled"),
        [
            (10, 0, 10, b"0123456789"),
            (4, 0, 10, b"0123"),
            (12, 0, 10, b"0123456789.."),
            (4, 3, 7, b"3456"),
            (7, 3, 7, b"3456789"),
            (4, 8, 2, b"89.."),
            (4, 10, 0, b"...."),
            (4, 99, 0, b"...."),
            (0, 0, 10, b""),
        ],
    )
    def test_read_into_fills_and_returns_what_the_value_had(self, store, size, start, returned, filled):
        store.set("a", b"0123456789")
        out = bytearray(b"." * size)
        assert verbs.read_into(store, "a", memoryview(out), start) == returned
        assert out == filled

    def test_get_within_refuses_values_that_are_larger(self, store):
        store.set("a", b"0123456789")
        assert bytes(verbs.get_within(store, "a", 10)) == b"0123456789"
        assert verbs.get_within(store, "missing", 10) is None
        with pytest.raises(StoreLimitError, match="10 bytes"):
            verbs.get_within(store, "a", 9)

    def test_get_many_within_answers_every_key_and_refuses_values_that_are_larger(self, store):
        store.set("a", b"0123456789")
        store.set("b/c", b"345")
        keys = ["b/c", "missing", "a", "b/c"]
        answers = {i: value and bytes(value) for i, value in verbs.get_many_within(store, iter(keys), 10)}
        assert answers == {0: b"345", 1: None, 2: b"0123456789", 3: b"345"}
        with pytest.raises(StoreLimitError, match="10 bytes"):
            list(verbs.get_many_within(store, ["b/c", "a"], 9))

    def test_get_within_returns_an_empty_value(self, store):
        store.set("a", b"")
        assert bytes(verbs.get_within(store, "a", 10)) == b""
        assert [(i, bytes(value)) for i, value in verbs.get_many_within(store, ["a"], 10)] == [(0, b"")]

    def test_get_within_returns_a_value_that_is_larger_than_a_probe(self, store):
        value = bytes(range(256)) * (1 << 16) + b"end"  # 16 MiB and three bytes
        store.set("a", value)
        assert verbs.get_within(store, "a", len(value)) == value
        with pytest.raises(StoreLimitError, match=f"{len(value)} bytes"):
            verbs.get_within(store, "a", len(value) - 1)

    def test_get_stamped_within_refuses_values_that_are_larger(self, store):
        store.set("a", b"0123456789")
        value, stamp = verbs.get_stamped_within(store, "a", None, 10)
        assert bytes(value) == b"0123456789"
        assert stamp == verbs.get_stamped(store, "a").stamp
        assert verbs.get_stamped_within(store, "missing", None, 10) == (None, None)
        with pytest.raises(StoreLimitError, match="10 bytes"):
            verbs.get_stamped_within(store, "a", None, 9)

    def test_get_many_answers_every_request(self, store):
        store.set("a", b"012")
        store.set("b/c", b"345")
        requests = [("b/c", None), ("missing", None), ("a", (1, 2)), ("b/c", None)]
        answers = {i: None if value is None else bytes(value) for i, value in verbs.get_many(store, iter(requests))}
        assert answers == {0: b"345", 1: None, 2: b"1", 3: b"345"}

    def test_set_many_sets_all(self, store):
        verbs.set_many(store, ((f"a/{i}", bytes([i])) for i in range(5)))
        assert [bytes(store.get(f"a/{i}")) for i in range(5)] == [bytes([i]) for i in range(5)]

    # -- conditional and partial writes

    @pytest.mark.parametrize("value", [b"", b"1", b"first"])
    def test_set_if_absent_sets_once(self, store, value):
        assert verbs.set_if_absent(store, "a/b", value) is True
        assert verbs.set_if_absent(store, "a/b", value) is False
        assert verbs.set_if_absent(store, "a/b", b"second") is False
        assert bytes(store.get("a/b")) == value
        assert list(store.list()) == ["a/b"]

    def test_of_many_set_if_absent_exactly_one_wins(self, store):
        for number in range(5):
            barrier, winners = threading.Barrier(8), []

            def compete(name, key=f"a/{number}", barrier=barrier, winners=winners):
                barrier.wait()
                if verbs.set_if_absent(store, key, name):
                    winners.append(name)

            in_threads(compete, [bytes([65 + i]) * 3 for i in range(8)])
            assert [bytes(store.get(f"a/{number}"))] == winners

    def test_set_partial_replaces_a_part(self, store):
        store.set("a", b"0123456789")
        verbs.set_partial(store, "a", 2, b"ab")
        assert bytes(store.get("a")) == b"01ab456789"

    def test_set_partial_makes_the_value_longer(self, store):
        store.set("a", b"01")
        verbs.set_partial(store, "a", 1, b"abc")
        verbs.set_partial(store, "a", 6, b"x")
        assert bytes(store.get("a")) == b"0abc\0\0x"

    def test_set_partial_of_a_missing_key_begins_with_zeros(self, store):
        verbs.set_partial(store, "a/b", 2, b"x")
        assert bytes(store.get("a/b")) == b"\0\0x"

    def test_set_partial_before_the_beginning_is_refused(self, store):
        with pytest.raises(ValueError, match="-1"):
            verbs.set_partial(store, "a", -1, b"x")

    def test_disjoint_set_partial_from_threads_loses_nothing(self, store):
        store.set("a", bytes(64))

        def write(i):
            for j in range(8):
                verbs.set_partial(store, "a", 8 * i + j, b"x")

        in_threads(write, range(8))
        assert bytes(store.get("a")) == b"x" * 64

    # -- deleting

    def test_deleted_key_is_missing(self, store):
        store.set("a/b", b"1")
        store.delete("a/b")
        assert store.get("a/b") is None
        assert list(store.list()) == []

    def test_deleting_a_missing_key_is_no_error(self, store):
        store.delete("a/b")
        verbs.delete_many(store, ["a", "c/d"])
        verbs.delete_prefix(store, "x/")

    def test_deleting_keeps_the_neighbours(self, store):
        verbs.set_many(store, [("a/b", b"1"), ("a/c", b"2"), ("a/d", b"3")])
        verbs.delete_many(store, ["a/b", "a/c"])
        assert list(store.list()) == ["a/d"]

    def test_delete_prefix_ends_at_names(self, store):
        verbs.set_many(store, [("a/b", b"1"), ("a/c/d", b"2"), ("ab", b"3"), ("ac/d", b"4")])
        verbs.delete_prefix(store, "a")
        assert sorted(store.list()) == ["ab", "ac/d"]

    def test_delete_prefix_of_everything_empties_the_store(self, store):
        verbs.set_many(store, [("a/b", b"1"), ("c", b"2")])
        verbs.delete_prefix(store, "")
        assert list(store.list()) == []
        store.set("c/d", b"3")
        assert list(store.list()) == ["c/d"]

    def test_a_value_is_copied_to_another_key(self, store):
        store.set("a/b", b"12")
        store.set("c", b"3")
        assert verbs.copy_value(store, "a/b", "x/y")
        assert verbs.copy_value(store, "a/b", "c")
        assert [store.get(key) for key in ("a/b", "x/y", "c")] == [b"12"] * 3

    def test_a_missing_value_is_not_copied(self, store):
        store.set("c", b"3")
        assert not verbs.copy_value(store, "a", "c")
        assert store.get("c") == b"3"
        with pytest.raises(InvalidKeyError):
            verbs.copy_value(store, "c", "../c")

    def test_a_prefix_is_moved_in_one_step_or_not_at_all(self, store):
        values = {"a/b/x": b"1", "a/b/c/y": b"2", "a/bb": b"3"}
        for key, value in values.items():
            store.set(key, value)
        if verbs.move_prefix(store, "a/b", "n/m"):
            values = {"n/m/x": b"1", "n/m/c/y": b"2", "a/bb": b"3"}
        assert {key: bytes(store.get(key)) for key in store.list()} == values

    def test_a_prefix_is_not_moved_onto_another(self, store):
        for key in ("a/x", "b/y"):
            store.set(key, b"1")
        assert not verbs.move_prefix(store, "a/", "b/")
        assert sorted(store.list()) == ["a/x", "b/y"]

    def test_a_prefix_that_is_missing_is_not_moved(self, store):
        store.set("c", b"3")
        assert not verbs.move_prefix(store, "a", "b")
        assert list(store.list()) == ["c"]

    def test_value_may_become_a_prefix_and_back_after_deleting(self, store):
        store.set("a", b"1")
        store.delete("a")
        store.set("a/b", b"2")
        store.delete("a/b")
        store.set("a", b"3")
        assert list(store.list()) == ["a"]

    # -- listing

    def test_list_dir_as_in_the_specification(self, store):
        verbs.set_many(store, ((key, b"") for key in ("a/b", "a/c", "a/d/e", "a/f/g")))
        assert store.list_dir("a/") == (["a/b", "a/c"], ["a/d/", "a/f/"])
        assert store.list_dir("a") == (["a/b", "a/c"], ["a/d/", "a/f/"])
        assert store.list_dir("b/") == ([], [])
        assert store.list_dir("") == ([], ["a/"])

    def test_list_sizes_are_the_keys_of_list_prefix_with_their_sizes(self, store):
        verbs.set_many(store, ((key, b"x" * size) for size, key in enumerate(("a/b", "a/c/d", "e/f/g"))))
        assert sorted(verbs.list_sizes(store, "a/")) == [("a/b", 0), ("a/c/d", 1)]
        assert sorted(verbs.list_sizes(store, "a/c")) == [("a/c/d", 1)]
        assert sorted(verbs.list_sizes(store, "")) == [("a/b", 0), ("a/c/d", 1), ("e/f/g", 2)]
        assert list(verbs.list_sizes(store, "x/")) == []

    def test_values_with_equal_digests_are_equal(self, store):
        verbs.set_many(store, (("a/b", b"1"), ("a/c", b"22"), ("a/d/e", b"1"), ("f", b"22")))
        with contextlib.suppress(NotImplementedError):  # most list none
            found = dict(verbs.list_digests(store, "a/"))
            assert found.keys() == {"a/b", "a/c", "a/d/e"}
            assert found["a/c"] is None or found["a/c"] not in (found["a/b"], found["a/d/e"])

    def test_list_prefix_as_in_the_specification(self, store):
        verbs.set_many(store, ((key, b"") for key in ("a/b", "a/c/d", "e/f/g")))
        assert sorted(store.list_prefix("a/")) == ["a/b", "a/c/d"]
        assert sorted(store.list_prefix("a/c")) == ["a/c/d"]
        assert sorted(store.list_prefix("")) == sorted(store.list()) == ["a/b", "a/c/d", "e/f/g"]
        assert list(store.list_prefix("x/")) == []

    def test_listing_may_be_left_and_the_store_changed_meanwhile(self, store):
        verbs.set_many(store, ((f"a/{i}", b"") for i in range(20)))
        listed = store.list_prefix("a/")
        next(listed)
        for i in range(20):
            store.delete(f"a/{i}")
        list(listed)
        assert list(store.list()) == []

    # -- keys

    @pytest.mark.parametrize("key", VALID_KEYS)
    def test_unusual_key_is_a_key(self, store, key):
        store.set(key, b"1")
        assert bytes(store.get(key)) == b"1"
        assert list(store.list()) == [key]
        with store.lock(key):
            store.delete(key)
        assert list(store.list()) == []

    @pytest.mark.parametrize("key", INVALID_KEYS)
    def test_invalid_key_is_refused_by_every_verb(self, store, key):
        out = memoryview(bytearray(1))
        store.set("a", b"1")
        requests = [
            lambda: store.get(key),
            lambda: store.get(key, (0, 1)),
            lambda: list(verbs.get_many(store, [(key, None)])),
            lambda: verbs.get_spans(store, key, [(0, 1)]),
            lambda: verbs.read_into(store, key, out),
            lambda: store.exists(key),
            lambda: verbs.has_any(store, "", [key]),
            lambda: store.size(key),
            lambda: store.set(key, b"1"),
            lambda: verbs.set_many(store, [(key, b"1")]),
            lambda: verbs.set_if_absent(store, key, b"12"),
            lambda: verbs.set_partial(store, key, 0, b"1"),
            lambda: store.delete(key),
            lambda: verbs.delete_many(store, [key]),
            lambda: store.lock(key).__enter__(),
        ]
        for verb in requests:
            with pytest.raises(InvalidKeyError) as caught:
                verb()
            assert caught.value.key is not None
        assert list(store.list()) == ["a"]

    @pytest.mark.parametrize("prefix", ["/", "..", "../", "a/../", "/a/", "a//", "a\\", "C:/", "a\0/"])
    def test_invalid_prefix_is_refused(self, store, prefix):
        for verb in (
            partial(verbs.delete_prefix, store),
            store.list_dir,
            lambda prefix: list(store.list_prefix(prefix)),
        ):
            with pytest.raises(InvalidKeyError):
                verb(prefix)

    # -- read-only

    def test_read_only_store_reads_and_does_not_write(self, store):
        store.set("a", b"1")
        view = store.with_read_only()
        assert view.read_only
        assert not store.read_only
        assert bytes(view.get("a")) == b"1"
        requests = [
            lambda: view.set("a", b"2"),
            lambda: verbs.set_many(view, [("a", b"2")]),
            lambda: verbs.set_if_absent(view, "b", b"12"),
            lambda: verbs.set_partial(view, "a", 0, b"2"),
            lambda: view.delete("a"),
            lambda: verbs.delete_many(view, ["a"]),
            lambda: verbs.delete_prefix(view, ""),
            lambda: view.lock("a").__enter__(),
        ]
        for verb in requests:
            with pytest.raises(ReadOnlyError):
                verb()
        assert bytes(store.get("a")) == b"1"

    def test_read_only_view_leads_back_to_a_store_that_writes(self, store):
        store.with_read_only().with_read_only(read_only=False).set("a", b"1")
        assert bytes(store.get("a")) == b"1"

    # -- locks

    def test_lock_excludes_other_threads(self, store):
        store.set("n", b"0")

        def count(_):
            for _ in range(25):
                with store.lock("n"):
                    store.set("n", b"%d" % (int(bytes(store.get("n"))) + 1))

        in_threads(count, range(8))
        assert bytes(store.get("n")) == b"200"

    def test_lock_holds_while_the_value_comes_and_goes(self, store):
        inside, most = 0, 0

        def enter(i):
            nonlocal inside, most
            for _ in range(20):
                with store.lock("a/b/n"):
                    inside += 1
                    most = max(most, inside)
                    if i % 2:
                        store.set("a/b/n", b"1")
                        store.set("a/b/n", b"2")
                    else:
                        store.delete("a/b/n")
                    inside -= 1

        in_threads(enter, range(8))
        assert most == 1

    def test_lock_may_be_entered_twice_by_one_thread(self, store):
        with store.lock("a"), store.lock("a"):
            verbs.set_partial(store, "a", 0, b"x")
        with store.lock("a"):
            pass

    def test_locks_of_different_keys_do_not_wait_for_each_other(self, store):
        done = threading.Event()

        def enter(key):
            with store.lock(key):
                done.set()

        store.set("x/a", b"1")
        with store.lock("x/a"), store.lock("x/missing"):
            for key in ("x/b", "x/c", "y/a"):
                done.clear()
                thread = threading.Thread(target=enter, args=(key,), daemon=True)
                thread.start()
                assert done.wait(10)
                thread.join()

    def test_lock_holds_while_everything_around_it_is_deleted(self, store):
        verbs.set_many(store, [("a/b", b"1"), ("a/c/d", b"2")])
        entered = threading.Event()

        def enter():
            with store.lock("a/b"):
                entered.set()

        thread = threading.Thread(target=enter, daemon=True)
        with store.lock("a/b"):
            verbs.delete_prefix(store, "a/")
            verbs.delete_prefix(store, "")
            thread.start()
            assert not entered.wait(0.05)
        thread.join(10)
        assert entered.is_set()
        assert store.list_dir("") == ([], [])

    def test_lock_is_released_by_an_exception(self, store):
        with pytest.raises(KeyError), store.lock("a"):
            raise KeyError
        in_threads(lambda _: store.lock("a").__enter__(), [0])

    def test_lock_leaves_nothing_behind(self, store):
        with store.lock("a/b/c"):
            assert list(store.list()) == []
        assert list(store.list()) == []
        assert store.list_dir("") == ([], [])

    # -- the specification's names

    def test_verbs_of_the_specification(self, store):
        store.set("a", b"0123456789")
        ranges = [("a", (2, 3)), ("missing", (0, None)), ("a", (8, None)), ("a", (0, None))]
        values = [None if value is None else bytes(value) for value in verbs.get_partial_values(store, ranges)]
        assert values == [b"234", None, b"89", b"0123456789"]
        verbs.set_partial_values(store, [("a", 0, b"x"), ("b/c", 0, b"y"), ("a", 9, b"z")])
        assert bytes(store.get("a")) == b"x12345678z"
        verbs.set_many(store, [("b/d", b""), ("e", b""), ("f", b"")])
        store.delete("a")
        verbs.delete_many(store, ["e", "f"])
        assert sorted(store.list()) == ["b/c", "b/d"]
        verbs.delete_prefix(store, "b/")
        assert list(store.list()) == []

    # -- the store itself

    def test_is_a_store_that_shows_itself(self, store):
        assert isinstance(store, Store)
        assert repr(store).endswith(")")
        assert store == store  # noqa: PLR0124
        assert hash(store) == hash(store)

    def test_pickles_or_says_why_not(self, store):
        store.set("a", b"1")
        if not self.picklable:
            with pytest.raises(TypeError, match="pickle"):
                pickle.dumps(store)
            return
        copy = pickle.loads(pickle.dumps(store))
        assert copy == store
        assert hash(copy) == hash(store)
        assert bytes(copy.get("a")) == b"1"
        with copy.lock("b"):
            copy.set("b", b"2")
        assert bytes(copy.get("b")) == b"2"
        assert store.exists("b") or not store.features.is_shared

    def test_says_whether_it_can_list(self, store):
        store.set("a", b"1")
        assert store.supports_listing
        assert store.features.listing == self.listing
        assert list(store.list()) == ["a"]

    def test_closing_twice_does_no_harm(self, store):
        with store:
            store.set("a", b"1")
        store.close()

    def test_behaves_like_a_dictionary(self, store):
        def machine():
            verbs.delete_prefix(store, "")
            return LikeADictionary(store)

        run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=30, deadline=None))


def in_threads(function, arguments):
    """Call `function` with each argument, each in a thread of its own, and raise what it raised."""
    errors = []

    def call(argument):
        try:
            function(argument)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=call, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


# Leaves of a tree: none is a prefix of another.
KEYS = st.sampled_from(["zarr.json", "a/zarr.json", "a/c/0", "a/c/1", "a/c/10", "ab/0.0", "ab/x/y/z", "b"])
PREFIXES = st.sampled_from(["", "a/", "a", "a/c/", "ab/", "ab/x", "missing/"])
VALUES = st.binary(max_size=40)


class LikeADictionary(RuleBasedStateMachine):
    """A store beside a dictionary; both must say the same after every step."""

    def __init__(self, store):
        super().__init__()
        self.store = store
        self.model = {}

    @initialize()
    def begin(self):
        assert list(self.store.list()) == []

    @rule(key=KEYS, value=VALUES)
    def set(self, key, value):
        self.store.set(key, value)
        self.model[key] = value

    @rule(key=KEYS, value=VALUES)
    def set_if_absent(self, key, value):
        assert verbs.set_if_absent(self.store, key, value) == (key not in self.model)
        self.model.setdefault(key, value)

    @rule(key=KEYS, start=st.integers(0, 50), value=VALUES)
    def set_partial(self, key, start, value):
        verbs.set_partial(self.store, key, start, value)
        old = self.model.get(key, b"").ljust(start, b"\0")
        self.model[key] = old[:start] + value + old[start + len(value) :]

    @rule(key=KEYS)
    def delete(self, key):
        self.store.delete(key)
        self.model.pop(key, None)

    @rule(prefix=PREFIXES)
    def delete_prefix(self, prefix):
        verbs.delete_prefix(self.store, prefix)
        prefix = prefix and prefix.removesuffix("/") + "/"
        self.model = {key: value for key, value in self.model.items() if not key.startswith(prefix)}

    @rule(key=KEYS, start=st.integers(-50, 50), length=st.none() | st.integers(0, 50))
    def get_span(self, key, start, length):
        span = (start, None if length is None or start < 0 else start + length)
        value = self.store.get(key, span)
        expected = self.model.get(key)
        assert (None if value is None else bytes(value)) == (None if expected is None else expected[slice(*span)])

    @rule(key=KEYS, size=st.integers(0, 50), start=st.integers(0, 50))
    def read_into(self, key, size, start):
        out = bytearray(b"." * size)
        returned = verbs.read_into(self.store, key, memoryview(out), start)
        expected = self.model.get(key)
        if expected is None:
            assert returned is None
            assert out == b"." * size
        else:
            assert returned == len(expected[start:])
            assert out == expected[start : start + size].ljust(size, b".")

    @rule(prefix=PREFIXES)
    def list_prefix(self, prefix):
        full = prefix and prefix.removesuffix("/") + "/"
        below = [key for key in self.model if key.startswith(full)]
        assert sorted(self.store.list_prefix(prefix)) == sorted(below)
        keys = sorted(key for key in below if "/" not in key[len(full) :])
        prefixes = sorted({full + key[len(full) :].split("/")[0] + "/" for key in below if key not in keys})
        assert self.store.list_dir(prefix) == (keys, prefixes)

    @invariant()
    def same_keys(self):
        assert sorted(self.store.list()) == sorted(self.model)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def get(self, data):
        key = data.draw(st.sampled_from(sorted(self.model)))
        assert bytes(self.store.get(key)) == self.model[key]
        assert self.store.size(key) == len(self.model[key])

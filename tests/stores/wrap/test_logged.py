import logging

import pytest

from omnizarr.errors import ReadOnlyError
from omnizarr.storage import LoggingStore, MemoryStore
from omnizarr.stores import verbs
from tests.stores.contract import StoreContract


class TestLoggingStore(StoreContract):
    @pytest.fixture
    def store(self):
        return LoggingStore(MemoryStore())


def logged(caplog, store, do):
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "omnizarr.stores"):
        do(store)
    return [(record.verb, record.key, record.bytes) for record in caplog.records]


@pytest.mark.parametrize(
    ("do", "expected"),
    [
        (lambda store: store.set("a", b"123"), [("set", "a", 3)]),
        (lambda store: store.get("key"), [("get", "key", 4)]),
        (lambda store: store.get("key", (1, 3)), [("get", "key", 2)]),
        (lambda store: store.get("missing"), [("get", "missing", None)]),
        (
            lambda store: list(verbs.get_many(store, [("key", None), ("b", None)])),
            [("get", "key", 4), ("get", "b", None)],
        ),
        (lambda store: verbs.read_into(store, "key", memoryview(bytearray(2))), [("read_into", "key", 2)]),
        (lambda store: verbs.get_spans(store, "key", [(0, 1), (2, 4)]), [("get_spans", "key", 3)]),
        (lambda store: verbs.set_many(store, [("a", b"1"), ("b", b"22")]), [("set", "a", 1), ("set", "b", 2)]),
        (lambda store: verbs.stamp(store, "key"), [("stamp", "key", None)]),
        (lambda store: store.delete("key"), [("delete", "key", None)]),
        (lambda store: list(store.list_dir("")), [("list_dir", "", None)]),
        (lambda store: list(store.list()), [("list", "", None)]),
        (lambda store: verbs.get_stamped(store, "key"), [("get_stamped", "key", 4)]),
        (
            lambda store: verbs.get_stamped(store, "key", verbs.stamp(store.store, "key")),
            [("get_stamped", "key", None)],
        ),
        (lambda store: store.update("key", lambda old: old + b"4"), [("get", "key", 4), ("set", "key", 5)]),
        (lambda store: verbs.set_if_absent(store, "key", b"1"), [("set_if_absent", "key", 0)]),
        (lambda store: verbs.pinned(store, "key"), []),
    ],
)
def test_record_says_verb_key_and_bytes(caplog, do, expected):
    assert logged(caplog, LoggingStore(MemoryStore({"key": b"0123"})), do) == expected


def test_record_says_seconds(caplog):
    logged(caplog, LoggingStore(MemoryStore()), lambda store: store.set("a", b"1"))
    assert caplog.records[0].seconds >= 0


def test_request_that_fails_is_logged(caplog):
    store = LoggingStore(MemoryStore(read_only=True))

    def refused(store):
        with pytest.raises(ReadOnlyError):
            store.set("a", b"1")

    assert logged(caplog, store, refused) == [("set", "a", None)]


def test_handler_gets_records_of_the_level():
    records = []

    class Keeper(logging.Handler):
        def emit(self, record):
            records.append((record.levelname, record.getMessage().split()[:2]))

    LoggingStore(MemoryStore(), "INFO", Keeper()).get("a")
    assert records == [("INFO", ["get", "'a'"])]


def test_nothing_is_logged_below_the_level(caplog):
    with caplog.at_level(logging.INFO, "omnizarr.stores"):
        LoggingStore(MemoryStore()).get("a")
    assert not caplog.records


@pytest.mark.parametrize(
    ("do", "span"),
    [
        (lambda store: store.get("key"), None),
        (lambda store: store.get("key", (-2, None)), (-2, None)),
        (lambda store: list(verbs.get_many(store, [("key", (1, 3))])), (1, 3)),
        (lambda store: verbs.get_spans(store, "key", [(0, 1), (2, 4)]), ((0, 1), (2, 4))),
        (lambda store: verbs.read_into(store, "key", memoryview(bytearray(2)), 1), (1, 3)),
    ],
)
def test_record_says_which_part_was_asked_for(caplog, do, span):
    logged(caplog, LoggingStore(MemoryStore({"key": b"0123"})), do)
    assert [record.span for record in caplog.records] == [span]


def test_values_taken_early_from_many_are_logged_with_those_that_were_not(caplog):
    store = LoggingStore(MemoryStore({"key": b"0123"}))

    def first(store):
        answers = verbs.get_many(store, [("key", None), ("b", None)])
        next(answers)
        answers.close()

    assert logged(caplog, store, first)[0] == ("get", "key", 4)

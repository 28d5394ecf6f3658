import pickle
import threading
import time

import pytest

import omnizarr
from omnizarr.errors import StoreError
from omnizarr.stores import MemoryStore, MetricsStore, verbs
from omnizarr.stores.wrap.metrics import Figures, Report
from tests.fakes import FaultyStore
from tests.stores.contract import StoreContract, in_threads


class TestMetricsStore(StoreContract):
    @pytest.fixture
    def store(self):
        return MetricsStore(MemoryStore())


def test_report_counts_requests_and_bytes_per_verb():
    store = MetricsStore(MemoryStore({"a": b"0123456789"}))
    store.get("a")
    store.get("a", (0, 4))
    store.get("missing")
    list(verbs.get_many(store, [("a", (8, None)), ("missing", None)]))
    store.set("b", b"123")
    verbs.get_stamped(store, "b")
    store.exists("b")
    counted = {verb: (figures.requests, figures.nbytes) for verb, figures in store.report().verbs.items()}
    assert counted == {"get": (5, 16), "set": (1, 3), "get_stamped": (1, 3), "exists": (1, 0)}
    assert store.report().total[:2] == (8, 22)


def test_report_counts_failures():
    faulty = FaultyStore(MemoryStore())
    faulty.fail("get", 2)
    store = MetricsStore(faulty)
    store.get("a")
    with pytest.raises(StoreError):
        store.get("a")
    assert store.report().verbs["get"].failed == 1
    assert store.report().verbs["get"].requests == 2


def test_seconds_are_those_of_the_requests():
    store = MetricsStore(FaultyStore(MemoryStore({"a": b"1"}), delay=0.02))
    store.get("a")
    store.get("a")
    assert 0.04 <= store.report().verbs["get"].seconds < 2


def test_time_between_the_keys_of_a_listing_is_not_that_of_the_store():
    store = MetricsStore(MemoryStore({"a": b"1", "b": b"2"}))
    for _ in store.list():
        time.sleep(0.05)
    assert store.report().verbs["list"].seconds < 0.05


def test_most_requests_at_once_are_counted():
    store = MetricsStore(FaultyStore(MemoryStore(), delay=0.05))
    barrier = threading.Barrier(6)

    def ask(_):
        barrier.wait()
        store.get("a")

    in_threads(ask, range(6))
    store.get("a")
    assert store.report().max_in_flight == 6
    store.reset()
    assert store.report() == Report({}, 0)


def test_threads_are_counted_correctly():
    store = MetricsStore(MemoryStore({"a": b"123"}))
    in_threads(lambda _: [store.get("a") for _ in range(200)], range(8))
    assert store.report().total[:2] == (1600, 4800)


def test_report_is_a_value_that_stays():
    store = MetricsStore(MemoryStore())
    before = store.report()
    store.get("a")
    assert before == Report({}, 0)
    with pytest.raises(TypeError):
        before.verbs["get"] = Figures()


def test_table_has_a_row_per_verb_and_the_sums():
    report = Report({"get": Figures(1200, 3_000_000, 1.5, 1), "list_dir": Figures(2, 0, 0.25, 0)}, 64)
    assert str(report).splitlines() == [
        "          requests         bytes    seconds  failed",
        "get          1,200     3,000,000      1.500       1",
        "list_dir         2             0      0.250       0",
        "all          1,202     3,000,000      1.750       1",
        "at most 64 at once",
    ]


def test_requests_are_reported_as_they_end():
    told = []
    store = MetricsStore(MemoryStore({"a": b"0123"}), on_request=told.append)
    store.get("a", (1, 3))
    verbs.get_spans(store, "a", [(0, 1), (3, None)])
    assert [one[:4] for one in told] == [("get", "a", (1, 3), 2), ("get_spans", "a", ((0, 1), (3, None)), 2)]
    assert all(one.seconds >= 0 and not one.failed for one in told)
    assert told[0].start < told[1].start


def test_read_only_view_counts_with_its_store():
    store = MetricsStore(MemoryStore())
    store.with_read_only().get("a")
    assert store.report().total.requests == 1


def test_copy_that_was_pickled_begins_again():
    store = MetricsStore(MemoryStore({"a": b"1"}))
    store.get("a")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.report() == Report({}, 0)
    assert copy.get("a") == b"1"


def test_array_is_read_by_one_request_per_chunk():
    values = {}
    omnizarr.create_array(values, data=list(range(100)), chunks=(10,))
    store = MetricsStore(MemoryStore(values))
    array = omnizarr.open_array(store, mode="r")
    store.reset()
    assert array[...].sum() == 4950
    report = store.report()
    assert report.total.requests == 10
    assert report.total.nbytes == sum(len(value) for key, value in values.items() if key.startswith("c/"))


@pytest.mark.parametrize("shards", [None, (8, 8)])
def test_part_of_an_array_is_read_by_one_request_per_small_chunk(shards):
    values = {}
    omnizarr.create_array(values, data=[[1] * 16] * 16, chunks=(4, 4), shards=shards)
    store = MetricsStore(MemoryStore(values))
    array = omnizarr.open_array(store, mode="r")
    store.reset()
    assert array[1:3].sum() == 32
    assert store.report().total.requests == (4 if shards is None else 2)

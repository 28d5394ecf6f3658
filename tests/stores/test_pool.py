"""The pool runs every item once, stops at the first failure, and survives a fork."""

import os
import subprocess
import sys
import threading
import time

import pytest

from omnizarr.stores import pool
from omnizarr.support.workers import Pool


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("batch", [1, 3, 100])
def test_every_item_is_done_once(workers, batch):
    done = []
    pool.run(done.append, range(100), workers, batch)
    assert sorted(done) == list(range(100))


@pytest.mark.parametrize("workers", [1, 4])
def test_first_failure_is_raised_and_stops_the_rest(workers):
    done = []

    def task(item):
        if item == 3:
            raise LookupError(item)
        time.sleep(0.001)
        done.append(item)

    with pytest.raises(LookupError):
        pool.run(task, range(10_000), workers, 1)
    assert len(done) < 1000


@pytest.mark.parametrize("is_slow", [False, True])
def test_threads_help_only_with_tasks_that_are_slow(is_slow):
    threads = set()

    def task(item):
        threads.add(threading.get_ident())
        if is_slow:
            time.sleep(0.01)
        return item * 2

    found = dict(pool.gather_near(task, range(40), 4))
    assert found == {item: item * 2 for item in range(40)}
    assert is_slow == (len(threads) > 1)


def test_the_first_failure_of_near_tasks_is_raised():
    def task(item):
        if item == 3:
            raise LookupError(item)

    with pytest.raises(LookupError):
        for _ in pool.gather_near(task, range(10_000), 4):
            pass


def test_no_task_runs_after_return():
    running = threading.Event()

    def task(item):
        if item == 0:
            raise LookupError
        running.set()
        time.sleep(0.05)
        running.clear()

    with pytest.raises(LookupError):
        pool.run(task, range(4), 4, 1)
    assert not running.is_set()


def test_the_iterator_is_not_read_ahead_of_the_work():
    taken = []

    def items():
        for item in range(1000):
            taken.append(item)
            yield item

    def task(item):
        if item == 5:
            raise LookupError

    with pytest.raises(LookupError):
        pool.run(task, items(), 2, 2)
    assert len(taken) < 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_child_of_a_fork_has_a_pool_of_its_own():
    done = []
    pool.run(done.append, range(10), 4, 1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            done.clear()
            pool.run(done.append, range(10), 4, 1)
            status = int(sorted(done) != list(range(10)))
        finally:
            os._exit(status)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.01)
    assert ended[1] == 0


# -- gather ---------------------------------------------------------------------------------


class Crowd:
    """A task that counts how many are at work at once."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds
        self.now = self.most = self.done = 0
        self.guard = threading.Lock()

    def __call__(self, item):
        with self.guard:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.guard:
            self.now -= 1
            self.done += 1
        return item * 10


@pytest.mark.parametrize("workers", [1, 2, 7, 64])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 65, 300])
def test_gather_yields_each_result_once_with_the_place_of_its_item(workers, count):
    found = list(pool.gather(Crowd(), range(count), workers))
    assert sorted(found) == [(number, number * 10) for number in range(count)]


def test_gather_has_as_many_at_work_as_there_are_workers():
    crowd = Crowd(0.05)
    assert len(list(pool.gather(crowd, range(24), 8))) == 24
    assert crowd.most == 8


def test_gather_yields_what_is_done_first_first():
    def task(seconds):
        time.sleep(seconds)
        return seconds

    assert [position for position, _ in pool.gather(task, [0.3, 0.0, 0.1], 3)] == [1, 2, 0]


def test_gather_takes_no_more_items_than_twice_its_workers_ahead():
    taken = []

    def items():
        for number in range(1000):
            taken.append(number)
            yield number

    results = pool.gather(Crowd(), items(), 4)
    for landed in range(1, 20):
        next(results)
        time.sleep(0.005)
        assert len(taken) <= landed + 2 * 4
    results.close()
    assert len(taken) < 60


def test_gather_with_one_worker_asks_for_the_next_only_when_it_is_wanted():
    crowd = Crowd()
    results = pool.gather(crowd, iter(range(10)), 1)
    assert next(results) == (0, 0)
    assert crowd.done == 1


@pytest.mark.parametrize("workers", [1, 4])
def test_error_of_a_task_is_raised_when_nobody_is_at_work_any_more(workers):
    crowd = Crowd(0.01)

    def task(item):
        if item == 5:
            raise KeyError("five")
        return crowd(item)

    with pytest.raises(KeyError, match="five"):
        list(pool.gather(task, range(100), workers))
    assert crowd.now == 0
    assert crowd.done < 100


@pytest.mark.parametrize("workers", [1, 4])
def test_error_of_the_items_is_raised(workers):
    def items():
        yield from range(6)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(pool.gather(Crowd(), items(), workers))


def test_caller_who_has_seen_enough_leaves_nobody_at_work():
    crowd = Crowd(0.02)
    results = pool.gather(crowd, range(1000), 8)
    next(results)
    results.close()
    assert crowd.now == 0
    assert crowd.done < 100


def test_crews_within_crews_come_to_an_end_though_the_pool_has_few_threads(monkeypatch):
    monkeypatch.setattr(pool, "_threads", Pool("few", 2))

    def outer(number):
        return sum(result for _, result in pool.gather(lambda item: item + number, range(5), 5))

    found = dict(pool.gather(outer, range(10), 10))
    assert found == {number: 10 + 5 * number for number in range(10)}


AT_EXIT = """
import atexit
from omnizarr.stores import pool

def last():
    seen = []
    pool.run(seen.append, range(20), 4, 1)
    gathered = [each for _, each in pool.gather(abs, range(20), 4)]
    print(sorted(seen) == list(range(20)), sorted(gathered) == list(range(20)))

atexit.register(last)
"""


@pytest.mark.parametrize("before", ["", "list(pool.gather(abs, range(20), 4))"], ids=["new pool", "pool"])
def test_at_the_end_of_a_program_the_caller_does_all(before):
    done = subprocess.run([sys.executable, "-c", AT_EXIT + before], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n", done.stderr


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("goes_on", [True, False])
def test_relay_uses_each_item_in_order_with_what_was_taken(count, goes_on):
    seen = []

    def use(item, held, take_next):
        if goes_on:
            take_next()
        seen.append((item, *held))

    pool.relay(lambda item: item * item, use, iter(range(count)))
    assert seen == [(item, item * item) for item in range(count)]


def test_relay_takes_the_next_item_while_one_is_used():
    taken = [threading.Event() for _ in range(4)]

    def use(item, _, take_next):
        take_next()
        assert item == 3 or taken[item + 1].wait(10)

    pool.relay(lambda item: taken[item].set(), use, range(4))


def test_relay_takes_no_more_than_one_ahead_and_nothing_before_it_may():
    taken = []

    def use(item, held, take_next):
        time.sleep(0.01)
        assert len(taken) == item + 1
        held.clear()
        take_next()
        time.sleep(0.01)
        assert len(taken) <= item + 2

    pool.relay(taken.append, use, range(4))
    assert taken == [0, 1, 2, 3]


@pytest.mark.parametrize("where", ["take", "use"])
def test_relay_raises_the_error_of_either_part_when_nobody_is_at_work_any_more(where):
    at_work = []

    def take(item):
        at_work.append(item)
        time.sleep(0.02)
        at_work.remove(item)
        if where == "take" and item == 2:
            raise ValueError("boom")

    def use(item, _, take_next):
        take_next()
        if where == "use" and item == 1:
            while not at_work:
                time.sleep(0.001)
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        pool.relay(take, use, range(9))
    assert not at_work


def test_relay_takes_items_itself_where_no_thread_can_help(monkeypatch):
    monkeypatch.setattr(pool, "_threads", Pool("none", 0))
    seen = []

    def use(item, held, take_next):
        take_next()
        seen.append((item, *held))

    pool.relay(str, use, range(3))
    assert seen == [(0, "0"), (1, "1"), (2, "2")]

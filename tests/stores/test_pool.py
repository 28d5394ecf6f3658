"""The pool runs every item once, stops at the first failure, and survives a fork."""

import os
import threading
import time

import pytest

from omnizarr.stores import pool


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

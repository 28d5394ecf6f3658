"""`omnizarr.support.locks`: a lock is free after each interrupt, as with a ``with`` statement up to Python 3.13."""

import sys
import threading

import pytest

from omnizarr.support import locks
from tests.concurrency.interruptions import Interrupter
from tests.stores.contract import in_threads


@pytest.fixture
def interrupter():
    interrupter = Interrupter()
    yield interrupter
    interrupter.close()


@pytest.mark.parametrize("kind", [locks.RLock, locks._Lock])
def test_lock_is_free_wherever_an_interrupt_comes(interrupter, kind):
    lock = kind()
    free = []

    def enter():
        with lock:
            pass

    def check():
        free.append(lock.acquire(timeout=0))
        if free[-1]:
            lock.release()

    at, interrupt = 0, True
    while interrupt is not None:
        at += 1
        interrupt = interrupter(enter, at)
        in_threads(lambda _: check(), [0])
    assert at > 2
    assert all(free)


@pytest.mark.parametrize("kind", [locks.RLock, locks._Lock])
def test_same_thread_enters_again_and_others_wait(kind):
    lock = kind()
    entered = []

    def other():
        entered.append(lock.acquire(timeout=0))
        if entered[-1]:
            lock.release()

    with lock:
        with lock:
            in_threads(lambda _: other(), [0])
        in_threads(lambda _: other(), [0])
    in_threads(lambda _: other(), [0])
    assert entered == [False, False, True]


def test_lock_of_threading_is_used_where_it_is_safe():
    assert (locks.RLock is threading.RLock) == (sys.version_info < (3, 14))

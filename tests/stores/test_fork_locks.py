import os
import threading

import pytest

from omnizarr.stores import fork_locks
from omnizarr.stores.fork_locks import Gate
from tests.stores.contract import in_threads


@pytest.fixture
def calls():
    return []


@pytest.fixture
def gate(calls):
    return Gate(lambda: calls.append("close"), lambda: calls.append("abandon"))


def test_many_are_inside_at_once(gate):
    barrier = threading.Barrier(4)

    def come_in(_):
        with gate.enter():
            barrier.wait(10)

    in_threads(come_in, range(4))


def test_who_is_alone_is_alone_and_nobody_starves(gate):
    inside = 0
    seen = []
    guard = threading.Lock()

    def work(number):
        nonlocal inside
        for _ in range(50):
            if number % 2:
                gate.alone(lambda alone: seen.append((alone, inside)))  # noqa: B023 - called at once
            else:
                with gate.enter():
                    with guard:
                        inside += 1
                    with guard:
                        inside -= 1

    in_threads(work, range(6))
    assert inside == 0
    assert seen == [(True, 0)] * 150


def test_patience_ends(gate):
    with gate.enter():
        results = []

        def come_in(_):
            gate.alone(results.append, 0.01)

        in_threads(come_in, [0])
    assert results == [False]


def fail(_):
    raise KeyError


def test_exception_leaves_the_gate_open(gate):
    with pytest.raises(KeyError), gate.enter():
        fail(None)
    with pytest.raises(KeyError):
        gate.alone(fail)
    alone = []
    in_threads(lambda _: gate.alone(alone.append, 0), [0])
    assert alone == [True]


def test_thread_that_is_inside_is_not_alone(gate):
    with gate.enter():
        assert not gate.alone(bool)
    assert gate.alone(bool)


def test_locks_of_threads_that_have_ended_are_forgotten(gate):
    for _ in range(20):
        in_threads(lambda _: gate.enter().__enter__(), range(2))
    assert len(gate._locks) < 10
    assert gate.alone(bool, 0)


def forked(function):
    """Return the exit code of a child that calls a function."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
class TestFork:
    def test_closes_before_and_both_come_in_afterwards(self, gate, calls):
        def child():
            assert calls == ["close"]
            assert gate.alone(bool, 0)

        assert forked(child) == 0
        assert calls == ["close"]
        with gate.enter():
            pass

    def test_waits_for_those_who_are_inside(self, gate, calls):
        entered, leave = threading.Event(), threading.Event()

        def work():
            with gate.enter():
                entered.set()
                leave.wait(10)
                calls.append("left")

        thread = threading.Thread(target=work)
        thread.start()
        entered.wait(10)
        threading.Timer(0.05, leave.set).start()
        assert forked(lambda: None) == 0
        thread.join(10)
        assert calls == ["left", "close"]

    def test_child_abandons_what_somebody_held_for_too_long(self, gate, calls, monkeypatch):
        monkeypatch.setattr(fork_locks, "_FORK_PATIENCE", 0.02)
        entered, leave = threading.Event(), threading.Event()

        def work():
            with gate.enter():
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=work)
        thread.start()
        entered.wait(10)

        def child():
            assert calls == ["abandon"]
            assert gate.alone(bool, 0)

        assert forked(child) == 0
        leave.set()
        thread.join(10)
        assert calls == []

"""Ctrl-C while a thread waits for an event loop: no request goes on or begins later, and no loop is stuck."""

import asyncio
import threading
import time
from concurrent.futures import CancelledError

import pytest

from omnizarr.stores.remote import loops
from tests.concurrency.interruptions import Interrupter
from tests.concurrency.latecomers import Tally

PATIENCE = 100


@pytest.fixture
def loop():
    own = asyncio.new_event_loop()
    thread = threading.Thread(target=own.run_forever, daemon=True)
    thread.start()
    yield own
    own.call_soon_threadsafe(own.stop)
    thread.join()
    own.close()


@pytest.fixture
def interrupter():
    made = Interrupter()
    yield made
    made.close()


def run(loop, tally):
    async def wait():
        async with tally.later():
            pass

    loops.run(wait(), loop)


def gather(loop, tally):
    async def wait(item):
        async with tally.later():
            return item

    for item, _, call in loops.gather(wait, range(5), 3, loop):  # a comprehension would keep the iterator
        assert call.result() == item


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("verb", [run, gather])
def test_an_interrupt_anywhere_leaves_no_request_and_no_stuck_loop(verb, loop, interrupter):
    tally, at = Tally(), 0
    while True:
        at += 1
        interrupt = interrupter(lambda: verb(loop, tally), at)
        at_work, begun = tally.at_work, tally.begun
        if interrupt is None:
            break
        answered = threading.Event()
        loop.call_soon_threadsafe(answered.set)
        assert answered.wait(PATIENCE), interrupter.where
        time.sleep(0.005)
        assert (at_work, tally.begun) == (0, begun), interrupter.where
    assert at > 10


def test_what_a_coroutine_raises_arrives_and_leaves_the_loop_at_work(loop):
    async def fail():
        raise KeyError("lost")

    async def cancelled():
        raise asyncio.CancelledError

    with pytest.raises(KeyError, match="lost"):
        loops.run(fail(), loop)
    with pytest.raises(CancelledError):  # that of `concurrent.futures`: the request was cancelled, not the caller
        loops.run(cancelled(), loop)
    assert loops.run(asyncio.sleep(0, "done"), loop) == "done"


def test_the_rest_is_cancelled_when_the_caller_stops(loop):
    tally = Tally()

    async def wait(item):
        async with tally.later():
            await asyncio.sleep(PATIENCE if item else 0)

    answers = loops.gather(wait, range(4), 3, loop)
    assert next(answers)[0] == 0
    answers.close()
    assert tally.at_work == 0


def test_a_closed_loop_is_an_error_and_no_wait():
    closed = asyncio.new_event_loop()
    closed.close()
    with pytest.raises(RuntimeError, match="closed"):
        loops.run(asyncio.sleep(0), closed)
    with pytest.raises(RuntimeError, match="closed"):
        next(loops.gather(asyncio.sleep, [0, 0], 2, closed))

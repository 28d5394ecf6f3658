"""Functions that wait, called in an event loop: `omnizarr.stores.asynchronous.called`."""

import asyncio
import contextvars
import gc
import threading
import traceback

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.errors import ArrayNotFoundError
from omnizarr.stores import WrapperStore, asynchronous, pool, waiting
from omnizarr.stores.asynchronous import called, is_awaitable
from tests.aio.stores import Counting, objects, run
from tests.traced import own_threads


def ask(seconds=0.0, answer=None):
    """Wait in a function that is called in a loop."""
    return waiting.here.call.ask(None, asyncio.sleep, seconds, answer)


def test_result_error_and_traceback_are_those_of_the_function():
    assert run(called(lambda a, b: [a, b], 1, b=2)) == [1, 2]
    assert run(called(lambda: [ask(0, 1), ask(0, 2)])) == [1, 2]

    def fails():
        ask()
        raise KeyError("here")

    with pytest.raises(KeyError) as caught:
        run(called(fails))
    assert caught.value.__context__ is None
    assert "fails" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_errors_of_requests_are_raised_where_they_are_made():
    async def request():
        await asyncio.sleep(0)
        raise OSError("no")

    def function():
        try:
            waiting.here.call.ask(None, request)
        except OSError as error:
            return str(error), ask(0, "after")

    assert run(called(function)) == ("no", "after")


def test_cancelled_function_cleans_up_and_may_ask_for_that():
    done = []

    def function():
        try:
            ask(3600)
        except Exception:  # noqa: BLE001 - as a store may
            done.append("handled")
        finally:
            done.append(ask(0.001, "cleaned up"))

    async def main():
        async with asyncio.timeout(0.01):
            await called(function)

    with pytest.raises(TimeoutError):
        run(main())
    assert done == ["cleaned up"]


def test_function_of_a_loop_that_was_given_up_ends():
    done = []

    def function():
        try:
            ask(3600)
        finally:
            done.append("ends")
            ask(0)
            done.append("never")

    call = called(function)
    loop = asyncio.new_event_loop()
    task = loop.create_task(call)
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel = lambda *_: True
    call.close()
    assert done == ["ends"]
    task._log_destroy_pending = False
    loop.close()
    del task, call
    gc.collect()


def test_context_is_that_of_the_task_and_changes_stay_within():
    name = contextvars.ContextVar("name", default="")

    def function(own):
        seen = name.get()
        name.set(own)
        ask()
        return seen, name.get()

    async def main():
        name.set("task")
        return await asyncio.gather(*(called(function, str(number)) for number in range(3))), name.get()

    assert run(main()) == ([("task", "0"), ("task", "1"), ("task", "2")], "task")


def test_objects_of_a_call_are_not_those_of_another_or_of_the_thread():
    names = waiting.Local(list)

    def function(own):
        names.own().append(own)
        ask()
        return names.get()

    async def main():
        return await asyncio.gather(*(called(function, str(number)) for number in range(3)))

    assert run(main()) == [["0"], ["1"], ["2"]]
    assert names.get() == []


def test_call_shares_what_its_thread_holds_meanwhile():
    names = waiting.Local(list)
    assert run(called(names.own)) is not names.get()
    names.own().append("held")
    assert run(called(names.own)) is run(called(names.get)) is names.get()


def test_tasks_of_a_loop_exclude_each_other():
    inside = []

    def function():
        with waiting.here.call.lock("name"), waiting.here.call.lock("name"):
            inside.append(len(inside))
            try:
                ask(0.001)
            finally:
                seen = inside.pop()
            return seen

    async def main():
        first, *others = [asyncio.ensure_future(called(function)) for _ in range(5)]
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.gather(*others)

    assert run(main()) == [0] * 4


def test_loops_of_several_threads_do_not_meet():
    found = []

    def function(number):
        return list(dict(pool.gather(lambda item: (ask(0.0001), item)[1] * number, range(20), 4)).values())

    def task(number):
        found.append((number, sorted(asyncio.run(called(function, number)))))

    threads = [threading.Thread(target=task, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(number, [item * number for item in range(20)]) for number in range(4)]


# -- side by side ------------------------------------------------------------------------


class Tasks:
    """Tasks that count how many of them are under way."""

    def __init__(self, failing=None):
        self.now = self.most = self.ended = 0
        self.failing = failing

    def __call__(self, item):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            ask(0.001 * (1 + item % 3))
            if item == self.failing:
                raise LookupError(item)
            return item * 10
        finally:
            self.now -= 1
            self.ended += 1


@pytest.mark.parametrize("workers", [1, 2, 7, 100])
def test_items_are_done_side_by_side(workers):
    tasks = Tasks()
    found = run(called(lambda: dict(pool.gather(tasks, iter(range(30)), workers))))
    assert found == {number: number * 10 for number in range(30)}
    assert tasks.most == min(workers, 30)


def test_items_may_be_asked_for_and_results_passed_on():
    def numbers():
        for number in range(6):
            ask(0.0001)
            yield number

    def function():
        inner = [pool.gather(Tasks(), numbers(), 3) for _ in range(4)]
        next(inner[0])  # it goes on elsewhere
        return [len(found) for _, found in sorted(pool.gather(list, inner, 4))]

    assert run(called(function)) == [5, 6, 6, 6]


def test_items_are_taken_when_there_is_room_for_their_results():
    taken = []

    def function():
        for _ in pool.gather(Tasks(), (taken.append(number) or number for number in range(100)), 4):
            ask(0.01)
            assert len(taken) - done[0] <= 8
            done[0] += 1

    done = [0]
    run(called(function))
    assert len(taken) == 100


@pytest.mark.parametrize("end", ["failure", "early", "cancelled"])
def test_no_task_goes_on_alone(end):
    tasks = Tasks(failing=3 if end == "failure" else None)

    def function():
        for _ in pool.gather(tasks, range(1000), 8):
            if end == "early":
                break
        return tasks.now

    async def main():
        async with asyncio.timeout(0.02 if end == "cancelled" else None):
            return await called(function)

    if end == "early":
        assert run(main()) == 0
    else:
        with pytest.raises(LookupError if end == "failure" else TimeoutError):
            run(main())
    assert tasks.now == 0
    assert tasks.ended < 1000


# -- who is called -----------------------------------------------------------------------


class Shouting(WrapperStore):
    """A wrapper of a user."""

    runs_in_event_loops = True

    def get(self, key, span=None):
        return self.store.get(key.lower(), span)

    def list_dir(self, prefix):
        return self.store.list_dir(prefix.lower())


def test_wrappers_of_users_need_no_thread_if_they_say_so(monkeypatch):
    class Inherits(Shouting):
        """May do anything."""

    store = objects()
    values = np.arange(40)
    omnizarr.create_array(store, name="a", data=values, chunks=5)
    counting = Counting(monkeypatch, delay=0.005)
    before = own_threads()
    assert is_awaitable(Shouting(store))
    assert not is_awaitable(Inherits(store))

    async def main():
        group = await aio.open_group(Shouting(store))
        return await (await group.getitem("A")).getitem(...)

    np.testing.assert_array_equal(run(main()), values)
    assert own_threads() <= before
    assert counting.most == 8


def test_without_greenlet_threads_wait(monkeypatch):
    monkeypatch.setattr(asynchronous, "greenlet", None)
    store = objects()
    counting = Counting(monkeypatch)

    async def main():
        group = await aio.open_group(store, mode="w")
        array = await group.create_array("a", shape=(10,), chunks=(3,), dtype="i4")
        await array.setitem(slice(2, 8), 5)
        with pytest.raises(ArrayNotFoundError):
            await aio.open_array(store, path="b", mode="r")
        return [path async for path, _ in group.members()], await array.getitem(...)

    names, values = run(main())
    assert names == ["a"]
    assert values.tolist() == [0, 0, 5, 5, 5, 5, 5, 5, 0, 0]
    assert counting.total == 0

import asyncio
import contextvars
import gc
import os
import threading
import time

import pytest

from omnizarr.stores.pool import default_concurrency
from omnizarr.stores.tasks import computed, near, run, turn, waited


def go(coroutine):
    async def main():
        try:
            return await asyncio.wait_for(coroutine, 30)
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(main())


def test_no_more_than_so_many_are_under_way():
    under_way, most, done = 0, 0, []

    async def task(item):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        done.append(item)

    go(run(task, range(20), 4))
    assert sorted(done) == list(range(20))
    assert most == 4


def test_items_are_taken_as_there_is_room():
    taken, done = [], []

    def items():
        for item in range(20):
            taken.append(item)
            yield item

    async def task(item):
        assert len(taken) - len(done) <= 4
        await asyncio.sleep(0)
        done.append(item)

    go(run(task, items(), 4))
    assert len(done) == 20


@pytest.mark.parametrize("count", [0, 1])
def test_few_items_need_no_tasks(count):
    async def task(_):
        assert len(asyncio.all_tasks()) <= 2

    go(run(task, range(count), 8))


def test_first_exception_stops_the_others():
    begun, ended = [], []

    async def task(item):
        begun.append(item)
        try:
            if item == 3:
                raise KeyError(item)
            await asyncio.sleep(10)
        finally:
            ended.append(item)

    with pytest.raises(KeyError):
        go(run(task, range(100), 5))
    assert sorted(begun) == sorted(ended) == [0, 1, 2, 3, 4]


def test_being_cancelled_cancels_the_others_and_waits_for_them():
    ended = []

    async def task(item):
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(0.01)
            ended.append(item)

    async def main():
        async with asyncio.timeout(0.01):
            await run(task, range(100), 5)

    with pytest.raises(TimeoutError):
        go(main())
    assert ended == [0, 1, 2, 3, 4]


def test_threads_compute_as_many_as_there_are_cores():
    names = set()

    def work(number, *, plus):
        names.add(threading.current_thread().name)
        time.sleep(0.001)
        return number + plus

    async def main():
        return await asyncio.gather(*(computed(work, number, plus=1) for number in range(50)))

    assert go(main()) == list(range(1, 51))
    assert len(names) <= default_concurrency()


def test_exceptions_come_out_of_threads():
    def work():
        raise KeyError("x")

    for call in (computed, waited):
        with pytest.raises(KeyError):
            go(call(work))


def test_context_goes_into_threads():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)
    assert go(waited(variable.get)) == 7


def test_who_is_cancelled_waits_for_the_thread_at_work():
    done = threading.Event()

    def work():
        time.sleep(0.05)
        done.set()

    async def main():
        task = asyncio.ensure_future(computed(work))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return done.is_set()

    assert go(main())


def test_what_has_not_begun_never_does():
    count = 200
    done = []

    async def main():
        tasks = [asyncio.ensure_future(computed(lambda: (time.sleep(0.005), done.append(1)))) for _ in range(count)]
        await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(done)

    assert 0 < go(main()) < count
    time.sleep(0.02)
    assert len(done) < count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_of_a_fork_has_threads_of_its_own():
    assert go(computed(lambda: 1)) == 1
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if go(computed(lambda: 2)) == 2 else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_who_is_cancelled_stops_the_thread_at_work():
    begun, stopped = threading.Event(), threading.Event()
    ended = []

    def work():
        begun.set()
        stopped.wait(30)
        ended.append(True)

    async def main():
        task = asyncio.ensure_future(near(work, stopped.set))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(ended)

    assert go(main()) == [True]


def test_call_that_ended_before_its_caller_was_cancelled_is_not_waited_for():
    ended = threading.Event()

    async def main():
        task = asyncio.ensure_future(near(ended.set))
        await asyncio.sleep(0)
        ended.wait(30)  # the thread tells the loop, which cannot look yet
        asyncio.get_running_loop().call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    go(main())


def test_exception_of_a_call_that_was_cancelled_is_not_complained_about(caplog):
    begun, stopped = threading.Event(), threading.Event()

    def work():
        begun.set()
        stopped.wait(30)
        raise KeyError("x")

    async def main():
        task = asyncio.ensure_future(near(work, stopped.set))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    go(main())
    gc.collect()
    assert not caplog.records


def test_loop_that_is_closed_early_leaves_threads_for_the_next_one():
    begun, stopped = threading.Event(), threading.Event()
    loop = asyncio.new_event_loop()

    def work():
        begun.set()
        stopped.wait(30)

    async def main():
        task = asyncio.ensure_future(near(work))
        await asyncio.to_thread(begun.wait, 30)
        return task

    task = loop.run_until_complete(main())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    stopped.set()
    assert go(near(lambda: 3)) == 3
    task._log_destroy_pending = False  # asyncio would complain that it never ended


def test_a_few_tasks_begin_before_the_loop_sees_to_others():
    rounds = [0]

    async def begin():
        await turn()
        rounds[-1] += 1

    async def main():
        loop = asyncio.get_running_loop()

        def count():
            rounds.append(0)
            if sum(rounds) < 100:
                loop.call_soon(count)

        loop.call_soon(count)
        await asyncio.gather(*(begin() for _ in range(100)))

    go(main())
    assert sum(rounds) == 100
    assert max(rounds) <= 16
    go(main())  # as before: nothing is left of the first loop


def test_task_that_is_cancelled_gives_its_turn_to_others():
    begun = []

    async def begin(number):
        await turn()
        begun.append(number)

    async def main():
        tasks = [asyncio.ensure_future(begin(number)) for number in range(50)]
        await asyncio.sleep(0)
        for task in tasks[20:40]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    go(main())
    assert begun == [*range(20), *range(40, 50)]

"""Writers in event loops: the same as writers without await, and what only waits does not leave the loop."""

import asyncio
import threading

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, errors
from omnizarr.nodes import unsaved
from omnizarr.nodes.writer import _Tail
from tests.aio.stores import KINDS, run

FILL = -1


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    with KINDS[request.param](tmp_path) as store:
        yield store


def made(store, shape=(0, 3), **options):
    return omnizarr.create_array(
        store,
        name="a",
        shape=shape,
        **{"chunks": (2, 3), "shards": (8, 3), "dtype": "i4", "fill_value": FILL, **options},
    )


def test_rows_of_many_tasks_are_all_stored_in_shards_that_are_stored_once(store):
    made(store)

    async def write():
        array = await aio.open_array(store, path="a", mode="r+")
        async with array.writer() as writer:
            regions = await asyncio.gather(*(writer.append(np.full((1, 3), number, "i4")) for number in range(20)))
            assert (writer.shape, array.shape, writer.nbytes_waiting) == ((20, 3), (0, 3), 20 * 12)
            both = await writer.getitem((slice(0, 20), 0))
        return both, [each.region[0].start for each in regions], writer.stats, array.shape

    both, places, stats, shape = run(write())
    assert sorted(places) == sorted(both) == list(range(20))
    assert (shape, stats.chunks_stored, stats.nbytes_written) == ((20, 3), 3, 240)
    found = omnizarr.open_array(store, path="a")[:]
    assert found[places].tolist() == np.repeat(np.arange(20)[:, None], 3, 1).tolist()


def test_selections_of_every_kind_are_written_and_read_as_without_await(store):
    made(store, (16, 3))
    expected = np.full((16, 3), FILL)

    async def write():
        array = await aio.open_array(store, path="a", mode="r+")
        async with array.writer() as writer:
            await writer.blocks.setitem(1, 9)
            await writer.setitem((slice(0, 9), 1), 5)
            await writer.oindex.setitem(([0, 12], [0, 2]), [[1, 2], [3, 4]])
            await writer.vindex.setitem(([3, 4], [0, 0]), 7)
            expected[8:] = 9
            expected[:9, 1] = 5
            expected[np.ix_([0, 12], [0, 2])] = [[1, 2], [3, 4]]
            expected[[3, 4], 0] = 7
            parts = await asyncio.gather(
                writer.getitem(...),
                writer.oindex.getitem(([0, 12], [0, 2])),
                writer.vindex.getitem(([3, 4], [0, 0])),
                writer.blocks.getitem(1),
            )
            assert (await array.getitem(slice(0, 8)) == FILL).all()
            await writer.flush()
            assert (await array.getitem(...)).tolist() == expected.tolist()
            return parts

    everything, outer, single, block = run(write())
    assert everything.tolist() == expected.tolist()
    assert (outer.tolist(), single.tolist(), block.tolist()) == ([[1, 2], [3, 4]], [7, 7], expected[8:].tolist())


def test_small_rows_that_only_wait_are_appended_in_the_loop(tmp_path, monkeypatch):
    array = aio.AsyncArray(made(tmp_path / "a.zarr"))

    async def write():
        async with array.writer() as writer:
            await writer.append(np.zeros((1, 3), "i4"))
            monkeypatch.setattr("omnizarr.aio.writer.writing", None)  # what calls a thread
            for number in range(1, 9):
                await writer.append(np.full((1, 3), number, "i4"), axis=-2)
            monkeypatch.undo()
            with pytest.raises(errors.ShapeError):
                await writer.append(np.zeros((1, 2), "i4"))

    run(write())
    assert array.array[:, 0].tolist() == list(range(9))


def test_what_was_written_before_an_error_or_a_cancellation_is_stored(store):
    made(store)

    async def write(ends):
        array = await aio.open_array(store, path="a", mode="r+")
        async with array.writer() as writer:
            await writer.append([[1, 2, 3]])
            await ends()

    async def fail():
        raise ZeroDivisionError

    async def cancelled():
        task = asyncio.ensure_future(write(lambda: asyncio.sleep(60)))
        await asyncio.sleep(0.2)
        task.cancel()
        await task

    with pytest.raises(ZeroDivisionError):
        run(write(fail))
    with pytest.raises(asyncio.CancelledError):
        run(cancelled())
    assert omnizarr.open_array(store, path="a")[:].tolist() == [[1, 2, 3]] * 2


def test_the_shape_does_not_wait_for_a_thread_that_stores(tmp_path, monkeypatch):
    array = aio.AsyncArray(made(tmp_path / "a.zarr"))
    begun, go_on = threading.Event(), threading.Event()
    append = type(array.array)._append

    def slow(*args):
        begun.set()
        assert go_on.wait(30)
        return append(*args)

    async def write():
        async with array.writer() as writer:
            await writer.append(np.zeros((3, 3), "i4"))
            monkeypatch.setattr(type(array.array), "_append", slow)
            storing = asyncio.ensure_future(writer.flush())
            assert await asyncio.to_thread(begun.wait, 30)
            shape = writer.shape  # in the loop: a wait here would last until `go_on`
            assert not storing.done()
            go_on.set()
            await storing
            return shape, writer.shape

    assert run(write()) == ((3, 3), (3, 3))


def test_the_shape_never_leaves_out_what_waits_behind_what_is_stored(tmp_path, monkeypatch):
    array = made(tmp_path / "a.zarr")
    seen = []
    with array.writer() as writer:
        writer.append(np.zeros((11, 3), "i4"))
        add = _Tail.add
        monkeypatch.setattr(_Tail, "add", lambda tail, values: (seen.append(writer.shape), add(tail, values)))
        writer._store_tail(8)  # the first shard
        monkeypatch.undo()
        seen.append(writer.shape)
    assert seen == [(11, 3)] * 2


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_a_cancelled_task_ends_as_cancelled_although_its_rows_cannot_be_stored(tmp_path, monkeypatch, how):
    array = aio.AsyncArray(made(tmp_path / "a.zarr"))
    failing = errors.StoreError("the disk is full", store="a.zarr")

    def fail(*_):
        raise failing

    async def write():
        async with array.writer() as writer:
            await writer.append([[1, 2, 3]])
            monkeypatch.setattr(type(array.array), "_append", fail)
            await asyncio.sleep(60)

    async def cancelled():
        if how == "timeout":
            async with asyncio.timeout(0.1):
                await write()
        task = asyncio.ensure_future(write())
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await task

    with (
        pytest.raises(asyncio.CancelledError if how == "cancel" else TimeoutError) as caught,
        pytest.warns(UserWarning, match="could not be stored.*the disk is full"),
    ):
        run(cancelled())
    error = caught.value
    chain = []
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    assert failing in chain
    monkeypatch.undo()
    (left,) = (each for each in unsaved.waiting() if getattr(each, "array", None) is array.array)
    left.store_waiting()
    assert array.array[:].tolist() == [[1, 2, 3]]


def test_discarded_rows_are_not_stored_and_a_closed_writer_says_so():
    array = aio.AsyncArray(made({}))

    async def write():
        async with array.writer() as writer:
            await writer.append([[1, 2, 3]])
            await writer.discard()
        with pytest.raises(errors.StoreClosedError):
            await writer.append(np.zeros((1, 3), "i4"))
        return repr(writer)

    assert run(write()).startswith("<AsyncArrayWriter of <Array")
    assert array.shape == (0, 3)


def test_errors_of_a_writer_come_when_the_block_is_entered():
    store = made({}).store
    array = aio.AsyncArray(omnizarr.open_array(store, path="a", mode="r"))

    async def enter(array, **options):
        async with array.writer(**options):
            pass

    with pytest.raises(errors.ReadOnlyError):
        run(enter(array))
    with pytest.raises(ValueError, match="too small"):
        run(enter(aio.AsyncArray(made({}, (16, 3))), memory=5))

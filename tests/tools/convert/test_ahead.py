"""Reading the next block while one is written, where two fit in memory: in `omnizarr.tools.convert.moving`."""

import threading
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest

import omnizarr
from omnizarr import engine, errors
from omnizarr.stores import MemoryStore, WrapperStore, verbs
from omnizarr.stores.base import answers
from omnizarr.tools.convert import moving, routes, temporary
from omnizarr.tools.convert.temporary import TemporaryObjects

VALUES = np.arange(64 * 64 * 64, dtype="i4").reshape(64, 64, 64)
DIRECT = {"chunks": (2, 64, 32), "max_memory": 100_000}
STAGED = {"chunks": (64, 8, 8), "max_memory": 200_000}


class Far(WrapperStore):
    """A store with latency. A function sees each key before it is read or written."""

    def __init__(self, look=lambda *_: None):
        super().__init__(MemoryStore())
        self.look = look

    @property
    def features(self):
        return replace(self.store.features, concurrency=8)

    def get(self, key, span=None):
        self.look("get", key)
        return super().get(key, span)

    @answers(verbs.get_many)
    def _get_many(self, requests):
        requests = list(requests)
        for key, _ in requests:
            self.look("get", key)
        return verbs.get_many(self.store, requests)

    @answers(verbs.get_spans)
    def _get_spans(self, key, spans):
        self.look("get", key)
        return verbs.get_spans(self.store, key, spans)

    @answers(verbs.read_into)
    def _read_into(self, key, out, start=0):
        self.look("get", key)
        return verbs.read_into(self.store, key, out, start)

    def set(self, key, value):
        self.look("set", key)
        super().set(key, value)


def source():
    store = Far()
    omnizarr.create_array(store, data=VALUES, chunks=(2, 64, 64))
    return store


def is_chunk(key):
    return key.startswith("c/")


def is_temporary(key):
    return f"{temporary.NAME}/" in key


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(
    ("layout", "number"),
    [(DIRECT, 0), (STAGED, 0), (STAGED, 1)],
    ids=["only pass", "first of two passes", "second of two passes"],
)
def test_next_block_is_read_while_one_is_written(monkeypatch, layout, number, verify):
    """The first block of a pass is not complete before something has been read that it does not need."""
    monkeypatch.setattr(routes, "_LEAST_OBJECT", 1)  # several objects of a block are on their way at a time
    monkeypatch.setattr(routes, "_MOST_STAGES", 1)
    (node,) = omnizarr.rechunk(source(), dry_run=True, verify=verify, **layout).nodes
    assert len(node.passes) == (1 if layout is DIRECT else 2)
    told = node.passes[number]
    of_first = -(-told.requests_read // told.blocks)
    is_read = is_chunk if told.reads == "source" else is_temporary
    is_written = is_chunk if told.writes == "target" else is_temporary
    seen, first, more, timely = [], [], threading.Event(), []

    def look_at_reads(verb, key):
        if verb == "get" and is_read(key):
            seen.append(key)
            if len(seen) > of_first:
                more.set()

    def look_at_writes(verb, key):
        if told.reads == "temporary":
            look_at_reads(verb, key)
        if verb == "set" and is_written(key) and not first:
            first.append(key)
            timely.append(more.wait(10))

    old, new = source(), Far(look_at_writes)
    if told.reads == "source":
        old.look = look_at_reads
    done = omnizarr.rechunk(old, new, verify=verify, **layout)
    assert timely[0]
    assert done.verified == verify
    np.testing.assert_array_equal(omnizarr.open(new)[...], VALUES)
    assert not [key for key in new.list() if is_temporary(key)]


@pytest.mark.parametrize("layout", [DIRECT, STAGED], ids=["one pass", "two passes"])
@pytest.mark.parametrize("verify", [False, True])
def test_blocks_together_take_no_more_than_the_memory(monkeypatch, layout, verify):
    alive, most = [], []
    read, fetched = moving.read, TemporaryObjects.read

    def nbytes():
        return sum(block.nbytes for each in alive if (block := each()) is not None)

    def noted(found):
        alive.append(weakref.ref(found))
        until = time.monotonic() + 1
        while nbytes() > layout["max_memory"] and time.monotonic() < until:
            time.sleep(0.001)  # a thread of the pool is about to forget the block before
        most.append(nbytes())
        return found

    monkeypatch.setattr(moving, "read", lambda *args, **more: noted(read(*args, **more)))
    monkeypatch.setattr(TemporaryObjects, "read", lambda *args: noted(fetched(*args)))
    (node,) = omnizarr.rechunk(source(), Far(), verify=verify, **layout).nodes
    assert max(most) <= layout["max_memory"]
    assert all(each.memory <= layout["max_memory"] for each in node.passes)


def test_source_that_changes_while_a_block_is_read_ahead_is_told_and_the_rest_is_resumed():
    old, new, asked = source(), Far(), []

    def change(verb, key):
        if is_chunk(key):
            asked.append(key)
            if len(asked) == 5:
                raise errors.ConflictError("the value was replaced while it was read", key=key)

    old.look = change
    with pytest.raises(errors.ConflictError, match="replaced while it was read"):
        omnizarr.rechunk(old, new, verify=False, **DIRECT)
    number = len(asked)
    time.sleep(0.05)
    assert len(asked) == number  # no thread reads on
    with pytest.raises(errors.NodeNotFoundError):
        omnizarr.open(new)
    old.look = lambda *_: None
    assert omnizarr.rechunk(old, new, resume=True, **DIRECT).verified
    np.testing.assert_array_equal(omnizarr.open(new)[...], VALUES)


@pytest.mark.parametrize("layout", [DIRECT, STAGED], ids=["one pass", "two passes"])
def test_ctrl_c_while_a_block_is_written_leaves_no_thread_reading(monkeypatch, layout):
    old, new, asked = source(), Far(), []
    write, written = engine.write, []

    def interrupted(*args):
        written.append(1)
        if len(written) == 3:
            raise KeyboardInterrupt
        write(*args)

    monkeypatch.setattr(engine, "write", interrupted)
    old.look = new.look = lambda _, key: asked.append(key)
    with pytest.raises(KeyboardInterrupt):
        omnizarr.rechunk(old, new, **layout)
    number = len(asked)
    time.sleep(0.05)
    assert len(asked) == number
    monkeypatch.undo()
    assert omnizarr.rechunk(old, new, resume=True, **layout).verified
    np.testing.assert_array_equal(omnizarr.open(new)[...], VALUES)
    assert not [key for key in new.list() if is_temporary(key)]

"""The engine moves no more bytes than a plan needs, takes locks only where it must, and names what fails."""

import os
import time

import numpy as np
import pytest

from omnizarr import engine, errors, indexing
from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.model import UNDEFINED, ArrayMetadata, Named
from omnizarr.stores import LocalStore, MemoryStore
from tests.fakes import FaultyStore

BYTES = Named("bytes", {"endian": "little"})


def metadata(shape=(6, 6), chunks=(3, 4), codecs=(BYTES,), fill_value=0):
    return ArrayMetadata(
        dialect="v3",
        shape=shape,
        data_type=Named("int32"),
        chunk_grid=Named("regular", {"chunk_shape": list(chunks)}),
        chunk_key_encoding=Named("default"),
        fill_value=fill_value,
        codecs=codecs,
    )


def bind(store, policy=None, **changes):
    return engine.bind(metadata(**changes), store, "a/", policy or ChunkPolicy(), "a")


def write(binding, selection, value):
    plan = indexing.plan(selection, binding.grid)
    engine.write(binding, plan, np.broadcast_to(np.asarray(value, "i4"), plan.buffer_shape))


def read(binding, selection=..., concurrency=None):
    plan = indexing.plan(selection, binding.grid)
    out = np.full(plan.buffer_shape, -99, "i4")
    engine.read(binding, plan, out, concurrency)
    return out


def test_whole_chunks_are_written_without_reading_or_locking():
    store = FaultyStore(MemoryStore())
    binding = bind(store, shape=(6, 8))
    write(binding, ..., np.arange(48).reshape(6, 8))
    assert store.requests["set"] == 4
    assert not store.requests["get"]
    assert not store.requests["lock"]


def test_chunks_cut_by_the_edge_are_stored_whole_with_the_fill_value_beyond():
    store = MemoryStore()
    write(bind(store, fill_value=7), ..., np.arange(36).reshape(6, 6))
    edge = np.frombuffer(store.get("a/c/1/1"), "<i4").reshape(3, 4)
    np.testing.assert_array_equal(edge[:, :2], np.arange(36).reshape(6, 6)[3:, 4:])
    assert (edge[:, 2:] == 7).all()


def test_writer_that_knows_an_old_shape_keeps_what_was_appended():
    store = MemoryStore()
    stale = bind(store, shape=(5,), chunks=(10,))
    grown = bind(store, shape=(10,), chunks=(10,))
    write(stale, ..., 1)
    write(grown, slice(5, 10), 2)
    write(stale, ..., 3)
    np.testing.assert_array_equal(read(grown), [3] * 5 + [2] * 5)


def test_part_of_a_chunk_is_written_under_its_lock():
    store = FaultyStore(MemoryStore())
    write(bind(store), (0, 0), 5)
    assert store.requests["lock"] == 1


def test_chunks_that_become_empty_are_deleted():
    store = MemoryStore()
    binding = bind(store, fill_value=3)
    write(binding, ..., 5)
    write(binding, (slice(0, 3), slice(0, 4)), 3)
    write(binding, (slice(1, 6), slice(4, 6)), 3)
    write(binding, (0, slice(4, 6)), 3)
    assert sorted(store.list()) == ["a/c/1/0"]


def test_empty_chunks_are_written_on_request():
    store = MemoryStore()
    write(bind(store, ChunkPolicy(write_empty_chunks=True)), ..., 0)
    assert len(list(store.list())) == 4


def test_chunks_of_an_undefined_fill_value_are_never_left_out():
    store = MemoryStore()
    write(bind(store, fill_value=UNDEFINED), ..., 0)
    assert len(list(store.list())) == 4


def test_missing_chunks_read_as_the_fill_value():
    assert (read(bind(MemoryStore(), fill_value=4)) == 4).all()


def test_missing_chunk_is_an_error_on_request():
    with pytest.raises(errors.ChunkNotFoundError) as caught:
        read(bind(MemoryStore(), ChunkPolicy(missing="error")), (4, 5))
    assert caught.value.coords == (1, 1)
    assert caught.value.key == "a/c/1/1"


@pytest.mark.parametrize("make", [MemoryStore, None], ids=["memory", "local"])
@pytest.mark.parametrize("concurrency", [None, 1, 3])
def test_broken_chunk_is_named_whatever_the_number_of_threads(make, concurrency, tmp_path):
    store = make() if make else LocalStore(tmp_path)
    binding = bind(store, shape=(1024, 1024), chunks=(512, 512))
    write(binding, ..., 1)
    store.set("a/c/1/0", b"short")
    with pytest.raises(errors.ChunkSizeError) as caught:
        read(binding, concurrency=concurrency)
    assert (caught.value.key, caught.value.coords, caught.value.path) == ("a/c/1/0", (1, 0), "a")


def test_failed_write_leaves_the_old_value():
    store = FaultyStore(MemoryStore())
    binding = bind(store, chunks=(6, 6))
    write(binding, ..., 1)
    store.fail("set")
    with pytest.raises(OSError):
        write(binding, ..., 2)
    assert (read(binding) == 1).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_result_may_have_any_layout(order, tmp_path):
    binding = bind(LocalStore(tmp_path))
    values = np.arange(36, dtype="i4").reshape(6, 6)
    write(binding, ..., values)
    plan = indexing.plan(..., binding.grid)
    out = np.empty((6, 12), "i4", order=order)[:, ::2]
    engine.read(binding, plan, out)
    np.testing.assert_array_equal(out, values)


def test_chunks_of_different_shapes_have_chains_of_their_own():
    document = metadata()
    grid = Named("rectilinear", {"kind": "inline", "chunk_shapes": [[2, 4], [1, 5]]})
    document = ArrayMetadata(**{**{name: getattr(document, name) for name in document.__slots__}, "chunk_grid": grid})
    store = MemoryStore()
    binding = engine.bind(document, store, "a/", ChunkPolicy(), "a")
    values = np.arange(1, 37).reshape(6, 6)
    write(binding, ..., values)
    assert {key: len(store.get(key)) // 4 for key in store.list()} == {
        "a/c/0/0": 2, "a/c/0/1": 10, "a/c/1/0": 4, "a/c/1/1": 20,
    }  # fmt: skip
    np.testing.assert_array_equal(read(binding), values)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_child_of_a_fork_reads_and_writes(tmp_path):
    binding = bind(LocalStore(tmp_path), shape=(2048, 1024), chunks=(256, 1024))
    write(binding, ..., 1)
    assert (read(binding, concurrency=4) == 1).all()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            write(binding, (slice(0, 700), slice(5, 900)), 2)
            status = int(read(binding, concurrency=4)[100, 100] != 2)
        finally:
            os._exit(status)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.01)
    assert ended[1] == 0
    assert read(binding)[100, 100] == 2

"""Documents are changed whole, one change after the other, with any number of writers."""

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import omnizarr
from omnizarr.nodes import hierarchy
from omnizarr.storage import LocalStore
from omnizarr.stores import verbs
from omnizarr.stores.local import folders

pytestmark = pytest.mark.slow

WORKERS = 8


@pytest.fixture(params=[2, 3, "3-draft2020"])
def zarr_format(request):
    return request.param


@pytest.fixture(params=[1, 2, 3, "3-draft2020"])
def array_format(request):
    """A format of arrays: v1 has no groups."""
    return request.param


@pytest.fixture(params=["memory", "local"])
def store(request, tmp_path):
    return omnizarr.storage.MemoryStore() if request.param == "memory" else str(tmp_path / "a.zarr")


def race(task, workers=WORKERS):
    """Run ``task(number)`` in so many threads at once; return what each returned or raised."""
    barrier = threading.Barrier(workers)

    def run(number):
        barrier.wait()
        try:
            return task(number)
        except Exception as error:  # noqa: BLE001  (the test looks at it)
            return error

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, range(workers)))


def test_of_several_creators_exactly_one_wins(store, array_format):
    for attempt in range(10):
        results = race(
            lambda number, attempt=attempt: omnizarr.create_array(
                store, name=f"a{attempt}", shape=(number + 1,), dtype="i4", zarr_format=array_format
            )
        )
        winners = [result for result in results if isinstance(result, omnizarr.Array)]
        assert len(winners) == 1
        assert all(isinstance(r, omnizarr.errors.ContainsArrayError) for r in results if r not in winners)
        assert omnizarr.open_array(store, path=f"a{attempt}", mode="r").shape == winners[0].shape


def test_of_creators_in_several_formats_exactly_one_wins(store):
    root = omnizarr.create_group(store)
    formats = [1, 2, 3, 3]
    for attempt in range(20):

        def task(number, name=f"a{attempt}"):
            wanted = formats[number % len(formats)]
            return omnizarr.create_array(root.store_path / name, shape=(number + 1,), dtype="i4", zarr_format=wanted)

        results = race(task)
        winners = [result for result in results if isinstance(result, omnizarr.Array)]
        assert len(winners) == 1
        assert all(isinstance(r, omnizarr.errors.ContainsArrayError) for r in results if r not in winners)
        found = omnizarr.open_array(store, path=f"a{attempt}", mode="r")
        assert (found.shape, found.metadata.zarr_format) == (winners[0].shape, winners[0].metadata.zarr_format)


class LateNative:
    """The native functions for files, before (or within) whose first directory another node comes to be."""

    def __init__(self, come, *, after_mkdir):
        self._come = come
        self._after_mkdir = after_mkdir
        self._real = folders.native()

    def __getattr__(self, name):
        return getattr(self._real, name)

    def create_with(self, folder, name, value):
        come, self._come = self._come, None
        if come is None:
            return self._real.create_with(folder, name, value)
        if self._after_mkdir:
            os.mkdir(folder)  # noqa: PTH102
        come()
        return "directory" if self._after_mkdir else self._real.create_with(folder, name, value)


@pytest.mark.skipif(folders.native() is None, reason="the native engine is not to be used")
@pytest.mark.parametrize("after_mkdir", [False, True])
@pytest.mark.parametrize("other", [1, 2, 3])
def test_native_creator_gives_way_to_a_complete_node(tmp_path, monkeypatch, after_mkdir, other):
    omnizarr.create_group(tmp_path)

    def come():
        omnizarr.create_array(tmp_path / "a", shape=(7,), dtype="i4", zarr_format=other)

    native = LateNative(come, after_mkdir=after_mkdir)
    monkeypatch.setattr(folders, "native", lambda: native)
    with pytest.raises(omnizarr.errors.ContainsArrayError):
        omnizarr.create_array(str(tmp_path), name="a", shape=(3,), dtype="i4", zarr_format=3)
    assert omnizarr.open_array(tmp_path / "a", mode="r").shape == (7,)
    documents = {1: {"meta", "attrs"}, 2: {".zarray", ".zattrs"}, 3: {"zarr.json"}}
    assert {path.name for path in (tmp_path / "a").iterdir()} <= documents[other]
    array = omnizarr.create_array(str(tmp_path), name="a", shape=(3,), dtype="i4", zarr_format=3, overwrite=True)
    assert omnizarr.open_array(tmp_path / "a", mode="r").shape == array.shape == (3,)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["zarr.json"]


@pytest.mark.parametrize("function", ["mkdir", "link"])
@pytest.mark.parametrize("other", [1, 2, 3])
def test_creator_without_lock_gives_way_to_a_complete_node(tmp_path, monkeypatch, function, other):
    monkeypatch.setattr(folders, "native", lambda: None)
    omnizarr.create_group(tmp_path)
    real = getattr(os, function)

    def late(*args, **more):
        if function == "mkdir":
            real(*args, **more)
        monkeypatch.setattr(os, function, real)
        omnizarr.create_array(tmp_path / "a", shape=(7,), dtype="i4", zarr_format=other)
        if function == "link":
            real(*args, **more)

    monkeypatch.setattr(os, function, late)
    with pytest.raises(omnizarr.errors.ContainsArrayError):
        omnizarr.create_array(str(tmp_path), name="a", shape=(3,), dtype="i4", zarr_format=3)
    assert omnizarr.open_array(tmp_path / "a", mode="r").shape == (7,)
    documents = {1: {"meta", "attrs"}, 2: {".zarray", ".zattrs"}, 3: {"zarr.json"}}
    assert {path.name for path in (tmp_path / "a").iterdir()} <= documents[other]


@pytest.mark.parametrize("other", [1, 2, 3])
def test_creator_without_lock_overwrites_a_node_that_came_in_between(tmp_path, monkeypatch, other):
    monkeypatch.setattr(folders, "native", lambda: None)
    omnizarr.create_group(tmp_path)
    real = os.link

    def late(*args, **more):
        monkeypatch.setattr(os, "link", real)
        omnizarr.create_array(tmp_path / "a", shape=(7,), dtype="i4", zarr_format=other)
        real(*args, **more)

    monkeypatch.setattr(os, "link", late)
    omnizarr.create_array(str(tmp_path), name="a", shape=(3,), dtype="i4", zarr_format=3, overwrite=True)
    assert omnizarr.open_array(tmp_path / "a", mode="r").shape == (3,)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["zarr.json"]


@pytest.mark.parametrize("zarr_format", [1, 2, 3])
def test_holder_of_the_lock_gives_way_to_a_node_that_appeared_without_it(tmp_path, monkeypatch, zarr_format):
    omnizarr.create_group(tmp_path)
    real = hierarchy.occupant
    calls = []

    def late(where):
        calls.append(where)
        if len(calls) == 1:
            monkeypatch.setitem(LocalStore._direct, verbs.set_in_new_folder, verbs.set_in_new_folder.default)
            (tmp_path / "a" / "zarr.json").write_bytes((tmp_path / "b" / "zarr.json").read_bytes())
            return None
        return real(where)

    omnizarr.create_array(tmp_path / "b", shape=(7,), dtype="i4")
    monkeypatch.setattr(hierarchy, "occupant", late)
    monkeypatch.setitem(LocalStore._direct, verbs.set_in_new_folder, lambda *_: "")
    with pytest.raises(omnizarr.errors.ContainsArrayError):
        omnizarr.create_array(tmp_path / "a", shape=(3,), dtype="i4", zarr_format=zarr_format, attributes={"a": 1})
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["zarr.json"]
    assert omnizarr.open_array(tmp_path / "a", mode="r").shape == (7,)


def test_an_array_and_a_group_of_one_name_do_not_both_come_to_be(store, zarr_format):
    root = omnizarr.create_group(store, zarr_format=zarr_format)
    for attempt in range(10):
        name = f"n{attempt}"

        def task(number, name=name):
            return root.create_group(name) if number % 2 else root.create_array(name, shape=(2,), dtype="i4")

        results = race(task)
        assert sum(isinstance(result, omnizarr.Array | omnizarr.Group) for result in results) == 1


def test_require_group_never_fails(store, zarr_format):
    root = omnizarr.create_group(store, zarr_format=zarr_format)
    for attempt in range(10):
        results = race(lambda _, attempt=attempt: root.require_group(f"g{attempt}/deep/er"))
        assert all(isinstance(result, omnizarr.Group) for result in results)


def test_attributes_set_by_many_all_survive(store, array_format):
    array = omnizarr.create_array(store, shape=(2,), dtype="i4", zarr_format=array_format)

    def task(number):
        mine = omnizarr.open_array(store, mode="r+")
        for step in range(5):
            mine.attrs[f"{number}.{step}"] = number
        mine.attrs.update({f"{number}.x": 1, f"{number}.y": 2})

    assert not [result for result in race(task) if result is not None]
    assert len(omnizarr.open_array(store, mode="r").attrs) == WORKERS * 7
    array.attrs.refresh()
    assert len(array.attrs) == WORKERS * 7


@pytest.mark.parametrize("shards", [None, (15,)])
def test_appended_blocks_all_land_where_their_writers_are_reported(store, array_format, shards):
    if shards and array_format != 3:
        shards = None
    omnizarr.create_array(store, shape=(0,), chunks=(5,), shards=shards, dtype="i4", zarr_format=array_format)

    def task(number):
        mine = omnizarr.open_array(store, mode="r+")
        landed = []
        for step in range(5):
            block = np.full(step + 3, 10 * number + step + 1, "i4")
            landed.append((mine.append(block).region, block))
        return landed

    results = race(task)
    values = omnizarr.open_array(store, mode="r")[...]
    assert values.shape == (WORKERS * sum(range(3, 8)),)
    for landed in results:
        for region, block in landed:
            np.testing.assert_array_equal(values[region], block)


def append_blocks(path, number):
    array = omnizarr.open_array(path, mode="r+")
    for _ in range(10):
        array.append(np.full((3, 4), number, "i4"))
    array.attrs[str(number)] = number


def test_processes_append_without_losing_a_block(tmp_path, array_format):
    path = str(tmp_path / "a.zarr")
    omnizarr.create_array(path, shape=(0, 4), chunks=(7, 3), dtype="i4", zarr_format=array_format)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_blocks, args=(path, number)) for number in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    array = omnizarr.open_array(path, mode="r")
    assert array.shape == (120, 4)
    assert sorted(array[:, 0].tolist()) == sorted([1, 2, 3, 4] * 30)
    assert dict(array.attrs) == {"1": 1, "2": 2, "3": 3, "4": 4}


def test_readers_beside_an_appending_writer_see_no_hole(store, array_format):
    writer = omnizarr.create_array(store, shape=(0,), chunks=(4,), dtype="i4", fill_value=-1, zarr_format=array_format)
    stop = threading.Event()
    holes = []

    def watch():
        while not stop.is_set():
            values = omnizarr.open_array(store, mode="r")[...]
            if (values == -1).any():
                holes.append(values)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(60):
            writer.append(np.arange(3, dtype="i4"))
    finally:
        stop.set()
        watcher.join()
    assert not holes


def test_a_refused_assignment_has_written_nothing(store, array_format):
    array = omnizarr.create_array(store, shape=(8, 8), chunks=(2, 2), dtype="i4", zarr_format=array_format)
    array[...] = 1
    with pytest.raises(ValueError, match="shape"):
        array[2:6, 2:6] = np.zeros((4, 3))
    assert (array[...] == 1).all()

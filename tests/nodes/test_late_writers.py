"""A verb that has failed leaves nothing behind: no thread still writes, and none brings back what was removed."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import omnizarr
from omnizarr.nodes import creating
from omnizarr.storage import StorePath
from omnizarr.stores import LocalStore, WrapperStore, pool
from omnizarr.stores.local import folders, staging
from tests.nodes.test_replacing import VALUES, files_in

dask = pytest.importorskip("dask", reason="tasks of dask go on when one has failed")

BLOCKS = 4
SHAPE = (BLOCKS, 6)
HELD = 0.3
"""Seconds in which late writers have time to write."""


class Race:
    """Values of which the first block fails when all others are being read. These go on when something is over."""

    shape, dtype, ndim = SHAPE, np.dtype("float64"), 2

    def __init__(self, error):
        self._error = error
        self._others = threading.Barrier(BLOCKS, timeout=30)
        self.is_over = threading.Event()

    def __getitem__(self, selection):
        rows = selection[0] if isinstance(selection, tuple) else selection
        self._others.wait()
        if rows.start == 0:
            raise self._error("source")
        self.is_over.wait(30)
        return np.full((rows.stop - rows.start, SHAPE[1]), 9.0)

    def lazy(self):
        from dask import array

        return array.from_array(self, chunks=(1, SHAPE[1]), asarray=False, meta=np.empty((0, 0)))


def to_new_array(store, data):
    from omnizarr.interop.dask import to_zarr

    to_zarr(data, store, name="new")


def over_array(store, data):
    from omnizarr.interop.dask import to_zarr

    to_zarr(data, store, name="g/a", overwrite=True)


def into_array(store, data):
    from omnizarr.interop.dask import to_zarr

    to_zarr(data, omnizarr.open_array(store, path="g/a", mode="r+"))


def into_array_that_is_read(store, data):
    from omnizarr.interop.dask import from_zarr, to_zarr

    array = omnizarr.open_array(store, path="g/a", mode="r+")
    to_zarr(data + from_zarr(array, chunks=(1, 6)), array)


def dataset_of(data):
    import xarray

    return xarray.Dataset({"a": (("x", "y"), data)})


def over_group(store, data):
    from omnizarr.interop.xarray import to_zarr

    to_zarr(dataset_of(data), store, group="g", mode="w", consolidated=False)


def to_new_group(store, data):
    from omnizarr.interop.xarray import to_zarr

    to_zarr(dataset_of(data), store, group="new", mode="w-", consolidated=False)


def into_region(store, data):
    from omnizarr.interop.xarray import to_zarr

    region = {"x": slice(0, BLOCKS), "y": slice(0, 6)}
    to_zarr(dataset_of(data), store, group="g", mode="r+", region=region, consolidated=False)


def append(store, data):
    from omnizarr.interop.xarray import to_zarr

    to_zarr(dataset_of(data), store, group="g", append_dim="x", consolidated=False)


VERBS = {
    verb.__name__: verb
    for verb in (
        to_new_array,
        over_array,
        into_array,
        into_array_that_is_read,
        over_group,
        to_new_group,
        into_region,
        append,
    )
}
STAGED = ("over_array", "into_array_that_is_read", "over_group")
WHOLE = ("append", *STAGED)


def fill(store):
    options = {"chunks": (1, 3), "dimension_names": ("x", "y")}
    omnizarr.create_array(store, name="g/a", data=VALUES, **options)


def everything(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def failed(verb, folder, race):
    """Let a verb fail, and return what there is at once, and what there is when all its threads are done."""
    threads = ThreadPoolExecutor(BLOCKS)
    try:
        with dask.config.set(pool=threads), pytest.raises(race._error, match="source"):
            VERBS[verb](LocalStore(folder), race.lazy())
        at_once = everything(folder)
    finally:
        race.is_over.set()
        threads.shutdown()
    return at_once, everything(folder)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("verb", VERBS)
def test_no_thread_writes_when_the_verb_has_failed(verb, error, tmp_path):
    fill(LocalStore(tmp_path))
    before = everything(tmp_path)
    at_once, later = failed(verb, tmp_path, Race(error))
    assert later == at_once
    if verb in WHOLE:
        assert later == before
    assert not [path for path in files_in(tmp_path) if ".omnizarr" in path]


@pytest.mark.parametrize("verb", STAGED)
def test_what_is_written_during_the_removal_does_not_come_back(verb, tmp_path, monkeypatch):
    fill(LocalStore(tmp_path))
    before = everything(tmp_path)
    race, removed = Race(OSError), []
    rmdir = folders.Folder.rmdir

    def slow(folder, name):
        if not removed:
            removed.append(name)
            race.is_over.set()  # the other tasks store their blocks now
            time.sleep(HELD)
        rmdir(folder, name)

    monkeypatch.setattr(folders, "native", lambda: None)  # which removes a tree in one call
    monkeypatch.setattr(folders.Folder, "rmdir", slow)
    _, later = failed(verb, tmp_path, race)
    assert removed
    assert later == before
    assert not [path for path in files_in(tmp_path) if ".omnizarr" in path]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_other_processes_that_still_write_are_refused(engine, tmp_path, monkeypatch):
    """Nothing waits for them. Here, one writes whenever a directory is about to be removed."""
    rmdir, refused = folders.Folder.rmdir, []
    with staging.staged(LocalStore(tmp_path)) as stage:
        options = {"shape": SHAPE, "chunks": (1, 3), "dtype": "f8", "config": {"engine": engine}}
        creating.new_array(StorePath(stage.store, "a"), **options)
        other = omnizarr.open_array(LocalStore(stage.store.root), path="a", mode="r+", config={"engine": engine})
        other[...] = 1

        def busy(folder, name):
            with pytest.raises(omnizarr.errors.ArrayNotFoundError):
                other[...] = 2
            with pytest.raises(omnizarr.errors.ArrayNotFoundError):
                other[:, :2] = 2  # parts of chunks, under their locks
            refused.append(name)
            rmdir(folder, name)

        monkeypatch.setattr(folders, "native", lambda: None)
        monkeypatch.setattr(folders.Folder, "rmdir", busy)
    assert refused
    assert not files_in(tmp_path)


def test_what_other_processes_have_begun_is_removed(tmp_path, monkeypatch):
    rmdir, begun = folders.Folder.rmdir, []

    def late(folder, name):
        if len(begun) < 10:
            begun.append(name)
            with folder.below(name) as opened:
                opened.put("0", b"late")
        rmdir(folder, name)

    with staging.staged(LocalStore(tmp_path)) as stage:
        omnizarr.create_array(stage.store.root, name="a", data=VALUES, chunks=(1, 3))
        monkeypatch.setattr(folders, "native", lambda: None)
        monkeypatch.setattr(folders.Folder, "rmdir", late)
    assert len(begun) == 10
    assert not files_in(tmp_path)


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("functions", ["native", "python"])
def test_nothing_stays_of_those_who_write_while_it_is_removed(functions, engine, tmp_path, monkeypatch):
    """Without hooks within the removal, of which the native engine has none."""
    if functions == "python":
        monkeypatch.setattr(folders, "native", lambda: None)
    elif folders.native() is None:
        pytest.skip("the native engine is not to be used")
    refused = []
    for number in range(10):
        started = threading.Event()
        with staging.staged(LocalStore(tmp_path)) as stage:
            options = {"shape": (40, 40), "chunks": (4, 4), "dtype": "f8", "config": {"engine": engine}}
            creating.new_array(StorePath(stage.store, "a"), **options)
            other = omnizarr.open_array(LocalStore(stage.store.root), path="a", mode="r+", config={"engine": engine})

            def write(other=other, started=started):
                try:
                    while True:
                        other[...] = 2
                        other[:, :2] = 3
                        started.set()
                except (omnizarr.errors.ArrayNotFoundError, omnizarr.errors.StoreError) as error:
                    refused.append(error)

            writer = threading.Thread(target=write)
            writer.start()
            started.wait(30)
            time.sleep(0.003 * number)
        writer.join(60)
        assert len(refused) == number + 1
        assert not files_in(tmp_path)


class Failing(WrapperStore):
    """A store that fails for one chunk while it is slow for all others."""

    def get(self, key, span=None):
        if "/c/" in key or key.startswith("c/"):
            time.sleep(0.02 if key.endswith("c/3/1") else 0.2)
            if key.endswith("c/3/1"):
                raise omnizarr.errors.StoreError("injected", key=key)
        return super().get(key, span)


TOOLS = {
    "convert": lambda source, target: omnizarr.convert(source, target, zarr_format=2),
    "convert over a node": lambda source, target: omnizarr.convert(source, target, zarr_format=2, overwrite=True),
    "rechunk": lambda source, target: omnizarr.rechunk(source, target, chunks=(2, 2)),
    "copy_node": omnizarr.copy_node,
    "copy": lambda source, target: omnizarr.copy(
        omnizarr.open_array(source, path="a", mode="r"), omnizarr.open_group(target, mode="a"), "a", if_exists="replace"
    ),
    "copy_all": lambda source, target: omnizarr.copy_all(
        omnizarr.open_group(source, mode="r"), omnizarr.open_group(target, mode="a"), if_exists="replace"
    ),
    "pyramid": lambda source, target: omnizarr.pyramid(source, target, path="a", levels=2),
    "save": lambda source, target: omnizarr.save(target, omnizarr.open_array(source, path="a", mode="r"), path="a"),
    "from_array": lambda source, target: omnizarr.from_array(
        target, name="a", data=omnizarr.open_array(source, path="a", mode="r"), overwrite=True
    ),
}


@pytest.mark.parametrize("verb", TOOLS)
def test_no_thread_is_at_work_when_another_verb_has_failed(verb, tmp_path):
    omnizarr.create_array(tmp_path / "source", name="a", data=VALUES, chunks=(1, 3))
    omnizarr.open_group(tmp_path / "source", mode="a")
    with (
        omnizarr.config.set({"threading.max_workers": BLOCKS}),
        pytest.raises(omnizarr.errors.OmnizarrError, match="injected"),
    ):
        TOOLS[verb](Failing(LocalStore(tmp_path / "source")), LocalStore(tmp_path / "target"))
    at_work = [job for job in pool._threads._at_work.copy().values() if not job.is_over]
    assert not at_work
    at_once = everything(tmp_path)
    time.sleep(HELD)
    assert everything(tmp_path) == at_once
    assert not [path for path in files_in(tmp_path) if path.endswith((".new", ".old", ".tmp"))]

"""Chunks moved by the workers of a dask.distributed cluster: two processes, of which one is killed."""

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import omnizarr
from omnizarr import errors
from omnizarr.cli.convert import convert as command
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore
from omnizarr.tools.streaming import executors
from tests.clusters import cluster, distributed

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask", reason="dask is what this is about")
da = pytest.importorskip("dask.array", reason="arrays of dask are stored here")

VALUES = np.random.default_rng(7).normal(size=(320, 320))
PATIENCE = 30
DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", "omnizarr-conversion.json"}


class Watched(WrapperStore):
    """A directory that notes in a file who sets what, and takes its time."""

    def __init__(self, store, log, seconds=0.0):
        super().__init__(store)
        self.log = Path(log)
        self.seconds = seconds

    def set(self, key, value):
        super().set(key, value)
        time.sleep(self.seconds)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {key}\n")

    def written(self):
        """Return (process, key) of all chunks set so far."""
        lines = [line.split() for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [(int(process), key) for process, key in lines if key.rpartition("/")[2] not in DOCUMENTS]


class OnlyHere(WrapperStore):
    """A directory that other processes do not see, as they are on other machines."""

    def __init__(self, store):
        super().__init__(store)
        self.home = os.getpid()

    def get(self, key, span=None):
        return super().get(key, span) if os.getpid() == self.home else None


class Bar:
    """A progress bar that calls a function at the first progress."""

    def __init__(self, then):
        self.then = [then]
        self.done = 0
        self.total = None

    def __call__(self, total, **_):
        self.total = total
        return self

    def update(self, n):
        self.done += n
        if self.then:
            self.then.pop()()

    def close(self):
        pass


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def mortal():
    """Return a client whose workers may be killed: others take their places."""
    with cluster(2) as client:
        yield client


@pytest.fixture
def source(tmp_path):
    """Return a directory with an array of 16 chunks in a group, with attributes."""
    root = omnizarr.create_group(tmp_path / "source", attributes={"title": "t"})
    root.create_array("a", data=VALUES, chunks=(80, 80), attributes={"units": "K"})
    return tmp_path / "source"


@pytest.fixture
def bucket(s3_server):
    return s3_server.fresh()


def processes(client):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = set(client.run(os.getpid).values())
        if len(found) == 2:
            return found
        time.sleep(0.1)
    raise AssertionError("there are not two workers")


def kill_one(client):
    """Return what kills one worker, and its number."""
    victim = min(processes(client))
    return (lambda: os.kill(victim, signal.SIGKILL)), victim


def contents(store):
    return {key: bytes(store.get(key)) for key in store.list()}


class TestConverting:
    def test_result_is_the_same_as_without(self, client, source, tmp_path):
        for name, options in {
            "copied": {"zarr_format": 2},
            "encoded": {"chunks": (20, 20), "shards": (160, 160)},
        }.items():
            here = omnizarr.convert(source, tmp_path / f"{name}-here", **options)
            there = omnizarr.convert(source, tmp_path / f"{name}-there", scheduler=client, **options)
            assert there.verified
            assert [(n.how, n.chunks, n.nbytes, n.verified) for n in there.nodes] == [
                (n.how, n.chunks, n.nbytes, n.verified) for n in here.nodes
            ]
            places = tmp_path / f"{name}-here", tmp_path / f"{name}-there"
            assert contents(LocalStore(places[0])) == contents(LocalStore(places[1]))
            np.testing.assert_array_equal(omnizarr.open(places[1])["a"][...], VALUES)

    def test_workers_write_and_no_two_tasks_touch_one_chunk(self, client, source, tmp_path):
        target = Watched(LocalStore(tmp_path / "target"), tmp_path / "log", 0.1)
        pids = processes(client)
        layout = {"chunks": (20, 20), "shards": (160, 40)}
        omnizarr.rechunk(source, target, **layout, scheduler=client, max_memory=60_000, verify=False)
        written = target.written()
        assert {pid for pid, _ in written} == pids
        counts = Counter(key for _, key in written)
        assert (len(counts), set(counts.values())) == (16, {1})

    def test_several_passes_write_each_temporary_object_once(self, client, tmp_path):
        values = np.arange(640 * 4096, dtype="i8").reshape(640, 4096)
        source = omnizarr.create_array(tmp_path / "days", data=values, chunks=(4, 4096)).store_path
        target = Watched(LocalStore(tmp_path / "new"), tmp_path / "log")
        options = {"chunks": (640, 64), "scheduler": client, "max_memory": 1_000_000}
        (node,) = omnizarr.rechunk(source, target, **options).nodes
        assert [each.writes for each in node.passes] == ["temporary", "target"]
        np.testing.assert_array_equal(omnizarr.open(tmp_path / "new")[...], values)
        written = Counter(key for _, key in target.written())
        assert set(written.values()) == {1}
        assert 64 < len(written) <= node.passes[0].requests_written + 64
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["c", "zarr.json"]

    def test_address(self, client, source, tmp_path):
        report = omnizarr.convert(source, tmp_path / "target", scheduler=client.scheduler.address)
        assert report.verified
        assert client.status == "running"
        assert distributed.worker.get_client is not None
        assert len(client.scheduler_info()["workers"]) == 2

    def test_progress_comes_with_the_chunks_and_not_only_with_whole_tasks(self, client, tmp_path):
        source = omnizarr.create_array(tmp_path / "many", data=VALUES, chunks=(32, 80))  # 40, so 10 to a task
        target = Watched(LocalStore(tmp_path / "target"), tmp_path / "log", seconds=0.3)
        seen = []

        class Told:
            def __init__(self, total, **_):
                self.total, self.done = total, 0

            def update(self, n):
                self.done += n
                seen.append((self.done / self.total, len(target.written())))

            def close(self):
                pass

        report = omnizarr.convert(source, target, verify=False, scheduler=client, progress=Told)
        assert report.nodes[0].how == "copied"
        assert seen[0][1] < 10
        assert seen[-1] == (1.0, 40)
        assert len([share for share, _ in seen if share < 0.5]) >= 3

    def test_progress_is_that_of_all(self, client, source, tmp_path):
        bar = Bar(lambda: None)
        omnizarr.rechunk(source, tmp_path / "target", chunks=(320, 40), scheduler=client, progress=bar)
        assert bar.done == bar.total == 2 * VALUES.nbytes

    def test_bytes_of_unknown_codecs_are_copied_and_compared(self, client, tmp_path):
        omnizarr.create_array(tmp_path / "source", data=VALUES, chunks=(80, 80), compressors=None)
        document = tmp_path / "source" / "zarr.json"
        unknown = document.read_text().replace('"bytes"', '"nobody.knows"')
        document.write_text(unknown)
        report = omnizarr.convert(tmp_path / "source", tmp_path / "target", scheduler=client)
        assert [(node.how, node.verified) for node in report.nodes] == [("copied", "bytes")]
        assert contents(LocalStore(tmp_path / "target" / "c")) == contents(LocalStore(tmp_path / "source" / "c"))

    def test_command_line(self, client, source, tmp_path):
        arguments = [str(source), str(tmp_path / "new"), "--chunks", "320,40", "--max-memory", "1MB"]
        result = CliRunner().invoke(command, [*arguments, "--scheduler", client.scheduler.address])
        assert result.exit_code == 0, result.output
        np.testing.assert_array_equal(omnizarr.open(tmp_path / "new")["a"][...], VALUES)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
class TestKilledWorker:
    def test_directory(self, mortal, source, tmp_path):
        target = Watched(LocalStore(tmp_path / "target"), tmp_path / "log", 0.05)
        kill, killed = kill_one(mortal)
        bar = Bar(kill)
        report = omnizarr.rechunk(source, target, chunks=(320, 20), scheduler=mortal, max_memory=60_000, progress=bar)
        assert report.verified
        written = target.written()
        assert len({pid for pid, _ in written} - {killed}) >= 1
        chunks = {f"a/c/0/{at}" for at in range(16)}
        assert {key for _, key in written if not key.startswith("omnizarr-conversion/")} == chunks
        assert {key for key in target.list() if key.rpartition("/")[2] not in DOCUMENTS} == chunks
        assert bar.done == bar.total
        np.testing.assert_array_equal(omnizarr.open(tmp_path / "target")["a"][...], VALUES)

    def test_object_store(self, mortal, source, bucket):
        kill, _ = kill_one(mortal)
        new = f"{bucket.url}/new.zarr"
        bar = Bar(kill)
        report = omnizarr.rechunk(
            source,
            new,
            chunks=(320, 20),
            scheduler=mortal,
            max_memory=60_000,
            progress=bar,
            storage_options=bucket.options,
        )
        assert report.verified
        assert not bar.then
        found = omnizarr.open(new, storage_options=bucket.options)["a"]
        np.testing.assert_array_equal(found[...], VALUES)


def test_from_object_store_to_object_store(client, bucket):
    old, new = f"{bucket.url}/old", f"{bucket.url}/new"
    omnizarr.create_array(old, data=VALUES, chunks=(80, 80), storage_options=bucket.options)
    report = omnizarr.rechunk(old, new, chunks=(320, 80), scheduler=client, storage_options=bucket.options)
    assert report.verified
    here = omnizarr.rechunk(old, {}, chunks=(320, 80), storage_options=bucket.options)
    assert [(node.chunks, node.nbytes) for node in report.nodes] == [(node.chunks, node.nbytes) for node in here.nodes]
    np.testing.assert_array_equal(omnizarr.open(new, storage_options=bucket.options)[...], VALUES)


class TestInterrupted:
    def interrupt(self):
        raise KeyboardInterrupt

    def test_nobody_works_any_more_and_it_is_resumed_here_or_there(self, client, source, tmp_path):
        target = Watched(LocalStore(tmp_path / "target"), tmp_path / "log", 0.05)
        for scheduler in (client, None):
            options = {"chunks": (80, 20), "scheduler": client, "max_memory": 36_000}  # in one pass
            with pytest.raises(KeyboardInterrupt):
                omnizarr.rechunk(source, target, progress=Bar(self.interrupt), overwrite=True, **options)
            stopped = contents(target)
            assert "a/zarr.json" not in stopped
            before = len([key for key in stopped if "/c/" in key])
            assert 0 < before < 64
            time.sleep(0.3)
            assert contents(target) == stopped
            report = omnizarr.rechunk(source, target, resume=True, **{**options, "scheduler": scheduler})
            assert report.verified
            again = sum(node.chunks for node in report.nodes) - (64 - before)
            assert 0 <= again <= 2 * 2  # chunks of the blocks, of two each, that both workers had begun
            np.testing.assert_array_equal(omnizarr.open(target)["a"][...], VALUES)

    def test_what_was_interrupted_here_is_resumed_there(self, client, source, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            omnizarr.rechunk(source, tmp_path / "t", chunks=(320, 20), max_memory=60_000, progress=Bar(self.interrupt))
        assert omnizarr.rechunk(source, tmp_path / "t", chunks=(320, 20), resume=True, scheduler=client).verified
        np.testing.assert_array_equal(omnizarr.open(tmp_path / "t")["a"][...], VALUES)


class TestErrors:
    @pytest.mark.parametrize("options", [{}, {"chunks": (320, 40)}, {"zarr_format": 2}], ids=str)
    @pytest.mark.parametrize("verify", [True, False])
    def test_broken_chunks_are_named_and_the_others_are_carried(self, client, source, tmp_path, options, verify):
        for name in ("2/1", "0/0"):
            (source / "a" / "c" / name).write_bytes(b"broken")
        target = tmp_path / "target"
        report = omnizarr.convert(source, target, scheduler=client, verify=verify, **options)
        if verify or "chunks" in options:
            assert (report.unreadable, report.nodes[1].stored) == (("a/c/0/0", "a/c/2/1"), 16)
        assert not report.verified
        np.testing.assert_array_equal(omnizarr.open(target)["a"][:, 160:], VALUES[:, 160:])

    def test_broken_chunk_is_an_error_if_nothing_may_be_lost(self, client, source, tmp_path):
        (source / "a" / "c" / "2" / "1").write_bytes(b"broken")
        with pytest.raises(errors.ChunkError, match=r"1 of 16 chunks of the source cannot be read: a/c/2/1 \("):
            omnizarr.convert(source, tmp_path / "target", scheduler=client, strict=True)
        assert not list(omnizarr.open(tmp_path / "target", mode="r").keys())

    @pytest.mark.parametrize("place", ["source", "target"])
    def test_memory_cannot_be_shared(self, client, source, tmp_path, place):
        places = {"source": source, "target": tmp_path / "target", place: MemoryStore(contents(LocalStore(source)))}
        if place == "target":
            places["target"] = MemoryStore()
        with pytest.raises(errors.SchedulerError, match="in the memory of this process"):
            omnizarr.convert(places["source"], places["target"], scheduler=client)
        assert not (tmp_path / "target").exists()

    def test_archive_cannot_be_written_by_several(self, client, source, tmp_path):
        with pytest.raises(errors.SchedulerError, match="cannot be sent"):
            omnizarr.convert(source, tmp_path / "new.zip", scheduler=client)

    @pytest.mark.parametrize("place", ["source", "target"])
    def test_worker_that_does_not_see_the_data(self, client, source, tmp_path, place):
        places = {"source": LocalStore(source), "target": LocalStore(tmp_path / "target")}
        places[place] = OnlyHere(places[place])
        with pytest.raises(errors.SchedulerError, match="does not see"):
            omnizarr.convert(places["source"], places["target"], scheduler=client)

    def test_nobody_at_the_address(self, source, tmp_path):
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "300ms"}),
            pytest.raises(errors.SchedulerError, match="cannot be reached"),
        ):
            omnizarr.convert(source, tmp_path / "target", scheduler="tcp://127.0.0.1:1")

    @pytest.mark.parametrize("scheduler", [5, "threads"])
    def test_no_scheduler(self, source, tmp_path, scheduler):
        with pytest.raises((TypeError, errors.SchedulerError)):
            omnizarr.convert(source, tmp_path / "target", scheduler=scheduler)
        assert not (tmp_path / "target").exists()

    def test_cluster_without_workers(self, monkeypatch, source, tmp_path):
        monkeypatch.setattr(executors, "_PATIENCE", 0.5)
        monkeypatch.setattr(executors, "_GLANCE", 0.1)
        with cluster(0) as idle, pytest.raises(errors.SchedulerError, match="no worker"):
            omnizarr.convert(source, tmp_path / "target", scheduler=idle)

    def test_not_installed(self, monkeypatch, source, tmp_path):
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(errors.MissingDependencyError, match=r"omnizarr\[dask\]"):
            omnizarr.convert(source, tmp_path / "target", scheduler="tcp://127.0.0.1:8786")


class TestCopying:
    def test_array_of_one_format(self, client, source, tmp_path):
        target = Watched(LocalStore(tmp_path / "target"), tmp_path / "log", 0.01)
        dest = omnizarr.create_group(target)
        pids = processes(client)
        done = omnizarr.copy(omnizarr.open(source)["a"], dest, scheduler=client)
        assert done == (1, 0, VALUES.nbytes)
        assert {pid for pid, _ in target.written()} <= pids
        expected, found = LocalStore(source / "a"), LocalStore(tmp_path / "target" / "a")
        assert contents(found) == contents(expected)
        again = omnizarr.copy(omnizarr.open(source)["a"], dest, if_exists="replace", scheduler=client)
        assert again.copied == 1
        assert contents(found) == contents(expected)

    def test_array_with_storage_transformers(self, client, tmp_path):
        named = {"name": "unheard.of", "must_understand": False}
        root = omnizarr.create_group(tmp_path / "source")
        root.create_array("a", data=VALUES, chunks=(80, 80))
        document = tmp_path / "source" / "a" / "zarr.json"
        document.write_text(json.dumps({**json.loads(document.read_text()), "storage_transformers": [named]}))
        dest = omnizarr.create_group(tmp_path / "target")
        omnizarr.copy(omnizarr.open(tmp_path / "source")["a"], dest, scheduler=client)
        assert contents(LocalStore(tmp_path / "target" / "a")) == contents(LocalStore(tmp_path / "source" / "a"))

    def test_group_into_another_format(self, client, source, tmp_path):
        target = Watched(LocalStore(tmp_path / "target"), tmp_path / "log")
        dest = omnizarr.create_group(target, zarr_format=2)
        done = omnizarr.copy_all(omnizarr.open(source), dest, scheduler=client, chunks=(64, 320))
        assert done.copied == 1
        assert (dest["a"].chunks, dest["a"].zarr_format, dest.attrs["title"]) == ((64, 320), 2, "t")
        np.testing.assert_array_equal(dest["a"][...], VALUES)

    def test_store(self, client, source, tmp_path):
        target = Watched(LocalStore(tmp_path / "target"), tmp_path / "log")
        lines = []
        done = omnizarr.copy_store(source, target, scheduler=client, log=lines.append)
        assert done == omnizarr.copy_store(source, {})
        assert len(lines) == done.copied == 18
        assert {pid for pid, _ in target.written()} <= processes(client)
        assert contents(LocalStore(source)) == contents(LocalStore(tmp_path / "target"))

    def test_memory_cannot_be_shared(self, client, source):
        for copy in (omnizarr.copy_all, omnizarr.copy_store):
            target = omnizarr.create_group({}) if copy is omnizarr.copy_all else {}
            given = omnizarr.open(source) if copy is omnizarr.copy_all else source
            with pytest.raises(errors.SchedulerError, match="in the memory"):
                copy(given, target, scheduler=client)


class TestDask:
    def test_workers_store_what_does_not_align(self, client, tmp_path):
        target = omnizarr.create_array(tmp_path, shape=VALUES.shape, dtype="f8", chunks=(40, 40), shards=(80, 160))
        waiting = da.store(da.from_array(VALUES, chunks=(65, 85)), target, lock=False, compute=False)
        client.compute(waiting).result(timeout=PATIENCE)
        np.testing.assert_array_equal(target[...], VALUES)

    def test_workers_store_in_an_object_store_what_does_not_align(self, client, bucket):
        place = f"{bucket.url}/array"
        target = omnizarr.create_array(
            place, storage_options=bucket.options, shape=VALUES.shape, dtype="f8", chunks=(80, 160)
        )
        waiting = da.store(da.from_array(VALUES, chunks=(65, 85)), target, lock=False, compute=False)
        client.compute(waiting).result(timeout=PATIENCE)
        np.testing.assert_array_equal(target[...], VALUES)

    def test_workers_read(self, client, source):
        array = da.from_array(omnizarr.open(source)["a"], chunks=(80, 80))
        assert client.compute(array.sum()).result(timeout=PATIENCE) == pytest.approx(VALUES.sum())

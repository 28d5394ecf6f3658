"""The process in which one peer lives: ``python -m benchmarks.worker PEER``, spoken to in lines of JSON.

It says hello (or that its library is absent), then answers each request: ``prepare`` (make ready what one run of a
workload needs), ``run`` (do it on the clock), ``check`` (read an array that another worker wrote). What a library
prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.peers import PEERS
from benchmarks.peers.contract import Absent, Peer, Unsupported
from benchmarks.workloads import BY_NAME, JOINING, WRITING, AnyArray, Dataset, Region, Selection, Workload, whole

BATCH = 0.02  # seconds: what is quicker is repeated until they are over, and divided


@dataclass
class Run:
    """One workload as this worker does it, ready to begin."""

    peer: Peer
    workload: Workload
    dataset: Dataset
    selections: list[Selection]
    path: Path  # of the array or group
    values: AnyArray
    array: Any = None
    kept: dict[Path, Any] = field(default_factory=dict)  # what was joined, for the workloads that read it

    def close(self) -> None:
        """Release the array."""
        if self.array is not None:
            self.peer.close(self.array)
            self.array = None

    def remove(self) -> None:
        """Delete the array or group."""
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.unlink(missing_ok=True)

    def equal(self, results: list[AnyArray]) -> bool:
        """Tell if results are what NumPy has there."""
        return all(
            np.array_equal(np.asarray(result).reshape(expected.shape), expected)
            for result, expected in zip(results, (some.of(self.values) for some in self.selections), strict=True)
        )


# Each verb: how to make ready (before the clock), what to do (on the clock), and how to tell that it was right.


def _nothing(_run: Run) -> None:
    pass


def _opened(run: Run) -> None:
    if run.array is None:  # stays open from the trial on: with a cache, what is measured is reading again
        run.array = run.peer.open(run.path, cache=run.workload.cache)
        run.peer.plan(run.dataset, run.path, run.array, run.selections)


def _read(run: Run) -> list[AnyArray]:
    return [run.peer.read(run.array, selection) for selection in run.selections]


def _read_in_threads(run: Run) -> list[AnyArray]:
    threads = run.workload.threads
    if threads == 1:
        return _read(run)
    if not run.peer.serves_threads:
        raise Unsupported("no calls from several threads")

    def share(number: int) -> list[AnyArray]:
        return [run.peer.read(run.array, selection) for selection in run.selections[number::threads]]

    with ThreadPoolExecutor(threads) as pool:
        shares = list(pool.map(share, range(threads)))
    return [shares[number % threads][number // threads] for number in range(len(run.selections))]


def _read_one_by_one(run: Run) -> None:
    for selection in run.selections:
        run.peer.read(run.array, selection)


def _created(run: Run) -> None:
    run.remove()
    run.peer.create(run.dataset, run.path)
    run.array = run.peer.open(run.path)
    run.peer.plan(run.dataset, run.path, run.array, [])


def _write(run: Run) -> None:
    run.peer.write(run.array, run.values)


def _open_and_read(run: Run) -> list[AnyArray]:
    array = run.peer.open(run.path)
    return [run.peer.read(array, selection) for selection in run.selections]


def _create(run: Run) -> None:
    run.peer.create_nodes(run.path, data.node_names(run.dataset), data.node(run.dataset))


def _is_group(run: Run, _result: Any) -> bool:
    return data.is_group(run.dataset, run.path)


def _open_nodes(run: Run) -> Any:
    return run.peer.open_nodes(run.path, data.node_names(run.dataset))


def _shapes(run: Run, result: Any) -> bool:
    return bool(result == dict.fromkeys(data.node_names(run.dataset), data.node(run.dataset).shape))


def _join(run: Run) -> Any:
    return run.peer.join([run.path / name for name in data.source_names(run.dataset)])


def _is_joined(run: Run, result: Any) -> bool:
    run.kept.clear()
    run.kept[run.path] = result
    return tuple(result.shape) == run.dataset.shape


def _joined(run: Run) -> None:
    if run.path not in run.kept:
        run.kept.clear()
        run.kept[run.path] = _join(run)


def _read_joined(run: Run) -> list[AnyArray]:
    return [
        run.peer.joined_region(run.kept[run.path], some.slices) for some in run.selections if isinstance(some, Region)
    ]


def _right(_run: Run, _result: Any) -> bool:
    return True


VERBS: dict[str, tuple[Callable[[Run], None], Callable[[Run], Any], Callable[[Run, Any], bool]]] = {
    "read": (_opened, _read, Run.equal),
    "read in threads": (_opened, _read_in_threads, Run.equal),
    "write": (_created, _write, _right),  # another worker checks
    "open and read": (_opened, _open_and_read, Run.equal),
    "create": (Run.remove, _create, _is_group),
    "open": (_nothing, _open_nodes, _shapes),
    "list": (_nothing, lambda run: run.peer.list_nodes(run.path), _shapes),
    "consolidated": (_nothing, lambda run: run.peer.consolidated(run.path), _shapes),
    "join": (_nothing, _join, _is_joined),
    "read joined": (_joined, _read_joined, Run.equal),
    "memory": (_opened, _read, Run.equal),
    "stream": (_opened, _read_one_by_one, _right),
}


def seconds(run: Run, *, again: bool) -> float:
    """Time one go; if `again`, what is quick is repeated, and the mean of a go returned."""
    prepare, action, _ = VERBS[run.workload.verb]
    prepare(run)
    times = 1
    while True:
        began = time.perf_counter()
        for _ in range(times):
            result = action(run)  # freed off the clock, at least the last
        took = time.perf_counter() - began
        del result
        if not again or took >= BATCH / 2:
            return took / times
        times = min(1000, int(BATCH / max(took / times, 1e-7)) + 1) if times == 1 else times * 2


def peak(run: Run) -> int:
    """Return by how many bytes this process grows at most; meant for a fresh one."""
    prepare, action, _ = VERBS[run.workload.verb]
    prepare(run)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    action(run)
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


class Worker:
    """Answers requests about one peer."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._run: Run | None = None
        self._kept: dict[Path, Any] = {}

    def prepare(self, workload: str, scale: int, path: str, values: str | None) -> dict[str, Any]:
        """Get to know the workload."""
        found = BY_NAME[workload]
        if found.verb not in JOINING:
            self._kept.clear()
        dataset = found.dataset.scaled(scale)
        numbers = data.load_values(Path(values)) if values else np.empty(0)
        self._run = Run(self._peer, found, dataset, found.select(dataset, scale), Path(path), numbers, kept=self._kept)
        return {}

    def store(self) -> dict[str, Any]:
        """Write the array that is read later; not on the clock."""
        assert self._run is not None
        _created(self._run)
        _write(self._run)
        self._run.close()
        return {}

    def trial(self) -> dict[str, Any]:
        """Do it once, and tell if it was right."""
        run = self._run
        assert run is not None
        prepare, action, right = VERBS[run.workload.verb]
        prepare(run)
        began = time.perf_counter()
        result = action(run)
        took = time.perf_counter() - began
        if run.workload.verb == "write":
            run.close()  # others will read it
        return {"seconds": took, "right": right(run, result)}

    def run(self) -> dict[str, Any]:
        """Do it on the clock, and tidy up."""
        run = self._run
        assert run is not None
        if run.workload.unit == "B":
            return {"value": peak(run)}
        writing = run.workload.verb in WRITING
        found = seconds(run, again=not writing)
        if writing:
            run.remove()
        return {"value": found}

    def discard(self) -> dict[str, Any]:
        """Delete what was written."""
        assert self._run is not None
        self._run.remove()
        return {}

    def check(self, workload: str, scale: int, path: str, values: str) -> dict[str, Any]:
        """Read a whole array that somebody wrote, and tell if it is right."""
        dataset = BY_NAME[workload].dataset.scaled(scale)
        numbers = data.load_values(Path(values))
        run = Run(self._peer, BY_NAME[workload], dataset, whole(dataset, 1), Path(path), numbers)
        _opened(run)
        right = run.equal(_read(run))
        run.close()
        return {"right": right}

    def forget(self) -> dict[str, Any]:
        """Release arrays and files."""
        if self._run is not None:
            self._run.close()
        self._run = None
        return {}


def answer(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked for; what goes wrong is an answer too."""
    try:
        done: dict[str, Any] = getattr(worker, request.pop("do"))(**request)
    except Unsupported as reason:
        return {"unsupported": str(reason)}
    except Exception as error:  # noqa: BLE001  (any library may raise anything)
        return {"failed": f"{type(error).__name__}: {error}"}
    return done


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(something: dict[str, Any]) -> None:
        answers.write(json.dumps(something) + "\n")
        answers.flush()

    try:
        peer = PEERS[sys.argv[1]].load()
        say({"version": peer.version(), "python": sys.version.split()[0]})
    except (ImportError, Absent) as reason:
        say({"absent": str(reason)})
        return
    worker = Worker(peer)
    for line in sys.stdin:
        say(answer(worker, json.loads(line)))


if __name__ == "__main__":
    main()

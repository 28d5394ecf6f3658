"""Run workloads: start the workers, let them take turns, keep what they measure."""

from __future__ import annotations

import json
import os
import platform
import random
import select
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.peers import PEERS, Entry
from benchmarks.workloads import BY_NAME, JOINING, WRITING, Dataset, Workload

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 600.0  # seconds for one answer
FEWEST = 2  # rounds that everybody takes part in, however slow
LONG = 3.0  # seconds: what takes longer is measured once, in the trial
FRESH = 3  # rounds of what needs fresh processes, and gives nearly the same each time
IMPORT = "import numpy, time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"

BEGIN = """
import numpy, sys, time
from pathlib import Path
from benchmarks.peers import PEERS
key, path, length = sys.argv[1:]
began = time.perf_counter()
peer = PEERS[key].load()
array = peer.open(Path(path))
peer.region(array, (slice(0, int(length)),) * 2)
print(time.perf_counter() - began)
"""


class Died(Exception):  # noqa: N818
    """A worker ended, or gave no answer in time."""


class Client:
    """A worker, seen from here."""

    def __init__(self, key: str, python: str) -> None:
        self.key, self.python, self.entry = key, python, PEERS[key]
        self._process: subprocess.Popen[str] | None = None
        self.hello = self._start()

    def _start(self) -> dict[str, Any]:
        self._process = subprocess.Popen(  # noqa: S603
            [self.python, "-m", "benchmarks.worker", self.key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=environment(self.entry),
        )
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            code = self.close()
            raise Died(f"the process died ({code})" if ready else "no answer")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, verb: str, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; a worker that died before is started again."""
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": verb, **request}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Died(f"the process died ({self.close()})")
        return self._answer()

    def close(self) -> int | None:
        """End the process, and return its exit code: the negative number of a signal, if it died of one."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.close()
            process.wait(5)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            process.kill()
            process.wait()
        process.stdout.close()
        return process.returncode


def takes_part(entry: Entry, workload: Workload) -> bool:
    """Tell if a peer is asked to do a workload at all."""
    return not entry.verbs or workload.verb in entry.verbs


def environment(entry: Entry) -> dict[str, str]:
    """Return the environment of a worker."""
    # What is installed for use has its bytecode beside it; a checkout gets it in the first round.
    found = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**found, **entry.environment}


@dataclass
class Result:
    """What one workload gave: values per peer (seconds, or bytes), and why others have none."""

    workload: Workload
    dataset: Dataset  # as large as it was
    title: str  # which names the size that it had
    group: str
    values: dict[str, list[float]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, workload: Workload, scale: int) -> Result:
        """Return one without figures, for a workload at this scale."""
        return cls(workload, workload.dataset.scaled(scale), workload.title_at(scale), workload.group_at(scale))

    def median(self, key: str) -> float | None:
        return statistics.median(self.values[key]) if key in self.values else None


@dataclass
class Report:
    """Everything of one run."""

    about: dict[str, str]
    versions: dict[str, str]
    absent: dict[str, str]
    results: list[Result] = field(default_factory=list)

    @property
    def ours(self) -> str:
        """The peer that targets are about: the native engine if it exists."""
        return next((key for key in self.versions if PEERS[key].role == "ours"), "omnizarr")

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON."""
        results = {
            found.workload.name: {
                "title": found.title,
                "group": found.group,
                "shape": found.dataset.shape,
                "values": found.values,
                "reasons": found.reasons,
            }
            for found in self.results
        }
        return {"about": self.about, "versions": self.versions, "absent": self.absent, "results": results}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Report:
        """Take what `to_json` returned."""
        results = []
        for name, found in document["results"].items():
            if name not in BY_NAME:
                continue
            workload = BY_NAME[name]
            dataset = Dataset(**{**vars(workload.dataset), "shape": tuple(found["shape"])})
            results.append(Result(workload, dataset, found["title"], found["group"], found["values"], found["reasons"]))
        return cls(document["about"], document["versions"], document["absent"], results)


def enlist(pythons: Sequence[str], keys: Iterable[str] = PEERS) -> tuple[list[Client], dict[str, str]]:
    """Start a worker per peer, in the first interpreter that has it; return them, and who is absent and why."""
    clients: list[Client] = []
    absent: dict[str, str] = {}
    for key in keys:
        for python in pythons:
            client = Client(key, python)
            if "absent" not in client.hello:
                clients.append(client)
                absent.pop(key, None)
                break
            client.close()
            absent.setdefault(key, client.hello["absent"])
    return clients, absent


class Bench:
    """A run in a directory, with workers that take turns."""

    def __init__(self, clients: list[Client], folder: Path, *, scale: int, rounds: int, budget: float) -> None:
        self._clients, self._folder, self._scale, self._rounds = clients, folder, scale, rounds
        self._budget = budget
        self._present: tuple[Dataset, dict[str, str]] | None = None  # the dataset on disk; path (or reason) by suffix
        self._random = random.Random(0)

    def measure(self, workload: Workload) -> Result:
        """Run one workload."""
        result = Result.of(workload, self._scale)
        if workload.verb == "import":
            self._import(result)
        elif workload.verb == "begin":
            self._begin(result)
        else:
            self._work(result)
        for client in self._clients:
            self._try(result, client, "forget")
        return result

    def _import(self, result: Result) -> None:
        for _ in range(self._rounds * 2):
            for client in self._clients:
                if client.entry.imports:
                    command = [client.python, "-c", IMPORT.format(client.entry.imports)]
                    done = subprocess.run(  # noqa: S603
                        command, capture_output=True, text=True, check=True, env=environment(client.entry)
                    )
                    result.values.setdefault(client.key, []).append(float(done.stdout))

    def _begin(self, result: Result) -> None:
        """Import a library, open an array and read a chunk of it, each time in a new process."""
        self._make(result.workload, result)
        length = str(result.dataset.chunks[0])
        for _ in range(self._rounds):
            for client in self._clients:
                path = self._request(result, client)["path"]
                if client.entry.role == "floor" or not takes_part(client.entry, result.workload):
                    continue
                done = subprocess.run(  # noqa: S603
                    [client.python, "-c", BEGIN, client.key, path, length],
                    capture_output=True, text=True, check=False, cwd=ROOT, env=environment(client.entry),
                )  # fmt: skip
                if done.returncode:
                    result.reasons[client.key] = done.stderr.strip().rpartition("\n")[2]
                else:
                    result.values.setdefault(client.key, []).append(float(done.stdout))

    def _work(self, result: Result) -> None:
        workload = result.workload
        self._make(workload, result)
        taking_part = [client for client in self._clients if self._trial(result, client)]
        taking_part = [client for client in taking_part if client.key not in result.values]
        if workload.unit == "B":
            for client in taking_part:
                client.close()  # who is measured is a fresh process
        for number in range(min(self._rounds, FRESH) if workload.unit == "B" else self._rounds):
            self._random.shuffle(taking_part)
            for client in list(taking_part):
                spent = sum(result.values.get(client.key, []))
                if workload.unit == "s" and number >= FEWEST and spent > self._budget:
                    continue
                if (
                    workload.unit == "B"
                    and self._try(result, client, "prepare", **self._request(result, client)) is None
                ):
                    continue
                found = self._try(result, client, "run")
                if found is None:
                    taking_part.remove(client)
                    continue
                result.values.setdefault(client.key, []).append(found["value"])
                if workload.unit == "B":
                    client.close()

    def _trial(self, result: Result, client: Client) -> bool:
        """Let a worker do it once, off the record, and see if it is right."""
        workload = result.workload
        if not takes_part(client.entry, workload):
            return False
        request = self._request(result, client)
        if not Path(request["path"]).exists() and workload.verb not in WRITING:
            result.reasons[client.key] = (
                self._present[1].get(request["path"], "no file") if self._present else "no file"
            )
            return False
        if self._try(result, client, "prepare", **request) is None:
            return False
        found = self._try(result, client, "trial")
        if found is None:
            return False
        right = found["right"]
        if workload.verb == "write":
            right = self._written(result, client, request)
        if workload.verb in WRITING:
            self._try(result, client, "discard")
        if not right:
            result.reasons[client.key] = "other values"
        elif workload.unit == "s" and found["seconds"] > LONG:
            result.values[client.key] = [found["seconds"]]
        return bool(right)

    def _written(self, result: Result, client: Client, request: dict[str, Any]) -> bool:
        """Let another library read what one wrote, where there is one."""
        others = [
            other for other in self._clients
            if other.entry.role == "peer" and other.entry.module != client.entry.module
            and other.entry.suffix == client.entry.suffix
        ]  # fmt: skip
        for other in [*others, client]:
            found = self._try(None, other, "check", **request)
            if found is not None:
                return bool(found["right"])
        return False

    def _try(self, result: Result | None, client: Client, verb: str, **request: Any) -> dict[str, Any] | None:
        try:
            found = client.ask(verb, **request)
            reason = found.get("unsupported") or found.get("failed")
        except Died as error:
            found, reason = {}, str(error)
        if reason is None:
            return found
        if result is not None:
            result.reasons[client.key] = reason
        return None

    def _request(self, result: Result, client: Client) -> dict[str, Any]:
        workload = result.workload
        name = f"written-{client.key}" if workload.verb in WRITING else f"data-{workload.dataset.name}"
        if workload.verb == "consolidated":
            name += "-consolidated"
        values = self._values if workload.verb not in {"create", "open", "list", "consolidated"} else None
        return {
            "workload": workload.name,
            "scale": self._scale,
            "path": str(self._folder / f"{name}{client.entry.suffix}"),
            "values": str(values) if values else None,
        }

    @property
    def _values(self) -> Path:
        return self._folder / "values.npy"

    def _make(self, workload: Workload, result: Result) -> None:
        """Have values and files of the workload's dataset on disk, and those of no other."""
        if self._present is None or self._present[0] != workload.dataset:
            for path in self._folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            data.create_root(workload.dataset.zarr_format, self._folder)
            if workload.verb in {"create", "open", "list", "consolidated"}:
                for suffix, consolidated in (("", False), ("-consolidated", True)):
                    path = self._folder / f"data-{workload.dataset.name}{suffix}"
                    data.create_group(result.dataset, path, consolidated=consolidated)
            else:
                data.save_values(result.dataset, self._values)
            if workload.verb in JOINING:
                path = self._folder / f"data-{workload.dataset.name}"
                data.create_sources(result.dataset, path, data.load_values(self._values))
            self._present = (workload.dataset, {})
        if workload.verb in {"write", "create", "open", "list", "consolidated", *JOINING}:
            return
        for client in self._clients:
            request = self._request(result, client)
            path, reasons = Path(request["path"]), self._present[1]
            if path.exists() or client.entry.role == "floor" or not takes_part(client.entry, workload):
                continue
            reason = self._store(client, request)
            if reason is None:
                reasons.pop(request["path"], None)
            else:
                reasons.setdefault(request["path"], reason)
                shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)

    def _store(self, client: Client, request: dict[str, Any]) -> str | None:
        """Let a worker write what will be read, and return why it could not."""
        reason: str | None = None
        for verb, arguments in (("prepare", request), ("store", {})):
            try:
                found = client.ask(verb, **arguments)
                reason = found.get("unsupported") or found.get("failed")
            except Died as error:
                reason = str(error)
            if reason is not None:
                return reason
        return None


def about(folder: Path) -> dict[str, str]:
    """Return what figures depend on."""
    cores = len(os.sched_getaffinity(0))
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return {
        "processor": f"{cores} cores, {model}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "file system": file_system(folder),
        "load": f"{os.getloadavg()[0]:.1f}",
        "date": time.strftime("%Y-%m-%d"),
    }


def file_system(folder: Path) -> str:
    """Return the type of the file system that a directory is on."""
    best = ("", "unknown")
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split()
        if folder.resolve().is_relative_to(mount) and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


def run(
    workloads: Sequence[Workload],
    folder: Path,
    *,
    scale: int = 1,
    rounds: int = 7,
    pythons: Sequence[str] = (sys.executable,),
    peers: Iterable[str] = PEERS,
    budget: float = 10.0,
    seen: Callable[[Report, Result], None] | None = None,
) -> Report:
    """Measure `workloads` in the empty directory `folder`; `seen` is called after each.

    A peer that has been on the clock for `budget` seconds in a workload takes part in no more rounds of it.
    """
    clients, absent = enlist(pythons, peers)
    try:
        versions = {client.key: client.hello["version"] for client in clients}
        report = Report({**about(folder), "scale": f"1/{scale}", "rounds": str(rounds)}, versions, absent)
        bench = Bench(clients, folder, scale=scale, rounds=rounds, budget=budget)
        for workload in workloads:
            result = bench.measure(workload)
            report.results.append(result)
            if seen is not None:
                seen(report, result)
    finally:
        for client in clients:
            client.close()
    return report

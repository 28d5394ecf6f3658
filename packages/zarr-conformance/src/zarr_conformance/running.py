"""Run cases against an implementation, and judge what it answers."""

from __future__ import annotations

import datetime as dt
import json
import platform
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zarr_conformance
from zarr_conformance import decoder
from zarr_conformance.case import Case, Nodes, Refusal, Survival, Values, Written
from zarr_conformance.encoder import array_v2, array_v3
from zarr_conformance.process import Answer, Implementation, Request
from zarr_conformance.serving import Server

Json = Any

OUTCOMES = ("pass", "wrong", "refused", "unsupported", "crashed", "timeout", "memory")
"""
``wrong``: other values than the specification says, or values where an error is due. ``refused``: an error where
values are due. ``unsupported``: the implementation says itself that it does not know the feature. ``crashed``,
``timeout``, ``memory``: the process ended, did not end, or took more than it may.
"""


@dataclass(frozen=True)
class Result:
    """What an implementation made of one case."""

    id: str
    level: str
    title: str
    sentence: str
    outcome: str
    detail: str
    seconds: float
    digest: str


@dataclass(frozen=True)
class Run:
    """The results of one implementation."""

    implementation: str
    version: str
    results: tuple[Result, ...]
    date: str = field(default_factory=lambda: dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"))
    kit: str = zarr_conformance.__version__
    platform: str = field(default_factory=lambda: f"{platform.system()} {platform.machine()}")
    about: Json = None

    def count(self, outcome: str, level: str | None = None) -> int:
        return sum(each.outcome == outcome and level in {None, each.level} for each in self.results)

    def levels(self) -> list[str]:
        return list(dict.fromkeys(each.level for each in self.results))

    def as_json(self) -> Json:
        return asdict(self)

    @staticmethod
    def read(path: Path) -> Run:
        document = json.loads(path.read_text("utf-8"))
        return Run(**{**document, "results": tuple(Result(**each) for each in document["results"])})


def run(
    cases: Sequence[Case],
    implementation: Implementation,
    *,
    tick: Callable[[Result], None] | None = None,
    keep: Path | None = None,
) -> Run:
    """Run cases in their order; `tick` is called with each result. Stores stay in `keep`, if it is given."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="zarr-conformance-") as temporary, implementation, Server() as server:
        root = keep or Path(temporary)
        probe(implementation, Path(temporary) / "probe")
        for number, case in enumerate(cases):
            result = one(case, implementation, root / f"{number:04}", server)
            results.append(result)
            if tick is not None:
                tick(result)
        about = implementation.about
    name = str(about.get("implementation", Path(implementation.command[-1]).stem))
    return Run(name, str(about.get("version", "")), tuple(results), about=about or None)


def probe(implementation: Implementation, directory: Path) -> None:
    """End with an error if two plain arrays cannot be read: a wrong command would fail in every case."""
    answers = []
    values = np.arange(6, dtype="int32")
    for name, files in (("v3", array_v3(values, "int32", (3,))), ("v2", array_v2(values, "<i4", (3,)))):
        for key, value in files.items():
            place = directory / name / key
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(value)
        answers.append(implementation.ask(Request("read", str(directory / name))))
        if answers[-1].output == values.tobytes():
            return
    said = "; ".join(f"{each.state}: {each.message or each.output[:80]!r}" for each in answers)
    raise SystemExit(
        f"zarr-conformance: {' '.join(implementation.command)} reads no plain array of v2 or v3. "
        f"Is the command right? {said}"
    )


def one(case: Case, implementation: Implementation, directory: Path, server: Server) -> Result:
    path = str(case.put(directory))
    if case.store == "http":
        path = server.publish(case, Path(path))
    request = Request(case.verb, path, case.selection, case.expects.format, str(directory / "case.json"))
    answer = implementation.ask(request)
    outcome, detail = judged(case, answer, Path(path))
    return Result(
        case.id, case.level, case.title, str(case.sentence), outcome, detail, round(answer.seconds, 4), case.digest
    )


def judged(case: Case, answer: Answer, path: Path) -> tuple[str, str]:
    """Return the outcome of a case and remarks on it."""
    if answer.state in {"crashed", "timeout", "memory"}:
        return answer.state, answer.message
    match case.expects:
        case Survival() | Refusal(unknown=False) if answer.state == "unsupported":
            return answer.state, answer.message  # it did not look at what the case is about
        case Survival():
            return "pass", answer.message
        case Refusal():
            return ("wrong", "read without an error") if answer.state == "ok" else ("pass", answer.message)
        case Written() as expects if answer.state == "ok":
            difference = decoder.check(path, expects)
        case Values() | Nodes() as expects if answer.state == "ok":
            difference = expects.differences(answer.output)
        case _:
            return answer.state, answer.message
    return ("pass", "") if difference is None else ("wrong", difference)


def differing(one: Run, other: Run) -> list[tuple[Result | None, Result | None]]:
    """Return pairs of results of the same case that differ; a case that only one run has stands beside None."""
    left, right = ({each.id: each for each in every.results} for every in (one, other))
    pairs = [(left.get(name), right.get(name)) for name in dict.fromkeys([*left, *right])]
    return [(a, b) for a, b in pairs if a is None or b is None or a.outcome != b.outcome]


def failures(results: Iterable[Result]) -> list[Result]:
    """Return what neither passed nor was left out by the implementation's own word."""
    return [each for each in results if each.outcome not in {"pass", "unsupported"}]

"""A program in which threads use something of omnizarr for the first time, all at once, while imports are slow.

``python -m tests.concurrency.first_uses FOLDER``. Most modules are imported at their first use, which several threads
can begin together. Each use gets a process of its own, a fork of one that has only imported omnizarr. In it, each
module of omnizarr waits a moment between its entry into `sys.modules` and its first line: a thread that takes it from
there finds it empty.

The last line of its output is JSON: the number of uses, and what went wrong.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import omnizarr
from omnizarr.stores import resolve

THREADS = 3
PAUSE = 0.003
PATIENCE = 100
"""Seconds after which threads hang that wait for each other's imports."""


class _SlowLoader(Loader):
    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        time.sleep(PAUSE)
        self.loader.exec_module(module)


class SlowImports(MetaPathFinder):
    """Modules of omnizarr, which wait a moment before their first line."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith("omnizarr.") else None
        if spec is None or not hasattr(spec.loader, "exec_module") or spec.name.endswith("_native"):
            return None
        spec.loader = _SlowLoader(spec.loader)
        return spec


def _make(folder: str) -> None:
    """Write what the uses read: arrays of the values 0 to 5, in stores of several kinds."""
    values = np.arange(6, dtype="i4")
    for name in ("plain.zarr", "x.zip", "x.sqlite"):
        group = omnizarr.create_group(f"{folder}/{name}")
        group.create_array("a", data=values, chunks=(4,))
    omnizarr.convert(f"{folder}/plain.zarr", f"{folder}/x.nc3")
    (Path(folder) / "x.npy").write_bytes(b"\x93NUMPY\x01\0")
    (Path(folder) / "n5.n5").mkdir()
    (Path(folder) / "n5.n5/attributes.json").write_text('{"n5": "2.0.0"}')


def _values(place: str) -> Callable[[str, int], Any]:
    return lambda folder, _: omnizarr.open(f"{folder}/{place}")["a"][:].tolist()


def _refused(place: str) -> Callable[[str, int], Any]:
    def use(folder: str, _: int) -> str:
        try:
            omnizarr.open(place.format(folder))
        except (OSError, ValueError) as error:
            return type(error).__name__
        return "opened"

    return use


def _store(url: str, **options: str) -> Callable[[str, int], Any]:
    return lambda *_: type(resolve(url, "r", options)[0]).__name__


def _created(place: str, **options: Any) -> Callable[[str, int], Any]:
    def use(folder: str, number: int) -> Any:
        array = omnizarr.create_array(f"{folder}/made/{number}/{place}", shape=(4,), chunks=(2,), dtype="i4", **options)
        array[:] = 3
        return array[:].tolist()

    return use


async def _awaited(folder: str) -> Any:
    array = await omnizarr.aio.open_array(f"{folder}/plain.zarr/a")
    return (await array.getitem(slice(None))).tolist()


USES: dict[str, Callable[[str, int], Any]] = {
    "open": _values("plain.zarr"),
    "zip": _values("x.zip"),
    "sqlite": _values("x.sqlite"),
    "netCDF-3": _values("x.nc3"),
    "not Zarr": _refused("{}/x.npy"),
    "n5": _refused("{}/n5.n5"),
    "s3": _store("s3://bucket/nothing.zarr", endpoint="http://127.0.0.1:9", region="x"),
    "http": _store("http://127.0.0.1:9/nothing.zarr"),
    "references": _refused("reference://{}/nothing.json"),
    "icechunk": _refused("icechunk://{}/nothing@main"),
    "ocdbt": _refused("ocdbt://{}/nothing"),
    "memory": lambda _, number: omnizarr.open_group(f"memory://m{number}", mode="w").name,
    "create v2": _created("v2.zarr", zarr_format=2),
    "create v3 shards": _created("v3.zarr", shards=(4,)),
    "check": lambda folder, _: len(omnizarr.check(f"{folder}/plain.zarr").findings),
    "digest": lambda folder, _: str(omnizarr.digest(f"{folder}/plain.zarr")),
    "convert": lambda folder, n: str(omnizarr.convert(f"{folder}/plain.zarr", f"{folder}/to{n}", zarr_format=2).nodes),
    "consolidate": lambda folder, _: str(omnizarr.consolidate_metadata(f"{folder}/x.sqlite").name),
    "netcdf": lambda folder, _: omnizarr.netcdf.Dataset(f"{folder}/x.nc3")["a"][:].tolist(),
    "aio": lambda folder, _: asyncio.run(_awaited(folder)),
    "concat": lambda folder, _: omnizarr.concat([omnizarr.open(f"{folder}/plain.zarr/a")] * 2, axis=0)[:].tolist(),
}


def _at_once(use: Callable[[str, int], Any], folder: str) -> list[str]:
    """Return what went wrong while several threads did the same."""
    sys.meta_path.insert(0, SlowImports())
    begin, results, failures = threading.Barrier(THREADS), [], []

    def run(number: int) -> None:
        begin.wait()
        try:
            results.append(use(folder, number))
        except Exception:  # noqa: BLE001 - reported
            failures.append(traceback.format_exc(limit=-3))

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if len(results) + len(failures) < THREADS:
        failures.append("threads hang")
    if any(result != results[0] for result in results[1:]):
        failures.append(f"different results: {results}")
    return failures


def _in_fork(work: Callable[[], list[str]]) -> list[str]:
    """Do something in a process that has imported nothing but omnizarr; return what went wrong."""
    incoming, outgoing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = work()
        except BaseException:  # noqa: BLE001 - reported by the parent
            answer = [traceback.format_exc()]
        os.write(outgoing, json.dumps(answer).encode()[:60000])
        os._exit(0)
    os.close(outgoing)
    with os.fdopen(incoming, "rb") as answers:
        text = answers.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ["the process died"]  # type: ignore[no-any-return]


def main(folder: str) -> None:
    """Try each use; print what went wrong."""
    failures = [("making", text) for text in _in_fork(lambda: _make(folder) or [])]
    for title, use in USES.items():
        failures += [(title, text) for text in _in_fork(lambda use=use: _at_once(use, folder))]
    print(json.dumps({"uses": len(USES), "failures": failures}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])

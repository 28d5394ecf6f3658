"""A program that interrupts a verb while it starts threads, at each place, each time in a process without threads.

``python -m tests.concurrency.starting VERB COUNT``: the name of a verb, and at how many places; 0: at each. A place is
one where Python looks for signals while it starts a thread, gives it work or waits for it. Each interrupt gets a child
of its own, which is a fork, because a pool that has its threads shows nothing. The child then sees that no thread is at
work any more, and that what the caller writes into its array later is not stored; and it has to end by itself.

The last line of its output is JSON: the number of interrupts, and what went wrong.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import omnizarr
from omnizarr.interop.zarr_python import ZarrPythonStore
from omnizarr.stores import Features, FsspecStore, MemoryStore, Span, Store, WrapperStore
from omnizarr.stores.base import Buffer
from omnizarr.stores.remote import deadlines
from tests.concurrency.interruptions import Interrupter
from tests.concurrency.latecomers import LateFiles, LateStore, Tally

PATIENCE = 100
"""Seconds after which a child hangs; it needs less than one."""
LATER = 7
HERE = (
    *("support/workers.py", "stores/pool.py", "/threading.py", "futures/thread.py", "futures/_base.py"),
    *("remote/loops.py", "remote/deadlines.py", "asyncio/tasks.py", "asyncio/base_events.py"),
    *("remote/fsspec.py", "remote/filesystems.py", "remote/zarr_python.py", "zarr/core/sync.py", "fsspec/asyn.py"),
)


class Slow(WrapperStore):
    """A store that takes its time, and counts the threads that are in it."""

    def __init__(self, store: Any, tally: Tally) -> None:
        super().__init__(store)
        self.tally = tally
        self._count = threading.RLock()

    @property
    def features(self) -> Features:
        return replace(self.store.features, concurrency=4)

    def _take_time(self, verb: Callable[[], Any]) -> Any:
        if threading.current_thread() is threading.main_thread():
            return verb()
        with self._count:
            self.tally.begun += 1
            self.tally.at_work += 1
        try:
            time.sleep(0.01)
            return verb()
        finally:
            with self._count:
                self.tally.at_work -= 1

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value, later."""
        return self._take_time(lambda: self.store.get(key, span))  # type: ignore[no-any-return]

    def set(self, key: str, value: Buffer) -> None:
        """Store the value, later."""
        self._take_time(lambda: self.store.set(key, value))

    def exists(self, key: str) -> bool:
        """Return whether there is one, later."""
        return self._take_time(lambda: self.store.exists(key))  # type: ignore[no-any-return]

    def size(self, key: str) -> int | None:
        """Return the size, later."""
        return self._take_time(lambda: self.store.size(key))  # type: ignore[no-any-return]


def in_threads(values: dict[str, bytes], tally: Tally) -> Store:
    """Return a store that a thread waits for."""
    return Slow(MemoryStore(values), tally)


def of_fsspec(values: dict[str, bytes], tally: Tally) -> Store:
    """Return a store whose requests are coroutines on the event loop of fsspec."""
    return FsspecStore(LateFiles(values, tally))


def of_zarr_python(values: dict[str, bytes], tally: Tally) -> Store:
    """Return a store whose requests are coroutines on the event loop of zarr-python."""
    return ZarrPythonStore(LateStore(values, tally))


STORES = {"threads": in_threads, "fsspec": of_fsspec, "zarr-python": of_zarr_python}


class Case:
    """A store with arrays, and the array of the caller."""

    def __init__(self, kind: str) -> None:
        self.tally = Tally()
        self.held: dict[str, bytes] = {}
        self.store = STORES[kind](self.held, self.tally)
        self.target = STORES[kind]({}, self.tally)
        self.values = np.ones((12, 3))
        group = omnizarr.create_group(MemoryStore(self.held))
        for name in "abcdefgh":
            group.create_array(name, data=self.values * 2, chunks=(1, 3), compressors=None, config={"concurrency": 1})
        self.group = omnizarr.open_group(self.store, mode="r+")
        self.array = self.group["a"]
        self.interrupt = Interrupter()

    def stored(self) -> np.ndarray:
        return omnizarr.open_array(self.held, path="a", config={"concurrency": 1})[...]  # type: ignore[no-any-return]

    async def wait(self) -> None:
        async with self.tally.later():
            await asyncio.sleep(0.03)


VERBS: dict[str, Callable[[Case], Any]] = {
    "write": lambda case: case.array.set_basic_selection(..., case.values, concurrency=4),
    "write parts": lambda case: case.array.set_basic_selection((..., slice(0, 2)), case.values[:, :2], concurrency=4),
    "read": lambda case: case.array.get_basic_selection(..., concurrency=4),
    "read many": lambda case: omnizarr.read_many([(case.group[name], ...) for name in "abcd"], concurrency=4),
    "members": lambda case: list(case.group.members(max_depth=None)),
    "resize": lambda case: case.array.resize((4, 3)),
    "check": lambda case: omnizarr.check(case.store, data=True, concurrency=4),
    "digest": lambda case: omnizarr.digest(case.store),
    "diff": lambda case: omnizarr.diff(case.store, case.held),
    "copy": lambda case: omnizarr.copy(case.group["a"], omnizarr.create_group(case.target, overwrite=True), "z"),
    "convert": lambda case: omnizarr.convert(case.store, case.target, overwrite=True),
}

ON_LOOPS: dict[str, Callable[[Case], Any]] = {
    "deadline": lambda case: deadlines.within(PATIENCE, case.wait),
}
REMOTE = ("write", "read", "read many", "members", "resize")
CASES = [
    *(f"{verb}, threads" for verb in VERBS),
    *(f"{verb}, {kind}" for kind in ("fsspec", "zarr-python") for verb in REMOTE),
    *ON_LOOPS,
]
"""What can be interrupted: a verb with a store, or a call of its own."""


def places_of(case: Case, verb: Callable[[], object]) -> list[int]:
    """Return the numbers of the places, in a child."""
    seen: list[int] = []
    handle = case.interrupt._handle

    def note(number: int, frame: Any) -> None:
        if frame is not None and frame.f_code.co_filename.replace("\\", "/").endswith(HERE):
            seen.append(case.interrupt.seen + 1)
        handle(number, frame)

    signal.signal(signal.SIGUSR1, note)
    case.interrupt(verb, 0)
    return seen


def in_child(work: Callable[[], str]) -> str:
    """Return the result of `work` in a child that ends as any program does; or that it does not end."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, work().encode())
        sys.exit()
    os.close(writing)
    os.set_blocking(reading, False)
    until = time.monotonic() + PATIENCE
    with os.fdopen(reading, "rb") as pipe:
        said = b""
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            said += pipe.read() or b""  # the child waits until there is room in the pipe
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "the program does not end"
            time.sleep(0.002)
        said += pipe.read() or b""
    return said.decode() if not ended[1] else f"ended with {ended[1]}"


def outcome(case: Case, verb: Callable[[], object], at: int) -> str:
    """Interrupt the verb, and return what is wrong then."""
    interrupt = case.interrupt(verb, at)  # kept with its traceback, as by a prompt
    at_work, begun = case.tally.at_work, case.tally.begun
    case.values[...] = LATER
    time.sleep(0.03)
    found = []
    if interrupt is not None and at_work:
        found.append(f"{at_work} requests are at work")
    if case.tally.begun != begun:
        found.append(f"{case.tally.begun - begun} requests begin later")
    if LATER in case.stored():
        found.append("a later value is stored")
    found += [f"a chunk is half written: {row}" for row in case.stored() if set(row[:2]) not in ({1}, {2}, {0})]
    case.values[...] = 1
    verb()  # no loop is stuck
    return "; ".join([f"interrupted at {case.interrupt.where}", *found]) if found else "" if interrupt else "none"


def trials(name: str, count: int) -> Iterator[str]:
    """Yield the outcome of each interrupt."""
    verb_name, _, kind = name.partition(", ")
    case = Case(kind or "threads")

    def verb() -> object:
        return (VERBS | ON_LOOPS)[verb_name](case)

    places = json.loads(in_child(lambda: json.dumps(places_of(case, verb))))
    assert places
    step = max(1.0, len(places) / count) if count else 1.0
    for number in range(int(len(places) / step)):
        at = places[int(number * step)]
        yield in_child(lambda at=at: outcome(case, verb, at))  # type: ignore[misc]


def main(name: str, count: str) -> None:
    """Run the trials of one verb."""
    omnizarr.config.set({"engine": "reference", "concurrency": 4})
    found = list(trials(name, int(count)))
    failures = [each for each in found if each not in ("", "none")]
    sys.stdout.write(json.dumps({"interrupts": found.count("") + len(failures), "failures": failures}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

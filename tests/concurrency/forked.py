"""A program that forks again and again while threads read and write a store, and sees that parent and child go on.

``python -m tests.concurrency.forked STORE FOLDER COUNT``: the name of a store of `places`, a folder of its own, and how
many children. It writes one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import numpy as np

import omnizarr
from omnizarr.errors import StoreError
from omnizarr.stores import Store, ZipStore
from omnizarr.stores.base import RESERVED
from tests.concurrency import places

PARENT = os.getpid()
PATIENCE = 25
"""Seconds after which a child hangs."""


def _reads(_: Store, array: omnizarr.Array) -> None:
    array[...]
    array.get_basic_selection(slice(2, 30), concurrency=2)


def _writes(_: Store, array: omnizarr.Array) -> None:
    array[3:13] = 3
    array.set_basic_selection(slice(1, 30), np.arange(29), concurrency=2)


def _changes(_: Store, array: omnizarr.Array) -> None:
    array.attrs.update({"n": 1})


def _lists(store: Store, _: omnizarr.Array) -> None:
    list(store.list())
    store.list_dir("a/")
    with suppress(FileNotFoundError):
        omnizarr.open_array(store, path="a", mode="r")


Work = Callable[[Store, omnizarr.Array], None]
WORK: dict[str, Work] = {"read": _reads, "write": _writes, "change attributes": _changes, "list": _lists}


def work_of(store: Store) -> dict[str, Work]:
    """Return what can be done with a store."""
    return {name: work for name, work in WORK.items() if not store.read_only or work in (_reads, _lists)}


def works_on(store: Store, array: omnizarr.Array) -> None:
    """Do all of it once; what only the parent can use has to say so."""
    for work in work_of(store).values():
        try:
            work(store, array)
        except StoreError:
            if os.getpid() == PARENT or type(store) is not ZipStore:
                raise


def children(store: Store, array: omnizarr.Array, count: int) -> tuple[list[int], list[str]]:
    """Fork so often, one child after the other; return how each ended, and what they said of it."""
    ends = []
    report = Path(os.environ.get("TMPDIR", "/tmp")) / f"omnizarr-forked-{os.getpid()}"
    for _ in range(count):
        child = os.fork()
        if not child:
            code = 1
            try:
                signal.signal(signal.SIGALRM, _show)
                signal.alarm(PATIENCE)
                works_on(store, array)
                code = 0
            except BaseException:  # noqa: BLE001 - the parent shows it
                report.write_text(traceback.format_exc())
            finally:
                os._exit(code)
        ends.append(_wait(child))
    said = [report.read_text()] if report.exists() else []
    report.unlink(missing_ok=True)
    return ends, said


def _show(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError("the child hangs")


def _wait(child: int) -> int:
    """Return how a child ended; it is killed if it hangs where no handler of a signal runs."""
    deadline = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(kind: str, folder: str, count: str) -> None:
    """Fork while threads are at work; of a store that children cannot use, see that the parent goes on."""
    warnings.simplefilter("ignore", DeprecationWarning)  # of Python, to fork with threads: that is what is tested
    store = places.STORES[kind](f"{folder}/a.zarr")
    array = places.create(store)
    works_on(store, array)  # a child waits for ever for a module that a thread of its parent is importing
    stop = threading.Event()
    failures: list[str] = []

    def repeat(work: Work) -> None:
        try:
            while not stop.is_set():
                work(store, array)
                time.sleep(0.0005)
        except BaseException:  # noqa: BLE001 - shown at the end
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in work_of(store).values()]
    for thread in threads:
        thread.start()
    ends, said = children(store, array, int(count))
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    hanging = [name for name, thread in zip(work_of(store), threads, strict=True) if thread.is_alive()]
    if hanging:
        failures.append(f"in the parent these hang: {hanging}")
    else:
        works_on(store, array)
    if any(ends):
        failures.append(f"{sum(map(bool, ends))} children failed, {sum(end < 0 for end in ends)} hang: {said}")
    left = [str(path) for path in Path(folder).rglob(f"{RESERVED}*") if kind != "zip"]
    if left:
        failures.append(f"left behind: {left}")
    sys.stdout.write(json.dumps({"forks": len(ends), "failures": failures}) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

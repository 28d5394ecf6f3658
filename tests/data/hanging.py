"""Rounds in which a loader must not hang: ``python -m tests.data.hanging KIND ROUNDS DIRECTORY [URL [OPTIONS]]``.

With a URL, the array is read from there: from a web server of the directory, or, with options as JSON, from a bucket.

A round that takes a minute ends the program, with the place where each thread is.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time

import numpy as np

import omnizarr
from omnizarr.data import Loader
from omnizarr.errors import SettingError

PATIENCE = 60
COUNT = 200
OPTIONS: dict[str, object] = {}


def loader_of(path: str, **options: object) -> Loader:
    array = omnizarr.open_array(path, mode="r", storage_options=OPTIONS or None)
    memory = random.choice([40_000, 8_000])  # for all of the array, or a part of it
    given = {"batch": 8, "shuffle": "full", "memory": memory, "prefetch": 3, **options}
    return Loader({"x": array, "i": np.arange(COUNT)}, **given)


def check(loader: Loader) -> None:
    found = []
    for batch in loader:
        assert (batch["x"][:, 0] == batch["i"]).all()
        found += batch["i"].tolist()
    assert sorted(found) == list(range(COUNT))


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("omnizarr-load")]


def until_none() -> None:
    until = time.monotonic() + 20
    while found := threads():
        if time.monotonic() > until:
            faulthandler.dump_traceback()
            raise AssertionError(found)
        time.sleep(0.001)


def fork(path: str) -> None:
    """Fork in the middle of a loop: the child has loops of its own, and cannot go on with that of its parent."""
    loader = loader_of(path)
    loop = iter(loader)
    for _ in range(random.randrange(1, 5)):
        next(loop)
    faulthandler.cancel_dump_traceback_later()
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE)  # the thread of `faulthandler` is the parent's
        code = 1
        try:
            check(loader_of(path))
            try:
                next(loop)
            except SettingError:
                code = 0
        finally:
            os._exit(code)
    rest = sum(1 for _ in loop)
    _, status = os.waitpid(child, 0)
    assert rest >= 20
    assert os.waitstatus_to_exitcode(status) == 0


def interrupt(path: str) -> None:
    """Ctrl-C at any moment of a loop."""
    loader = loader_of(path, epochs=None)
    seconds = random.random() * 0.05
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, 5)  # again, as Python ignores one while it collects an object
        for batch in loader:
            assert len(batch["i"]) == 8
    except KeyboardInterrupt:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    del loader
    until_none()


def in_process(path: str, start: str, queue: object, options: dict[str, object]) -> None:
    OPTIONS.update(options)
    check(loader_of(path))
    queue.put(start)  # type: ignore[attr-defined]


def processes(path: str, start: str) -> None:
    context = multiprocessing.get_context(start)
    queue = context.SimpleQueue()
    loop = iter(loader_of(path))
    next(loop)
    process = context.Process(target=in_process, args=(path, start, queue, OPTIONS))
    process.start()
    assert queue.get() == start
    process.join(PATIENCE)
    assert process.exitcode == 0
    assert sum(1 for _ in loop) == 24


def leave(path: str) -> None:
    """Loops that are left, and begun again."""
    loader = loader_of(path)
    for _ in range(3):
        for number, _ in enumerate(loader):
            if number == random.randrange(10):
                break
    check(loader)
    until_none()


def killed(path: str) -> None:
    """A worker of a DataLoader is killed: an error, not a hang."""
    from torch.utils.data import DataLoader

    dataset = loader_of(path, epochs=None).as_torch()
    loop = iter(DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork"))
    next(loop)
    os.kill(loop._workers[0].pid, signal.SIGKILL)
    try:
        for _ in range(10_000):
            next(loop)
    except (RuntimeError, OSError, EOFError):  # as torch notices it
        return
    raise AssertionError("nothing was raised")


KINDS = {
    "fork": fork,
    "interrupt": interrupt,
    "leave": leave,
    "killed": killed,
    "process-fork": lambda path: processes(path, "fork"),
    "process-spawn": lambda path: processes(path, "spawn"),
    "process-forkserver": lambda path: processes(path, "forkserver"),
}


def main(kind: str, rounds: int, directory: str, url: str = "", options: str = "") -> None:
    OPTIONS.update(json.loads(options or "{}"))
    written = f"{url}/rows.zarr" if options else f"{directory}/rows.zarr"
    path = f"{url}/rows.zarr" if url else written
    values = np.repeat(np.arange(COUNT, dtype="int32")[:, None], 16, axis=1)
    omnizarr.create_array(written, data=values, chunks=(7, 16), overwrite=True, storage_options=OPTIONS or None)
    random.seed(0)
    for _ in range(rounds):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        KINDS[kind](path)
        faulthandler.cancel_dump_traceback_later()
    sys.stdout.write(f"{kind}: {rounds} rounds\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])

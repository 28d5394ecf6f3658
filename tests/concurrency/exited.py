"""A program that ends again and again while daemon threads read and write a store.

``python -m tests.concurrency.exited STORE FOLDER COUNT``: the name of a store of `places`, a folder of its own, and how
many ends. Each is that of a process of its own, forked before anything is open. It writes one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from omnizarr.errors import StoreError
from omnizarr.settings import engines
from tests.concurrency import forked, places


def end_at_work(kind: str, folder: str, seed: int) -> None:
    """Let daemon threads work on a new store, and leave the program in the midst of it."""
    store = places.STORES[kind](f"{folder}/{seed}.zarr")
    array = places.create(store)

    def repeat(work: forked.Work) -> None:
        with suppress(StoreError if kind == "zip" else ()):  # an archive is closed when the program ends
            while True:
                work(store, array)

    for work in forked.work_of(store).values():
        threading.Thread(target=repeat, args=(work,), daemon=True).start()
    time.sleep(random.Random(seed).uniform(0.01, 0.06))
    sys.exit(0)


def main(kind: str, folder: str, count: str) -> None:
    """End so many processes, and say how they ended."""
    engines.module()  # imported once, and not by each of them
    ends: Counter[int] = Counter()
    said: set[str] = set()
    errors = Path(folder) / "stderr"
    for seed in range(int(count)):
        child = os.fork()
        if not child:
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            end_at_work(kind, folder, seed)
        ends[forked._wait(child)] += 1
        said.add(errors.read_text())
    failures = [f"{number} ended with {code}" for code, number in ends.items() if code]
    failures += sorted(said - {""})
    sys.stdout.write(json.dumps({"exits": sum(ends.values()), "failures": failures}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

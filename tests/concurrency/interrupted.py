"""A program that interrupts each verb of one store at many places, and sees that the store works afterwards.

``python -m tests.concurrency.interrupted STORE FOLDER COUNT [VERB ...]``: the name of a store of `places`, a folder of
its own, and how many interrupts of each verb; 0: one at every place. It writes one line of JSON.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from omnizarr.stores import LMDBStore, LocalStore, SQLiteStore, Store, ZipStore
from omnizarr.stores.base import RESERVED
from tests.concurrency import places
from tests.concurrency.interruptions import Interrupter

PATIENCE = 25
"""Seconds after which something hangs."""


def descriptors() -> list[str]:
    """Return what this process has open."""
    gc.collect()
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # what listed them
            links.append(str(descriptor.readlink()))
    return links


def elsewhere(task: Callable[[], object]) -> str | None:
    """Call `task` in another thread; return what it raised, or that it does not end."""
    failures: list[str] = []

    def work() -> None:
        try:
            task()
        except BaseException:  # noqa: BLE001 - shown by the caller
            failures.append(traceback.format_exc())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        faulthandler.dump_traceback(all_threads=True)
        return "the store hangs"
    return failures[0] if failures else None


class Trial:
    """One store, and what was found out about it."""

    def __init__(self, kind: str, folder: str) -> None:
        self.kind = kind
        self.folder = Path(folder)
        self.store: Store = places.STORES[kind](f"{folder}/a.zarr")
        self.array = places.create(self.store)
        self.interrupt = Interrupter()
        self.interrupts: dict[str, int] = {}
        self.failures: list[str] = []

    def run(self, name: str, count: int) -> None:
        """Interrupt a verb at `count` places, or at each, and look at the store after each time."""

        def verb() -> None:
            places.VERBS[name](self.store, self.array)

        assert elsewhere(lambda: places.works(self.store)) is None
        verb()
        self.interrupt(verb, 0)
        total = self.interrupt.seen
        before = descriptors()
        self.interrupts[name] = 0
        step = max(1.0, total / count) if count else 1.0
        for number in range(int(total / step)):
            at = int(1 + number * step)
            faulthandler.dump_traceback_later(3 * PATIENCE, exit=True)
            self.array.refresh()
            interrupt = self.interrupt(verb, at)
            self.interrupts[name] += interrupt is not None
            # The interrupt is kept meanwhile, as a prompt does, and with it all frames that it has left.
            failure = elsewhere(lambda: places.works(self.store))
            del interrupt
            failure = failure or self._left_behind(before)
            if failure is not None:
                where = self.interrupt.where
                self.failures.append(f"{self.kind}, {name}, interrupted at {at} of {total}, {where}: {failure}")
                if "hangs" in failure:
                    break
                before = descriptors()
        faulthandler.cancel_dump_traceback_later()

    def _left_behind(self, before: list[str]) -> str | None:
        # SQLite itself keeps some open as long as anybody has locks on the database, and an archive all that it has
        # begun to write until it is closed: `close` looks at those.
        kept = {"sqlite": ".sqlite", "zip": RESERVED}.get(self.kind, "\0")
        now, then = ([link for link in links if kept not in link] for links in (descriptors(), before))
        if len(now) > len(then):
            return f"descriptors leaked: {set(now) - set(then) or 'of what was open before'}"
        left = [path for path in self.folder.rglob(f"{RESERVED}*") if self.kind != "zip"]
        for path in left:
            path.unlink()
        return f"files left behind: {left}" if left else None

    def close(self) -> None:
        """Close the store, and see that nothing of it stays open."""
        self.store.close()
        is_open = [link for link in descriptors() if link.startswith(f"{self.folder}/")]
        left = [str(path) for path in self.folder.rglob(f"{RESERVED}*")]
        if is_open or left:
            self.failures.append(f"{self.kind}, closed: open are {is_open}, left behind are {left}")
        if type(self.store) in (LocalStore, ZipStore, SQLiteStore, LMDBStore):
            with places.STORES[self.kind](f"{self.folder}/a.zarr") as again:
                places.works(again)


def main(kind: str, folder: str, count: str, *verbs: str) -> None:
    """Run the trial of one store."""
    trial = Trial(kind, folder)
    for name in verbs or places.verbs_of(trial.store):
        trial.run(name, int(count))
        if any("hangs" in failure for failure in trial.failures):
            break
    else:
        trial.close()
    sys.stdout.write(json.dumps({"interrupts": trial.interrupts, "failures": trial.failures}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads that hang are not waited for


if __name__ == "__main__":
    main(*sys.argv[1:])

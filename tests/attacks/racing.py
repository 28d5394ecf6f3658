"""Races that are decided beforehand: at each step of an operation, a link takes the place of a directory.

A step is a call of the operating system, or of the native core, that looks at names or changes them. Before it, the
directory is moved away. The link leads out of the store, to a directory with files of the same names. Everything
outside must stay. The engine in Rust makes its calls by itself: a test in `rust/src/files/tests.rs` races with those.

`RUNS` says how long: with 1, every seventh step of each verb is raced; with 7 or more, each.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import OmnizarrError
from omnizarr.stores import LocalStore, verbs
from omnizarr.stores.base import RESERVED
from omnizarr.stores.local import files, folders
from tests.repeats import runs

RUNS = runs(1)
STRIDE = max(1, 8 - RUNS)
"""How many steps a sample goes on at a time."""
NATIVE = (
    *("open_beneath", "read_small", "create_with", "set_file"),
    *("members", "delete_file", "delete_files", "delete_tree", "delete_node", "remove_tree"),
)
STEPS = (
    *((os, name) for name in ("open", "unlink", "rmdir", "rename", "replace", "link", "mkdir")),
    *((os, name) for name in ("scandir", "listdir", "stat", "lstat")),
    *((files, name) for name in ("replace", "rename_to_free")),
    *((folders.native(), name) for name in NATIVE if folders.native() is not None),
)
SLASH = {"name": "v2", "separator": "/"}
FOLDERS = ("g", "g/a", "g/a/0")


def make(root: Path) -> None:
    """Make a group with an array of four chunks, with documents of two formats."""
    group = omnizarr.create_group(root, zarr_format=2).create_group("g")
    group.create_array("a", data=np.arange(16).reshape(4, 4), chunks=(2, 2), chunk_key_encoding=SLASH)
    omnizarr.convert(root, zarr_format=3, in_place=True)
    left = root / "g" / "a" / "0" / f"{RESERVED}x.tmp"  # what a repair removes
    left.write_bytes(b"left")
    os.utime(left, (0, 0))


def _rm(root: Path) -> None:
    main(["rm", "-r", str(root / "g")])


def _save(root: Path) -> None:
    group = omnizarr.open_group(root, mode="r+")
    group.create_array("g/a", data=np.ones((4, 4)), chunks=(2, 2), overwrite=True)


def _resize(root: Path) -> None:
    omnizarr.open_array(root, path="g/a", mode="r+").resize((1, 1))


def _fill(root: Path) -> None:
    omnizarr.open_array(root, path="g/a", mode="r+", write_empty_chunks=False)[...] = 0


def _copied(root: Path) -> None:
    (root.parent / "fresh").exists() or omnizarr.create_array(root.parent / "fresh", shape=(2,), dtype="i1")
    omnizarr.copy_node(root.parent / "fresh", root / "g" / "a", overwrite=True)


def _delete_keys(root: Path) -> None:
    verbs.delete_many(LocalStore(root), [f"g/a/{at}" for at in ("0/0", "0/1", "1/0", "1/1")])


def _delete_each(root: Path) -> None:
    store = LocalStore(root)
    for at in ("0/0", "0/1", "1/0", "1/1"):
        store.delete(f"g/a/{at}")


def _set(root: Path) -> None:
    store = LocalStore(root)
    for key in ("g/a/0/0", "g/a/0/new", "g/a/0/new/0", "g/new/0"):
        with suppress(OmnizarrError):  # one is in the way of another
            store.set(key, b"new")
    verbs.set_if_absent(LocalStore(root), "g/a/0/other", b"new")
    LocalStore(root, fsync=True).set("g/a/0/0", b"new")


def _lock(root: Path) -> None:
    with LocalStore(root).lock("g/a/0/0"), LocalStore(root).lock("g/a/new/0"):
        pass


VERBS: dict[str, Callable[[Path], object]] = {
    "rm -r": _rm,
    "delete_node": lambda root: omnizarr.delete_node(root, path="g/a"),
    "mode=w": lambda root: omnizarr.open_group(root, mode="w", zarr_format=3),
    "overwrite=True": lambda root: omnizarr.create_group(root, path="g", overwrite=True, zarr_format=3),
    "overwrite=True with data": _save,
    "del": lambda root: omnizarr.open_group(root, mode="r+").__delitem__("g"),
    "delete_prefix": lambda root: verbs.delete_prefix(LocalStore(root), "g"),
    "clear": lambda root: verbs.delete_prefix(LocalStore(root), ""),
    "delete_many": _delete_keys,
    "delete": _delete_each,
    "set": _set,
    "lock": _lock,
    "resize": _resize,
    "fill": _fill,
    "cp --overwrite": _copied,
    "mv": lambda root: omnizarr.move_node(root, root, path="g/a", target_path="h/a"),
    "move_prefix": lambda root: verbs.move_prefix(LocalStore(root), "g/a/", "h/a/"),
    "repair": lambda root: omnizarr.repair(root, dry_run=False, backup=False),
    "convert in place": lambda root: omnizarr.convert(root, zarr_format=2, in_place=True, remove_old=True),
    "consolidate": omnizarr.consolidate_metadata,
}


class Swap:
    """Replaces a directory by a link to `outside` before the step with a number, and counts the steps."""

    def __init__(self, folder: Path, outside: Path, number: int) -> None:
        self.folder, self.outside, self.number = folder, outside, number
        self.count = 0

    def step(self) -> None:
        self.count += 1
        if self.count == self.number + 1 and self.folder.is_dir() and not self.folder.is_symlink():
            away = self.outside.parent / "away"
            self.folder.rename(away)
            self.folder.symlink_to(self.outside, target_is_directory=True)


@contextmanager
def swapped(swap: Swap) -> Iterator[None]:
    """Let `swap` count the steps of the block."""
    is_at_work = False

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*given: Any, **more: Any) -> Any:
            nonlocal is_at_work
            if not is_at_work:
                is_at_work = True
                try:
                    swap.step()
                finally:
                    is_at_work = False
            return call(*given, **more)

        return watch

    patches = [patch.object(module, name, watched(getattr(module, name))) for module, name in STEPS]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def content(folder: Path) -> dict[str, tuple[object, ...] | None]:
    """Return what is below a directory: which files, with which content, written when."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns)
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


def race(verb: str, place: Path, outside: Path, replaced: tuple[str, ...] = FOLDERS, stride: int = 1) -> Iterator[str]:
    """Do a verb with each swap at each step, or some; yield what changed outside: "" if nothing."""
    template = place / "template"
    make(template)
    VERBS[verb](_copy(template, place / "warm"))  # what is imported makes no steps
    for folder in replaced:
        number, more = 0, True
        while more:
            work = place / "work"
            store = _copy(template, work / "x.zarr")
            before = _outside(store / folder, outside / "tree")
            swap = Swap(store / folder, outside / "tree", number)
            with swapped(swap), suppress(OmnizarrError, OSError):
                VERBS[verb](store)
            more = swap.count > number
            yield "" if content(outside / "tree") == before else f"{folder} replaced at step {number}"
            for each in (work, outside / "tree", outside / "away"):
                shutil.rmtree(each, ignore_errors=True)
            number += stride


def _copy(template: Path, target: Path) -> Path:
    shutil.copytree(template, target)
    return target


def _outside(folder: Path, outside: Path) -> dict[str, tuple[object, ...] | None]:
    """Make a tree outside of the store, of the same names: those of a hierarchy as valid as the one in the store."""
    shutil.copytree(folder, outside)
    (outside / "empty").mkdir()
    return content(outside)


def sweep(verb: str, received: str, folder: str) -> None:
    """Race with a verb and a folder; end with an error that names the first race that changed something outside."""
    place = Path(received)
    for harm in race(verb, place, place.parent.parent / "elsewhere", (folder,), STRIDE):
        if harm:
            raise AssertionError(harm)

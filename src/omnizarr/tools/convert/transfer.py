"""Copy without translation: values of a store, files, and elements of one array into another."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import IO, Any, Final

import numpy as np

from omnizarr.errors import Remedy, StoreError
from omnizarr.model import grids
from omnizarr.nodes.array import Array
from omnizarr.nodes.creating import blocks
from omnizarr.nodes.location import StorePath
from omnizarr.stores import Store, pool
from omnizarr.stores.base import Buffer
from omnizarr.support.progress import Tick, silent
from omnizarr.tools.streaming.executors import Executor, Job, Tally, Written
from omnizarr.tools.streaming.regions import Box

_WHOLE: Final = 4 * 2**20
"""Bytes of a file that is read at once; a larger one is read in such pieces, and one at a time."""


def copy_values(source: StorePath, target: StorePath, keys: Iterable[str], executor: Executor) -> Written:
    """Copy the values of keys below one place to below another; in any order."""
    return executor.run(_Values(source, target), keys, silent)


def copy_files(
    source: StorePath, target: StorePath, keys: Iterable[str], executor: Executor, *, verify: bool, keeps: bool = False
) -> Written:
    """Copy files of any size below one place to below another; a file that exists in the target, and is equal, stays.

    Parameters
    ----------
    source, target : StorePath
    keys : iterable of str
    executor : Executor
    verify : bool
        Whether to read the copies again.
    keeps : bool
        Whether a file at the target stays, whatever it holds.

    Raises
    ------
    StoreError
        If a store fails, or a copy differs.
    """
    return executor.run(_Files(source, target, verify, keeps), keys, silent)


def same_value(one: Store, key: str, other: Store, other_key: str) -> bool:
    """Return whether two stores hold equal bytes at two keys, read in pieces; missing values are equal, too."""
    start = 0
    while True:
        span = start, start + _WHOLE
        left, right = one.get(key, span), other.get(other_key, span)
        if left is None or right is None:
            return left is None and right is None
        if memoryview(left) != memoryview(right):
            return False
        if len(left) < _WHOLE:
            return True
        start += _WHOLE


def fill(target: Array, source: Any, executor: Executor, tick: Tick = silent) -> None:
    """Write the values of an array, of omnizarr or another library, into one of the same shape."""
    grid = grids.bind(target.metadata.chunk_grid, target.shape)
    executor.run(_Elements(target, source), blocks(grid, target.dtype.itemsize), tick)


@dataclass(frozen=True)
class _Values(Job[str]):
    """Copy the value of a key."""

    source: StorePath
    target: StorePath

    @property
    def at_once(self) -> int:
        return max(pool.default_concurrency(), self.source.store.concurrency, self.target.store.concurrency)

    share = 64

    def begin(self, _: dict[str, str]) -> tuple[Callable[[str], int], Tally]:
        tally = Tally(self.target.store)

        def copy(key: str) -> int:
            value = self.source.store.get(self.source.prefix + key)
            if value is None:  # it was removed meanwhile
                return 0
            tally.set(self.target.prefix + key, value)
            return len(value)

        return copy, tally


@dataclass(frozen=True)
class _Files(Job[str]):
    """Copy a file. Small ones are copied side by side, large ones one after the other."""

    source: StorePath
    target: StorePath
    verify: bool
    keeps: bool

    @property
    def at_once(self) -> int:
        return max(pool.default_concurrency(), self.source.store.concurrency, self.target.store.concurrency)

    share = 64

    def begin(self, _: dict[str, str]) -> tuple[Callable[[str], int], Tally]:
        tally, one_by_one = Tally(self.target.store), Lock()
        source, target = self.source.store, self.target.store

        def copy(key: str) -> int:
            there, copied = self.source.prefix + key, self.target.prefix + key
            if target.exists(copied) and (self.keeps or same_value(source, there, target, copied)):
                return 0
            value = source.get(there, (0, _WHOLE))
            if value is None:  # it was removed meanwhile
                return 0
            if len(value) < _WHOLE:
                tally.set(copied, value)
            else:
                with one_by_one, _mapped(source, there) as value:
                    tally.set(copied, value)
            if self.verify and not same_value(source, there, target, copied):
                raise StoreError(
                    "the copy of a file differs from what was copied",
                    store=str(target),
                    key=copied,
                    remedy=Remedy("let nothing change the source, and continue with {resume}", resume=True),
                )
            return 0

        return copy, tally


@contextmanager
def _mapped(store: Store, key: str) -> Iterator[Buffer]:
    """Return a large value, of which only a part is in memory at a time: the file itself, or a temporary copy."""
    with _file_of(store, key) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        try:
            yield view
        finally:
            view.release()


@contextmanager
def _file_of(store: Store, key: str) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        start = 0
        while True:
            piece = store.get(key, (start, start + _WHOLE))
            if piece is None:
                raise StoreError("a file was removed while it was copied", store=str(store), key=key)
            file.write(piece)
            start += len(piece)
            if len(piece) < _WHOLE:
                break
        file.flush()
        yield file


@dataclass(frozen=True)
class _Elements(Job[Box]):
    """Copy the elements of a region, which is made of whole chunks of the target."""

    target: Array
    source: Any

    @property
    def at_once(self) -> int:
        return 1

    def begin(self, _: dict[str, str]) -> tuple[Callable[[Box], int], None]:
        def copy(region: Box) -> int:
            values = np.asarray(self.source[region])
            self.target[region] = values
            return values.nbytes

        return copy, None

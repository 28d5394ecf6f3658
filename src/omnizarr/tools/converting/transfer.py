"""Copy without translation: values of a store, and elements of one array into another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnizarr.model import grids
from omnizarr.nodes.array import Array
from omnizarr.nodes.creating import blocks
from omnizarr.nodes.location import StorePath
from omnizarr.stores import pool
from omnizarr.tools.streaming.executors import Executor, Job, Tally, Written
from omnizarr.tools.streaming.regions import Box


def copy_values(source: StorePath, target: StorePath, keys: Iterable[str], executor: Executor) -> Written:
    """Copy the values of keys below one place to below another; in any order."""
    return executor.run(_Values(source, target), keys, _unheard)


def fill(target: Array, source: Any, executor: Executor, tick: Callable[[int], None] | None = None) -> None:
    """Write the values of an array, of omnizarr or another library, into one of the same shape."""
    grid = grids.bind(target.metadata.chunk_grid, target.shape)
    executor.run(_Elements(target, source), blocks(grid, target.dtype.itemsize), tick or _unheard)


def _unheard(_: int) -> None:
    """Show nothing."""


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

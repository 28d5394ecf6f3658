"""Copying by an executor: stored values, and elements of one array into another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnizarr.model import grids
from omnizarr.nodes.array import Array
from omnizarr.nodes.copying import Copier, Pair
from omnizarr.nodes.creating import blocks
from omnizarr.support.progress import Tick, silent
from omnizarr.tools.streaming.executors import Executor, Job, Tally, Written
from omnizarr.tools.streaming.regions import Box


def copy(copier: Copier, pairs: Iterable[Pair], executor: Executor, tick: Tick = silent) -> Written:
    """Copy the values of keys, in any order. `tick` is called with the bytes of each, whether it was written or not."""
    return executor.run(_Copying(copier), pairs, tick)


def fill(target: Array, source: Any, executor: Executor, tick: Tick = silent) -> None:
    """Write the values of an array, of omnizarr or another library, into one of the same shape."""
    grid = grids.bind(target.metadata.chunk_grid, target.shape)
    executor.run(_Elements(target, source), blocks(grid, target.dtype.itemsize), tick)


@dataclass(frozen=True)
class _Copying(Job[Pair]):
    """Copy the value of a key."""

    copier: Copier

    @property
    def at_once(self) -> int:
        return self.copier.at_once

    share = 64

    def begin(self, _: dict[str, str]) -> tuple[Callable[[Pair], int], Tally]:
        tally, copy_value = Tally(self.copier.target), self.copier.copier()

        def copy(pair: Pair) -> int:
            done = copy_value(*pair)
            if done.is_written:
                tally.count(done.nbytes)
            return done.nbytes

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

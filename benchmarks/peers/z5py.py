"""z5py: the C++ library z5."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import z5py

from benchmarks.peers.contract import Peer, Shapes, Unsupported, without_cache
from benchmarks.workloads import AnyArray


class Z5py(Peer):
    """It works in one thread by default, so it gets the number of cores."""

    def version(self) -> str:
        return str(z5py.__version__)

    def open(self, path: Path, *, cache: int = 0) -> Any:
        without_cache(cache)
        array = z5py.File(path.parent, "a", use_zarr_format=None)[path.name]
        array.n_threads = len(os.sched_getaffinity(0))
        return array

    def region(self, array: Any, slices: tuple[slice, ...]) -> AnyArray:
        if any(some.step not in {None, 1} for some in slices):
            raise Unsupported("no strides")
        result: AnyArray = array[slices]
        return result

    def write(self, array: Any, values: AnyArray) -> None:
        array[:] = values

    def open_nodes(self, path: Path, names: list[str]) -> Shapes:
        group = z5py.File(path, "r")
        return {name: tuple(group[name].shape) for name in names}

    def list_nodes(self, path: Path) -> Shapes:
        return {name: tuple(array.shape) for name, array in z5py.File(path, "r").items()}

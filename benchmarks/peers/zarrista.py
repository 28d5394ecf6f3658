"""zarrista: the Rust library zarrs with bindings of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarrista
from zarrista.store import FilesystemStore

from benchmarks import data
from benchmarks.peers.contract import Peer, Shapes, Unsupported, without_cache
from benchmarks.workloads import AnyArray, Dataset


class Zarrista(Peer):
    """Reads and writes boxes."""

    def version(self) -> str:
        return str(zarrista.__version__)

    def open(self, path: Path, *, cache: int = 0) -> Any:
        without_cache(cache)
        return zarrista.Array.open(FilesystemStore(str(path)))

    def region(self, array: Any, slices: tuple[slice, ...]) -> AnyArray:
        if any(some.step not in {None, 1} for some in slices):
            raise Unsupported("no strides")
        return np.asarray(array.retrieve_array_subset(slices))

    def write(self, array: Any, values: AnyArray) -> None:
        array.store_array_subset(..., values)

    def create_nodes(self, path: Path, names: list[str], dataset: Dataset) -> None:
        path.mkdir()
        store = FilesystemStore(str(path))
        document = data.array_document(dataset)
        for name in names:
            zarrista.Array.from_metadata(document, store, f"/{name}").store_metadata()

    def open_nodes(self, path: Path, names: list[str]) -> Shapes:
        store = FilesystemStore(str(path))
        return {name: tuple(zarrista.Array.open(store, f"/{name}").shape) for name in names}

    def list_nodes(self, path: Path) -> Shapes:
        group = zarrista.Group.open(FilesystemStore(str(path)))
        return {array.path.rpartition("/")[2]: tuple(array.shape) for array in group.child_arrays()}

"""TensorStore, with flushing to the disk after each file switched off as everybody else has it, or on, its default."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import tensorstore

from benchmarks import data
from benchmarks.peers.contract import Peer, Shapes
from benchmarks.workloads import AnyArray, Dataset


class TensorStore(Peer):
    """A cache is used as it is by default: each time it asks the file system if the chunk is still the same."""

    def __init__(self, *, sync: bool = False) -> None:
        self._sync = sync
        self._context = self._context_of(0)

    def version(self) -> str:
        return version("tensorstore")

    def _context_of(self, cache: int) -> Any:
        return tensorstore.Context({"file_io_sync": self._sync, "cache_pool": {"total_bytes_limit": cache}})

    def open(self, path: Path, *, cache: int = 0) -> Any:
        spec = {
            "driver": "zarr" if (path / ".zarray").exists() else "zarr3",
            "kvstore": {"driver": "file", "path": f"{path}/"},
        }
        context = self._context_of(cache) if cache else self._context
        return tensorstore.open(spec, open=True, context=context).result()

    def region(self, array: Any, slices: tuple[slice, ...]) -> AnyArray:
        # Domains of strided slices do not begin at zero; the elements are the same.
        result: AnyArray = array[slices].read().result()
        return result

    def rows(self, array: Any, indices: list[int]) -> AnyArray:
        result: AnyArray = array[indices].read().result()
        return result

    def points(self, array: Any, coordinates: tuple[Any, ...]) -> AnyArray:
        result: AnyArray = array.vindex[coordinates].read().result()
        return result

    def write(self, array: Any, values: AnyArray) -> None:
        array.write(values).result()

    def create_nodes(self, path: Path, names: list[str], dataset: Dataset) -> None:
        document = data.array_document(dataset)
        metadata = {
            name: document[name]
            for name in ("shape", "chunk_grid", "chunk_key_encoding", "data_type", "codecs", "fill_value")
        }
        pending = [
            tensorstore.open(
                {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/{name}/"}, "metadata": metadata},
                create=True,
                context=self._context,
            )
            for name in names
        ]
        for one in pending:
            one.result()

    def open_nodes(self, path: Path, names: list[str]) -> Shapes:
        pending = {
            name: tensorstore.open(
                {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/{name}/"}},
                open=True,
                context=self._context,
            )
            for name in names
        }
        return {name: tuple(one.result().shape) for name, one in pending.items()}

    def join(self, paths: list[Path]) -> Any:
        pending = [
            tensorstore.open(
                {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path / data.VARIABLE}/"}},
                open=True,
                context=self._context,
            )
            for path in paths
        ]
        return tensorstore.concat([one.result() for one in pending], axis=0)

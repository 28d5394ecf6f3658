"""zarr-python 3, with the given codec pipeline: its own, its fused one, or that of zarrs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import zarr

from benchmarks.peers.contract import Absent, Peer, Shapes, without_cache
from benchmarks.workloads import AnyArray, Dataset


class ZarrPython(Peer):
    """`pipeline` is the full name of a class, `package` the distribution that has it."""

    def __init__(self, pipeline: str | None = None, package: str | None = None) -> None:
        self._version = f"{zarr.__version__}"
        if pipeline is not None:
            module, _, name = pipeline.rpartition(".")
            if not hasattr(import_module(module), name):
                raise Absent(f"zarr-python {zarr.__version__} has no {name}")
            zarr.config.set({"codec_pipeline.path": pipeline})
        if package is not None:
            from importlib.metadata import version

            self._version = f"{version(package)} with zarr-python {zarr.__version__}"

    def version(self) -> str:
        return self._version

    def open(self, path: Path, *, cache: int = 0) -> Any:
        without_cache(cache)
        return zarr.open_array(path, mode="r+")

    def region(self, array: Any, slices: tuple[slice, ...]) -> AnyArray:
        result: AnyArray = array[slices]
        return result

    def rows(self, array: Any, indices: list[int]) -> AnyArray:
        result: AnyArray = array.oindex[indices]
        return result

    def points(self, array: Any, coordinates: tuple[Any, ...]) -> AnyArray:
        result: AnyArray = array.vindex[coordinates]
        return result

    def write(self, array: Any, values: AnyArray) -> None:
        array[...] = values

    def create_nodes(self, path: Path, names: list[str], dataset: Dataset) -> None:
        group = zarr.create_group(path)
        for name in names:
            group.create_array(
                name, shape=dataset.shape, chunks=dataset.chunks, dtype=dataset.dtype, compressors=None, fill_value=0
            )

    def open_nodes(self, path: Path, names: list[str]) -> Shapes:
        group = zarr.open_group(path, mode="r")
        return {name: group[name].shape for name in names}

    def list_nodes(self, path: Path) -> Shapes:
        return {name: array.shape for name, array in zarr.open_group(path, mode="r").arrays()}

    def consolidated(self, path: Path) -> Shapes:
        return {name: array.shape for name, array in zarr.open_consolidated(path).arrays()}

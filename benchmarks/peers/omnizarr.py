"""This library, with one of its engines: which one, the environment of the worker says."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import omnizarr
from benchmarks import data
from benchmarks.peers.contract import Absent, Peer, Shapes, Unsupported
from benchmarks.workloads import AnyArray, Dataset


class Omnizarr(Peer):
    """`engine` is what arrays must run on, so that no figure stands under another's name."""

    def __init__(self, engine: str) -> None:
        if engine == "native" and not (find_spec("omnizarr._native") and hasattr(omnizarr.Array, "engine")):
            raise Absent("omnizarr is installed without its native engine")
        self._engine = engine

    def version(self) -> str:
        return f"{omnizarr.__version__}, {self._engine} engine"

    def open(self, path: Path, *, cache: int = 0) -> Any:
        options: dict[str, Any] = {}
        if cache:
            if "chunk_cache" not in omnizarr.ArrayConfig.__dataclass_fields__:
                raise Unsupported("no cache of decoded chunks")
            options["config"] = {"chunk_cache": cache}
        array = omnizarr.open_array(path, mode="r+", **options)
        engine = getattr(array, "engine", "reference")
        if engine != self._engine:
            raise Unsupported(f"runs on the {engine} engine")
        return array

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
        group = omnizarr.create_group(path)
        for name in names:
            group.create_array(
                name, shape=dataset.shape, chunks=dataset.chunks, dtype=dataset.dtype, compressors=None, fill_value=0
            )

    def open_nodes(self, path: Path, names: list[str]) -> Shapes:
        group = omnizarr.open_group(path, mode="r")
        return {name: group[name].shape for name in names}

    def list_nodes(self, path: Path) -> Shapes:
        return {name: array.shape for name, array in omnizarr.open_group(path, mode="r").arrays()}

    def consolidated(self, path: Path) -> Shapes:
        return {name: array.shape for name, array in omnizarr.open_consolidated(path).arrays()}

    def join(self, paths: list[Path]) -> Any:
        return omnizarr.concat([path / data.VARIABLE for path in paths])

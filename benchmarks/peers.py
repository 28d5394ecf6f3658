"""The libraries that are measured side by side, behind four verbs.

A peer that is not installed is left out, and said so in the report.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Peer:
    """One library: open an array, read a selection of it, write into it."""

    name: str
    version: str
    open: Callable[[Path], Any]
    read: Callable[[Any, Any], AnyArray]
    write: Callable[[Any, Any, AnyArray], None]


def omnizarr() -> Peer:
    """Return this library."""
    module = import_module("omnizarr")

    def write(array: Any, selection: Any, value: AnyArray) -> None:
        array[selection] = value

    return Peer("omnizarr", module.__version__, lambda path: module.open_array(path, mode="r+"), _getitem, write)


def zarr_python() -> Peer:
    """Return zarr-python 3 with its default pipeline."""
    module = import_module("zarr")

    def write(array: Any, selection: Any, value: AnyArray) -> None:
        array[selection] = value

    return Peer("zarr-python", module.__version__, lambda path: module.open_array(path, mode="r+"), _getitem, write)


def tensorstore() -> Peer:
    """Return TensorStore with its defaults for durability switched off, as everybody else's are."""
    module = import_module("tensorstore")

    def open_array(path: Path) -> Any:
        driver = "zarr3" if (path / "zarr.json").exists() else "zarr"
        spec = {
            "driver": driver,
            "kvstore": {"driver": "file", "path": str(path)},
            "context": {"file_io_sync": False},
            "recheck_cached_data": "open",
        }
        return module.open(spec, open=True).result()

    def read(array: Any, selection: Any) -> AnyArray:
        result: AnyArray = array[selection].read().result()
        return result

    def write(array: Any, selection: Any, value: AnyArray) -> None:
        array[selection].write(value).result()

    return Peer("tensorstore", module.__version__ if hasattr(module, "__version__") else "", open_array, read, write)


def prototype(chunks: tuple[int, ...], shape: tuple[int, ...], dtype: str, decode: Callable[..., Any] | None) -> Peer:
    """Return the floor for plain Python: two threads, ``os.preadv`` into the result, codecs that decode into it.

    It knows shape, chunks and codec beforehand, checks nothing and reads everything; no library can be quicker
    in Python by much.
    """
    grid = [range(-(-length // chunk)) for length, chunk in zip(shape, chunks, strict=True)]

    def read(path: Path, _selection: Any) -> AnyArray:
        out = np.empty(shape, dtype)
        root = f"{path}/c/"
        scratch_size = int(np.prod(chunks)) * out.itemsize

        def one(coords: tuple[int, ...]) -> None:
            view = out[tuple(slice(c * n, (c + 1) * n) for c, n in zip(coords, chunks, strict=True))]
            whole = view.flags.c_contiguous
            target = view if whole else np.empty(chunks, dtype)
            descriptor = os.open(root + "/".join(map(str, coords)), os.O_RDONLY)
            try:
                if decode is None:
                    os.preadv(descriptor, [target.reshape(-1).view(np.uint8).data], 0)
                else:
                    decode(os.pread(descriptor, scratch_size * 2, 0), target)
            finally:
                os.close(descriptor)
            if not whole:
                view[...] = target

        def many(some: list[tuple[int, ...]]) -> None:
            for coords in some:
                one(coords)

        every = list(product(*grid))
        half = len(every) // 2
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(many, every[half:])
            many(every[:half])
            other.result()
        return out

    def write(_array: Any, _selection: Any, _value: AnyArray) -> None:
        raise NotImplementedError("the prototype only reads")

    return Peer("prototype", "", lambda path: path, read, write)


def installed() -> list[Peer]:
    """Return omnizarr and the peers that can be imported here."""
    known = {"omnizarr": omnizarr, "zarr": zarr_python, "tensorstore": tensorstore}
    return [make() for name, make in known.items() if find_spec(name) is not None]


def _getitem(array: Any, selection: Any) -> AnyArray:
    result: AnyArray = array[selection]
    return result

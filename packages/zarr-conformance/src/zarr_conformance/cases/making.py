"""What the modules of cases share: samples of each data type, and short ways to make a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarr_conformance.case import Array, Case, Json, Nodes, Refusal, Sentence, Survival, parse_selection, values_of

Files = Mapping[str, bytes]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
CORE = ("bool", *INTEGERS, *FLOATS, *COMPLEX)

SPECIAL = (0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan"), 6e-8, 1.0, 100.0)


def sample(name: str, shape: tuple[int, ...]) -> Array:
    """Return elements of a type: its ends and its special values first, then others."""
    count = int(np.prod(shape))
    dtype = np.dtype(name)
    if dtype.kind == "b":
        flat = (np.arange(count) * 7 % 5 < 2).astype(bool)
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        first = [info.min, info.max, info.max - 1, info.min + 1, 1, info.max // 3]
        flat = np.array([int(number) for number in [*first, *range(2, count)][:count]], dtype)
    elif dtype.kind == "f":
        info_f = np.finfo(dtype)
        first_f = [*SPECIAL, info_f.max, info_f.tiny, info_f.smallest_subnormal]
        flat = np.array([*first_f, *(number * 0.37 for number in range(count))][:count], dtype)
    else:
        half = sample("float32" if name == "complex64" else "float64", (2 * count,))
        flat = half.view(dtype)
    return flat.reshape(shape)


def ramp(shape: tuple[int, ...], dtype: str = "int32", start: int = 1) -> Array:
    """Return 1, 2, 3, ... so that no element equals another, or zero."""
    return np.arange(start, start + int(np.prod(shape))).astype(dtype).reshape(shape)


def noise(shape: tuple[int, ...]) -> Array:
    """Return int32 elements that do not compress."""
    return (np.arange(1, 1 + int(np.prod(shape))).astype("int64") * 2654435761 % 2**31).astype("int32").reshape(shape)


def read(
    level: str,
    name: str,
    title: str,
    sentence: Sentence,
    files: Files,
    values: Array,
    data_type: Json,
    *,
    path: str = "",
    selection: str | None = None,
    mask: int | None = None,
    store: str = "directory",
) -> Case:
    """Return the case that an array, or a selection of it, is read."""
    if selection is not None:
        values = np.asarray(values[parse_selection(selection)])
    expects = values_of(values, data_type, mask)
    return Case(level, name, title, sentence, files, expects, path=path, selection=selection, store=store)


def listed(
    level: str, name: str, title: str, sentence: Sentence, files: Files, nodes: Mapping[str, Json], path: str = ""
) -> Case:
    """Return the case that nodes are listed: paths with a type, or with more members."""
    rows = tuple(
        {"path": each, **({"node_type": node} if isinstance(node, str) else node)} for each, node in nodes.items()
    )
    return Case(level, name, title, sentence, files, Nodes(rows), path=path)


def refused(
    level: str, name: str, title: str, sentence: Sentence, files: Files, path: str = "", *, unknown: bool = False
) -> Case:
    """Return the case that reading ends with an error; `unknown` if that of an unknown feature will do."""
    return Case(level, name, title, sentence, files, Refusal(title, unknown), path=path)


def survived(level: str, name: str, title: str, sentence: Sentence, files: Files, path: str = "", **more: Any) -> Case:
    """Return the case that reading ends, somehow, in bounded time and memory."""
    return Case(level, name, title, sentence, files, Survival(title), path=path, **more)

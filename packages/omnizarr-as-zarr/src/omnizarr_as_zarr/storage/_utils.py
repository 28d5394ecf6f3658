"""Paths within a store, as zarr-python treats them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from omnizarr.errors import NodeNameError
from omnizarr.nodes.location import normalize


def normalize_path(path: str | bytes | Path | None) -> str:
    """Return a path without leading, trailing and doubled slashes. Raises ValueError for ``.`` and ``..``.

    >>> normalize_path("/ocean//temp/")
    'ocean/temp'
    """
    if isinstance(path, bytes):
        path = path.decode("ascii")
    return normalize(None if path is None else str(path))


def _join_paths(paths: Iterable[str]) -> str:
    return "/".join(path for path in paths if path)


def _normalize_paths(paths: Iterable[str]) -> tuple[str, ...]:
    normalized = tuple(map(normalize_path, paths))
    for number, path in enumerate(normalized):
        if path in normalized[:number]:
            raise NodeNameError("two of the paths are the same, once normalized", found=path)
    return normalized


def _relativize_path(*, path: str, prefix: str) -> str:
    if not prefix:
        return path
    if not path.startswith(f"{prefix}/"):
        raise NodeNameError("the path does not begin with the prefix", found=path, expected=f"below {prefix!r}")
    return path[len(prefix) + 1 :]

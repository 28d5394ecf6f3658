"""Sources of lazy arrays that are opened when their elements are needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnizarr.errors import JoinError, ReadOnlyError
from omnizarr.stores import pool
from omnizarr.stores.urls import scheme_of

if TYPE_CHECKING:
    from omnizarr.model import ArrayMetadata

_AT_ONCE: Final = 16
"""Sources that are opened at the same time."""
_MOST_KEPT: Final = 1024
"""Opened sources that are kept."""


class Sources:
    """Opens the sources of one lazy array or document, and keeps those that were used last.

    Parameters
    ----------
    open_ : callable
        ``open_(place, path)`` returns the array at a path in the hierarchy at a place.
    """

    def __init__(self, open_: Callable[[str, str], Any]) -> None:
        self._open = open_
        self._kept: dict[tuple[str, str], Any] = {}

    def array(self, place: str, path: str) -> Any:
        """Return an array."""
        found = self._kept.get((place, path))
        if found is None:
            found = self._open(place, path)
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[place, path] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Sources, (self._open,)


class Deferred:
    """An array that is known, and opened when its elements are needed.

    Attributes
    ----------
    place : str
        Path or URL of the hierarchy.
    path : str
        Path of the array in it.
    shape, dtype, chunks, dimension_names, attrs
        As those of `omnizarr.Array`.
    digest : str
        What `digest_of` returned for the array; "" if it is not compared.
    """

    __slots__ = ("_sources", "attrs", "chunks", "digest", "dimension_names", "dtype", "path", "place", "shape")

    def __init__(
        self,
        sources: Sources,
        place: str,
        path: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        chunks: Any = None,
        dimension_names: tuple[str | None, ...] | None = None,
        attrs: Mapping[str, Any] | None = None,
        digest: str = "",
    ) -> None:
        self._sources = sources
        self.place = place
        self.path = path
        self.shape = shape
        self.dtype = dtype
        self.chunks = chunks
        self.dimension_names = dimension_names
        self.attrs = attrs or {}
        self.digest = digest

    @property
    def store_path(self) -> str:
        """Where the array is."""
        return f"{self.place}/{self.path}".rstrip("/")

    @property
    def is_remote(self) -> bool:
        """Whether each request takes a while."""
        return scheme_of(self.place) not in (None, "file")

    @property
    def _metadata(self) -> ArrayMetadata:
        found: ArrayMetadata = self.array()._metadata  # noqa: SLF001 - it represents this array
        return found

    def array(self) -> Any:
        """Return the array.

        Raises
        ------
        JoinError
            If it is not the array that was expected: it has another shape or type, or changed documents.
        NodeNotFoundError
            If it is no longer there.
        """
        found = self._sources.array(self.place, self.path)
        for name, expected, given in (
            ("shape", self.shape, found.shape),
            ("data type", self.dtype, found.dtype),
        ):
            if expected != given:
                raise JoinError(
                    f"a source has another {name} than expected",
                    store=self.place,
                    path=self.path,
                    found=given,
                    expected=expected,
                    remedy="join the sources again",
                )
        if self.digest and self.digest != digest_of(found):
            raise JoinError(
                "the metadata of a source have changed since the view was saved",
                store=self.place,
                path=self.path,
                found=f"digest {digest_of(found)}",
                expected=self.digest,
                remedy="save the view again",
            )
        return found

    def __getitem__(self, selection: Any) -> Any:
        """Return elements."""
        return self.array()[selection]

    def __setitem__(self, selection: Any, value: Any) -> None:
        """Refuse."""
        raise ReadOnlyError("the sources of a saved view cannot be written", store=self.place, path=self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Deferred, tuple(getattr(self, name) for name in _FIELDS)


_FIELDS: Final = ("_sources", "place", "path", "shape", "dtype", "chunks", "dimension_names", "attrs", "digest")


def digest_of(array: Any) -> str:
    """Return a text that changes with the documents of an array."""
    text = json.dumps(array.documents(), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def opened(sources: Iterable[Any]) -> dict[int, Any]:
    """Return the arrays of those sources that are deferred, by their identity. They are opened side by side."""
    waiting = list({id(source): source for source in sources if isinstance(source, Deferred)}.values())
    if not waiting:
        return {}
    found = {}
    workers = min(len(waiting), _AT_ONCE if any(each.is_remote for each in waiting) else 4)
    for number, array in pool.gather(Deferred.array, waiting, workers):
        found[id(waiting[number])] = array
    return found

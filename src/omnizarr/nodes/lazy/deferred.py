"""Sources of lazy arrays that are opened when their elements are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnizarr.errors import ReadOnlyError
from omnizarr.nodes.lazy import sources
from omnizarr.nodes.lazy.tree import Leaf
from omnizarr.stores import pool, urls

if TYPE_CHECKING:
    from omnizarr.model import ArrayMetadata
    from omnizarr.nodes.lazy.sources import Mark

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
        self._kept: dict[tuple[str, str], Leaf] = {}

    def leaf(self, source: Deferred) -> Leaf:
        """Return the array that a source represents. It is compared with what is known when it is opened."""
        key = source.place, source.path
        found = self._kept.get(key)
        if found is None or found.shape != source.shape or found.dtype != source.dtype:
            array = self._open(*key)
            sources.check_opened(source, array)
            found = Leaf(array, source.shape, source.dtype, source.since, sources.stamp(array))
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = found
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
    since : {"saved", "described"}
        How the array became known: from a saved view, or from what the user says.
    digest : str
        What `sources.digest_of` returned for the array; "" if it is not compared.
    mark : Mark, optional
        What `sources.mark_of` returned for its store.
    """

    __slots__ = _FIELDS = (
        "_sources",
        "place",
        "path",
        "shape",
        "dtype",
        "chunks",
        "dimension_names",
        "attrs",
        "since",
        "digest",
        "mark",
    )

    def __init__(
        self,
        opener: Sources,
        place: str,
        path: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        chunks: Any = None,
        dimension_names: tuple[str | None, ...] | None = None,
        attrs: Mapping[str, Any] | None = None,
        since: str = "saved",
        digest: str = "",
        mark: Mark | None = None,
    ) -> None:
        self._sources = opener
        self.place = place
        self.path = path
        self.shape = shape
        self.dtype = dtype
        self.chunks = chunks
        self.dimension_names = dimension_names
        self.attrs = {} if attrs is None else attrs
        self.since = since
        self.digest = digest
        self.mark = mark

    @property
    def store_path(self) -> str:
        """Where the array is."""
        return f"{self.place}/{self.path}".rstrip("/")

    @property
    def is_remote(self) -> bool:
        """Whether each request takes a while."""
        return not urls.is_local(self.place)

    @property
    def _metadata(self) -> ArrayMetadata:
        found: ArrayMetadata = self.array()._metadata  # noqa: SLF001 - it represents this array
        return found

    def leaf(self) -> Leaf:
        """Return the array, open.

        Raises
        ------
        StaleError
            If it is not the array that was expected: it has another shape or type, or has changed since.
        NodeNotFoundError
            If it is no longer there.
        """
        return self._sources.leaf(self)

    def array(self) -> Any:
        """Return the array itself. Raises the errors of `leaf`."""
        return self.leaf().source

    def __getitem__(self, selection: Any) -> Any:
        """Return elements."""
        return self.array()[selection]

    def __setitem__(self, selection: Any, value: Any) -> None:
        """Refuse."""
        raise ReadOnlyError("sources that are not open cannot be written", store=self.place, path=self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Deferred, tuple(getattr(self, name) for name in self._FIELDS)


def opened(given: Iterable[Any]) -> dict[int, Leaf]:
    """Return the arrays of those sources that are deferred, by their identity. They are opened side by side."""
    waiting = list({id(source): source for source in given if isinstance(source, Deferred)}.values())
    if not waiting:
        return {}
    found = {}
    gather = pool.gather if any(each.is_remote for each in waiting) else pool.gather_near
    for number, leaf in gather(Deferred.leaf, waiting, min(len(waiting), _AT_ONCE)):
        found[id(waiting[number])] = leaf
    return found

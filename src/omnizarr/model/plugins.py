"""Codecs, data types, chunk grids, chunk key encodings and storage transformers of other programs and packages.

For each of these there is one `Plugins` object. It is asked only for names that omnizarr does not have, so that
packages are imported, and the list of installed packages is read, at first use.

Spec: Zarr v3 core, "Extension points".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from omnizarr.errors import MetadataError, MissingDependencyError, OmnizarrError
from omnizarr.model import Named

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
_changes: Final[list[str]] = []


def generation() -> int:
    """Return a number that changes with every `Plugins.register`, because bound values may then be outdated."""
    return len(_changes)


@cache
def entry_points(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of installed packages by name. This takes 10 ms, and most processes never need it."""
    found = import_module("importlib.metadata").entry_points(group=group)
    return {point.name: point for point in reversed(tuple(found))}  # of two with one name, the first


class Plugins(Generic[T]):
    """What the program registered, and what packages offer under one group of entry points.

    Parameters
    ----------
    group : str
        The group of entry points.
    what : str
        The kind of extension, for errors.
    pointer : str, optional
        JSON pointer of its place in documents, for errors. None for codecs, which errors call by name.

    Examples
    --------
    >>> planets = Plugins("example.planets", "planet", "/planet")
    >>> planets.register("example.mars", lambda configuration: 4)
    >>> planets.find("example.mars")({}), planets.find("example.moon")
    (4, None)
    """

    def __init__(self, group: str, what: str, pointer: str | None = None) -> None:
        self.group: Final = group
        self._what = what
        self._pointer = pointer
        self._registered: dict[str, T] = {}

    def register(self, name: str, made: T) -> None:
        """Register `made` under `name` in this process. It takes precedence over those of packages.

        Parameters
        ----------
        name : str
            The name in documents.
        made : callable
            What a package names in its entry point.
        """
        self._registered[name] = made
        _changes.append(name)

    def find(self, name: str) -> T | None:
        """Return what is registered or offered under a name; None if there is nothing.

        Raises
        ------
        MissingDependencyError
            If the package that offers it cannot be imported.
        """
        made = self._registered.get(name)
        if made is None and (point := entry_points(self.group).get(name)) is not None:
            made = self.load(name, point)
        return made

    def names(self) -> set[str]:
        """Return all names, without importing a package."""
        return {*self._registered, *entry_points(self.group)}

    def load(self, name: str, point: EntryPoint) -> T:
        """Return what an entry point names. Raises MissingDependencyError."""
        try:
            made: T = point.load()
        except ImportError as error:
            raise self.missing(name, error) from error
        except AttributeError as error:
            raise self.missing(name, ImportError(str(error), name=point.module)) from error
        return made

    def missing(self, name: str, error: ImportError, remedy: str | None = None) -> MissingDependencyError:
        """Return the error for an extension whose package cannot be imported."""
        package = error.name or "unknown"
        return MissingDependencyError(
            f"the {self._what} needs the package {package!r}, which cannot be imported ({error})",
            codec=name if self._pointer is None else None,
            pointer=self._pointer,
            found=None if self._pointer is None else name,
            remedy=remedy or f"install {package}",
        )

    def bound(self, named: Named, bind: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``bind(configuration, *arguments)``. Raises MetadataError if that raises anything."""
        try:
            return bind(named.configuration, *arguments)
        except OmnizarrError:
            raise
        except Exception as error:  # code of others may raise anything
            raise self.refuse(named, f"{type(error).__name__}: {error}") from error

    def refuse(self, named: Named, found: object, expected: object = None) -> MetadataError:
        """Return the error for a configuration that the code of another package refuses, or answers wrongly."""
        return MetadataError(
            f"the {self._what} {named.name!r} of another package does not work with this configuration",
            pointer=f"{self._pointer}/configuration",
            found=found,
            expected=expected,
        )

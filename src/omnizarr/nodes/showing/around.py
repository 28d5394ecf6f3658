"""The nodes around an array, each read once, when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions.contract import Nodes
from omnizarr.model import ArrayMetadata, Metadata
from omnizarr.nodes import detection

if TYPE_CHECKING:
    from omnizarr.nodes.array import Array


class Around(Mapping[str, Metadata]):
    """The metadata of nodes by path; those without documents, and those that cannot be understood, are not there.

    Parameters
    ----------
    array : Array
        It is one of them, with the metadata that it has.
    is_mixed : bool
        Whether nodes far from the array are looked for in all formats. Otherwise they are expected in its own, which
        takes few requests where they are missing.
    """

    def __init__(self, array: Array, *, is_mixed: bool = False) -> None:
        self._is_mixed = is_mixed
        self._array = array
        self._model = array._metadata  # noqa: SLF001 - `metadata` would copy all attributes
        self._known: dict[str, detection.Found[Metadata] | None] = {
            array.path: detection.Found(array.store_path, self._model)
        }

    def array(self, path: str) -> Array | None:
        """Return the array at a path; None if there is none."""
        found = self._found(path)
        if found is None or not isinstance(found.metadata, ArrayMetadata):
            return None
        return type(self._array)(found.where, found.metadata, self._array.config)

    def nodes(self) -> Nodes:
        """Return the metadata of all."""
        return Nodes(self)

    def _found(self, path: str) -> detection.Found[Metadata] | None:
        if path not in self._known:
            found = None
            with suppress(OmnizarrError):
                dialect = self._model.dialect
                expects_own = not (self._is_mixed or self._is_near(path))
                where = self._array.store_path.at(path)
                found = detection.detect(where, dialect if expects_own else None, prefer="" if expects_own else dialect)
            self._known[path] = found
        return self._known[path]

    def _is_near(self, path: str) -> bool:
        """Return whether a path is that of a group above the array, or in the group of the array."""
        own = self._array.path
        return not path or own.startswith(f"{path}/") or path.rpartition("/")[0] == own.rpartition("/")[0]

    def __getitem__(self, path: str) -> Metadata:
        found = self._found(path)
        if found is None:
            raise KeyError(path)
        return found.metadata

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

"""Where keys lie in variants of the draft of v3, before and after October 2020.

Spec: Zarr v3 drafts of June 2019 and November 2022, "Storage keys"; what zarrita wrote in July 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from omnizarr.dialects.keyspaces import Split
from omnizarr.dialects.paths import prefix
from omnizarr.model import ArrayMetadata, Metadata, Named

M = TypeVar("M", bound=Metadata)

KEYS: Final = "omnizarr.draft2020"
"""Chunk key encoding of the draft of 2020: ``c0/0``."""


@dataclass(frozen=True, slots=True)
class Early(Split):
    """Before the slash: chunks are ``0.0`` where the document of an array names no separator.

    The texts called the period the default from May 2019 to May 2020; zarrita wrote keys so until September 2020.
    """

    def settle(self, metadata: M, /) -> M:
        """Return what a document says, with the separator of this variant where it says none."""
        if isinstance(metadata, ArrayMetadata) and metadata.chunk_key_encoding == Named(KEYS):
            return replace(metadata, chunk_key_encoding=Named("v2", {"separator": "."}))
        return Split.settle(self, metadata)

    def unsettle(self, metadata: M, /) -> M:
        """Undo `settle`."""
        if (
            isinstance(metadata, ArrayMetadata)
            and metadata.chunk_key_encoding == Named("v2", {"separator": "."})
            and not _names_a_separator(metadata)
        ):
            return replace(metadata, chunk_key_encoding=Named(KEYS))
        return Split.unsettle(self, metadata)


@dataclass(frozen=True, slots=True)
class Late(Split):
    """After "root" went: ``meta/a.array.json``, ``data/a/c0/0``; the root itself has ``meta/array.json``."""

    def documents(self, path: str, /) -> dict[str, str]:
        """Return document name -> store key."""
        if path != self.root:
            return Split.documents(self, path)
        return {kind: f"{prefix(self.root)}{self.meta}/{kind}{self.suffix}" for kind in ("array", "group")}


def _names_a_separator(metadata: ArrayMetadata) -> bool:
    """Whether the document that was read, if there was one, says what separates coordinates."""
    spelling = metadata.spellings.get("v3-draft2020:chunk_grid")
    if spelling is None:
        return True
    grid = spelling.document.get("chunk_grid")
    return (isinstance(grid, Mapping) and "separator" in grid) or "dimension_separator" in spelling.document

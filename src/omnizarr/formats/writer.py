"""What writing documents of any dialect shares: refusing what it cannot express, and reading what is written.

What is written must pass the dialect's own reading, without any tolerance.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from omnizarr.errors import MetadataError, MissingDependencyError, NotRepresentableError, UnknownDataTypeError
from omnizarr.formats.contract import Documents, Load
from omnizarr.formats.filters import Stack
from omnizarr.model import JSON, ArrayMetadata, Problem, datatypes


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What errors call a format that is written."""

    title: str
    """``"Zarr v1"``."""
    spec: str

    def refuse(self, what: str, remedy: str, found: object = None) -> NotRepresentableError:
        """Return the error that says what cannot be written, and what could."""
        return NotRepresentableError(
            f"cannot be written as {self.title}: {what}", found=found, remedy=remedy, spec=self.spec
        )

    def refuse_names_and_transformers(self, metadata: ArrayMetadata) -> None:
        """Raise NotRepresentableError for what only v3 has."""
        if metadata.dimension_names is not None and any(name is not None for name in metadata.dimension_names):
            raise self.refuse(
                "dimension names have no place there",
                "put them into the attribute _ARRAY_DIMENSIONS, as xarray does, or write v3",
                list(metadata.dimension_names),
            )
        if metadata.storage_transformers:
            name = metadata.storage_transformers[0].name
            raise self.refuse(f"storage transformer {name!r} has no place there", "write v3", name)

    def chunk_shape(self, metadata: ArrayMetadata) -> JSON:
        """Return the one shape of all chunks. Raises NotRepresentableError if they differ."""
        grid = metadata.chunk_grid
        if grid.name != "regular":
            raise self.refuse(
                f"chunk grid {grid.name!r} has no place there", "rechunk to chunks of one shape, or write v3", grid.name
            )
        return grid.configuration.get("chunk_shape")

    def type_of_fill_value(
        self, metadata: ArrayMetadata, byte_order: Literal["<", ">"], remedy: str = "write v3"
    ) -> datatypes.DataType:
        """Return the data type that says how a fill value is written. Raises NotRepresentableError if it is unknown."""
        try:
            return datatypes.bind(metadata.data_type, byte_order)
        except (UnknownDataTypeError, MissingDependencyError) as error:
            name = metadata.data_type.name
            raise self.refuse("the fill value of an unknown data type", remedy, name) from error


def stored_order(stack: Stack, metadata: ArrayMetadata) -> Literal["<", ">"]:
    """Return the byte order that a data type has to say: that of the stored elements."""
    match stack.endian:
        case "<":
            return "<"
        case ">":
            return ">"
    return metadata.byte_order


def check_fresh(load: Load, documents: Documents, fresh: Collection[str]) -> None:
    """Raise MetadataError if a member in `fresh`, which was not read from a document, is not strictly valid."""

    def report(problem: Problem) -> None:
        if _member(problem.pointer) in fresh and not problem.is_left_out:
            raise problem.error()

    metadata = load(documents, report)
    for note in metadata.notes if metadata is not None else ():
        if _member(note.pointer) in fresh:
            raise MetadataError(f"not valid to write: {note.message}", pointer=note.pointer, spec=note.spec or None)


def _member(pointer: str) -> str | None:
    return pointer.split("/")[1] if pointer else None

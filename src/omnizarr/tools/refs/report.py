"""What was written as references."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnizarr.support.text import plural, size


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayReferences:
    """The references of an array.

    Attributes
    ----------
    path : str
        Path of the array, without a leading slash.
    shape, chunk_shape : tuple of int
        Its shape, and that of what a reference leads to; with chunks of several shapes, the latter is empty.
    chunks : int
        Number of chunks that are referred to.
    inlined : int
        Number of chunks that are in the references themselves.
    missing : int
        Number of chunks that are not stored.
    files : int
        Number of files.
    nbytes : int
        Bytes of the chunks.
    """

    path: str
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    chunks: int
    inlined: int
    missing: int
    files: int
    nbytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return {
            "path": f"/{self.path}",
            "shape": list(self.shape),
            "chunk_shape": list(self.chunk_shape),
            **{name: getattr(self, name) for name in ("chunks", "inlined", "missing", "files", "nbytes")},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReferences:
    """What was written.

    Attributes
    ----------
    destination : str
    kind : {"json", "parquet", "icechunk"}
    zarr_format : int
        Format of the documents.
    groups : int
        Number of groups.
    arrays : tuple of ArrayReferences
    nbytes : int
        Size of the references themselves.
    remarks : tuple of str
        What readers should know.
    """

    destination: str
    kind: str
    zarr_format: int
    groups: int
    arrays: tuple[ArrayReferences, ...]
    nbytes: int
    remarks: tuple[str, ...] = ()

    @property
    def chunks(self) -> int:
        """Number of chunks that are referred to, of all arrays."""
        return sum(each.chunks for each in self.arrays)

    @property
    def inlined(self) -> int:
        """Number of chunks that are in the references themselves."""
        return sum(each.inlined for each in self.arrays)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "destination": self.destination,
            "kind": self.kind,
            "zarr_format": self.zarr_format,
            "groups": self.groups,
            "nbytes": self.nbytes,
            "remarks": list(self.remarks),
            "arrays": [each.to_dict() for each in self.arrays],
        }

    def lines(self) -> Iterator[str]:
        """Yield what was done, in words."""
        counts = f"{plural(self.groups, 'group')}, {plural(len(self.arrays), 'array')}"
        yield f"{self.destination}: {self.kind}, Zarr v{self.zarr_format}, {size(self.nbytes)}"
        inlined = f", {plural(self.inlined, 'chunk')} within" if self.inlined else ""
        referred = size(sum(each.nbytes for each in self.arrays))
        yield f"{counts} · {plural(self.chunks, 'reference')} to {referred}{inlined}"
        yield from (f"note: {remark}" for remark in self.remarks)

    def __str__(self) -> str:
        return "\n".join(self.lines())

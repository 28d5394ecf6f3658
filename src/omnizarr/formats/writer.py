"""What writing documents of any dialect shares: they must pass the dialect's own reading, without any tolerance."""

from __future__ import annotations

from collections.abc import Collection

from omnizarr.errors import MetadataError
from omnizarr.formats.contract import Documents, Load
from omnizarr.model import Problem


def check_fresh(load: Load, documents: Documents, fresh: Collection[str]) -> None:
    """Raise MetadataError if a member in `fresh`, which nobody else spelled so, is not strictly valid."""

    def report(problem: Problem) -> None:
        if _member(problem.pointer) in fresh and not problem.is_left_out:
            raise problem.error()

    metadata = load(documents, report)
    for note in metadata.notes if metadata is not None else ():
        if _member(note.pointer) in fresh:
            raise MetadataError(f"not valid to write: {note.message}", pointer=note.pointer, spec=note.spec or None)


def _member(pointer: str) -> str | None:
    return pointer.split("/")[1] if pointer else None

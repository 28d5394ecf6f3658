"""The journal of a copy or a deletion under way: a document at its place from the first write to the last.

It is the journal of a conversion (`omnizarr.tools.convert.journal`), so `check` and `convert` recognise it.
"""

from __future__ import annotations

from typing import Any, Final

from omnizarr.errors import NodeExistsError, Remedy
from omnizarr.formats import documents
from omnizarr.model import GroupMetadata, Metadata
from omnizarr.nodes import erasing
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.stored import dump
from omnizarr.stores import bounded
from omnizarr.tools.convert import journal
from omnizarr.tools.convert.journal import Journal

KEY: Final = journal.KEY
"""Name of the document."""
_COPY: Final = {"copy": "bytes"}


def has_place(where: StorePath) -> bool:
    """Whether there is room for the journal of a copy: in drafts, at the root of the hierarchy only."""
    return where.home is None or where.path == where.home.root


def of_copy(found: Found[Metadata]) -> Journal:
    """Return the journal of a copy of a node."""
    is_implied = isinstance(found.metadata, GroupMetadata) and found.metadata.implicit
    digest = journal.digest([("", {} if is_implied else dump(found.where, found.metadata))], is_old=True)
    name = found.metadata.dialect
    return Journal(str(found.where), name, name, _COPY, digest, digest, verify=True)


def key_of(where: StorePath) -> str:
    """Return the key of the journal of a deletion, which lies beside the chunks in the hierarchy of a draft."""
    return erasing.note_key_of(where)


def begin_deletion(found: Found[Metadata]) -> None:
    """Write the journal of a deletion of a node."""
    where, name = found.where, found.metadata.dialect
    begun = Journal(str(where), name, name, erasing.DELETION, "", "", verify=False)
    where.store.set(key_of(where), begun.document())


def is_whole(where: StorePath) -> bool:
    """Whether a copy or a deletion was begun, which begins only where there is nothing else."""
    document: Any = documents.parse(bounded.document(where.store, key_of(where)) or b"{}")
    return erasing.LEFT not in document


def is_left(where: StorePath) -> bool:
    """Whether a copy or a deletion under this name was begun and not finished."""
    value = bounded.document(where.store, key_of(where))
    if value is None:
        return False
    document = documents.parse(value)
    return isinstance(document, dict) and "omnizarr_conversion" in document


def check(where: StorePath, ours: Journal, *, resume: bool) -> bool:
    """Return whether an unfinished copy is to be continued. Raises NodeExistsError if one is in the way."""
    if where.store.get(where.prefix + KEY) is None:
        return False
    if not resume:
        raise NodeExistsError(
            "there is an unfinished copy or conversion here",
            store=str(where.store),
            path=where.path,
            remedy=Remedy("pass {resume} to continue it", resume=True)
            | Remedy("{overwrite} to begin again", overwrite=True),
        )
    found = journal.read(where)
    if found is not None:
        ours.check(found, where)
    return True

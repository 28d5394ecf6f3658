"""Single-file OME-Zarr (``.ozx``): zip archives whose documents come first, with the version of OME-Zarr as comment.

Spec: OME-NGFF, RFC-9 (proposed), "Single-file OME-Zarr", as of November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

ENDING: Final = ".ozx"
_DOCUMENT: Final = "zarr.json"
_LARGEST_COMMENT: Final = 2**16 - 1


def is_ozx(path: object) -> bool:
    """Whether a path or key ends as that of a single-file OME-Zarr."""
    return isinstance(path, str) and path.lower().endswith(ENDING)


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names of entries in the order of the specification: documents first, those of higher nodes before.

    >>> in_order(["0/c/0", "0/zarr.json", "a/b/zarr.json", "zarr.json"])
    ['zarr.json', '0/zarr.json', 'a/b/zarr.json', '0/c/0']
    """
    found = list(names)
    documents = {name for name in found if name.rpartition("/")[2] == _DOCUMENT}
    first = sorted(documents, key=lambda name: (name.count("/"), name))
    return [*first, *(name for name in found if name not in documents)]


def comment_of(document: bytes) -> bytes:
    """Return the comment of an archive whose root has a document: with the version of OME-Zarr; empty if it has none.

    >>> comment_of(b'{"attributes": {"ome": {"version": "0.5"}}}')
    b'{"ome": {"version": "0.5"}}'
    """
    try:
        version = json.loads(document)["attributes"]["ome"]["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return b""
    comment = json.dumps({"ome": {"version": version}}).encode() if isinstance(version, str) else b""
    return comment if len(comment) <= _LARGEST_COMMENT else b""


def faults(names: list[str], compressed: int, comment: bytes, document: bytes | None) -> list[tuple[str, str]]:
    """Return what an archive lacks of the specification: what is found, and what is expected.

    Parameters
    ----------
    names : list of str
        Of the entries, in their order.
    compressed : int
        Number of entries that are compressed.
    comment : bytes
        Of the archive.
    document : bytes or None
        The document of the root; None if there is none.
    """
    found = []
    if document is None:
        found.append(("no zarr.json at the root of the archive", "that of the hierarchy"))
    if compressed:
        found.append((f"{compressed} compressed entries", "stored entries: chunks have their own codecs"))
    if names != in_order(names):
        found.append(("entries in another order", "zarr.json first, those of higher nodes before"))
    if document is not None and comment_of(document) and comment_of(document) != _normal(comment):
        found.append((f"the comment {comment[:80]!r}", comment_of(document).decode()))
    return found


def _normal(comment: bytes) -> bytes:
    """Return the version of a comment that may hold more, in our spelling."""
    try:
        return comment_of(json.dumps({"attributes": json.loads(comment)}).encode())
    except (ValueError, RecursionError):
        return b""

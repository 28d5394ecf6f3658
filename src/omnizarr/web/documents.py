"""The documents of a node as they are stored, and the metadata in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from omnizarr.formats import DIALECTS
from omnizarr.model import ArrayMetadata, Metadata
from omnizarr.nodes import wording
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.nodes.members import UnreadableNode
from omnizarr.stores import verbs

_MOST_CHARACTERS: Final = 200_000
"""Of a document."""


def model_of(node: Array | Group) -> Metadata:
    """Return the metadata of a node, without a copy."""
    return node._metadata  # noqa: SLF001 - `metadata` would copy all attributes


def array_model_of(array: Array) -> ArrayMetadata:
    """Return the metadata of an array, without a copy."""
    return array._metadata  # noqa: SLF001 - see `model_of`


def documents_of(node: Array | Group | UnreadableNode) -> dict[str, str]:
    """Return the documents of a node as they are stored, by name."""
    where = node.store_path
    if isinstance(node, UnreadableNode):
        keys = {name: key for dialect in _dialects(where) for name, key in dialect.items()}
    else:
        keys = dialect_of(where, model_of(node)).keyspace.documents(where.path)
    names = list(keys)
    requests = [(keys[name], (0, _MOST_CHARACTERS + 1)) for name in names]
    found = {}
    for position, value in verbs.get_many(where.store, requests):
        if value is not None:
            found[names[position]] = _document_text(bytes(value))
    return {name: found[name] for name in names if name in found}


def format_of(node: Array | Group, dialect: str) -> str:
    """Return the format of a node in words."""
    return wording.format_name(wording.stored_format(node.store, dialect))


def _dialects(where: StorePath) -> Iterator[Mapping[str, str]]:
    if where.home is not None:
        yield where.home.documents(where.path)
        return
    for dialect in DIALECTS:
        if dialect.entry_point is None:
            yield dialect.keyspace.documents(where.path)


def _document_text(value: bytes) -> str:
    text = value[:_MOST_CHARACTERS].decode("utf-8", "replace")
    return f"{text}…" if len(value) > _MOST_CHARACTERS else text

"""What a dialect is: a frozen value of functions that translate documents; none of them does I/O.

``load`` and ``dump`` are inverse over everything that others wrote:
``dump(load(documents)) == documents``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from omnizarr.model import JSON, Metadata, Named, Report, strict

Documents: TypeAlias = Mapping[str, JSON]
"""The documents of one node, by name: ``{".zarray": {...}, ".zattrs": {...}}``. A missing one is left out."""

Nodes: TypeAlias = Mapping[str, Documents]
"""The documents of many nodes, by path relative to the group that keeps them."""


class KeysOf(Protocol):
    """Where the documents of a node lie."""

    def __call__(self, path: str, /) -> dict[str, str]:
        """Return document name -> store key, for the node at `path` ("" is the root)."""


class PathFunction(Protocol):
    """From a path to a string."""

    def __call__(self, path: str, /) -> str:
        """Return the string."""


class NameCheck(Protocol):
    """What a node may be called."""

    def __call__(self, name: str, /) -> None:
        """Return if a node can have this name; raise NodeNameError if not."""


class Load(Protocol):
    """From documents to the model."""

    def __call__(self, documents: Documents, report: Report = strict) -> Metadata | None:
        """Return what the documents say; None if they describe no node of this dialect.

        Problems go to `report`: `strict` raises the first; ``list.append`` collects all of them, and the metadata
        returned then holds sensible substitutes (None where not even the kind of node can be told).
        """


class Dump(Protocol):
    """From the model to documents."""

    def __call__(self, metadata: Metadata, /) -> dict[str, JSON]:
        """Return document name -> document; raise NotRepresentableError if the dialect has no words for something."""


class LoadNodes(Protocol):
    """From consolidated metadata to the documents in it."""

    def __call__(self, document: JSON, report: Report = strict) -> dict[str, dict[str, JSON]]:
        """Return path -> document name -> document, not yet parsed; problems go to `report`."""


class DumpNodes(Protocol):
    """From many documents to consolidated metadata."""

    def __call__(self, nodes: Nodes, /) -> JSON:
        """Return the consolidated metadata that holds `nodes`."""


@dataclass(frozen=True, slots=True)
class Consolidated:
    """How a dialect keeps copies of many nodes' documents in one place."""

    document: str | None
    """Name of a document of its own (``".zmetadata"``); None: a member of the group's document."""
    load: LoadNodes
    dump: DumpNodes


@dataclass(frozen=True, slots=True)
class NewArrays:
    """What arrays can be that are created in a format, and what they are where the user does not say."""

    chunk_key_encoding: Named
    """Where the user names none."""
    has_filters: bool = False
    """Codecs are filters and one compressor, as numcodecs has them, and an order, C or F: no serializer, no shards."""
    has_byte_order: bool = False
    """Documents say the byte order that elements have in memory."""
    has_undefined_fill_value: bool = False
    """``fill_value=None`` means that nobody knows what missing chunks hold."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One on-disk format.

    A format whose root document decides where everything else lies gives each hierarchy its own value, made
    with ``dataclasses.replace(dialect, documents=..., chunk_prefix=...)``: nobody keeps these two apart from it.
    """

    name: str
    """As in `ArrayMetadata.dialect`: ``"v2"``."""
    zarr_format: int | str
    """What a user gives as ``zarr_format=``."""
    documents: KeysOf
    """Path of a node -> document name -> store key."""
    chunk_prefix: PathFunction
    """Path of an array -> what all keys of its chunks begin with: ``"a/b/"``, ``""`` for the root."""
    array_document: str
    """Name of the document that makes a node an array: ``".zarray"``."""
    group_document: str
    """Name of the document that makes a node a group; it may be the same."""
    attributes_document: str | None
    """Name of the document that holds the attributes; None: they are a member of the document that makes the node."""
    load: Load
    dump: Dump
    consolidated: Consolidated
    new_arrays: NewArrays
    check_name: NameCheck
    normalize_path: PathFunction
    """What a user typed -> the path, without slashes at its ends; raises NodeNameError."""

"""The contract of dialects: a dialect is a frozen value of functions that translate documents, without I/O.

``load`` and ``dump`` are inverse for documents of other programs: ``dump(load(documents)) == documents``. For this, the
model remembers the spelling of members, next to their meaning (`omnizarr.formats.spelling`). ``dump`` writes the
spelling back if the meaning has not changed (1, 1.0 and true differ), and everything else in canonical form, which must
pass the dialect's own ``load`` without a problem or a note. ``docs/formats/tolerance.md`` lists tolerated spellings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from omnizarr.formats.keyspaces import Keyspace, Split
from omnizarr.model import JSON, ArrayMetadata, Metadata, Named, Report, strict

Documents: TypeAlias = Mapping[str, JSON]
"""The documents of one node, by name: ``{".zarray": {...}, ".zattrs": {...}}``. A missing one is left out."""

Nodes: TypeAlias = Mapping[str, Documents]
"""The documents of many nodes, by path relative to the group that keeps them."""


class NameFunction(Protocol):
    """From a name to a text."""

    def __call__(self, name: str, /) -> str:
        """Return the text."""


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


class Enter(Protocol):
    """From the entry point of a hierarchy to where its keys are."""

    def __call__(self, document: JSON, root: str, report: Report = strict) -> Split | None:
        """Return the keyspace of the hierarchy at `root`; None if `document` is not an entry point of a draft."""


class OtherKeys(Protocol):
    """What else the keys of chunks can be."""

    def __call__(self, metadata: ArrayMetadata, /) -> tuple[Named, ...]:
        """Return the chunk key encodings to look for where no chunk has the key that the metadata give it."""


def _none(metadata: ArrayMetadata, /) -> tuple[Named, ...]:
    return ()


def _no_reason(name: str, /) -> str:
    return ""


class LoadNodes(Protocol):
    """From consolidated metadata to the documents in it."""

    def __call__(self, document: JSON, report: Report = strict) -> dict[str, dict[str, JSON]]:
        """Return path -> document name -> document, not yet parsed; problems go to `report`."""


class DumpNodes(Protocol):
    """From many documents to consolidated metadata."""

    def __call__(self, nodes: Nodes, /) -> dict[str, JSON]:
        """Return the consolidated metadata that holds `nodes`."""


class Consolidated(NamedTuple):
    """How a dialect keeps copies of many nodes' documents in one place."""

    document: str | None
    """Name of a document of its own (``".zmetadata"``); None: a member of the group's document."""
    load: LoadNodes
    dump: DumpNodes


_ZSTD: Final[Mapping[str, JSON]] = {"id": "zstd", "level": 0}


class NewArrays(NamedTuple):
    """What arrays can be that are created in a format, and what they are where the user does not say."""

    chunk_key_encoding: Named
    """Where the user names none."""
    has_filters: bool = False
    """Codecs are filters and one compressor, as numcodecs has them, and an order, C or F: no serializer, no shards."""
    has_byte_order: bool = False
    """Documents say the byte order that elements have in memory."""
    has_undefined_fill_value: bool = False
    """``fill_value=None`` means that missing chunks hold unknown values."""
    has_one_nan: bool = False
    """Documents have one word for NaN, whatever its bits."""
    compressor: Mapping[str, JSON] = _ZSTD
    """Where the user names none, as numcodecs has it; for formats with filters."""


class EntryPoint(NamedTuple):
    """The document that opens a hierarchy whose keys are where it says."""

    enter: Enter
    new: Callable[[], JSON]
    """The document of a new hierarchy."""
    is_optional: bool = False
    """The text knows of no such document: where there is none, keys are as in a new hierarchy."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One on-disk format.

    Of a format whose entry point decides where everything else is, each hierarchy has its own value, made
    with ``dataclasses.replace(dialect, keyspace=...)``.
    """

    name: str
    """As in `ArrayMetadata.dialect`: ``"v2"``."""
    zarr_format: int | str
    """What a user gives as ``zarr_format=``."""
    keyspace: Keyspace
    """Where documents and chunks are."""
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
    """Raises NodeNameError for what no new node can be called; existing nodes are read whatever their names are."""
    why_reserved: NameFunction = _no_reason
    """A name -> why the format reserves it; "" if it does not. A new node can have it all the same."""
    entry_point: EntryPoint | None = None
    """None: every node stands for itself."""
    has_groups: bool = True
    """False: there are arrays only, and directories of arrays pass for groups."""
    has_dimension_names: bool = False
    """Documents of arrays have a member for the names of dimensions."""
    has_cases: bool = True
    """False: no two siblings may be called the same but for upper and lower case."""
    other_keys: OtherKeys = _none
    """Where the documents of an array leave the keys of its chunks open: those that programs used besides."""

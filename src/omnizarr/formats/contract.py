"""The contract of dialects: a dialect is a frozen value whose functions translate documents, without I/O.

``load`` and ``dump`` are inverse for documents of other programs: ``dump(load(documents)) == documents``. For
this, the model keeps the spelling of members along with their meaning (`omnizarr.formats.spelling`). ``dump``
writes the spelling back if the meaning has not changed (1, 1.0 and true differ), and everything else in
canonical form, which must pass the dialect's own ``load`` without a problem or a note.
``docs/formats/tolerance.md`` lists tolerated spellings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from omnizarr.codecs.contract import Buffer
from omnizarr.formats.keyspaces import Keyspace, Split
from omnizarr.formats.scanning import Members
from omnizarr.model import JSON, ArrayMetadata, Metadata, Named, Report, strict

Documents: TypeAlias = Mapping[str, JSON]
"""The documents of one node, by name: ``{".zarray": {...}, ".zattrs": {...}}``. Missing ones are omitted."""

Nodes: TypeAlias = Mapping[str, Documents]
"""The documents of many nodes, by path relative to the group that stores them."""


class NameFunction(Protocol):
    """Returns a text for a name."""

    def __call__(self, name: str, /) -> str:
        """Return the text."""


class NameCheck(Protocol):
    """Checks the name of a new node."""

    def __call__(self, name: str, /) -> None:
        """Raise NodeNameError if a node cannot have this name."""


class Load(Protocol):
    """Translates documents to the model."""

    def __call__(self, documents: Documents, report: Report = strict) -> Metadata | None:
        """Return the metadata in the documents; None if they describe no node of this dialect.

        Problems go to `report`: `strict` raises the first; ``list.append`` collects all of them, and the returned
        metadata then has sensible substitutes (None if not even the kind of node is clear).
        """


class Dump(Protocol):
    """Translates the model to documents."""

    def __call__(self, metadata: Metadata, /) -> dict[str, JSON]:
        """Return the documents by name. Raises NotRepresentableError if the dialect cannot express something."""


class Enter(Protocol):
    """Finds the keys of a hierarchy from its entry point."""

    def __call__(self, document: JSON, root: str, report: Report = strict) -> Split | None:
        """Return the keyspace of the hierarchy at `root`; None if `document` is not an entry point of a draft."""


class OtherKeys(Protocol):
    """Alternatives for the keys of chunks."""

    def __call__(self, metadata: ArrayMetadata, /) -> tuple[Named, ...]:
        """Return the chunk key encodings to try if no chunk has the key from the metadata."""


class LoadPlain(Protocol):
    """Translates ordinary texts to the model."""

    def __call__(self, texts: Mapping[str, bytes], parse: Callable[[bytes], JSON], /) -> ArrayMetadata | None:
        """Return what `Load` returns for the parsed texts of an array, in which nothing but the attributes is new.

        All texts are plain (`omnizarr.formats.scanning.is_plain`). `parse` returns the documents, as they are to be
        remembered. None for anything else, and for what is not in order: use `Load`.
        """


def _no_array(_texts: Mapping[str, bytes], _parse: Callable[[bytes], JSON], /) -> None:
    """Return None."""


def _none(metadata: ArrayMetadata, /) -> tuple[Named, ...]:
    return ()


def _no_reason(name: str, /) -> str:
    return ""


class LoadNodes(Protocol):
    """Extracts documents from consolidated metadata."""

    def __call__(self, document: JSON, report: Report = strict) -> dict[str, dict[str, JSON]]:
        """Return the unparsed documents by path and name. Problems go to `report`."""


class DumpNodes(Protocol):
    """Combines documents to consolidated metadata."""

    def __call__(self, nodes: Nodes, /) -> dict[str, JSON]:
        """Return the consolidated metadata of `nodes`."""


class Scanned(NamedTuple):
    """The consolidated metadata in a text, whose copies are not parsed yet."""

    nodes: Nodes
    members: Members
    """Where they are."""


def _nothing(_: Any, /) -> None:
    """Return None."""


class Consolidated(NamedTuple):
    """How a dialect stores copies of many nodes' documents in one place."""

    document: str | None
    """Name of the separate document (``".zmetadata"``); None: a member of the group's document."""
    load: LoadNodes
    dump: DumpNodes
    scan: Callable[[bytes], Scanned | None] = _nothing
    """Finds the copies in the text of the document that holds them; None if the text must be parsed."""
    is_possible: bool = True
    """False for formats that have none."""


_ZSTD: Final[Mapping[str, JSON]] = {"id": "zstd", "level": 0}
_GZIP: Final[Mapping[str, JSON]] = {"id": "gzip", "level": 1}


class NewArrays(NamedTuple):
    """The possible properties of new arrays in a format, and their defaults."""

    chunk_key_encoding: Named
    """The default chunk key encoding."""
    has_filters: bool = False
    """Whether codecs are filters, one compressor and an order, as in numcodecs: no serializer, no shards."""
    has_byte_order: bool = False
    """Whether documents state the byte order of elements in memory."""
    has_undefined_fill_value: bool = False
    """Whether ``fill_value=None`` means that missing chunks have undefined values."""
    has_one_nan: bool = False
    """Whether documents have only one form of NaN, whatever its bits."""
    compressor: Mapping[str, JSON] = _ZSTD
    """The default compressor in the form of numcodecs."""
    fallback: Mapping[str, JSON] | None = _GZIP
    """The default where that one is not installed; None if the format has no other."""


class EntryPoint(NamedTuple):
    """The document that opens a hierarchy and determines where its keys are."""

    enter: Enter
    new: Callable[[], JSON]
    """The document of a new hierarchy."""
    is_optional: bool = False
    """Whether the specification has no such document: without one, keys are as in a new hierarchy."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One on-disk format.

    If the entry point of a format determines where everything else is, each hierarchy has its own value, made
    with ``dataclasses.replace(dialect, keyspace=...)``.
    """

    name: str
    """Name, as in `ArrayMetadata.dialect`: ``"v2"``."""
    zarr_format: int | str
    """The value of ``zarr_format`` for users."""
    keyspace: Keyspace
    """Where documents and chunks are."""
    array_document: str
    """Name of the document that makes a node an array: ``".zarray"``."""
    group_document: str
    """Name of the document that makes a node a group. It may be the same."""
    attributes_document: str | None
    """Name of the document with the attributes; None: they are a member of the document that makes the node."""
    load: Load
    dump: Dump
    consolidated: Consolidated
    new_arrays: NewArrays
    check_name: NameCheck
    """Raises NodeNameError for names that no new node can have. Existing nodes are read whatever their names are."""
    why_reserved: NameFunction = _no_reason
    """Returns why the format reserves a name; "" if it does not. A new node can still have it."""
    entry_point: EntryPoint | None = None
    """The entry point; None: the format has none."""
    has_groups: bool = True
    """False: the format has only arrays, and directories of arrays count as groups."""
    has_dimension_names: bool = False
    """Whether documents of arrays have a member for the names of dimensions."""
    has_extensions: bool = False
    """Whether documents list extensions that readers may ignore. Only their spelling is kept."""
    has_cases: bool = True
    """False: siblings' names must differ in more than case."""
    load_unread: Callable[[Mapping[str, Buffer]], Metadata | None] = _nothing
    """Returns what `load` returns for texts, without parsing all of them; None if they must be parsed."""
    load_plain: LoadPlain = _no_array
    """Returns what `load` returns for texts of an array, of which most may be known."""
    other_keys: OtherKeys = _none
    """Other chunk keys that programs used, if the documents of an array leave the keys open."""

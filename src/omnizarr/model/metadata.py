"""The metadata of nodes in the terms of Zarr v3, for every format.

All code outside the dialects uses only these values. They are immutable; `dataclasses.replace` makes a changed
copy.

Spec: Zarr v3 core, "Metadata"; zarr-extensions for the names of the extensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from omnizarr.errors import MetadataError

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"


class Undefined(Enum):
    """The fill value of an array whose missing chunks have undefined content."""

    UNDEFINED = "undefined"

    def __repr__(self) -> str:
        return "UNDEFINED"


UNDEFINED: Final = Undefined.UNDEFINED


@dataclass(frozen=True, slots=True)
class Named:
    """An extension point in a document: a name and its configuration.

    The name may be unknown. It is kept, listed, copied and written back unchanged. Only binding it (to a codec, a
    data type, a grid) can fail.
    """

    name: str
    configuration: Mapping[str, JSON] = field(default_factory=dict)
    must_understand: bool = True


SCALARS: Final = frozenset({str, int, float, bool, NoneType})
"""Types of JSON values that hold no others."""


def thawed(value: Any) -> Any:
    """Return a copy of JSON, or of a `Named`, that the receiver may change. Values of the model are shared.

    >>> thawed({"order": (1, 0)})
    {'order': [1, 0]}
    """
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is list:
        return [item if type(item) in SCALARS else thawed(item) for item in value]
    if kind is dict or isinstance(value, Mapping):
        return {key: item if type(item) in SCALARS else thawed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thawed(item) for item in value]
    if isinstance(value, Named):
        return Named(value.name, thawed(value.configuration), value.must_understand)
    return value


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a tolerant reader corrected or ignored, which `info` and `check` show."""

    pointer: str
    message: str
    spec: str = ""


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a translation could not keep.

    Attributes
    ----------
    path : str
        Path of the node.
    pointer : str
        JSON pointer of the member in the source's document; empty for the node as a whole.
    what, why : str
        What was lost, and the reason, in plain words.
    kept : str
        What replaces it; empty if nothing does.
    """

    path: str
    pointer: str
    what: str
    why: str
    kept: str = ""


class Problem(NamedTuple):
    """One departure of a document from its format."""

    pointer: str
    message: str
    spec: str = ""
    found: object = None
    expected: object = None
    remedy: str | None = None
    kind: type[MetadataError] = MetadataError
    is_left_out: bool = False
    """Whether the member can be ignored, and the rest of the document is valid: only `check` reports it."""

    def error(self) -> MetadataError:
        """Return an exception with the same content."""
        return self.kind(
            self.message,
            pointer=self.pointer,
            found=self.found,
            expected=self.expected,
            remedy=self.remedy,
            spec=self.spec or None,
        )


Report: TypeAlias = Callable[[Problem], None]


def strict(problem: Problem) -> None:
    """Raise the problem. `open` passes this function; `check` passes ``list.append`` and gets all problems."""
    if not problem.is_left_out:
        raise problem.error()


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a document spelled some fields, and their meaning.

    A dialect writes the spelling back as long as the meaning has not changed, so that ``dump(load(documents)) ==
    documents`` also if a format has two spellings for one meaning.
    """

    meaning: object
    document: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMetadata:
    """The metadata of an array.

    Attributes
    ----------
    dialect : str
        Name of the dialect in which it was read and is written back.
    shape : tuple of int
        Number of elements along each dimension; ``()`` for a scalar.
    data_type : Named
        Bound by `omnizarr.model.datatypes.bind`.
    byte_order : {"<", ">"}
        Byte order of the NumPy dtype that the user sees. (The ``bytes`` codec defines the order of stored
        bytes.) Only v1 and v2 state it; in other formats it is little-endian.
    chunk_grid, chunk_key_encoding : Named
        Bound by `omnizarr.model.grids.bind` and `omnizarr.model.keys.bind`.
    fill_value : JSON or UNDEFINED
        The fill value in the v3 JSON form of the data type.
    codecs : tuple of Named
        array to array, then one array to bytes, then bytes to bytes; bound by `omnizarr.codecs.chain.bind`.
    attributes : mapping
        The user's attributes, as JSON. Non-finite floats stay floats in memory.
    dimension_names : tuple of (str or None), optional
        None if the document names no dimensions.
    storage_transformers : tuple of Named
    unknown : mapping
        Members of the document that no specification defines and that may be ignored. They are written back.
    spellings : mapping of str to Spelling
        Private to the dialect.
    notes : tuple of Note
        What was corrected in reading.
    """

    dialect: str
    shape: tuple[int, ...]
    data_type: Named
    byte_order: Literal["<", ">"] = "<"
    chunk_grid: Named
    chunk_key_encoding: Named
    fill_value: JSON | Undefined
    codecs: tuple[Named, ...]
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    dimension_names: tuple[str | None, ...] | None = None
    storage_transformers: tuple[Named, ...] = ()
    unknown: Mapping[str, JSON] = field(default_factory=dict)
    spellings: Mapping[str, Spelling] = field(default_factory=dict, compare=False, repr=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)

    node_type: Literal["array"] = "array"


class _Draft:
    """Metadata of an array while they are made: the same members, which are not frozen yet."""

    __slots__ = tuple(member.name for member in fields(ArrayMetadata))


def similar(
    metadata: ArrayMetadata,
    shape: tuple[int, ...],
    attributes: Mapping[str, JSON],
    spellings: Mapping[str, Spelling],
    notes: tuple[Note, ...] = (),
) -> ArrayMetadata:
    """Return what ``dataclasses.replace`` returns for these members, in a tenth of the time.

    >>> from omnizarr.model import ArrayMetadata, Named
    >>> codecs, keys = (Named("bytes"),), Named("default")
    >>> one = ArrayMetadata(dialect="v3", shape=(1,), data_type=Named("int8"), chunk_grid=Named("regular"),
    ...                     chunk_key_encoding=keys, fill_value=0, codecs=codecs)
    >>> similar(one, (2,), {"units": "m"}, {}).shape
    (2,)
    """
    # The assignments of a frozen dataclass are calls; those of another class with the same layout are not.
    made: Any = _Draft()
    made.dialect = metadata.dialect
    made.shape = shape
    made.data_type = metadata.data_type
    made.byte_order = metadata.byte_order
    made.chunk_grid = metadata.chunk_grid
    made.chunk_key_encoding = metadata.chunk_key_encoding
    made.fill_value = metadata.fill_value
    made.codecs = metadata.codecs
    made.attributes = attributes
    made.dimension_names = metadata.dimension_names
    made.storage_transformers = metadata.storage_transformers
    made.unknown = metadata.unknown
    made.spellings = spellings
    made.notes = notes
    made.node_type = metadata.node_type
    made.__class__ = ArrayMetadata
    found: ArrayMetadata = made
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """The metadata of a group.

    Attributes
    ----------
    dialect : str
    attributes : mapping
    consolidated : mapping of str to (mapping of str to JSON), optional
        Documents of the nodes below, by path relative to this group: ``{"a/b": {"zarr.json": {...}}}``. They
        are not parsed yet, so that one broken node does not hide its siblings. None if not consolidated.
    implicit : bool
        Whether no document describes the group, and it exists only because of nodes below.
    unknown, spellings, notes
        As in `ArrayMetadata`.
    """

    dialect: str
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    consolidated: Mapping[str, Mapping[str, JSON]] | None = None
    implicit: bool = False
    unknown: Mapping[str, JSON] = field(default_factory=dict)
    spellings: Mapping[str, Spelling] = field(default_factory=dict, compare=False, repr=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)

    node_type: Literal["group"] = "group"


Metadata: TypeAlias = ArrayMetadata | GroupMetadata

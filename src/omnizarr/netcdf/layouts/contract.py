"""What a layout is: a way in which NCZarr puts what netCDF knows, and Zarr does not, beside the documents of Zarr.

Spec: NCZarr, "NCZarr versus Pure Zarr", Appendix C, Appendix E.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from omnizarr.model import JSON, ArrayMetadata, Note
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, VariableHeader
from omnizarr.nodes.location import StorePath


class Marks(NamedTuple):
    """Everything that a layout writes for one node, beside the shape, types and codecs of Zarr.

    Attributes
    ----------
    attributes : mapping
        All attributes of the node, the user's and NCZarr's, in order.
    members : mapping
        Members of its own document (``.zgroup``, ``.zarray``) that Zarr does not know: ``_nczarr_array``, ...
    objects : mapping
        Documents of their own beside those of Zarr, by name: ``.nczgroup``, ... (layout A).
    listed : mapping
        What the group says of an array that it holds, in its attribute ``_nczarr_arrays`` (layout v3).
    """

    attributes: Mapping[str, JSON]
    members: Mapping[str, JSON] = {}
    objects: Mapping[str, JSON] = {}
    listed: Mapping[str, JSON] = {}


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout: a value of functions, without I/O.

    Attributes
    ----------
    name : {"A", "B", "C", "D", "xarray", "pure", "v3", "E", "pure-v3"}
    zarr_format : {2, 3}
    group : callable
        What a group's documents say; ``is_root`` adds the superblock and ``_NCProperties``.
    variable : callable
        What an array's documents say: ``variable(header, group_path, dimensions by full name, xarray)``.
    array : callable
        Metadata of the array that a new variable becomes, marks included:
        ``array(header, group_path, dimensions by full name, xarray, is_complete)``. ``is_complete``: all elements will
        be stored, so that no missing chunk needs a fill value.
    has_unlimited : bool
        Whether unlimited dimensions survive (layouts before D lose them).
    has_string_attributes : bool
        Whether attributes can be string.
    has_long_strings : bool
        Whether strings may have any length, and are UTF-8.
    lists_arrays : bool
        Whether groups say what there is to say of their arrays: `Marks.listed`.
    """

    name: str
    zarr_format: Literal[2, 3]
    group: Callable[[GroupHeader, bool], Marks]
    variable: Callable[[VariableHeader, str, Mapping[str, DimensionHeader], bool], Marks]
    array: Callable[[VariableHeader, str, Mapping[str, DimensionHeader], bool, bool], ArrayMetadata]
    has_unlimited: bool = True
    has_string_attributes: bool = True
    has_long_strings: bool = False
    lists_arrays: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a variable is, and how its array is to be understood.

    Attributes
    ----------
    where : StorePath
    metadata : ArrayMetadata
        As its writer meant it, not as its document says: byte order, data type (one byte for char) and fill
        value corrected. A scalar that is stored with shape ``[1]`` still has that shape here.
    is_scalar : bool
        A netCDF scalar, whatever the shape.
    needs_chunks : bool
        The document has no fill value (null), though `metadata` has one: all chunks are to be stored.
    """

    where: StorePath
    metadata: ArrayMetadata
    is_scalar: bool = False
    needs_chunks: bool = False


class FoundVariable(Protocol):
    """A variable as it was found. What its documents say was read at once, and is understood when it is asked for."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Full names of its dimensions."""

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Its attributes, those that say how numbers are rounded first."""

    @property
    def header(self) -> VariableHeader:
        """What it is, with notes of what was corrected."""

    @property
    def stored(self) -> Stored:
        """Where it is, and how its array is to be understood."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A dataset as it was found.

    Attributes
    ----------
    root : GroupHeader
        Complete, with notes of what was corrected.
    layout : Layout
        In which it is written on.
    variables : mapping of str to FoundVariable
        By full name.
    groups : mapping of str to StorePath
        By full name, "" for the root.
    version : str or None
        Of the netCDF-C that wrote it, from ``_NCProperties``: "4.9.0".
    """

    root: GroupHeader
    layout: Layout
    variables: Mapping[str, FoundVariable] = field(default_factory=dict)
    groups: Mapping[str, StorePath] = field(default_factory=dict)
    version: str | None = None
    notes: tuple[Note, ...] = ()

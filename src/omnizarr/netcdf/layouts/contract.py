"""The contract of layouts: how NCZarr stores what netCDF needs, and Zarr does not have, beside the documents of Zarr.

Spec: NCZarr, "NCZarr versus Pure Zarr", Appendix C, Appendix E.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from omnizarr.model import JSON, ArrayMetadata, Note
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.types import AnyType
from omnizarr.nodes.location import StorePath


class Marks(NamedTuple):
    """Everything that a layout writes for one node in addition to the shape, types and codecs of Zarr.

    Attributes
    ----------
    attributes : mapping
        All attributes of the node, the user's and NCZarr's, in order.
    members : mapping
        Additional members of its document (``.zgroup``, ``.zarray``): ``_nczarr_array``, ...
    objects : mapping
        Separate documents beside those of Zarr, by name: ``.nczgroup``, ... (layout A).
    listed : mapping
        The entry of an array in its group's attribute ``_nczarr_arrays`` (layout v3).
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
        Returns the marks of a group; ``is_root`` adds the superblock and ``_NCProperties``.
    why_not : callable
        Returns why the layout has no elements of a type; "" if it has.
    variable : callable
        Returns the marks of an array: ``variable(header, group_path, dimensions by full name, xarray)``.
    array : callable
        Returns the metadata of the array for a new variable, including marks:
        ``array(header, group_path, dimensions by full name, xarray, is_complete)``. ``is_complete``: all elements will
        be stored, so that no missing chunk needs a fill value.
    has_unlimited : bool
        Whether unlimited dimensions survive (layouts before D lose them).
    has_string_attributes : bool
        Whether attributes can be string.
    has_long_strings : bool
        Whether strings may have any length, and are UTF-8.
    lists_arrays : bool
        Whether groups have entries of their arrays: `Marks.listed`.
    """

    name: str
    zarr_format: Literal[2, 3]
    group: Callable[[GroupHeader, bool], Marks]
    why_not: Callable[[AnyType], str]
    variable: Callable[[VariableHeader, str, Mapping[str, DimensionHeader], bool], Marks]
    array: Callable[[VariableHeader, str, Mapping[str, DimensionHeader], bool, bool], ArrayMetadata]
    has_unlimited: bool = True
    has_string_attributes: bool = True
    has_long_strings: bool = False
    lists_arrays: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a variable is stored, and how to interpret its array.

    Attributes
    ----------
    where : StorePath
    metadata : ArrayMetadata
        The metadata that the writer meant, with corrections of the document: byte order, data type (one byte
        for char) and fill value corrected. A scalar that is stored with shape ``[1]`` still has that shape
        here.
    is_scalar : bool
        Whether it is a netCDF scalar, whatever the shape.
    needs_chunks : bool
        Whether the document has no fill value (null), although `metadata` has one: all chunks must be stored.
    """

    where: StorePath
    metadata: ArrayMetadata
    is_scalar: bool = False
    needs_chunks: bool = False


class FoundVariable(Protocol):
    """A variable that was found. Its documents were read immediately, and are interpreted when needed."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Full names of its dimensions."""

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Its attributes, those that say how numbers are rounded first."""

    @property
    def header(self) -> VariableHeader:
        """The variable as a value, with notes about corrections."""

    @property
    def stored(self) -> Stored:
        """Where the variable is stored, and how to interpret its array."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A dataset that was found.

    Attributes
    ----------
    root : GroupHeader
        The complete header, with notes about corrections.
    layout : Layout
        The layout for further writes.
    variables : mapping of str to FoundVariable
        The variables by full name.
    groups : mapping of str to StorePath
        The groups by full name, "" for the root.
    version : str or None
        Version of the netCDF-C that wrote it, from ``_NCProperties``: "4.9.0".
    """

    root: GroupHeader
    layout: Layout
    variables: Mapping[str, FoundVariable] = field(default_factory=dict)
    groups: Mapping[str, StorePath] = field(default_factory=dict)
    version: str | None = None
    notes: tuple[Note, ...] = ()

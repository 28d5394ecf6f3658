"""Headers: the structure of a netCDF dataset, without its data.

Modules of this room pass datasets to each other in this form. The layouts of NCZarr, netCDF-3 and netCDF-4 files,
and CDL become headers, and are written from headers.

Special attributes are never among `attributes`. CDL, `createVariable`, files and layouts use them to state how
data is stored.

Spec: NCZarr, "The NCZarr Data Model".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError, UnknownDataTypeError
from omnizarr.model import JSON, Note
from omnizarr.netcdf import types
from omnizarr.netcdf.types import AnyType, NcType

if TYPE_CHECKING:
    from omnizarr.nodes.array import Array

Selection: TypeAlias = tuple[slice, ...]

Form: TypeAlias = Mapping[str, JSON]
"""What HDF5 states of an attribute that netCDF cannot express; see `omnizarr.netcdf.forms`."""

MEMBERS: Final = "/members"
"""Pointer of a group's note on a member that is in the store, but not in the header: ``/members/<name>``."""


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """The value of an attribute, with its type.

    Attributes
    ----------
    type : NcType
    value : str or numpy.ndarray
        The text of a char attribute; otherwise a vector of `type.dtype` (of str objects for string). Invalid
        UTF-8 in text is kept by ``surrogateescape``.
    form : mapping, optional
        The shape and type in HDF5, where they are not those that netCDF-C writes.
    """

    type: NcType
    value: str | NDArray[Any]
    form: Form | None = None

    @classmethod
    def of(cls, value: Any) -> Attribute:
        """Return the attribute for a Python or NumPy value: text is char, lists of str are string.

        A str or bytes becomes char, an int int64, a float double; lists and arrays become vectors of their NumPy
        type. Raises UnknownDataTypeError if netCDF has no type for the value, and MetadataError for more than one
        dimension.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str | bytes):
            return cls(types.CHAR, value if isinstance(value, str) else value.decode("utf-8", "surrogateescape"))
        array = np.asarray(value)
        if array.ndim > 1:
            raise MetadataError(
                "an attribute has one dimension at most",
                found=f"a value of shape {array.shape}",
                remedy="flatten it, or store it as a variable",
            )
        if array.dtype.kind == "b":
            array = array.astype("i1")
        if array.dtype.kind in "SUT" or array.dtype == object:
            items = [
                each.decode("utf-8", "surrogateescape") if isinstance(each, bytes) else each for each in array.ravel()
            ]
            if not all(isinstance(each, str) for each in items):
                raise UnknownDataTypeError(
                    "netCDF has no type for this value",
                    found=repr(value)[:80],
                    expected="text, numbers, or lists of them",
                )
            if array.ndim == 0 or array.dtype == "S1":
                return cls(types.CHAR, "".join(map(str, items)))
            strings = np.empty(len(items), object)
            strings[:] = [str(each) for each in items]
            return cls(types.STRING, strings)
        nc_type = types.of_dtype(array.dtype)
        return cls(nc_type, np.array(array, nc_type.dtype).ravel())

    @property
    def python(self) -> Any:
        """The value as in netCDF4-python: text, a scalar, a list of str, or a vector."""
        if isinstance(self.value, str):
            return self.value
        if self.type is types.STRING:
            return self.value[0] if len(self.value) == 1 else list(self.value)
        return self.value[0] if len(self.value) == 1 else self.value.copy()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attribute) or self.type != other.type or self.form != other.form:
            return False
        if isinstance(self.value, str) or isinstance(other.value, str):
            return isinstance(self.value, str) and isinstance(other.value, str) and self.value == other.value
        if self.type is types.STRING:
            return list(self.value) == list(other.value)
        return self.value.tobytes() == other.value.tobytes()

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class DimensionHeader:
    """A named length that variables share; of an unlimited one, its current length."""

    name: str
    size: int
    unlimited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableHeader:
    """The header of a variable.

    Attributes
    ----------
    name : str
    type : NcType or UserType
    dimensions : tuple of str
        Full names: ``("/time", "/model/level")``; empty for a scalar.
    attributes : mapping of str to Attribute
        The attributes that `ncdump` shows, including ``_FillValue`` if it was set.
    special : mapping of str to Attribute
        The attributes that state how values are stored, which ``ncdump -s`` shows: ``_Storage``, ``_ChunkSizes``,
        ``_Fletcher32``, ``_Shuffle``, ``_DeflateLevel``, ``_Filter``, ``_Codecs``, ``_Endianness``, ``_NoFill``,
        ``_QuantizeBitGroomNumberOfSignificantDigits``, ... In this order.
    notes : tuple of Note
        What was corrected in reading.
    """

    name: str
    type: AnyType
    dimensions: tuple[str, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    special: Mapping[str, Attribute] = field(default_factory=dict)
    notes: tuple[Note, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHeader:
    """The header of a group with everything below, in the order of definition.

    The root is called "" and holds the global attributes. Its `special` may be ``_NCProperties``, ``_Format``,
    ...
    """

    name: str = ""
    dimensions: Mapping[str, DimensionHeader] = field(default_factory=dict)
    types: Mapping[str, AnyType] = field(default_factory=dict)
    variables: Mapping[str, VariableHeader] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    special: Mapping[str, Attribute] = field(default_factory=dict)
    groups: Mapping[str, GroupHeader] = field(default_factory=dict)
    notes: tuple[Note, ...] = field(default=(), compare=False)

    def walk(self, path: str = "") -> Iterator[tuple[str, GroupHeader]]:
        """Yield this group and all groups below, with their full names without a trailing slash ("" for the root)."""
        yield path, self
        for name, group in self.groups.items():
            yield from group.walk(f"{path}/{name}")

    def sizes(self) -> dict[str, DimensionHeader]:
        """Return all dimensions by full name."""
        return {f"{path}/{name}": each for path, group in self.walk() for name, each in group.dimensions.items()}


class Source(NamedTuple):
    """A readable dataset: its header, and a function that reads its data.

    `read` takes the full name of a variable (``"/model/temp"``) and one slice per dimension, with explicit bounds
    and step 1. It returns the stored values, neither masked nor scaled, of the type's `dtype` in the byte order
    of the machine: ``S1`` for char, objects of str for string. If less is stored than an unlimited dimension has,
    the rest is fill values.

    `array` takes the same name, and returns the array of Zarr that shows the stored elements of a variable, if it is
    known; None if there is none. It may be shorter than the dimensions of the variable.
    """

    root: GroupHeader
    read: Callable[[str, Selection], NDArray[Any]]
    array: Callable[[str], Array | None] = lambda _: None

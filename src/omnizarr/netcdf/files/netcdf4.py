"""netCDF-4 and HDF5 files as datasets, through omnizarr's own reader: without HDF5, netCDF-C and their locks.

Dimensions are those that netCDF-C finds: the dimension scales, and for datasets without them dimensions with made-up
names (``phony_dim_0``), one for each length in a group.

Spec: NetCDF-4 Format; HDF5 Dimension Scale Specification.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.model import Note
from omnizarr.netcdf import forms
from omnizarr.netcdf.files import attributes, usertypes, values
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, Source, VariableHeader
from omnizarr.netcdf.types import NcType, UserType
from omnizarr.readers.hdf5 import datasets, filters, groups, messages, naming
from omnizarr.readers.hdf5 import datatypes as hdf5_types
from omnizarr.readers.hdf5.attributes import Attribute as Stored
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.datatypes import Datatype
from omnizarr.readers.hdf5.file import File
from omnizarr.readers.hdf5.messages import Header
from omnizarr.stores.local.directory import LocalStore

PROPERTIES: Final = "_NCProperties"
"""The attribute of the root with the version of netCDF-C."""
QUANTIZE: Final = (
    "_QuantizeBitGroomNumberOfSignificantDigits",
    "_QuantizeGranularBitRoundNumberOfSignificantDigits",
    "_QuantizeBitRoundNumberOfSignificantBits",
)
_OF_SCALES: Final = ("CLASS", "NAME")
_HIDDEN: Final = frozenset({
    "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Coordinates", "_Netcdf4Dimid", PROPERTIES, "_nc3_strict",
})  # fmt: skip
_MARKS_OF_NETCDF: Final = frozenset({
    *_OF_SCALES, "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Coordinates", "_Netcdf4Dimid", "_nc3_strict",
    "_Codecs", "_Format", "_IsNetcdf4", "_SuperblockVersion", *QUANTIZE,
})  # fmt: skip
"""Names of attributes by which netCDF-C tells its own files: two of them are enough."""
_MOST: Final = 1_000_000
"""Members of groups in one file, counted once for each way that leads to them."""

_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_SZIP, _SZIP_CODINGS = 4, 4 | 32
_SHOWN_BY_NAME: Final = (_DEFLATE, _SHUFFLE, _FLETCHER32)


class ElsewhereError(Exception):
    """Something in the file is in other files, or needs a library for HDF5."""


def opened(path: Path) -> Source:
    """Return a file as a dataset.

    Raises
    ------
    ElsewhereError
        If only the library for HDF5 can read all of it.
    MetadataError
        If it is broken.
    """
    file = File(LocalStore(path.parent, read_only=True), path.name)
    return _Reading(file).source()


@dataclass(slots=True)
class _Dimension:
    """A dimension, as netCDF-C numbers it."""

    number: int
    name: str
    length: int
    is_unlimited: bool
    address: int | None = None
    """Of its scale."""


@dataclass(slots=True)
class _Variable:
    """A dataset, and the dimensions that are found for it."""

    name: str
    dataset: Dataset
    attributes: dict[str, Stored]
    scale: _Dimension | None
    dimensions: list[tuple[str, _Dimension]] = field(default_factory=list)
    """Each with the path of its group."""


@dataclass(slots=True)
class _Group:
    """A group, with what is in it."""

    path: str
    header: Header
    above: _Group | None
    dimensions: list[_Dimension] = field(default_factory=list)
    types: dict[str, tuple[Datatype, UserType]] = field(default_factory=dict)
    variables: dict[str, _Variable] = field(default_factory=dict)
    groups: dict[str, _Group] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def upwards(self) -> Iterator[_Group]:
        """Yield this group and those above."""
        group: _Group | None = self
        while group is not None:
            yield group
            group = group.above


class _Reading:
    """What finds the header of a file, and what reads its variables."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._paths = file.paths()
        self._attributes = attributes.Reader(file.source, self._name_of)
        self._numbered = self._unnamed = 0
        self._count = 0
        self._has_scales = False
        self._marks = 0
        self._types: list[tuple[Datatype, UserType]] = []
        self._lengths: dict[int, int] = {}
        self._values = values.Values(file, self._name_of)

    def _name_of(self, address: int) -> str:
        path = self._paths.get(address)
        return "" if path is None else f"/{path}"

    def source(self) -> Source:
        """Return the dataset."""
        root = self._file.root
        if not groups.is_group(root):
            raise self._file.source.broken(root.address, "the root of the file is not a group")
        found = self._group(root, "", None, frozenset())
        own = self._stored(root)
        self._attributes.is_netcdf = PROPERTIES in own or self._has_scales
        for group in _walk(found):
            self._match(group)
        for group in _walk(found):
            for variable in group.variables.values():
                shape = variable.dataset.shape
                for length, (_, dimension) in zip(shape, variable.dimensions, strict=True):
                    self._lengths[id(dimension)] = max(length, self._lengths.get(id(dimension), 0))
        header = self._header(found, self._special(own))
        return Source(header, self._values.read, self._values.array)

    # -- objects ---------------------------------------------------------------------------------

    def _group(self, header: Header, path: str, above: _Group | None, entered: Container[int]) -> _Group:
        group = _Group(path, header, above)
        below: list[tuple[str, Header]] = []
        entered_here = frozenset({header.address, *entered})  # type: ignore[misc]
        for link in self._file.links(header).values():
            self._count += 1
            if self._count > _MOST:
                raise self._odd("links lead to the same groups too often", path, f"over {_MOST} members")
            if link.kind == "external":
                raise ElsewhereError(link.file)
            found = None if link.kind == "other" else self._file.follow(header, link.name)
            name = link.name
            if found is None:
                if link.kind == "soft" and self._is_elsewhere(header, link.target):
                    raise ElsewhereError(link.target)
                why = f"a link leads to {link.target or link.name}, where nothing is"
                group.notes.append(Note(f"/variables/{name}", f"left out: {why}"))
            elif groups.is_group(found):
                if found.address in entered_here:
                    raise self._odd(
                        "a link leads to a group above it, again and again",
                        f"{path}/{name}",
                        self._name_of(found.address),
                    )
                below.append((name, found))
            elif datasets.is_dataset(found):
                self._dataset(group, name, found)
            elif found.find(messages.DATATYPE) is not None:
                self._named_type(group, name, found)
        for name, each in below:
            group.groups[name] = self._group(each, f"{path}/{name}", group, entered_here)
        return group

    def _is_elsewhere(self, group: Header, target: str) -> bool:
        """Return whether a path leads through an external link."""
        parts = [each for each in target.split("/") if each]
        here = self._file.root if target.startswith("/") else group
        for part in parts:
            link = self._file.links(here).get(part) if groups.is_group(here) else None
            if link is None:
                return False
            if link.kind == "external":
                return True
            found = self._file.follow(here, part)
            if found is None:
                return link.kind == "soft"
            here = found
        return False

    def _odd(self, why: str, path: str, found: str) -> MetadataError:
        return MetadataError(why, path=path.lstrip("/"), found=found)

    def _stored(self, header: Header) -> dict[str, Stored]:
        return {each.name: each for each in self._file.attributes(header)}

    def _named_type(self, group: _Group, name: str, header: Header) -> None:
        cursor = header.find(messages.DATATYPE)
        if cursor is None:
            return
        datatype = hdf5_types.datatype(cursor)
        found = usertypes.of(datatype, name)
        if found is not None:
            group.types[name] = datatype, found
            self._types.append((datatype, found))

    def _dataset(self, group: _Group, name: str, header: Header) -> None:
        plain = name.removeprefix(naming.NON_COORDINATE)
        try:
            dataset = self._file.dataset(header)
            found = self._stored(header)
        except MetadataError as error:
            group.notes.append(Note(f"/variables/{name}", f"left out: it cannot be read: {error.message}"))
            return
        self._marks += len(_MARKS_OF_NETCDF & found.keys())
        if dataset.dataspace.shape is None:
            why = "a dataset without a shape (h5py.Empty), which netCDF does not have"
            group.notes.append(Note(f"/variables/{name}", f"left out: {why}"))
            return
        scale = None
        if _is_scale(found):
            self._has_scales = True
            scale = self._scale(dataset, found, plain)
            group.dimensions.append(scale)
            if self._text(found.get("NAME")).startswith(naming.NO_VARIABLE):
                return
        if plain == name and plain in group.variables:
            return
        self._check_elsewhere(dataset)
        group.variables[plain] = _Variable(plain, dataset, found, scale)

    def _scale(self, dataset: Dataset, found: Mapping[str, Stored], name: str) -> _Dimension:
        number = self._integers(found.get("_Netcdf4Dimid"))
        at = number[0] if number else self._numbered
        self._numbered = max(self._numbered, at + 1)
        length, most = (*dataset.shape, 1)[0], (*dataset.dataspace.most, 1)[0]
        return _Dimension(at, name, length, most is None or not length, dataset.header.address)

    def _check_elsewhere(self, dataset: Dataset) -> None:
        if dataset.is_external or dataset.layout.storage == "virtual":
            raise ElsewhereError("external storage, or a virtual dataset")
        size = dataset.datatype.size
        if dataset.layout.storage == "chunked" and (
            not filters.can_decode(dataset.filters, size) or filters.lacking(dataset.filters)
        ):
            raise ElsewhereError("a filter")

    def _text(self, stored: Stored | None) -> str:
        found = None if stored is None or not attributes.is_text(stored.datatype) else self._attributes.read(stored)
        return "" if found is None else str(found.python)

    def _integers(self, stored: Stored | None) -> list[int]:
        found = None if stored is None else self._attributes.read(stored)
        if found is None or isinstance(found.value, str) or found.value.dtype.kind not in "iu":
            return []
        return [int(each) for each in found.value]

    # -- dimensions ---------------------------------------------------------------------------

    def _match(self, group: _Group) -> None:
        """Find the dimensions of all variables of a group: of those below first, as netCDF-C does."""
        for variable in group.variables.values():
            shape = variable.dataset.shape
            found = self._coordinates(group, variable) or self._scales(group, variable)
            if found is None:
                found = [None] * len(shape)
            if variable.scale is not None and len(shape) == 1:
                found = [(group.path, variable.scale)]
            used: list[_Dimension] = []
            for axis, each in enumerate(found):
                dimension = (group.path, self._phony(group, variable.dataset, axis, used)) if each is None else each
                used.append(dimension[1])
                variable.dimensions.append(dimension)

    def _coordinates(self, group: _Group, variable: _Variable) -> list[tuple[str, _Dimension] | None] | None:
        """Return the dimensions of which netCDF-C has noted the numbers."""
        numbers = self._integers(variable.attributes.get("_Netcdf4Coordinates"))
        if len(numbers) != len(variable.dataset.shape):
            return None
        found: list[tuple[str, _Dimension] | None] = []
        for number in numbers:
            known = ((one.path, each) for one in group.upwards() for each in one.dimensions if each.number == number)
            each = next(known, None)
            if each is None:
                return None
            found.append(each)
        return found

    def _scales(self, group: _Group, variable: _Variable) -> list[tuple[str, _Dimension] | None] | None:
        """Return the dimensions that are attached to a dataset as scales."""
        listed = variable.attributes.get("DIMENSION_LIST")
        if listed is None or listed.datatype.kind != "vlen" or listed.dataspace.count != len(variable.dataset.shape):
            return None
        addresses = self._attributes.addresses(listed)
        if not addresses or addresses[0] is None:
            return None
        known = {each.address: (one.path, each) for one in reversed([*group.upwards()]) for each in one.dimensions}
        return [None if address is None else known.get(address) for address in addresses]

    def _phony(self, group: _Group, dataset: Dataset, axis: int, used: Sequence[_Dimension]) -> _Dimension:
        """Return the dimension of a group that has the length of an axis, which is made if there is none."""
        length, is_unlimited = dataset.shape[axis], dataset.dataspace.most[axis] is None
        for each in group.dimensions:
            if each.length == length and each.is_unlimited == is_unlimited and each not in used:
                return each
        made = _Dimension(self._numbered, f"phony_dim_{self._numbered}", length, is_unlimited or not length)
        self._numbered += 1
        group.dimensions.append(made)
        return made

    def _length_of(self, dimension: _Dimension) -> int:
        return self._lengths.get(id(dimension), 0) if dimension.is_unlimited else dimension.length

    # -- headers ------------------------------------------------------------------------------

    def _header(self, group: _Group, special: Mapping[str, Attribute]) -> GroupHeader:
        notes = list(group.notes)
        found = self._read_attributes(self._stored(group.header), notes)
        dimensions = {
            each.name: DimensionHeader(each.name, self._length_of(each), each.is_unlimited)
            for each in sorted(group.dimensions, key=lambda each: each.number)
        }
        variables = {}
        for name, each in group.variables.items():
            made = self._variable(group, each)
            if isinstance(made, Note):
                notes.append(made)
            else:
                variables[name] = made
        return GroupHeader(
            name=group.path.rpartition("/")[2],
            dimensions=dimensions,
            types={name: each for name, (_, each) in group.types.items()},
            variables=variables,
            attributes=found,
            special=special,
            groups={name: self._header(each, {}) for name, each in group.groups.items()},
            notes=tuple(notes),
        )

    def _variable(self, group: _Group, variable: _Variable) -> VariableHeader | Note:
        dataset, name = variable.dataset, variable.name
        nc_type = self._type_of(dataset.datatype, name)
        if nc_type is None:
            return Note(f"/variables/{name}", "left out: netCDF has no such type, or no such dimensions")
        notes: list[Note] = []
        found = self._read_attributes(variable.attributes, notes)
        if remark := usertypes.remark(dataset.datatype):
            notes.append(Note("/type", remark))
        special = _storage(dataset)
        special |= {each: found.pop(each) for each in QUANTIZE if each in found}
        dtype = dataset.datatype.dtype()
        if isinstance(nc_type, NcType) and not nc_type.is_text and nc_type.dtype.itemsize > 1 and dtype is not None:
            special["_Endianness"] = Attribute.of("big" if dtype.byteorder == ">" else "little")
        if dataset.fill.raw is None:
            special["_NoFill"] = Attribute.of("true")
        dimensions = tuple(f"{path}/{each.name}" for path, each in variable.dimensions)
        shape = tuple(self._length_of(each) for _, each in variable.dimensions)
        fill = usertypes.fill(nc_type, found.get("_FillValue"))
        self._values.add(f"{group.path}/{name}", dataset, nc_type, shape, fill)
        return VariableHeader(
            name=name,
            type=nc_type,
            dimensions=dimensions,
            attributes=found,
            special={each: special[each] for each in sorted(special, key=lambda each: each in QUANTIZE)},
            notes=tuple(notes),
        )

    def _type_of(self, datatype: Datatype, name: str) -> NcType | UserType | None:
        """Return the type of a variable: of equal types that the file defines the first one."""
        for other, each in self._types:
            if other == datatype:
                return each
        found = usertypes.of(datatype, name)
        self._unnamed += found is not None or datatype.kind in {"array", "bitfield"}
        if found is None:
            return usertypes.atomic(datatype)
        found = replace(found, name=f"_Anonymous{found.kind.capitalize()}{self._unnamed}")  # as netCDF-C calls it
        self._types.append((datatype, found))
        return found

    def _read_attributes(self, stored: Mapping[str, Stored], notes: list[Note]) -> dict[str, Attribute]:
        """Return the attributes of a variable or group, with notes on those of types that netCDF does not have."""
        found = {}
        is_scale = _is_scale(stored)
        for name, each in stored.items():
            if name == PROPERTIES and not _is_one_text(each):
                notes.append(Note(f"/attributes/{name}", "left out: it is not one text"))
            if name in _HIDDEN or (name in _OF_SCALES and is_scale):
                continue
            attribute = self._attributes.read(each)
            if attribute is None:
                notes.append(Note(f"/attributes/{name}", "left out: neither netCDF nor JSON has its type"))
                continue
            found[name] = attribute
            if forms.kind(attribute):
                notes.append(Note(f"/attributes/{name}", forms.remark(name, attribute)))
        return found

    def _special(self, own: Mapping[str, Stored]) -> dict[str, Attribute]:
        special: dict[str, Any] = {}
        properties = own.get(PROPERTIES)
        if properties is not None and _is_one_text(properties):
            special[PROPERTIES] = self._text(properties).rstrip("\0")
        special["_SuperblockVersion"] = np.array([self._file.source.version], "i4")
        is_of_netcdf = "_nc3_strict" in own or PROPERTIES in own or self._marks > 1
        special["_IsNetcdf4"] = np.array([int(is_of_netcdf)], "i4")
        special["_Format"] = "netCDF-4 classic model" if "_nc3_strict" in own else "netCDF-4"
        return {name: Attribute.of(value) for name, value in special.items()}


def _walk(group: _Group) -> Iterator[_Group]:
    """Yield the groups below a group, and then the group itself."""
    for each in group.groups.values():
        yield from _walk(each)
    yield group


def _is_one_text(stored: Stored) -> bool:
    return attributes.is_text(stored.datatype) and stored.dataspace.shape == ()


def _is_scale(found: Mapping[str, Stored]) -> bool:
    stored = found.get("CLASS")
    if stored is None or stored.datatype.kind != "string":
        return False
    return stored.raw.rstrip(b"\0") == b"DIMENSION_SCALE"


def _storage(dataset: Dataset) -> dict[str, Attribute]:
    """Return the special attributes of a dataset that say how it is stored."""
    special: dict[str, Any] = {"_Storage": dataset.layout.storage}
    if dataset.layout.storage == "chunked":
        chunks = dataset.layout.chunk_shape
        special["_ChunkSizes"] = np.array(chunks, "i4" if max(chunks, default=0) < 2**31 else "i8")
    by_number = {each.number: each.parameters for each in dataset.filters}
    if _FLETCHER32 in by_number:
        special["_Fletcher32"] = "true"
    if _SHUFFLE in by_number:
        special["_Shuffle"] = "true"
    if _DEFLATE in by_number:
        special["_DeflateLevel"] = np.array(by_number[_DEFLATE], "i4")
    others = [
        ",".join(map(str, (each.number, *_parameters(each.number, each.parameters))))
        for each in dataset.filters
        if each.number not in _SHOWN_BY_NAME
    ]
    if others:
        special["_Filter"] = "|".join(others)
    return {name: Attribute.of(value) for name, value in special.items()}


def _parameters(number: int, parameters: tuple[int, ...]) -> tuple[int, ...]:
    """Return a filter's parameters, without those that HDF5 adds to szip's two on its own."""
    if number == _SZIP and len(parameters) == 4:
        return parameters[0] & _SZIP_CODINGS, parameters[1]
    return parameters

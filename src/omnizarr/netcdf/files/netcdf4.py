"""netCDF-4 and HDF5 files as datasets, through omnizarr's own reader: without HDF5, netCDF-C and their locks.

What external links, external storage and virtual datasets lead to is read too, where that is allowed. What is broken,
missing or of no known filter is left out, with a note.

Dimensions are those that netCDF-C finds: the dimension scales, and for datasets without them dimensions with made-up
names (``phony_dim_0``), one for each length in a group.

Spec: NetCDF-4 Format; HDF5 Dimension Scale Specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from omnizarr.readers.hdf5 import blocks, chunks, datasets, filters, groups, messages, naming
from omnizarr.readers.hdf5 import datatypes as hdf5_types
from omnizarr.readers.hdf5.attributes import Attribute as Stored
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.datatypes import Datatype
from omnizarr.readers.hdf5.file import File
from omnizarr.readers.hdf5.messages import Header
from omnizarr.readers.hdf5.outside import Files, Outside
from omnizarr.readers.hdf5.source import reason
from omnizarr.readers.hdf5.virtual import Unsupported
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.manifests.file import File as StoredFile
from omnizarr.stores.trust import Trust

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

_MOST_PLACES: Final = 1 << 17
"""The same of external links."""

_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_SZIP, _SZIP_CODINGS = 4, 4 | 32
_SHOWN_BY_NAME: Final = (_DEFLATE, _SHUFFLE, _FLETCHER32)


def opened(path: Path, allowed: Trust, *, whole: bool = False) -> Source:
    """Return a file as a dataset.

    Parameters
    ----------
    path : Path
    allowed : Trust
        Which other files it may lead to. What leads elsewhere is left out, with a note.
    whole : bool, optional
        Whether all values will be read. Then datasets whose index of chunks is broken are left out.

    Raises
    ------
    MetadataError
        If it is broken as a whole.
    """
    file = File(LocalStore(path.parent, read_only=True), path.name)
    return _Reading(Files(file, allowed=allowed), whole=whole).source()


def in_store(file: StoredFile, allowed: Trust, *, whole: bool = False) -> Source:
    """Return a file in any store as a dataset. Raises what `opened` raises."""
    opened_file = File(file.store, file.key, file)
    return _Reading(Files(opened_file, allowed=allowed), whole=whole).source()


class _Place:
    """A file whose objects are part of the dataset: the file itself, or one to which an external link leads.

    Parameters
    ----------
    files : Files
    top : Header
        The object to which the link leads.
    path : str
        Where it is in the dataset.
    """

    def __init__(self, files: Files, top: Header, path: str) -> None:
        self.files, self.file = files, files.file
        self.key = id(files.file.source.file)
        self.attributes = attributes.Reader(files.file.source, self.name_of)
        self._top, self._path = top.address, path

    def name_of(self, address: int) -> str:
        """Return the path of an object in the dataset, or with the file if the dataset does not have it; "" if none."""
        paths = self.file.paths()
        own, top = paths.get(address), paths.get(self._top, "")
        if own is None:
            return ""
        if own == top:
            return self._path or "/"
        below = own.removeprefix(f"{top}/") if top else own
        return f"{self._path}/{below}" if not top or below != own else f"{self.file.source.key}:/{own}"


@dataclass(slots=True)
class _Dimension:
    """A dimension, as netCDF-C numbers it."""

    number: int
    name: str
    length: int
    is_unlimited: bool
    place: _Place | None = None
    address: int | None = None
    """Of its scale, in the file of `place`."""


@dataclass(slots=True)
class _Variable:
    """A dataset, and the dimensions that are found for it."""

    name: str
    dataset: Dataset
    attributes: dict[str, Stored]
    scale: _Dimension | None
    place: _Place
    notes: list[Note]
    dimensions: list[tuple[str, _Dimension]] = field(default_factory=list)
    """Each with the path of its group."""


@dataclass(slots=True)
class _Group:
    """A group, with what is in it."""

    path: str
    header: Header
    place: _Place
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

    def __init__(self, files: Files, *, whole: bool) -> None:
        self._place = _Place(files, files.file.root, "")
        self._places = [self._place]
        self._fatal: MetadataError | None = None
        self._is_whole = whole
        self._numbered = self._unnamed = 0
        self._count = 0
        self._has_scales = False
        self._marks = 0
        self._types: list[tuple[Datatype, UserType]] = []
        self._lengths: dict[int, int] = {}
        self._values = values.Values()

    def source(self) -> Source:
        """Return the dataset."""
        root = self._place.file.root
        if not groups.is_group(root):
            raise self._place.file.source.broken(root.address, "the root of the file is not a group")
        found = self._group(root, "", self._place, None, frozenset())
        own = self._stored(self._place, root, found.notes)
        for place in self._places:
            place.attributes.is_netcdf = PROPERTIES in own or self._has_scales
        for group in _walk(found):
            self._match(group)
        for group in _walk(found):
            for variable in group.variables.values():
                shape = variable.dataset.shape
                for length, (_, dimension) in zip(shape, variable.dimensions, strict=True):
                    self._lengths[id(dimension)] = max(length, self._lengths.get(id(dimension), 0))
        header = self._header(found, own, self._special(own))
        return Source(header, self._values.read, self._values.array)

    # -- objects ---------------------------------------------------------------------------------

    def _group(
        self, header: Header, path: str, place: _Place, above: _Group | None, entered: frozenset[tuple[int, int]]
    ) -> _Group:
        group = _Group(path, header, place, above)
        below: list[tuple[str, Header, _Place]] = []
        entered_here = entered | {(place.key, header.address)}
        for link in place.file.links(header).values():
            self._count += 1
            if self._count > _MOST:
                raise self._odd("links lead to the same groups too often", path, f"over {_MOST} members")
            try:
                found = self._target(group, link)
                if found is None:
                    continue
                target, there = found
                if groups.is_group(target):
                    if (there.key, target.address) in entered_here:
                        why, known = "a link leads to a group above it, again and again", there.name_of(target.address)
                        raise self._odd(why, f"{path}/{link.name}", known)
                    there.file.links(target)  # which may be broken
                    below.append((link.name, target, there))
                elif datasets.is_dataset(target):
                    self._dataset(group, link.name, target, there)
                elif target.find(messages.DATATYPE) is not None:
                    self._named_type(group, link.name, target)
            except MetadataError as error:
                if error is self._fatal:
                    raise
                self._leave_out(group, link.name, f"it cannot be read: {reason(error)}")
        for name, target, there in below:
            group.groups[name] = self._group(target, f"{path}/{name}", there, group, entered_here)
        return group

    def _target(self, group: _Group, link: groups.Link) -> tuple[Header, _Place] | None:
        """Return what a link leads to, and the file of it; None, and a note, if that is nothing."""
        place = group.place
        try:
            found = None if link.kind == "other" else place.files.follow(group.header, link.name)
            if found is None:
                self._leave_out(group, link.name, self._why_nothing(place, link))
                return None
        except Outside as error:
            self._leave_out(group, link.name, self._outside("the external link", error))
            return None
        if found.files is place.files:
            return found.header, place
        if len(self._places) > _MOST_PLACES:
            raise self._odd("external links lead on too often", group.path, f"over {_MOST_PLACES} links")
        self._places.append(_Place(found.files, found.header, f"{group.path}/{link.name}"))
        return found.header, self._places[-1]

    @staticmethod
    def _why_nothing(place: _Place, link: groups.Link) -> str:
        if link.kind == "other":
            return "it is a link of an unknown kind"
        if link.kind != "external":
            return f"a link leads to {link.target or link.name}, where nothing is"
        if place.files.opened(link.file) is None:
            return f"an external link leads to {link.file}, which is missing"
        return f"an external link leads to {link.target} in {link.file}, which has no such"

    @staticmethod
    def _leave_out(group: _Group, name: str, why: str) -> None:
        group.notes.append(Note(f"/variables/{name}", f"left out: {why}"))

    @staticmethod
    def _outside(what: str, error: Outside) -> str:
        return f"{what} leads to {error.place}, out of the directory of the file; it is read only if you trust the file"

    def _odd(self, why: str, path: str, found: str) -> MetadataError:
        self._fatal = MetadataError(why, path=path.lstrip("/"), found=found)
        return self._fatal

    @staticmethod
    def _stored(place: _Place, header: Header, notes: list[Note]) -> dict[str, Stored]:
        """Return the attributes of an object, with notes on those that are broken."""
        found, broken = place.file.sound_attributes(header)
        for name, error in broken:
            notes.append(Note(f"/attributes/{name or '(some)'}", f"left out: it cannot be read: {reason(error)}"))
        return {each.name: each for each in found}

    def _named_type(self, group: _Group, name: str, header: Header) -> None:
        cursor = header.find(messages.DATATYPE)
        if cursor is None:
            return
        datatype = hdf5_types.datatype(cursor)
        found = usertypes.of(datatype, name)
        if found is not None:
            group.types[name] = datatype, found
            self._types.append((datatype, found))

    def _dataset(self, group: _Group, name: str, header: Header, place: _Place) -> None:
        plain = name.removeprefix(naming.NON_COORDINATE)
        dataset, notes = place.file.dataset(header), list[Note]()
        found = self._stored(place, header, notes)
        self._marks += len(_MARKS_OF_NETCDF & found.keys())
        if dataset.dataspace.shape is None:
            self._leave_out(group, name, "a dataset without a shape (h5py.Empty), which netCDF does not have")
            return
        try:
            dataset, why = self._elsewhere(dataset, place, notes)
        except Outside as error:
            what = "the external storage" if dataset.is_external else "the virtual dataset"
            self._leave_out(group, name, self._outside(what, error))
            return
        scale = None
        if _is_scale(found):
            self._has_scales = True
            scale = self._scale(dataset, found, plain, place)
            group.dimensions.append(scale)
            if self._text(place, found.get("NAME")).startswith(naming.NO_VARIABLE):
                return
        if plain == name and plain in group.variables:
            return
        why = why or self._why_unread(dataset)
        if why:
            self._leave_out(group, name, why)
            return
        group.variables[plain] = _Variable(plain, dataset, found, scale, place, notes)

    def _elsewhere(self, dataset: Dataset, place: _Place, notes: list[Note]) -> tuple[Dataset, str]:
        """Return a dataset in the shape that others give it, with notes on what is missing, or why it cannot be read.

        Raises Outside.
        """
        if not dataset.is_external and dataset.layout.storage != "virtual":
            return dataset, ""
        try:
            shape = blocks.shape_of(dataset, place.files)
            for file, path in blocks.missing(dataset, place.files):
                where = f"the file {file}, which is missing"
                if place.files.opened(file) is not None:
                    where = f"{path} of the file {file}, which has no such"
                notes.append(Note("/values", f"left out: they are in {where}; read as fill values"))
        except Unsupported as error:
            return dataset, str(error)
        except MetadataError as error:
            return dataset, f"it cannot be read: {reason(error)}"
        return replace(dataset, dataspace=replace(dataset.dataspace, shape=shape)), ""

    def _why_unread(self, dataset: Dataset) -> str:
        """Return why the values of a dataset cannot be read; "" if they can, as far as that can be seen."""
        if dataset.layout.storage != "chunked":
            return ""
        why = filters.why_not(dataset.filters, dataset.datatype.size)
        if self._is_whole and not why:
            memo = dataset.header.source.memo
            try:
                memo["chunks", dataset.header.address] = chunks.read(dataset)
            except MetadataError as error:
                why = f"it cannot be read: {reason(error)}"
        return why

    def _scale(self, dataset: Dataset, found: Mapping[str, Stored], name: str, place: _Place) -> _Dimension:
        number = self._integers(place, found.get("_Netcdf4Dimid")) if place is self._place else []
        at = number[0] if number else self._numbered
        self._numbered = max(self._numbered, at + 1)
        length, most = (*dataset.shape, 1)[0], (*dataset.dataspace.most, 1)[0]
        return _Dimension(at, name, length, most is None or not length, place, dataset.header.address)

    @staticmethod
    def _text(place: _Place, stored: Stored | None) -> str:
        found = None if stored is None or not attributes.is_text(stored.datatype) else place.attributes.read(stored)
        return "" if found is None else str(found.python)

    @staticmethod
    def _integers(place: _Place, stored: Stored | None) -> list[int]:
        found = None if stored is None else place.attributes.read(stored)
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
        """Return the dimensions of which netCDF-C has noted the numbers: those of another file are none here."""
        if variable.place is not self._place:
            return None
        numbers = self._integers(variable.place, variable.attributes.get("_Netcdf4Coordinates"))
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
        addresses = variable.place.attributes.addresses(listed)
        if not addresses or addresses[0] is None:
            return None
        known = {
            each.address: (one.path, each)
            for one in reversed([*group.upwards()])
            for each in one.dimensions
            if each.place is not None and each.place.key == variable.place.key
        }
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

    def _header(self, group: _Group, own: Mapping[str, Stored], special: Mapping[str, Attribute]) -> GroupHeader:
        notes = list(group.notes)
        found = self._read_attributes(group.place, own, notes)
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
        below = {}
        for name, one in group.groups.items():
            below[name] = self._header(one, self._stored(one.place, one.header, one.notes), {})
        return GroupHeader(
            name=group.path.rpartition("/")[2],
            dimensions=dimensions,
            types={name: each for name, (_, each) in group.types.items()},
            variables=variables,
            attributes=found,
            special=special,
            groups=below,
            notes=tuple(notes),
        )

    def _variable(self, group: _Group, variable: _Variable) -> VariableHeader | Note:
        dataset, name = variable.dataset, variable.name
        nc_type = self._type_of(dataset.datatype, name)
        if nc_type is None:
            return Note(f"/variables/{name}", "left out: netCDF has no such type, or no such dimensions")
        notes, place = list(variable.notes), variable.place
        found = self._read_attributes(place, variable.attributes, notes)
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
        self._values.add(f"{group.path}/{name}", dataset, nc_type, shape, fill, place.files, place.name_of)
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

    @staticmethod
    def _read_attributes(place: _Place, stored: Mapping[str, Stored], notes: list[Note]) -> dict[str, Attribute]:
        """Return the attributes of a variable or group, with notes on those of types that netCDF does not have."""
        found = {}
        is_scale = _is_scale(stored)
        for name, each in stored.items():
            if name == PROPERTIES and not _is_one_text(each):
                notes.append(Note(f"/attributes/{name}", "left out: it is not one text"))
            if name in _HIDDEN or (name in _OF_SCALES and is_scale):
                continue
            attribute = place.attributes.read(each)
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
            special[PROPERTIES] = self._text(self._place, properties).rstrip("\0")
        special["_SuperblockVersion"] = np.array([self._place.file.source.version], "i4")
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

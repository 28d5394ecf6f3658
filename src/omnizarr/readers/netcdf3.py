"""netCDF-3 files: CDF-1 (classic), CDF-2 (64-bit offset) and CDF-5 (64-bit data).

The header becomes documents of Zarr v3 with the marks of NCZarr, so that names, lengths and unlimited dimensions, and
the types of attributes, are those of the file. The data stay where they are: an array is divided into chunks of a few
megabytes, and the records of several variables, which take turns in the file, are read from between the others.

Numbers of the header are checked against the size of the file before anything is made of them. If the file is too short
for its data, reading them is an error.

Spec: NetCDF Classic Format, "The Format in Detail".
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from omnizarr.errors import MetadataError, StoreError
from omnizarr.readers.documents import array_document, bytes_codec
from omnizarr.stores.base import is_key
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import Strided, strided
from omnizarr.stores.manifests.opening import Contents

T = TypeVar("T")

_SPEC: Final = "NetCDF Classic Format"
_FIRST: Final = 1 << 16  # bytes that are read first, which hold most headers
_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_LEAST: Final = 8  # bytes of any dimension, variable or attribute
_CHAR: Final = 2
_TYPES: Final = {
    1: ("int8", ">i1"),
    _CHAR: ("char", "S1"),
    3: ("int16", ">i2"),
    4: ("int32", ">i4"),
    5: ("float32", ">f4"),
    6: ("float64", ">f8"),
    7: ("uint8", ">u1"),
    8: ("uint16", ">u2"),
    9: ("uint32", ">u4"),
    10: ("int64", ">i8"),
    11: ("uint64", ">u8"),
}
"""Names in NCZarr, and of NumPy."""


class Attribute(NamedTuple):
    """An attribute."""

    type: str
    value: Any
    """Text with all its NULs, or an array of NumPy."""

    @property
    def json(self) -> Any:
        """The value in JSON: one number by itself, several as a list."""
        if isinstance(self.value, str):
            return self.value.rstrip("\0")
        items = self.value.tolist()
        return items[0] if len(items) == 1 else items


class Dimension(NamedTuple):
    """A dimension."""

    name: str
    size: int
    is_unlimited: bool


class Variable(NamedTuple):
    """A variable, and where its data begin."""

    name: str
    dimensions: tuple[int, ...]
    attributes: Mapping[str, Attribute]
    type: int
    begin: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of stored elements."""
        return np.dtype(_TYPES[self.type][1])

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize


class Header(NamedTuple):
    """The header of a file."""

    version: int
    records: int
    dimensions: tuple[Dimension, ...]
    attributes: Mapping[str, Attribute]
    variables: tuple[Variable, ...]

    def shape_of(self, variable: Variable) -> tuple[int, ...]:
        """Return the shape of a variable: its first dimension may be that of records."""
        return tuple(self.dimensions[number].size for number in variable.dimensions)

    def has_records(self, variable: Variable) -> bool:
        """Return whether a variable has a part in each record."""
        return bool(variable.dimensions) and self.dimensions[variable.dimensions[0]].is_unlimited

    @property
    def record_bytes(self) -> int:
        """Bytes from one record to the next."""
        found = [self._bytes_per_record(each) for each in self.variables if self.has_records(each)]
        # The only variable with records has no padding.
        return found[0] if len(found) == 1 else sum(-(-size // 4) * 4 for size in found)

    def _bytes_per_record(self, variable: Variable) -> int:
        return math.prod(self.shape_of(variable)[1:]) * variable.itemsize


def is_netcdf3(head: bytes) -> bool:
    """Return whether a file that begins so is a netCDF-3 file."""
    return head[:3] == b"CDF" and head[3:4] in (b"\1", b"\2", b"\5")


def read(file: File) -> Contents | None:
    """Return what is in a file; None if it is no netCDF-3 file.

    Raises
    ------
    MetadataError
        If the header is broken.
    """
    header = read_header(file)
    if header is None:
        return None
    documents: dict[str, bytes] = {"zarr.json": _group(header)}
    manifests: dict[str, Strided] = {}
    for variable in header.variables:
        chunks, manifests[variable.name] = _placed(header, variable, file)
        documents[f"{variable.name}/zarr.json"] = _array(header, variable, chunks)
    return Contents(documents, manifests, format="netCDF-3")


def read_header(file: File) -> Header | None:
    """Return the header of a file; None if it is no netCDF-3 file. Raises MetadataError if it is broken."""
    parser = _Parser(file)
    return parser.header() if is_netcdf3(parser.head) else None


# -- documents ----------------------------------------------------------------------


def _group(header: Header) -> bytes:
    names = {
        variable.name: {
            "dimension_references": [f"/{header.dimensions[number].name}" for number in variable.dimensions],
            "attribute_types": {name: each.type for name, each in variable.attributes.items()},
        }
        for variable in header.variables
    }
    dimensions = [
        {"name": each.name, "size": each.size, "unlimited": int(each.is_unlimited)} for each in header.dimensions
    ]
    marks = {
        "_nczarr_group": {"dimensions": dimensions, "arrays": [*names], "subgroups": []},
        "_nczarr_superblock": {"version": "3.0.0", "format": 3},
    }
    types = {name: each.type for name, each in header.attributes.items()}
    types |= dict.fromkeys((*marks, "_nczarr_attrs"), "json")
    listed = [{"name": name, "configuration": {"type": each}} for name, each in types.items()]
    attributes = {
        **{name: each.json for name, each in header.attributes.items()},
        **marks,
        "_nczarr_attrs": {"attribute_types": listed},
        "_nczarr_arrays": names,
    }
    return _document({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def _array(header: Header, variable: Variable, chunks: tuple[int, ...]) -> bytes:
    data_type: Any = _TYPES[variable.type][0]
    if variable.type == _CHAR:
        data_type = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 1}}
    attributes = {name: each.json for name, each in variable.attributes.items()}
    names = [header.dimensions[number].name for number in variable.dimensions]
    codecs = [bytes_codec("big", variable.itemsize)]
    shape, fill = header.shape_of(variable), _fill_value(variable)
    return _document(array_document(shape, data_type, chunks, fill, codecs, attributes, names))


def _fill_value(variable: Variable) -> Any:
    given = variable.attributes.get("_FillValue")
    if variable.type == _CHAR:
        return ""
    kind, dtype = _TYPES[variable.type]
    if given is None or given.type != kind or len(given.value) != 1:
        return 0
    value = given.value.astype(np.dtype(dtype).newbyteorder("="))[0]
    if math.isfinite(value):
        return value.item()
    if math.isnan(value):
        bits = int.from_bytes(given.value.tobytes(), "big")
        return "NaN" if bits in {0x7FC00000, 0x7FF8000000000000} else f"0x{given.value.tobytes().hex()}"
    return "Infinity" if value > 0 else "-Infinity"


def _document(members: Mapping[str, Any]) -> bytes:
    return json.dumps(members).encode()


def _placed(header: Header, variable: Variable, file: File) -> tuple[tuple[int, ...], Strided]:
    """Return the chunk shape of a variable, and where its chunks lie."""
    stride = header.record_bytes if header.has_records(variable) else None
    try:
        return strided(header.shape_of(variable), variable.itemsize, variable.begin, stride)
    except StoreError as error:
        raise MetadataError(
            "a variable has more elements than any file",
            store=file.path,
            path=variable.name,
            found=header.shape_of(variable),
            spec=_SPEC,
        ) from error


# -- the header ----------------------------------------------------------------------


class _Parser:
    """A place in the header, which is read as far as it is needed."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._at = 0
        self._data = memoryview(file.head(_FIRST))
        self._size = file.size or 0
        self.head = bytes(self._data[:4])
        version = self.head[3] if len(self.head) == 4 else 0
        self._wide = 8 if version == 5 else 4  # bytes of a count
        self._offset = 4 if version == 1 else 8
        self._types = range(1, 12 if version == 5 else 7)

    def header(self) -> Header:
        self._at = 4
        records = self._number(self._wide)
        dimensions = self._list(_DIMENSION, self._dimension)
        attributes = self._attributes()
        variables = tuple(self._list(_VARIABLE, lambda: self._variable(len(dimensions))))
        self._check_names("dimension", (name for name, _ in dimensions))
        self._check_names("variable", (each.name for each in variables))
        for variable in variables:
            for number in variable.dimensions[1:]:
                if not dimensions[number][1]:
                    raise self._broken(f"the variable {variable.name!r} has records, but not as its first dimension")
        sizes = tuple(Dimension(name, size, not size) for name, size in dimensions)
        found = Header(self.head[3], 0, sizes, attributes, variables)
        if records == (1 << 8 * self._wide) - 1:  # as many as there are
            records = self._records_in_file(found)
        with_records = tuple(each._replace(size=records) if each.is_unlimited else each for each in sizes)
        return found._replace(records=records, dimensions=with_records)

    def _records_in_file(self, header: Header) -> int:
        begins = [each.begin for each in header.variables if header.has_records(each)]
        length = header.record_bytes
        return max(0, self._size - min(begins)) // length if begins and length else 0

    def _grow(self, stop: int) -> None:
        """Read the file up to byte `stop`, or to its end."""
        have, stop = len(self._data), min(stop, self._size)
        if stop > have:
            (part,) = self._file.read([(have, stop)])
            self._data = memoryview(b"".join((self._data, part)))

    def _take(self, size: int) -> memoryview:
        stop = self._at + size
        if stop > len(self._data):
            self._grow(max(stop, 2 * len(self._data)))
            if stop > len(self._data):
                raise self._broken("the header is cut off")
        part = self._data[self._at : stop]
        self._at = stop
        return part

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    @property
    def _left(self) -> int:
        return self._size - self._at

    def _values(self, count: int, size: int) -> memoryview:
        """Return the bytes of `count` values of `size` bytes, which are padded to whole words."""
        if -(-count * size // 4) * 4 > self._left:
            raise self._broken(f"the header counts {count} values, which are not there")
        return self._take(-(-count * size // 4) * 4)[: count * size]

    def _list(self, tag: int, one: Callable[[], T]) -> list[T]:
        found, count = self._number(4), self._number(self._wide)
        if found != tag and (found or count):
            raise self._broken(f"the header has the tag {found}, not {tag}")
        if count * _LEAST > self._left:
            raise self._broken(f"the header counts {count} parts, which are not there")
        return [one() for _ in range(count)]

    def _name(self) -> str:
        # netCDF-C takes what is before the first NUL: old versions of it wrote NULs after names.
        return bytes(self._values(self._number(self._wide), 1)).split(b"\0")[0].decode("utf-8", "surrogateescape")

    def _dimension(self) -> tuple[str, int]:
        return self._name(), self._number(self._wide)

    def _attributes(self) -> dict[str, Attribute]:
        return dict(self._list(_ATTRIBUTE, self._attribute))

    def _attribute(self) -> tuple[str, Attribute]:
        name = self._name()
        kind, dtype = _TYPES[self._type()]
        count = self._number(self._wide)
        data = self._values(count, np.dtype(dtype).itemsize)
        if kind == "char":
            return name, Attribute(kind, bytes(data).decode("utf-8", "surrogateescape"))
        return name, Attribute(kind, np.frombuffer(data, dtype))

    def _variable(self, dimensions: int) -> Variable:
        name = self._name()
        count = self._number(self._wide)
        if count * self._wide > self._left:
            raise self._broken(f"a variable has {count} dimensions, which are not there")
        numbers = tuple(self._number(self._wide) for _ in range(count))
        for number in numbers:
            if number >= dimensions:
                raise self._broken(f"a variable has dimension {number}, of {dimensions}")
        attributes = self._attributes()
        kind = self._type()
        self._number(self._wide)  # its size, which is wrong for large variables
        return Variable(name, numbers, attributes, kind, self._number(self._offset))

    def _type(self) -> int:
        found = self._number(4)
        if found not in self._types:
            raise self._broken(f"the header has the type {found}, which does not exist")
        return found

    def _check_names(self, what: str, names: Iterator[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise self._broken(f"there are two {what}s {name!r}")
            if not is_key(name) or "/" in name:
                raise self._broken(f"a {what} has the name {name!r}, which no node can have")
            seen.add(name)

    def _broken(self, why: str) -> MetadataError:
        return MetadataError(why, store=self._file.path, found=f"at byte {self._at}", spec=_SPEC)

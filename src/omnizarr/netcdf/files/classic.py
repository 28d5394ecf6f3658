"""Whether the header of a netCDF-3 file holds what it says: netCDF-C crashes or never ends on some that do not.

Spec: NetCDF Classic Format, "The Format in Detail".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from omnizarr.errors import MetadataError

_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}
_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_LEAST: Final = 8  # bytes of any dimension, variable or attribute


def check(path: Path) -> None:
    """Raise MetadataError if a header counts more than the file has, or means types or dimensions that do not exist."""
    with path.open("rb") as file:
        _Header(file, path.stat().st_size, str(path)).check()


class _Header:
    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self._file = file
        self._size = size
        self._name = name
        version = file.read(4)[3]
        self._wide = 8 if version == 5 else 4  # bytes of a count
        self._offset = 4 if version == 1 else 8
        self._types = range(1, 12 if version == 5 else 7)
        self._dimensions = 0

    def check(self) -> None:
        self._number(self._wide)  # of records; all ones mean: as many as there are
        self._dimensions = self._list(_DIMENSION, self._dimension)
        self._list(_ATTRIBUTE, self._attribute)
        self._list(_VARIABLE, self._variable)

    def _number(self, size: int) -> int:
        raw = self._file.read(size)
        if len(raw) < size:
            raise self._broken("the header is cut off")
        return int.from_bytes(raw, "big")

    def _skip(self, count: int, size: int) -> None:
        """Skip `count` values of `size` bytes, padded to whole words."""
        nbytes = -(-count * size // 4) * 4
        if nbytes > self._size - self._file.tell():
            raise self._broken(f"the header counts {count} values, which are not there")
        self._file.seek(nbytes, 1)

    def _list(self, tag: int, one: Callable[[], None]) -> int:
        found, count = self._number(4), self._number(self._wide)
        if found != tag and (found or count):
            raise self._broken(f"the header has the tag {found}, not {tag}")
        if count * _LEAST > self._size - self._file.tell():
            raise self._broken(f"the header counts {count} parts, which are not there")
        for _ in range(count):
            one()
        return count

    def _dimension(self) -> None:
        self._skip(self._number(self._wide), 1)
        self._number(self._wide)

    def _attribute(self) -> None:
        self._skip(self._number(self._wide), 1)
        size = _SIZES[self._type()]
        self._skip(self._number(self._wide), size)

    def _variable(self) -> None:
        self._skip(self._number(self._wide), 1)
        count = self._number(self._wide)
        if count * self._wide > self._size - self._file.tell():
            raise self._broken(f"a variable has {count} dimensions, which are not there")
        for _ in range(count):
            number = self._number(self._wide)
            if number >= self._dimensions:
                raise self._broken(f"a variable has dimension {number}, of {self._dimensions}")
        self._list(_ATTRIBUTE, self._attribute)
        self._type()
        self._number(self._wide)
        self._number(self._offset)

    def _type(self) -> int:
        found = self._number(4)
        if found not in self._types:
            raise self._broken(f"the header has the type {found}, which does not exist")
        return found

    def _broken(self, why: str) -> MetadataError:
        return MetadataError(why, store=self._name, found=f"at byte {self._file.tell()}", spec="NetCDF Classic Format")

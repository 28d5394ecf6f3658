"""Dimensions: named lengths that variables share.

Spec: NCZarr, "The NCZarr Data Model".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnizarr.netcdf.header import DimensionHeader

if TYPE_CHECKING:
    from omnizarr.netcdf.group import Group


class Dimension:
    """A named length, created by `Group.createDimension`.

    Examples
    --------
    >>> from omnizarr import netcdf
    >>> with netcdf.Dataset({}, "w") as ds:
    ...     time = ds.createDimension("time", None)
    ...     time.isunlimited(), len(time)
    (True, 0)
    """

    __slots__ = ("__weakref__", "_group", "_name", "_size", "stored", "unlimited")

    stored: int
    """The stored length. It is less than `size` while records are pending."""
    unlimited: bool
    """The same as `isunlimited`."""

    def __init__(self, group: Group, header: DimensionHeader) -> None:
        self._group = group
        self._name = header.name
        self._size = self.stored = header.size
        self.unlimited = header.unlimited

    @property
    def name(self) -> str:
        """Name within the group. Assigning to it renames the dimension."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._group.renameDimension(self._name, name)

    @property
    def size(self) -> int:
        """Length; for an unlimited dimension, its current length."""
        return self._size

    @property
    def path(self) -> str:
        """Full name, such as ``/model/level``."""
        return f"{self._group.full_name}/{self._name}"

    @property
    def header(self) -> DimensionHeader:
        """The dimension as a value."""
        return DimensionHeader(self._name, self._size, self.unlimited)

    def group(self) -> Group:
        """Return the group that defines the dimension."""
        return self._group

    def adopt(self, size: int) -> None:
        """Use the stored length."""
        self.stored = size
        self._size = max(self._size, size)

    def isunlimited(self) -> bool:
        """Return whether variables can grow along the dimension."""
        return self.unlimited

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        kind = " (unlimited)" if self.unlimited else ""
        return f"<class 'omnizarr.netcdf.Dimension'>{kind}: name = {self._name!r}, size = {self._size}"

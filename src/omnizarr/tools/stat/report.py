"""Statistics of a hierarchy, as plain values and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnizarr.tools.streaming.plain import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Statistics of the elements of an array, or of one field.

    Attributes
    ----------
    field : tuple of str
        Name of the field, and of a nested field: ``("position", "x")``; empty without fields.
    count : int
        Number of counted elements: neither NaN nor NaT, nor excluded fill values.
    minimum, maximum : object
        Values of the array's data type; for text, the first and last in the order of code points. None without
        elements, and for complex numbers, raw bytes and objects.
    mean : object
        A float; for integers, the float nearest to the exact mean. Complex for complex numbers; a time for
        times, rounded to their unit. None for text, raw bytes and objects.
    std : object
        Standard deviation, as in `numpy.std`: a float; for times, a `numpy.timedelta64`, rounded to their unit.
    nan : int
        Number of elements that are NaN or NaT, or missing (of the data type ``optional``).
    fill : int, optional
        Number of elements that equal the fill value; None if that is undefined.
    """

    field: tuple[str, ...] = ()
    count: int = 0
    minimum: Any = None
    maximum: Any = None
    mean: Any = None
    std: Any = None
    nan: int = 0
    fill: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON values."""
        numbers = {name: plain(getattr(self, name)) for name in ("minimum", "maximum", "mean", "std")}
        return {"field": list(self.field), "count": self.count, **numbers, "nan": self.nan, "fill": self.fill}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayStat:
    """Statistics of an array.

    Attributes
    ----------
    path : str
        Path of the array, without a leading slash.
    shape : tuple of int
    data_type : str
    size : int
        Number of elements.
    chunks : int
        Number of possible chunks (shards).
    missing : int, optional
        Number of chunks (shards) that are not stored and read as the fill value; None if the store cannot be listed.
    fields : tuple of Statistics
        One; for a structure, one for each field.
    """

    path: str
    shape: tuple[int, ...]
    data_type: str
    size: int
    chunks: int
    missing: int | None
    fields: tuple[Statistics, ...]

    @property
    def minimum(self) -> Any:
        """The smallest element of the first field.

        `maximum`, `mean`, `std`, `nan`, `fill` and `count` also are of that field.
        """
        return self.fields[0].minimum

    @property
    def maximum(self) -> Any:
        """The largest element."""
        return self.fields[0].maximum

    @property
    def mean(self) -> Any:
        """The mean of the elements."""
        return self.fields[0].mean

    @property
    def std(self) -> Any:
        """The standard deviation of the elements."""
        return self.fields[0].std

    @property
    def nan(self) -> int:
        """Number of elements that are NaN or NaT."""
        return self.fields[0].nan

    @property
    def fill(self) -> int | None:
        """Number of elements that equal the fill value."""
        return self.fields[0].fill

    @property
    def count(self) -> int:
        """Number of counted elements."""
        return self.fields[0].count

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return {
            "path": f"/{self.path}",
            "shape": list(self.shape),
            "data_type": self.data_type,
            "size": self.size,
            "chunks": self.chunks,
            "missing": self.missing,
            "fields": [each.to_dict() for each in self.fields],
        }


@dataclass(frozen=True, slots=True)
class Stat:
    """Statistics of all arrays of a hierarchy: a sequence of `ArrayStat`.

    Attributes
    ----------
    arrays : tuple of ArrayStat
    problems : tuple of (str, str)
        Paths of arrays that cannot be read, with the reason.
    """

    arrays: tuple[ArrayStat, ...]
    problems: tuple[tuple[str, str], ...] = ()

    def __iter__(self) -> Iterator[ArrayStat]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, key: int | str) -> ArrayStat:
        """Return the statistics of an array, by number or path. Raises IndexError, KeyError."""
        if isinstance(key, int):
            return self.arrays[key]
        for each in self.arrays:
            if each.path == key.strip("/"):
                return each
        raise KeyError(key)

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return {
            "arrays": [each.to_dict() for each in self.arrays],
            "problems": [{"path": f"/{path}", "reason": why} for path, why in self.problems],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return them as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

"""Grids of GRIB messages: their shapes, and the latitudes and longitudes of those that have rows of equal latitude.

Spec: WMO, Manual on Codes, templates 3.0 to 3.140 of edition 2, and the grid description section of edition 1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_LATLON, _ROTATED, _MERCATOR, _POLAR, _LAMBERT, _GAUSSIAN = 0, 1, 10, 20, 30, 40
_ROWS: Final = frozenset({0, 1, 2, 3, 10, 20, 30, 31, 40, 41, 42, 43, 90, 110, 140, 204})
_NAMES: Final = {
    0: "regular_ll", 1: "rotated_ll", 10: "mercator", 20: "polar_stereographic", 30: "lambert", 40: "regular_gg",
    90: "space_view", 101: "unstructured_grid", 110: "equatorial_azimuthal_equidistant", 140: "lambert_azimuthal",
}  # fmt: skip
_OF_EDITION1: Final = {0: 0, 1: 10, 3: 30, 4: 40, 5: 20, 10: 1, 14: 41, 90: 90}
_MISSING: Final = 0xFFFFFFFF
_MISSING1: Final = 0xFFFF
_MOST_POINTS: Final = 1 << 30
_MOST_LINES: Final = 1 << 20
_MOST_PARALLELS: Final = 4096
_DEGREES: Final = 1e-6


@dataclass(frozen=True)
class Grid:
    """A grid.

    Attributes
    ----------
    raw : bytes
        Its description in the file.
    kind : str
    shape : tuple of int
        Rows and columns, or the number of points.
    scan : int
        The flags of scanning.
    latitudes, longitudes : array or None
        Of rows and columns.
    attributes : dict
    """

    raw: bytes
    kind: str
    shape: tuple[int, ...]
    scan: int
    latitudes: NDArray[np.float64] | None = field(default=None, compare=False)
    longitudes: NDArray[np.float64] | None = field(default=None, compare=False)
    attributes: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its dimensions."""
        if len(self.shape) == 1:
            return ("values",)
        return ("y", "x") if self.latitudes is None else ("latitude", "longitude")

    def configuration(self) -> dict[str, Any]:
        """Return what the codec must know of it."""
        found: dict[str, Any] = {}
        if len(self.shape) == 2 and self.scan & 0x30:
            is_columns = bool(self.scan & 0x20)
            found["width"] = self.shape[0] if is_columns else self.shape[1]
            if is_columns:
                found["order"] = "columns"
            if self.scan & 0x10:
                found["is_alternating"] = True
        return found


def grid_of_edition2(raw: bytes) -> Grid:
    """Return the grid of a section 3. Raises ValueError, IndexError or struct.error."""
    (points,) = struct.unpack_from(">I", raw, 6)
    template = int.from_bytes(raw[12:14], "big")
    kind = _NAMES.get(template, f"grid_{template}")
    if template not in _ROWS:
        return _checked(Grid(raw, kind, (points,), 0, attributes={"GRIB_gridType": kind}), points)
    columns, rows = struct.unpack_from(">II", raw, 30)
    if template in (_GAUSSIAN, _LATLON) and (columns == _MISSING or raw[10]):
        kind = "reduced_gg" if template == _GAUSSIAN else "reduced_ll"
        return _checked(Grid(raw, kind, (points,), 0, attributes={"GRIB_gridType": kind}), points)
    attributes: dict[str, Any] = {"GRIB_gridType": kind, "GRIB_shapeOfTheEarth": raw[14]}
    if template in (0, 1, 2, 3, 40, 41, 42, 43):
        basic, parts = struct.unpack_from(">II", raw, 38)
        unit = basic / parts if basic not in (0, _MISSING) and parts not in (0, _MISSING) else _DEGREES
        first = _signed4(raw, 46) * unit, _signed4(raw, 50) * unit
        last = _signed4(raw, 55) * unit, _signed4(raw, 59) * unit
        parallels, scan = struct.unpack_from(">I", raw, 67)[0], raw[71]
        if template in (1, 41):
            attributes |= {
                "GRIB_latitudeOfSouthernPole": _signed4(raw, 72) * _DEGREES,
                "GRIB_longitudeOfSouthernPole": _signed4(raw, 76) * _DEGREES,
                "GRIB_angleOfRotation": struct.unpack_from(">f", raw, 80)[0],
            }
        return _regular(
            Grid(raw, kind, (rows, columns), scan, attributes=attributes), template, first, last, parallels, points
        )
    place = {10: 59, 20: 64, 30: 64, 31: 64, 90: 63, 110: 58, 140: 63}.get(template)
    flags = raw[place] if place is not None else 0
    attributes |= {
        "GRIB_latitudeOfFirstGridPoint": _signed4(raw, 38) * _DEGREES,
        "GRIB_longitudeOfFirstGridPoint": _signed4(raw, 42) * _DEGREES,
    }
    if template in (20, 30):
        attributes |= {
            "GRIB_LaD": _signed4(raw, 47) * _DEGREES, "GRIB_LoV": _signed4(raw, 51) * _DEGREES,
            "GRIB_Dx": struct.unpack_from(">I", raw, 55)[0] / 1000,
            "GRIB_Dy": struct.unpack_from(">I", raw, 59)[0] / 1000,
        }  # fmt: skip
        if template == _LAMBERT:
            attributes |= {"GRIB_Latin1": _signed4(raw, 65) * _DEGREES, "GRIB_Latin2": _signed4(raw, 69) * _DEGREES}
    elif template == _MERCATOR:
        attributes |= {
            "GRIB_LaD": _signed4(raw, 47) * _DEGREES, "GRIB_latitudeOfLastGridPoint": _signed4(raw, 51) * _DEGREES,
            "GRIB_longitudeOfLastGridPoint": _signed4(raw, 55) * _DEGREES,
            "GRIB_Di": struct.unpack_from(">I", raw, 64)[0] / 1000,
            "GRIB_Dj": struct.unpack_from(">I", raw, 68)[0] / 1000,
        }  # fmt: skip
    return _checked(Grid(raw, kind, (rows, columns), flags, attributes=attributes), points)


def grid_of_edition1(raw: bytes) -> Grid:
    """Return the grid of a grid description section. Raises ValueError, IndexError or struct.error."""
    template = _OF_EDITION1.get(raw[5])
    if template is None:
        raise ValueError(f"a grid with the number {raw[5]}, which is not supported")
    kind = _NAMES.get(template, f"grid_{template}")
    columns, rows = struct.unpack_from(">HH", raw, 6)
    if _MISSING1 in (columns, rows):
        return _reduced1(raw, rows if columns == _MISSING1 else columns, kind)
    attributes: dict[str, Any] = {"GRIB_gridType": kind}
    first = _signed3(raw, 10) / 1000, _signed3(raw, 13) / 1000
    scan = raw[27]
    grid = Grid(raw, kind, (rows, columns), scan, attributes=attributes)
    if template in (_LATLON, _ROTATED, _GAUSSIAN, 41):
        last = _signed3(raw, 17) / 1000, _signed3(raw, 20) / 1000
        if template in (_ROTATED, 41):
            attributes |= {
                "GRIB_latitudeOfSouthernPole": _signed3(raw, 32) / 1000,
                "GRIB_longitudeOfSouthernPole": _signed3(raw, 35) / 1000,
            }
        return _regular(grid, template, first, last, int.from_bytes(raw[25:27], "big"), rows * columns)
    attributes |= {"GRIB_latitudeOfFirstGridPoint": first[0], "GRIB_longitudeOfFirstGridPoint": first[1]}
    if template in (_POLAR, _LAMBERT):
        attributes |= {
            "GRIB_LoV": _signed3(raw, 17) / 1000, "GRIB_Dx": int.from_bytes(raw[20:23], "big"),
            "GRIB_Dy": int.from_bytes(raw[23:26], "big"),
        }  # fmt: skip
        if template == _LAMBERT:
            attributes |= {"GRIB_Latin1": _signed3(raw, 28) / 1000, "GRIB_Latin2": _signed3(raw, 31) / 1000}
    return _checked(grid, rows * columns)


def _reduced1(raw: bytes, lines: int, kind: str) -> Grid:
    """Return a grid whose rows have different lengths, which are listed."""
    at = raw[4] - 1 + 4 * raw[3]
    lengths = struct.unpack_from(f">{lines}H", raw, at) if raw[4] != 255 else ()
    kind = kind.replace("regular", "reduced")
    points = sum(lengths)
    return _checked(Grid(raw, kind, (points,), 0, attributes={"GRIB_gridType": kind}), points)


def _checked(grid: Grid, points: int) -> Grid:
    """Return a grid. Raises ValueError if its shape is impossible."""
    found = 1
    for length in grid.shape:
        found *= length
    if not 0 < found <= _MOST_POINTS or found != points:
        raise ValueError(f"a grid of {' by '.join(map(str, grid.shape))} points, of which there are {points}")
    return grid


def _signed4(raw: bytes, at: int) -> int:
    return _sign(raw[at : at + 4])


def _signed3(raw: bytes, at: int) -> int:
    return _sign(raw[at : at + 3])


def _sign(raw: bytes) -> int:
    top = 1 << (8 * len(raw) - 1)
    found = int.from_bytes(raw, "big")
    return -(found - top) if found & top else found


def _regular(
    grid: Grid, template: int, first: tuple[float, float], last: tuple[float, float], parallels: int, points: int
) -> Grid:  # fmt: skip
    """Return a grid of rows with equal latitude, with its coordinates."""
    grid = _checked(grid, points)
    rows, columns = grid.shape
    attributes = grid.attributes | {
        "GRIB_latitudeOfFirstGridPoint": first[0], "GRIB_longitudeOfFirstGridPoint": first[1],
        "GRIB_latitudeOfLastGridPoint": last[0], "GRIB_longitudeOfLastGridPoint": last[1],
    }  # fmt: skip
    if template not in (_LATLON, _GAUSSIAN) or max(rows, columns) > _MOST_LINES:
        return Grid(grid.raw, grid.kind, grid.shape, grid.scan, attributes=attributes)
    west, east = first[1], last[1]
    if not grid.scan & 0x80 and east < west:
        east += 360.0
    elif grid.scan & 0x80 and east > west:
        west += 360.0
    longitudes = np.linspace(west, east, columns)
    latitudes = np.linspace(first[0], last[0], rows)
    if template == _GAUSSIAN:
        found = _gaussian(parallels, rows, first[0], last[0])
        if found is None:
            return Grid(grid.raw, grid.kind, grid.shape, grid.scan, attributes=attributes)
        latitudes = found
        attributes["GRIB_N"] = parallels
    return Grid(grid.raw, grid.kind, grid.shape, grid.scan, latitudes, longitudes, attributes)


def _gaussian(parallels: int, rows: int, first: float, last: float) -> NDArray[np.float64] | None:
    """Return the latitudes of a Gaussian grid, or of a part of one; None if it has other rows."""
    if not 0 < parallels <= _MOST_PARALLELS:
        return None
    whole = gaussian_latitudes(parallels)
    start = int(np.argmin(np.abs(whole - max(first, last))))
    found = whole[start : start + rows]
    if len(found) < rows or abs(found[-1] - min(first, last)) > 0.5 * 90 / parallels:
        return None
    return found if first > last else found[::-1]


@lru_cache(8)
def gaussian_latitudes(parallels: int) -> NDArray[np.float64]:
    """Return all latitudes of a Gaussian grid, from north to south.

    >>> gaussian_latitudes(32)[:2].round(6).tolist()
    [87.863799, 85.096527]
    """
    count = 2 * parallels
    x = np.cos(np.pi * (np.arange(count) + 0.75) / (count + 0.5))
    for _ in range(10):
        before, now = np.ones_like(x), x.copy()
        for degree in range(2, count + 1):
            before, now = now, ((2 * degree - 1) * x * now - (degree - 1) * before) / degree
        change = now * (1 - x * x) / (count * (before - x * now))
        x = x - change
        if float(np.abs(change).max()) < 1e-15:
            break
    found: NDArray[np.float64] = np.degrees(np.arcsin(x))
    return found

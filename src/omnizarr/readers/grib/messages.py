"""Messages of a GRIB file: where they are, and what their fields are.

The file is read by the heads of its messages: a kilobyte each, which holds all but the bitmap and the values. A message
says how long it is, so that the next one is found; what lies between messages is skipped, as far as it is short.

Of a file on another machine, heads are fetched many at once where it is known, or can be guessed, where they are:
`omnizarr.readers.grib.ahead`.

Spec: WMO, Manual on Codes, FM 92 GRIB, editions 1 and 2.
"""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any, Final, NamedTuple

from omnizarr.codecs.grib import PACKINGS, signed
from omnizarr.readers.grib import names
from omnizarr.readers.grib.ahead import Ahead
from omnizarr.readers.grib.grids import Grid, grid_of_edition1, grid_of_edition2
from omnizarr.readers.grib.names import Level, Quantity
from omnizarr.stores.manifests.file import File

SPEC: Final = "WMO FM 92 GRIB"
MOST_FIELDS: Final = 1 << 17
"""Fields of a file that are shown. Those behind them are named as not shown."""
_HEAD: Final = 1024
_WINDOW: Final = 1 << 20  # bytes of messages that are not large, which are read at once from another machine
_MOST_IN_WINDOWS: Final = 1 << 26
_FIRST: Final = 1 << 16
_GAP: Final = 1 << 16  # bytes between messages that are searched
_MOST_SECTION: Final = 1 << 24
_MOST_IN_MESSAGE: Final = 4096
_MISSING: Final = 0xFFFFFFFF
_UNITS: Final = {
    0: 60, 1: 3600, 2: 86400, 10: 3 * 3600, 11: 6 * 3600, 12: 12 * 3600, 13: 1, 254: 1,
}  # fmt: skip
"""Seconds of the units of time. Months and years have no fixed length."""
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - all times are in UTC
_PLAIN: Final = frozenset({*range(13), 15})
_CHEMICAL: Final = frozenset({40, 41, 42, 43})
_ENSEMBLES: Final = frozenset({1, 11, 41, 43})
_STATISTICAL: Final = {8: 34, 9: 47, 10: 35, 11: 37, 12: 36, 42: 36, 43: 39}
"""Where the end of an interval begins in templates of products over time, counted from the first octet, from 0."""
_ECMWF: Final = 98


class Unshown(Exception):  # noqa: N818 - a reason, which becomes a note
    """Why a field cannot be shown."""


class Parsed(NamedTuple):
    """A field of a message.

    Attributes
    ----------
    start, length : int
        The bytes of the message.
    number : int
        Which of the fields of the message it is.
    quantity : Quantity
    level : Level
    at : float
        The number of the level.
    kind : str
        ``instant``, or what was done with values over time.
    time, step : int
        Seconds from 1970 to the beginning of the forecast, and from there to the time of the values.
    member : int or None
        The number of the member of an ensemble.
    grid : Grid
    other : tuple
        What else two fields of one array have in common.
    attributes : dict
    """

    start: int
    length: int
    number: int
    quantity: Quantity
    level: Level
    at: float
    kind: str
    time: int
    step: int
    member: int | None
    grid: Grid
    other: tuple[Any, ...]
    attributes: dict[str, Any]


class Messages:
    """The messages of a file.

    Attributes
    ----------
    file : File
    notes : list of str
        What of the file is not shown.
    """

    def __init__(self, file: File, notes: list[str]) -> None:
        self.file, self.notes = file, notes
        self._head = bytes(file.head(_FIRST))
        self._from = 0
        self.size = file.size or 0
        self._grids: dict[bytes, Grid] = {}
        self._ahead = None if file.is_local else Ahead(file, _HEAD)
        self._left = _MOST_IN_WINDOWS

    def _read(self, start: int, length: int) -> bytes:
        """Return bytes, fewer if the file ends. What has been read last is kept: many messages are short."""
        stop = min(start + length, self.size)
        if start >= stop:
            return b""
        if not (self._from <= start and stop <= self._from + len(self._head)):
            until = min(self.size, max(stop, start + self._block))
            (part,) = self.file.read([(start, until)])
            self._head, self._from = bytes(part), start
        return self._head[start - self._from : stop - self._from]

    _block = _HEAD

    @property
    def is_first(self) -> bool:
        """Whether the file begins with a message, after at most a few bytes of a transmission."""
        return b"GRIB" in self._head[:64]

    def fields(self) -> list[Parsed]:
        """Return the fields of all messages."""
        found: list[Parsed] = []
        at = 0
        reasons: dict[str, int] = {}
        while at < self.size:
            start = self._next(at)
            if start is None:
                break
            if len(found) >= MOST_FIELDS:
                self.notes.append(f"what follows the first {MOST_FIELDS} fields, at byte {start}, is not shown")
                break
            length = 0
            try:
                length = self._length(start)
                self._message(start, length, found)
            except Unshown as error:
                reasons[str(error)] = reasons.get(str(error), 0) + 1
            except (ValueError, IndexError, KeyError, struct.error, OverflowError) as error:
                self.notes.append(f"the message at byte {start} is not shown: it is broken: {error}")
            at = start + max(length, 4)
            self._plan(at, length)
        self.notes += [f"{count} fields are not shown: {reason}" for reason, count in reasons.items()]
        return found

    def _plan(self, at: int, length: int) -> None:
        """Prepare to read the message at a place, which follows one of a length."""
        # Short messages are read many at once.
        self._block = _FIRST if 0 < length < _FIRST // 4 else _HEAD
        if self._ahead is None or not length > 0 or at + _HEAD <= self._from + len(self._head) or at >= self.size:
            return
        if length < _WINDOW // 4 and self._left > 0:
            self._block = _WINDOW
            self._left -= _WINDOW
        elif length >= _FIRST // 4 and (head := self._ahead.head(at, length)) is not None:
            self._head, self._from = head, at

    def _next(self, at: int) -> int | None:
        """Return where the next message begins; None if there is none."""
        if self._read(at, 4) == b"GRIB":
            return at
        end = min(self.size, at + _GAP)
        found = self._read(at, end - at).find(b"GRIB")
        if found >= 0:
            return at + found
        if end < self.size or self._read(at, end - at).strip(b"\0\r\n \x03"):
            self.notes.append(f"what follows byte {at} is not shown: there is no message")
        return None

    def _length(self, start: int) -> int:
        """Return the length of a message. Raises ValueError."""
        head = self._read(start, 16)
        if len(head) < 16 or head[7] not in (1, 2):
            raise ValueError(f"edition {head[7] if len(head) > 7 else None}, expected 1 or 2")
        length = int.from_bytes(head[8:16] if head[7] == 2 else head[4:7], "big")
        if head[7] == 1 and length & 0x800000:  # ECMWF's way of saying how long large messages are
            length = self._length_of_large(start, (length & 0x7FFFFF) * 120)
        if length < 16 or start + length > self.size:
            raise ValueError(f"{length} bytes, of {self.size - start} in the file")
        return length

    def _length_of_large(self, start: int, most: int) -> int:
        at, flags = 8, self._read(start + 8, 8)[7]
        for is_there in (1, flags & 0x80, flags & 0x40):
            if is_there:
                at += int.from_bytes(self._read(start + at, 3), "big")
        rest = int.from_bytes(self._read(start + at, 3), "big")
        return most - rest + 4 if rest < 120 else most

    def _message(self, start: int, length: int, found: list[Parsed]) -> None:
        if self._read(start, 8)[7] == 1:
            found.append(self._edition1(start, length))
        else:
            self._edition2(start, length, found)

    def _section(self, start: int, stop: int) -> bytes:
        if not 5 <= stop - start <= _MOST_SECTION:
            raise ValueError(f"a section of {stop - start} bytes at byte {start}")
        return self._read(start, stop - start)

    # -- edition 2 ---------------------------------------------------------------------------

    def _edition2(self, start: int, length: int, found: list[Parsed]) -> None:
        self._read(start, min(length, _HEAD))
        discipline = self._read(start, 16)[6]
        known: dict[int, bytes] = {}
        at, end, number = start + 16, start + length - 4, 0
        while at + 5 <= end and number < _MOST_IN_MESSAGE:
            size, section = struct.unpack(">IB", self._read(at, 5))
            if size < 5 or section not in range(1, 8) or at + size > end:
                raise ValueError(f"a section {section} of {size} bytes at byte {at}")
            if section in (1, 3, 4, 5):
                known[section] = self._section(at, at + size)
            elif section == 7:
                found.append(self._field2(start, length, number, discipline, known))
                number += 1
            at += size
        if not number:
            raise ValueError("a message without values")

    def _field2(self, start: int, length: int, number: int, discipline: int, known: dict[int, bytes]) -> Parsed:
        identification, product, described = known[1], known[4], known[5]
        template = int.from_bytes(described[9:11], "big")
        if template not in PACKINGS:
            raise Unshown(f"their packing has the number {template}, which is not supported")
        grid = self._grids.get(known[3])
        if grid is None:
            grid = self._grids[known[3]] = grid_of_edition2(known[3])
        year, month, day, hour, minute, second = struct.unpack_from(">HBBBBB", identification, 12)
        kind = int.from_bytes(product[7:9], "big")
        quantity = names.of_edition2(discipline, product[9], product[10])
        attributes: dict[str, Any] = {
            "GRIB_edition": 2, "GRIB_centre": int.from_bytes(identification[5:7], "big"),
            "GRIB_discipline": discipline, "GRIB_parameterCategory": product[9], "GRIB_parameterNumber": product[10],
            "GRIB_productDefinitionTemplateNumber": kind, "GRIB_packing": template,
        }  # fmt: skip
        time = _seconds(year, month, day, hour, minute, second)
        if kind not in _PLAIN and kind not in _CHEMICAL:
            # What such a product says of levels and times is not known: all of it tells arrays apart.
            return Parsed(start, length, number, quantity, Level("other"), 0.0, "instant", time, 0, None, grid,
                          (discipline, product), attributes)  # fmt: skip
        shift = 2 if kind in _CHEMICAL else 0
        level, at, bottom = _levels2(product, 22 + shift)
        step = _steps(product[17 + shift], int.from_bytes(product[18 + shift : 22 + shift], "big", signed=True))
        member = product[35 + shift] if kind in _ENSEMBLES else None
        extra: tuple[Any, ...] = (discipline, product[9:11], product[9:13] if shift else b"", kind, template == 4)
        statistic = "instant"
        if kind in _STATISTICAL:
            place = _STATISTICAL[kind]
            ranges, operation = product[place + 7], product[place + 12]
            statistic = names.STATISTICS.get(operation, f"statistic {operation}")
            if ranges:
                step += _steps(product[place + 14], int.from_bytes(product[place + 15 : place + 19], "big"))
        elif kind in (2, 12):
            extra = (*extra, product[34])
            attributes["GRIB_derivedForecast"] = product[34]
        if bottom is not None:
            attributes["GRIB_secondLevel"] = bottom
            extra = (*extra, bottom if level.name == "surface" else None)
        quantity = names.at_level(quantity, level.name, at)
        return Parsed(
            start, length, number, quantity, level, at, statistic, time, step, member, grid, extra, attributes
        )

    # -- edition 1 ---------------------------------------------------------------------------

    def _edition1(self, start: int, length: int) -> Parsed:
        sizes = self._read(start, min(length, _HEAD))
        product = self._section(start + 8, start + 8 + int.from_bytes(sizes[8:11], "big"))
        if not product[7] & 0x80:
            raise Unshown("their grids are described elsewhere")
        grid_at = start + 8 + len(product)
        described = self._section(grid_at, grid_at + int.from_bytes(self._read(grid_at, 3), "big"))
        at = grid_at + len(described)
        if product[7] & 0x40:
            at += int.from_bytes(self._read(at, 3), "big")
        flags = self._read(at, 4)[3]
        if flags & 0xC0:
            raise Unshown("their packing is spherical harmonics, or of second order, which are not supported")
        grid = self._grids.get(described)
        if grid is None:
            grid = self._grids[described] = grid_of_edition1(described)
        centre, version, number = product[4], product[3], product[8]
        year = product[12] + 100 * (product[24] - 1)
        time = _seconds(year, product[13], product[14], product[15], product[16], 0)
        unit, first, second, indicator = product[17], product[18], product[19], product[20]
        many = 256 * first + second if indicator == 10 else second if indicator in (2, 3, 4, 5) else first
        statistic = {2: "max" if number in (15, 201) else "min" if number in (16, 202) else "instant", 3: "avg",
                     4: "accum", 5: "diff"}.get(indicator, "instant")  # fmt: skip
        kind = product[9]
        if kind in names.LAYERS1:
            level = names.LAYERS1[kind]
            top, bottom = product[10] * level.factor, product[11] * level.factor
        else:
            level = names.LEVELS1.get(kind, Level(f"level_{kind}"))
            top, bottom = _rounded(int.from_bytes(product[10:12], "big") * level.factor), None
        member = product[49] if centre == _ECMWF and len(product) > 50 and product[40] in (1, 30) else None
        quantity = names.at_level(names.of_edition1(centre, version, number), level.name, top)
        attributes: dict[str, Any] = {
            "GRIB_edition": 1, "GRIB_centre": centre, "GRIB_table2Version": version,
            "GRIB_indicatorOfParameter": number, "GRIB_timeRangeIndicator": indicator,
        }  # fmt: skip
        if bottom is not None:
            attributes["GRIB_secondLevel"] = bottom
        other = centre, version, number, indicator in (3, 4, 5), kind
        return Parsed(start, length, 0, quantity, level, top, statistic, time, _steps(unit, many), member, grid, other,
                      attributes)  # fmt: skip


def _levels2(product: bytes, at: int) -> tuple[Level, float, float | None]:
    """Return the kind of a level, its number, and the number of the bottom of a layer. Numbers are in the unit."""
    first, second = product[at], product[at + 6]
    level = names.LEVELS2.get(first, Level(f"level_{first}"))
    top, bottom = _scaled(product[at + 1 : at + 6], level), _scaled(product[at + 7 : at + 12], level)
    if second in (255, first) and (second == 255 or bottom == top):
        return level, top, None
    if second == first:
        return level._replace(name=f"{level.name}Layer"), top, bottom
    return level, top, bottom


def _scaled(raw: bytes, level: Level) -> float:
    """Return the number of a level; 0 if it has none."""
    if raw[0] == 255 or raw[1:] == b"\xff\xff\xff\xff":
        return 0.0
    return _rounded(int.from_bytes(raw[1:], "big") * 10.0 ** -signed(raw[:1]) * level.factor)


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")


def _steps(unit: int, count: int) -> int:
    """Return seconds. Raises Unshown for units without a fixed length."""
    if not count or count == _MISSING:
        return 0
    if unit not in _UNITS:
        raise Unshown(f"their times are in the unit {unit}, which has no fixed length")
    return count * _UNITS[unit]


def _seconds(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    if second > 59:
        second = 0
    when = dt.datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - all times are in UTC
    return int((when - _EPOCH).total_seconds())

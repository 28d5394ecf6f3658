"""Times as ``ncdump -t`` prints them: ``days since 1850-1-1`` as dates.

Reckoned as netcdf-c does, in hours as floating-point numbers; hence not by cftime, which rounds to microseconds, has no
year 0 and no months as a unit. Units of months, seasons and years count calendar months, and then give the first day of
one. The calendar ``standard`` is Julian until 1582-10-04 and Gregorian from 1582-10-15.

Spec: CF conventions, 4.4; netcdf-c, ncdump/nctime0.c and libdispatch/nctime.c.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.formats.conventions.calendars import CALENDARS, GREGORIAN, JULIAN, Calendar
from omnizarr.netcdf.cdl.numbers import data
from omnizarr.netcdf.header import Attribute
from omnizarr.netcdf.types import DOUBLE


class Moment(NamedTuple):
    """A date, and the hours of its day."""

    year: int = 0
    month: int = 1
    day: int = 1
    hour: float = 0.0


_STANDARD: Final = None
_CALENDARS: Final[Mapping[str, Calendar | None]] = {
    name: _STANDARD if name in ("gregorian", "standard") else calendar for name, calendar in CALENDARS.items()
}

_LAST_JULIAN: Final = Moment(1582, 10, 5)
_FIRST_GREGORIAN: Final = Moment(1582, 10, 15)
_PIVOT: Final = Moment(1979)

# How units begin, or what they are; and how many hours or months they are.
_HOURS: Final = (
    ("sec", "s", lambda value: value / 3600.0),
    ("min", "mn", lambda value: value / 60.0),
    ("hour", "hr", lambda value: value),
    ("day", "dy", lambda value: 24.0 * value),
    ("week", "wk", lambda value: 168.0 * value),
)
_MONTH_UNITS: Final = (("month", "mo", 1), ("season", "season", 3), ("year", "yr", 12))

_SINCE: Final = re.compile(r"\s*(\S{1,63})\s+since\s*(\S{1,47})(?:\s+(\S{1,47}))?")
_NUMBER: Final = r"\s*([+-]?\d{1,9})"
_DATE: Final = re.compile(
    rf"{_NUMBER}(?:-{_NUMBER}(?:-{_NUMBER}(?:{_NUMBER}(?::{_NUMBER}(?::\s*([+-]?(?:\d+\.?\d*|\.\d+)))?)?)?)?)?"
)
# More hours than netcdf-c can count days for; beyond, numbers stay numbers.
_TOO_FAR: Final = 24.0 * 2**31


@dataclass(frozen=True, slots=True)
class Times:
    """What numbers of a variable mean as times.

    Attributes
    ----------
    unit : str
        ``days``, ...
    origin : Moment
    calendar : Calendar, optional
        None is the mixed one of CF, ``standard``.
    separator : {" ", "T"}
        Between date and time.
    """

    unit: str
    origin: Moment
    calendar: Calendar | None
    separator: Literal[" ", "T"] = " "

    @classmethod
    def of(cls, attributes: Mapping[str, Attribute], separator: Literal[" ", "T"] = " ") -> Times | None:
        """Return what ``units`` and ``calendar`` say, or None if they are not those of a time.

        >>> Times.of({"units": Attribute.of("days since 1990-2-1")}).text(59.5)
        '1990-04-01 12'
        """
        found = _SINCE.match(_text(attributes, "units"))
        calendar = _text(attributes, "calendar").lower()
        if found is None or calendar == "none" or _unit(found[1]) is None:
            return None
        base = " ".join(filter(None, found.groups()[1:]))
        if "T" in found[2]:
            base = base.replace("T", " ", 1)
        origin = _moment(base)
        # Any beginning of a name will do, and an unknown name means the standard.
        name = next((each for each in _CALENDARS if calendar and each.startswith(calendar)), "standard")
        return None if origin is None else cls(found[1].lower(), origin, _CALENDARS[name], separator)

    def text(self, value: float) -> str | None:
        """Return the date and time; None if it is out of range."""
        moment = self._moment(value)
        if moment is None:
            return None
        hours = int(moment.hour + 0.5e-6 / 3600)
        rest = 60.0 * (moment.hour - hours)
        minutes = int(rest + 0.5e-6 / 60)
        rest = 60.0 * (rest - minutes)
        seconds = int(rest + 0.5e-6)
        sign, year = "-" if moment.year < 0 else "", abs(moment.year)
        text = f"{sign}{year:04d}-{moment.month:02d}-{moment.day:02d}"
        if rest - seconds >= 0.5e-6:
            return f"{text}{self.separator}{hours:02d}:{minutes:02d}:{rest:f}"
        if seconds:
            return f"{text}{self.separator}{hours:02d}:{minutes:02d}:{seconds:02d}"
        if minutes:
            return f"{text}{self.separator}{hours:02d}:{minutes:02d}"
        return f"{text}{self.separator}{hours:02d}" if hours else text

    def number(self, text: str) -> float | None:
        """Return the number that is printed as a date, the roundest of several; None if none is.

        >>> times = Times.of({"units": Attribute.of("days since 1990-2-1")})
        >>> times.number("1990-04-01 12"), times.number("1990-04-31")
        (59.5, None)
        """
        moment = _moment(text.replace("T", " ", 1))
        kind = _unit(self.unit)
        if moment is None or kind is None:
            return None
        if isinstance(kind, int):
            number = ((moment.year - self.origin.year) * 12 + moment.month - self.origin.month) / kind
        else:
            number = self._hours_to(moment) / kind(1.0)
        wanted = text.replace("T", self.separator, 1)
        rounded = (*(round(number, digits) for digits in range(10)), number)
        return next((each for each in rounded if self.text(each) == wanted), None)

    def _hours_to(self, moment: Moment) -> float:
        """Return the hours from the origin to a moment."""
        if self.calendar is not None:
            return _hours(self.calendar, moment) - _hours(self.calendar, self.origin)
        origin_is_old, is_old = self.origin < _FIRST_GREGORIAN, moment < _FIRST_GREGORIAN
        if origin_is_old == is_old:
            return _between(JULIAN if is_old else GREGORIAN, moment, self.origin)
        if is_old:
            return -(_between(GREGORIAN, self.origin, _FIRST_GREGORIAN) + _between(JULIAN, _LAST_JULIAN, moment))
        return _between(JULIAN, _LAST_JULIAN, self.origin) + _between(GREGORIAN, moment, _FIRST_GREGORIAN)

    def texts(self, values: NDArray[Any]) -> list[str]:
        """Return the texts of a vector of numbers: quoted dates, but NaN and Infinity unchanged."""
        numbers = data(values.astype("f8"), DOUBLE, "%.15g")
        for index in np.flatnonzero(np.isfinite(values)).tolist():
            text = self.text(float(values[index]))
            if text is not None:
                numbers[index] = f'"{text}"'
        return numbers

    def _moment(self, value: float) -> Moment | None:
        kind = _unit(self.unit)
        if isinstance(kind, int):
            months = kind * value + (-1e-10 if value < 0 else 1e-10)
            if abs(months) > _TOO_FAR:
                return None
            return self._months_later(int(months)) if value else self.origin
        hours = kind(value) if kind else 0.0
        if abs(hours) > _TOO_FAR:
            return None
        if self.calendar is None:
            start = self.origin
            if start < _FIRST_GREGORIAN:
                julian = _between(JULIAN, _LAST_JULIAN, start)
                if hours <= julian:
                    return _later(JULIAN, start, hours)
                return _later(GREGORIAN, _FIRST_GREGORIAN, hours - julian)
            gregorian = _between(GREGORIAN, _FIRST_GREGORIAN, start)
            if hours > gregorian:
                return _later(GREGORIAN, start, hours)
            return _later(JULIAN, _LAST_JULIAN, hours - gregorian)
        return _at(self.calendar, _hours(self.calendar, self.origin) + hours)

    def _months_later(self, months: int) -> Moment:
        years, month = divmod(self.origin.month - 1 + months, 12)
        return Moment(self.origin.year + years, month + 1)


def _text(attributes: Mapping[str, Attribute], name: str) -> str:
    found = attributes[name].value if name in attributes else ""
    if isinstance(found, str):
        return found.split("\0", 1)[0]
    return str(found[0]) if found.dtype == object and len(found) else ""


def _unit(text: str) -> Callable[[float], float] | int | None:
    """Return how a unit becomes hours, or its number of months."""
    text = text.lower()
    for start, short, kind in (*_HOURS, *_MONTH_UNITS):
        if text.startswith(start) or text == short:
            return kind
    return None


def _moment(text: str) -> Moment | None:
    """Return a base time, as far as it can be read: what is missing, or no time of a day, is the first of its kind."""
    found = _DATE.match(text)
    if found is None:
        return None
    year, month, day, hour, minute = (None if each is None else int(each) for each in found.groups()[:5])
    if not 1 <= (month or 1) <= 12 or not 1 <= (day or 1) <= 31:
        return None
    hours = 0.0
    if hour is not None and 0 <= hour <= 23:
        hours = float(hour)
        if minute is not None and 0 <= minute <= 59:
            hours += minute / 60.0
            second = float(found[6] or 0)
            hours += second / 3600.0 if 0 <= second <= 60 else 0.0
    return Moment(year or 0, month or 1, day or 1, hours)


def _hours(calendar: Calendar, moment: Moment) -> float:
    """Return the hours from the start of 1970 to a moment."""
    return calendar.days(moment.year, moment.month, moment.day) * 24.0 + moment.hour


def _at(calendar: Calendar, hours: float) -> Moment:
    """Return the moment that is `hours` after the start of 1970."""
    days = math.floor(hours / 24)
    hour = hours - days * 24.0
    if hour >= 24:  # rounding
        days, hour = days + 1, hour - 24
    return Moment(*calendar.date(days), hour)


def _later(calendar: Calendar, start: Moment, hours: float) -> Moment:
    """Return the moment that is `hours` after `start`, counted from 1979 and rounded as in netcdf-c."""
    pivot = _hours(calendar, _PIVOT)
    return _at(calendar, pivot + ((_hours(calendar, start) - pivot) + hours))


def _between(calendar: Calendar, later: Moment, earlier: Moment) -> float:
    pivot = _hours(calendar, _PIVOT)
    return (_hours(calendar, later) - pivot) - (_hours(calendar, earlier) - pivot)

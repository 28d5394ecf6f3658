"""Calendars of CF: which day of its own each calendar calls by a date, and how numbers with units of time become dates.

All is reckoned in whole numbers, so no date is off by a rounding error.

Spec: CF conventions, section 4.4.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Date: TypeAlias = tuple[int, int, int]
"""Year, month and day; months and days from 1."""

_MONTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FIRST_YEAR: Final = 1970


@dataclass(frozen=True, slots=True)
class Calendar:
    """A calendar in which every fourth year, or so, is longer.

    Attributes
    ----------
    leap_days : callable
        Returns how many leap days there were from the year 0 to the beginning of a year.
    months : tuple of int
        Days of each month, February without its leap day.
    """

    leap_days: Callable[[int], int] = lambda _: 0
    months: tuple[int, ...] = _MONTHS

    def days(self, year: int, month: int, day: int) -> int:
        """Return the days from the start of 1970 to a date.

        >>> CALENDARS["360_day"].days(1971, 2, 30)
        419
        """
        return self._start(year) - self._start(_FIRST_YEAR) + sum(self._months(year)[: month - 1]) + day - 1

    def date(self, days: int) -> Date:
        """Return the date that is `days` after the start of 1970.

        >>> CALENDARS["noleap"].date(365 * 30 + 59), CALENDARS["proleptic_gregorian"].date(-1)
        ((2000, 3, 1), (1969, 12, 31))
        """
        days += self._start(_FIRST_YEAR)
        usual = sum(self.months)
        year = days // (usual + (days > 0))  # never too late
        while self._start(year + 1) <= days:
            year += max(1, (days - self._start(year + 1)) // (usual + 1))
        day, month = days - self._start(year) + 1, 1
        for length in self._months(year):
            if day <= length:
                break
            day, month = day - length, month + 1
        return year, month, day

    def has(self, year: int, month: int, day: int) -> bool:
        """Return whether there is such a date.

        >>> [CALENDARS[name].has(2000, 2, 30) for name in ("360_day", "noleap", "standard")]
        [True, False, False]
        """
        return 1 <= month <= len(self.months) and 1 <= day <= self._months(year)[month - 1]

    def _start(self, year: int) -> int:
        return year * sum(self.months) + self.leap_days(year)

    def _months(self, year: int) -> list[int]:
        leap = self.leap_days(year + 1) - self.leap_days(year)
        return [days + leap * (month == 1) for month, days in enumerate(self.months)]


GREGORIAN: Final = Calendar(lambda year: (year + 3) // 4 - (year + 99) // 100 + (year + 399) // 400)
JULIAN: Final = Calendar(lambda year: (year + 3) // 4)
_FIRST_GREGORIAN: Final = (1582, 10, 15)
_AFTER_JULIAN: Final = (1582, 10, 5)


class _Mixed(Calendar):
    """The calendar of history: Julian until 1582-10-04, and Gregorian from the next day on, 1582-10-15."""

    __slots__ = ()

    def days(self, year: int, month: int, day: int) -> int:
        """Return the days from the start of 1970 to a date; those that were left out are taken as Julian."""
        if (year, month, day) >= _FIRST_GREGORIAN:
            return GREGORIAN.days(year, month, day)
        return JULIAN.days(year, month, day) - JULIAN.days(*_AFTER_JULIAN) + GREGORIAN.days(*_FIRST_GREGORIAN)

    def date(self, days: int) -> Date:
        """Return the date that is `days` after the start of 1970."""
        before = days - GREGORIAN.days(*_FIRST_GREGORIAN)
        return GREGORIAN.date(days) if before >= 0 else JULIAN.date(JULIAN.days(*_AFTER_JULIAN) + before)

    def has(self, year: int, month: int, day: int) -> bool:
        """Return whether there is such a date."""
        is_gregorian = (year, month, day) >= _FIRST_GREGORIAN
        if not is_gregorian and (year, month, day) >= _AFTER_JULIAN:
            return False
        return (GREGORIAN if is_gregorian else JULIAN).has(year, month, day)


STANDARD: Final = _Mixed()
_LEAPLESS: Final = Calendar()
_ALL_LEAP: Final = Calendar(lambda year: year)
_MONTHS_OF_30: Final = Calendar(months=(30,) * 12)

CALENDARS: Final[Mapping[str, Calendar]] = {
    "gregorian": STANDARD,
    "standard": STANDARD,
    "proleptic_gregorian": GREGORIAN,
    "noleap": _LEAPLESS,
    "no_leap": _LEAPLESS,
    "365_day": _LEAPLESS,
    "allleap": _ALL_LEAP,
    "all_leap": _ALL_LEAP,
    "366_day": _ALL_LEAP,
    "360_day": _MONTHS_OF_30,
    "julian": JULIAN,
}
"""By the names that CF and netCDF-C know."""

_SINCE: Final = re.compile(
    r"(?P<unit>[a-z]+)\s+since\s+(?P<year>\d{1,4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[T ]+(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:\.\d+)?))?)?\s*(?:Z|UTC|[+-]00?:?00)?",
    re.IGNORECASE,
)
_MICROSECONDS: Final = {
    **dict.fromkeys(("microsecond", "microseconds", "us"), 1),
    **dict.fromkeys(("millisecond", "milliseconds", "ms"), 10**3),
    **dict.fromkeys(("second", "seconds", "sec", "s"), 10**6),
    **dict.fromkeys(("minute", "minutes", "min"), 60 * 10**6),
    **dict.fromkeys(("hour", "hours", "hr", "h"), 3600 * 10**6),
    **dict.fromkeys(("day", "days", "d"), 86400 * 10**6),
}
_DAY: Final = 86400 * 10**6
_FARTHEST: Final = 2**62
"""Microseconds beyond which a number is not a time."""
_SHOWN: Final = ((10, _DAY), (13, 3600 * 10**6), (16, 60 * 10**6), (19, 10**6), (23, 10**3), (26, 1))
"""Number of characters of a time in whole days, hours, and so on."""


@dataclass(frozen=True, slots=True)
class Times:
    """What numbers mean as times.

    Attributes
    ----------
    calendar : Calendar
    start : int
        Microseconds from the start of 1970 to the moment that 0 means.
    unit : int
        Microseconds that 1 means.
    """

    calendar: Calendar
    start: int
    unit: int

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Times | None:
        """Return what ``units`` and ``calendar`` say; None if they are not those of a time, or count months or years.

        >>> Times.of({"units": "days since 2000-02-30", "calendar": "360_day"}).text(1)
        '2000-03-01'
        """
        units, name = attributes.get("units"), attributes.get("calendar", "standard")
        found = _SINCE.fullmatch(units.strip()) if isinstance(units, str) else None
        calendar = CALENDARS.get(name.lower()) if isinstance(name, str) else None
        if found is None or calendar is None:
            return None
        unit = _MICROSECONDS.get(found["unit"].lower())
        day = (int(found["year"]), int(found["month"]), int(found["day"]))
        if unit is None or not calendar.has(*day):
            return None
        hour, minute, second = (float(found[part] or 0) for part in ("hour", "minute", "second"))
        return cls(calendar, calendar.days(*day) * _DAY + round(((hour * 60 + minute) * 60 + second) * 10**6), unit)

    def moment(self, value: float) -> int | None:
        """Return the microseconds from the start of 1970; None if a number means no time, or one too far away."""
        if not math.isfinite(value) or abs(value) * self.unit >= _FARTHEST:
            return None
        whole = int(value)
        return self.start + whole * self.unit + round((value - whole) * self.unit)

    def means_the_same_dates(self, values: NDArray[Any], calendar: Calendar) -> bool:
        """Return whether numbers are the same dates in another calendar, so that only what 0 means may differ.

        The standard calendar and the proleptic Gregorian one have the same dates from 1582-10-15 on.

        >>> times = Times.of({"units": "days since 1582-10-14", "calendar": "proleptic_gregorian"})
        >>> [times.means_the_same_dates(np.array([value]), STANDARD) for value in (0, 1)]
        [False, True]
        """
        if self.calendar == calendar:
            return True
        if {id(self.calendar), id(calendar)} != {id(STANDARD), id(GREGORIAN)}:
            return False
        first = GREGORIAN.days(*_FIRST_GREGORIAN) * _DAY
        known = values[np.isfinite(values)]
        return not known.size or self.start + float(known.min()) * self.unit >= first

    def text(self, value: float, step: float = 0) -> str:
        """Return the date and time, as fine as is needed to tell it from a number that is `step` away; NaT if none."""
        return self._texts([self.moment(value)], step * self.unit)[0]

    def texts(self, values: NDArray[Any]) -> NDArray[np.str_]:
        """Return the date and time of each number, all as fine as is needed for all; NaT where there is none.

        >>> Times.of({"units": "hours since 1999-12-30", "calendar": "360_day"}).texts(np.array([0, 36])).tolist()
        ['1999-12-30T00', '2000-01-01T12']
        """
        return np.array(self._texts([self.moment(value) for value in values.tolist()], 0))

    def _texts(self, moments: list[int | None], apart: float) -> list[str]:
        known = [moment for moment in moments if moment is not None]
        length = next(length for length, unit in _SHOWN if unit <= apart or all(each % unit == 0 for each in known))
        return ["NaT" if moment is None else self._text(moment, length) for moment in moments]

    def _text(self, moment: int, length: int) -> str:
        days, rest = divmod(moment, _DAY)
        year, month, day = self.calendar.date(days)
        seconds, fraction = divmod(rest, 10**6)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        text = f"-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}"
        return f"{year:04}{text[: length - 4]}"

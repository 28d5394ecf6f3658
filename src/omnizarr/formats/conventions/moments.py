"""Dates and times of ISO 8601, whole or in part, in any calendar of CF: ``2020``, ``2020-01``, ``2020-01-31T12:30``."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from omnizarr.formats.conventions.calendars import GREGORIAN, Calendar

_ISO: Final = re.compile(
    r"(?P<year>-?\d{4,6})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2})"
    r"(?:[T ](?P<hour>\d{2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?)?Z?)?)?)?"
)
_SECOND: Final = 10**6
RESOLUTIONS: Final = ("year", "month", "day", "hour", "minute", "second", "fraction")
"""What a time can name last, from coarse to fine."""
UNITS: Final = {
    "day": 86400 * _SECOND,
    "hour": 3600 * _SECOND,
    "minute": 60 * _SECOND,
    "second": _SECOND,
    "fraction": 1,
}
"""Microseconds of each, but for those of varying length."""


class Interval(NamedTuple):
    """The microseconds from the start of 1970 to the first moment that a text means, and to the first one after it."""

    start: int
    stop: int
    resolution: str


def is_moment(text: str) -> bool:
    """Return whether a text is a date or a time, whole or in part. A year alone has four digits."""
    return _ISO.fullmatch(text) is not None


def interval_of(text: str, calendar: Calendar = GREGORIAN) -> Interval:
    """Return what a date or a time means in a calendar.

    Raises ValueError if it is none, or if the calendar has no such date.

    >>> day = 86400 * 10**6
    >>> start, stop, resolution = interval_of("1970-02")
    >>> start // day, stop // day, resolution
    (31, 59, 'month')
    """
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date or a time such as 2020-01 or 2020-01-31T12:00")
    resolution = [name for name in RESOLUTIONS if match[name] is not None][-1]
    year, month, day, hour, minute, second = (
        int(match[name] or default) for name, default in zip(RESOLUTIONS[:6], (0, 1, 1, 0, 0, 0), strict=True)
    )
    if not calendar.has(year, month, day) or hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"there is no {text} in the calendar of the times")
    microseconds = int((match["fraction"] or "0")[:6].ljust(6, "0"))
    start = ((calendar.days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    start = start * _SECOND + microseconds
    if resolution == "year":
        return Interval(start, calendar.days(year + 1, 1, 1) * UNITS["day"], resolution)
    if resolution == "month":
        after = (year + 1, 1) if month == len(calendar.months) else (year, month + 1)
        return Interval(start, calendar.days(*after, 1) * UNITS["day"], resolution)
    return Interval(start, start + UNITS[resolution], resolution)

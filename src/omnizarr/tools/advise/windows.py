"""Typical reads of an array: windows, given by their lengths or by words.

A window is a box that is anywhere in the array. ``"*,1,1"`` is a time series: all of the first dimension, one element
of the others. How often windows are read, relative to each other, is their weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from omnizarr.errors import Wording

Shape: TypeAlias = tuple[int, ...]

_TIME: Final = frozenset({"time", "t", "valid_time", "forecast_time", "date", "frame"})
_WEIGHT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*[x×]\s+(.+)", re.DOTALL)
_SERIES: Final = frozenset({"series", "time series", "timeseries", "time-series"})
_MAPS: Final = frozenset({"maps", "map", "images", "image", "planes", "plane"})
_POINTS: Final = frozenset({"points", "point"})
_ALL: Final = frozenset({"all", "everything"})


class Window(NamedTuple):
    """A box that is read, wherever it is.

    Attributes
    ----------
    name : str
        As the user calls it.
    lengths : tuple of int
        Elements along each dimension.
    weight : float
        How often it is read, relative to others.
    """

    name: str
    lengths: Shape
    weight: float = 1.0


def parse(given: Any, shape: Shape, names: Sequence[str | None] | None = None) -> tuple[Window, ...]:
    """Return windows.

    Parameters
    ----------
    given : str, sequence, mapping or None
        A window; several; windows and their weights; None: what suits most uses. A window is a word, or lengths: as a
        text (``"*,1,1"``, ``"time=*,lat=10"``), or a sequence (None: all of the dimension).
    shape : tuple of int
        Of the array.
    names : sequence of str, optional
        Of its dimensions.

    Raises
    ------
    ValueError
        If a window is not valid for the array.

    Examples
    --------
    >>> parse(["time series", "2x maps"], (100, 20, 30))
    (Window(name='time series', lengths=(100, 1, 1), weight=1.0), Window(name='maps', lengths=(1, 20, 30), weight=2.0))
    >>> parse("y=10", (100, 20), ["x", "y"])[0].lengths
    (1, 10)
    """
    if given is None:
        return usual(shape, names)
    if isinstance(given, Mapping):
        windows = [_window(each, shape, names)._replace(weight=float(weight)) for each, weight in given.items()]
    elif isinstance(given, str) or _is_lengths(given):
        windows = [_window(given, shape, names)]
    else:
        windows = [_window(each, shape, names) for each in given]
    if not windows or not all(window.weight > 0 for window in windows):
        raise ValueError(Wording("{reads}: expected one or more windows, each read more often than never", reads=given))
    return tuple(windows)


def usual(shape: Shape, names: Sequence[str | None] | None = None) -> tuple[Window, ...]:
    """Return the default windows: lines and planes, so that no direction is favoured."""
    if len(shape) < 2:
        return (_window("all", shape, names),)
    if len(shape) == 2:
        return _window("1,*", shape, names)._replace(name="rows"), _window("*,1", shape, names)._replace(name="columns")
    return _window("time series", shape, names), _window("maps", shape, names)


def _is_lengths(given: Any) -> bool:
    return isinstance(given, Sequence) and bool(given) and all(item is None or isinstance(item, int) for item in given)


def _window(given: Any, shape: Shape, names: Sequence[str | None] | None) -> Window:
    if not isinstance(given, str):
        lengths = tuple(given)
        text = ",".join("*" if length is None else str(length) for length in lengths)
        return Window(text, _checked(text, lengths, shape))
    weight, text = 1.0, given.strip()
    if match := _WEIGHT.fullmatch(text):
        weight, text = float(match[1]), match[2].strip()
    word = text.lower().replace("_", " ")
    if word in _SERIES | _MAPS | _POINTS | _ALL:
        return Window(text, _of_word(word, shape, names), weight)
    parts = [part.strip() for part in text.split(",")]
    if any("=" in part for part in parts):
        return Window(text, _checked(text, _named(text, parts, shape, names), shape), weight)
    return Window(text, _checked(text, tuple(_length(text, part) for part in parts), shape), weight)


def _of_word(word: str, shape: Shape, names: Sequence[str | None] | None) -> Shape:
    if word in _POINTS:
        return (1,) * len(shape)
    if word in _ALL:
        return shape
    if word in _SERIES:
        time = _time_axis(shape, names)
        return tuple(length if axis == time else 1 for axis, length in enumerate(shape))
    if len(shape) < 2:
        raise ValueError(f"{word!r}: an array of shape {shape} has no maps")
    return tuple(length if axis >= len(shape) - 2 else 1 for axis, length in enumerate(shape))


def _time_axis(shape: Shape, names: Sequence[str | None] | None) -> int:
    if not shape:
        raise ValueError("an array without dimensions has no time series")
    known = [axis for axis, name in enumerate(names or ()) if name is not None and name.lower() in _TIME]
    return known[0] if known else 0


def _named(text: str, parts: Iterable[str], shape: Shape, names: Sequence[str | None] | None) -> tuple[int | None, ...]:
    """Return lengths that are given by names of dimensions; 1 for the others."""
    if not names:
        raise ValueError(f"{text!r}: the array has no names of dimensions; give {len(shape)} lengths, as in '*,1'")
    lengths: list[int | None] = [1] * len(shape)
    for part in parts:
        name, _, length = part.partition("=")
        if name.strip() not in names:
            known = ", ".join(str(each) for each in names if each is not None)
            raise ValueError(f"{text!r}: there is no dimension {name.strip()!r}; known: {known}")
        lengths[list(names).index(name.strip())] = _length(text, length.strip())
    return tuple(lengths)


def _length(text: str, part: str) -> int | None:
    """Return a length; None for all of a dimension."""
    if part in ("*", ":"):
        return None
    start, colon, stop = part.partition(":")
    if colon and start.isdecimal() and stop.isdecimal():
        return int(stop) - int(start)
    if not part.isdecimal():
        words = "'time series', 'maps', 'points', 'all'"
        raise ValueError(f"{text!r}: expected lengths, as in '*,1,1' or 'time=*', or one of {words}")
    return int(part)


def _checked(text: str, lengths: Sequence[int | None], shape: Shape) -> Shape:
    if len(lengths) != len(shape):
        raise ValueError(f"{text!r} has {len(lengths)} lengths, and the array has {len(shape)} dimensions: {shape}")
    if any(length is not None and length < 1 for length in lengths):
        raise ValueError(f"{text!r}: a length is at least 1, also that of a single index; '*' is all of a dimension")
    return tuple(min(whole, whole if length is None else length) for length, whole in zip(lengths, shape, strict=True))

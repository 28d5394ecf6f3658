"""Contents of a picture, made from NumPy arrays: an image, a line or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import Wording
from omnizarr.pictures import colours
from omnizarr.pictures.axes import Axis, titled
from omnizarr.pictures.colours import Pixels
from omnizarr.pictures.numbers import Numbers, are_numbers, between, numbers_of
from omnizarr.support.text import text_of_time, visible

DEFAULT_PERCENTILES: Final = (2.0, 98.0)
_LONGEST_CELL: Final = 40
_MOST: Final = float(np.finfo(np.float64).max)
_LEAST: Final = 1e-300
"""Magnitude up to which the half of a number may be 0."""
# Maximum ratio of the length of a drawn element to its width.
_MOST_STRETCHED: Final = 4.0


@dataclass(frozen=True, slots=True)
class Style:
    """How values become colours.

    Parameters
    ----------
    colormap : str
        One of `colours.NAMES`.
    limits : tuple of float, optional
        The values at both ends of the colours; None: those at the percentiles.
    percentiles : tuple of float
    """

    colormap: str = "viridis"
    limits: tuple[float, float] | None = None
    percentiles: tuple[float, float] = DEFAULT_PERCENTILES

    def __post_init__(self) -> None:
        colours.table(self.colormap)
        low, high = self.percentiles
        if not 0 <= low < high <= 100:
            raise ValueError(
                Wording("{percentiles}: expected two rising numbers from 0 to 100", percentiles=self.percentiles)
            )
        if self.limits is not None and not self.limits[0] < self.limits[1]:
            raise ValueError(Wording("{limits}: expected two rising numbers", limits=self.limits))


@dataclass(frozen=True, slots=True)
class Legend:
    """The meaning of the colours of an image.

    Attributes
    ----------
    numbers : Numbers
        The values of the image.
    low, high : float
        The values at both ends of the colours.
    """

    numbers: Numbers
    low: float
    high: float
    colormap: str
    title: str

    @property
    def texts(self) -> tuple[str, str]:
        """The values at both ends, in words."""
        return self._label(self.low), self._label(self.high)

    @property
    def remarks(self) -> Iterator[str]:
        """Remarks on values beyond the ends, and on NaN."""
        found = self.numbers.range
        if found is not None and (found[0] < self.low or found[1] > self.high):
            yield f"from {self._label(found[0])} to {self._label(found[1])}"
        yield from counted(self.numbers)

    def _label(self, value: float) -> str:
        text = self.numbers.label(value, self.high / 100 - self.low / 100)
        return text.rstrip("0").removesuffix(".") if "." in text and "e" not in text else text


def counted(numbers: Numbers) -> Iterator[str]:
    """Yield how many values are none."""
    missing = int(np.count_nonzero(numbers.missing))
    nan, missing, size = numbers.counts or (numbers.nan_count, missing, numbers.values.size)
    for name, count in (("NaN", nan), ("missing", missing)):
        if count:
            share = 100 * count / size
            yield f"{name} {'<0.1' if share < 0.1 else f'{share:.3g}'} %"


@dataclass(frozen=True, slots=True)
class Light:
    """How a channel of an image is drawn.

    Attributes
    ----------
    label : str
    color : str
        Red, green and blue in hexadecimal digits.
    window : tuple of float, optional
        The values that are black, and in full colour; None: those at the percentiles.
    """

    label: str
    color: str
    window: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """Two dimensions.

    Attributes
    ----------
    pixels : numpy.ndarray of uint8
        Red, green, blue and alpha of each element; alpha is 0 where the value is missing.
    levels : numpy.ndarray of float
        Brightness from 0 to 1, for terminals without colours; NaN where there is none.
    height, width : Axis
    legend : Legend or None
        None for photographs, and for channels that are blended.
    proportion : float
        Height of the picture for its width.
    channels : tuple of str
        Label, colour and window of each channel that is blended.
    """

    pixels: Pixels
    levels: NDArray[np.float64]
    height: Axis
    width: Axis
    legend: Legend | None
    proportion: float
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """One dimension, as a line.

    Attributes
    ----------
    low, high : float
        Lower and upper end of the picture.
    notes : tuple of str
        On how values were chosen.
    """

    numbers: Numbers
    along: Axis
    title: str
    low: float
    high: float
    notes: tuple[str, ...] = ()

    @property
    def levels(self) -> NDArray[np.float64]:
        """The values from 0, the lower end, to 1; NaN stays NaN."""
        return between(self.numbers.values, self.low, self.high)

    @property
    def remarks(self) -> Iterator[str]:
        """Remarks on the values."""
        yield from self.notes
        yield from counted(self.numbers)


@dataclass(frozen=True, slots=True)
class Table:
    """Values in words; all rows have as many cells as there are names."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    omitted: str = ""
    """A note on omitted values."""


Content: TypeAlias = Image | Chart | Table


@dataclass(frozen=True, slots=True)
class Subject:
    """Values to show, with their properties.

    Attributes
    ----------
    values : numpy.ndarray
        Of one dimension for each axis; of an image in colours one more, with 3 or 4 channels.
    axes : tuple of Axis
        None to two.
    missing : numpy.ndarray of bool, optional
        Where a value means that data is missing.
    element : float
        Height of an element for its width.
    omitted : str
        A note on values that were not read, because a table cannot show all.
    label : callable, optional
        Returns how a value is written, as `Numbers.label`; None: as its data type says.
    lights : tuple of Light
        The colour and window of each channel of an image; empty: the channels are red, green and blue.
    counts : tuple of int, optional
        NaN, missing, and all values, where `values` are only the smallest and largest of many.
    notes : tuple of str
        On a line.
    """

    values: NDArray[Any]
    axes: tuple[Axis, ...]
    name: str = ""
    unit: str = ""
    missing: NDArray[np.bool_] | None = None
    element: float = 1.0
    omitted: str = ""
    label: Callable[[float, float], str] | None = None
    lights: tuple[Light, ...] = ()
    counts: tuple[int, int, int] | None = None
    notes: tuple[str, ...] = ()


def content_of(subject: Subject, style: Style | None = None) -> Content:
    """Return values as an image, a line or a table.

    Examples
    --------
    >>> sides = (Axis("", "", np.arange(2)), Axis("", "", np.arange(3)))
    >>> content_of(Subject(np.eye(2, 3), sides), Style("gray")).pixels[..., 0].tolist()
    [[255, 0, 0], [0, 255, 0]]
    >>> content_of(Subject(np.array(["a", "b"]), sides[:1])).rows
    (('0', 'a'), ('1', 'b'))
    """
    values, style = subject.values, style or Style()
    if not subject.axes or not values.size or not are_numbers(values.dtype):
        values, axes = subject.values, subject.axes
        name = titled(subject.name, subject.unit)
        if not axes:
            if values.dtype.names is None:
                return Table((name,), ((_cell(values[()]),),))
            return Table(
                ("field", "value"), tuple((visible(field), _cell(values[field])) for field in values.dtype.names)
            )
        if not values.size:
            return Table((name,), (), "no elements")
        if len(axes) == 2:
            names = (axes[0].title, *_coordinates(axes[1]))
            return Table(names, tuple(_rows(_coordinates(axes[0]), values)), subject.omitted)
        names = (axes[0].title or "index", *(map(visible, values.dtype.names or (name or "value",))))
        columns = values[:, None] if values.dtype.names is None else _fields(values)
        return Table(names, tuple(_rows(_coordinates(axes[0]), columns)), subject.omitted)
    if len(subject.axes) == 1:
        numbers = _numbers(subject)
        # A line that leaves the picture at its peaks is easily misread. Show all values, unless limits are given.
        low, high = _ends(numbers, Style(limits=style.limits, percentiles=(0, 100)))
        name = " ".join(part for part in (numbers.remark, subject.name) if part)
        return Chart(numbers, subject.axes[0], titled(name, subject.unit), low, high, subject.notes)
    if values.ndim == 3:
        return _blended(subject, style) if subject.lights else _photograph(subject, style)
    numbers = _numbers(subject)
    low, high = _ends(numbers, style)
    levels = _between(numbers.values, low, high)
    pixels = colours.mapped(levels, style.colormap)
    pixels[numbers.missing, 3] = 0
    name = " ".join(part for part in (numbers.remark, subject.name) if part)
    legend = Legend(numbers, low, high, style.colormap, titled(name, subject.unit))
    height, width = subject.axes
    return Image(pixels, levels, height, width, legend, _proportion(subject))


# -- images ---------------------------------------------------------------------


def _numbers(subject: Subject) -> Numbers:
    numbers = replace(numbers_of(subject.values, subject.missing), counts=subject.counts)
    return numbers if subject.label is None else replace(numbers, label=subject.label)


def _blended(subject: Subject, style: Style) -> Image:
    """Return the channels of an image, each in its colour, added up."""
    shape = subject.values.shape[:2]
    sums, is_seen, channels = np.zeros((*shape, 3)), np.zeros(shape, np.bool_), []
    for at, light in enumerate(subject.lights):
        missing = None if subject.missing is None else subject.missing[..., at]
        numbers = numbers_of(subject.values[..., at], missing)
        low, high = _ends(
            numbers, style if light.window is None or style.limits else replace(style, limits=light.window)
        )
        levels = _between(numbers.values, low, high)
        is_seen |= ~np.isnan(levels)
        sums += np.nan_to_num(levels)[..., None] * colours.of_text(light.color)
        ends = Legend(numbers, low, high, "", "").texts
        channels.append(f"{visible(light.label)} #{light.color} from {ends[0]} to {ends[1]}")
    pixels = np.zeros((*shape, 4), np.uint8)
    pixels[..., :3] = sums.clip(0, 255).round()
    pixels[..., 3] = np.where(is_seen, 255, 0)
    height, width = subject.axes
    return Image(pixels, _brightness(pixels), height, width, None, _proportion(subject), tuple(channels))


def _brightness(pixels: Pixels) -> NDArray[np.float64]:
    brightness: NDArray[np.float64] = pixels[..., :3] @ np.array([0.299, 0.587, 0.114]) / 255
    return brightness


def _photograph(subject: Subject, style: Style) -> Image:
    values = subject.values
    pixels = np.full((*values.shape[:2], 4), 255, np.uint8)
    if values.dtype == np.uint8 and style.limits is None:
        pixels[..., : values.shape[2]] = values
    else:
        numbers = numbers_of(values)
        pixels[..., : values.shape[2]] = (np.nan_to_num(_between(numbers.values, *_ends(numbers, style))) * 255).round()
    if subject.missing is not None:
        pixels[subject.missing.all(axis=-1), 3] = 0
    height, width = subject.axes
    return Image(pixels, _brightness(pixels), height, width, None, _proportion(subject))


def _between(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return where values are between two, from 0 to 1."""
    return between(values, low, high).clip(0, 1)


def _ends(numbers: Numbers, style: Style) -> tuple[float, float]:
    low, high = style.limits or numbers.limits(style.percentiles) or (0.0, 1.0)
    if low < high:
        return low, high
    # One value only: it is in the middle.
    width = abs(low) if abs(low) > _LEAST else 1.0
    return max(low - width / 2, -_MOST), min(low + width / 2, _MOST)


def _proportion(subject: Subject) -> float:
    height, width = subject.axes
    return proportion(len(height), len(width), subject.element)


def proportion(height: int, width: int, element: float = 1.0) -> float:
    """Return the ratio of an image's height to its width; very long images are drawn shorter.

    >>> proportion(2, 4), proportion(2, 4, element=3), proportion(1, 1000)
    (0.5, 1.5, 0.25)
    """
    return min(max(height * element / width, 1 / _MOST_STRETCHED), _MOST_STRETCHED)


# -- lines -----------------------------------------------------------------------


# -- tables ----------------------------------------------------------------------


def _fields(values: NDArray[Any]) -> NDArray[Any]:
    columns = np.empty((len(values), len(values.dtype.names or ())), object)
    for number, name in enumerate(values.dtype.names or ()):
        columns[:, number] = list(values[name])
    return columns


def _rows(heads: Sequence[str], values: NDArray[Any]) -> Iterator[tuple[str, ...]]:
    for head, row in zip(heads, values, strict=True):
        yield (head, *(map(_cell, row)))


def _coordinates(axis: Axis) -> list[str]:
    return [_cell(value) for value in axis.coordinates]


def _cell(value: Any) -> str:
    text = visible(text_of_time(value.item() if isinstance(value, np.bytes_) else value))
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"


# -- the whole --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """A picture with its title and notes."""

    title: str
    content: Content
    remarks: tuple[str, ...] = field(default=())

    @property
    def notes(self) -> str:
        """The notes below: on the selection, and on the values."""
        content = self.content
        if isinstance(content, Table):
            of_values: tuple[str, ...] = (content.omitted,) if content.omitted else ()
        elif isinstance(content, Chart):
            of_values = tuple(content.remarks)
        else:
            of_values = content.channels if content.legend is None else tuple(content.legend.remarks)
        return " · ".join((*of_values, *self.remarks))

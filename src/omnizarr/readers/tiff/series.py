"""Which pages of a file are one array: by what programs write into descriptions, or by their form.

Spec: OME-TIFF; ImageJ's ``FileInfo``; tifffile's ``shape`` descriptions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final
from xml.etree import ElementTree as ET

from omnizarr.readers.tiff.directories import Directory
from omnizarr.readers.tiff.forms import Form
from omnizarr.readers.tiff.layout import Pages, start

_MOST_XML: Final = 1 << 26
_MOST_PLANES: Final = 1 << 20
_FAR: Final = 1e12
_DESCRIPTION: Final = 270
_UNITS: Final = {
    "m": "meter", "dm": "decimeter", "cm": "centimeter", "mm": "millimeter", "µm": "micrometer", "um": "micrometer",
    "\u03bcm": "micrometer", "micron": "micrometer", "microns": "micrometer", "\\u00b5m": "micrometer",
    "nm": "nanometer", "pm": "picometer", "Å": "angstrom", "s": "second", "ms": "millisecond", "inch": "inch",
    "in": "inch", "pixel": "", "reference frame": "",
}  # fmt: skip
_IMAGEJ: Final = {
    "czt": "tzc", "default": "tzc", "ctz": "ztc", "zct": "tcz", "ztc": "ctz", "tcz": "zct", "tzc": "czt",
}  # fmt: skip


@dataclass
class Page:
    """A page that can be shown, and the pages that belong to it.

    Attributes
    ----------
    number : int
        Its number in the file.
    directory : Directory
    form : Form
    levels : list of (Directory, Form)
        The same in lower resolutions.
    masks : list of (Directory, Form)
        Which pixels are valid, of it and its levels.
    """

    number: int
    directory: Directory
    form: Form
    levels: list[tuple[Directory, Form]] = field(default_factory=list)
    masks: list[tuple[Directory, Form]] = field(default_factory=list)


@dataclass
class Series:
    """The pages of one array.

    Attributes
    ----------
    lead : tuple of int
        The dimensions before those of a page.
    axes : str
        Their axes, one letter each; "?" if there is no name.
    pages : list of Page or None
        In C order. None: a page that is not in the file.
    virtual : int
        How many pages lie behind the first one, where the only directory says that there is one; 0 for others.
    name : str
    scale : dict of str to float
        How far pixels are apart, by axis.
    units : dict of str to str
    """

    lead: tuple[int, ...]
    axes: str
    pages: list[Page | None]
    virtual: int = 0
    name: str = ""
    scale: dict[str, float] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    @property
    def first(self) -> Page:
        """The first page that is in the file."""
        return next(page for page in self.pages if page is not None)

    def data(self) -> Pages:
        """Return the pages of full resolution."""
        return Pages(self.first.form, [None if page is None else page.directory for page in self.pages], self.virtual)

    def level(self, number: int) -> Pages | None:
        """Return the pages of a lower resolution; None if not all pages have one of the same form."""
        form = self.first.levels[number][1]
        found: list[Directory | None] = []
        for page in self.pages:
            if page is None:
                found.append(None)
                continue
            if len(page.levels) <= number or page.levels[number][1] != form:
                return None
            found.append(page.levels[number][0])
        return Pages(form, found)


def find(pages: Sequence[Page], notes: list[str]) -> list[Series]:
    """Return the series of a file, of which all pages are in one."""
    description = pages[0].directory.text(_DESCRIPTION) if pages[0].directory.count(_DESCRIPTION) < _MOST_XML else ""
    found: list[Series] | None = None
    if description.rstrip()[-4:] == "OME>" and "<OME" in description[:4096]:
        found = _ome(description, pages, notes)
    elif description.startswith("ImageJ="):
        found = _imagej(description, pages)
    elif description.startswith("Aperio "):
        return _aperio(pages)
    elif description.startswith('{"shape":'):
        return _shaped(pages)
    if found is None:
        return _generic(pages)
    used = {page.number for each in found for page in each.pages if page is not None}
    rest = [page for page in pages if page.number not in used]
    return [*found, *(_generic(rest) if rest else ())]


def _generic(pages: Sequence[Page]) -> list[Series]:
    """Return series of pages of equal form."""
    groups: dict[Any, list[Page]] = {}
    for page in pages:
        form = page.form
        groups.setdefault((form.shape, form), []).append(page)
    return [
        Series((len(each),), "i", [*each]) if len(each) > 1 else Series((), "", [*each]) for each in groups.values()
    ]


# -- tifffile ---------------------------------------------------------------------------


def _shaped(pages: Sequence[Page]) -> list[Series]:
    found: list[Series] = []
    at = 0
    while at < len(pages):
        series = _one_shaped(pages, at)
        if series is None:
            rest = at + 1
            while rest < len(pages) and not _shape_of(pages[rest]):
                rest += 1
            found += _generic(pages[at:rest])
            at = rest
        else:
            found.append(series)
            at += len(series.pages)
    return found


def _shape_of(page: Page) -> dict[str, Any]:
    if not 0 < page.directory.count(_DESCRIPTION) < _MOST_XML:
        return {}
    text = page.directory.text(_DESCRIPTION)
    if not text.startswith('{"shape":'):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    shape = found.get("shape") if isinstance(found, dict) else None
    is_shape = isinstance(shape, list) and shape and all(type(each) is int and 0 < each < 2**40 for each in shape)
    return found if is_shape else {}


def _one_shaped(pages: Sequence[Page], at: int) -> Series | None:
    document = _shape_of(pages[at])
    if not document:
        return None
    page = pages[at]
    form, shape = page.form, tuple(document["shape"])
    rank = len(form.shape)
    axes = document.get("axes", "")
    axes = axes if isinstance(axes, str) and len(axes) == len(shape) else ""
    while len(shape) > rank and shape[-1] == 1 and shape[-rank:] != form.shape:
        shape, axes = shape[:-1], axes[:-1]
    if shape[-rank:] != form.shape:
        return None
    lead = shape[:-rank]
    names = axes[: len(lead)].lower() if axes else "?" * len(lead)
    count = prod(lead)
    name = document.get("name", "")
    name = name if isinstance(name, str) else ""
    own = pages[at : at + count]
    if len(own) == count and all(each.form == form and (each is page or not _shape_of(each)) for each in own):
        return Series(lead, names, [*own], name=name)
    if _is_virtual(page, count):
        return Series(lead, names, [page], count, name)
    return None


def _is_virtual(page: Page, count: int) -> bool:
    """Return whether a page is followed by the elements of others."""
    begin = start(page.directory, page.form)
    size = count * prod(page.form.shape) * page.form.itemsize
    return begin is not None and count > 1 and begin + size <= page.directory.source.size


# -- ImageJ -----------------------------------------------------------------------------


def _imagej(description: str, pages: Sequence[Page]) -> list[Series] | None:
    given = {}
    for line in description.splitlines()[:1000]:
        name, mark, value = line.partition("=")
        if mark:
            given[name.strip().lower()] = value.strip()
    dimensions = _of_imagej(given, pages)
    if dimensions is None:
        return None
    lead, axes = dimensions
    page, total = pages[0], prod(lead)
    same = [each for each in pages if each.form == page.form]
    if total == 1:
        series = Series(lead, axes, [page])
    elif len(same) >= total:
        series = Series(lead, axes, [*same[:total]])
    elif _is_virtual(page, total):
        series = Series(lead, axes, [page], total)
    else:
        return None
    _measure(series, given)
    return [series]


def _of_imagej(given: Mapping[str, str], pages: Sequence[Page]) -> tuple[tuple[int, ...], str] | None:
    """Return the dimensions before those of a page, and their axes; None if the description has none."""
    sizes = {axis: _count(given, name) for axis, name in (("t", "frames"), ("z", "slices"), ("c", "channels"))}
    images, form = _count(given, "images"), pages[0].form
    if min(*sizes.values(), images) < 1:
        return None
    if form.samples == sizes["c"] and sizes["c"] > 1 and images in (sizes["t"] * sizes["z"], prod(sizes.values())):
        sizes["c"] = 1  # samples that are counted as channels
    axes = _IMAGEJ.get(given.get("order", "czt").lower(), "tzc")
    lead = tuple(sizes[each] for each in axes)
    total = prod(lead)
    if images > total and images % total == 0:
        lead, axes = (images // total, *lead), "i" + axes
    elif total == 1 and len(pages) > 1:
        lead, axes = (len(pages),), "i"
    kept = [number for number, length in enumerate(lead) if length > 1]
    return tuple(lead[number] for number in kept), "".join(axes[number] for number in kept)


def _count(given: Mapping[str, str], name: str) -> int:
    text = given.get(name, "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _measure(series: Series, given: Mapping[str, str]) -> None:
    """Note how far pixels are apart."""
    unit = _UNITS.get(given.get("unit", ""), "")
    if not unit:
        return
    directory = series.first.directory
    for axis, tag in (("x", 282), ("y", 283)):
        numbers = directory.numbers(tag).tolist() if directory.count(tag) == 1 else []
        if len(numbers) == 2 and all(numbers):
            series.scale[axis], series.units[axis] = numbers[1] / numbers[0], unit
    with suppress(ValueError):
        spacing = abs(float(given.get("spacing", "")))
        if 0 < spacing < _FAR:
            series.scale["z"], series.units["z"] = spacing, unit


# -- Aperio -----------------------------------------------------------------------------


def _aperio(pages: Sequence[Page]) -> list[Series]:
    """Return the slide with its levels, which say by nothing but their size that they are levels; then the others."""
    slide = pages[0]
    others: list[Page] = []
    width = slide.form.width
    for page in pages[1:]:
        form = page.form
        is_level = form.is_tiled and form.kind == slide.form.kind and form.width < width
        ratio = (slide.form.width / form.width) / (slide.form.height / form.height)
        if is_level and 0.9 < ratio < 1.1:
            slide.levels.append((page.directory, form))
            width = form.width
        else:
            others.append(page)
    found = [Series((), "", [slide], name="slide")]
    for page in others:
        text = page.directory.text(_DESCRIPTION).lower() if page.directory.count(_DESCRIPTION) < _MOST_XML else ""
        lines = (text.splitlines() or ["", ""])[1:2] or [""]
        kind = next((name for name in ("label", "macro") if lines[0].startswith(name)), "thumbnail")
        found.append(Series((), "", [page], name=kind))
    return found


# -- OME --------------------------------------------------------------------------------


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _named(element: ET.Element, name: str) -> list[ET.Element]:
    return [each for each in element if _local(each) == name]


def _ome(text: str, pages: Sequence[Page], notes: list[str]) -> list[Series] | None:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        notes.append("the OME-XML declares entities, and is not read")
        return None
    try:
        root = ET.fromstring(text)  # noqa: S314 - without entities
    except (ET.ParseError, ValueError, RecursionError) as error:
        notes.append(f"the OME-XML cannot be read: {error}")
        return None
    by_number = {page.number: page for page in pages}
    found: list[Series] = []
    for image in _named(root, "Image"):
        title = image.get("Name") or image.get("ID") or f"image {len(found)}"
        for pixels in _named(image, "Pixels"):
            try:
                series = _ome_image(pixels, root.get("UUID"), by_number, title, notes)
            except (KeyError, ValueError, OverflowError) as error:
                notes.append(f"{title}: its OME-XML does not describe the pages: {type(error).__name__}: {error}")
                continue
            if series is not None:
                found.append(series)
    return found or None


def _ome_image(
    pixels: ET.Element, own: str | None, pages: dict[int, Page], title: str, notes: list[str]
) -> Series | None:
    axes = "".join(reversed(pixels.attrib["DimensionOrder"])).lower()
    if sorted(axes) != sorted("xyczt"):
        raise ValueError(f"an order of dimensions {axes!r}")
    sizes = {axis: int(pixels.attrib[f"Size{axis.upper()}"]) for axis in axes}
    channels = _named(pixels, "Channel")
    samples = int(channels[0].get("SamplesPerPixel", "1")) if channels else 1
    if samples > 1:
        sizes["c"] //= samples
    order = [axis for axis in axes if axis not in "xy"]
    lead = tuple(sizes[axis] for axis in order)
    if min(lead) < 1 or prod(lead) > _MOST_PLANES:
        raise ValueError(f"{prod(lead)} planes")
    placed, outside = _placed(pixels, own, pages, {axis: sizes[axis] for axis in order})
    if outside:
        notes.append(f"{title}: {outside} of its planes are in other files, which are not followed")
    shown = [page for page in placed if page is not None]
    if not shown:
        return None
    form = shown[0].form
    if any(page.form != form for page in shown):
        raise ValueError("its pages have different forms")
    if (form.height, form.width) != (sizes["y"], sizes["x"]):
        raise ValueError(f"pages of {form.height} by {form.width} pixels, expected {sizes['y']} by {sizes['x']}")
    missing = len(placed) - len(shown)
    if missing and not outside:
        notes.append(f"{title}: {missing} of {len(placed)} planes are not in the file, and read as the fill value")
    kept = [number for number, length in enumerate(lead) if length > 1]
    names = "".join(order[number] for number in kept)
    series = Series(tuple(lead[number] for number in kept), names, placed, name=title)
    _measure_ome(series, pixels)
    return series


def _placed(
    pixels: ET.Element, own: str | None, pages: dict[int, Page], sizes: Mapping[str, int]
) -> tuple[list[Page | None], int]:
    """Return the pages of an image in its order, and how many planes are in other files."""
    total, most = prod(sizes.values()), max(pages) + 1
    placed: list[Page | None] = [None] * total
    outside = 0
    listed = _named(pixels, "TiffData") or [ET.Element("TiffData")]
    for data in listed[: 4 * _MOST_PLANES]:
        uuid = next(iter(_named(data, "UUID")), None)
        if uuid is not None and own is not None and uuid.text is not None and uuid.text.strip() != own:
            outside += 1
            continue
        first = int(data.get("IFD", "0"))
        count = int(data.get("PlaneCount", data.get("NumPlanes", "1" if "IFD" in data.attrib else "0"))) or most
        at = 0
        for axis, length in sizes.items():
            where = int(data.get(f"First{axis.upper()}", "0"))
            if not 0 <= where < length:
                raise ValueError(f"a plane {where} of axis {axis}")
            at = at * length + where
        for number in range(min(count, most, total - at)):
            placed[at + number] = pages.get(first + number)
    return placed, outside


def _measure_ome(series: Series, pixels: ET.Element) -> None:
    """Note how far pixels and points of time are apart."""
    for axis in "xyz":
        size = float(pixels.get(f"PhysicalSize{axis.upper()}", "0"))
        if 0 < size < _FAR:
            series.scale[axis] = size
            unit = _UNITS.get(pixels.get(f"PhysicalSize{axis.upper()}Unit", "µm"), "")
            if unit:
                series.units[axis] = unit
    step = float(pixels.get("TimeIncrement", "0"))
    if 0 < step < _FAR:
        series.scale["t"] = step
        series.units["t"] = _UNITS.get(pixels.get("TimeIncrementUnit", "s"), "") or "second"

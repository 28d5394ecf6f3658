"""The meaning of an array's attributes for its picture: axes, coordinates, units, missing values, channels.

Read are the conventions of xarray and CF, of NCZarr, and of OME-Zarr. An attribute that is not as its convention wants
it counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from omnizarr.formats.conventions import Nodes, axes, display
from omnizarr.formats.conventions.ome import reading as ome
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON, ArrayMetadata, dimensions
from omnizarr.nodes.packing import Marks, Packing
from omnizarr.web.plain import plain

_COLOURS: Final = (3, 4)
"""Elements of the last dimension of a picture whose pixels are red, green, blue, and perhaps opaque."""
_SMALLEST_PICTURE: Final = 16


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of an array, as a page shows it.

    Attributes
    ----------
    name : str or None
    size : int
    role : {"x", "y", "z", "t", "c"} or None
    units : str or None
    coordinate : str or None
        Path of the array that has its labels.
    direction : {"up", "down"} or None
        Where its coordinates rise to in a picture.
    step, origin : float
        Of OME-Zarr: what is between two samples (None: not known), and where the first is.
    """

    name: str | None
    size: int
    role: axes.Role | None = None
    units: str | None = None
    coordinate: str | None = None
    step: float | None = None
    origin: float = 0.0
    direction: Literal["up", "down"] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        names = ("name", "size", "role", "units", "coordinate", "step", "origin", "direction")
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, slots=True)
class Image:
    """An image of OME-Zarr.

    Attributes
    ----------
    levels : sequence of (str, tuple of int)
        Path and shape of each resolution, the finest first.
    channels : sequence of mapping
        Label, colour and window of each.
    axes : sequence of (str, str or None, str or None)
        Name, type and unit of each.
    scale, translation : sequence of float
        Of the level that was asked for.
    """

    levels: Sequence[tuple[str, tuple[int, ...]]]
    channels: Sequence[Mapping[str, Any]] = ()
    axes: Sequence[tuple[str, str | None, str | None]] = ()
    scale: Sequence[float] = ()
    translation: Sequence[float] = field(default=())


def image_of(path: str, nodes: Nodes) -> Image | None:
    """Return the image that an array is a resolution of, or that a group holds; None if there is none."""
    if isinstance(nodes.get(path), ArrayMetadata):
        level = ome.level(path, nodes)
        return None if level is None else _image(level, nodes)
    found = next(iter(ome.images(path, nodes)), None)
    return None if found is None else _image(ome.Level(path, found, 0), nodes)


def _image(level: ome.Level, nodes: Nodes) -> Image:
    group, found, number = level
    datasets = ome.datasets(found)
    arrays = ome.arrays(group, found, nodes)
    levels = [
        (ome.resolve(group, dataset["path"]), array.shape)
        for dataset, array in zip(datasets, arrays, strict=True)
        if array is not None
    ]
    names = ome.axes(group, found, nodes) or ()
    dataset = datasets[number] if number < len(datasets) else {}
    scale, translation = display.placement(len(names), dataset, found) or ((), ())
    omero = ome.members(group, nodes).get("omero")
    channels = tuple(channel._asdict() for channel in display.channels(omero))
    return Image(levels, channels, tuple(_axes(names, found)), scale, translation)


def _axes(names: Sequence[str], image: Mapping[str, Any]) -> Iterator[tuple[str, str | None, str | None]]:
    listed = image.get("axes")
    for number, name in enumerate(names):
        axis = listed[number] if is_list(listed) and is_object(listed[number]) else {}
        yield name, _text(axis.get("type")) or ome.TYPES.get(name), _text(axis.get("unit"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


# -- dimensions -----------------------------------------------------------------------------


def dimensions_of(path: str, array: ArrayMetadata, nodes: Nodes, image: Image | None) -> list[Dimension]:
    """Describe each dimension of the array at a path."""
    if image is not None and len(image.axes) == len(array.shape):
        return list(_of_image(array, image))
    names = dimensions.names_of(array) or (None,) * len(array.shape)
    return [_of_name(path, names, number, size, nodes) for number, size in enumerate(array.shape)]


def _of_image(array: ArrayMetadata, image: Image) -> Iterator[Dimension]:
    for number, ((name, kind, unit), size) in enumerate(zip(image.axes, array.shape, strict=True)):
        step = image.scale[number] if image.scale else None
        origin = image.translation[number] if image.translation else 0.0
        yield Dimension(name, size, axes.role_of(name, kind=kind), unit, None, step, origin)


def _of_name(path: str, names: Sequence[str | None], number: int, size: int, nodes: Nodes) -> Dimension:
    name = names[number]
    found = None if not name else _coordinate(path, name, size, nodes)
    if found is None:
        return Dimension(name, size, axes.role_of(name, names=names))
    at, coordinate = found
    said = coordinate.attributes
    rises = axes.direction(name, said)
    return Dimension(name, size, axes.role_of(name, said, names=names), _text(said.get("units")), at, direction=rises)


def _coordinate(path: str, name: str, size: int, nodes: Nodes) -> tuple[str, ArrayMetadata] | None:
    """Return path and metadata of the array with the labels of a dimension: in the same group, or in one above."""
    group = path.rpartition("/")[0]
    while True:
        at = f"{group}/{name}" if group else name
        found = nodes.get(at) if "/" not in name else None
        if isinstance(found, ArrayMetadata) and found.shape == (size,):
            return (at, found) if at != path else None
        if not group:
            return None
        group = group.rpartition("/")[0]


def view_of(found: Sequence[Dimension], data_type: str) -> list[int]:
    """Return the dimensions to draw at first: of rows and columns for an image, one for a line, none for a table.

    >>> view_of([Dimension("time", 3, "t"), Dimension("lon", 5, "x"), Dimension("lat", 4, "y")], "float32")
    [2, 1]
    """
    kept = found
    if is_colours([each.size for each in found], data_type) and (found[-1].role == "c" or not found[-1].name):
        kept = found[:-1]
    return list(axes.picture([each.name for each in kept], [each.size for each in kept], lambda at: kept[at].role))


def is_colours(sizes: Sequence[int], data_type: str) -> bool:
    """Return whether the last dimension is red, green and blue: of a picture of bytes."""
    return (
        len(sizes) >= 3
        and data_type == "uint8"
        and sizes[-1] in _COLOURS
        and min(sizes[-3], sizes[-2]) >= _SMALLEST_PICTURE
    )


# -- values ---------------------------------------------------------------------------------


def packing_of(array: ArrayMetadata, image: Image | None) -> dict[str, Any]:
    """Return what attributes mean for stored values, as the page needs it to draw these.

    It is ``kind``, of the integers that the bits mean, if these are others than those of the data type; ``missing``,
    ``low`` and ``high``, the missing values and the smallest and largest valid one, of that kind; and ``scale`` and
    ``offset``.
    """
    found = Packing.of_array(array, fills=image is None)
    marks = (found.viewed if found.kind else found.marks) or Marks()
    missing = [value for value in (*marks.missing, marks.fill) if value is not None and value.dtype.kind != "c"]
    return {
        "kind": found.kind,
        "missing": list(dict.fromkeys(map(plain, missing))),
        "low": plain(marks.low),
        "high": plain(marks.high),
        "scale": 1.0 if found.scale_factor is None else float(found.scale_factor),
        "offset": 0.0 if found.add_offset is None else float(found.add_offset),
    }


def title_of(attributes: Mapping[str, JSON]) -> str | None:
    """Return the title of an array."""
    return _text(attributes.get("long_name")) or _text(attributes.get("standard_name"))

"""What documents say of the picture of an array: its dimensions, the image that it belongs to, coordinates beside it.

`show`, `view` and selections by name ask here, so they agree on names, units, coordinates and directions. The nodes may
be read when they are asked for: few are.

Spec: CF conventions, chapter 5, "Coordinate Systems and Domain"; OME-Zarr, "axes" and "coordinateTransformations".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from omnizarr.formats.conventions import axes, display, georeference, projections
from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.display import Channel
from omnizarr.formats.conventions.ome import reading as ome
from omnizarr.formats.conventions.ome import systems
from omnizarr.formats.conventions.ome.systems import Placement
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, dimensions

AUXILIARY: Final = "coordinates"
"""CF's attribute: names of arrays with coordinates that are not those of one dimension, separated by spaces."""

_MOST_ABOVE: Final = 3
"""Levels of an image are directly below its group, or a little deeper."""
_MOST_AUXILIARY: Final = 16


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of an array.

    Attributes
    ----------
    name : str or None
    size : int
    role : {"x", "y", "z", "t", "c"} or None
    units : str or None
    coordinate : str or None
        Path of the array that has its coordinates.
    step, origin : float
        Of OME-Zarr: what is between two samples (None: not known), and where the first is.
    direction : {"up", "down"} or None
        Where its coordinates rise to in a picture.
    """

    name: str | None
    size: int
    role: axes.Role | None = None
    units: str | None = None
    coordinate: str | None = None
    step: float | None = None
    origin: float = 0.0
    direction: Literal["up", "down"] | None = None


class Auxiliary(NamedTuple):
    """Coordinates along several dimensions of an array, or others than the own ones of a dimension.

    Attributes
    ----------
    name : str
    path : str
        Of the array that has them.
    dimensions : tuple of int
        For each of its dimensions, that of the array.
    role : {"x", "y", "z", "t", "c"} or None
        "x" of longitudes, "y" of latitudes.
    units : str or None
    """

    name: str
    path: str
    dimensions: tuple[int, ...]
    role: axes.Role | None
    units: str | None


class Image(NamedTuple):
    """An image of OME-Zarr, seen from one of its levels.

    Attributes
    ----------
    level : ome.Level
    channels : tuple of Channel
        As ``omero`` describes them.
    """

    level: ome.Level
    channels: tuple[Channel, ...]

    def paths(self) -> Iterator[str]:
        """Yield the paths of all levels, the finest first."""
        return (ome.resolve(self.level.group, dataset["path"]) for dataset in ome.datasets(self.level.image))

    def placement(self, ndim: int) -> Placement | None:
        """Return the positions of the samples of the level; None without a scale."""
        listed = ome.datasets(self.level.image)
        dataset = listed[self.level.number] if self.level.number < len(listed) else {}
        return systems.placement(ndim, dataset, self.level.image)

    def axes(self, ndim: int) -> Sequence[tuple[str | None, str | None, str | None]]:
        """Return name, type and unit of the axis of each dimension; None for what is not known."""
        listed = systems.axes(self.level.image)
        if listed is None and ome.is_early(self.level.image) and ndim == len(ome.FIRST_AXES):
            listed = ome.FIRST_AXES
        if not is_list(listed) or len(listed) != ndim:
            return ((None, None, None),) * ndim
        objects = [axis if is_object(axis) else {"name": axis} for axis in listed]
        found = [tuple(_text(axis.get(key)) for key in ("name", "type", "unit")) for axis in objects]
        return [(name, kind or ome.TYPES.get(name or ""), unit) for name, kind, unit in found]


def image_of(path: str, nodes: Nodes) -> Image | None:
    """Return the image that an array is a level of, or that a group holds; None if there is none."""
    if isinstance(nodes.get(path), GroupMetadata):
        found = next(iter(ome.images(path, nodes)), None)
        level = None if found is None else ome.Level(path, found, 0)
    else:
        level = ome.level(path, nodes, most_above=_MOST_ABOVE)
    if level is None:
        return None
    return Image(level, tuple(display.channels(ome.members(level.group, nodes).get("omero"))))


# -- dimensions --------------------------------------------------------------------------------------------------------


def names_of(array: ArrayMetadata, image: Image | None) -> tuple[str | None, ...]:
    """Return the names of the dimensions of an array: its own, else those of the image."""
    own = dimensions.names_of(array) or (None,) * len(array.shape)
    given = [] if image is None else [name for name, _, _ in image.axes(len(array.shape))]
    return tuple(name or other or None for name, other in zip(own, given or own, strict=True))


def dimensions_of(path: str, array: ArrayMetadata, nodes: Nodes, image: Image | None) -> tuple[Dimension, ...]:
    """Describe each dimension of the array at a path."""
    names = names_of(array, image)
    if image is not None:
        return tuple(_of_image(path, array, names, nodes, image))
    return tuple(_of_name(path, names, number, size, nodes) for number, size in enumerate(array.shape))


def rows_and_columns(
    array: ArrayMetadata, found: Sequence[Dimension], place: georeference.Georeference | None
) -> tuple[int, int] | None:
    """Return which dimensions of a map are y and x: those that its place names, or those with these roles."""
    own = dimensions.names_of(array) or ()
    names: Sequence[str | None] | None = (
        None if place is None or place.placement is None else place.placement.dimensions
    )
    if names is None:
        roles = {each.role: each.name for each in reversed(found)}
        names = roles.get("y"), roles.get("x")
    if not all(name and name in own for name in names) or names[0] == names[1]:
        return None
    return own.index(names[0]), own.index(names[1])


def on_earth(
    found: Sequence[Dimension], path: str, array: ArrayMetadata, nodes: Nodes
) -> tuple[Sequence[Dimension], georeference.Georeference | None]:
    """Return the dimensions of a map with the places that its attributes say, and what is known of its place.

    A transform gives places to dimensions without coordinates, unless the map is rotated. Nothing is known of arrays
    whose names do not tell which dimensions are y and x.
    """
    roles = {each.role: number for number, each in reversed(list(enumerate(found)))}
    is_map = len(found) > 1 and "y" in roles and "x" in roles and all(each.step is None for each in found)
    place = georeference.of(path, nodes) if is_map else None
    placement = None if place is None else place.placement
    if place is None or placement is None or placement.transform is None or placement.dimensions is None:
        return found, place
    transform = placement.transform
    if not transform.is_straight or not transform.is_invertible:
        return found, place
    lines = transform.lines(placement.registration)
    placed = list(found)
    for number, each in enumerate(found):
        if each.name not in placement.dimensions or each.coordinate is not None:
            continue
        is_row = each.name == placement.dimensions[0]
        start, step = lines[0 if is_row else 1]
        placed[number] = replace(
            each,
            role="y" if is_row else "x",
            units=projections.of_axis(place.crs, "Y" if is_row else "X").get("units"),
            step=step,
            origin=start,
            direction="up" if is_row else None,
        )
    return placed, place


def _of_image(
    path: str, array: ArrayMetadata, names: Sequence[str | None], nodes: Nodes, image: Image
) -> Iterator[Dimension]:
    ndim = len(array.shape)
    placement = image.placement(ndim)
    for number, (_, kind, unit) in enumerate(image.axes(ndim)):
        name, size = names[number], array.shape[number]
        step = (placement.scale[number] or None) if placement is not None else None
        origin = placement.translation[number] if placement is not None and step is not None else 0.0
        role = axes.role_of(name, kind=kind, names=names)
        # Samples in space are where OME-Zarr says. Times and names of channels are beside levels that have groups of
        # their own, as multiscale-spatial-image writes them.
        is_beside = role in ("t", "c") and size > 1 and path.rpartition("/")[0] != image.level.group
        is_placed = step is not None and (not is_beside or (role == "c" and image.channels))
        found = None if is_placed else coordinate_of(path, name, size, nodes, above=False)
        if found is not None:
            units = units_of(found[1].attributes)
            yield Dimension(name, size, role, units, found[0], step, origin)
        else:
            yield Dimension(name, size, role, unit if step is not None else None, None, step, origin)


def _of_name(path: str, names: Sequence[str | None], number: int, size: int, nodes: Nodes) -> Dimension:
    name = names[number]
    found = coordinate_of(path, name, size, nodes)
    if found is None:
        return Dimension(name, size, axes.role_of(name, names=names))
    at, coordinate = found
    said = coordinate.attributes
    rises = axes.direction(name, said)
    return Dimension(name, size, axes.role_of(name, said, names=names), units_of(said), at, direction=rises)


def coordinate_of(
    path: str, name: str | None, size: int, nodes: Nodes, *, above: bool = True
) -> tuple[str, ArrayMetadata] | None:
    """Return path and metadata of the array with the coordinates of a dimension; None if there is none.

    Parameters
    ----------
    path : str
        Of the array with the dimension. It has no coordinates of its own.
    name : str or None
        Of the dimension.
    size : int
    nodes : Nodes
    above : bool
        Whether groups above that of the array are asked, too, as in netCDF.
    """
    for at in _places(path, name or "", above=above):
        found = nodes.get(at)
        if isinstance(found, ArrayMetadata) and found.shape == (size,):
            return (at, found) if at != path else None
    return None


def _places(path: str, name: str, *, above: bool = True) -> Iterator[str]:
    """Yield where an array of this name can be: in the group of the array, and in those above."""
    if not name or "/" in name or name in {".", ".."} or not path:
        return
    group = path
    while group:
        group = group.rpartition("/")[0]
        yield f"{group}/{name}" if group else name
        if not above:
            return


def auxiliaries(path: str, array: ArrayMetadata, names: Sequence[str | None], nodes: Nodes) -> tuple[Auxiliary, ...]:
    """Return the coordinates that the attribute ``coordinates`` of an array, or of its group, names.

    Each has names of dimensions, and these are dimensions of the array, of the same lengths. Not among them are the
    coordinates of a dimension, and those without any.

    Examples
    --------
    >>> from omnizarr.formats.v3 import V3
    >>> def array(shape, names, **attributes):
    ...     grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
    ...     return V3.load({"zarr.json": {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "int8",
    ...         "chunk_grid": grid, "chunk_key_encoding": "default", "fill_value": 0, "codecs": ["bytes"],
    ...         "dimension_names": names, "attributes": attributes}})
    >>> t = array([3, 4, 5], ["time", "y", "x"], coordinates="lat time")
    >>> nodes = Nodes({"a/t": t, "a/lat": array([4, 5], ["y", "x"], units="degrees_north")})
    >>> auxiliaries("a/t", t, ("time", "y", "x"), nodes)
    (Auxiliary(name='lat', path='a/lat', dimensions=(1, 2), role='y', units='degrees_north'),)
    """
    listed: list[str] = []
    for node in (array, nodes.get(path.rpartition("/")[0]) if path else None):
        said = node.attributes.get(AUXILIARY) if node is not None else None
        listed += said.split() if isinstance(said, str) else []
    found = []
    for name in list(dict.fromkeys(listed))[:_MOST_AUXILIARY]:
        if name in names:
            continue
        for at in _places(path, name):
            node = nodes.get(at)
            if isinstance(node, ArrayMetadata):
                along = _dimensions_among(node, array.shape, names) if at != path else ()
                if along:
                    said = node.attributes
                    found.append(Auxiliary(name, at, along, axes.role_of(name, said), units_of(said)))
                break
    return tuple(found)


def _dimensions_among(node: ArrayMetadata, shape: Sequence[int], names: Sequence[str | None]) -> tuple[int, ...]:
    """Return which dimensions of an array those of another one are; none if one of them is no dimension of it."""
    own = dimensions.names_of(node) or ()
    known = {name: number for number, name in enumerate(names) if name}
    along = tuple(known[name] for name in own if name in known)
    fits = len(set(along)) == len(node.shape) and all(
        shape[k] == size for k, size in zip(along, node.shape, strict=True)
    )
    return along if fits else ()


def picture(found: Sequence[Dimension], *, is_bytes: bool) -> tuple[tuple[int, ...], int | None]:
    """Return the dimensions to draw at first, and the one of red, green and blue.

    The first are those of rows and columns for an image, one for a line, none for a table.

    Parameters
    ----------
    found : sequence of Dimension
    is_bytes : bool
        Whether elements are unsigned bytes.

    Examples
    --------
    >>> picture([Dimension("time", 3, "t"), Dimension("lon", 5, "x"), Dimension("lat", 4, "y")], is_bytes=False)
    ((2, 1), None)
    """
    names, sizes, roles = ([getattr(each, key) for each in found] for key in ("name", "size", "role"))
    colours = axes.colours(names, sizes, roles) if is_bytes else None
    kept = [number for number in range(len(found)) if number != colours]
    drawn = axes.picture([names[at] for at in kept], [sizes[at] for at in kept], lambda at: roles[kept[at]])
    return tuple(kept[at] for at in drawn), colours


def units_of(attributes: Mapping[str, JSON]) -> str | None:
    """Return the units of the values of an array."""
    return _text(attributes.get("units"))


def title_of(attributes: Mapping[str, JSON]) -> str | None:
    """Return the title of an array."""
    return _text(attributes.get("long_name")) or _text(attributes.get("standard_name"))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None

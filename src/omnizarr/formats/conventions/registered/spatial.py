"""``spatial:``: where the elements of arrays lie along two axes, y and x.

A group says it for the arrays directly below it. In a group with resolutions, each entry of ``layout`` can have a shape
and a transform of its own, which are those of the arrays of that resolution.

Spec: https://github.com/zarr-conventions/spatial, v0.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered import multiscales
from omnizarr.formats.conventions.registered.records import Checking, Known, lengths, numbers, texts, unchanged
from omnizarr.formats.reader import is_object
from omnizarr.model import JSON, ArrayMetadata, dimensions

DIMENSIONS: Final = "spatial:dimensions"
BBOX: Final = "spatial:bbox"
TYPE: Final = "spatial:transform_type"
TRANSFORM: Final = "spatial:transform"
SHAPE: Final = "spatial:shape"
REGISTRATION: Final = "spatial:registration"
_REGISTRATIONS: Final = ("pixel", "node")
_AFFINE: Final = "affine"
_CLOSE: Final = 0.1
"""How many elements bounds may differ: decimals are often cut, and registrations differ by half an element."""

SPATIAL: Final = Known(
    name="spatial",
    uuid="689b58e2-cf7b-45e0-9fff-9cfc0883d6b4",
    schema_url="https://raw.githubusercontent.com/zarr-conventions/spatial/refs/tags/v0.1/schema.json",
    spec_url="https://github.com/zarr-conventions/spatial/blob/v0.1/README.md",
    description="Spatial coordinate information",
    repositories=("zarr-conventions/spatial",),
    keys=(DIMENSIONS, BBOX, TYPE, TRANSFORM, SHAPE, REGISTRATION),
    nodes=("array", "group"),
    state="pilot",
)


class Affine(NamedTuple):
    """The transform from column and row to x and y: ``x = a*column + b*row + c``, ``y = d*column + e*row + f``."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    @property
    def is_invertible(self) -> bool:
        """Whether columns and rows follow from x and y."""
        return self.a * self.e - self.b * self.d != 0

    @property
    def is_straight(self) -> bool:
        """Whether x depends on the column alone, and y on the row."""
        return self.b == self.d == 0

    @property
    def resolution(self) -> tuple[float, float]:
        """Return the length of an element along x and y."""
        return ((self.a**2 + self.d**2) ** 0.5, (self.b**2 + self.e**2) ** 0.5)

    def at(self, column: float, row: float) -> tuple[float, float]:
        """Return x and y.

        >>> Affine(10, 0, 500, 0, -10, 900).at(2, 1)
        (520, 890)
        """
        return self.a * column + self.b * row + self.c, self.d * column + self.e * row + self.f

    def moved(self, by: float) -> Affine:
        """Return the transform that starts so many elements later, along columns and rows.

        >>> Affine(10, 0, 500, 0, -10, 900).moved(0.5)
        Affine(a=10, b=0, c=505.0, d=0, e=-10, f=895.0)
        """
        return self._replace(c=self.c + (self.a + self.b) * by, f=self.f + (self.d + self.e) * by)

    def bounds(self, height: int, width: int, registration: str = "pixel") -> tuple[float, float, float, float]:
        """Return the smallest x and y, and the largest: of edges of elements, or with "node" of their centres.

        >>> Affine(10, 0, 500, 0, -10, 900).bounds(4, 3)
        (500, 860, 530, 900)
        """
        less = 1 if registration == "node" else 0
        corners = [self.at(column, row) for column in (0, width - less) for row in (0, height - less)]
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return min(xs), min(ys), max(xs), max(ys)

    def lines(self, registration: str = "pixel") -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the centre of the first element and the step, along y and along x, of a transform that is straight.

        >>> Affine(10, 0, 500, 0, -10, 900).lines()
        ((895.0, -10), (505.0, 10))
        """
        half = 0.0 if registration == "node" else 0.5
        return (self.f + half * self.e, self.e), (self.c + half * self.a, self.a)

    def of_gdal(self) -> tuple[float, ...]:
        """Return GDAL's order of the six numbers."""
        return (self.c, self.a, self.b, self.f, self.d, self.e)


class Placement(NamedTuple):
    """What is known of where an array lies.

    Attributes
    ----------
    dimensions : (str, str) or None
        Names of the dimensions of y and x.
    transform : Affine or None
    shape : (int, int) or None
        Rows and columns.
    registration : str
        "pixel": the transform is that of corners of elements; "node": of their centres.
    bbox : tuple of float or None
        As the attributes say it.
    """

    dimensions: tuple[str, str] | None = None
    transform: Affine | None = None
    shape: tuple[int, int] | None = None
    registration: str = "pixel"
    bbox: tuple[float, float, float, float] | None = None

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """The bounds from transform and shape, else those of the attributes."""
        if self.transform is None or self.shape is None:
            return self.bbox
        return self.transform.bounds(*self.shape, self.registration)


def said_of(path: str, nodes: Nodes) -> dict[str, JSON]:
    """Return the attributes that hold for a node: its own, else those of its resolution, else those of its group."""
    node = nodes.get(path)
    found = _own(node.attributes) if node is not None else {}
    if not isinstance(node, ArrayMetadata):
        entries = multiscales.layout(node)
        return found if not entries or not is_object(entries[0]) else {**_own(entries[0]), **found}
    level = multiscales.level_of(path, nodes)
    above = nodes.get(path.rpartition("/")[0]) if path else None
    if level is not None:
        found = {**_own(level.entry), **found}
    if above is not None and (level is None or level.group != path.rpartition("/")[0]):
        found = {**_own(above.attributes), **found}
    if level is not None:
        listing = _own(nodes[level.group].attributes)
        kept = (DIMENSIONS, REGISTRATION, TYPE, BBOX)
        found = {**{key: listing[key] for key in kept if key in listing}, **found}
    return found


def placement_of(path: str, nodes: Nodes) -> Placement | None:
    """Return where an array lies, or the arrays of a group; None if no attribute says it, or not in this form."""
    said = said_of(path, nodes)
    if not said:
        return None
    node = nodes[path]
    names = texts(said.get(DIMENSIONS), 2)
    transform = transform_of(said)
    shape = None
    if isinstance(node, ArrayMetadata):
        shape = _lengths_of(node, names)
        if shape is None and path and not any(key in node.attributes for key in SPATIAL.keys):
            return None  # a coordinate, or another array that does not lie there
    else:
        shape = lengths(said.get(SHAPE), 2)  # type: ignore[assignment]
        if shape is None:
            shape = next((found for found in _shapes_in(path, names, nodes)), None)
    bbox: Any = numbers(said.get(BBOX), 4)
    registration = said.get(REGISTRATION, "pixel")
    return Placement(names, transform, shape, str(registration), bbox)  # type: ignore[arg-type]


def transform_of(said: Mapping[str, JSON]) -> Affine | None:
    """Return the transform that attributes say; None if they say none, or one of another type."""
    found = numbers(said.get(TRANSFORM), 6)
    return Affine(*found) if found is not None and said.get(TYPE, _AFFINE) == _AFFINE else None


def _own(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: attributes[key] for key in SPATIAL.keys if attributes.get(key) is not None}


def _lengths_of(array: ArrayMetadata, names: Sequence[str] | None) -> tuple[int, int] | None:
    """Return the rows and columns of an array; None if it has not both dimensions."""
    own = dimensions.names_of(array) or ()
    if names is None or not all(name in own for name in names):
        return None
    return array.shape[own.index(names[0])], array.shape[own.index(names[1])]


def _shapes_in(group: str, names: Sequence[str] | None, nodes: Nodes) -> Iterator[tuple[int, int]]:
    """Yield the rows and columns of the arrays of the first resolution of a group, or directly below it."""
    entries = multiscales.layout(nodes.get(group))
    there = multiscales.arrays(group, entries[0], nodes) if entries else nodes.arrays_in(group)
    for array in there.values():
        found = _lengths_of(array, names)
        if found is not None:
            yield found


def _recognise(path: str, nodes: Nodes) -> bool:
    return SPATIAL.is_used(nodes[path])


# -- what is wrong -----------------------------------------------------------------------------------------------------


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    node = nodes[path]
    at = Checking(SPATIAL, path, node, "spatial-invalid")
    yield from at.about()
    yield from _of_form(at, node.attributes, ())
    if isinstance(node, ArrayMetadata):
        yield from _of_array(at, node, nodes)
        return
    entries = multiscales.layout(node)
    for number, entry in enumerate(entries):
        if is_object(entry):
            yield from _of_form(at, entry, (multiscales.KEY, multiscales.LAYOUT, number))
            yield from _of_level(at, entry, number, nodes)
    yield from _of_group(at, nodes)


def _of_form(at: Checking, said: Mapping[str, Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yield the attributes of the wrong kind."""
    forms: dict[str, tuple[bool, str]] = {
        DIMENSIONS: (texts(said.get(DIMENSIONS), 2) is not None, "the names of two dimensions, y and x"),
        BBOX: (numbers(said.get(BBOX), 4) is not None, "four numbers: the smallest x and y, the largest x and y"),
        TYPE: (isinstance(said.get(TYPE), str), "a text"),
        SHAPE: (lengths(said.get(SHAPE), 2) is not None, "two lengths: rows and columns"),
        REGISTRATION: (said.get(REGISTRATION) in _REGISTRATIONS, " or ".join(_REGISTRATIONS)),
    }
    for key, (is_right, expected) in forms.items():
        if key in said and not is_right:
            yield at.fault((*below, key), "not in the form of the convention", said[key], expected)
    if said.get(TYPE, _AFFINE) != _AFFINE:
        if isinstance(said[TYPE], str):
            message = "a type of transforms that omnizarr does not know; the transform was not checked"
            yield at.fault((*below, TYPE), message, said[TYPE], _AFFINE, "convention-unknown")
    elif TRANSFORM in said:
        transform = transform_of(said)
        if transform is None:
            yield at.fault((*below, TRANSFORM), "not in the form of the convention", said[TRANSFORM], "six numbers")
        elif not transform.is_invertible:
            message = "the transform cannot be undone: it maps the elements onto a line or a point"
            yield at.fault((*below, TRANSFORM), message, list(transform), None, "spatial-transform")


def _of_array(at: Checking, array: ArrayMetadata, nodes: Nodes) -> Iterator[Fault]:
    said = said_of(at.path, nodes)
    if DIMENSIONS not in said:
        message = "the array does not say which of its dimensions are y and x"
        yield at.fault((DIMENSIONS,), message, None, "the names of two dimensions")
        return
    names, own = texts(said[DIMENSIONS], 2), dimensions.names_of(array)
    if names is None:
        return
    missing = [name for name in names if name not in (own or ())]
    if missing:
        place = (DIMENSIONS,) if DIMENSIONS in array.attributes else ()
        message = "the array has no such dimension"
        yield at.fault(place, message, missing[0], list(own or ()) or "dimension_names", "spatial-dimensions")
        return
    mine = _own(array.attributes)
    rows_columns = _lengths_of(array, names)
    if rows_columns is None:
        return
    shape = lengths(mine.get(SHAPE), 2)
    if shape is not None and shape != rows_columns:
        message = "the shape is not that of the array"
        yield at.fault((SHAPE,), message, list(shape), list(rows_columns), "spatial-shape")
    level = multiscales.level_of(at.path, nodes)
    if BBOX in mine or (TRANSFORM in mine and level is None):  # a coarse resolution may reach beyond the bounds of all
        yield from _of_bounds(at, said, rows_columns, (BBOX,) if BBOX in mine else (TRANSFORM,))
    listed, told = transform_of(level.entry) if level is not None else None, transform_of(mine)
    if listed is not None and told is not None and not _is_same(listed, told, rows_columns):
        message = "the group of the resolutions has another transform for this array"
        yield at.fault((TRANSFORM,), message, list(told), list(listed), "spatial-levels")


def _of_group(at: Checking, nodes: Nodes) -> Iterator[Fault]:
    """Yield where a group and the arrays that it describes disagree."""
    said = said_of(at.path, nodes)
    mine = _own(at.node.attributes)
    names = texts(said.get(DIMENSIONS), 2)
    entries = multiscales.layout(at.node)
    levels = [multiscales.arrays(at.path, entry, nodes) for entry in entries] or [nodes.arrays_in(at.path)]
    if names is None:
        return
    shapes = [[found for array in each.values() if (found := _lengths_of(array, names))] for each in levels]
    if any(levels) and not any(shapes) and DIMENSIONS in mine:
        message = "no array that the group describes has both dimensions"
        yield at.fault((DIMENSIONS,), message, list(names), None, "spatial-dimensions")
        return
    if not shapes[0]:
        return
    shape = lengths(mine.get(SHAPE), 2)
    inherited = [
        found
        for array in levels[0].values()
        if SHAPE not in array.attributes and (found := _lengths_of(array, names)) is not None
    ]
    if shape is not None and any(found != shape for found in inherited):
        wrong = next(found for found in inherited if found != shape)
        message = "the shape is not that of the arrays"
        yield at.fault((SHAPE,), message, list(shape), list(wrong), "spatial-shape")
    if BBOX in mine:
        yield from _of_bounds(at, said, shapes[0][0], (BBOX,))


def _of_bounds(
    at: Checking, said: Mapping[str, JSON], shape: tuple[int, int], place: tuple[str, ...]
) -> Iterator[Fault]:
    """Yield the bounds that are not those of transform and shape."""
    transform, bbox = transform_of(said), numbers(said.get(BBOX), 4)
    if transform is None or bbox is None or not transform.is_invertible:
        return
    bounds = transform.bounds(*shape, str(said.get(REGISTRATION, "pixel")))
    steps = (*transform.resolution, *transform.resolution)
    if any(abs(one - other) > _CLOSE * step for one, other, step in zip(bbox, bounds, steps, strict=True)):
        message = "the bounds are not those of the transform and of the shape"
        yield at.fault(place, message, list(bbox), [round(each, 9) for each in bounds], "spatial-bbox")


def _of_level(at: Checking, entry: Mapping[str, Any], number: int, nodes: Nodes) -> Iterator[Fault]:
    """Yield where a resolution and its arrays, or its source, disagree."""
    place = (multiscales.KEY, multiscales.LAYOUT, number)
    names = texts(at.node.attributes.get(DIMENSIONS), 2)
    shapes = {
        name: found
        for name, array in multiscales.arrays(at.path, entry, nodes).items()
        if (found := _lengths_of(array, names)) is not None
    }
    shape = lengths(entry.get(SHAPE), 2)
    wrong = [(name, found) for name, found in shapes.items() if shape is not None and found != shape]
    if wrong:
        message = f"the shape is not that of the array {wrong[0][0] or multiscales.asset_of(entry)!r}"
        yield at.fault((*place, SHAPE), message, list(shape or ()), list(wrong[0][1]), "spatial-shape")
    transform = transform_of(entry)
    source = next(
        (
            each
            for each in multiscales.layout(at.node)
            if is_object(each) and multiscales.asset_of(each) == entry.get("derived_from")
        ),
        None,
    )
    above = transform_of(source) if source is not None and "derived_from" in entry else None
    how = entry.get("transform")
    scale = numbers(how.get("scale")) if is_object(how) else None
    if (
        transform is None
        or above is None
        or scale is None
        or len(scale) < 2
        or min(scale) <= 0
        or not transform.is_invertible
    ):
        return
    own = next((dimensions.names_of(each) for each in multiscales.arrays(at.path, entry, nodes).values()), None) or ()
    at_y, at_x = (0, 1)
    if len(scale) != 2:
        if names is None or len(own) != len(scale) or not all(name in own for name in names):
            return
        at_y, at_x = own.index(names[0]), own.index(names[1])
    expected = tuple(step * factor for step, factor in zip(above.resolution, (scale[at_x], scale[at_y]), strict=True))
    if any(abs(one - other) > 0.01 * other for one, other in zip(transform.resolution, expected, strict=True)):
        message = "the elements of the transform are not those of the source, times the scale"
        steps = list(transform.resolution)
        yield at.fault((*place, TRANSFORM), message, steps, list(expected), "spatial-levels")
    elif at.node.attributes.get(REGISTRATION, "pixel") == "pixel" and not any(how.get("translation") or ()):  # type: ignore[union-attr]
        width, height = transform.resolution
        if abs(transform.c - above.c) > _CLOSE * width or abs(transform.f - above.f) > _CLOSE * height:
            message = "the resolution begins elsewhere than its source, without a translation"
            begins, wanted = [transform.c, transform.f], [above.c, above.f]
            yield at.fault((*place, TRANSFORM), message, begins, wanted, "spatial-levels")


def _is_same(one: Affine, other: Affine, shape: tuple[int, int]) -> bool:
    """Return whether two transforms place the corners of an array at the same points."""
    width, height = other.resolution
    return all(
        abs(one.at(column, row)[0] - other.at(column, row)[0]) <= _CLOSE * width
        and abs(one.at(column, row)[1] - other.at(column, row)[1]) <= _CLOSE * height
        for column in (0, shape[1])
        for row in (0, shape[0])
    )


CONVENTION: Final = Convention(
    name="spatial",
    title="spatial:",
    spec=SPATIAL.spec_url,
    attributes=frozenset(SPATIAL.keys),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)

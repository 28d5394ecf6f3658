"""Which dimensions of an array are the rows and columns of its picture: by their names, and by CF's attributes.

Spec: CF conventions, chapter 4, "Coordinate Types"; OME-Zarr, "axes".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

Role: TypeAlias = Literal["x", "y", "z", "t", "c"]
"""What a dimension is to a picture: columns, rows, height or depth, time, channels."""

PAIRS: Final = (
    ("y", "x"),
    ("lat", "lon"),
    ("latitude", "longitude"),
    ("nav_lat", "nav_lon"),
    ("rlat", "rlon"),
    ("nlat", "nlon"),
    ("northing", "easting"),
    ("south_north", "west_east"),
    ("south_north_stag", "west_east_stag"),
    ("south_north", "west_east_stag"),
    ("south_north_stag", "west_east"),
    ("eta_rho", "xi_rho"),
    ("eta_u", "xi_u"),
    ("eta_v", "xi_v"),
    ("yc", "xc"),
    ("yg", "xg"),
    ("yh", "xh"),
    ("yq", "xq"),
    ("nj", "ni"),
    ("j", "i"),
    ("row", "column"),
    ("row", "col"),
    ("rows", "columns"),
    ("height", "width"),
)
"""Names of rows and columns, as programs write them, in small letters."""
_UPWARDS: Final = frozenset(
    {"lat", "latitude", "rlat", "nav_lat", "north", "northing", "y", "yc", "height", "altitude", "elevation"}
)
"""Dimensions whose coordinates rise upwards in a picture."""
_DOWNWARDS: Final = frozenset(
    {"depth", "deptht", "depthu", "depthv", "depthw", "plev", "pressure", "pressure_level", "isobaric"}
)
_PRESSURES: Final = frozenset(
    {"Pa", "hPa", "kPa", "mbar", "millibar", "millibars", "bar", "dbar", "decibar", "decibars"}
)
"""Units of vertical coordinates that rise downwards without saying so; CF, section 4.3."""

_NAMES: Final[Mapping[str, Role]] = {
    **dict.fromkeys((columns for _, columns in PAIRS), "x"),
    **dict.fromkeys((rows for rows, _ in PAIRS), "y"),
    **dict.fromkeys(("z", "lev", "level", "levels", "plev", "depth", "deptht", "depthu", "depthv", "depthw"), "z"),
    **dict.fromkeys(("nav_lev", "bottom_top", "bottom_top_stag", "s_rho", "s_w", "altitude", "pressure"), "z"),
    **dict.fromkeys(("pressure_level", "height"), "z"),
    **dict.fromkeys(("t", "time", "time_counter", "valid_time", "ocean_time"), "t"),
    **dict.fromkeys(("c", "channel", "channels", "rgb", "rgba", "band", "bands", "color", "colour"), "c"),
}
_STANDARD: Final[Mapping[str, Role]] = {
    "longitude": "x",
    "grid_longitude": "x",
    "projection_x_coordinate": "x",
    "latitude": "y",
    "grid_latitude": "y",
    "projection_y_coordinate": "y",
    "time": "t",
}
_UNITS: Final[Mapping[str, Role]] = {
    **dict.fromkeys(("degrees_east", "degree_east"), "x"),
    **dict.fromkeys(("degrees_north", "degree_north"), "y"),
}
_AXES: Final[Mapping[str, Role]] = {"x": "x", "y": "y", "z": "z", "t": "t"}
_TYPES: Final[Mapping[str, Role]] = {"time": "t", "channel": "c"}

_COLOURS: Final = (3, 4)
"""Elements along a dimension of red, green, blue, and perhaps how opaque they are."""
_OPAQUE: Final = "rgba"
_SMALLEST_PICTURE: Final = 16
"""Rows and columns from which bytes without names are a picture."""


def role_of(
    name: str | None,
    attributes: Mapping[str, Any] | None = None,
    *,
    kind: str | None = None,
    names: Iterable[str | None] = (),
) -> Role | None:
    """Return what a dimension is to a picture; None if nothing tells.

    Parameters
    ----------
    name : str or None
    attributes : mapping, optional
        Those of the array with its coordinates.
    kind : str, optional
        The type of an axis of OME-Zarr.
    names : iterable of str or None
        Those of all dimensions: beside "width", "height" is that of an image.

    Examples
    --------
    >>> role_of("rlon"), role_of("eastward", {"axis": "X"}), role_of("n", {"units": "days since 2000-01-01"})
    ('x', 'x', 't')
    """
    texts = {key: value for key, value in (attributes or {}).items() if isinstance(value, str)}
    units = texts.get("units", "")
    is_tall = name is not None and name.lower() == "height" and any((other or "").lower() == "width" for other in names)
    return (
        _TYPES.get(kind or "")
        or _AXES.get(texts.get("axis", "").lower())
        or _STANDARD.get(texts.get("standard_name", ""))
        or ("t" if " since " in units else _UNITS.get(units))
        or ("z" if texts.get("positive", "").lower() in {"up", "down"} else None)
        or ("y" if is_tall else _NAMES.get((name or "").lower()))
    )


def direction(name: str | None, attributes: Mapping[str, Any] | None = None) -> Literal["up", "down"] | None:
    """Return where the coordinates of a dimension rise to, if it goes up and down in a picture; None: not known.

    The attribute ``positive`` tells, then whether they are latitudes, projected y, or pressures, then the name.

    Parameters
    ----------
    name : str or None
    attributes : mapping, optional
        Those of the array with its coordinates.

    Examples
    --------
    >>> direction("lev", {"positive": "down"}), direction("n", {"units": "degrees_north"}), direction("x")
    ('down', 'up', None)
    """
    texts = {key: value for key, value in (attributes or {}).items() if isinstance(value, str)}
    positive = texts.get("positive", "").lower()
    if positive in ("up", "down"):
        return "up" if positive == "up" else "down"
    if texts.get("units") in _PRESSURES:
        return "down"
    is_y = _STANDARD.get(texts.get("standard_name", "")) == "y" or _UNITS.get(texts.get("units", "")) == "y"
    called = (name or "").lower()
    if is_y or called in _UPWARDS or texts.get("axis", "").lower() == "y":
        return "up"
    return "down" if called in _DOWNWARDS else None


def is_upside_down(rises: Literal["up", "down"] | None, first: float, last: float) -> bool:
    """Return whether rows belong in a picture from the bottom to the top, by the first and last coordinate.

    >>> is_upside_down("up", -90, 90), is_upside_down("down", 0, 5000), is_upside_down("down", 1000, 10)
    (True, False, True)
    """
    return first < last if rises == "up" else first > last if rises == "down" else False


def picture(
    names: Sequence[str | None], sizes: Sequence[int], role: Callable[[int], Role | None] | None = None
) -> tuple[int, ...]:
    """Return the dimensions of a picture: rows and columns, one for a line, none for a single value.

    Names that belong together decide. Otherwise the roles of dimensions do, for which coordinates may have to be read:
    a picture without rows has depth or height for them. At last come the last two dimensions that are longer than 1
    and are neither time nor channels.

    Parameters
    ----------
    names : sequence of str or None
    sizes : sequence of int
    role : callable, optional
        Returns the role of a dimension, by its number; by default that of its name.

    Examples
    --------
    >>> picture(("rlat", "rlon", "level"), (5, 6, 7)), picture(("lon", "level"), (6, 7))
    ((0, 1), (1, 0))
    >>> picture((None, None, None), (5, 6, 1))
    (0, 1)
    """
    if len(names) < 2:
        return tuple(range(len(names)))
    called = {(name or "").lower(): number for number, name in enumerate(names)}
    for rows, columns in PAIRS:
        if rows in called and columns in called:
            return called[rows], called[columns]
    roles = [role_of(names[number]) if role is None else role(number) for number in range(len(names))]
    first = {kind: number for number, kind in reversed(list(enumerate(roles)))}
    rows_at = first.get("y", first.get("z"))
    if "x" in first and rows_at is not None:
        return rows_at, first["x"]
    wide = [number for number, size in enumerate(sizes) if size != 1 and roles[number] not in ("t", "c")]
    rest = [number for number in range(len(names)) if number not in wide]
    low, high = sorted((rest + wide)[-2:])
    return low, high


def colours(
    names: Sequence[str | None],
    sizes: Sequence[int],
    roles: Sequence[Role | None],
    lengths: Sequence[int] | None = None,
) -> int | None:
    """Return the dimension of red, green and blue of bytes; None if there is none.

    It is one of channels, of length 3, or 4 if it is the last one or called "rgba"; or the last one, if it has no name,
    and 3 or 4 elements beside at least 16 rows and columns.

    Parameters
    ----------
    names : sequence of str or None
        Of at least three dimensions.
    sizes : sequence of int
    roles : sequence of {"x", "y", "z", "t", "c"} or None
    lengths : sequence of int, optional
        How many elements along each dimension are selected; by default all.

    Examples
    --------
    >>> colours((None, None, None), (512, 512, 3), (None, None, None))
    2
    >>> colours(("c", "y", "x"), (3, 5, 6), ("c", "y", "x")), colours((None, None, None), (5, 6, 3), (None,) * 3)
    (0, None)
    """
    lengths, last = lengths or sizes, len(sizes) - 1
    if last < 2:
        return None
    for number, (name, role, length) in enumerate(zip(names, roles, lengths, strict=True)):
        if role == "c" and length in _COLOURS[: 2 if number == last or (name or "").lower() == _OPAQUE else 1]:
            return number
    is_picture = min(sizes[-3:-1]) >= _SMALLEST_PICTURE
    return last if not names[last] and lengths[last] in _COLOURS and is_picture and roles[last] is None else None

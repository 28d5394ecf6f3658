"""What is known of a codec besides how it runs: its names, its parameters, who reads it, and what replaces it.

Each module of a codec ends in one `Record` per codec, in its tuple ``CODECS``. `omnizarr.codecs.registry` finds them by
name, and imports a module at first use. All other tables of codecs, that of the manual included, are made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from omnizarr.errors import CodecError
from omnizarr.model import JSON, Named

Kind: TypeAlias = Literal["array to array", "array to bytes", "bytes to bytes", "array or bytes"]
"""The kind of a codec; "array or bytes" if it is known only after binding."""

Bind: TypeAlias = Callable[[Any, Any], Any]
"""A function of configuration and decoded representation. See `omnizarr.codecs.contract`."""

Parameters: TypeAlias = Mapping[str, Any]

A2A: Final = "array to array"
A2B: Final = "array to bytes"
B2B: Final = "bytes to bytes"

READERS: Final = ("zarr-python", "TensorStore", "zarrs")
"""Programs with which reading was tried."""
ALL: Final = frozenset(READERS)
MOST: Final = frozenset({"zarr-python", "zarrs"})
ONE: Final = frozenset({"zarr-python"})
NONE: Final[frozenset[str]] = frozenset()

NUMCODECS: Final = "numcodecs."
"""Prefix of the names of numcodecs' codecs in documents of v3."""
_UINT32: Final = 2**32
# A configuration can contain any text: show only as much as fits in a line.
_LONGEST: Final = 60


class Name(NamedTuple):
    """A name of a codec in documents of v3."""

    bind: Bind
    readers: frozenset[str] | None = None
    """Which of `READERS` read it; None if this was not tried."""
    status: Literal["core", "registered", ""] = ""
    """Whether the core specification has the name, or the registry zarr-extensions."""
    required: tuple[str, ...] = ()
    """Parameters that other readers require, although decoding does not need them. For ``numcodecs.*`` in v2 only."""


class Filter(NamedTuple):
    """A codec as a filter of HDF5."""

    number: int
    length: int
    """Number of parameters that a user passes."""
    load: Callable[[tuple[int, ...], int], dict[str, JSON]]
    """Returns the configuration of numcodecs from the parameters and the item size."""
    dump: Callable[[Parameters], tuple[int, ...]]
    """Returns the parameters from the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A codec.

    A function of ``replaced_by`` takes the configuration and the item size, which is 0 if a chunk is too large for
    Blosc. It returns None to leave the codec out.
    """

    id: str
    """Name in numcodecs and Zarr v2; of others in v3."""
    kind: Kind
    names: Mapping[str, Name]
    """Names in v3."""
    parameters: Mapping[str, type] = field(default_factory=dict)
    """Parameters of the configuration, and their types in JSON; ``object`` for more than one."""
    v2: str | None = None
    """Text of the manual about Zarr v2, if that is not the id."""
    note: str = ""
    """Text of the manual about decoding, or about the package that runs it."""
    package: tuple[str, str] | None = None
    """A package that it needs, and the extra of omnizarr that installs this package."""
    is_compiled: bool = False
    """Whether it needs numcodecs or the native engine."""
    native: bool = False
    """Whether the native engine has it."""
    compresses: bool = False
    only_reads: bool = False
    """Whether only files of another format have it: a conversion to Zarr writes others."""
    words: str | Callable[[Parameters], str] | None = None
    """What it does, in a listing; None: its name and configuration."""
    decodes_with: Parameters | None = None
    """A configuration that decodes what any other has encoded; None if there is none."""
    defaults: Parameters = field(default_factory=dict)
    """Values of missing parameters, if decoding depends on them."""
    is_inexact: bool | Callable[[Parameters], bool] = False
    """Whether values that were decoded may be stored as others when they are encoded again."""
    memory_type: str | None = None
    """The parameter with the type as which it sees the memory of an array."""
    result_type: Callable[[Parameters], Any] = lambda _: None
    """Returns the dtype of the filtered elements; None: that of the elements before."""
    from_v2: Callable[[Parameters, int], Named | None] = lambda _parameters, _item_size: None
    """Returns the codec of v3 with the same bytes, from the parameters and the item size; None if there is none."""
    to_v2: Callable[[Parameters], dict[str, JSON] | None] | None = None
    """Returns the parameters in v2, None if there are none; without the function they are those of v3."""
    remedy: str | None = None
    """What to do about a codec that v2 does not have."""
    hdf5: Filter | None = None
    in_blosc: Callable[[Parameters], tuple[str, int]] | None = None
    """Returns the related compressor within Blosc, and its level."""
    replaced_by: Callable[[Parameters, int], Named | None] | None = None
    """Returns the codec of v3 that most programs read; without the function, it is the codec itself."""

    def has(self, parameter: str, *types: type) -> bool:
        """Return whether it has a parameter of one of these types."""
        return self.parameters.get(parameter) in types


def integer(parameters: Parameters, name: str, default: int) -> int:
    """Return an integer parameter; the default if it is missing or something else."""
    value = parameters.get(name, default)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return default


def between(what: str, value: int, low: int, high: int) -> int:
    """Return an integer. Raises CodecError if it is out of range."""
    if not low <= value <= high:
        raise CodecError(f"{what} is out of range", found=value, expected=f"{low} to {high}")
    return value


def filter_of_level(number: int, codec: str, low: int, high: int) -> Filter:
    """Return a filter with one parameter, a level. Negative levels become HDF5's unsigned numbers."""

    def load(parameters: tuple[int, ...], _item_size: int) -> dict[str, JSON]:
        level = parameters[0] - _UINT32 if parameters[0] >= _UINT32 // 2 else parameters[0]
        between(f"the level of {codec}", level, low, high)
        return {"level": parameters[0]}  # netCDF-C reads no negative number

    return Filter(number, 1, load, lambda given: (integer(given, "level", 1) % _UINT32,))


def plain(name: str) -> dict[str, Any]:
    """Return the fields of a codec without parameters, which v2 and v3 have under one name."""
    return {
        "from_v2": lambda parameters, _: None if parameters else Named(name),
        "to_v2": lambda parameters: None if parameters else {},
    }


def zstandard(level: int) -> Named:
    """Return the compressor of v3 that replaces those that few programs read."""
    return Named("zstd", {"level": level, "checksum": False})


STRONG: Final[dict[str, Any]] = {
    "in_blosc": lambda _given: ("zstd", 5),
    "replaced_by": lambda _given, _item_size: zstandard(9),
}
"""The fields of a slow and strong compressor. Levels within Blosc are twice as far apart."""


def brief(value: object) -> str:
    """Return a parameter, shortened."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def with_level(name: str, key: str = "level") -> Callable[[Parameters], str]:
    """Return the words for a compressor with a level.

    >>> with_level("bzip2")({"level": 9})
    'bzip2 level 9'
    """
    return lambda parameters: f"{name} level {brief(parameters[key])}" if key in parameters else name

"""Arrays with steps, computed tile by tile: a page draws any array at any scale from tiles of the size of its screen.

A tile array is a Zarr v3 array whose elements are every n-th of another one. Its chunks are tiles along the one or two
dimensions that are drawn, and single elements along all others. A tile is one strided selection.

Where steps are large a tile can need very many chunks of the array. Then it is thinned: fewer elements are
read, and each represents its neighbours, except those in missing chunks, which have the fill value. Elements
without steps are always those of the array.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ChunkError, NotRepresentableError, SelectionError
from omnizarr.model import UNDEFINED, ArrayMetadata, Named, datatypes, thawed
from omnizarr.model.datatypes.optional import VALID, VALUE, is_optional
from omnizarr.nodes import info
from omnizarr.nodes.array import Array
from omnizarr.web.drawn import shown_as
from omnizarr.web.plain import floats_of
from omnizarr.web.stopping import Stop, StoppedError, never

DOCUMENT: Final = "zarr.json"

_SIDE: Final = 256
"""Approximate number of elements along each side of a tile."""
_LINE: Final = 65_536
"""Elements of a tile of one dimension."""
_MOST_DECODED: Final = 2**30
"""Maximum bytes of decoded chunks for a tile with steps."""
_MOST_AT_ONCE: Final = 2**27
"""Bytes of decoded chunks between two checks whether the client still waits."""
_MOST_BROKEN: Final = 64
"""Parts of a tile that are reported separately when they are broken."""
_MOST_DRAWN: Final = 2
_DRAWN: Final = Named("float64")
_LONGEST_STRIDE: Final = 2**62

_parse = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,19})*)(?:-([0-9]{1,4}(?:[.,][0-9]{1,4})*))?").fullmatch


class Steps(NamedTuple):
    """The part of an array that a tile array shows.

    Attributes
    ----------
    strides : tuple of int
        For each dimension.
    drawn : tuple of int or None
        The dimensions that tiles extend along; None: the last two.
    """

    strides: tuple[int, ...]
    drawn: tuple[int, ...] | None = None

    @classmethod
    def of(cls, text: str) -> Steps:
        """Parse the URL of a tile array.

        >>> Steps.of("1.4.4-1,2")
        Steps(strides=(1, 4, 4), drawn=(1, 2))

        Raises
        ------
        SelectionError
            If it says something else.
        """
        found = _parse(text)
        if found is None:
            raise SelectionError("no steps of a tile array", found=text, expected="strides as in 1.4.4, or 1.4.4-1,2")
        drawn = None if found[2] is None else tuple(map(int, re.split("[.,]", found[2])))
        return cls(tuple(map(int, found[1].split("."))), drawn)


class Stored(NamedTuple):
    """Which chunks (shards) of an array are stored.

    Attributes
    ----------
    chunk_shape : sequence of int
    coords : set of tuple of int
    """

    chunk_shape: Sequence[int]
    coords: AbstractSet[tuple[int, ...]]


class Tile(NamedTuple):
    """A chunk of a tile array.

    Attributes
    ----------
    data : bytes
    thinning : int
        How many elements, along the dimension where it is most, each element that was read represents; 1: itself.
    broken : tuple of Broken
        Parts that could not be read, if these were to be left out.
    """

    data: bytes
    thinning: int
    broken: tuple[Broken, ...] = ()


class Broken(NamedTuple):
    """A part of a tile that could not be read: its elements have the fill value.

    Attributes
    ----------
    box : tuple of (int, int)
        Start and end of the part within the tile, along each dimension that is drawn, in their order.
    error : ChunkError
        What the first broken chunk in it raised.
    """

    box: tuple[tuple[int, int], ...]
    error: ChunkError


@dataclass(frozen=True, eq=False)
class TileArray:
    """An array with steps, as a Zarr v3 array whose chunks are computed.

    Parameters
    ----------
    array : Array
    steps : Steps
    stored : callable, optional
        Returns which chunks are stored, or None if that is not known; asked when a tile is thinned.

    Raises
    ------
    SelectionError
        If the steps do not fit the array.
    NotRepresentableError
        If its elements are no numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, data=np.arange(12, dtype="int16").reshape(3, 4))
    >>> tiles = TileArray(array, Steps((2, 2)))
    >>> tiles.shape
    (2, 2)
    >>> np.frombuffer(tiles.tile((0, 0)).data, "<i2")
    array([ 0,  2,  8, 10], dtype=int16)
    """

    array: Array
    steps: Steps
    stored: Callable[[], Stored | None] = lambda: None

    def __post_init__(self) -> None:
        strides, ndim, path = self.steps.strides, self.array.ndim, self.array.path
        if shown_as(self.array) == "table":
            raise NotRepresentableError("tiles contain only numbers", path=path, found=str(self.array.dtype))
        if not ndim:
            raise SelectionError("an array without dimensions has no tiles", path=path)
        if len(strides) != ndim or not all(0 < stride < _LONGEST_STRIDE for stride in strides):
            expected = f"{ndim} numbers from 1"
            raise SelectionError("strides that do not fit the array", path=path, found=strides, expected=expected)
        drawn = self.drawn
        if not 0 < len(set(drawn)) == len(drawn) <= _MOST_DRAWN or max(drawn) >= ndim:
            expected = f"one or two dimensions below {ndim}"
            raise SelectionError("no dimensions to draw", path=path, found=drawn, expected=expected)

    @property
    def drawn(self) -> tuple[int, ...]:
        """The dimensions that tiles extend along."""
        drawn = self.steps.drawn
        return tuple(range(self.array.ndim))[-_MOST_DRAWN:] if drawn is None else drawn

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension."""
        return tuple(-(-size // stride) for size, stride in zip(self.array.shape, self.steps.strides, strict=True))

    @cached_property
    def tile_shape(self) -> tuple[int, ...]:
        """The shape of a tile: one that fits the chunks of the array, so that few tiles need the same chunk."""
        chunks = self._chunks or (0,) * self.array.ndim
        wanted = _SIDE if len(self.drawn) > 1 else _LINE
        return tuple(
            min(max(size, 1), side_of(chunk, stride, wanted)) if dimension in self.drawn else 1
            for dimension, (size, chunk, stride) in enumerate(zip(self.shape, chunks, self.steps.strides, strict=True))
        )

    @cached_property
    def _facts(self) -> info.ArrayFacts:
        return info.of_array(self.array.store_path, self._metadata)

    @property
    def _chunks(self) -> tuple[int, ...] | None:
        return self._facts.chunks

    @property
    def _metadata(self) -> ArrayMetadata:
        return self.array._metadata  # noqa: SLF001 - `metadata` would copy all attributes

    @cached_property
    def _data_type(self) -> datatypes.DataType:
        return datatypes.bind(self._metadata.data_type, self._metadata.byte_order)

    @property
    def _is_optional(self) -> bool:
        """Whether elements can be missing: they become numbers, and NaN."""
        return is_optional(self._data_type.dtype)

    @cached_property
    def _fill_value(self) -> Any:
        if self._is_optional:
            return np.float64(np.nan)
        fill = self._metadata.fill_value
        return self._data_type.fill_from_json(None if fill is UNDEFINED else fill)

    def document(self) -> bytes:
        """Return the document ``zarr.json``."""
        named = _DRAWN if self._is_optional else self._metadata.data_type
        data_type: Any = named.name
        if named.configuration:
            data_type = {"name": named.name, "configuration": thawed(named.configuration)}
        names = self._facts.dimension_names
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.tile_shape}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": "NaN" if self._is_optional else thawed(self._data_type.fill_to_json(self._fill_value)),
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": {},
            **({} if names is None else {"dimension_names": names}),
        }
        return json.dumps(document).encode()

    def coords_of(self, key: str) -> tuple[int, ...] | None:
        """Return the coordinates of a tile; None if there is no such tile.

        >>> import omnizarr
        >>> tiles = TileArray(omnizarr.create_array({}, shape=(600, 4), dtype="int8"), Steps((1, 1)))
        >>> tiles.coords_of("c/1/0"), tiles.coords_of("c/1/1")
        ((1, 0), None)
        """
        head, *parts = key.split("/")
        if (
            head != "c"
            or len(parts) != len(self.shape)
            or not all(re.fullmatch("0|[1-9][0-9]{0,18}", n) for n in parts)
        ):
            return None
        coords = tuple(map(int, parts))
        inside = zip(coords, self.tile_shape, self.shape, strict=True)
        return coords if all(number * side < size for number, side, size in inside) else None

    def tile(self, coords: Sequence[int], stop: Stop = never, *, marks: bool = False) -> Tile:
        """Return a tile: elements in C order, little-endian; past the edge of the array the fill value.

        Parameters
        ----------
        coords : sequence of int
        stop : callable, optional
            Asked again and again whether to stop.
        marks : bool
            Leave out the chunks that are broken, and say where they are.

        Raises
        ------
        StoppedError
            If it was to be stopped.
        ChunkError
            If a chunk is broken, and not to be left out.
        """
        places = [
            range(number * side, min((number + 1) * side, size))
            for number, side, size in zip(coords, self.tile_shape, self.shape, strict=True)
        ]
        thinning = [1] * len(places)
        steps = [dimension for dimension in self.drawn if self.steps.strides[dimension] > 1]
        while steps and self._cost(places, thinning) > _MOST_DECODED:
            widest = max(steps, key=lambda dimension: len(places[dimension]) // thinning[dimension])
            if thinning[widest] >= len(places[widest]):
                break
            thinning[widest] *= 2
        dtype = np.dtype(np.float64) if self._is_optional else self._data_type.dtype
        values = np.full(self.tile_shape, self._fill_value, dtype)
        broken: list[Broken] = []
        pending = list(self._parts(places, thinning))[::-1]
        while pending:
            if stop():
                raise StoppedError
            part = pending.pop()
            box = [(run[0] - place[0], run[-1] + 1 - place[0]) for run, place in zip(part, places, strict=True)]
            try:
                values[tuple(itertools.starmap(slice, box))] = self._read(part, thinning)
            except ChunkError as error:
                if not marks:
                    raise
                halves = self._halves(part, thinning) if len(broken) < _MOST_BROKEN else None
                if halves is None:
                    broken.append(Broken(tuple(box[dimension] for dimension in sorted(self.drawn)), error))
                else:
                    pending += reversed(halves)
        stored = self.stored() if max(thinning) > 1 else None
        if stored is not None:
            values[tuple(slice(len(place)) for place in places)][self._missing(places, stored)] = self._fill_value
        if dtype.byteorder == ">" or (dtype.byteorder == "=" and not np.little_endian):
            values = values.astype(dtype.newbyteorder("<"))
        return Tile(values.tobytes(), max(thinning), tuple(broken))

    def _read(self, places: Sequence[range], thinning: Sequence[int]) -> NDArray[Any]:
        """Return the elements at some places of the tile array."""
        selection = []
        for place, thin, stride in zip(places, thinning, self.steps.strides, strict=True):
            selection.append(slice(place[0] * stride, place[-1] * stride + 1, thin * stride))
        if self._is_optional:
            records = self.array.get_basic_selection(tuple(selection), fields=[VALID, VALUE])
            values: NDArray[Any] = floats_of(np.asarray(records))
        else:
            values = np.asarray(self.array[tuple(selection)])
        for dimension, (thin, place) in enumerate(zip(thinning, places, strict=True)):
            if thin > 1:
                values = values.repeat(thin, dimension).take(range(len(place)), dimension)
        return values

    def _missing(self, places: Sequence[range], stored: Stored) -> NDArray[np.bool_]:
        """Return which elements at these places of the tile array are in missing chunks."""
        numbers, runs = [], []
        for place, stride, size in zip(places, self.steps.strides, stored.chunk_shape, strict=True):
            chunks = [index * stride // size for index in place]
            numbers.append(list(dict.fromkeys(chunks)))  # in rising order
            at = {number: position for position, number in enumerate(numbers[-1])}
            runs.append([at[number] for number in chunks])
        are_missing = [coords not in stored.coords for coords in itertools.product(*numbers)]
        return np.array(are_missing).reshape([len(each) for each in numbers])[np.ix_(*runs)]

    def _cost(self, places: Sequence[range], thinning: Sequence[int]) -> int:
        """Return the bytes of the chunks that elements are in."""
        return math.prod(self._spans(places, thinning)) * (self._facts.nbytes_of(self._chunks or ()) or 0)

    def _spans(self, places: Sequence[range], thinning: Sequence[int]) -> list[int]:
        """Return how many chunks elements are in, along each dimension; 1 where chunks differ in shape."""
        spans = []
        strides = self.steps.strides
        for place, thin, stride, chunk in zip(places, thinning, strides, self._chunks or strides, strict=True):
            first, last = place[0] * stride // chunk, place[-1] * stride // chunk
            spans.append(min(last - first + 1, -(-len(place) // thin)) if self._chunks else 1)
        return spans

    def _parts(self, places: list[range], thinning: Sequence[int]) -> Iterator[list[range]]:
        """Yield the places of a tile in parts that can be read quickly."""
        halves = None if self._cost(places, thinning) <= _MOST_AT_ONCE else self._halves(places, thinning)
        if halves is None:
            yield places
            return
        for half in halves:
            yield from self._parts(half, thinning)

    def _halves(self, places: list[range], thinning: Sequence[int]) -> list[list[range]] | None:
        """Return the places of a part of a tile in two parts of other chunks, if that can be; None of one chunk."""
        spans = self._spans(places, thinning)
        widest = max(self.drawn, key=spans.__getitem__)
        place, thin = places[widest], thinning[widest]
        half = max(len(place) // 2 // thin, 1) * thin
        if spans[widest] < 2 or half >= len(place):
            return None
        chunk, stride = (self._chunks or self.shape)[widest], self.steps.strides[widest]
        begin = -(-(place[half] * stride // chunk * chunk) // stride) - place[0]  # with a chunk, if that can be
        begin = begin // thin * thin if begin >= thin else half
        return [[*places[:widest], part, *places[widest + 1 :]] for part in (place[:begin], place[begin:])]


def side_of(chunk: int, stride: int, wanted: int) -> int:
    """Return the length of tiles along a dimension: near the wanted length, and aligned with the chunks of the array.

    >>> side_of(1000, 1, 256), side_of(1000, 4, 256), side_of(100, 1, 256), side_of(1000, 3, 256), side_of(7, 1, 256)
    (250, 250, 300, 256, 259)
    """
    if not chunk or chunk % stride:
        return wanted
    length = chunk // stride
    if length <= wanted:
        return length * max(1, round(wanted / length))
    parts = next((n for n in range(round(length / wanted), length) if length % n == 0), 0)
    return length // parts if parts and length // parts >= wanted // 2 else wanted

"""When two arrays store the same chunks in the same bytes, so that chunks can be copied unchanged.

Two chains of codecs are equivalent if each decodes every stored chunk of the other to equal values. Only properties
that affect decoding are compared:

- the elements are stored in the same way: same data type (or raw bytes of the same size), same byte order where it
  matters;
- the axes have the same order, whatever the transposes;
- the same filters stand in the same order, with the same parameters, each seeing the same elements;
- the same compressors and checksums stand in the same order, each of one format of stream. Levels and the like are
  free, as most streams describe themselves.

Unknown codecs must be the same in every word.

Spec: Zarr v3 core, "Codecs"; the formats of the streams are those of numcodecs.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.codecs import chain, registry
from omnizarr.codecs.bytes import Bytes
from omnizarr.codecs.contract import ArraySpec, ArrayToArray
from omnizarr.codecs.elements import ElementFilter
from omnizarr.codecs.registry import bare
from omnizarr.codecs.transpose import Transpose
from omnizarr.errors import OmnizarrError
from omnizarr.formats.spelling import same
from omnizarr.model import UNDEFINED, ArrayMetadata, Named, datatypes, grids
from omnizarr.support.memo import Memo

_LZMA_RAW: Final = 3
_USER: Final = 2
"""Value of ``dtype.isbuiltin`` for the types of ml_dtypes."""
_TYPE_PARAMETERS: Final = frozenset({"dtype", "astype", "encode_dtype", "decode_dtype"})


def spec_of(metadata: ArrayMetadata) -> ArraySpec:
    """Return an array's chunk as its codecs meet it; of chunks that differ in shape, the largest.

    Raises what binding data type and grid raises.
    """
    data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    grid = grids.bind(metadata.chunk_grid, metadata.shape)
    shape = grid.chunk_shape
    if shape is None:
        shape = tuple(max(axis.sizes, default=1) for axis in grid.axes)
    if metadata.fill_value is UNDEFINED:
        return ArraySpec(shape, data_type, data_type.default_fill_value)
    return ArraySpec(shape, data_type, data_type.fill_from_json(metadata.fill_value))


def have_same_bytes(left: ArrayMetadata, right: ArrayMetadata) -> bool:
    """Whether every chunk that one array stores is, byte for byte, a chunk of the other with equal values.

    Keys and fill values are not looked at.

    Examples
    --------
    >>> from omnizarr.formats import V2, V3
    >>> v2 = V2.load({".zarray": {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": ">i2", "order": "C",
    ...     "compressor": {"id": "gzip", "level": 1}, "filters": None, "fill_value": 0}})
    >>> v3 = V3.load({"zarr.json": {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16",
    ...     "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    ...     "chunk_key_encoding": "default", "fill_value": 0,
    ...     "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, "gzip"]}})
    >>> have_same_bytes(v2, v3)
    True
    """
    if left.shape != right.shape or not _have_same_grid(left, right):
        return False
    try:
        first, second = _form(left), _form(right)
    except OmnizarrError:
        return same(left.data_type, right.data_type) and same(left.codecs, right.codecs)
    return first.streams == second.streams and _have_same_elements(first, second)


def have_same_elements(left: ArrayMetadata, right: ArrayMetadata) -> bool:
    """Whether `have_same_bytes` would hold if no chunk were compressed: other bytes to bytes codecs are all it takes.

    Only of codecs that can be run here.
    """
    if left.shape != right.shape or not _have_same_grid(left, right):
        return False
    try:
        first, second = _form(left), _form(right)
    except OmnizarrError:
        return False
    return not (first.left_out or second.left_out) and _have_same_elements(first, second)


def _have_same_elements(left: _Form, right: _Form) -> bool:
    return left.steps == right.steps and _are_alike(left.stored, right.stored)


def _have_same_grid(left: ArrayMetadata, right: ArrayMetadata) -> bool:
    if same(left.chunk_grid, right.chunk_grid):
        return True
    try:
        first, second = grids.bind(left.chunk_grid, left.shape), grids.bind(right.chunk_grid, right.shape)
    except OmnizarrError:
        return False
    return first.chunk_shape is not None and first.chunk_shape == second.chunk_shape


class _Form(NamedTuple):
    """What decoding a chunk depends on, to be compared."""

    steps: list[object]
    stored: np.dtype[Any] | None
    """The elements as the codec ``bytes`` stores them; None if another one does."""
    streams: list[object]
    """What happens to the bytes then."""
    left_out: tuple[str, ...] = ()
    """Codecs that are not known here, and need not be."""


_forms: Final[Memo[_Form]] = Memo(most_bytes=8192)


def _form(metadata: ArrayMetadata) -> _Form:
    """Return what decoding a chunk depends on. Raises what binding the chain raises."""
    question = (
        metadata.data_type, metadata.byte_order, metadata.chunk_grid, metadata.shape, metadata.codecs,
        "" if metadata.fill_value is UNDEFINED else (metadata.fill_value,),
    )  # fmt: skip
    return _forms.get(question, lambda: _formed(metadata), keep=lambda form: not form.left_out)


def _formed(metadata: ArrayMetadata) -> _Form:
    spec = spec_of(metadata)
    bound = chain.bind(metadata.codecs, spec)
    named = iter([codec for codec in metadata.codecs if codec.name not in bound.left_out])
    axes = tuple(range(len(spec.shape)))
    steps: list[object] = []
    here = spec
    for _, codec in bound.filters:
        word = next(named)
        here = codec.encoded
        if isinstance(codec, Transpose):
            axes = tuple(axes[axis] for axis in codec.order)
        else:
            steps += [axes, _form_of_filter(word, codec)]
            axes = tuple(range(len(here.shape)))
    serializer, word = bound.serializer[1], next(named)
    stored = serializer.stored if isinstance(serializer, Bytes) else None
    steps += [axes, "bytes" if stored is not None else _form_of_serializer(word, here)]
    return _Form(steps, stored, [_form_of_stream(word) for word in named], bound.left_out)


def _are_alike(left: np.dtype[Any] | None, right: np.dtype[Any] | None) -> bool:
    """Whether elements stored as one type are stored as the other: raw bytes may be anything of their size."""
    if left is None or right is None:
        return left is right
    is_raw = any(dtype.kind == "V" and dtype.names is None and dtype.isbuiltin != _USER for dtype in (left, right))
    return (is_raw and left.itemsize == right.itemsize) or _layout(left) == _layout(right)


def _layout(dtype: np.dtype[Any]) -> object:
    """Return how elements are stored; times are the integers that they are made of."""
    if dtype.names is not None and dtype.fields is not None:
        return [(name, _layout(dtype.fields[name][0])) for name in dtype.names]
    if dtype.subdtype is not None:
        return _layout(dtype.base), dtype.shape
    if dtype.kind in "mM":
        return np.dtype(f"{dtype.str[0]}i8").str
    return dtype.name if dtype.isbuiltin == _USER else dtype.str


def _form_of_filter(named: Named, codec: ArrayToArray) -> object:
    parameters = {key: value for key, value in named.configuration.items() if key not in _TYPE_PARAMETERS}
    made = codec.encoded.dtype.newbyteorder("<").str
    if not isinstance(codec, ElementFilter):
        return bare(named.name), parameters, made
    memory, seen = codec.decoded.dtype, codec.seen
    # the same numbers may be seen in either byte order, if they are in memory so
    order: object = seen.str[0] == memory.str[0]
    if memory.str[0] not in "<>" or seen.str[0] not in "<>":
        order = seen.str[0], _layout(memory)
    return bare(named.name), parameters, seen.str[1:], order, codec.made.str


def _form_of_serializer(named: Named, decoded: ArraySpec) -> list[object]:
    name, record = bare(named.name), registry.bare_record(named.name)
    seen = _layout(decoded.dtype.newbyteorder("<")) if decoded.data_type.is_fixed_size else decoded.dtype.kind
    if record is not None and record.decodes_with is not None:
        return [name, seen]
    if name == "sharding_indexed":
        # missing inner chunks hold the fill value, and filters within look at memory
        memory = decoded.dtype.str if "dtype" in repr(named.configuration) else ""
        configuration = {**(record.defaults if record is not None else {}), **named.configuration}
        return [name, configuration, seen, memory, np.asarray(decoded.fill_value, decoded.dtype).tobytes()]
    return [name, named.configuration, seen]


def _form_of_stream(named: Named) -> object:
    name, record = bare(named.name), registry.bare_record(named.name)
    if record is not None and record.decodes_with is not None:
        return name
    if name == "lzma":
        form = named.configuration.get("format", 1)
        return name, form, named.configuration.get("filters") if form == _LZMA_RAW else None
    return name, {**(record.defaults if record is not None else {}), **named.configuration}

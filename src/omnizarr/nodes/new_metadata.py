"""Converting the keywords of `create_array` to `ArrayMetadata`, without I/O.

Spec: Zarr v3 core, "Array metadata"; the names and defaults are those of zarr-python 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from omnizarr.codecs import compiled, registry, values
from omnizarr.errors import (
    CodecError,
    LengthTypeError,
    MetadataError,
    NotRepresentableError,
    Remedy,
    UnknownDataTypeError,
)
from omnizarr.formats import filters as v2_filters
from omnizarr.formats.contract import Dialect
from omnizarr.formats.extensions import write_extension
from omnizarr.formats.reader import Reader, is_list
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, Named, datatypes, grids, keys, plugins, strict
from omnizarr.model.datatypes import DataType, typestr
from omnizarr.model.datatypes.optional import Optional
from omnizarr.model.dimensions import ATTRIBUTE
from omnizarr.model.metadata import similar
from omnizarr.nodes.attributes import to_json
from omnizarr.nodes.options import DEFAULT
from omnizarr.settings import config
from omnizarr.support.memo import Memo

_MIN_CHUNK_BYTES: Final = 128 * 1024
_MAX_CHUNK_BYTES: Final = 64 * 1024 * 1024
_MAX_INNER_CHUNK_BYTES: Final = 1024 * 1024
# Assumed size of a string or an object, whose length is unknown.
_GUESSED_ITEM_SIZE: Final = 16
_MANY_CHUNKS: Final = 8
_LARGE_CHUNK_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of a chunk for which one length is given for all dimensions, which is easily too large by mistake."""


class Coding(NamedTuple):
    """The codecs in the form that a user passes. "auto" means what suits the data type."""

    filters: Any = "auto"
    serializer: Any = "auto"
    compressors: Any = "auto"
    codecs: Any = None
    """All codecs in one list (the form of ``zarr.create``), instead of the other three."""
    object_codec: Any = None
    order: Literal["C", "F"] = "C"


def array_metadata(
    dialect: Dialect,
    *,
    shape: int | Iterable[int],
    dtype: Any,
    chunks: Any = "auto",
    shards: Any = None,
    coding: Coding | None = None,
    fill_value: Any = DEFAULT,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: Any = None,
    dimension_names: Iterable[str | None] | None = None,
) -> ArrayMetadata:
    """Return the metadata of a new array.

    Raises
    ------
    MetadataError
        If a keyword is not valid, or contradicts another one.
    UnknownExtensionError
        If a data type or codec is unknown.
    NotRepresentableError
        If the dialect cannot express it. (Errors that are found only when documents are written are raised by
        `dialect.dump`.)
    """
    coding = coding or Coding()
    # Arrays that are created together are often equal. These are all the inputs of `_made`:
    question = (
        (dialect.name, shape, dtype, chunks, shards, fill_value, chunk_key_encoding, dimension_names),
        (coding.filters, coding.serializer, coding.compressors, coding.codecs, coding.object_codec, coding.order),
        (plugins.generation(), config.get("array.target_shard_size_bytes")),
    )
    metadata = _remembered.get(
        question,
        lambda: _made(dialect, shape, dtype, chunks, shards, coding, fill_value, chunk_key_encoding, dimension_names),
    )
    if metadata.dimension_names == () and not dialect.has_dimension_names:
        # Elsewhere, names that have no place are refused. That there are none, xarray wants to be told for a scalar:
        # it refuses the whole group otherwise.
        metadata = replace(metadata, dimension_names=None)
        attributes = {ATTRIBUTE: [], **(attributes or {})}
    return similar(metadata, metadata.shape, to_json(attributes), metadata.spellings) if attributes else metadata


_remembered: Final[Memo[ArrayMetadata]] = Memo()


def _made(
    dialect: Dialect,
    shape: int | Iterable[int],
    dtype: Any,
    chunks: Any,
    shards: Any,
    coding: Coding,
    fill_value: Any,
    chunk_key_encoding: Any,
    dimension_names: Iterable[str | None] | None,
) -> ArrayMetadata:
    """Return the metadata of a new array without attributes."""
    shape = parse_shape(shape)
    data_type, object_steps = _data_type(dialect, dtype, coding)
    if dialect.new_arrays.has_filters and shards is not None and shards is not False:
        raise NotRepresentableError(
            f"Zarr {dialect.name} has no shards", found=f"shards={shards!r}", remedy="leave out shards, or write v3"
        )
    grid, inner = _layout(shape, chunks, shards, size_of(data_type))
    if dialect.new_arrays.has_filters:
        codecs = _v2_codecs(dialect, coding, data_type, len(shape), object_steps)
    else:
        codecs = _v3_codecs(dialect, coding, data_type)
    if grid.name == "regular":
        lengths: Any = inner or grid.configuration["chunk_shape"]
        codecs = v2_filters.fit_szip(codecs, shape, lengths, data_type.dtype)
    if inner is not None:
        codecs = (_shard(inner, codecs, shards),)
    return ArrayMetadata(
        dialect=dialect.name,
        shape=shape,
        data_type=data_type.named,
        # In other formats the bytes codec states how elements are stored, and nothing states their order in
        # memory.
        byte_order=data_type.byte_order if dialect.new_arrays.has_byte_order else "<",
        chunk_grid=grid,
        chunk_key_encoding=_key_encoding(chunk_key_encoding, dialect),
        fill_value=_fill_value(fill_value, data_type, dialect),
        codecs=codecs,
        dimension_names=_dimension_names(dimension_names, shape),
    )


def parse_shape(shape: int | Iterable[int]) -> tuple[int, ...]:
    """Return a shape as a tuple. Raises MetadataError for an invalid shape."""
    lengths: Any = (shape,) if isinstance(shape, Integral) else shape
    result: tuple[Any, ...] = tuple(lengths) if isinstance(lengths, Iterable) else (lengths,)
    if not all(isinstance(n, Integral) and not isinstance(n, bool) and 0 <= int(n) < 2**63 for n in result):
        raise _kind_of_error(result)(
            "not a shape", pointer="/shape", found=repr(shape), expected="lengths from 0 to 2**63 - 1, or one of them"
        )
    return tuple(int(length) for length in result)


def _kind_of_error(lengths: Iterable[Any]) -> type[MetadataError]:
    return MetadataError if all(isinstance(length, Integral) for length in lengths) else LengthTypeError


# -- data type and fill value ---------------------------------------------------


def size_of(data_type: DataType) -> int:
    """Return the bytes of an element, or their assumed number; at least one."""
    return max(data_type.dtype.itemsize, 1) if data_type.is_fixed_size else _GUESSED_ITEM_SIZE


def _data_type(dialect: Dialect, dtype: Any, coding: Coding) -> tuple[DataType, list[Mapping[str, JSON]]]:
    """Return the data type, and for Python objects the filters that determine their kind."""
    if dtype is None:
        raise MetadataError(
            "no data type is given", pointer="/data_type", remedy=Remedy("pass {dtype} or {data}", dtype=..., data=...)
        )
    if not _is_object(dtype):
        return datatypes.parse(dtype), []
    if coding.object_codec is not None:
        steps = [_config_of(coding.object_codec)]
    else:
        steps = [_config_of(step) for step in _listed(coding.filters)]
    codec = next((step for step in steps if step and v2_filters.is_object_codec(step.get("id"))), None)
    if codec is None or not dialect.new_arrays.has_filters:
        remedy = Remedy("use {dtype} or 'bytes'", dtype="string")
        raise UnknownDataTypeError(
            "Python objects as such cannot be stored",
            pointer="/data_type",
            found="object",
            remedy=remedy.also("or pass {object_codec}, such as numcodecs.JSON()", object_codec=...)
            if dialect.new_arrays.has_filters
            else remedy,
        )
    document: dict[str, JSON] = {
        dialect.array_document: {
            "zarr_format": 2,
            "shape": [1],
            "chunks": [1],
            "dtype": "|O",
            "filters": [codec],
            "compressor": None,
            "fill_value": None,
            "order": "C",
        }
    }
    metadata = dialect.load(document, strict)
    if not isinstance(metadata, ArrayMetadata):
        raise MetadataError("not an object codec", pointer="/filters", found=codec)
    is_apart = coding.object_codec is not None
    return datatypes.bind(metadata.data_type), [codec] if is_apart else []


def _is_object(dtype: Any) -> bool:
    try:
        return not isinstance(dtype, (DataType, Named, Mapping)) and np.dtype(dtype) == np.dtype(object)
    except (TypeError, ValueError, SyntaxError):
        return False


def _fill_value(value: Any, data_type: DataType, dialect: Dialect) -> Any:
    if value is None and dialect.new_arrays.has_undefined_fill_value:
        return UNDEFINED
    if value is None or value is DEFAULT:
        # As in zarr-python: an unwritten element is not a date.
        is_time = data_type.dtype.kind in "mM"
        return data_type.fill_to_json(data_type.cast("NaT") if is_time else data_type.default_fill_value)
    found = data_type.fill_to_json(data_type.cast(value))
    if data_type.dtype.kind in "fc" and dialect.new_arrays.has_one_nan:
        # Stored values must not be mistaken for a fill value with other bits.
        return typestr.fill_from_v2(typestr.fill_to_v2(found, data_type), data_type)
    return found


def _dimension_names(names: Iterable[str | None] | None, shape: tuple[int, ...]) -> tuple[str | None, ...] | None:
    if names is None:
        return None
    result = (names,) if isinstance(names, str) else tuple(names)
    if shape and not result:  # as in zarr-python: no dimension has a name
        return None
    if len(result) != len(shape) or not all(name is None or isinstance(name, str) for name in result):
        raise MetadataError(
            "dimension_names do not fit the shape",
            pointer="/dimension_names",
            found=repr(result),
            expected=f"{len(shape)} strings or None, one per dimension of shape {shape}",
        )
    return result


def _key_encoding(given: Any, dialect: Dialect) -> Named:
    usual = dialect.new_arrays.chunk_key_encoding
    if given is None:
        return usual
    named = _named_encoding(given)
    if dialect.entry_point is not None and named.name in {"default", "v2"}:
        # Documents of the drafts do not name the encoding; only the separator can be chosen.
        separator = named.configuration.get("separator")
        if usual.name == "v2" and isinstance(separator, str):
            return keys.separated_by(separator)
        return Named(usual.name, {**usual.configuration, **named.configuration})
    return named


def _named_encoding(given: Any) -> Named:
    if isinstance(given, Named):
        return given
    if isinstance(given, str):
        return Named(given)
    if isinstance(given, Mapping) and "name" in given:
        rest = {name: value for name, value in given.items() if name not in {"name", "configuration"}}
        return Named(str(given["name"]), {**dict(given.get("configuration") or {}), **rest})
    if isinstance(given, Sequence) and len(given) == 2:
        return Named(str(given[0]), {"separator": given[1]})
    if hasattr(given, "name") and hasattr(given, "separator"):
        return Named(str(given.name), {"separator": given.separator})
    raise MetadataError(
        "not a chunk key encoding",
        pointer="/chunk_key_encoding",
        found=repr(given),
        expected="{'name': 'default' or 'v2', 'separator': '/' or '.'}",
    )


# -- chunks and shards -------------------------------------------------------------


def _layout(shape: tuple[int, ...], chunks: Any, shards: Any, item_size: int) -> tuple[Named, tuple[int, ...] | None]:
    """Return the grid of stored values, and the shape of inner chunks (None: no shards)."""
    if isinstance(chunks, Mapping | Named) and not shards:
        if isinstance(chunks, Mapping):
            chunks = Named(str(chunks.get("name")), chunks.get("configuration") or {})
        return grids.bind(chunks, shape).named, None
    if shards is None or shards is False:
        return _grid(shape, _parse_chunks(chunks, shape, item_size, _MAX_CHUNK_BYTES, "chunks"), "chunks"), None
    inner = _parse_chunks(chunks, shape, item_size, _MAX_INNER_CHUNK_BYTES, "chunks")
    if not all(isinstance(length, int) for length in inner):
        raise MetadataError(
            "inner chunks must have one shape", pointer="/chunk_grid", found=repr(chunks), expected="a chunk shape"
        )
    if isinstance(shards, Mapping):
        shards = shards.get("shape")
    if isinstance(shards, str) or shards is True:
        _expect_auto(shards if isinstance(shards, str) else "auto", "shards")
        return grids.regular(guess_shards(shape, inner, item_size)), inner
    lengths = _parse_chunks(shards, shape, item_size, _MAX_CHUNK_BYTES, "shards")
    _expect_divisors(inner, lengths)
    return _grid(shape, lengths, "shards"), inner


def _expect_divisors(inner: tuple[int, ...], shards: tuple[Any, ...]) -> None:
    """Raise CodecError if inner chunks do not divide the shards, which few programs read."""
    axes = [(length,) if isinstance(length, int) else length for length in shards]
    if any(length % size for size, lengths in zip(inner, axes, strict=True) for length in lengths):
        raise CodecError(
            "inner chunks do not divide the shard evenly",
            codec="sharding_indexed",
            pointer="/configuration/chunk_shape",
            found=inner,
            expected=f"divisors of the shard's shape {shards}",
            spec='Zarr v3, "Sharding codec"',
            remedy="choose chunks that divide the shard, or name the serializer yourself (few programs read it)",
        )


def _expect_auto(word: str, keyword: str) -> None:
    if word != "auto":
        raise MetadataError(
            f"not a value for {keyword}", pointer="/chunk_grid", found=repr(word), expected="'auto', or lengths"
        )


def _parse_chunks(chunks: Any, shape: tuple[int, ...], item_size: int, max_bytes: int, keyword: str) -> tuple[Any, ...]:
    """Return one item per dimension: a length, or a tuple of lengths."""
    if isinstance(chunks, str):
        _expect_auto(chunks, "chunks")
    if chunks is None or chunks is True or isinstance(chunks, str):
        return guess_chunks(shape, item_size, max_bytes)
    if chunks is False:
        return tuple(max(length, 1) for length in shape)
    if isinstance(chunks, Integral) and int(chunks) > 0:
        refuse_large((int(chunks),) * len(shape), item_size, keyword)
    per_axis = [chunks] * len(shape) if isinstance(chunks, Integral) else list(chunks)
    if len(per_axis) != len(shape):
        raise MetadataError(
            "chunks do not fit the shape",
            pointer="/chunk_grid",
            found=f"{len(per_axis)} lengths {chunks!r}",
            expected=f"{len(shape)}, one per dimension of shape {shape}",
        )
    return tuple(_parse_axis(item, length) for item, length in zip(per_axis, shape, strict=True))


def refuse_large(lengths: tuple[int, ...], item_size: int, keyword: str) -> None:
    """Raise MetadataError if chunks (or shards) for which one length was given are very large.

    In one dimension, any length is allowed.
    """
    nbytes = math.prod(lengths) * item_size
    if len(lengths) > 1 and nbytes > _LARGE_CHUNK_BYTES:
        raise MetadataError(
            f"one length for all dimensions makes large {keyword}",
            pointer="/chunk_grid",
            found=f"{keyword} of shape {lengths}, each {nbytes / 2**20:,.0f} MiB",
            expected=f"at most {_LARGE_CHUNK_BYTES // 2**20} MiB",
            remedy=Remedy("give a length for each dimension").also(
                f"{{{keyword}}} if they shall be that large", **{keyword: lengths}
            ),
        )


def _parse_axis(item: Any, length: int) -> int | tuple[int, ...]:
    # ``chunks=data.shape`` for empty data
    is_empty = isinstance(item, Integral) and int(item) == length == 0
    if item is None or is_empty or (isinstance(item, Integral) and item == -1):
        return max(length, 1)
    sizes: list[Any] = list(item) if isinstance(item, Iterable) else [item]
    if not sizes or not all(isinstance(n, Integral) and not isinstance(n, bool) and int(n) > 0 for n in sizes):
        raise _kind_of_error(sizes)(
            "not a chunk length", pointer="/chunk_grid", found=repr(item), expected="an integer above 0, or several"
        )
    if isinstance(item, Integral):
        return int(item)
    found = tuple(int(size) for size in sizes)
    if sum(found) != length:
        raise MetadataError(
            "chunk lengths do not add up to the length of the dimension",
            pointer="/chunk_grid",
            found=f"{sum(found)} = {' + '.join(map(str, found[:8]))}{' + ...' if len(found) > 8 else ''}",
            expected=length,
        )
    is_even = len(set(found[:-1])) <= 1 and found[-1] <= found[0]
    return found[0] if is_even else found


def _grid(shape: tuple[int, ...], per_axis: Sequence[Any], keyword: str) -> Named:
    if all(isinstance(item, int) for item in per_axis):
        return grids.regular(per_axis)
    rows: list[JSON] = [item if isinstance(item, int) else _runs(item) for item in per_axis]
    return Named("rectilinear", {"kind": "inline", "chunk_shapes": rows})


def _runs(lengths: Iterable[int]) -> list[JSON]:
    """Return lengths with runs of equal ones written as ``[length, count]``."""
    counted = ((size, sum(1 for _ in group)) for size, group in itertools.groupby(lengths))
    return [size if count == 1 else [size, count] for size, count in counted]


def guess_chunks(shape: tuple[int, ...], item_size: int, max_bytes: int = _MAX_CHUNK_BYTES) -> tuple[int, ...]:
    """Return a chunk shape that suits most uses: as many chunks along each axis, and larger ones for larger arrays.

    >>> guess_chunks((10000, 10000), 8)
    (313, 625)
    """
    lengths = [max(length, 1) for length in shape]
    total = math.prod(lengths) * item_size
    if not lengths:
        return ()
    # 256 KiB for an array of 1 MiB, twice as much for each tenfold size
    wanted = 256 * 1024 * 2 ** (math.log10(total) - math.log10(1024 * 1024))
    wanted = min(max(wanted, _MIN_CHUNK_BYTES), max_bytes)
    for axis in itertools.cycle(range(len(lengths))):
        size = math.prod(lengths) * item_size
        if (size <= max_bytes and size < 1.5 * wanted) or max(lengths) == 1:
            break
        lengths[axis] = -(-lengths[axis] // 2)
    return tuple(lengths)


def automatic(shape: tuple[int, ...], item_size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return chunks and shards of a new array with ``shards="auto"``."""
    inner = guess_chunks(shape, item_size, _MAX_INNER_CHUNK_BYTES)
    return inner, guess_shards(shape, inner, item_size)


def guess_shards(shape: tuple[int, ...], chunk_shape: tuple[int, ...], item_size: int) -> tuple[int, ...]:
    """Return a shard shape: twice the chunk along axes with many chunks, or as many as the setting allows."""
    target = config.get("array.target_shard_size_bytes")
    if target is None:
        return tuple(
            2 * chunk if length // chunk > _MANY_CHUNKS else chunk
            for length, chunk in zip(shape, chunk_shape, strict=True)
        )
    chunk_bytes = max(math.prod(chunk_shape) * item_size, 1)
    per_axis = 1
    while chunk_bytes * (per_axis + 1) ** len(shape) <= target and all(
        chunk * (per_axis + 1) <= length for length, chunk in zip(shape, chunk_shape, strict=True)
    ):
        per_axis += 1
    return tuple(chunk * per_axis for chunk in chunk_shape)


def _shard(chunk_shape: tuple[int, ...], codecs: tuple[Named, ...], shards: Any) -> Named:
    location = shards.get("index_location", "end") if isinstance(shards, Mapping) else "end"
    sharding = values.ShardingCodec(
        chunk_shape=chunk_shape, codecs=codecs, index_location=getattr(location, "value", location)
    )
    return values.named(sharding)


# -- codecs --------------------------------------------------------------------------


def _v3_codecs(dialect: Dialect, coding: Coding, data_type: DataType) -> tuple[Named, ...]:
    dtype = data_type.dtype
    if coding.codecs is not None:
        return tuple(_finished(_named(codec, dtype), data_type) for codec in _listed(coding.codecs))
    serializer = coding.serializer
    filters = [_named(codec, dtype) for codec in _listed(coding.filters)]
    kinds = [_kind(codec) for codec in filters]
    if _is_auto(serializer):
        if "array to bytes" in kinds:  # as zarr 2 passed object codecs
            serializer = filters.pop(kinds.index("array to bytes"))
        else:
            serializer = _default_serializer(data_type)
    chain = [*filters, serializer, *_compressors(dialect, coding.compressors)]
    return tuple(_finished(_named(codec, dtype), data_type) for codec in chain)


def _default_serializer(data_type: DataType) -> Named:
    name = data_type.named.name
    if isinstance(data_type.scalars, Optional):
        inner = write_extension(_default_serializer(data_type.scalars.inner))
        return Named(data_type.named.name, {"mask_codecs": [{"name": "packbits"}], "data_codecs": [inner]})
    if name in {"bytes", "variable_length_bytes"}:
        return Named("vlen-bytes")
    if not data_type.is_fixed_size:
        return Named("vlen-utf8")
    return v2_filters.bytes_codec(data_type.dtype)


def _finished(codec: Named, data_type: DataType) -> Named:
    """Return a codec with its undetermined values filled in."""
    item_size = data_type.dtype.itemsize if data_type.is_fixed_size else 1
    if codec.name == "blosc":
        shuffle = codec.configuration.get("shuffle") or ("bitshuffle" if item_size == 1 else "shuffle")
        typesize = codec.configuration.get("typesize") or item_size
        return Named("blosc", {**codec.configuration, "shuffle": shuffle, "typesize": typesize})
    if codec.name in {"shuffle", "numcodecs.shuffle"} and codec.configuration.get("elementsize") is None:
        return Named(codec.name, {**codec.configuration, "elementsize": item_size})
    if codec.name == "sharding_indexed" and is_list(inner := codec.configuration.get("codecs")):
        finished = [write_extension(_finished(_named(each, data_type.dtype), data_type)) for each in inner]
        return Named(codec.name, {**codec.configuration, "codecs": finished})
    if codec.name in ("optional", "zarrs.optional") and isinstance(data_type.scalars, Optional):
        inner_type = data_type.scalars.inner
        members = {"mask_codecs": datatypes.parse("bool"), "data_codecs": inner_type}
        lists = {name: codec.configuration.get(name) for name in members}
        return Named(codec.name, {
            **codec.configuration,
            **{
                name: [write_extension(_finished(_named(each, members[name].dtype), members[name])) for each in listed]
                for name, listed in lists.items()
                if is_list(listed)
            },
        })  # fmt: skip
    if codec.name == "bytes" and v2_filters.byte_order_of(data_type.dtype) is None:
        return Named("bytes", {name: value for name, value in codec.configuration.items() if name != "endian"})
    return codec


def _v2_codecs(
    dialect: Dialect, coding: Coding, data_type: DataType, ndim: int, object_steps: list[Mapping[str, JSON]]
) -> tuple[Named, ...]:
    if not _is_auto(coding.serializer):
        raise NotRepresentableError(
            f"Zarr {dialect.name} has no serializer",
            found=repr(coding.serializer),
            remedy="leave it out, or write v3",
        )
    filters = _listed(coding.filters)
    compressors = _compressors(dialect, coding.compressors)
    has_object_codec = any(v2_filters.is_object_codec((_config_of(step) or {}).get("id")) for step in filters)
    if not data_type.is_fixed_size and not has_object_codec and not object_steps:
        object_steps = [{"id": "vlen-utf8" if data_type.dtype.kind == "T" else "vlen-bytes"}]
    chain = [*object_steps, *filters, *compressors] if coding.codecs is None else _listed(coding.codecs)
    return _v2_chain(chain, coding.order, ndim, data_type, f"Zarr {dialect.name}")


def _compressors(dialect: Dialect, asked: Any) -> list[Any]:
    """Return the compressors that were asked for; for "auto" the format's default, or what replaces a missing one."""
    if not _is_auto(asked):
        return _listed(asked)
    usual, fallback = dialect.new_arrays.compressor, dialect.new_arrays.fallback
    return [fallback if fallback is not None and compiled.is_missing(str(usual["id"])) else usual]


def _v2_chain(chain: Sequence[Any], order: str, ndim: int, data_type: DataType, label: str) -> tuple[Named, ...]:
    """Return the codecs of a list of numcodecs' and omnizarr's codecs, in the order of encoding."""
    configs: list[Mapping[str, JSON]] = []
    dtype = data_type.dtype
    for codec in chain:
        step = _config_of(codec)
        if step is not None:
            configs.append(step)
            continue
        stack = v2_filters.dump_chain([_finished(_named(codec, dtype), data_type)], ndim, label)
        order = stack.order if stack.order == "F" else order
        configs += stack.filters
        if stack.compressor is not None:
            configs.append(stack.compressor)
    reader = Reader(strict)
    steps = [v2_filters.read_step(reader, step, f"/filters/{position}") for position, step in enumerate(configs)]
    stored = np.dtype(object) if dtype.kind == "T" else dtype
    return v2_filters.load_chain(reader, [step for step in steps if step], order, ndim, stored)


def _named(codec: Any, dtype: np.dtype[Any]) -> Named:
    """Return the v3 name of a codec, also of one in the form of numcodecs."""
    step = _config_of(codec)
    if step is None:
        try:
            return values.named(codec)
        except TypeError as error:
            raise MetadataError(str(error), pointer="/codecs", found=repr(codec)) from None
    found = v2_filters.read_step(Reader(strict), step, "/codecs")
    if found is None:
        raise MetadataError("not a codec", pointer="/codecs", found=repr(codec))
    chain = v2_filters.load_chain(Reader(strict), [found], "C", 1, dtype)
    return next((codec for codec in chain if codec.name != "bytes"), chain[0])


def _config_of(codec: Any) -> dict[str, JSON] | None:
    """Return the configuration of a codec in the form of numcodecs, with its ``id``; None if it has another form."""
    if isinstance(codec, Mapping):
        return dict(codec) if "id" in codec else None
    if callable(getattr(codec, "get_config", None)) and not callable(getattr(codec, "to_dict", None)):
        return {name: _plain(value) for name, value in codec.get_config().items()}
    return None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _kind(codec: Named) -> str:
    return registry.find(codec.name).kind


def _listed(given: Any) -> list[Any]:
    """Return one codec or several as a list; None and "auto" give none."""
    if given is None or _is_auto(given):
        return []
    if isinstance(given, (Mapping, str, Named)) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def _is_auto(given: Any) -> bool:
    return isinstance(given, str) and given == "auto"

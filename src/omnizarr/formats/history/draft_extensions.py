"""Extensions in the drafts of v3: unknown ones, and the sharding that zarr-python wrote as one.

In these documents an extension is an object with its URI and a ``type`` of its own. A chunk grid, a memory layout or
a storage transformer of an unknown extension is kept under its URI: only reading chunks needs it.

Spec: Zarr v3 draft of 2020, "Entry point metadata", "Array metadata"; the drafts of 2022, "Storage transformers" and
"Sharding storage transformer (version 1.0)".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from omnizarr.errors import UnknownExtensionError
from omnizarr.formats.extensions import write_extension
from omnizarr.formats.filters import Step, bytes_codec
from omnizarr.formats.history.draft_codecs import load_codecs, read_codec, read_codec_uri
from omnizarr.formats.reader import MAX_LENGTH, Reader, is_integer, is_list, join, read_list, read_object
from omnizarr.model import JSON, Named

_LITTLE = Named("bytes", {"endian": "little"})
_LATER = 'Zarr v3 draft of November 2022, "Array metadata"'
_SHARDS = 'Zarr v3 drafts of 2022, "Sharding storage transformer"'


def read_extensions(reader: Reader, value: JSON, pointer: str, spec: str) -> None:
    """Report extensions of a list that must be understood. omnizarr knows none of them."""
    if value is None:
        return
    for index, item in enumerate(read_list(reader, value, pointer, spec)):
        place = join(pointer, index)
        if not isinstance(item, Mapping):
            reader.problem(place, "not an extension", found=item, expected="an object", spec=spec)
            continue
        uri, must = item.get("extension"), item.get("must_understand")
        if not isinstance(uri, str):
            found = {"found": uri} if "extension" in item else {}
            expected = "the URI of an extension"
            reader.problem(
                join(place, "extension"), "an extension without a URI", **found, expected=expected, spec=spec
            )
            uri = "?"
        if not isinstance(must, bool):
            found = {"found": must} if "must_understand" in item else {}
            where = join(place, "must_understand")
            reader.problem(where, "must_understand is not a boolean", **found, expected="true or false", spec=spec)
        elif must:
            reader.problem(
                place,
                f"extension {uri!r} must be understood, and is not known here",
                found=uri,
                spec=spec,
                kind=UnknownExtensionError,
            )
        else:
            reader.note(place, f"extension {uri!r} is not known here; it may be ignored", spec)


def read_named(reader: Reader, value: JSON, pointer: str, spec: str) -> Named:
    """Return an object with ``extension`` and ``type`` under its URI; its other members are its configuration."""
    document = read_object(reader, value, pointer, spec)
    uri = document.get("extension")
    if not isinstance(uri, str) or not uri:
        found = {"found": uri} if "extension" in document else {}
        reader.problem(
            join(pointer, "extension"),
            "an extension without a URI",
            **found,
            expected="the URI of an extension",
            spec=spec,
        )
        uri = "unknown"
    elif "type" not in document:
        expected = "a value that the extension defines"
        reader.problem(join(pointer, "type"), "type is missing", expected=expected, spec=spec)
    return Named(uri, {name: content for name, content in document.items() if name != "extension"})


# Shards


def read_sharding(
    reader: Reader, value: JSON, pointer: str, grid: Named, codecs: tuple[Named, ...]
) -> tuple[Named, tuple[Named, ...]] | None:
    """Return the chunk grid and the codecs that are equivalent to a sharding transformer; None if `value` is not one.

    The transformer keeps chunks of the grid together, some along each dimension; the value ends with an index of
    offsets and sizes, like the index of ``sharding_indexed`` without a checksum.
    """
    if not isinstance(value, Mapping) or grid.name != "regular":
        return None
    uri = value.get("extension")
    if not isinstance(uri, str) or "sharding" not in uri.split("/") or value.get("type") != "indexed":
        return None
    place = join(pointer, "configuration")
    configuration = read_object(reader, value.get("configuration", {}), place, _SHARDS)
    return _sharded(reader, configuration, place, grid, codecs)


def read_prototype(
    reader: Reader, value: JSON, pointer: str, grid: Named, codecs: tuple[Named, ...]
) -> tuple[Named, tuple[Named, ...]]:
    """Return the same of the member ``sharding`` that a branch of zarrita (January 2022) wrote."""
    sharding = read_object(reader, value, pointer, _SHARDS)
    if sharding.get("format") != "indexed" or grid.name != "regular":
        place, found = join(pointer, "format"), sharding.get("format")
        reader.problem(place, "unknown format of shards", found=found, expected='"indexed"', spec=_SHARDS)
        return grid, codecs
    return _sharded(reader, sharding, pointer, grid, codecs)


def _sharded(
    reader: Reader, configuration: Mapping[str, JSON], pointer: str, grid: Named, codecs: tuple[Named, ...]
) -> tuple[Named, tuple[Named, ...]]:
    inner: Any = grid.configuration["chunk_shape"]
    ndim = len(inner)
    found = configuration.get("chunks_per_shard")
    items: Sequence[Any] = (found,) if is_integer(found) else found if is_list(found) else ()
    counts = [item for item in items if is_integer(item) and 0 < item <= MAX_LENGTH]
    if ndim == 0 and counts == [1]:
        counts = []  # zarr-python gives scalars one chunk, in one dimension
    if (not is_list(found) and not is_integer(found)) or len(counts) > ndim or (len(counts) < len(items) and ndim):
        reader.problem(
            join(pointer, "chunks_per_shard"),
            "no numbers of chunks",
            found=found,
            expected=f"a list of {ndim} integers from 1",
            spec=_SHARDS,
        )
        counts = [1] * ndim
    else:
        counts = counts + [1] * (ndim - len(counts))
    outer = [length * count for length, count in zip(inner, counts, strict=True)]
    if max(outer, default=0) > MAX_LENGTH:
        place = join(pointer, "chunks_per_shard")
        reader.problem(place, "shards are too large", found=counts, expected=f"at most {MAX_LENGTH}", spec=_SHARDS)
        outer = list(inner)
    sharding: dict[str, JSON] = {
        "chunk_shape": list(inner),
        "codecs": [write_extension(codec) for codec in codecs],
        "index_codecs": [write_extension(_LITTLE)],
        "index_location": "end",
    }
    return Named("regular", {"chunk_shape": outer}), (Named("sharding_indexed", sharding),)


# Lists of codecs


def read_codec_list(reader: Reader, value: JSON, ndim: int, dtype: np.dtype[Any]) -> tuple[Named, ...]:
    """Return the member ``codecs`` of the drafts of November 2022; `dtype` is in the order of ``data_type``."""
    leading: list[Named] = []
    serializer: Named | None = None
    steps: list[Step] = []
    for index, item in enumerate(read_list(reader, value, "/codecs", _LATER)):
        place = join("/codecs", index)
        document = read_object(reader, item, place, _LATER)
        uri = document.get("type")
        if not isinstance(uri, str):
            if isinstance(item, Mapping):
                expected = "the URI of a codec"
                reader.problem(join(place, "type"), "a codec without a URI", expected=expected, spec=_LATER)
            continue
        at = join(place, "configuration")
        configuration = read_object(reader, document.get("configuration", {}), at, _LATER)
        match read_codec_uri(uri):
            case "transpose" if not steps and serializer is None:
                leading.append(Named("transpose", _read_order(configuration, ndim)))
            case "endian" if not steps and serializer is None:
                serializer = Named("bytes", configuration)
            case _:
                steps.append(read_codec(reader, uri, configuration, join(place, "type"), spec=_LATER, at=at))
    codecs = load_codecs(reader, steps, "C", ndim, dtype)
    if serializer is not None:
        codecs = tuple(serializer if codec == bytes_codec(dtype) else codec for codec in codecs)
    return (*leading, *codecs)


def _read_order(configuration: Mapping[str, JSON], ndim: int) -> dict[str, JSON]:
    order = configuration.get("order")
    if order == "F":
        return {"order": list(reversed(range(ndim)))}
    return {"order": list(range(ndim)) if order == "C" else order}

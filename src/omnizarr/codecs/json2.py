"""json2: Python objects as JSON: a list of the items, then the dtype, then the shape.

Configuration: options of Python's JSON encoder and decoder: ``encoding``, ``skipkeys``, ``ensure_ascii``,
``check_circular``, ``allow_nan``, ``sort_keys``, ``indent``, ``separators``, ``strict``.
Agrees with numcodecs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import A2B, Name, Record
from omnizarr.codecs.streams import ObjectCodec, parsed
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError

_FLAGS: Final = {"skipkeys": False, "ensure_ascii": True, "check_circular": True, "allow_nan": True, "sort_keys": True}
_OTHERS: Final = ("encoding", "indent", "separators", "strict")


@dataclass(frozen=True, slots=True)
class Json(ObjectCodec):
    """Objects as JSON."""

    text_encoding: str
    encoder: json.JSONEncoder
    decoder: json.JSONDecoder
    has_shape: bool
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size that can be parsed."""
        return parsed(self.decoded)

    def encode(self, array: AnyArray) -> Buffer:
        """Return the list as text."""
        try:
            return self.encoder.encode(listed(array, has_shape=self.has_shape)).encode(self.text_encoding)
        except (ValueError, TypeError, RecursionError) as error:
            raise CodecError(f"cannot encode: {error}") from error

    def decode(self, data: Buffer) -> AnyArray:
        """Return the items."""
        try:
            items = self.decoder.decode(str(data, self.text_encoding))
        except (ValueError, RecursionError) as error:
            raise ChunkError(f"not JSON: {error}") from error
        return unlisted(items, self.decoded, has_shape=self.has_shape)


def listed(array: AnyArray, *, has_shape: bool) -> list[Any]:
    """Return the items, the dtype and perhaps the shape, as numcodecs lists them."""
    items = np.atleast_1d(array).tolist()
    # The stored dtype is always that of Python objects, whatever it is in memory.
    items.append("|O" if array.dtype.kind == "T" else array.dtype.str)
    if has_shape:
        items.append(list(array.shape))
    return items  # type: ignore[no-any-return]


def unlisted(items: Any, decoded: ArraySpec, *, has_shape: bool) -> AnyArray:
    """Return the array in a list. Its shape may be another one of the same size."""
    tail = 2 if has_shape else 1
    if not isinstance(items, list) or len(items) < tail:
        raise ChunkError("not a list of items", found=type(items).__name__, expected="a list")
    shape = items[-1] if has_shape else decoded.shape
    if not isinstance(shape, Sequence) or not all(isinstance(n, int) and not isinstance(n, bool) for n in shape):
        raise ChunkError("the list of items does not end in a shape", found=repr(shape), expected="a list of integers")
    size = prod(decoded.shape)
    if prod(shape) != size or any(n < 0 for n in shape):
        raise ChunkSizeError("the stored shape is of another size", found=list(shape), expected=list(decoded.shape))
    flat = list(_leaves(items[:-tail], max(len(shape), 1)))
    if len(flat) != size:
        raise ChunkSizeError("the number of items is wrong", found=len(flat), expected=size)
    row = np.empty(size, object)
    for position, item in enumerate(flat):  # row[:] = flat would unpack items that are lists
        row[position] = item
    try:
        array: AnyArray = row.astype(decoded.dtype, copy=False)
    except (ValueError, TypeError) as error:
        raise ChunkError(f"an item is of another type: {error}") from error
    return array.reshape(decoded.shape)


def _leaves(items: Any, depth: int) -> Iterator[Any]:
    if depth == 1 and isinstance(items, list):
        yield from items
    elif isinstance(items, list):
        for item in items:
            yield from _leaves(item, depth - 1)
    else:
        raise ChunkError("the list of items is not as deep as its shape", found=type(items).__name__, expected="a list")


def bind(configuration: Configuration, decoded: ArraySpec) -> Json:
    """Return the codec with the shape."""
    return _bind(configuration, decoded, has_shape=True)


def bind_json(configuration: Configuration, decoded: ArraySpec) -> Json:
    """Return the older codec, without the shape."""
    return _bind(configuration, decoded, has_shape=False)


def _bind(configuration: Configuration, decoded: ArraySpec, *, has_shape: bool) -> Json:
    fields = Fields(configuration, (*_FLAGS, *_OTHERS))
    encoding = fields.text("encoding", "utf-8")
    try:
        "[]".encode(encoding)  # only with text encodings
    except (LookupError, ValueError) as error:
        raise fields.reject("encoding", "unknown encoding", encoding, "such as 'utf-8'") from error
    indent = fields.integer("indent", None, 0, 100) if fields.has("indent") else None
    separators = fields.raw("separators", None)
    if separators is None:
        separators = (",", ":") if indent is None else (", ", ": ")
    if not isinstance(separators, list | tuple) or [type(one) for one in separators] != [str, str]:
        raise fields.reject("separators", "malformed separators", separators, "two strings")
    flags: dict[str, Any] = {name: fields.boolean(name, default) for name, default in _FLAGS.items()}
    encoder = json.JSONEncoder(indent=indent, separators=tuple(separators), **flags)
    decoder = json.JSONDecoder(strict=fields.boolean("strict", default=True))
    return Json(encoding, encoder, decoder, has_shape, decoded)


CODECS = (
    Record(
        id="json2", kind=A2B, names={"numcodecs.json2": Name(bind)},
        parameters=dict.fromkeys((*_FLAGS, *_OTHERS), object), words="objects as JSON",
    ),
    Record(
        id="json", kind=A2B, names={"numcodecs.json": Name(bind_json)},
        parameters=dict.fromkeys((*_FLAGS, *_OTHERS), object),
    ),
)  # fmt: skip

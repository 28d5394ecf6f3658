"""Blocks of N5 as chunks of Zarr, and back.

A block is a header, then the elements in C order, big-endian, compressed. Blocks at the far edges hold only what is
inside the array; chunks of Zarr have one size. So such a block is decoded, completed with zeros and encoded again, at
the lowest level of its compressor. All others lose their header, and are not copied.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from omnizarr.codecs import chain as chains
from omnizarr.codecs.chain import Chain
from omnizarr.codecs.contract import ArraySpec, BytesSpec
from omnizarr.codecs.lz4 import Lz4
from omnizarr.errors import (
    ChunkError,
    ChunkSizeError,
    MissingDependencyError,
    NotRepresentableError,
    Remedy,
    Setting,
)
from omnizarr.model import Named, datatypes
from omnizarr.readers.n5.documents import SPEC, Dataset
from omnizarr.settings import config
from omnizarr.stores.base import Buffer
from omnizarr.support import extras
from omnizarr.support.memo import Memo

_FAST: Final[dict[str, dict[str, Any]]] = {
    "gzip": {"level": 0},
    "numcodecs.zlib": {"level": 0},
    "numcodecs.bz2": {"level": 1},
    "numcodecs.lzma": {"preset": 0},
    "zstd": {"level": -5},
    "blosc": {"clevel": 0},
}
_MODES: Final = {1: "varlength", 2: "object"}
_FRAME: Final = struct.Struct("<8sBiiI")
_MAGIC: Final = b"LZ4Block"
_RAW, _LZ4 = 0x10, 0x20
_GROWTH: Final = 64  # bytes of a chunk for one of its block

_chains: Final[Memo[Chain]] = Memo(256)


def header_size(ndim: int) -> int:
    """Return the number of bytes of the header of a usual block."""
    return 4 + 4 * ndim


def chunk_of(dataset: Dataset, block: Buffer) -> Buffer:
    """Return a block as a chunk.

    Raises
    ------
    ChunkError
        If it is no block of this array, or holds other than one element for each position.
    ChunkSizeError
        If it is larger than the array says, or too short.
    """
    header = dataset.header
    if not dataset.is_decoded and bytes(block[: len(header)]) == header:
        return memoryview(block)[len(header) :]
    shape, start = _header(dataset, block)
    payload: Buffer = memoryview(block)[start:]
    if shape != dataset.block:
        _check_room(dataset, len(block))
    if not math.prod(shape):
        return _whole(dataset, fast=True).encode(np.zeros(dataset.block[::-1], _dtype(dataset)))
    if dataset.is_decoded:
        payload = _decoded(dataset, payload, shape)
    if shape == dataset.block:
        return payload
    whole = np.zeros(dataset.block[::-1], _dtype(dataset))
    whole[tuple(slice(length) for length in reversed(shape))] = _bound(dataset, shape, fast=False).decode(payload)
    return _whole(dataset, fast=True).encode(whole)


def block_of(dataset: Dataset, chunk: Buffer, at: tuple[int, ...]) -> Buffer:
    """Return a chunk as a block; `at` is its position as N5 counts. What is beyond the array is cut off if it is 0."""
    if dataset.is_decoded:
        raise NotRepresentableError(
            f"blocks with the compression {dataset.compression} of N5 can only be read",
            remedy="convert the array, or write a new one with another compression",
        )
    shape = tuple(
        min(block, length - block * position)
        for block, length, position in zip(dataset.block, dataset.dimensions, at, strict=True)
    )
    if shape == dataset.block or min(shape) <= 0:
        return b"".join((dataset.header, chunk))
    whole = _whole(dataset, fast=False).decode(chunk)
    part = whole[tuple(slice(length) for length in reversed(shape))]
    if np.count_nonzero(_bits(whole)) != np.count_nonzero(_bits(part)):
        return b"".join((dataset.header, chunk))  # another program may have made the array longer
    header = struct.pack(f">HH{len(shape)}I", 0, len(shape), *shape)
    return b"".join((header, _bound(dataset, shape, fast=False).encode(np.ascontiguousarray(part))))


def _check_room(dataset: Dataset, stored: int) -> None:
    """Raise ChunkError if a small block would become a very large chunk."""
    most = max(config.get("array.variable_chunk_bytes"), _GROWTH * stored)
    if dataset.nbytes > most:
        raise ChunkError(
            f"a block of {stored} bytes would become a chunk of the full size",
            found=f"{dataset.nbytes} bytes",
            expected=f"at most {most} bytes",
            remedy=Remedy(
                "if that is what was written, raise {setting}", setting=Setting("array.variable_chunk_bytes")
            ),
            spec=SPEC,
        )


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the elements as integers, so that -0.0 is not 0."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "f" else array


def _header(dataset: Dataset, block: Buffer) -> tuple[tuple[int, ...], int]:
    """Return the shape of a block, and where its elements begin."""
    ndim, size = len(dataset.block), header_size(len(dataset.block))
    if len(block) < size:
        raise ChunkSizeError("too short for the header of a block", found=f"{len(block)} bytes",
                             expected=f"at least {size} bytes", spec=SPEC)  # fmt: skip
    mode, dimensions = struct.unpack_from(">HH", block)
    if mode > 1 or dimensions != ndim:
        named = f" ({_MODES[mode]})" if mode in _MODES else ""
        raise ChunkError("the block is of another mode or dimensionality", spec=SPEC,
                         found=f"mode {mode}{named}, {dimensions} dimensions",
                         expected=f"mode 0 (default) or 1 (varlength), {ndim} dimensions")  # fmt: skip
    shape = struct.unpack_from(f">{ndim}I", block, 4)
    if any(length > most for length, most in zip(shape, dataset.block, strict=True)):
        raise ChunkSizeError("the block is larger than the chunk", found=shape, expected=dataset.block, spec=SPEC)
    if mode == 0:
        return shape, size
    if len(block) < size + 4:
        raise ChunkSizeError("too short for the header of a block", found=f"{len(block)} bytes",
                             expected=f"at least {size + 4} bytes", spec=SPEC)  # fmt: skip
    (number,) = struct.unpack_from(">I", block, size)
    if number != math.prod(shape):
        raise ChunkError("a block of variable length, which is not one element for each position", spec=SPEC,
                         found=f"{number} elements", expected=f"{math.prod(shape)} elements")  # fmt: skip
    return shape, size + 4


# -- elements ----------------------------------------------------------------------------------


def _dtype(dataset: Dataset) -> np.dtype[Any]:
    return np.dtype(dataset.data_type)


def _whole(dataset: Dataset, *, fast: bool) -> Chain:
    return _bound(dataset, dataset.block, fast=fast)


def _bound(dataset: Dataset, shape: tuple[int, ...], *, fast: bool) -> Chain:
    """Return the codecs of a block of this shape; `fast`: those that compress least."""

    def bind() -> Chain:
        data_type = datatypes.parse(dataset.data_type)
        codecs = [
            Named(each.name, {**each.configuration, **_FAST.get(each.name, {})}) if fast else each
            for each in dataset.codecs
        ]
        return chains.bind(codecs, ArraySpec(shape[::-1], data_type, data_type.default_fill_value))

    listed = tuple((each.name, dict(each.configuration)) for each in dataset.codecs)
    return _chains.get((listed, dataset.data_type, shape, fast), bind)


# -- compressions that Zarr does not have ---------------------------------------------------------


def _decoded(dataset: Dataset, payload: Buffer, shape: tuple[int, ...]) -> Buffer:
    size = math.prod(shape) * _dtype(dataset).itemsize
    decode = _DECODERS[dataset.compression]
    found = decode(payload, size, dataset)
    if len(found) != size:
        raise ChunkSizeError("the decoded bytes have the wrong size", codec=dataset.compression,
                             found=f"{len(found)} bytes", expected=f"{size} bytes", spec=SPEC)  # fmt: skip
    return found


def _from_lz4(payload: Buffer, size: int, dataset: Dataset) -> bytes:
    """Return what the frames of lz4-java's ``LZ4BlockOutputStream`` hold, or the one block that z5 writes.

    The checksums of frames are not compared.
    """
    found: list[Buffer] = []
    length = at = 0
    view = memoryview(payload)
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        return bytes(Lz4(1, BytesSpec(size)).decode(struct.pack("<i", size) + view))
    while at < len(view):
        if len(view) - at < _FRAME.size:
            raise _no_frame(f"{len(view) - at} bytes", f"{_FRAME.size} bytes of a header")
        magic, token, stored, decoded, _ = _FRAME.unpack_from(view, at)
        at += _FRAME.size
        method = token & 0xF0
        if magic != _MAGIC or method not in (_RAW, _LZ4) or stored < 0 or decoded < 0:
            raise _no_frame(f"{magic!r}, method {method}", f"{_MAGIC!r}, method {_RAW} or {_LZ4}")
        part = view[at : at + stored]
        at += stored
        length += decoded
        if not decoded:
            break
        if length > size or len(part) < stored or (method == _RAW and stored != decoded):
            raise _no_frame(f"{len(part)} bytes for {length}", f"{stored} bytes for at most {size}")
        if method == _LZ4:
            found.append(Lz4(1, BytesSpec(decoded)).decode(struct.pack("<i", decoded) + part))
        else:
            found.append(part)
    return b"".join(found)


def _no_frame(found: str, expected: str) -> ChunkError:
    return ChunkError("the LZ4 frames of the block are broken", codec="lz4", found=found, expected=expected, spec=SPEC)


def _from_jpeg(payload: Buffer, size: int, dataset: Dataset) -> bytes:
    """Return the pixels of a picture of 8 bits."""
    try:
        images = import_module("PIL.Image")
    except ModuleNotFoundError as error:
        raise MissingDependencyError("blocks in JPEG need the package Pillow", remedy=extras.remedy("show")) from error
    try:
        with images.open(io.BytesIO(payload), formats=["JPEG"]) as picture:
            found = picture.width * picture.height * len(picture.getbands())
            if found != size:
                raise ChunkSizeError("the picture has the wrong size", codec="jpeg", found=f"{found} bytes",
                                     expected=f"{size} bytes", spec=SPEC)  # fmt: skip
            return bytes(picture.tobytes())
    except (OSError, ValueError, images.DecompressionBombError, SyntaxError) as error:
        raise ChunkError(f"the picture is broken: {error}", codec="jpeg", spec=SPEC) from error


_DECODERS: Final[dict[str, Callable[[Buffer, int, Dataset], bytes]]] = {"lz4": _from_lz4, "jpeg": _from_jpeg}

"""Descriptions of codecs for the native engine: a name and plain values; None if it does not have the codec.

Each description is what ``rust/src/codecs/bind.rs`` (filters, ``bytes``, compressors) or ``rust/src/chain.rs``
(``transpose``, ``sharding``) accepts. Numbers of elements come first, then data types as type strings of NumPy
(``<i4``), then parameters. Codecs are recognised by the exact type of their object: this imports no module that
the array does not need already, and codecs of other packages are left to the reference engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from omnizarr.codecs.chain import Chain
from omnizarr.codecs.contract import ArraySpec, BytesSpec, Codec

Description: TypeAlias = tuple[Any, ...]
Spec: TypeAlias = ArraySpec | BytesSpec
AnyDType: TypeAlias = np.dtype[Any]

_LARGEST: Final = 2**63 - 1
_EXACT: Final = 2**53
"""Integers up to this size are exact as float64."""
_MOST_FIXES: Final = 64
"""Records with more fields that need conversion are left to NumPy."""
_INTEGERS: Final = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
_FLOATS: Final = ("f4", "f8")
_LOW_BITS: Final = {"float4_e2m1fn": 0x0F, "float6_e2m3fn": 0x3F, "float6_e3m2fn": 0x3F}
_WORD: Final = 64
_CHECKSUMS: Final = {
    ("omnizarr.codecs.checksums", "crc32c"): "crc32c",
    ("zlib", "crc32"): "crc32",
    ("zlib", "adler32"): "adler32",
    ("omnizarr.codecs.checksums", "_fletcher32"): "fletcher32",
}


def describe_chain(chain: Chain) -> Description | None:
    """Return ``(filters, serializer, compressors)``, each described; None if one of them is not supported.

    A codec that packs bits is a filter here, followed by plain bytes.

    Examples
    --------
    >>> from omnizarr.model import datatypes
    >>> from omnizarr.codecs import chain
    >>> from omnizarr.model import Named
    >>> spec = ArraySpec((2, 3), datatypes.parse("int16"), np.int16(0))
    >>> describe_chain(chain.bind([Named("bytes", {"endian": "big"}), Named("zstd", {"level": 3})], spec))
    ((), ('bytes', 2, (('swap', 0, 2, 1),)), (('zstd', 3, False),))
    """
    if chain.left_out:
        return None
    here: Spec = chain.spec
    described: list[Description | None] = []
    codecs: tuple[tuple[str, Codec], ...] = (*chain.filters, chain.serializer, *chain.compressors)
    for _, codec in codecs:
        described.append(describe(codec, here))
        here = codec.encoded
    if None in described:
        return None
    place = len(chain.filters)
    filters, serializer, compressors = tuple(described[:place]), described[place], tuple(described[place + 1 :])
    if serializer is not None and serializer[0] == "packbits":
        return (*filters, serializer), ("bytes", 1, ()), compressors
    return filters, serializer, compressors


def describe(codec: Any, spec: Spec) -> Description | None:
    """Return the name and the arguments of a codec bound to `spec`; None if the native engine does not have it.

    Examples
    --------
    >>> from omnizarr.codecs import shuffle
    >>> describe(shuffle.bind({"elementsize": 8}, BytesSpec(64)), BytesSpec(64))
    ('shuffle', 8)
    """
    kind = type(codec)
    function = _TABLE.get((kind.__module__, kind.__qualname__))
    return None if function is None else function(codec, spec)


# ---- bytes to bytes


def _checksum(codec: Any, _spec: Spec) -> Description | None:
    function = codec.checksum
    name = _CHECKSUMS.get((getattr(function, "__module__", ""), getattr(function, "__qualname__", "")))
    return None if name is None else (name, codec.is_first)


# ---- array to bytes


def _bytes(codec: Any, spec: Spec) -> Description | None:
    decoded = codec.decoded.dtype
    fixes: list[Description] = []
    for fix in _fixes(decoded, codec.stored, 0):
        if fix is None or len(fixes) == _MOST_FIXES:
            return None
        fixes.append(fix)
    return ("bytes", decoded.itemsize, tuple(fixes)) if decoded.itemsize else None


def _fixes(decoded: AnyDType, stored: AnyDType, offset: int) -> Iterator[Description | None]:
    """Yield the conversions of a stored element, besides copying; None if they cannot be described."""
    if decoded.itemsize != stored.itemsize:
        yield None
    elif decoded.fields is not None and decoded.names is not None:
        if stored.fields is None or stored.names != decoded.names:
            yield None
            return
        for name in decoded.names:
            (field, at), (stored_field, stored_at) = decoded.fields[name][:2], stored.fields[name][:2]
            if at != stored_at:
                yield None
            yield from _fixes(field, stored_field, offset + at)
    elif decoded.subdtype is not None:
        base, stored_base = decoded.base, stored.base
        count = decoded.itemsize // base.itemsize if base.itemsize else 0
        if base.fields is None:
            yield from _leaf_fixes(base, stored_base, offset, count)
            return
        for number in range(count):
            yield from _fixes(base, stored_base, offset + number * base.itemsize)
    else:
        yield from _leaf_fixes(decoded, stored, offset, 1)


def _leaf_fixes(decoded: AnyDType, stored: AnyDType, offset: int, count: int) -> Iterator[Description | None]:
    """Yield the same for `count` adjacent values that are not records."""
    kind, size = decoded.kind, decoded.itemsize
    if kind in "OT" or (kind in "fc" and size > (8 if kind == "f" else 16)):
        yield None
    if stored.names is not None:  # the two parts of a complex number of ml_dtypes
        parts, differs = 2, not stored[0].isnative
    else:
        parts = 2 if kind == "c" else size // 4 if kind == "U" else 1
        differs = size > 1 and stored.isnative != decoded.isnative
    if differs:
        yield "swap", offset, size // parts, parts * count
    if kind == "b":
        yield "bool", offset, count
    elif kind == "U":
        yield "text", offset, parts * count, not decoded.isnative
    elif decoded.name in _LOW_BITS:
        yield "mask", offset, count, _LOW_BITS[decoded.name]


def _sharding(codec: Any, _spec: Spec) -> Description | None:
    inner, index = describe_chain(codec.inner), describe_chain(codec.index)
    if inner is None or index is None or max(codec.inner.spec.shape, default=0) > _LARGEST:
        return None
    sequence = () if codec.sequence is None else (codec.sequence.tolist(),)
    return "sharding", codec.inner.spec.shape, inner, index, codec.index_at_end, *sequence


# ---- array to array


def _packbits(codec: Any, _spec: Spec) -> Description | None:
    swapped = not codec.decoded.dtype.isnative
    return (
        "packbits", codec.components, codec.width, swapped, codec.first, codec.last, codec.is_signed, codec.padding,
    ) if codec.components <= _LARGEST // _WORD else None  # fmt: skip


def _packbools(codec: Any, _spec: Spec) -> Description | None:
    count = codec.decoded.nbytes
    return ("packbools", count) if count <= _LARGEST else None


def _bitround(codec: Any, spec: Spec) -> Description | None:
    nbytes = spec.nbytes
    if nbytes is None or nbytes > _LARGEST or codec.keepbits > _WORD or not isinstance(spec, ArraySpec):
        return None
    width = codec.part.itemsize
    return "bitround", nbytes // width, width, not spec.dtype.isnative, codec.mantissa or 0, codec.keepbits


def _element_filter(codec: Any, spec: Spec) -> Description | None:
    nbytes = spec.nbytes
    function = getattr(codec.forward, "func", None)
    place = (getattr(function, "__module__", ""), getattr(function, "__qualname__", ""))
    describe_filter = _ELEMENT_FILTERS.get(place)
    if describe_filter is None or nbytes is None or nbytes > _LARGEST:
        return None
    if any(dtype.str[1:] not in (*_INTEGERS, *_FLOATS) for dtype in (codec.seen, codec.made)):
        return None
    return describe_filter(codec, nbytes // codec.seen.itemsize)


def _delta(codec: Any, count: int) -> Description | None:
    seen, made = codec.seen, codec.made
    # Sums have the common type of both: other floats, or integers of 64 bits, would round them.
    if np.result_type(seen, made).kind == "f" and seen.newbyteorder("=") != made.newbyteorder("="):
        return None
    return "delta", count, seen.str, made.str


def _fixedscaleoffset(codec: Any, count: int) -> Description | None:
    offset, scale = codec.forward.args
    seen, made = codec.seen, codec.made
    if seen.kind != "f" or any(isinstance(number, int) and abs(number) > _EXACT for number in (offset, scale)):
        return None
    if made.kind in "iu" and isinstance(scale, int) and not np.iinfo(made).min <= scale <= np.iinfo(made).max:
        return None  # NumPy needs it to have the type that it divides.
    return "fixedscaleoffset", count, seen.str, made.str, float(offset), float(scale)


def _astype(codec: Any, count: int) -> Description | None:
    return "astype", count, codec.seen.str, codec.made.str


def _quantize(codec: Any, count: int) -> Description | None:
    return "quantize", count, codec.seen.str, codec.made.str, float(codec.forward.args[0])


_ELEMENT_FILTERS: Final[dict[tuple[str, str], Callable[[Any, int], Description | None]]] = {
    ("omnizarr.codecs.delta", "_differences"): _delta,
    ("omnizarr.codecs.fixedscaleoffset", "_scale"): _fixedscaleoffset,
    ("omnizarr.codecs.astype", "_cast"): _astype,
    ("omnizarr.codecs.quantize", "_round"): _quantize,
}

_TABLE: Final[dict[tuple[str, str], Callable[[Any, Spec], Description | None]]] = {
    ("omnizarr.codecs.transpose", "Transpose"): lambda codec, _: ("transpose", codec.order),
    ("omnizarr.codecs.elements", "ElementFilter"): _element_filter,
    ("omnizarr.codecs.bitround", "BitRound"): _bitround,
    ("omnizarr.codecs.packbits", "PackBools"): _packbools,
    ("omnizarr.codecs.packbits", "PackBits"): _packbits,
    ("omnizarr.codecs.bytes", "Bytes"): _bytes,
    ("omnizarr.codecs.sharding", "Sharding"): _sharding,
    ("omnizarr.codecs.gzip", "Gzip"): lambda codec, _: ("gzip", codec.level),
    ("omnizarr.codecs.zlib", "Zlib"): lambda codec, _: ("zlib", codec.level),
    ("omnizarr.codecs.zstd", "Zstd"): lambda codec, _: ("zstd", codec.level, codec.checksum),
    ("omnizarr.codecs.lz4", "Lz4"): lambda codec, _: ("lz4", codec.acceleration),
    ("omnizarr.codecs.blosc", "Blosc"): lambda codec, _: (
        "blosc", codec.cname, codec.clevel, codec.shuffle, codec.typesize, codec.blocksize,
    ),
    ("omnizarr.codecs.checksums", "Checksum"): _checksum,
    ("omnizarr.codecs.shuffle", "Shuffle"): lambda codec, _: ("shuffle", codec.item_size),
}  # fmt: skip

"""Which programs read which codecs and data types of Zarr v3, and the names that most of them know.

The specification of v3 names few codecs and data types. Others are written under the names that zarr-python gave them,
which other programs do not know, or not all. An array that comes to v3 from another format gets compressors and
checksums that all read, if its user does not ask for others: elements are the same, and chunks that are decompressed
and compressed again go through no filter. If no widely known codec gives the same elements, a remark names the programs
that read it.

`tests/interop/test_readers.py` holds the table against these programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.codecs.values import named as named_codec
from omnizarr.formats.reader import is_integer, is_list
from omnizarr.model import ArrayMetadata, Named
from omnizarr.model.datatypes.registry import RAW
from omnizarr.tools.translating.equivalence import bare
from omnizarr.tools.translating.losses import Account

READERS: Final = ("zarr-python", "TensorStore", "zarrs")
"""Programs that were asked."""
_ALL: Final = frozenset(READERS)
_MOST: Final = frozenset({"zarr-python", "zarrs"})
_ONE: Final = frozenset({"zarr-python"})
_NONE: Final[frozenset[str]] = frozenset()

CODECS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("blosc", "bytes", "crc32c", "gzip", "sharding_indexed", "transpose", "zstd"), _ALL),
    **dict.fromkeys(("vlen-bytes", "vlen-utf8"), _MOST),
    **dict.fromkeys(("numcodecs.bitround", "numcodecs.fixedscaleoffset", "numcodecs.shuffle"), _MOST),
    **dict.fromkeys(("numcodecs.bz2", "numcodecs.lz4", "numcodecs.lzma", "numcodecs.zlib"), _ONE),
    **dict.fromkeys(("numcodecs.adler32", "numcodecs.crc32"), _ONE),
    **dict.fromkeys(("numcodecs.fletcher32", "numcodecs.jenkins_lookup3"), _ONE),
    **dict.fromkeys(("numcodecs.astype", "numcodecs.delta", "numcodecs.packbits", "numcodecs.quantize"), _ONE),
    **dict.fromkeys(("numcodecs.base64", "numcodecs.categorize"), _NONE),
}
"""The programs that read each codec of v3."""
DATA_TYPES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), _ALL),
    **dict.fromkeys(("float16", "float32", "float64", "complex64", "complex128"), _ALL),
    **dict.fromkeys(("string", "bytes"), _MOST),
    **dict.fromkeys(("fixed_length_utf32", "numpy.datetime64", "numpy.timedelta64"), _MOST),
    **dict.fromkeys(("null_terminated_bytes", "raw_bytes", "structured"), _ONE),
    "r*": frozenset({"zarrs"}),
    "struct": _NONE,
}
"""The programs that read each data type of v3; zarr-python reads ``struct`` since 3.3, which needs Python 3.12."""

_CHECKSUMS: Final = frozenset({"adler32", "crc32", "fletcher32", "jenkins_lookup3"})
_SHUFFLED: Final[Mapping[str, str]] = {
    "bz2": "zstd",
    "gzip": "zlib",
    "lz4": "lz4",
    "lzma": "zstd",
    "zlib": "zlib",
    "zstd": "zstd",
}
"""Compressors that Blosc contains, or related ones."""
_STRONG: Final = 9
"""The level of zstd that replaces bz2 and lzma."""
_HIGHEST: Final = 9
_ZLIB_DEFAULT: Final = 6
_SHUFFLE_DEFAULT: Final = 4
_BLOSC_MAX_TYPESIZE: Final = 255
_BLOSC_LARGEST: Final = 2**31 - 1 - 16
"""Bytes that one buffer holds."""


def for_readers(codecs: tuple[Named, ...], item_size: int, chunk_size: int, account: Account) -> tuple[Named, ...]:
    """Return codecs with compressors and checksums in place of those that few readers of v3 know.

    Chunks (of so many elements) decode to equal values, and all other codecs are the same.
    """
    has_blosc = item_size * chunk_size <= _BLOSC_LARGEST
    found: list[Named] = []
    rest = list(codecs)
    while rest:
        codec = rest.pop(0)
        name = bare(codec.name)
        if has_blosc and name == "shuffle" and rest and (cname := _SHUFFLED.get(bare(rest[0].name))) is not None:
            other = rest.pop(0)
            size = codec.configuration.get("elementsize", _SHUFFLE_DEFAULT)
            size = size if is_integer(size) and size > 0 else item_size
            found.append(_blosc(cname, _level(other), "shuffle", size))
            _remark(account, f"{name!r} and {bare(other.name)!r}", f"with {found[-1].name!r}")
            continue
        known = _known(codec, name, item_size if has_blosc else 0)
        if known is not None:
            found.append(known)
        if known is not codec:
            _remark(account, repr(name), "without" if known is None else f"with {known.name!r}")
    return tuple(found)


def _known(codec: Named, name: str, item_size: int) -> Named | None:
    """Return the replacement of a codec; None if it can be omitted. `item_size`: 0 if there can be no Blosc."""
    if name == "zlib":
        return Named("gzip", {"level": _level(codec)})
    if name in ("bz2", "lzma"):
        return Named("zstd", {"level": _STRONG, "checksum": False})
    if name == "lz4" and not item_size:
        return Named("zstd", {"level": 1, "checksum": False})
    if name == "lz4":
        return _blosc("lz4", _level(codec), "noshuffle", item_size)
    if name in _CHECKSUMS:
        return Named("crc32c")
    return None if name in ("shuffle", "base64") else codec


def _level(codec: Named) -> int:
    level = codec.configuration.get("level", 1)
    if not is_integer(level):
        return 1
    return min(level, _HIGHEST) if level >= 0 else _ZLIB_DEFAULT


def _blosc(cname: str, level: int, shuffle: str, item_size: int) -> Named:
    typesize = item_size if 0 < item_size <= _BLOSC_MAX_TYPESIZE else 1
    return Named("blosc", {"cname": cname, "clevel": level, "shuffle": shuffle, "typesize": typesize, "blocksize": 0})


def _remark(account: Account, what: str, how: str) -> None:
    account.remark(f"few readers of Zarr v3 know {what}: chunks are compressed again {how} (unless compressors='keep')")


def structured(named: Named) -> Named | None:
    """Return the data type ``struct`` as zarr-python 3.1 has it; None if its fields cannot be said there."""
    fields: Any = named.configuration.get("fields")
    found: list[list[Any]] = []
    for field in fields if is_list(fields) else ():
        if not isinstance(field, Mapping) or field.get("shape") or "byte_order" in field:
            return None
        inner = field["data_type"]
        if isinstance(inner, Mapping) and inner.get("name") == "struct":
            record = structured(Named("struct", inner["configuration"]))
            if record is None:
                return None
            inner = {"name": record.name, "configuration": dict(record.configuration)}
        found.append([field["name"], inner])
    return Named("structured", {"fields": found}) if found else None


def remark_readers(target: ArrayMetadata, account: Account) -> None:
    """Say so if fewer than two of the programs that were asked read a codec of an array, or its data type."""
    name = target.data_type.name
    things = [("data type", "r*" if RAW.fullmatch(name) else name, DATA_TYPES)]
    things += [("codec", codec.name, CODECS) for codec in _all_codecs(target.codecs)]
    for kind, name, table in things:
        readers = table.get(name, _ALL)
        if len(readers) > 1:
            continue
        others = [reader for reader in READERS if reader not in readers]
        text = f"{', '.join(others[:-1])} and {others[-1]} do not read it"
        account.remark(f"{kind} {name!r} is known to {', '.join(sorted(readers)) or 'few programs'}; {text}")


def _all_codecs(codecs: tuple[Named, ...]) -> Iterator[Named]:
    for codec in codecs:
        yield codec
        inner = codec.configuration.get("codecs") if codec.name == "sharding_indexed" else ()
        if is_list(inner):
            yield from _all_codecs(tuple(named_codec(item) for item in inner))

"""Codecs, sizes and formats in plain words, for listings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from omnizarr.model import JSON, Named
from omnizarr.support.text import duration as duration
from omnizarr.support.text import plural as plural
from omnizarr.support.text import size as size

# A configuration can contain any text: show only as much as fits in a line.
_LONGEST: Final = 60


def exact_size(nbytes: int) -> str:
    """Return a number of bytes, followed by the same in a larger unit.

    >>> exact_size(13915645), exact_size(949)
    ('13915645 (13.3M)', '949')
    """
    return str(nbytes) if nbytes < 1024 else f"{nbytes} ({size(nbytes).replace(' ', '').removesuffix('iB')})"


def ratio(logical: int, stored: int) -> str:
    """Return the ratio of logical to stored bytes.

    >>> ratio(94608000, 13915645), ratio(10, 0)
    ('6.8', '-')
    """
    if not stored or not logical:
        return "-"
    value = logical / stored if logical < stored << 1000 else float("inf")
    return f"{value:.2g}" if value < 1 else f"{value:.1f}" if value < 1000 else f"{value:.3g}"


def lengths(shape: Iterable[int]) -> str:
    """Return a shape in words.

    >>> lengths((30, 90, 90)), lengths(())
    ('30×90×90', 'scalar')
    """
    return "×".join(map(str, shape)) or "scalar"


def format_name(dialect: str) -> str:
    """Return the common name of a dialect's format.

    >>> format_name("v2"), format_name("v3-draft2020")
    ('Zarr v2', 'Zarr v3, draft of 2020')
    """
    if not dialect.startswith("v"):
        return dialect
    return f"Zarr {dialect.replace('-draft', ', draft of ')}"


def codecs(chain: Sequence[Named]) -> list[str]:
    """Return what each codec of a chain does to the elements. Little-endian bytes are not mentioned.

    >>> codecs([Named("bytes", {"endian": "big"}), Named("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"})])
    ['big-endian', 'blosc lz4 level 5, bytes shuffled']
    >>> codecs([Named("bytes", {"endian": "little"})])
    []
    """
    return [text for text in map(codec, chain) if text]


def codec(named: Named) -> str:
    """Return what a codec does; for an unknown one, its name and configuration."""
    name, configuration = named.name, named.configuration
    if name == "omnizarr.bytes_filter":
        name = str(configuration.get("id", "filter"))
    name = name.removeprefix("numcodecs.")
    describe = _WORDS.get(name)
    if describe is not None:
        return describe(configuration)
    details = ", ".join(f"{key}={_brief(value)}" for key, value in configuration.items() if key != "id")
    return f"{name} ({details})" if details else name


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _said(text: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda _: text


def _level(name: str, key: str = "level") -> Callable[[Mapping[str, Any]], str]:
    def describe(configuration: Mapping[str, Any]) -> str:
        return f"{name} level {_brief(configuration[key])}" if key in configuration else name

    return describe


def _bytes(configuration: Mapping[str, Any]) -> str:
    return "big-endian" if configuration.get("endian") == "big" else ""


def _transpose(configuration: Mapping[str, Any]) -> str:
    order = configuration.get("order")
    if order == "F" or (isinstance(order, Sequence) and list(order) == list(range(len(order)))[::-1]):
        return "Fortran order"
    return f"axes in order {_brief(list(order) if isinstance(order, tuple) else order)}"


def _zstd(configuration: Mapping[str, Any]) -> str:
    return _level("zstd")(configuration) + (" with checksum" if configuration.get("checksum") is True else "")


_SHUFFLES: Final[Mapping[object, str]] = {
    "shuffle": ", bytes shuffled",
    "bitshuffle": ", bits shuffled",
    1: ", bytes shuffled",
    2: ", bits shuffled",
}


def _blosc(configuration: Mapping[str, Any]) -> str:
    shuffle = configuration.get("shuffle")
    shuffled = _SHUFFLES.get(shuffle, "") if isinstance(shuffle, (str, int)) else ""
    return f"{_level('blosc ' + _brief(configuration.get('cname', '')), 'clevel')(configuration)}{shuffled}"


def _shards(configuration: Mapping[str, Any]) -> str:
    inner = codecs(_chain(configuration.get("codecs"))) or ["uncompressed"]
    index = codecs(_chain(configuration.get("index_codecs"))) or ["no checksum"]
    place = configuration.get("index_location", "end")
    return f"{', then '.join(inner)}, in shards with the index at the {_brief(place)} ({', '.join(index)})"


def _chain(documents: JSON) -> list[Named]:
    """Return the codecs in a configuration."""
    found = []
    for document in documents if isinstance(documents, Sequence) and not isinstance(documents, str) else ():
        if isinstance(document, str):
            found.append(Named(document))
        elif isinstance(document, Mapping) and isinstance(document.get("name"), str):
            configuration = document.get("configuration")
            found.append(Named(str(document["name"]), configuration if isinstance(configuration, Mapping) else {}))
    return found


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "bytes": _bytes,
    "transpose": _transpose,
    "sharding_indexed": _shards,
    "gzip": _level("gzip"),
    "zlib": _level("zlib"),
    "bz2": _level("bzip2"),
    "lzma": _said("lzma"),
    "zstd": _zstd,
    "blosc": _blosc,
    "lz4": _level("lz4, acceleration", "acceleration"),
    "crc32": _said("crc32 checksum"),
    "crc32c": _said("crc32c checksum"),
    "adler32": _said("adler32 checksum"),
    "fletcher32": _said("fletcher32 checksum"),
    "jenkins_lookup3": _said("Jenkins lookup3 checksum"),
    "vlen-utf8": _said("text of any length"),
    "vlen-bytes": _said("byte strings of any length"),
    "vlen-array": _said("rows of any length"),
    "json2": _said("objects as JSON"),
    "msgpack2": _said("objects as MessagePack"),
    "pickle": _said("pickled objects"),
    "shuffle": _said("bytes shuffled"),
    "packbits": _said("eight booleans to a byte"),
    "delta": _said("differences"),
    "bitround": lambda c: f"rounded to {_brief(c.get('keepbits', '?'))} bits of mantissa",
    "quantize": lambda c: f"rounded to {_brief(c.get('digits', '?'))} digits",
    "fixedscaleoffset": lambda c: f"(x - {_brief(c.get('offset', '?'))}) * {_brief(c.get('scale', '?'))}, rounded",
    "scale_offset": lambda c: f"(x - {_brief(c.get('offset', 0))}) * {_brief(c.get('scale', 1))}",
    "cast_value": lambda c: f"as {_brief(c.get('data_type', '?'))}",
    "astype": lambda c: f"as {_brief(c.get('encode_dtype', '?'))}",
}

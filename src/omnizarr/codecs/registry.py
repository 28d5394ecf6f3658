"""Looking up codecs by name.

The order is: codecs that the program registered, the table below, and packages with a codec under the entry
points ``omnizarr.codecs`` (a bind function), ``zarr.codecs`` (a codec class of zarr-python) or
``numcodecs.codecs`` (for names ``numcodecs.<id>``). Modules are imported at first use.

Spec: Zarr v3 core, "Extension points"; zarr-extensions, "codecs", for the registered names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from omnizarr.errors import MissingDependencyError, UnknownCodecError
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

    from omnizarr.support import suggestions
else:
    suggestions = Lazy("omnizarr.support.suggestions")

Kind: TypeAlias = Literal["array to array", "array to bytes", "bytes to bytes", "array or bytes"]
"""The kind of a codec; "array or bytes" if it is known only after binding."""

Bind: TypeAlias = Callable[[Any, Any], Any]
"""A function of configuration and decoded representation. See `omnizarr.codecs.contract`."""

ENTRY_POINTS: Final = "omnizarr.codecs"

_A2A: Final = "array to array"
_A2B: Final = "array to bytes"
_B2B: Final = "bytes to bytes"

_TABLE: Final[dict[str, tuple[Kind, str]]] = {
    # Zarr v3 core and zarr-extensions
    "bitround": (_A2A, "bitround:bind"),
    "blosc": (_B2B, "blosc:bind"),
    "bytes": (_A2B, "bytes:bind"),
    "cast_value": (_A2A, "cast_value:bind"),
    "conditional": (_B2B, "conditional:bind"),
    "crc32c": (_B2B, "checksums:bind_crc32c"),
    "endian": (_A2B, "bytes:bind"),  # the name of "bytes" until 2023
    "gzip": (_B2B, "gzip:bind"),
    "n5_default": (_A2B, "n5_default:bind"),
    "packbits": (_A2B, "packbits:bind"),
    "reshape": (_A2A, "reshape:bind"),
    "scale_offset": (_A2A, "scale_offset:bind"),
    "sharding_indexed": (_A2B, "sharding:bind"),
    "transpose": (_A2A, "transpose:bind"),
    "vlen-bytes": (_A2B, "vlen:bind_bytes"),
    "vlen-utf8": (_A2B, "vlen:bind_utf8"),
    "zfp": (_A2B, "zfp:bind"),
    "zstd": (_B2B, "zstd:bind"),
    # numcodecs, under the names that zarr-python and zarrs write into v3 documents
    "numcodecs.adler32": (_B2B, "checksums:bind_adler32"),
    "numcodecs.astype": (_A2A, "astype:bind"),
    "numcodecs.base64": (_B2B, "base64:bind"),
    "numcodecs.bitround": (_A2A, "bitround:bind_numcodecs"),
    "numcodecs.blosc": (_B2B, "blosc:bind_numcodecs"),
    "numcodecs.bz2": (_B2B, "bz2:bind"),
    "numcodecs.categorize": (_A2A, "categorize:bind"),
    "numcodecs.crc32": (_B2B, "checksums:bind_crc32"),
    "numcodecs.crc32c": (_B2B, "checksums:bind_numcodecs_crc32c"),
    "numcodecs.delta": (_A2A, "delta:bind"),
    "numcodecs.fixedscaleoffset": (_A2A, "fixedscaleoffset:bind"),
    "numcodecs.fletcher32": (_B2B, "checksums:bind_fletcher32"),
    "numcodecs.gzip": (_B2B, "gzip:bind_numcodecs"),
    "numcodecs.jenkins_lookup3": (_B2B, "checksums:bind_jenkins_lookup3"),
    "numcodecs.json": (_A2B, "json2:bind_json"),
    "numcodecs.json2": (_A2B, "json2:bind"),
    "numcodecs.lz4": (_B2B, "lz4:bind"),
    "numcodecs.lzma": (_B2B, "lzma:bind"),
    "numcodecs.msgpack": (_A2B, "msgpack2:bind_msgpack"),
    "numcodecs.msgpack2": (_A2B, "msgpack2:bind"),
    "numcodecs.packbits": (_A2A, "packbits:bind_numcodecs"),
    "numcodecs.pcodec": (_A2B, "pcodec:bind"),
    "numcodecs.pickle": (_A2B, "pickle:bind"),
    "numcodecs.quantize": (_A2A, "quantize:bind"),
    "numcodecs.shuffle": (_B2B, "shuffle:bind"),
    "numcodecs.szip": (_B2B, "szip:bind"),
    "numcodecs.vlen-array": (_A2B, "vlen:bind_array"),
    "numcodecs.vlen-bytes": (_A2B, "vlen:bind_bytes"),
    "numcodecs.vlen-utf8": (_A2B, "vlen:bind_utf8"),
    "numcodecs.zfpy": (_A2B, "zfpy:bind"),
    "numcodecs.zlib": (_B2B, "zlib:bind"),
    "numcodecs.zstd": (_B2B, "zstd:bind_numcodecs"),
    # the same, under the names that zarrs writes if the plain name is free
    "adler32": (_B2B, "checksums:bind_adler32"),
    "base64": (_B2B, "base64:bind"),
    "bz2": (_B2B, "bz2:bind"),
    "crc32": (_B2B, "checksums:bind_crc32"),
    "fletcher32": (_B2B, "checksums:bind_fletcher32"),
    "jenkins_lookup3": (_B2B, "checksums:bind_jenkins_lookup3"),
    "lz4": (_B2B, "lz4:bind"),
    "lzma": (_B2B, "lzma:bind"),
    "shuffle": (_B2B, "shuffle:bind"),
    "zlib": (_B2B, "zlib:bind"),
    # omnizarr's own: no document has this name
    "omnizarr.bytes_filter": (_B2B, "bytes_filter:bind"),
}

_EXTRAS: Final = {"msgpack": "msgpack", "pcodec": "pcodec", "zfpy": "zfp", "ml_dtypes": "ml", "imagecodecs": "szip"}


class Entry(NamedTuple):
    """A codec that was found. Call it to bind it.

    Attributes
    ----------
    name : str
    kind : str
        "array to array", "array to bytes", "bytes to bytes", or "array or bytes" if that is not known yet.
    bind : callable
        ``bind(configuration, decoded) -> codec``.
    """

    name: str
    kind: Kind
    bind: Bind

    def __call__(self, configuration: Any, decoded: Any) -> Any:
        """Bind the codec."""
        return self.bind(configuration, decoded)


_found: dict[str, Entry] = {}
_registered: list[str] = []


def register(name: str, bind: Bind, kind: Kind = "array or bytes") -> None:
    """Register a codec under `name` in this process. It takes precedence over other codecs of that name.

    Parameters
    ----------
    name : str
        The name in documents.
    bind : callable
        ``bind(configuration, decoded)`` as in `omnizarr.codecs.contract`.
    kind : str, optional
        The kind of the codec, so that a chain can report a codec in the wrong position.

    Examples
    --------
    >>> from omnizarr.codecs import registry
    >>> registry.register("example.alias_of_gzip", registry.find("gzip").bind, "bytes to bytes")
    >>> registry.find("example.alias_of_gzip").kind
    'bytes to bytes'
    """
    _found[name] = Entry(name, kind, bind)
    _registered.append(name)


def generation() -> int:
    """Return a number that changes with every `register`, because bound codecs may then be outdated."""
    return len(_registered)


def find(name: str) -> Entry:
    """Return the codec with a name.

    Raises
    ------
    UnknownCodecError
        If neither omnizarr nor an installed package has the codec.
    MissingDependencyError
        If the codec needs a package that is not installed.
    """
    entry = _found.get(name)
    if entry is None:
        entry = _from_table(name) or _from_entry_points(name) or _from_numcodecs(name)
        if entry is None:
            raise _unknown(name)
        _found[name] = entry
    return entry


def known_names() -> list[str]:
    """Return the sorted names of all codecs that `find` finds, except numcodecs ids of other packages."""
    offered = {point.name for group in (ENTRY_POINTS, "zarr.codecs") for point in entry_points(group=group)}
    return sorted({*_TABLE, *_found, *offered})


@cache
def entry_points(**query: str) -> EntryPoints:
    """Return the entry points of installed packages. This takes 10 ms, and most processes never need it."""
    found: EntryPoints = import_module("importlib.metadata").entry_points(**query)
    return found


def _from_table(name: str) -> Entry | None:
    if name not in _TABLE:
        return None
    kind, place = _TABLE[name]
    module, _, function = place.partition(":")
    try:
        bind = getattr(import_module(f"omnizarr.codecs.{module}"), function)
    except ImportError as error:
        raise _missing(name, error) from error
    return Entry(name, kind, bind)


def _from_entry_points(name: str) -> Entry | None:
    for point in entry_points(group=ENTRY_POINTS, name=name):
        bind = _load(name, point)
        return Entry(name, getattr(bind, "kind", "array or bytes"), bind)
    for point in entry_points(group="zarr.codecs", name=name):
        kind, bind = _foreign().from_zarr_python(name, _load(name, point))
        return Entry(name, kind, bind)
    return None


def _from_numcodecs(name: str) -> Entry | None:
    """Return a codec of numcodecs, or of a package that extends it, that is not in the table."""
    prefix, _, codec_id = name.partition(".")
    if prefix != "numcodecs" or not codec_id:
        return None
    found = _foreign().from_numcodecs(name, codec_id)
    return None if found is None else Entry(name, *found)


def _foreign() -> Any:
    return import_module("omnizarr.codecs.foreign")


def _load(name: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except ImportError as error:
        raise _missing(name, error) from error


def _missing(name: str, error: ImportError) -> MissingDependencyError:
    package = error.name or "unknown"
    extra = _EXTRAS.get(package)
    return MissingDependencyError(
        f"the codec needs the package {package!r}, which cannot be imported ({error})",
        codec=name,
        remedy=f"pip install 'omnizarr[{extra}]'" if extra else f"install {package}",
    )


def _unknown(name: str) -> UnknownCodecError:
    names = known_names()
    question = suggestions.meant(name, names, most=3)
    hint = f"{question} " if question else ""
    return UnknownCodecError(
        "unknown codec",
        codec=name,
        expected=f"one of {', '.join(names)}",
        remedy=f'{hint}A package can add a codec under the entry point "{ENTRY_POINTS}", '
        "a program with omnizarr.codecs.registry.register",
    )

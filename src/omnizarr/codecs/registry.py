"""Looking up codecs by name.

The order is: codecs that the program registered, the table below, and packages with a codec under the entry
points ``omnizarr.codecs`` (a bind function or a `Record`), ``zarr.codecs`` (a codec class of zarr-python) or
``numcodecs.codecs`` (for names ``numcodecs.<id>``). Modules are imported at first use.

Spec: Zarr v3 core, "Extension points"; zarr-extensions, "codecs", for the registered names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from omnizarr.codecs.record import NUMCODECS, Bind, Kind, Record, brief
from omnizarr.errors import CodecError, MissingDependencyError, UnknownCodecError
from omnizarr.model import JSON, Named, plugins
from omnizarr.support import extras, suggestions

PLUGINS: Final[plugins.Plugins[Bind | Record]] = plugins.Plugins("omnizarr.codecs", "codec")
_OF_ZARR_PYTHON: Final[plugins.Plugins[Any]] = plugins.Plugins("zarr.codecs", "codec")

MODULES: Final[dict[str, str]] = {
    **{
        name: name
        for name in (
            *("astype", "base64", "bitround", "blosc", "bytes", "bz2", "cast_value", "categorize", "conditional"),
            *("delta", "fits", "fixedscaleoffset", "grib", "gzip", "json2", "lz4", "lzma", "msgpack2", "n5_default"),
            *(
                "optional",
                "packbits",
                "pcodec",
                "pickle",
                "quantize",
                "reshape",
                "scale_offset",
                "shuffle",
                "szip",
                "transpose",
            ),
            *("zfp", "zfpy", "zlib", "zstd"),
        )
    },
    **dict.fromkeys(("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"), "checksums"),
    "endian": "bytes",
    **dict.fromkeys(("singleton_dim", "zarrs.squeeze"), "reshape"),
    "zarrs.optional": "optional",
    "zarrs.vlen": "vlen_indexed",
    "zarrs.vlen_v2": "vlen",
    "json": "json2",
    "msgpack": "msgpack2",
    "omnizarr.bytes_filter": "bytes_filter",
    "fits_tile": "fits",
    **dict.fromkeys(("tiff", "tiff_predictor"), "tiff"),
    **dict.fromkeys(("jpeg", "jpegxl", "lzw"), "images"),
    "sharding_indexed": "sharding",
    **dict.fromkeys(("vlen-array", "vlen-bytes", "vlen-utf8"), "vlen"),
}
"""The module with the record of each codec, by its name without the prefix of numcodecs."""


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


def register(name: str, bind: Bind | Record, kind: Kind = "array or bytes") -> None:
    """Register a codec under `name` in this process. It takes precedence over other codecs of that name.

    Parameters
    ----------
    name : str
        The name in documents.
    bind : callable
        ``bind(configuration, decoded)`` as in `omnizarr.codecs.contract`; or a `Record` of the codec, which also
        says who reads it and what replaces it.
    kind : str, optional
        The kind of the codec, so that a chain can report a codec in the wrong position. A record has its own.

    Examples
    --------
    >>> from omnizarr.codecs import registry
    >>> registry.register("example.alias_of_gzip", registry.find("gzip").bind, "bytes to bytes")
    >>> registry.find("example.alias_of_gzip").kind
    'bytes to bytes'
    """
    entry = _entry_of(name, bind, kind)
    PLUGINS.register(name, bind)
    _found[name] = entry


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
    offered = PLUGINS.names() | _OF_ZARR_PYTHON.names()
    return sorted({*(name for found in records() for name in found.names), *_found, *offered})


def record(name: str) -> Record | None:
    """Return what is known of the codec with a name in v3; None if nothing is. This runs no codec.

    Codecs of other packages have a record if the package offers one.

    Examples
    --------
    >>> record("numcodecs.bz2").kind, record("bz3")
    ('bytes to bytes', None)
    """
    module = MODULES.get(bare(name))
    if module is not None:
        return next((found for found in import_module(f"omnizarr.codecs.{module}").CODECS if name in found.names), None)
    try:
        found = PLUGINS.find(name)
    except MissingDependencyError:
        return None
    return found if isinstance(found, Record) and name in found.names else None


def bare(name: str) -> str:
    """Return the name of a codec without the prefix that codecs of numcodecs have in v3."""
    return name.removeprefix(NUMCODECS)


def of_numcodecs(codec_id: str) -> Record | None:
    """Return the record of the codec with an id of numcodecs, as in documents of v2; None if there is none."""
    return record(NUMCODECS + codec_id)


def bare_record(name: str) -> Record | None:
    """Return the record of a codec whose name may lack the prefix of numcodecs, or have it needlessly."""
    return record(name) or of_numcodecs(name) or record(bare(name))


def records() -> Iterator[Record]:
    """Yield all records. This imports the modules of all codecs, but none of the packages that these need."""
    for module in dict.fromkeys(MODULES.values()):
        yield from import_module(f"omnizarr.codecs.{module}").CODECS


def words(codec: Named) -> str:
    """Return what a codec does; for an unknown one, its name and configuration."""
    name, configuration = codec.name, codec.configuration
    if name == "omnizarr.bytes_filter":
        name = str(configuration.get("id", "filter"))
    found = bare_record(name)
    if found is not None and found.words is not None:
        return found.words if isinstance(found.words, str) else found.words(configuration)
    details = ", ".join(f"{key}={brief(value)}" for key, value in configuration.items() if key != "id")
    name = bare(name)
    return f"{name} ({details})" if details else name


def words_of_list(documents: JSON) -> list[str]:
    """Return what the codecs of a list in a configuration do, without those that do nothing."""
    found = []
    for document in documents if isinstance(documents, Sequence) and not isinstance(documents, str) else ():
        if isinstance(document, str):
            found.append(words(Named(document)))
        elif isinstance(document, Mapping) and isinstance(document.get("name"), str):
            configuration = document.get("configuration")
            given = configuration if isinstance(configuration, Mapping) else {}
            found.append(words(Named(str(document["name"]), given)))
    return [text for text in found if text]


def _from_table(name: str) -> Entry | None:
    found = record(name)
    if found is None:
        return None
    if found.package is not None:
        package, extra = found.package
        try:
            import_module(package)
        except ImportError as error:
            remedy = extras.remedy(extra) if bare(name) in MODULES else None
            raise PLUGINS.missing(name, error, remedy) from error
    return _entry_of(name, found, found.kind)


def _from_entry_points(name: str) -> Entry | None:
    found = PLUGINS.find(name)
    if found is not None:
        return _entry_of(name, found, getattr(found, "kind", "array or bytes"))
    found = _OF_ZARR_PYTHON.find(name)
    return None if found is None else Entry(name, *_foreign().from_zarr_python(name, found))


def _entry_of(name: str, found: Bind | Record, kind: Kind) -> Entry:
    if not isinstance(found, Record):
        return Entry(name, kind, found)
    if name not in found.names:
        expected = f"one of {', '.join(found.names)}"
        raise CodecError("the record of the codec lacks this name", codec=name, found=name, expected=expected)
    return Entry(name, found.kind, found.names[name].bind)


def _from_numcodecs(name: str) -> Entry | None:
    """Return a codec of numcodecs, or of a package that extends it, that is not in the table."""
    prefix, _, codec_id = name.partition(".")
    if prefix != "numcodecs" or not codec_id:
        return None
    found = _foreign().from_numcodecs(name, codec_id)
    return None if found is None else Entry(name, *found)


def _foreign() -> Any:
    return import_module("omnizarr.codecs.foreign")


def _unknown(name: str) -> UnknownCodecError:
    names = known_names()
    question = suggestions.meant(name, names, most=3)
    hint = f"{question} " if question else ""
    return UnknownCodecError(
        "unknown codec",
        codec=name,
        expected=f"one of {', '.join(names)}",
        remedy=f'{hint}A package can add a codec under the entry point "{PLUGINS.group}", '
        "a program with omnizarr.codecs.registry.register",
    )

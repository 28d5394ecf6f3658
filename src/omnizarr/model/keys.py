"""Chunk key encodings: conversion between coordinates of a chunk and the end of its store key.

A package adds its own under the entry point ``omnizarr.chunk_key_encodings``, a program with `PLUGINS`: a function
``bind(configuration)`` that returns an object with ``encode(coords) -> key`` and ``decode(key, ndim) -> coords or
None``, as in `KeyEncoding`.

Proposed encodings are in `key_extensions`.

Spec: Zarr v3 core, "Chunk key encodings"; zarr-extensions, "default" and "v2".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from omnizarr.errors import MetadataError, UnknownChunkKeyEncodingError
from omnizarr.model import JSON, Named
from omnizarr.model.key_forms import DOCUMENTS, KeyEncoding
from omnizarr.model.plugins import Plugins
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.model import key_extensions
else:
    key_extensions = Lazy("omnizarr.model.key_extensions")

_SPEC: Final = 'Zarr v3, "Chunk key encoding"'


class _Form(NamedTuple):
    """The text around the coordinates in a key; ``{}`` is the separator."""

    separator: str
    head: str
    tail: str
    scalars: tuple[str, ...]
    """Keys of the only chunk of an array without dimensions. The first is written."""


_ANY_SEPARATOR: Final = "omnizarr.draft2019"
"""Keys like those of v2, with any text between the coordinates."""
SCALAR_AS_VECTOR: Final = "omnizarr.nczarr"
"""Keys like those of v3, but the chunk of an array without dimensions has the key of a vector."""

_FORMS: Final[Mapping[str, _Form]] = {
    "default": _Form("/", "c{}", "", ("c",)),
    "v2": _Form(".", "", "", ("0",)),
    _ANY_SEPARATOR: _Form(".", "", "", ("0",)),
    "omnizarr.draft2020": _Form("/", "c", "", ("c", "c0")),
    SCALAR_AS_VECTOR: _Form("/", "c{}", "", ("c{}0",)),
    "omnizarr.v0": _Form(".", "", ".blosc", ("0.blosc",)),
}
_REGISTERED: Final = ("default", "v2")
PROPOSED: Final = ("suffix", "fanout", "template", "zarrs.default_suffix")
"""Encodings of `key_extensions`."""

PLUGINS: Final[Plugins[Callable[[Mapping[str, JSON]], Any]]] = Plugins(
    "omnizarr.chunk_key_encodings", "chunk key encoding", "/chunk_key_encoding"
)


@dataclass(frozen=True, slots=True)
class OtherKeyEncoding(KeyEncoding):
    """A chunk key encoding of another package, whose separator is unknown. Each key that it makes is checked.

    Attributes
    ----------
    named : Named
    made : object
        What the package returned.
    """

    named: Named = field(repr=False)
    made: Any = field(repr=False)

    @property
    def affixes(self) -> None:
        """None: only `encode` makes keys."""

    def encode(self, coords: tuple[int, ...]) -> str:
        """Return the key of the chunk at `coords`. Raises MetadataError if it could be that of something else."""
        key = PLUGINS.bound(self.named, lambda _: self.made.encode(coords))
        if not isinstance(key, str) or not key or key.rpartition("/")[2].startswith(DOCUMENTS):
            raise PLUGINS.refuse(self.named, repr(key), f"a key of the chunk at {coords}, not that of a document")
        if (found := self.decode(key, len(coords))) != coords:
            raise PLUGINS.refuse(self.named, f"decode({key!r}) = {found!r}", f"{coords}, which encode gave this key")
        return key

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        """Return the coordinates of `key` in an array of `ndim` dimensions; None if it is not a chunk key."""
        try:
            coords = PLUGINS.bound(self.named, lambda _: self.made.decode(key, ndim))
        except MetadataError as error:
            if isinstance(error.__cause__, ValueError):  # how int() and zarr-python refuse a key
                return None
            raise
        found = None if coords is None else tuple(coords)
        return found if found is not None and len(found) == ndim and self.made.encode(found) == key else None


def bind(named: Named, depth: int = 0) -> KeyEncoding:
    """Return the chunk key encoding with a name in documents.

    Parameters
    ----------
    named : Named
    depth : int, optional
        How many encodings this one is within.

    Raises
    ------
    UnknownChunkKeyEncodingError
        If the name is unknown.
    MetadataError
        If the configuration is broken.

    Examples
    --------
    >>> bind(Named("v2", {"separator": "/"}))
    KeyEncoding(name='v2', separator='/')
    """
    form = _FORMS.get(named.name)
    if form is None and named.name in PROPOSED:
        return key_extensions.bind(named, bind, depth)
    if form is None and (make := PLUGINS.find(named.name)) is not None:
        return OtherKeyEncoding(named.name, "", "", "", "", named, PLUGINS.bound(named, make))
    if form is None:
        raise UnknownChunkKeyEncodingError(
            "unknown chunk key encoding",
            pointer="/chunk_key_encoding/name",
            found=named.name,
            expected=" or ".join(map(repr, (*_REGISTERED, *PROPOSED))),
            spec=_SPEC,
        )
    known = {"separator"} if len(form.scalars) == 1 else {"separator", "scalar"}
    unknown = sorted(set(named.configuration) - known)
    if unknown:
        raise MetadataError(
            f"unknown member of the configuration of chunk key encoding {named.name!r}",
            pointer=f"/chunk_key_encoding/configuration/{unknown[0]}",
            found=named.configuration[unknown[0]],
            expected="separator only",
            spec=_SPEC,
        )
    separator = named.configuration.get("separator", form.separator)
    is_free = named.name == _ANY_SEPARATOR
    if separator not in ("/", ".") and not (
        is_free and isinstance(separator, str) and separator != "" and not re.search("[0-9]", separator)
    ):
        raise MetadataError(
            "no separator of chunk keys",
            pointer="/chunk_key_encoding/configuration/separator",
            found=repr(separator),
            expected="a text without digits" if is_free else "'/' or '.'",
            spec=_SPEC,
        )
    scalar = named.configuration.get("scalar", form.scalars[0])
    if scalar not in form.scalars:
        raise MetadataError(
            "no key of the chunk of an array without dimensions",
            pointer="/chunk_key_encoding/configuration/scalar",
            found=repr(scalar),
            expected=" or ".join(map(repr, form.scalars)),
        )
    name, separator = named.name, str(separator)
    return KeyEncoding(name, separator, form.head.format(separator), form.tail, str(scalar).format(separator))


def is_known(name: str) -> bool:
    """Whether keys of this encoding have a form that can be recognised without the document of the array."""
    return name in _FORMS


def separated_by(separator: str) -> Named:
    """Return the encoding whose keys consist only of coordinates with a text between them.

    >>> separated_by(".").name, separated_by("-").name
    ('v2', 'omnizarr.draft2019')
    """
    return Named("v2" if separator in (".", "/") else _ANY_SEPARATOR, {"separator": separator})


def others(named: Named, ndim: int) -> tuple[Named, ...]:
    """Return other encodings that programs used although documents stated this one, or none.

    - Scalars of the draft of 2020 have the key ``c`` by its specification, but ``c0`` in zarr-python and GDAL.
    - zarr-python before 2.8 nested chunks in directories without stating it.

    >>> [other.configuration for other in others(Named("omnizarr.draft2020"), 0)]
    [{'separator': '/', 'scalar': 'c0'}]
    """
    if named.name not in _FORMS:
        return ()
    bound = bind(named)
    if ndim == 0:
        scalars = (scalar for scalar in _FORMS[named.name].scalars if scalar != bound.scalar)
        return tuple(Named(named.name, {"separator": bound.separator, "scalar": scalar}) for scalar in scalars)
    if named.name == "v2" and bound.separator == "." and ndim > 1:
        return (Named("v2", {"separator": "/"}),)
    return ()

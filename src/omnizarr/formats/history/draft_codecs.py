"""Translate codecs of the drafts of v3, which are named by URIs, to codecs of numcodecs, and back.

Both drafts say that the URI of a codec leads to its specification, and define no codec but gzip. What programs
wrote has one pattern: the numcodecs id is the last part of the URI that is not a version, and the parameters are those
of numcodecs. So a pipeline of a draft reads like the filters and the compressor of Zarr v2 (`filters`). Other URIs stay
the name of the codec: they matter only for reading chunks.

Spec: Zarr v3 draft of 2019, "Codecs"; draft of 2020, "Chunk encoding".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnizarr.codecs import registry
from omnizarr.formats import filters
from omnizarr.formats.filters import Stack, Step
from omnizarr.formats.reader import Reader
from omnizarr.model import JSON, Named

URI_2019: Final = "http://purl.org/zarr/spec/codec/{}"
"""URI of a codec in the example of the draft of 2019."""
URI_2020: Final = "https://purl.org/zarr/spec/codec/{}/1.0"
"""How the registered URI of gzip reads in 2020; zarr-python, GDAL and xtensor-zarr wrote others by the same pattern."""

_OURS = re.compile(r"https?://purl\.org/zarr/spec/codecs?/(?P<rest>.*)", re.IGNORECASE)
_VERSION = re.compile(r"v?[0-9]+(\.[0-9]+)*(\.html?)?", re.IGNORECASE)
_PREFIX = "numcodecs."
"""GDAL writes 1 for the second, and the words for the others."""


def read_codec_uri(uri: str) -> str | None:
    """Return the numcodecs id for the URI of a codec; None if there is none.

    >>> read_codec_uri("https://purl.org/zarr/spec/codec/gzip/1.0"), read_codec_uri("http://purl.org/zarr/spec/codec/")
    ('gzip', None)
    """
    ours = _OURS.fullmatch(uri.strip())
    text = ours["rest"] if ours else re.sub(r"^[a-zA-Z][-+.a-zA-Z0-9]*://[^/]*", "", uri)
    parts = [part for part in re.split(r"[?#]", text)[0].split("/") if part]
    while parts and _VERSION.fullmatch(parts[-1]):
        parts.pop()
    if not parts:
        return None
    name = parts[-1].lower()
    is_known = registry.of_numcodecs(name) is not None
    return name if is_known or (ours is not None and len(parts) == 1) else None


def write_codec_uri(name: str, pattern: str) -> str:
    """Return the URI of the codec with a numcodecs id, by `URI_2019` or `URI_2020`; a URI is its own.

    >>> write_codec_uri("gzip", URI_2020)
    'https://purl.org/zarr/spec/codec/gzip/1.0'
    """
    return name if _is_uri(name) else pattern.format(name)


def read_codec(
    reader: Reader, uri: str, parameters: Mapping[str, JSON], pointer: str, *, spec: str, at: str | None = None
) -> Step:
    """Return one codec as a step of a pipeline, ready for `load_codecs`.

    Parameters
    ----------
    uri, parameters
        As the document has them.
    pointer : str
        JSON pointer of the URI, for notes.
    spec : str
        Section of the specification.
    at : str, optional
        JSON pointer of the object with the parameters, for notes about them.
    """
    place = pointer if at is None else at
    name = read_codec_uri(uri)
    if name is None and (guess := _guess(uri, parameters)) is not None:
        # zarr-python wrote so every codec that had no URI: until 2.17 zstd, always zfpy and others
        reader.note(pointer, f"a URI without a name, read as {guess!r} after its parameters", spec)
        name = guess
    elif name is not None and not _OURS.fullmatch(uri):
        reader.note(pointer, f"the URI {uri!r}, read as {name!r}", spec)
    step = filters.read_step(reader, {**parameters, "id": name or uri or URI_2020.format("")}, place)
    return step if step is not None else Step(uri, parameters, place)


def load_codecs(
    reader: Reader, steps: Sequence[Step], order: str, ndim: int, dtype: np.dtype[Any]
) -> tuple[Named, ...]:
    """Return the codecs of v3 that `steps` are: `filters.load_chain`, where unknown codecs keep their URI."""
    chain = filters.load_chain(reader, steps, order, ndim, dtype)
    return tuple(
        replace(codec, name=codec.name.removeprefix(_PREFIX)) if _is_uri(codec.name.removeprefix(_PREFIX)) else codec
        for codec in chain
    )


def dump_codecs(codecs: Sequence[Named], ndim: int, label: str) -> Stack:
    """Return the layout, filters and compressor that `codecs` are; the ids in it are numcodecs ids or URIs.

    Raises NotRepresentableError, in which `label` ("the v3 draft of 2020") names the format, if one has no place.
    """
    named = [replace(codec, name=_PREFIX + codec.name) if _is_uri(codec.name) else codec for codec in codecs]
    return filters.dump_chain(named, ndim, label)


def _is_uri(name: str) -> bool:
    return ":" in name or "/" in name


def _guess(uri: str, parameters: Mapping[str, JSON]) -> str | None:
    """Return the codec that has these parameters, where the URI ends before the name of the codec."""
    ours = _OURS.fullmatch(uri)
    if ours is None or ours["rest"].strip("/"):
        return None
    members = parameters.keys()
    if "level" in members and members <= {"level", "checksum"}:
        return "zstd"
    if "mode_spec" in members:
        return "pcodec"
    if "mode" in members:
        return "zfpy"
    return "shuffle" if members == {"elementsize"} else None

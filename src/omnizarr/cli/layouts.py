"""Option values for formats, chunks and codecs."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from omnizarr.formats import DIALECTS

FORMATS: Final = tuple(sorted(dialect.name for dialect in DIALECTS))
"""Names of formats on the command line."""
SPELLED_CODECS: Final = (
    "zstd:3",
    "gzip:5",
    "zlib:1",
    "bz2:9",
    "lz4:1",
    "blosc:lz4:5",
    "blosc:zstd:5",
    "none",
    "auto",
    "keep",
)
"""Completions for codecs."""
CODECS_HELP: Final = "Compression: zstd:3, blosc:lz4:5, none, {}or a list of codecs in JSON."
_LEVELS: Final = {"zstd": "level", "gzip": "level", "zlib": "level", "bz2": "level", "lz4": "acceleration"}
_SHUFFLES: Final = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def parse_format(text: str) -> int | str:
    """Return a format, given by its name or as a value of ``zarr_format=``."""
    for dialect in DIALECTS:
        if text.removeprefix("v") == dialect.name.removeprefix("v"):
            return dialect.zarr_format
    raise click.BadParameter(f"{text!r} is not a format; expected one of {', '.join(FORMATS)}")


def parse_lengths(text: str) -> str | int | tuple[int, ...]:
    """Return lengths along each dimension, separated by commas; one without a comma is for all dimensions."""
    if text == "auto":
        return text
    try:
        lengths = tuple(int(length) for length in text.removesuffix(",").split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r}: lengths are typed as in 100,100") from None
    return lengths if "," in text else lengths[0]


def parse_codecs(text: str) -> dict[str, Any]:
    """Return keywords of `omnizarr.convert` for ``zstd:3``, ``blosc:lz4:5:bitshuffle``, ``none``, or JSON."""
    text = text.strip()
    if text[:1] in ("[", "{"):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise click.BadParameter(f"no JSON: {error}") from None
        return {"codecs": found if isinstance(found, list) else [found]}
    if text in ("none", "auto", "keep"):
        return {"compressors": None if text == "none" else text}
    name, *rest = text.split(":")
    try:
        return {"compressors": _blosc(rest) if name == "blosc" else _numbered(name, rest)}
    except (KeyError, ValueError):
        known = "zstd:3, gzip:5, zlib:1, bz2:9, lz4, blosc:lz4:5:shuffle, none, auto, keep, or JSON"
        raise click.BadParameter(f"{text!r}: expected {known}") from None


def _numbered(name: str, rest: list[str]) -> dict[str, Any]:
    word = _LEVELS[name]
    (level,) = rest or ["1"]
    return {"id": name, word: int(level)}


def _blosc(rest: list[str]) -> dict[str, Any]:
    cname, level, shuffle = [*rest, *["lz4", "5", "shuffle"][len(rest) :]]
    return {"id": "blosc", "cname": cname, "clevel": int(level), "shuffle": _SHUFFLES[shuffle]}

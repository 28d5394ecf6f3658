"""Chunk key encodings: coordinates of a chunk <-> the end of its store key.

Spec: Zarr v3 core, "Chunk key encodings"; zarr-extensions, "default" and "v2".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from omnizarr.errors import MetadataError, UnknownChunkKeyEncodingError
from omnizarr.model import Named

_DEFAULT_SEPARATORS: Final = {"default": "/", "v2": "."}
_HEADS: Final[Mapping[str, tuple[str, ...]]] = {"default": ("c",), "v2": ()}
_SPEC: Final = 'Zarr v3, "Chunk key encoding"'
_LONGEST: Final = 20  # digits of 2**64 - 1: no chunk has a longer coordinate


@dataclass(frozen=True, slots=True)
class KeyEncoding:
    """A bound chunk key encoding.

    Attributes
    ----------
    name : {"default", "v2"}
    separator : {"/", "."}

    Examples
    --------
    >>> bind(Named("default")).encode((1, 23, 45))
    'c/1/23/45'
    >>> bind(Named("v2")).decode("1.23.45", 3)
    (1, 23, 45)
    """

    name: str
    separator: str

    def encode(self, coords: tuple[int, ...]) -> str:
        """Return the key of the chunk at `coords`; ``"c"`` or ``"0"`` if there are no dimensions."""
        return self.separator.join((*_HEADS[self.name], *map(str, coords))) or "0"

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        """Return the coordinates that `key` stands for in an array of `ndim` dimensions; None if it is no chunk key.

        Only the key that `encode` makes of coordinates decodes to them: ``"c/01"`` is no chunk key.
        """
        if not ndim:
            return () if key == self.encode(()) else None
        head = _HEADS[self.name]
        parts = key.split(self.separator)
        numbers = parts[len(head) :]
        if len(numbers) != ndim or tuple(parts[: len(head)]) != head or not all(map(_is_number, numbers)):
            return None
        return tuple(map(int, numbers))


def _is_number(text: str) -> bool:
    """Whether `text` is the one decimal spelling of a number that a coordinate can have."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST and (text[0] != "0" or text == "0")


def bind(named: Named) -> KeyEncoding:
    """Return the chunk key encoding that a document names.

    Raises
    ------
    UnknownChunkKeyEncodingError
        If nobody here knows the name.
    MetadataError
        If the configuration is broken.

    Examples
    --------
    >>> bind(Named("v2", {"separator": "/"}))
    KeyEncoding(name='v2', separator='/')
    """
    if named.name not in _DEFAULT_SEPARATORS:
        raise UnknownChunkKeyEncodingError(
            "unknown chunk key encoding",
            pointer="/chunk_key_encoding/name",
            found=named.name,
            expected=" or ".join(map(repr, _DEFAULT_SEPARATORS)),
            spec=_SPEC,
        )
    unknown = sorted(set(named.configuration) - {"separator"})
    if unknown:
        raise MetadataError(
            f"unknown member of the configuration of chunk key encoding {named.name!r}",
            pointer=f"/chunk_key_encoding/configuration/{unknown[0]}",
            found=named.configuration[unknown[0]],
            expected="separator only",
            spec=_SPEC,
        )
    separator = named.configuration.get("separator", _DEFAULT_SEPARATORS[named.name])
    if separator not in ("/", "."):
        raise MetadataError(
            "no separator of chunk keys",
            pointer="/chunk_key_encoding/configuration/separator",
            found=repr(separator),
            expected="'/' or '.'",
            spec=_SPEC,
        )
    return KeyEncoding(named.name, str(separator))

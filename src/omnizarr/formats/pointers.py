"""Where a document of any format says what the model says: JSON pointers of the model, in the document.

Codecs, data types and grids are bound from the model, which has the terms of Zarr v3. An error about them names the
place in the document that a user can correct.

Spec: RFC 6901; the documents are those of `omnizarr.formats.v2` and `omnizarr.formats.history`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from omnizarr.formats.reader import is_list, join
from omnizarr.model import JSON

_RENAMED: Final = {"data_type": "dtype", "chunk_grid": "chunks", "chunk_key_encoding": "dimension_separator"}
"""Members of v3, and those of v0, v1 and v2 that say the same."""


def in_document(document: JSON, dialect: str, pointer: str, codec: str | None = None) -> str:
    """Return where a document has what is at a place of the model; "" if that cannot be told.

    Parameters
    ----------
    document : JSON
        The document of an array.
    dialect : str
        Name of its dialect.
    pointer : str
        The place in the terms of v3.
    codec : str, optional
        The codec that is there.

    Examples
    --------
    >>> document = {"zarr_format": 2, "compressor": {"id": "gzip", "level": 99}, "dtype": "<i2"}
    >>> in_document(document, "v2", "/codecs/1/configuration/level", "numcodecs.gzip")
    '/compressor/level'
    >>> in_document(document, "v2", "/data_type"), in_document(document, "v3", "/data_type")
    ('/dtype', '/data_type')
    """
    if dialect == "v3":
        return pointer
    member, _, within = pointer.removeprefix("/").partition("/")
    if member != "codecs":
        if not isinstance(document, Mapping) or member in document:
            return pointer
        grid = document.get("chunk_grid")
        if member == "chunk_key_encoding" and isinstance(grid, Mapping) and "separator" in grid:  # of the 2019 draft
            return "/chunk_grid/separator"
        renamed = _RENAMED.get(member, "")
        return join("", renamed) if renamed in document else ""
    wanted = (codec or "").removeprefix("numcodecs.")
    places = [(place, parameters) for place, name, parameters in _codecs_of(document) if name == wanted]
    if len(places) != 1:
        return ""
    place, parameters = places[0]
    _, _, below = within.partition("/")
    _, _, parameter = below.partition("/")
    return f"{place}{parameters}/{parameter}" if parameter and parameters is not None else place


def _codecs_of(document: JSON) -> Iterator[tuple[str, str, str | None]]:
    """Yield pointer and name of each codec of a document, and where in it its parameters are, if there are any."""
    if not isinstance(document, Mapping):
        return
    filters = document.get("filters")
    for index, item in enumerate(filters if is_list(filters) else ()):
        if isinstance(item, Mapping):
            yield join("/filters", index), str(item.get("id")), ""
    compressor = document.get("compressor")
    if isinstance(compressor, Mapping):
        is_v2 = "id" in compressor
        yield "/compressor", str(compressor.get("id", compressor.get("codec"))), "" if is_v2 else "/configuration"
    listed = document.get("chunk_codecs")
    for index, item in enumerate(listed if is_list(listed) else ()):
        if isinstance(item, Mapping):
            yield join("/chunk_codecs", index), str(item.get("codec")), "/configuration"
    if "compression" in document:
        yield "/compression", str(document["compression"]), None

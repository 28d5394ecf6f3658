"""The facts of an array as rows of text, for ``omnizarr info`` and the page of ``omnizarr view``.

Names from data are not escaped: the caller makes them safe to show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from omnizarr.formats.conventions import meaning
from omnizarr.nodes import wording
from omnizarr.nodes.info import ArrayFacts


def rows(facts: ArrayFacts, to_json: Callable[[Any], str]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each row. `to_json` writes the fill value.

    Examples
    --------
    >>> import json
    >>> import omnizarr
    >>> from omnizarr.nodes import info
    >>> array = omnizarr.create_array({}, shape=(8,), chunks=(2,), dtype="int64", compressors="gzip", fill_value=0)
    >>> dict(rows(info.of_array(array.store_path, array.metadata), json.dumps))["chunks"]
    '2 (16 B)'
    """
    yield "data type", facts.data_type
    yield "shape", _shape(facts)
    if facts.shards is not None:
        yield "shards", wording.lengths(facts.shards)
    yield "chunks", chunks(facts)
    yield "codecs", ", then ".join(facts.codecs) or "none: uncompressed"
    yield "fill value", to_json(facts.fill_value) if facts.has_fill_value else "undefined"
    yield "stored", presence(facts)
    yield "size", sizes(facts.bytes_stored, facts.bytes_logical)
    if facts.writers is not None:
        yield "writers", facts.writers
    yield from meaning.rows(facts.meaning)


def _shape(facts: ArrayFacts) -> str:
    spoken = wording.lengths(facts.shape)
    if facts.dimension_names is None:
        return spoken
    names = ", ".join("-" if name is None else name for name in facts.dimension_names)
    return f"{spoken}  ({names})"


def chunks(facts: ArrayFacts) -> str:
    """Return the shape of the chunks, and the bytes of one in memory."""
    if facts.chunks is None:
        return "of different shapes" if facts.expected is not None else "unknown"
    return wording.lengths(facts.chunks) + (
        "" if facts.chunk_nbytes is None else f" ({wording.size(facts.chunk_nbytes)})"
    )


def presence(facts: ArrayFacts) -> str:
    """Return how many chunks (shards) are stored, and how many are missing."""
    if facts.bytes_stored is None:
        return "unknown" if facts.expected is None else f"unknown, of {wording.plural(facts.expected, facts.unit)}"
    if facts.stored is None or facts.expected is None:
        return "its chunks are of an unknown kind"
    missing = facts.expected - facts.stored
    text = f"{facts.stored:,} of {wording.plural(facts.expected, facts.unit)} present"
    return f"{text}, {missing:,} missing" if missing else text


def sizes(stored: int | None, logical: int | None) -> str:
    """Return bytes in the store and in memory, and their ratio."""
    if stored is None:
        return "unknown" if logical is None else f"{wording.size(logical)} logical"
    if logical is None:
        return f"{wording.size(stored)} stored"
    return f"{wording.size(stored)} stored, {wording.size(logical)} logical, ratio {wording.ratio(logical, stored)}"

"""What is mended of itself, what only if it is asked for, and why.

`docs/repairing.md` lists both for users; a test keeps them in step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from omnizarr.support import suggestions
from omnizarr.tools.checking.codes import CODES

DOCUMENT_CODES: Final = frozenset(
    {
        "byte-order-mark",
        "bare-nan",
        "repeated-member",
        "missing-filters",
        "empty-filters",
        "null-separator",
        "undeclared-separator",
        "numbers-as-strings",
        "zero-elementsize",
        "missing-elementsize",
        "byte-order-of-bytes",
        "missing-byte-order",
        "fixed-width-strings",
        "null-fill-value",
        "empty-fill-value",
        "fill-value-kind",
        "null-member",
        "endian-codec",
        "missing-endian",
        "missing-codecs",
        "codec-id",
        "empty-codecs",
        "transpose-letter",
        "missing-index-codecs",
        "zero-chunk-length",
        "codec-uri",
        "shuffle-word",
        "fill-value-as-string",
        "missing-serializer",
        "integer-with-fraction",
        "infinity-spelling",
        "loose-fill-value",
        "legacy-struct",
        "missing-parameter",
        "invalid-typesize",
        "shuffle-of-other-format",
        "short-name",
    }
)
"""Mended within a document: what it says stays the same."""

COPY_CODES: Final = frozenset({"stale-consolidated-metadata", "broken-consolidated-metadata"})

CERTAIN: Final = (
    DOCUMENT_CODES
    | COPY_CODES
    | {
        "only-consolidated",
        "attributes-missing",
        "missing-group",
        "shard-tail-torn",
        "temporary-file",
        "lock-file",
    }
)
"""Mended of itself."""

ASKED: Final[Mapping[str, str]] = {
    "missing-root": "only you know whether all that lies below belongs together",
    "unknown-consolidated-metadata": "the copies may be of a form that is newer than this program",
    "draft-scalar-key": "zarr-python and GDAL do not find the chunk under the key of the text",
    "chunk-beyond-grid": "other programs show the values if the array grows",
    "empty-chunk": "a missing chunk reads as the fill value, where there is an error now",
    "wrong-chunk-size": "what is left of the chunk would go, and the fill value be read instead",
    "undecodable-chunk": "what is left of the chunk would go, and the fill value be read instead",
    "checksum-mismatch": "the values would go, perhaps for one wrong bit, and the fill value be read instead",
    "shard-index-outside": "lost inner chunks would be read as the fill value, where there is an error now",
    "system-file": "it is harmless",
}
"""Mended only where the code is named: why."""

NEEDS_DATA: Final = frozenset({"shard-tail-torn", "shard-index-outside", "undecodable-chunk", "checksum-mismatch"})
"""Found only by decoding chunks."""

KINDS: Final = CERTAIN | ASKED.keys()


def wanted(codes: Iterable[str] | None) -> frozenset[str]:
    """Return what is to be mended. Raises ValueError for what cannot be."""
    if codes is None:
        return CERTAIN
    chosen = frozenset([codes] if isinstance(codes, str) else codes)
    for code in sorted(chosen - KINDS):
        if code in CODES:
            raise ValueError(f"{code} cannot be repaired: {CODES[code].remedy}")
        hint = suggestions.question(suggestions.near_names(code, sorted(KINDS)))
        raise ValueError(f"there is no code {code!r}{f'; {hint}' if hint else ''}")
    return chosen

"""Codecs, sizes and formats in plain words, for listings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnizarr.codecs import registry
from omnizarr.model import Named
from omnizarr.stores import Store
from omnizarr.support.text import duration as duration
from omnizarr.support.text import plural as plural
from omnizarr.support.text import size as size


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


def stored_format(store: Store, dialect: str) -> str:
    """Return the dialect of what is in a store; of files that are only shown as Zarr, the name of their format.

    >>> from omnizarr.stores import MemoryStore
    >>> stored_format(MemoryStore(), "v2")
    'v2'
    """
    return str(store.about_node("").get("format", dialect))


def codecs(chain: Sequence[Named]) -> list[str]:
    """Return what each codec of a chain does to the elements. Little-endian bytes are not mentioned.

    >>> codecs([Named("bytes", {"endian": "big"}), Named("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"})])
    ['big-endian', 'blosc lz4 level 5, bytes shuffled']
    >>> codecs([Named("bytes", {"endian": "little"})])
    []
    """
    return [text for text in map(registry.words, chain) if text]

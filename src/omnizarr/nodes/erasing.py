"""The documents and chunks of a hierarchy among everything below a place, recognised by their keys.

Overwriting a node removes these keys and nothing else. The same directory may hold a README, a git repository, or
data of other programs. Everything is removed that could reappear as data of a new hierarchy: documents of every
format, with or without their node, and keys of chunks, in any encoding, where there is an array.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from omnizarr.errors import OmnizarrError
from omnizarr.formats import DIALECTS, dialect_named, documents
from omnizarr.formats.paths import Above, prefix
from omnizarr.model import JSON, ArrayMetadata, Metadata
from omnizarr.model import keys as chunk_keys
from omnizarr.nodes import holdings
from omnizarr.nodes.location import StorePath, dialects_at
from omnizarr.stores import LocalStore, Store, bounded, verbs

JOURNAL: Final = "omnizarr-conversion.json"
"""Name of the directory that an unfinished conversion leaves in its target."""

_ENTRY: Final = "zarr.json"
_OLDEST: Final = frozenset({"meta", "attrs"})  # names of Zarr v1, which other programs use, too
_NCZARR: Final = frozenset({".nczarr", ".nczgroup", ".nczvar", ".nczarray", ".nczattr"})
_NAMES: Final = (
    frozenset(name for dialect in DIALECTS if dialect.entry_point is None for name in dialect.keyspace.documents(""))
    | _NCZARR
    | {_ENTRY, JOURNAL}
) - _OLDEST
_OF_ARRAYS: Final = frozenset({".zarray", "__zmeta__"})
_META: Final = re.compile(r"(?:^|(?<=/))meta/")
_DRAFT_NAME: Final = re.compile(r"(?:(.*[^/])\.)?(array|group)[A-Za-z0-9._-]{0,64}")
_MOST_META: Final = 16
"""Maximum number of directories `meta` in one key that are tried as the beginning of a hierarchy of the drafts."""
_DRAFT_COPIES: Final = re.compile(r"(?:^|/)meta/root/consolidated/\.zmetadata\Z")
_CHUNK: Final = re.compile(
    r"c|(?:c[./]?)?[0-9]+(?:[./][0-9]+)*(?:\.blosc)?"
    r"|__zdata__/[0-9]+(?:\.[0-9]+)*\.blosc"  # zarr 0.4
)
_DRAFT_CHUNK: Final = re.compile(r"c|c?[0-9]+(?:[^0-9]+[0-9]+)*")
_BATCH: Final = 1000
_MOST_KEPT: Final = 100_000
"""Number of keys that are remembered instead of listed again."""


def erase(where: StorePath, metadata: Metadata | None = None) -> bool:
    """Delete documents and chunks of the node at a place and of all nodes below. Return whether anything else remains.

    `metadata` are those of the node, if they have been read.
    """
    keys, prefixes = dialects_at(where)[0].keyspace.node_keys(where.path)
    holdings.delete_unlisted(where)
    is_ours, below = _told_apart(where, metadata, keys, prefixes)
    verbs.delete_many(where.store, keys)
    left = [_erase_below(where.store, each, is_ours) for each in below]
    return any(left)


def strangers(where: StorePath, metadata: Metadata | None = None) -> Iterator[str]:
    """Yield the keys below a node that are neither documents nor chunks; in a directory, also files without keys.

    `metadata` are those of the node, if they have been read.
    """
    keys, prefixes = dialects_at(where)[0].keyspace.node_keys(where.path)
    is_ours, below = _told_apart(where, metadata, keys, prefixes)
    return (key.rstrip("\0") for each in below for key in each if not is_ours(key))


def _told_apart(
    where: StorePath, metadata: Metadata | None, keys: Iterable[str], prefixes: Iterable[str]
) -> tuple[Callable[[str], bool], list[_Below]]:
    """Return a function that recognises documents and chunks, and what is below the prefixes."""
    own = [] if where.home is None else [where.home.chunk_prefix(where.path)]
    below = [_Below(where.store, prefix) for prefix in prefixes]
    known = {where.path: isinstance(metadata, ArrayMetadata)} if metadata and is_enough(metadata) else {}
    return recogniser(where.store, keys, below, own, known), below


def is_enough(metadata: Metadata) -> bool:
    """Return whether `recogniser` need not read the document of a node: it is of v3, with keys of a known form."""
    if metadata.dialect != "v3":
        return False
    return not isinstance(metadata, ArrayMetadata) or chunk_keys.is_known(metadata.chunk_key_encoding.name)


class _Below(Iterable[str]):
    """The keys below a prefix, listed only once if there are few enough to keep."""

    def __init__(self, store: Store, prefix: str) -> None:
        self.prefix = prefix
        self._store = store
        self._kept: list[str] | None = None

    def __iter__(self) -> Iterator[str]:
        return self._list() if self._kept is None else iter(self._kept)

    def _list(self) -> Iterator[str]:
        kept: list[str] = []
        for key in _listed(self._store, self.prefix):
            if len(kept) <= _MOST_KEPT:
                kept.append(key)
            yield key
        if len(kept) <= _MOST_KEPT:
            self._kept = kept


def _erase_below(store: Store, below: _Below, is_ours: Callable[[str], bool]) -> bool:
    if all(map(is_ours, below)):
        verbs.delete_prefix(store, below.prefix)
        return False
    ours = filter(is_ours, below)
    while keys := list(islice(ours, _BATCH)):
        verbs.delete_many(store, [key for key in keys if not key.endswith("/")])
        for link in keys:
            if link.endswith("/"):
                verbs.delete_prefix(store, link)
    return True


def _listed(store: Store, prefix: str) -> Iterator[str]:
    """Yield all keys; in a directory, also files without keys and links to directories, which are not followed."""
    if not isinstance(store, LocalStore):
        yield from store.list_prefix(prefix)
        return
    pending = [prefix]
    while pending:
        here = pending.pop()
        listing = store.list_dir(here)
        yield from listing.keys
        yield from (f"{entry.rstrip('/')}\0" for entry in listing.others)
        for below in listing.prefixes:
            if os.path.islink(os.path.join(store.root, below[:-1])):  # noqa: PTH114, PTH118 - as the store itself does
                yield below
            else:
                pending.append(below)


def recogniser(
    store: Store,
    own: Iterable[str],
    below: Iterable[Iterable[str]],
    data: Iterable[str],
    known: Mapping[str, bool],
) -> Callable[[str], bool]:
    """Return a function that recognises documents and chunks below some prefixes.

    `own` are keys of other documents. `data` are prefixes of chunks of known drafts. `known` are directories for
    which it is known whether a ``zarr.json`` makes them arrays.
    """
    markers: dict[str, set[str]] = {}
    chunks_of_drafts = set(data)
    linked: set[str] = set()
    for key in chain(own, *below):
        directory, _, name = key.rpartition("/")
        if name in _NAMES or name in _OLDEST:
            markers.setdefault(directory, set()).add(name)
        elif key.endswith("/") and _leads_to_nodes(store, key):
            linked.add(key)
        chunks_of_drafts.update(_chunks_of_draft(key))
    arrays, decoders = _arrays_among(store, markers, known)
    arrays_above, decoders_above = Above(arrays), Above(decoders)
    drafts = Above({each[:-1] for each in chunks_of_drafts})

    def is_ours(key: str) -> bool:
        directory, _, name = key.rpartition("/")
        if name in _NAMES or key in linked:
            return True
        if name in _OLDEST and "meta" in markers[directory] and directory in arrays:
            return True
        if is_chunk(key, arrays_above):
            return True
        if any(decoders[at](key[len(prefix(at)) :]) for at in decoders_above.of(key)):
            return True
        if any(_DRAFT_CHUNK.fullmatch(key, len(prefix(at))) for at in drafts.of(key)):
            return True
        return next(_drafts(key), None) is not None or _DRAFT_COPIES.search(key) is not None

    return is_ours


def is_chunk(key: str, arrays: Above) -> bool:
    """Return whether a key is that of a chunk, in any encoding, below one of the directories of arrays."""
    return any(_CHUNK.fullmatch(key, len(prefix(directory))) for directory in arrays.of(key))


def _chunks_of_draft(key: str) -> Iterator[str]:
    """Yield the prefixes of the chunks of an array of a draft, if this is the key of its document."""
    for start, path, kind in islice(_drafts(key), _MOST_META):
        if kind == "array":
            top = f"{key[:start]}data/"
            yield f"{top}{path}/" if path else top
            if path is not None and path.partition("/")[0] == "root":  # the draft of 2019 has it only for documents
                yield f"{top}{path[5:]}/" if path[5:] else top


def _drafts(key: str) -> Iterator[tuple[int, str | None, str]]:
    """Yield where a hierarchy of the drafts begins, if this is the key of a document, with the node's path and kind."""
    begin = key.rfind("/") + 1
    match = _DRAFT_NAME.fullmatch(key, begin)
    if match is None:
        return
    for meta in _META.finditer(key, 0, begin):
        if match[1]:
            yield meta.start(), key[meta.end() : match.end(1)], match[2]
        elif meta.end() == begin:
            yield meta.start(), None, match[2]


def _arrays_among(
    store: Store, markers: Mapping[str, set[str]], known: Mapping[str, bool]
) -> tuple[set[str], dict[str, Callable[[str], bool]]]:
    """Return the directories of arrays, by the names of the documents in each, or else by reading them.

    For arrays whose keys another package makes, also return what recognises the ends of these keys.
    """
    decoders: dict[str, Callable[[str], bool]] = {}
    arrays = {at for at, names in markers.items() if names & _OF_ARRAYS or ("meta" in names and _is_v1(store, at))}
    arrays.update(at for at, is_array in known.items() if is_array)
    unsure = [at for at, names in markers.items() if _ENTRY in names and at not in arrays and at not in known]
    for position, document in bounded.documents(store, [_join(at, _ENTRY) for at in unsure]):
        if document is None:
            continue
        try:
            parsed = documents.parse(document)
        except OmnizarrError:  # a broken one may be that of an array
            parsed = None
        if isinstance(parsed, Mapping) and parsed.get("node_type") == "group":
            continue
        arrays.add(unsure[position])
        if (decoder := _decoder_of(parsed)) is not None:
            decoders[unsure[position]] = decoder
    return arrays, decoders


def _decoder_of(document: JSON) -> Callable[[str], bool] | None:
    """Return what recognises the end of a key of a chunk; None if the package that makes such keys is missing."""
    encoding = document.get("chunk_key_encoding") if isinstance(document, Mapping) else None
    name = encoding.get("name") if isinstance(encoding, Mapping) else encoding
    if not isinstance(name, str) or chunk_keys.is_known(name):
        return None
    try:
        metadata = dialect_named("v3").load({_ENTRY: document}, lambda _problem: None)
        if not isinstance(metadata, ArrayMetadata):
            return None
        found, ndim = chunk_keys.bind(metadata.chunk_key_encoding), len(metadata.shape)
    except OmnizarrError:
        return None
    return lambda rest: found.decode(rest, ndim) is not None


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def _is_v1(store: Store, directory: str) -> bool:
    """Return whether a file named ``meta`` is the document of an array of Zarr v1."""
    data = bytes(bounded.document(store, _join(directory, "meta")) or b"")
    try:
        document = documents.parse(data)
    except OmnizarrError:
        return b"zarr_format" in data
    return isinstance(document, Mapping) and ("zarr_format" in document or {"shape", "chunks"} <= document.keys())


def _leads_to_nodes(store: Store, link: str) -> bool:
    return any(key.rpartition("/")[2] in _NAMES for key in store.list_prefix(link))

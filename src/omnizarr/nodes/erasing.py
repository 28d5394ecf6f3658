"""The documents and chunks of a hierarchy among everything below a place, recognised by their keys.

Overwriting a node removes these keys and nothing else. The same directory may hold a README, a git repository, or
data of other programs. Everything is removed that could reappear as data of a new hierarchy: documents of every
format, with or without their node, and keys of chunks, in any encoding, where there is an array.

Documents are removed first, so no array is ever seen without some of its chunks. Where chunks lie without a document,
a note names them, from before the first document goes until the last chunk is gone. If a program is killed meanwhile,
the next one that erases there reads the note, and removes what is left. The journals of conversions, copies and
deletions are such notes, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from omnizarr.errors import MetadataError, OmnizarrError
from omnizarr.formats import DIALECTS, dialect_named, documents
from omnizarr.formats.paths import Above, prefix
from omnizarr.model import JSON, ArrayMetadata, Metadata
from omnizarr.model import keys as chunk_keys
from omnizarr.nodes import holdings
from omnizarr.nodes.location import StorePath, dialects_at
from omnizarr.stores import LocalStore, Store, bounded, verbs
from omnizarr.stores.base import answers_itself

JOURNAL: Final = "omnizarr-conversion.json"
"""Name of the document that is at a place while something is made or removed there."""
REPLACEMENT: Final = {"replace": "all"}
"""Options, in such a document, of the removal of a node that another one replaces."""
DELETION: Final = {"delete": "all"}
"""The same, of the deletion of a node."""

_ENTRY: Final = "zarr.json"
_OLDEST: Final = frozenset({"meta", "attrs"})  # names of Zarr v1, which other programs use, too
NCZARR: Final = frozenset({".nczarr", ".nczgroup", ".nczvar", ".nczarray", ".nczattr"})
"""Documents that netCDF-C 4.8.0 writes beside those of Zarr."""
_NAMES: Final = (
    frozenset(name for dialect in DIALECTS if dialect.entry_point is None for name in dialect.keyspace.documents(""))
    | NCZARR
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
_LIKE_A_CHUNK: Final = re.compile(rf"(?:^|/)(?:{_CHUNK.pattern})\Z")
_is_number: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*").fullmatch
"""Whether a name is that of a chunk, if of anything: most keys end so, and no document does."""
_DRAFT_CHUNK: Final = re.compile(r"c|c?[0-9]+(?:[^0-9]+[0-9]+)*")
_BATCH: Final = 1000
_MOST_KEPT: Final = 100_000
"""Number of keys that are remembered instead of listed again."""


class Erased(NamedTuple):
    """What has been seen while a node was erased.

    Attributes
    ----------
    is_rest : bool
        Something else remains at the place.
    is_nczarr : bool
        Beside the documents of the node were some of netCDF-C 4.8.0.
    """

    is_rest: bool
    is_nczarr: bool


def erase(
    where: StorePath,
    metadata: Metadata | None = None,
    *,
    heir: Metadata | None = None,
    coming: Iterable[str] | None = None,
) -> Erased:
    """Delete documents and chunks of the node at a place and of all nodes below.

    Parameters
    ----------
    where : StorePath
    metadata : Metadata, optional
        Those of the node, if they have been read.
    heir : Metadata, optional
        Those of the node that comes next. No note is written for chunks that the same array would replace, too.
    coming : iterable of str, optional
        Directories of the chunks that will be copied here. The note names them, and stays until `forget`.
    """
    found = Belongings(where, metadata)
    holdings.delete_unlisted(where)
    is_noted = coming is not None or found.needs_note(heir)
    if is_noted:
        found.note(coming or ())
    verbs.delete_many(where.store, found.documents)
    is_noted = is_noted or found.is_noted
    left = [_erase_below(where.store, each, found, is_noted=is_noted) for each in found.below]
    if coming is None and is_noted:
        forget(where)
        if not any(left) and where.store.features.concurrency == 1:  # empty directories, and files without keys
            for each in found.below:
                verbs.delete_prefix(where.store, each.prefix)
    return Erased(any(left), found.is_nczarr)


def erase_orphans(where: StorePath, *, whole: bool) -> None:
    """Delete chunks below a place that belong to no array there, and the note. Nodes stay.

    `whole`: all that looks like a chunk. Otherwise only what the note at the place tells: others have such names, too.
    """
    own, prefixes = dialects_at(where)[0].keyspace.node_keys(where.path)
    note_key = note_key_of(where)
    below = [_Below(where.store, prefix) for prefix in prefixes]
    # Without notes, which name arrays that are gone.
    without = [(key for key in each if key.rpartition("/")[2] != JOURNAL) for each in below]
    is_ours = recogniser(where.store, own, without, [], {})
    if whole:
        was_ours: Callable[[str], object] = _LIKE_A_CHUNK.search
    else:
        noted = [(key for key in each if key == note_key or key.rpartition("/")[2] != JOURNAL) for each in below]
        was_ours = recogniser(where.store, own, noted, [], {}).chunk
    for each in below:
        keys = (key for key in each if was_ours(key) and not is_ours(key))
        while batch := list(islice(keys, _BATCH)):
            verbs.delete_many(where.store, batch)
    if begun(where) == REPLACEMENT:
        forget(where)


def is_begun(where: StorePath) -> bool:
    """Return whether something was being made or removed at a place."""
    return where.store.exists(note_key_of(where))


def begun(where: StorePath) -> Any:
    """Return the options of what was begun at a place and not finished, such as `DELETION`; None if nothing was."""
    try:
        document: Any = documents.parse(bounded.document(where.store, note_key_of(where)) or b"{}")
    except MetadataError:  # of another program
        return None
    entries = document.get("omnizarr_conversion") if isinstance(document, dict) else None
    return entries.get("options") if isinstance(entries, dict) else None


def is_deletion(where: StorePath) -> bool:
    """Return whether the deletion of a node was begun at a place, and not finished."""
    return bool(begun(where) == DELETION)


def forget(where: StorePath) -> None:
    """Delete the note: what was removed is gone, and what was made is complete."""
    where.store.delete(note_key_of(where))


def strangers(
    where: StorePath, metadata: Metadata | None = None, nodes: Mapping[str, Metadata] | None = None
) -> Iterator[str]:
    """Yield the keys below a node that are neither documents nor chunks; in a directory, also files without keys.

    `metadata` are those of the node, and `nodes` others below it by path, as far as they have been read.
    """
    return Belongings(where, metadata, nodes).strangers()


class Belongings:
    """Everything below a place, told apart.

    Parameters
    ----------
    where : StorePath
    metadata : Metadata, optional
        Those of the node, if they have been read.
    nodes : mapping of str to Metadata, optional
        Nodes below that have been read, by path.

    Attributes
    ----------
    below : list
        The keys below each prefix.
    is_noted : bool
        Whether a note is here.
    """

    def __init__(
        self, where: StorePath, metadata: Metadata | None = None, nodes: Mapping[str, Metadata] | None = None
    ) -> None:
        self.where, self._metadata = where, metadata
        self._own, prefixes = dialects_at(where)[0].keyspace.node_keys(where.path)
        data = [] if where.home is None else [where.home.chunk_prefix(where.path)]
        self.below = [_Below(where.store, prefix) for prefix in prefixes]
        read = {**(nodes or {}), **({where.path: metadata} if metadata else {})}
        known = {path: isinstance(one, ArrayMetadata) for path, one in read.items() if is_enough(one)}
        self.note_key = note_key_of(where)
        notes = [] if where.home is None else [self.note_key]  # it need not be below one of the prefixes
        self.is_ours = recogniser(where.store, [*self._own, *notes], self.below, data, known)
        self.is_noted = self.note_key in self.is_ours.notes

    @property
    def is_nczarr(self) -> bool:
        """Whether netCDF-C 4.8.0 has described the node beside its documents, as far as its keys were listed."""
        return not NCZARR.isdisjoint(self.is_ours.documents_in(self.where.path))

    def strangers(self) -> Iterator[str]:
        """Yield the keys that are neither documents nor chunks."""
        return (key.rstrip("\0") for each in self.below for key in each if not self.is_ours(key))

    @property
    def documents(self) -> list[str]:
        """The documents, in the order in which they are deleted: from the top, and first what makes a node."""
        below = (key for each in self.below for key in each if not key.endswith("/") and self.is_ours.document(key))
        found = dict.fromkeys((*self._own, *sorted(below, key=_turn)))
        found.pop(self.note_key, None)
        return list(found)

    def needs_note(self, heir: Metadata | None) -> bool:
        """Return whether there are chunks that cannot be recognised without the documents."""
        if not any(self.is_ours.chunk(key) for each in self.below for key in each):
            return False
        if not isinstance(heir, ArrayMetadata) or not isinstance(self._metadata, ArrayMetadata):
            return True
        old = self._metadata
        is_same = (old.dialect, old.chunk_key_encoding, len(old.shape)) == (
            heir.dialect,
            heir.chunk_key_encoding,
            len(heir.shape),
        )
        return not is_same or not self.is_ours.arrays <= {self.where.path} or bool(self.is_ours.notes)

    def note(self, coming: Iterable[str] = ()) -> None:
        """Write the note, which names also the arrays whose chunks will come."""
        ours = self.is_ours
        directory = self.note_key.removesuffix(JOURNAL)
        drafts = {each[:-1] for each in ours.chunks_of_drafts}
        named = {"arrays": ours.arrays.union(coming), "drafts": drafts, "all": ours.whole}
        relative = {
            name: sorted(path[len(directory) :] for path in paths if f"{path}/".startswith(directory))
            for name, paths in named.items()
        }
        entries = {
            "source": "", "source_format": "", "target_format": "", "options": REPLACEMENT, "source_digest": "",
            "target_digest": "", "verify": False, "version": 1,
        }  # fmt: skip
        self.where.store.set(self.note_key, documents.render({"omnizarr_conversion": entries, LEFT: relative}))


LEFT: Final = "left"
"""Member of a note, and of the journal of a conversion, that names arrays by their paths below."""


def note_key_of(where: StorePath) -> str:
    """Return the key of the note, which lies beside the chunks in the hierarchy of a draft."""
    home = where.home
    return f"{where.prefix if home is None or where.path == home.root else home.chunk_prefix(where.path)}{JOURNAL}"


def _turn(key: str) -> tuple[int, int]:
    name = key.rpartition("/")[2]
    return key.count("/"), 0 if name == ".zmetadata" else 1 if name in _MAKERS else 2


_MAKERS: Final = frozenset(name for dialect in DIALECTS for name in (dialect.array_document, dialect.group_document))


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


def _erase_below(store: Store, below: _Below, found: Belongings, *, is_noted: bool) -> bool:
    """Delete what is below a prefix but documents, which are gone, and the note; return whether anything remains."""
    if all(map(found.is_ours, below)):
        if store.features.concurrency > 1 and answers_itself(store, verbs.delete_many):
            verbs.delete_many(store, filter(found.is_ours.chunk, below))
        elif is_noted and found.note_key.startswith(below.prefix):
            listing = store.list_dir(below.prefix)
            verbs.delete_many(store, [key for key in listing.keys if key != found.note_key])
            for each in listing.prefixes:
                verbs.delete_prefix(store, each)
        else:
            verbs.delete_prefix(store, below.prefix)
        return False
    ours = (key for key in below if found.is_ours(key) and key != found.note_key)
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


class recogniser:  # noqa: N801 - called like a function
    """A function that recognises documents and chunks below some prefixes.

    `own` are keys of other documents. `data` are prefixes of chunks of known drafts. `known` are directories for
    which it is known whether a ``zarr.json`` makes them arrays.

    Attributes
    ----------
    arrays : set of str
        Directories of arrays, also of those that only notes name; not of all that have nothing but a ``zarr.json``.
    chunks_of_drafts : set of str
        Prefixes of the chunks of arrays of drafts.
    notes : list of str
        Keys of what names itself a note.
    whole : set of str
        Directories in which every key is ours that could be that of a chunk: of unfinished copies and deletions,
        which do not begin where there is anything else.
    """

    def __init__(
        self,
        store: Store,
        own: Iterable[str],
        below: Iterable[Iterable[str]],
        data: Iterable[str],
        known: Mapping[str, bool],
    ) -> None:
        self._markers: dict[str, set[str]] = {}
        self.chunks_of_drafts = set(data)
        self.notes: list[str] = []
        self.whole: set[str] = set()
        self._linked: set[str] = set()
        asked_of: set[str] = set()
        """Directories of keys that are those of chunks if an array lies there or above."""
        for key in chain(own, *below):
            directory, _, name = key.rpartition("/")
            if _is_number(name):
                asked_of.add(directory)
                continue
            if name == JOURNAL:
                self.notes.append(key)
            elif name in _NAMES or name in _OLDEST:
                self._markers.setdefault(directory, set()).add(name)
            elif key.endswith("/") and _leads_to_nodes(store, key):
                self._linked.add(key)
            if name not in _NAMES:
                asked_of.add(directory)
            self.chunks_of_drafts.update(_chunks_of_draft(key))
        self.arrays, decoders = _arrays_among(store, self._markers, known, asked_of)
        if self.notes:
            self._read_notes(store)
        self._decoders, self._decoders_above = decoders, Above(decoders)
        self._arrays_above, self._whole_above = Above(self.arrays), Above(self.whole)
        self._drafts_above = Above({each[:-1] for each in self.chunks_of_drafts})

    def documents_in(self, directory: str) -> AbstractSet[str]:
        """Return the names of documents in a directory; those of the node itself may be missing."""
        return self._markers.get(directory, set())

    def _read_notes(self, store: Store) -> None:
        for position, document in bounded.documents(store, self.notes):
            at = prefix(self.notes[position].rpartition("/")[0])
            try:
                parsed = documents.parse(document or b"{}")
            except OmnizarrError:
                continue
            if not isinstance(parsed, Mapping) or "omnizarr_conversion" not in parsed:
                continue
            left = parsed.get(LEFT)
            if not isinstance(left, Mapping):
                self.whole.add(at[:-1])
                continue
            self.arrays.update(f"{at}{path}".rstrip("/") for path in _texts(left, "arrays"))
            self.chunks_of_drafts.update(prefix(f"{at}{path}".rstrip("/")) for path in _texts(left, "drafts"))
            self.whole.update(f"{at}{path}".rstrip("/") for path in _texts(left, "all"))

    def __call__(self, key: str) -> bool:
        """Return whether a key is that of a document or a chunk."""
        return (_is_number(key.rpartition("/")[2]) is None and self.document(key)) or self.chunk(key)

    def document(self, key: str) -> bool:
        """Return whether a key is that of a document, or a link to nodes."""
        directory, _, name = key.rpartition("/")
        if name in _NAMES or key in self._linked:
            return True
        if name in _OLDEST and "meta" in self._markers[directory] and directory in self.arrays:
            return True
        return next(_drafts(key), None) is not None or _DRAFT_COPIES.search(key) is not None

    def chunk(self, key: str) -> bool:
        """Return whether a key is that of a chunk."""
        if is_chunk(key, self._arrays_above):
            return True
        if any(self._decoders[at](key[len(prefix(at)) :]) for at in self._decoders_above.of(key)):
            return True
        if any(_DRAFT_CHUNK.fullmatch(key, len(prefix(at))) for at in self._drafts_above.of(key)):
            return True
        return any(_LIKE_A_CHUNK.search(key[len(prefix(at)) :]) for at in self._whole_above.of(key))


def _texts(left: Mapping[str, JSON], name: str) -> Iterator[str]:
    paths = left.get(name)
    return (each for each in paths if isinstance(each, str)) if isinstance(paths, list | tuple) else iter(())


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
    store: Store, markers: Mapping[str, set[str]], known: Mapping[str, bool], asked_of: Iterable[str]
) -> tuple[set[str], dict[str, Callable[[str], bool]]]:
    """Return the directories of arrays, by the names of the documents in each, or else by reading them.

    Documents are read only of those that one of the directories `asked_of` is, or is below.

    For arrays whose keys another package makes, also return what recognises the ends of these keys.
    """
    decoders: dict[str, Callable[[str], bool]] = {}
    arrays = {at for at, names in markers.items() if names & _OF_ARRAYS or ("meta" in names and _is_v1(store, at))}
    arrays.update(at for at, is_array in known.items() if is_array)
    unsure = [at for at, names in markers.items() if _ENTRY in names and at not in arrays and at not in known]
    if unsure:
        above = Above(dict.fromkeys(unsure))
        wanted = {at for directory in asked_of for at in above.of(f"{directory}/")}
        unsure = [at for at in unsure if at in wanted]
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

"""OCDBT databases of TensorStore, in which JAX checkpoints hold arrays: one version of one, to be read.

A database is a directory, or anything else that keeps files, with ``manifest.ocdbt`` and data files. Its keys are in a
B+tree, whose nodes are read when they are needed. What is read is the version that was the newest when the database was
opened, or one that is asked for: ``ocdbt:///data/db@v3``. Data files are never changed, so nothing else is seen.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from omnizarr.errors import NotRepresentableError, OmnizarrError, ReadOnlyError, StoreError, StoreLimitError
from omnizarr.stores import kinds, verbs
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Extent,
    Features,
    Listing,
    Parts,
    Span,
    Store,
    answers,
    as_prefix,
    bounds,
    check_key,
    is_key,
    parts_of,
)
from omnizarr.stores.database import ocdbt_nodes as nodes
from omnizarr.stores.database.ocdbt_nodes import Manifest, Node, Older, Place, Version
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.manifests.parts import PartStore, Wanted
from omnizarr.stores.ranges import Range
from omnizarr.stores.shown import OverStore
from omnizarr.stores.wrap.wrappers import PrefixStore
from omnizarr.support.memo import Weighed

SCHEME: Final = "ocdbt"
ENTRY: Final = "manifest.ocdbt"
FORMAT: Final = "OCDBT"
_MOST_MANIFEST: Final = 64 << 20
_MOST_NODE: Final = 160 << 20
_MOST_KEPT: Final = 128 << 20
_MOST_VISITS: Final = 64  # of one node, while keys are listed
_MOST_ABOVE: Final = 16
_GROUPS: Final = {
    ".zgroup": json.dumps({"zarr_format": 2}).encode(),
    "zarr.json": json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}).encode(),
}
_MOST_GROUPS: Final = 1024  # that are remembered
_DEPTH: Final = 8  # of directories that are looked into for arrays
_NODES: Final = ("zarr.json", ".zarray", ".zgroup", ".zattrs", "info")
_SEEN: Final = 100  # directories that are looked into for arrays
_numbered = re.compile(r"manifest\.([0-9a-f]{16})").fullmatch
_version = re.compile(r"v([1-9][0-9]{0,18})").fullmatch
_NANO: Final = 10**9


class OcdbtStore(OverStore, PartStore):
    """A version of an OCDBT database, to be read.

    Parameters
    ----------
    store : Store
        The store in which the database begins, with its ``manifest.ocdbt``. Closing this store closes it.
    version : str or None
        "v3": the version of this number; "2025-04-01T12:00:00Z": the newest at this time. None: the newest.

    Raises
    ------
    StoreError
        If there is no database, it is broken, or it has no such version.

    Notes
    -----
    A directory with arrays and without a document of Zarr is shown as a group, so that checkpoints can be opened.

    Examples
    --------
    >>> import omnizarr
    >>> omnizarr.open("ocdbt:///checkpoints/400@v3")  # doctest: +SKIP
    """

    _Place = Place

    def __init__(self, store: Store, version: str | None = None) -> None:
        super().__init__(store)
        self.version = version
        self._nodes: Weighed[Node] = Weighed(_MOST_KEPT)
        self._root = self._open()
        self._groups: dict[str, tuple[str, bytes] | None] = {}

    @property
    def features(self) -> Features:
        """Those of the store that holds the database. All keys are listed."""
        return replace(super().features, listing="complete")

    # -- versions -----------------------------------------------------------------------

    def _manifest(self) -> tuple[Manifest, str]:
        manifest = self._read_manifest(ENTRY)
        if not manifest.is_numbered:
            return manifest, ENTRY
        if self.store.features.listing == "none":
            raise StoreError(
                "the versions of this database are in numbered manifests, and the store cannot list them",
                store=repr(self.store),
                remedy="open it where files can be listed: in a directory, or in a bucket",
            )
        names = [key for key in self.store.list_dir("").keys if _numbered(key)]
        if not names:
            raise StoreError(
                "a database without numbered manifests", store=repr(self.store), expected="manifest.0000..."
            )
        found = self._read_manifest(max(names))
        if found.is_numbered or found.uuid != manifest.uuid:
            raise StoreError(
                "the numbered manifest is none of this database",
                store=repr(self.store),
                key=max(names),
                found=found.uuid.hex(),
                expected=manifest.uuid.hex(),
            )
        return found, max(names)

    def _read_manifest(self, key: str) -> Manifest:
        found = verbs.get_within(self.store, key, _MOST_MANIFEST)
        if found is None:
            raise StoreError("there is no OCDBT database here", store=repr(self.store), key=key)
        try:
            return nodes.manifest_of(found)
        except OmnizarrError as error:
            raise error.add(store=repr(self.store), key=key)

    def _open(self) -> Version:
        manifest, key = self._manifest()
        if self.version is None:
            return manifest.versions[-1]
        number, time = wanted(self.version)
        versions: Sequence[Version] = manifest.versions
        older: Sequence[Older] = manifest.older
        height = 255
        while not (found := _chosen(versions, number, time)):
            chosen = _node_with(older, number, time)
            if chosen is None or chosen.height >= height:
                break
            height = chosen.height
            entries = self._read_versions(chosen)
            versions = [each for each in entries if isinstance(each, Version)]
            older = [each for each in entries if isinstance(each, Older)]
        if not found:
            first, last = manifest.versions[0], manifest.versions[-1]
            times = f"v{first.generation} is of {said(first.time)}, the last of {said(last.time)}"
            raise StoreError(
                "the database has no such version",
                store=repr(self.store),
                key=key,
                found=self.version,
                expected=f"v1 to v{last.generation}; {times}",
            )
        return found

    def _read_versions(self, chosen: Older) -> tuple[Version, ...] | tuple[Older, ...]:
        try:
            return nodes.versions_of(self._bytes(chosen.place), chosen.place, chosen.height)
        except OmnizarrError as error:
            raise error.add(store=repr(self.store), key=chosen.place.file)

    # -- the tree -----------------------------------------------------------------------

    def _bytes(self, place: Place) -> Buffer:
        """Return a node as it is stored."""
        self._check_file(place)
        if place.length > _MOST_NODE:
            raise StoreLimitError("a node is larger than it may be", store=repr(self.store), key=place.file,
                                  found=f"{place.length} bytes", expected=f"at most {_MOST_NODE} bytes")  # fmt: skip
        found = self.store.get(place.file, (place.offset, place.offset + place.length))
        if found is None or len(found) != place.length:
            raise self._too_short(place, 0 if found is None else len(found))
        return found

    def _check_file(self, place: Place) -> None:
        if not is_key(place.file):
            raise StoreError("a data file outside of the database", store=repr(self.store), found=place.file,
                             expected="a path below it", spec=nodes.SPEC)  # fmt: skip

    def _too_short(self, place: Place, found: int) -> StoreError:
        return StoreError(
            "a data file is missing, or ends too early",
            store=repr(self.store),
            key=place.file,
            found=f"{found} of the bytes {place.offset} to {place.offset + place.length}",
            expected=f"{place.length} bytes",
            remedy="copy the whole database again, with its directory d/",
        )

    def _node(self, place: Place, height: int) -> Node:
        """Return a node of the B+tree."""
        asked = place, height
        known = self._nodes.get(asked)
        if known is None:
            try:
                known = nodes.node_of(self._bytes(place), place, height)
            except OmnizarrError as error:
                raise error.add(store=repr(self.store), key=place.file)
            self._nodes.put(asked, known, known.weight)
        return known

    def _find(self, key: str) -> bytes | Place | None:
        check_key(key)
        found = self._value(key.encode())
        if found is not None:
            return found
        path, _, name = key.rpartition("/")
        made = self._group(path) if name in _GROUPS else None
        return made[1] if made is not None and made[0] == name else None

    def _value(self, rest: bytes) -> bytes | Place | None:
        """Return the value of a key, or its place: one node of each height is read."""
        place, height = self._root.root, self._root.height
        while place is not None:
            node = self._node(place, height)
            if not height:
                at = bisect_left(node.keys, rest)
                return node.values[at] if at < len(node.keys) and node.keys[at] == rest else None
            at = bisect_right(node.keys, rest) - 1
            if at < 0:
                return None
            shared = node.keys[at][: node.shared[at]]
            if not rest.startswith(shared):
                return None
            rest = rest[len(shared) :]
            child = node.values[at]
            place, height = (child, height - 1) if isinstance(child, Place) else (None, 0)
        return None

    def _entries(self, low: bytes, high: bytes | None) -> Iterator[tuple[bytes, bytes | Place]]:
        """Yield the keys from `low` to `high`, which is excluded, in their order."""
        if self._root.root is not None:
            yield from self._below(self._root.root, self._root.height, b"", low, high, Counter())

    def _below(
        self, place: Place, height: int, above: bytes, low: bytes, high: bytes | None, visits: Counter[Place]
    ) -> Iterator[tuple[bytes, bytes | Place]]:
        visits[place] += 1
        if visits[place] > _MOST_VISITS:
            raise StoreLimitError("the tree leads to one node again and again", store=repr(self.store), key=place.file,
                                  found=f"{visits[place]} times", expected=f"at most {_MOST_VISITS} times")  # fmt: skip
        node = self._node(place, height)
        for at in range(_first(node, above, low), len(node.keys)):
            whole, value = above + node.keys[at], node.values[at]
            if high is not None and whole >= high:
                return
            if not height:
                yield whole, value
            elif isinstance(value, Place):
                shared = above + node.keys[at][: node.shared[at]]
                yield from self._below(value, height - 1, shared, low, high, visits)

    # -- groups of checkpoints --------------------------------------------------------------

    def _group(self, path: str) -> tuple[str, bytes] | None:
        """Return the document of a group that a directory with arrays has not; None if it has one, or is no group."""
        try:
            return self._groups[path]
        except KeyError:
            if len(self._groups) >= _MOST_GROUPS:
                self._groups.clear()
            name = None if self._is_in_node(path) else self._document_below(as_prefix(path), _DEPTH)
            made = None if name is None else (name, _GROUPS[name])
            self._groups[path] = made
            return made

    def _is_in_node(self, path: str) -> bool:
        """Whether a directory is a node, or holds chunks of one."""
        prefix = as_prefix(path)
        if any(self._value((prefix + name).encode()) is not None for name in _NODES):
            return True
        while prefix:
            prefix = as_prefix(prefix[:-1].rpartition("/")[0])
            if self._value(f"{prefix}.zarray".encode()) is not None:
                return True
            document = self._value(f"{prefix}zarr.json".encode())
            if document is not None:
                value = document if isinstance(document, bytes) else self.get(f"{prefix}zarr.json")
                return value is not None and _is_array(value)
        return False

    def _document_below(self, prefix: str, depth: int) -> str | None:
        """Return the name of the document that a group needs whose nodes are below; None if there are none."""
        found = self._directories(prefix)
        for below in found:
            if self._value(f"{below}zarr.json".encode()) is not None:
                return "zarr.json"
            if any(self._value((below + name).encode()) is not None for name in (".zarray", ".zgroup")):
                return ".zgroup"
        return self._document_below(found[0], depth - 1) if found and depth else None

    def _directories(self, prefix: str) -> list[str]:
        """Return the first directories below a prefix."""
        found: list[str] = []
        for name, is_folder in self._names(prefix):
            if is_folder:
                found.append(name)
            if len(found) >= _SEEN:
                break
        return found

    # -- reading ------------------------------------------------------------------------

    def _range(self, place: Any, span: Span) -> Range:
        start, length = bounds(span, place.length)
        return Range(place.file, place.offset + start, place.offset + start + length)

    def _known_size(self, place: Any) -> int:
        size: int = place.length
        return size

    def _parts(self, group: list[Wanted], most: int | None) -> Buffers:
        spans = [self._range(each.found, each.span) for each in group]
        file = group[0].found
        self._check_file(file)
        if len(spans) == 1:
            ((_, start, stop),) = spans
            part = b"" if start == stop else self.store.get(file.file, (start, stop))
            found = None if part is None else [part]
        else:
            found = verbs.get_spans(self.store, file.file, [(start, stop) for _, start, stop in spans])
        for at, span in enumerate(spans):
            size = 0 if found is None else len(found[at])
            if found is None or size != span.stop - span.start:
                raise self._too_short(group[at].found, size)
        return found or []

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read several parts at once."""
        found = self._find(key)
        if not isinstance(found, Place):
            return None if found is None else parts_of(found, spans)
        parts = self._parts([Wanted(at, key, span, found) for at, span in enumerate(spans)], None)
        return Parts(parts, found.length)

    def size(self, key: str) -> int | None:
        """Return the size of a value, which the tree knows."""
        found = self._find(key)
        return None if found is None else _size(found)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return where the value lies, which does not change."""
        return self._find(key)

    @answers(verbs.extents)
    def _extents(self, keys: Iterable[str]) -> Iterator[tuple[int, Extent | Buffer | None]]:
        """Return where values lie in data files; those that are in the tree are yielded themselves."""
        base = verbs.folder(self.store, "")
        for position, key in enumerate(keys):
            found = self._find(key)
            if not isinstance(found, Place):
                yield position, found
                continue
            if base is None:
                raise NotRepresentableError("the data files have no path or URL", store=repr(self), key=key,
                                            expected="a database in a directory, or behind a URL")  # fmt: skip
            self._check_file(found)
            yield position, Extent(base + found.file, found.offset, found.length)

    # -- listing ------------------------------------------------------------------------

    def _listed(self, prefix: str) -> Iterator[tuple[str, int]]:
        begin = prefix.encode()
        looked: set[str] = set()
        for key, value in self._entries(begin, _after(begin)):
            name = _text(key)
            if not is_key(name):
                continue
            yield name, _size(value)
            folder, _, last = name.rpartition("/")
            while last in _NODES and folder not in looked:
                looked.add(folder)
                made = self._group(folder)
                if made is not None and (own := as_prefix(folder) + made[0]).startswith(prefix):
                    yield own, len(made[1])
                if not folder:
                    break
                folder = folder.rpartition("/")[0]

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys under a prefix, as nodes are read."""
        return (key for key, _ in self._listed(as_prefix(prefix)))

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield the keys with the sizes of values."""
        return self._listed(as_prefix(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Return what is directly below a prefix. What is in a directory is skipped."""
        prefix = as_prefix(prefix)
        made = self._group(prefix[:-1])
        keys = [] if made is None else [prefix + made[0]]
        prefixes: list[str] = []
        others: list[str] = []
        for name, is_folder in self._names(prefix):
            (others if not is_key(name.removesuffix("/")) else prefixes if is_folder else keys).append(name)
        return Listing(sorted(keys), sorted(prefixes), sorted(set(others)))

    def _names(self, prefix: str) -> Iterator[tuple[str, bool]]:
        """Yield what is directly below a prefix, and whether it is a directory, whose keys are skipped."""
        begin = prefix.encode()
        low, high = begin, _after(begin)
        while (found := next(self._entries(low, high), None)) is not None:
            key = found[0]
            slash = key.find(b"/", len(begin))
            yield _text(key if slash < 0 else key[: slash + 1]), slash >= 0
            low = key + b"\0" if slash < 0 else key[:slash] + b"0"  # the character after a slash

    # -- the store itself -----------------------------------------------------------------

    def _refusal(self) -> ReadOnlyError:
        return refusal(repr(self))

    def about(self) -> Mapping[str, Any]:
        """Return the format, and which version this is."""
        return {"format": FORMAT, "version": f"v{self._root.generation} of {said(self._root.time)}"}

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the store that holds the database, and the version."""
        found, path = self.store.origin()
        return (OcdbtStore, found, path, self._root.generation), ""

    def __reduce__(self) -> tuple[Any, ...]:
        return OcdbtStore, (self.store, f"v{self._root.generation}")

    def __eq__(self, other: object) -> bool:
        is_same = isinstance(other, OcdbtStore) and self.store == other.store
        return is_same and self._root == other._root  # type: ignore[attr-defined]  # mypy forgets the first line

    def __hash__(self) -> int:
        return hash((OcdbtStore, self.store, self._root.generation))

    def __repr__(self) -> str:
        return f"OcdbtStore({self.store!r}{f', {self.version!r}' if self.version else ''})"


def _first(node: Node, above: bytes, low: bytes) -> int:
    """Return the first entry of a node at or below which there may be keys from `low` on."""
    if not low.startswith(above):
        return 0 if low < above else len(node.keys)
    rest = low[len(above) :]
    return bisect_left(node.keys, rest) if not node.height else max(bisect_right(node.keys, rest) - 1, 0)


def _is_array(document: Buffer) -> bool:
    try:
        found = json.loads(bytes(document))
    except (ValueError, RecursionError):
        return True  # its reader says what is wrong with it
    return isinstance(found, dict) and found.get("node_type") == "array"


def _size(value: bytes | Place) -> int:
    return value.length if isinstance(value, Place) else len(value)


def _text(key: bytes) -> str:
    return key.decode(errors="surrogateescape")


def _after(prefix: bytes) -> bytes | None:
    """Return the first key that is behind all that begin with a prefix, which ends with a slash."""
    return prefix[:-1] + b"0" if prefix else None


def refusal(store: str, mode: str | None = None) -> ReadOnlyError:
    """Return the error of a change."""
    return ReadOnlyError(
        "OCDBT databases can only be read",
        store=store,
        found=None if mode is None else f"mode {mode!r}",
        remedy='open it with mode "r", and convert it to Zarr to change it; TensorStore writes OCDBT',
    )


# -- versions ----------------------------------------------------------------------------------


def wanted(version: str) -> tuple[int | None, int | None]:
    """Return the number, or the time in nanoseconds, that a version says. Raises StoreError.

    >>> wanted("v3"), wanted("2025-04-01T12:00:00Z")
    ((3, None), (None, 1743508800000000000))
    """
    match = _version(version)
    if match is not None:
        return int(match[1]), None
    try:
        time = dt.datetime.fromisoformat(version)
    except ValueError:
        raise StoreError("this is no version of an OCDBT database", found=version,
                         expected="v3, or a time as 2025-04-01T12:00:00Z") from None  # fmt: skip
    if time.tzinfo is None:
        time = time.replace(tzinfo=dt.UTC)
    since = time - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return None, (since.days * 86400 + since.seconds) * _NANO + since.microseconds * 1000


def said(time: int) -> str:
    """Return a time in nanoseconds as a text.

    >>> said(1743508800123456789)
    '2025-04-01T12:00:00.123456789Z'
    """
    seconds, rest = divmod(time, _NANO)
    try:
        text = dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{time} ns"
    return f"{text}.{rest:09d}Z"


def _chosen(versions: Sequence[Version], number: int | None, time: int | None) -> Version | None:
    """Return the version of a number, or the last that is not later than a time."""
    if number is not None:
        return next((each for each in versions if each.generation == number), None)
    return next((each for each in reversed(versions) if each.time <= (time or 0)), None)


def _node_with(older: Sequence[Older], number: int | None, time: int | None) -> Older | None:
    """Return the node in which a version is, if there is one."""
    if number is not None:
        return next((each for each in older if each.generation >= number), None)
    return next((each for each in reversed(older) if each.time <= (time or 0)), None)


# -- opening -----------------------------------------------------------------------------------


def open_place(place: kinds.Place) -> tuple[Store, str] | None:
    """Return the store of a database at a path or URL; None if it is none."""
    scheme, mark, rest = place.text.partition("://")
    if mark and scheme.lower() == SCHEME:
        found = _from_url(place, rest)
    elif place.path is not None:
        place.refuse_options()
        found = OcdbtStore(LocalStore(place.path, read_only=True)), ""
    else:
        return None
    if not place.read_only:
        raise refusal(repr(found[0]), place.mode)
    return found


def _from_url(place: kinds.Place, rest: str) -> tuple[Store, str]:
    """Return the database of ``ocdbt://PATH_OR_URL``, with ``@v3`` behind it, or behind the path of its directory."""
    where, version = rest, None
    match = re.search(r"@(v[0-9]+|[0-9]{4}-[0-9T:.Z+-]+)(?=/|$)", rest)
    inside = ""
    if match is not None:
        where, version, inside = rest[: match.start()], match[1], rest[match.end() :].strip("/")
    if not where:
        raise StoreError("a path or URL is missing", found=place.text, expected="ocdbt://PATH_OR_URL")
    store, path = place.resolve(where, "r", place.options)
    if isinstance(store, OcdbtStore):
        base: Store | None = store.store
        path = "/".join(filter(None, (path, inside)))
        return (OcdbtStore(store.store, version) if version else store), path
    base, below = _climb(store, path)
    if base is None:
        raise StoreError(
            "there is no OCDBT database here, nor in the directories above", store=repr(store), expected=ENTRY
        )
    return OcdbtStore(base, version), "/".join(filter(None, (below, inside)))


def _climb(store: Store, path: str) -> tuple[Store | None, str]:
    """Return the store that begins at the database at a path, or in one of the directories above."""
    names = path.split("/") if path else []
    for end in range(len(names), max(len(names) - _MOST_ABOVE, 0) - 1, -1):
        there = "/".join(names[:end])
        begun = PrefixStore(store, there) if there else store
        if begun.exists(ENTRY):
            return begun, "/".join(names[end:])
    for _ in range(_MOST_ABOVE):
        higher = store.above()
        if higher is None:
            break
        store, name = higher
        names.insert(0, name)
        if store.exists(ENTRY):
            return store, "/".join(names)
    return None, ""

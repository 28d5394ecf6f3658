"""Repositories of Icechunk, to be read: the hierarchy of a branch, a tag or a snapshot.

===========================================  ==============================================================
``icechunk:///data/repo@main``               the newest snapshot of a branch, in a directory of this machine
``icechunk:///data/repo@v1``                 a tag
``icechunk:///data/repo@NTDJRYYHDNWY6YY79A50``   a snapshot
``icechunk:///data/repo@main/ocean/temp``    a node
``icechunk+s3://bucket/repo@main``           the same in S3; also ``gs``, ``az``
``icechunk+https://host/repo@main``          the same on a web server
``/data/repo``, ``icechunk:///data/repo``    the branch main
===========================================  ==============================================================

An ``@`` in the path of the repository is written ``%40``. If a branch and a tag have the same name, write
``@branch:NAME`` or ``@tag:NAME``.

`icechunk_objects` reads the files of a repository, of both versions of the format, without the package icechunk, which
writes (`icechunk_writing`). What is opened never changes: it is the snapshot that the branch had then. Chunks are read
as those of other formats are, in ranges of files. Virtual chunks are read only from containers that the user allows;
see `omnizarr.stores.trust`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from omnizarr.errors import (
    Function,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
    Remedy,
    StaleError,
    StorageOption,
    StoreAccessError,
    StoreError,
    StoreLimitError,
)
from omnizarr.stores import kinds, threads, trust, verbs
from omnizarr.stores.base import Buffer, Features, Listing, Store, answers, as_prefix, is_key, listing
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import NOT_STORED
from omnizarr.stores.manifests.places import Columns, Name
from omnizarr.stores.manifests.targets import Reference, Target, TargetStore
from omnizarr.stores.redaction import redact
from omnizarr.stores.remote import icechunk_config, object_urls
from omnizarr.stores.remote import icechunk_objects as objects
from omnizarr.stores.remote.icechunk_config import Container
from omnizarr.stores.remote.icechunk_objects import DOCUMENT, Manifest, ManifestRef, Refs, Snapshot, Virtual
from omnizarr.stores.remote.icechunk_tables import SPEC
from omnizarr.stores.remote.reference_targets import whole_machine
from omnizarr.stores.urls import parse as urls
from omnizarr.stores.urls import scheme_of
from omnizarr.support import suggestions
from omnizarr.support.lazy import Lazy
from omnizarr.support.memo import Weighed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omnizarr.stores.kinds import Place
    from omnizarr.stores.remote import object as object_stores
else:
    np = Lazy("numpy")
    object_stores = Lazy("omnizarr.stores.remote.object")

T = TypeVar("T")

SCHEME: Final = "icechunk"
MAIN: Final = "main"
_SERVICES: Final = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "abfs": "az",
    "http": "http",
    "https": "https",
}
_ON_SERVERS: Final = frozenset({"http", "https"})
_KINDS: Final = ("branch", "tag", "snapshot")
_MOST_NAMES: Final = 20
_MOST_CONFIG: Final = 1 << 20
_MOST_KEPT: Final = 256 << 20
_AT_A_TIME: Final = 16
_LOCAL: Final = frozenset({"file", "local"})
_WRITING: Final = Remedy(
    "write a copy in one commit: {convert}", convert=Function("(source, 'icechunk:///repo@main', message=...)")
) | Remedy("open the store of an icechunk session, Repository.writable_session(branch).store, and commit that session")


# -- addresses ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Address:
    """Where a repository is, and what of it is meant.

    Attributes
    ----------
    service : {"file", "s3", "gs", "az", "http", "https"}
    bucket : str
        Or the host of a web server; empty for directories.
    path : str
        Of the repository: absolute, or in its bucket.
    ref : str
        The branch, tag or snapshot as it was written; empty: the branch main.
    within : str
        Path of a node.
    """

    service: str
    bucket: str
    path: str
    ref: str = ""
    within: str = ""

    @classmethod
    def of(cls, url: str) -> Address:
        """Return the address that a URL means. Raises StoreError if it means none.

        >>> Address.of("icechunk:///data/repo@v1/ocean")
        Address(service='file', bucket='', path='/data/repo', ref='v1', within='ocean')
        >>> Address.of("icechunk+s3://bucket/a/repo").path
        'a/repo'
        """
        scheme, _, rest = url.partition("://")
        service = scheme.lower().removeprefix(SCHEME).removeprefix("+") or "file"
        if service == "file":
            return cls._of_directory(rest)
        if service not in _SERVICES:
            raise StoreError(
                "no repository of Icechunk is at such a place",
                found=redact(url),
                expected=", ".join(f"{SCHEME}+{name}://bucket/repo@main" for name in ("s3", "gs", "az", "https")),
                remedy=f"a directory is {SCHEME}:///path@main",
            )
        if service in _ON_SERVERS and "@" in rest.partition("/")[0]:
            raise StoreError(
                "name and password of a web server are no part of the URL of a repository",
                found=redact(url),
                remedy=Remedy("pass headers: {headers}", headers=StorageOption({"Authorization": "..."})),
            )
        before, _, behind = rest.partition("@")
        ref, _, within = behind.partition("/")
        bucket, _, path = before.strip("/").partition("/")
        if not bucket:
            raise StoreError("the URL names no bucket", found=redact(url), expected=f"{scheme}://bucket/repo@main")
        quoted = urls.unquote(path), urls.unquote(ref), urls.unquote(within).strip("/")
        return cls(_SERVICES[service], bucket, *quoted)

    @classmethod
    def _of_directory(cls, rest: str) -> Address:
        """Return the address in what follows the scheme. Of several ``@``, the first behind a directory counts."""
        marks = [mark.start() for mark in re.finditer("@", rest)]
        at = next((mark for mark in marks if os.path.isdir(_directory(rest[:mark]))), None)
        whole = _directory(rest)
        if at is None and marks and not os.path.isdir(whole):
            at = marks[0]
        if at is not None:
            ref, _, within = rest[at + 1 :].partition("/")
            return cls("file", "", _directory(rest[:at]), urls.unquote(ref), urls.unquote(within).strip("/"))
        above, within = whole, ""
        while not os.path.exists(above) and os.path.dirname(above) != above:
            above, name = os.path.split(above)
            within = f"{name}/{within}".strip("/")
        return cls("file", "", above, "", within) if kinds.is_repository(above) else cls("file", "", whole)

    @property
    def base(self) -> str:
        """The URL of the repository, as the user could write it."""
        if self.service == "file":
            return f"{SCHEME}://{self.path.replace('@', '%40')}"
        return f"{SCHEME}+{self.service}://{self.bucket}/{self.path.replace('@', '%40')}"

    @property
    def place(self) -> str:
        """The path or URL of the repository."""
        return self.path if self.service == "file" else f"{self.service}://{self.bucket}/{self.path}"

    def named(self) -> tuple[str | None, str]:
        """Return the kind of the reference, if it is written, and its name."""
        kind, colon, name = self.ref.partition(":")
        return (kind, name) if colon and kind in _KINDS else (None, self.ref or MAIN)

    def __str__(self) -> str:
        return f"{self.base}@{self.ref or MAIN}"


def _directory(text: str) -> str:
    return os.path.abspath(os.path.expanduser(urls.unquote(text)))


# -- repositories ---------------------------------------------------------------------------


class Repository:
    """A repository, to be read.

    Parameters
    ----------
    address : Address
    options : mapping of str to object
        As for the object store that it is in: see `omnizarr.stores.remote.object_urls`; and `references`, which says
        from where virtual chunks may be read.
    """

    def __init__(self, address: Address, options: Mapping[str, Any]) -> None:
        self.address = address
        self.options = {name: value for name, value in options.items() if name != "references"}
        self.trust = trust.of(options.get("references"))
        self.files = files_of(address, self.options)
        self._refs: Refs | None = None

    @property
    def version(self) -> int:
        """The version of the format. Known after `find`."""
        return 1 if self._refs is None else 2

    def find(self) -> tuple[str, str]:
        """Return what kind of reference the address has, and its snapshot. Raises StoreError if there is none."""
        kind, name = self.address.named()
        wanted = [each for each in ("branch", "tag") if kind in {None, each}]
        spellings = list(dict.fromkeys((name, _quoted(name)))) if "/" not in name else []
        keys = {each: [f"refs/{each}.{text}/ref.json" for text in spellings] for each in wanted}
        asked = ["repo", *(key for each in keys.values() for key in each if is_key(key))]
        answers = dict(verbs.get_many_within(self.files, asked, objects.most_bytes()))
        values = {asked[at]: value for at, value in answers.items()}
        found: dict[str, str] = {}
        if (whole := values["repo"]) is not None:
            self._refs = refs = self._told("repo", objects.refs_of, whole)
            known = {"branch": refs.branches, "tag": refs.tags}
            found = {each: known[each][name] for each in wanted if name in known[each]}
        else:
            for each in wanted:
                value = next((values[key] for key in keys[each] if values.get(key) is not None), None)
                if value is not None and not (each == "tag" and self._is_deleted(keys[each])):
                    found[each] = self._told(keys[each][0], objects.snapshot_of_ref, value)
        if len(found) > 1:
            raise StoreError(
                "a branch and a tag have the same name",
                store=self.address.base,
                found=name,
                remedy=f"write @branch:{name} or @tag:{name}",
            )
        if found:
            return next(iter(found.items()))
        if kind in {None, "snapshot"} and objects.is_id(name) and self._has_snapshot(name):
            return "snapshot", name
        raise self._unknown(name)

    def _is_deleted(self, keys: Iterable[str]) -> bool:
        """Return whether a tag of version 1 has been deleted, which leaves its file."""
        return any(self.files.exists(f"{key}.deleted") for key in keys)

    def _has_snapshot(self, name: str) -> bool:
        return name in self._refs.snapshots if self._refs is not None else self.files.exists(f"snapshots/{name}")

    def _told(self, key: str, parse: Callable[[Any], Any], value: Any) -> Any:
        try:
            return parse(value)
        except OmnizarrError as error:
            raise error.add(store=self.address.base, key=key)

    def _unknown(self, name: str) -> StoreError:
        if self._refs is None and not self._is_there():
            return missing(self.address)
        names = sorted((*self.branches(), *self.tags()))
        return StoreError(
            "the repository has no such branch, tag or snapshot",
            store=self.address.base,
            found=name,
            expected=", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "") or None,
            remedy=suggestions.question(suggestions.near_names(name, names)),
        )

    def _is_there(self) -> bool:
        if self.address.service == "file" and not kinds.is_repository(self.address.path):
            return False
        return self.files.exists(f"refs/branch.{MAIN}/ref.json") or bool(self.branches() or self.tags())

    def branches(self) -> list[str]:
        """Return the names of all branches; none if the server of version 1 lists nothing."""
        return sorted(self._refs.branches) if self._refs is not None else self._listed("branch")

    def tags(self) -> list[str]:
        """Return the names of all tags; none if the server of version 1 lists nothing."""
        return sorted(self._refs.tags) if self._refs is not None else self._listed("tag")

    def _listed(self, kind: str) -> list[str]:
        if self.files.features.listing == "none":
            return []
        keys = set(self.files.list_prefix("refs/"))
        names = (key.removeprefix(f"refs/{kind}.").removesuffix("/ref.json") for key in keys)
        there = (name for name in names if f"refs/{kind}.{name}/ref.json" in keys)
        return sorted(urls.unquote(name) for name in there if f"refs/{kind}.{name}/ref.json.deleted" not in keys)

    @cached_property
    def containers(self) -> list[Container]:
        """The containers of virtual chunks, the longest URL first. This may send a request."""
        if self._refs is not None:
            return icechunk_config.containers_of(self._refs.containers)
        value = verbs.get_within(self.files, "config.yaml", _MOST_CONFIG)
        if value is None:
            return []
        found = self._told("config.yaml", icechunk_config.of_yaml, str(value, "utf-8", "replace"))
        return icechunk_config.containers_of(found)

    @property
    def endpoint(self) -> str | None:
        """The server of a bucket of S3, if the user has named one."""
        if self.address.service != "s3":
            return None
        found = object_urls.plain_options("s3", dict(self.options)).get("endpoint")
        return None if found is None else str(found)

    def store(self) -> IcechunkStore:
        """Return the hierarchy of a snapshot."""
        kind, snapshot = self.find()
        return IcechunkStore(self, kind, snapshot)


def files_of(address: Address, options: Mapping[str, Any]) -> Store:
    """Return the files of a repository, to be read."""
    if address.service == "file":
        if options:
            message = "storage_options mean nothing to a directory"
            raise StoreError(message, found=sorted(options), remedy="leave them out")
        return LocalStore(address.path, read_only=True)
    return object_stores.ObjectStore.from_url(address.place, dict(options), read_only=True)


def missing(address: Address) -> StoreError:
    """Return the error that there is no repository."""
    is_directory = address.service == "file"
    is_there = is_directory and os.path.exists(address.place)
    return StoreError(
        "there is no repository of Icechunk here"
        + ("" if is_there or not is_directory else ", as there is no such directory"),
        store=address.base,
        expected="a directory with refs, snapshots and manifests" if is_directory else None,
        remedy=Remedy("is the path right? An @ in it is written %40")
        | Remedy("make a repository: {convert}", convert=Function(f"(source, '{address.base}@main')")),
    )


_is_special = re.compile(r"[\x00-\x20\x7f-\U0010ffff%\\{^}`\]\">\[~<#|*?]").search


def _quoted(name: str) -> str:
    """Return a name as the file of a branch has it, where icechunk writes special characters in percent."""
    return "".join(urls.quote(each, safe="") if _is_special(each) else each for each in name)


# -- where chunks lie -------------------------------------------------------------------------


class _Tree:
    """The keys of a snapshot: documents, and where chunks lie. Pickled, it is read again."""

    def __init__(self, files: Store, name: str) -> None:
        self._files, self._name = files, name
        self._start()
        _ = self.snapshot

    def _start(self) -> None:
        self._manifests: Weighed[Manifest] = Weighed(_MOST_KEPT)
        self._last: dict[str, Manifest] = {}  # kept however large it is
        self._refs: dict[str, ManifestRef] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._files, self._name)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot."""
        return _read(self._files, f"snapshots/{self._name}", Snapshot, self._name)

    def find(self, key: str) -> Reference | None:
        """Return a document, or where a chunk lies."""
        if key == DOCUMENT or key.endswith(f"/{DOCUMENT}"):
            found = self.snapshot.document(key[: -len(DOCUMENT) - 1] if key != DOCUMENT else "")
            return None if found is None else bytes(found)
        match = objects.chunk_of(key)
        path = "" if match is None else match[1] or ""
        if match is None or not self.snapshot.is_array(path):
            return None
        coords = np.array([[int(each) for each in match[2].split("/")[1:]]], np.int64).reshape(1, -1)
        for _, located in self._located(path, coords):
            if located.is_inline[0]:
                return located.chunks.values(located.rows)[0]
            offset, length = int(located.offsets[0]), int(located.lengths[0])
            if located.is_native[0]:
                return Target(f"{_OWN}{located.chunks.ids(located.rows)[0]}", offset, length)
            return Target(_name_of(located.chunks.virtual(located.rows)[0]), offset, length)
        return None

    def columns(self, keys: Sequence[str], numbers: NDArray[np.uint64]) -> Columns:
        """Return where chunks of one array lie."""
        offsets, lengths = np.zeros(len(keys), np.uint64), np.full(len(keys), NOT_STORED, np.uint64)
        files = np.zeros(len(keys), np.uint32)
        names: list[Name] = []
        values: dict[int, bytes] = {}
        match = objects.chunk_of(keys[0])
        path = "" if match is None else match[1] or ""
        if match is None or not self.snapshot.is_array(path):
            return Columns(offsets, lengths, files, names, values)
        skip = len(f"{path}/c" if path else "c")
        text = "".join(key[skip:] for key in keys).replace("/", " ")
        coords = np.fromstring(text, np.int64, sep=" ").reshape(len(keys), -1)
        for at, located in self._located(path, coords):
            is_file = ~located.is_inline
            offsets[at], lengths[at[is_file]] = located.offsets, located.lengths[is_file]
            chunks, rows = located.chunks, located.rows
            if located.is_native.any():
                own = chunks.ids(rows[located.is_native])
                files[at[located.is_native]] = len(names) + np.arange(len(own))
                names += [Name(_OWN + each, is_whole=True) for each in own]
            if located.is_virtual.any():
                known: dict[Virtual, int] = {}
                found = [known.setdefault(each, len(known)) for each in chunks.virtual(rows[located.is_virtual])]
                files[at[located.is_virtual]] = len(names) + np.array(found)
                names += [Name(_name_of(each), is_whole=False) for each in known]
            if located.is_inline.any():
                held = numbers[at[located.is_inline]].tolist()
                values.update(zip(held, chunks.values(rows[located.is_inline]), strict=True))
        return Columns(offsets, lengths, files, names, values)

    def _manifests_of(self, path: str) -> ManifestRef:
        found = self._refs.get(path)
        if found is None:
            found = self._refs[path] = self.snapshot.manifests(path)
        return found

    def _located(self, path: str, coords: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.intp], objects.Located]]:
        """Yield which of some chunks a manifest has, and where they lie."""
        refs = self._manifests_of(path)
        if not len(coords) or not refs.ids:
            return
        is_any = refs.low.shape[1] == 0
        if not is_any and refs.low.shape[1] != coords.shape[1]:
            return
        left = np.ones(len(coords), np.bool_)
        wanted: list[tuple[str, NDArray[np.intp]]] = []
        near = list(range(len(refs.ids)))
        if not is_any:
            is_near = (refs.low <= coords.max(axis=0)) & (refs.high > coords.min(axis=0))
            near = np.flatnonzero(is_near.all(axis=1)).tolist()
        for number in near:
            inside = left
            if not is_any:
                inside = left & ((coords >= refs.low[number]) & (coords < refs.high[number])).all(axis=1)
            at = np.flatnonzero(inside)
            if len(at):
                wanted.append((refs.ids[number], at))
                left[at] = False
        node = self.snapshot.id(path)
        for first in range(0, len(wanted), _AT_A_TIME):
            some = wanted[first : first + _AT_A_TIME]
            manifests = self._read([name for name, _ in some])
            for name, at in some:
                chunks = self._of(name, manifests[name], node)
                if chunks is None:
                    continue
                rows = chunks.rows(coords[at])
                there = rows >= 0
                if there.any():
                    yield at[there], chunks.located(rows[there])

    def _of(self, name: str, manifest: Manifest, node: bytes) -> objects.Chunks | None:
        try:
            return manifest.chunks(node)
        except OmnizarrError as error:
            raise error.add(key=f"manifests/{name}")

    def _read(self, names: Sequence[str]) -> dict[str, Manifest]:
        found = self._known(names)
        lacking = [name for name in names if name not in found]
        if not lacking:
            return found
        with threads.lock((id(self), lacking[0])):  # many threads may need the same one
            found |= self._known(lacking)
            lacking = [name for name in lacking if name not in found]
            keys = [f"manifests/{name}" for name in lacking]
            for at, value in verbs.get_many_within(self._files, keys, objects.most_bytes()) if keys else ():
                made = _parsed(self._files, keys[at], value, Manifest, lacking[at])
                found[lacking[at]] = made
                self._manifests.put(lacking[at], made, made.size)
                self._last = {lacking[at]: made}
        return found

    def _known(self, names: Iterable[str]) -> dict[str, Manifest]:
        known = {name: self._manifests.get(name) or self._last.get(name) for name in names}
        return {name: each for name, each in known.items() if each is not None}

    # -- listing ----------------------------------------------------------------------------

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield all keys under a prefix."""
        return (key for key, _ in self.sizes(prefix, sized=False))

    def sizes(self, prefix: str, *, sized: bool = True) -> Iterator[tuple[str, int]]:
        """Yield all keys under a prefix, with the sizes of values."""
        snapshot = self.snapshot
        for path in snapshot.below(prefix[:-1]):
            document = snapshot.document(path)
            yield (f"{path}/{DOCUMENT}" if path else DOCUMENT), len(document or b"")
            if snapshot.is_array(path):
                yield from self._chunks(path, sized=sized)
        above = objects.chunk_of(prefix[:-1])
        if above is not None and snapshot.is_array(above[1] or ""):
            yield from (each for each in self._chunks(above[1] or "", sized=sized) if each[0].startswith(prefix))

    def _chunks(self, path: str, *, sized: bool) -> Iterator[tuple[str, int]]:
        head = f"{path}/c" if path else "c"
        node = self.snapshot.id(path)
        for name in self._manifests_of(path).ids:
            chunks = self._of(name, self._read([name])[name], node)
            if chunks is None:
                continue
            sizes: Sequence[int] | NDArray[np.int64] = [0] * len(chunks)
            if sized:
                sizes = chunks.located(np.arange(len(chunks))).lengths.tolist()
            for coords, size in zip(chunks.coords(), sizes, strict=True):
                yield "/".join((head, *map(str, coords))), size

    def below(self, prefix: str) -> Listing:
        """Return what is directly under a prefix."""
        snapshot, path = self.snapshot, prefix[:-1]
        names = [f"{child}/" for child in snapshot.children(path)]
        if path in snapshot:
            names.append(prefix + DOCUMENT)
        if snapshot.is_array(path):
            names += [key for key, _ in self._first(path)]
        if objects.chunk_of(path) is not None:
            names += self.keys(prefix)
        return listing(names, prefix)

    def _first(self, path: str) -> list[tuple[str, int]]:
        return [each for each in [next(self._chunks(path, sized=False), None)] if each is not None]


def _again(files: Store, name: str) -> _Tree:
    made = _Tree.__new__(_Tree)
    made._files, made._name = files, name  # noqa: SLF001 - of this module
    made._start()  # noqa: SLF001 - of this module
    return made


def _read(files: Store, key: str, parse: Callable[[Buffer, str], T], name: str) -> T:
    try:
        value = verbs.get_within(files, key, objects.most_bytes())
    except StoreLimitError as error:
        raise error.add(remedy=objects.REMEDY)
    return _parsed(files, key, value, parse, name)


def _parsed(files: Store, key: str, value: Buffer | None, parse: Callable[[Buffer, str], T], name: str) -> T:
    if value is None:
        raise StoreError(
            f"a {key.partition('s/')[0]} of the repository is not there",
            store=repr(files),
            key=key,
            remedy="has it been removed by a garbage collection? Open a branch",
            spec=SPEC,
        )
    try:
        return parse(value, name)
    except OmnizarrError as error:
        raise error.add(store=repr(files), key=key)


# -- files ------------------------------------------------------------------------------------

_OWN: Final = "chunks/"
"""What the names of files in the repository begin with. Others are elsewhere."""


def _name_of(virtual: Virtual) -> str:
    """Return what a file elsewhere is called here: with what it must be, as one file may have to be two things."""
    return f"{virtual.changed}\n{virtual.tag or ''}\n{virtual.location}"


def _virtual_of(name: str) -> Virtual:
    changed, tag, location = name.split("\n", 2)
    return Virtual(location, tag or None, int(changed))


class _Own(File):
    """A file of chunks in the repository. It is never changed, only removed."""

    __slots__ = ()

    def recorded(self, *, is_fixed: bool) -> tuple[str, int, int, int, int] | None:
        """Return its path."""
        return f"{self.store.real_root()}/{self.key}", 0, 0, 0, 0  # type: ignore[attr-defined]


class _Elsewhere:
    """The files that virtual chunks lie in, as far as they may be read."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._stores: dict[tuple[str, str], Store] = {}

    def file(self, virtual: Virtual) -> File:
        """Return a file, if it is what it must be.

        Raises StoreAccessError if it may not be read, and StaleError if it is not what it was.
        """
        location, container = self._contained(virtual.location)
        if scheme_of(location) in _LOCAL:
            found = File(*self._on_this_machine(location))
        else:
            found = File(*self._far(location, container))
        if virtual.tag is not None or virtual.changed:
            _check(found, virtual, location)
        return found

    def location(self, virtual: Virtual) -> str:
        """Return the path or URL of a file."""
        location, _ = self._contained(virtual.location)
        return _path(location) if scheme_of(location) in _LOCAL else location

    def _contained(self, location: str) -> tuple[str, Container]:
        """Return the absolute URL of a file, and the container that it is in. Raises StoreAccessError if in none."""
        containers = self._repository.containers
        if location.startswith("vcc://"):
            name, slash, rest = location.removeprefix("vcc://").partition("/")
            container = next((each for each in containers if slash and each.name == name), None)
            if container is not None:
                location = container.prefix + rest
        else:
            is_local = scheme_of(location) in _LOCAL
            spelled = {location, urls.unquote(location)} if not is_local else {f"file://{_path(location)}"}
            container = next(
                (
                    each
                    for each in containers
                    if any(text.startswith((each.prefix, urls.unquote(each.prefix))) for text in spelled)
                ),
                None,
            )
        if container is None:
            raise StoreAccessError(
                "a virtual chunk lies outside of the containers of the repository",
                found=redact(location),
                remedy="add a virtual chunk container to the configuration of the repository, if you trust it",
            )
        return location, container

    def _on_this_machine(self, location: str) -> tuple[Store, str]:
        path, allowed = _path(location), self._repository.trust
        if allowed.is_complete:
            return whole_machine(path)
        address = self._repository.address
        own = [os.path.dirname(address.place)] if address.service == "file" else []
        found = trust.root_of(path, [*own, *allowed.directories])
        if found is None:
            raise trust.refused_target(location)
        root, key = found
        known = self._stores.get(("", root))
        return known or self._stores.setdefault(("", root), LocalStore(root, read_only=True)), key

    def _far(self, location: str, container: Container) -> tuple[Store, str]:
        repository, scheme = self._repository, scheme_of(location) or ""
        service = object_urls.backend_of(scheme)
        if service is None or "::" in location:
            raise NotRepresentableError(
                "virtual chunks at such a place cannot be read",
                found=redact(location),
                expected="file://, s3://, gs://, az://, https://",
            )
        endpoint = container.options.get("endpoint_url")
        own = trust.is_same_place(location, repository.address.place) and endpoint in {None, repository.endpoint}
        if not own and not repository.trust.covers(location):
            raise trust.refused_target(location)
        parts = urls.urlsplit(location)
        root = parts._replace(path="/" if service == "http" else "", query="", fragment="").geturl()
        key = urls.unquote(parts.path).lstrip("/")
        if not is_key(key):
            raise NotRepresentableError("a virtual chunk in a file whose name cannot be", found=redact(location))
        known = self._stores.get((container.prefix, root))
        if known is None:
            options = repository.options if own else _options_of(container, service, repository.trust.is_complete)
            known = object_stores.ObjectStore.from_url(root, dict(options), read_only=True)
            self._stores[container.prefix, root] = known
        return known, key


def _path(location: str) -> str:
    return os.path.normpath(urls.unquote(urls.urlsplit(location).path) or "/")


def _options_of(container: Container, service: str, is_trusted: bool) -> dict[str, Any]:  # noqa: FBT001
    """Return the options of the store of a container. A server of its own gets no credentials without full trust."""
    given = container.options
    if service == "s3":
        names = {"region": "region", "endpoint_url": "endpoint", "allow_http": "allow_http"}
        made = {ours: given[theirs] for theirs, ours in names.items() if given.get(theirs)}
        if given.get("anonymous") in {True, "true"} or ("endpoint" in made and not is_trusted):
            made["skip_signature"] = True
        return made
    if service == "az" and isinstance(given.get("account"), str):
        return {"account_name": given["account"]}
    return {}


def _check(file: File, virtual: Virtual, location: str) -> None:
    """Raise StaleError if a file is not what it was when its chunks were written into the repository."""
    if file.is_local:
        status = os.stat(file.path)
        tag = f"{status.st_ino:x}-{status.st_mtime_ns // 1000:x}-{status.st_size:x}"
        changed = status.st_mtime_ns // 10**9
    else:
        version = file.version
        tag = "" if version is None else (version.e_tag or "").removeprefix("W/").strip('"')
        changed = 0 if version is None or not version.modified else version.modified // 10**6
        if not (tag if virtual.tag is not None else changed):
            raise StaleError(
                "the server does not say whether a file with virtual chunks has changed",
                found=redact(location),
                expected="an ETag" if virtual.tag is not None else "the time of the last change",
            )
    if virtual.tag is not None and tag != virtual.tag.strip('"'):
        raise _stale(location, f"ETag {tag}", f"ETag {virtual.tag}")
    if virtual.changed and changed > virtual.changed:
        raise _stale(location, _time(changed), f"at the latest {_time(virtual.changed)}")


def _stale(location: str, found: str, expected: str) -> StaleError:
    return StaleError(
        f"{redact(location)} has changed since its chunks were written into the repository",
        found=found,
        expected=expected,
        remedy="write its virtual chunks again",
    )


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ")


# -- stores ---------------------------------------------------------------------------------


class IcechunkStore(TargetStore):
    """The hierarchy of one snapshot of an Icechunk repository. It never changes, and is read-only.

    `omnizarr.open("icechunk:///data/repo@main")` makes one. To write, use `omnizarr.convert`, or pass the store of a
    session of icechunk, which you commit.
    """

    _again = "the repository is not complete, or broken: copy it again, or open another snapshot"
    _lost = "has it been removed by a garbage collection? Open a branch"

    def __init__(self, repository: Repository, kind: str, snapshot: str) -> None:
        self.snapshot = snapshot
        self._address = replace(repository.address, within="")
        self._kind = kind
        self._repository = repository
        try:
            self._tree = self._set = _Tree(repository.files, snapshot)
        except OmnizarrError as error:
            raise error.add(store=str(self._address))
        self._elsewhere = _Elsewhere(repository)
        self._files: dict[str | None, File] = {}

    @property
    def features(self) -> Features:
        """Those of the store that holds the repository. All keys are listed."""
        return replace(self._repository.files.features, listing="complete", sets_unlocked=False)

    # -- files ------------------------------------------------------------------------------

    def _made(self, url: str | None) -> File:
        if url is None or url.startswith(_OWN):
            return _Own(self._repository.files, url or "")
        return self._elsewhere.file(_virtual_of(url))

    def _is_fixed(self, target: Target) -> bool:
        return not (target.url or "").startswith(_OWN)

    def _leads(self, target: Target) -> str:
        url = target.url or ""
        if url.startswith(_OWN):
            return f"a chunk lies in {url}"
        return f"a virtual chunk lies in {redact(_virtual_of(url).location)}"

    def _file_of(self, key: str, target: Target) -> str:
        url = target.url or ""
        if not url.startswith(_OWN):
            return self._elsewhere.location(_virtual_of(url))
        base = verbs.folder(self._repository.files, "")
        if base is None:
            raise NotRepresentableError("the files of the repository have no path or URL", store=repr(self), key=key)
        return base + url

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield the keys with the sizes that manifests state."""
        return self._tree.sizes(as_prefix(prefix))

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return where a value lies: what lies in the repository does not change."""
        found = self._find(key)
        return self._stamp_of(key, found) if isinstance(found, Target) and self._is_fixed(found) else found

    # -- the store itself -------------------------------------------------------------------

    @property
    def place(self) -> str:
        """The URL."""
        return str(self._address)

    def about(self) -> Mapping[str, Any]:
        """Return facts about the repository: branches, tags, and this snapshot."""
        repository, snapshot = self._repository, self._tree.snapshot
        written = datetime.fromtimestamp(snapshot.flushed / 10**6, UTC)
        return {
            "repository": self._address.base,
            "spec": f"version {repository.version}",
            "branches": repository.branches(),
            "tags": repository.tags(),
            self._kind: self._address.named()[1],
            "snapshot": self.snapshot,
            "message": snapshot.message,
            "written": written.isoformat(sep=" ", timespec="seconds"),
        }

    @property
    def pipeline(self) -> tuple[str, str]:
        """The path or URL of the repository, and the segment behind it in a pipeline of URLs, without a path."""
        name = self._address.named()[1] if self._kind in {"branch", "tag"} else self.snapshot
        kind = f"{self._kind}." if name != self.snapshot else ""
        return self._address.place, f"icechunk:@{kind}{urls.quote(name, safe='')}/"

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the snapshot."""
        return (SCHEME, self._address.place, self.snapshot), ""

    def _refusal(self) -> ReadOnlyError:
        return refusal(self._address)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IcechunkStore) and self.origin() == other.origin()

    def __hash__(self) -> int:
        return hash(self.origin())

    def __repr__(self) -> str:
        return f"IcechunkStore({self.place!r})"


def refusal(address: Address) -> ReadOnlyError:
    """Return the error for writes into what was opened by its URL, which would never be committed."""
    kind = "a branch of an Icechunk repository is read here as it is, as nothing would commit what you write"
    return ReadOnlyError(kind, store=str(address), remedy=_WRITING)


# -- called by `omnizarr.stores.resolve` ------------------------------------------------------


def open_place(place: Place) -> tuple[Store, str] | None:
    """Return the hierarchy of a repository at a path or URL, and the path in it; None if a directory is none."""
    if place.path is not None:
        if not kinds.is_repository(place.path):
            return None
        address = Address("file", "", os.path.abspath(place.path))
    else:
        address = Address.of(place.text)
    if not place.read_only:
        raise refusal(address)
    return Repository(address, place.options).store(), address.within

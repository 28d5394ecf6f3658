"""Copying a node byte for byte: its chunks first, its documents last, so that it appears when it is complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, Final

from omnizarr.errors import (
    ContainsArrayError,
    Function,
    NodeExistsError,
    NotRepresentableError,
    OmnizarrError,
    Remedy,
    StoreError,
)
from omnizarr.model import ArrayMetadata, Metadata
from omnizarr.nodes import detection, erasing, hierarchy, holdings
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, dialect_of, dialects_at
from omnizarr.nodes.renewing import renew
from omnizarr.stores import LocalStore, Store, pool
from omnizarr.stores.base import RESERVED
from omnizarr.stores.urls import scheme_of
from omnizarr.support.progress import Progress, Tick, Tracker
from omnizarr.tools import strangers
from omnizarr.tools.convert import journal
from omnizarr.tools.convert.sources import Source
from omnizarr.tools.edit import mentions, places, rm, unfinished
from omnizarr.tools.edit.report import Edited
from omnizarr.tools.streaming import executors, nodes
from omnizarr.tools.streaming.chunks import Chunks
from omnizarr.tools.streaming.executors import Executor, Job, Tally

Pair = tuple[str, str]
"""The key of a value in the source, and in the target."""
_TEMPORARY: Final = ".tmp"
_BESIDE: Final = ("new", "old")
_IN_FLIGHT: Final = 256 * 2**20
"""Bytes of values in memory at a time, as far as their sizes are known."""


def run(
    source: Any,
    target: Any,
    *,
    path: str | None,
    target_path: str | None,
    overwrite: bool,
    resume: bool,
    verify: bool,
    dry_run: bool,
    scheduler: Any,
    progress: Progress,
    storage_options: Mapping[str, Any] | None,
) -> Edited:
    """Like `omnizarr.copy_node`."""
    if overwrite and resume:
        raise ValueError("overwrite begins again, resume continues: choose one")
    options = options_of(source, storage_options), options_of(target, storage_options)
    with (
        places.opened(source, path, "r", options[0]) as old,
        places.opened(target, target_path, "a", options[1]) as new,
        executors.executor(scheduler) as executor,
    ):
        return Copy(old, new, overwrite=overwrite, resume=resume, verify=verify, executor=executor).run(
            dry_run=dry_run, progress=progress
        )


def options_of(place: Any, storage_options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return storage options for a place that takes them: of source and target it may be one."""
    return storage_options if isinstance(place, str) and scheme_of(place) is not None else None


class Copy:
    """The copy of one node with all below it."""

    def __init__(
        self,
        source: StorePath,
        target: StorePath,
        *,
        overwrite: bool = False,
        resume: bool = False,
        verify: bool = True,
        executor: Executor | None = None,
    ) -> None:
        self.found = detection.open_node(source)
        self.source = self.found.where
        self.resume, self.overwrite, self.verify = resume, overwrite, verify
        self.executor = executor or executors.Local()
        self.above = hierarchy.Above()
        self.target = self._placed(target)
        self.is_complete = False  # a copy without a journal is there: complete, if it is one of this source
        self.replaced = self._replaced()
        self.continues = False
        self.left: tuple[str, ...] = ()

    def _placed(self, target: StorePath) -> StorePath:
        """Return the target within the hierarchy that it will be in; raise if the node cannot be there."""
        if target.store.read_only:
            target.store.check_writable()
        dialect = dialect_of(self.source, self.found.metadata)
        hierarchy.check_path(dialect, target.path)
        hierarchy.refuse_overlap(self.source, target)
        self._refuse_journal()
        target = hierarchy.settled(target, dialect, self.above)
        hierarchy.refuse_other_keys(self.source, target)
        for place in reversed(list(target.ancestors())):
            group = self.above.at(place)
            if isinstance(group, Found):
                self._refuse_group(group, target)
                break
        return target

    def _refuse_journal(self) -> None:
        if unfinished.is_left(self.source):
            raise StoreError(
                "the source is an unfinished copy or conversion",
                store=str(self.source.store),
                path=self.source.path,
                remedy="finish that first",
            )

    def _refuse_group(self, group: Found[Metadata], target: StorePath) -> None:
        if isinstance(group.metadata, ArrayMetadata):
            raise ContainsArrayError(
                "an array is in the way: nodes cannot lie below it",
                store=str(target.store),
                path=target.path,
                found=f"an array at {'/' + group.where.path!r}",
                expected="a group",
            )
        ours, theirs = self.found.metadata.dialect, group.metadata.dialect
        if ours != theirs:
            raise NotRepresentableError(
                f"a node of Zarr {ours} cannot be copied byte for byte into a group of Zarr {theirs}",
                store=str(target.store),
                path=target.path,
                remedy=Remedy("use {convert}, or another place", convert=Function()),
            )

    def _replaced(self) -> Found[Metadata] | None:
        """Return the node that is replaced; raise if something is in the way."""
        there = hierarchy.occupant(self.target)
        if isinstance(there, OmnizarrError):
            raise there
        if there is not None and not self.overwrite:
            if self.resume:
                self.is_complete = not unfinished.is_left(self.target)
                return None
            raise hierarchy.in_the_way(self.target, there)
        if there is not None:
            rm.refuse_strangers(there)
        elif not unfinished.is_left(self.target):
            self._refuse_others()
        return there

    def _refuse_others(self) -> None:
        """Raise NodeExistsError if something is at the target that is not a node."""
        folder = places.folder_of(self.target)
        if folder is not None:
            is_there = folder.is_file() or (folder.is_dir() and not all(map(_is_temporary, folder.iterdir())))
        else:
            prefixes = dialects_at(self.target)[0].keyspace.belongings(self.target.path).prefixes
            is_there = any(next(iter(self.target.store.list_prefix(prefix)), None) for prefix in prefixes)
        if is_there:
            raise NodeExistsError(
                "there is something here that is not a Zarr node",
                store=str(self.target.store),
                path=self.target.path,
                remedy="choose another place, or remove it",
            )

    # -- doing it ------------------------------------------------------------------

    def run(self, *, dry_run: bool, progress: Progress) -> Edited:
        """Copy, unless it is a dry run; return what was done."""
        keys, nbytes = self._size()
        kind = self.found.metadata.node_type
        outcome = Edited("copy", str(self.source), str(self.target), kind, keys, nbytes or 0, dry_run=dry_run)
        if self.is_complete:
            with Tracker(progress, f"compare {self.source.path or self.source.store}", nbytes) as shown:
                self._compare(shown.tick)
            return replace(outcome, keys=0, bytes_stored=0, verified=True, remarks=("the copy was complete already",))
        if dry_run:
            return outcome
        with Tracker(progress, f"copy {self.source.path or self.source.store}", nbytes) as shown:
            copied = self._begin(shown.tick)
            renew(self.target)
        marks = mentions.listed(self.source).marks
        mentions.enter(self.target, kind, marks)
        remarks = (*mentions.rebase(self.source, self.target), *self._remarks(), *self._not_copied(), *self.left)
        return replace(outcome, keys=copied.values, bytes_stored=copied.nbytes, verified=self.verify, remarks=remarks)

    def _not_copied(self) -> Iterator[str]:
        """Yield a remark on files that are not Zarr at the root of a draft, whose nodes lie in places of their own."""
        if self.source.home is None or self.source.path:
            return
        with ExitStack() as opened:
            found = nodes.hierarchy(opened, self.source, None, None, None)
        others = strangers.of(found.top.where, nodes.metadata_of(found)).files
        if others:
            yield (
                Remedy(f"not copied: {strangers.counted(others)}")
                .also("{copy_store} copies them", copy_store=Function())
                .also("{convert} copies them", convert=Function())
            )

    def _compare(self, tick: Tick) -> None:
        """Raise NodeExistsError if the node at the target differs from the source."""
        layout = _Layout(self.source, self.target)
        comparison = _Comparison(self.source.store, self.target.store)
        self.executor.run(comparison, layout.chunks(), tick)
        executors.Local().run(comparison, layout.documents(), tick)
        for key in layout.others():
            raise _differs(self.target.store, key)

    def _remarks(self) -> tuple[str, ...]:
        before, after = mentions.listed(self.source), mentions.listed(self.target)
        if after.is_nczarr and not before.is_nczarr:
            return ("the group lists it as NCZarr does, but it has no notes of NCZarr: netCDF sees it as plain Zarr",)
        return ()

    def _size(self) -> tuple[int, int | None]:
        """Return the number of keys and their bytes; only the known ones if the store cannot be listed."""
        keys, nbytes = 0, 0
        try:
            for _, size in holdings.sizes(self.source):
                keys, nbytes = keys + 1, nbytes + size
        except (StoreError, NotImplementedError):
            return 0, None
        return keys, nbytes

    def _begin(self, tick: Tick) -> executors.Written:
        folder = places.folder_of(self.target)
        if self.replaced is not None and folder is not None and isinstance(self.target.store, LocalStore):
            return self._replace(self.target.store, tick)
        if self.replaced is not None:
            rm.delete(self.replaced)
        elif self.overwrite:
            erasing.erase(self.target)  # what an interrupted copy has left
        return self._copy_to(self.target, tick)

    def _replace(self, store: LocalStore, tick: Tick) -> executors.Written:
        """Copy to a directory beside the hierarchy, and replace the old directory by it at the end."""
        token = os.urandom(6).hex()
        fresh, old = (f"{RESERVED}{name}-{token}" for name in _BESIDE)
        with store.around("")[0] as beside:
            try:
                written = self._copy_to(_at(store.beside(fresh), self.target), tick)
                folder, name = store.around(self.target.path)
                with folder:
                    folder.rename(name, beside, old)
                    try:
                        beside.rename(fresh, folder, name)
                    except BaseException:
                        beside.rename(old, folder, name)
                        raise
            finally:
                with suppress(OSError):
                    beside.remove_tree(fresh)
            with suppress(OSError):
                beside.remove_tree(old)
        store.forget()  # an open store remembers directories
        self.left = _left_beside(Path(store.root))
        return written

    def _copy_to(self, target: StorePath, tick: Tick) -> executors.Written:
        note = unfinished.of_copy(self.found)
        self.continues = unfinished.check(target, note, resume=self.resume)
        has_journal = unfinished.has_place(target)
        if has_journal:
            _remove_temporary(target)
        if has_journal and not self.continues:
            note.write(target)
        layout = _Layout(self.source, target)
        self.executor.expect(self.source.store, [])
        self.executor.expect(target.store, [target.prefix + journal.KEY] if has_journal else [])
        done = [self.executor.run(self._job(target), layout.chunks(), tick)]
        if target is self.target:
            hierarchy.create_ancestors(target, dialect_of(target, self.found.metadata), self.above)
        if self.continues:
            for key in layout.others():
                target.store.delete(key)
        here = executors.Local()
        with target.lock():
            if not layout.has_entry:
                hierarchy.write_entry_point(target, dialect_of(target, self.found.metadata))
            for _, level in groupby(layout.documents(), layout.turn):
                done.append(here.run(self._job(target), level, tick))
        if has_journal:
            journal.remove(target)
        return executors.Written(sum(each.values for each in done), sum(each.nbytes for each in done))

    def _job(self, target: StorePath) -> _Values:
        return _Values(self.source.store, target.store, verify=self.verify, resume=self.continues)


def _remove_temporary(target: StorePath) -> None:
    """Remove the unfinished work of a killed writer."""
    store = target.store
    if places.folder_of(target) is None or not isinstance(store, LocalStore):
        return
    for key, _ in list(store.list_unnamed(target.prefix)):
        above, _, name = key.rpartition("/")
        if name.startswith(RESERVED) and name.endswith(_TEMPORARY):
            with suppress(OSError), store.opened(above) as folder:
                folder.unlink(name)


def _left_beside(root: Path) -> tuple[str, ...]:
    """Return remarks on what interrupted replacements have left beside a hierarchy; others may still use it."""
    found = (path for name in _BESIDE for path in root.parent.glob(f"{RESERVED}{name}-*"))
    return tuple(f"{path} is left of an interrupted replacement: delete it if none is running" for path in found)


def _is_temporary(file: Path) -> bool:
    """Whether this is the unfinished work of a writer, which a killed one leaves."""
    return file.name.startswith(RESERVED) and file.name.endswith(_TEMPORARY)


def _at(store: Store, target: StorePath) -> StorePath:
    """Return the root of a store in which a node is made that will be elsewhere."""
    return StorePath(store, "", None if target.home is None else replace(target.home, root=""))


class _Layout:
    """Which keys there are of a node and of those below, and where they go."""

    def __init__(self, source: StorePath, target: StorePath) -> None:
        self.source, self.target = source, target
        formats = dialects_at(source)
        self._old, self._new = formats[0].keyspace, dialects_at(target)[0].keyspace
        self._is_document = hierarchy.document_test(source)
        self._makers = tuple(name for dialect in formats for name in (dialect.array_document, dialect.group_document))
        self._documents: list[Pair] = []
        self._listed: set[str] | None = set()

    def chunks(self) -> Iterator[Pair]:
        """Yield all keys but those of documents, which are remembered; in any order."""
        seen: set[str] = set()
        for prefix, other in self._prefixes().items():
            for key in self._keys(prefix):
                if key == f"{self.source.prefix}{journal.KEY}":
                    continue
                pair = key, other + key[len(prefix) :]
                if self._is_document(key):
                    if key not in seen:
                        seen.add(key)
                        self._documents.append(pair)
                else:
                    yield pair
        there = self._new.documents(self.target.path)
        for name, key in self._old.documents(self.source.path).items():
            if name in there and key not in seen and self.source.store.exists(key):
                self._documents.append((key, there[name]))

    def documents(self) -> list[Pair]:
        """Return the keys of documents, in the order in which they are to be written."""
        own, new = self.source.home, self.target.home
        entry = []
        if self.has_entry and own is not None and new is not None:
            entry = [(own.entry_key, new.entry_key)]
        return [*sorted(self._documents, key=self.turn), *entry]

    @property
    def has_entry(self) -> bool:
        """Whether the root of a draft's hierarchy is copied to where another one begins: with its entry point."""
        own, new = self.source.home, self.target.home
        if own is None or new is None:
            return False
        return self.source.path == own.root and self.target.path == new.root

    def turn(self, pair: Pair) -> tuple[int, bool]:
        """Return when a document has its turn: the deepest first, of a node the one that makes it a node last."""
        return -pair[0].count("/"), pair[0].endswith(self._makers)

    def others(self) -> Iterator[str]:
        """Yield the keys of the target that the source does not have, or no longer."""
        expected = {new: old for old, new in self._documents}
        for prefix, other in self._prefixes().items():
            for key in list(self.target.store.list_prefix(other)):
                old = expected.get(key, prefix + key[len(other) :])
                if key != f"{self.target.prefix}{journal.KEY}" and not self.source.store.exists(old):
                    yield key

    def _prefixes(self) -> dict[str, str]:
        """Return prefixes of the source, none within another, with their new names."""
        pairs = {
            self._old.directory(self.source.path): self._new.directory(self.target.path),
            self._old.chunk_prefix(self.source.path): self._new.chunk_prefix(self.target.path),
        }
        return {
            old: new for old, new in pairs.items() if not any(old != other and old.startswith(other) for other in pairs)
        }

    def _keys(self, prefix: str) -> Iterator[str]:
        try:
            keys = self.source.store.list_prefix(prefix)
            if holdings.is_asked(self.source.store):
                keys = (key for key in holdings.keys(self.source) if key.startswith(prefix))
            keys = iter(keys)
            first = list(islice(keys, 1))
        except (StoreError, NotImplementedError):
            yield from self._unlisted()
            return
        yield from chain(first, keys)

    def _unlisted(self) -> Iterator[str]:
        """Yield the keys that may be there in a store that cannot be listed: of documents, and of all chunks."""
        source = Source(detection.open_node(self.source))
        nodes = list(source.walk(source.top(detection.open_node(self.source))))
        source.check_is_whole()
        for node in nodes:
            if isinstance(node.found, OmnizarrError):
                raise node.found
            where, metadata = node.found.where, node.found.metadata
            if node.is_copy:
                where = self.source.at(f"{self.source.prefix}{node.path}".rstrip("/"))
            names = dialect_of(where, metadata).keyspace.documents(where.path).values()
            yield from (key for key in names if self.source.store.exists(key))
            if isinstance(metadata, ArrayMetadata):
                chunks = Chunks.of(where, detection.with_keys_in_use(where, metadata))
                yield from map(chunks.key_of, chunks.stored())


@dataclass(frozen=True)
class _Values(Job[Pair]):
    """Copy a value, and read it again."""

    source: Store
    target: Store
    verify: bool
    resume: bool

    @property
    def at_once(self) -> int:
        return max(pool.default_concurrency(), self.source.concurrency, self.target.concurrency)

    share = 64

    def begin(self, _: dict[str, str]) -> tuple[Callable[[Pair], int], Tally]:
        tally = Tally(self.target)

        def copy(pair: Pair) -> int:
            key, copied = pair
            value = self.source.get(key)
            if value is None:  # never written, or removed meanwhile
                return 0
            if not (self.resume and _is_same(self.target, copied, value)):
                tally.set(copied, value)
                if self.verify and not _is_same(self.target, copied, value):
                    raise StoreError(
                        "the copy differs from what was copied",
                        store=str(self.target),
                        key=copied,
                        remedy=Remedy("copy again with {resume}, and look after the store", resume=True),
                    )
            return len(value)

        return copy, tally


@dataclass(frozen=True)
class _Comparison(Job[Pair]):
    """Compare a value with its copy."""

    source: Store
    target: Store

    @property
    def at_once(self) -> int:
        return max(pool.default_concurrency(), self.source.concurrency, self.target.concurrency)

    share = 64

    def begin(self, _: dict[str, str]) -> tuple[Callable[[Pair], int], Tally]:
        def compare(pair: Pair) -> int:
            value = self.source.get(pair[0])
            if value is not None and not _is_same(self.target, pair[1], value):
                raise _differs(self.target, pair[1])
            return 0 if value is None else len(value)

        return compare, Tally(self.target)


def _differs(store: Store, key: str) -> NodeExistsError:
    return NodeExistsError(
        "a node lies here that differs from the source",
        store=str(store),
        key=key,
        remedy=Remedy("pass {overwrite} to replace it", overwrite=True) | Remedy("compare both with `omnizarr diff`"),
    )


def _is_same(store: Store, key: str, value: Any) -> bool:
    there = store.get(key)
    return there is not None and len(there) == len(value) and bytes(there) == bytes(value)

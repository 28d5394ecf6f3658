"""Copying a node byte for byte: its chunks first, its documents last, so that it appears when it is complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

from omnizarr.errors import (
    ContainsArrayError,
    Function,
    NodeExistsError,
    NotRepresentableError,
    OmnizarrError,
    Remedy,
    StoreError,
)
from omnizarr.formats.documents import parse
from omnizarr.model import ArrayMetadata, Metadata
from omnizarr.nodes import bindings, detection, erasing, hierarchy, holdings, nczarr_members
from omnizarr.nodes.copying import Copier, Layout, Pair, Sizes, equals
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, dialect_of, dialects_at
from omnizarr.nodes.renewing import renew
from omnizarr.stores import LocalStore, Store, bounded, pool
from omnizarr.stores.base import NOT_LISTED, RESERVED
from omnizarr.stores.local.folders import Folder
from omnizarr.stores.urls import scheme_of
from omnizarr.support.progress import Progress, Tick, Tracker
from omnizarr.tools import strangers, unshown
from omnizarr.tools.convert import files, journal, transfer
from omnizarr.tools.convert.sources import Source
from omnizarr.tools.edit import places, rm, unfinished
from omnizarr.tools.edit.report import Edited
from omnizarr.tools.streaming import executors, nodes
from omnizarr.tools.streaming.executors import Executor, Job, Tally

_TEMPORARY: Final = ".tmp"
_BESIDE: Final = ("new", "old")
_MOVED: Final = "keys of the source came or went while it was copied: those that came are in the copy, too"
_MOVES_ON: Final = "the source goes on changing: keys that came or went since then are not in the copy"
_NO_NOTES: Final = (
    "the group above has lists of NCZarr, but the node has no notes of NCZarr: netCDF sees no arrays of it"
)


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
        self.is_complete = False  # a copy without a journal exists; it is complete if it is one of this source
        self.replaced = self._replaced()
        self.continues = False
        self.left: tuple[str, ...] = ()
        self.moved: bool | None = False
        self.files = self._files()
        if not resume:
            files.refuse_in_the_way(self.source, self.target, self.files)

    def _placed(self, target: StorePath) -> StorePath:
        """Return the target within the hierarchy that it will be in; raise if the node cannot be put there."""
        if target.store.read_only:
            target.store.check_writable()
        dialect = dialect_of(self.source, self.found.metadata)
        hierarchy.check_path(dialect, target.path)
        hierarchy.refuse_overlap(self.source, target)
        self._refuse_journal()
        target = hierarchy.place_in_hierarchy(target, dialect, self.above)
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
            prefixes = dialects_at(self.target)[0].keyspace.node_keys(self.target.path).prefixes
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
        moved = nczarr_members.arrive(self.source, self.target, nczarr_members.listed(self.source).marks)
        remarks = (*moved, *self._remarks(), *self.left, *map(unshown.in_words, unshown.below(self.source)))
        return replace(outcome, keys=copied.values, bytes_stored=copied.nbytes, verified=self.verify, remarks=remarks)

    def _files(self) -> tuple[str, ...]:
        """Return the files that are not Zarr at the root of a draft, whose nodes lie in places of their own."""
        if self.source.home is None or self.source.path != self.source.home.root:
            return ()
        with ExitStack() as opened:
            found = nodes.hierarchy(opened, self.source, None, None, None)
        return strangers.of(found.top.where, nodes.metadata_of(found)).files

    def _compare(self, tick: Tick) -> None:
        """Raise NodeExistsError if the node at the target differs from the source."""
        layout = self._layout(self.target)
        comparison = _Comparison(self.source.store, self.target.store)
        self.executor.run(comparison, layout.unlike(layout.chunks()), tick)
        documents = layout.unlike(chain.from_iterable(layout.documents()))
        is_inside = nczarr_members.is_in_dataset(self.target)
        if is_inside:  # what NCZarr says of the copy has been changed there
            documents = (pair for pair in documents if not self._is_alike(*pair))
        executors.Local().run(comparison, documents, tick)
        for key in layout.others():
            if not (is_inside and self._is_alike(None, key)):
                raise _differs(self.target.store, key)

    def _is_alike(self, old: str | None, new: str) -> bool:
        """Return whether a document of the copy says the same as that of the source, but for the members of NCZarr."""
        try:
            there = bounded.document(self.target.store, new)
            here = b"{}" if old is None else bounded.document(self.source.store, old)
            said, copied = (nczarr_members.without_marks(parse(data or b"")) for data in (here, there))
        except OmnizarrError:
            return False
        return bool(said == copied)

    def _remarks(self) -> tuple[str, ...]:
        moved = {False: (), True: (_MOVED,), None: (_MOVED, _MOVES_ON)}[self.moved]
        before, after = nczarr_members.listed(self.source), nczarr_members.listed(self.target)
        if after.is_nczarr and not before.is_nczarr:
            return (*moved, _NO_NOTES)
        return moved

    def _size(self) -> tuple[int, int | None]:
        """Return the number of keys and their bytes; only the known ones if the store cannot be listed."""
        keys, nbytes = 0, 0
        try:
            for _, size in holdings.sizes(self.source):
                keys, nbytes = keys + 1, nbytes + size
            for name in self.files:
                keys, nbytes = keys + 1, nbytes + (self.source.store.size(self.source.prefix + name) or 0)
        except NOT_LISTED:
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
        """Copy to a directory beside the hierarchy, and replace the old directory by it at the end.

        The root of a draft has places of its own in a directory, which may have other files: only these are replaced.
        """
        token = os.urandom(6).hex()
        fresh, old = (f"{RESERVED}{name}-{token}" for name in _BESIDE)
        with store.around("")[0] as beside:
            try:
                written = self._copy_to(_at(store.beside(fresh), self.target), tick)
                folder, name = store.around(self.target.path)
                home = None if self.replaced is None else self.replaced.where.home
                if self.replaced is not None and home is not None:
                    erasing.Belongings(self.replaced.where).note()
                    try:
                        with folder, folder.below(name) as whole:
                            beside.mkdir(old)
                            with beside.below(fresh) as new, beside.below(old) as aside:
                                keys = [*home.node_keys(home.root).prefixes, home.entry_key]
                                self._exchange(whole, new, aside, keys)
                    except BaseException:  # it was undone
                        erasing.forget(self.replaced.where)
                        with suppress(OSError):
                            beside.rmdir(old)
                        raise
                    with suppress(OSError):
                        beside.remove_tree(old)
                    erasing.forget(self.replaced.where)
                    store.forget()
                    self.left = _left_beside(Path(store.root))
                    return _sum([written, *self._copy_files(self.target, tick)])
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

    def _exchange(self, whole: Folder, new: Folder, aside: Folder, keys: list[str]) -> None:
        """Put what has the names of some keys aside, and what is new into the directory; if that fails, undo it."""
        moves = [
            (name, whole, aside) for name in {key.strip("/").rpartition("/")[2] for key in keys} if whole.has(name)
        ]
        moves.sort(key=lambda move: move[0] != "zarr.json")  # first out, last in
        moves += [(entry.name, new, whole) for entry in sorted(new.scan(), key=lambda entry: entry.name == "zarr.json")]
        done: list[tuple[str, Folder, Folder]] = []
        try:
            for name, source, target in moves:
                self._refuse_name(name, target)
                done.append((name, source, target))
                source.rename(name, target, name)
        except BaseException:
            for name, source, target in reversed(done):
                with suppress(FileNotFoundError):
                    target.rename(name, source, name)
            raise

    def _refuse_name(self, name: str, folder: Folder) -> None:
        if folder.has(name):
            raise NodeExistsError(
                "there is something here that is not Zarr",
                store=str(self.target.store),
                path=self.target.path,
                found=repr(name),
                remedy="choose another place, or move it away",
            )

    def _copy_files(self, target: StorePath, tick: Tick) -> list[executors.Written]:
        """Copy the files that are not Zarr."""
        if not self.files:
            return []
        copier = Copier(self.source.store, target.store, "equal", self.verify, in_pieces=True)
        others = ((self.source.prefix + name, target.prefix + name) for name in self.files)
        return [transfer.copy(copier, others, self.executor, tick)]

    def _copy_to(self, target: StorePath, tick: Tick) -> executors.Written:
        note = unfinished.of_copy(self.found)
        self.continues = unfinished.check(target, note, resume=self.resume)
        has_journal = unfinished.has_place(target)
        if has_journal:
            _remove_temporary(target)
        if has_journal and not self.continues:
            note.write(target)
        layout = self._layout(target)
        self.executor.expect(self.source.store, [])
        self.executor.expect(target.store, [target.prefix + journal.KEY] if has_journal else [])
        keeps: Literal["equal", "none"] = "equal" if self.continues else "none"
        copier = Copier(self.source.store, target.store, keeps, self.verify, sizes=layout.sizes)
        chunks = layout.unlike(layout.chunks()) if self.continues else layout.chunks()
        done = [transfer.copy(copier, chunks, self.executor, tick)]
        if target is self.target or self.replaced is None or self.replaced.where.home is None:
            done.extend(self._copy_files(target, tick))
        if target is self.target:
            hierarchy.create_ancestors(target, dialect_of(target, self.found.metadata), self.above)
        if self.continues:
            for key in layout.others():
                target.store.delete(key)
        copier = replace(copier, by_server=False, sizes=Sizes())
        with target.lock():
            if not layout.has_entry:
                hierarchy.write_entry_point(target, dialect_of(target, self.found.metadata))
            done.extend(transfer.copy(copier, level, executors.Local(), tick) for level in layout.documents())

            def copy(pairs: Iterable[Pair], keeps: Literal["all", "equal"]) -> None:
                done.append(transfer.copy(replace(copier, keeps=keeps), pairs, executors.Local()))

            self.moved = layout.keep_up(copy)
        if has_journal:
            journal.remove(target)
        return _sum(done)

    def _layout(self, target: StorePath) -> Layout:
        return Layout(self.source, target, besides=journal.KEY, unlisted=_unlisted)


def _sum(done: Sequence[executors.Written]) -> executors.Written:
    return executors.Written(sum(each.values for each in done), sum(each.nbytes for each in done))


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


def _unlisted(where: StorePath) -> Iterator[str]:
    """Yield the possible keys in a store that cannot be listed: of documents, and of all chunks."""
    found = detection.open_node(where)
    source = Source(found)
    below = list(source.walk(source.top(found)))
    source.check_is_whole()
    for node in below:
        if isinstance(node.found, OmnizarrError):
            raise node.found
        place, metadata = node.found.where, node.found.metadata
        if node.is_copy:
            place = where.at(f"{where.prefix}{node.path}".rstrip("/"))
        if isinstance(metadata, ArrayMetadata):
            metadata = bindings.with_keys_in_use(place, metadata)
        yield from holdings.possible(place, metadata)


@dataclass(frozen=True)
class _Comparison(Job[Pair]):
    """Compare a value with its copy."""

    source: Store
    target: Store

    @property
    def at_once(self) -> int:
        return max(pool.default_concurrency(), self.source.features.concurrency, self.target.features.concurrency)

    share = 64

    def begin(self, _: dict[str, str]) -> tuple[Callable[[Pair], int], Tally]:
        def compare(pair: Pair) -> int:
            value = self.source.get(pair[0])
            if value is not None and not equals(self.target.get(pair[1]), value):
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

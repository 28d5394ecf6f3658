"""Carrying out a conversion.

The conversion is planned first, from the documents alone. Then each array gets its chunks, is read again and compared,
and gets its document last, so that readers of the target never see an incomplete array. Until the end, a journal in the
target describes the unfinished conversion; see `omnizarr.tools.convert.journal`.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from omnizarr.api.opening import Mode, locate
from omnizarr.errors import (
    ChunkError,
    ContainsArrayError,
    ContainsGroupError,
    NodeExistsError,
    NodeNameError,
    NotRepresentableError,
    OmnizarrError,
    Remedy,
    SchedulerError,
    StoreError,
    Wording,
)
from omnizarr.formats import DIALECTS, dialect_named, dialects_for
from omnizarr.formats.contract import Dialect
from omnizarr.formats.paths import paths_above
from omnizarr.formats.spelling import without_copies
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata, Note
from omnizarr.nodes import consolidated, detection, erasing, hierarchy, naming, nczarr_members, outside, wording
from omnizarr.nodes.copying import Copier
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, dialect_of, dialects_at
from omnizarr.stores import LocalStore, pool, threads, verbs
from omnizarr.stores.base import NOT_LISTED
from omnizarr.stores.resolve import refuse_other_format
from omnizarr.support.progress import Tracker
from omnizarr.tools import unshown
from omnizarr.tools.convert import files, inplace, journal, repositories, selecting, temporary, transfer
from omnizarr.tools.convert.estimating import estimate as estimate_of
from omnizarr.tools.convert.journal import Journal
from omnizarr.tools.convert.moving import Move
from omnizarr.tools.convert.planning import Plan, Step, explicit, fitted, plan
from omnizarr.tools.convert.report import Conversion, NodeReport, would_be_lost
from omnizarr.tools.convert.task import Task
from omnizarr.tools.extension import extension
from omnizarr.tools.streaming.chunks import Chunks
from omnizarr.tools.streaming.executors import Executor, Local, executor
from omnizarr.tools.streaming.few import FewChunks
from omnizarr.tools.streaming.nodes import documents_of, shown
from omnizarr.tools.streaming.several import worked_on
from omnizarr.tools.streaming.walking import Effort
from omnizarr.tools.translate.coding import KEEP, PORTABLE

_ALL_SHOWN: Final = Remedy("{dry_run} shows all; {strict} converts what can be", dry_run=True, strict=False)
_WITH_CHUNKS: Final = frozenset({"copied", "recompressed", "encoded"})
"""How nodes with chunks of their own were converted."""
_READ: Final = _WITH_CHUNKS | {"done before"}
"""The same with nodes that were converted earlier."""
_IN_ONE_FILE: Final = frozenset({"zip", "sqlite", "lmdb", "icechunk session"})
"""Stores, as their origin names them, that keep all values in one file, which does not become smaller; or for good."""
_AGAIN: Final = "converted again: its chunks have changed since the conversion began"
_MOVED: Final = "converted twice: chunks of the source came or went while it was converted"
_MOVES_ON: Final = "the source goes on changing: chunks that came or went since then are not in it"
_NOT_AGAIN: Final = "done before, and not compared again: changes of the source since then are not in it"
_AS_MADE: Final = "done before, and not compared again: neither it nor its source has changed since"
_AS_LISTED: Final = "done before, and its chunks not read again: both stores list the same sizes and ETags"
_UNFINISHED: Final = Remedy("continue it with {resume}", resume=True) | Remedy(
    "start again with {overwrite}", overwrite=True
)


def run(task: Task) -> Conversion:
    """Convert, as `omnizarr.convert` says. Without `zarr_format` the format does not change."""
    task.check()
    began = time.monotonic()
    for_source, for_target = task.options_of_stores()
    with ExitStack() as opened:
        source_mode: Mode = "r+" if task.in_place and not task.only_plans else "r"
        place_of_source = _place(opened, task.source, task.path, source_mode, for_source)
        found = detection.open_node(place_of_source, task.source_format)
        is_same = task.zarr_format is None
        dialect = dialect_named(found.metadata.dialect) if is_same else dialects_for(task.zarr_format)[0]
        if task.in_place and task.source_format is None:
            found = _beside(found, dialect)
        whole = found
        if task.select:
            found = selecting.found(task, whole, dialect)
        if task.is_of_v3 and dialect.name != "v3":
            title = "NZ-1.0" if task.convention == "nz" else "GeoZarr"
            raise ValueError(Wording(f"{{convention}}: {title} is for Zarr v3", convention=task.convention))
        if task.ome_version is not None and dialect.name != "v3":
            wanted = Wording("{ome_version}: that version of OME-Zarr is for Zarr v3", ome_version=task.ome_version)
            raise ValueError(wanted)
        plans = plan(found, dialect, task.encoding, in_place=task.in_place, wishes=task.wishes)
        plans = selecting.with_copies(plans, whole) if task.select else plans
        _refuse_losses(task, plans)
        place = None
        if task.target is not None:
            place = _place(opened, task.target, None, "r" if task.only_plans else "a", for_target)
            if place.store is not task.target:
                refuse_other_format(place.store)  # in a dry run, too
            _refuse_overlap(whole.where, place)
            if place.store.documents_first:
                plans = repositories.adapted(plans, place)
            plans = fitted(plans, place)
            _refuse_losses(task, plans)
        notes = extension().notes(found.where)
        planned = (step.report(in_place=task.in_place) for step in plans.steps)
        report = Conversion(
            source=shown(task.source, task.path, whole.where),
            target="",
            source_format=wording.stored_format(whole.where.store, whole.metadata.dialect),
            target_format=dialect.name if place is None else wording.stored_format(place.store, dialect.name),
            nodes=tuple(_with_repairs(task, found.where, notes, planned)),
            dry_run=task.only_plans,
            in_place=task.in_place,
            verify=task.verify and not task.in_place,
            files=plans.files,
        )
        if task.in_place:
            how = {"remove_old": task.remove_old, "overwrite": task.overwrite, "dry_run": task.only_plans}
            removed = inplace.run(plans, **how)
            return replace(report, target=report.source, removed=removed, seconds=time.monotonic() - began)
        if place is None:
            return replace(report, nodes=_with_passes(report.nodes, plans, found.where, task))
        report = replace(report, target=shown(task.target, None, place))
        if task.only_plans:
            hierarchy.check_path(dialect, hierarchy.place_in_hierarchy(place, dialect).path)
            return replace(report, nodes=_with_passes(report.nodes, plans, place, task))
        workers = opened.enter_context(executor(task.scheduler))
        work = _Work(task, plans, place, workers, _temporary(opened, task, place))
        nodes = tuple(_with_repairs(task, found.where, notes, _with_texts(found.where, work.run())))
        return replace(report, nodes=nodes, seconds=time.monotonic() - began)


def _refuse_losses(task: Task, plans: Plan) -> None:
    if task.strict and plans.losses:
        raise would_be_lost(plans.source.where, plans.losses, _ALL_SHOWN)


def _refuse_overlap(source: StorePath, target: StorePath) -> None:
    """Raise NodeNameError if a hierarchy would be converted into itself, or over itself."""
    try:
        hierarchy.refuse_overlap(source, target)
    except NodeNameError as error:
        raise NodeNameError(
            "a hierarchy cannot be converted into itself or over itself",
            found=f"the target {target} in the source {source}",
            remedy=Remedy("choose a target elsewhere") | Remedy("convert with {in_place}", in_place=True),
        ) from error


def _with_repairs(
    task: Task, where: StorePath, notes: Mapping[str, tuple[Note, ...]], nodes: Iterable[NodeReport]
) -> Iterator[NodeReport]:
    """Yield reports, with remarks where netCDF reads a node differently from its documents, and on codecs of views."""
    of_view: Callable[[str], tuple[str, ...]] | None = getattr(where.store, "remarks_of", None)
    if task.codecs is not None or not (isinstance(task.compressors, str) and task.compressors in (PORTABLE, KEEP)):
        of_view = None  # chunks have the codecs that were asked for
    for each in nodes:
        path = f"{where.prefix}{each.path}".rstrip("/")
        again = of_view(path) if of_view is not None and each.how in _WITH_CHUNKS else ()
        texts = [note.message for note in notes.get(path, ()) if _matters(note)]
        remarks = tuple(f"netCDF reads it otherwise ({text}), and omnizarr.netcdf copies it as meant" for text in texts)
        yield replace(each, remarks=(*each.remarks, *again, *remarks)) if texts or again else each


def _with_texts(where: StorePath, nodes: Iterable[NodeReport]) -> Iterator[NodeReport]:
    """Yield reports, with losses where the source was read with U+FFFD in place of bytes that are not UTF-8."""
    for each in nodes:
        at = where.at(f"{where.prefix}{each.path}".rstrip("/"))
        lost = tuple(unshown.texts(at, each.path)) if each.how in _READ else ()
        yield replace(each, losses=(*each.losses, *lost)) if lost else each


def _matters(note: Note) -> bool:
    return not note.pointer.endswith("/fill_value")  # with six digits, as in all that netCDF-C writes


def _beside(found: Found[Metadata], dialect: Dialect) -> Found[Metadata]:
    """Return a node in the format from which it will be converted in place, if it has documents of several formats.

    They do if this was done already, or interrupted.
    """
    if found.metadata.dialect != dialect.name:
        return found
    for other in DIALECTS:
        if other != dialect and other.entry_point is None:
            beside = detection.detect(found.where, other.name, found.metadata.node_type)
            if beside is not None:
                return beside
    return found


def _place(opened: ExitStack, store: Any, path: str | None, mode: Mode, storage_options: Any) -> StorePath:
    """Return the place that the user gave. A store that is opened for it is closed at the end."""
    where, _ = locate(store, path, mode, storage_options)
    if isinstance(store, (str, os.PathLike)):
        opened.callback(where.store.close)
    return where


def _temporary(opened: ExitStack, task: Task, target: StorePath) -> StorePath | None:
    """Return the place of temporary objects if it is not below the target: the user's choice, or beside the file."""
    given = task.temporary
    if given is not None:
        is_new = isinstance(given, (str, os.PathLike)) and "://" not in str(given) and not Path(given).exists()
        options = task.store_options if isinstance(given, str) and "://" in given else None
        place = _place(opened, given, None, "a", options)
        if is_new and isinstance(place.store, LocalStore):
            opened.callback(_remove_if_empty, place.store.root)
        return temporary.home_in(place, target)
    match target.store.origin()[0]:
        case (kind, str(path)) if kind in _IN_ONE_FILE:
            folder, name = os.path.split(path)
            return temporary.home_in(StorePath(LocalStore(folder), f"{name}.temporary"), target)
        case (kind, *_) if kind in _IN_ONE_FILE:
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="omnizarr-", ignore_cleanup_errors=True))
            return temporary.home_in(StorePath(LocalStore(folder)))
    return None


def _remove_if_empty(folder: str) -> None:
    with suppress(OSError):
        Path(folder).rmdir()


def _with_passes(nodes: Iterable[NodeReport], plans: Plan, place: StorePath, task: Task) -> tuple[NodeReport, ...]:
    """Return the planned result for each node, with the passes that move its elements, and the estimated time."""
    made = []
    for step, node in zip(plans.steps, nodes, strict=True):
        if not step.is_array or step.found is None or step.translation is None:
            made.append(node)
            continue
        move = Move(step.found.where, place, step.translation, temporary=place, **task.of_moves)
        passes = move.passes()
        made.append(replace(node, passes=passes, estimate=estimate_of(move, passes) if task.estimate else None))
    return tuple(made)


class _Quiet:
    """Progress of a node that is converted beside others."""

    def tick(self, nbytes: int) -> None:
        """Tell nothing."""

    def phase(self, doing: str) -> AbstractContextManager[None]:
        """Tell nothing."""
        return nullcontext()


M = TypeVar("M", ArrayMetadata, GroupMetadata)
_Shown: TypeAlias = Tracker | _Quiet


@dataclass
class _Work:
    """A conversion under way."""

    task: Task
    plan: Plan
    place: StorePath
    """The target, as the user gave it."""
    executor: Executor
    elsewhere: StorePath | None = None
    """Place of temporary objects, if not beside the target."""
    root: StorePath = field(init=False)
    """The same as `place`, in the hierarchy that it belongs to."""
    resumed: Journal | None = None
    record: Journal = field(init=False)
    """The journal as it stands."""
    is_complete: bool = False
    """Whether all nodes were there at the beginning."""
    is_new: bool = False
    """Whether nothing was at the target when the journal was written there."""
    above: hierarchy.Above = field(init=False)
    """The nodes above the target."""
    _marked: set[str] = field(default_factory=set)
    """The nodes whose documents differ from the planned ones by what NCZarr says at the target."""
    _ours: FewChunks | None = None
    """What one listing tells of the chunks of a remote target that is complete."""

    def __post_init__(self) -> None:
        try:
            self.root = self._settled()
        except NotRepresentableError:
            if not self.task.overwrite or self.place.home is not None or self.place.path:
                raise
            self.root = self.place  # what is here, and would be hidden, is removed before

    @property
    def temporary(self) -> StorePath:
        """The prefix of all temporary objects."""
        return self.elsewhere or temporary.home_in(self.root)

    def _settled(self) -> StorePath:
        above = self.above = hierarchy.Above()
        root = hierarchy.place_in_hierarchy(self.place, self.plan.dialect, above)
        hierarchy.check_path(self.plan.dialect, root.path)
        outside.refuse_array(root)
        for place in root.ancestors():
            existing = above.at(place)
            if isinstance(existing, OmnizarrError):
                raise existing
            if existing is not None and isinstance(existing.metadata, ArrayMetadata):
                raise ContainsArrayError(
                    "an array is in the way: nodes cannot lie below it",
                    store=str(root.store),
                    path=place.path,
                    remedy="choose another target",
                )
        return root

    def run(self) -> tuple[NodeReport, ...]:
        """Write everything, and return the result for each node."""
        arrays = [step for step in self.plan.steps if step.is_array]
        for step in arrays:
            self._move(step).check_memory()
        for place in (self.plan.source.where, self.root, self.temporary):
            self.executor.expect(place.store, ())
        self.record = self._journal()
        is_complete = self.is_complete = self._begin(self.record)
        sizes: dict[str, int] = {}
        chunks: dict[str, int] = {}
        times = 1 + self.task.verify
        for step in arrays:
            source, target = self._move(step).sides()
            sizes[step.path], chunks[step.path] = source.values_bytes() * times, target.grid.nchunks
        total, number = sum(sizes.values()), sum(chunks.values())
        far = max(self.plan.source.where.store, self.root.store, key=lambda store: store.features.concurrency)
        quiet: _Shown = _Quiet()
        whole = Effort(self.task.max_memory, self.task.of_moves["concurrency"])
        try:
            with Tracker(self.task.progress, "converting", total, chunks=number, times=times) as shown:
                self._copy_files(is_complete=is_complete)

                def begin(step: Step) -> _Shown:
                    shown.begin(sizes.get(step.path, 0), step.path, chunks.get(step.path, 0))
                    return shown

                def convert(step: Step, effort: Effort, shown: _Shown) -> NodeReport:
                    return self._node(step, shown, None if effort is whole else effort)

                made = self._groups_first(shown) if far.features.concurrency > 1 else {}
                steps = [step for step in self.plan.steps if step.path not in made]
                done = worked_on(steps, convert, self._small, whole, self.executor, far, begin, quiet)
                made |= {step.path: node for step, node in done}
                for step in self._moved(made):
                    made[step.path] = self._made_again(step, self._move(step), quiet)
                nodes = [made[step.path] for step in self.plan.steps]
        except (StoreError, SchedulerError):
            raise
        except OmnizarrError:
            self._remove_temporary()  # to resume would meet the same again
            raise
        if any(node.how == "done before" for node in nodes):
            self._remove_temporary()  # of arrays that were finished, but for that
        return self._finished(nodes)

    def _finished(self, nodes: list[NodeReport]) -> tuple[NodeReport, ...]:
        """Do what is done when all nodes are there, and remove the journal."""
        if not self.is_complete:
            nodes = [self._with_copies(step, node) for step, node in zip(self.plan.steps, nodes, strict=True)]
        told = self._listed_by_nczarr()
        if not self.is_complete:
            journal.remove(self.root)
        first, *others = nodes
        return replace(first, remarks=(*first.remarks, *told)), *others

    def _listed_by_nczarr(self) -> tuple[str, ...]:
        """Let NCZarr's lists in the groups above name what was made; return what refers to dimensions elsewhere."""
        source, target = self.plan.source, self.plan.steps[0].target
        if target is None or (self.is_complete and self._marked):  # then this was done
            return ()
        has_same_format = target.dialect == source.metadata.dialect
        return nczarr_members.arrive_where_listed(
            source.where, self.root, self.above.groups(), has_same_format=has_same_format
        )

    def _without_marks(self, step: Step, target: Metadata) -> None:
        """Undo what a killed conversion did to a document for NCZarr, of which some may be done and some not."""
        kind: Any = type(target)

        def changed(now: Any) -> Any:
            return replace(now, attributes=target.attributes, unknown=target.unknown)

        hierarchy.update(self._at(step), kind, changed, target.dialect)
        self._marked.discard(step.path)

    @cached_property
    def _is_in_dataset(self) -> bool:
        """Whether a group of NCZarr above lists its members, so that documents change when lists are renewed."""
        return nczarr_members.place_in_dataset(self.root, self.above.groups()) is not None

    def _journal(self) -> Journal:
        """Return the journal of what is to be done."""
        homes = (self._at(step) for step in self.plan.steps if step.is_array)
        keys = (dialects_at(at)[0].keyspace.chunk_prefix(at.path) if at.home else at.prefix for at in homes)
        arrays = tuple(key[len(self.root.prefix) :].rstrip("/") for key in keys if key.startswith(self.root.prefix))
        ours = replace(self.plan.journal(verify=self.task.verify), began=time.time(), arrays=arrays)
        if self.task.select:
            ours = replace(ours, options={**ours.options, "select": repr(dict(self.task.select))})
        if self.elsewhere is None:
            return ours
        return replace(ours, options={**ours.options, "temporary": str(self.elsewhere)})

    def _begin(self, ours: Journal) -> bool:
        """Make sure that the target is ours; return whether it is complete already."""
        if self.task.overwrite:
            self._clear()
            self.is_new = self._is_empty()
            ours.write(self.root)
            return False
        with self.root.store.lock(self.root.prefix + journal.KEY):  # of several that begin at once, one does
            is_complete = self._look(ours)
            if self.resumed is None and not is_complete:
                ours.write(self.root)
        return is_complete

    # -- what exists already ------------------------------------------------------

    def _look(self, ours: Journal) -> bool:
        """Find out whether the target is free, unfinished or (True) complete; refuse anything else."""
        found = journal.read(self.root)
        if found is not None:
            if not self.task.resume:
                raise NodeExistsError(
                    "there is an unfinished conversion",
                    store=str(self.root.store),
                    path=self.root.path,
                    key=self.root.prefix + journal.KEY,
                    remedy=_UNFINISHED,
                )
            if journal.is_old_digest(found.source_digest):
                source, target = self.plan.digests(is_old=True)
                replace(ours, source_digest=source, target_digest=target).check(found, self.root)
            else:
                ours.check(found, self.root)
            self.resumed = found
            self.record = replace(found, verify=found.verify and ours.verify)
            is_same = self.record == found
            self.record = replace(self.record, arrays=ours.arrays)
            if not is_same:
                self.record.write(self.root)
            return False
        existing = _occupant(self.place)
        if existing is None:
            self.is_new = self._is_empty()
            if not self.is_new:
                self._refuse_strays()
            return False
        if self.task.resume and self._are_there(step for step in self.plan.steps if step.target is not None):
            self._ours = self._listed()
            return True
        if isinstance(existing, OmnizarrError):
            raise existing
        kind = ContainsArrayError if isinstance(existing.metadata, ArrayMetadata) else ContainsGroupError
        raise kind(
            f"there is {'an array' if kind is ContainsArrayError else 'a group'} already",
            store=str(self.root.store),
            path=self.root.path,
            remedy=Remedy("pass {overwrite} to replace it", overwrite=True),
        )

    def _is_empty(self) -> bool:
        """Return whether one listing shows that there is nothing at the target."""
        store = self.root.store
        if self.root.home is not None or store.features.listing != "complete":
            return False
        with suppress(*NOT_LISTED):
            return next(iter(store.list_prefix(self.root.prefix)), None) is None
        return False

    def _refuse_strays(self) -> None:
        """Refuse chunks of an array that has no document: they would become chunks of the new one."""
        for step in self.plan.steps:
            key = next(self._move(step).strays(), None) if step.is_array else None
            if key is not None:
                raise NodeExistsError(
                    "there are chunks in the place of a new array, but no array",
                    store=str(self.root.store),
                    path=self._at(step).path,
                    key=key,
                    remedy=Remedy("move them away") | Remedy("pass {overwrite} to replace them", overwrite=True),
                )
        files.refuse_in_the_way(self.plan.source.where, self.root, self.plan.files)

    def _clear(self) -> None:
        """Remove what is at the target."""
        existing = _occupant(self.place)
        if existing is not None or erasing.is_begun(self.place):
            hierarchy.clear(existing.where if isinstance(existing, Found) else self.place)
            self.root = self._settled()
            listed = nczarr_members.place_in_dataset(self.root, self.above.groups())
            if listed is not None:  # netCDF-C opens no dataset that lists a missing node
                nczarr_members.enter(listed, None)
        for step in () if self._is_empty() else self.plan.steps:
            if step.is_array:
                if (there := self._there(step)) is not None:
                    hierarchy.clear(there.where)
                verbs.delete_many(self.root.store, list(self._move(step).strays()))
        self._remove_temporary()
        journal.remove(self.root)

    def _remove_temporary(self) -> None:
        """Remove temporary objects, if there are any: in a store that cannot be listed there are none."""
        with suppress(*NOT_LISTED):
            temporary.remove(self.temporary)

    # -- nodes ---------------------------------------------------------------------------

    def _at(self, step: Step) -> StorePath:
        return self.root.at(f"{self.root.prefix}{step.path}".rstrip("/"))

    def _there(self, step: Step) -> Found[Metadata] | None:
        """Return the node of the target's format that is where one belongs."""
        return detection.detect(self._at(step), self.plan.dialect.name)

    def _is_there(self, step: Step) -> bool:
        found = None if self.is_new else self._there(step)
        if found is None or step.target is None:
            return False
        documents = [
            self.plan.dialect.dump(_plain(found.where, metadata)) for metadata in (found.metadata, step.target)
        ]
        if journal.digest([("", documents[0])]) == journal.digest([("", documents[1])]):
            return True
        if not self._is_in_dataset:
            return False
        plain = [nczarr_members.without_marks(each) for each in documents]
        is_same = journal.digest([("", plain[0])]) == journal.digest([("", plain[1])])
        if is_same:
            self._marked.add(step.path)
        return is_same

    def _are_there(self, steps: Iterable[Step]) -> bool:
        for _, is_there in pool.gather(self._is_there, steps, self.root.store.features.concurrency):
            if not is_there:
                break
        else:
            return True
        return False

    def _listed(self) -> FewChunks | None:
        """Return what one listing tells of the chunks of a remote target."""
        if not naming.is_far(self.root.store):
            return None
        few = FewChunks(self.root, frozenset(self._at(step).path for step in self.plan.steps if step.is_array))
        few.look()
        return few

    def _copy_files(self, *, is_complete: bool) -> None:
        """Copy the files that are not Zarr; what is in a complete target stays."""
        source, target = self.plan.source.where, self.root
        keeps: Literal["all", "equal"] = "all" if is_complete else "equal"
        copier = Copier(source.store, target.store, keeps, self.task.verify, in_pieces=True)
        pairs = ((source.prefix + name, target.prefix + name) for name in self.plan.files)
        transfer.copy(copier, pairs, self.executor)

    def _groups_first(self, shown: _Shown) -> dict[str, NodeReport]:
        """Write the groups, below which arrays are written side by side then. Return their results by path."""
        groups = [step for step in self.plan.steps if not step.is_array]
        if not groups:
            return {}
        top, *others = groups
        workers = self.root.store.features.concurrency if self._asks_nothing else 1
        made = {top.path: self._node(top, shown)}
        for position, node in pool.gather(lambda step: self._node(step, shown), others, workers):
            made[others[position].path] = node
        return made

    def _small(self, step: Step) -> Iterable[Chunks]:
        """Return both arrays of a step, which may be small enough to be converted beside others."""
        return self._move(step).sides() if step.is_array else ()

    def _create(self, step: Step, metadata: M) -> None:
        """Write the documents of a node."""
        at = self._at(step)
        if self._asks_nothing and step.path and self._groups.issuperset(paths_above(step.path)):
            hierarchy.create_in_new(at, metadata, self._formats)
        else:
            hierarchy.create(at, metadata)

    @cached_property
    def _asks_nothing(self) -> bool:
        """Whether documents are written without questions, each of which takes long: to a new remote target."""
        store = self.root.store
        is_plain = self.plan.dialect.has_groups and not store.documents_first
        return self.is_new and is_plain and store.features.concurrency > 1 and self.root.home is None

    @cached_property
    def _groups(self) -> frozenset[str]:
        """The paths of the groups that are written."""
        return frozenset(step.path for step in self.plan.steps if step.target is not None and not step.is_array)

    @cached_property
    def _formats(self) -> dict[str, list[Dialect]]:
        """In which formats groups may keep copies of the nodes of the target, by path: new ones have none."""
        ours: dict[str, list[Dialect]] = {f"{self.root.prefix}{path}".rstrip("/"): [] for path in self._groups}
        return {**self.above.formats(), **ours}

    def _node(self, step: Step, shown: _Shown, room: Effort | None = None) -> NodeReport:
        """Write a node, unless it exists, and return the result; with little room beside others, if that is given."""
        report = step.report()
        if step.target is None:
            return report
        is_there = self.is_complete or self._is_there(step)
        if step.path in self._marked and not self.is_complete:
            self._without_marks(step, step.target)
        if not isinstance(step.target, ArrayMetadata):
            if not is_there:
                self._create(step, explicit(step.target))
            return report
        move = self._move(step)
        if room is not None:
            move = replace(move, concurrency=room.concurrency, max_memory=room.max_memory)
        if not step.is_added:
            self._expect(step)
        is_changed = self._is_changed(step) if is_there else None
        broken = {} if self.resumed is None else self.resumed.broken.get(step.path, {})
        if is_changed and self.task.verify and not self._is_equal(move, replace(report, **broken), shown):
            hierarchy.clear(self._at(step))
            report = replace(report, remarks=(*report.remarks, _AGAIN))
            is_there = False
        if is_there:
            return self._done_before(step, move, report, broken, shown, is_changed=is_changed)
        return self._made(step, move, report, shown)

    def _made(self, step: Step, move: Move, report: NodeReport, shown: _Shown, *, is_last: bool = False) -> NodeReport:
        """Write an array that does not exist, and return the result; again if its source moves, unless `is_last`."""
        executor = self._executor_of(step.path)
        report = replace(report, passes=move.passes(executor.width))
        if self.root.store.documents_first:
            self._create(step, cast("ArrayMetadata", step.target))
        try:
            moved = move.run(executor, shown.tick)
            report = replace(report, how=moved.how, chunks=moved.chunks, nbytes=moved.nbytes)
            report = self._verified(move, _with_broken(report, move, moved.broken), shown)
        except ChunkError:
            if is_last or not move.has_moved():
                raise
            return self._made_again(step, move, shown)
        if move.known[0] is None and move.has_moved():  # others are listed together, at the end
            if not is_last:
                return self._made_again(step, move, shown)
            report = replace(report, remarks=(*report.remarks, _MOVES_ON))
        self._refuse_broken(step, report)
        if report.unreadable:
            chunks = {"unreadable": dict(report.unreadable), "stored": report.stored}
            with threads.lock((_Work, id(self))):
                self.record = replace(self.record, broken={**self.record.broken, step.path: chunks})
                self.record.write(self.root)
        if not self.root.store.documents_first:
            self._create(step, cast("ArrayMetadata", step.target))
        if len(report.passes) > 1:
            move.discard()
        return report

    def _made_again(self, step: Step, move: Move, shown: _Shown) -> NodeReport:
        """Write an array once more, because chunks of its source came or went meanwhile."""
        if self._there(step) is not None:
            hierarchy.clear(self._at(step))
        verbs.delete_many(self.root.store, list(move.strays()))
        move = replace(move, resume=False, known=(None, None))
        report = step.report()
        return self._made(step, move, replace(report, remarks=(*report.remarks, _MOVED)), shown, is_last=True)

    def _moved(self, made: Mapping[str, NodeReport]) -> list[Step]:
        """Return the arrays of which a listing before the conversion told the chunks, and of which others exist now."""
        done = [step for step in self.plan.steps if step.is_array and made[step.path].how in _WITH_CHUNKS]
        before = {step.path: known for step in done if (known := self._known_of(step)) is not None}
        if not before or self.plan.few is None:
            return []
        now = self.plan.few.again()
        steps = [step for step in done if step.path in before]

        def has_moved(step: Step) -> bool:
            if step.found is None or not isinstance(step.found.metadata, ArrayMetadata):
                return False
            where, metadata = step.found.where, step.found.metadata
            found = now.of(where.path)
            if found == before[step.path]:
                return False
            known, chunks = Chunks.of(where, metadata, known=found).known()
            old = Chunks.of(where, metadata, known=before[step.path]).listed()
            return known and set(old) != set(itertools.islice(chunks, len(before[step.path]) + 1))

        moved = []
        for position, has in pool.gather(has_moved, steps, self.plan.source.where.store.features.concurrency):
            if has:
                moved.append(steps[position])
        return moved

    def _done_before(
        self,
        step: Step,
        move: Move,
        report: NodeReport,
        broken: Mapping[str, Any],
        shown: _Shown,
        *,
        is_changed: bool | None,
    ) -> NodeReport:
        """Return the result for an array that exists, compared with its source if that can have changed."""
        report = replace(report, how="done before")
        if broken:
            report = replace(report, **broken)
        elif self.resumed is None and self._is_as_made(step):
            report = replace(report, remarks=(*report.remarks, _AS_MADE))
        elif not self.task.verify or self.resumed is None or not self.resumed.verify:
            report = self._verified(move, report, shown, by_digests=self.resumed is None)
        elif is_changed is not None:  # unchanged, or compared above
            report = replace(report, verified="values")
        elif self.plan.source.where.store.features.concurrency > 1:  # to read it all again would take long
            report = replace(report, remarks=(*report.remarks, _NOT_AGAIN))
        else:
            report = self._verified(move, report, shown)
        self._refuse_broken(step, report)
        return report

    def _is_equal(self, move: Move, report: NodeReport, shown: _Shown) -> bool:
        """Return whether a finished array is still equal to its source, of which the same chunks cannot be read."""
        try:
            found = self._verified(move, replace(report, unreadable={}, stored=0), shown)
        except ChunkError:
            return False
        return found.unreadable.keys() == report.unreadable.keys() and bool(found.verified or found.unreadable)

    def _is_changed(self, step: Step) -> bool | None:
        """Return whether chunks of the source have changed since an interrupted conversion began; None if unknown."""
        if self.resumed is None or not self.resumed.began or step.found is None:
            return None
        if not isinstance(step.found.metadata, ArrayMetadata):
            return None
        chunks = Chunks.of(step.found.where, step.found.metadata)
        return journal.changed_since(chunks.store, chunks.prefix, self.resumed.began)

    def _is_as_made(self, step: Step) -> bool:
        """Return whether an array of a complete target, and its source, certainly have not changed since."""
        if not self.task.verify or step.found is None or not isinstance(step.found.metadata, ArrayMetadata):
            return False
        at = self._at(step)
        if at.home is not None or step.target is None:
            return False
        chunks = Chunks.of(step.found.where, step.found.metadata)
        document = at.prefix + self.plan.dialect.array_document
        return journal.is_as_made(chunks.store, chunks.prefix, at.store, at.prefix, document)

    def _refuse_broken(self, step: Step, report: NodeReport) -> None:
        """Raise ChunkError if chunks of the source cannot be read, and nothing may be lost."""
        if self.task.strict and report.unreadable and step.found is not None:
            raise ChunkError(
                report.unreadable_in_words(" of the source"),
                store=str(step.found.where.store),
                path=step.found.where.path,
                remedy=Remedy(
                    "repair the source and convert again with {overwrite}; {strict} carries what can be read",
                    overwrite=True,
                    strict=False,
                ),
            )

    def _expect(self, step: Step) -> None:
        """Raise an error in workers that cannot see the documents of source and target."""
        if step.found is not None:
            source = [step.found, self.plan.source]
            self.executor.expect(source[0].where.store, (key for found in source for key in documents_of(found)))
        target = dialect_of(self._at(step), step.target) if step.target is not None else self.plan.dialect
        self.executor.expect(
            self.root.store,
            [self.root.prefix + journal.KEY, *target.keyspace.documents(self._at(step).path).values()],
        )

    def _verified(self, move: Move, report: NodeReport, shown: _Shown, *, by_digests: bool = False) -> NodeReport:
        if not self.task.verify:
            return report
        with shown.phase("comparing"):
            compared = move.compare(self._executor_of(report.path), shown.tick, by_digests=by_digests)
        remarks = (*report.remarks, _AS_LISTED) if compared.listed else report.remarks
        if compared.why:
            remarks = (*remarks, f"verified by its stored bytes, as its elements cannot be read here: {compared.why}")
        if compared.broken:
            return _with_broken(report, move, compared.broken)
        return replace(report, verified=compared.how, remarks=remarks)

    def _executor_of(self, path: str) -> Executor:
        """Return what converts a node: workers do not see arrays that the source does not have."""
        return Local() if path in self._added else self.executor

    @cached_property
    def _added(self) -> frozenset[str]:
        return frozenset(step.path for step in self.plan.steps if step.is_added)

    def _move(self, step: Step) -> Move:
        if step.found is None or step.translation is None:
            raise TypeError("a node that cannot be read has no chunks")
        return Move(
            step.found.where,
            self._at(step),
            step.translation,
            resume=self.resumed is not None,
            temporary=self.temporary,
            is_new=self.is_new,
            known=(self._known_of(step), None if self._ours is None else self._ours.of(self._at(step).path)),
            **self.task.of_moves,
        )

    def _known_of(self, step: Step) -> tuple[str, ...] | None:
        """Return the keys that are stored below an array of the source, if a listing has told."""
        few, found = self.plan.few, step.found
        is_listed = found is not None and found.where.store is self.plan.source.where.store
        return few.of(found.where.path) if few is not None and found is not None and is_listed else None

    def _with_copies(self, step: Step, report: NodeReport) -> NodeReport:
        """Make consolidated metadata of a group that had some."""
        if not step.has_copies or step.target is None or self.root.store.documents_first:
            return report
        try:
            consolidated.consolidate(self._at(step))
        except StoreError:
            raise
        except OmnizarrError as error:
            return replace(report, remarks=(*report.remarks, f"no consolidated metadata was made: {error.message}"))
        return report


def _with_broken(report: NodeReport, move: Move, broken: Mapping[str, str]) -> NodeReport:
    """Return a report that names chunks of the source that cannot be read."""
    if not broken:
        return report
    return replace(report, unreadable=broken, stored=sum(1 for _ in move.sides()[0].stored()))


def _plain(where: StorePath, metadata: Metadata) -> Metadata:
    """Return the metadata in the documents of a node, without copies of other nodes' metadata."""
    return without_copies(dialect_of(where, metadata).keyspace.unsettle(metadata))


def _occupant(place: StorePath) -> Found[Metadata] | OmnizarrError | None:
    """Return the node at a place, including an implied group."""
    try:
        return detection.detect(place) or detection.implied(place)
    except OmnizarrError as error:
        return error

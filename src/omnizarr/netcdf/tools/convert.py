"""Conversions with a netCDF file at one end, or at both: through the data model of netCDF, not through Zarr's.

The result is read again and compared: types, attributes with their types, and values bit for bit.

Spec: NCZarr, "The NCZarr Data Model". Attribute types: xarray#10361.
"""

from __future__ import annotations

import functools
import math
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from omnizarr.api import opening
from omnizarr.errors import (
    NodeExistsError,
    NodeNameError,
    NotRepresentableError,
    OmnizarrError,
    Remedy,
    SettingError,
    Wording,
)
from omnizarr.formats import dialect_named, dialects_for
from omnizarr.netcdf import copying, files, urls
from omnizarr.netcdf.dataset import Dataset
from omnizarr.netcdf.header import GroupHeader, Source, VariableHeader
from omnizarr.netcdf.tools import missing, planning
from omnizarr.netcdf.tools.planning import Plan
from omnizarr.nodes import consolidated, hierarchy, nczarr_members, replacing
from omnizarr.nodes.location import StorePath, normalize
from omnizarr.stores import Store, kinds, verbs
from omnizarr.stores.base import answers_itself
from omnizarr.stores.urls import scheme_of
from omnizarr.support.progress import Tick, Tracker
from omnizarr.tools import strangers
from omnizarr.tools.convert.files import losses_of
from omnizarr.tools.convert.report import Conversion, How, NodeReport
from omnizarr.tools.convert.task import Task
from omnizarr.tools.streaming import nodes as streamed
from omnizarr.tools.translate.translation import Loss

SUFFIXES: Final = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf", ".h5", ".hdf5")
"""Suffixes of the files that can be written; netCDF-4 is HDF5."""
_ZARR: Final = {2: "v2", 3: "v3"}
_FILE: Final = "netCDF-4"
_USUAL: Final = 3  # the default of convert, which a URL may override
_MEANT: Final = frozenset({
    "source", "target", "zarr_format", "overwrite", "verify", "dry_run", "strict", "allow_pickle", "concurrency",
    "progress", "references",
})  # fmt: skip
"""Keywords that may be given."""
_LAYOUTS: Final = {"zarr": "pure", "nczarr": "D"}
_N5: Final = "N5"
_TOLD: Final = 3  # losses that an error tells


# -- files ------------------------------------------------------------------------------------------


def concerns(source: Any, target: Any) -> bool:
    """Whether a netCDF file is to be read or written, and the other end can have the attributes of NCZarr."""
    return is_target(target) or ((is_file(source) or _is_meant(source)) and not _is_n5(target))


def _is_n5(place: Any) -> bool:
    """Whether a place is in N5, which has no attributes of NCZarr: it gets what is read as Zarr v3."""
    if isinstance(place, str | os.PathLike):
        first, *segments = os.fspath(place).split("|")
        by_name = kinds.of_folder(first), kinds.of_scheme(scheme_of(first) or "")
        if kinds.of_scheme("n5") in by_name or any(each.startswith("n5:") for each in segments):
            return True
        path = _path(place)
        if path is None or not path.is_dir():
            return False
    elif not isinstance(place, StorePath | Store):
        return False
    with suppress(OmnizarrError):
        where, _ = opening.locate(place, None, "r", None)
        return answers_itself(where.store, verbs.as_stored) and where.store.about().get("format") == _N5
    return False


def is_file(place: Any) -> bool:
    """Whether there is a netCDF file at a place."""
    path = _path(place)
    return path is not None and files.is_netcdf(path)


def shows(task: Task) -> bool:
    """Whether the source is a netCDF or HDF5 file behind a URL or in an archive, and all keywords fit it."""
    if (
        _is_n5(task.target)
        or set(_unfit(task)) - {"storage_options"}
        or (task.storage_options and isinstance(task.target, str) and scheme_of(task.target))
    ):
        return False
    with suppress(OmnizarrError):
        return _in_store(task, whole=False) is not None
    return False


def _in_store(task: Task, *, whole: bool) -> Source | None:
    """Return the netCDF or HDF5 file that a source other than a local path leads to; None if it leads to none."""
    place = task.source
    if not isinstance(place, StorePath) and not (isinstance(place, str) and kinds.leads_to_file(place)):
        return None
    where, _ = opening.locate(place, None, "r", task.store_options)
    return None if where.path else files.source_in(where.store, references=task.references, whole=whole)


def is_target(place: Any) -> bool:
    """Whether a place is called as netCDF files are, and is not a directory."""
    path = _path(place)
    return path is not None and path.name.lower().endswith(SUFFIXES) and not path.is_dir()


def _is_meant(source: Any) -> bool:
    """Whether a source has the name of a netCDF file, and contains nothing that could be read as another format."""
    path = _path(source)
    return path is not None and is_target(source) and not path.exists()


def _path(place: Any) -> Path | None:
    """Return the local path of a place, unless its URL means Zarr."""
    if not isinstance(place, str | os.PathLike):
        return None
    if "://" in str(place) and not str(place).startswith("file:"):
        return None
    location = urls.parse(place)
    if location.mode or location.storage or location.zarr_format or not location.is_local:
        return None
    return Path(location.place)


def _local(place: Any) -> Path | None:
    """Return the local path of a place, whether or not it exists."""
    if not isinstance(place, str | os.PathLike):
        return None
    location = urls.parse(place)
    return Path(location.place) if location.is_local else None


# -- the conversion -----------------------------------------------------------------------------------


def run(task: Task) -> Conversion:
    """Convert, as `omnizarr.convert` says. Raises SettingError for keywords that mean nothing here."""
    began = time.monotonic()
    source, target, verify = task.source, task.target, task.verify
    is_file_wanted = is_target(target)
    wanted = _checked(task)
    _refuse_overlap(source, target)
    with _opened(task) as (opened, kind):
        found, lacking, filled = missing.with_exact_fills(opened) if is_file_wanted else (opened, (), {})
        work: Callable[[Task, Source, Plan, Tick], Plan] = _write_file
        if is_file_wanted:
            plan = planning.for_file(found.root)
            remarks = {name: (*plan.remarks.get(name, ()), *each) for name, each in filled.items()}
            plan = replace(plan, losses=(*plan.losses, *lacking), remarks={**plan.remarks, **remarks})
        else:
            is_of_netcdf = kind != _FILE or planning.is_netcdf(found.root)
            plan, opener = _planned(target, found, wanted, is_of_netcdf=is_of_netcdf)
            work = functools.partial(_write_zarr, zarr_format=wanted, opener=opener)
        if kind != _FILE:
            plan = replace(plan, losses=(*plan.losses, *_lost_files(source)))
        if task.strict and plan.losses:
            raise _would_be_lost(source, plan.losses)
        report = Conversion(
            source=_shown(source),
            target="" if target is None else _shown(target),
            source_format=kind,
            target_format=_FILE if is_file_wanted else _ZARR[wanted],
            nodes=(),
            dry_run=task.dry_run,
            verify=verify,
        )
        if task.dry_run:
            return replace(report, nodes=tuple(_reports(found.root, plan)))
        total = sum(_sizes(found.root)) * (1 + verify)
        with Tracker(task.progress, "converting", total) as shown:
            shown.begin(total)
            plan = work(task, found, plan, shown.tick)
    nodes = tuple(_counted(target, _reports(found.root, plan, verified=verify)))
    if not is_file_wanted:
        _let_groups_list(target)
    return replace(report, nodes=nodes, seconds=time.monotonic() - began)


def _planned(target: Any, found: Source, wanted: int, *, is_of_netcdf: bool) -> tuple[Plan, Callable[..., Dataset]]:
    """Return what is written to a hierarchy, and what creates it.

    Attributes of NCZarr are written for a dataset of netCDF, and for other HDF5 files in v3 only if something would be
    lost without them.
    """
    dialect = dialect_named(_ZARR[wanted])
    if not is_of_netcdf and wanted != 2:  # the layout of v2 without marks has texts of a fixed length
        opener = _opener(target, wanted, needs_marks=False)
        plan = planning.of_hdf5(planning.for_zarr(found, opener, dialect))
        if not planning.loses_for_layout(plan):
            return plan, opener
    opener = _opener(target, wanted, needs_marks=True)
    return planning.for_zarr(found, opener, dialect), opener


def _checked(task: Task) -> int:
    """Return the format of Zarr that is wanted. Raises ValueError for keywords that are not valid."""
    given = _unfit(task)
    if "storage_options" in given and _path(task.source) is None:
        given.remove("storage_options")
    if given:
        raise SettingError(f"{', '.join(given)}: without meaning where a netCDF file is converted")
    target, zarr_format = task.target, _USUAL if task.zarr_format is None else task.zarr_format
    if target is None and not task.dry_run:
        raise ValueError(Wording("give a target, or {dry_run}", dry_run=True))
    if is_target(target):
        return 2
    if zarr_format not in _ZARR:
        raise SettingError(Wording("{zarr_format}: netCDF stands on 2 and 3", zarr_format=zarr_format))
    said = urls.parse(target).zarr_format if isinstance(target, str) else None
    return said if said is not None and zarr_format == _USUAL else int(zarr_format)


def _unfit(task: Task) -> list[str]:
    """Return the keywords that were given and have no meaning for a netCDF file."""
    others = [each for each in fields(task) if each.name not in _MEANT]
    return [each.name for each in others if getattr(task, each.name) not in (each.default, False)]


def _refuse_overlap(source: Any, target: Any) -> None:
    """Raise NodeNameError if something would be written over the source, or into it."""
    ours, theirs = _local(source), _local(target)
    if ours is None or theirs is None:
        return
    ours, theirs = ours.resolve(), theirs.resolve()
    is_same = ours.exists() and theirs.exists() and ours.samefile(theirs)
    if is_same or ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
        raise NodeNameError(
            "source and target lie in each other",
            store=str(theirs),
            found=str(ours),
            remedy="write it elsewhere, and move it when it is complete",
        )


def _lost_files(source: Any) -> Iterator[Loss]:
    """Yield the files beside the arrays of a hierarchy: a netCDF file holds none."""
    with ExitStack() as opened:
        found = streamed.hierarchy(opened, opened.enter_context(_place(source, "r")), None, None, None)
        others = strangers.of(found.top.where, streamed.metadata_of(found))
        lost = dict.fromkeys((*others.files, *others.unnamed), "a netCDF file contains no other files")
        yield from losses_of(lost, found.nodes)


def _would_be_lost(source: Any, losses: tuple[Loss, ...]) -> NotRepresentableError:
    shown = [f"/{each.path}{each.pointer}: {each.what} ({each.why})" for each in losses[:_TOLD]]
    more = f"; and {len(losses) - _TOLD} more" if len(losses) > _TOLD else ""
    return NotRepresentableError(
        f"something would be lost: {'; '.join(shown)}{more}",
        store=_shown(source),
        remedy=Remedy("{dry_run} shows all; {strict} converts what can be", dry_run=True, strict=False),
    )


def _shown(place: Any) -> str:
    """Return the user's name of a place."""
    if isinstance(place, str | os.PathLike):
        return os.fsdecode(place)
    return str(opening.locate(place, None, "r", None)[0].store)


@contextmanager
def _opened(task: Task) -> Iterator[tuple[Source, str]]:
    place = task.source
    path = _path(place)
    if path is not None and (is_file(place) or _is_meant(place)):
        with files.open_file(path, references=task.references, whole=True) as source:
            yield source, _FILE
        return
    found = _in_store(task, whole=True)
    if found is not None:
        yield found, _FILE
        return
    with Dataset(place, config={"chunk_cache": 0}) as dataset:  # all is read once, in blocks
        yield dataset.as_source(for_xarray=True), _ZARR[dataset.zarr_format]


# -- writing --------------------------------------------------------------------------------------------


def _write_file(task: Task, source: Source, plan: Plan, tick: Tick) -> Plan:
    """Write a file, which takes its place when it is complete and compared."""
    path = (_path(task.target) or Path(task.target)).absolute()
    if os.path.lexists(path) and not task.overwrite:
        raise NodeExistsError(
            "something is in the way", store=str(path), remedy=Remedy("pass {overwrite} to replace it", overwrite=True)
        )
    partial = path.with_name(f".{uuid.uuid4().hex}.{path.name}")
    try:
        losses = files.write_file(partial, source, progress=tick)
        plan = planning.with_told(plan, losses)
        if task.verify:
            with files.open_file(partial) as written:
                planning.compare(source, written, plan, tick)
        os.replace(partial, path)  # noqa: PTH105 (an existing file is replaced)
    except OmnizarrError as error:
        raise error.add(store=str(path))
    finally:
        partial.unlink(missing_ok=True)
    return plan


def _write_zarr(
    task: Task, source: Source, plan: Plan, tick: Tick, *, zarr_format: int, opener: Callable[..., Dataset]
) -> Plan:
    """Write a hierarchy. If it is incomplete or wrong, remove it, and keep what it would have replaced."""
    target, overwrite = task.target, task.overwrite
    path = _local(target)
    is_new = path is not None and not os.path.lexists(path)

    def fill(place: Any, dataset: Dataset) -> Plan:
        return _fill(place, dataset, source, plan, tick, verify=task.verify)

    def made(place: StorePath) -> Plan:
        losses = fill(place, opener(place, "w"))
        if isinstance(target, str | os.PathLike) and urls.parse(target).consolidated:
            consolidated.consolidate(place)
        return losses

    if overwrite and not is_new:
        dialect = dialects_for(zarr_format)[0]
        with _place(target) as where:
            if replacing.is_taken(where, dialect):
                return replacing.remade(where, dialect, made)[1]
    try:
        dataset = opener(target, "w" if overwrite else "x")
    except NodeExistsError as error:
        error.remedy = Remedy("replace it with {overwrite}", overwrite=True)
        raise
    try:
        return fill(target, dataset)
    except BaseException:
        _remove(target, path if is_new else None)
        raise


def _let_groups_list(target: Any) -> None:
    """Let NCZarr's lists in groups above a hierarchy name it, and its references to dimensions lead to its own."""
    with _place(target) as where:
        nczarr_members.arrive_where_listed(None, where, ())


def _fill(place: Any, dataset: Dataset, source: Source, plan: Plan, tick: Tick, *, verify: bool) -> Plan:
    """Write everything into a new dataset, close it and compare."""
    with dataset:
        wanted = source._replace(root=plan.defined or source.root)
        changed: list[str] = []
        copied: list[str] = []
        copying.write(dataset, wanted, root=plan.defined, tick=tick, on_change=changed.append, on_copied=copied.append)
        plan = replace(plan, losses=(*plan.losses, *planning.told_of_texts(changed)), copied=frozenset(copied))
    if verify:
        with Dataset(place) as written:
            planning.compare(source, written.as_source(), plan, tick)
    return plan


def _opener(target: Any, zarr_format: int, *, needs_marks: bool) -> Callable[..., Dataset]:
    """Return a function that creates or opens a dataset at any place, in the layout of the target.

    Without a word on that it is the one that xarray, zarr-python and netCDF-C understand; without the marks of netCDF
    where nothing needs them.
    """
    usual = "xarray" if needs_marks else "pure"
    said = urls.parse(target) if isinstance(target, str | os.PathLike) else None
    layout = _LAYOUTS.get(said.mode or "", usual) if said is not None else usual
    xarray = None if said is None else said.xarray
    return functools.partial(Dataset, layout=layout, zarr_format=zarr_format, xarray=xarray)


def _remove(target: Any, made: Path | None) -> None:
    """Remove an unfinished target: a directory, a file or a node."""
    if made is not None and made.is_dir():
        shutil.rmtree(made, ignore_errors=True)
    elif made is not None:
        made.unlink(missing_ok=True)
    else:
        with suppress(OmnizarrError), _place(target) as place:
            hierarchy.clear(place)


@contextmanager
def _place(place: Any, mode: Literal["r", "a"] = "a") -> Iterator[StorePath]:
    if not isinstance(place, str | os.PathLike):
        yield opening.locate(place, None, mode, None)[0]
        return
    store, path = urls.parse(place).open_store(mode)
    with closing(store):
        yield StorePath(store, normalize(path))


def _sizes(root: GroupHeader) -> Iterator[int]:
    lengths = root.sizes()
    for _, group in root.walk():
        for each in group.variables.values():
            yield math.prod(lengths[name].size for name in each.dimensions) * each.type.dtype.itemsize


# -- the account --------------------------------------------------------------------------------------


def _reports(found: GroupHeader, plan: Plan, *, verified: bool = False) -> Iterator[NodeReport]:
    """Yield the result for each group and variable."""
    kept = {f"{path}/{name}" for path, group in plan.root.walk() for name in group.variables}
    groups = {path for path, _ in plan.root.walk()}
    for path, group in found.walk():
        how: How = "documents" if path in groups else "left out"
        yield NodeReport(path[1:], "group", how, losses=_of(plan, path), remarks=_remarks(plan, path, group))
        for name, each in group.variables.items():
            full = f"{path}/{name}"
            is_lost = full not in kept
            yield NodeReport(
                full[1:],
                "array",
                "left out" if is_lost else "copied" if full in plan.copied else "encoded",
                losses=_of(plan, full),
                remarks=_remarks(plan, full, each),
                verified="values" if verified and not is_lost else "",
            )


def _counted(target: Any, nodes: Iterator[NodeReport]) -> Iterator[NodeReport]:
    """Yield reports with the chunks that were written, and their size; of a file its size alone, with the root."""
    path = _path(target)
    if path is not None and is_target(target):
        for each in nodes:
            yield replace(each, nbytes=0 if each.path else path.stat().st_size)
        return
    with Dataset(target) as dataset:
        for each in nodes:
            if each.how not in {"encoded", "copied"}:
                yield each
                continue
            array = dataset[each.path].array
            yield replace(each, chunks=array.nchunks_initialized, nbytes=array.nbytes_stored())


def _of(plan: Plan, path: str) -> tuple[Loss, ...]:
    return tuple(each for each in plan.losses if each.path == path[1:])


def _remarks(plan: Plan, path: str, header: GroupHeader | VariableHeader) -> tuple[str, ...]:
    notes = [note.message for note in header.notes if not planning.is_loss(note)]
    return (*notes, *plan.remarks.get(path, ()))

"""Conversions into repositories of Icechunk: one session, which is committed when all of it is done, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import NotRepresentableError, Remedy, Wording
from omnizarr.model import ArrayMetadata, Named
from omnizarr.nodes.location import StorePath
from omnizarr.tools.convert.planning import Plan, Step
from omnizarr.tools.convert.report import Conversion
from omnizarr.tools.convert.task import Task

if TYPE_CHECKING:
    from omnizarr.stores.remote.icechunk_writing import Repository

_KEYS: Final = Named("default", {"separator": "/"})
_FORMAT: Final = "v3"


def run(task: Task, convert: Callable[[Task], Conversion]) -> Conversion:
    """Convert into a branch, and commit it. If anything fails, nothing is committed.

    Parameters
    ----------
    task : Task
        With the URL of a repository as its target, which is created if there is none.
    convert : callable
        Converts into the store of the session.
    """
    if task.resume:
        raise ValueError(
            Wording("{resume}: a session of Icechunk that was interrupted is gone: convert again", resume=True)
        )
    if task.scheduler is not None:
        raise ValueError("a session of Icechunk is written by one process: leave out the scheduler")
    icechunk = import_module("omnizarr.stores.remote.icechunk_writing")
    _, options = task.options_of_stores()
    address = icechunk.Address.of(task.target)
    is_far = isinstance(task.source, str) and "://" in task.source
    message = task.message
    task = replace(task, storage_options=task.storage_options if is_far else None, message=None)
    if task.only_plans:
        return _planned(task, convert, address, options or {}, icechunk)
    repository: Repository = icechunk.Repository(address, options or {}, create=True)
    session = repository.session()
    try:
        done = convert(replace(task, target=StorePath(session.store, address.within)))
        snapshot = session.commit(message or f"Convert {done.source}")
    except BaseException:
        session.discard()
        raise
    return replace(done, target=str(address), commit=f"{session.branch}: {snapshot}")


def _planned(
    task: Task, convert: Callable[[Task], Conversion], address: Any, options: Mapping[str, Any], icechunk: Any
) -> Conversion:
    store = icechunk.PlannedStore()
    if icechunk.Repository.is_there(address, options):
        store = icechunk.Repository(address, options).session().store
    return replace(convert(replace(task, target=StorePath(store, address.within))), target=str(address))


def adapted(plans: Plan, place: StorePath) -> Plan:
    """Return a plan in which chunks have the only keys that Icechunk knows.

    Raises
    ------
    NotRepresentableError
        If the target is not Zarr v3, or chunks have several shapes.
    """
    if plans.dialect.name != _FORMAT:
        raise NotRepresentableError(
            "Icechunk holds Zarr v3 only",
            store=str(place.store),
            found=plans.dialect.name,
            remedy=Remedy("leave out {zarr_format}", zarr_format=3),
        )
    icechunk = import_module("omnizarr.stores.remote.icechunk_writing")
    for step in plans.steps:
        if isinstance(step.target, ArrayMetadata):
            icechunk.check_grid(step.target.chunk_grid.name, place.store, step.path)
    return plans._replace(steps=tuple(map(_with_keys, plans.steps)))


def _with_keys(step: Step) -> Step:
    if step.translation is None or not isinstance(step.target, ArrayMetadata):
        return step
    target = replace(step.target, chunk_key_encoding=_KEYS)
    return replace(step, translation=replace(step.translation, target=target))

"""Move a node: rename it where that is possible, else copy it, compare, and delete the original."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from omnizarr.errors import (
    ContainsArrayError,
    ContainsGroupError,
    Function,
    NodeExistsError,
    NodeNotFoundError,
    OmnizarrError,
    Remedy,
    StoreError,
)
from omnizarr.model import Metadata
from omnizarr.nodes import detection, erasing, hierarchy, nczarr_members
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.nodes.renewing import renew
from omnizarr.stores import LocalStore, system
from omnizarr.support.progress import Progress
from omnizarr.tools.edit import cp, mentions, places, rm, unfinished
from omnizarr.tools.edit.cp import Copy
from omnizarr.tools.edit.report import Edited

_MOVED: Final = Remedy("the new place has a node: a move that was interrupted may be complete").also(
    "look with {check}", check=Function()
)
_REST: Final = "{delete_node} deletes what is left here"


def run(
    source: Any,
    target: Any,
    *,
    path: str | None,
    target_path: str | None,
    dry_run: bool,
    progress: Progress,
    storage_options: Mapping[str, Any] | None,
) -> Edited:
    """Like `omnizarr.move_node`."""
    options = [cp.options_of(each, storage_options) for each in (source, target)]
    with (
        places.opened(source, path, "r+", options[0]) as old,
        places.opened(target, target_path, "a", options[1]) as goal,
    ):
        new = goal
        if type(old.store) is not LocalStore and old.store.origin()[0] == new.store.origin()[0]:
            new = _in_store_of(old, new)  # two archives would write over each other
        return _move(old, new, dry_run=dry_run, progress=progress)


def _in_store_of(old: StorePath, new: StorePath) -> StorePath:
    above, below = old.store.origin()[1].strip("/"), f"{new.store.origin()[1]}/{new.path}".strip("/")
    is_within = not above or f"{below}/".startswith(f"{above}/")
    return StorePath(old.store, below[len(above) :].strip("/")) if is_within else new


def _move(old: StorePath, new: StorePath, *, dry_run: bool, progress: Progress) -> Edited:
    found = _found(old, new)
    found.where.store.check_writable()
    copy = _copy(found, new)
    folder, goal = places.folder_of(found.where), places.folder_of(copy.target)
    is_rename = folder is not None and goal is not None and _is_one_file_system(folder, goal)
    around = mentions.around(found.where)
    remarks = mentions.missed(found.where, around)
    if folder is None or goal is None or not is_rename:
        rm.refuse_strangers(found)
        outcome = copy.run(dry_run=dry_run, progress=progress)
        if not dry_run:
            rm.delete(found)
        return replace(outcome, action="move", remarks=(*remarks, *outcome.remarks))
    outcome = Edited(
        "move",
        str(found.where),
        str(copy.target),
        found.metadata.node_type,
        is_rename=True,
        dry_run=dry_run,
        remarks=remarks,
    )
    if dry_run:
        return outcome
    marks = nczarr_members.listed(found.where).marks
    hierarchy.create_ancestors(copy.target, dialect_of(copy.target, found.metadata), copy.above)
    _rename(found.where, copy.target)
    renew(found.where, "gone")
    nczarr_members.enter(found.where, None)
    renew(copy.target, "new")
    return replace(outcome, remarks=(*remarks, *nczarr_members.arrive(found.where, copy.target, marks)))


def _found(old: StorePath, new: StorePath) -> Found[Metadata]:
    """Return the node that is moved. Raises NodeNotFoundError, with what an interrupted move has left."""
    try:
        found = rm.node_at(old)
    except NodeNotFoundError as error:
        if _is_complete(new):
            error.remedy = _MOVED
        raise
    if found is None:
        failure = detection.not_found(old, NodeNotFoundError)
        failure.remedy = _rest(new)
        raise failure
    if erasing.is_deletion(found.where):
        raise StoreError(
            "the deletion of this node was begun, and is not finished",
            store=str(found.where.store),
            path=found.where.path,
            remedy=_rest(new),
        )
    return found


def _rest(new: StorePath) -> Remedy:
    if _is_complete(new):
        return _MOVED.also(_REST, delete_node=Function())
    return Remedy(_REST, delete_node=Function())


def _is_complete(where: StorePath) -> bool:
    """Whether a complete node is at a place."""
    try:
        return detection.detect(where) is not None and not unfinished.is_left(where)
    except OmnizarrError:
        return False


def _copy(found: Found[Metadata], new: StorePath) -> Copy:
    """Return the copy to the new place: the rest of one, if a move was interrupted before."""
    try:
        return Copy(found.where, new, resume=unfinished.is_left(new))
    except (ContainsArrayError, ContainsGroupError, NodeExistsError) as error:
        if _is_complete(new):
            error.remedy = Remedy(
                "if a move was interrupted, compare both with {diff}, and delete one of them", diff=Function()
            )
        raise


def _is_one_file_system(folder: Path, target: Path) -> bool:
    """Whether a directory can be renamed to another name: also a link is left to a copy."""
    parent = next(each for each in target.parents if each.exists())
    return not folder.is_symlink() and folder.stat().st_dev == parent.stat().st_dev


def _rename(old: StorePath, new: StorePath) -> None:
    """Rename a directory, from an open directory to another: no link on the way leads elsewhere."""
    assert isinstance(old.store, LocalStore)  # noqa: S101
    assert isinstance(new.store, LocalStore)  # noqa: S101
    try:
        source, name = old.store.around(old.path)
        with source:
            target, fresh = new.store.around(new.path, makes=True)
            with target:
                if not source.is_folder(name):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
                source.rename(name, target, fresh)
    except OmnizarrError:
        raise
    except OSError as error:
        said = f"cannot be renamed to {new}: {error.strerror}".replace("{", "{{").replace("}", "}}")
        raise system.failure(error, said, store=str(old.store), path=old.path) from error
    finally:  # open stores remember directories
        old.store.forget()
        new.store.forget()

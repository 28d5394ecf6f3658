"""One repair, from a check to the account; and undoing one."""

from __future__ import annotations

import os
from collections.abc import Iterable, MutableMapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from omnizarr.api import opening
from omnizarr.errors import StoreError
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, PrefixStore, Store, resolve
from omnizarr.support.progress import Progress
from omnizarr.tools.check import check, documents, inventory
from omnizarr.tools.check.report import Finding, Findings
from omnizarr.tools.extension import extension
from omnizarr.tools.repair import backup as backups
from omnizarr.tools.repair import copies, leftovers, missing, mistakes, stored
from omnizarr.tools.repair.overlay import Overlay
from omnizarr.tools.repair.policy import ASKED, NEEDS_DATA, wanted
from omnizarr.tools.repair.report import Account, Action
from omnizarr.tools.repair.transaction import RepairState, identity

_OPEN: Final = (Store, StorePath, Array, Group, MutableMapping)
_BY_LISTING: Final = {"temporary-file", "lock-file"}


def run(
    store: Any,
    *,
    path: str | None,
    zarr_format: int | str | None,
    dry_run: bool,
    codes: Iterable[str] | None,
    data: bool,
    adopt: bool,
    backup: str | os.PathLike[str] | bool | None,
    older_than: float,
    concurrency: int | None,
    progress: Progress,
) -> Account:
    """Repair the findings at a place and below it; see `omnizarr.repair`."""
    chosen = wanted(codes)
    data = data or (codes is not None and bool(chosen & NEEDS_DATA))
    where, _ = opening.locate(store, path, "r" if dry_run else "r+", None)
    try:
        where = inventory.home_of(where, zarr_format)

        def look() -> list[Finding]:
            return list(
                check(at, zarr_format=zarr_format, data=data, concurrency=concurrency, progress=progress).findings
            )

        at = where
        found = look()
        kept = _backup(where.store, given=backup, dry_run=dry_run)
        if dry_run:
            at = replace(where, store=Overlay(where.store))
        state = RepairState(at, chosen, kept)
        leftovers.delete_leftovers(state, found, older_than=older_than, asked=codes is not None)
        if _has(found, missing.COPIED & chosen) and missing.write_copied(state, _take(state, zarr_format), found):
            # A check of an overlay does not find keys that a listing leaves out.
            found = [*look(), *(one for one in found if dry_run and one.code in _BY_LISTING)]
        _mend(state, found, zarr_format, adopt=adopt)
        account = Account(
            store=str(where.store),
            path=where.path,
            dry_run=dry_run,
            actions=tuple(state.actions),
            left=_left(state, found),
            backup=None if kept is None else kept.place,
        )
        if kept is not None:
            kept.finish(account.to_json())
        return account
    finally:
        if not isinstance(store, _OPEN):
            where.store.close()


def _backup(store: Store, *, given: str | os.PathLike[str] | bool | None, dry_run: bool) -> backups.Backup | None:
    if dry_run or given is False:
        return None
    return backups.Backup(store, None if given is None or given is True else Path(given))


def _mend(state: RepairState, found: list[Finding], zarr_format: int | str | None, *, adopt: bool) -> None:
    """Mend one kind of thing after the other: first the documents, on which all else depends."""
    if _has(found, mistakes.CODES & state.codes):
        mistakes.mend_documents(state, _take(state, zarr_format), found)
    if _has(found, missing.CODES & state.codes):
        missing.write_missing(state, _take(state, zarr_format), found)
    if adopt:
        extension().adopt_records(state, found)
    if state.touched or _has(found, copies.CODES):
        copies.renew(state, _take(state, zarr_format), found)
    stored.mend_scalars(state, found)
    stored.mend_chunks(state, found)


def _has(found: list[Finding], codes: AbstractSet[str]) -> bool:
    return any(one.code in codes for one in found)


def _take(state: RepairState, zarr_format: int | str | None) -> inventory.Inventory:
    """Return the current nodes, read and interpreted."""
    taken = inventory.take(state.where, zarr_format)
    for node in taken:
        documents.understand(Findings(), node)
    return taken


def _left(state: RepairState, found: list[Finding]) -> tuple[Finding, ...]:
    """Return the findings that were not repaired, each with the reason and a remedy."""
    left: dict[object, Finding] = {}
    for one in found:
        key = identity(one)
        if key in state.settled:
            continue
        remedy = state.reasons.get(key)
        if remedy is None and one.code in ASKED and one.code not in state.codes:
            remedy = f"{one.remedy}; repaired only if the code is named: {ASKED[one.code]}"
        if one.severity != "note" or one.repairable or remedy is not None:
            left[key, one.message] = replace(one, remedy=remedy or one.remedy)
    return tuple(left.values())


# Undoing


def undo(account: Account | str | os.PathLike[str], store: Any, *, dry_run: bool) -> Account:
    """Undo a repair; see `omnizarr.undo_repair`."""
    is_own = isinstance(account, Account)  # of a repair that this program has made
    if isinstance(account, Account):
        if account.backup is None:
            raise StoreError("the repair has kept no old values", store=account.store)
        account = account.backup
    folder, place, entries = backups.read(account)
    is_open = isinstance(store, _OPEN)
    if store is None:
        place = _place_of(place, folder, is_own=is_own)
    opened = _store_of(store, place, "r" if dry_run else "r+")
    try:
        state = Overlay(opened) if dry_run else opened
        actions = [_put_back(state, folder, entry, dry_run=dry_run) for entry in reversed(entries)]
    finally:
        if not is_open:
            opened.close()
    return Account(
        store=str(opened),
        path="",
        dry_run=dry_run,
        actions=tuple(action for action in actions if action is not None),
        left=(),
        backup=str(folder),
    )


def _place_of(place: dict[str, str] | None, folder: Path, *, is_own: bool) -> dict[str, str]:
    """Return the place of the hierarchy in a report. Raises StoreError if the report may have been made up."""
    if place is None:
        raise StoreError("the account does not say where the store is", found=str(folder), remedy="give the store")
    if not is_own and not backups.lies_beside(folder, place):
        raise StoreError(
            "the account names a store, but does not lie beside it as a repair would have left it, so that anybody"
            " may have written it",
            store=str(folder),
            found=place["path"],
            remedy="give the store that is to be changed, if you trust the account",
        )
    return place


def _store_of(store: Any, place: dict[str, str] | None, mode: Literal["r", "r+"]) -> Store:
    """Return the store that was repaired: the given one, or the one at a place."""
    if isinstance(store, _OPEN):
        return opening.locate(store, None, mode, None)[0].store
    if place is None or store is not None:
        return resolve(store, mode)[0]
    opened: Store
    if place["kind"] == "zip":
        opened = resolve(place["path"], mode)[0]
    else:  # which is not taken for anything else by what is in it
        opened = LocalStore(place["path"], read_only=mode == "r")
    return PrefixStore(opened, place["prefix"]) if place["prefix"] else opened


def _put_back(store: Store, folder: Path, entry: backups.Entry, *, dry_run: bool) -> Action | None:
    """Put one old value back, if what the repair wrote is still there; None if there is nothing to do."""
    action = Action(code=entry.code, path=entry.path, key=entry.key, what="put the old value back")
    old = backups.kept_value(folder, entry)
    if entry.is_file:
        return _put_file_back(store, entry, old, action, dry_run=dry_run)
    with store.lock(entry.lock):
        compared = _compare(store, entry, action)
        if compared is not action:
            return compared
        if old is None:
            store.delete(entry.key)
        else:
            store.set(entry.key, old)
    return replace(action, done=not dry_run)


def _compare(store: Store, entry: backups.Entry, action: Action) -> Action | None:
    now = backups.digest(store.get(entry.key))
    if now == entry.before:
        return None
    if now != entry.after:
        return replace(action, what="put the old value back, as it was changed after the repair")
    return action


def _put_file_back(
    store: Store, entry: backups.Entry, old: bytes | None, action: Action, *, dry_run: bool
) -> Action | None:
    base, root = backups.base_of(store), backups.directory_of(store)
    if root is None or old is None or not isinstance(base, LocalStore):
        return None
    above = (root / entry.key).parent.relative_to(base.root).as_posix()
    name = entry.key.rpartition("/")[2]
    try:
        with base.opened("" if above == "." else above) as folder:
            if folder.has(name):
                return None
            if not dry_run:
                folder.write_new(name, old)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"cannot be put back: {error.strerror}", store=str(store), key=entry.key) from error
    return replace(action, done=not dry_run)

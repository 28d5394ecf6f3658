"""Temporary files and locks that writers left behind, and files of operating systems."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from omnizarr.nodes import wording
from omnizarr.stores import LocalStore, Store, ZipStore
from omnizarr.stores.base import is_key
from omnizarr.stores.local import filelocks
from omnizarr.tools.check.report import Finding
from omnizarr.tools.repair.backup import base_of, directory_of
from omnizarr.tools.repair.report import Action
from omnizarr.tools.repair.transaction import RepairState

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be deleted
    fcntl = None  # type: ignore[assignment]

_WHATS: Final = {
    "temporary-file": "delete the temporary file",
    "lock-file": "delete the unused lock file",
    "system-file": "delete the file",
}
CODES: Final = frozenset(_WHATS)
_YOUNG: Final = "wait until it is {} old and no program is writing"
_AGELESS: Final = "delete it if no program is writing, or name the code: the store does not tell how old it is"
_HELD: Final = "wait until the writer is done: it is locked"
_FULL: Final = "delete it if you know what it is: it is not empty, so it is not a known kind of lock"


def delete_leftovers(state: RepairState, findings: list[Finding], *, older_than: float, asked: bool) -> None:
    """Delete leftovers that are older than this many seconds and not locked."""
    is_zip = isinstance(base_of(state.store), ZipStore)
    root = directory_of(state.store)
    for finding in findings:
        if finding.code not in CODES & state.codes or finding.key is None:
            continue
        file = None if root is None else root / finding.key
        why = _why_not(state, finding, file, older_than=older_than, is_zip=is_zip, asked=asked)
        if why is not None:
            state.refuse(finding, why)
        elif is_key(finding.key):
            _delete_key(state, finding, finding.key)
        elif file is not None:
            _delete_file(state, finding, file)


def _why_not(
    state: RepairState, finding: Finding, file: Path | None, *, older_than: float, is_zip: bool, asked: bool
) -> str | None:
    """Return why a leftover is not deleted; None if it is."""
    key = str(finding.key)
    if finding.code == "lock-file" and is_key(key) and state.store.size(key):
        return _FULL
    if finding.code == "system-file" or is_zip:  # of an archive there is one writer, and that is this one
        return None
    if file is None:
        return None if asked else _AGELESS
    try:
        age = time.time() - file.lstat().st_mtime
    except OSError:
        return None
    if age < older_than:
        return _YOUNG.format(wording.plural(round(older_than), "second"))
    return _HELD if _is_held(file) else None


def _is_held(file: Path) -> bool:
    """Whether a process has locked a file, in one of the two ways there are."""
    if fcntl is None:
        return False
    try:
        # See `omnizarr.stores.interrupts`.
        (descriptor,) = map(os.open, (file,), (os.O_RDWR | getattr(os, "O_NOFOLLOW", 0),))
    except OSError:
        return True  # not ours to write
    try:
        for lock in (fcntl.flock, fcntl.lockf):
            try:
                lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
    finally:
        os.close(descriptor)
    return False


def _delete_key(state: RepairState, finding: Finding, key: str) -> None:
    value = state.store.get(key)
    if value is None:
        return
    size = wording.plural(len(value), "byte")
    action = Action(code=finding.code, path=finding.path, key=key, what=_WHATS[finding.code], before=size)
    if state.change(key, value, None, [action], lock=key):
        state.settle(finding)


def _delete_file(state: RepairState, finding: Finding, file: Path) -> None:
    """Delete one of our own files, whose names are not keys."""
    try:
        size = wording.plural(file.lstat().st_size, "byte")
    except OSError:
        return
    action = Action(code=finding.code, path=finding.path, key=str(finding.key), what=_WHATS[finding.code], before=size)
    state.discard_file(file, action, lambda: _remove(state.store, file))
    state.settle(finding)


def _remove(store: Store, file: Path) -> None:
    """Remove a file from its directory, which is opened with no link on the way."""
    base = base_of(store)
    assert isinstance(base, LocalStore)  # noqa: S101
    above, _, name = file.relative_to(base.root).as_posix().rpartition("/")
    with suppress(FileNotFoundError), base.opened(above) as folder:
        if name.endswith(filelocks.SUFFIX):
            filelocks.discard(folder.place(name), folder.file)
        else:
            folder.unlink(name)

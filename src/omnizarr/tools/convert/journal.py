"""The journal of a conversion: a document in the target that exists from the first write to the last.

Its presence shows that the target is not complete. It describes the conversion, so that only the same conversion can be
resumed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from omnizarr.errors import NodeExistsError, OmnizarrError, Remedy, StoreError
from omnizarr.formats import documents
from omnizarr.model import JSON, strict
from omnizarr.nodes import erasing
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, Store, bounded

KEY: Final = erasing.JOURNAL
"""Name of the document, at the root of the target."""
_VERSION: Final = 1
_COMPACT: Final = "compact:"
"""What digests begin with that are made of documents on one line."""
_LOCKING: Final = 100_000_000
"""Nanoseconds within which the lock of a document that was written is removed from its directory."""
_COARSE: Final = 2.0
"""Seconds by which times of files may be wrong."""
_NAMES: Final[Mapping[str, str]] = {
    "target_format": "format",
    "options": "options",
    "source_digest": "documents of the source",
    "target_digest": "documents of the target",
}
"""Options that must be the same on resuming, with their names."""


@dataclass(frozen=True, slots=True)
class Journal:
    """What a conversion is of.

    Attributes
    ----------
    source : str
        Where from; for people.
    source_format, target_format : str
    options : mapping of str to str
        What the user wanted otherwise, as Python shows it.
    source_digest, target_digest : str
        Of all documents.
    verify : bool
        Arrays that have a document were read again before they got it.
    broken : mapping of str to mapping
        Arrays that are complete, by path: what their report says of chunks of the source that cannot be read.
    version : int
        Of the journal.
    began : float
        When, in seconds since 1970; 0 if unknown.
    arrays : sequence of str, optional
        Directories, below that of the journal, in which chunks may lie. None: all.
    """

    source: str
    source_format: str
    target_format: str
    options: Mapping[str, str]
    source_digest: str
    target_digest: str
    verify: bool
    broken: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    version: int = _VERSION
    began: float = 0.0
    arrays: Sequence[str] | None = None

    def write(self, root: StorePath) -> None:
        """Write the journal into the target."""
        root.store.set(root.prefix + KEY, self.document())

    def document(self) -> bytes:
        """Return the stored form."""
        entries = asdict(self)
        arrays = entries.pop("arrays")
        left = {} if arrays is None else {erasing.LEFT: {"arrays": sorted(arrays)}}
        return documents.render({"omnizarr_conversion": entries, **left})

    def check(self, found: Journal, root: StorePath) -> None:
        """Raise NodeExistsError, with the differences, if another conversion was begun in the target."""
        for name, title in _NAMES.items():
            ours, theirs = getattr(self, name), getattr(found, name)
            if ours != theirs:
                raise NodeExistsError(
                    f"the unfinished conversion here is another one: other {title}",
                    store=str(root.store),
                    path=root.path,
                    key=root.prefix + KEY,
                    found=theirs if name in ("target_format", "options") else f"conversion of {found.source}",
                    expected=ours if name in ("target_format", "options") else None,
                    remedy=Remedy("resume with what it was begun with")
                    | Remedy("start again with {overwrite}", overwrite=True),
                )


def digest(nodes: Iterable[tuple[str, Mapping[str, JSON]]], *, is_old: bool = False) -> str:
    """Return a digest of documents, given by the path of their node and their name: of what they mean.

    `is_old`: as older versions did, in five times the time. `is_old_digest` recognises those.
    """
    found = hashlib.sha256()
    for path, named in nodes:
        said = {"path": path, "documents": dict(sorted(named.items()))}
        found.update(documents.render(documents.to_json(said)) if is_old else documents.meaning(said))
    return found.hexdigest() if is_old else f"{_COMPACT}{found.hexdigest()}"


def is_old_digest(found: str) -> bool:
    """Return whether an older version made a digest."""
    return not found.startswith(_COMPACT)


def changed_since(store: Store, prefix: str, began: float) -> bool | None:
    """Return whether a file or a directory below a prefix has changed since a time; None if the store does not tell."""
    if type(store) is not LocalStore:
        return None
    pending = [os.path.join(store.root, prefix)]  # noqa: PTH118 - there may be many files
    while pending:
        folder = pending.pop()
        try:
            if _changed(os.stat(folder), began):  # noqa: PTH116
                return True
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():  # which may lead in circles, or to what changes for other reasons
                        return None
                    if entry.is_dir():
                        pending.append(entry.path)
                    elif _changed(entry.stat(), began):
                        return True
        except FileNotFoundError:
            continue
    return False


def is_as_made(source: Store, source_prefix: str, target: Store, target_prefix: str, document: str) -> bool:
    """Return whether an array and its source certainly have not changed since it was made; False if it is unknown.

    The source must be older than the first file of the target, and no file of the target newer than its document,
    which came last.
    """
    if type(target) is not LocalStore:
        return False
    try:
        made = os.stat(os.path.join(target.root, document))  # noqa: PTH116, PTH118
        first, last = made.st_mtime, max(made.st_mtime_ns, made.st_ctime_ns)
        pending = [os.path.join(target.root, target_prefix)]  # noqa: PTH118
        while pending:
            folder = pending.pop()
            if os.stat(folder).st_mtime_ns > last + _LOCKING:  # noqa: PTH116 - something was removed, or made
                return False
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        return False
                    if entry.is_dir():
                        pending.append(entry.path)
                        continue
                    status = entry.stat()
                    if max(status.st_mtime_ns, status.st_ctime_ns) > last:
                        return False
                    first = min(first, status.st_mtime)
    except OSError:
        return False
    return changed_since(source, source_prefix, first) is False


def _changed(status: os.stat_result, began: float) -> bool:
    return max(status.st_mtime, status.st_ctime) > began - _COARSE


def read(root: StorePath) -> Journal | None:
    """Return the journal of an unfinished conversion at a place; None if there is none.

    Raises NodeExistsError if there is something by its name that is not a journal.
    """
    key = root.prefix + KEY
    data = bounded.document(root.store, key)
    if data is None:
        return None
    try:
        document: Any = documents.parse(data, strict)
        entries = dict(document["omnizarr_conversion"])
        if entries.get("version") == _VERSION:
            return _checked(Journal(**entries))
        reason = f"of version {entries.get('version')!r}"
    except (OmnizarrError, TypeError, KeyError, ValueError) as error:
        reason = f"broken: {error}"
    raise NodeExistsError(
        "there is the journal of a conversion that cannot be resumed",
        store=str(root.store),
        path=root.path,
        key=key,
        found=reason,
        remedy=Remedy("start again with {overwrite}", overwrite=True),
    )


def _checked(found: Journal) -> Journal:
    """Return a journal that may come from anywhere. Raises TypeError if something in it is of another kind."""
    texts = (found.source, found.source_format, found.target_format, found.source_digest, found.target_digest)
    kinds = [*((text, str) for text in texts), (found.verify, bool), (found.began, int | float)]
    for value, kind in (*kinds, (found.options, Mapping), (found.broken, Mapping)):
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} in the place of something else")
    for text in (*found.options.values(), *found.options):
        if not isinstance(text, str):
            raise TypeError(f"{text!r} in the place of an option")
    for path, chunks in found.broken.items():
        is_list = isinstance(chunks, Mapping) and isinstance(chunks.get("unreadable"), Mapping)
        if not is_list or not isinstance(chunks.get("stored"), int):
            raise TypeError(f"{chunks!r} said of {path!r}")
    return found


def remove(root: StorePath) -> None:
    """Say that the conversion is complete. Raises the error of a store that cannot delete, with what is left."""
    try:
        root.store.delete(root.prefix + KEY)
    except StoreError as error:
        failure = type(error)(
            f"everything is written, but the document that says it is unfinished cannot be deleted: {error.message}",
            store=str(root.store),
            path=root.path,
            key=root.prefix + KEY,
            found=error.found,
            remedy=Remedy(
                "delete this document, or allow it to be deleted, and repeat the command with {resume}", resume=True
            ),
        )
        raise failure from error

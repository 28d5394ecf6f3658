"""Sources of lazy arrays that are not what they were: an error that names the source, never other values.

A lazy array expects of each source what was found when it was joined, stored in a view, or described by you:

- the shape and the data type, and for what you described what the stored numbers mean;
- of an array in a directory, the file of its document: size and times, from when the array was joined or opened;
- of a source of a saved view, a digest of its documents, and if all of it is one file, a `Mark` of that file.

Joins look at the shape, the type and the document before they read. A request to a server would cost as much as
reading, so what is far is looked at only where all elements that were read have the fill value, as those of an array
that has gone. Digests and marks are compared once, when a source is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat as modes
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from omnizarr.errors import ArrayNotFoundError, Remedy, StaleError
from omnizarr.model import ArrayMetadata, Named
from omnizarr.nodes import bindings, detection
from omnizarr.nodes.location import dialect_of
from omnizarr.nodes.packing import HOW_STORED
from omnizarr.stores import LocalStore, Store, pool, urls, verbs
from omnizarr.stores.local import files
from omnizarr.stores.local.zip import ZipStore
from omnizarr.stores.wrap.wrappers import WrapperStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from omnizarr.engine import Conversion
    from omnizarr.nodes.lazy.tree import Leaf

Stamp: TypeAlias = "tuple[str, tuple[int, ...]]"
"""Where the document of an array is, and the identity of the file."""

_AT_ONCE: Final = 16
_WORDS: Final[Mapping[str, tuple[str, str | Remedy]]] = {
    "joined": (
        "a source of a lazy array has changed",
        "it was changed since the lazy array was made: make that again",
    ),
    "saved": (
        "a source of a saved view has changed",
        "it was changed since the view was saved: save the view again",
    ),
    "described": (
        "a source of a lazy array is not as you described it",
        Remedy("pass {like} and {lengths} that fit all sources, or leave both out to open them", like=..., lengths=...),
    ),
}
"""What an error says and advises, by how the source became known."""
_ELEMENTS: Final = ("shape", "data_type", "chunk_grid", "codecs", "fill_value")
"""Members of metadata that say which elements an array has."""
_MEANING: Final = (*HOW_STORED, "units", "calendar")
"""Attributes that say what elements mean."""


# -- open sources ---------------------------------------------------------------------------


def stamp(source: Any) -> Stamp | None:
    """Return what tells a change of the document of an array in a directory; None if nothing does at no cost."""
    metadata = metadata_of(source)
    if metadata is None:
        return None
    where = source.store_path
    if type(where.store) is not LocalStore:
        return None
    dialect = dialect_of(where, metadata)
    document, _ = dialect.keyspace.of_array(where.path, dialect.array_document)
    path = f"{where.store.root}/{document}"
    found = _file_at(path)
    return None if found is None else (path, found)


def _file_at(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - several times faster
    except OSError:  # consolidated metadata can be all that there is
        return None
    return files.identity(found)


def metadata_of(source: Any) -> ArrayMetadata | None:
    """Return the metadata of an open array of omnizarr; None for other sources, and those that are not open."""
    if not hasattr(type(source), "_prepare"):  # no array, or one that is opened when it is read
        return None
    found = source._metadata  # noqa: SLF001 - a part of Array
    return found if isinstance(found, ArrayMetadata) else None


def check(leaf: Leaf) -> None:
    """Raise StaleError, or ArrayNotFoundError, if a source has other elements than it is expected to have."""
    if not leaf.since:
        return
    source = leaf.source
    if source.shape != leaf.shape or source.dtype != leaf.dtype:
        _check_elements(leaf, source)
    if leaf.stamp is not None and _file_at(leaf.stamp[0]) != leaf.stamp[1]:
        check_document(leaf)


def _check_elements(expected: Leaf | Expected, source: Any) -> None:
    shape, dtype = tuple(source.shape), np.dtype(source.dtype)
    if (shape, dtype) != (expected.shape, expected.dtype):
        found = f"shape {shape}, data type {dtype}"
        raise changed(expected.since, source, found, f"shape {expected.shape}, data type {expected.dtype}")


def check_filled(read: Iterable[tuple[Leaf, Any, Callable[[], Conversion | None]]]) -> None:
    """Look at the documents of far sources of which only fill values were read, which may have been converted."""
    doubtful = {
        id(leaf): leaf
        for leaf, values, conversion in read
        if leaf.since and leaf.stamp is None and _is_doubtful(leaf, np.asarray(values), conversion)
    }
    if doubtful:
        for _ in pool.gather(check_document, list(doubtful.values()), min(len(doubtful), _AT_ONCE)):
            pass


def _is_doubtful(leaf: Leaf, values: NDArray[Any], conversion_of: Callable[[], Conversion | None]) -> bool:
    if metadata_of(leaf.source) is None or leaf.dtype.hasobject or leaf.dtype.names or not values.size:
        return False
    fill = leaf.source.fill_value
    if fill is None:
        return False
    if (conversion := conversion_of()) is not None:
        fill = conversion.apply(np.array([fill], leaf.dtype))[0]
    first = values[(0,) * values.ndim]
    if not (first == fill or (first != first and fill != fill)):  # noqa: PLR0124 - NaN
        return False
    same = values == fill
    return bool(np.all(same if fill == fill else same | (values != values)))  # noqa: PLR0124 - NaN


def check_document(leaf: Leaf) -> None:
    """Raise StaleError, or ArrayNotFoundError, if the stored metadata of a source describe other elements."""
    where, known = leaf.source.store_path, leaf.source._metadata  # noqa: SLF001 - a part of Array
    found = detection.detect(where)
    if found is None:
        dialect = dialect_of(where, known)
        document, _ = dialect.keyspace.of_array(where.path, dialect.array_document)
        bindings.check_there(where, document)
        return
    now = found.metadata
    if not isinstance(now, ArrayMetadata):
        raise ArrayNotFoundError(
            "the array is not there any more",
            store=str(where.store),
            path=where.path,
            found="a group",
            remedy=_WORDS[leaf.since or "joined"][1],
        )
    for name in _ELEMENTS:
        old, new = getattr(known, name), getattr(now, name)
        if not _same(old, new):
            raise changed(leaf.since, leaf.source, f"{name} {_shown(new)}", f"{name} {_shown(old)}")


def _same(a: Any, b: Any) -> bool:
    return bool(np.all(a == b)) or bool(a != a and b != b)  # noqa: PLR0124 - NaN


def _shown(value: Any) -> str:
    if isinstance(value, Named):
        return f"{value.name} {dict(value.configuration)}" if value.configuration else value.name
    is_list = isinstance(value, tuple) and any(isinstance(each, Named) for each in value)
    return ", ".join(map(_shown, value)) if is_list else str(value)


def changed(since: str, source: Any, found: Any, expected: Any) -> StaleError:
    """Return the error for a source that is not what it was, or not what you described."""
    message, remedy = _WORDS[since or "joined"]
    where = getattr(source, "store_path", None)
    return StaleError(
        message,
        store=type(source).__name__ if where is None else str(where.store),
        path=None if where is None else where.path,
        found=found,
        expected=expected,
        remedy=remedy,
    )


# -- sources that are opened later ----------------------------------------------------------


class Mark(NamedTuple):
    """What tells a change of a file that holds a whole hierarchy: an archive, a database.

    Equal times, or equal `contents`, mean the same file: a copy can have other times. With equal times, another number
    in the same folder shows that it was replaced; in another folder it shows only that it was moved or copied there.
    """

    size: int | None = None
    """Bytes of the file; None for one on a server."""
    modified: int | None = None
    """Time of its last change, in nanoseconds."""
    contents: str = ""
    """A digest of the checksums in the directory of an archive, or what a server calls its version."""
    number: int | None = None
    """Number of the file; None for one on a server, and in views that older versions saved."""
    folder: str = ""
    """Numbers of its folder, and of the device."""


class Expected(Protocol):
    """What is known of a source before it is opened: `omnizarr.nodes.lazy.deferred.Deferred`."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    dimension_names: tuple[str | None, ...] | None
    attrs: Mapping[str, Any]
    since: str
    """How it became known: "saved" or "described"."""
    digest: str
    """What `digest_of` returned; "" if it is not compared."""
    mark: Mark | None


def digest_of(array: Any) -> str:
    """Return a text that changes with the documents of an array."""
    return _digest(json.dumps(array.documents(), sort_keys=True, default=str))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def mark_of(store: Store, known: Mark | None = None) -> Mark | None:
    """Return the mark of the file that is the whole of a store; None for directories, and where nothing tells changes.

    `known` is an earlier mark: what is costly is found out only if the file has changed since. Without one, this waits
    for a file that was only just written, until its next change will show another time.
    """
    while isinstance(store, WrapperStore):
        store = store.store
    if isinstance(store, ZipStore) and store.store is not None:
        version = verbs.stamp(store.store, str(store.path))
        parts = version if isinstance(version, tuple) else (version,)
        return None if version is None else Mark(contents=" ".join(map(str, parts)))
    path = store.place
    if not path or not urls.is_local(path):
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - several times faster
        if known is None:
            found = _settled(path, found)
        if not modes.S_ISREG(found.st_mode) or _is_ahead(path):
            return None
    except OSError:
        return None
    mark = Mark(found.st_size, found.st_mtime_ns, "", found.st_ino, _folder_of(path))
    if known is not None and _is_as_known(mark, known):
        return known
    return mark._replace(contents=_contents(path) if isinstance(store, ZipStore) else "")


def _settled(path: str, status: os.stat_result) -> os.stat_result:
    """Return the status of a file, after the tick of the clock in which it was changed."""
    now = time.time_ns()
    rest = files.unsettled(now, status.st_mtime_ns)
    if rest <= 0 or status.st_mtime_ns > now:  # clocks disagree
        return status
    time.sleep(rest / 1e9)
    return os.stat(path)  # noqa: PTH116 - several times faster


def _folder_of(path: str) -> str:
    found = os.stat(os.path.dirname(os.path.realpath(path)))  # noqa: PTH116, PTH120 - several times faster
    return f"{found.st_dev}-{found.st_ino}"


def _is_as_known(now: Mark, known: Mark) -> bool:
    """Return whether size and times are those of an earlier mark, and the file has not been replaced where it is."""
    is_replaced = known.number not in {None, now.number} and now.folder == known.folder
    return now[:2] == known[:2] and not is_replaced


def _is_ahead(path: str) -> bool:
    """Return whether a journal of SQLite holds more than its database, which changes when the journal is carried over.

    The database has no mark then.
    """
    try:
        return os.stat(f"{path}-wal").st_size > 0  # noqa: PTH116 - several times faster
    except OSError:
        return False


def _contents(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            return _digest(repr([(each.filename, each.CRC, each.file_size) for each in archive.infolist()]))
    except (zipfile.BadZipFile, OSError, ValueError):  # which reading explains
        return ""


def check_opened(expected: Expected, array: Any) -> None:
    """Raise StaleError if an array that was opened for a lazy array is not the expected one."""
    since = expected.since
    _check_elements(expected, array)
    if since == "described":
        _check_meaning(expected, array)
    if expected.digest and expected.digest != (digest := digest_of(array)):
        raise changed(since, array, f"other metadata, of digest {digest}", expected.digest)
    if (known := expected.mark) is not None and (now := mark_of(array.store, known)) is not None:
        is_same = now.contents == known.contents != "" and now.size == known.size
        if not is_same and now != known:
            raise changed(since, array, f"another file, {_file(now, known)}", _file(known, now))


def _file(mark: Mark, other: Mark) -> str:
    if mark.size is None:
        return f"version {mark.contents}"
    when = np.datetime64(mark.modified or 0, "ns").astype("M8[ms]")
    number = f", number {mark.number}" if mark[:2] == other[:2] else ""
    return f"of {mark.size} bytes, changed at {when} UTC{number}"


def _check_meaning(expected: Expected, array: Any) -> None:
    """Compare what stored numbers and dimensions mean: other numbers would be read in place of an error."""
    given = array.attrs
    for name in _MEANING:
        old, new = expected.attrs.get(name), given.get(name)
        if not _same(old, new):
            raise changed("described", array, f"{name} {new!r}", f"{name} {old!r}")
    names = array.dimension_names
    if names and expected.dimension_names and names != expected.dimension_names:
        raise changed("described", array, f"dimensions {names}", f"dimensions {expected.dimension_names}")

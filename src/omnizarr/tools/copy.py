"""Copying arrays and groups, within a store and between stores, formats and libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from omnizarr.errors import ContainsGroupError, MetadataError, NodeExistsError, Remedy
from omnizarr.formats import DIALECTS, dialect_named
from omnizarr.formats.paths import paths_above
from omnizarr.model import ArrayMetadata, GroupMetadata, Loss
from omnizarr.nodes import copying, creating, detection, erasing, hierarchy, holdings, nczarr_members, replacing
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath, dialect_of, normalize
from omnizarr.nodes.naming import lists_members
from omnizarr.nodes.renewing import renew, together
from omnizarr.stores import LocalStore, pool, resolve
from omnizarr.stores.resolve import refuse_other_format
from omnizarr.support.lazy import Lazy
from omnizarr.support.progress import Progress, Tick, Tracker

if TYPE_CHECKING:
    from omnizarr.tools import strangers, unshown
    from omnizarr.tools.convert import transfer
    from omnizarr.tools.convert.carrying import Carrying
    from omnizarr.tools.streaming import executors
    from omnizarr.tools.streaming.executors import Executor
else:
    executors = Lazy("omnizarr.tools.streaming.executors")
    strangers = Lazy("omnizarr.tools.strangers")
    unshown = Lazy("omnizarr.tools.unshown")
    transfer = Lazy("omnizarr.tools.convert.transfer")

IfExists: TypeAlias = Literal["raise", "replace", "skip", "skip_initialized"]
Log: TypeAlias = "Callable[[str], object] | None"


class _Counts(NamedTuple):
    copied: int
    skipped: int
    nbytes: int


class Copied(_Counts):
    """The result of a copy: a tuple of three numbers, as zarr-python 2 returned, with attributes.

    Attributes
    ----------
    copied : int
        Number of nodes (`copy_store`: keys) copied.
    skipped : int
        Number of nodes that were skipped.
    nbytes : int
        Bytes of the copied values in memory (`copy_store`: stored bytes).
    losses : tuple of Loss
        What the codecs or the data type that you asked for do not keep, and what an open file of another format has
        that is not shown.
    kept : tuple of str
        Files that are not Zarr, differ from those of the source, and stay at the target: without
        ``if_exists="replace"``.
    """

    losses: tuple[Loss, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass
class _Job:
    """A copy in progress."""

    if_exists: IfExists
    dry_run: bool
    without_attrs: bool
    shallow: bool
    log: Log
    options: Mapping[str, Any]
    shown: Tracker
    executor: Executor | None = None
    """Workers other than this process."""
    carrying: Carrying | None = None
    """Nodes of the source in another format; None if nothing must be translated."""
    copied: int = 0
    skipped: int = 0
    nbytes: int = 0
    losses: list[Loss] = field(default_factory=list)
    kept: tuple[str, ...] = ()
    """Files at the target that differ from those of the source, and stay."""
    is_listing: bool | None = None
    """Whether the target is in a dataset of NCZarr; None if this is not known yet."""

    def say(self, text: str) -> None:
        _say(self.log, text)

    @property
    def result(self) -> Copied:
        made = Copied(self.copied, self.skipped, self.nbytes)
        made.losses, made.kept = tuple(self.losses), self.kept
        return made


def copy(
    source: Any,
    dest: Group,
    name: str | None = None,
    shallow: bool = False,  # noqa: FBT001, FBT002 - zarr's signature
    without_attrs: bool = False,  # noqa: FBT001, FBT002
    log: Log = None,
    if_exists: IfExists = "raise",
    dry_run: bool = False,  # noqa: FBT001, FBT002
    *,
    strict: bool = False,
    scheduler: Any = None,
    progress: Progress = None,
    **create_kws: Any,
) -> Copied:
    """Copy an array, or a group with everything below it, into a group.

    Within one format, an array keeps its chunks and codecs, and its stored chunks are copied
    unchanged. Into another format, nodes are translated as by `omnizarr.convert`: dimension names, masks of xarray and
    other conventions keep their meaning, and nothing is copied if something would be lost. Arrays of other libraries,
    and all arrays if you pass `create_kws`, are read and written block by block.

    Parameters
    ----------
    source : Array or Group
        An array or group of omnizarr, or of another library with the same interface (h5py, zarr).
    dest : Group
        The group that gets the copy.
    name : str, optional
        Name in `dest`. The default is the name of `source`.
    shallow : bool
        Copy only the arrays directly in a group.
    without_attrs : bool
        Whether to omit attributes.
    log : callable, optional
        Called with a line for each node.
    if_exists : {"raise", "replace", "skip", "skip_initialized"}
        What to do about an existing node ("skip_initialized": skip it if it has a stored chunk), and about a file that
        is not Zarr and has another content than that of the source. Files that are skipped are in ``kept``.
    dry_run : bool
        Whether to only report what would be done.
    strict : bool
        Whether to raise NotRepresentableError, before anything is written, if codecs or a data type in `create_kws` do
        not keep all values. Otherwise they are in ``losses``.
    scheduler : distributed.Client, str or Cluster, optional
        A dask.distributed cluster whose workers copy the chunks, as for `omnizarr.convert`.
    progress : bool, callable or bar, optional
        As for `convert`.
    **create_kws
        Keywords of `create_array` for the new arrays.

    Returns
    -------
    Copied
        (number of nodes copied, number skipped, bytes copied), with ``losses`` and ``kept``

    Raises
    ------
    NodeExistsError
        If a node exists already, or a file with another content, and `if_exists` is "raise".
    NotRepresentableError
        If something would be lost in the format of `dest`, or with `strict` by codecs or a data type.
    ChunkError
        If a chunk of the source that must be decoded cannot be read.
    SchedulerError
        If the cluster cannot be reached, or its workers cannot reach source or target.

    Examples
    --------
    >>> import omnizarr
    >>> source = omnizarr.create_group({}, zarr_format=2)
    >>> source["temp"] = [1.0, 2.0]
    >>> dest = omnizarr.create_group({})
    >>> omnizarr.copy(source["temp"], dest)
    Copied(copied=1, skipped=0, nbytes=16)
    >>> omnizarr.copy(source["temp"], dest, "rounded", dtype="float32").losses[0].why
    'relative error at most 2^-24; numbers beyond 3.40282e+38 become infinite'
    """
    _check(if_exists)
    name = name or str(source.name).rpartition("/")[2]
    if not name:
        raise ValueError("the root has no name: give one, or use copy_all")
    with (
        together(dest.store),
        _executor(scheduler) as executor,
        _showing(progress, [source], shallow=shallow) as shown,
    ):
        job = _Job(if_exists, dry_run, without_attrs, shallow, log, create_kws, shown, executor)
        job.carrying = _carrying(job, source, dest, levels=1)
        files = _files(job, source, dest.store_path / name)
        if strict:
            _refuse_losses(job, source, dest, lambda trial: _copy_node(trial, source, dest, name))
        _copy_node(job, source, dest, name)
        if job.copied:
            _list(job, source, dest, name)
        _copy_files(job, source, dest.store_path / name, files)
        _tell(job, source)
    return job.result


def copy_all(
    source: Any,
    dest: Group,
    shallow: bool = False,  # noqa: FBT001, FBT002 - zarr's signature
    without_attrs: bool = False,  # noqa: FBT001, FBT002
    log: Log = None,
    if_exists: IfExists = "raise",
    dry_run: bool = False,  # noqa: FBT001, FBT002
    *,
    strict: bool = False,
    scheduler: Any = None,
    progress: Progress = None,
    **create_kws: Any,
) -> Copied:
    """Copy all members of a group into another group. Arguments and result are those of `copy`."""
    _check(if_exists)
    _refuse_descent(source, dest.store_path)
    members = [source[name] for name in list(source.keys())] if progress else []
    with (
        together(dest.store),
        _executor(scheduler) as executor,
        _showing(progress, members, shallow=shallow) as shown,
    ):
        job = _Job(if_exists, dry_run, without_attrs, shallow, log, create_kws, shown, executor)
        job.carrying = _carrying(job, source, dest, levels=2)
        files = _files(job, source, dest.store_path)
        if strict:
            _refuse_losses(job, source, dest, lambda trial: _copy_each(trial, source, dest))
        _copy_each(job, source, dest)
        _copy_files(job, source, dest.store_path, files)
        if not without_attrs and not dry_run:
            _copy_attributes(job, source, dest)
        _tell(job, source)
    return job.result


def copy_store(
    source: Any,
    dest: Any,
    source_path: str = "",
    dest_path: str = "",
    excludes: str | Iterable[str] = (),
    includes: str | Iterable[str] = (),
    flags: int = 0,
    if_exists: Literal["raise", "replace", "skip"] = "raise",
    dry_run: bool = False,  # noqa: FBT001, FBT002 - zarr's signature
    log: Log = None,
    *,
    scheduler: Any = None,
) -> Copied:
    """Copy keys and values from one store to another unchanged.

    Documents are copied last, so that no node appears before its chunks.

    Parameters
    ----------
    source, dest : path, URL, Store or mutable mapping
    source_path, dest_path : str
        Copy only keys below `source_path`, to below `dest_path`.
    excludes, includes : str or iterable of str
        Regular expressions: leave out keys that match one of `excludes`, unless they match one of `includes`.
    flags : int
        For the regular expressions.
    if_exists : {"raise", "replace", "skip"}
        What to do about an existing key.
    dry_run, log, scheduler
        As for `copy`.

    Returns
    -------
    Copied
        (number of keys copied, number skipped, bytes copied)

    Raises
    ------
    NodeExistsError
        If a key exists already, and `if_exists` is "raise"; then nothing has been copied.
    InvalidKeyError
        If the store has no keys for a node below, so that it would not be copied.
    """
    _check(if_exists)
    with ExitStack() as opened:
        old = _opened(opened, source, source_path, "r")
        new = _opened(opened, dest, dest_path, "a")
        _refuse_unreachable(old)
        choice = _Choice(_patterns(excludes, flags), _patterns(includes, flags))
        return _copy_store(old, new, choice, if_exists, log, scheduler, dry_run=dry_run)


def _opened(stack: ExitStack, place: Any, path: str, mode: Literal["r", "a"]) -> StorePath:
    """Return a place in a store. A store that is opened for it is closed at the end, which writes an archive."""
    store, above = resolve(place, mode)
    if isinstance(place, str | os.PathLike):
        if mode == "a":
            refuse_other_format(store)
        stack.callback(store.close)
    return StorePath(store, normalize(f"{above}/{path}"))


def _copy_store(
    old: StorePath,
    new: StorePath,
    choice: _Choice,
    if_exists: Literal["raise", "replace", "skip"],
    log: Log,
    scheduler: Any,
    *,
    dry_run: bool,
) -> Copied:
    keys = list(choice.keys(old))
    is_there = dict(pool.gather(lambda key: new.store.exists(new.prefix + key), keys, new.store.features.concurrency))
    there = {key for number, key in enumerate(keys) if is_there[number]}
    if there and if_exists == "raise":
        raise NodeExistsError(
            "keys exist already",
            store=str(new.store),
            path=new.path,
            found=", ".join(sorted(there)[:5]),
            remedy=Remedy("pass {if_exists} or 'skip'", if_exists="replace"),
        )
    wanted = sorted(key for key in keys if key not in there or if_exists == "replace")
    chunks, *levels = _in_turns(wanted)
    for key in sorted(there) if if_exists == "skip" else ():
        _say(log, f"skip {key}")
    if dry_run:
        for key, _ in chain(chunks, *levels):
            _say(log, f"copy {key}")
        return Copied(len(wanted), len(keys) - len(wanted), _total(old, wanted))
    copy_values = transfer.copy
    copier = copying.Copier(old.store, new.store)

    def pairs(keys: Iterable[copying.Pair]) -> Iterator[copying.Pair]:
        for key, _ in keys:
            _say(log, f"copy {key}")
            yield old.prefix + key, new.prefix + key

    with executors.executor(scheduler) as executor:
        executor.expect(old.store, (old.prefix + key for key, _ in chain(*levels)))
        executor.expect(new.store, [])
        written = [copy_values(copier, pairs(chunks), executor)]
        written.extend(copy_values(copier, pairs(level), executors.Local()) for level in levels)
        taken = set(keys)
        came = sorted(key for key in choice.keys(old) if key not in taken)  # meanwhile
        copier = copier if if_exists == "replace" else replace(copier, keeps="all")
        written.extend(copy_values(copier, pairs(level), executors.Local()) for level in _in_turns(came))
    if wanted:
        _list_copied(old, new, wanted, _renew(new))
    copied, nbytes = sum(each.values for each in written), sum(each.nbytes for each in written)
    made = Copied(copied, len(keys) - len(wanted), nbytes)
    # What workers on other machines have read is read again. Otherwise, only what was copied counts.
    made.losses = tuple(unshown.below(old, looks=scheduler is not None)) if wanted else ()
    return made


def _in_turns(keys: Iterable[str]) -> list[list[copying.Pair]]:
    """Return keys of chunks, and then those of documents in lists whose order matters."""
    documents = {name for dialect in DIALECTS for name in dialect.keyspace.documents("")}
    chunks: list[copying.Pair] = []
    last: list[copying.Pair] = []
    for key in keys:
        (last if key.rpartition("/")[2] in documents else chunks).append((key, key))
    return [chunks, *copying.in_turns(last, _MAKERS)]


def _renew(place: StorePath) -> list[GroupMetadata]:
    """Renew consolidated metadata at a place and above it. Return the group there, if there is one."""
    there = None
    with suppress(MetadataError):  # keys are copied, whatever they belong to
        there = detection.detect(place, kind="group")
    renew(place if there is None else there.where, own=True)
    return [there.metadata] if there is not None and isinstance(there.metadata, GroupMetadata) else []


def _list_copied(old: StorePath, new: StorePath, keys: Iterable[str], groups: list[GroupMetadata]) -> None:
    """Let NCZarr's lists name the nodes of which documents were copied, and references in them lead to places here.

    `groups` were read at the target: a store far away is not asked for those above it.
    """
    nodes = {key.rpartition("/")[0] for key in keys if key.rpartition("/")[2] in _MAKERS}
    plain: set[str] = set()  # groups that are in no dataset of NCZarr
    for path in sorted(nodes):
        above, target = path.rpartition("/")[0], _below(new, path)
        if above in plain or not nodes.isdisjoint(paths_above(path)):
            continue
        if nczarr_members.place_in_dataset(target, groups) is None:
            plain.add(above)
        else:
            nczarr_members.arrive_where_listed(_below(old, path), target, groups)


def _below(where: StorePath, path: str) -> StorePath:
    return where / path if path else where


def _refuse_unreachable(place: StorePath) -> None:
    """Raise InvalidKeyError if a group contains something for which the store has no keys."""
    try:
        group = detection.detect(place, kind="group") or detection.implied(place)
    except MetadataError:
        return  # keys are copied, whatever they belong to
    if group is not None and isinstance(group.metadata, GroupMetadata):
        hierarchy.arrays_below(group.where)


_MAKERS: Final = tuple({name for dialect in DIALECTS for name in (dialect.array_document, dialect.group_document)})
"""Names of the documents that make something a node, which are written last."""


def _total(place: StorePath, keys: Iterable[str]) -> int:
    """Return the number of bytes in the values of keys."""
    wanted = {place.prefix + key for key in keys}
    return sum(size for key, size in holdings.sizes(place) if key in wanted)


def _say(log: Log, text: str) -> None:
    if log is not None:
        log(text)


@contextmanager
def _executor(scheduler: Any) -> Iterator[Executor | None]:
    """Return the workers of a cluster; None without a cluster."""
    if scheduler is None:
        yield None
        return
    with executors.executor(scheduler) as executor:
        yield executor


def _showing(progress: Progress, nodes: Iterable[Any], *, shallow: bool) -> Tracker:
    """Return what shows the progress of a copy. Elements are counted only if progress is shown."""
    arrays = list(_arrays(nodes, shallow=shallow)) if progress else []
    total, chunks = sum(int(array.nbytes) for array in arrays), sum(map(_chunks_of, arrays))
    return Tracker(progress, "copying", total, chunks=chunks)


def _arrays(nodes: Iterable[Any], *, shallow: bool) -> Iterator[Any]:
    """Yield the arrays among nodes and those below groups; for a shallow copy, only those directly in a group."""
    level, depth = list(nodes), 0
    while level:
        yield from filter(_is_array, level)
        groups = [node for node in level if not _is_array(node)]
        level = [group[name] for group in groups for name in list(group.keys())] if not (shallow and depth) else []
        depth += 1


def _chunks_of(array: Any) -> int:
    """Return the number of chunks (shards) of an array; 1 if it has none."""
    return array.nchunks if isinstance(array, Array) else 1


def _check(if_exists: str) -> None:
    if if_exists not in {"raise", "replace", "skip", "skip_initialized"}:
        raise ValueError(f"if_exists={if_exists!r}: expected 'raise', 'replace', 'skip' or 'skip_initialized'")


def _patterns(given: str | Iterable[str], flags: int) -> list[re.Pattern[str]]:
    return [re.compile(text, flags) for text in ([given] if isinstance(given, str) else given)]


class _Choice(NamedTuple):
    """Which keys are copied: those that match none of `excludes`, or one of `includes`."""

    excludes: list[re.Pattern[str]]
    includes: list[re.Pattern[str]]

    def keys(self, source: StorePath) -> Iterator[str]:
        """Yield the keys at a place that are copied, relative to it."""
        for full in holdings.keys(source):
            key = full[len(source.prefix) :]
            if not _matches(key, self.excludes) or _matches(key, self.includes):
                yield key


def _matches(key: str, patterns: list[re.Pattern[str]]) -> bool:
    return any(pattern.search(key) for pattern in patterns)


def _is_array(node: Any) -> bool:
    return hasattr(node, "shape") and hasattr(node, "dtype")


def _copy_node(job: _Job, source: Any, dest: Group, name: str) -> None:
    if _is_array(source):
        _copy_array(job, source, dest, name)
    else:
        _copy_group(job, source, dest, name)


def _copy_array(job: _Job, source: Any, dest: Group, name: str) -> None:
    there = dest.get(name)
    if there is not None and not _may_replace(job, there):
        return
    job.say(f"copy {source.name} -> {dest.store_path / name}")
    job.copied += 1
    job.nbytes += int(source.nbytes)
    replaces = there is not None or job.if_exists == "replace"  # also what a killed replacement has left
    is_moved = _can_copy_bytes(job, source, dest) or (
        job.carrying is not None and job.carrying.copies_chunks(source.store_path)
    )
    keywords = {} if is_moved else creating.like(source, {"zarr_format": dest.zarr_format, **job.options})
    keywords.pop("zarr_format", None)
    if job.options and not is_moved:
        asked = import_module("omnizarr.tools.convert.asked")
        job.losses.extend(asked.losses_of(source, dest.zarr_format, keywords))
    if job.dry_run:
        return
    chunks = _chunks_of(source)
    job.shown.begin(int(source.nbytes), str(source.name).strip("/"), chunks)
    if isinstance(source, Array):
        hierarchy.refuse_overlap(source.store_path, dest.store_path / name)
    _move_array(job, source, dest, name, keywords, replaces=replaces, chunks=chunks)
    if isinstance(source, Array):
        job.losses.extend(unshown.texts(source.store_path, source.path))


def _tell(job: _Job, source: Any) -> None:
    """Add to the losses what the store of an open file does not show of a node that was copied, and of those below."""
    if job.copied and isinstance(source, Array | Group):
        job.losses.extend(unshown.noted(source.store_path, is_array=isinstance(source, Array)))


def _move_array(
    job: _Job, source: Any, dest: Group, name: str, keywords: dict[str, Any], *, replaces: bool, chunks: int
) -> None:
    """Copy the elements of an array, with its attributes."""
    if _can_copy_bytes(job, source, dest):
        if job.executor is None or source.metadata.storage_transformers:  # the keys are not keys of chunks
            share = int(source.nbytes) // max(chunks, 1)
            on_copied = partial(job.shown.tick, share)
            replacing.copy(source.store_path, dest.store_path / name, overwrite=replaces, on_copied=on_copied)
        else:
            _convert(job, source.store_path, dest.store_path / name, overwrite=replaces)
        _clear_if_asked(job, dest.store_path / name)
        return
    if job.carrying is not None and job.carrying.copies_chunks(source.store_path):
        target = dest.store_path / name
        job.carrying.copy_array(source.store_path, target, job.executor, job.shown.tick, overwrite=replaces)
        _clear_if_asked(job, dest.store_path / name)
        return
    if not job.without_attrs:  # read before the array is replaced, which may be the source
        keywords["attributes"] = {**(keywords.get("attributes") or {}), **_attributes(job, source)}
    if job.executor is None or not np.shape(source):
        dest.create_array(name, overwrite=replaces, data=_Watched(source, job.shown.tick), **keywords)
    else:
        made = dest.create_array(name, overwrite=replaces, **keywords)
        _fill(job.executor, made, source, job.shown.tick)


class _Watched:
    """An array of any library. A function is called with the bytes of each block that is read."""

    def __init__(self, source: Any, tick: Tick) -> None:
        self.shape = tuple(source.shape)
        self.dtype = source.dtype
        self._source = source
        self._tick = tick

    def __getitem__(self, selection: Any) -> Any:
        values = np.asarray(self._source[selection])
        self._tick(values.nbytes)
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: FBT001 - NumPy's signature
        return np.asarray(self[...], dtype)


def _clear_if_asked(job: _Job, copied: StorePath) -> None:
    if job.without_attrs:
        hierarchy.update(copied, ArrayMetadata, lambda metadata: replace(metadata, attributes={}))


def _carrying(job: _Job, source: Any, dest: Group, levels: int) -> Carrying | None:
    """Return the translation of nodes into another format; None if there is none, or if it is not needed.

    For a shallow copy, this number of `levels` is translated. Foreign nodes, and arrays created with keywords of
    the user, are read and written element by element.
    """
    if job.options or not isinstance(source, Array | Group) or source.zarr_format == dest.zarr_format:
        return None
    module = import_module("omnizarr.tools.convert.carrying")
    found = detection.open_node(source.store_path)
    dialect = dialect_of(dest.store_path, dest.metadata)
    carrying: Carrying = module.Carrying(found, dialect, levels if job.shallow else None)
    return carrying


def _convert(job: _Job, source: StorePath, target: StorePath, *, overwrite: bool) -> None:
    """Copy the chunks of an array unchanged, and then its document."""
    options = {"zarr_format": None, "overwrite": overwrite, "verify": False, "strict": True}
    convert = import_module("omnizarr.tools.convert").convert
    convert(source, target, scheduler=job.executor, progress=job.shown.tick, **options)


def _fill(executor: Executor, made: Array, source: Any, tick: Tick) -> None:
    for array in (made, source):
        if isinstance(array, Array):
            where = array.store_path
            executor.expect(where.store, dialect_of(where, array.metadata).keyspace.documents(where.path).values())
    transfer.fill(made, source, executor, tick)


def _can_copy_bytes(job: _Job, source: Any, dest: Group) -> bool:
    return isinstance(source, Array) and not job.options and source.zarr_format == dest.zarr_format


def _may_replace(job: _Job, there: Any) -> bool:
    """Return whether an existing node may be replaced. Count it as skipped if not."""
    if job.if_exists == "raise":
        raise NodeExistsError(
            "there is a node already",
            store=str(there.store_path.store),
            path=there.path,
            remedy=Remedy("pass {if_exists} or 'skip'", if_exists="replace"),
        )
    if job.if_exists == "replace":
        if isinstance(there, Group):
            raise ContainsGroupError(
                "a group is in the way of an array", path=there.path, remedy="delete the group first"
            )
        return True
    if job.if_exists == "skip_initialized" and isinstance(there, Array) and not there.nchunks_initialized:
        return True
    job.say(f"skip {there.name}")
    job.skipped += 1
    return False


def _copy_group(job: _Job, source: Any, dest: Group, name: str) -> None:
    there = dest.get(name)
    if isinstance(there, Array) and not _may_replace(job, there):
        return
    _refuse_descent(source, dest.store_path / name)
    job.say(f"copy {source.name} -> {dest.store_path / name}")
    job.copied += 1
    if job.dry_run:
        made = there if isinstance(there, Group) else None
    else:
        # What a killed replacement has left is replaced, too; nodes of another group stay.
        is_left = job.if_exists == "replace" and erasing.is_begun(dest.store_path / name)
        replaces = isinstance(there, Array) or is_left
        if replaces and (job.executor is None or type(dest.store) is LocalStore):
            _replace_by_group(job, source, dest, name)
            return
        made = dest.require_group(name, overwrite=replaces)
        if not job.without_attrs:
            _copy_attributes(job, source, made)
    _copy_members(job, source, dest, name, made)


def _replace_by_group(job: _Job, source: Any, dest: Group, name: str) -> None:
    """Replace an array by a copy of a group, when that is complete."""

    def make(place: StorePath) -> None:
        made = Group.from_store(place, zarr_format=dest.metadata.dialect)
        if not job.without_attrs:
            _copy_attributes(job, source, made)
        _copy_members(job, source, dest, name, made)

    dialect = dialect_named(dest.metadata.dialect)
    where, _ = replacing.remade(dest.store_path / name, dialect, make)
    if lists_members(dest._metadata):  # noqa: SLF001 - the model
        nczarr_members.enter_new(where, GroupMetadata(dialect=dialect.name))


def _copy_members(job: _Job, source: Any, dest: Group, name: str, made: Group | None) -> None:
    for member in list(source.keys()):
        node = source[member]
        if job.shallow and not _is_array(node):
            continue
        if made is not None:
            _copy_node(job, node, made, member)
        else:  # a dry run in which nothing exists
            _copy_node(job, node, Group(dest.store_path / name, dest.metadata), member)


def _copy_each(job: _Job, source: Any, dest: Group) -> None:
    for name in list(source.keys()):
        node, copied = source[name], job.copied
        _copy_node(job, node, dest, name)
        if job.copied > copied:
            _list(job, node, dest, name)


def _list(job: _Job, source: Any, dest: Group, name: str) -> None:
    """Let NCZarr's lists name a copy, and what lies in it refer to dimensions here."""
    if job.dry_run or not isinstance(source, Array | Group):
        return
    if job.is_listing is None:
        job.is_listing = lists_members(dest._metadata) or nczarr_members.is_in_dataset(dest.store_path)  # noqa: SLF001 - the model
    if job.is_listing:
        old = source.store_path
        nczarr_members.arrive(old, dest.store_path / name, nczarr_members.listed(old).marks)


def _refuse_losses(job: _Job, source: Any, dest: Group, run: Callable[[_Job], None]) -> None:
    """Raise NotRepresentableError if codecs or the data type that are asked for lose something, before they do."""
    if not job.options:
        return
    trial = replace(job, dry_run=True, log=None, losses=[])
    run(trial)
    if trial.losses:
        where = source.store_path if isinstance(source, Array | Group) else dest.store_path
        refusal = import_module("omnizarr.tools.convert.report").would_be_lost
        raise refusal(
            where, trial.losses, Remedy("{strict} copies what can be kept, and lists the losses", strict=False)
        )


def _files(job: _Job, source: Any, target: StorePath) -> list[str]:
    """Return the files that are not Zarr below a group of ours; of a shallow copy, those directly in it.

    A file with another content that is at the target already is replaced, kept and told, or an error, as a node is.
    """
    if not isinstance(source, Group) or not source.store.supports_listing:
        return []
    found = _files_of(source) if job.carrying is None else job.carrying.files
    names = [name for name in found if not (job.shallow and "/" in name)]
    if not names or job.if_exists == "replace":
        return names
    job.kept = import_module("omnizarr.tools.convert.files").differing(source.store_path, target, names)
    if job.kept and job.if_exists == "raise":
        raise NodeExistsError(
            "there are files with another content already",
            store=str(target.store),
            path=target.path,
            found=strangers.some(job.kept),
            remedy=Remedy("pass {if_exists}", if_exists="replace") | Remedy("'skip' to keep them"),
        )
    for name in job.kept:
        job.say(f"keep {target / name}, which differs")
    return [name for name in names if name not in set(job.kept)]


def _copy_files(job: _Job, source: Any, target: StorePath, names: list[str]) -> None:
    """Copy files that are not Zarr."""
    for name in names:
        job.say(f"copy {source.store_path / name} -> {target / name}")
    if job.dry_run or not names:
        return
    found = source.store_path
    keeps: Literal["equal", "all"] = "equal" if job.if_exists == "replace" else "all"
    copier = copying.Copier(found.store, target.store, keeps, in_pieces=True)
    copier.run((found.prefix + name, target.prefix + name) for name in names)


def _files_of(group: Group) -> tuple[str, ...]:
    """Return the keys of files below a group, relative to it."""
    nodes = import_module("omnizarr.tools.streaming.nodes")
    with ExitStack() as opened:
        found = nodes.hierarchy(opened, group, None, None, None)
    files: tuple[str, ...] = strangers.of(found.top.where, nodes.metadata_of(found)).files
    return files


def _refuse_descent(source: Any, target: StorePath) -> None:
    """Raise NodeNameError if a group would be copied below itself, where the copy would include itself."""
    if isinstance(source, Group) and target.lies_in(source.store_path) and not source.store_path.lies_in(target):
        hierarchy.refuse_overlap(source.store_path, target)


def _attributes(job: _Job, source: Any) -> dict[str, Any]:
    return dict(source.attrs if job.carrying is None else job.carrying.attributes(source.store_path))


def _copy_attributes(job: _Job, source: Any, dest: Array | Group) -> None:
    if attributes := _attributes(job, source):
        dest.attrs.update(attributes)

"""Write references: look at the whole source first, then write."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from omnizarr.api.combining import combine
from omnizarr.api.opening import locate
from omnizarr.errors import NotRepresentableError, Remedy, Setting, StoreLimitError, Wording
from omnizarr.formats import dialect_named
from omnizarr.formats.contract import Dialect
from omnizarr.model import grids
from omnizarr.nodes import detection
from omnizarr.nodes.lazy.store import LazyStore
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.nodes.placement import Placement
from omnizarr.settings import config
from omnizarr.stores import kinds
from omnizarr.support.progress import Progress, Tracker
from omnizarr.tools.refs import gathering, joined, kerchunk, repository
from omnizarr.tools.refs.destinations import Destination
from omnizarr.tools.refs.gathering import Described, Gathered, Laid
from omnizarr.tools.refs.report import ArrayReferences, WrittenReferences

_ending = re.compile(r".*\.(?:(json)(?:\.(gz|zst))?|(parq|parquet))", re.IGNORECASE | re.DOTALL).fullmatch
_FORMATS: Final = {2: "v2", 3: "v3"}
_LARGEST_RECORD: Final = 10**7


@dataclass(frozen=True, slots=True)
class Task:
    """The arguments of `omnizarr.references`."""

    source: Any
    destination: str | os.PathLike[str]
    path: str | None
    along: str | None
    zarr_format: int | None
    inner: bool
    inline_threshold: int
    relative: bool
    record_size: int
    overwrite: bool
    progress: Progress
    storage_options: Mapping[str, Any] | None
    message: str | None = None

    def check(self) -> tuple[bool, str]:
        """Return whether to write Parquet, and how to compress JSON. Raises ValueError."""
        if self.message is not None and not self.is_repository:
            raise ValueError(Wording("{message}: only repositories of Icechunk have commits", message=self.message))
        match = None if self.is_repository else _ending(os.fspath(self.destination).rstrip("/"))
        if match is None and not self.is_repository:
            raise ValueError(
                f"{os.fspath(self.destination)!r}: expected a name that ends in .json, .json.gz, .json.zst, .parq or "
                ".parquet, or a branch in a repository of Icechunk, such as icechunk:///data/repo@main"
            )
        if self.zarr_format is not None and self.zarr_format not in _FORMATS:
            raise ValueError(Wording("{zarr_format}: expected 2 or 3", zarr_format=self.zarr_format))
        if not 0 < self.record_size <= _LARGEST_RECORD:
            raise ValueError(Wording(f"{{record_size}}: expected 1 to {_LARGEST_RECORD}", record_size=self.record_size))
        if self.inline_threshold < 0:
            raise ValueError(Wording("{inline_threshold}: expected 0 or more", inline_threshold=self.inline_threshold))
        if match is None:
            return False, ""
        return match[3] is not None, (match[2] or "").lower()

    @property
    def is_repository(self) -> bool:
        """Whether to write virtual chunks of Icechunk."""
        return kinds.is_icechunk(self.destination)


def run(task: Task) -> WrittenReferences:
    """Write the references."""
    is_parquet, compression = task.check()
    if task.is_repository:
        return _commit(task)
    destination = Destination.of(task.destination, task.storage_options)
    destination.check(is_directory=is_parquet, overwrite=task.overwrite)
    given = _described(task)
    if is_parquet and task.zarr_format == 3:
        raise NotRepresentableError(
            "references in Parquet have documents of Zarr v2 only",
            remedy=Remedy("write JSON") | Remedy("leave out {zarr_format}", zarr_format=3),
        )
    first = dialect_named(_FORMATS[task.zarr_format or 2])
    is_free = task.zarr_format is None and not is_parquet
    if not is_free:
        gathering.gathered(given, first)  # raises the errors of documents before all chunks are looked for
    placed = _placed(task, given)
    dialect, found = _gathered(given, placed, first, is_free=is_free)
    if not is_parquet:
        _check_count(found, placed)
    rename = _renaming(destination) if task.relative else _unchanged
    if is_parquet:
        with destination.folder_for() as folder:
            kerchunk.write_parquet(folder, found, placed, rename, task.record_size)
        nbytes = folder.nbytes
    else:
        nbytes = destination.write_file(
            lambda file: kerchunk.write_json(file, found, placed, rename, compression), overwrite=task.overwrite
        )
    return WrittenReferences(
        destination=destination.text,
        kind="parquet" if is_parquet else "json",
        zarr_format=int(dialect.zarr_format),
        groups=found.groups,
        arrays=tuple(_report(laid, placed[laid.path]) for laid in found.arrays),
        nbytes=nbytes,
        remarks=found.remarks,
    )


def _commit(task: Task) -> WrittenReferences:
    """Write virtual chunks of Icechunk."""
    if task.relative:
        raise ValueError(Wording("{relative}: Icechunk names files by URLs", relative=True))
    if task.zarr_format == 2:
        raise NotRepresentableError(
            "Icechunk holds Zarr v3 only", remedy=Remedy("leave out {zarr_format}", zarr_format=2)
        )
    given, dialect = _described(task), dialect_named(_FORMATS[3])
    gathering.gathered(given, dialect)
    placed = _placed(task, given)
    missing = {path for path, each in placed.items() if each.count < math.prod(each.grid_shape)}
    found = gathering.gathered(given, dialect, missing)
    destination = os.fspath(task.destination)
    commit, nbytes = repository.write(
        destination,
        found,
        placed,
        overwrite=task.overwrite,
        message=task.message or "Write references",
        options=task.storage_options,
    )
    return WrittenReferences(
        destination=destination,
        kind="icechunk",
        zarr_format=int(dialect.zarr_format),
        groups=found.groups,
        arrays=tuple(_report(laid, placed[laid.path]) for laid in found.arrays),
        nbytes=nbytes,
        remarks=(f"committed to {commit}", *found.remarks),
    )


def _described(task: Task) -> Described:
    source = task.source
    if task.along is not None:
        source = combine(source, task.along, storage_options=task.storage_options)
    elif isinstance(source, LazyArray):
        source = LazyStore({"": source})
    where, _ = locate(source, task.path, "r", task.storage_options)
    if isinstance(where.store, LazyStore):
        return joined.described(where, where.store, inner=task.inner)
    return gathering.described(detection.open_node(where), inner=task.inner)


def _gathered(
    given: Described, placed: Mapping[str, Placement], first: Dialect, *, is_free: bool
) -> tuple[Dialect, Gathered]:
    """Return what the references say, and in which format: the first, or if that loses something, Zarr v3."""
    missing = {path for path, each in placed.items() if each.count < math.prod(each.grid_shape)}
    try:
        found = gathering.gathered(given, first, missing)
    except NotRepresentableError as error:
        if not is_free:
            raise
        reason = error.message
    else:
        if not (is_free and found.losses):
            return first, found
        reason = found.losses[0]
    other = dialect_named(_FORMATS[3])
    found = gathering.gathered(given, other, missing)
    remark = f"the documents are Zarr v3, which not all readers of references know; in v2, {reason}"
    return other, replace(found, remarks=(*found.remarks, remark))


def _placed(task: Task, given: Described) -> dict[str, Placement]:
    """Return where the chunks of each array lie."""
    placed: dict[str, Placement] = {}
    with Tracker(task.progress, "looking for chunks", unit="chunk") as shown:
        for path, place in given.places.items():

            def tick(count: int, path: str = path) -> None:
                shown.count(count, path=path)

            placed[path] = place(tick).inlined(task.inline_threshold)
    return placed


def _check_count(found: Gathered, placed: Mapping[str, Placement]) -> None:
    """Raise StoreLimitError if there are more references than readers of JSON keep."""
    number, most = sum(each.count for each in placed.values()), int(config.get("references.max_count"))
    if number + len(found.documents) > most:
        raise StoreLimitError(
            "there are more references than can be read from JSON",
            found=f"{number:,}",
            expected=f"at most {most:,}",
            remedy=Remedy("write them as Parquet, to a name that ends in .parq")
            | Remedy("raise {setting}", setting=Setting("references.max_count")),
        )


def _unchanged(names: Sequence[str]) -> Sequence[str]:
    return names


def _renaming(destination: Destination) -> Callable[[Sequence[str]], Sequence[str]]:
    """Return a function that names files below the directory of the references by relative paths."""
    folder = destination.folder
    return lambda names: [name.removeprefix(folder) for name in names]


def _report(laid: Laid, found: Placement) -> ArrayReferences:
    shape = grids.bind(laid.metadata.chunk_grid, laid.metadata.shape).chunk_shape
    return ArrayReferences(
        path=laid.path,
        shape=laid.metadata.shape,
        chunk_shape=shape or (),
        chunks=len(found.numbers),
        inlined=len(found.values),
        missing=math.prod(found.grid_shape) - found.count,
        files=len(np.unique(found.files)),
        nbytes=int(found.lengths.sum()),
    )

"""Conversions with a netCDF file at one end, or at both: through the data model of netCDF, not through Zarr's.

What is written is read again and compared: types, attributes with their types, and values bit for bit.

Spec: NCZarr, "The NCZarr Data Model".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ChunkError, NodeExistsError, NotRepresentableError
from omnizarr.netcdf import copying, files
from omnizarr.netcdf.dataset import Dataset
from omnizarr.netcdf.header import GroupHeader, Source, VariableHeader
from omnizarr.netcdf.types import UserType
from omnizarr.tools.converting.account import Conversion, NodeReport
from omnizarr.tools.translation import Loss

SUFFIXES: Final = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf")
_ZARR: Final = {2: "v2", 3: "v3"}
_FILE: Final = "netCDF-4"


def concerns(source: Any, target: Any) -> bool:
    """Whether a netCDF file is to be read or written."""
    return is_file(source) or is_target(target)


def is_file(place: Any) -> bool:
    """Whether there is a netCDF file at a place."""
    return isinstance(place, str | os.PathLike) and "://" not in str(place) and files.is_netcdf(place)


def is_target(place: Any) -> bool:
    """Whether a place is called as netCDF files are, and is no directory."""
    if not isinstance(place, str | os.PathLike) or "://" in str(place):
        return False
    return str(place).lower().endswith(SUFFIXES) and not Path(place).is_dir()


def run(
    source: Any,
    target: Any,
    *,
    zarr_format: int | str,
    overwrite: bool,
    verify: bool,
    dry_run: bool,
    strict: bool,
    progress: Callable[..., Any] | None,
    refused: Mapping[str, Any],
) -> Conversion:
    """Convert, as `omnizarr.convert` says; `refused` are the keywords that mean nothing here."""
    _check_keywords(refused, zarr_format, is_target(target))
    began = time.monotonic()
    with _opened(source) as (found, kind):
        root, losses = _planned(found.root, to_file=is_target(target))
        if strict and losses:
            raise NotRepresentableError(
                f"{losses[0].what}: {losses[0].why}", path=losses[0].path, remedy="convert without strict=True"
            )
        report = Conversion(
            source=str(source),
            target="" if target is None else str(target),
            source_format=kind,
            target_format=_FILE if is_target(target) else _ZARR[int(zarr_format)],
            nodes=(),
            dry_run=dry_run,
            verify=verify,
        )
        if dry_run:
            return replace(report, nodes=tuple(_reports(root, found.root, losses, verified=False)))
        planned = Source(root, found.read)
        if is_target(target):
            told = files.write_file(target, planned, overwrite=overwrite, progress=progress)
            losses = tuple(dict.fromkeys((*losses, *(Loss(**each._asdict()) for each in told))))
        else:
            _write_zarr(target, planned, int(zarr_format), overwrite=overwrite, progress=progress)
        if verify:
            with _opened(target) as (written, _):
                _compare(planned, written, losses)
    nodes = tuple(_counted(target, _reports(root, found.root, losses, verified=verify)))
    return replace(report, nodes=nodes, seconds=time.monotonic() - began)


def _check_keywords(refused: Mapping[str, Any], zarr_format: int | str, is_file: bool) -> None:  # noqa: FBT001
    given = [name for name, value in refused.items() if value not in (None, False, "keep")]
    if given:
        raise ValueError(f"{', '.join(given)}: without meaning where a netCDF file is converted")
    if not is_file and zarr_format not in _ZARR:
        raise ValueError(f"zarr_format={zarr_format!r}: netCDF stands on 2 and 3")


@contextmanager
def _opened(place: Any) -> Iterator[tuple[Source, str]]:
    if is_file(place):
        with files.open_file(place) as source:
            yield source, _FILE
        return
    with Dataset(place) as dataset:
        yield dataset.source(), _ZARR[dataset.zarr_format]


def _planned(root: GroupHeader, *, to_file: bool) -> tuple[GroupHeader, tuple[Loss, ...]]:
    """Return what can be written, and what cannot."""
    if to_file:
        planned = files.plan(root)
        return root, tuple(Loss(**each._asdict()) for each in planned.losses)
    losses: list[Loss] = []
    return _without_user_types(root, "", losses), tuple(losses)


def _without_user_types(group: GroupHeader, path: str, losses: list[Loss]) -> GroupHeader:
    kept = {}
    for name, each in group.variables.items():
        if isinstance(each.type, UserType):
            why = "NCZarr has no types that a program defines"
            losses.append(Loss(f"{path}{name}", "", f"variable of type {each.type.name} ({each.type.kind})", why))
        else:
            kept[name] = each
    below = {name: _without_user_types(each, f"{path}{name}/", losses) for name, each in group.groups.items()}
    return replace(group, variables=kept, groups=below, types={})


def _write_zarr(
    target: Any, source: Source, zarr_format: int, *, overwrite: bool, progress: Callable[..., Any] | None
) -> None:
    total = sum(_nbytes(source.root))
    bar = None if progress is None else progress(total=total, desc="writing", unit="B", unit_scale=True)
    try:
        with Dataset(target, "w" if overwrite else "x", zarr_format=zarr_format) as dataset:
            copying.write(dataset, source, progress=None if bar is None else bar.update)
    except NodeExistsError as error:
        error.remedy = "replace it with overwrite=True"
        raise
    finally:
        if bar is not None:
            bar.close()


def _nbytes(root: GroupHeader) -> Iterator[int]:
    sizes = root.sizes()
    for _, group in root.walk():
        for each in group.variables.values():
            count = int(np.prod([sizes[name].size for name in each.dimensions], dtype=object))
            yield count * each.type.dtype.itemsize


def _reports(
    root: GroupHeader, found: GroupHeader, losses: tuple[Loss, ...], *, verified: bool
) -> Iterator[NodeReport]:
    """Yield what became of each group and variable."""
    kept = {f"{path}/{name}" for path, group in root.walk() for name in group.variables}
    lost = {f"/{each.path}" for each in losses if not each.pointer and not each.kept}
    for path, group in found.walk():
        at = path[1:]
        yield NodeReport(at, "group", "documents", losses=_of(losses, at), remarks=_remarks(group))
        for name, each in group.variables.items():
            full = f"{path}/{name}"
            is_lost = full not in kept or full in lost
            yield NodeReport(
                full[1:],
                "array",
                "left out" if is_lost else "encoded",
                losses=_of(losses, full[1:]),
                remarks=_remarks(each),
                verified="values" if verified and not is_lost else "",
            )


def _counted(target: Any, nodes: Iterator[NodeReport]) -> Iterator[NodeReport]:
    """Yield reports with the chunks that were written, and their size; of a file its size alone, with the root."""
    if is_target(target):
        for each in nodes:
            yield replace(each, nbytes=0 if each.path else Path(target).stat().st_size)
        return
    with Dataset(target) as dataset:
        for each in nodes:
            if each.how != "encoded":
                yield each
                continue
            array = dataset[each.path].array
            yield replace(each, chunks=array.nchunks_initialized, nbytes=array.nbytes_stored())


def _of(losses: tuple[Loss, ...], path: str) -> tuple[Loss, ...]:
    return tuple(each for each in losses if each.path == path)


def _remarks(header: GroupHeader | VariableHeader) -> tuple[str, ...]:
    return tuple(note.message for note in header.notes)


def _compare(source: Source, written: Source, losses: tuple[Loss, ...]) -> None:
    """Raise ChunkError if something that was written is not what it should be, and nobody said so."""
    excused = {each.path for each in losses}
    theirs = dict(written.root.walk())
    for path, group in source.root.walk():
        for name, each in group.variables.items():
            at = f"{path}/{name}"
            if at[1:] in excused:
                continue
            found = theirs[path].variables.get(name) if path in theirs else None
            if found is None or dict(found.attributes) != dict(each.attributes) or found.type != each.type:
                raise ChunkError("what was written has another type, or other attributes", path=at[1:])
            _compare_data(source, written, at, each)


def _compare_data(source: Source, written: Source, name: str, header: VariableHeader) -> None:
    sizes = source.root.sizes()
    for selection in copying.slabs(tuple(sizes[each].size for each in header.dimensions), header.type.dtype.itemsize):
        ours, theirs = source.read(name, selection), written.read(name, selection)
        if not _same(ours, theirs):
            raise ChunkError("what was written differs from what was read", path=name[1:], found=f"at {selection}")


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.dtype == object:
        return one.shape == other.shape and bool(np.all(one == other))
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()

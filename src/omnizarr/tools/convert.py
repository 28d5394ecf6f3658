"""Converting arrays and whole hierarchies from one format to another."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.converting.account import Conversion


def convert(
    source: Any,
    target: Any = None,
    *,
    zarr_format: int | str = 3,
    path: str | None = None,
    source_format: int | str | None = None,
    chunks: Any = None,
    shards: Any = None,
    filters: Any = "keep",
    serializer: Any = "keep",
    compressors: Any = "keep",
    codecs: Any = None,
    overwrite: bool = False,
    resume: bool = False,
    verify: bool = True,
    dry_run: bool = False,
    in_place: bool = False,
    remove_old: bool = False,
    strict: bool = False,
    allow_pickle: bool = False,
    concurrency: int | None = None,
    progress: Callable[..., Any] | None = None,
    storage_options: Any = None,
) -> Conversion:
    """Convert an array, or a group with all below it, to another format; or a netCDF file to Zarr, and back.

    Chunks whose bytes mean the same in both formats are copied as they are; others are decoded and encoded anew, in
    parallel and in bounded memory. An array appears in the target when it is complete and has been compared with the
    source. A conversion that is interrupted, in whatever way, can be resumed. The source is never written to.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mutable mapping
        What is converted. A file of netCDF-3 or netCDF-4 becomes NCZarr, with the types of its attributes, its
        dimensions and its filters; all options of chunks, and `resume`, are without meaning then.
    target : the same, optional
        Where to. May be left out in a dry run, and must be if `in_place`. A path that ends with ``.nc``, ``.nc4``,
        ``.cdf`` or ``.netcdf``: a netCDF-4 file of what `omnizarr.netcdf.Dataset` sees.
    zarr_format : int or str
        The format wanted: 1, 2, 3, ``"3-draft2019"``, ``"3-draft2020"``.
    path : str, optional
        Path in the source of the node to convert.
    source_format : int or str, optional
        Where documents of several formats lie side by side, those to read.
    chunks, shards, filters, serializer, compressors, codecs
        As for `create_array`; what is not given stays as it is. In a hierarchy, lengths of chunks (and of shards) are
        for the arrays that have as many dimensions.
    overwrite : bool
        Replace what is at the target.
    resume : bool
        Continue a conversion that was interrupted. One that is complete is left alone.
    verify : bool
        Read the target again and compare it with the source, bit for bit, before an array gets its document.
    dry_run : bool
        Write nothing, but say what would be done, and what would be lost.
    in_place : bool
        Write documents of another format beside those that are there, and leave chunks where they are. Refused if any
        chunk could not stay as it is.
    remove_old : bool
        With `in_place`: remove the documents of the old format.
    strict : bool
        Raise NotRepresentableError, before anything is written, if something would be lost.
    allow_pickle : bool
        Let pickled objects be read, which can run any code.
    concurrency : int, optional
        Chunks in flight at a time; default: what suits the machine.
    progress : callable, optional
        Such as ``tqdm.tqdm``: is called with ``total=``, ``desc=``, ``unit="B"`` and ``unit_scale=True``, and returns
        something with the methods ``update(n)`` and ``close()``.
    storage_options : mapping, optional
        For stores that take them.

    Returns
    -------
    Conversion
        What was done with each node, and what could not be carried; ``print`` shows it in plain words.

    Raises
    ------
    NodeNotFoundError
        If there is nothing at the source.
    NodeExistsError
        If there is something at the target, or an unfinished conversion, and neither `overwrite` nor `resume`; or if
        what should be resumed is another conversion.
    NotRepresentableError
        If something would be lost and `strict`; if `in_place` is not possible.
    NodeNameError
        If source and target lie in each other.
    ChunkError
        If a chunk of the source cannot be decoded, or if the target differs from the source.
    ReadOnlyError, StoreError

    Examples
    --------
    >>> import omnizarr
    >>> old = omnizarr.create_group({}, zarr_format=2)
    >>> old["temp"] = [280.5, 281.0]
    >>> new = {}
    >>> done = omnizarr.convert(old, new, zarr_format=3)
    >>> done.is_lossless, done.verified
    (True, True)
    >>> omnizarr.open(new)["temp"][...]
    array([280.5, 281. ])
    """
    options = {
        "chunks": chunks,
        "shards": shards,
        "filters": filters,
        "serializer": serializer,
        "compressors": compressors,
        "codecs": codecs,
    }
    if _may_be_files(source, target):
        through_netcdf = import_module("omnizarr.tools.converting.netcdf")
        if through_netcdf.concerns(source, target):
            others = {"path": path, "source_format": source_format, "resume": resume, "in_place": in_place}
            account: Conversion = through_netcdf.run(
                source,
                target,
                zarr_format=zarr_format,
                overwrite=overwrite,
                verify=verify,
                dry_run=dry_run,
                strict=strict,
                progress=progress,
                refused={**others, "remove_old": remove_old, "storage_options": storage_options, **options},
            )
            return account
    run = import_module("omnizarr.tools.converting.run").run
    report: Conversion = run(
        source,
        target,
        zarr_format=zarr_format,
        path=path,
        source_format=source_format,
        options=options,
        overwrite=overwrite,
        resume=resume,
        verify=verify,
        dry_run=dry_run,
        in_place=in_place,
        remove_old=remove_old,
        strict=strict,
        allow_pickle=allow_pickle,
        concurrency=concurrency,
        progress=progress,
        storage_options=storage_options,
    )
    return report


def _may_be_files(*places: Any) -> bool:
    """Whether a place is a path, which may be that of a netCDF file."""
    texts = [str(place) for place in places if isinstance(place, str | os.PathLike)]
    return any("://" not in text or text.startswith("file://") for text in texts)

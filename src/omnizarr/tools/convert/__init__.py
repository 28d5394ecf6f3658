"""Converting arrays and whole hierarchies from one format to another.

The parts of a conversion: a plan, moving and comparing chunks, a journal, and a report.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from omnizarr.errors import Wording
from omnizarr.stores import kinds

if TYPE_CHECKING:
    from omnizarr.nodes.labels import Label
    from omnizarr.support.progress import Progress
    from omnizarr.tools.convert.report import Conversion
    from omnizarr.tools.convert.task import Task


def convert(
    source: Any,
    target: Any = None,
    *,
    zarr_format: int | str | None = 3,
    path: str | None = None,
    select: Mapping[str, Label] | None = None,
    source_format: int | str | None = None,
    chunks: Any = None,
    shards: Any = None,
    filters: Any = "keep",
    serializer: Any = "keep",
    compressors: Any = "portable",
    codecs: Any = None,
    strings: Literal["keep", "fixed"] = "keep",
    overwrite: bool = False,
    resume: bool = False,
    verify: bool = True,
    dry_run: bool = False,
    estimate: bool = False,
    in_place: bool = False,
    remove_old: bool = False,
    strict: bool = False,
    allow_pickle: bool = False,
    concurrency: int | None = None,
    scheduler: Any = None,
    max_memory: int | str | None = None,
    temporary: Any = None,
    progress: Progress = None,
    storage_options: Any = None,
    references: Literal["inside", "trusted"] | Sequence[str] | None = None,
    message: str | None = None,
    ome_version: str | None = None,
    convention: str | None = None,
) -> Conversion:
    """Convert an array, or a group with everything below it, to another format; or a netCDF file to Zarr, and back.

    Chunks whose bytes mean the same in both formats are copied unchanged; others are decoded and encoded again, in
    parallel and in bounded memory. An array appears in the target when it is complete and has been compared with the
    source. An interrupted conversion can be resumed. The source is never changed. Unreadable chunks of the source do
    not stop the conversion; the result lists them. Files that are not Zarr are copied unchanged.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mutable mapping
        The source. A netCDF-3 or netCDF-4 file becomes NCZarr, with the types of its attributes, its dimensions and its
        filters; then the options for chunks, and `resume`, do not apply.
    target : the same, optional
        The target. Optional in a dry run, and not allowed with `in_place`. A path that ends with ``.nc``, ``.nc4``,
        ``.cdf``, ``.netcdf``, ``.h5`` or ``.hdf5`` becomes a netCDF-4 file with the contents of
        `omnizarr.netcdf.Dataset`. New directories with names of other files, such as ``.tif``, are refused.
    zarr_format : int or str
        The target format: 1, 2, 3, ``"3-draft2019"``, ``"3-draft2020"``; None: the format of the source.
    path : str, optional
        Path in the source of the node to convert.
    select : mapping of str to label, optional
        The part to convert: coordinates by the name of a dimension, as for `omnizarr.get`, such as
        ``{"time": slice("2000", "2001"), "lat": slice(40, 50)}``. All arrays with the dimension are cut, coordinates
        and their bounds included; others are taken whole, and attributes stay. A single value drops its dimension.
        Chunks that lie in the part entirely are copied unchanged if they begin where a chunk of the copy begins.
        Files that are not Zarr are left out.
    source_format : int or str, optional
        The format to read, if the source has documents of several formats.
    chunks, shards, filters, serializer, compressors, codecs
        As for `create_array`; options that you do not pass stay as in the source. In a hierarchy, lengths of chunks
        (and of shards) apply to arrays with the same number of dimensions; chunks never become longer than the array.
        ``shards="auto"`` makes shards of about 64 MiB of elements, with the shape that `advise` recommends, from the
        chunks that an array has or that you pass; arrays of one chunk get none. With ``chunks="auto"``, chunks are also
        those of `advise`. Compressors and checksums that few readers of v3 know are replaced in v3;
        ``compressors="keep"`` keeps them.
    strings : {"keep", "fixed"}
        "fixed": strings of any length become strings of the length of the longest element, for readers that have no
        others. All strings are read twice, first to measure them. Arrays with strings that are too
        long for that are left out, with the reason.
    overwrite : bool
        Replace what is at the target.
    resume : bool
        Continue an interrupted conversion. A complete one is not changed.
    verify : bool
        Read the target again and compare it with the source, bit for bit, before an array gets its document.
    dry_run : bool
        Write nothing; report what would be done and lost.
    estimate : bool
        A dry run that also decodes and encodes a few chunks of each array, to estimate how many objects, bytes and
        seconds the conversion would take: the `estimate` of the result, and of each of its nodes.
    in_place : bool
        Write documents of another format next to the existing ones, and keep the chunks. Raises an error if any chunk
        cannot stay unchanged.
    remove_old : bool
        With `in_place`: remove the documents of the old format.
    strict : bool
        Raise NotRepresentableError, before anything is written, if something would be lost; raise ChunkError, before
        the array appears in the target, if a chunk of the source is broken.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    concurrency : int, optional
        Number of chunks in flight at once. The default is what suits the machine. On a cluster, this applies to
        each task.
    scheduler : distributed.Client, str or Cluster, optional
        A dask.distributed cluster whose workers move and compare the chunks, as a client or an address
        (``"tcp://10.0.0.1:8786"``); they must reach both stores, by the same names. No two tasks write the same
        chunk (or shard) of the target, and the work of a worker that died is repeated. The default is threads
        of this process.
    max_memory : int or str, optional
        A number, or text such as ``"500MB"`` or ``"2GiB"``:
        bytes of elements in memory at once, in addition to chunks that are being decoded or encoded. The
        default is 96 MiB, or less by the setting ``bytes_in_flight``, unless one chunk has more.
        On a cluster, this applies to each task; a worker runs as many tasks at once as it has threads. If
        this memory would require reading the source more than twice, the elements go through temporary objects,
        which together are as large as the array in memory.
    temporary : path, URL, Store, StorePath or mutable mapping, optional
        The place of temporary objects until an array is complete. The default is beside the target; for an
        archive or a database, a directory beside its file.
    progress : bool, callable or bar, optional
        True: a bar in a terminal or a notebook, and a line every ten seconds elsewhere, with bytes, chunks, rate and
        time left. A callable, such as ``tqdm.tqdm``, is called with ``total=``, ``desc=``, ``unit="B"`` and
        ``unit_scale=True``, and returns a bar with the methods ``update(n)`` and ``close()``; ``set_postfix_str``,
        if it exists, is called with the path of the current array. You can also pass the bar itself, which stays
        open, or a function that takes only a number, which is called with each increase.
    storage_options : mapping, optional
        For stores that take them: source and target, if they are URLs.
    references : {"inside", "trusted"} or list of str, optional
        Which other files the source may use: references of Kerchunk, and external links, external storage and virtual
        datasets of an HDF5 file. "inside": those in its own directory and below; "trusted": all that you can read; a
        list: those below these paths and URLs too. The default of references is what
        `ReferenceStore` says, that of HDF5 files is "inside".
    message : str, optional
        Message of the commit, if the target is a branch of a repository of Icechunk, such as
        ``"icechunk:///data/repo@main"``. The repository is created if there is none. All is committed at once, when it
        is complete and compared; otherwise nothing is.
    convention : {"nz", "geozarr", "cf", "gdal"}, optional
        "nz": write NZ-1.0, a draft of netCDF's conventions for Zarr v3: all dimensions have names, and one length per
        name in a group; attributes have types; ``_FillValue`` is a number. Others say where arrays lie on the earth,
        as any of them, or a GeoTIFF, says it: "geozarr" as ``proj:`` and ``spatial:`` (in v3), "cf" as a grid mapping,
        "gdal" as ``_CRS``, both with coordinates. What is there stays; what is not exact is reported as lost. With the
        package pyproj, systems are translated between all forms, without it only where their text stays the same.
    ome_version : {"0.5", "0.6"}, optional
        The version of OME-Zarr that images in Zarr v3 become. By default, images of Zarr v2 become 0.5, and others stay
        unchanged. What 0.5 cannot say, such as scenes and other coordinate systems, is reported as lost.

    Returns
    -------
    Conversion
        A report for each node, with what could not be kept, and which chunks of the source cannot be read.
        ``print`` shows it in plain words.

    Raises
    ------
    NodeNotFoundError
        If the source does not exist.
    NodeExistsError
        If the target exists, or has an unfinished conversion, and neither `overwrite` nor `resume` is True; or
        if `resume` is True and the unfinished conversion is another one.
    NotRepresentableError
        If something would be lost and `strict` is True; if `in_place` is not possible.
    NodeNameError
        If the target is within the source, or vice versa.
    ChunkError
        If the target differs from the source; if a chunk of the source cannot be decoded, and `strict` is True
        or the target is a netCDF file.
    SettingError
        If the name of a new target is that of a file of another format.
    MetadataError
        If lengths of chunks are not valid; if one length for all dimensions makes chunks of more than 256 MiB.
    SelectionError
        If no array has a dimension that is selected, or there is no such place on it.
    SchedulerError
        If the cluster cannot be reached, loses all workers, or has workers that cannot reach source or target.
        You can resume the conversion, with or without the cluster.
    ConflictError
        If others have changed the same nodes of a repository of Icechunk meanwhile.
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
    >>> lat = old.create_array("lat", data=[40, 50])
    >>> old["lat"].attrs["_ARRAY_DIMENSIONS"] = old["temp"].attrs["_ARRAY_DIMENSIONS"] = ["lat"]
    >>> north = {}
    >>> _ = omnizarr.convert(old, north, select={"lat": slice(45, None)})
    >>> omnizarr.open(north)["temp"][...], omnizarr.open(north)["lat"][...]
    (array([281.]), array([50]))
    """
    return _run(locals())


def rechunk(
    source: Any,
    target: Any = None,
    *,
    chunks: Any = None,
    shards: Any = None,
    path: str | None = None,
    zarr_format: int | str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    verify: bool = True,
    dry_run: bool = False,
    concurrency: int | None = None,
    scheduler: Any = None,
    max_memory: int | str | None = None,
    temporary: Any = None,
    progress: Progress = None,
    storage_options: Any = None,
) -> Conversion:
    """Copy an array, or a group with everything below it, with other chunks; everything else stays the same.

    This is `convert` to the same format: in parallel and in bounded memory. The source is read at most twice, each
    chunk of the target is written once and compared with the source, and an interrupted run can be resumed. A dry run
    shows the passes.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mutable mapping
    target : the same, optional
        The target, which cannot be the source itself. Optional in a dry run.
    chunks, shards
        As for `create_array`; pass at least one of them. With ``chunks`` alone there are no shards. In a hierarchy,
        lengths apply to arrays with the same number of dimensions; chunks never become longer than the array.
    path : str, optional
        Path in the source of the node.
    zarr_format : int or str, optional
        Another format, as for `convert`.
    overwrite, resume, verify, dry_run, concurrency, scheduler, max_memory, temporary, progress, storage_options
        As for `convert`.

    Returns
    -------
    Conversion
        A report for each node; ``print`` shows it in plain words.

    Raises
    ------
    ValueError
        If neither ``chunks`` nor ``shards`` is given, or one chunk of the target needs more than `max_memory`.
    MetadataError
        If the lengths are not valid; if one length for all dimensions makes chunks of more than 256 MiB.
    NodeNotFoundError, NodeExistsError, NodeNameError, ChunkError, SchedulerError, ReadOnlyError, StoreError
        As `convert`.

    Examples
    --------
    >>> import omnizarr
    >>> days = omnizarr.create_array({}, data=[[1, 2, 3], [4, 5, 6]], chunks=(1, 3))
    >>> points = {}
    >>> omnizarr.rechunk(days, points, chunks=(2, 1)).verified
    True
    >>> omnizarr.open(points).chunks
    (2, 1)
    """
    if chunks is None and shards is None:
        raise ValueError("give chunks, or shards, or both")
    return _run(locals())


def _run(keywords: dict[str, Any]) -> Conversion:
    task: Task = import_module("omnizarr.tools.convert.task").Task(**keywords)
    if kinds.is_icechunk(task.target):
        in_repository: Conversion = import_module("omnizarr.tools.convert.repositories").run(task, _converted)
        return in_repository
    if task.message is not None:
        raise ValueError(Wording("{message}: only repositories of Icechunk have commits", message=task.message))
    return _converted(task)


def _converted(task: Task) -> Conversion:
    if _may_be_files(task.source, task.target):
        extension = import_module("omnizarr.tools.extension").extension()
        if extension.concerns(task.source, task.target):
            if task.select:
                task = import_module("omnizarr.tools.convert.selecting").of_task(task, extension)
            of_file: Conversion = extension.convert(task)
            return of_file
    if _may_lead_to_file(task.source):
        extension = import_module("omnizarr.tools.extension").extension()
        if extension.shows(task):
            shown: Conversion = extension.convert(task)
            return shown
    report: Conversion = import_module("omnizarr.tools.convert.converter").run(task)
    return report


def _may_lead_to_file(source: Any) -> bool:
    """Return whether a source may be a netCDF or HDF5 file behind a URL or in an archive."""
    if isinstance(source, str):
        return kinds.leads_to_file(source)
    store: Any = getattr(source, "store", None)
    return type(source).__name__ == "StorePath" and store.about().get("format") in {"HDF5", "netCDF-3"}


def _may_be_files(*places: Any) -> bool:
    """Return whether a place is a path, and so may be a netCDF file."""
    texts = [str(place) for place in places if isinstance(place, str | os.PathLike)]
    return any("://" not in text or text.startswith("file://") for text in texts)

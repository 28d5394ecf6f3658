"""References: small files that name the stored chunks of hierarchies, so that other programs read them in place."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.refs.report import WrittenReferences


def references(
    source: Any,
    destination: Any,
    *,
    path: str | None = None,
    along: str | None = None,
    zarr_format: int | None = None,
    inner: bool = False,
    inline_threshold: int = 0,
    relative: bool = False,
    record_size: int = 100_000,
    overwrite: bool = False,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
    message: str | None = None,
) -> WrittenReferences:
    """Write references, of Kerchunk or in Icechunk, to the chunks of an array, or of a group with everything below it.

    References say for each chunk in which file, and at which byte, it lies. Nothing is copied: fsspec with zarr-python,
    xarray, VirtualiZarr and, in JSON, GDAL read the chunks where they are. Chunks that are not stored stay missing.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mapping
        The hierarchy: a directory, a zip archive whose entries are not compressed, a bucket, a web server, an HDF5 or
        netCDF-4 file, or references, whose files are referred to directly. Or a join of them: what `combine`,
        `concat`, `stack` and `block` return, and saved views.
    destination : str or os.PathLike
        Path or URL of the references: a file that ends in ``.json``, ``.json.gz`` or ``.json.zst``, or a directory that
        ends in ``.parq`` or ``.parquet``. Parquet is read in parts, as needed, and suits large arrays. A branch in a
        repository of Icechunk, such as ``icechunk:///data/repo@main``, gets one commit with virtual chunks.
    path : str, optional
        Path in the source of the node that becomes the root.
    along : str, optional
        The sources are several groups, or a pattern of paths, which become one along this dimension: as by `combine`.
    zarr_format : {2, 3}, optional
        Format of the documents. The default is 2, which all readers of references know; and 3 for JSON if 2 cannot
        express an array, such as one with shards, or would change what xarray reads.
    inner : bool
        Whether to refer to the inner chunks of shards, as chunks of an array without shards, instead of whole shards.
    inline_threshold : int
        Chunks of fewer bytes are put into the references themselves, such as those of small coordinates.
    relative : bool
        Whether to name files in the directory of the references, and below, by relative paths, so that you can move
        them together. omnizarr and GDAL resolve these beside the references; fsspec does in the current directory.
    record_size : int
        Number of references in each file of Parquet.
    overwrite : bool
        Whether to replace existing references.
    progress : bool, callable or bar, optional
        As for `convert`; it counts chunks.
    storage_options : mapping, optional
        For URLs, as for `omnizarr.open`.
    message : str, optional
        Message of the commit, for Icechunk.

    Returns
    -------
    WrittenReferences
    ----------
        What was written, for each array.

    Raises
    ------
    NotRepresentableError
        If the chunks are no parts of files, as in databases and compressed archives; if the format of the
        references cannot express an array; or if chunks of a join are no stored chunks: two sources are named that
        differ in codecs, data type, fill value or packing, or the one whose last chunk is shorter. Nothing is written
        then.
    JoinError
        If sources do not fit together.
    NodeExistsError
        If the destination exists, and `overwrite` is False.
    NodeNotFoundError
        If the source does not exist.
    StoreLimitError
        If there are more references than readers of JSON keep: write Parquet.
    ValueError
        If the destination has another ending.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import omnizarr
    >>> folder = tempfile.TemporaryDirectory()
    >>> data = os.path.join(folder.name, "a.zarr")
    >>> _ = omnizarr.create_array(data, name="temp", data=np.arange(6), chunks=2)
    >>> made = omnizarr.references(data, os.path.join(folder.name, "refs.json"))
    >>> made.arrays[0].chunks
    3
    >>> omnizarr.open(os.path.join(folder.name, "refs.json"))["temp"][...]
    array([0, 1, 2, 3, 4, 5])
    >>> folder.cleanup()
    """
    keywords = locals()
    writing = import_module("omnizarr.tools.refs.writing")
    made: WrittenReferences = writing.run(writing.Task(**keywords))
    return made

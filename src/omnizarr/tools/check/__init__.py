"""Checking a hierarchy: documents, names, keys, chunks and copies, against the specification of its format.

`report` defines findings, `codes` their kinds. `inventory` finds the documents, `documents` reads them,
`extensions`, `siblings`, `copies` and `keyspace` check their meaning together, `chunks` the stored chunks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.check.report import CheckReport


def check(
    store: Any,
    *,
    path: str | None = None,
    zarr_format: int | str | None = None,
    data: bool = False,
    strict: bool = False,
    digest: Any = None,
    concurrency: int | None = None,
    scheduler: Any = None,
    max_memory: int | str | None = None,
    progress: Progress = None,
) -> CheckReport:
    """Return what is wrong with an array, or with a group and everything below it. Nothing is changed.

    Documents are compared with the specification of their format, names of extensions with the registry, keys with
    the grids of the arrays, and consolidated metadata with the documents. The size of each chunk is checked; with
    ``data=True``, chunks are also decoded. Known mistakes of writers have their own codes. The page "Checking" of the
    manual lists all findings.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
        The hierarchy. Checking also works if it cannot be opened.
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        Look only at documents of this format.
    data : bool, default False
        Read and decode every stored chunk, and every inner chunk of shards; at most one per thread at a time.
    strict : bool, default False
        Count warnings as errors for `ok`, and report unregistered names as warnings.
    digest : path, Digest, mapping or str, optional
        Expected digests of values and metadata: a file made by ``omnizarr digest PATH > FILE``, a result of
        `omnizarr.digest`, digests by path, or the digest of the topmost node. Reads all values.
    concurrency : int, optional
        Number of threads. The default is one per core, if chunks are decoded.
    scheduler : distributed.Client, str or Cluster, optional
        A dask.distributed cluster whose workers decode the chunks (with `data` or `digest`), as a client or an address;
        as for `convert`.
    max_memory : int or str, optional
        A number, or text such as ``"500MB"`` or ``"2GiB"``:
        bytes of elements in memory at a time, unless one chunk has more; default: one chunk for each thread. On a
        cluster, this applies to each task.
    progress : bool, callable or bar, optional
        As for `convert`; it counts chunks. Several threads call it, one after the other.

    Returns
    -------
    CheckReport
        It has `findings`, `ok`, `counts`, `to_dict` and `to_json`.

    Raises
    ------
    NodeNotFoundError
        If there is no Zarr node.
    StoreError
        If the store cannot be listed.
    ValueError
        If a file contains no digests.

    Examples
    --------
    >>> import omnizarr
    >>> values = {}
    >>> array = omnizarr.create_array(values, shape=(4,), chunks=(2,), dtype="int16", compressors=None, fill_value=0)
    >>> array[:] = 7
    >>> omnizarr.check(values).ok
    True
    >>> values["c/0"] = values["c/0"][:3]
    >>> print(omnizarr.check(values))
    error: /: c/0: the chunk has the wrong size: found 3 bytes, expected 4 bytes [wrong-chunk-size]
    1 error · 1 node, 2 chunks looked at
    """
    report: CheckReport = import_module("omnizarr.tools.check.checker").run(**locals())
    return report

"""Digests: checksums of what an array or a hierarchy means and holds, whichever format it is in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.digesting import Digest


def digest(
    store: Any,
    *,
    path: str | None = None,
    zarr_format: int | str | None = None,
    algorithm: str = "sha256",
    allow_pickle: bool = False,
    concurrency: int | None = None,
    scheduler: Any = None,
    max_memory: int | None = None,
    progress: Callable[..., Any] | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Digest:
    """Return the digests of an array, or of a group and all below it.

    Equal digests mean that `diff` finds no difference: nodes, attributes, shapes, data types, names of dimensions and
    values are the same. Format, chunks, codecs, byte order and fill value do not matter, so that a hierarchy keeps its
    digest when it is converted or rechunked. The page "Digests" of the manual says how they are computed.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        Where documents of several formats are side by side, those to read.
    algorithm : {"sha256", "blake2b", "blake3"}
        ``"blake3"`` needs the package of that name.
    allow_pickle : bool
        Let pickled objects be read, which can run any code.
    concurrency, scheduler, progress, storage_options
        As for `convert`.
    max_memory : int, optional
        Bytes of elements in memory at a time, beside chunks that are being decoded; default: 96 MiB, unless one chunk
        has more. On a cluster, in each task.

    Returns
    -------
    Digest
        Of each node; ``str`` is the text of a file that ``check(..., digest=file)`` verifies.

    Raises
    ------
    NodeNotFoundError
        If there is no Zarr node.
    ChunkError, UnknownExtensionError
        If a chunk, or a node, cannot be read.
    NotRepresentableError
        If an array holds objects that are neither text, bytes, arrays nor JSON.
    SchedulerError, StoreError

    Examples
    --------
    >>> import omnizarr
    >>> old, new = omnizarr.create_group({}, zarr_format=2), {}
    >>> old["temp"] = [280.5, 281.0, 282.0]
    >>> done = omnizarr.convert(old, new, zarr_format=3)
    >>> omnizarr.digest(old) == omnizarr.digest(new)
    True
    >>> omnizarr.digest(new).digest[:17]
    'omnizarr1:sha256:'
    """
    run = import_module("omnizarr.tools.digesting.digester").run
    effort = import_module("omnizarr.tools.streaming.walking").Effort(max_memory, concurrency, allow_pickle)
    found: Digest = run(
        store,
        path=path,
        zarr_format=zarr_format,
        algorithm=algorithm,
        effort=effort,
        scheduler=scheduler,
        progress=progress,
        storage_options=storage_options,
    )
    return found


def digest_of_bytes(
    store: Any,
    *,
    path: str | None = None,
    concurrency: int | None = None,
    progress: Callable[..., Any] | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """Return the checksum of all stored bytes below a place, as DANDI defines it for Zarr.

    It has the form ``md5-count--size``, and is that of dandi-cli and of the package ``zarr_checksum``. It tells whether
    a copy is complete, and changes with whatever changes a byte.

    Parameters
    ----------
    store, path, concurrency, progress, storage_options
        As for `digest`. Need not be a hierarchy that can be read.

    Examples
    --------
    >>> import omnizarr
    >>> omnizarr.digest_of_bytes({})
    '481a2f77ab786a0f45aafd5db0971caa-0--0'
    """
    of_bytes = import_module("omnizarr.tools.digesting.digester").of_bytes
    found: str = of_bytes(store, path, concurrency, storage_options, progress)
    return found

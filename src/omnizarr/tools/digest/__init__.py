"""Digests: checksums of the meaning and values of an array or hierarchy, independent of its format.

`serializing` defines the bytes of elements, `hash_tree` combines the digests of blocks, `digester` computes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.digest.report import Digest

digester: Any = Lazy("omnizarr.tools.digest.digester")


def digest(
    store: Any,
    *,
    path: str | None = None,
    zarr_format: int | str | None = None,
    algorithm: str = "sha256",
    allow_pickle: bool = False,
    concurrency: int | None = None,
    scheduler: Any = None,
    max_memory: int | str | None = None,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Digest:
    """Return the digests of an array, or of a group and all nodes below.

    Equal digests mean that `diff` finds no difference between nodes: attributes, shapes, data types, dimension names
    and values are the same. Files that are not Zarr are not covered, but listed in `Digest.left_out`. Format, chunks,
    codecs, byte order and fill value do not matter, so a hierarchy keeps its digest when it is converted or rechunked.
    The page "Digests" of the manual explains how they are computed.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        The format to read, if the source has documents of several formats.
    algorithm : {"sha256", "blake2b", "blake3"}
        Hash algorithm. ``"blake3"`` needs the package of that name.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    concurrency, scheduler, progress, storage_options
        As for `convert`.
    max_memory : int or str, optional
        A number, or text such as ``"500MB"`` or ``"2GiB"``:
        bytes of elements in memory at once, in addition to chunks that are being decoded. The default is 96
        MiB, unless one chunk has more. On a cluster, this applies to each task.

    Returns
    -------
    Digest
        The digest of each node. ``str`` is the text of a file that ``check(..., digest=file)`` verifies.

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
    found: Digest = digester.run(**locals())
    return found


def digest_of_bytes(
    store: Any,
    *,
    path: str | None = None,
    concurrency: int | None = None,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """Return the checksum of all stored bytes below a place, as DANDI defines it for Zarr.

    It has the form ``md5-count--size``, like those of dandi-cli and of the package ``zarr_checksum``. It shows
    whether a copy is complete, and changes if any stored byte changes.

    Parameters
    ----------
    store, path, concurrency, progress, storage_options
        Like those of `digest`. The hierarchy need not be readable.

    Raises
    ------
    NodeNotFoundError
        If nothing is stored there. A directory without files has a checksum.

    Examples
    --------
    >>> import omnizarr
    >>> omnizarr.digest_of_bytes({})
    '481a2f77ab786a0f45aafd5db0971caa-0--0'
    """
    found: str = digester.of_bytes(**locals())
    return found

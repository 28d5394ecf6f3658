"""Advice on chunks and shards."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.advising.advice import Advice


def advise(
    store: Any = None,
    *,
    path: str | None = None,
    shape: Any = None,
    dtype: Any = None,
    reads: Any = None,
    place: str | None = None,
    shards: bool = True,
    ratio: float | None = None,
    zarr_format: int | str | None = None,
    storage_options: Any = None,
) -> Advice:
    """Return which chunks and shards suit what is read of an array, and what reading takes with them.

    Nothing is written. Of an array that exists, some stored chunks are looked at for how well they are compressed, and
    its own layout is compared with the one that is advised.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array or mutable mapping, optional
        An array that exists.
    path : str, optional
        Path of the array in the store.
    shape, dtype
        Instead of an array: those of one that is to be created.
    reads : str, sequence of str or of tuples, or mapping, optional
        What is typically read: windows, which may be anywhere in the array. ``"time series"`` (all of the time
        dimension, or of the first one, at a point), ``"maps"`` (all of the last two dimensions), ``"points"``,
        ``"all"``; lengths, as ``"*,1,1"``, ``"time=*,lat=10"`` (1 for other dimensions) or ``(None, 1, 1)``. Weights
        say how often each is read: ``{"maps": 3, "time series": 1}`` or ``["3x maps", "time series"]``. Default: rows
        and columns, or time series and maps.
    place : {"local", "object"}, optional
        A local disk or an object store; default: where the array is, or a local disk.
    shards : bool, default True
        False: no shards. Formats other than Zarr v3 have none.
    ratio : float, optional
        Bytes in memory to a stored one; default: that of the array, or 1.
    zarr_format : int or str, optional
        The format that is wanted; default: that of the array, or 3.
    storage_options : mapping, optional
        For a URL.

    Returns
    -------
    Advice
        With `chunks`, `shards`, `reasons`, `advised` and `current` (layouts, with `objects` and `nbytes`), `reads()`
        (requests and bytes for each window), and `to_dict`; ``print`` shows it.

    Raises
    ------
    ValueError
        If a window is not valid for the array, or elements have no known size.
    NodeNotFoundError, ContainsGroupError
        If there is no array.

    Examples
    --------
    >>> import omnizarr
    >>> advice = omnizarr.advise(shape=(8760, 721, 1440), dtype="float32", reads="maps", shards=False)
    >>> advice.chunks, advice.shards, advice.advised.objects
    ((1, 721, 1440), None, 8760)
    >>> [(read.name, read.requests) for read in advice.reads()]
    [('maps', 1.0), ('all', 8760.0)]
    """
    run = import_module("omnizarr.tools.advising.adviser").run
    advice: Advice = run(
        store,
        path=path,
        shape=shape,
        dtype=dtype,
        reads=reads,
        place=place,
        shards=shards,
        ratio=ratio,
        zarr_format=zarr_format,
        storage_options=storage_options,
    )
    return advice

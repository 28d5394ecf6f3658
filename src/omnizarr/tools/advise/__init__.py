"""Advice on chunks and shards."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.advise.report import Advice


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
    """Return chunks and shards that suit your reads of an array, and the cost of these reads.

    Nothing is written. For an existing array, some stored chunks are read to measure how well they compress, and
    its own layout is compared with the recommended one.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array or mutable mapping, optional
        An existing array.
    path : str, optional
        Path of the array in the store.
    shape, dtype
        Shape and data type of a new array, instead of an existing one.
    reads : str, sequence of str or of tuples, or mapping, optional
        What you typically read: windows, which may be anywhere in the array. ``"time series"`` (all of the time
        dimension, or of the first one, at a point), ``"maps"`` (all of the last two dimensions), ``"points"``,
        ``"all"``; lengths, such as ``"*,1,1"``, ``"time=*,lat=10"`` (1 for other dimensions) or ``(None, 1,
        1)``. Weights state how often each is read: ``{"maps": 3, "time series": 1}`` or ``["3x maps", "time
        series"]``. The default is rows and columns, or time series and maps.
    place : {"local", "object"}, optional
        A local disk or an object store. The default is the place of the array, otherwise a local disk.
    shards : bool, default True
        False: no shards. Formats other than Zarr v3 have none.
    ratio : float, optional
        Compression ratio: bytes in memory for each stored byte. The default is that of the array, otherwise 1.
    zarr_format : int or str, optional
        The target format. The default is that of the array, otherwise 3.
    storage_options : mapping, optional
        Options of the store, if you pass a URL.

    Returns
    -------
    Advice
        It has `chunks`, `shards`, `reasons`, `advised` and `current` (layouts, with `objects` and `nbytes`),
        `reads()` (requests and bytes for each window), and `to_dict`. ``print`` shows it.

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
    advice: Advice = import_module("omnizarr.tools.advise.adviser").run(**locals())
    return advice

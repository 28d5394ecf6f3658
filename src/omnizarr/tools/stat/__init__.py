"""Statistics of arrays: of elements in `moments`, of hierarchies in `counter`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.stat.report import Stat


def stat(
    store: Any,
    *,
    path: str | None = None,
    zarr_format: int | str | None = None,
    skip_fill: bool = False,
    decoded: bool = False,
    allow_pickle: bool = False,
    concurrency: int | None = None,
    scheduler: Any = None,
    max_memory: int | str | None = None,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Stat:
    """Return statistics of an array, or of all arrays of a hierarchy.

    They are the smallest and largest element, mean, standard deviation, the number of elements that are NaN (or
    NaT) and that equal the fill value, and the number of missing chunks. NaN does not count for the others, as in
    `numpy.nanmean`. Elements are used as they are stored, unless `decoded` is True. Missing chunks are not read.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        The format to read, if the source has documents of several formats.
    skip_fill : bool
        Whether to exclude elements that equal the fill value from smallest, largest, mean and standard deviation.
    decoded : bool
        Whether to scale and mask numbers by their attributes, as `show` and netCDF4-python do: ``scale_factor``,
        ``add_offset``, ``_FillValue``, ``missing_value``, ``valid_range``, ``_Unsigned``. Masked elements count as NaN,
        and none is compared with the fill value. Times remain numbers.
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
    Stat
        A sequence with an `ArrayStat` for each array.

    Raises
    ------
    NodeNotFoundError
        If there is no Zarr node.
    SchedulerError, StoreError

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=6, chunks=2, dtype="int16", fill_value=-1)
    >>> array[:3] = [7, 8, 10]
    >>> found = omnizarr.stat(array)[0]
    >>> found.minimum, found.maximum, found.mean, found.fill, found.missing
    (-1, 10, 3.6666666666666665, 3, 1)
    >>> omnizarr.stat(array, skip_fill=True)[0].minimum
    7
    >>> array.attrs.update({"scale_factor": 0.5, "_FillValue": -1})
    >>> found = omnizarr.stat(array, decoded=True)[0]
    >>> found.minimum, found.maximum, found.nan
    (np.float64(3.5), np.float64(5.0), 3)
    """
    found: Stat = import_module("omnizarr.tools.stat.counter").run(**locals())
    return found

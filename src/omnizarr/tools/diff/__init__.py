"""Comparing two arrays or hierarchies of any format."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.diff.report import Diff


def diff(
    left: Any,
    right: Any,
    *,
    left_path: str | None = None,
    right_path: str | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    storage: bool = False,
    values: bool = True,
    allow_pickle: bool = False,
    concurrency: int | None = None,
    scheduler: Any = None,
    max_memory: int | str | None = None,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Diff:
    """Return the differences between two arrays or two hierarchies.

    Their meaning is compared: which nodes exist, their attributes, and the shape, data type, dimension names and
    values of arrays. With values, files that are not Zarr are compared, too. So a hierarchy is equal to the results
    of `convert` and `rechunk`. Differences in how elements are stored (format, chunks, codecs, fill value) are in
    `Diff.storage`, and count only with ``storage=True``.

    Values are equal as in NumPy, except that NaN equals NaN, whatever its payload, and NaT equals NaT. -0.0
    equals 0.0.

    Parameters
    ----------
    left, right : path, URL, Store, StorePath, Array, Group or mutable mapping
    left_path, right_path : str, optional
        Paths within the two.
    rtol, atol : float
        Numbers are also equal if ``abs(left - right) <= atol + rtol * abs(right)``.
    storage : bool
        Whether differences in how elements are stored count.
    values : bool
        Whether to compare elements. False: compare only metadata.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    concurrency, scheduler, progress, storage_options
        As for `convert`.
    max_memory : int or str, optional
        A number, or text such as ``"500MB"`` or ``"2GiB"``:
        bytes of elements in memory at once, of both together, in addition to chunks that are being decoded. The
        default is 96 MiB, or less by the setting ``bytes_in_flight``, unless one chunk has
        more. On a cluster, this applies to each task.

    Returns
    -------
    Diff
        A sequence of differences, empty if there are none. ``print`` shows it. `Diff.equal` is True only if
        everything could be compared.

    Raises
    ------
    NodeNotFoundError
        If one of the places has no node.
    ValueError
        If a tolerance is negative, or one chunk has more than `max_memory`.
    SchedulerError, StoreError

    Examples
    --------
    >>> import omnizarr
    >>> old, new = omnizarr.create_group({}, zarr_format=2), {}
    >>> old["temp"] = [280.5, 281.0, 282.0]
    >>> done = omnizarr.convert(old, new, zarr_format=3)
    >>> omnizarr.diff(old, new).equal
    True
    >>> omnizarr.open(new, mode="r+")["temp"][1] = 281.25
    >>> print(omnizarr.diff(old, new))
    /temp: values: 1 of 3 elements differs, first at [1]: 281.0 and 281.25; by 0.25 at most
    1 difference · 2 nodes, 3 elements compared
    """
    found: Diff = import_module("omnizarr.tools.diff.comparer").run(**locals())
    return found

"""Comparing two arrays or hierarchies, whichever formats they are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.comparing import Diff


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
    max_memory: int | None = None,
    progress: Callable[..., Any] | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Diff:
    """Return in what two arrays, or two hierarchies, differ.

    Compared is what they mean: which nodes there are, their attributes, and of arrays the shape, the data type, the
    names of dimensions and the values. So a hierarchy is equal to what `convert` and `rechunk` make of it. How elements
    are stored (format, chunks, codecs, fill value) is told in `Diff.storage`, and counts with ``storage=True``.

    Values are equal as in NumPy, but NaN is equal to NaN, whatever its payload, and NaT to NaT; -0.0 is equal to 0.0.

    Parameters
    ----------
    left, right : path, URL, Store, StorePath, Array, Group or mutable mapping
    left_path, right_path : str, optional
        Paths in them.
    rtol, atol : float
        Numbers are also equal if ``abs(left - right) <= atol + rtol * abs(right)``.
    storage : bool
        Differences in how elements are stored count.
    values : bool
        Compare elements; False: only what documents say.
    allow_pickle : bool
        Let pickled objects be read, which can run any code.
    concurrency, scheduler, progress, storage_options
        As for `convert`.
    max_memory : int, optional
        Bytes of elements in memory at a time, of both together, beside chunks that are being decoded; default: 96 MiB,
        unless one chunk has more. On a cluster, in each task.

    Returns
    -------
    Diff
        A sequence of differences, empty if there is none; ``print`` shows it. `Diff.equal` also says that everything
        could be compared.

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
    run = import_module("omnizarr.tools.comparing.comparer").run
    effort = import_module("omnizarr.tools.streaming.walking").Effort(max_memory, concurrency, allow_pickle)
    found: Diff = run(
        left,
        right,
        left_path=left_path,
        right_path=right_path,
        rtol=rtol,
        atol=atol,
        storage=storage,
        values=values,
        effort=effort,
        scheduler=scheduler,
        progress=progress,
        storage_options=storage_options,
    )
    return found

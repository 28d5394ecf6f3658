"""The elements of an array, selected by position or by coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.nodes.indexers import Index
    from omnizarr.nodes.labels import Label
    from omnizarr.nodes.options import StoreLike


def get(
    store: StoreLike,
    selection: Index = ...,
    *,
    path: str | None = None,
    select: Mapping[str, Label] | None = None,
    allow_pickle: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    **labels: Label,
) -> Any:
    """Return elements of an array as they are stored, selected by position or by the coordinates of its dimensions.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array or mutable mapping
    selection : int, slice, Ellipsis, list, mask or tuple of these
        Positions, as in ``array[selection]``.
    path : str, optional
        Path of the array in the store.
    select : mapping of str to label, optional
        Coordinates by the name of a dimension, as xarray's ``sel`` has them; instead of `selection`. A value drops its
        dimension. A date that names less than the coordinates do, such as ``"2020-01"`` of days, selects all of them.
        ``slice(40, 50)`` selects what lies between both ends, these included, in the order in which it is stored; a
        list selects each of its values. A dimension without coordinates is selected by position.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    storage_options : mapping, optional
        Options of the store, if you pass a URL.
    **labels
        The same as `select`, as keywords: ``time="2020-01"``.

    Returns
    -------
    numpy.ndarray or scalar

    Raises
    ------
    SelectionError
        If there is no such dimension, or no such place on it. It says what there is.
    ContainsGroupError
        If there is a group.
    ArrayNotFoundError

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> days = {"units": "days since 2020-01-30"}
    >>> time = root.create_array("time", data=[0, 1, 2, 3], dimension_names=["time"], attributes=days)
    >>> temp = root.create_array("temp", data=np.arange(8).reshape(4, 2), dimension_names=["time", "x"])
    >>> omnizarr.get(temp, (0, slice(None)))
    array([0, 1])
    >>> omnizarr.get(temp, time="2020-01", x=1)
    array([1, 3])
    """
    return import_module("omnizarr.tools.get.getting").run(**locals())

"""The methods that omnizarr adds to xarray's objects: ``data.omnizarr.to_zarr(...)``, ``data.omnizarr.load()``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import xarray
from xarray import DataArray, Dataset, DataTree, Variable

from omnizarr.interop.xarray.reading import sources_of
from omnizarr.stores import pool
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.interop.xarray import writing
else:
    writing = Lazy("omnizarr.interop.xarray.writing")

T = TypeVar("T", bound=Dataset | DataArray | DataTree)

_NAME: Final = "omnizarr"
_SIDE_BY_SIDE: Final = 32
"""Number of variables that are loaded at once."""


class Accessor(Generic[T]):
    """The attribute ``omnizarr`` of datasets, data arrays and trees.

    Examples
    --------
    >>> import xarray
    >>> import omnizarr.interop.xarray
    >>> data = xarray.Dataset({"t": ("x", [1.5, 2.5])})
    >>> data.omnizarr.to_zarr({})
    <Group / memory>
    """

    def __init__(self, data: T) -> None:
        self._data = data

    def to_zarr(self, store: Any = None, mode: str | None = None, group: str | None = None, **options: Any) -> Any:
        """Write the object. See `omnizarr.interop.xarray.to_zarr`."""
        return writing.to_zarr(self._data, store, mode, group, **options)

    def load(self, **options: Any) -> T:
        """Load the object. See `omnizarr.interop.xarray.load`."""
        return load(self._data, **options)


def load(data: T, **options: Any) -> T:
    """Load all variables into memory concurrently, and return the same object.

    `xarray.Dataset.load` reads one variable after the other, unless they are dask arrays. From slow stores, this
    takes as long as the slowest of them.

    Parameters
    ----------
    data : xarray.Dataset, xarray.DataArray or xarray.DataTree
    **options
        Keywords of `dask.compute`, for arrays of dask.

    Returns
    -------
    The same object as `data`.

    Examples
    --------
    >>> import omnizarr, xarray
    >>> root = omnizarr.create_group({})
    >>> root["a"], root["b"] = [1, 2], [3, 4]
    >>> int(load(xarray.open_dataset(root, engine="omnizarr")).sum()["a"])
    3
    """
    lazy = [each for each in _variables(data) if each.chunks is None and _is_read_here(each)]
    pool.run(Variable.load, lazy, min(len(lazy), _SIDE_BY_SIDE), 1)
    data.load(**options)
    return data


def _is_read_here(variable: Variable) -> bool:
    data = variable._data  # noqa: SLF001 - what is public would load it
    return next(sources_of(data), None) is not None


def _variables(data: Dataset | DataArray | DataTree) -> Iterator[Variable]:
    if isinstance(data, DataTree):
        for node in data.subtree:
            yield from node.variables.values()
    elif isinstance(data, Dataset):
        yield from data.variables.values()
    else:
        yield data.variable
        yield from (each.variable for each in data.coords.values())


def register() -> None:
    """Give datasets, data arrays and trees their attribute, only once."""
    for kind, decorate in (
        (Dataset, xarray.register_dataset_accessor),
        (DataArray, xarray.register_dataarray_accessor),
        (DataTree, xarray.register_datatree_accessor),
    ):
        if not hasattr(kind, _NAME):
            decorate(_NAME)(Accessor)  # type: ignore[no-untyped-call]

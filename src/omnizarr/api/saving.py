"""The functions that save and load arrays, like those of NumPy."""

from __future__ import annotations

from typing import Any, Unpack

from omnizarr.api.creating import create_group
from omnizarr.api.opening import locate
from omnizarr.api.opening import open as open_node
from omnizarr.errors import ContainsGroupError, OmnizarrError, Remedy, StoreError
from omnizarr.model import GroupMetadata
from omnizarr.nodes import creating, detection, replacing
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.hierarchy import Above
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.options import SaveOptions, StoreLike
from omnizarr.stores import Store


def save(
    store: StoreLike,
    *args: Any,
    zarr_format: int | str | None = None,
    path: str | None = None,
    overwrite: bool | None = None,
    **kwargs: Any,
) -> None:
    """Save arrays, like `numpy.save`. An array replaces an existing array; a group replaces an existing array or group.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
    *args : array_like
        One value is saved as an array; several are saved as the arrays ``arr_0``, ``arr_1``, ... of a group.
    zarr_format, path
        As for `create_array`.
    overwrite : bool, optional
        True: also replace a group by an array. False: replace nothing.
    **kwargs : array_like
        Values to save as arrays of a group, with the keywords as names.

    Raises
    ------
    ValueError
        If there is nothing to save.
    ContainsGroupError
        If an array would replace a group, and `overwrite` is not True.
    """
    if len(args) == 1 and not kwargs:
        options: SaveOptions = {} if overwrite is None else {"overwrite": overwrite}
        save_array(store, args[0], zarr_format=zarr_format, path=path, **options)
    else:
        save_group(store, *args, zarr_format=zarr_format, path=path, overwrite=overwrite, **kwargs)


def save_array(
    store: StoreLike,
    arr: Any,
    *,
    zarr_format: int | str | None = None,
    path: str | None = None,
    **options: Unpack[SaveOptions],
) -> None:
    """Save an array. An existing array is replaced, a group only with ``overwrite=True``.

    Keywords are those of `create`. Raises ContainsGroupError.
    """
    where, _ = locate(store, path, "a", None)
    if options.get("overwrite") is None:
        options["overwrite"] = True
        _refuse_group(where)
    creating.new_array(where, data=arr, zarr_format=zarr_format, **options)
    _close_ours(store, where.store)


def save_group(
    store: StoreLike,
    *args: Any,
    zarr_format: int | str | None = None,
    path: str | None = None,
    overwrite: bool | None = None,
    **kwargs: Any,
) -> None:
    """Save several arrays in a group. An existing node is replaced, unless ``overwrite=False``.

    Arguments are those of `save`.
    """
    arrays = {**{f"arr_{number}": value for number, value in enumerate(args)}, **kwargs}
    if not arrays:
        raise ValueError("there is nothing to save: give at least one array")
    where, _ = locate(store, path, "a", None)
    dialect = creating.dialect_for_new(where, zarr_format)

    def make(place: StorePath, *, overwrite: bool = False) -> None:
        target = create_group(place, zarr_format=dialect.name, overwrite=overwrite)
        for name, value in arrays.items():
            target.create_array(name, data=value)

    is_replaced, above = overwrite is not False, Above()
    if (
        is_replaced
        and not all(map(creating.cannot_fail, arrays.values()))
        and replacing.is_taken(where, dialect, above)
    ):
        where, _ = replacing.remade(where, dialect, make)
        creating.enter(where, GroupMetadata(dialect=dialect.name), above)
    else:
        make(where, overwrite=is_replaced)
    _close_ours(store, where.store)


def load(store: Any, path: str | None = None, zarr_format: int | str | None = None) -> Any:
    """Return the values of an array, or a dictionary with the values of the arrays in a group.

    Raises NodeNotFoundError.
    """
    node = open_node(store, mode="r", path=path, zarr_format=zarr_format)
    loaded = node[...] if isinstance(node, Array) else {name: member[...] for name, member in node.arrays()}
    _close_ours(store, node.store)
    return loaded


def _refuse_group(where: StorePath) -> None:
    try:
        found = detection.detect(where, kind="array") or detection.implied(where)
    except StoreError:
        raise
    except OmnizarrError:
        return  # the node is broken
    if found is not None and isinstance(found.metadata, GroupMetadata):
        raise ContainsGroupError(
            "there is a group, which an array would replace with all that is in it",
            store=str(where.store),
            path=where.path,
            remedy=Remedy("pass {overwrite}", overwrite=True) | Remedy("give the array a path in the group"),
        )


def _close_ours(given: Any, store: Store) -> None:
    """Close a store that the caller did not pass in. A zip archive is written when it is closed."""
    if not isinstance(given, (Store, StorePath, Group, Array)):
        store.close()

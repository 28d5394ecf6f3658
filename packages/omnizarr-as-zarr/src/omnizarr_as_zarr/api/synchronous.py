"""The functions that zarr-python has, with the modes that it has by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from omnizarr import stores
from omnizarr.api import creating, opening, saving
from omnizarr.tools import copy as copying
from omnizarr_as_zarr import errors
from omnizarr_as_zarr._keywords import checked, with_format
from omnizarr_as_zarr._nodes import Array, Group, create, handing_out, named, placed, plain, plain_all, without_copies
from omnizarr_as_zarr._wording import worded
from omnizarr_as_zarr.abc.store import Store
from omnizarr_as_zarr.core.buffer import NDArrayLike
from omnizarr_as_zarr.storage._classes import StorePath

__all__ = [
    "array",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "save",
    "save_array",
    "save_group",
    "tree",
    "zeros",
    "zeros_like",
]


def _with_dtype(options: dict[str, Any]) -> dict[str, Any]:
    """Return options for an array with the data type that zarr-python uses by default."""
    if options.get("shape") is not None and options.get("data") is None and options.get("dtype") is None:
        options["dtype"] = "float64"
    return options


def _read_only(store: Any) -> bool:
    return isinstance(store, (Store, StorePath, stores.Store)) and store.read_only


def open(store: Any = None, *, mode: Any = None, **options: Any) -> Array | Group:  # noqa: A001 - zarr-python's name
    """Open an array or group; create it if it does not exist. See `omnizarr.open`."""
    mode = mode or ("r" if _read_only(store) else "a")
    options = checked(options)
    if "shape" not in options:
        options = without_copies(store, options)
    with worded():
        return named(opening.open(placed(store), mode=mode, **plain_all(_with_dtype(options))))  # type: ignore[no-any-return]


def open_array(store: Any = None, *, mode: Any = None, **options: Any) -> Array:
    """Open an array. See `omnizarr.open_array`."""
    options = _with_dtype(checked(options))
    with worded():
        return named(opening.open_array(placed(store), mode=mode, **plain_all(options)))  # type: ignore[no-any-return]


def open_group(store: Any = None, *, mode: Any = "a", **options: Any) -> Group:
    """Open a group; create it if it does not exist. See `omnizarr.open_group`."""
    options = without_copies(store, with_format(options))
    try:
        with worded():
            return named(opening.open_group(placed(store), mode=mode, **plain_all(options)))  # type: ignore[no-any-return]
    except errors.GroupNotFoundError as error:
        # Words that xarray, for one, shows to its users.
        error.message = f"No group found in store {store!r} at path {options.get('path') or ''!r}: {error.message}"
        raise


def open_consolidated(*args: Any, use_consolidated: Any = True, **options: Any) -> Group:
    """Open a group from its consolidated metadata, which must be there."""
    if use_consolidated is not True:
        raise TypeError(
            "'use_consolidated' must be 'True' in 'open_consolidated'. Use 'open' with "
            f"'use_consolidated={use_consolidated}' to bypass consolidated metadata."
        )
    return open_group(*args, use_consolidated=True, **options)


def consolidate_metadata(store: Any, path: str | None = None, zarr_format: Any = None) -> Group:
    """Store copies of the documents of all nodes below a group with it. See `omnizarr.consolidate_metadata`."""
    at = store.store if isinstance(store, StorePath) else store
    if isinstance(at, Store) and not at.supports_consolidated_metadata:
        raise TypeError(f"The Zarr store in use ({type(at).__name__}) doesn't support consolidated metadata.")
    with worded():
        found: Group = named(creating.consolidate_metadata(plain(store), path, zarr_format))
    if found.zarr_format == 3 and len(found):
        errors.warn(
            "Consolidated metadata is currently not part in the Zarr format 3 specification. It may not be supported "
            "by other zarr implementations and may change in the future.",
            errors.ZarrUserWarning,
        )
    return found


def create_hierarchy(*, store: Any, nodes: Mapping[str, Any], overwrite: bool = False) -> Iterator[tuple[str, Any]]:
    """Create many nodes. See `omnizarr.create_hierarchy`."""
    made = creating.create_hierarchy(
        store=placed(store), nodes={path: plain(node) for path, node in nodes.items()}, overwrite=overwrite
    )
    return map(named, made)


array = handing_out(creating.array, checked)
copy = handing_out(copying.copy)
copy_all = handing_out(copying.copy_all)
copy_store = handing_out(copying.copy_store)
create_array = handing_out(creating.create_array, checked)
create_group = handing_out(creating.create_group, with_format)
empty = handing_out(creating.empty, checked)
empty_like = handing_out(creating.empty_like, checked)
full = handing_out(creating.full, checked)


def from_array(store: Any, *, data: Any, **options: Any) -> Array:
    """Create an array from another one. See `omnizarr.from_array`."""
    options = checked(options)
    is_fortran = isinstance(data, Array) and data.zarr_format == 2 and data.order == "F"
    if is_fortran and options.get("zarr_format") == 3:
        errors.warn(
            "The 'order' attribute of a Zarr format 2 array does not have a direct analogue in Zarr format 3. "
            "The existing order='F' of the source Zarr format 2 array will be ignored.",
            errors.ZarrUserWarning,
        )
    with worded():
        return named(creating.from_array(placed(store), data=plain(data), **plain_all(options)))  # type: ignore[no-any-return]


def full_like(a: Any, **options: Any) -> Array:
    """Create an array of one value, by default that of `a`, like another. See `omnizarr.full_like`."""
    return named(_like(plain(a), **plain_all(checked(options))))  # type: ignore[no-any-return]


def _like(a: Any, **options: Any) -> Any:
    return creating.full_like(a, **options) if "fill_value" in options else creating.empty_like(a, **options)


group = handing_out(creating.group, with_format)
load = handing_out(saving.load, with_format)
ones = handing_out(creating.ones, checked)
ones_like = handing_out(creating.ones_like, checked)


def open_like(a: Any, path: Any, **options: Any) -> Array:
    """Open an array, or create one like `a`. See `omnizarr.open_like`."""
    with worded():
        return named(opening.open_like(plain(a), placed(path), **plain_all(checked(options))))  # type: ignore[no-any-return]


save_array = handing_out(saving.save_array, checked)


def save(store: Any, *args: Any, zarr_format: Any = None, path: str | None = None, **kwargs: Any) -> None:
    """Save arrays. See `omnizarr.save`."""
    _refuse_others({**dict(enumerate(args)), **kwargs})
    saving.save(placed(store), *map(plain, args), zarr_format=zarr_format, path=path, **plain_all(kwargs))


def save_group(store: Any, *args: Any, zarr_format: Any = None, path: str | None = None, **kwargs: Any) -> None:
    """Save several arrays in a group. See `omnizarr.save_group`."""
    _refuse_others({**dict(enumerate(args)), **kwargs})
    saving.save_group(placed(store), *map(plain, args), zarr_format=zarr_format, path=path, **plain_all(kwargs))


def _refuse_others(arrays: Mapping[Any, Any]) -> None:
    """Raise TypeError for a keyword that should be an array but is not, such as ``mode="w"``."""
    for name, value in arrays.items():
        if not isinstance(value, NDArrayLike):
            raise TypeError(f"argument {name!r} must be a numpy or other NDArrayLike array, and is {value!r:.80}")


def tree(grp: Group, expand: bool | None = None, level: int | None = None) -> Any:  # noqa: FBT001 - zarr-python's
    """Return a drawing of the nodes below a group. See `Group.tree`."""
    errors.warn("Use Group.tree instead.", errors.ZarrDeprecationWarning)
    return named(grp).tree(expand=expand, level=level)


zeros = handing_out(creating.zeros, checked)
zeros_like = handing_out(creating.zeros_like, checked)

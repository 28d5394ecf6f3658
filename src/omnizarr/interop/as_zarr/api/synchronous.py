"""The functions that zarr-python has, with the modes that it has by default."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from omnizarr import api, opening, saving, stores
from omnizarr.interop.as_zarr import errors
from omnizarr.interop.as_zarr._nodes import Array, Group, handing_out, named, plain
from omnizarr.interop.as_zarr.abc.store import Store
from omnizarr.interop.as_zarr.storage._classes import StorePath
from omnizarr.tools import copy as copying

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


def _format(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with what zarr-python once called `zarr_version` under its name."""
    found = dict(options)
    version = found.pop("zarr_version", None)
    if version is not None:
        warnings.warn("zarr_version is deprecated, use zarr_format", errors.ZarrDeprecationWarning, stacklevel=4)
        if found.get("zarr_format") is not None:
            raise ValueError("zarr_format and zarr_version cannot both be given")
        found["zarr_format"] = version
    return found


def _with_dtype(options: dict[str, Any]) -> dict[str, Any]:
    """Return options for an array with the data type that zarr-python gives who names none."""
    if options.get("shape") is not None and options.get("data") is None and options.get("dtype") is None:
        options["dtype"] = "float64"
    return options


def _read_only(store: Any) -> bool:
    return isinstance(store, (Store, StorePath, stores.Store)) and store.read_only


def _without_copies(store: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return options that leave consolidated metadata alone where a store does not support it."""
    at = store.store if isinstance(store, StorePath) else store
    if isinstance(at, Store) and not at.supports_consolidated_metadata and options.get("use_consolidated") is None:
        options["use_consolidated"] = False
    return options


def open(store: Any = None, *, mode: Any = None, **options: Any) -> Array | Group:  # noqa: A001 - zarr-python's name
    """Open an array or group; create it if it is not there. See `omnizarr.open`."""
    mode = mode or ("r" if _read_only(store) else "a")
    options = _format(options)
    if "shape" not in options:
        options = _without_copies(store, options)
    return named(opening.open(plain(store), mode=mode, **_plain(_with_dtype(options))))  # type: ignore[no-any-return]


def open_array(store: Any = None, *, mode: Any = None, **options: Any) -> Array:
    """Open an array. See `omnizarr.open_array`."""
    options = _with_dtype(_format(options))
    return named(opening.open_array(plain(store), mode=mode, **_plain(options)))  # type: ignore[no-any-return]


def open_group(store: Any = None, *, mode: Any = "a", **options: Any) -> Group:
    """Open a group; create it if it is not there. See `omnizarr.open_group`."""
    options = _without_copies(store, _format(options))
    try:
        return named(opening.open_group(plain(store), mode=mode, **_plain(options)))  # type: ignore[no-any-return]
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
    found: Group = named(api.consolidate_metadata(plain(store), path, zarr_format))
    if found.zarr_format == 3:
        warnings.warn(
            "Consolidated metadata is currently not part in the Zarr format 3 specification. It may not be supported "
            "by other zarr implementations and may change in the future.",
            errors.ZarrUserWarning,
            stacklevel=2,
        )
    return found


def create_hierarchy(*, store: Any, nodes: Mapping[str, Any], overwrite: bool = False) -> Iterator[tuple[str, Any]]:
    """Create many nodes. See `omnizarr.create_hierarchy`."""
    made = api.create_hierarchy(
        store=plain(store), nodes={path: plain(node) for path, node in nodes.items()}, overwrite=overwrite
    )
    return map(named, made)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in options.items()}


array = handing_out(api.array)
copy = handing_out(copying.copy)
copy_all = handing_out(copying.copy_all)
copy_store = handing_out(copying.copy_store)
create = handing_out(api.create)
create_array = handing_out(api.create_array)
create_group = handing_out(api.create_group)
empty = handing_out(api.empty)
empty_like = handing_out(api.empty_like)
from_array = handing_out(api.from_array)
full = handing_out(api.full)


def full_like(a: Any, **options: Any) -> Array:
    """Create an array of one value, by default that of `a`, like another. See `omnizarr.full_like`."""
    return named(_like(plain(a), **_plain(options)))  # type: ignore[no-any-return]


def _like(a: Any, **options: Any) -> Any:
    return api.full_like(a, **options) if "fill_value" in options else api.empty_like(a, **options)


group = handing_out(api.group)
load = handing_out(saving.load)
ones = handing_out(api.ones)
ones_like = handing_out(api.ones_like)
open_like = handing_out(opening.open_like)
save = handing_out(saving.save)
save_array = handing_out(saving.save_array)
save_group = handing_out(saving.save_group)
tree = handing_out(api.tree)
zeros = handing_out(api.zeros)
zeros_like = handing_out(api.zeros_like)

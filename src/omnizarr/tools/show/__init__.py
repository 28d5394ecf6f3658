"""A picture of an array, in the terminal, in a notebook or in a file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.nodes.options import StoreLike
    from omnizarr.pictures.picture import Picture


def show(
    store: StoreLike,
    selection: Any = (),
    *,
    path: str | None = None,
    colormap: str = "viridis",
    limits: tuple[float, float] | None = None,
    percentiles: tuple[float, float] = (2, 98),
    rgb: bool | None = None,
    size: tuple[int, int] = (520, 400),
    storage_options: Mapping[str, Any] | None = None,
) -> Picture:
    """Return a picture of an array, or of one array of a group.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    selection : int, slice, Ellipsis, name of a field, or tuple of these
    path : str, optional
        Path of the node in the store.
    colormap, limits, percentiles, rgb, size
        As for `omnizarr.Array.show`.
    storage_options : mapping, optional
        Options of the store, if you pass a URL.

    Returns
    -------
    Picture
        Notebooks show it, `print` draws it in the terminal, and `Picture.save` writes it to a file.

    Raises
    ------
    NodeNotFoundError

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> values = {}
    >>> wave = omnizarr.create_array(values, data=np.sin(np.linspace(0, 6, 40))[:, None] * np.arange(20))
    >>> omnizarr.show(values, size=(10, 10)).page.title
    '/[::4, ::4] float64'
    """
    options = {"colormap": colormap, "limits": limits, "percentiles": percentiles, "rgb": rgb, "size": size}
    node = import_module("omnizarr.api.opening").open(store, "r", path=path, storage_options=storage_options)
    picture: Picture = node.show(selection, **options)
    return picture

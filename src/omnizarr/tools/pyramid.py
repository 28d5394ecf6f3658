"""Multiscale images: levels of lower resolution for OME-Zarr."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.pyramids.building import Pyramid


def pyramid(
    source: Any,
    target: Any = None,
    *,
    path: str | None = None,
    method: str | None = None,
    levels: int | None = None,
    factor: int | Mapping[str, int] = 2,
    axes: Sequence[str] | None = None,
    scale: Mapping[str, float] | None = None,
    unit: Mapping[str, str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    scheduler: Any = None,
    max_memory: int | None = None,
    progress: Callable[..., Any] | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Pyramid:
    """Make the levels of a multiscale image: OME-Zarr 0.4 in Zarr v2, 0.5 in Zarr v3.

    Each level is made of the one above, block by block in bounded memory: only axes of space become shorter. At an
    uneven edge, blocks have fewer elements, and only these count. The metadata that announces the levels is written
    last, so readers see all of them or none.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mutable mapping
        An array, or a multiscale image, whose first level is taken. The group that an array is in becomes the image.
    target : the same, optional
        Where a new image is made; its full resolution is a copy of the array, byte for byte.
    path : str, optional
        Path within `source`.
    method : {"mean", "mode", "max", "min", "nearest"}, optional
        What a block becomes. Default: the mean, and for images of labels the mode. Means of integers are rounded to
        the nearest integer, halves to the even one. NaN is left out, unless a block has nothing else. The mode is the
        most frequent value, of several the smallest. "nearest" is the element at the middle, of two the first.
    levels : int, optional
        How many levels the image will have, the full resolution included. Default: until no axis that becomes shorter
        has more than 256 elements.
    factor : int or mapping of str to int
        How many elements become one along each axis of space, or by the names of the axes: ``{"z": 1}``; 2 for others.
    axes : sequence of str, optional
        Names of the axes of an array: "tczyx" or some of these in this order. Default: the names of its dimensions; of
        arrays without names, y and x, before these z, c and t.
    scale : mapping of str to float, optional
        Length of an element of an array along axes, by name; default 1.
    unit : mapping of str to str, optional
        Units of axes, by name or for all of a type: ``{"space": "micrometer"}``.
    overwrite : bool
        Make levels again that exist, or with `target` the whole image.
    resume : bool
        Continue what was interrupted: chunks that exist are not made again.
    dry_run : bool
        Write nothing; return what would be made.
    scheduler, progress, storage_options
        As for `convert`.
    max_memory : int, optional
        Bytes of elements in memory at a time, but at least what one chunk (or shard) of a level takes; default 96 MiB.

    Returns
    -------
    Pyramid
        With `levels`: path, shape, scale and translation of each.

    Raises
    ------
    NodeExistsError
        If the image has levels already, or was begun, and neither `overwrite` nor `resume`.
    NotRepresentableError
        If OME-Zarr has no words for such an image.
    MetadataError
        If a group is not an image.
    TypeError
        If the method is not valid for the data type.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> image = {}
    >>> _ = omnizarr.create_array(image, name="0", data=np.arange(16.0).reshape(4, 4), dimension_names=("y", "x"))
    >>> made = omnizarr.pyramid(image, path="0", levels=2, scale={"y": 0.5, "x": 0.5})
    >>> made.levels[1].shape, made.levels[1].scale, made.levels[1].translation
    ((2, 2), (1.0, 1.0), (0.25, 0.25))
    >>> omnizarr.open(image)["1"][...]
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """
    building = import_module("omnizarr.tools.pyramids.building")
    made: Pyramid = building.run(
        source,
        target,
        building.Wish(method, levels, factor, axes, scale or {}, unit or {}),
        path=path,
        overwrite=overwrite,
        resume=resume,
        dry_run=dry_run,
        scheduler=scheduler,
        max_memory=max_memory,
        progress=progress,
        storage_options=storage_options,
    )
    return made

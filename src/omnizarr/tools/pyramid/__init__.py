"""Multiscale images: levels of lower resolution for OME-Zarr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.pyramid.building import Pyramid


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
    max_memory: int | str | None = None,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
    ome_version: str | None = None,
    convention: str = "ome",
) -> Pyramid:
    """Make the levels of a multiscale image: OME-Zarr 0.4 in Zarr v2, 0.5 or 0.6 in v3; or of a map, as GeoZarr.

    Each level is made from the one above, block by block in bounded memory. Only spatial axes become shorter. At
    an uneven edge, blocks have fewer elements, and only these count. The metadata of the levels is written last,
    so readers see all of them or none.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mutable mapping
        An array, or a multiscale image, whose first level is used. The group that contains the array becomes the image.
    target : the same, optional
        The place of a new image. Its full resolution is a copy of the array, byte for byte.
    path : str, optional
        Path within `source`.
    method : {"mean", "mode", "max", "min", "nearest"}, optional
        How a block becomes one element. The default is the mean; for label images, the mode. Means of integers
        are rounded to the nearest integer, halves to the even one. NaN is ignored, unless a block has only NaN.
        The mode is the most frequent value; among several, the smallest. "nearest" is the element in the
        middle; among two, the first.
    levels : int, optional
        Number of levels, including the full resolution. By default, levels are added until no spatial axis has
        more than 256 elements.
    factor : int or mapping of str to int
        How many elements become one along each spatial axis, or by the names of axes: ``{"z": 1}``, with 2 for others.
    axes : sequence of str, optional
        Names of the axes of an array: "tczyx" or some of these in this order. The default is the names of its
        dimensions; for arrays without names, y and x, preceded by z, c and t.
    scale : mapping of str to float, optional
        Length of an element along axes, by name. The default is 1.
    unit : mapping of str to str, optional
        Units of axes, by name or for all of a type: ``{"space": "micrometer"}``.
    overwrite : bool
        Whether to make existing levels again, or with `target` the whole image.
    resume : bool
        Whether to continue an interrupted run. Existing chunks are not made again.
    dry_run : bool
        Whether to write nothing, and only return what would be made.
    scheduler, progress, storage_options
        As for `convert`.
    max_memory : int or str, optional
        A number, or text such as ``"500MB"`` or ``"2GiB"``:
        bytes of elements in memory at once, but at least what one chunk (or shard) of a level takes. The
        default is 96 MiB, or less by the setting ``bytes_in_flight``.
    ome_version : {"0.4", "0.5", "0.6"}, optional
        Version of OME-Zarr. By default that of the image, or else 0.4 in Zarr v2 and 0.5 in v3.
    convention : {"ome", "geozarr"}
        "geozarr": multiscales, ``spatial:`` and ``proj:`` of zarr-conventions, in Zarr v3. The place on the earth is
        that of the array: from these conventions, GDAL's ``_CRS``, a grid mapping of CF, regular coordinates of one
        dimension, or GeoTIFF. With `target`, each resolution is a group with its coordinates, which xarray and GDAL
        open; without, an array beside the full resolution. `axes`, `scale` and `unit` must be left out.

    Returns
    -------
    Pyramid
        It has `levels`, with path, shape, scale and translation of each.

    Raises
    ------
    NodeExistsError
        If the image has levels, or unfinished ones, and neither `overwrite` nor `resume` is True.
    NotRepresentableError
        If OME-Zarr cannot express the image, or nothing says where a map lies.
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
    keywords = locals()
    building = import_module("omnizarr.tools.pyramid.building")
    made: Pyramid = building.run(building.Task(**keywords))
    return made

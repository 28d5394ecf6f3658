"""Names of dimensions, wherever a format or a convention stores them.

Zarr v3 has a member for them. Older formats have none: xarray (and GDAL) stores them in the attribute
``_ARRAY_DIMENSIONS``, NCZarr in its additions to the document or the attributes of an array.

Spec: Zarr v3 core, "dimension_names"; xarray, "Zarr encoding specification"; NUG, "NCZarr".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.model import ArrayMetadata

ATTRIBUTE: Final = "_ARRAY_DIMENSIONS"
"""xarray's attribute: a list of names."""
NCZARR: Final = ("_nczarr_array", "_NCZARR_ARRAY")
"""netCDF-C's attribute or member of the document: an object."""
NCZARR_GROUP: Final = ("_nczarr_group", "_NCZARR_GROUP")
"""That of a group, which defines dimensions and lists the members of the group."""
NCZARR_REFERENCES: Final = ("dimension_references", "dimrefs")
"""The member of that of an array: a list of names with the groups that define them."""


def names_of(metadata: ArrayMetadata) -> tuple[str | None, ...] | None:
    """Return the names of an array's dimensions; None if it has none, or if they do not fit its shape.

    The separate objects that netCDF-C 4.8.0 wrote are not considered.

    Examples
    --------
    >>> from omnizarr.formats.v2 import V2
    >>> document = {"zarr_format": 2, "shape": [3, 4], "chunks": [3, 4], "dtype": "<i2", "fill_value": 0,
    ...             "order": "C", "filters": None, "compressor": None}
    >>> names_of(V2.load({".zarray": document, ".zattrs": {"_ARRAY_DIMENSIONS": ["y", "x"]}}))
    ('y', 'x')
    >>> names_of(V2.load({".zarray": {**document, "_NCZARR_ARRAY": {"dimrefs": ["/lat", "/sea/lon"]}}}))
    ('lat', 'lon')
    """
    if metadata.dimension_names is not None:
        return metadata.dimension_names
    for names in _lists(metadata):
        if isinstance(names, list | tuple) and len(names) == len(metadata.shape):
            found = tuple([name for name in names if isinstance(name, str)])
            if len(found) == len(names):
                return found
    return None


def numbered(names: tuple[str | None, ...] | None, ndim: int) -> tuple[str, ...]:
    """Return a name for each dimension: those without one have xarray's names, which count from ``dim_0``.

    Examples
    --------
    >>> numbered(("y", None), 2), numbered(None, 1)
    (('y', 'dim_1'), ('dim_0',))
    """
    return tuple(f"dim_{number}" if name is None else name for number, name in enumerate(names or (None,) * ndim))


def _lists(metadata: ArrayMetadata) -> Iterator[Any]:
    """Yield candidates for the list of names, the most common first."""
    yield metadata.attributes.get(ATTRIBUTE)
    for members in (metadata.attributes, metadata.unknown):
        for key in NCZARR:
            mark = members.get(key)
            if isinstance(mark, Mapping):
                for member in NCZARR_REFERENCES:
                    references = mark.get(member)
                    if isinstance(references, list | tuple):
                        yield [each.rpartition("/")[2] if isinstance(each, str) else each for each in references]

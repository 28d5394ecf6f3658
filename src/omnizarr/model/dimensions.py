"""Names of dimensions, wherever a format or a convention keeps them.

Zarr v3 has a member for them. Older formats have none: xarray (and GDAL) keeps them in the attribute
``_ARRAY_DIMENSIONS``, and NCZarr in what it adds to the document or the attributes of an array.

Spec: Zarr v3 core, "dimension_names"; xarray, "Zarr encoding specification"; NUG, "NCZarr".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.model import ArrayMetadata

ATTRIBUTE: Final = "_ARRAY_DIMENSIONS"
"""Of xarray: a list of names."""
NCZARR: Final = ("_nczarr_array", "_NCZARR_ARRAY")
"""Of netCDF-C, in attributes or the document: an object."""
NCZARR_REFERENCES: Final = ("dimension_references", "dimrefs")
"""Its member: a list of names with the groups that they are defined in."""


def names_of(metadata: ArrayMetadata) -> tuple[str | None, ...] | None:
    """Return the names of an array's dimensions; None if it has none, or what names them does not fit its shape.

    What netCDF-C 4.8.0 wrote into objects of their own is not seen.

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


def _lists(metadata: ArrayMetadata) -> Iterator[Any]:
    """Yield what may be a list of names, the most usual first."""
    yield metadata.attributes.get(ATTRIBUTE)
    for members in (metadata.attributes, metadata.unknown):
        for key in NCZARR:
            mark = members.get(key)
            if isinstance(mark, Mapping):
                for member in NCZARR_REFERENCES:
                    references = mark.get(member)
                    if isinstance(references, list | tuple):
                        yield [each.rpartition("/")[2] if isinstance(each, str) else each for each in references]

"""Conventions above the formats: what attributes and names mean to xarray, OME-Zarr and others.

`CONVENTIONS` is the table. To add one, write a module with a `Convention` and enter it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from omnizarr.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.conventions.xarray import XARRAY
from omnizarr.model import Loss, Metadata

__all__ = ["CONVENTIONS", "Carried", "CarriedAll", "Convention", "Fault", "Nodes", "carry", "faults", "followed"]

CONVENTIONS: Final[tuple[Convention, ...]] = (XARRAY,)
"""In the order in which they are asked."""


class CarriedAll(NamedTuple):
    """A node with all its conventions in the form that another format takes.

    Attributes
    ----------
    metadata : ArrayMetadata or GroupMetadata
        Still in the source's dialect.
    names : tuple of str
        Of the conventions that the node follows.
    remarks : tuple of str
    losses : tuple of Loss
    """

    metadata: Metadata
    names: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()


def followed(path: str, nodes: Nodes) -> Iterator[Convention]:
    """Yield the conventions that the node at a path follows."""
    return (convention for convention in CONVENTIONS if convention.recognise(path, nodes))


def carry(path: str, nodes: Nodes, dialect: str) -> CarriedAll:
    """Return the node at a path as its conventions write it in the dialect of that name.

    Examples
    --------
    >>> from omnizarr.dialects import V2
    >>> array = V2.load({".zarray": {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i2", "order": "C",
    ...     "compressor": None, "filters": None, "fill_value": -99}, ".zattrs": {"_ARRAY_DIMENSIONS": ["time"]}})
    >>> found = carry("depth", {"depth": array}, "v3")
    >>> found.metadata.dimension_names, dict(found.metadata.attributes), found.names
    (('time',), {'_FillValue': -99}, ('xarray',))
    """
    names: list[str] = []
    remarks: list[str] = []
    losses: list[Loss] = []
    metadata = nodes[path]
    is_other = metadata.dialect != dialect
    for convention in followed(path, nodes):
        names.append(convention.name)
        if is_other:
            found = convention.carry(metadata, path, nodes, dialect)
            metadata = found.metadata
            remarks += found.remarks
            losses += found.losses
    return CarriedAll(metadata, tuple(names), tuple(remarks), tuple(losses))


def faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    """Yield what is wrong with the conventions that the node at a path follows."""
    for convention in followed(path, nodes):
        yield from convention.faults(path, nodes)

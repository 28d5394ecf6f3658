"""OME-Zarr: multiscale images, labels, plates and wells of microscopy.

OME-Zarr 0.1 to 0.4 are for Zarr v2, 0.5 and 0.6 are for v3. So OME-Zarr becomes 0.5 when it is converted to v3, or 0.6
where that is asked for, and 0.4 when it is converted from v3.

Spec: https://ngff.openmicroscopy.org.
"""

from __future__ import annotations

from typing import Final

from omnizarr.formats.conventions.contract import Convention, Nodes
from omnizarr.formats.conventions.ome import reading
from omnizarr.formats.conventions.ome.carrying import NAME, carry
from omnizarr.formats.conventions.ome.checking import faults
from omnizarr.model import ArrayMetadata

__all__ = ["OME", "is_image"]

_XML: Final = "OME/METADATA.ome.xml"
"""Names of Bio-Formats' metadata of images, below a group with ``bioformats2raw.layout``."""


def is_image(path: str, nodes: Nodes) -> bool:
    """Return whether the node at a path is a resolution level of a multiscale image or label image."""
    return isinstance(nodes.get(path), ArrayMetadata) and reading.level(path, nodes) is not None


def _recognise(path: str, nodes: Nodes) -> bool:
    node = nodes[path]
    if isinstance(node, ArrayMetadata):
        return is_image(path, nodes)
    return reading.inside(node) is not None or bool(reading.outside(path, nodes))


def _files(path: str, nodes: Nodes) -> tuple[str, ...]:
    return (_XML,) if reading.LAYOUT in reading.members(path, nodes) else ()


OME: Final = Convention(
    name=NAME,
    title="OME-Zarr",
    spec="https://ngff.openmicroscopy.org",
    attributes=frozenset({reading.OME, *reading.OUTSIDE}),
    recognise=_recognise,
    carry=carry,
    faults=faults,
    files=_files,
    versions=(reading.V05, reading.V06),
)

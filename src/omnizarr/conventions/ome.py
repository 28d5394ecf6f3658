"""OME-Zarr: multiscale images, labels, plates and wells.

Spec: https://ngff.openmicroscopy.org.
"""

from __future__ import annotations

from omnizarr.conventions.contract import Nodes


def is_image(path: str, nodes: Nodes) -> bool:
    """Return whether the array at a path is a resolution level of a multiscale image."""
    return False

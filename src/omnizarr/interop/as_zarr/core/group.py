"""Groups."""

from __future__ import annotations

from omnizarr.attributes import Attributes
from omnizarr.interop.as_zarr._nodes import AsyncGroup, Group
from omnizarr.interop.as_zarr.core.metadata import ConsolidatedMetadata, GroupMetadata

__all__ = ["AsyncGroup", "Attributes", "ConsolidatedMetadata", "Group", "GroupMetadata"]

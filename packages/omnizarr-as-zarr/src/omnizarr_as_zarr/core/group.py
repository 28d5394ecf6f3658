"""Groups."""

from __future__ import annotations

from typing import Any

from omnizarr.nodes import attributes
from omnizarr_as_zarr._nodes import AsyncGroup, Group
from omnizarr_as_zarr.core.metadata import ConsolidatedMetadata, GroupMetadata


class Attributes(attributes.Attributes):
    """Attributes of a node.

    Parameters
    ----------
    obj : Array or Group
    """

    def __init__(self, obj: Any) -> None:
        found = obj.attrs
        super().__init__(found._where, found._current, found._change, found._reread)  # noqa: SLF001 - of the same class


__all__ = ["AsyncGroup", "Attributes", "ConsolidatedMetadata", "Group", "GroupMetadata"]

"""Groups."""

from __future__ import annotations

from typing import Any

from omnizarr.interop.as_zarr._nodes import AsyncGroup, Group
from omnizarr.interop.as_zarr.core.metadata import ConsolidatedMetadata, GroupMetadata
from omnizarr.nodes import attributes


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

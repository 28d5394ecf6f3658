"""The result of copying, moving or deleting a node."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Edited:
    """The result of `copy_node`, `move_node` or `delete_node`; for a dry run, the planned result.

    Attributes
    ----------
    action : {"copy", "move", "delete"}
    source : str
        The node.
    target : str or None
        The new place.
    node_type : {"array", "group"} or None
        None for remains of an interrupted copy or deletion.
    keys : int
        Number of keys: documents, chunks, and everything else below the node.
    bytes_stored : int
        Number of their stored bytes; 0 for a rename.
    is_rename : bool
        Whether the node was moved without a copy.
    verified : bool
        Whether every value was read again and compared.
    dry_run : bool
    remarks : tuple of str
        What other nodes state that is no longer true, and what could not be kept.
    """

    action: Literal["copy", "move", "delete"]
    source: str
    target: str | None = None
    node_type: Literal["array", "group"] | None = None
    keys: int = 0
    bytes_stored: int = 0
    is_rename: bool = False
    verified: bool = False
    dry_run: bool = False
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {**asdict(self), "remarks": list(self.remarks)}

"""What copying, moving or deleting a node has done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Edited:
    """What `copy_node`, `move_node` or `delete_node` has done, or in a dry run would do.

    Attributes
    ----------
    action : {"copy", "move", "delete"}
    source : str
        The node.
    target : str or None
        Where to.
    node_type : {"array", "group"} or None
        None for what an interrupted copy or deletion has left behind.
    keys : int
        Number of keys concerned: documents, chunks, and whatever else is below the node.
    bytes_stored : int
        Their bytes as they are stored. What a rename moved is not counted: 0.
    is_rename : bool
        Moved without being copied.
    verified : bool
        Every value was read again and compared.
    dry_run : bool
    remarks : tuple of str
        What other nodes say that is no longer true, and what could not be kept.
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
        """Return all of it as JSON has it."""
        return {**asdict(self), "remarks": list(self.remarks)}

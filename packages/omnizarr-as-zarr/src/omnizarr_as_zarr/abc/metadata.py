"""What metadata is to zarr-python."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Metadata(Protocol):
    """Metadata that can be written as a document."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as it is stored."""

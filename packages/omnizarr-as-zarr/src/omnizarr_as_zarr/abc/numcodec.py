"""The protocol for codecs of numcodecs in zarr-python."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Numcodec(Protocol):
    """A codec of numcodecs."""

    codec_id: str

    def encode(self, buf: Any) -> Any:
        """Return the encoded bytes."""

    def decode(self, buf: Any, out: Any | None = None) -> Any:
        """Return the decoded bytes."""

    def get_config(self) -> Any:
        """Return the configuration."""

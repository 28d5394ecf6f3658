"""What a terminal understands, as far as the environment says it."""

from __future__ import annotations

import os
from typing import TextIO


def understands_escapes(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal that understands escape sequences; one with ``TERM=dumb`` does not."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def wants_colors() -> bool:
    """Return whether the environment allows colours: neither ``NO_COLOR`` nor ``TERM=dumb``."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

"""Warnings at the line of the program that called, however many functions of ours lie in between."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Final

_PASSING: Final = frozenset({"omnizarr", "omnizarr_as_zarr"}) | sys.stdlib_module_names - {"__main__"}
"""What may lie between; of the standard library, for example, `contextlib` and `asyncio` call us for the program."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning at the nearest line of another package.

    Where there is none, as in a thread of ours or at the end of the program, it is the outermost line.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as `warnings` does itself
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSING:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level - (frame is None))

"""Progress of long commands: a bar in a terminal, a line every ten seconds elsewhere, nothing with ``--quiet``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from omnizarr.cli.options import is_quiet
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.support import progress as states
    from omnizarr.support.progress import Tracker
else:  # imported by what takes long
    states = Lazy("omnizarr.support.progress")


def wanted() -> bool | None:
    """Return what a command passes to functions as ``progress=``: True, or None with ``--quiet``."""
    return None if is_quiet() else True


def tracking(doing: str, total: int | None = None, unit: str = "key", *, hidden: bool = False) -> Tracker:
    """Return what shows a growing number; a share of `total`, if that is known."""
    return states.Tracker(None if hidden else wanted(), doing, chunks=total, unit=unit)


def clear() -> None:
    """Remove bars before other output; they are drawn again."""
    if "omnizarr.support.progress" in sys.modules:
        states.clear()


def so_far() -> str | None:
    """Return the progress of the last task in words; None if there was none."""
    state = states.last() if "omnizarr.support.progress" in sys.modules else None
    if state is None or not (state.done or state.chunks):
        return None
    return f"{state.doing}: {state.amounts()} done"

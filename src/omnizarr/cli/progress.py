"""Progress of long commands: a bar in a terminal, a line every ten seconds elsewhere, nothing with ``--quiet``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnizarr.cli.options import is_quiet
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.tools import progress as states
else:  # imported by what takes long
    states = Lazy("omnizarr.tools.progress")


def wanted() -> bool | None:
    """Return what a command passes to functions as ``progress=``: True, or None with ``--quiet``."""
    return None if is_quiet() else True


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Show a growing number; call the value with each increase."""
    with _shown("counting", what, None) as tick:
        yield tick


@contextmanager
def moving(what: str, total: int, unit: str = "element") -> Iterator[Callable[[int], None]]:
    """Show a progress bar; call the value with each increase."""
    with _shown(what, unit, total) as tick:
        yield tick


@contextmanager
def _shown(doing: str, unit: str, total: int | None) -> Iterator[Callable[[int], None]]:
    state = states.State(doing, total_chunks=total, unit=unit)

    def tick(count: int) -> None:
        state.chunks += count

    with states.show(state, states.shown() if wanted() else None):
        yield tick


def clear() -> None:
    """Remove bars before other output; they are drawn again."""
    if "omnizarr.tools.progress" in sys.modules:
        states.clear()


def so_far() -> str | None:
    """Return the progress of the last task in words; None if there was none."""
    state = states.last() if "omnizarr.tools.progress" in sys.modules else None
    if state is None or not (state.done or state.chunks):
        return None
    return f"{state.doing}: {state.amounts()} done"

"""How far a long command is, for who watches a terminal; silent in pipes and logs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnizarr.cli.options import has_color, is_quiet
from omnizarr.cli.text import has_signs
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from rich import console as consoles
    from rich import progress as bars
else:  # imported when a terminal shows progress
    consoles = Lazy("rich.console")
    bars = Lazy("rich.progress")


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Show a number that grows; the value is to be called with how much it has grown."""

    def columns() -> tuple[bars.ProgressColumn, ...]:
        return bars.SpinnerColumn(), bars.TextColumn("{task.completed:,.0f} {task.description}")

    with _shown(columns, what, None) as tick:
        yield tick


@contextmanager
def moving(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar that fills up; the value is to be called with how much more is done."""

    def columns() -> tuple[bars.ProgressColumn, ...]:
        return (
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.TextColumn("{task.percentage:>3.0f}%"),
            bars.TimeRemainingColumn(),
        )

    with _shown(columns, what, total) as tick:
        yield tick


@contextmanager
def _shown(
    columns: Callable[[], tuple[bars.ProgressColumn, ...]], what: str, total: int | None
) -> Iterator[Callable[[int], None]]:
    if is_quiet() or not sys.stderr.isatty() or not has_signs(sys.stderr):
        yield lambda _: None
        return
    console = consoles.Console(stderr=True, no_color=not has_color())
    with bars.Progress(*columns(), console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)

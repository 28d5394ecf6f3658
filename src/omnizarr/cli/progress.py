"""How far a long command is, for who watches a terminal; silent in pipes and logs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeRemainingColumn

from omnizarr.cli.options import has_color, is_quiet
from omnizarr.cli.text import has_signs


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Show a number that grows; the value is to be called with how much it has grown."""
    with _shown((SpinnerColumn(), TextColumn("{task.completed:,.0f} {task.description}")), what, None) as tick:
        yield tick


@contextmanager
def moving(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar that fills up; the value is to be called with how much more is done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with _shown(columns, what, total) as tick:
        yield tick


@contextmanager
def _shown(columns: tuple[ProgressColumn, ...], what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    if is_quiet() or not sys.stderr.isatty() or not has_signs(sys.stderr):
        yield lambda _: None
        return
    with Progress(*columns, console=Console(stderr=True, no_color=not has_color()), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)

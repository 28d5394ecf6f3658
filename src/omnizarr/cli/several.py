"""Commands that take several paths: what is printed for each, one after the other, and the highest exit code."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

import click

from omnizarr.cli import remedies, run
from omnizarr.cli.text import to_json
from omnizarr.errors import OmnizarrError
from omnizarr.support.text import visible


def heading(path: str, number: int) -> str:
    """Return the line above what is printed for a path, as ``ls`` prints it; `number` counts from 0."""
    return f"{chr(10) if number else ''}{click.style(f'{visible(path)}:', bold=True)}"


def each(
    paths: Sequence[str],
    show: Callable[[str], int],
    *,
    as_json: bool = False,
    name: str = "",
    title: Callable[[str, int], str | None] = heading,
) -> int:
    """Print something for each path, and return the highest exit code.

    An error of one path is printed, and the others follow. A single path is printed as if there were no others.

    Parameters
    ----------
    paths : sequence of str
    show : callable
        Prints it for a path, and returns an exit code.
    as_json : bool
        Whether it prints JSON. That of several paths becomes one list, whose entries have the path as "place".
    name : str
        Name in an entry for JSON that is not an object.
    title : callable
        Returns the line above what is printed for a path, by its number; None for no line.
    """
    if len(paths) == 1:
        return show(paths[0])
    code = 0
    entries: list[dict[str, Any]] = []
    for number, path in enumerate(paths):
        line = None if as_json else title(path, number)
        if line is not None:
            click.echo(line)
        printed = io.StringIO()
        try:
            if as_json:
                with redirect_stdout(printed):
                    code = max(code, show(path))
                found = json.loads(printed.getvalue())
                entries.append({"place": path, **(found if isinstance(found, dict) else {name: found})})
            else:
                code = max(code, show(path))
        except (OmnizarrError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            code = max(code, run.explain(error))
            entries.append({"place": path, "problem": remedies.safe(str(error))})
    if as_json:
        click.echo(to_json(entries, indent=2))
    return code

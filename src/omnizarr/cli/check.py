"""``omnizarr check``: report what is wrong with a hierarchy, node by node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from omnizarr.cli.locate import Storage, is_url, split_url, storage_of, watched
from omnizarr.cli.options import (
    command,
    concurrency_option,
    json_option,
    max_memory_option,
    path_argument,
    quiet_option,
    scheduler_option,
    storage_options,
)
from omnizarr.cli.progress import wanted
from omnizarr.cli.remedies import in_words, message
from omnizarr.cli.text import fit, one_line, to_json
from omnizarr.cli.trace import traced
from omnizarr.errors import NodeNotFoundError, SchedulerError, StoreError
from omnizarr.stores import kinds, pipelines
from omnizarr.support.text import visible
from omnizarr.tools.check import check as check_hierarchy
from omnizarr.tools.check.codes import CODES
from omnizarr.tools.check.report import CheckReport, Finding, grouped

FOUND, CANNOT = 1, 2

_SPARSE: Final = "missing-chunks"
_MOST: Final = 5
_COLOURS: Final = {"error": "red", "warning": "yellow", "note": "cyan"}


@command()
@path_argument
@click.option("--data", is_flag=True, help="Read and decode every chunk.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors, and unregistered names as warnings.")
@click.option("--digest", type=click.Path(exists=True, dir_okay=False), help="Compare values with digests in a file.")
@concurrency_option
@scheduler_option
@max_memory_option
@storage_options
@quiet_option
@json_option
@traced
def check(path: str, storage: Storage, *, as_json: bool, **options: Any) -> int:
    """Check a hierarchy for errors. Nothing is changed.

    Metadata is compared with the specification of its format, keys with the shapes of arrays, and consolidated metadata
    with the documents. The size of each chunk is checked; with --data, each chunk is read and decoded. If a node has
    many findings of one kind, only the first few are printed; --json prints all.

    \b
    Examples:
      omnizarr check era5.zarr
      omnizarr check --data era5.zarr/t2m
      omnizarr check --digest era5.digests backup.zarr
      omnizarr check --json era5.zarr | jq '.findings[].code'

    \b
    Exit codes:
      0  no errors; there may be warnings and notes
      1  errors were found (with --strict: or warnings)
      2  PATH could not be checked
    """  # noqa: D301 - click's mark of lines to be kept
    store, inside = _split(path)
    try:
        where = watched(store, storage_of(store, storage))
        report = check_hierarchy(where, path=inside or None, progress=wanted(), **options)
    except (NodeNotFoundError, StoreError, SchedulerError, ValueError) as error:
        click.echo(f"omnizarr: {one_line(message(error))}", err=True)
        return CANNOT
    if as_json:
        click.echo(to_json(report.to_dict(), indent=2))
    else:
        for line in _lines(report):
            click.echo(line)
    return 0 if report.ok else FOUND


def _split(text: str) -> tuple[str, str]:
    """Return the store that a path leads to, and the path within it."""
    if is_url(text):
        return split_url(text)
    if pipelines.is_pipeline(text):
        return text, ""
    place = Path(text).expanduser()
    inside: list[str] = []
    while not place.exists() and place.parent != place:
        inside.insert(0, place.name)
        place = place.parent
    if inside and place.is_file() and kinds.leads_to_file("/".join(inside)):
        return text, ""  # of another format, in an archive
    # If a name is misspelt, nothing exists there; then do not check the whole directory above.
    return (str(place), "/".join(inside)) if inside and place != place.parent else (text, "")


def _lines(report: CheckReport) -> Iterator[str]:
    sparse = [each for each in report.findings if each.code == _SPARSE]
    others = report.findings if len(sparse) == 1 else tuple(each for each in report.findings if each.code != _SPARSE)
    for path, findings in grouped(others).items():
        yield click.style(visible(f"/{path}"), bold=True)
        yield from _of_node(findings)
    if len(sparse) > 1:  # sparse arrays are no fault, and a line for each would hide what is
        what = f"of {len(sparse):,} arrays, {CODES[_SPARSE].meaning}; --json lists them"
        yield f"{click.style(sparse[0].severity, fg=_COLOURS[sparse[0].severity])} {_SPARSE}: {what}"
    # The remedy of a kind of finding is the same at every node.
    codes = sorted({finding.code for finding in report.findings if finding.severity != "note"})
    if codes:
        yield click.style("what to do", bold=True)
    for code in codes:
        yield f"  {code}: {in_words(CODES[code].remedy)}"
    yield fit(report.summary())


def _of_node(findings: list[Finding]) -> Iterator[str]:
    """Yield the lines for the findings at one node, of each kind the first few."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.code, []).append(finding)
    for code, found in kinds.items():
        for finding in found[:_MOST]:
            yield f"  {click.style(finding.severity, fg=_COLOURS[finding.severity])} {code}: {one_line(finding.text)}"
            if finding.remedy != CODES[code].remedy:
                yield click.style(fit(f"    → {one_line(in_words(finding.remedy))}"), dim=True)
        if len(found) > _MOST:
            yield f"    and {len(found) - _MOST:,} more of this kind"

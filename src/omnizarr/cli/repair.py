"""``omnizarr repair``: list the repairs that need no guessing, and make them on request."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import click

from omnizarr.cli.check import CANNOT, FOUND, _split
from omnizarr.cli.locate import Storage, storage_of
from omnizarr.cli.options import PLACE, command, json_option, quiet_option, storage_options
from omnizarr.cli.progress import wanted
from omnizarr.cli.remedies import in_words, message
from omnizarr.cli.text import fit, one_line, to_json
from omnizarr.errors import NodeNotFoundError, ReadOnlyError, StoreError
from omnizarr.nodes.location import StorePath
from omnizarr.stores import resolve
from omnizarr.support.text import visible
from omnizarr.tools.check.report import Finding
from omnizarr.tools.repair import repair as repair_hierarchy
from omnizarr.tools.repair import undo_repair
from omnizarr.tools.repair.report import Account, Action

_MOST: Final = 20


@command()
@click.argument("path", type=PLACE, required=False)
@click.option("--yes", is_flag=True, help="Make the repairs. Without it, they are only listed.")
@click.option(
    "--only", "codes", metavar="CODE", multiple=True, help="Repair findings of this kind only. Can be repeated."
)
@click.option("--data", is_flag=True, help="Read and decode every chunk, to find shards that are cut off.")
@click.option("--adopt", is_flag=True, help="Keep netCDF records that a killed writer left behind.")
@click.option("--backup", metavar="DIR", type=click.Path(), help="Directory for the old values. Default: beside PATH.")
@click.option(
    "--older-than",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=3600.0,
    help="Minimum age of leftover temporary files and locks to remove. Default: 3600.",
)
@click.option("--undo", metavar="ACCOUNT", type=click.Path(exists=True), help="Undo a repair: restore the old values.")
@storage_options
@quiet_option
@json_option
def repair(
    path: str | None,
    yes: bool,  # noqa: FBT001 - click passes by name
    codes: tuple[str, ...],
    data: bool,  # noqa: FBT001
    adopt: bool,  # noqa: FBT001
    backup: str | None,
    older_than: float,
    undo: str | None,
    storage: Storage,
    as_json: bool,  # noqa: FBT001
) -> int:
    """Repair what a check finds, if the repair is certain.

    Nothing is changed without --yes, or your consent in a terminal. Old values are kept in a directory beside PATH,
    with a record of all changes, which --undo reverts. Repairs that give up data (broken chunks, chunks outside the
    shape of the array) are made only if you name them with --only.

    \b
    Examples:
      omnizarr repair era5.zarr
      omnizarr repair era5.zarr --yes
      omnizarr repair era5.zarr --only stale-consolidated-metadata --yes
      omnizarr repair --undo era5.zarr.omnizarr-repair-20260102T030405 --yes

    \b
    Exit codes:
      0  no errors are left
      1  repairs were not made, or errors cannot be repaired
      2  PATH could not be read or changed
    """  # noqa: D301 - click's mark of lines to be kept

    def run(*, dry_run: bool) -> Account:
        if undo is not None:
            return undo_repair(undo, path, dry_run=dry_run)
        store, inside = _split(path or "")
        options: dict[str, Any] = {
            "codes": codes or None,
            "data": data,
            "adopt": adopt,
            "backup": backup,
            "older_than": older_than,
        }
        place: Any = store
        if storage:
            place = StorePath(*resolve(store, "r" if dry_run else "r+", storage_of(store, storage)))
        return repair_hierarchy(place, path=inside or None, dry_run=dry_run, progress=wanted(), **options)

    if path is None and undo is None:
        raise click.UsageError("missing argument 'PATH'")
    try:
        account = run(dry_run=not yes)
        if not as_json:
            _print(account, undoing=undo is not None)
        if account.dry_run and account.actions and not as_json:
            if not (_is_terminal() and click.confirm("Do this?")):
                click.echo("nothing was changed; to make these repairs, add --yes")
            else:
                account = run(dry_run=False)
                _print(account, undoing=undo is not None)
    except ValueError as error:
        if isinstance(error, (NodeNotFoundError, StoreError, ReadOnlyError)):
            return _cannot(error)
        raise click.UsageError(message(error)) from None
    except StoreError as error:
        return _cannot(error)
    if as_json:
        click.echo(to_json(account.to_dict(), indent=2))
    return 0 if account.ok else FOUND


def _cannot(error: Exception) -> int:
    click.echo(f"omnizarr: {one_line(message(error))}", err=True)
    return CANNOT


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _print(account: Account, *, undoing: bool) -> None:
    for line in _lines(account, undoing=undoing):
        click.echo(line)


def _lines(account: Account, *, undoing: bool) -> Iterator[str]:
    by_path: dict[str, tuple[list[Action], list[Finding]]] = {}
    for action in account.actions:
        by_path.setdefault(action.path, ([], []))[0].append(action)
    for finding in account.left:
        by_path.setdefault(finding.path, ([], []))[1].append(finding)
    for path in sorted(by_path, key=lambda path: path.split("/")):
        actions, left = by_path[path]
        yield click.style(visible(f"/{path}"), bold=True)
        yield from _some([_action(action, account) for action in actions])
        yield from _some([_left(finding) for finding in left])
    if account.backup is not None and not undoing and not account.dry_run:
        yield f"old values are in {visible(account.backup)}"
    yield fit(account.summary())


def _some(lines: list[str]) -> Iterator[str]:
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"    and {len(lines) - _MOST:,} more"


def _action(action: Action, account: Account) -> str:
    verb, colour = ("would", "cyan") if account.dry_run else ("did", "green") if action.done else ("did not", "yellow")
    return f"  {click.style(verb, fg=colour)} {action.code}: {one_line(action.text)}"


def _left(finding: Finding) -> str:
    text = f"  {click.style('left', fg='yellow')} {finding.code}: {one_line(finding.text)}"
    return f"{text}\n{click.style(fit(f'    → {one_line(in_words(finding.remedy))}'), dim=True)}"

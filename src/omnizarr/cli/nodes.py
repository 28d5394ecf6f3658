"""``omnizarr cp | mv | rm``: nodes, byte for byte."""

from __future__ import annotations

import sys
from typing import Any

import click

from omnizarr.cli.locate import Storage, storage_of, storage_of_both
from omnizarr.cli.options import (
    PLACE,
    command,
    dry_run_option,
    json_option,
    overwrite_option,
    quiet_option,
    scheduler_option,
    storage_options,
)
from omnizarr.cli.progress import wanted
from omnizarr.cli.remedies import in_words
from omnizarr.cli.text import fit, to_json
from omnizarr.nodes import wording
from omnizarr.support.text import visible
from omnizarr.tools.edit import copy_node, delete_node, move_node, places
from omnizarr.tools.edit.report import Edited


@command()
@click.argument("source", metavar="SRC", type=PLACE)
@click.argument("target", metavar="DST", type=PLACE)
@overwrite_option
@click.option("--resume", is_flag=True, help="Continue a copy that was interrupted.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Read each value again and compare.")
@dry_run_option
@storage_options
@scheduler_option
@quiet_option
@json_option
def cp(source: str, target: str, storage: Storage, *, as_json: bool, **options: Any) -> int:
    """Copy a node, or a whole hierarchy, byte for byte.

    DST is the place of the copy, in any store. Nothing is decoded. The copy appears when it is complete. Consolidated
    metadata of the groups above DST is updated. To change format, chunks or codecs, use convert.

    \b
    Examples:
      omnizarr cp era5.zarr backup.zarr
      omnizarr cp era5.zarr era5.zip
      omnizarr cp era5.zarr/t2m other.zarr/t2m
      omnizarr cp https://example.org/era5.zarr/t2m s3://bucket/t2m.zarr
      omnizarr cp era5.zarr s3://bucket/era5.zarr --resume
    """  # noqa: D301 - click's mark of lines to be kept
    if options["overwrite"] and options["resume"]:
        raise click.UsageError("--overwrite and --resume exclude each other")
    options["storage_options"] = storage_of_both(source, target, storage)
    return _tell(copy_node(source, target, progress=wanted(), **options), as_json=as_json)


@command()
@click.argument("source", metavar="SRC", type=PLACE)
@click.argument("target", metavar="DST", type=PLACE)
@dry_run_option
@storage_options
@quiet_option
@json_option
def mv(source: str, target: str, storage: Storage, *, as_json: bool, **options: Any) -> int:
    """Move or rename a node, or a whole hierarchy.

    DST is the new place, in any store. Within one file system the node is renamed; otherwise it is copied, compared,
    and then deleted. Consolidated metadata of the groups above is updated.

    \b
    Examples:
      omnizarr mv era5.zarr/t2m era5.zarr/temperature
      omnizarr mv era5.zarr/t2m other.zarr/t2m
      omnizarr mv era5.zarr archive/era5.zarr
    """  # noqa: D301 - click's mark of lines to be kept
    options["storage_options"] = storage_of_both(source, target, storage)
    return _tell(move_node(source, target, progress=wanted(), **options), as_json=as_json, name=source, made=target)


@command()
@click.argument("path", type=PLACE, nargs=-1, required=True)
@click.option("-r", "--recursive", is_flag=True, help="Delete groups with everything below them.")
@click.option("-f", "--force", is_flag=True, help="Delete a whole hierarchy without asking.")
@dry_run_option
@storage_options
@quiet_option
@json_option
def rm(path: tuple[str, ...], storage: Storage, *, recursive: bool, force: bool, dry_run: bool, as_json: bool) -> int:
    """Delete nodes: their documents and chunks, and nothing else.

    Directories that are not Zarr nodes, and nodes with files of other programs below them, raise an error. Consolidated
    metadata of the groups above is updated. In a terminal, rm asks before it deletes a whole hierarchy.

    \b
    Examples:
      omnizarr rm era5.zarr/t2m
      omnizarr rm -r era5.zarr/ocean
      omnizarr rm -r -n era5.zarr
    """  # noqa: D301 - click's mark of lines to be kept
    done: list[Edited] = []
    try:
        for each in path:
            of_store = storage_of(each, storage) or None
            options: dict[str, Any] = {"recursive": recursive, "storage_options": of_store}
            if recursive and not (force or dry_run) and _is_terminal():
                _confirm(each, options)
            done.append(delete_node(each, dry_run=dry_run, progress=wanted(), **options))
            if not as_json:
                _tell(done[-1], as_json=False, name=each)
    finally:  # also when one of them fails: those before it are gone
        if as_json and len(path) > 1:
            click.echo(to_json([outcome.to_dict() for outcome in done], indent=2))
        elif as_json and done:
            _tell(done[0], as_json=True)
    return 0


def _confirm(path: str, options: dict[str, Any]) -> None:
    """Ask before a whole hierarchy is deleted."""
    if not places.place(path, None, "r+", options["storage_options"]).path:
        would = delete_node(path, dry_run=True, **options)
        click.confirm(fit(f"Delete the whole hierarchy {visible(path)} ({_amount(would)})?"), abort=True)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _amount(outcome: Edited) -> str:
    return f"{outcome.keys:,} {'key' if outcome.keys == 1 else 'keys'}, {wording.size(outcome.bytes_stored)}"


def _tell(outcome: Edited, *, as_json: bool, name: str | None = None, made: str | None = None) -> int:
    """Print what was done with a node: to which `name`, if there are several, and what was `made` of it."""
    if as_json:
        click.echo(to_json(outcome.to_dict(), indent=2))
        return 0
    verb = {"copy": "copied", "move": "moved", "delete": "deleted"}[outcome.action]
    verb = f"would be {verb}" if outcome.dry_run else verb
    what = outcome.node_type or "leftovers of an interrupted command"
    named = f" {visible(name)}" if name is not None else ""
    place = [] if made is None else [f"now {visible(made)}"]
    if outcome.is_rename:
        click.echo(": ".join([f"{what}{named} {'would be ' if outcome.dry_run else ''}renamed", *place]))
    else:
        facts = [*place, _amount(outcome), *(["compared"] if outcome.verified else [])]
        click.echo(fit(f"{what}{named} {verb}: {' · '.join(facts)}"))
    for remark in outcome.remarks:
        click.echo(fit(f"note: {visible(in_words(remark))}"))
    return 0

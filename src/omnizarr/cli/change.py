"""``omnizarr consolidate | resize``: change consolidated metadata, and the shape of an array."""

from __future__ import annotations

import sys

import click

from omnizarr.api.creating import consolidate_metadata
from omnizarr.cli.locate import Storage, storage_of
from omnizarr.cli.options import command, dry_run_option, json_option, path_argument, quiet_option, storage_options
from omnizarr.cli.text import fit, to_json
from omnizarr.errors import ShapeError
from omnizarr.nodes import wording
from omnizarr.support.text import visible
from omnizarr.tools.edit import places
from omnizarr.tools.edit import resize as resizing


@command()
@path_argument
@click.option("--remove", is_flag=True, help="Delete the copies; the documents stay.")
@storage_options
@quiet_option
def consolidate(path: str, storage: Storage, *, remove: bool) -> int:
    """Store copies of all documents below a group in one place.

    Then opening the group takes only one request.

    Zarr v2 keeps the copies in .zmetadata, v3 in the document of the group. Programs other than omnizarr and
    zarr-python do not update the copies when they change the hierarchy; run this command again afterwards.

    \b
    Examples:
      omnizarr consolidate era5.zarr
      omnizarr consolidate --remove era5.zarr
    """  # noqa: D301 - click's mark of lines to be kept
    with places.opened(path, None, "r+", storage_of(path, storage) or None) as where:
        group = consolidate_metadata(where, remove=remove)
        count = group.nmembers(None)
    done = (
        "consolidated metadata removed" if remove else f"metadata of {wording.plural(count + 1, 'node')} consolidated"
    )
    click.echo(f"{visible(path)}: {done}")
    return 0


@command()
@path_argument
@click.argument("shape")
@click.option("--shrink", is_flag=True, help="Delete elements beyond the new shape without asking.")
@dry_run_option
@storage_options
@quiet_option
@json_option
def resize(path: str, shape: str, storage: Storage, *, shrink: bool, dry_run: bool, as_json: bool) -> int:
    """Change the shape of an array; elements keep their coordinates.

    SHAPE has a length for each dimension: 400,721,1440. A colon keeps a length: 400,:,:. Dimensions can have names:
    time=400. New elements have the fill value. Elements beyond the new shape are deleted for good, which requires
    --shrink, or your consent in a terminal.

    \b
    Examples:
      omnizarr resize era5.zarr/t2m 400,:,:
      omnizarr resize era5.zarr/t2m time=400
      omnizarr resize era5.zarr/t2m time=100 --shrink
    """  # noqa: D301 - click's mark of lines to be kept
    with places.opened(path, None, "r+", storage_of(path, storage) or None) as where:
        try:
            plan = resizing.plan(where, shape)
        except ShapeError as error:
            raise click.UsageError(str(error)) from None
        if plan.shrinks and not (shrink or dry_run):
            if not _is_terminal():
                raise click.UsageError(f"{_loss(plan)}: type --shrink if that is what you want")
            click.confirm(f"{_loss(plan)}. Go on?", abort=True)
        if not dry_run:
            resizing.run(plan)
    if as_json:
        click.echo(to_json({**plan.to_dict(), "dry_run": dry_run}, indent=2))
        return 0
    old, new = wording.lengths(plan.old), wording.lengths(plan.new)
    click.echo(fit(f"{visible(path)}: {old} → {new}{' would be done' if dry_run else ''}"))
    if plan.shrinks:
        click.echo(_loss(plan) if dry_run else _loss(plan).replace("would be", "were"))
    for remark in plan.remarks:
        click.echo(f"note: {visible(remark)}")
    return 0


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _loss(plan: resizing.Resize) -> str:
    gone, cut = wording.plural(plan.deleted, "chunk"), wording.plural(plan.cut, "chunk")
    return f"{gone} would be deleted and {cut} cut"

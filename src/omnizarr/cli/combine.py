"""``omnizarr combine``: many groups as one, kept in a small file."""

from __future__ import annotations

import os
from typing import Any

import click

from omnizarr.api.combining import combine as combine_groups
from omnizarr.api.views import save_view
from omnizarr.cli.locate import Storage, is_url, storage_of_both
from omnizarr.cli.options import PLACE, command, json_option, overwrite_option, quiet_option, storage_options
from omnizarr.cli.text import fit, to_json
from omnizarr.errors import NodeExistsError
from omnizarr.nodes import wording
from omnizarr.nodes.group import Group
from omnizarr.nodes.lazy.store import LazyStore
from omnizarr.stores.kinds import VIEW
from omnizarr.support.text import visible


@command()
@click.argument("sources", metavar="SRC...", type=PLACE, nargs=-1, required=True)
@click.argument("target", metavar="DST", type=PLACE)
@click.option("--along", required=True, metavar="NAME", help="The dimension along which the groups follow each other.")
@click.option(
    "--overlaps",
    type=click.Choice(["error", "first", "last"]),
    default="error",
    show_default=True,
    help="If groups have the same places: whose elements to take.",
)
@click.option(
    "--gaps",
    type=click.Choice(["error", "keep", "fill"]),
    default="error",
    show_default=True,
    help="If places are missing between groups: join them nevertheless, or fill with missing values.",
)
@click.option(
    "--absent",
    type=click.Choice(["error", "fill", "drop"]),
    default="error",
    show_default=True,
    help="If a group lacks a variable: fill with missing values, or drop the variable.",
)
@click.option(
    "--compat",
    type=click.Choice(["equals", "override"]),
    default="equals",
    show_default=True,
    help="Variables without the dimension: must be equal, or are those of the first group.",
)
@click.option("--no-sort", "sort", is_flag=True, flag_value=False, default=True, help="Keep the order of the groups.")
@click.option(
    "--grid",
    type=click.Choice(["regular", "rectilinear"]),
    default="regular",
    show_default=True,
    help="Chunks of one shape, or chunks that start again with each group: few programs read those.",
)
@overwrite_option
@storage_options
@quiet_option
@json_option
def combine(
    sources: tuple[str, ...],
    target: str,
    storage: Storage,
    *,
    along: str,
    overwrite: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Show many groups as one group, without copying them.

    DST is a small file, NAME.zview, that names the groups. Whatever takes a path opens it; convert makes a copy of it.
    Variables that have the dimension are joined in the order of its coordinate. Others are compared, and taken once.

    \b
    Examples:
      omnizarr combine --along time run-2020.zarr run-2021.zarr run.zview
      omnizarr combine --along time --gaps fill run-*.zarr run.zview
      omnizarr convert run.zview all.zarr
    """  # noqa: D301 - click's mark of lines to be kept
    if not target.endswith(VIEW):
        raise click.UsageError(f"DST is {target!r}: expected a name that ends in {VIEW}. To copy it: omnizarr convert")
    if not overwrite and not is_url(target) and os.path.lexists(target):
        raise NodeExistsError("the file exists", store=target, remedy="pass --overwrite to replace it")
    of_storage = storage_of_both(sources[0], target, storage)
    group = combine_groups(sources, along, storage_options=of_storage, **options)
    save_view(target, group, overwrite=overwrite, storage_options=of_storage)
    return _tell(group, target, along, as_json=as_json)


def _tell(group: Group, target: str, along: str, *, as_json: bool) -> int:
    store = group.store
    assert isinstance(store, LazyStore)  # noqa: S101 - combine returned it
    joined = {name: view for name, view in store.views.items() if along in (view.dimension_names or ())}
    count = max((view.nsources for view in joined.values()), default=1)
    length = next((view.shape[(view.dimension_names or ()).index(along)] for view in joined.values()), 0)
    if as_json:
        found = {
            "path": target,
            "sources": count,
            "along": along,
            "length": length,
            "joined": sorted(joined),
            "notes": list(store.notes),
        }
        click.echo(to_json(found, indent=2))
        return 0
    groups = wording.plural(count, "group")
    arrays = wording.plural(len(joined), "array")
    click.echo(fit(f"{visible(target)}: {groups} along {visible(along)}, {length:,} long; {arrays} joined"))
    for note in store.notes:
        click.echo(fit(f"  {visible(note)}"))
    return 0

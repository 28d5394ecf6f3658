"""``omnizarr view``: hierarchies in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnizarr.cli.locate import Storage, is_url, open_node
from omnizarr.cli.options import PLACE, command, storage_options
from omnizarr.cli.serve import check_names, checked_token, host_option, hosts_option, public_option, token_option
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.web import facts, viewing
else:  # imported when first used, as they need an extra
    facts = Lazy("omnizarr.web.facts")
    viewing = Lazy("omnizarr.web.viewing")


@command()
@click.argument("paths", metavar="PATH...", type=PLACE, nargs=-1, required=True)
@click.option("--no-browser", is_flag=True, help="Do not open a browser; only print the URL.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port.  [default: one that is free]"
)
@host_option
@token_option
@public_option
@hosts_option
@storage_options
def view(
    paths: tuple[str, ...],
    storage: Storage,
    *,
    no_browser: bool,
    port: int,
    host: str,
    token: str | None,
    public: bool,
    hosts: tuple[str, ...],
) -> int:
    """Show hierarchies in the browser, in any format, until Ctrl-C.

    Arrays are pictures, lines or tables; beside them are the tree, attributes, codecs, documents and a map of stored
    chunks. Only what the screen needs is read, and nothing is changed. With several PATHs you can look at two side by
    side. The page loads nothing from the internet. Only programs of this machine reach it, unless you say otherwise.

    \b
    Examples:
      omnizarr view era5.zarr
      omnizarr view before.zarr after.zarr
      omnizarr view https://example.org/image.ome.zarr
      omnizarr view --no-browser --port 8080 era5.zarr

    \b
    Exit codes:
      0  ended by Ctrl-C
      1  not found, or the port is taken
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    check_names(hosts)
    token = checked_token(host, token, public=public)
    has_urls = any(map(is_url, paths))
    nodes = [open_node(path, storage if is_url(path) or not has_urls else None) for path in paths]

    def tell(url: str) -> None:
        click.echo(f"{', '.join(paths)}: {url}")
        click.echo("Ctrl-C ends this.", err=True)

    viewing.view(
        *map(facts.Dataset, nodes, paths),
        host=host,
        port=port,
        token=token,
        public=public,
        hosts=hosts,
        browser=not no_browser,
        block=True,
        started=tell,
    )
    return 0

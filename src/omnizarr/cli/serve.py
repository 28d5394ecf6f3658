"""``omnizarr serve``: a hierarchy over HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from omnizarr.cli.locate import Storage, open_node
from omnizarr.cli.options import command, path_argument, storage_options
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.web import guards, serving
else:  # imported when first used, as they need an extra
    guards = Lazy("omnizarr.web.guards")
    serving = Lazy("omnizarr.web.serving")

NEW: Final = "new"
PORT: Final = 8000
FEW: Final = 1000

port_option: Final = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    metavar="N",
    help=f"Port; 0 picks a free one.  [default: {PORT}]",
)
host_option: Final = click.option(
    "--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen at.  [default: 127.0.0.1]"
)
token_option: Final = click.option(
    "--token",
    envvar="OMNIZARR_TOKEN",
    metavar="TEXT",
    help=f"Token that every request must carry; '{NEW}' makes one. Default: $OMNIZARR_TOKEN.",
)
public_option: Final = click.option(
    "--public", is_flag=True, help="Serve at an address that others reach although there is no token."
)
hosts_option: Final = click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Name by which a proxy on this machine calls the server. Can be repeated.",
)


def checked_token(host: str, token: str | None, *, public: bool) -> str | None:
    """Return the token, or a new one if that is wanted; refuse an address that others reach without one."""
    if token is None and not public and not guards.is_loopback(host):
        raise click.UsageError(f"all programs that reach {host} could read the data: type --token {NEW}, or --public")
    if token is None or token == NEW:
        return None if token is None else secrets.token_urlsafe(24)
    try:
        guards.check_token(token)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return token


def check_names(hosts: Sequence[str], origins: Sequence[str] = ()) -> None:
    """Raise click.UsageError if a name of a host or an origin is not valid."""
    for option, check, given in (("--allow-host", "check_hosts", hosts), ("--cors", "check_origins", origins)):
        try:
            getattr(guards, check)(given)
        except ValueError as error:
            raise click.UsageError(f"{option}: {error}") from None


def address(url: str, token: str | None) -> str:
    """Return what to type into a browser."""
    return url if token is None else f"{url}/?token={token}"


@command()
@path_argument
@click.option("--as", "zarr_format", type=click.Choice(["v3", "v2"]), help="Format that clients see.  [default: v3]")
@click.option("--raw", is_flag=True, help="Serve the bytes as they are stored, in their own format.")
@click.option(
    "--consolidated",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Make consolidated metadata for groups with up to N nodes below them; 0: never.  [default: {FEW}]",
)
@port_option
@host_option
@token_option
@public_option
@hosts_option
@click.option(
    "--cors",
    "--origin",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="Origin of web pages that may read the data, or '*'. Can be repeated. Default: none.",
)
@storage_options
def serve(
    path: str,
    storage: Storage,
    *,
    zarr_format: str | None,
    raw: bool,
    consolidated: int | None,
    port: int,
    host: str,
    token: str | None,
    public: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> int:
    """Serve a hierarchy over HTTP, read-only, until Ctrl-C.

    Clients see Zarr v3, whatever the format of the hierarchy: documents are translated, and chunks are passed on
    unchanged, or encoded again if the formats differ. Only programs of this machine reach the server, unless you say
    otherwise. Keys are not listed: clients open nodes by their paths, or find them in consolidated metadata, which is
    made on request for groups that have none.

    \b
    Examples:
      omnizarr serve era5.zarr
      omnizarr serve --as v2 --port 8080 s3://bucket/era5.zarr
      omnizarr serve --host 0.0.0.0 --token new era5.zarr

    \b
    Exit codes:
      0  ended by Ctrl-C
      1  not found, or the port is taken
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    if raw and zarr_format is not None:
        raise click.UsageError("--raw serves the stored bytes: leave out --as")
    if raw and consolidated is not None:
        raise click.UsageError("--raw serves the stored bytes: leave out --consolidated")
    check_names(hosts, origins)
    token = checked_token(host, token, public=public)
    what = "as it is stored" if raw else f"as Zarr {zarr_format or 'v3'}"

    def tell(url: str) -> None:
        click.echo(f"{path} {what}: {address(url, token)}")
        click.echo("Ctrl-C ends this.", err=True)

    serving.serve(
        open_node(path, storage),
        host=host,
        port=port,
        zarr_format=2 if zarr_format == "v2" else 3,
        raw=raw,
        consolidated=FEW if consolidated is None else consolidated,
        token=token,
        public=public,
        hosts=hosts,
        origins=origins,
        started=tell,
    )
    return 0

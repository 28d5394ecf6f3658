"""``omnizarr digest``: checksums of values and metadata, one line per node, like ``sha256sum``."""

from __future__ import annotations

from typing import Any

import click

from omnizarr.cli import several
from omnizarr.cli.locate import Storage, is_url, open_node, split, storage_of
from omnizarr.cli.options import (
    command,
    concurrency_option,
    json_option,
    max_memory_option,
    paths_argument,
    quiet_option,
    scheduler_option,
    storage_options,
)
from omnizarr.cli.progress import wanted
from omnizarr.cli.text import to_json
from omnizarr.support.text import visible
from omnizarr.tools.digest import digest as digest_hierarchy
from omnizarr.tools.digest import digest_of_bytes
from omnizarr.tools.digest.hash_tree import ALGORITHMS


@command()
@paths_argument
@click.option("-s", "--summary", is_flag=True, help="Print only the digest of PATH, which includes all nodes below it.")
@click.option("--bytes", "of_bytes", is_flag=True, help="Print DANDI's checksum of the stored bytes instead.")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="sha256", show_default=True, help="Hash function.")
@click.option("--allow-pickle", is_flag=True, help="Read pickled objects, which can run any code.")
@concurrency_option
@scheduler_option
@max_memory_option
@storage_options
@quiet_option
@json_option
def digest(
    paths: tuple[str, ...], storage: Storage, *, summary: bool, of_bytes: bool, as_json: bool, **options: Any
) -> int:
    """Print digests of values, the same in all formats.

    Format, chunks, codecs, byte order and fill value do not matter: a hierarchy keeps its digests when you convert or
    rechunk it. With several paths, those of each follow a line "# PATH"; with --summary or --bytes, the path is behind
    its digest. --bytes prints DANDI's checksum (md5-count--size) of the stored bytes instead.

    \b
    Examples:
      omnizarr digest era5.zarr > era5.digests
      omnizarr check --digest era5.digests backup.zarr
      omnizarr digest --summary era5.zarr/t2m
      omnizarr digest --summary era5.zarr scan.zarr
      omnizarr digest --bytes cells.ome.zarr

    \b
    Exit codes:
      0  done
      1  a node or a chunk cannot be read
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    if of_bytes:
        meaningless = {
            "--summary": summary,
            "--algorithm": options["algorithm"] != "sha256",
            "--scheduler": options["scheduler"],
            "--max-memory": options["max_memory"],
        }
        for name, is_given in meaningless.items():
            if is_given:
                raise click.UsageError(f"{name} means nothing with --bytes")

    def line(text: str, path: str) -> str:
        return text if len(paths) == 1 else f"{text.partition(' ')[0]}  {visible(path)}"

    def show(path: str) -> int:
        if of_bytes:
            store, inside = (path, "") if is_url(path) else split(path)
            keywords = {"concurrency": options["concurrency"], "storage_options": storage_of(path, storage)}
            found = digest_of_bytes(store, path=inside or None, progress=wanted(), **keywords)
            click.echo(to_json({"digest": found}, indent=2) if as_json else line(found, path))
            return 0
        made = digest_hierarchy(open_node(path, storage), progress=wanted(), **options)
        if as_json:
            click.echo(to_json({"digest": made.digest} if summary else made.to_dict(), indent=2))
        else:
            click.echo(line(str(made).partition("\n")[0], path) if summary else str(made))
        return 0

    def title(path: str, _: int) -> str | None:
        return None if summary or of_bytes else f"# {visible(path)}"

    return several.each(paths, show, as_json=as_json, title=title)

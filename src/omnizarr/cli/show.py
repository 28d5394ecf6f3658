"""``omnizarr show``: a picture of an array in the terminal, or in a file."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from omnizarr.cli.locate import Storage, is_url, open_node
from omnizarr.cli.options import command, has_color, long_storage_options, one_of, path_argument, refuse_options
from omnizarr.cli.remedies import message
from omnizarr.cli.selections import parse
from omnizarr.cli.trace import traced
from omnizarr.errors import NodeNotFoundError, OmnizarrError
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.pictures import colours
from omnizarr.pictures.picture import SUFFIXES
from omnizarr.pictures.terminal import PROTOCOLS, Protocol, detection
from omnizarr.support.text import visible

_PAPER: Final = (760, 560)
_NO_COLORS: Final = {"NO_COLOR": "1"}


def _two(names: str) -> Any:
    """Return what parses two numbers, as in ``--limits 0,1``."""

    def parsed(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, float] | None:
        if text is None:
            return None
        try:
            low, high = map(float, text.split(","))
        except ValueError:
            raise click.BadParameter(f"{text!r}: expected {names}, as in 0,1") from None
        return low, high

    return parsed


# A selection may begin with a minus sign.
@command(context_settings={"ignore_unknown_options": True})
@path_argument
@click.argument("selection", nargs=-1)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help=f"Write a file: {', '.join(SUFFIXES)}."
)
@click.option(
    "--colormap",
    metavar="NAME",
    default="viridis",
    shell_complete=one_of(colours.NAMES),
    help=f"Colours: {', '.join(colours.NAMES)}; with _r in reverse.",
)
@click.option("--limits", metavar="LOW,HIGH", callback=_two("two numbers"), help="Values at both ends of the colours.")
@click.option(
    "--percentiles",
    metavar="LOW,HIGH",
    callback=_two("two percentiles"),
    help="Take these percentiles for both ends of the colours.  [default: 2,98]",
)
@click.option(
    "--rgb/--no-rgb",
    default=None,
    help="Show a dimension of length 3 or 4 as colours; or do not, and do not blend channels either.",
)
@click.option("--protocol", type=click.Choice(PROTOCOLS), help="How the terminal shows pixels, if the guess is wrong.")
@long_storage_options
@traced
def show(
    path: str,
    selection: tuple[str, ...],
    output: str | None,
    colormap: str,
    limits: tuple[float, float] | None,
    percentiles: tuple[float, float] | None,
    protocol: Protocol | None,
    storage: Storage,
    *,
    rgb: bool | None,
) -> int:
    """Show an array as a picture, in the terminal or in a file.

    One dimension is a line, two are an image; text and records are a table. With more dimensions, the picture has y and
    x, or the last two, at the first index of the others. Type SELECTION as in Python: integers, slices, "...", and the
    name of a field in quotes. PATH can be a group: a multiscale image of OME-Zarr, whose channels are blended in their
    colours, or any other group, of which one array is shown.

    No more elements are read than the picture has room for: every n-th, or a coarser level of an OME-Zarr image.
    Terminals with kitty's protocol, iTerm2's or Sixel show pixels; others show half blocks in colours. Pipes, and
    terminals without colours, get text.

    \b
    Examples:
      omnizarr show era5.zarr/t2m
      omnizarr show era5.zarr/t2m "0, ::4"
      omnizarr show era5.zarr/t2m "0, :, 2" --limits 200,320
      omnizarr show era5.zarr/t2m -o t2m.svg --colormap magma
    """  # noqa: D301 - click's mark of lines to be kept
    refuse_options((path, *selection))
    if output is not None and not Path(output).parent.is_dir():
        raise click.BadParameter(f"{visible(output)!r}: there is no directory {visible(str(Path(output).parent))!r}")
    node = open_node(path, storage)
    node = in_its_group(node, path, storage) if isinstance(node, Array) else node
    terminal = detection.terminal_of(sys.stdout, None if has_color() else _NO_COLORS, protocol)
    try:
        picture = node.show(
            parse(" ".join(selection)),
            colormap=colormap,
            limits=limits,
            percentiles=percentiles or (2, 98),
            rgb=rgb,
            size=terminal.dots if output is None else _PAPER,
        )
        if output is not None:
            picture.save(Path(output))
            return 0
    except NodeNotFoundError as error:
        if isinstance(node, Group) and error.remedy is not None:
            error.remedy = f"choose an array below: omnizarr ls -r {visible(path)}"
        raise
    except ValueError as error:
        # Errors in the data have types of their own.
        if type(error) is not ValueError:
            raise
        raise click.UsageError(message(error)) from None
    # Not click's echo: without colours it would take out what paints the pixels that were asked for.
    sys.stdout.write(picture.to_text(terminal))
    return 0


def in_its_group(array: Array, url: str, storage: Storage) -> Array:
    """Return an array that was opened by its own URL as one of the group around it, which has the coordinates."""
    outer, _, name = url.rstrip("/").rpartition("/")
    if array.path or not is_url(url) or "/" not in outer.partition("://")[2]:
        return array
    with suppress(OmnizarrError, OSError, click.UsageError):
        group = open_node(outer, storage)
        found = None if isinstance(group, Array) or group.metadata.implicit else group.get(name)
        return found if isinstance(found, Array) else array
    return array

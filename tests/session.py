"""The terminal session of the manual, run on real data: ``python -m tests.session`` draws ``docs/session.svg`` again.

The data are photographs that come with scikit-image (``make demo`` installs it): a retina, and dividing cells. They are
written as Zarr v2, as an older program would have done, and one chunk is lost.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import omnizarr
from omnizarr.cli import main

PICTURE = Path(__file__).parents[1] / "docs" / "session.svg"
WIDTH = 84
TYPED = (
    "tree eye.zarr",
    "info eye.zarr/retina",
    'get eye.zarr/retina "700, ::300, :"',
    "stat eye.zarr",
    "check eye.zarr",
    "convert eye.zarr eye-v3.zarr --shards 1024,1024,3",
    "diff eye.zarr eye-v3.zarr",
    "du eye-v3.zarr",
    "inof eye-v3.zarr",
)
_THEME = TerminalTheme(
    (23, 27, 34),
    (214, 220, 228),
    [
        (23, 27, 34),
        (224, 108, 117),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (214, 220, 228),
    ],
)


class Screen(io.StringIO):
    """A terminal that keeps what it shows."""

    encoding = "utf-8"

    def isatty(self):
        return True


def write(place):
    """Write the data, and lose a chunk."""
    from skimage import data

    root = omnizarr.create_group(place, zarr_format=2, attributes={"title": "Photographs of scikit-image"})
    retina = data.retina()
    blosc = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}
    array = root.create_array("retina", data=retina, chunks=(512, 512, 3), compressors=blosc)
    array.attrs.update({"long_name": "fundus of a healthy eye", "_ARRAY_DIMENSIONS": ["y", "x", "rgb"]})
    cells = data.cell()
    root.create_array("microscope/cell", data=cells, chunks=(256, 256), compressors=blosc)
    (place / "retina" / "2.2.0").unlink()


def run(line):
    """Return what a command shows in a terminal."""
    screen = Screen()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(io.StringIO()) as errors:
        main(shlex.split(line))
    return screen.getvalue() + errors.getvalue()


def drawing():
    """Return the session as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for number, line in enumerate(TYPED):
        console.print(Text.assemble(("$ ", "bold green"), (f"omnizarr {line}", "bold")))
        console.print(Text.from_ansi(run(line).rstrip()))
        if number < len(TYPED) - 1:
            console.print()
    # No fonts from the network: each reader has a monospaced one.
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace(
        "font-family: Fira Code, monospace", "font-family: Menlo, Consolas, DejaVu Sans Mono, monospace"
    )
    form = form.replace("<svg class", '<svg xml:space="preserve" class', 1)
    return console.export_svg(title="omnizarr", theme=_THEME, code_format=form, unique_id="session")


def draw():
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        old = Path.cwd()
        os.chdir(folder)
        try:
            write(Path("eye.zarr"))
            picture = drawing()
        finally:
            os.chdir(old)
    PICTURE.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    os.environ.pop("NO_COLOR", None)
    draw()
    sys.stdout.write(f"{PICTURE}\n")

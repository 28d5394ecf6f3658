"""The picture that `Array.show` returns, for notebooks, terminals and files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnizarr.pictures import paper, svg, terminal
from omnizarr.pictures.contents import Page, Table
from omnizarr.pictures.figure import Figure, figure_of
from omnizarr.pictures.terminal import Protocol, Terminal, detection
from omnizarr.support import terminals

SUFFIXES: Final = (".png", ".svg", ".html")
"""Files that a picture can be saved as."""


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture of an array. It holds all the data that it shows, and reads nothing more.

    Notebooks show it as an image with axes and a legend. `print` draws it in the terminal.

    Attributes
    ----------
    page : Page
        Title, content and notes.
    size : tuple of int
        Largest width and height of the image or plot in a file or notebook, in pixels.
    """

    page: Page
    size: tuple[int, int] = (520, 400)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file whose name ends in .png, .svg or .html.

        Raises
        ------
        ValueError
            If the name has another ending.
        MissingDependencyError
            If Pillow is missing, which .png needs (the extra ``show``).
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix == ".png":
            path.write_bytes(self._repr_png_())
        elif suffix == ".svg":
            path.write_text(svg.of_figure(self._figure(), is_file=True), "utf-8")
        elif suffix == ".html":
            head = '<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
            path.write_text(f"{head}<title>{svg.escaped(self.page.title)}</title>{self._repr_html_()}\n", "utf-8")
        else:
            raise ValueError(f"{path.name}: cannot tell the format of the picture: expected {', '.join(SUFFIXES)}")

    def to_text(self, terminal_: Terminal | None = None) -> str:
        """Return the picture as text for a terminal. The default is a terminal of 80 columns without colours."""
        return terminal.render(self.page, terminal_ or Terminal())

    def _figure(self) -> Figure:
        return figure_of(self.page, *self.size)

    def _repr_png_(self) -> bytes:
        return paper.of_figure(self._figure())

    def _repr_html_(self) -> str:
        content = self.page.content
        if not isinstance(content, Table):
            return f"<div>{svg.of_figure(self._figure())}</div>"
        head, *rows = (
            "".join(f"<{tag} style='text-align:left'>{svg.escaped(cell)}</{tag}>" for cell in row)
            for tag, row in (("th", content.names), *(("td", row) for row in content.rows))
        )
        body = "".join(f"<tr>{row}</tr>" for row in (head, *rows))
        notes = f'<div style="opacity:.65">{svg.escaped(self.page.notes)}</div>' if self.page.notes else ""
        return f"<div><b>{svg.escaped(self.page.title)}</b><table>{body}</table>{notes}</div>"

    def __repr__(self) -> str:
        # Colours only in a terminal. No protocols for images: a program may process a repr before it prints it.
        stream = sys.stdout
        is_seen = stream is not None and stream.isatty()
        protocol: Protocol = "blocks" if terminals.wants_colors() else "text"
        return self.to_text(detection.terminal_of(stream, protocol=protocol) if is_seen else None).rstrip("\n")

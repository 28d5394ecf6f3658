"""Figures as SVG. They take the colours of the page around them, light or dark."""

from __future__ import annotations

import base64
from html import escape
from typing import Final

from omnizarr.pictures.figure import FONT, Figure, Line, Shape, Text
from omnizarr.pictures.pixels import as_png

_DATA: Final = "#4a8fc2"


def of_figure(figure: Figure, *, is_file: bool = False) -> str:
    """Return a figure as an element of HTML, or as a file of its own.

    >>> of_figure(Figure(10, 10, (Text(1, 9, "<b>"),), "<b>"))
    '<svg ...><title>&lt;b&gt;</title><text x="1" y="9">&lt;b&gt;</text></svg>'
    """
    width, height = f"{figure.width:.0f}", f"{figure.height:.0f}"
    # A file has no page around it, so its colours follow the reader's preference.
    style = "<style>svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>" if is_file else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" style="max-width:100%;height:auto" '
        f'font-family="system-ui,sans-serif" font-size="{FONT:g}" fill="currentColor">'
        f"{style}<title>{escaped(figure.title)}</title>{''.join(map(_element, figure.shapes))}</svg>"
    )


def _element(shape: Shape) -> str:
    if isinstance(shape, Text):
        anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
        bold = ' font-weight="bold"' if shape.is_bold else ""
        faint = ' opacity=".65"' if shape.is_faint else ""
        return f'<text x="{shape.x:.4g}" y="{shape.y:.4g}"{anchor}{bold}{faint}>{escaped(shape.text)}</text>'
    if isinstance(shape, Line):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        color = f'stroke="{_DATA}" stroke-width="1.4" stroke-linejoin="round"'
        return f'<polyline points="{points}" fill="none" {color if shape.is_data else _FAINT}/>'
    data = base64.b64encode(as_png(shape.pixels)).decode()
    # Elements have edges.
    return (
        f'<image x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


_FAINT: Final = 'stroke="currentColor" stroke-opacity=".6"'


def escaped(text: str) -> str:
    """Return a text as HTML and XML write it."""
    return escape("".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text))

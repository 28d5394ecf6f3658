"""Drawings of hierarchies."""

from __future__ import annotations

import html
import sys
from typing import Any

from omnizarr.nodes.group import Group
from omnizarr.nodes.info_tree import draw


class TreeRepr:
    """A drawing of the nodes below a group, with names in bold type in terminals.

    Parameters
    ----------
    group : Group
    level : int, optional
        How deep to go; None: all the way.
    max_nodes : int
        How many nodes to draw at most.
    plain : bool
        Without bold type.
    """

    def __init__(self, group: Group, level: int | None, max_nodes: int, *, plain: bool) -> None:
        marks = ("", "") if plain else ("\x02", "\x03")  # which no name that is drawn can hold
        tree = draw(group.name, group._walk(level), max_nodes, lambda name: f"{marks[0]}{name}{marks[1]}")  # noqa: SLF001 - a part of it
        self._marked = tree.text + "\n"
        self._note = ""
        if tree.note:
            self._note = f"Truncated at max_nodes={max_nodes}, some nodes and their children may be missing\n"

    def _text(self, first: str, last: str) -> str:
        return self._note + self._marked.replace("\x02", first).replace("\x03", last)

    def __repr__(self) -> str:
        return self._text("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else self._text("", "")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **options: Any) -> dict[str, str]:
        body = html.escape(self._text("\x02", "\x03")).replace("\x02", "<b>").replace("\x03", "</b>")
        style = "white-space:pre;overflow-x:auto;line-height:normal;font-family:monospace"
        return {"text/plain": self._text("", ""), "text/html": f'<pre style="{style}">{body}</pre>\n'}

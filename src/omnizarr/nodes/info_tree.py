"""A hierarchy drawn as a tree of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from omnizarr.support.lazy import Lazy
from omnizarr.support.text import visible

if TYPE_CHECKING:
    import html

    from omnizarr.nodes import info
else:
    html = Lazy("html")  # loads a table of entities, and is rarely needed
    info = Lazy("omnizarr.nodes.info")


@dataclass(frozen=True, repr=False)
class Tree:
    """A drawing: a line for each node, and a note if some are omitted."""

    text: str
    note: str = ""

    def __repr__(self) -> str:
        return f"{self.text}\n{self.note}" if self.note else self.text

    def _repr_html_(self) -> str:
        escaped = html.escape(repr(self))
        return f'<pre style="white-space: pre; line-height: normal">{escaped}</pre>'


def draw(
    root: str, members: Iterable[tuple[str, Any]], max_nodes: int = 500, styled: Callable[[str], str] = str
) -> Tree:
    """Return the drawing of nodes, given as (path, node), each after its group, with `styled` names."""
    taken = list(islice(members, max_nodes + 1))
    is_cut = len(taken) > max_nodes
    taken = taken[:max_nodes]
    below: dict[str, list[tuple[str, Any]]] = {}
    for path, node in taken:
        below.setdefault(path.rpartition("/")[0], []).append((path, node))
    lines = [styled(visible(root))]
    stack = [("", iter(below.get("", ())), len(below.get("", ())))]
    # Not recursive: a hierarchy may be deeper than Python's stack.
    while stack:
        indent, iterator, left = stack.pop()
        item = next(iterator, None)
        if item is None:
            continue
        path, node = item
        stack.append((indent, iterator, left - 1))
        is_last = left == 1
        lines.append(f"{indent}{'└── ' if is_last else '├── '}{_label(path, node, styled)}")
        children = below.get(path, ())
        stack.append((f"{indent}{'    ' if is_last else '│   '}", iter(children), len(children)))
    note = f"... only the first {max_nodes} nodes; ask for more with max_nodes=" if is_cut else ""
    return Tree("\n".join(lines), note)


def _label(path: str, node: Any, styled: Callable[[str], str]) -> str:
    name = styled(visible(path.rpartition("/")[2]))
    if info.is_array(node):
        return f"{name} {node.shape} {visible(info.type_name(node.metadata))}"
    if hasattr(node, "error"):
        return f"{name} unreadable: {visible(node.error.message)}"
    return name

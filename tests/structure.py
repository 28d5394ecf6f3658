"""How the source is built: which modules import which, in any way, and the picture of it in the manual.

``python -m tests.structure`` draws that picture.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "omnizarr"
PICTURE = ROOT / "docs" / "structure.svg"

ROOMS = (
    *("support", "errors", "settings", "model", "indexing", "codecs", "formats", "stores", "readers", "engine"),
    "metadata",
    *("pictures", "nodes", "api", "data", "tools", "netcdf", "storage", "aio", "web", "cli", "interop"),
)
"""From the ground floor up: a room imports from those before it."""
ROOF = {"", "__main__"}  # they see every room

HOLDS = {
    "support": "what every room may use",
    "errors": "the tree of errors",
    "settings": "defaults of the process",
    "model": "metadata, data types, grids, keys",
    "indexing": "selections become plans",
    "codecs": "bytes and elements",
    "formats": "documents in, model out, back",
    "stores": "keys and bytes",
    "readers": "files of other formats",
    "engine": "runs plans against stores",
    "metadata": "the model, as users get it",
    "pictures": "of values, in files and terminals",
    "nodes": "arrays and groups",
    "api": "create, open, save",
    "data": "batches for training",
    "netcdf": "the data model of netCDF",
    "tools": "check, repair, convert, copy",
    "storage": "stores, under one name",
    "aio": "arrays and groups to be awaited",
    "web": "hierarchies over HTTP",
    "cli": "the command line",
    "interop": "xarray, dask, zarr-python",
}


def module_name(path: Path) -> str:
    parts = ["omnizarr", *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


class Arrow(NamedTuple):
    line: int
    target: str
    types_only: bool


def room_of(module: str) -> str:
    """Return the room of a module: ``omnizarr.codecs.gzip`` -> ``codecs``."""
    return module.split(".")[1] if "." in module else ""


def names_in(node: ast.AST) -> list[str]:
    """Return what an import statement, or a call of `Lazy` or `import_module`, names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert not node.level, "imports here are absolute"
        # `from omnizarr.model import grids` names a module, `from omnizarr.model.grids import bind` a thing in one.
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in {
        "Lazy",
        "import_module",
        "__import__",
    }:
        return [each.value for each in node.args[:1] if isinstance(each, ast.Constant)]
    return []


def of_types_only(tree: ast.AST) -> set[ast.AST]:
    """Return all nodes under ``if TYPE_CHECKING``."""
    return {
        below
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for below in ast.walk(statement)
    }


@cache
def arrows_of(module: str) -> tuple[Arrow, ...]:
    """Return the modules of omnizarr that one imports: at once, when it is used, or for types alone."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    types_only = of_types_only(tree)
    found = {
        Arrow(node.lineno, target, node in types_only)
        for node in ast.walk(tree)
        for name in names_in(node)
        if (target := nearest(name)) is not None and target != module
    }
    # What is imported lazily stands under TYPE_CHECKING too.
    late = {arrow.target for arrow in found if not arrow.types_only}
    return tuple(sorted(arrow for arrow in found if not (arrow.types_only and arrow.target in late)))


def nearest(name: str) -> str | None:
    """Return the module that a name is in; None for those of others, and for the extension module."""
    if name == "omnizarr._native":
        return None
    while name not in MODULES and name:
        name = name.rpartition(".")[0]
    return name or None


def circles(graph: Mapping[str, Iterable[str]]) -> Iterator[frozenset[str]]:
    """Yield the sets of modules of which each leads to each other (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> Iterator[frozenset[str]]:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for target in graph.get(module, ()):
            if target not in order:
                yield from visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            place = stack.index(module)
            found = frozenset(stack[place:])
            del stack[place:]
            if len(found) > 1:
                yield found

    for module in graph:
        if module not in order:
            yield from visit(module)


# -- the picture --------------------------------------------------------------------

_WIDTH, _HEIGHT, _GAP, _RISE = 170, 44, 26, 66
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1c2733}.n{font-weight:600}.h{font-size:9px;fill:#51606f}"
    "rect{fill:#f6f8fa;stroke:#8a97a5}path{fill:none;stroke:#4a8fc2}"
)


def rooms() -> dict[str, set[str]]:
    """Return the rooms that each room imports from."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module in MODULES:
        if room_of(module) in found:
            found[room_of(module)] |= {room_of(arrow.target) for arrow in arrows_of(module)} - {room_of(module)}
    return found


def floors(below: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the floor of each room: one above the highest that it imports from."""
    found: dict[str, int] = {}
    for room in ROOMS:
        found[room] = max((found[each] + 1 for each in below[room]), default=0)
    return found


def drawing() -> str:
    """Return the picture as SVG: the rooms by floors, each with the arrows that no longer way implies."""
    below = rooms()
    floor_of = floors(below)
    top = max(floor_of.values())
    rows = [[room for room in ROOMS if floor_of[room] == floor] for floor in range(top + 1)]
    width = max(map(len, rows)) * (_WIDTH + _GAP) + _GAP
    place = {
        room: (
            (width - len(row) * (_WIDTH + _GAP) + _GAP) // 2 + number * (_WIDTH + _GAP),
            _GAP + (top - floor_of[room]) * _RISE,
        )
        for row in rows
        for number, room in enumerate(row)
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top * _RISE + _HEIGHT + 2 * _GAP}" role="img">',
        "<title>The rooms of omnizarr: each imports from those below it</title>",
        f"<style>{_STYLE}</style>",
    ]
    for room, others in below.items():
        for other in sorted(others):
            if not any(other in reached(below, each) for each in others - {other}):
                (x, y), (to_x, to_y) = place[room], place[other]
                x, to_x, y = x + _WIDTH // 2, to_x + _WIDTH // 2, y + _HEIGHT
                middle = (y + to_y) // 2
                lines.append(f'<path d="M{x} {y}C{x} {middle} {to_x} {middle} {to_x} {to_y}"/>')
    for room, (x, y) in place.items():
        middle = x + _WIDTH // 2
        lines += [
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>',
            f'<text class="n" x="{middle}" y="{y + 19}" text-anchor="middle">{room}</text>',
            f'<text class="h" x="{middle}" y="{y + 34}" text-anchor="middle">{escape(HOLDS[room])}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def reached(below: Mapping[str, set[str]], room: str) -> set[str]:
    """Return all rooms that one imports from, by way of others too."""
    return below[room].union(*(reached(below, each) for each in below[room]))


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")

"""Rooms import only from lower floors, in whichever way, and no modules import each other (docs/architecture.md)."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "omnizarr"

ROOMS = (
    *("support", "errors", "settings", "model", "indexing", "codecs", "formats", "stores", "engine", "metadata"),
    *("nodes", "api", "netcdf", "tools", "storage", "aio", "cli", "interop"),
)
"""From the ground floor up: a room imports from those before it."""
ROOF = {"", "__main__"}  # they see every room

TYPES_ONLY = {
    ("omnizarr.engine.native", "omnizarr.engine.binding"): "engines take the Binding that chose them",
    ("omnizarr.engine.reference", "omnizarr.engine.binding"): "the same",
    ("omnizarr.netcdf.copying", "omnizarr.netcdf.dataset"): "fills the Dataset that calls it",
    ("omnizarr.netcdf.dimension", "omnizarr.netcdf.group"): "a dimension names the group that it is in",
    ("omnizarr.netcdf.variable", "omnizarr.netcdf.group"): "so does a variable",
    ("omnizarr.nodes.info_html", "omnizarr.nodes.array"): "shows the node that calls it",
    ("omnizarr.nodes.info_html", "omnizarr.nodes.group"): "the same",
}
"""Imports under TYPE_CHECKING that close a circle, and why: none of them happens."""

CIRCLES = {
    frozenset(
        f"omnizarr.stores.remote.{name}" for name in ("fsspec", "references", "reference_targets")
    ): "a filesystem of fsspec can be a set of references, whose files lie in filesystems of fsspec",
    frozenset(
        {"omnizarr.interop.as_zarr.storage._below", "omnizarr.interop.as_zarr.storage._classes"}
    ): "zarr-python's stores are called by ours, and call ours",
    frozenset(
        {"omnizarr.interop.as_zarr._nodes", "omnizarr.interop.as_zarr.api.synchronous"}
    ): "zarr-python's nodes have functions of its api as methods",
}
"""Modules that import each other, at least one of them only when it is used, and why."""


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
    """Return the module that a name lies in; None for those of others, and for the extension module."""
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


@pytest.mark.parametrize("module", MODULES)
def test_room_has_a_floor(module):
    assert room_of(module) in {*ROOMS, *ROOF}, "give the room a place in ROOMS and in docs/architecture.md"


@pytest.mark.parametrize("module", MODULES)
def test_imports_come_from_lower_floors(module):
    room = room_of(module)
    upward = [
        f"line {arrow.line}: {room} imports {arrow.target}"
        for arrow in arrows_of(module)
        if room not in ROOF
        and room_of(arrow.target) != room
        and room_of(arrow.target) not in ROOMS[: ROOMS.index(room)]
    ]
    assert not upward, "\n".join(upward)


def test_no_modules_import_each_other():
    graph = {module: [arrow.target for arrow in arrows_of(module) if not arrow.types_only] for module in MODULES}
    assert set(circles(graph)) == set(CIRCLES)


def test_imports_for_types_alone_that_close_a_circle_are_known():
    graph = {module: [arrow.target for arrow in arrows_of(module)] for module in MODULES}
    known = {frozenset(circle) for circle in CIRCLES}
    found = {
        (module, arrow.target)
        for circle in circles(graph)
        if circle not in known
        for module in circle
        for arrow in arrows_of(module)
        if arrow.types_only and arrow.target in circle
    }
    assert found == set(TYPES_ONLY)


def test_circles_are_found():
    assert list(circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]})) == [frozenset("bc")]
    assert not list(circles(dict(pairwise(("a", "b", "c")))))

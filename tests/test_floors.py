"""Rooms import only from lower floors (docs/architecture.md, "Rooms and floors")."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "omnizarr"

# One floor, one order: nodes are built upon each other.
NODES = [
    *["suggestions", "places", "detection", "erasing", "hierarchy", "metadata", "attributes", "consolidated"],
    *["creation", "assignment", "resizing", "cards"],
    *["behaviour", "layout", "views", "reading"],
    *["node", "array", "tree", "nodes", "group", "opening", "api", "saving"],
]
FLOORS = {
    "texts": 0,
    "errors": 0.1,
    "settings": 0,
    "memo": 0,
    "late": 0,
    "model": 1,
    "datatypes": 2,
    "dimensions": 2,
    "grids": 2,
    "keys": 2,
    "fillcoding": 2,
    "indexing": 2.5,
    "codecs": 3,
    "dialects": 3,
    "conventions": 3.5,
    "stores": 4,
    "engine": 5,
    **{room: 6 + place / 100 for place, room in enumerate(NODES)},
    "netcdf": 6.9,
    "tools": 7,
    "cli": 8,
    "html": 8,
    "storage": 8,
    "interop": 8.5,
    "aio": 8,
}
ROOF = 9  # omnizarr/__init__.py and __main__.py see every room

MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(module: str) -> str:
    """Return the room of a dotted module name: ``omnizarr.codecs.gzip`` -> ``codecs``."""
    return module.split(".")[1] if "." in module else ""


def floor_of(room: str) -> float:
    return FLOORS.get(room, ROOF)


def module_name(path: Path) -> str:
    parts = ["omnizarr", *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of each omnizarr module that a file imports, under `if TYPE_CHECKING` too."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = [*base, node.module] if node.module else base
            # `from omnizarr import grids` names a room, `from omnizarr.model.grids import bind` a thing in one.
            names = [".".join([*base, alias.name]) for alias in node.names]
        else:
            continue
        for name in names:
            if name == "omnizarr" or name.startswith("omnizarr."):
                yield node.lineno, name


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_room_has_a_floor(path):
    room = room_of(module_name(path))
    assert room in FLOORS or room in {"", "__main__"}, (
        f"give the room {room!r} a floor in docs/architecture.md and here"
    )


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_come_from_lower_floors(path):
    room = room_of(module_name(path))
    upward = [
        f"line {line}: floor {floor_of(room)} imports {name} from floor {floor_of(room_of(name))}"
        for line, name in imports_of(path)
        if room_of(name) != room and floor_of(room_of(name)) >= floor_of(room)
    ]
    assert not upward, "\n".join(upward)

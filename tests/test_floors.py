"""Rooms import only from lower floors, in any way, and no modules import each other (docs/architecture.md)."""

from itertools import pairwise

import pytest

from tests.structure import MODULES, PICTURE, ROOF, ROOMS, arrows_of, circles, drawing, room_of

pytestmark = pytest.mark.rules

TYPES_ONLY = {
    ("omnizarr.data.torch_dataset", "omnizarr.data.loader"): "iterates the loader that made it",
    ("omnizarr.engine.native", "omnizarr.engine.binding"): "engines take the Binding that chose them",
    ("omnizarr.engine.reference", "omnizarr.engine.binding"): "the same",
    ("omnizarr.netcdf.copying", "omnizarr.netcdf.dataset"): "fills the Dataset that calls it",
    ("omnizarr.netcdf.attributed", "omnizarr.netcdf.session"): "attributes are changed in the session of their node",
    ("omnizarr.netcdf.records", "omnizarr.netcdf.dimension"): "records wait in a session for their dimensions",
    ("omnizarr.netcdf.records", "omnizarr.netcdf.session"): "the same",
    ("omnizarr.netcdf.records", "omnizarr.netcdf.variable"): "the same",
    ("omnizarr.netcdf.dimension", "omnizarr.netcdf.group"): "a dimension names the group that it is in",
    ("omnizarr.netcdf.variable", "omnizarr.netcdf.group"): "so does a variable",
    ("omnizarr.netcdf.in_file", "omnizarr.netcdf.group"): "and one of a file",
    ("omnizarr.nodes.info_html", "omnizarr.nodes.array"): "shows the node that calls it",
    ("omnizarr.nodes.info_html", "omnizarr.nodes.group"): "the same",
    ("omnizarr.nodes.extremes", "omnizarr.nodes.array"): "reads a line of one, for the picture that the node shows",
    ("omnizarr.nodes.members", "omnizarr.nodes.group"): "lists the groups that are members of one",
    ("omnizarr.nodes.showing", "omnizarr.nodes.array"): "shows the node that calls it",
    ("omnizarr.nodes.showing", "omnizarr.nodes.group"): "the same",
    ("omnizarr.nodes.showing.around", "omnizarr.nodes.array"): "the same",
    ("omnizarr.nodes.showing.meaning", "omnizarr.nodes.array"): "the same",
}
"""Imports under TYPE_CHECKING that close a circle, and why: none of them happens."""


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
    assert not list(circles(graph))


def test_imports_for_types_alone_that_close_a_circle_are_known():
    graph = {module: [arrow.target for arrow in arrows_of(module)] for module in MODULES}
    found = {
        (module, arrow.target)
        for circle in circles(graph)
        for module in circle
        for arrow in arrows_of(module)
        if arrow.types_only and arrow.target in circle
    }
    assert found == set(TYPES_ONLY)


def test_circles_are_found():
    assert list(circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]})) == [frozenset("bc")]
    assert not list(circles(dict(pairwise(("a", "b", "c")))))


def test_the_picture_in_the_manual_shows_existing_data():
    assert PICTURE.read_text(encoding="utf-8") == drawing(), "python -m tests.structure"

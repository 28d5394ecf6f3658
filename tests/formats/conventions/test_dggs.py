"""``dggs`` is compared with arrays and with ids of cells.

Expected values are those of the text, of HEALPix (12 cells at level 0, each of which has four), and of the
documentation of H3: 0x8928308280fffff is a cell of level 9, and 0x8828308281fffff the one of level 8 that it is in.
"""

import numpy as np
import pytest
from click.testing import CliRunner

import omnizarr
from omnizarr.cli.commands import omnizarr as program
from omnizarr.nodes import meaning

DGGS = "7b255807-140c-42ca-97f6-7a1cfecdbc38"
ELLIPSOID = {"name": "wgs84", "semimajor_axis": 6378137.0, "inverse_flattening": 298.257223563}
GRID = {
    "name": "healpix",
    "refinement_level": 1,
    "indexing_scheme": "nested",
    "spatial_dimension": "cells",
    "ellipsoid": ELLIPSOID,
    "coordinate": "cell_ids",
    "compression": "none",
}


def gridded(ids=(0, 7, 47), cells=3, shape=None, **changes):
    """Return a store with data in the cells of a grid; members that are None are left out."""
    said = {name: value for name, value in {**GRID, **changes}.items() if value is not ...}
    store = {}
    root = omnizarr.create_group(store, attributes={"zarr_conventions": [{"uuid": DGGS}], "dggs": said})
    root.create_array("t", data=np.zeros((2, cells)), dimension_names=("time", "cells"))
    if ids is not None:
        ids = np.asarray(ids)
        names = ("cells",) if ids.ndim == 1 else ("ranges", "ends")
        root.create_array("cell_ids", data=ids, dimension_names=names)
    return store


def found_in(store, **options):
    findings = omnizarr.check(store, **options).findings
    return [(each.code, each.path) for each in findings if each.code != "missing-chunks"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"ellipsoid": ...}, None),
        ({"compression": ...}, None),
        ({"name": "HEALPix"}, "dggs-invalid"),
        ({"name": ...}, "dggs-invalid"),
        ({"refinement_level": ...}, "dggs-invalid"),
        ({"refinement_level": -1}, "dggs-invalid"),
        ({"refinement_level": 30}, "dggs-invalid"),
        ({"refinement_level": True}, "dggs-invalid"),
        ({"refinement_level": None}, None),
        ({"refinement_level": None, "compression": "ranges"}, "dggs-invalid"),
        ({"spatial_dimension": ...}, "dggs-invalid"),
        ({"spatial_dimension": "x"}, "dggs-arrays"),
        ({"compression": "zip"}, "dggs-invalid"),
        ({"compression": "compacted", "ids": [1, 2]}, None),
        ({"compression": "ranges"}, "dggs-arrays"),
        ({"compression": "ranges", "ids": [[0, 3]]}, None),
        ({"coordinate": "nowhere"}, "dggs-arrays"),
        ({"ids": [1, 2]}, "dggs-arrays"),
        ({"coordinate": ..., "ids": None}, "dggs-invalid"),  # a compression of nothing
        ({"coordinate": ..., "compression": ..., "ids": None}, "dggs-arrays"),  # not all cells
        ({"coordinate": ..., "compression": ..., "ids": None, "cells": 48}, None),
        ({"coordinate": ..., "compression": ..., "ids": None, "name": "h3", "refinement_level": 0, "cells": 122}, None),
        ({"ellipsoid": {"name": "wgs84"}}, "dggs-invalid"),
        ({"ellipsoid": {**ELLIPSOID, "semiminor_axis": 6356752.3}}, "dggs-invalid"),
    ],
)
def test_grid_is_compared_with_the_arrays(changes, code):
    assert found_in(gridded(**changes)) == ([(code, "")] if code else [])


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, False),
        ({"ids": [0, 7, 48]}, True),
        ({"ids": [0, 7, -1]}, True),
        ({"ids": [0, 7, 7]}, True),
        ({"ids": [0.0, 7.0, 8.0]}, True),
        ({"ids": [0, 7, 7], "indexing_scheme": "zuniq", "refinement_level": 29}, True),
        ({"ids": [0, 7, 2**60], "indexing_scheme": "zuniq"}, False),  # counts otherwise
        ({"ids": [[0, 3], [4, 48]], "compression": "ranges"}, False),
        ({"ids": [[0, 3], [4, 49]], "compression": "ranges"}, True),
        ({"ids": [[3, 0]], "compression": "ranges"}, True),
        ({"ids": [0x8928308280FFFFF], "cells": 1, "name": "h3", "refinement_level": 9}, False),
        ({"ids": [0x8928308280FFFFF], "cells": 1, "name": "h3", "refinement_level": 8}, True),
        ({"ids": [0x8828308281FFFFF], "cells": 1, "name": "h3", "refinement_level": 8}, False),
        ({"ids": [1, 2, 10**9], "name": "unheard", "refinement_level": 3}, False),
    ],
)
def test_ids_are_cells_of_the_level_and_there_once(changes, wrong):
    store = gridded(**changes)
    assert found_in(store) == []
    assert found_in(store, data=True) == ([("dggs-cells", "cell_ids")] if wrong else [])


def test_finding_names_the_cell_and_the_level():
    found = omnizarr.check(gridded([0, 7, 48]), data=True).findings
    finding = next(each for each in found if each.code == "dggs-cells")
    assert (finding.found, finding.expected) == (48, "0 to 47 at level 1")


def test_array_takes_all_from_itself_or_all_from_its_group():
    store = gridded()
    root = omnizarr.open(store, mode="r+")
    own = {"dggs": {"name": "h3", "refinement_level": 2, "spatial_dimension": "cells"}}
    root.create_array("other", data=np.zeros(3), dimension_names=("cells",), attributes=own)
    root.create_array("else", data=np.zeros(3), dimension_names=("x",))
    grids = {name: meaning.of(omnizarr.open(store)[name]).get("grid") for name in ("t", "other", "else")}
    assert (grids["t"]["name"], grids["t"]["level"], grids["t"]["coordinate"]) == ("healpix", 1, "cell_ids")
    assert grids["other"] == {"name": "h3", "level": 2, "dimension": "cells", "compression": "none", "cells": 5882}
    assert grids["else"] is None


def test_command_shows_the_grid(tmp_path):
    store = gridded(compression="compacted")
    omnizarr.convert(store, tmp_path / "g.zarr")
    shown = CliRunner().invoke(program, ["info", str(tmp_path / "g.zarr")])
    assert "healpix, level 1, nested, cells along cells, ids in cell_ids (compacted)" in shown.output
    assert omnizarr.open(tmp_path / "g.zarr").attrs["dggs"]["ellipsoid"] == ELLIPSOID


@pytest.mark.parametrize("said", [3, [], {"name": ["a"]}, {"name": "healpix", "refinement_level": 10**400}])
def test_whatever_is_there_is_a_finding(said):
    store = {}
    omnizarr.create_group(store, attributes={"zarr_conventions": [{"uuid": DGGS}], "dggs": said})
    assert {code for code, _ in found_in(store, data=True)} == {"dggs-invalid"}
    assert "grid" not in meaning.of(omnizarr.open(store))

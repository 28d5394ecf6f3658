"""The benchmark of a million arrays does each operation with a few, and tells how they grow."""

from dataclasses import asdict

import pytest

import omnizarr
from benchmarks import million
from benchmarks.million import OPERATIONS, OTHERS, PLACES, Place, Point, Where

LOCAL = [kind for kind in PLACES if kind != "s3"]


@pytest.mark.parametrize("kind", LOCAL)
def test_operations_can_be_done_one_after_the_other(tmp_path, kind):
    where = Where(tmp_path, kind)
    for name, (_, prepare) in OPERATIONS.items():
        if name not in million.NOT_IN.get(kind, ()):
            prepare(where.place("other" if name == "one-by-one" else "one", 4))()
    is_kept = kind == "zip"  # archives do without the last operations
    names = [f"a{number}" for number in range(4)]
    root = omnizarr.open_group(where.place("one", 4).url, mode="r")
    if kind == "one-group":
        assert list(root) == ["a1", "a2", "a3", "added"]
    else:
        assert list(root) == (["g0"] if is_kept else [])
        assert not is_kept or list(root["g0"]) == names


def test_copies_are_the_groups_that_are_made_otherwise(tmp_path, monkeypatch):
    monkeypatch.setattr(million, "EACH", 2)
    made, copied = (Place(str(tmp_path / name), None, in_groups=True, nodes=6) for name in ("made", "copied"))
    OPERATIONS["create"][1](made)()
    million._copy(copied)()
    assert omnizarr.diff(made.url, copied.url).equal
    assert made.open()[made.middle].path == "g1/a1"


@pytest.mark.parametrize("library", OTHERS)
def test_other_libraries_do_them_too(tmp_path, library):
    pytest.importorskip(library, reason="it is installed for benchmarks")
    place = Place(str(tmp_path / "one"), None, in_groups=True, nodes=4)
    for name in ("create", "open"):
        OTHERS[library][name](place)()
    assert omnizarr.open_array(f"{place.url}/{place.middle}", mode="r").shape == (4,)


def test_work_is_measured_after_a_few(tmp_path):
    where = Where(tmp_path, "groups")
    request = {"library": "omnizarr", "operation": "create", "few": asdict(where.place("few", 3))}
    found = million.work({**request, "all": asdict(where.place("all", 20))})
    assert found.keys() == {"wall", "cpu", "memory", "peak"}
    assert found["cpu"] > 0
    assert len(list(omnizarr.open_group(tmp_path / "all" / "g0", mode="r"))) == 20


def test_tables_name_what_grows_faster_than_the_arrays():
    points = [
        Point(where, name, "omnizarr", nodes, 2 * cpu, cpu, nodes * 100, 2**26, nodes if where == "s3" else None)
        for where in ("groups", "s3")
        for nodes in (1000, 10_000)
        for name, cpu in (("create", nodes / 1e4), ("check", (nodes / 1e4) ** 2))
    ]
    points.append(Point("groups", "create", "zarr", 10_000, 30, 20, 2**20, 2**27))
    text = million.markdown(points, ["Somewhere."])
    assert "| create all, `create_hierarchy` | 2 s | 1 s | 1.00 | 1 MiB | 100 B |\n" in text
    assert "| `check` | 2 s | 1 s | **2.00** | 1 MiB | 100 B | 10,000 |\n" in text
    assert "| create all, `create_hierarchy` | 1 s, 1 MiB | 20 s, 1 MiB |  |\n" in text

"""The benchmark of growth fits exponents, and does each operation with each library at a tiny size."""

import pytest

pytest.importorskip("zarr", reason="zarr-python is not installed")
pytest.importorskip("tensorstore", reason="TensorStore is not installed")

from benchmarks import growth
from benchmarks.growth import Curve, Point, exponent
from benchmarks.operations import LIBRARIES, OPERATIONS, Operation, Place

CASES = [
    pytest.param(operation, library, counts, id=f"{operation.name}-{library}{'-counted' if counts else ''}")
    for operation in OPERATIONS
    for library in operation.by
    for counts in ([False] if library == "tensorstore" else [False, True])  # whose requests are not counted
]


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_exponent_is_the_power_of_a_curve(power):
    sizes = [100, 316, 1000, 3162, 10_000]
    assert exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(power, abs=0.01)


def test_exponent_is_that_of_the_largest_sizes():
    sizes = [10, 100, 1000, 10_000, 100_000]
    assert exponent([*sizes, 30_000, 50_000], [1, 1, 1, 10, 100, 30, 50]) == pytest.approx(1)


def test_exponent_of_too_few_points_is_unknown():
    assert exponent([100, 1000], [1, 10]) is None
    assert exponent([1, 10, 100], [1, 10, 100]) is None


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
@pytest.mark.parametrize(("operation", "library", "counts"), CASES)
def test_operation_can_be_done(tmp_path, operation, library, counts):
    place = Place(tmp_path, counts)
    run = operation.by[library](place, 4)
    place.requests.clear()
    run()
    assert (sum(place.requests.values()) > 0) == counts


def test_all_libraries_are_measured():
    assert {library for operation in OPERATIONS for library in operation.by} == set(LIBRARIES)
    assert all("omnizarr" in operation.by for operation in OPERATIONS)


def test_curve_ends_where_a_point_takes_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(growth, "point", lambda one, name, n, *_: Point(one.name, name, n, 0.1, 0, 1, n / 100))
    found = growth.curve(OPERATIONS[0], "omnizarr", [1000, 10, 100, 300], tmp_path, 2.0)
    assert [each.items for each in found] == [10, 100, 300]


def test_point_is_measured_in_a_process_of_its_own(tmp_path):
    found = growth.point(OPERATIONS[0], "omnizarr", 20, tmp_path, 10)
    assert (found.items, found.requests) == (20, 20)
    assert found.cpu > 0
    assert list(tmp_path.iterdir()) == []


def test_point_that_fails_is_none(tmp_path, capfd):
    def broken(place, items):
        raise ValueError("no such thing")

    assert growth.point(Operation("x", "x", "x", {"omnizarr": broken}), "omnizarr", 20, tmp_path, 10) is None
    assert "no such thing" in capfd.readouterr().err


def points(name, power):
    return [Point(name, "omnizarr", n, 1e-4 * n**power, 2**20, n, 0.1) for n in (100, 316, 1000, 3162, 10_000)]


def test_table_names_what_is_too_steep(tmp_path):
    text = growth.markdown([*points("write", 1), *points("read", 1.5)], "Somewhere.")
    assert "| write chunks | chunks | 1.00 · 100 µs at 10,000 |" in text
    assert "**1.50**" in text
    assert text.endswith("Steeper than 1.1: omnizarr, read chunks: CPU time 1.5.\n")


def test_picture_has_all_curves(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from benchmarks.growth_plot import plot

    found = growth.curves([*points("write", 1), *points("read", 1.5)])
    assert [curve.operation.name for curve in found] == ["write", "read"]
    assert isinstance(found[0], Curve)
    plot(found, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000

"""``omnizarr stat``, run as a user runs it."""

import json

import numpy as np
import pytest

import omnizarr

COMMAND = "stat"
COLUMNS = 120


@pytest.fixture
def place(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr")
    array = root.create_array("t", shape=6, chunks=2, dtype="f4", fill_value=-1)
    array[:4] = [1, 2, np.nan, 4.5]
    root["day"] = np.array(["2026-01-01", "2026-01-03"], "M8[D]")
    return tmp_path / "a.zarr"


def test_table(run, place):
    code, out, _ = run(place)
    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert rows[0] == ["minimum", "maximum", "mean", "std", "NaN", "fill", "missing"]
    assert ["/t", "-1", "4.5", "1.1", "2.05913", "1", "2", "1", "of", "3"] in rows
    assert ["/day", "2026-01-01", "2026-01-03", "2026-01-02", "1", "days", "0", "0", "0", "of", "1"] in rows


def test_narrow_terminal(run, place):
    _, out, _ = run(place, columns=60)
    assert "/t\n  minimum -1 · maximum 4.5 · mean 1.1 · std 2.05913\n  NaN 1 · fill 2 · missing 1 of 3\n" in out
    assert max(map(len, out.splitlines())) <= 80


def test_fill_values_can_be_left_out(run, place):
    assert json.loads(run(place / "t", "--skip-fill", "--json")[1])["arrays"][0]["fields"][0]["minimum"] == 1


def test_json_has_the_fields_of_the_report(run, place):
    assert json.loads(run(place, "--json")[1]) == omnizarr.stat(place).to_dict()


def test_array_that_cannot_be_read_gives_code_1(run, place):
    (place / "t" / "c" / "0").write_bytes(b"broken")
    code, out, err = run(place)
    assert code == 1
    assert "/day" in out
    assert "/t: " in err

"""``omnizarr diff``, run as a user runs it."""

import json

import numpy as np
import pytest

import omnizarr

COMMAND = "diff"


@pytest.fixture
def pair(tmp_path):
    """Write a hierarchy in v2, and the same in v3."""
    root = omnizarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    root.create_array("t", data=np.arange(12, dtype=">f4").reshape(3, 4), chunks=(1, 4), attributes={"units": "K"})
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / "b.zarr")
    return tmp_path / "a.zarr", tmp_path / "b.zarr"


def test_converted_hierarchy_is_equal_with_code_0(run, pair):
    code, out, _ = run(*pair)
    assert code == 0
    assert out.splitlines() == [
        "equal · 2 nodes, 12 elements compared",
        "1 array stored otherwise: chunk key encoding, format (--storage shows how)",
    ]


def test_differences_are_named_with_code_1(run, pair):
    root = omnizarr.open_group(pair[1], mode="r+")
    root["t"][1, 2:] = [6.5, -7]
    root["t"].attrs["units"] = "degC"
    code, out, _ = run(*pair)
    assert code == 1
    assert out.splitlines()[:5] == [
        "/t",
        "  attribute 'units': 'K' and 'degC'",
        "  values: 2 of 12 elements differ",
        "    first at [1, 2]: 6.0 and 6.5; by 14.0 at most",
        "2 differences · 2 nodes, 12 elements compared",
    ]
    assert run(f"{pair[0]}/t", f"{pair[1]}/t", "--atol", "14", "--json")[0] == 1
    root["t"].attrs["units"] = "K"
    assert run(f"{pair[0]}/t", f"{pair[1]}/t", "--atol", "14")[0] == 0
    assert run(*pair, "--no-values")[0] == 0
    assert run(*pair, "--quiet") == (1, "", "")


def test_storage(run, pair):
    code, out, _ = run(*pair, "--storage")
    assert code == 1
    assert out.splitlines()[:4] == ["/t", "  format", "    < Zarr v2", "    > Zarr v3"]


def test_json_has_the_fields_of_the_report(run, pair):
    code, out, _ = run(*pair, "--json")
    found = json.loads(out)
    assert (code, found["equal"], found["left"]) == (0, True, str(pair[0]))
    assert found == {**omnizarr.diff(*pair).to_dict(), "left": str(pair[0]), "right": str(pair[1])}


@pytest.mark.parametrize("arguments", [["--rtol", "-1"], ["--max-memory", "1"]], ids=" ".join)
def test_what_is_not_valid_is_trouble(run, pair, arguments):
    code, out, err = run(*pair, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("omnizarr: ")
    assert err.count("\n") == 1


def test_nothing_there_is_trouble(run, pair):
    code, _, err = run(pair[0], pair[0].with_name("c.zarr"))
    assert code == 2
    assert "there is no node here" in err


def test_chunk_that_cannot_be_read_is_trouble(run, pair):
    (pair[0] / "t" / "1.0").write_bytes(b"broken")
    code, out, _ = run(*pair)
    assert code == 2
    assert "cannot be compared: " in out
    assert "1.0" in out

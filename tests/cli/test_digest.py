"""``omnizarr digest`` and ``check --digest``, run as a user runs them."""

import json

import numpy as np
import pytest

import omnizarr


@pytest.fixture
def place(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr")
    root["t"], root["x/y"] = np.arange(12.0), np.arange(5)
    return tmp_path / "a.zarr"


def test_lines_are_those_of_the_function(run, place):
    code, out, _ = run("digest", place)
    assert (code, out) == (0, f"{omnizarr.digest(place)}\n")
    assert [line.split("  ")[1] for line in out.splitlines()] == ["/", "/t", "/x", "/x/y"]
    assert run("digest", "-s", place)[1] == out.splitlines(keepends=True)[0]
    assert json.loads(run("digest", "--json", place)[1]) == omnizarr.digest(place).to_dict()
    assert run("digest", place / "x", "--algorithm", "blake2b")[1].startswith("omnizarr1:blake2b:")


def test_bytes(run, place):
    assert run("digest", "--bytes", place)[1] == f"{omnizarr.digest_of_bytes(place)}\n"
    code, _, err = run("digest", "--bytes", "--summary", place)
    assert (code, "--summary means nothing with --bytes" in err) == (2, True)


def test_chunk_that_cannot_be_read(run, place):
    (place / "t" / "c" / "0").write_bytes(b"broken")
    code, out, err = run("digest", place)
    assert (code, out) == (1, "")
    assert "t/c/0" in err


def test_check_verifies_what_digest_printed(run, place, tmp_path):
    file = tmp_path / "digests"
    file.write_text(run("digest", place)[1])
    omnizarr.convert(place, tmp_path / "b.zarr", zarr_format=2)
    assert run("check", "--digest", file, tmp_path / "b.zarr")[0] == 0
    omnizarr.open_array(tmp_path / "b.zarr/x/y", mode="r+")[3] = 0
    code, out, _ = run("check", "--digest", file, tmp_path / "b.zarr")
    assert code == 1
    assert "/x/y\n  error digest-mismatch: " in out


def test_file_without_digests(run, place, tmp_path):
    file = tmp_path / "digests"
    file.write_text("nothing of the kind\n")
    code, _, err = run("check", "--digest", file, place)
    assert code == 2
    assert "line 1 is not a digest" in err


def test_check_takes_max_memory(run, place):
    assert run("check", "--data", "--max-memory", "1", place)[0] == 0

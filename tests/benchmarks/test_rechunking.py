"""The benchmark of rechunking measures in a process of its own, and compares values."""

import sys

import pytest

import omnizarr
from benchmarks import rechunking

OURS = [library for library in rechunking.LIBRARIES if library.startswith("omnizarr")]


@pytest.mark.parametrize("library", OURS)
def test_library_is_measured(tmp_path, library):
    chunks = rechunking.make(tmp_path / "old", 8)
    found = rechunking.measure(library, sys.executable, tmp_path / "old", tmp_path / "new", chunks, 2**22)
    assert found["seconds"] > 0
    assert found["peak"] > 2**20
    assert omnizarr.open_array(tmp_path / "new").chunks == (8, 16, 16)


def test_library_that_fails_or_writes_other_values_is_reported(tmp_path, monkeypatch):
    chunks = rechunking.make(tmp_path / "old", 4)
    monkeypatch.setitem(rechunking.LIBRARIES, "broken", "raise ValueError('no such thing')")
    monkeypatch.setitem(
        rechunking.LIBRARIES,
        "wrong",
        "import omnizarr\nold = omnizarr.open_array(source)\nomnizarr.create_array(target, data=old[...] + 1)",
    )
    measured = [
        rechunking.measure(library, sys.executable, tmp_path / "old", tmp_path / library, chunks, 2**22)
        for library in ("broken", "wrong")
    ]
    assert measured == ["ValueError: no such thing", "other values"]

"""The benchmark of rechunking measures in a process of its own, and compares values."""

import sys

import pytest

import omnizarr
from benchmarks import rechunking

OURS = [library for library in rechunking.LIBRARIES if library.startswith("omnizarr")]


@pytest.mark.parametrize("library", OURS)
@pytest.mark.parametrize("is_s3", [False, True], ids=["files", "s3"])
def test_library_is_measured(tmp_path, monkeypatch, library, is_s3):
    monkeypatch.setattr(rechunking, "LATENCY", 0.001)
    try:
        with rechunking.somewhere(tmp_path, is_s3=is_s3) as where:
            chunks = rechunking.make(where, "old", 8)
            found = rechunking.measure(library, sys.executable, where, "old", chunks, 2**22)
            assert found["seconds"] > 0
            assert found["peak"] > 2**20
            target = where.place(f"target-old-{OURS.index(library)}")
            assert omnizarr.open_array(target, storage_options=where.options).chunks == (8, 16, 16)
    except SystemExit as error:
        pytest.skip(f"no bucket that takes its time: {error}")


def test_library_that_fails_or_writes_other_values_is_reported(tmp_path, monkeypatch):
    monkeypatch.setitem(rechunking.LIBRARIES, "broken", "raise ValueError('no such thing')")
    monkeypatch.setitem(
        rechunking.LIBRARIES,
        "wrong",
        "import omnizarr\nold = omnizarr.open_array(source)\nomnizarr.create_array(target, data=old[...] + 1)",
    )
    with rechunking.somewhere(tmp_path, is_s3=False) as where:
        chunks = rechunking.make(where, "old", 4)
        measured = [
            rechunking.measure(library, sys.executable, where, "old", chunks, 2**22) for library in ("broken", "wrong")
        ]
    assert measured == ["ValueError: no such thing", "other values"]

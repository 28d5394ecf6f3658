"""The benchmark of small writes measures in a process of its own, compares values, and shows what is promised."""

import sys

import pytest

from benchmarks import small_writes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bytes written are counted by Linux")


@pytest.mark.parametrize("workload", small_writes.WORKLOADS)
def test_a_writer_writes_at_most_a_fifth_more_than_the_data(tmp_path, workload):
    if workload == "chunks of dask":
        pytest.importorskip("dask.array")
    found = small_writes.measure("omnizarr, `writer`", workload, tmp_path / "one", 256)
    assert isinstance(found, dict), found
    assert 1 <= found["written"] < 1.2
    assert found["seconds"] > 0


def test_a_library_that_fails_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(small_writes, "PATIENCE", 0.01)
    assert small_writes.measure("zarr-python", "rows by ten", tmp_path / "one", 256) == "more than 0.01 s"


def test_the_table_has_a_row_for_each_library():
    results = {"rows by ten": {"zarr-python": {"seconds": 1.5, "written": 14.62}, "TensorStore": "no such module"}}
    about = dict.fromkeys(("date", "processor", "file system", "load"), "?")
    lines = small_writes.markdown(about, 10, results).splitlines()
    assert "| zarr-python | 14.6 × · 1.5 s |" in lines
    assert "| TensorStore | - |" in lines
    assert len(lines) == 4 + len(small_writes.APPENDS)

"""The benchmark of large shards counts what passes, compares values, and shows each library."""

import pytest

from benchmarks import large_shards

pytest.importorskip("obstore", reason="the extra cloud is not installed")


def test_bytes_of_a_change_are_counted(s3_server):
    found = large_shards.measure("omnizarr, the whole shard", s3_server, 2**20, 1)
    assert 2**20 < found["sent"] < 2**20 + 2**14
    assert 2**20 < found["received"] < 2**20 + 2**14
    assert found["seconds"] > 0


def test_the_table_has_a_row_for_each_library():
    cell = {"sent": 2**20, "received": 2**19, "seconds": 0.5}
    about = dict.fromkeys(("date", "processor", "load"), "?")
    lines = large_shards.markdown(about, {2**26: dict.fromkeys(large_shards.LIBRARIES, cell)}).splitlines()
    assert "| TensorStore | 1 · 0.5 · 0.5 s |" in lines
    assert len(lines) == 4 + len(large_shards.LIBRARIES)


def test_other_values_are_noticed(s3_server, monkeypatch):
    opener, _ = large_shards.LIBRARIES["omnizarr"]
    monkeypatch.setitem(large_shards.LIBRARIES, "omnizarr", (opener, lambda *_: None))
    with pytest.raises(ValueError, match="other values"):
        large_shards.measure("omnizarr", s3_server, 2**20, 1)

"""The benchmark of live views measures each reader, and makes the table of the manual."""

import pytest

pytest.importorskip("zarr", reason="zarr-python is not installed")

from benchmarks import view


def test_each_reader_is_measured_with_each_codec_and_size_of_chunk(tmp_path):
    rows = list(view.measured(tmp_path, 2**20, rounds=2))
    assert [(row.codec, row.chunk, row.reader) for row in rows] == [
        (codec, chunk, reader) for codec in view.CODECS for chunk in view.CHUNKS for reader in view.READERS
    ]
    assert all(len(row.direct) == len(row.viewed) == 2 for row in rows)


def test_table_has_the_median_of_the_ratios_of_the_rounds(tmp_path):
    row = view.Row("omnizarr", "raw", 64, [1.0, 2.0, 4.0], [3.0, 4.0, 4.0])
    assert row.ratio == 2.0
    page = view.markdown([row], tmp_path, 0.5)
    assert "with 3 rounds" in page
    assert "| omnizarr | 2.00 × |" in page

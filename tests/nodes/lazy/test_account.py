"""What the account of a copy says of codecs that the copy of a view does not have."""

import numpy as np
import pytest

import omnizarr

ZLIB = "few readers of Zarr v3 know 'zlib' of the sources: chunks are encoded again with 'gzip'"


def joined(tmp_path, **codecs):
    for number in range(2):
        omnizarr.create_array(
            tmp_path / str(number), data=np.arange(40.0) + number / 3, chunks=(10,), zarr_format=2, **codecs
        )
    omnizarr.save_view(tmp_path / "v.zview", omnizarr.concat([tmp_path / "0", tmp_path / "1"]))
    return tmp_path / "v.zview"


def remarks(report):
    return [text for node in report.nodes for text in node.remarks]


def test_a_compressor_that_is_replaced_is_named(tmp_path):
    view = joined(tmp_path, compressors={"id": "zlib", "level": 3})
    report = omnizarr.convert(view, tmp_path / "copy")
    assert remarks(report) == [ZLIB]
    assert ZLIB in str(report)
    assert remarks(omnizarr.convert(view, tmp_path / "other", dry_run=True)) == [ZLIB]


def test_a_filter_that_loses_digits_is_named(tmp_path):
    filters = [{"id": "quantize", "digits": 3, "dtype": "<f8"}]
    view = joined(tmp_path, filters=filters, compressors={"id": "zlib", "level": 3})
    report = omnizarr.convert(view, tmp_path / "copy")
    first, second = remarks(report)
    assert first.startswith("'quantize' of the sources is left out: chunks have the same values")
    assert second == ZLIB
    np.testing.assert_array_equal(omnizarr.open_array(tmp_path / "copy")[...], omnizarr.open_array(view)[...])


@pytest.mark.parametrize("level", [1, 9])
def test_chunks_that_are_copied_need_no_remark(tmp_path, level):
    view = joined(tmp_path, compressors={"id": "gzip", "level": level})
    report = omnizarr.convert(view, tmp_path / "copy")
    assert report.nodes[0].how == "copied"
    assert remarks(report) == []

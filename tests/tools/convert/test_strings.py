"""Strings of any length that become strings of the longest one's length."""

import numpy as np
import pytest
import zarr

import omnizarr

TEXTS = ["a", "löwe🦁", ""]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("layout", [{}, {"shards": (4,)}, {"compressors": None}])
def test_strings_get_the_length_of_the_longest(zarr_format, layout, tmp_path):
    source = omnizarr.create_array(tmp_path / "x", shape=(5,), chunks=(2,), dtype="string", fill_value="zz", **layout)
    source[:3] = TEXTS
    report = omnizarr.convert(tmp_path / "x", tmp_path / "y", zarr_format=zarr_format, strings="fixed", strict=True)
    assert "string becomes fixed_length_utf32 of 20 bytes" in str(report)
    found = zarr.open_array(tmp_path / "y", mode="r")
    assert found.dtype == np.dtype("<U5")
    assert found[:].tolist() == [*TEXTS, "zz", "zz"]
    if "compressors" not in layout:
        assert "without" not in str(report).replace("without strings", "")


def test_strings_of_v2_become_fixed_in_v3(tmp_path):
    source = omnizarr.create_array(tmp_path / "x", shape=(2, 2), chunks=(1, 2), dtype="string", zarr_format=2)
    source[...] = [["Å", "bc"], ["", "d"]]
    omnizarr.convert(tmp_path / "x", tmp_path / "y", strings="fixed")
    found = zarr.open_array(tmp_path / "y", mode="r")
    assert (found.dtype, found[...].tolist()) == (np.dtype("<U2"), [["Å", "bc"], ["", "d"]])


@pytest.mark.parametrize(
    ("text", "reason"), [("x" * 16385, "16384 at most"), ("x\0", "ends with U+0000"), ("y" * 9000, "rechunk")]
)
def test_strings_that_cannot_be_fixed_are_left_out_with_the_reason(text, reason, tmp_path):
    root = omnizarr.create_group(tmp_path / "x")
    root.create_array("long", shape=(10000,), chunks=(10000,), dtype="string")[1] = text
    root.create_array("short", data=["a"], dtype="string")
    root.create_array("number", data=[1])
    report = omnizarr.convert(tmp_path / "x", tmp_path / "y", strings="fixed")
    assert [reason in loss.why for loss in report.losses] == [True]
    assert sorted(omnizarr.open_group(tmp_path / "y")) == ["number", "short"]
    with pytest.raises(omnizarr.errors.NotRepresentableError):
        omnizarr.convert(tmp_path / "x", tmp_path / "z", strings="fixed", strict=True)


def test_other_words_are_refused(tmp_path):
    omnizarr.create_array(tmp_path / "x", data=["a"], dtype="string")
    with pytest.raises(ValueError, match="not a treatment of strings"):
        omnizarr.convert(tmp_path / "x", tmp_path / "y", strings="short")

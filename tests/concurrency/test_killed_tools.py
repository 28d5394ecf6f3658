"""Conversions and repairs that are killed at any system call: nothing is lost, and done again they end as they should.

By default they are killed at a few calls; `RUNS=1000` goes through all of them.
"""

from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from tests.concurrency import victim
from tests.concurrency.test_interrupted_growth import OLD, builder
from tests.repeats import runs

pytestmark = pytest.mark.slow

KILLS = runs(6)


@pytest.fixture(scope="module")
def victims():
    if not victim.can_trace():
        pytest.skip("no strace, or it may not trace")
    with victim.Victims("reference") as victims:
        yield victims


def test_a_conversion_is_resumed(tmp_path, victims):
    for path in victims.attempts("convert", builder(tmp_path, littered=False), KILLS):
        target = f"{path}.converted"
        np.testing.assert_array_equal(omnizarr.open_array(path)[...], OLD)
        if any(Path(target).glob(".z*")) and not unfinished(target):
            np.testing.assert_array_equal(omnizarr.open_array(target)[...], OLD)
        try:
            omnizarr.convert(path, target, zarr_format=2, resume=True)
        except errors.OmnizarrError:  # it had not begun
            omnizarr.convert(path, target, zarr_format=2, overwrite=True)
        np.testing.assert_array_equal(omnizarr.open_array(target, zarr_format=2)[...], OLD)
        assert omnizarr.check(target).ok


def unfinished(target):
    return any(finding.code == "unfinished-conversion" for finding in omnizarr.check(target).findings)


def test_a_conversion_in_place_leaves_the_array_readable_all_the_time(tmp_path, victims):
    for path in victims.attempts("convert in place", builder(tmp_path, littered=False, zarr_format=2), KILLS):
        np.testing.assert_array_equal(omnizarr.open_array(path, mode="r")[...], OLD)
        omnizarr.convert(path, zarr_format=3, in_place=True)
        np.testing.assert_array_equal(omnizarr.open_array(path, mode="r", zarr_format=3)[...], OLD)


def test_a_repair_leaves_the_array_as_it_was_and_is_done_again(tmp_path, victims):
    for path in victims.attempts("repair", builder(tmp_path), KILLS):
        np.testing.assert_array_equal(omnizarr.open_array(path, mode="r")[...], OLD)
        omnizarr.repair(path, codes=["chunk-beyond-grid"], dry_run=False, backup=f"{path}.second")
        assert not [each for each in omnizarr.check(path).findings if each.code == "chunk-beyond-grid"]
        np.testing.assert_array_equal(omnizarr.open_array(path, mode="r")[...], OLD)

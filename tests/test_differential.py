"""`tests.differential`, for a few arrays."""

import math

import pytest

from tests import differential


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [1_000_000, 2_000_000, 3_000_000])
def test_random_arrays_are_what_numpy_says_whatever_program_reads_and_writes_them(tmp_path, first):
    done = differential.run(tmp_path, range(first, first + 15), math.inf)
    assert done["arrays"] == 15
    assert done["read"] * done["write"] * done["failed"] > 0

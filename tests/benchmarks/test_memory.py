"""The benchmark of memory measures verbs in processes of their own."""

import pytest

from benchmarks import memory
from benchmarks.rechunking import Where


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["copy", "digest"])
def test_verb_is_measured_and_heeds_the_budget(tmp_path, verb):
    where = Where(tmp_path, "")
    memory.make(where, "few.zarr", memory.FEW, "1 MiB")
    memory.make(where, "many.zarr", 64, "1 MiB")
    found = memory.measure(verb, where, 8 * 2**20)
    assert not isinstance(found, str), found
    assert found["found"] < 32 * 2**20

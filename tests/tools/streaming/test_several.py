"""`omnizarr.tools.streaming.several`."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore


class Counting(WrapperStore):
    """A far store, which counts how many values are stored at the same time."""

    def __init__(self):
        super().__init__(MemoryStore())
        self.guard, self.now, self.most = threading.Lock(), 0, 0

    @property
    def features(self):
        return replace(self.store.features, concurrency=16)

    def set(self, key, value):
        with self.guard:
            self.now += 1
            self.most = max(self.most, self.now)
        threading.Event().wait(0.005)
        super().set(key, value)
        with self.guard:
            self.now -= 1


@pytest.mark.parametrize(("is_local", "expected"), [(True, True), (False, False)])
def test_small_arrays_of_a_directory_are_converted_side_by_side_to_a_far_store(tmp_path, is_local, expected):
    source, target = LocalStore(tmp_path) if is_local else MemoryStore(), Counting()
    root = omnizarr.create_group(source)
    for number in range(20):
        root.create_array(f"a{number}", data=np.arange(4) + number)
    omnizarr.convert(source, target)
    assert (target.most > 4) is expected
    found = omnizarr.open_group(target)
    assert [found[f"a{number}"][0] for number in range(20)] == list(range(20))

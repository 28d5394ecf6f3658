"""The native engine reads and writes what the reference engine and NumPy do, bit for bit, whatever is stored how."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.both import ENGINES, RUNS, bits, needs_native, opened, outcome, stored
from tests.engine.layouts import (
    create,
    large_shapes,
    layouts,
    memories,
    new_stores,
    plans,
    small_shapes,
    some_plan,
    some_values,
    with_fill,
)

pytestmark = needs_native
# With RUNS=200: 5,000 plans.
PLANS_EACH = 5
EXAMPLES = max(1, 25 * RUNS // PLANS_EACH)


class Pair:
    """Two stores of one layout, each written by one engine and read by both, and the values that they shall hold."""

    def __init__(self, layout, seed, stores):
        self.layout, self.seed, self.stores = layout, seed, stores
        for store in stores:
            create(layout, store)
        empty = {"write_empty_chunks": layout.options["write_empty_chunks"]}
        self.writers = [opened(store, engine, **empty) for store, engine in zip(stores, ENGINES, strict=True)]
        self.readers = [opened(store, engine, mode="r") for store in stores for engine in ENGINES]
        self.dtype = self.writers[0].dtype
        self.fill = np.asarray(self.writers[0].fill_value, self.dtype)
        self.values = with_fill(seed, self.some(layout.shape), self.fill)
        for writer in self.writers:
            writer[...] = self.values

    def some(self, shape, more=0):
        return some_values(self.seed + more, shape, self.dtype, is_tame=self.layout.is_tame)

    def write(self, plan, value):
        for writer in self.writers:
            plan.write(writer, value)
        self.values.reshape(-1)[plan.places] = value
        assert sorted(self.stores[0].list()) == sorted(self.stores[1].list())

    def check(self, plan, out):
        wanted = bits(self.values.reshape(-1)[plan.places, ...], self.dtype)
        for reader in self.readers:
            assert bits(plan.read(reader), self.dtype) == wanted
            out[...] = np.zeros((), self.dtype)
            assert bits(plan.read(reader, out=out)) == wanted

    def check_all(self):
        assert {bits(reader[...], self.dtype) for reader in self.readers} == {bits(self.values)}


@settings(max_examples=EXAMPLES)
@given(layouts(small_shapes()), st.integers(0, 2**32 - 1), st.data())
def test_both_engines_and_numpy_read_and_write_the_same(layout, seed, data):
    with new_stores(layout.store, 2) as stores:
        pair = Pair(layout, seed, stores)
        for step in range(PLANS_EACH):
            plan = data.draw(plans(layout.shape, pair.writers[0]._grid))
            if step % 2:
                shape = plan.places.shape
                pair.write(
                    plan, pair.some(shape, step) if data.draw(st.booleans()) else np.broadcast_to(pair.fill, shape)
                )
            pair.check(plan, data.draw(memories(plan.places.shape, pair.dtype)))
        pair.check_all()


@settings(max_examples=2 * RUNS)
@given(layouts(large_shapes()), st.integers(0, 2**32 - 1))
def test_both_engines_and_numpy_read_and_write_the_same_of_large_arrays(layout, seed):
    with new_stores(layout.store, 2) as stores:
        pair = Pair(layout, seed, stores)
        for step in range(PLANS_EACH):
            plan = some_plan(seed + step, layout.shape)
            if step % 2:
                pair.write(plan, pair.some(plan.places.shape, step))
            pair.check(plan, np.empty(plan.places.shape, pair.dtype, "CF"[step % 2]))
        pair.check_all()


@settings(max_examples=EXAMPLES // 2)
@given(layouts(small_shapes(), stores=("memory", "local")), st.integers(0, 2**32 - 1), st.data())
def test_both_engines_refuse_the_same_missing_chunks(layout, seed, data):
    with new_stores(layout.store, 1) as (store,):
        create(layout, store)
        first, second = (opened(store, engine, missing="error") for engine in ENGINES)
        # Not all chunks are there: some were never written, and others are empty.
        plan = data.draw(plans(layout.shape, first._grid))
        plan.write(first, some_values(seed, plan.places.shape, first.dtype, is_tame=layout.is_tame))
        before = stored(store)
        for _ in range(3):
            plan = data.draw(plans(layout.shape, first._grid))
            assert outcome(lambda plan=plan: plan.read(second)) == outcome(lambda plan=plan: plan.read(first))
        assert stored(store) == before


@settings(max_examples=EXAMPLES)
@given(layouts(small_shapes(), stores=("memory",), is_tame=True), st.integers(0, 2**32 - 1))
def test_filters_that_lose_something_lose_the_same_with_both_engines(layout, seed):
    with new_stores("memory", 2) as stores:
        found = []
        for store, engine in zip(stores, ENGINES, strict=True):
            create(layout, store)
            array = opened(store, engine)
            values = some_values(seed, layout.shape, array.dtype)
            written = outcome(lambda array=array, values=values: array.set_basic_selection(..., values))
            said = written and (written[0], re.sub(r"MemoryStore\(<.*?>\)", "", written[1]))
            readers = [opened(store, each, mode="r") for each in ENGINES]
            read = [outcome(lambda reader=reader: reader[...]) for reader in readers]
            found.append((said, sorted(store.list()), read))
        assert found[0] == found[1]
        assert found[0][2][0] == found[0][2][1]

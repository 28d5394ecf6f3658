"""Values that are kept compressed come back as they were, and take little memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from omnizarr.support.packed import Packed


def test_values_come_back_in_any_order() -> None:
    expected = [bytes(random.Random(number).randbytes(number % 300)) for number in range(5000)]
    packed = Packed()
    assert [packed.add(value) for value in expected] == list(range(5000))
    order = list(range(5000))
    random.Random(0).shuffle(order)
    assert len(packed) == 5000
    assert all(packed[number] == expected[number] for number in order)


def test_values_come_back_while_others_are_added() -> None:
    packed = Packed()
    for number in range(3000):
        packed.add(b"%d" % number * 20)
        assert packed[number] == b"%d" % number * 20
        assert packed[number // 2] == b"%d" % (number // 2) * 20


def test_a_large_value_and_empty_ones_come_back() -> None:
    packed = Packed()
    for value in (b"", b"x" * 300_000, b"", b"y"):
        packed.add(value)
    assert [packed[number] for number in range(4)] == [b"", b"x" * 300_000, b"", b"y"]


def test_a_number_that_was_not_given_is_an_error() -> None:
    packed = Packed()
    with pytest.raises(IndexError):
        packed[0]


def test_similar_values_take_a_tenth() -> None:
    tracemalloc.start()
    try:
        packed = Packed()
        for number in range(10_000):
            packed.add(b'{"units": "m", "long_name": "variable %d", "station": "of the north"}' % number)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 350_000  # of 700,000 bytes, without the blocks that are open

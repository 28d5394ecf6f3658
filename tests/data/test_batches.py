"""Memory that is used again."""

from omnizarr.data.batches import Spare


def test_memory_that_came_back_is_given_again():
    spare = Spare(100)
    first = spare.take(40)
    second = spare.take(40)
    spare.give(first)
    assert spare.take(40) is first
    assert spare.take(20) is not second


def test_memory_of_another_size_goes_before_there_is_too_much():
    spare = Spare(100)
    for memory in [spare.take(40) for _ in range(2)]:
        spare.give(memory)
    large = spare.take(90)
    assert len(large) == 90
    spare.give(large)
    assert spare.take(90) is large
    assert not any(spare._free.values())

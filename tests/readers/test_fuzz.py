"""A small sample of `tests.readers.fuzz`: mutated files give errors of omnizarr, in bounded time."""

import pytest

from tests.readers import fuzz


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_mutated_files_give_errors_of_omnizarr(kind):
    ends = [fuzz.attempt(kind, number) for number in range(60)]
    assert 5 < ends.count("") < 60
    assert len(set(ends)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_many_mutated_files_give_errors_of_omnizarr(kind):
    assert fuzz.main([kind, "1000", "--first", "100000"]) == 0

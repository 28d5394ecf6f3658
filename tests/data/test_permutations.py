import numpy as np
import pytest

from omnizarr.data import permutations
from omnizarr.data.permutations import Permutation, below, hashes, key_of

# From the reference implementation of SplitMix64 (Vigna, https://prng.di.unimi.it/splitmix64.c), with the seed 0: the
# state grows by the golden gamma with each number.
SPLITMIX = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]


def test_hashes_are_the_numbers_of_splitmix64():
    assert hashes(0, np.arange(4)).tolist() == SPLITMIX


def test_hashes_of_one_counter_do_not_depend_on_the_others():
    assert hashes(5, np.array([7, 3])).tolist() == [int(hashes(5, np.array([n]))[0]) for n in (7, 3)]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 17, 1000, 2**20, 2**20 + 1, 2**20 + 12345])
def test_each_number_comes_once(length):
    found = Permutation(length, key=9)(np.arange(length))
    assert np.array_equal(np.sort(found), np.arange(length))


def test_long_permutations_need_no_memory_for_their_length():
    found = Permutation(10**15, key=1)(np.arange(10**15 - 1000, 10**15))
    assert len(set(found.tolist())) == 1000
    assert found.min() >= 0
    assert found.max() < 10**15


def test_each_permutation_of_few_numbers_is_as_likely():
    found = [tuple(Permutation(3, key_of(seed))(np.arange(3)).tolist()) for seed in range(6000)]
    counts = [found.count(each) for each in set(found)]
    assert len(counts) == 6
    assert sum((n - 1000) ** 2 / 1000 for n in counts) < 25  # chi-squared with 5 degrees of freedom: p = 0.0001


@pytest.mark.parametrize("length", [2**12, 2**12 + 100])
def test_places_and_numbers_of_long_permutations_are_not_correlated(length, monkeypatch):
    monkeypatch.setattr(permutations, "_SORTED", 0)
    found = Permutation(length, key=3)(np.arange(length))
    assert np.array_equal(np.sort(found), np.arange(length))
    assert abs(np.corrcoef(np.arange(length), found)[0, 1]) < 5 / length**0.5
    steps = np.diff(found) % length
    assert len(np.unique(steps)) > 0.55 * length  # 63 % of random steps differ


@pytest.mark.parametrize("bound", [1, 7, 2**32, 10**15])
def test_drawn_numbers_are_below_a_bound_and_spread(bound):
    found = below(3, np.arange(10_000), bound)
    assert found.min() >= 0
    assert found.max() < bound
    assert abs(found.mean() / bound - (0.5 - 0.5 / bound)) < 0.02


def test_an_order_is_the_same_with_every_version():
    # Computed in plain Python: sorted by their hashes.
    def splitmix(value):
        value = (value * 0x9E3779B97F4A7C15) % 2**64
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % 2**64
        return value ^ (value >> 31)

    expected = sorted(range(50), key=lambda n: splitmix(n + 1))
    assert Permutation(50, key=0)(np.arange(50)).tolist() == expected

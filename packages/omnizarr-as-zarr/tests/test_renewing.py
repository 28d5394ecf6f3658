"""Verbs of nodes under zarr's names keep the consolidated metadata of all groups above, as those of omnizarr do."""

import pytest

import omnizarr_as_zarr as as_zarr
from tests.nodes.test_renewing import ARRAYS, GROUPS, check, place, zarr_format  # noqa: F401 - fixtures too

HERE = [verb for verb in GROUPS if "like" not in verb]
"""Verbs that zarr-python's groups have with the same arguments."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("verb", ARRAYS)
def test_arrays(place, verb):  # noqa: F811 - the fixture
    ARRAYS[verb](as_zarr.open(place.store, path="g/sub/x", mode="r+"))
    check(place.store, place.zarr_format)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("verb", HERE)
def test_groups(place, verb):  # noqa: F811 - the fixture
    GROUPS[verb](as_zarr.open(place.store, path="g/sub", mode="r+"))
    check(place.store, place.zarr_format)

"""Colour maps, beside those of Matplotlib."""

import matplotlib as mpl
import numpy as np
import pytest

from omnizarr.pictures import colours


@pytest.mark.parametrize(
    ("name", "tolerance"), [("viridis", 2), ("magma", 2), ("cividis", 6), ("coolwarm", 1), ("gray", 1)]
)
@pytest.mark.parametrize("end", ["", "_r"])
def test_maps_are_those_of_matplotlib(name, tolerance, end):
    theirs = mpl.colormaps[name + end](np.arange(256))[:, :3] * 255
    assert np.abs(colours.table(name + end) - theirs).max() <= tolerance + 0.5


def test_all_maps_are_compared():
    assert set(colours.NAMES) == {"viridis", "magma", "cividis", "coolwarm", "gray"}


def test_unknown_map_names_the_known_ones():
    with pytest.raises(ValueError, match=r"'jet'.*viridis"):
        colours.table("jet")


@pytest.mark.parametrize("name", colours.NAMES)
def test_nothing_has_a_colour_that_the_map_has_not(name):
    distance = np.abs(colours.table(name).astype(int) - colours.of_nothing(name)).sum(axis=-1)
    assert distance.min() > 20
    assert colours.mapped(np.array([np.nan]), name)[0, :3].tolist() == list(colours.of_nothing(name))

"""Mode "w" replaces whatever a netCDF dataset left whose creation or writing was interrupted, wherever that was."""

import numpy as np
import pytest

from omnizarr import netcdf
from tests.concurrency.interruptions import Interrupter
from tests.repeats import runs

# An interrupt between a call and the name for its result drops that: an open directory closes itself, with a warning.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

RUNS = runs(30)


def write(path, layout):
    with netcdf.Dataset(path, "w", layout=layout) as dataset:
        dataset.createDimension("x", 6)
        group = dataset.createGroup("g")
        for parent in (dataset, group):
            parent.createVariable("v", "f4", ("x",))[:] = np.arange(6)
        dataset.title = "t"


@pytest.mark.parametrize("layout", ["A", "pure-v3"])
def test_dataset_that_was_interrupted_is_written_again(layout, tmp_path):
    interrupter = Interrupter()
    try:
        path = tmp_path / "d.zarr"
        write(path, layout)
        interrupter(lambda: write(path, layout), 0)
        total = interrupter.seen
        for number in range(RUNS):
            at = 1 + number * total // RUNS
            interrupter(lambda: write(path, layout), at)
            write(path, layout)
            with netcdf.Dataset(path) as dataset:
                assert sorted(dataset.variables) == ["v"]
                assert sorted(dataset.groups) == ["g"]
                assert dataset["g/v"][:].tolist() == [0, 1, 2, 3, 4, 5]
                assert dataset.title == "t"
    finally:
        interrupter.close()


@pytest.mark.parametrize("layout", ["A", "pure-v3"])
def test_members_without_the_document_of_their_root_are_replaced(layout, tmp_path):
    # So it looks after an interrupt in the midst of replacing an older dataset.
    path = tmp_path / "d.zarr"
    write(path, layout)
    for file in path.iterdir():
        if file.is_file():
            file.unlink()
    write(path, layout)
    with netcdf.Dataset(path) as dataset:
        assert dataset["g/v"][:].tolist() == [0, 1, 2, 3, 4, 5]

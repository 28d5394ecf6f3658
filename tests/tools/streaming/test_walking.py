"""Streaming stays within `max_memory`, whatever the chunks, and reads each chunk few times."""

import math

import numpy as np
import pytest

import omnizarr
from omnizarr.model import grids
from omnizarr.tools.convert.routes import _times_read, coarse
from omnizarr.tools.digest.hash_tree import block_shape
from omnizarr.tools.streaming.walking import Effort, walk
from tests.traced import peak_of

MEMORY = 4 * 2**20
VERBS = {
    "stat": lambda store, _: omnizarr.stat(store, max_memory=MEMORY),
    "digest": lambda store, _: omnizarr.digest(store, max_memory=MEMORY),
    "diff": lambda store, other: omnizarr.diff(store, other, max_memory=MEMORY),
    "check": lambda store, _: omnizarr.check(store, data=True, max_memory=MEMORY),
}
SHAPES = [
    ((1460, 721, 1440), (1, 721, 1440)),
    ((1460, 721, 1440), (1460, 10, 10)),
    ((1460, 721, 1440), (365, 46, 46)),
    ((1460, 721, 1440), (100, 100, 100)),
    ((10**8,), (10**6,)),
    ((20000, 20000), (20000, 1)),
    ((20000, 20000), (1000, 1000)),
    ((50, 8000, 8000), (1, 1000, 1000)),
    ((1460, 37, 721, 1440), (1, 37, 721, 1440)),
    ((1460, 37, 721, 1440), (10, 5, 100, 100)),
    ((10**6, 50), (10**6, 1)),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Write 64 MiB in planes, and in columns."""
    folder = tmp_path_factory.mktemp("arrays")
    values = np.random.default_rng(0).integers(0, 9, (128, 256, 512)).astype("f4")
    omnizarr.create_array(folder / "a", data=values, chunks=(1, 256, 512))
    omnizarr.create_array(folder / "b", data=values, chunks=(128, 16, 32))
    return folder / "a", folder / "b"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.sampled(3)
def test_memory_is_bounded(places, verb):
    assert VERBS[verb](*places) is not None  # imports, too
    assert peak_of(lambda: VERBS[verb](*places), 5 * MEMORY) < 5 * MEMORY


def test_budget_of_the_process_bounds_blocks_too():
    grid = grids.bind(grids.regular((1, 1024, 1024)), (512, 1024, 1024))
    with omnizarr.config.set(bytes_in_flight=MEMORY):
        laid = walk(grid, [grid], 4, Effort())
    assert laid.at_once * math.prod(laid.regions.per_axis) * 4 * 2**20 <= MEMORY
    with omnizarr.config.set(bytes_in_flight="1GiB"):
        laid = walk(grid, [grid], 4, Effort())
    assert laid.at_once * math.prod(laid.regions.per_axis) * 4 * 2**20 <= 96 * 2**20


@pytest.mark.parametrize(("shape", "chunks"), SHAPES, ids=str)
def test_blocks_of_digests_read_each_chunk_few_times(shape, chunks):
    stored, blocks = (grids.bind(grids.regular(lengths), shape) for lengths in (chunks, block_shape(shape)))
    laid = walk(blocks, [stored], 4, Effort())
    assert _times_read(stored, coarse(blocks, laid.regions.per_axis)) < 2.1


def test_effort_that_is_none_is_refused():
    for options in ({"max_memory": 0}, {"concurrency": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            omnizarr.stat(omnizarr.create_array({}, data=[1]), **options)


def test_blocks_cover_all_elements_once():
    grid = grids.bind(grids.regular((7, 5)), (100, 33))
    regions = walk(grid, [grid], 8, Effort(max_memory=8 * 7 * 5 * 4)).regions
    covered = np.zeros((100, 33), int)
    for number in range(regions.total):
        covered[regions.box(number)] += 1
        assert math.prod(part.stop - part.start for part in regions.box(number)) <= 7 * 5 * 4
    assert (covered == 1).all()

"""What programs mean by what they write is carried between all formats: each program's own reader is the judge."""

import re
from pathlib import Path

import pytest

import omnizarr
from tests.formats.conventions.writers import WRITERS

pytestmark = pytest.mark.filterwarnings("ignore")  # those programs warn of types without a specification, and more

FORMATS = [1, 2, "3-draft2019", "3-draft2020", 3]
PAGE = Path(__file__).parents[3] / "docs" / "converting.md"


def name_of(writer):
    return f"{writer.program}-{writer.what}-v{writer.zarr_format}".replace(" ", "_")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a function: writer -> where it has written, and what it reads there."""
    done = {}

    def get(writer):
        if name_of(writer) not in done:
            path = tmp_path_factory.mktemp("written") / "raster.zarr"
            writer.write(path)
            done[name_of(writer)] = path, writer.read(path)
        return done[name_of(writer)]

    return get


def equal(left, right):
    """Compare nested values, for which NaN equals NaN."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left is right or left == right or (left != left and right != right))  # noqa: PLR0124 - NaN


def carried(writer, zarr_format, written, folder):
    """Convert there and back; return whether the program reads the same, and what was told as lost."""
    path, expected = written(writer)
    there, back = folder / "raster-there.zarr", folder / "raster-back.zarr"
    first = omnizarr.convert(path, there, zarr_format=zarr_format)
    second = omnizarr.convert(there, back, zarr_format=writer.zarr_format)
    assert first.verified
    assert second.verified
    losses = [*first.losses, *second.losses]
    if losses:
        return None, losses
    found = writer.read(back)
    assert equal(found, expected), (found, expected)
    if zarr_format in writer.reads:
        found = writer.read(there)
        assert equal(found, expected), (found, expected)
    return True, losses


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("writer", WRITERS, ids=name_of)
def test_the_writers_own_reader_reads_the_same(writer, zarr_format, written, tmp_path):
    is_same, losses = carried(writer, zarr_format, written, tmp_path)
    cell = "yes" if is_same else "reported"
    assert cell == table()[writer.program, writer.what, writer.zarr_format][FORMATS.index(zarr_format)], losses


def table():
    """Return the table of the manual: what is carried from which writer to which format."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r"\| (\S+) \| ([^|]+) \| v(\d) \|(( (yes|reported) \|){5})", line)
        if found:
            rows[found[1], found[2].replace("`", ""), int(found[3])] = found[4].replace("|", "").split()
    return rows


def test_manual_has_a_row_for_each_writer():
    assert list(table()) == [(writer.program, writer.what, writer.zarr_format) for writer in WRITERS]

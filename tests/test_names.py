"""The public names are those of `public_names.txt`, no more and no fewer."""

import subprocess
import sys
from pathlib import Path

import pytest

import omnizarr
import omnizarr.interop

pytestmark = pytest.mark.rules

LISTED = [
    name
    for line in (Path(__file__).parent / "public_names.txt").read_text(encoding="utf-8").splitlines()
    if (name := line.partition("#")[0].strip())
]


def test_public_names_are_the_listed_ones():
    assert sorted(getattr(omnizarr, "__all__", [])) == sorted(LISTED)


def test_list_is_sorted_and_free_of_duplicates():
    assert sorted(set(LISTED)) == LISTED


@pytest.mark.parametrize("name", LISTED)
def test_public_name_is_there_and_documented(name):
    value = getattr(omnizarr, name)
    assert name.startswith("__") or value.__doc__


@pytest.mark.parametrize("name", LISTED)
def test_dir_shows_public_name(name):
    assert name in dir(omnizarr)


@pytest.mark.parametrize("name", ["netcdf.Dataset", "aio.open_array", "interop.dask.from_zarr", "model.Named"])
def test_room_is_there_without_an_import_of_its_own(name):
    subprocess.run([sys.executable, "-c", f"import omnizarr; omnizarr.{name}"], check=True)


@pytest.mark.parametrize("module", ["omnizarr", "omnizarr.interop"])
def test_unknown_names_are_attribute_errors(module):
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        sys.modules[module].nothing  # noqa: B018

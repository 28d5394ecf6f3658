"""The public names are those of `public_names.txt`, no more and no fewer."""

from pathlib import Path

import pytest

import omnizarr

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

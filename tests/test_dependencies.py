"""The lowest versions that `pyproject.toml` names, which ``make test-oldest`` installs and tests with."""

import os
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

OLDEST = "oldest"
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
TESTED = sorted(set(EXTRAS) - {"bench", "coverage", "demo", "dist", "docs", "downstream", "lint"})
REQUIREMENTS = [
    Requirement(each)
    for given in (PROJECT["dependencies"], *(EXTRAS[extra] for extra in TESTED))
    for each in given
    if not each.startswith("omnizarr[")
]


def lowest(requirement):
    """Return the lowest version that a requirement allows."""
    (bound,) = [Version(each.version) for each in requirement.specifier if each.operator == ">="]
    return bound


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_every_dependency_has_one_lowest_version(requirement):
    assert {lowest(each) for each in REQUIREMENTS if each.name == requirement.name} == {lowest(requirement)}


@pytest.mark.skipif(os.environ.get("OMNIZARR_DEPENDENCIES") != OLDEST, reason="only make test-oldest installs them")
def test_the_lowest_versions_are_installed():
    installed = {each.name: Version(metadata.version(each.name)) for each in REQUIREMENTS}
    assert installed == {each.name: lowest(each) for each in REQUIREMENTS}

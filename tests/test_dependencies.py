"""The lowest versions that `pyproject.toml` names, which ``make test-oldest`` installs and tests with."""

import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

pytestmark = pytest.mark.rules

OLDEST = "oldest"
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
TESTED = sorted(set(EXTRAS) - {"bench", "coverage", "demo", "dist", "docs", "downstream", "downstream-oldest", "lint"})


def required(extras):
    """Return what the package and these extras require."""
    given = (PROJECT["dependencies"], *(EXTRAS[extra] for extra in extras))
    return [Requirement(each) for bounds in given for each in bounds if not each.startswith("omnizarr[")]


REQUIREMENTS = required(TESTED)
OF_USERS = required(set(TESTED) - {"test", "free-threaded"})
"""Tests may want a later release than users need: one without faults of its own that a test would meet."""


IMPORTED_AS = {"pillow": "PIL", "google-crc32c": "google_crc32c", "universal_pathlib": "upath"}
UNSEEN = {"httptools", "uvloop", "distributed", "upath"}
"""What others import: uvicorn, dask, and users."""
FOR_USERS = sorted(set(TESTED) - {"all", "test", "free-threaded"})


@pytest.mark.parametrize("extra", FOR_USERS)
def test_every_package_of_an_extra_is_imported_by_the_library(extra):
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "omnizarr").rglob("*.py")]
    for requirement in map(Requirement, EXTRAS[extra]):
        name = IMPORTED_AS.get(requirement.name, requirement.name)
        imports = re.compile(rf"""^\s*(?:import|from) {name}\b|"{name}[".]""", re.MULTILINE)
        assert name in UNSEEN or any(map(imports.search, sources)), requirement


def same(requirement):
    """Return all requirements of the same package."""
    return [each for each in REQUIREMENTS if each.name == requirement.name]


def lowest(requirement):
    """Return the lowest version that a requirement allows."""
    (bound,) = [Version(each.version) for each in requirement.specifier if each.operator == ">="]
    return bound


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_every_dependency_has_one_lowest_version_for_users_and_tests_need_no_older_one(requirement):
    bounds = {lowest(each) for each in OF_USERS if each.name == requirement.name}
    assert len(bounds) <= 1
    assert all(lowest(requirement) >= bound for bound in bounds)


@pytest.mark.skipif(os.environ.get("OMNIZARR_DEPENDENCIES") != OLDEST, reason="only make test-oldest installs them")
def test_the_lowest_versions_are_installed():
    installed = {each.name: Version(metadata.version(each.name)) for each in REQUIREMENTS}
    assert installed == {each.name: max(map(lowest, same(each))) for each in REQUIREMENTS}

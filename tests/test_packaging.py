"""Recipes of other package managers say the same as pyproject.toml."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import omnizarr
from tests import licenses

pytestmark = pytest.mark.rules

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
WITH_NATIVE = {"platform_python_implementation": "CPython", "platform_machine": "x86_64"}


def named(requirements):
    """Return bounds by name; what other platforms need is left out."""
    found = [Requirement(each) for each in requirements]
    return {each.name: str(each.specifier) for each in found if not each.marker or each.marker.evaluate(WITH_NATIVE)}


def test_recipe_has_the_version_of_the_package():
    assert RECIPE["context"]["version"] == omnizarr.__version__


def test_recipe_runs_with_the_dependencies_of_the_package_and_its_command_line():
    project = PROJECT["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    assert named(RECIPE["requirements"]["run"]) == {"python": project["requires-python"], **named(wanted)}


def test_recipe_builds_with_what_the_package_is_built_with():
    found = named(RECIPE["requirements"]["host"])
    wanted = named(PROJECT["build-system"]["requires"])
    assert {name: found[name] for name in wanted} == wanted
    assert found["python-abi3"] == PROJECT["project"]["requires-python"]


def test_recipe_has_the_license_and_the_program_of_the_package():
    project = PROJECT["project"]
    assert RECIPE["about"]["license"] == project["license"]
    assert RECIPE["about"]["summary"] == project["description"]
    ((name, function),) = project["scripts"].items()
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {function}"]


@pytest.mark.parametrize("stage", ["build", "run"])
def test_container_has_a_python_that_the_package_supports(stage):
    text = (ROOT / "packaging" / "Containerfile").read_text(encoding="utf-8")
    images = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert "trixie" in images[("build", "run").index(stage)]  # Debian 13 has Python 3.13


def test_container_does_not_run_as_root():
    text = (ROOT / "packaging" / "Containerfile").read_text(encoding="utf-8")
    assert text.rindex("\nUSER omnizarr\n") > text.rindex("\nFROM ")


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not here")
def test_licences_of_all_crates_in_the_engine_are_named():
    text = (ROOT / "LICENSE-THIRD-PARTY.txt").read_text(encoding="utf-8")
    missing = [crate for crate in licenses.crates() if f"\n{crate}: " not in text]
    assert not missing, "run python -m tests.licenses"


def test_licences_of_the_c_libraries_in_the_engine_are_included():
    text = (ROOT / "LICENSE-THIRD-PARTY.txt").read_text(encoding="utf-8")
    for holder in ("Meta Platforms", "Blosc Development Team", "Yann Collet", "Eric Biggers", "Brian Smith"):
        assert holder in text

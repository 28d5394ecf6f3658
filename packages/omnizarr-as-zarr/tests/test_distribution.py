"""The distribution fits omnizarr, and its page names the packages that it does not serve."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import omnizarr
import omnizarr_as_zarr as as_zarr
from tests.structure import circles, names_in

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]
PAGE = (ROOT / "docs" / "howto" / "under-the-name-zarr.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OF_OMNIZARR = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.rules
def test_version_is_that_of_the_release_of_zarr_python_it_follows():
    assert re.fullmatch(rf"{re.escape(as_zarr.VERSION)}(\.\d+)?", PROJECT["version"])
    assert as_zarr.VERSION in PAGE


def test_it_needs_the_omnizarr_of_this_tree_as_it_uses_what_is_not_public():
    assert f"omnizarr=={omnizarr.__version__}" in PROJECT["dependencies"]


def test_bounds_and_licence_are_those_of_omnizarr():
    assert PROJECT["requires-python"] == OF_OMNIZARR["requires-python"]
    others = [each for each in PROJECT["dependencies"] if not each.startswith("omnizarr")]
    assert set(others) <= set(OF_OMNIZARR["dependencies"])
    assert (HERE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.rules
def test_no_modules_import_each_other():
    folder = HERE / "src" / "omnizarr_as_zarr"
    paths = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in folder.rglob("*.py")
    }
    graph = {
        module: {
            target
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in names_in(node)
            for target in [name if name in paths else name.rpartition(".")[0]]
            if target in paths and target != module
        }
        for module, path in paths.items()
    }
    assert sum(map(len, graph.values())) > len(graph)
    assert list(circles(graph)) == []


LISTED = re.findall(r"(?m)^\| `import ([\w.]+)`", PAGE)


@pytest.mark.rules
def test_the_page_lists_packages_that_it_does_not_serve():
    assert {name.partition(".")[0] for name in LISTED} >= {"icechunk", "virtualizarr", "kerchunk", "ngio"}


@pytest.mark.parametrize("name", LISTED)
def test_listed_package_cannot_be_imported_under_the_name(name, tmp_path):
    package = name.partition(".")[0]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    program = f"""
import sys
sys.path[:0] = {[str(ROOT / "src"), str(HERE / "src")]!r}
import omnizarr_as_zarr
omnizarr_as_zarr.install()
try:
    import {name}
except ImportError as error:
    assert "omnizarr" in str(error), error
    print("no")
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.split() == ["no"], done.stderr

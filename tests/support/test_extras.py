"""How to install an extra: one wording, which is true for a clone and for a release."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from omnizarr.codecs import registry
from omnizarr.support import extras

pytestmark = pytest.mark.rules

ROOT = Path(__file__).parents[2]
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_no_other_module_words_it():
    found = [str(path) for path, text in SOURCES.items() if re.search(r"pip install ['\"]?(omnizarr|\.)\[", text)]
    assert [Path(path).name for path in found] == ["extras.py"]


def test_all_extras_in_errors_exist():
    named = {name for text in SOURCES.values() for name in re.findall(r"extras\.remedy\(['\"](\w+)['\"]\)", text)}
    assert len(named) >= 13
    named |= {record.package[1] for record in registry.records() if record.package is not None}
    assert named <= set(EXTRAS)


def test_command_is_that_of_pip_where_omnizarr_is_installed(monkeypatch):
    monkeypatch.setattr(metadata, "distribution", lambda name: name)
    assert extras.remedy("cloud") == 'pip install "omnizarr[cloud]"'


def test_command_names_the_clone_where_omnizarr_is_not_installed(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert extras.remedy("cloud") == 'pip install ".[cloud]" in the clone of omnizarr'


@pytest.mark.slow
def test_pip_adds_an_extra_to_what_is_installed_without_an_index():
    pytest.importorskip("pip", reason="pip is not installed")
    try:
        metadata.distribution("omnizarr")
        metadata.distribution("click")
    except metadata.PackageNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    command = ["install", "--dry-run", "--no-index", "--no-build-isolation", "omnizarr[cli]"]
    ended = subprocess.run([sys.executable, "-m", "pip", *command], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "already satisfied: omnizarr[cli]" in ended.stdout

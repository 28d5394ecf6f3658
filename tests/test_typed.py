"""Type checkers find the mistakes that are planted in tests/typed, all of them, and nothing else."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MISTAKES = ROOT / "tests" / "typed" / "mistakes.py"
MARK = "  # type: ignore["

pytestmark = pytest.mark.slow


@pytest.fixture
def without_marks(tmp_path):
    """The mistakes without the comments that tell checkers of them, and the uses, as a program of a user has them."""
    lines = [line.split(MARK)[0] for line in MISTAKES.read_text(encoding="utf-8").splitlines()]
    (tmp_path / "mistakes.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.copy(MISTAKES.with_name("uses.py"), tmp_path)
    return tmp_path


@pytest.fixture
def planted():
    """Return the lines with mistakes."""
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    return {("mistakes.py", number) for number, line in enumerate(lines, 1) if MARK in line}


def run(*command, cwd):
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_mypy_finds_all_mistakes(without_marks, planted):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: pip install 'omnizarr[lint]'")
    said = run(
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--output=json", "--python-version=3.11"),
        *("--cache-dir", str(ROOT / ".mypy_cache"), "--ignore-missing-imports", "--follow-imports=silent"),
        *("mistakes.py", "uses.py"),
        cwd=without_marks,
    )
    reports = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    found = {(Path(each["file"]).name, each["line"]) for each in reports if each["severity"] == "error"}
    assert found == planted


def test_pyright_finds_all_mistakes(without_marks, planted):
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed: pip install 'omnizarr[lint]'")
    settings = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "extraPaths": [str(ROOT / "src")]}
    (without_marks / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    said = run(
        *(sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable), cwd=without_marks
    )
    reports = json.loads(said)["generalDiagnostics"]
    found = {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in reports if each["severity"] == "error"
    }
    assert found == planted

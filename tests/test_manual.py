"""The examples in README, CONTRIBUTING and the manual run, those of the command line too."""

import ast
import doctest
import itertools
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click import Context, Option

import omnizarr
from omnizarr import settings
from omnizarr.cli.commands import COMMANDS
from omnizarr.cli.commands import omnizarr as omnizarr_command
from tests import tables

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)])
# Pages that change what modules are found, or the environment, with the libraries that they show.
ALONE = {
    "docs/howto/anndata.md": ("anndata",),
    "docs/howto/under-the-name-zarr.md": (),
    "docs/tutorials/s3.md": ("moto", "flask", "boto3", "obstore", "xarray"),
}
AS_ZARR = ROOT / "packages" / "omnizarr-as-zarr" / "src"
# A page that needs servers.
OBJECT_STORES = "docs/howto/object-stores.md"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
BLOCKS = re.compile(r"^```(python|pycon|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Files that a page tells the reader to write: a block with the name of the file as its caption.
FILES = re.compile(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


def session(text: str) -> str:
    """Return the interactive examples of a page, each on the line where the page has it."""

    def blank(prose: str) -> str:
        return "\n" * prose.count("\n")

    result, end = "", 0
    for block in BLOCKS.finditer(text):
        kind, body = block[1], block[2]
        result += blank(text[end : block.start(2)])
        if kind == "console":
            result += as_python(body)
        else:
            result += body if ">>>" in body else blank(body)
        end = block.end(2)
    return result


def as_python(console: str) -> str:
    """Return examples of the command line as interactive ones: `$ omnizarr ...`, and what it prints."""
    lines = []
    for line in console.splitlines():
        if line.startswith("$ "):
            lines.append(f">>> shell({line[2:]!r})")
        else:
            lines.append(line or "<BLANKLINE>")
    return "\n".join(lines) + "\n"


def shell(line: str) -> None:
    """Run a command, behind variables of its environment if there are some, and print what it says."""
    words = shlex.split(line)
    variables = list(itertools.takewhile(ASSIGNMENT.fullmatch, words))
    program, *arguments = words[len(variables) :]
    assert program in {"omnizarr", "python"}, "only omnizarr and the files of the page are run"
    command = [sys.executable, *(["-m", "omnizarr"] if program == "omnizarr" else []), *arguments]
    environment = {**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    environment |= dict(variable.split("=", 1) for variable in variables)
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=False)
    sys.stdout.write(done.stdout + done.stderr)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def how_often(name: str) -> Any:
    """Return the marks of a page; that of the command line takes half a minute."""
    if name == "docs/cli.md":
        return pytest.mark.slow
    return () if name in FIRST else pytest.mark.sampled(3)


FIRST = {"README.md", "CONTRIBUTING.md", "docs/tutorials/ten-minutes.md"}
"""Pages that every run of the tests tries; `make test` takes a sample of the others."""
HERE = [
    pytest.param(page, id=name_of(page), marks=how_often(name_of(page)))
    for page in PAGES
    if name_of(page) not in {*ALONE, OBJECT_STORES}
]


@pytest.mark.parametrize("page", HERE)
def test_examples_of_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page)


def test_examples_of_object_stores_run_on_servers(
    tmp_path, monkeypatch, s3_server, gcs_server, azurite_server, http_server
):
    pytest.importorskip("obstore", reason="omnizarr[cloud] is not installed")
    monkeypatch.chdir(tmp_path)
    s3, gcs, azure, http = (server.fresh() for server in (s3_server, gcs_server, azurite_server, http_server))
    for prefix, place in (("AWS_", s3), ("GOOGLE_", gcs), ("AZURE_STORAGE_", azure)):
        for name, value in place.options.items():
            monkeypatch.setenv(prefix + name.upper(), str(value))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.endpoint)
    array = omnizarr.create_array(http.directory / "heights.zarr", data=np.arange(12.0).reshape(3, 4), chunks=(2, 2))
    assert array.shape == (3, 4)
    urls = {"s3://weather": s3.url, "gs://weather": gcs.url, "az://weather": azure.url}
    run(ROOT / OBJECT_STORES, {**urls, "https://data.example.org": http.url})


@pytest.mark.parametrize("name", ALONE)
def test_examples_of_page_run_in_a_process_of_its_own(name, tmp_path):
    missing = [library for library in ALONE[name] if find_spec(library) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    program = f"from tests.test_manual import ROOT, run; run(ROOT / {name!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src", AS_ZARR)))}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run(page: Path, places: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write the files of a page and run its examples here, with these URLs in the places of others."""
    name, text = name_of(page), page.read_text(encoding="utf-8")
    for url, place in places.items():
        assert url in text, f"{name} does not show {url}"
        text = text.replace(url, place)
    for file, content in FILES.findall(text):
        Path(file).write_text(content, encoding="utf-8")
    names = {"shell": shell}
    test = doctest.DocTestParser().get_doctest(session(text), names, name, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not results.failed, "".join(report)


@pytest.mark.parametrize(("page", "text"), tables.pages().items(), ids=lambda each: getattr(each, "name", ""))
def test_tables_of_the_manual_say_what_the_source_says(page, text):
    assert page.read_text(encoding="utf-8") == text, "python -m tests.tables"


SETTINGS = ROOT / "docs" / "reference" / "configuration.md"


def rows_below(heading: str) -> dict[str, str]:
    """Return the second cells of a table of the configuration page by the names in the first."""
    section = SETTINGS.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"(?m)^\| `([^`]+)` \| ([^|]+?) \|", section))


def test_configuration_page_has_every_setting_with_its_default():
    found = {name: ast.literal_eval(default.strip("`")) for name, default in rows_below("Settings").items()}
    assert found == settings.DEFAULTS


def test_configuration_page_names_the_settings_of_zarr_python():
    section = SETTINGS.read_text("utf-8").partition("\n## Names of zarr-python\n")[2].partition("\n## ")[0]
    names = {*settings._ALIASES, *settings._ALIASES.values(), *settings._WITHOUT_EFFECT}
    assert set(re.findall(r"`([^`]+)`", section)) == names


def test_configuration_page_has_every_environment_variable():
    sources = [ROOT / "setup.py", *(ROOT / "packaging").glob("*.py"), *(ROOT / "src").rglob("*.py")]
    asked = re.compile(r"""(?:environ(?:\.get\(|\[)|envvar=|choice\()"(OMNIZARR_\w+|NO_COLOR)\"""")
    found = {name for source in sources for name in asked.findall(source.read_text("utf-8"))}
    assert found == rows_below("Environment variables").keys()


def test_reference_of_the_command_line_has_every_command_and_option(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    text = import_module("commands").text()
    page = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert len(import_module("commands").PLACE.findall(page)) == 1
    for group in COMMANDS.values():
        for name, (_, summary) in group.items():
            section = text.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
            assert f"omnizarr {name} " in section
            assert re.sub(r"\W", "", summary) in re.sub(r"\W", "", section)
            command = omnizarr_command.get_command(Context(omnizarr_command), name)
            options = {
                option
                for each in command.params
                if isinstance(each, Option) and not each.hidden
                for option in each.opts
            }
            assert [option for option in options if option not in section] == []


def test_picture_of_the_front_page_has_the_figures_of_the_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    speed = import_module("speed")
    found = speed.rows()
    table = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    for name, times in found.items():
        (row,) = re.findall(rf"(?m)^\| {re.escape(name)} \|(.*)$", table)[:1]
        cells = [cell.strip(" *") for cell in row.split("|")]
        assert cells[0] == times["omnizarr"]
        assert all(time in cells for time in times.values())
    root = ET.fromstring(speed.picture(found))
    bars = [float(each.attrib["width"]) for each in root.iter("rect")][len(speed.LIBRARIES) :]
    times = [speed.seconds(time) for row in found.values() for time in row.values()]
    for start in range(0, len(bars), len(speed.LIBRARIES)):
        few = slice(start, start + len(speed.LIBRARIES))
        assert np.argsort(bars[few]).tolist() == np.argsort(times[few]).tolist()
    assert len(speed.PLACE.findall((ROOT / "docs" / "index.md").read_text("utf-8"))) == 1


def test_published_manuals_are_side_by_side(tmp_path):
    built, site = tmp_path / "built", tmp_path / "site"
    built.mkdir()
    site.mkdir()
    publish = runpy.run_path(str(ROOT / "docs" / "publish.py"))["publish"]
    for name in ("dev", "0.9.0", "0.10.0", "0.11.0rc1", "0.9.0"):
        (built / "index.html").write_text(name, encoding="utf-8")
        publish(built, site, name)
    versions = json.loads((site / "versions.json").read_text("utf-8"))
    assert [each["name"] for each in versions] == ["dev", "0.11.0rc1", "0.10.0", "0.9.0"]
    assert [each["title"] for each in versions] == ["development", "0.11.0rc1", "0.10.0 (stable)", "0.9.0"]
    assert (site / "0.9.0" / "index.html").read_text("utf-8") == "0.9.0"
    assert "url=0.10.0/" in (site / "index.html").read_text("utf-8")
    with pytest.raises(ValueError, match=r"\.\."):
        publish(built, site, "..")


def test_pages_are_in_the_table_of_contents_once():
    pages = {path: path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts}
    toctrees = re.compile(r"(?ms)^```\{toctree\}\n(.*?)^```$")
    entries = [
        (path.parent / f"{line}.md").resolve()
        for path, text in pages.items()
        for tree in toctrees.findall(text)
        for line in tree.splitlines()
        if line and not line.startswith(":")
    ]
    assert sorted(entries) == sorted(path for path in pages if path != ROOT / "docs" / "index.md")

